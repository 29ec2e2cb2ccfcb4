/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of an exported C file, written as definitions of arrays and structs that c99_runtime.h declares.
 *
 * Functions that write an array append an initializer ".name = array" to `fields`. The struct that follows begins with
 * these initializers. Fields without an initializer are 0 or NULL, so data that a model does not have are left out.
 */
#ifndef MRC_EXPORT_C99_JOB_H
#define MRC_EXPORT_C99_JOB_H

#include "data/schema/schema.h"
#include "export/export.h"

typedef struct mrc_c99_job {
    const mercer_model *model;
    const char *name; /* prefix of the names of the exported functions */
    mrc_output out;
    int member;        /* index of the member that is being written; -1: data of the whole model */
    char fields[1024]; /* initializers collected for the struct that is written next */
} mrc_c99_job;

/* Writes a number as the shortest decimal that reads back exactly, as a double or (single) as a float. */
void mrc_c99_number(mrc_c99_job *job, double value, bool single);
/* Writes the definition of an array, row by row without padding, and adds it to the fields under its name. Half floats
   become floats. */
void mrc_c99_matrix(mrc_c99_job *job, const char *name, const mercer_matrix *values);
/* The same as mrc_c99_matrix for doubles; single: the values are floats that are stored as doubles. */
void mrc_c99_doubles(mrc_c99_job *job, const char *name, int64_t count, const double *values, bool single);
/* Begins the definition of a struct with the collected fields as its first initializers, and clears the fields. The
   caller writes the other initializers and the closing brace. */
void mrc_c99_struct(mrc_c99_job *job, const char *type, const char *name);
/* Writes the definition of a list of strings, NAME[] = {"..", .., 0}; a NULL is written as "". */
void mrc_c99_texts(mrc_c99_job *job, const char *name, const char *const *texts, int64_t count);
/* Writes the schema that encodes cells of a table as features. */
void mrc_c99_table(mrc_c99_job *job, const mrc_schema *schema);

#endif
