/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error on rows held back, and its slope in the scales of the features.
 *
 *   A, B     rows that are fitted to (n), and judged on;  Z the first p rows of A
 *   M        K_A' K_A + l n K_ZZ,   alpha = M^-1 K_A' Y_A,   E = |K_B alpha - Y_B|^2 / (|B| c)
 *
 * Every kernel value depends on the scales s_k = log of the factor of coordinate k of all points. With R = dE/d(K_B
 * alpha) = 2 (K_B alpha - Y_B) / (|B| c) and U = M^-1 K_B' R, what E changes by is, summed over outputs,
 *
 *   dE = R' dK_B alpha + (Y_A - K_A alpha)' dK_A U - (K_A U)' dK_A alpha - l n U' dK_ZZ alpha
 *
 * and the rows of Z are rows of A, so dE = sum_ij (q_i alpha_j + t_i u_j) dK_ij over rows i of A and B, with
 *
 *   q = -K_A U - l n U (of the rows of Z) on A, R on B        t = Y_A - K_A alpha on A, 0 on B
 *
 * For a distance, dK_ij/ds_k = x_ik dK/dx_ik + z_jk dK/dz_jk. So the sums are gradients of expansions
 * (features/gradient.h): of sum_j alpha_j K(., z_j) at the rows, and of sum_i q_i K(., x_i) at the centers. Rows with
 * weights: K and Y times the roots of them, q and t once more.
 *
 * Cost: n p^2 + p^3 / 3 flops, three passes over kernel values, 4 outputs of gradients. Memory: m p doubles and floats,
 * 2 p^2 doubles.
 */
#include "tune/descent.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "features/agop.h"

#include <math.h>
#include <string.h>

enum { GRADIENT_ROWS = 512 };

typedef struct slope_job {
    mrc_backend *backend;
    const mercer_kernel *kernel;
    const mrc_draw *draw;
    int64_t m, n, p, d, c;
    double penalty;                    /* ridge times the weight of the rows */
    double judged;                     /* weight of the others, times c */
    double *roots;                     /* (m) of weights */
    mercer_matrix k, y;                /* (m, p), (m, c): times the roots */
    mercer_matrix zz, factor;          /* (p, p) */
    mercer_matrix alpha, u;            /* (p, c) */
    mercer_matrix residual, spread;    /* (m, c) K alpha - Y; (n, c) K_A U */
    mercer_matrix at_rows, at_centers; /* (m, 2 c'), (p, 2 c'): q and t, alpha and u, side by side */
} slope_job;

/* ---- The fit ----------------------------------------------------------------------------------------------------- */

static mercer_status make_room(slope_job *job, mrc_scope *scope)
{
    int64_t columns = job->c > MRC_AGOP_OUTPUTS ? 1 : job->c;
    const struct {
        mercer_matrix *matrix;
        int64_t rows, cols;
    } all[] = {{&job->k, job->m, job->p},
               {&job->y, job->m, job->c},
               {&job->zz, job->p, job->p},
               {&job->factor, job->p, job->p},
               {&job->alpha, job->p, job->c},
               {&job->u, job->p, job->c},
               {&job->residual, job->m, job->c},
               {&job->spread, job->n, job->c},
               {&job->at_rows, job->m, 2 * columns},
               {&job->at_centers, job->p, 2 * columns}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        MRC_TRY(mrc_scope_view(scope, all[i].matrix, all[i].rows, all[i].cols, MERCER_F64, "a step of descent"));
    return mrc_scope_alloc(scope, &job->roots, job->m, sizeof *job->roots, "a step of descent");
}

/* K and Y, times the roots of the weights. */
static mercer_status evaluate(slope_job *job, double ridge)
{
    const mrc_draw *draw = job->draw;
    const mrc_backend_ops *ops = job->backend->ops;
    mercer_matrix z = mrc_rows(&draw->x, 0, job->p);
    mrc_pair rows = {.kernel = job->kernel, .x = &draw->x, .z = &z},
             centers = {.kernel = job->kernel, .x = &z, .z = &z};
    double fitted = 0, judged = 0;
    for (int64_t i = 0; i < job->m; i++) {
        double w = draw->weights ? draw->weights[i] : 1;
        job->roots[i] = sqrt(w);
        *(i < job->n ? &fitted : &judged) += w;
    }
    job->penalty = ridge * fitted, job->judged = judged * (double)job->c;
    if (draw->x.dtype == MERCER_F32) { /* small fits take float values of float points, too */
        mercer_matrix single;
        MRC_SCOPE(scope, job->backend->context);
        MRC_TRY(mrc_scope_view(&scope, &single, job->m, job->p, MERCER_F32, "a step of descent"));
        MRC_TRY(ops->kernel_eval(job->backend, &rows, &single));
        MRC_TRY(ops->copy(job->backend, &job->k, &single));
    } else {
        MRC_TRY(ops->kernel_eval(job->backend, &rows, &job->k));
    }
    MRC_TRY(ops->kernel_eval(job->backend, &centers, &job->zz));
    MRC_TRY(ops->copy(job->backend, &job->y, &draw->y));
    if (!draw->weights) return MERCER_OK;
    MRC_TRY(ops->scale_rows(job->backend, &job->k, job->roots));
    return ops->scale_rows(job->backend, &job->y, job->roots);
}

/* to (p, c) = M^-1 rows' values. */
static mercer_status solve(const slope_job *job, const mercer_matrix *rows, const mercer_matrix *values,
                           const mercer_matrix *to)
{
    const mrc_backend_ops *ops = job->backend->ops;
    mrc_gemm product = {.transpose_a = true, .alpha = 1, .a = rows, .b = values, .c = to};
    MRC_TRY(ops->gemm(job->backend, &product));
    MRC_TRY(ops->triangular_solve(job->backend, &job->factor, false, to));
    return ops->triangular_solve(job->backend, &job->factor, true, to);
}

static mercer_status factorise(const slope_job *job, bool *solved)
{
    const mrc_backend_ops *ops = job->backend->ops;
    mercer_matrix fitted = mrc_rows(&job->k, 0, job->n);
    double trace = 0;
    MRC_TRY(ops->copy(job->backend, &job->factor, &job->zz));
    MRC_TRY(ops->gram(job->backend, 1, &fitted, job->penalty, &job->factor));
    for (int64_t j = 0; j < job->p; j++) trace += mrc_load(&job->factor, j, j);
    for (int64_t j = 0; j < job->p; j++)
        mrc_store(&job->factor, j, j, mrc_load(&job->factor, j, j) + MRC_SMALL_JITTER * trace / (double)job->p);
    mercer_status status = ops->cholesky(job->backend, &job->factor);
    *solved = status == MERCER_OK;
    return status == MERCER_ERROR_NUMERIC ? MERCER_OK : status;
}

/* alpha, K alpha - Y; then, with that of the rows judged on times 2 / (|B| c), U and K_A U. */
static mercer_status fit(const slope_job *job, double *error)
{
    const mrc_backend_ops *ops = job->backend->ops;
    mercer_matrix k = mrc_rows(&job->k, 0, job->n), y = mrc_rows(&job->y, 0, job->n);
    mercer_matrix held = mrc_rows(&job->k, job->n, job->m - job->n),
                  off = mrc_rows(&job->residual, job->n, job->m - job->n);
    MRC_TRY(solve(job, &k, &y, &job->alpha));
    MRC_TRY(ops->copy(job->backend, &job->residual, &job->y));
    mrc_gemm residuals = {false, false, 1, -1, &job->k, &job->alpha, &job->residual};
    MRC_TRY(ops->gemm(job->backend, &residuals));
    *error = 0;
    for (int64_t i = 0; i < off.rows; i++)
        for (int64_t l = 0; l < job->c; l++) {
            double e = mrc_load(&off, i, l);
            *error += e * e / job->judged;
            mrc_store(&off, i, l, 2 * e / job->judged);
        }
    MRC_TRY(solve(job, &held, &off, &job->u));
    mrc_gemm spread = {.alpha = 1, .a = &k, .b = &job->u, .c = &job->spread};
    return ops->gemm(job->backend, &spread);
}

/* ---- The slope --------------------------------------------------------------------------------------------------- */

static double q_of(const slope_job *job, int64_t i, int64_t l)
{
    if (i >= job->n) return job->roots[i] * mrc_load(&job->residual, i, l);
    double own = i < job->p ? job->penalty * mrc_load(&job->u, i, l) : 0;
    return -job->roots[i] * mrc_load(&job->spread, i, l) - own;
}

static double t_of(const slope_job *job, int64_t i, int64_t l)
{
    return i < job->n ? -job->roots[i] * mrc_load(&job->residual, i, l) : 0;
}

/* q, t and alpha, u of each output, or of one signed sum of them. */
static void join_outputs(const slope_job *job, mrc_rng signs)
{
    int64_t columns = job->at_rows.cols / 2;
    for (int64_t i = 0; i < job->m; i++)
        for (int64_t l = 0; l < 2 * columns; l++) mrc_store(&job->at_rows, i, l, 0);
    for (int64_t j = 0; j < job->p; j++)
        for (int64_t l = 0; l < 2 * columns; l++) mrc_store(&job->at_centers, j, l, 0);
    for (int64_t l = 0; l < job->c; l++) {
        double sign = columns < job->c && mrc_random_below(signs, (uint64_t)l, 2) == 1 ? -1 : 1;
        int64_t to = columns < job->c ? 0 : l;
        for (int64_t i = 0; i < job->m; i++) {
            double *row = mrc_row(&job->at_rows, i);
            row[to] += sign * q_of(job, i, l), row[columns + to] += sign * t_of(job, i, l);
        }
        for (int64_t j = 0; j < job->p; j++) {
            double *row = mrc_row(&job->at_centers, j);
            row[to] += sign * mrc_load(&job->alpha, j, l), row[columns + to] += sign * mrc_load(&job->u, j, l);
        }
    }
}

/* slope_k += sum over rows i of x, columns l of `at`, of at_il x_ik d f_l / dx_k (x_i), f the expansion with `weights`
   at the points z. */
static mercer_status add_slopes(const slope_job *job, const mercer_matrix *x, const mercer_matrix *at,
                                const mercer_matrix *z, const mercer_matrix *weights, double *gradients, double *slope)
{
    double *origin;
    MRC_SCOPE(scope, job->backend->context);
    MRC_TRY(mrc_scope_alloc(&scope, &origin, job->d, sizeof *origin, "a step of descent"));
    MRC_TRY(job->backend->ops->column_mean(job->backend, z, origin));
    mrc_expansion sum = {.kernel = job->kernel, .z = z, .origin = origin};
    bool single = x->dtype == MERCER_F32 && mrc_gradient_in_float(job->kernel);
    for (int64_t done = 0; done < x->rows; done += GRADIENT_ROWS) {
        mercer_matrix part = mrc_rows(x, done, mrc_min(GRADIENT_ROWS, x->rows - done));
        mercer_matrix g = mrc_view(gradients, part.rows, at->cols * job->d, MERCER_F64);
        MRC_TRY(mrc_gradient_product(job->backend, &sum, &part, weights, single ? MERCER_F32 : MERCER_F64, &g));
        for (int64_t i = 0; i < part.rows; i++)
            for (int64_t l = 0; l < at->cols; l++) {
                double factor = mrc_load(at, done + i, l);
                const double *row = (const double *)mrc_row(&g, i) + l * job->d;
                for (int64_t k = 0; k < job->d; k++) slope[k] += factor * mrc_load(&part, i, k) * row[k];
            }
    }
    return MERCER_OK;
}

mercer_status mrc_error_slope(mrc_backend *backend, const mercer_kernel *kernel, double ridge, const mrc_draw *draw,
                              mrc_rng signs, double *error, double *slope, bool *solved)
{
    slope_job job = {.backend = backend,
                     .kernel = kernel,
                     .draw = draw,
                     .m = draw->x.rows,
                     .n = draw->fitted,
                     .p = draw->centers,
                     .d = draw->x.cols,
                     .c = draw->y.cols};
    double *gradients;
    MRC_SCOPE(scope, backend->context);
    MRC_TRY(make_room(&job, &scope));
    int64_t columns = job.at_rows.cols * job.d;
    MRC_TRY(mrc_scope_alloc(&scope, &gradients, GRADIENT_ROWS * columns, sizeof *gradients, "a step of descent"));
    MRC_TRY(evaluate(&job, ridge));
    MRC_TRY(factorise(&job, solved));
    if (!*solved) return MERCER_OK;
    MRC_TRY(fit(&job, error));
    join_outputs(&job, signs);
    memset(slope, 0, (size_t)job.d * sizeof *slope);
    mercer_matrix z = mrc_rows(&draw->x, 0, job.p);
    MRC_TRY(add_slopes(&job, &draw->x, &job.at_rows, &z, &job.at_centers, gradients, slope));
    return add_slopes(&job, &z, &job.at_centers, &draw->x, &job.at_rows, gradients, slope);
}
