/* SPDX-License-Identifier: BSD-3-Clause */
/* Every backend implements every kernel function and rejects unknown ones instead of computing a different function. */
#include "support/backends.h"

#include "kernels/formulas.h"
#include "kernels/table.h"

enum { M = 3, P = 2, D = 2 };

/* This test needs no device, because knows_kernel is implemented by host code. */
static void test_all_kernels_are_known(void **state)
{
    (void)state;
    for (int b = 0; mrc_backend_registry[b]; b++)
        for (int k = 0; k < mrc_kernel_table_size; k++) {
            const mrc_backend_ops *ops = mrc_backend_registry[b];
            assert_that(!ops->knows_kernel || ops->knows_kernel((int32_t)mrc_kernel_table[k].id),
                        "backend %s does not know kernel %s", ops->name, mrc_kernel_table[k].form.name);
        }
}

static void test_no_backend_knows_others(void **state)
{
    (void)state;
    static const int32_t strange[] = {-1, 0, 99, 1000, INT32_MAX};
    for (int b = 0; mrc_backend_registry[b]; b++)
        for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
            const mrc_backend_ops *ops = mrc_backend_registry[b];
            if (mrc_kernel_find(strange[i])) continue;
            assert_false(ops->knows_kernel && ops->knows_kernel(strange[i]));
        }
}

/* Check that all kernel operations reject `kernel` with `part` in the message and leave their outputs unchanged. */
static void refuse_all(mrc_backend *backend, const mercer_kernel *kernel, const char *part)
{
    const mrc_backend_ops *ops = backend->ops;
    double points[] = {0, 1, 2, 3, 4, 5}, weights[] = {1, 1, 1}, values[M * P] = {7, 7, 7, 7, 7, 7};
    mercer_matrix x = mrc_view(points, M, D, MERCER_F64), z = mrc_view(points, P, D, MERCER_F64);
    mercer_matrix w = mrc_view(weights, P, 1, MERCER_F64), g = mrc_view(weights, M, 1, MERCER_F64);
    mercer_matrix y = mrc_view(values, M, 1, MERCER_F64), h = mrc_view(values, P, 1, MERCER_F64);
    mercer_matrix k = mrc_view(values, M, P, MERCER_F64);
    mrc_pair pair = {.kernel = kernel, .x = &x, .z = &z};
    mrc_cached_block nothing = {0};
    mercer_context *context = backend->context;
    assert_fails(context, ops->kernel_matmul(backend, &pair, &w, &y, false), MERCER_ERROR_UNSUPPORTED, part);
    assert_fails(context, ops->kernel_forward(backend, &pair, &w, &y, &nothing), MERCER_ERROR_UNSUPPORTED, part);
    assert_fails(context, ops->kernel_transpose(backend, &pair, &g, &h, &nothing), MERCER_ERROR_UNSUPPORTED, part);
    assert_fails(context, ops->kernel_eval(backend, &pair, &k), MERCER_ERROR_UNSUPPORTED, part);
    assert_fails(context, ops->kernel_diagonal(backend, kernel, &x, &y), MERCER_ERROR_UNSUPPORTED, part);
    for (int i = 0; i < M * P; i++) assert_true(values[i] == 7);
}

static void refuse_a_strange_id(mrc_backend *backend)
{
    const mercer_kernel strange = {.id = 99, .bandwidth = 1};
    refuse_all(backend, &strange, "id 99");
}

static bool knows_gaussian_alone(int32_t id)
{
    return id == MRC_KERNEL_GAUSSIAN;
}

/* Check that a kernel which only other backends implement is rejected with its name in the message. */
static void refuse_by_name(mrc_backend *backend)
{
    const mercer_kernel laplace = {.id = MRC_KERNEL_LAPLACE, .bandwidth = 1};
    mrc_backend_ops fewer = *backend->ops;
    const mrc_backend_ops *all = backend->ops;
    fewer.knows_kernel = knows_gaussian_alone;
    backend->ops = &fewer;
    refuse_all(backend, &laplace, "kernel laplace");
    backend->ops = all;
}

static void test_strange_ids_are_refused(void **state)
{
    (void)state;
    for_each_backend(refuse_a_strange_id);
}

static void test_missing_kernels_are_refused(void **state)
{
    (void)state;
    for_each_backend(refuse_by_name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_kernels_are_known),
        cmocka_unit_test(test_no_backend_knows_others),
        cmocka_unit_test(test_strange_ids_are_refused),
        cmocka_unit_test(test_missing_kernels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
