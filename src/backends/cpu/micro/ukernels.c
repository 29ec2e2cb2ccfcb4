/* SPDX-License-Identifier: BSD-3-Clause */
/* Selects the micro-kernels for an instruction set: for each operation, the last row of the list that the instruction
   set supports. Also computes the constants of the vectorized kernel functions. */
#include "backends/cpu/micro/ukernels.h"

#include "kernels/formulas.h"

#include <stddef.h>

typedef struct row {
    mrc_isa isa;
    mrc_ukernels entry; /* only the fields of one operation are set */
} row;

#define MRC_UK_GEMM_F32(level, name, mr, nr) {MRC_ISA_##level, {.gemm_f32 = name, .mr_f32 = mr, .nr_f32 = nr}},
#define MRC_UK_GEMM_F64(level, name, mr, nr) {MRC_ISA_##level, {.gemm_f64 = name, .mr_f64 = mr, .nr_f64 = nr}},
#define MRC_UK_DOT_U8(level, name, mr, nr, group) \
    {MRC_ISA_##level, {.dot_u8 = name, .mr_u8 = mr, .nr_u8 = nr, .group_u8 = group}},
#define MRC_UK_L1_F32(level, name, mr, nr) {MRC_ISA_##level, {.l1_f32 = name, .mr_l1_f32 = mr}},
#define MRC_UK_L1_F64(level, name, mr, nr) {MRC_ISA_##level, {.l1_f64 = name, .mr_l1_f64 = mr}},
#define MRC_UK_GROUPS(level, single, wide, cost) \
    {MRC_ISA_##level, {.groups_f32 = single, .groups_f64 = wide, .group_cost = cost}},
#define MRC_UK_SAD_U8(level, name, mr, nr) {MRC_ISA_##level, {.sad_u8 = name, .mr_sad_u8 = mr}},
#define MRC_UK_FEW_F32(level, name, l1_name, count) \
    {MRC_ISA_##level, {.few_f32 = name, .few_l1_f32 = l1_name, .few_lanes_f32 = count}},
#define MRC_UK_FEW_F64(level, name, l1_name, count) \
    {MRC_ISA_##level, {.few_f64 = name, .few_l1_f64 = l1_name, .few_lanes_f64 = count}},
#define MRC_UK_ROWS(level, dots, sums, most, columns) \
    {MRC_ISA_##level, {.rows_dots = dots, .rows_sums = sums, .rows_group = most, .rows_strip = columns}},
#define MRC_UK_SIGNS(level, single, wide)    {MRC_ISA_##level, {.signs_f32 = single, .signs_f64 = wide}},
#define MRC_UK_FEATURES(level, single, wide) {MRC_ISA_##level, {.features_f32 = single, .features_f64 = wide}},
#define MRC_UK_PANEL(level, name)            {MRC_ISA_##level, {.panel = &name}},
static const row rows[] = {
#include "backends/cpu/micro/ukernels.inc"
};

/* clang-format off */
#define FIELDS(X) \
    X(gemm_f32) X(mr_f32) X(nr_f32) X(gemm_f64) X(mr_f64) X(nr_f64) X(dot_u8) X(mr_u8) X(nr_u8) X(group_u8) \
    X(groups_f32) X(groups_f64) X(group_cost) X(l1_f32) X(mr_l1_f32) X(l1_f64) X(mr_l1_f64) X(sad_u8) X(mr_sad_u8) \
    X(few_f32) X(few_l1_f32) X(few_lanes_f32) X(few_f64) X(few_l1_f64) X(few_lanes_f64) \
    X(signs_f32) X(signs_f64) X(features_f32) X(features_f64) X(rows_dots) X(rows_sums) X(rows_group) X(rows_strip) \
    X(panel)
/* clang-format on */

/* Entries are taken field by field, so an instruction set without its own row for an operation uses the row of a lower
   instruction set. The order of mrc_isa is the order of capability. */
mrc_ukernels mrc_ukernels_for(mrc_isa isa)
{
    mrc_ukernels best = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const mrc_ukernels *entry = &rows[i].entry;
        if (rows[i].isa > isa) continue;
#define TAKE(field) \
    if (entry->field) best.field = entry->field;
        FIELDS(TAKE)
    }
    return best;
}

/* ---- Kernel functions -------------------------------------------------------------------------------------------- */

typedef enum form { NO_FORM, FORM_FLOAT, FORM_DOUBLE, FORM_SAME, FORM_POWER, FORM_ANGLE } form;

/* Minimum exponent b of exp(-t^b), and of its slope, in float. If t = a s leaves the range of float, the computed
   logarithm of t is that of 2^-167 or 2^128. With b at least this large, t^b is then too small to change the value 1,
   or so large that the value is 0. */
#define LEAST_FLOAT_EXPONENT 0.2

/* Return true for the kernels exp(-t^b) and their slopes: their float forms compute the power from a logarithm. */
static bool is_stretched(int32_t id)
{
    int32_t base = mrc_kernel_base(id);
    return base == MRC_KERNEL_EXPPOWER || base == MRC_KERNEL_EXPPOWER_L1;
}

/* If a constant is 0, infinite or subnormal in float or double, that form would compute a different kernel; the next
   more accurate form (double, then the scalar formula) is used instead. */
mrc_map mrc_map_for(const mercer_kernel *k)
{
    mrc_map map = {.id = k->id};
    form types = NO_FORM;
    switch (k->id) {
#define FORM(ID, TYPES, first, second, value) \
    case MRC_KERNEL_##ID: types = FORM_##TYPES, map.a = (first), map.b = (second); break;
        MRC_VECTOR_FORMS(FORM)
        default: break;
    }
    map.degree = types == FORM_ANGLE ? k->depth : k->degree;
    map.in_float = types != FORM_DOUBLE && types != FORM_ANGLE && isnormal((float)map.a) && isfinite((float)map.b);
    if (is_stretched(k->id) && map.b < LEAST_FLOAT_EXPONENT) map.in_float = false;
    if (types == NO_FORM || (types != FORM_ANGLE && !isnormal(map.a))) map.id = 0;
    return map;
}
