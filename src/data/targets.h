/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collection of targets, numbers or names, and the decision whether they are classes or values.
 *
 * By default, targets are classes if at least one is a name, or if they are labels of an IDX or CIFAR file. Integers
 * with at most 20 distinct values are classes, too. Integers in text must also occur at least three times each on
 * average, unless there are only 2 values. Otherwise targets are values. Equal numbers are the same class, however they
 * are written. Classes are sorted by value if all class names are numbers, else bytewise by name.
 *
 * Strings that are all numbers in one notation (data/table/notation.h) are values, unless they are few distinct
 * integers. mrc_targets_find_notation finds the notation after all targets have been read; the targets are then read a
 * second time. Too many distinct names are an error, unless the caller asked for classes.
 */
#ifndef MRC_DATA_TARGETS_H
#define MRC_DATA_TARGETS_H

#include "data/dataset.h"
#include "data/table/notation.h"

#include <stdbool.h>

enum { MRC_MOST_CLASSES = 10000, MRC_AUTO_CLASSES = 20, MRC_LABEL_CHARS = 256 };

typedef enum mrc_target_origin {
    MRC_TARGETS_TEXT,    /* text: integers are classes if few are distinct and each is frequent */
    MRC_TARGETS_INTEGER, /* integer array: classes if few are distinct */
    MRC_TARGETS_LABELS,  /* label file or text array: always classes */
    MRC_TARGETS_REAL     /* real array: always values */
} mrc_target_origin;

typedef struct mrc_target_class {
    double value;     /* value of a number */
    int64_t text;     /* offset of the name in `texts`; -1 for a number */
    const char *path; /* file of the first occurrence; borrowed */
    int64_t place;    /* line or element of the first occurrence */
    int32_t number;   /* final class number */
} mrc_target_class;

typedef struct mrc_targets {
    mercer_context *context;
    const char *path; /* current file, for messages; borrowed; updated by the reader for each file */
    mrc_target_origin origin;
    int64_t rows, capacity;
    double *values;          /* (capacity) valid while all targets are numbers */
    int32_t *classes;        /* (capacity) indices into `found`; valid unless too_many */
    mrc_target_class *found; /* (count) distinct targets */
    int64_t count;
    int32_t *slots; /* hash table of indices into `found`; -1 is empty */
    char *texts;
    int64_t texts_used, texts_capacity;
    bool all_integers;     /* all targets are integers */
    bool too_many;         /* more than MRC_MOST_CLASSES targets are distinct */
    const char *text_path; /* file of the first name */
    int64_t text_place;    /* line or element of the first name; -1 if all are numbers */
    int64_t text_first;    /* offset of that name in `texts` */
    const char *unit;      /* name of a place in messages, such as "row"; NULL: "line" */
    char separator;        /* field separator of the table; 0 if there is none */
    mrc_notation notation; /* notation of all targets; all zero: plain numbers and names */
} mrc_targets;

/* Task and class names that the caller asked for. */
typedef struct mrc_target_wish {
    mercer_task task;
    const char *const *labels; /* (label_count), or NULL */
    int64_t label_count;
} mrc_target_wish;

/* Prepares for up to `capacity` targets. Places in messages are lines (from 1) for TEXT, elements (from 0) otherwise.
   The caller must close `out` even if this fails. */
mercer_status mrc_targets_open(mrc_targets *out, mercer_context *context, const char *path, mrc_target_origin origin,
                               int64_t capacity);
void mrc_targets_close(mrc_targets *targets);
/* Removes all targets and keeps the notation. */
void mrc_targets_clear(mrc_targets *targets);
mercer_status mrc_targets_number(mrc_targets *targets, double value, int64_t place);
/* Adds a repeated target: `entry` is classes[row] of an earlier row. too_many must be false. */
mercer_status mrc_targets_again(mrc_targets *targets, int32_t entry);
/* Adds a number or a name, given as text. */
mercer_status mrc_targets_text(mrc_targets *targets, const char *text, int64_t length, int64_t place);
/* Finds the notation if all targets are numbers. Returns true if there is one; the caller must then clear the
   targets and read them again. */
bool mrc_targets_find_notation(mrc_targets *targets, const mrc_target_wish *wish);
/* Returns the number of outputs that mrc_targets_finish will set, and whether they are classes. */
int64_t mrc_targets_outputs(const mrc_targets *targets, const mrc_target_wish *wish, bool *classes);
/* Decides between classes and values, sets the dataset's task and outputs, and moves either labels and class names or
   values into the dataset. */
mercer_status mrc_targets_finish(mrc_targets *targets, const mrc_target_wish *wish, mercer_dataset *dataset);

/* Bytes per row of collected targets, for the memory limit. */
enum { MRC_TARGET_BYTES = sizeof(double) + sizeof(int32_t) };

#endif
