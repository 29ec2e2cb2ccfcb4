/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers/projectors: solve K(Z,Z) theta = h for a field h, approximately, and report the residual.
 *
 *   exact  one Cholesky factor, two triangular solves                              p^3/3 once, 2 p^2 c per projection
 *   ep2    EigenPro 2 over the centers with its own Nystrom preconditioner         p^2 d per pass
 *   pcg    conjugate gradients with a Nystrom preconditioner, stored K(Z,Z) or not   p^2 d (stored: p^2 c) per pass
 *   bgs    block Gauss-Seidel with a coarse space                                  p^2 d / 2 per pass
 *
 * All projectors update the residual h - K theta in each pass, and report its norm relative to |h| (Frobenius norm,
 * exact up to rounding). They return the residual itself in h, so that the caller can add it to the next right-hand
 * side.
 */
#ifndef MRC_SOLVERS_PROJECTORS_PROJECTOR_H
#define MRC_SOLVERS_PROJECTORS_PROJECTOR_H

#include "solvers/cost.h"
#include "solvers/iteration/eigensystem.h"

typedef struct mrc_projector_options {
    int64_t nystrom;    /* s, number of centers in Z_s; at most p */
    int64_t eigenpairs; /* q */
    int64_t passes;     /* maximum number of passes over K(Z,Z) per projection; >= 1 */
    double tolerance;   /* relative residual */
    int64_t block;      /* bgs: centers per block */
    double gamma;       /* ep2: step factor */
    mrc_step_rule rule; /* ep2: step rule */
    bool store;         /* pcg: store K(Z,Z); bgs: store the inverses of its blocks */
    /* bgs: the coarse space is computed from the sample only, and several inverses are computed at a time */
    bool sampled;
    /* exact, bgs: minimum shift of the diagonal, relative to its mean; 0: shift only if a factor fails */
    double jitter;
    uint64_t seed;
} mrc_projector_options;

typedef struct mrc_projection {
    double residual; /* relative */
    double passes;   /* number of passes over K(Z,Z), may be fractional */
} mrc_projection;

typedef struct mrc_projector mrc_projector;
struct mrc_planner;

/* Data about K(Z,Z) that a projector stores between projections. */
typedef enum mrc_projector_storage {
    MRC_STORES_NOTHING,
    MRC_STORES_MATRIX,
    MRC_STORES_FACTOR,
    /* inverses of blocks: on a device, if they fit into memory, because solves with factors are slow there */
    MRC_STORES_INVERSES
} mrc_projector_storage;

/* Options that apply to a projector. */
enum {
    MRC_PROJECTOR_SAMPLES = 1, /* nystrom, eigenpairs */
    MRC_PROJECTOR_REPEATS = 2, /* passes, tolerance */
    MRC_PROJECTOR_BLOCKS = 4   /* block */
};

typedef struct mrc_projector_ops {
    const char *name, *description; /* description: one line for messages */
    unsigned uses;                  /* MRC_PROJECTOR_... */
    mrc_projector_storage stores;
    int64_t passes;   /* default maximum number of passes */
    double tolerance; /* default relative residual at which to stop */
    bool carry;       /* default: carry the residual into the next right-hand side */
    /* Returns why the planner should use this projector, in a few words, or NULL. The planner uses the first projector
       of the table that returns a reason. If the function pointer is NULL, the projector is used only when requested by
       name. */
    const char *(*suits)(const struct mrc_planner *planner);
    mercer_status (*create)(mrc_projector *projector); /* on failure, destroy is called if state is set */
    void (*destroy)(mrc_projector *projector);
    /* Adds the solution to theta (cleared by the caller); h (c > 0, not zero, finite) becomes the residual h - K theta.
       Sets report->passes; mrc_project measures the final residual. */
    mercer_status (*project)(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                             mrc_projection *report);
    /* `once`: bytes, without the backend's own scratch (tiles), and the work of create; `each`: work and messages of a
       projection. Both are cleared by the caller. */
    void (*cost)(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each);
} mrc_projector_ops;

struct mrc_projector {
    const mrc_projector_ops *ops;
    mrc_centers *centers;
    mrc_projector_options options;
    int64_t calls; /* number of projections so far; part of the seed of MRC_RANDOM_PASS */
    double h_norm; /* |h| of the current projection, > 0 */
    mrc_cached_block
        *buffers; /* (shards) buffers of the caller for kernel values in bgs, usable during a projection; or NULL */
    void *state;  /* state of this kind of projector; NULL until create has allocated it */
};

/* Return the projector of that name, or NULL. */
const mrc_projector_ops *mrc_projector_find(const char *name);
/* Return row i of the table; NULL after the last. */
const mrc_projector_ops *mrc_projector_row(int i);
/* Return the options of a projector. Options that the public plan does not contain have default values. */
mrc_projector_options mrc_projector_options_of(const mercer_plan *plan, const mrc_projector_ops *ops);
/* Compute the cost of a projector, including the norms at the beginning and end of every projection. */
void mrc_projector_cost(const mrc_projector_ops *ops, const mrc_problem *problem, const mrc_projector_options *options,
                        mrc_cost *once, mrc_cost *each);

mercer_status mrc_projector_create(mrc_projector **out, const mrc_projector_ops *ops, mrc_centers *centers,
                                   const mrc_projector_options *options);
void mrc_projector_free(mrc_projector *projector);
/* Solve K(Z,Z) theta = h; h becomes the residual. theta is cleared first. A zero h gives theta = 0 and residual 0
   without work. MERCER_ERROR_NUMERIC if h is not finite on entry, or if the residual of a diverging iteration is not;
   theta is then 0 and h is lost. */
mercer_status mrc_project(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                          mrc_projection *report);

/* Random sequences derived from a projector's seed. */
#define MRC_RANDOM_SAMPLE    UINT64_C(0x5a73) /* centers of an eigensystem: the first s of a permutation */
#define MRC_RANDOM_PARTITION UINT64_C(0x5a62) /* the order in which centers are assigned to blocks */
/* The order of the centers in a pass of the current projection. */
#define MRC_RANDOM_PASS(calls, pass) (UINT64_C(1) << 62 | (uint64_t)(calls) << 24 | (uint64_t)(pass))

/* Compute the eigensystem of s random centers (the first s of a permutation), without directions below the noise level.
   ids (s) receives the indices of the centers. mrc_sample_system_bytes computes the bytes that stay allocated, and the
   total at the peak. */
mercer_status mrc_sample_system(mrc_eigensystem *out, mrc_centers *centers, int64_t s, int64_t q, mrc_rng rng,
                                int64_t *ids);
void mrc_sample_system_bytes(const mrc_problem *problem, int64_t s, int64_t q, int64_t *held, int64_t *total);

/* The Nystrom approximation of the top eigenvectors of K(Z,Z), used by pcg, bgs and the polynomial preconditioner:
   Y = K(Z,Z_s) E (s Lambda)^-1/2, Y'Y = V W V', U = Y V W^-1/2. U field (rows, q) real, orthonormal to rounding; w (q)
   descending approximate eigenvalues of K(Z,Z). Directions that rounding has made meaningless are left out, so q may be
   less than requested. */
typedef struct mrc_coarse {
    int64_t q;
    mercer_matrix u; /* ld may exceed q */
    double *w;
} mrc_coarse;
mercer_status mrc_coarse_create(mrc_coarse *out, mrc_centers *centers, int64_t s, int64_t q, uint64_t seed);
void mrc_coarse_destroy(mrc_coarse *coarse, mrc_backend *backend);
/* Compute the bytes held, the additional bytes at the peak of create, and the work of create. *out is overwritten. */
void mrc_coarse_cost(const mrc_problem *problem, int64_t s, int64_t q, mrc_cost *out);

#endif
