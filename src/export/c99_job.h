/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files share that write C: the arithmetic that the library would predict with, and arrays of numbers. */
#ifndef MRC_EXPORT_C99_JOB_H
#define MRC_EXPORT_C99_JOB_H

#include "backends/cpu/micro/ukernels.h"
#include "data/schema/schema.h"
#include "export/export.h"

typedef enum mrc_form {
    MRC_FORM_NONE,
    MRC_FORM_FLOAT,
    MRC_FORM_DOUBLE,
    MRC_FORM_SAME,
    MRC_FORM_POWER,
    MRC_FORM_ANGLE
} mrc_form;

enum { MRC_C99_NAMES = 64 };

typedef struct mrc_c99_job {
    const mercer_model *model; /* or the member of it that is written */
    int64_t members;           /* that predictions are the mean of; 1 of most */
    int member;                /* number of the one that is written; -1: what all have */
    const char *names[MRC_C99_NAMES];
    int name_count;   /* that are the member's own */
    const char *name; /* begins the names of functions */
    mrc_output out;
    mrc_schema *schema; /* or NULL */
    mrc_map map;
    mrc_form form;
    const char *text; /* the formula, of FLOAT and DOUBLE */
    double norm;      /* of the distance; 0: inner products */
    bool classes;
    bool wide;   /* kernel and sums in double */
    bool bytes;  /* exact integers */
    bool direct; /* sums of differences, not products */
} mrc_c99_job;

/* What the library's CPU backend would do, told from the types and the kernel (backends/cpu/product.c). */
mercer_status mrc_c99_decide(mrc_c99_job *job);
/* Whether sums are floats before units are applied. */
bool mrc_c99_rounds_sums(const mrc_c99_job *job);
/* c99_points.c: centers, weights and the functions "prepare" and "add_up". */
mercer_status mrc_c99_points(mrc_c99_job *job);

/* "float", "double", "unsigned char": elements of centers and samples. */
const char *mrc_c99_type(mercer_dtype dtype);
/* A name that every member defines: from here to mrc_c99_disown it is another for each. Nothing of one model alone. */
void mrc_c99_own(mrc_c99_job *job, const char *name);
void mrc_c99_disown(mrc_c99_job *job);
void mrc_c99_number(mrc_c99_job *job, double value, bool single);
/* static const TYPE NAME[rows][cols] = {...}; without [rows] if rows is 0 */
void mrc_c99_array(mrc_c99_job *job, const char *name, int64_t rows, int64_t cols, const double *values, bool single);
void mrc_c99_matrix(mrc_c99_job *job, const char *name, const mercer_matrix *values);
void mrc_c99_text(mrc_c99_job *job, const char *text);
/* NAME[] = {"..", .., 0} */
void mrc_c99_texts(mrc_c99_job *job, const char *name, const char *const *texts, int64_t count);
/* A function of a source, and an empty line. */
void mrc_c99_function(mrc_c99_job *job, const char *source, const char *function);
/* Tables and functions that make features of cells. */
void mrc_c99_schema(mrc_c99_job *job);

#endif
