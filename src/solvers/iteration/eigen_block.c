/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Restarted block Krylov method with Rayleigh-Ritz, for the top r eigenpairs of a symmetric positive semi-definite A
 * (s, s).
 *
 *   Q_0 (s, b) random, orthonormal, b = r + extra                                              start
 *   repeat:  for j = 1 .. BLOCKS-1:  W = A Q_{j-1} - Q (Q' A Q_{j-1}), twice;  Q_j = W orthonormalized  (grow Q)
 *            T = Q' A Q = Y Theta Y'                                                           (4b, 4b)
 *            V = Q Y_b, A V = A Q Y_b                                                          Ritz vectors (s, b)
 *            until |A v_i - theta_i v_i| <= TOLERANCE theta_1 for i <= r; else Q_0 <- V        restart
 *
 * Columns are orthonormalized by W L^-T with W'W = L L', after scaling them to length 1. This is done twice, because
 * W'W has the square of the condition number. If the Gram matrix cannot be factorized (low rank), small random
 * directions are added. Rayleigh-Ritz finds the best polynomial in A of degree 3, so no bounds on the spectrum are
 * needed, and a dominant eigenvalue does no harm.
 *
 * A preconditioner needs only rough pairs. On the Ritz vectors the preconditioned matrix has the eigenvalue
 * theta_{q+1}. If Ritz pair i has the residual rho_i, the matrix couples Ritz vector i to other directions by rho_i
 * theta_{q+1} / theta_i. It also contains the part of A that the Ritz vectors miss, about rho_i^2 / theta_i per pair,
 * which must be small compared with theta_{q+1}. So the method stops at rho_i <= ROUGH sqrt(theta_i theta_r): the last
 * values then have a relative error of at most ROUGH. The effect on beta is included, because beta is measured with the
 * rough pairs.
 *
 * Rough pairs are computed by subspace iteration with 1.5 r columns: Q <- A Q, orthonormalized, eight times in the
 * first round and twice in further rounds. Products are so fast on a device that the Rayleigh-Ritz eigenproblem
 * dominates the time; with subspace iteration its size is only (1.5 r, 1.5 r). Accuracy was measured as the largest
 * eigenvalue of the preconditioned matrix over theta_{q+1}, for s = 1,500, r = 100 and a Laplace kernel. It was 1.04
 * after four products, and 1.12 with three blocks of a Krylov basis of 1.1 r columns each. Signs of rough eigenvectors
 * are arbitrary.
 *
 * Cost of a round: 8 s^2 b + about 40 s b^2 flops in matrix products, and a (4b, 4b) eigenproblem. Memory: 9 s b
 * doubles.
 */
#include "solvers/iteration/eigensystem.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random_normal.h"
#include "solvers/operators/spd.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* BLOCKS: a Krylov basis of degree 3. A higher degree needs fewer rounds, but the cost of the eigenproblem grows with
   the cube of BLOCKS. ROUNDS is a limit for spectra with close eigenvalues at r, whose last pairs hardly converge; the
   caller checks the residuals. FIRST_PRODUCTS and MORE_PRODUCTS are for rough pairs, see above. FEWEST_EXTRA: columns
   in addition to the r requested pairs; without them the last pairs converge slowly. */
enum { BLOCKS = 4, ROUNDS = 20, FEWEST_EXTRA = 16, FIRST_PRODUCTS = 8, MORE_PRODUCTS = 2 };

#define TOLERANCE   1e-7
#define ROUGH       0.05
#define ROUGH_FLOOR 1e-5 /* share of theta_1 below which pairs count as noise */

/* Returns b, the number of columns of a block. */
static int64_t block_width(int64_t s, int64_t r, bool rough)
{
    return mrc_min(s, r + mrc_max(FEWEST_EXTRA, rough ? r / 2 : r / 10));
}

int64_t mrc_eigen_block_basis(int64_t s, int64_t r)
{
    return mrc_min(BLOCKS * block_width(s, r, false), s);
}

int64_t mrc_eigen_block_bytes(int64_t s, int64_t r)
{
    int64_t b = block_width(s, r, false), all = mrc_eigen_block_basis(s, r);
    return 8 * (2 * s * all + s * b + 3 * all * all + 2 * b * b);
}

typedef struct block_method {
    mrc_centers *centers;
    mrc_backend *backend;
    const mercer_matrix *a;
    int64_t s, b, all;           /* all: maximum number of columns of the basis */
    mercer_matrix q, aq;         /* (s, all) q: the basis; aq: A times the basis */
    mercer_matrix w;             /* (s, b) */
    mercer_matrix t, y;          /* (all, all) */
    mercer_matrix gram, inverse; /* (b, b) */
    double *theta;               /* (all) */
    double *norms;               /* (all) scratch */
    int64_t columns;             /* number of columns of the basis so far */
    uint64_t seed;
    bool rough;
    bool once;       /* orthonormalize only once, because the basis is multiplied again */
    double residual; /* largest residual after the last round, relative to theta_1 */
} block_method;

static mercer_status multiply_block(block_method *self, bool transpose, double alpha, const mercer_matrix *left,
                                    const mercer_matrix *right, double beta, const mercer_matrix *out)
{
    return mrc_counted_gemm(self->centers, transpose, false, alpha, left, right, beta, out);
}

/* ---- Orthonormal columns ------------------------------------------------------------------------------------- */

/* Scales the columns of W to length 1; zero columns stay 0. */
static mercer_status normalize_columns(block_method *self)
{
    mrc_backend *backend = self->backend;
    MRC_TRY(backend->ops->column_dots(backend, &self->w, &self->w, self->norms));
    for (int64_t j = 0; j < self->b; j++) self->norms[j] = self->norms[j] > 0 ? 1 / sqrt(self->norms[j]) : 0;
    return backend->ops->scale_columns(backend, &self->w, self->norms);
}

/* Compute out <- W L^-T with W'W = L L'. Set *independent to whether the columns of W are linearly independent; if
   not, `out` is not set. */
static mercer_status orthonormalize_once(block_method *self, const mercer_matrix *w, const mercer_matrix *out,
                                         bool *independent)
{
    mrc_backend *backend = self->backend;
    int64_t bad;
    MRC_TRY(multiply_block(self, true, 1, w, w, 0, &self->gram));
    MRC_TRY(backend->ops->cholesky(backend, &self->gram, &bad));
    *independent = bad < 0;
    if (!*independent) return MERCER_OK;
    MRC_TRY(mrc_set_identity(backend, &self->inverse));
    MRC_TRY(backend->ops->triangular_solve(backend, &self->gram, true, &self->inverse));
    return multiply_block(self, false, 1, w, &self->inverse, 0, out);
}

/* Remove the directions of the basis from W. Done twice, because rounding errors of the first time matter if little of
   W remains. */
static mercer_status clean(block_method *self)
{
    mercer_matrix basis = mrc_columns(&self->q, 0, self->columns);
    mercer_matrix inner = mrc_block(&self->y, 0, 0, self->columns, self->b);
    for (int time = 0; time < 2 && self->columns > 0; time++) {
        MRC_TRY(multiply_block(self, true, 1, &basis, &self->w, 0, &inner));
        MRC_TRY(multiply_block(self, false, -1, &basis, &inner, 1, &self->w));
        MRC_TRY(normalize_columns(self));
    }
    return MERCER_OK;
}

/* Add size times random directions to W. */
static mercer_status add_random(block_method *self, mrc_rng rng, double size)
{
    mercer_matrix w;
    MRC_TRY(mrc_host_open(self->backend, &self->w, &w));
    for (int64_t i = 0; i < self->s; i++)
        for (int64_t j = 0; j < self->b; j++)
            mrc_store(&w, i, j, mrc_load(&w, i, j) + size * mrc_random_normal(rng, (uint64_t)(i * self->b + j)));
    return mrc_host_close(self->backend, &self->w, &w, true, MERCER_OK);
}

/* Remove the basis from W and write the orthonormal result to `next`, if the columns of W are independent. */
static mercer_status orthonormalize_block(block_method *self, const mercer_matrix *next, bool *independent)
{
    MRC_TRY(clean(self));
    MRC_TRY(normalize_columns(self));
    MRC_TRY(orthonormalize_once(self, &self->w, next, independent));
    if (self->once || !*independent) return MERCER_OK;
    MRC_TRY(self->backend->ops->copy(self->backend, &self->w, next));
    MRC_TRY(clean(self));
    return orthonormalize_once(self, &self->w, next, independent);
}

/* Orthonormalize W and append it to the basis as the next block; also compute A times this block. */
static mercer_status append_block(block_method *self)
{
    mercer_matrix next = mrc_columns(&self->q, self->columns, self->b),
                  image = mrc_columns(&self->aq, self->columns, self->b);
    bool independent;
    MRC_TRY(orthonormalize_block(self, &next, &independent));
    if (!independent) { /* A has a low rank, or the pairs have converged: W has no new directions */
        /* Add small random directions, which make the columns independent while W's own directions stay dominant. */
        MRC_TRY(normalize_columns(self));
        mrc_rng rng = {self->seed, 0x73746972u + (uint64_t)self->columns};
        MRC_TRY(add_random(self, rng, 1e-3 / sqrt((double)self->s)));
        MRC_TRY(orthonormalize_block(self, &next, &independent));
    }
    if (!independent)
        return mrc_fail(self->backend->context, MERCER_ERROR_NUMERIC,
                        "eigensystem: the basis is linearly dependent, even with random directions added");
    self->columns += self->b;
    return multiply_block(self, false, 1, self->a, &next, 0, &image);
}

/* Appends blocks until the basis is full. */
static mercer_status grow_basis(block_method *self)
{
    while (self->columns + self->b <= self->all) {
        mercer_matrix last = mrc_columns(&self->aq, self->columns - self->b, self->b);
        mrc_centers_notify(self->centers, "eigensystem", -1); /* the number of rounds is not known in advance */
        MRC_TRY(self->backend->ops->copy(self->backend, &self->w, &last));
        MRC_TRY(append_block(self));
    }
    return MERCER_OK;
}

/* Replace Q by A Q, orthonormal, `products` times. */
static mercer_status multiply_basis(block_method *self, int products)
{
    mercer_matrix image = mrc_columns(&self->aq, 0, self->b);
    for (int i = 0; i < products; i++) {
        mrc_centers_notify(self->centers, "eigensystem", -1);
        MRC_TRY(self->backend->ops->copy(self->backend, &self->w, &image));
        self->columns = 0;
        self->once = i + 1 < products;
        MRC_TRY(append_block(self));
    }
    return MERCER_OK;
}

/* ---- Rayleigh-Ritz ------------------------------------------------------------------------------------------- */

/* Find the largest |A v_i - theta_i v_i| over theta_1 or, for rough pairs, over sqrt(theta_i theta_r). Overwrites W. */
static mercer_status find_worst_residual(block_method *self, int64_t r, double *worst)
{
    mrc_backend *backend = self->backend;
    mercer_matrix image = mrc_columns(&self->aq, 0, r), v = mrc_columns(&self->q, 0, r),
                  w = mrc_columns(&self->w, 0, r);
    MRC_TRY(backend->ops->copy(backend, &w, &v));
    MRC_TRY(backend->ops->scale_columns(backend, &w, self->theta));
    MRC_TRY(backend->ops->axpby(backend, 1, &image, -1, &w));
    MRC_TRY(backend->ops->column_dots(backend, &w, &w, self->norms));
    *worst = self->residual = 0;
    double least = fmax(self->theta[r - 1], ROUGH_FLOOR * self->theta[0]);
    for (int64_t j = 0; j < r; j++) {
        double size = self->rough ? sqrt(least * fmax(self->theta[j], least)) : self->theta[0];
        *worst = fmax(*worst, sqrt(self->norms[j]) / size);
        self->residual = fmax(self->residual, sqrt(self->norms[j]) / fmax(self->theta[0], DBL_MIN));
    }
    return MERCER_OK;
}

/* Replace the first b columns of Q and AQ by the Ritz vectors and their images, which become the whole basis. */
static mercer_status rayleigh_ritz(block_method *self)
{
    mrc_backend *backend = self->backend;
    int64_t k = self->columns;
    mercer_matrix basis = mrc_columns(&self->q, 0, k), image = mrc_columns(&self->aq, 0, k);
    mercer_matrix t = mrc_block(&self->t, 0, 0, k, k), y = mrc_block(&self->y, 0, 0, k, self->b);
    MRC_TRY(multiply_block(self, true, 1, &basis, &image, 0, &t));
    MRC_TRY(backend->ops->symmetrize(backend, &t)); /* T is symmetric up to rounding */
    MRC_TRY(backend->ops->eigen_top(backend, &t, self->b, self->theta, &y));
    mercer_matrix *const both[] = {&self->q, &self->aq};
    for (int i = 0; i < 2; i++) {
        mercer_matrix all = mrc_columns(both[i], 0, k), first = mrc_columns(both[i], 0, self->b);
        MRC_TRY(multiply_block(self, false, 1, &all, &y, 0, &self->w));
        MRC_TRY(backend->ops->copy(backend, &first, &self->w));
    }
    self->columns = self->b;
    return MERCER_OK;
}

/* Fill W, which is 0, with random directions; for rough pairs they are drawn in the backend's memory. */
static mercer_status draw_start(block_method *self)
{
    mrc_backend *backend = self->backend;
    mrc_normal_table *table;
    int64_t *rows;
    mercer_matrix drawn;
    if (!self->rough) return add_random(self, (mrc_rng){self->seed, 0x6569676eu}, 1);
    MRC_SCOPE(scope, self->centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &table, 1, sizeof *table, "quantiles"));
    MRC_TRY(mrc_scope_alloc(&scope, &rows, self->s, sizeof *rows, "numbers of rows"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &drawn, self->s, self->b, MERCER_F32, "random directions"));
    mrc_normal_table_init(table);
    for (int64_t i = 0; i < self->s; i++) rows[i] = i;
    MRC_TRY(backend->ops->draw_normals(backend, table, self->seed, rows, 0, &drawn));
    return backend->ops->copy(backend, &self->w, &drawn);
}

/* Runs rounds until the first r pairs are accurate enough, but at most ROUNDS. */
static mercer_status iterate_subspace(block_method *self, int64_t r)
{
    MRC_TRY(draw_start(self));
    MRC_TRY(append_block(self));
    for (int round = 0; round < ROUNDS; round++) {
        MRC_TRY(self->rough ? multiply_basis(self, round == 0 ? FIRST_PRODUCTS : MORE_PRODUCTS) : grow_basis(self));
        MRC_TRY(rayleigh_ritz(self));
        double worst;
        MRC_TRY(find_worst_residual(self, r, &worst));
        mrc_log(self->centers->context, MERCER_LOG_DEBUG, "eigensystem: round %d, residual %.1e", round, worst);
        if (worst <= (self->rough ? ROUGH : TOLERANCE)) break;
    }
    return MERCER_OK;
}

mercer_status mrc_eigen_block(mrc_centers *centers, const mercer_matrix *k, double *values,
                              const mercer_matrix *vectors, uint64_t seed, bool rough, double *residual)
{
    mrc_backend *backend = centers->backend;
    int64_t s = k->rows, r = vectors->cols, b = block_width(s, r, rough);
    block_method self = {.seed = seed,
                         .rough = rough,
                         .centers = centers,
                         .backend = backend,
                         .a = k,
                         .s = s,
                         .b = b,
                         .all = rough ? b : mrc_min(BLOCKS * b, s)};
    struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } const all[] = {{&self.q, s, self.all},        {&self.aq, s, self.all},       {&self.w, s, b},
                     {&self.t, self.all, self.all}, {&self.y, self.all, self.all}, {&self.gram, b, b},
                     {&self.inverse, b, b}};
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_alloc(&scope, &self.theta, 2 * self.all, sizeof *self.theta, "Ritz values"));
    self.norms = self.theta + self.all;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(
            mrc_scope_matrix(&scope, backend, all[i].matrix, all[i].rows, all[i].cols, MERCER_F64, "the Krylov basis"));
    MRC_TRY(iterate_subspace(&self, r));
    mercer_matrix first = mrc_columns(&self.q, 0, r), host;
    *residual = self.residual;
    memcpy(values, self.theta, (size_t)r * sizeof *values);
    MRC_TRY(backend->ops->copy(backend, vectors, &first));
    if (rough) return MERCER_OK;
    MRC_TRY(mrc_host_open(backend, vectors, &host));
    mrc_fix_signs(&host);
    return mrc_host_close(backend, vectors, &host, true, MERCER_OK);
}
