/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains a kernel model with all options at their defaults, on Friedman's regression problem with five features:
 *
 *   y = 10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 + noise of standard deviation 1,    x uniform in [0, 1]^5
 */
#include <mercer/advanced.h>

#include <math.h>
#include <stdio.h>

enum { SAMPLES = 8000, TESTS = 2000, CENTERS = 400, FEATURES = 5 };

static double x[SAMPLES + TESTS][FEATURES], y[SAMPLES + TESTS], f[TESTS];

/* Return a uniform number in [0, 1). A small generator defined here makes the output the same on every platform. */
static double uniform(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) * 0x1p-53;
}

static double noise(void)
{
    double sum = -6; /* the sum of twelve uniform numbers has mean 6 and variance 1 */
    for (int i = 0; i < 12; i++) sum += uniform();
    return sum;
}

/* Fill training and test data. Only training targets have noise, so the test error is the error of the model. */
static void make_data(void)
{
    for (int i = 0; i < SAMPLES + TESTS; i++) {
        for (int k = 0; k < FEATURES; k++) x[i][k] = uniform();
        y[i] = 10 * sin(3.14159265358979323846 * x[i][0] * x[i][1]) + 20 * (x[i][2] - 0.5) * (x[i][2] - 0.5) +
               10 * x[i][3] + 5 * x[i][4] + (i < SAMPLES ? noise() : 0);
    }
}

static mercer_status train(mercer_model *model, const mercer_source *samples, mercer_report *report)
{
    mercer_trainer *trainer;
    mercer_plan plan = MERCER_INIT(mercer_plan);
    mercer_status status = mercer_trainer_create(&trainer, model, NULL, NULL);
    if (status == MERCER_OK) status = mercer_trainer_plan(trainer, &plan, samples);
    if (status == MERCER_OK) printf("the plan for %d samples and %d centers:\n%s\n", SAMPLES, CENTERS, plan.text);
    if (status == MERCER_OK) status = mercer_trainer_fit(trainer, samples, report);
    mercer_trainer_free(trainer);
    return status;
}

static mercer_status run(mercer_context *context, mercer_model **model, mercer_source *samples)
{
    mercer_matrix X = mercer_matrix_view(x, SAMPLES, FEATURES, MERCER_F64), Z = X;
    mercer_matrix Y = mercer_matrix_view(y, SAMPLES, 1, MERCER_F64), F = mercer_matrix_view(f, TESTS, 1, MERCER_F64);
    mercer_matrix T = mercer_matrix_view(x[SAMPLES], TESTS, FEATURES, MERCER_F64);
    mercer_kernel kernel;
    mercer_report report = {.struct_size = sizeof report};
    mercer_dataset_arrays arrays = {.struct_size = sizeof arrays, .X = &X, .Y = &Y};
    double sum = 0;
    Z.rows = CENTERS; /* the first samples are the centers; any points would work */
    mercer_status status = mercer_kernel_parse(&kernel, context, "matern52:bandwidth=2");
    if (!status) status = mercer_model_create(model, context, NULL, &kernel, &Z, 1, MERCER_F64);
    if (!status) status = mercer_source_from_arrays(samples, context, &arrays, 1);
    if (!status) status = train(*model, samples, &report);
    if (!status) status = mercer_model_predict(*model, &F, &T);
    for (int i = 0; !status && i < TESTS; i++) sum += (f[i] - y[SAMPLES + i]) * (f[i] - y[SAMPLES + i]);
    if (!status)
        printf("trained by %s in %.2f s, at most %.1f MB held\nerror on %d test points without noise: %.3f\n",
               report.plan->solver, report.seconds, 1e-6 * (double)report.peak_bytes, TESTS, sqrt(sum / TESTS));
    return status;
}

int main(void)
{
    mercer_context *context = NULL;
    mercer_model *model = NULL;
    mercer_source samples = {0};
    make_data();
    mercer_status status = mercer_context_create(&context, NULL);
    if (!status) status = run(context, &model, &samples);
    if (status) fprintf(stderr, "%s: %s\n", mercer_status_string(status), mercer_last_error(context));
    mercer_source_free(&samples);
    mercer_model_free(model);
    mercer_context_free(context);
    return status ? 1 : 0;
}
