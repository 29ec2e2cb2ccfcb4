/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kernel functions, and the check, the properties and the value of a kernel. */
#include "kernels/kernel.h"

#include "kernels/formulas.h"
#include "kernels/table.h"

#include <string.h>

#define ON_DISTANCE    MRC_ON_DISTANCE, false
#define ON_DIFFERENCES MRC_ON_DIFFERENCES, false
#define ON_INNER       MRC_ON_INNER, false
#define ON_ANGLE       MRC_ON_INNER, true
#define ROW(ID, definition, ARGUMENT, name, example, ...) \
    {{name, example, {__VA_ARGS__}}, MRC_KERNEL_##ID, ON_##ARGUMENT},
const mrc_kernel_entry mrc_kernel_table[] = {MRC_KERNELS(ROW)};
const int mrc_kernel_table_size = MRC_KERNEL_END - 1;
_Static_assert((int)MRC_KERNEL_END <= (int)MERCER_KERNEL_CALLBACK_DISTANCE, "ids of kernels and callbacks must differ");

const mrc_kernel_entry *mrc_kernel_find(int32_t id)
{
    return id > 0 && id < MRC_KERNEL_END ? &mrc_kernel_table[id - 1] : NULL;
}

const mrc_kernel_entry *mrc_kernel_named(const char *spec)
{
    size_t length = strcspn(spec, ":");
    for (int i = 0; i < mrc_kernel_table_size; i++) {
        const char *name = mrc_kernel_table[i].form.name;
        if (strlen(name) == length && strncmp(name, spec, length) == 0) return &mrc_kernel_table[i];
    }
    return NULL;
}

mercer_status mrc_kernel_check_powers(mercer_context *context, const mercer_kernel *kernel)
{
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    if (!mrc_spec_parameter(&entry->form, "q") || kernel->q <= kernel->p) return MERCER_OK;
    return mrc_fail(context, MERCER_ERROR_KERNEL,
                    "kernel %s: q is %g; it must be > 0 and <= p = %g, else the kernel is not positive definite",
                    entry->form.name, kernel->q, kernel->p);
}

mercer_status mrc_kernel_check(mercer_context *context, const mercer_kernel *kernel)
{
    if (!kernel) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "kernel is NULL");
    if (mrc_kernel_is_callback(kernel)) {
        if (!kernel->callback) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "kernel: the callback is NULL");
        if (kernel->p >= 0 && kernel->p <= 2) return MERCER_OK;
        return mrc_fail(context, MERCER_ERROR_KERNEL, "kernel: p is %g; it must be > 0 and <= 2 (0: 2)", kernel->p);
    }
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    if (!entry)
        return mrc_fail(context, MERCER_ERROR_KERNEL,
                        "kernel: id %d is not a kernel function; fill the struct with mercer_kernel_parse",
                        (int)kernel->id);
    for (int i = 0; i < MRC_SPEC_PARAMETERS && entry->form.parameters[i].name; i++) {
        const mrc_parameter *parameter = &entry->form.parameters[i];
        double value = mrc_parameter_get(kernel, parameter);
        if (mrc_parameter_valid(parameter, value)) continue;
        char range[96];
        mrc_parameter_range(parameter, range, sizeof range);
        return mrc_fail(context, MERCER_ERROR_KERNEL, "kernel %s: %s is %g; it must be %s", entry->form.name,
                        parameter->name, value, range);
    }
    return mrc_kernel_check_powers(context, kernel);
}

/* ---- Properties ---------------------------------------------------------------------------------------------- */

bool mrc_kernel_is_callback(const mercer_kernel *kernel)
{
    return kernel->id == MERCER_KERNEL_CALLBACK_DISTANCE || kernel->id == MERCER_KERNEL_CALLBACK_INNER;
}

double mrc_kernel_norm(const mercer_kernel *kernel)
{
    if (kernel->id == MERCER_KERNEL_CALLBACK_DISTANCE) return kernel->p > 0 ? kernel->p : 2;
    const mrc_kernel_entry *entry = mrc_kernel_find(mrc_kernel_base(kernel->id));
    if (!entry || entry->argument == MRC_ON_INNER) return 0;
    if (entry->argument == MRC_ON_DISTANCE) return 2;
    return mrc_spec_parameter(&entry->form, "p") ? kernel->p : 1;
}

mrc_argument mrc_kernel_argument(const mercer_kernel *kernel)
{
    double norm = mrc_kernel_norm(kernel);
    return norm > 0 ? norm < 2 ? MRC_ON_DIFFERENCES : MRC_ON_DISTANCE : MRC_ON_INNER;
}

bool mrc_kernel_is_stationary(const mercer_kernel *kernel)
{
    return mrc_kernel_norm(kernel) > 0;
}

int32_t mrc_kernel_base(int32_t id)
{
    return id > MRC_SLOPES && id < MRC_SLOPES + MRC_KERNEL_END ? id - MRC_SLOPES : id;
}

bool mrc_kernel_slope(const mercer_kernel *kernel, mercer_kernel *slope)
{
    const double norm = mrc_kernel_norm(kernel);
    if (!mrc_kernel_find(kernel->id) || (norm != 1 && norm != 2)) return false;
    *slope = *kernel;
    slope->id = MRC_SLOPES + kernel->id;
    return true;
}

bool mrc_kernel_is_angular(const mercer_kernel *kernel)
{
    const mrc_kernel_entry *entry = mrc_kernel_find(kernel->id);
    return entry && entry->angular;
}

/* ---- Values -------------------------------------------------------------------------------------------------- */

double mrc_difference_power(double norm, double difference)
{
    return mrc_power(fabs(difference), norm);
}

double mrc_norm_root(double norm, double sum)
{
    return norm == 2 ? sqrt(sum) : norm == 1 ? sum : pow(sum, 1 / norm);
}

double mrc_kernel_of_distance(const mercer_kernel *kernel, double sum)
{
    return mrc_formula_of_distance(kernel, sum);
}

double mrc_kernel_of_inner(const mercer_kernel *kernel, double dot, double x_sqnorm, double z_sqnorm)
{
    return mrc_formula_of_inner(kernel, dot, x_sqnorm, z_sqnorm);
}

bool mrc_kernel_reference(const mercer_kernel *kernel, int64_t d, const double *x, const double *z, double *out)
{
    const double norm = mrc_kernel_norm(kernel);
    double sum = 0, dot = 0, xx = 0, zz = 0;
    for (int64_t k = 0; k < d; k++) {
        if (norm > 0) sum += mrc_difference_power(norm, x[k] - z[k]);
        dot += x[k] * z[k];
        xx += x[k] * x[k];
        zz += z[k] * z[k];
    }
    bool on_distance = norm > 0;
    if (!mrc_kernel_is_callback(kernel)) {
        *out = on_distance ? mrc_kernel_of_distance(kernel, sum) : mrc_kernel_of_inner(kernel, dot, xx, zz);
        return true;
    }
    double value = on_distance ? mrc_norm_root(norm, sum) : dot;
    mercer_kernel_block block = {sizeof block, 1, 1, 1, &value, on_distance ? NULL : &xx, on_distance ? NULL : &zz};
    if (kernel->callback(kernel->callback_user, &block)) return false;
    *out = value;
    return true;
}
