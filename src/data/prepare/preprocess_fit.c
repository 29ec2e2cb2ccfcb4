/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fits a preprocessing to data, in one pass.
 *
 * For feature j, after k rows (Welford):
 *     delta = x_kj - mean_j,   mean_j += delta / k,   m2_j += delta (x_kj - mean_j),   low_j = min,   high_j = max
 *   standardize:  shift = mean,  factor = 1 / sqrt(m2 / n)        minmax:  shift = low,  factor = 1 / (high - low)
 *   constant features:  factor = 0;  features of a table that are 0 or 1 (data/schema):  shift = 0;
 *   a level of a category: factor = 2 (minmax: 1); a flag that a value is missing: a quarter of this factor
 *
 * x (n, d); mean, m2, low, high (d) double. Cost: O(n d) time, O(d) memory and a block of rows; pages of mapped files
 * are released block by block. Threads share the columns and take rows in order, so results are bitwise identical for
 * any number of threads and any block size. A constant feature has delta = 0 at every row, so m2 = 0 exactly.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "core/threads/parallel.h"
#include "data/files/readers.h"
#include "data/prepare/preprocess_parts.h"
#include "data/schema/schema.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* COLUMNS: columns that one task processes, few enough for their statistics to stay in the cache. */
enum { COLUMNS = 128, BLOCK_BYTES = 8 << 20 };

typedef struct pass {
    mercer_matrix block;
    int64_t before;                 /* rows before the block */
    double *mean, *m2, *low, *high; /* (features) one allocation */
    int *bad;                       /* (pieces of COLUMNS columns) 1 if the piece has a value that is not finite */
} pass;

/* A task of mrc_parallel_for: adds the rows of the block to the statistics of COLUMNS columns. */
static void add_rows(void *argument, int64_t index, int worker)
{
    (void)worker;
    pass *self = argument;
    int64_t first = index * COLUMNS, count = mrc_min(COLUMNS, self->block.cols - first);
    mercer_matrix columns = mrc_columns(&self->block, first, count);
    double row[COLUMNS] = {0}, mean[COLUMNS] = {0}, m2[COLUMNS] = {0}, low[COLUMNS] = {0}, high[COLUMNS] = {0};
    double odd = 0; /* x - x is 0 unless x is infinite or NaN */
    size_t bytes = (size_t)count * sizeof(double);
    memcpy(mean, self->mean + first, bytes), memcpy(m2, self->m2 + first, bytes);
    memcpy(low, self->low + first, bytes), memcpy(high, self->high + first, bytes);
    for (int64_t i = 0; i < columns.rows; i++) {
        double share = 1.0 / (double)(self->before + i + 1);
        mrc_load_row_f64(&columns, i, row);
        /* Always COLUMNS steps, so that compilers vectorize the loop; columns from `count` on are 0. */
        for (int j = 0; j < COLUMNS; j++) {
            double x = row[j], delta = x - mean[j];
            odd += x - x;
            mean[j] += delta * share;
            m2[j] += delta * (x - mean[j]);
            low[j] = x < low[j] ? x : low[j];
            high[j] = x > high[j] ? x : high[j];
        }
    }
    memcpy(self->mean + first, mean, bytes), memcpy(self->m2 + first, m2, bytes);
    memcpy(self->low + first, low, bytes), memcpy(self->high + first, high, bytes);
    if (odd != 0) self->bad[index] = 1;
}

/* Fails with the position of the first value that is not finite. */
static mercer_status fail_odd(mercer_context *context, const mercer_matrix *block, int64_t before)
{
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->cols; j++) {
            double value = mrc_load(block, i, j);
            int64_t row = before + i;
            if (!isfinite(value))
                return mrc_fail(context, MERCER_ERROR_DATA,
                                "sample %lld, feature %lld (from 0) is %g; preprocessing needs finite values",
                                (long long)row, (long long)j, value);
        }
    return mrc_fail(context, MERCER_ERROR_INTERNAL, "the samples contain a value that is not finite");
}

/* Returns rows first .. first + count - 1, in place if they are contiguous, else copied to `buffer`. */
static mercer_matrix block_of(const mercer_dataset *data, int64_t first, int64_t count, void *buffer)
{
    if (!data->synth) {
        mrc_part part = mrc_dataset_part(data, first);
        if (part.first + part.rows.rows >= first + count) return mrc_rows(&part.rows, first - part.first, count);
    }
    mercer_matrix block = mrc_view(buffer, count, data->features, data->dtype);
    mrc_dataset_fetch(data, NULL, first, &block, NULL, NULL);
    return block;
}

/* Reads all rows, block by block, and updates the statistics. */
static mercer_status run_pass(mercer_context *context, pass *self, const mercer_dataset *data, int64_t rows_at_once,
                              void *buffer)
{
    int64_t pieces = mrc_round_up(data->features, COLUMNS) / COLUMNS;
    for (int64_t first = 0; first < data->rows; first += rows_at_once) {
        MRC_TRY(mrc_dataset_check(data));
        mercer_matrix block = block_of(data, first, mrc_min(rows_at_once, data->rows - first), buffer);
        /* The first row initializes the ranges; add_rows detects a NaN in the first row, too. */
        if (first == 0) {
            mrc_load_row_f64(&block, 0, self->low);
            mrc_load_row_f64(&block, 0, self->high);
        }
        self->block = block;
        self->before = first;
        mrc_parallel_for(context->threads, pieces, add_rows, self);
        for (int64_t i = 0; i < pieces; i++)
            if (self->bad[i]) return fail_odd(context, &block, first);
        mrc_dataset_hint(data, mrc_mapping_release, first, block.rows);
    }
    return MERCER_OK;
}

/* Levels of categories and flags of missing values are 0 or 1. They are not shifted, only scaled to a size that is
   comparable with numbers of variance 1. Flags of missing values are smaller, so that rows with different missing
   values stay near each other. */
mercer_status mrc_preprocess_flags(mercer_context *context, const mercer_dataset *data, double *shift, double *factor,
                                   double size)
{
    MRC_OWNED(mrc_release_schema) mrc_schema *schema = NULL;
    mrc_role *roles;
    if (!data->schema) return MERCER_OK;
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_schema_read(&schema, context, data->schema));
    MRC_TRY(mrc_scope_alloc(&scope, &roles, data->features, sizeof *roles, "features of a table"));
    if (schema->features != data->features) return MERCER_OK;
    mrc_schema_roles(schema, roles);
    for (int64_t j = 0; j < data->features; j++) {
        if (roles[j] == MRC_ROLE_VALUE) continue;
        shift[j] = 0;
        factor[j] = roles[j] == MRC_ROLE_SIGN ? size / MRC_LEVEL_SIGNS : size;
    }
    return MERCER_OK;
}

/* Turns the statistics into shift (in place of mean) and factor (in place of m2). */
static mercer_status finish_statistics(mercer_context *context, pass *self, mrc_preprocess_kind kind, int64_t rows,
                                       int64_t features)
{
    for (int64_t j = 0; j < features; j++) {
        bool standardize = kind == MRC_PREPROCESS_STANDARDIZE;
        double width = standardize ? sqrt(self->m2[j] / (double)rows) : self->high[j] - self->low[j];
        /* The factor 1 / width must be finite, too. */
        if (!isfinite(width) || (width > 0 && width < 1 / DBL_MAX))
            return mrc_fail(context, MERCER_ERROR_DATA,
                            "feature %lld (from 0) ranges from %g to %g, which is too wide or too narrow to scale "
                            "to 1",
                            (long long)j, self->low[j], self->high[j]);
        if (!standardize) self->mean[j] = self->low[j];
        self->m2[j] = width > 0 ? 1 / width : 0;
    }
    return MERCER_OK;
}

/* Fits a STANDARDIZE or MINMAX. */
static mercer_status fit_features(mercer_preprocess **out, mercer_context *context, mrc_preprocess_kind kind,
                                  const mercer_dataset *data)
{
    if (!data || data->rows < 1)
        return mrc_fail(context, data ? MERCER_ERROR_SHAPE : MERCER_ERROR_ARGUMENT, "preprocessing %s needs data: %s",
                        mrc_preprocess_name(kind), data ? "there are no samples" : "dataset is NULL");
    int64_t d = data->features, row_bytes = mrc_max(1, d * mrc_dtype_size(data->dtype)), numbers;
    int64_t at_once = mrc_max(1, mrc_min(data->rows, BLOCK_BYTES / row_bytes));
    double size = kind == MRC_PREPROCESS_STANDARDIZE ? MRC_LEVEL_SIZE : 1, *m;
    void *buffer = NULL;
    pass self;
    if (!mrc_multiply(d, 4, &numbers)) return mrc_fail(context, MERCER_ERROR_SHAPE, "too many features");
    MRC_SCOPE(scope, context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &m, numbers, sizeof *m, "means of features"));
    self = (pass){.mean = m, .m2 = m + d, .low = m + 2 * d, .high = m + 3 * d};
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.bad, d / COLUMNS + 1, sizeof *self.bad, "means of features"));
    /* A single matrix is always used in place. */
    if (!data->x.data) MRC_TRY(mrc_scope_alloc(&scope, &buffer, at_once, row_bytes, "a block of samples"));
    MRC_TRY(run_pass(context, &self, data, at_once, buffer));
    MRC_TRY(finish_statistics(context, &self, kind, data->rows, d));
    MRC_TRY(mrc_preprocess_flags(context, data, self.mean, self.m2, size));
    return mrc_preprocess_create(out, context, kind, 0, d, self.mean, self.m2);
}

/* ---- Specifications ------------------------------------------------------------------------------------------ */

typedef struct entry {
    mrc_spec_form form;
    mrc_preprocess_kind kind;
} entry;

typedef struct parameters {
    double factor;
} parameters;

static const entry entries[] = {
    {{"none", "none", {{0}}}, MRC_PREPROCESS_NONE},
    {{"scale",
      "scale:factor=0.01",
      {{"factor", offsetof(parameters, factor), MRC_REAL, false, false, 0, 1e100, 1.0 / 255}}},
     MRC_PREPROCESS_SCALE},
    {{"standardize", "standardize", {{0}}}, MRC_PREPROCESS_STANDARDIZE},
    {{"minmax", "minmax", {{0}}}, MRC_PREPROCESS_MINMAX},
    {{"unit", "unit", {{0}}}, MRC_PREPROCESS_UNIT},
    {{"rank", "rank", {{0}}}, MRC_PREPROCESS_RANK},
    {{"blend", "blend", {{0}}}, MRC_PREPROCESS_BLEND},
    /* check-words: allow spelling -ise (the name of 0.1 and 0.2, an alias) */
    {{"standardise", "standardize", {{0}}}, MRC_PREPROCESS_STANDARDIZE},
};

const char *mrc_preprocess_auto(const char *format, mercer_dtype dtype)
{
    if (dtype == MERCER_U8) return "scale";
    const mrc_format *of = format ? mrc_format_find(format) : NULL;
    if (of && of->sparse) return "minmax"; /* minmax keeps zeros */
    if (format && strcmp(format, "synthetic") == 0) return "none";
    return dtype == MERCER_F16 ? "none" : "standardize"; /* standardize would convert halves to floats */
}

mercer_status mrc_preprocess_fit(mercer_preprocess **out, mercer_context *context, const char *spec,
                                 const mercer_dataset *data)
{
    const mrc_spec_grammar grammar = {"preprocessing", MERCER_ERROR_ARGUMENT, entries, sizeof *entries,
                                      sizeof entries / sizeof *entries};
    parameters given = {0};
    int index;
    *out = NULL;
    if (strcmp(spec, "auto") == 0) {
        if (!data) return mrc_fail(context, MERCER_ERROR_ARGUMENT, "preprocessing auto needs data: dataset is NULL");
        spec = mrc_preprocess_auto(data->format, data->dtype);
    }
    MRC_TRY(mrc_spec_read(context, &grammar, spec, &given, &index));
    mrc_preprocess_kind kind = entries[index].kind;
    if (kind == MRC_PREPROCESS_STANDARDIZE || kind == MRC_PREPROCESS_MINMAX)
        return fit_features(out, context, kind, data);
    if (kind == MRC_PREPROCESS_RANK) return mrc_preprocess_fit_rank(out, context, data);
    if (kind == MRC_PREPROCESS_BLEND) return mrc_preprocess_fit_blend(out, context, data);
    return mrc_preprocess_create(out, context, kind, given.factor, 0, NULL, NULL);
}
