/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solvers/projectors: solve K(Z,Z) theta = h for a field h, approximately, and say how well.
 *
 *   exact  one Cholesky factor, two triangular solves                              p^3/3 once, 2 p^2 c a projection
 *   ep2    EigenPro 2 over the centers with its own Nystrom preconditioner         p^2 d a pass
 *   pcg    conjugate gradients with a Nystrom preconditioner, stored K(Z,Z) or not   p^2 d (stored: p^2 c) a pass
 *   bgs    block Gauss-Seidel with a coarse space                                  p^2 d / 2 a pass
 *
 * All report the relative residual |K theta - h| / |h| (Frobenius, exact up to rounding: each keeps its residual up to
 * date) and leave the residual itself behind, so that the caller can carry it into the next right-hand side.
 */
#ifndef MRC_SOLVERS_PROJECTORS_PROJECTOR_H
#define MRC_SOLVERS_PROJECTORS_PROJECTOR_H

#include "solvers/cost.h"
#include "solvers/iteration/eigensystem.h"

typedef struct mrc_projector_options {
    int64_t nystrom;    /* s of Z_s; at most p */
    int64_t eigenpairs; /* q */
    int64_t passes;     /* at most so many passes over K(Z,Z) a projection; >= 1 */
    double tolerance;   /* stop at this relative residual; 0: passes decide */
    int64_t block;      /* bgs: centers in a block */
    double gamma;       /* ep2: step factor, */
    mrc_step_rule rule; /* and step rule */
    bool store;         /* pcg: keep K(Z,Z); bgs: keep the inverses of its blocks */
    bool sampled;       /* bgs: the coarse space is that of the sample, and inverses are made several at a time */
    double jitter; /* added to the diagonal of K(Z,Z) by exact, relative to its mean; 0: only if the factor fails */
    uint64_t seed;
} mrc_projector_options;

typedef struct mrc_projection {
    double residual; /* relative */
    double passes;   /* passes over K(Z,Z), whole or part */
} mrc_projection;

typedef struct mrc_projector mrc_projector;
struct mrc_planner;

/* What it has of K(Z,Z) between projections. */
typedef enum mrc_projector_keeps {
    MRC_KEEPS_NOTHING,
    MRC_KEEPS_MATRIX,
    MRC_KEEPS_FACTOR,
    MRC_KEEPS_INVERSES /* of blocks: on a device, where solves with factors are slow, and if they fit */
} mrc_projector_keeps;

/* Which options a projector has a use for. */
enum {
    MRC_PROJECTOR_SAMPLES = 1, /* nystrom, eigenpairs */
    MRC_PROJECTOR_REPEATS = 2, /* passes, tolerance */
    MRC_PROJECTOR_BLOCKS = 4   /* block */
};

typedef struct mrc_projector_ops {
    const char *name, *says; /* says: one line for messages */
    unsigned uses;           /* MRC_PROJECTOR_... */
    mrc_projector_keeps keeps;
    int64_t passes;   /* unless the options say otherwise: at most so many, */
    double tolerance; /* to this residual, */
    bool carry;       /* and what is left goes into the next right-hand side */
    /* Why the planner should take it, in a few words, or NULL; the first row that answers is taken. No function: only
       when it is asked for by name. */
    const char *(*suits)(const struct mrc_planner *planner);
    mercer_status (*create)(mrc_projector *projector); /* on failure, destroy is called on what there is */
    void (*destroy)(mrc_projector *projector);
    /* theta (cleared by the caller) += solution; h (c > 0, not zero, finite) becomes the residual h - K theta. Sets
       report->passes; mrc_project measures the residual that is left. */
    mercer_status (*project)(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                             mrc_projection *report);
    /* `once`: bytes, without the backend's own scratch (tiles), and the work of create; `each`: work and messages of a
       projection. Both are cleared before. */
    void (*cost)(const mrc_problem *problem, const mrc_projector_options *options, mrc_cost *once, mrc_cost *each);
} mrc_projector_ops;

struct mrc_projector {
    const mrc_projector_ops *ops;
    mrc_centers *centers;
    mrc_projector_options options;
    int64_t calls;  /* projections so far: seeds the order of blocks */
    double h_norm;  /* |h| of the projection under way, > 0 */
    mrc_kept *room; /* (shards) or NULL: room for kernel values that bgs may use during a projection, of the caller */
    void *state;    /* of the kind; NULL until create has made it */
};

/* NULL if the name is none. */
const mrc_projector_ops *mrc_projector_find(const char *name);
/* Row i of the table; NULL behind the last. */
const mrc_projector_ops *mrc_projector_row(int i);
/* Its options as far as a plan has them. */
mrc_projector_options mrc_projector_options_of(const mercer_plan *plan, const mrc_projector_ops *ops);
/* What a projector costs, with what every projection begins and ends with. */
void mrc_projector_cost(const mrc_projector_ops *ops, const mrc_problem *problem, const mrc_projector_options *options,
                        mrc_cost *once, mrc_cost *each);

mercer_status mrc_projector_create(mrc_projector **out, const mrc_projector_ops *ops, mrc_centers *centers,
                                   const mrc_projector_options *options);
void mrc_projector_free(mrc_projector *projector);
/* theta is cleared first. A zero h gives theta = 0 and residual 0 without work. MERCER_ERROR_NUMERIC if h is not finite
   on entry, or if a diverging iteration has left a residual that is not; theta is then 0 and h is lost. */
mercer_status mrc_project(mrc_projector *projector, const mercer_matrix *h, const mercer_matrix *theta,
                          mrc_projection *report);

/* Random sequences of a projector's seed. */
#define MRC_RANDOM_SAMPLE    UINT64_C(0x5a73) /* the centers an eigensystem is made of: the first s of a permutation */
#define MRC_RANDOM_PARTITION UINT64_C(0x5a62) /* the order in which blocks take the centers */
/* The order of the centers in a pass of the projection under way. */
#define MRC_RANDOM_PASS(calls, pass) (UINT64_C(1) << 62 | (uint64_t)(calls) << 24 | (uint64_t)(pass))

/* The eigensystem of the first s centers of such a permutation (ids: room for s, gets which), without directions below
   the noise level; the bytes that it leaves, and in all at its peak. */
mercer_status mrc_sample_system(mrc_eigensystem *out, mrc_centers *centers, int64_t s, int64_t q, mrc_rng rng,
                                int64_t *ids);
void mrc_sample_system_bytes(const mrc_problem *problem, int64_t s, int64_t q, int64_t *held, int64_t *total);

/* The Nystrom approximation of the top eigenvectors of K(Z,Z) that pcg and bgs use:
   Y = K(Z,Z_s) E (s Lambda)^-1/2, Y'Y = V W V', U = Y V W^-1/2. U field (rows, q) real, orthonormal to rounding; w (q)
   descending approximate eigenvalues of K(Z,Z). Directions that rounding has made meaningless are left out, so q may be
   less than asked for. */
typedef struct mrc_coarse {
    int64_t q;
    mercer_matrix u; /* ld may exceed q */
    double *w;
} mrc_coarse;
mercer_status mrc_coarse_create(mrc_coarse *out, mrc_centers *centers, int64_t s, int64_t q, uint64_t seed);
void mrc_coarse_destroy(mrc_coarse *coarse, mrc_backend *backend);
/* Bytes held, and on top at the peak of create; the work of create. Adds nothing to what is in *out: it is cleared. */
void mrc_coarse_cost(const mrc_problem *problem, int64_t s, int64_t q, mrc_cost *out);

#endif
