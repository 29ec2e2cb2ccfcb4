/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs every fused operation of a backend on one problem and compares the error of each element with its bound. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cases.h"

#include "support/data.h"
#include "support/guard.h"

#define LARGEST_FINITE_SHARE 1e9 /* stands for "not finite" and for "must be exact but is not" */

static double output_unit(mercer_dtype dtype)
{
    return dtype == MERCER_F64 ? 0x1p-53 : 0x1p-24;
}

static void describe(verdict *v, double share, const problem *p, const char *what, const char *detail)
{
    v->share = share;
    snprintf(v->text, sizeof v->text, "%s m=%lld p=%lld d=%lld c=%lld%s%s%s", what, (long long)p->shape.m,
             (long long)p->shape.p, (long long)p->shape.d, (long long)p->shape.c, p->origin ? " origin" : "",
             p->at_end ? " at-end" : " at-start", detail);
}

static void compare(verdict *v, const problem *p, const char *what, int64_t i, int64_t j, double got, double wanted,
                    double allowed)
{
    double error = fabs(got - wanted), share = error <= 0 ? 0 : error / allowed;
    if (!(share <= LARGEST_FINITE_SHARE)) share = LARGEST_FINITE_SHARE; /* NaN too */
    if (share <= v->share) return;
    char detail[128];
    snprintf(detail, sizeof detail, " (%lld,%lld): %.9g, reference %.9g, allowed error %.3g", (long long)i,
             (long long)j, got, wanted, allowed);
    describe(v, share, p, what, share > 1 ? detail : "");
}

static void fail(verdict *v, const problem *p, const char *what, const char *why)
{
    if (v->share > 1) return;
    describe(v, LARGEST_FINITE_SHARE, p, what, why);
}

/* Check the status, the inputs and the padding of the output; return false if there is no result to compare. */
static bool returned(verdict *v, const target *t, const problem *p, const char *what, mercer_status status,
                     const guarded *out)
{
    char why[160];
    snprintf(why, sizeof why, ": %s: %.100s", mercer_status_string(status), t->context.error);
    if (status != MERCER_OK) fail(v, p, what, why);
    if (!guarded_gaps_intact(out)) fail(v, p, what, ": wrote between the rows of its output");
    if (!problem_inputs_intact(p)) fail(v, p, what, ": wrote to its inputs");
    return status == MERCER_OK;
}

static void hash(uint64_t *bits, const mercer_matrix *a)
{
    if (!bits) return;
    for (int64_t i = 0; i < a->rows; i++) {
        const unsigned char *row = mrc_row(a, i);
        for (int64_t k = 0; k < a->cols * mrc_dtype_size(a->dtype); k++)
            *bits = (*bits ^ row[k]) * UINT64_C(0x100000001b3);
    }
}

/* ---- Operations ---------------------------------------------------------------------------------------------- */

/* Compare kernel values K, computed in the arithmetic of the problem, with the reference. */
static void compare_values(verdict *v, const problem *p, const char *what, const mercer_matrix *k)
{
    const shape *s = &p->shape;
    double rounding = p->unit + output_unit(p->types.out);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->p; j++) {
            double wanted = p->values[i * s->p + j], e = p->errors[i * s->p + j];
            compare(v, p, what, i, j, mrc_load(k, i, j), wanted,
                    e + rounding * (fabs(wanted) + e) + smallest_of(output_unit(p->types.out)));
        }
}

static void check_eval(verdict *v, const target *t, const problem *p, uint64_t *bits)
{
    const shape *s = &p->shape;
    guarded k = guarded_matrix(s->m, s->p, s->p + 3, p->types.out, p->at_end);
    /* Only X, Z and K determine the arithmetic: W is not an operand. */
    bool narrow = mrc_value_dtype(&p->x, &p->z, &k.matrix, NULL) == MERCER_F32;
    if (narrow && p->unit < 0x1p-24) { /* the allowed errors are for double arithmetic and do not apply */
        guarded_free(&k);
        return;
    }
    mercer_status status = t->backend->ops->kernel_eval(t->backend, &p->pair, &k.matrix);
    if (returned(v, t, p, "eval", status, &k)) {
        compare_values(v, p, "eval", &k.matrix);
        hash(bits, &k.matrix);
    }
    guarded_free(&k);
}

/* Check the sums of all pairs and their kernel values. Sums have the output's type, which must be that of the
   arithmetic. */
static void check_sums(verdict *v, const target *t, const problem *p, uint64_t *bits)
{
    const shape *s = &p->shape;
    bool wide = mrc_value_dtype(&p->x, &p->z, NULL, NULL) == MERCER_F64, narrow = p->types.out == MERCER_F32;
    if (narrow && (wide || p->unit < 0x1p-24)) return;
    guarded sums = guarded_matrix(s->m, s->p, s->p + 2, p->types.out, p->at_end);
    guarded k = guarded_matrix(s->m, s->p, s->p + 1, p->types.out, p->at_end);
    mercer_status status = t->backend->ops->kernel_sums(t->backend, &p->pair, &sums.matrix);
    if (returned(v, t, p, "sums", status, &sums)) {
        status = t->backend->ops->kernel_of_sums(t->backend, &p->kernel, &sums.matrix, &k.matrix);
        if (returned(v, t, p, "of sums", status, &k)) compare_values(v, p, "of sums", &k.matrix);
        hash(bits, &sums.matrix);
        hash(bits, &k.matrix);
    }
    guarded_free(&sums), guarded_free(&k);
}

/* Summation of a product: length of the longest chain, and unit roundoff of its arithmetic. */
typedef struct summing {
    double chain, unit;
} summing;

/* Compare out = old + the product whose sums are given; depth: number of terms. */
static void compare_product(verdict *v, const problem *p, const char *what, const product_sums *sums, int64_t depth,
                            const mercer_matrix *out, const mercer_matrix *old, summing how)
{
    double in_sum = gamma_k(how.chain, how.unit) + how.unit; /* + how.unit: values are rounded when stored */
    double in_double_sum =
        gamma_k((double)depth / 240 + 4 + (double)depth, 0x1p-53); /* sums over tiles, and the reference's own sum */
    for (int64_t i = 0; i < out->rows; i++) {
        for (int64_t j = 0; j < out->cols; j++) {
            int64_t at = i * out->cols + j;
            double wanted = sums->wanted[at], allowed = sums->allowed[at], before = old ? mrc_load(old, i, j) : 0;
            allowed += (in_sum + in_double_sum) * sums->size[at] + how.chain * smallest_of(how.unit);
            allowed += 2 * output_unit(out->dtype) * (fabs(wanted) + fabs(before) + allowed) +
                       smallest_of(output_unit(out->dtype));
            compare(v, p, what, i, j, mrc_load(out, i, j), wanted + before, allowed);
        }
    }
}

static void check_matmul(verdict *v, const target *t, const problem *p, bool add, uint64_t *bits)
{
    const shape *s = &p->shape;
    const char *what = add ? "matmul+=" : "matmul";
    /* The elements are NaN. If add is false, the product must not read them. */
    guarded y = guarded_matrix(s->m, s->c, s->c + 2, p->types.out, p->at_end);
    mercer_matrix old = data_matrix(s->m, s->c, 0, p->types.out);
    data_fill_normal(&old, (mrc_rng){5, 5}, 1, 2);
    for (int64_t i = 0; i < s->m && add; i++)
        for (int64_t j = 0; j < s->c; j++) mrc_store(&y.matrix, i, j, mrc_load(&old, i, j));
    mercer_status status = t->backend->ops->kernel_matmul(t->backend, &p->pair, &p->w, &y.matrix, add);
    if (returned(v, t, p, what, status, &y)) {
        compare_product(v, p, what, &p->forward, s->p, &y.matrix, add ? &old : NULL, (summing){240, p->unit});
        hash(bits, &y.matrix);
    }
    free(old.data);
    guarded_free(&y);
}

/*
 * Check F = K W, saving up to buffer_columns columns of K in a buffer, then H = K' G. W, F, G and H have one type, in
 * which K is saved, too: the saved part is summed in that type over all m rows in any order.
 */
static void check_pair(verdict *v, const target *t, const problem *p, int64_t buffer_columns)
{
    const shape *s = &p->shape;
    if (p->types.w != p->types.out) return;
    summing how = {fmax(240, (double)s->m), buffer_columns > 0 ? output_unit(p->types.w) : p->unit};
    char what[48];
    guarded f = guarded_matrix(s->m, s->c, s->c + 2, p->types.out, p->at_end);
    guarded h = guarded_matrix(s->p, s->c, s->c + 1, p->types.w, p->at_end);
    int64_t bytes = buffer_columns * s->m * mrc_dtype_size(p->types.w);
    guarded buffer = guarded_matrix(1, bytes, bytes, MERCER_U8, p->at_end);
    mrc_cached_block cached = {.memory = buffer.matrix.data, .bytes = bytes};
    mercer_status status = t->backend->ops->kernel_forward(t->backend, &p->pair, &p->w, &f.matrix, &cached);
    snprintf(what, sizeof what, "forward, buffer of %lld columns", (long long)buffer_columns);
    if (returned(v, t, p, what, status, &f)) {
        compare_product(v, p, what, &p->forward, s->p, &f.matrix, NULL, (summing){240, p->unit});
        if (cached.columns < 0 || cached.columns > s->p || cached.columns > buffer_columns)
            fail(v, p, what, ": stored more than the buffer holds");
        status = t->backend->ops->kernel_transpose(t->backend, &p->pair, &p->g, &h.matrix, &cached);
        snprintf(what, sizeof what, "transpose, cached %lld", (long long)cached.columns);
        if (returned(v, t, p, what, status, &h)) compare_product(v, p, what, &p->back, s->m, &h.matrix, NULL, how);
    }
    guarded_free(&f), guarded_free(&h), guarded_free(&buffer);
}

/* Compute the sums for row i of X, feature k and output l, in the form that compare_product expects. */
static void sum_signs(const problem *p, int64_t i, int64_t k, int64_t l, double *wanted, double *allowed, double *size)
{
    double x = mrc_load(&p->x, i, k);
    for (int64_t j = 0; j < p->shape.p; j++) {
        double z = mrc_load(&p->z, j, k), w = mrc_load(&p->w, j, l), value = p->values[i * p->shape.p + j],
               e = p->errors[i * p->shape.p + j];
        if (x == z) continue;
        *wanted += x > z ? w * value : -(w * value);
        *allowed += fabs(w) * e;
        *size += fabs(w) * (fabs(value) + e);
    }
}

/* Check sums with the signs of differences: a rounded product with weights, then a chain of 240; signs are exact. */
static void check_signs(verdict *v, const target *t, const problem *p, uint64_t *bits)
{
    enum { MOST_TERMS = 1 << 17 }; /* limit of the work, because the reference sums are recomputed for each target */
    const shape *s = &p->shape;
    int64_t columns = s->c * s->d;
    if (s->m * s->p * columns > MOST_TERMS) return;
    guarded y = guarded_matrix(s->m, columns, columns + 2, p->types.out, p->at_end);
    mercer_status status = t->backend->ops->kernel_signs(t->backend, &p->pair, &p->w, &y.matrix);
    if (returned(v, t, p, "signs", status, &y)) {
        double *values = calloc(3 * (size_t)(s->m * columns) + 1, sizeof *values);
        product_sums sums = {.wanted = values, .allowed = values + s->m * columns, .size = values + 2 * s->m * columns};
        for (int64_t at = 0; at < s->m * columns; at++)
            sum_signs(p, at / columns, at % columns % s->d, at % columns / s->d, &sums.wanted[at], &sums.allowed[at],
                      &sums.size[at]);
        compare_product(v, p, "signs", &sums, s->p, &y.matrix, NULL, (summing){241, p->unit});
        hash(bits, &y.matrix);
        free(values);
    }
    guarded_free(&y);
}

/* Compute the sum over all pairs for feature k, and the sum of the magnitudes that it can be computed from. */
static void sum_feature(const problem *p, const mercer_matrix *a, const mercer_matrix *b, int64_t k, double *wanted,
                        double *size)
{
    double norm = mrc_kernel_norm(&p->kernel);
    for (int64_t i = 0; i < p->shape.m; i++)
        for (int64_t j = 0; j < p->shape.p; j++) {
            double x = mrc_load(&p->x, i, k), z = mrc_load(&p->z, j, k), w = mrc_load(a, i, j) * mrc_load(b, i, j);
            *wanted += w * mrc_difference_power(norm, x - z);
            *size += fabs(w) * (mrc_difference_power(norm, x - z) + mrc_difference_power(norm, z));
        }
}

/* Check the sums over pairs for each feature, in norms 1 and 2, with weights that are products: see budget.h. */
static void check_features(verdict *v, const target *t, const problem *p, uint64_t *bits)
{
    const shape *s = &p->shape;
    double unit = mrc_value_dtype(&p->x, &p->z, NULL, NULL) == MERCER_F64 ? 0x1p-53 : 0x1p-24;
    mercer_matrix a = data_matrix(s->m, s->p, s->p + 1, p->types.w), b = data_matrix(s->m, s->p, 0, p->types.out);
    data_fill_normal(&a, (mrc_rng){6, 5}, 0, 1);
    data_fill_normal(&b, (mrc_rng){6, 6}, 0, 1);
    guarded out = guarded_matrix(1, s->d, s->d, MERCER_F64, p->at_end);
    mrc_feature_sums job = {.norm = (int)mrc_kernel_norm(&p->kernel), .x = &p->x, .z = &p->z, .a = &a, .b = &b};
    mercer_status status = t->backend->ops->feature_sums(t->backend, &job, out.matrix.data);
    if (returned(v, t, p, "features", status, &out)) {
        double pairs = (double)(s->m * s->p);
        for (int64_t k = 0; k < s->d; k++) {
            double wanted = 0, size = 0;
            sum_feature(p, &a, &b, k, &wanted, &size);
            compare(v, p, "features", 0, k, mrc_load(&out.matrix, 0, k), wanted,
                    (gamma_k(FEATURE_CHAIN, unit) + 2 * gamma_k(pairs + 4, 0x1p-53)) * size +
                        2 * pairs * smallest_of(unit));
        }
        hash(bits, &out.matrix);
    }
    free(a.data), free(b.data);
    guarded_free(&out);
}

static void check_diagonal(verdict *v, const target *t, const problem *p)
{
    const shape *s = &p->shape;
    guarded diagonal = guarded_matrix(s->m, 1, 3, p->types.out, p->at_end);
    mercer_status status = t->backend->ops->kernel_diagonal(t->backend, &p->kernel, &p->x, &diagonal.matrix);
    if (returned(v, t, p, "diagonal", status, &diagonal)) {
        bool wide = mrc_value_dtype(&p->x, &diagonal.matrix, NULL, NULL) == MERCER_F64;
        arithmetic how = wide ? in_double : in_float;
        how.bytes = p->types.x == MERCER_U8;
        double *row = calloc((size_t)s->d + 1, sizeof *row), wanted = 0;
        for (int64_t i = 0; i < s->m; i++) {
            mrc_load_row_f64(&p->x, i, row);
            if (!mrc_kernel_reference(&p->kernel, s->d, row, row, &wanted)) abort();
            double e = value_error(&p->kernel, s->d, row, row, row, &how); /* any origin works, because x - x = 0 */
            double rounding = how.unit + output_unit(p->types.out);
            compare(v, p, "diagonal", i, 0, mrc_load(&diagonal.matrix, i, 0), wanted,
                    e + rounding * (fabs(wanted) + e));
        }
        free(row);
    }
    guarded_free(&diagonal);
}

/* Return the allowed error of the sum of |differences|^p between row i of X and row j of Z in the kernel's norm: the
   largest over the origins that backends may choose. Set *sum to the reference value. */
static double allowed_sum(const problem *p, int64_t i, int64_t j, const double *const origins[2], const arithmetic *how,
                          double *sum)
{
    double *x = calloc(2 * (size_t)p->shape.d + 1, sizeof *x), *z = x + p->shape.d, norm = mrc_kernel_norm(&p->kernel);
    mrc_load_row_f64(&p->x, i, x);
    mrc_load_row_f64(&p->z, j, z);
    double error = 0;
    for (int k = 0; k < (p->levels > 0 ? 2 : 1); k++) {
        pair_sums sums = pair_sums_of(norm, p->shape.d, x, z, origins[k]);
        *sum = sums.sum;
        error = fmax(error, search_error(norm, &sums, (double)p->shape.d, how));
    }
    free(x);
    return error;
}

/* Check that each returned row is the nearest row up to the allowed error, that it is the first of equally near rows,
   and that its distance is right. */
static void compare_nearest(verdict *v, const problem *p, const char *what, const arithmetic *how,
                            const int32_t *nearest, const double *distances)
{
    double *mean = case_column_mean(&p->z), *flags = case_column_origin(&p->z);
    const double *const origins[2] = {p->origin ? p->origin : mean, p->origin ? p->origin : flags};
    for (int64_t i = 0; i < p->shape.m; i++) {
        int64_t got = nearest[i];
        if (got < 0 || got >= p->shape.p) {
            fail(v, p, what, ": a row number is out of range");
            continue;
        }
        double own, error = allowed_sum(p, i, got, origins, how, &own);
        compare(v, p, what, i, got, distances[i], own, error);
        for (int64_t j = 0; j < p->shape.p; j++) {
            double other, its_error = allowed_sum(p, i, j, origins, how, &other);
            if (own - error > other + its_error) fail(v, p, what, ": another row is nearer");
            /* Rows with equal coordinates have equal distances: the first one must be chosen. */
            if (j < got && p->types.x == p->types.z && other == 0) fail(v, p, what, ": not the first one for ties");
        }
    }
    free(mean), free(flags);
}

static void check_nearest(verdict *v, const target *t, const problem *p, bool wide, uint64_t *bits)
{
    const shape *s = &p->shape;
    if (s->p == 0) return;                                               /* there is no nearest row */
    guarded nearest = guarded_matrix(s->m, 1, 1, MERCER_F32, p->at_end); /* elements as wide as int32_t */
    guarded distances = guarded_matrix(s->m, 1, 1, MERCER_F64, p->at_end);
    mrc_search search = {
        .x = &p->x, .z = &p->z, .origin = p->origin, .wide = wide, .norm = mrc_kernel_norm(&p->kernel)};
    mercer_status status =
        t->backend->ops->nearest_rows(t->backend, &search, nearest.matrix.data, distances.matrix.data);
    const char *what = wide ? "nearest in double" : "nearest";
    if (returned(v, t, p, what, status, &nearest)) {
        arithmetic how = wide || mrc_value_dtype(&p->x, &p->z, NULL, NULL) == MERCER_F64 ? in_double : in_float;
        how.bytes = p->types.x == MERCER_U8 && p->types.z == MERCER_U8;
        compare_nearest(v, p, what, &how, nearest.matrix.data, distances.matrix.data);
        hash(bits, &nearest.matrix);
        hash(bits, &distances.matrix);
    }
    guarded_free(&nearest), guarded_free(&distances);
}

verdict run_problem(const target *t, const problem *p, bool all_buffer_sizes, uint64_t *bits)
{
    verdict v = {0};
    if (bits) *bits = UINT64_C(0xcbf29ce484222325);
    check_eval(&v, t, p, bits);
    check_matmul(&v, t, p, false, bits);
    check_matmul(&v, t, p, true, NULL);
    const int64_t buffer_sizes[] = {0, (p->shape.p + 1) / 2, p->shape.p + 1};
    int64_t which = (p->shape.m + p->shape.p + p->shape.d) % 3; /* large problems use only one buffer size */
    for (int r = 0; r < 3; r++)
        if (all_buffer_sizes || r == which) check_pair(&v, t, p, buffer_sizes[r]);
    check_diagonal(&v, t, p);
    if (all_buffer_sizes && mrc_kernel_is_stationary(&p->kernel) && !mrc_kernel_is_callback(&p->kernel))
        check_sums(&v, t, p, bits);
    if (p->kernel.id == MRC_KERNEL_LAPLACE_L1 || p->kernel.id == MRC_KERNEL_EXPPOWER_L1) check_signs(&v, t, p, bits);
    /* Run once for each norm and set of points: the search depends on the kernel only through its norm. */
    if (p->kernel.id == MRC_KERNEL_GAUSSIAN || p->kernel.id == MRC_KERNEL_LAPLACE_L1 ||
        (p->kernel.id == MRC_KERNEL_LPQ && all_buffer_sizes)) { /* general powers are slow to check */
        check_nearest(&v, t, p, false, bits);
        check_nearest(&v, t, p, true, bits);
    }
    if (p->kernel.id == MRC_KERNEL_GAUSSIAN || p->kernel.id == MRC_KERNEL_LAPLACE_L1) check_features(&v, t, p, bits);
    return v;
}
