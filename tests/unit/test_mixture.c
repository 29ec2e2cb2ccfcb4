/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mixtures of products against the kernels' definitions. The stated error bound must hold at arguments between those
 * that it was computed at, and at 0 and infinity; rounding of a sum of up to 400 positive terms with sum 1 adds at most
 * 400 * 2^-52 < 1e-13.
 */
#include "support/check.h"

#include "explain/mixture.h"
#include "kernels/table.h"

#include <math.h>

static double mixture_at(const mrc_mixture *mixture, double s)
{
    double sum = 0;
    for (int64_t i = 0; i < mixture->count; i++) sum += mixture->weight[i] * exp(-mixture->rate[i] * s);
    return sum;
}

static void check_kernel(mercer_context *context, const char *spec, double most)
{
    mercer_kernel kernel;
    mrc_mixture mixture = {0};
    MRC_SCOPE(scope, context);
    assert_succeeds(context, mrc_kernel_parse(context, &kernel, spec));
    assert_succeeds(context, mrc_mixture_find(&mixture, &scope, &kernel));
    assert_that(mixture.error <= most, "%s: bound %g with %d terms, wanted %g", spec, mixture.error, (int)mixture.count,
                most);
    double scale = pow(kernel.bandwidth, mrc_kernel_norm(&kernel)), worst = fabs(mixture_at(&mixture, 0) - 1);
    for (int64_t i = 0; i < mixture.count; i++) {
        assert_true(mixture.weight[i] > 0);
        assert_true(i == 0 || mixture.rate[i] > mixture.rate[i - 1]);
    }
    for (double u = -150; u < 80; u += 0.0137) {
        double s = scale * exp(u);
        worst = fmax(worst, fabs(mixture_at(&mixture, s) - mrc_kernel_of_distance(&kernel, s)));
    }
    assert_that(worst <= mixture.error + 1e-13, "%s: error %g, bound %g", spec, worst, mixture.error);
}

static void test_errors(void **state)
{
    mercer_context *context = *state;
    static const char *const products[] = {"gaussian:bandwidth=3",         "laplace-l1:bandwidth=0.2",
                                           "exppower:bandwidth=3,gamma=2", "exppower-l1:bandwidth=3,gamma=1",
                                           "lpq:p=1.5,q=1.5,bandwidth=7",  "lpq:p=0.5,q=0.5,bandwidth=2"};
    static const char *const mixtures[] = {"laplace:bandwidth=10",
                                           "matern32:bandwidth=8",
                                           "matern52:bandwidth=0.1",
                                           "cauchy:bandwidth=2",
                                           "rational-quadratic:bandwidth=3,alpha=5",
                                           "rational-quadratic:bandwidth=10,alpha=0.9",
                                           "lpq:p=1.5,q=0.8,bandwidth=12",
                                           "lpq:p=2,q=1.9,bandwidth=2"};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) check_kernel(context, products[i], 0);
    for (size_t i = 0; i < sizeof mixtures / sizeof *mixtures; i++) check_kernel(context, mixtures[i], 5e-10);
    for (double gamma = 0.35; gamma < 2; gamma += 0.23) {
        char spec[80];
        snprintf(spec, sizeof spec, "exppower:bandwidth=5,gamma=%g", gamma);
        check_kernel(context, spec, 5e-10);
        snprintf(spec, sizeof spec, "exppower-l1:bandwidth=5,gamma=%g", gamma / 2);
        check_kernel(context, spec, 5e-10);
    }
    check_kernel(context, "exppower-l1:bandwidth=5,gamma=0.99", 5e-10);
}

static void test_refusals(void **state)
{
    mercer_context *context = *state;
    static const struct {
        const char *spec, *message;
    } cases[] = {{"linear", "kernel linear: *Shapley"},
                 {"ntk:depth=2", "kernel ntk"},
                 {"polynomial:degree=2", "kernel polynomial"},
                 {"exppower:bandwidth=1,gamma=0.001", "kernel exppower: *mixture"},
                 {"rational-quadratic:bandwidth=1,alpha=0.001", "within 1e-8"},
                 {"gaussian:bandwidth=1e-200", "bandwidth*range"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_kernel kernel;
        mrc_mixture mixture = {0};
        MRC_SCOPE(scope, context);
        assert_succeeds(context, mrc_kernel_parse(context, &kernel, cases[i].spec));
        assert_fails(context, mrc_mixture_find(&mixture, &scope, &kernel), MERCER_ERROR_UNSUPPORTED, cases[i].message);
    }
}

static int open_context(void **state)
{
    mercer_context *context = NULL;
    mercer_context_options options = MERCER_INIT(mercer_context_options);
    options.threads = 1;
    mercer_status status = mercer_context_create(&context, &options);
    *state = context;
    return status != MERCER_OK;
}

static int close_context(void **state)
{
    mercer_context_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
