/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel functions in float: the entries of MRC_FLOAT_FORMS (kernels/formulas.h). */
#ifndef MRC_BACKENDS_CUDA_DEVICE_FLOAT_FORMS_CUH
#define MRC_BACKENDS_CUDA_DEVICE_FLOAT_FORMS_CUH

#include "kernels/formulas.h"

/* Evaluates the float form of a kernel function, to a few ulp. s: sum of |differences|^p; scale: mrc_float_scale. */
static __device__ __forceinline__ float mrc_float_form(int id, float s, float scale)
{
    float u, decay;
    switch (id) {
#define ARGUMENT_ROOT   sqrtf(s)
#define ARGUMENT_SQUARE s
#define FORM(ID, OF, of_kernel, value) \
    case MRC_KERNEL_##ID: u = ARGUMENT_##OF * scale, decay = expf(-u); return value;
        MRC_FLOAT_FORMS(FORM)
#undef FORM
        default: return NAN; /* unreachable: mrc_float_scale is 0 for other kernels */
    }
}

/* Returns the factor from the argument (sqrt(s) or s) to u; 0 if the kernel has no float form for this bandwidth. */
static inline float mrc_float_scale(const mercer_kernel *k)
{
    if (!(k->bandwidth > 1e-15 && k->bandwidth < 1e15)) return 0;
    switch (k->id) {
#define FORM(ID, OF, of_kernel, value) \
    case MRC_KERNEL_##ID: return (float)(of_kernel);
        MRC_FLOAT_FORMS(FORM)
#undef FORM
        default: return 0;
    }
}

#undef ARGUMENT_ROOT
#undef ARGUMENT_SQUARE

#endif
