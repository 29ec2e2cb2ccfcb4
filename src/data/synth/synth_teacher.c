/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of a teacher, that is, of a known kernel model with noise:
 *
 *   y = K(x, Z*) alpha* + noise N(0, 1),   x ~ N(0, I)
 *
 * x (d); Z* (P, d), distributed like x; alpha* (P, c), independent normal numbers, scaled so that outputs have mean
 * square 1 over x. The bandwidth of K is sqrt(d) by default, similar to the distances between samples. Outputs are
 * regression targets.
 *
 * Cost: O(P d) per sample. Distances are sums of float squares in LANES partial sums; kernel values are double.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/synth/synth_kinds.h"
#include "kernels/table.h"

#include <math.h>
#include <string.h>

/* LANES: partial sums of a distance. OUTPUTS: outputs that are computed in one pass over the centers. PROBES: number of
   samples from which the mean square of K is estimated. */
enum { LANES = 16, OUTPUTS = 64, PROBES = 64 };

/* Sequence numbers for the teacher's random numbers. They count down from the largest number; those of the samples
   count up from 0. */
#define RANDOM_CENTERS UINT64_MAX
#define RANDOM_WEIGHTS (UINT64_MAX - 1)
#define RANDOM_PROBES  (UINT64_MAX - 2)

/* Returns K(x, z) for a kernel whose distance is not Euclidean. */
static double difference_value(const mrc_synth *self, const float *x, const float *z)
{
    double norm = mrc_kernel_norm(&self->kernel), sum = 0;
    for (int64_t k = 0; k < self->parameters.d; k++) sum += mrc_difference_power(norm, (double)x[k] - (double)z[k]);
    return mrc_kernel_of_distance(&self->kernel, sum);
}

/* Returns K(x, z). */
static double kernel_value(const mrc_synth *self, const float *x, const float *z)
{
    if (mrc_kernel_argument(&self->kernel) == MRC_ON_DIFFERENCES) return difference_value(self, x, z);
    float gaps[LANES] = {0}, products[LANES] = {0}, xx[LANES] = {0}, zz[LANES] = {0};
    int64_t d = self->parameters.d, whole = d / LANES * LANES;
    for (int64_t first = 0; first < whole; first += LANES)
        for (int j = 0; j < LANES; j++) {
            float a = x[first + j], b = z[first + j];
            gaps[j] += (a - b) * (a - b), products[j] += a * b;
            xx[j] += a * a, zz[j] += b * b;
        }
    for (int64_t j = 0; j < d - whole; j++) {
        float a = x[whole + j], b = z[whole + j];
        gaps[j] += (a - b) * (a - b), products[j] += a * b;
        xx[j] += a * a, zz[j] += b * b;
    }
    double gap = 0, product = 0, x_square = 0, z_square = 0;
    for (int j = 0; j < LANES; j++) {
        gap += (double)gaps[j], product += (double)products[j];
        x_square += (double)xx[j], z_square += (double)zz[j];
    }
    if (mrc_kernel_is_stationary(&self->kernel)) return mrc_kernel_of_distance(&self->kernel, gap);
    return mrc_kernel_of_inner(&self->kernel, product, x_square, z_square);
}

/* Computes outputs first .. first + count - 1 at x, without noise. */
static void teach(const mrc_synth *self, const float *x, int64_t first, int64_t count, double out[OUTPUTS])
{
    int64_t c = self->parameters.c;
    memset(out, 0, OUTPUTS * sizeof *out);
    for (int64_t j = 0; j < self->parameters.centers; j++) {
        double value = kernel_value(self, x, self->z + j * self->parameters.d);
        for (int64_t k = 0; k < count; k++) out[k] += value * (double)self->alpha[j * c + first + k];
    }
}

int32_t mrc_synth_teach(const mrc_synth *self, int64_t index, void *features, const mercer_matrix *y, int64_t row)
{
    const mrc_synth_parameters *given = &self->parameters;
    mrc_rng rng = {self->seed, (uint64_t)index};
    mrc_random_normals(&self->normals, rng, 0, given->d, features);
    uint64_t noise_from = (uint64_t)mrc_round_up(given->d, 4);
    for (int64_t first = 0; y && first < given->c; first += OUTPUTS) {
        int64_t count = mrc_min(OUTPUTS, given->c - first);
        double values[OUTPUTS];
        float noise[OUTPUTS];
        teach(self, features, first, count, values);
        mrc_random_normals(&self->normals, rng, noise_from + (uint64_t)first, count, noise);
        for (int64_t k = 0; k < count; k++) mrc_store(y, row, first + k, values[k] + given->noise * (double)noise[k]);
    }
    return 0;
}

bool mrc_synth_teacher(const mrc_synth *self, mrc_teacher *out)
{
    if (self->kind->sample != mrc_synth_teach) return false;
    *out = (mrc_teacher){.kernel = self->kernel,
                         .z = self->z,
                         .alpha = self->alpha,
                         .centers = self->parameters.centers,
                         .noise = self->parameters.noise,
                         .seed = self->seed,
                         .normals = &self->normals};
    return true;
}

/* Sets every parameter of the kernel: the bandwidth is given or sqrt(d); other parameters have their default, or 1 if
   there is none. */
static mercer_status choose_kernel(mercer_context *context, mrc_synth *self)
{
    mrc_synth_parameters *given = &self->parameters;
    const char *name = given->kernel[0] ? given->kernel : "laplace";
    const mrc_kernel_entry *entry = mrc_kernel_named(name);
    if (!entry || strchr(name, ':')) /* fails for unknown names, with a message that lists the valid ones */
        return mrc_kernel_parse(context, &self->kernel, name);
    if (!mrc_spec_parameter(&entry->form, "bandwidth") && given->bandwidth > 0)
        return mrc_fail(context, MERCER_ERROR_ARGUMENT,
                        "synthetic data teacher: kernel %s has no bandwidth; use a kernel with a bandwidth", name);
    if (given->bandwidth == 0) given->bandwidth = sqrt((double)given->d);
    self->kernel = (mercer_kernel){.id = entry->id};
    for (int i = 0; i < MRC_SPEC_PARAMETERS && entry->form.parameters[i].name; i++) {
        const mrc_parameter *parameter = &entry->form.parameters[i];
        double value = parameter->required ? 1 : parameter->fallback;
        if (strcmp(parameter->name, "bandwidth") == 0) value = given->bandwidth;
        mrc_parameter_set(&self->kernel, parameter, value);
    }
    return mrc_kernel_check(context, &self->kernel);
}

/* Returns 1 / sqrt(P E[K(x, z)^2]): with weights of this size, outputs have mean square 1. The mean is over PROBES
   samples; x (d) is scratch space. */
static double weight_size(const mrc_synth *self, float *x)
{
    const mrc_synth_parameters *given = &self->parameters;
    double sum = 0;
    for (uint64_t i = 0; i < PROBES; i++) {
        uint64_t from = i * (uint64_t)mrc_round_up(given->d, 4);
        mrc_random_normals(&self->normals, (mrc_rng){self->seed, RANDOM_PROBES}, from, given->d, x);
        for (int64_t j = 0; j < given->centers; j++) {
            double value = kernel_value(self, x, self->z + j * given->d);
            sum += value * value;
        }
    }
    return sum > 0 ? 1 / sqrt(sum / PROBES) : 1;
}

mercer_status mrc_synth_prepare_teacher(mercer_dataset *dataset, mrc_synth *self)
{
    mercer_context *context = dataset->context;
    const mrc_synth_parameters *given = &self->parameters;
    int64_t p = given->centers, points = p * given->d, weights = p * given->c;
    MRC_TRY(choose_kernel(context, self));
    /* The last row of z is scratch space for weight_size. */
    MRC_TRY(mrc_alloc(context, &self->z, points + given->d, sizeof *self->z, "the teacher's centers"));
    MRC_TRY(mrc_alloc(context, &self->alpha, weights, sizeof *self->alpha, "the teacher's weights"));
    mrc_random_normals(&self->normals, (mrc_rng){self->seed, RANDOM_CENTERS}, 0, points, self->z);
    mrc_random_normals(&self->normals, (mrc_rng){self->seed, RANDOM_WEIGHTS}, 0, weights, self->alpha);
    float size = (float)weight_size(self, self->z + points);
    for (int64_t i = 0; i < weights; i++) self->alpha[i] *= size;
    dataset->features = given->d;
    dataset->outputs = given->c;
    return MERCER_OK;
}
