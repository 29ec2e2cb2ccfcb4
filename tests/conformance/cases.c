/* SPDX-License-Identifier: BSD-3-Clause */
/* Case lists of conformance, and the operands of a case. Data are offset from 0, with coincident, near, parallel and
   zero rows. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cases.h"

#include "support/data.h"
#include "support/guard.h"
#include "support/info.h"

#include "kernels/table.h"

enum { SEED = 20240607 };

const types all_types[] = {
    {MERCER_F32, MERCER_F32, MERCER_F32, MERCER_F32}, {MERCER_F64, MERCER_F64, MERCER_F64, MERCER_F64},
    {MERCER_F16, MERCER_F16, MERCER_F32, MERCER_F32}, {MERCER_U8, MERCER_U8, MERCER_F32, MERCER_F32},
    {MERCER_F32, MERCER_F32, MERCER_F64, MERCER_F64}, {MERCER_U8, MERCER_U8, MERCER_F64, MERCER_F64},
    {MERCER_F32, MERCER_F64, MERCER_F32, MERCER_F32}, {MERCER_F32, MERCER_F64, MERCER_F64, MERCER_F64},
    {MERCER_U8, MERCER_F32, MERCER_F32, MERCER_F32},  {MERCER_U8, MERCER_F32, MERCER_F64, MERCER_F64},
    {MERCER_F16, MERCER_F32, MERCER_F32, MERCER_F32}, {MERCER_F16, MERCER_F32, MERCER_F64, MERCER_F64},
    {MERCER_F32, MERCER_F32, MERCER_F32, MERCER_F64}, {MERCER_F32, MERCER_F32, MERCER_F64, MERCER_F32},
};
const int all_types_count = sizeof all_types / sizeof *all_types;

/* Each size is 0 once. Other values are near the sizes of micro-tiles (4, 6, 12, 16, 32), the tile of 240 centers, the
   chunk of 960, the block of 512 rows. */
const shape all_shapes[] = {
    {0, 3, 2, 1},      {3, 0, 2, 2},     {3, 2, 0, 2},     {2, 3, 1, 0},     {1, 1, 1, 1},     {1, 2, 3, 1},
    {2, 1, 7, 3},      {3, 7, 13, 2},    {7, 13, 2, 1},    {13, 31, 5, 7},   {15, 11, 31, 5},  {16, 12, 32, 6},
    {17, 33, 33, 13},  {31, 239, 3, 2},  {33, 240, 2, 1},  {5, 241, 7, 12},  {6, 47, 257, 11}, {4, 9, 1031, 1},
    {511, 5, 1, 1},    {512, 2, 2, 2},   {513, 3, 1, 3},   {65, 481, 2, 3},  {2, 961, 3, 2},   {3, 1921, 2, 1},
    {33, 150, 20, 17}, {9, 141, 21, 10}, {65, 140, 6, 64}, {9, 140, 37, 65}, {4, 130, 5, 100}, {2, 40, 3, 1000},
    {98, 41, 64, 2},   {97, 33, 42, 2},  {26, 245, 33, 1}, {99, 35, 42, 1},
};
const int all_shapes_count = sizeof all_shapes / sizeof *all_shapes;

/* Levels per category of the last shapes, which are tables. Products look categories up, except in the last table,
   where some rows do not fit that scheme. */
static const int64_t table_levels[] = {30, 6, 5, 6};
enum { TABLES = sizeof table_levels / sizeof *table_levels, ODD_TABLE = TABLES - 1 };

/* ---- Kernels ------------------------------------------------------------------------------------------------- */

static int inverse_distance(void *user, const mercer_kernel_block *block)
{
    (void)user;
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->cols; j++)
            block->values[i * block->ld + j] = 1 / (1 + block->values[i * block->ld + j]);
    return 0;
}

static int near_cosine(void *user, const mercer_kernel_block *block)
{
    (void)user;
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->cols; j++)
            block->values[i * block->ld + j] /= 1 + sqrt(block->x_sqnorms[i] * block->z_sqnorms[j]);
    return 0;
}

int case_kernel_count(void)
{
    return mrc_kernel_table_size + 2;
}

static bool has_row(int32_t id)
{
    switch (id) {
#define IS_THERE(ID, ...) case MRC_KERNEL_##ID:
        DISTANCE_KERNELS(IS_THERE) INNER_KERNELS(IS_THERE) return true;
        default: return false;
    }
}

mercer_kernel case_kernel(int index)
{
    mercer_kernel kernel = {0};
    if (index < mrc_kernel_table_size) {
        if (mrc_kernel_parse(NULL, &kernel, kernel_info(index).example) != MERCER_OK) abort();
        if (!has_row(kernel.id)) {
            fprintf(stderr, "kernel %s has no row in tests/support/kernel_table.h\n", kernel_info(index).name);
            exit(2);
        }
    } else if (index == mrc_kernel_table_size) {
        kernel = (mercer_kernel){.id = MERCER_KERNEL_CALLBACK_DISTANCE, .callback = inverse_distance, .bandwidth = 1};
    } else {
        kernel = (mercer_kernel){.id = MERCER_KERNEL_CALLBACK_INNER, .callback = near_cosine};
    }
    return kernel;
}

const char *case_kernel_name(int index)
{
    if (index < mrc_kernel_table_size) return kernel_info(index).name;
    return index == mrc_kernel_table_size ? "callback-distance" : "callback-inner";
}

void case_types_name(const types *t, char text[32])
{
    snprintf(text, 32, "%sx%s.%s>%s", mrc_dtype_name(t->x), mrc_dtype_name(t->z), mrc_dtype_name(t->w),
             mrc_dtype_name(t->out));
}

/* ---- Operands ------------------------------------------------------------------------------------------------ */

/* Return whether column k is a number: in a table, one number precedes each category. */
static bool is_number(const problem *p, int64_t k)
{
    return p->levels == 0 || k % (p->levels + 1) == 0;
}

/* Overwrite the category columns: in each row, at most one level of a category is 1, 1.5 or 2. Numeric features are not
   changed. */
static void place_levels(const mercer_matrix *x, int64_t levels, mrc_rng rng)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t k = 0; k < x->cols; k++) {
            int64_t category = k / (levels + 1), level = k % (levels + 1) - 1;
            double u = mrc_random_uniform(rng, (uint64_t)(i * x->cols + category));
            bool on_device = (int64_t)(u * u * (double)(levels + 1)) == level;
            if (level >= 0) data_store(x, i, k, on_device ? 1 + 0.5 * (double)(k % 3) : 0);
        }
}

/* Set rows that random data never contain: equal, almost equal, (anti)parallel to a row of X, and zero. */
static void place_special_rows(const problem *p)
{
    const mercer_matrix *x = &p->x, *z = &p->z;
    bool whole = x->dtype == MERCER_U8 || z->dtype == MERCER_U8;
    for (int64_t j = 0; j < z->rows && x->rows > 0; j++) {
        int64_t i = j % x->rows;
        int kind = (int)(j % 11);
        if (kind > 4 || ((kind == 2 || kind == 3) && p->levels > 0 && !p->odd)) continue;
        for (int64_t k = 0; k < z->cols; k++) {
            double value = mrc_load(x, i, k);
            if (kind == 1 && (is_number(p, k) || p->odd)) value += whole ? (k == 0) : 1e-3 * (double)(k % 3);
            if (kind == 2) value *= whole ? 1 : 2;
            if (kind == 3) value *= whole ? 1 : -1;
            data_store(z, j, k, kind == 4 && j % 22 == 4 ? 0 : value);
        }
    }
}

static guarded *guard(problem *p, int slot, int64_t rows, int64_t cols, mercer_dtype dtype)
{
    guarded *made = malloc(sizeof *made);
    if (!made) abort();
    *made = guarded_matrix(rows, cols, cols + 1 + slot, dtype, p->at_end);
    p->hidden[slot] = made;
    return made;
}

static mercer_matrix copy_of(const mercer_matrix *from)
{
    mercer_matrix to = data_matrix(from->rows, from->cols, 0, from->dtype);
    for (int64_t i = 0; i < from->rows; i++)
        memcpy(mrc_row(&to, i), mrc_row(from, i), (size_t)(from->cols * mrc_dtype_size(from->dtype)));
    return to;
}

static void fill_operands(problem *p, int index)
{
    const shape *s = &p->shape;
    bool bytes = p->types.x == MERCER_U8 || p->types.z == MERCER_U8;
    double mean = bytes ? 128 : 3, deviation = bytes ? 3 : 1;
    p->x = guard(p, 0, s->m, s->d, p->types.x)->matrix;
    p->z = guard(p, 1, s->p, s->d, p->types.z)->matrix;
    p->w = guard(p, 2, s->p, s->c, p->types.w)->matrix;
    p->g = guard(p, 3, s->m, s->c, p->types.out)->matrix;
    uint64_t stream = (uint64_t)index * 8;
    data_fill_normal(&p->x, (mrc_rng){SEED, stream}, mean, deviation);
    data_fill_normal(&p->z, (mrc_rng){SEED, stream + 1}, mean, deviation);
    data_fill_normal(&p->w, (mrc_rng){SEED, stream + 2}, 0.25, 1);
    data_fill_normal(&p->g, (mrc_rng){SEED, stream + 3}, -0.25, 1);
    int table = index - (all_shapes_count - TABLES);
    if (table >= 0) {
        p->levels = table_levels[table], p->odd = table == ODD_TABLE;
        place_levels(&p->x, p->levels, (mrc_rng){SEED, stream + 5});
        place_levels(&p->z, p->levels, (mrc_rng){SEED, stream + 6});
    }
    place_special_rows(p);
    if (index % 4 == 3) { /* pass an origin instead of using the mean */
        p->origin = calloc((size_t)s->d + 1, sizeof *p->origin);
        for (int64_t k = 0; k < s->d; k++)
            p->origin[k] = is_number(p, k) ? mean + mrc_random_normal((mrc_rng){SEED, stream + 4}, (uint64_t)k) : 0;
    }
}

double *case_column_mean(const mercer_matrix *a)
{
    double *mean = calloc((size_t)a->cols + 1, sizeof *mean);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t k = 0; k < a->cols; k++) mean[k] += mrc_load(a, i, k) / (double)a->rows;
    return mean;
}

double *case_column_origin(const mercer_matrix *a)
{
    double *origin = case_column_mean(a);
    for (int64_t k = 0; k < a->cols; k++) {
        double one = 0;
        bool zero = false, flag = true;
        for (int64_t i = 0; i < a->rows; i++) {
            double value = mrc_load(a, i, k);
            zero = zero || value == 0;
            flag = flag && (value == 0 || one == 0 || value == one);
            if (value != 0) one = value;
        }
        if (zero && flag) origin[k] = 0;
    }
    return origin;
}

/* Return the allowed error with the problem's origin; if it has none, the larger one for the two origins that backends
   choose. */
static double error_of(const problem *p, const double *x, const double *z, const double *mean, const double *flags,
                       const arithmetic *how)
{
    if (p->origin) return value_error(&p->kernel, p->shape.d, x, z, p->origin, how);
    double error = value_error(&p->kernel, p->shape.d, x, z, mean, how);
    return p->levels > 0 ? fmax(error, value_error(&p->kernel, p->shape.d, x, z, flags, how)) : error;
}

static void fill_reference(problem *p)
{
    const shape *s = &p->shape;
    bool wide = mrc_value_dtype(&p->x, &p->z, &p->w, &p->g) == MERCER_F64;
    arithmetic how = wide ? in_double : in_float;
    how.bytes = p->types.x == MERCER_U8 && p->types.z == MERCER_U8;
    p->unit = how.unit;
    double *mean_z = case_column_mean(&p->z), *mean_x = case_column_mean(&p->x);
    double *flags_z = case_column_origin(&p->z), *flags_x = case_column_origin(&p->x);
    double *x = calloc((size_t)s->d + 1, sizeof *x), *z = calloc((size_t)s->d + 1, sizeof *z);
    for (int64_t i = 0; i < s->m; i++) {
        mrc_load_row_f64(&p->x, i, x);
        for (int64_t j = 0; j < s->p; j++) {
            int64_t at = i * s->p + j;
            mrc_load_row_f64(&p->z, j, z);
            if (!mrc_kernel_reference(&p->kernel, s->d, x, z, &p->values[at])) abort();
            p->errors[at] = error_of(p, x, z, mean_z, flags_z, &how);
            double back = error_of(p, x, z, mean_x, flags_x, &how);
            p->errors_back[at] = fmax(back, p->errors[at]);
        }
    }
    free(x), free(z), free(mean_z), free(mean_x), free(flags_z), free(flags_x);
}

static product_sums sum_product(const problem *p, bool transposed)
{
    int64_t depth = transposed ? p->shape.m : p->shape.p, rows = transposed ? p->shape.p : p->shape.m, c = p->shape.c;
    const double *errors = transposed ? p->errors_back : p->errors;
    size_t count = (size_t)(rows * c) + 1;
    product_sums s = {calloc(count, sizeof(double)), calloc(count, sizeof(double)), calloc(count, sizeof(double))};
    double *in = calloc((size_t)c + 1, sizeof *in);
    if (!s.wanted || !s.size || !s.allowed || !in) abort();
    for (int64_t k = 0; k < depth; k++) {
        mrc_load_row_f64(transposed ? &p->g : &p->w, k, in);
        for (int64_t i = 0; i < rows; i++) {
            int64_t at = transposed ? k * p->shape.p + i : i * p->shape.p + k;
            double value = p->values[at], error = errors[at];
            for (int64_t j = 0; j < c; j++) {
                s.wanted[i * c + j] += value * in[j];
                s.size[i * c + j] += (fabs(value) + error) * fabs(in[j]);
                s.allowed[i * c + j] += error * fabs(in[j]);
            }
        }
    }
    free(in);
    return s;
}

problem *problem_make(const mercer_kernel *kernel, const types *t, const shape *s, int index, bool at_end)
{
    problem *p = calloc(1, sizeof *p);
    if (!p) abort();
    p->kernel = *kernel, p->types = *t, p->shape = *s, p->at_end = at_end;
    fill_operands(p, index);
    size_t pairs = (size_t)(s->m * s->p) + 1;
    p->values = calloc(pairs, sizeof(double)), p->errors = calloc(pairs, sizeof(double));
    p->errors_back = calloc(pairs, sizeof(double));
    fill_reference(p);
    p->forward = sum_product(p, false), p->back = sum_product(p, true);
    p->pair = (mrc_pair){.kernel = &p->kernel, .x = &p->x, .z = &p->z, .origin = p->origin};
    mercer_matrix *copies = calloc(4, sizeof *copies);
    for (int i = 0; i < 4; i++) copies[i] = copy_of(&((guarded *)p->hidden[i])->matrix);
    p->hidden[4] = copies;
    return p;
}

bool problem_inputs_intact(const problem *p)
{
    const mercer_matrix *copies = p->hidden[4];
    for (int slot = 0; slot < 4; slot++) {
        const guarded *made = p->hidden[slot];
        if (!guarded_gaps_intact(made)) return false;
        for (int64_t i = 0; i < made->matrix.rows; i++)
            if (memcmp(mrc_row(&made->matrix, i), mrc_row(&copies[slot], i),
                       (size_t)(made->matrix.cols * mrc_dtype_size(made->matrix.dtype))) != 0)
                return false;
    }
    return true;
}

void problem_free(problem *p)
{
    mercer_matrix *copies = p->hidden[4];
    for (int slot = 0; slot < 4; slot++) {
        guarded_free(p->hidden[slot]);
        free(p->hidden[slot]);
        free(copies[slot].data);
    }
    free(copies), free(p->origin), free(p->values), free(p->errors), free(p->errors_back);
    free(p->forward.wanted), free(p->forward.size), free(p->forward.allowed);
    free(p->back.wanted), free(p->back.size), free(p->back.allowed);
    free(p);
}
