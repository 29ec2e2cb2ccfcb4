/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is decided of a fused product before its loops: arithmetic, sizes of panels, form of the kernel function, and
 * whether X has so few rows that centers are read where they lie instead of being packed (tile.h).
 */
#include "backends/cpu/tile.h"

#include "backends/cpu/cpu.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Panels must fill tiles and blocks exactly: said here once for every row of the list. */
#define MRC_UK_GEMM_F32(isa, name, mr, nr) \
    _Static_assert(MRC_TILE_CENTERS % (mr) == 0 && MRC_BLOCK_ROWS % (nr) == 0, #name);
#define MRC_UK_GEMM_F64                         MRC_UK_GEMM_F32
#define MRC_UK_DOT_U8(isa, name, mr, nr, group) MRC_UK_GEMM_F32(isa, name, mr, nr)
#define MRC_UK_FEW_F32(isa, name, lanes)        _Static_assert(MRC_TILE_CENTERS % (lanes) == 0, #name);
#define MRC_UK_FEW_F64                          MRC_UK_FEW_F32
#define MRC_UK_ROWS(isa, dots, sums, group, strip)
#define MRC_UK_PANEL(isa, name)
#include "backends/cpu/micro/ukernels.inc"

static mrc_map map_for(const mercer_kernel *kernel)
{
    double b = kernel->bandwidth;
    switch (kernel->id) {
        case MERCER_KERNEL_LAPLACE: return (mrc_map){.kind = MRC_MAP_LAPLACE, .a = (float)(-1 / b)};
        case MERCER_KERNEL_GAUSSIAN: return (mrc_map){.kind = MRC_MAP_GAUSSIAN, .a = (float)(-0.5 / b / b)};
        case MERCER_KERNEL_MATERN32: return (mrc_map){.kind = MRC_MAP_MATERN32, .a = (float)(sqrt(3) / b)};
        case MERCER_KERNEL_MATERN52: return (mrc_map){.kind = MRC_MAP_MATERN52, .a = (float)(sqrt(5) / b)};
        case MERCER_KERNEL_CAUCHY: return (mrc_map){.kind = MRC_MAP_CAUCHY, .a = (float)(1 / b / b)};
        case MERCER_KERNEL_POLYNOMIAL:
            return (mrc_map){.kind = MRC_MAP_POLYNOMIAL,
                             .degree = kernel->degree,
                             .a = (float)kernel->scale,
                             .b = (float)kernel->offset};
        case MERCER_KERNEL_LINEAR: return (mrc_map){.kind = MRC_MAP_LINEAR};
        default: return (mrc_map){.kind = MRC_MAP_NONE};
    }
}

static mrc_wide_map wide_map_for(const mercer_kernel *kernel)
{
    double b = kernel->bandwidth, alpha = kernel->alpha;
    switch (kernel->id) {
        case MERCER_KERNEL_LAPLACE: return (mrc_wide_map){.kind = MRC_MAP_LAPLACE, .a = -1 / b};
        case MERCER_KERNEL_GAUSSIAN: return (mrc_wide_map){.kind = MRC_MAP_GAUSSIAN, .a = -0.5 / b / b};
        case MERCER_KERNEL_MATERN32: return (mrc_wide_map){.kind = MRC_MAP_MATERN32, .a = sqrt(3) / b};
        case MERCER_KERNEL_MATERN52: return (mrc_wide_map){.kind = MRC_MAP_MATERN52, .a = sqrt(5) / b};
        case MERCER_KERNEL_CAUCHY: return (mrc_wide_map){.kind = MRC_MAP_CAUCHY, .a = 1 / b / b};
        case MERCER_KERNEL_EXPPOWER:
            return (mrc_wide_map){.kind = MRC_MAP_EXPPOWER, .a = 1 / b / b, .b = kernel->gamma / 2};
        case MERCER_KERNEL_RATIONAL_QUADRATIC:
            return (mrc_wide_map){.kind = MRC_MAP_RATIONAL_QUADRATIC, .a = 1 / b / b / (2 * alpha), .b = -alpha};
        case MERCER_KERNEL_POLYNOMIAL:
            return (mrc_wide_map){
                .kind = MRC_MAP_POLYNOMIAL, .degree = kernel->degree, .a = kernel->scale, .b = kernel->offset};
        case MERCER_KERNEL_LINEAR: return (mrc_wide_map){.kind = MRC_MAP_LINEAR};
        case MERCER_KERNEL_NTK:
        case MERCER_KERNEL_NNGP:
            return (mrc_wide_map){.kind = MRC_MAP_ANGULAR,
                                  .degree = kernel->depth,
                                  .a = kernel->bias * kernel->bias,
                                  .b = kernel->id == MERCER_KERNEL_NTK};
        default: return (mrc_wide_map){.kind = MRC_MAP_NONE};
    }
}

static bool map_fits_double(const mrc_wide_map *map)
{
    return map->kind == MRC_MAP_LINEAR || map->kind == MRC_MAP_ANGULAR || isnormal(map->a);
}

/* A constant that is 0, infinite or subnormal in float would change the kernel: the formula in double takes over. */
static bool map_fits_float(const mrc_map *map)
{
    return map->kind == MRC_MAP_LINEAR || (isnormal(map->a) && isfinite(map->b));
}

/* Squares of distances near the bandwidth must be floats; far outside, double takes over. */
static bool bandwidth_fits_float(const mercer_kernel *kernel)
{
    return kernel->bandwidth >= 1e-15 && kernel->bandwidth <= 1e15;
}

static void choose_arithmetic(mrc_product *product, const mrc_cpu *cpu)
{
    const mrc_ukernels *uk = &cpu->uk;
    bool both_bytes = product->x->dtype == MERCER_U8 && product->z->dtype == MERCER_U8;
    bool wide = mrc_value_dtype(product->x, product->z, product->w, product->y) == MERCER_F64 ||
                (product->k.cols > 0 && product->k.dtype == MERCER_F64) ||
                (both_bytes && product->d > MRC_U8_MAX_FEATURES) ||
                (product->on_distance && !product->callback && !bandwidth_fits_float(product->kernel));
    product->uk = uk;
    product->bytes = both_bytes && !wide;
    product->centred = product->on_distance && !both_bytes;
    product->type = wide ? &mrc_tile_f64 : &mrc_tile_f32;
    product->mr_sum = wide ? uk->mr_f64 : uk->mr_f32;
    product->nr = wide ? uk->nr_f64 : uk->nr_f32;
    product->mr = product->bytes ? uk->mr_u8 : product->mr_sum;
    product->group = product->bytes ? uk->group_u8 : 1;
    product->groups = (product->d + product->group - 1) / product->group * (product->group == 64 ? 16 : 1);
    product->c_panels = product->w ? (product->w->cols + product->mr_sum - 1) / product->mr_sum : 0;
    product->results = product->c_panels * product->mr_sum;
    product->few = product->x->rows <= (product->bytes ? MRC_FEW_ROWS_U8 : MRC_FEW_ROWS) &&
                   (product->w || product->k.cols > 0); /* not a search */
    if (product->few) { /* no panels: as wide as X is high, and as many results as outputs */
        product->nr = (int)mrc_max(product->x->rows, 1);
        product->lanes = product->bytes ? 1 : wide ? uk->few_lanes_f64 : uk->few_lanes_f32;
        product->results = product->w ? product->w->cols : 0;
    }
    product->map = map_for(product->kernel);
    if (!map_fits_float(&product->map)) product->map.kind = MRC_MAP_NONE;
    product->wide = wide_map_for(product->kernel);
    if (!map_fits_double(&product->wide)) product->wide.kind = MRC_MAP_NONE;
}

mercer_status mrc_product_init(mrc_product *product, mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                               const mercer_matrix *y, const mercer_matrix *k)
{
    memset(product, 0, sizeof *product);
    MRC_TRY(mrc_backend_check_kernel(backend, pair->kernel));
    product->pair = pair;
    product->kernel = pair->kernel;
    product->x = pair->x;
    product->z = pair->z;
    product->w = w;
    product->y = y;
    if (k) product->k = *k;
    product->d = pair->x->cols;
    product->on_distance = mrc_kernel_argument(pair->kernel) == MRC_ON_DISTANCE;
    product->angular = mrc_kernel_is_angular(pair->kernel);
    product->callback = mrc_kernel_is_callback(pair->kernel);
    atomic_init(&product->callback_failed, 0);
    choose_arithmetic(product, backend->state);
    return MERCER_OK;
}
