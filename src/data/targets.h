/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets from files, numbers or names, one after the other, turned into classes or values.
 *
 * If the caller does not say which, they are classes if one is a name, if they are the labels of an IDX file, or if
 * they are whole numbers of which at most 20 differ (in text also: each occurs three times on average, or only 2
 * differ), and values otherwise. Numbers that are equal are the same class, however they are written; names of classes
 * that are all numbers are sorted by value, others by their bytes.
 *
 * Texts that are all numbers in one notation (data/table/notation.h) are values: mrc_targets_find_notation finds it
 * when all have been read, and they are read once more. So many different names that they are hardly classes are an
 * error, unless the caller asked for classes.
 */
#ifndef MRC_DATA_TARGETS_H
#define MRC_DATA_TARGETS_H

#include "data/dataset.h"
#include "data/table/notation.h"

#include <stdbool.h>

enum { MRC_MOST_CLASSES = 10000, MRC_AUTO_CLASSES = 20, MRC_LABEL_CHARS = 256 };

typedef enum mrc_target_origin {
    MRC_TARGETS_TEXT,    /* few whole numbers that occur often are classes */
    MRC_TARGETS_INTEGER, /* few of them are classes */
    MRC_TARGETS_LABELS,  /* are classes */
    MRC_TARGETS_REAL     /* are values */
} mrc_target_origin;

typedef struct mrc_target_class {
    double value;     /* if it is a number */
    int64_t text;     /* place of its name in `texts`; -1 for a number */
    const char *path; /* of the file where it was seen first */
    int64_t place;
    int32_t number; /* its final class number */
} mrc_target_class;

typedef struct mrc_targets {
    mercer_context *context;
    const char *path; /* borrowed, for messages; changed by the reader when it goes on with another file */
    mrc_target_origin origin;
    int64_t rows, room;
    double *values;          /* (room) meaningful while there are only numbers */
    int32_t *classes;        /* (room) entries of `found`; meaningful while they are not too many */
    mrc_target_class *found; /* (count) */
    int64_t count;
    int32_t *slots; /* hash table of entries of `found`; -1 is empty */
    char *texts;
    int64_t texts_used, texts_room;
    bool whole, too_many;  /* all are whole numbers; there are more than MRC_MOST_CLASSES different ones */
    const char *text_path; /* where the first name is */
    int64_t text_place;    /* of the first name; -1: only numbers */
    int64_t text_first;    /* that name's place in `texts` */
    char separator;        /* of the fields of the table; 0: none */
    mrc_notation notation; /* of all texts; all zero: plain numbers and names */
} mrc_targets;

/* What the caller asked for. */
typedef struct mrc_target_wish {
    mercer_task task;
    const char *const *labels; /* (label_count), or NULL */
    int64_t label_count;
} mrc_target_wish;

/* For `room` targets. Place numbers are lines from 1 for TEXT, elements from 0 otherwise. To be closed even if it
   fails. */
mercer_status mrc_targets_open(mrc_targets *out, mercer_context *context, const char *path, mrc_target_origin origin,
                               int64_t room);
void mrc_targets_close(mrc_targets *targets);
/* Forgets all targets; the notation stays. */
void mrc_targets_clear(mrc_targets *targets);
mercer_status mrc_targets_number(mrc_targets *targets, double value, int64_t place);
/* One that was there before and is classes[row] of that one; they are not too many. */
mercer_status mrc_targets_again(mrc_targets *targets, int32_t entry);
/* A number or a name. */
mercer_status mrc_targets_text(mrc_targets *targets, const char *text, int64_t length, int64_t place);
/* Finds the notation of texts that are all numbers; true if there is one, and the targets must be read again. */
bool mrc_targets_find_notation(mrc_targets *targets, const mrc_target_wish *wish);
/* Decides what they are and sets task, outputs and labels with their names, or y, of the dataset. */
mercer_status mrc_targets_settle(mrc_targets *targets, const mrc_target_wish *wish, mercer_dataset *dataset);

/* Bytes that targets take for each row, for the limit on memory. */
enum { MRC_TARGET_BYTES = sizeof(double) + sizeof(int32_t) };

#endif
