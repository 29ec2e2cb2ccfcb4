/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * P = an approximation of h(K), h(l) = (l (l + tau))^-1/2, K = K(Z,Z) (p, p): so P P approximates (K (K + tau I))^-1.
 *
 *   U (p, q)  approximate top eigenvectors of K (coarse.c),  U' K U = V Theta V'            Rayleigh-Ritz
 *   G = U V Theta^-1/2,  F = K G                             (p, q), G'KG = I
 *   R = K - F F'                                             K without the part in the coarse space: R G = 0, R >= 0
 *   P = G diag(theta h(theta)) G' + (I - G F') h_k(R) (I - F G')
 *
 * h_k: the polynomial of degree k that equals h at k + 1 points of the spectrum of R, in Newton's form.
 *
 * P is symmetric, so P P is positive semi-definite for any interval [a, b] of the polynomial (below) and in spite of
 * rounding; a poor interval only costs steps. With exact U, P is h(K) except for the polynomial's error. U is not
 * exact, because it is a Nystrom extension from s << p centers; the projections I - F G' make P insensitive to errors
 * of U. K may be singular (equal centers), because nothing is divided by eigenvalues below theta_q.
 *
 * Cost: p s (d + q) + p^2 (d + q) multiply-adds once (and those of coarse.c), p^2 c for each of the k products of an
 * application. K is stored, in half precision if the options request it. Memory: p^2 values and 2 p q.
 *
 * With several shards K(Z_s, Z) and F_s = K(Z_s, Z) U are computed strip by strip: every rank receives STRIP centers
 * and their rows of U at a time. The strips do not depend on the number of ranks, so results are bitwise identical. A
 * product K V needs all of V, (p, c), on every rank: 4 c bytes per center, compared with 2 p / R bytes for a center's
 * row of K. Everything else is divided among the ranks.
 */
#include "solvers/normal/polynomial_preconditioner.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "solvers/operators/spd.h"
#include "solvers/projectors/projector.h"

#include <math.h>
#include <string.h>

/* SCRATCH, SMALL_SCRATCH: rows of scratch space, see scratch_rows. STRIP: centers per message and block of columns,
   large enough for products at full speed; it must not depend on the number of ranks. */
enum { SCRATCH = 512, SMALL_SCRATCH = 64, STRIP = 1024, SEED = 5 };

/* With an error of e the condition of P K P is at most ((1 + e) / (1 - e))^2, 4 for WORST_ERROR: each further degree
   costs a product with K in each application. MARGIN: Lanczos underestimates the largest eigenvalue. */
#define WORST_ERROR 0.33
#define MARGIN      1.1
#define WIDEST      1000.0 /* largest b / a: above it no polynomial of degree 8 is useful */

void mrc_preconditioner_destroy(mrc_preconditioner *self)
{
    if (!self->centers) return;
    mercer_matrix *const all[] = {&self->k, &self->scratch, &self->g,   &self->f, &self->t,
                                  &self->n, &self->o,       &self->all, &self->y, &self->y2};
    for (int i = 0; i < 10; i++) mrc_matrix_destroy(self->centers->backend, all[i]);
    mrc_free(self->centers->context, self->scale);
    memset(self, 0, sizeof *self);
}

/* Return the number of rows of the scratch space for backends that cannot multiply stored values directly. It has p
   columns on every rank. With several shards it is smaller in host memory, where backends usually do not need it. */
static int64_t scratch_rows(int64_t p, bool host, bool shared)
{
    return mrc_min(host && shared ? SMALL_SCRATCH : SCRATCH, p);
}

mrc_bytes mrc_preconditioner_bytes(const mrc_preconditioner_sizes *options, const mrc_problem *problem)
{
    mrc_cost coarse;
    bool shared = problem->shards > 1;
    int64_t rows = mrc_min(options->sample, problem->p);
    double p = (double)problem->p, c = (double)problem->c, e = (double)problem->real_size;
    double q = (double)mrc_max(0, mrc_min(options->basis, rows - 1));
    mrc_coarse_cost(problem, options->sample, options->basis, &coarse);
    mrc_bytes before = {coarse.held.shared, coarse.held.replicated + coarse.peak.replicated};
    /* K, vectors, G and F; rows of K, small matrices and, with several ranks, complete vectors V on every rank */
    mrc_bytes held = {p * p * (double)mrc_dtype_size(options->stored) + 3 * p * c * e + 2 * p * q * e,
                      (double)scratch_rows(problem->p, true, shared) * p * e + 2 * q * c * e + 16 * q +
                          8 * (2.0 * MRC_LANCZOS + 1) * c};
    if (problem->ranks > 1) held.replicated += 2 * p * c * e;
    /* In addition, once U exists: strips of Z and U, or a product of F or G; eigenvectors of U'F. */
    mrc_bytes strips = {0, fmin(STRIP, p) * ((double)(problem->d * problem->point_size) + q * e)};
    mrc_bytes turned = {p * q * e, q * q * (8.0 * 3 + e)};
    held = mrc_bytes_larger(before, mrc_bytes_add(held, shared ? mrc_bytes_larger(turned, strips) : turned));
    held.replicated += 64 * 16;
    return held;
}

/* ---- Products ------------------------------------------------------------------------------------------------ */

mercer_status mrc_preconditioner_times(mrc_preconditioner *self, const mercer_matrix *v, const mercer_matrix *out)
{
    mrc_centers *centers = self->centers;
    const mercer_matrix *all = v;
    if (centers->comm->ranks > 1) {
        MRC_TRY(mrc_centers_range(centers, v, 0, centers->p, &self->all));
        all = &self->all;
    }
    mrc_count_product(centers, self->k.rows, self->k.cols, v->cols);
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix k = mrc_centers_part(centers, &self->k, i), part = mrc_centers_part(centers, out, i);
        mrc_stored stored = {.k = &k, .count = k.rows, .scratch = &self->scratch};
        if (k.rows > 0) MRC_TRY(centers->backend->ops->rows_product(centers->backend, &stored, false, all, &part));
    }
    return MERCER_OK;
}

/* Compute x -= left (right' x). y: buffer (q, c), set to right' x. */
static mercer_status take_out(mrc_preconditioner *self, const mercer_matrix *left, const mercer_matrix *right,
                              const mercer_matrix *x, const mercer_matrix *y)
{
    MRC_TRY(mrc_centers_inner(self->centers, right, x, y));
    return mrc_centers_multiply(self->centers, -1, left, y, 1, x);
}

/* Compute n = R t. */
static mercer_status times_rest(mrc_preconditioner *self)
{
    MRC_TRY(mrc_preconditioner_times(self, &self->t, &self->n));
    MRC_TRY(mrc_centers_inner(self->centers, &self->f, &self->t, &self->y2));
    return mrc_centers_multiply(self->centers, -1, &self->f, &self->y2, 1, &self->n);
}

mercer_status mrc_preconditioner_apply(mrc_preconditioner *self, const mercer_matrix *x)
{
    mrc_backend *backend = self->centers->backend;
    MRC_TRY(backend->ops->copy(backend, &self->t, x));
    MRC_TRY(take_out(self, &self->f, &self->g, &self->t, &self->y));
    MRC_TRY(backend->ops->axpby(backend, self->coefficients[0], &self->t, 0, &self->o));
    for (int64_t j = 0; j < self->degree; j++) {
        MRC_TRY(times_rest(self));
        MRC_TRY(backend->ops->axpby(backend, 1, &self->n, -self->nodes[j], &self->t));
        MRC_TRY(backend->ops->axpby(backend, self->coefficients[j + 1], &self->t, 1, &self->o));
    }
    MRC_TRY(mrc_centers_inner(self->centers, &self->f, &self->o, &self->y2));
    MRC_TRY(backend->ops->scale_rows(backend, &self->y, self->scale));
    MRC_TRY(backend->ops->axpby(backend, -1, &self->y2, 1, &self->y));
    MRC_TRY(backend->ops->copy(backend, x, &self->o));
    return mrc_centers_multiply(self->centers, 1, &self->g, &self->y, 1, x);
}

/* ---- The polynomial ------------------------------------------------------------------------------------------ */

/*
 * The polynomial h_k, which approximates h(l) = (l (l + tau))^-1/2 on the spectrum of R.
 *
 * It equals h at the k + 1 Chebyshev nodes of [a, b]. For tau = 0 its error |1 - l h_k(l)| on [a, b] is at most 1 /
 * T_{k+1}((b + a) / (b - a)). This is the smallest possible error of degree k. [a, b] is the spectrum of R as estimated
 * by 8 steps of Lanczos from c random vectors: b is the largest Ritz value times 1.1, and a is the mean over the c
 * vectors of the smallest Ritz value. k is the smallest degree for which this bound is at most WORST_ERROR, but at most
 * 8. Eigenvalues below a are treated as if they were about a.
 *
 * Cost: 8 products with R, p^2 c multiply-adds each.
 */

/* Set t to c random vectors of length 1, without their part in the span of G (G'G = Theta^-1). */
static mercer_status draw_vectors(mrc_preconditioner *self, const double *theta, double *sums)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    mrc_rng rng = {SEED, 0x706f7765u};
    int64_t c = self->t.cols;
    mercer_matrix host;
    MRC_TRY(mrc_host_open(backend, &self->t, &host));
    for (int64_t i = 0; i < host.rows; i++)
        for (int64_t j = 0; j < c; j++)
            mrc_store(&host, i, j, mrc_random_normal(rng, (uint64_t)((centers->first + i) * c + j)));
    MRC_TRY(mrc_host_close(backend, &self->t, &host, true, MERCER_OK));
    MRC_TRY(mrc_centers_inner(centers, &self->g, &self->t, &self->y));
    MRC_TRY(backend->ops->scale_rows(backend, &self->y, theta));
    MRC_TRY(mrc_centers_multiply(centers, -1, &self->g, &self->y, 1, &self->t));
    MRC_TRY(mrc_centers_column_dots(centers, &self->t, &self->t, sums));
    for (int64_t j = 0; j < c; j++) sums[j] = sums[j] > 0 ? 1 / sqrt(sums[j]) : 0;
    return backend->ops->scale_columns(backend, &self->t, sums);
}

/* Compute x_j = x_j - factors_j y_j for each column. */
static mercer_status subtract_columns(mrc_preconditioner *self, const mercer_matrix *x, const double *factors,
                                      const mercer_matrix *y)
{
    mrc_backend *backend = self->centers->backend;
    for (int64_t j = 0; j < x->cols; j++) {
        mercer_matrix to = mrc_columns(x, j, 1), from = mrc_columns(y, j, 1);
        MRC_TRY(backend->ops->axpby(backend, -factors[j], &from, 1, &to));
    }
    return MERCER_OK;
}

/* Take one step of Lanczos for every column: t has the current Lanczos vectors, o the previous ones. alpha, beta (c)
   receive the entries of T; the beta of the previous step must precede beta in memory. */
static mercer_status lanczos_step(mrc_preconditioner *self, bool first, double *alpha, double *beta, double *sums)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t c = self->t.cols;
    MRC_TRY(times_rest(self));
    if (!first) MRC_TRY(subtract_columns(self, &self->n, beta - c, &self->o));
    MRC_TRY(mrc_centers_column_dots(centers, &self->t, &self->n, alpha));
    MRC_TRY(subtract_columns(self, &self->n, alpha, &self->t));
    MRC_TRY(mrc_centers_column_dots(centers, &self->n, &self->n, beta));
    for (int64_t j = 0; j < c; j++) {
        beta[j] = sqrt(fmax(beta[j], 0));
        sums[j] = beta[j] > 0 ? 1 / beta[j] : 0;
    }
    MRC_TRY(backend->ops->copy(backend, &self->o, &self->t));
    MRC_TRY(backend->ops->copy(backend, &self->t, &self->n));
    return backend->ops->scale_columns(backend, &self->t, sums);
}

/* Compute the smallest and largest eigenvalue of the matrix T of column j, truncated where its Lanczos vectors
   vanish. */
static mercer_status ritz_ends(mrc_preconditioner *self, const double *alpha, const double *beta, int64_t j,
                               double *low, double *high)
{
    int64_t c = self->t.cols, size = 1;
    double t[MRC_LANCZOS * MRC_LANCZOS] = {0}, v[MRC_LANCZOS * MRC_LANCZOS], values[MRC_LANCZOS];
    while (size < MRC_LANCZOS && beta[(size - 1) * c + j] > 1e-6 * alpha[j]) size++;
    for (int64_t i = 0; i < size; i++) {
        t[i * size + i] = alpha[i * c + j];
        if (i + 1 < size) t[i * size + i + 1] = t[(i + 1) * size + i] = beta[i * c + j];
    }
    mercer_matrix a = mrc_view(t, size, size, MERCER_F64), vectors = mrc_view(v, size, size, MERCER_F64);
    MRC_TRY(self->centers->backend->ops->eigen_top(self->centers->backend, &a, size, values, &vectors));
    *low = values[size - 1], *high = values[0];
    return MERCER_OK;
}

/* Estimate the ends of the spectrum of R from random vectors: the mean of the smallest Ritz values, and the largest of
   all. scratch: scratch, (2 MRC_LANCZOS + 1) c doubles. */
static mercer_status find_ends(mrc_preconditioner *self, const double *theta, double *scratch, double *a, double *b)
{
    int64_t c = self->t.cols;
    double *alpha = scratch, *beta = alpha + MRC_LANCZOS * c, *sums = beta + MRC_LANCZOS * c;
    MRC_TRY(draw_vectors(self, theta, sums));
    for (int64_t i = 0; i < MRC_LANCZOS; i++) MRC_TRY(lanczos_step(self, i == 0, alpha + i * c, beta + i * c, sums));
    *a = *b = 0;
    for (int64_t j = 0; j < c; j++) {
        double low, high;
        MRC_TRY(ritz_ends(self, alpha, beta, j, &low, &high));
        *a += low / (double)c;
        *b = fmax(*b, high);
    }
    return MERCER_OK;
}

/* Return the error of degree k on [a, b]: 1 / T_{k+1}. */
static double error_of(int64_t k, double a, double b)
{
    return b > a ? 1 / cosh((double)(k + 1) * acosh((b + a) / (b - a))) : 0;
}

/* Compute Newton's form of the polynomial that equals h at the Chebyshev nodes of [a, b], ordered from both ends
   inward. */
static void interpolate_root(mrc_preconditioner *self, double a, double b, double tau)
{
    int64_t count = self->degree + 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i % 2 ? count - 1 - i / 2 : i / 2;
        double x = (a + b) / 2 + (b - a) / 2 * cos(3.14159265358979323846 * (double)(2 * at + 1) / (double)(2 * count));
        self->nodes[i] = x;
        self->coefficients[i] = 1 / sqrt(x * (x + tau));
    }
    for (int64_t j = 1; j < count; j++)
        for (int64_t i = count - 1; i >= j; i--)
            self->coefficients[i] =
                (self->coefficients[i] - self->coefficients[i - 1]) / (self->nodes[i] - self->nodes[i - j]);
}

/* Part of a sum over shards: the trace of K over a shard's centers. */
static mercer_status trace_part(mrc_centers *centers, int shard, const mercer_matrix *part, void *argument)
{
    (void)argument;
    mercer_matrix z = mrc_centers_part(centers, &centers->z, shard);
    return mrc_points_trace(centers, &z, part->data);
}

/* Estimate the spectrum of R and choose the smallest degree with a tolerable error. */
static mercer_status choose_polynomial(mrc_preconditioner *self, const double *theta, double *scratch, double tau)
{
    mrc_centers *centers = self->centers;
    double trace, a = 0, b = 0;
    mercer_matrix sum = mrc_view(&trace, 1, 1, MERCER_F64);
    MRC_TRY(mrc_centers_sum(centers, &sum, trace_part, NULL));
    MRC_TRY(find_ends(self, theta, scratch, &a, &b));
    self->mean = trace / (double)centers->p;
    /* Eigenvalues below the noise level of the largest eigenvalue of K are noise, and a polynomial for such small
       values would overflow. */
    double noise = self->q > 0 ? mrc_noise_level(centers->real) * theta[0] : 0;
    /* the lower bound applies if R is nearly 0; then any polynomial will do */
    b = fmax(MARGIN * b, fmax(noise, 1e-12 * self->mean));
    if (!(b > 0)) b = 1;
    a = fmin(fmax(a, b / WIDEST), b / 2);
    for (self->degree = 0; self->degree < MRC_LARGEST_DEGREE; self->degree++)
        if (error_of(self->degree, a, b) <= WORST_ERROR) break;
    interpolate_root(self, a, b, tau);
    mrc_log(centers->context, MERCER_LOG_DEBUG,
            "conjugate gradients: %lld directions, a polynomial of degree %lld on %.3e .. %.3e of the mean diagonal",
            (long long)self->q, (long long)self->degree, a / self->mean, b / self->mean);
    return MERCER_OK;
}

/* ---- The basis ----------------------------------------------------------------------------------------------- */

/* Compute and store the columns of K of the centers z, which begin at column `first`. Add the product of these columns
   with u, the rows of U of the same centers, to F; if first is 0, set F to the product. */
static mercer_status evaluate_columns(mrc_preconditioner *self, int64_t first, const mercer_matrix *z,
                                      const mercer_matrix *u)
{
    mrc_centers *centers = self->centers;
    mercer_matrix columns = mrc_columns(&self->k, first, z->rows),
                  scratch = mrc_shaped(&self->scratch, self->scratch.rows, z->rows);
    for (int i = 0; i < centers->shards; i++) {
        mercer_matrix own = mrc_centers_part(centers, &centers->z, i), k = mrc_centers_part(centers, &columns, i),
                      f = mrc_centers_part(centers, &self->f, i);
        mrc_stored to = {.k = &k, .count = k.rows, .scratch = &scratch, .add = first > 0};
        if (k.rows > 0) MRC_TRY(mrc_points_store(centers, &own, z, u, &f, &to));
    }
    return MERCER_OK;
}

/* Evaluate K and F strip by strip. points, rows: buffers for STRIP rows of Z and of U. */
static mercer_status evaluate_strips(mrc_preconditioner *self, const mercer_matrix *points, const mercer_matrix *rows)
{
    mrc_centers *centers = self->centers;
    for (int64_t first = 0; first < centers->p; first += STRIP) {
        int64_t count = mrc_min(STRIP, centers->p - first);
        mrc_centers_notify(centers, "kernel matrix of centers", (double)first / (double)centers->p);
        mercer_matrix z = mrc_rows(points, 0, count), u = mrc_rows(rows, 0, count);
        MRC_TRY(mrc_centers_range(centers, NULL, first, count, &z));
        MRC_TRY(mrc_centers_range(centers, &self->g, first, count, &u));
        MRC_TRY(evaluate_columns(self, first, &z, &u));
    }
    return MERCER_OK;
}

/* Evaluate K and F: at once with a single shard, else strip by strip. */
static mercer_status evaluate_all(mrc_preconditioner *self)
{
    mrc_centers *centers = self->centers;
    int64_t strip = mrc_min(STRIP, centers->p);
    mercer_matrix z, u;
    if (centers->all_shards == 1) return evaluate_columns(self, 0, &centers->z, &self->g);
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_points(&scope, centers, &z, strip, "a strip of the centers"));
    MRC_TRY(
        mrc_scope_matrix(&scope, centers->backend, &u, strip, self->q, centers->real, "a strip of the coarse space"));
    return evaluate_strips(self, &z, &u);
}

/* Replace a field (rows, q) by its product with v (q, k) f64. */
static mercer_status rotate_field(mrc_preconditioner *self, mercer_matrix *field, const mercer_matrix *v)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    mercer_matrix turned, factor;
    MRC_SCOPE(scope, centers->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &factor, v->rows, v->cols, centers->real, "a rotation"));
    MRC_TRY(backend->ops->copy(backend, &factor, v));
    MRC_TRY(mrc_field_create(centers, &turned, v->cols, centers->real, "the coarse space"));
    mercer_status status = mrc_centers_multiply(centers, 1, field, &factor, 0, &turned);
    mrc_matrix_destroy(backend, status == MERCER_OK ? field : &turned);
    if (status == MERCER_OK) *field = turned;
    return status;
}

/* Compute theta and v = V Theta^-1/2 of U'F; t and a (q, q) are scratch. Set *count to the number of eigenvalues above
   the noise. */
static mercer_status rayleigh_ritz(mrc_preconditioner *self, const mercer_matrix *t, const mercer_matrix *a,
                                   const mercer_matrix *v, double *theta, int64_t *count)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    int64_t q = a->rows;
    MRC_TRY(mrc_centers_inner(centers, &self->g, &self->f, t));
    MRC_TRY(backend->ops->copy(backend, a, t));
    MRC_TRY(backend->ops->symmetrize(backend, a));
    MRC_TRY(backend->ops->eigen_top(backend, a, q, theta, v));
    centers->flops += 4.0 / 3 * (double)q * (double)q * (double)q;
    *count = 0;
    while (*count < q && theta[*count] > mrc_noise_level(centers->real) * theta[0]) ++*count;
    for (int64_t i = 0; i < q; i++) self->scale[i] = i < *count ? 1 / sqrt(theta[i]) : 0;
    return backend->ops->scale_columns(backend, v, self->scale);
}

/* Compute theta and G, F from U, and drop the columns whose eigenvalues are noise. */
static mercer_status make_basis(mrc_preconditioner *self, double *theta)
{
    mrc_backend *backend = self->centers->backend;
    int64_t q = self->q;
    mercer_matrix t, a, v;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(mrc_scope_matrix(&scope, backend, &t, q, q, self->centers->real, "the coarse matrix"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &a, q, q, MERCER_F64, "the coarse matrix"));
    MRC_TRY(mrc_scope_matrix(&scope, backend, &v, q, q, MERCER_F64, "the coarse matrix"));
    MRC_TRY(rayleigh_ritz(self, &t, &a, &v, theta, &self->q));
    v.cols = self->q;
    MRC_TRY(rotate_field(self, &self->g, &v));
    return rotate_field(self, &self->f, &v);
}

/* ---- Life ---------------------------------------------------------------------------------------------------- */

static mercer_status allocate_preconditioner(mrc_preconditioner *self, int64_t c, mercer_dtype stored)
{
    mrc_centers *centers = self->centers;
    mrc_backend *backend = centers->backend;
    mercer_dtype real = centers->real;
    int64_t p = centers->p, q = self->q;
    bool host = mrc_backend_memory(backend) == MRC_HOST;
    MRC_TRY(mrc_alloc_zero(centers->context, &self->scale, 2 * q + (2 * MRC_LANCZOS + 1) * c, sizeof *self->scale,
                           "eigenvalues of K(Z,Z)"));
    MRC_TRY(mrc_matrix_reserve(backend, &self->k, centers->z.rows, p, stored, "K(Z,Z)"));
    MRC_TRY(mrc_matrix_reserve(backend, &self->scratch, scratch_rows(p, host, centers->all_shards > 1), p, real,
                               "rows of K(Z,Z)"));
    MRC_TRY(mrc_field_create(centers, &self->f, q, real, "K(Z,Z) times the coarse space"));
    MRC_TRY(mrc_field_create(centers, &self->t, c, real, "vectors of the preconditioner"));
    MRC_TRY(mrc_field_create(centers, &self->n, c, real, "vectors of the preconditioner"));
    MRC_TRY(mrc_field_create(centers, &self->o, c, real, "vectors of the preconditioner"));
    if (centers->comm->ranks == 1) return MERCER_OK;
    return mrc_matrix_create(backend, &self->all, p, c, real, "vectors of the preconditioner");
}

/* Compute the coarse space, store K, then choose the polynomial, which needs products with the stored K. */
static mercer_status build_preconditioner(mrc_preconditioner *self, int64_t c, const mrc_preconditioner_sizes *options,
                                          double tau)
{
    mrc_centers *centers = self->centers;
    mrc_coarse coarse;
    MRC_TRY(mrc_coarse_create(&coarse, centers, options->sample, options->basis, SEED));
    self->q = coarse.q;
    self->g = coarse.u;
    coarse.u = (mercer_matrix){0};
    mrc_coarse_destroy(&coarse, centers->backend);
    MRC_TRY(allocate_preconditioner(self, c, options->stored));
    mrc_centers_notify(centers, "kernel matrix of centers", -1);
    MRC_TRY(evaluate_all(self));
    mrc_centers_notify(centers, "preconditioner", -1);
    double *theta = self->scale + self->q, *scratch = theta + self->q;
    MRC_TRY(make_basis(self, theta));
    MRC_TRY(mrc_matrix_create(centers->backend, &self->y, self->q, c, centers->real, "the coarse part"));
    MRC_TRY(mrc_matrix_create(centers->backend, &self->y2, self->q, c, centers->real, "the coarse part"));
    for (int64_t i = 0; i < self->q; i++) self->scale[i] = 1 / sqrt(1 + tau / theta[i]); /* theta h(theta) */
    return choose_polynomial(self, theta, scratch, tau);
}

mercer_status mrc_preconditioner_create(mrc_preconditioner *out, mrc_centers *centers, int64_t c,
                                        const mrc_preconditioner_sizes *options, double tau)
{
    *out = (mrc_preconditioner){.centers = centers};
    return build_preconditioner(out, c, options, tau);
}
