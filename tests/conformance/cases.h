/* SPDX-License-Identifier: BSD-3-Clause */
/* What conformance runs: kernels, element types and shapes. A kernel of the table is covered by being there. */
#ifndef MRC_TESTS_CASES_H
#define MRC_TESTS_CASES_H

#include "budget.h"

/* Element types of X, Z, of W and H, and of outputs and G. */
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

/* The kernels of the table by their examples, then one callback of the distance and one of the inner product. */
int case_kernel_count(void);
mercer_kernel case_kernel(int index);
const char *case_kernel_name(int index);
void case_types_name(const types *t, char text[32]);

/* The sums behind out_ij = sum_k K_ik in_kj, or with K transposed; (rows of out, c) each. */
typedef struct product_sums {
    double *wanted;  /* the product itself */
    double *size;    /* of (|K| + allowed error) |in| */
    double *allowed; /* of (allowed error) |in| */
} product_sums;

/* One set of operands with its reference result and the errors allowed. */
typedef struct problem {
    mercer_kernel kernel;
    types types;
    shape shape;
    int64_t levels; /* X and Z have categories of so many levels, a number before each; 0: numbers alone */
    bool odd;       /* some rows have several levels */
    bool at_end;    /* operands end at a guard page, or begin at one */
    mrc_pair pair;
    mercer_matrix x, z, w, g;
    double *origin;             /* (d) or NULL: the column mean of Z, maybe with 0 for columns of 0 and one value */
    double *values;             /* (m, p) reference */
    double *errors;             /* (m, p) allowed, of K(X, Z) */
    double *errors_back;        /* (m, p) allowed, of K(Z, X): another origin */
    product_sums forward, back; /* K(X, Z) W, K(Z, X) G: summed once for all targets and operations */
    double unit;                /* of the arithmetic of values */
    void *hidden[5];            /* the guarded operands */
} problem;

problem *problem_make(const mercer_kernel *kernel, const types *t, const shape *s, int index, bool at_end);
bool problem_inputs_intact(const problem *p); /* nobody wrote to inputs or between their rows */
void problem_free(problem *p);
/* (cols), to be freed: the column mean; and with 0 where a column is 0 or one other value. */
double *case_column_mean(const mercer_matrix *a);
double *case_column_origin(const mercer_matrix *a);

/* A backend on an instruction set. */
typedef struct target {
    const char *backend_name;
    char name[32];
    mercer_context context;
    mrc_backend *backend;
} target;

/* The largest share of the allowed error, over all operations; > 1 is a failure, described in text (worst operation otherwise). */
typedef struct verdict {
    double share;
    char text[256];
} verdict;

/* bits, if not NULL, gets a hash of the outputs of kernel_eval, kernel_matmul, kernel_signs, feature_sums and nearest_rows. */
verdict run_problem(const target *t, const problem *p, bool all_rooms, uint64_t *bits);

#endif
