/* SPDX-License-Identifier: BSD-3-Clause */
/* Preprocessing: comparison of each kind with plain formulas in long double, fitting, folding, invalid input. */
#include "support/counted.h"

#include "support/data.h"
#include "support/fitted.h"
#include "support/info.h"

#include "data/prepare/preprocess.h"
#include "kernels/kernel.h"
#include "kernels/table.h"

#include <float.h>

static const mrc_rng numbers = {42, 7};

static mercer_preprocess *fit(mercer_context *context, const char *spec, const mercer_matrix *x)
{
    mercer_preprocess *out = NULL;
    assert_succeeds(context, fit_to_matrix(&out, context, spec, x));
    assert_non_null(out);
    return out;
}

/* ---- Formulas ------------------------------------------------------------------------------------------------ */

/* Returns the expected value of feature j in row i. */
static long double expected(const char *spec, const mercer_matrix *x, int64_t i, int64_t j)
{
    long double value = mrc_load(x, i, j), mean = 0, squares = 0, low = value, high = value, norm = 0;
    for (int64_t k = 0; k < x->cols; k++) norm += (long double)mrc_load(x, i, k) * mrc_load(x, i, k);
    for (int64_t k = 0; k < x->rows; k++) {
        long double other = mrc_load(x, k, j);
        mean += other / x->rows;
        low = other < low ? other : low;
        high = other > high ? other : high;
    }
    for (int64_t k = 0; k < x->rows; k++) squares += (mrc_load(x, k, j) - mean) * (mrc_load(x, k, j) - mean) / x->rows;
    if (strcmp(spec, "scale") == 0) return value / 255;
    if (strcmp(spec, "scale:factor=0.5") == 0) return value / 2;
    if (strcmp(spec, "standardize") == 0) return squares > 0 ? (value - mean) / sqrtl(squares) : 0;
    if (strcmp(spec, "minmax") == 0) return high > low ? (value - low) / (high - low) : 0;
    if (strcmp(spec, "unit") == 0) return norm > 0 ? value / sqrtl(norm) : 0;
    return value;
}

/*
 * The bound: one rounding to the type of the result, on top of double arithmetic. In double, a mean of n values is
 * accurate to n eps of the largest value, and a deviation to n eps of itself: with |x| <= 20 and deviations >= 1,
 * 100 n eps covers both.
 */
static void check_values(mercer_context *context, const char *spec, mercer_dtype in, mercer_dtype out_type)
{
    enum { N = 60, D = 150, CONSTANT = 3, ZERO_ROW = 5 };
    mercer_matrix x = data_matrix(N, D, D + 3, in), out = data_matrix(N, D, D + 1, out_type);
    data_fill_normal(&x, numbers, in == MERCER_U8 ? 100 : 2, in == MERCER_U8 ? 40 : 3);
    for (int64_t i = 0; i < N; i++) data_store(&x, i, CONSTANT, 7);
    mercer_preprocess *fitted = fit(context, spec, &x);
    for (int64_t j = 0; j < D; j++) data_store(&x, ZERO_ROW, j, 0);
    mercer_preprocess_free(fitted);
    fitted = fit(context, spec, &x);
    assert_succeeds(context, mercer_preprocess_apply(fitted, &out, &x));
    double eps = out_type == MERCER_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < D; j++) {
            long double wanted = expected(spec, &x, i, j), got = mrc_load(&out, i, j);
            long double bound = fabsl(wanted) * eps + 100 * N * DBL_EPSILON * (1 + fabsl(wanted));
            assert_that(fabsl(wanted - got) <= bound, "%s %s to %s, (%d, %d): %.17Lg, wanted %.17Lg", spec,
                        mrc_dtype_name(in), mrc_dtype_name(out_type), (int)i, (int)j, got, wanted);
        }
    mercer_preprocess_free(fitted);
    free(x.data), free(out.data);
}

static void test_formulas(void **state)
{
    fixture *self = *state;
    const char *specs[] = {"none", "scale", "scale:factor=0.5", "standardize", "minmax", "unit"};
    const mercer_dtype in[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++)
        for (size_t i = 0; i < 4; i++)
            for (int out = 0; out < 2; out++)
                check_values(self->context, specs[s], in[i], out ? MERCER_F32 : MERCER_F64);
}

/* The result of a row is bitwise identical in any batch, and for any number of threads used for fitting. */
static void test_rows_are_independent(void **state)
{
    fixture *self = *state;
    enum { N = 41, D = 300 };
    mercer_matrix x = data_matrix(N, D, D, MERCER_F32), all = data_matrix(N, D, D, MERCER_F32);
    mercer_matrix one = data_matrix(1, D, D, MERCER_F32);
    data_fill_normal(&x, numbers, 1, 2);
    const char *specs[] = {"scale", "standardize", "minmax", "unit"};
    for (int s = 0; s < 4; s++) {
        mercer_preprocess *fitted = fit(self->context, specs[s], &x);
        int threads = self->context->threads;
        self->context->threads = 1;
        mercer_preprocess *alone = fit(self->context, specs[s], &x);
        self->context->threads = threads;
        assert_succeeds(self->context, mercer_preprocess_apply(fitted, &all, &x));
        for (int64_t i = 0; i < N; i++) {
            mercer_matrix row = mrc_rows(&x, i, 1);
            assert_succeeds(self->context, mercer_preprocess_apply(alone, &one, &row));
            assert_memory_equal(one.data, mrc_row(&all, i), D * sizeof(float));
        }
        mercer_preprocess_free(fitted), mercer_preprocess_free(alone);
    }
    free(x.data), free(all.data), free(one.data);
}

/* Data far from 0 keep their deviation (a plain sum of squares would lose all of it), and constants are exactly
   constant. */
static void test_large_means(void **state)
{
    fixture *self = *state;
    enum { N = 1000 };
    mercer_matrix x = data_matrix(N, 3, 3, MERCER_F64);
    for (int64_t i = 0; i < N; i++) {
        data_store(&x, i, 0, 1e9 + (i % 2));
        data_store(&x, i, 1, 0.1);
        data_store(&x, i, 2, 1e-200 * (double)(i % 2));
    }
    mercer_preprocess *fitted = fit(self->context, "standardize", &x);
    assert_that(fabs(fitted->shift[0] - (1e9 + 0.5)) < 1e-6, "mean %.9f", fitted->shift[0]);
    assert_that(fabs(fitted->factor[0] - 2) < 1e-6, "factor %.9f", fitted->factor[0]);
    assert_true(fitted->factor[1] == 0);
    mercer_preprocess_free(fitted);
    fitted = fit(self->context, "minmax", &x);
    assert_that(fabs(fitted->factor[2] * 1e-200 - 1) < 1e-12, "factor %g", fitted->factor[2]);
    mercer_preprocess_free(fitted);
    free(x.data);
}

static void test_unit_of_extreme_rows(void **state)
{
    fixture *self = *state;
    double rows[3][2] = {{3e300, 4e300}, {3e-300, 4e-300}, {5e-324, 0}}, out[3][2];
    mercer_matrix x = mrc_view(rows, 3, 2, MERCER_F64), y = mrc_view(out, 3, 2, MERCER_F64);
    mercer_preprocess *unit = fit(self->context, "unit", &x);
    assert_succeeds(self->context, mercer_preprocess_apply(unit, &y, &x));
    for (int i = 0; i < 2; i++) assert_true(fabs(out[i][0] - 0.6) < 1e-15 && fabs(out[i][1] - 0.8) < 1e-15);
    assert_true(out[2][0] == 1 && out[2][1] == 0);
    mercer_preprocess_free(unit);
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

/* Fitting to a dataset of many blocks, read one by one, is bitwise identical to fitting to the samples in memory. */
static void test_fit_dataset(void **state)
{
    fixture *self = *state;
    enum { N = 12000 };
    mercer_dataset *data;
    assert_succeeds(self->context, mercer_dataset_synthesize(&data, self->context, "digits", 5, N, 3));
    mercer_matrix x = data_matrix(N, 784, 784, MERCER_U8);
    assert_succeeds(self->context, mercer_dataset_read(data, &x, NULL, NULL, NULL, NULL, 0));
    mercer_preprocess *a, *b = fit(self->context, "standardize", &x);
    /* check-words: allow spelling -ise (the name of 0.1 and 0.2, an alias) */
    assert_succeeds(self->context, mercer_preprocess_fit(&a, self->context, "standardise", data));
    assert_int_equal(a->features, 784);
    assert_string_equal(preprocess_info(a).spec, "standardize");
    assert_memory_equal(a->shift, b->shift, 2 * 784 * sizeof(double));
    mercer_preprocess_free(a), mercer_preprocess_free(b);
    assert_succeeds(self->context, mercer_preprocess_fit(&a, self->context, "unit", NULL));
    mercer_preprocess_free(a);
    mercer_dataset_free(data);
    free(x.data);
}

/* ---- Folding ------------------------------------------------------------------------------------------------- */

/* K(v x, v z) of the original kernel equals K(x, z) of the folded kernel, for every function of the distance. */
static void test_fold(void **state)
{
    fixture *self = *state;
    int folds = 0;
    for (int k = 0; k < mrc_kernel_table_size; k++) {
        mercer_kernel kernel, before;
        mercer_preprocess *scale;
        assert_succeeds(self->context, mercer_kernel_parse(&kernel, self->context, kernel_info(k).example));
        assert_succeeds(self->context, mercer_preprocess_fit(&scale, self->context, "scale", NULL));
        before = kernel;
        bool folded = mrc_preprocess_fold(scale, &kernel);
        assert_int_equal(folded, mrc_kernel_is_stationary(&before));
        folds += folded;
        if (folded) {
            assert_memory_equal(preprocess_info(scale).kernel, &before, sizeof before);
            assert_int_equal(mrc_preprocess_dtype(scale, MERCER_U8), MERCER_U8);
            double x[2] = {30, 200}, z[2] = {100, 17}, u[2], w[2], a, b;
            for (int i = 0; i < 2; i++) u[i] = x[i] / 255, w[i] = z[i] / 255;
            assert_true(mrc_kernel_reference(&kernel, 2, x, z, &a) && mrc_kernel_reference(&before, 2, u, w, &b));
            assert_that(fabs(a - b) <= 1e-13 * fabs(b), "%s: %.17g, %.17g", kernel_info(k).example, a, b);
        } else {
            assert_memory_equal(&kernel, &before, sizeof before);
            assert_null(preprocess_info(scale).kernel);
            assert_int_equal(mrc_preprocess_dtype(scale, MERCER_U8), MERCER_F32);
        }
        mercer_preprocess_free(scale);
    }
    assert_int_equal(folds, 10);
}

/* After folding, samples pass unchanged; a copy of the preprocessing is folded too. */
static void test_folded_passes_bytes(void **state)
{
    fixture *self = *state;
    uint8_t bytes[4] = {0, 1, 128, 255}, out[4];
    mercer_matrix x = mrc_view(bytes, 2, 2, MERCER_U8), y = mrc_view(out, 2, 2, MERCER_U8);
    mercer_preprocess *scale = fit(self->context, "scale", &x), *copy;
    mercer_kernel kernel;
    assert_fails(self->context, mercer_preprocess_apply(scale, &y, &x), MERCER_ERROR_DTYPE, "u8");
    assert_succeeds(self->context, mercer_kernel_parse(&kernel, self->context, "laplace:bandwidth=10"));
    assert_true(mrc_preprocess_fold(scale, &kernel));
    assert_that(fabs(kernel.bandwidth - 2550) < 1e-9, "%.17g", kernel.bandwidth);
    assert_succeeds(self->context, mrc_preprocess_copy(&copy, self->context, scale));
    assert_succeeds(self->context, mercer_preprocess_apply(copy, &y, &x));
    assert_memory_equal(out, bytes, sizeof bytes);
    assert_true(preprocess_info(copy).kernel->bandwidth == 10);
    mercer_preprocess_free(scale), mercer_preprocess_free(copy);
}

/* ---- Specs and invalid input --------------------------------------------------------------------------------- */

static void test_specs(void **state)
{
    fixture *self = *state;
    mercer_preprocess *a, *b;
    assert_succeeds(self->context, mercer_preprocess_fit(&a, self->context, "scale", NULL));
    assert_true(a->scale == 1.0 / 255);
    assert_succeeds(self->context, mercer_preprocess_fit(&b, self->context, preprocess_info(a).spec, NULL));
    assert_true(b->scale == a->scale); /* the text has all digits */
    assert_string_equal(preprocess_info(b).spec, preprocess_info(a).spec);
    mercer_preprocess_free(a), mercer_preprocess_free(b);
    assert_string_equal(preprocess_info(NULL).spec, "none");
    assert_int_equal(mrc_preprocess_dtype(NULL, MERCER_F16), MERCER_F16);
    mrc_preprocess_kind kind;
    for (int i = MRC_PREPROCESS_NONE; i <= MRC_PREPROCESS_UNIT; i++) {
        const mercer_preprocess made = {.kind = (mrc_preprocess_kind)i, .spec = "scale"};
        assert_true(mrc_preprocess_find_stored(mrc_preprocess_stored_spec(&made), &kind) && (int)kind == i);
    }
    assert_false(mrc_preprocess_find_stored("nothing", &kind));
}

static void test_bad_specs(void **state)
{
    fixture *self = *state;
    const struct {
        const char *spec, *part;
    } bad[] = {{"", "no name"},
               {"standarise", "'standardize'?"},
               {"scal", "'scale'?"},
               {"log", "valid names: none, scale"},
               {"scale:facter=2", "'factor'?"},
               {"scale:factor=0", "> 0"},
               {"scale:factor=x", "scale: *number: 'x'"},
               {"unit:factor=1", "parameters of unit: none"},
               {"standardize", "needs data"},
               {"minmax", "dataset is NULL"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mercer_preprocess *out = (mercer_preprocess *)1;
        assert_fails(self->context, mercer_preprocess_fit(&out, self->context, bad[i].spec, NULL),
                     MERCER_ERROR_ARGUMENT, bad[i].part);
        assert_null(out);
    }
}

static void test_bad_values(void **state)
{
    fixture *self = *state;
    enum { N = 2000, D = 200 };
    mercer_matrix x = data_matrix(N, D, D, MERCER_F64);
    mercer_preprocess *out;
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        data_store(&x, 1234, 177, odd[i]);
        assert_fails(self->context, fit_to_matrix(&out, self->context, "minmax", &x), MERCER_ERROR_DATA,
                     "sample 1234, feature 177");
        assert_null(out);
    }
    data_store(&x, 1234, 177, 1e308);
    data_store(&x, 12, 177, -1e308);
    assert_fails(self->context, fit_to_matrix(&out, self->context, "minmax", &x), MERCER_ERROR_DATA, "feature 177");
    assert_fails(self->context, fit_to_matrix(&out, self->context, "standardize", &x), MERCER_ERROR_DATA,
                 "feature 177");
    mercer_matrix none = mrc_rows(&x, 0, 0);
    assert_fails(self->context, fit_to_matrix(&out, self->context, "minmax", &none), MERCER_ERROR_SHAPE, "no samples");
    free(x.data);
}

static void test_bad_arguments(void **state)
{
    fixture *self = *state;
    mercer_context *context = self->context;
    mercer_matrix x = data_matrix(4, 3, 3, MERCER_F32), y = data_matrix(4, 3, 3, MERCER_F32);
    data_fill_normal(&x, numbers, 0, 1);
    mercer_preprocess *out, *fitted = fit(context, "minmax", &x);
    assert_fails(NULL, mercer_preprocess_fit(&out, NULL, "none", NULL), MERCER_ERROR_ARGUMENT, "context");
    assert_fails(context, mercer_preprocess_fit(NULL, context, "none", NULL), MERCER_ERROR_ARGUMENT, "out");
    assert_fails(context, mercer_preprocess_fit(&out, context, NULL, NULL), MERCER_ERROR_ARGUMENT, "spec");
    mercer_matrix narrow = mrc_columns(&x, 0, 2), narrow_out = mrc_columns(&y, 0, 2), few = mrc_rows(&y, 0, 3);
    assert_fails(context, mercer_preprocess_apply(fitted, &narrow_out, &narrow), MERCER_ERROR_SHAPE, "fitted to 3");
    assert_fails(context, mercer_preprocess_apply(fitted, &few, &x), MERCER_ERROR_SHAPE, "out");
    assert_fails(context, mercer_preprocess_apply(fitted, &x, &x), MERCER_ERROR_OVERLAP, "out");
    assert_fails(NULL, mercer_preprocess_apply(NULL, &y, &x), MERCER_ERROR_ARGUMENT, "preprocess");
    mercer_preprocess_free(fitted);
    mercer_preprocess_free(NULL);
    free(x.data), free(y.data);
}

/* ---- The choices of auto ------------------------------------------------------------------------------------- */

static void test_auto(void **state)
{
    (void)state;
    static const struct {
        const char *format;
        mercer_dtype dtype;
        const char *wanted;
    } rows[] = {
        {NULL, MERCER_U8, "scale"},         {NULL, MERCER_F16, "none"},         {NULL, MERCER_F32, "standardize"},
        {NULL, MERCER_F64, "standardize"},  {"csv", MERCER_F32, "standardize"}, {"tsv", MERCER_F64, "standardize"},
        {"npy", MERCER_F64, "standardize"}, {"npy", MERCER_U8, "scale"},        {"idx", MERCER_U8, "scale"},
        {"libsvm", MERCER_F32, "minmax"},   {"synthetic", MERCER_F32, "none"},  {"synthetic", MERCER_U8, "scale"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(mrc_preprocess_auto(rows[i].format, rows[i].dtype), rows[i].wanted);

    mercer_context *context = NULL;
    assert_succeeds(NULL, mercer_context_create(&context, NULL));
    double values[] = {1, 100, 2, 300};
    mercer_matrix x = mercer_matrix_view(values, 2, 2, MERCER_F64);
    mercer_preprocess *made = fit(context, "auto", &x);
    assert_string_equal(preprocess_info(made).spec, "standardize");
    mercer_preprocess_free(made);
    unsigned char pixels[] = {1, 2, 3, 4};
    x = mercer_matrix_view(pixels, 2, 2, MERCER_U8);
    made = fit(context, "auto", &x);
    assert_true(strncmp(preprocess_info(made).spec, "scale", 5) == 0);
    mercer_preprocess_free(made);
    made = NULL;
    assert_fails(context, mercer_preprocess_fit(&made, context, "auto", NULL), MERCER_ERROR_ARGUMENT, "dataset");
    assert_null(made);
    mercer_dataset *data = NULL;
    assert_succeeds(context, mercer_dataset_synthesize(&data, context, "spirals", 0, 10, 1));
    assert_succeeds(context, mercer_preprocess_fit(&made, context, "auto", data));
    assert_string_equal(preprocess_info(made).spec, "none");
    mercer_preprocess_free(made);
    mercer_dataset_free(data);
    mercer_context_free(context);
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------- */

/* blend: y = standard weight * standardize + rank weight * rank; its slope is checked by a finite difference. */
static void test_blend(void **state)
{
    enum { N = 300 };
    float values[N * 2];
    const double standard[2] = {0.25, 2}, rank[2] = {1.5, 0}, h = 1e-3;
    mercer_context *context = ((fixture *)*state)->context;
    for (int i = 0; i < N; i++) values[2 * i] = (float)exp(i % 61 / 10.0), values[2 * i + 1] = (float)(i * 37 % N);
    mercer_matrix x = mercer_matrix_view(values, N, 2, MERCER_F32);
    mercer_preprocess *blend = fit(context, "blend", &x), *s = fit(context, "standardize", &x),
                      *r = fit(context, "rank", &x), *copy = NULL;
    float both[N * 2], left[N * 2], right[N * 2];
    mercer_matrix out = mercer_matrix_view(both, N, 2, MERCER_F32), a = mercer_matrix_view(left, N, 2, MERCER_F32),
                  b = mercer_matrix_view(right, N, 2, MERCER_F32);
    mrc_preprocess_rows(s, &a, &x), mrc_preprocess_rows(r, &b, &x), mrc_preprocess_rows(blend, &out, &x);
    for (int i = 0; i < 2 * N; i++) /* three roundings to float */
        assert_that(fabsf(both[i] - (left[i] + right[i]) / 2) < 1e-6f * (1 + fabsf(left[i]) + fabsf(right[i])), "%d",
                    i);
    assert_succeeds(context, mrc_preprocess_set_blend(blend, standard, rank));
    assert_succeeds(context, mrc_preprocess_copy(&copy, context, blend));
    mrc_preprocess_rows(copy, &out, &x);
    for (int i = 0; i < 2 * N; i++) {
        double wanted = standard[i % 2] * (double)left[i] + rank[i % 2] * (double)right[i];
        assert_that(fabs((double)both[i] - wanted) < 1e-6 * (1 + fabs(wanted)), "%d: %g, not %g", i, (double)both[i],
                    wanted);
    }
    double at[2] = {3.3, 40.5}, up[2] = {at[0] + h, at[1] + h}, y[2], ones[2] = {1, 1}, slope[2];
    mercer_matrix from = mercer_matrix_view(at, 1, 2, MERCER_F64), to = mercer_matrix_view(up, 1, 2, MERCER_F64),
                  moved = mercer_matrix_view(y, 1, 2, MERCER_F64), g = mercer_matrix_view(ones, 1, 2, MERCER_F64),
                  back = mercer_matrix_view(slope, 1, 2, MERCER_F64);
    mrc_preprocess_pull_back(copy, &from, 1, &g, &back);
    double before[2];
    mercer_matrix first = mercer_matrix_view(before, 1, 2, MERCER_F64);
    mrc_preprocess_rows(copy, &first, &from), mrc_preprocess_rows(copy, &moved, &to);
    for (int k = 0; k < 2; k++) assert_that(fabs((y[k] - before[k]) / h - slope[k]) < 1e-8, "slope %d", k);
    const double bad[2] = {-1, 1};
    assert_int_equal(mrc_preprocess_set_blend(blend, bad, rank), MERCER_ERROR_ARGUMENT);
    mercer_preprocess_free(blend), mercer_preprocess_free(s), mercer_preprocess_free(r), mercer_preprocess_free(copy);
}

/* 2560 distinct numbers in any order: the i-th smallest is near the normal quantile of (i + 1/2) / 2560. The 256
   quantiles are exact there, and between two of them the error of a line is less than the distance of their normal
   quantiles. */
static void test_rank(void **state)
{
    enum { N = 2560, STEP = N / MRC_RANK_KNOTS };
    mercer_context *context = ((fixture *)*state)->context;
    double *values = malloc(N * 2 * sizeof *values), *result = malloc(N * 2 * sizeof *result);
    for (int i = 0; i < N; i++) {
        int rank = (int)(i * 7LL * 13 % N); /* a permutation: 91 and 2560 have no common factor */
        values[2 * i] = exp(rank / 100.0);
        values[2 * i + 1] = rank % 4 == 0 ? 5 : 9; /* a quarter fives, three quarters nines */
    }
    mercer_matrix x = mrc_view(values, N, 2, MERCER_F64), y = mrc_view(result, N, 2, MERCER_F64);
    mercer_preprocess *preprocess = fit(context, "rank", &x), *copy = NULL;
    assert_succeeds(context, mercer_preprocess_apply(preprocess, &y, &x));
    for (int i = 0; i < N; i++) {
        int rank = (int)(i * 7LL * 13 % N), below = (rank - STEP / 2 + STEP) / STEP - 1;
        double share = 0.5 * erfc(-result[2 * i] / sqrt(2.0));
        if (rank < STEP / 2) below = 0;
        assert_that(share > (below - 0.5) / MRC_RANK_KNOTS && share < (below + 2.5) / MRC_RANK_KNOTS, "rank %d: %g",
                    rank, share);
        if (rank % STEP == STEP / 2)
            assert_that(fabs(share - (rank / STEP + 0.5) / MRC_RANK_KNOTS) < 1e-12, "rank %d: %.17g", rank, share);
        /* Equal values get the mean of their first and last quantile: 0 .. 63 are fives, 64 .. 255 nines. */
        double five = 0.5 * erfc(-result[2 * i + 1] / sqrt(2.0));
        assert_true(rank % 4 == 0 ? five < 0.25 : five > 0.25);
    }
    assert_succeeds(context, mrc_preprocess_copy(&copy, context, preprocess));
    double beyond[] = {-1, 4, 1e300, 10}, out[4], again[4];
    mercer_matrix from = mrc_view(beyond, 2, 2, MERCER_F64), to = mrc_view(out, 2, 2, MERCER_F64);
    mercer_matrix twice = mrc_view(again, 2, 2, MERCER_F64);
    assert_succeeds(context, mercer_preprocess_apply(preprocess, &to, &from));
    assert_succeeds(context, mercer_preprocess_apply(copy, &twice, &from));
    assert_memory_equal(out, again, sizeof out);
    /* Bisection leaves an error of 1e-23, erfc one of some units of 1e-16, divided by the density there, 0.006. */
    assert_true(fabs(out[0] + out[2]) < 1e-12 &&
                fabs(0.5 * erfc(out[0] * sqrt(0.5)) - (1 - 0.5 / MRC_RANK_KNOTS)) < 1e-12);
    /* Gradients: the slope of the line segment that contains x, 0 beyond the extreme quantiles. */
    double at[] = {exp(7.431), 5, exp(30), 9}, ahead[] = {at[0] * (1 + 1e-7), 5, exp(31), 9}, one[] = {1, 1, 1, 1},
           slopes[4];
    double y0[4], y1[4];
    mercer_matrix x0 = mrc_view(at, 2, 2, MERCER_F64), x1 = mrc_view(ahead, 2, 2, MERCER_F64);
    mercer_matrix v0 = mrc_view(y0, 2, 2, MERCER_F64), v1 = mrc_view(y1, 2, 2, MERCER_F64);
    mercer_matrix g = mrc_view(one, 2, 2, MERCER_F64), slope = mrc_view(slopes, 2, 2, MERCER_F64);
    assert_succeeds(context, mercer_preprocess_apply(preprocess, &v0, &x0));
    assert_succeeds(context, mercer_preprocess_apply(preprocess, &v1, &x1));
    mrc_preprocess_pull_back(preprocess, &x0, 1, &g, &slope);
    assert_true(fabs(slopes[0] * (ahead[0] - at[0]) / (y1[0] - y0[0]) - 1) <
                1e-6); /* a line segment; rounding: 1e-16 / 1e-10 */
    assert_true(slopes[2] == 0);
    mercer_preprocess_free(copy);
    mercer_preprocess_free(preprocess);
    free(values), free(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_rows_are_independent),
        cmocka_unit_test(test_large_means),
        cmocka_unit_test(test_unit_of_extreme_rows),
        cmocka_unit_test(test_fit_dataset),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_folded_passes_bytes),
        cmocka_unit_test(test_specs),
        cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_blend),
        cmocka_unit_test(test_rank),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
