/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of an exported C file, written as definitions of arrays and structs that c99_runtime.h declares. */
#ifndef MRC_EXPORT_C99_JOB_H
#define MRC_EXPORT_C99_JOB_H

#include "data/schema/schema.h"
#include "export/export.h"

typedef struct mrc_c99_job {
    const mercer_model *model;
    const char *name; /* begins the names of functions */
    mrc_output out;
    int member;        /* number of the member that is written; -1 for data of the whole model */
    char fields[1024]; /* initializers of the struct that is written next */
} mrc_c99_job;

/* A number as the shortest decimal that reads back as it was; single: as a float. */
void mrc_c99_number(mrc_c99_job *job, double value, bool single);
/* Defines an array of numbers, and adds it to the fields under its name. */
void mrc_c99_matrix(mrc_c99_job *job, const char *name, const mercer_matrix *values);
/* The same for doubles; single: floats that are stored as doubles. */
void mrc_c99_doubles(mrc_c99_job *job, const char *name, int64_t count, const double *values, bool single);
/* Begins a struct with the fields, which are then empty; its end is "};" and an empty line. */
void mrc_c99_struct(mrc_c99_job *job, const char *type, const char *name);
/* NAME[] = {"..", .., 0}; NULL is written as "". */
void mrc_c99_texts(mrc_c99_job *job, const char *name, const char *const *texts, int64_t count);
/* The table that cells belong to. */
void mrc_c99_table(mrc_c99_job *job, const mrc_schema *schema);

#endif
