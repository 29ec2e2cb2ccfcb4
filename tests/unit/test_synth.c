/* SPDX-License-Identifier: BSD-3-Clause */
/* Synthetic data: samples depend only on their index, classes are balanced, and targets of the teacher are those of its
   model. */
#include "support/counted.h"

#include "support/data.h"

#include "data/synth/synth_kinds.h"
#include "kernels/formulas.h"
#include "kernels/kernel.h"

static mercer_dataset *create_synth(mercer_context *context, const char *spec, int64_t first, int64_t rows,
                                    uint64_t seed)
{
    mercer_dataset *out = NULL;
    assert_succeeds(context, mercer_dataset_synthesize(&out, context, spec, first, rows, seed));
    assert_non_null(out);
    return out;
}

/* ---- All kinds ----------------------------------------------------------------------------------------------- */

static void check_range(mercer_context *context, const char *spec, int64_t first, int64_t rows)
{
    mercer_dataset *whole = create_synth(context, spec, 0, first + rows, 9),
                   *part = create_synth(context, spec, first, rows, 9);
    mercer_matrix a = data_matrix(1, whole->features, 0, whole->dtype),
                  b = data_matrix(1, whole->features, 0, whole->dtype);
    mercer_matrix ya = data_matrix(1, whole->outputs, 0, MERCER_F32),
                  yb = data_matrix(1, whole->outputs, 0, MERCER_F64);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = first + i;
        mrc_dataset_fetch(whole, &row, 0, &a, &ya, NULL);
        mrc_dataset_fetch(part, NULL, i, &b, &yb, NULL);
        assert_memory_equal(a.data, b.data, (size_t)(a.cols * mrc_dtype_size(a.dtype)));
        for (int64_t j = 0; j < ya.cols; j++) assert_true(((float *)ya.data)[j] == (float)((double *)yb.data)[j]);
    }
    free(a.data), free(b.data), free(ya.data), free(yb.data);
    mercer_dataset_free(whole), mercer_dataset_free(part);
}

/* Sample i is a function of (spec, seed, i): it is the same from any first sample, as a single sample or among
   others, and with f32 or f64 targets. */
static void test_samples_are_functions_of_their_number(void **state)
{
    fixture *self = *state;
    check_range(self->context, "digits", 1000, 30);
    check_range(self->context, "spirals:classes=3", 77, 50);
    check_range(self->context, "clusters:d=7,classes=3,centers=40,noise=0.2", 31, 20);
    check_range(self->context, "teacher:d=19,c=3,centers=21,noise=0.3", 12, 20);
    check_range(self->context, "teacher:d=4,c=70,centers=5", 3, 5); /* outputs in more than one group */
}

/* A different seed or a different index gives a different sample. */
static void test_samples_differ(void **state)
{
    fixture *self = *state;
    mercer_dataset *a = create_synth(self->context, "digits", 0, 100, 1),
                   *b = create_synth(self->context, "digits", 0, 100, 2);
    mercer_matrix x = data_matrix(100, 784, 0, MERCER_U8), y = data_matrix(100, 784, 0, MERCER_U8);
    mrc_dataset_fetch(a, NULL, 0, &x, NULL, NULL);
    mrc_dataset_fetch(b, NULL, 0, &y, NULL, NULL);
    for (int64_t i = 0; i < 100; i++) {
        assert_memory_not_equal(mrc_row(&x, i), mrc_row(&y, i), 784);
        for (int64_t j = 0; j < i; j++) assert_memory_not_equal(mrc_row(&x, i), mrc_row(&x, j), 784);
    }
    free(x.data), free(y.data);
    mercer_dataset_free(a), mercer_dataset_free(b);
}

static void test_query(void **state)
{
    fixture *self = *state;
    mercer_dataset *data = create_synth(self->context, "digits", 3, 1000, 1);
    mercer_dataset_info info = {.struct_size = sizeof info};
    assert_succeeds(self->context, mercer_dataset_query(data, &info));
    assert_true(info.rows == 1000 && info.features == 784 && info.outputs == 10 && info.dtype == MERCER_U8);
    assert_true(info.height == 28 && info.width == 28 && info.channels == 1 && !info.mapped);
    assert_int_equal(info.task, MERCER_TASK_CLASSIFICATION);
    assert_string_equal(info.format, "synthetic");
    for (int i = 0; i < 10; i++) assert_true(info.labels[i][0] == '0' + i && info.labels[i][1] == 0);
    assert_null(mercer_dataset_samples(data).data);
    mercer_dataset_free(data);
    data = create_synth(self->context, "teacher:d=7,c=2", 0, 5, 1);
    assert_succeeds(self->context, mercer_dataset_query(data, &info));
    assert_true(info.features == 7 && info.outputs == 2 && info.dtype == MERCER_F32 && !info.labels);
    assert_int_equal(info.task, MERCER_TASK_REGRESSION);
    mercer_dataset_free(data);
}

/* ---- Digits and spirals -------------------------------------------------------------------------------------- */

/* Checks that a count of n draws with probability p is within six standard deviations. */
static void check_count(const char *what, int64_t count, double n, double p)
{
    double bound = 6 * sqrt(n * p * (1 - p));
    assert_that(fabs((double)count - n * p) <= bound, "%s: %lld of %g, expected %g +- %g", what, (long long)count, n,
                n * p, bound);
}

static void test_digits(void **state)
{
    fixture *self = *state;
    enum { N = 5000 };
    mercer_dataset *data = create_synth(self->context, "digits", 0, N, 4);
    mercer_matrix x = data_matrix(N, 784, 0, MERCER_U8), y = data_matrix(N, 10, 0, MERCER_F32);
    int32_t *labels = malloc(N * sizeof *labels);
    int64_t counts[10] = {0};
    assert_non_null(labels);
    mrc_dataset_fetch(data, NULL, 0, &x, &y, labels);
    for (int64_t i = 0; i < N; i++) {
        assert_true(labels[i] >= 0 && labels[i] < 10);
        counts[labels[i]]++;
        for (int j = 0; j < 10; j++) assert_true(mrc_load(&y, i, j) == (j == labels[i]));
        int bright = 0;
        for (int64_t j = 0; j < 784; j++) bright += ((uint8_t *)mrc_row(&x, i))[j] > 110;
        assert_that(bright > 10 && bright < 450, "digit %d has %d bright pixels", (int)labels[i], bright);
    }
    for (int d = 0; d < 10; d++) check_count("a digit", counts[d], N, 0.1);
    free(x.data), free(y.data), free(labels);
    mercer_dataset_free(data);
}

/* Without noise the background is empty and the strokes have equal values; noise adds its deviation. */
static void test_noise_of_digits(void **state)
{
    fixture *self = *state;
    mercer_dataset *clean = create_synth(self->context, "digits:noise=0", 0, 50, 4);
    mercer_dataset *noisy = create_synth(self->context, "digits:noise=0.05", 0, 50, 4);
    mercer_matrix x = data_matrix(50, 784, 0, MERCER_U8), y = data_matrix(50, 784, 0, MERCER_U8);
    mrc_dataset_fetch(clean, NULL, 0, &x, NULL, NULL);
    mrc_dataset_fetch(noisy, NULL, 0, &y, NULL, NULL);
    double squares = 0;
    int64_t inside = 0, empty = 0;
    for (int64_t i = 0; i < 50 * 784; i++) {
        int a = ((uint8_t *)x.data)[i], b = ((uint8_t *)y.data)[i];
        empty += a == 0;
        if (a < 70 || a > 185) continue; /* five deviations from where clamping begins */
        squares += (a - b) * (a - b);
        inside++;
    }
    double variance = squares / (double)inside, wanted = 255 * 0.05 * 255 * 0.05 + 1.0 / 6; /* two roundings */
    assert_that(inside > 500 && fabs(variance / wanted - 1) < 6 * sqrt(2.0 / (double)inside), "variance %g of %lld",
                variance, (long long)inside);
    assert_that(empty > 50 * 784 / 2, "%lld empty pixels", (long long)empty);
    free(x.data), free(y.data);
    mercer_dataset_free(clean), mercer_dataset_free(noisy);
}

/* Digits match their labels: the nearest of 2,000 others has the same label far more often than by chance. */
static void test_digits_can_be_classified(void **state)
{
    fixture *self = *state;
    enum { N = 2000, TESTS = 200 };
    mercer_dataset *data = create_synth(self->context, "digits", 0, N + TESTS, 8);
    mercer_matrix x = data_matrix(N + TESTS, 784, 0, MERCER_U8);
    int32_t *labels = malloc((N + TESTS) * sizeof *labels);
    assert_non_null(labels);
    mrc_dataset_fetch(data, NULL, 0, &x, NULL, labels);
    int right = 0;
    for (int64_t t = N; t < N + TESTS; t++) {
        int64_t best = INT64_MAX, nearest = 0;
        for (int64_t i = 0; i < N; i++) {
            int64_t sum = 0;
            for (int64_t j = 0; j < 784; j++) {
                int gap = ((uint8_t *)mrc_row(&x, t))[j] - ((uint8_t *)mrc_row(&x, i))[j];
                sum += gap * gap;
            }
            if (sum < best) best = sum, nearest = i;
        }
        right += labels[nearest] == labels[t];
    }
    assert_that(right > TESTS * 0.7 && right < TESTS, "%d of %d right", right, (int)TESTS);
    free(x.data), free(labels);
    mercer_dataset_free(data);
}

static void test_spirals(void **state)
{
    fixture *self = *state;
    enum { N = 6000 };
    mercer_dataset *data = create_synth(self->context, "spirals:classes=3,noise=0", 0, N, 4);
    int64_t counts[3] = {0};
    for (int64_t i = 0; i < N; i++) {
        float x[2];
        int32_t label;
        mercer_matrix row = mrc_view(x, 1, 2, MERCER_F32);
        mrc_dataset_fetch(data, NULL, i, &row, NULL, &label);
        counts[label]++;
        /* The point is on its own spiral: the angle is that of its radius, up to full turns. */
        double radius = hypot((double)x[0], (double)x[1]),
               angle = atan2((double)x[1], (double)x[0]) / 6.283185307179586;
        double turns = angle - 1.25 * radius - label / 3.0;
        assert_that(radius <= 1.000001 && radius * fabs(turns - rint(turns)) < 1e-6, "radius %g, off by %g turns",
                    radius, turns - rint(turns));
    }
    for (int i = 0; i < 3; i++) check_count("a spiral", counts[i], N, 1.0 / 3);
    mercer_dataset_free(data);
}

/* ---- Teacher ------------------------------------------------------------------------------------------------- */

static void check_teacher(mercer_context *context, const char *spec)
{
    enum { N = 2000 };
    mercer_dataset *data = create_synth(context, spec, 0, N, 4);
    const mrc_synth *teacher = data->synth;
    int64_t d = data->features, c = data->outputs, p = teacher->parameters.centers;
    mercer_matrix x = data_matrix(N, d, 0, MERCER_F32), y = data_matrix(N, c, 0, MERCER_F64);
    mrc_dataset_fetch(data, NULL, 0, &x, &y, NULL);
    double *u = malloc((size_t)d * sizeof *u), *v = malloc((size_t)d * sizeof *v), squares = 0, features = 0;
    assert_true(u && v);
    for (int64_t i = 0; i < N; i++) {
        for (int64_t k = 0; k < c; k++) squares += mrc_load(&y, i, k) * mrc_load(&y, i, k);
        mrc_load_row_f64(&x, i, u);
        for (int64_t j = 0; j < d; j++) features += u[j] * u[j];
        if (i >= 20) continue;
        for (int64_t k = 0; k < c; k++) {
            double wanted = 0, size = 0;
            for (int64_t j = 0; j < p; j++) {
                double value;
                for (int64_t l = 0; l < d; l++) v[l] = (double)teacher->z[j * d + l];
                assert_true(mrc_kernel_reference(&teacher->kernel, d, u, v, &value));
                wanted += value * (double)teacher->alpha[j * c + k];
                size += fabs(value * (double)teacher->alpha[j * c + k]);
            }
            /* Distances are float sums of d terms: their error changes a kernel value by at most about d eps. */
            double bound = size * 4 * (double)d * 6e-8 + 1e-12;
            assert_that(fabs(mrc_load(&y, i, k) - wanted) <= bound, "%s: %g, wanted %g +- %g", spec, mrc_load(&y, i, k),
                        wanted, bound);
        }
    }
    double mean = squares / (double)(N * c);
    assert_that(mean > 0.2 && mean < 5, "%s: mean square of the outputs %g", spec, mean);
    assert_that(fabs(features / (double)(N * d) - 1) < 6 * sqrt(2.0 / (double)(N * d)), "features have variance %g",
                features / (double)(N * d));
    free(x.data), free(y.data), free(u), free(v);
    mercer_dataset_free(data);
}

static void test_teacher(void **state)
{
    fixture *self = *state;
    check_teacher(self->context, "teacher:d=20,c=2,centers=50,kernel=gaussian,bandwidth=6");
    check_teacher(self->context, "teacher:d=33,c=1,centers=40");
    check_teacher(self->context, "teacher:d=5,c=8,centers=30,kernel=exppower");
    check_teacher(self->context, "teacher:d=16,c=3,centers=30,kernel=linear");
    check_teacher(self->context, "teacher:d=16,c=3,centers=30,kernel=ntk");
    mercer_dataset *data = create_synth(self->context, "teacher:d=25", 0, 1, 0);
    assert_true(data->synth->kernel.id == MRC_KERNEL_LAPLACE && data->synth->kernel.bandwidth == 5);
    mercer_dataset_free(data);
}

static void test_noise_of_teacher(void **state)
{
    fixture *self = *state;
    enum { N = 4000 };
    mercer_dataset *a = create_synth(self->context, "teacher:d=3,c=2,centers=5", 0, N, 4);
    mercer_dataset *b = create_synth(self->context, "teacher:d=3,c=2,centers=5,noise=0.5", 0, N, 4);
    mercer_matrix x = data_matrix(N, 3, 0, MERCER_F32), ya = data_matrix(N, 2, 0, MERCER_F64),
                  yb = data_matrix(N, 2, 0, MERCER_F64);
    mrc_dataset_fetch(a, NULL, 0, &x, &ya, NULL);
    mrc_dataset_fetch(b, NULL, 0, &x, &yb, NULL);
    double squares = 0, features = 0;
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < 2; j++) {
            double gap = mrc_load(&yb, i, j) - mrc_load(&ya, i, j);
            squares += gap * gap;
            features += gap * mrc_load(&x, i, 0);
        }
    assert_that(fabs(squares / (2 * N) - 0.25) < 0.25 * 6 * sqrt(2.0 / (2 * N)), "variance %g", squares / (2 * N));
    assert_that(fabs(features / (2 * N)) < 0.5 * 6 * sqrt(1.0 / N), "noise goes with a feature: %g",
                features / (2 * N));
    free(x.data), free(ya.data), free(yb.data);
    mercer_dataset_free(a), mercer_dataset_free(b);
}

/* ---- Invalid input ------------------------------------------------------------------------------------------- */

static void test_bad_input(void **state)
{
    fixture *self = *state;
    const struct {
        const char *spec;
        mercer_status status;
        const char *part;
    } bad[] = {{"", MERCER_ERROR_ARGUMENT, "no name"},
               {"digit", MERCER_ERROR_ARGUMENT, "'digits'?"},
               {"digits:nois=1", MERCER_ERROR_ARGUMENT, "'noise'?"},
               {"digits:noise=-1", MERCER_ERROR_ARGUMENT, "noise=-1*range"},
               {"spirals:classes=0", MERCER_ERROR_ARGUMENT, ">= 1"},
               {"spirals:classes=2.5", MERCER_ERROR_ARGUMENT, "whole"},
               {"teacher:d=0", MERCER_ERROR_ARGUMENT, "d=0"},
               {"teacher:kernel=", MERCER_ERROR_ARGUMENT, "no value"},
               {"teacher:kernel=gaussion", MERCER_ERROR_KERNEL, "'gaussian'?"},
               {"teacher:kernel=linear,bandwidth=3", MERCER_ERROR_ARGUMENT, "no bandwidth"},
               {"teacher:bandwidth=0", MERCER_ERROR_ARGUMENT, "> 0"},
               {"mnist", MERCER_ERROR_ARGUMENT, "valid names: digits, spirals, clusters, teacher"}};
    mercer_dataset *out;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        out = (mercer_dataset *)1;
        assert_fails(self->context, mercer_dataset_synthesize(&out, self->context, bad[i].spec, 0, 5, 0), bad[i].status,
                     bad[i].part);
        assert_null(out);
    }
    assert_fails(self->context, mercer_dataset_synthesize(&out, self->context, "digits", 0, 0, 0), MERCER_ERROR_SHAPE,
                 "at least 1");
    assert_fails(self->context, mercer_dataset_synthesize(&out, self->context, "digits", -1, 5, 0), MERCER_ERROR_SHAPE,
                 "-1");
    assert_fails(self->context, mercer_dataset_synthesize(&out, self->context, "digits", INT64_MAX, 5, 0),
                 MERCER_ERROR_SHAPE, "2^63");
    assert_fails(self->context, mercer_dataset_synthesize(&out, self->context, NULL, 0, 5, 0), MERCER_ERROR_ARGUMENT,
                 "spec");
    assert_fails(self->context, mercer_dataset_synthesize(NULL, self->context, "digits", 0, 5, 0),
                 MERCER_ERROR_ARGUMENT, "out");
    assert_fails(NULL, mercer_dataset_synthesize(&out, NULL, "digits", 0, 5, 0), MERCER_ERROR_ARGUMENT, "context");
}

/* Any allocation may fail without leaking memory. */
static void test_failing_allocations(void **state)
{
    fixture *self = *state;
    int64_t live = self->memory.live;
    for (int64_t at = 1;; at++) {
        mercer_dataset *out;
        self->memory.fail_at = self->memory.requests + at;
        mercer_status status = mercer_dataset_synthesize(&out, self->context, "teacher", 0, 5, 0);
        if (status == MERCER_OK) {
            self->memory.fail_at = 0;
            mercer_dataset_free(out);
            assert_true(at > 3);
            break;
        }
        assert_int_equal(status, MERCER_ERROR_MEMORY);
        assert_null(out);
        assert_int_equal(self->memory.live, live);
    }
    assert_int_equal(self->memory.live, live);
}

/* ---- Clusters ------------------------------------------------------------------------------------------------ */

/* Bounds the difference between the error rate of a classifier on n samples and the estimate of its mean: six
   standard deviations, each at most 1 / (2 sqrt(n)). */
static double six_deviations(int64_t n)
{
    return 3 / sqrt((double)n);
}

/* Two clusters of two classes have the error Phi(-|mu_0 - mu_1| / (2 overlap)); half of the randomly redrawn labels
   are wrong. */
static void test_two_clusters(void **state)
{
    fixture *self = *state;
    enum { N = 4000, D = 3 };
    for (int noisy = 0; noisy < 2; noisy++) {
        mercer_dataset *data = create_synth(self->context,
                                            noisy ? "clusters:d=3,classes=2,centers=2,overlap=0.8,noise=0.3"
                                                  : "clusters:d=3,classes=2,centers=2,overlap=0.8",
                                            0, N, 4);
        double gap = 0, error, share = noisy ? 0.3 : 0;
        for (int k = 0; k < D; k++) gap += pow((double)data->synth->z[k] - (double)data->synth->z[D + k], 2);
        double known = (1 - share) * 0.5 * erfc(sqrt(gap) / 1.6 / sqrt(2)) + share / 2;
        assert_succeeds(self->context, mercer_dataset_least_error(data, &error, N));
        assert_that(fabs(error - known) <= six_deviations(N) && known > 0.01 && known < 0.45, "%g, known %g", error,
                    known);
        mercer_dataset_free(data);
    }
}

/* The Bayes rule of the distribution makes as many mistakes as the smallest possible error predicts. */
static void test_best_classifier(void **state)
{
    fixture *self = *state;
    enum { N = 3000, D = 5, K = 4, P = 60 };
    mercer_dataset *data =
        create_synth(self->context, "clusters:d=5,classes=4,centers=60,overlap=0.6,noise=0.1", 7, N, 2);
    float x[D];
    mercer_matrix row = mercer_matrix_view(x, 1, D, MERCER_F32);
    double error;
    int64_t wrong = 0, counts[K] = {0};
    for (int64_t i = 0; i < N; i++) {
        int32_t label;
        double shares[K] = {0};
        mrc_dataset_fetch(data, NULL, i, &row, NULL, &label);
        for (int64_t j = 0; j < P; j++) {
            double square = 0;
            for (int k = 0; k < D; k++) square += pow((double)x[k] - (double)data->synth->z[j * D + k], 2);
            shares[j % K] += exp(-square / (2 * 0.36));
        }
        int best = 0;
        for (int k = 1; k < K; k++)
            if (shares[k] > shares[best]) best = k;
        wrong += best != label;
        counts[label]++;
    }
    assert_succeeds(self->context, mercer_dataset_least_error(data, &error, N));
    assert_that(fabs((double)wrong / N - error) <= six_deviations(N) && error > 0.15 && error < 0.6,
                "%lld of %d wrong, least error %g", (long long)wrong, (int)N, error);
    for (int k = 0; k < K; k++) check_count("class", counts[k], N, 1.0 / K);
    mercer_dataset_free(data);
}

static void test_least_error(void **state)
{
    fixture *self = *state;
    double error = -1;
    mercer_dataset *data = create_synth(self->context, "teacher:d=2,noise=0.5", 0, 5, 1);
    assert_succeeds(self->context, mercer_dataset_least_error(data, &error, 1));
    assert_true(error == 0.25);
    assert_fails(self->context, mercer_dataset_least_error(data, &error, 0), MERCER_ERROR_SHAPE, "rows");
    assert_fails(self->context, mercer_dataset_least_error(data, NULL, 1), MERCER_ERROR_ARGUMENT, "out");
    assert_int_equal(mercer_dataset_least_error(NULL, &error, 1), MERCER_ERROR_ARGUMENT);
    mercer_dataset_free(data);
    data = create_synth(self->context, "digits", 0, 5, 1);
    assert_fails(self->context, mercer_dataset_least_error(data, &error, 1), MERCER_ERROR_UNSUPPORTED, "clusters");
    mercer_dataset_free(data);
    static const struct {
        const char *spec, *says;
    } bad[] = {{"clusters:centers=3,classes=4", "3 centers*4 classes"},
               {"clusters:overlap=0", "overlap"},
               {"clusters:noise=1.5", "noise"}};
    for (int i = 0; i < 3; i++)
        assert_fails(self->context, mercer_dataset_synthesize(&data, self->context, bad[i].spec, 0, 5, 1),
                     MERCER_ERROR_ARGUMENT, bad[i].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_are_functions_of_their_number),
        cmocka_unit_test(test_samples_differ),
        cmocka_unit_test(test_query),
        cmocka_unit_test(test_digits),
        cmocka_unit_test(test_noise_of_digits),
        cmocka_unit_test(test_digits_can_be_classified),
        cmocka_unit_test(test_spirals),
        cmocka_unit_test(test_teacher),
        cmocka_unit_test(test_noise_of_teacher),
        cmocka_unit_test(test_two_clusters),
        cmocka_unit_test(test_best_classifier),
        cmocka_unit_test(test_least_error),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
