/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes of samples on every backend, bitwise for every element: noise, moves and mixtures of rows of every type, in
 * host memory and in the backend's, in place and out of place. The expected values are computed here, one rounding at
 * a time.
 */
#include "core/numbers/changes.h"
#include "core/numbers/half.h"
#include "support/backends.h"
#include "support/data.h"

static const mercer_dtype dtypes[] = {MERCER_F64, MERCER_F32, MERCER_F16, MERCER_U8};
enum { H = 5, W = 7, C = 3, M = 9, D = H * W * C };

static mercer_matrix filled(mercer_dtype dtype, uint64_t stream)
{
    mercer_matrix out = data_matrix(M, D, D + 3, dtype);
    if (dtype == MERCER_U8)
        data_fill_uniform(&out, (mrc_rng){77, stream}, 0, 255);
    else
        data_fill_normal(&out, (mrc_rng){77, stream}, 0.5, 2);
    set_sentinels(&out);
    return out;
}

/* Return a b + c d, each operation rounded as on the backends: in double for f64, else in float, then to the type. */
static double combine(mercer_dtype dtype, double a, double b, double c, double d)
{
    if (dtype == MERCER_F64) {
        volatile double first = a * b, second = c * d, sum = first + second;
        return sum;
    }
    volatile float first = (float)a * (float)b, second = (float)c * (float)d, sum = first + second;
    if (dtype == MERCER_F16) return (double)mrc_half_to_float(mrc_half_from_float(sum));
    if (dtype == MERCER_F32) return (double)sum;
    volatile float shifted = sum + 0.5f;
    return floor(fmin(255, fmax(0, (double)shifted)));
}

typedef struct changing {
    mrc_change change;
    mercer_matrix from, other;
    const float *normals; /* (M, D) normal deviates of the noise, borrowed */
} changing;

static double wanted(const changing *job, int64_t i, int64_t j)
{
    const mrc_change *change = &job->change;
    double x = mrc_load(&job->from, i, j);
    if (change->kind == MRC_CHANGE_NOISE)
        return combine(job->from.dtype, 1, x, change->sigma, (double)job->normals[i * D + j]);
    if (change->kind == MRC_CHANGE_MIX)
        return combine(job->from.dtype, change->shares[i], x, 1 - change->shares[i], mrc_load(&job->other, i, j));
    mrc_image_move move = change->moves[i];
    int64_t row = j / (W * C) - move.down, column = j / C % W - move.right;
    if (row < 0 || row >= H || column < 0 || column >= W) return 0;
    return mrc_load(&job->from, i, (row * W + (move.mirrored ? W - 1 - column : column)) * C + j % C);
}

/* Check a change out of place (way 0), in place in host memory (way 1) and in place in the backend's memory (way 2). */
static void check(mrc_backend *backend, const changing *job, const char *what)
{
    const mercer_matrix *from = &job->from;
    mercer_matrix on_device, partner;
    MRC_SCOPE(scope, backend->context);
    assert_succeeds(backend->context, mrc_scope_matrix(&scope, backend, &on_device, M, D, from->dtype, "rows"));
    assert_succeeds(backend->context, mrc_scope_matrix(&scope, backend, &partner, M, D, from->dtype, "rows"));
    for (int way = 0; way < 3; way++) {
        bool in_place = way > 0;
        if (in_place && job->change.kind == MRC_CHANGE_MOVE) continue;
        mercer_matrix to = filled(from->dtype, 9);
        if (in_place)
            for (int64_t i = 0; i < M; i++)
                memcpy(mrc_row(&to, i), mrc_row(from, i), (size_t)(D * mrc_dtype_size(from->dtype)));
        if (way < 2) {
            assert_succeeds(backend->context,
                            backend->ops->change_rows(backend, &job->change, &to, in_place ? &to : from, &job->other));
        } else {
            assert_succeeds(backend->context, backend->ops->copy(backend, &on_device, &to));
            assert_succeeds(backend->context, backend->ops->copy(backend, &partner, &job->other));
            assert_succeeds(backend->context,
                            backend->ops->change_rows(backend, &job->change, &on_device, &on_device, &partner));
            assert_succeeds(backend->context, backend->ops->copy(backend, &to, &on_device));
        }
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < D; j++)
                assert_that(mrc_load(&to, i, j) == wanted(job, i, j),
                            "%s, %s, way %d, row %d, column %d: %.17g, not %.17g", what, mrc_dtype_name(from->dtype),
                            way, (int)i, (int)j, mrc_load(&to, i, j), wanted(job, i, j));
        assert_true(sentinels_intact(&to));
        free(to.data);
    }
}

static void change_on(mrc_backend *backend)
{
    static const double shares[M] = {0, 1, 0.5, 0.25, 0.999999, 1e-9, 0.3333333333333333, 0.71, 0.123456789};
    static const mrc_image_move moves[M] = {{0, 0, 0}, {2, 0, 0},   {-2, 1, 0}, {0, -4, 0}, {6, 4, 0},
                                            {0, 0, 1}, {-3, -1, 1}, {1, 2, 1},  {-6, 0, 1}};
    static const int64_t sequences[M] = {0, 1, 7, INT64_C(3) << 40 ^ 5, 2, 2, INT64_MAX, 9, 10};
    mrc_normal_table table;
    float normals[M * D];
    mrc_normal_table_init(&table);
    const uint64_t seed = UINT64_C(0xfedcba9876543210), first = UINT64_C(2) << 32;
    for (int64_t i = 0; i < M; i++)
        mrc_random_normals(&table, (mrc_rng){seed, (uint64_t)sequences[i]}, first, D, normals + i * D);
    for (int t = 0; t < 4; t++) {
        changing job = {.from = filled(dtypes[t], 1), .other = filled(dtypes[t], 2), .normals = normals};
        double sigma = dtypes[t] == MERCER_U8 ? 43.21 : 0.1;
        job.change = (mrc_change){.kind = MRC_CHANGE_NOISE,
                                  .normals = &table,
                                  .seed = seed,
                                  .first = first,
                                  .sequences = sequences,
                                  .sigma = dtypes[t] == MERCER_F64 ? sigma : (double)(float)sigma};
        check(backend, &job, "noise");
        job.change = (mrc_change){.kind = MRC_CHANGE_MOVE, .image = {H, W, C}, .moves = moves};
        check(backend, &job, "move");
        job.change = (mrc_change){.kind = MRC_CHANGE_MIX, .shares = shares};
        check(backend, &job, "mix");
        mercer_matrix none = mrc_rows(&job.from, 0, 0);
        assert_succeeds(backend->context, backend->ops->change_rows(backend, &job.change, &none, &none, &none));
        free(job.from.data), free(job.other.data);
    }
}

static void test_backends(void **state)
{
    (void)state;
    for_each_backend(change_on);
}

/* Devices and the host move each element from the same source index. */
static void test_moved_from(void **state)
{
    (void)state;
    int64_t from[D], to[D];
    for (int64_t j = 0; j < D; j++) from[j] = j + 1;
    for (int32_t right = 1 - W; right < W; right++)
        for (int32_t down = 1 - H; down < H; down++)
            for (int32_t mirrored = 0; mirrored < 2; mirrored++) {
                mrc_image_move move = {right, down, mirrored};
                mrc_image_shape image = {H, W, C};
                memset(to, 0xff, sizeof to);
                mrc_move_row(to, from, sizeof *to, image, move);
                for (int64_t j = 0; j < D; j++) assert_int_equal(to[j], mrc_moved_from(image, move, j) + 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_backends), cmocka_unit_test(test_moved_from)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
