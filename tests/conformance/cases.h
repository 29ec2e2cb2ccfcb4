/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of conformance: kernels, element types and shapes. All kernels of the kernel table are included
   automatically. */
#ifndef MRC_TESTS_CASES_H
#define MRC_TESTS_CASES_H

#include "budget.h"

/* Element types: x of X, z of Z, w of W and H, out of outputs and G. */
typedef struct types {
    mercer_dtype x, z, w, out;
} types;

typedef struct shape {
    int64_t m, p, d, c;
} shape;

extern const types all_types[];
extern const int all_types_count;
extern const shape all_shapes[];
extern const int all_shapes_count;

/* Kernels of the table with their example parameters, then one distance callback and one inner-product callback. */
int case_kernel_count(void);
mercer_kernel case_kernel(int index);
const char *case_kernel_name(int index);
void case_types_name(const types *t, char text[32]);

/* Reference sums of out_ij = sum_k K_ik in_kj, or with K transposed; (rows of out, c) each. */
typedef struct product_sums {
    double *wanted;  /* value of the product */
    double *size;    /* sum of (|K| + allowed error) |in| */
    double *allowed; /* sum of (allowed error) |in| */
} product_sums;

/* One set of operands with its reference results and allowed errors. */
typedef struct problem {
    mercer_kernel kernel;
    types types;
    shape shape;
    int64_t levels; /* levels per category of X and Z, with one numeric feature before each category; 0: only numeric
                       features */
    bool odd;       /* true: some rows have several levels set */
    bool at_end;    /* true: operands end at a guard page; false: they begin at one */
    mrc_pair pair;
    mercer_matrix x, z, w, g;
    double *origin;      /* (d) origin passed to the backend; NULL: the backend chooses one from the columns of Z */
    double *values;      /* (m, p) reference K(X, Z) */
    double *errors;      /* (m, p) allowed errors of K(X, Z) */
    double *errors_back; /* (m, p) allowed errors of K(Z, X), at least those of K(X, Z): the origin may differ */
    product_sums forward, back; /* sums of K(X, Z) W and K(Z, X) G, shared by all targets and operations */
    double unit;                /* unit roundoff of the arithmetic of kernel values */
    void *hidden[5];            /* the guarded operands */
} problem;

problem *problem_make(const mercer_kernel *kernel, const types *t, const shape *s, int index, bool at_end);
bool problem_inputs_intact(const problem *p); /* whether inputs and their padding are unchanged */
void problem_free(problem *p);
/* Both functions return (cols) values that the caller frees: the column means. _origin returns 0 in place of the mean
   for columns with only 0 and one other value. */
double *case_column_mean(const mercer_matrix *a);
double *case_column_origin(const mercer_matrix *a);

/* A backend with an instruction set. */
typedef struct target {
    const char *backend_name;
    char name[32];
    mercer_context context;
    mrc_backend *backend;
} target;

/* Largest share of the allowed error over all operations; > 1: failure. text describes the failure, or else the worst
   operation. */
typedef struct verdict {
    double share;
    char text[256];
} verdict;

/* Run all operations. *bits, if not NULL: hash of the outputs of kernel_eval, kernel_matmul, kernel_signs,
   feature_sums, nearest_rows. */
verdict run_problem(const target *t, const problem *p, bool all_buffer_sizes, uint64_t *bits);

#endif
