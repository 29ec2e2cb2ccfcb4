/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of the targets by level of a category, for categories with too many levels for one feature each.
 *
 * For a set of rows, let t be a target (one-hot for classes) with the mean p and the deviation s over the set. Let n_l
 * be the number of rows with level l, and S_l the sum of t - p over these rows, both weighted. The statistic of level l
 * is
 *
 *   v_l = S_l / (n_l + a) / s,     a = max(1, W / B)
 *
 * with the variance W of t within levels and the variance B of the means of levels. Both are estimated by the analysis
 * of variance of unequal groups. If B is not positive, levels do not differ and all v_l are 0. Unknown levels have v =
 * 0, the statistic of the mean.
 *
 * The feature of a training row must not contain the target of that row: a model would learn to read the target there.
 * Rows are divided into folds, and a training row gets the statistic of its level over the rows of other folds. Rows
 * with equal features, and rows of a group, are in the same fold. With times, folds are in the order of time, and only
 * earlier folds count. New rows get the statistic over all rows, which the schema stores.
 *
 * Cost: two passes over the rows. Memory: folds x levels x (1 + statistics) doubles per category, a byte per row.
 */
#include "core/file/spill.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/weighted.h"
#include "data/dataset.h"
#include "data/equal_rows.h"
#include "data/schema/schema.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

/* With times there are more folds, because the rows of the first fold have no statistics. */
enum { FOLDS = 5, TIME_FOLDS = 10, BLOCK = 256, MOST = MRC_STATISTICS_MOST };

/* Sums over the rows of one or several folds. Index 0 of the levels is for words that are not among the levels. */
typedef struct sums {
    double *weight, *sum;                   /* (levels), (levels, k) */
    double total, mean[MOST], square[MOST]; /* over all rows: sum of the weights; sums of t and of t^2 */
    double known_square[MOST];              /* sums of t^2 over rows of known levels */
} sums;

/* A category whose statistics are computed. */
typedef struct category {
    mrc_column *column;
    /* index of the first statistic in a row; number of levels, including one for other words and one for missing
       values */
    int64_t feature, levels;
    sums folds[TIME_FOLDS];
    double *values[TIME_FOLDS + 1]; /* (levels, k) statistics for the rows of each fold; last array: for new rows */
} category;

typedef struct maker {
    mercer_dataset *data;
    mrc_schema *schema;
    mrc_scope *scope;
    category *list; /* (count) */
    int64_t count, k;
    int folds;
    uint8_t *fold;         /* (rows) */
    int32_t classes[MOST]; /* (k) classes whose shares are the statistics */
    double center[MOST];   /* (k) subtracted from targets to reduce rounding errors */
    double unit;           /* factor of weights, so that their mean is 1 */
    mercer_matrix block;   /* (BLOCK, features) scratch space */
} maker;

int64_t mrc_statistic_count(bool classes, int64_t outputs)
{
    return classes && outputs == 2 ? 1 : mrc_min(outputs, MOST);
}

/* ---- Targets --------------------------------------------------------------------------------------------------- */

static double weight_of(const maker *self, int64_t row)
{
    return self->data->weights ? self->data->weights[row] * self->unit : 1;
}

static void load_targets(const maker *self, int64_t row, double *t)
{
    const int32_t *labels = self->data->labels;
    for (int64_t k = 0; k < self->k; k++)
        t[k] = labels ? (labels[row] == self->classes[k]) : mrc_load(&self->data->y, row, k) - self->center[k];
}

/* Chooses the classes: the second of two classes, or the most frequent of more classes. */
static mercer_status choose_classes(maker *self)
{
    const mercer_dataset *data = self->data;
    int64_t *counts;
    if (!data->labels) return MERCER_OK;
    self->classes[0] = 1;
    if (data->outputs == 2) return MERCER_OK;
    MRC_SCOPE(scope, data->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &counts, data->outputs, sizeof *counts, "counts of classes"));
    for (int64_t i = 0; i < data->rows; i++) counts[data->labels[i]]++;
    for (int64_t k = 0; k < self->k; k++) {
        int64_t best = 0;
        for (int64_t l = 1; l < data->outputs; l++)
            if (counts[l] > counts[best]) best = l;
        self->classes[k] = (int32_t)best;
        counts[best] = -1;
    }
    return MERCER_OK;
}

/* Sets the factor of the weights and the centers of values. Classes are 0 or 1 and need no center. */
static void find_centers(maker *self)
{
    const mercer_dataset *data = self->data;
    double total = 0;
    for (int64_t i = 0; i < data->rows && data->weights; i++) total += data->weights[i];
    self->unit = total > 0 ? (double)data->rows / total : 1;
    for (int64_t k = 0; k < self->k && !data->labels; k++) {
        double sum = 0;
        for (int64_t i = 0; i < data->rows; i++) sum += mrc_load(&data->y, i, k) / (double)data->rows;
        self->center[k] = sum;
    }
}

/* ---- Folds ----------------------------------------------------------------------------------------------------- */

/* Deals groups to the folds in turn, in the order of their first rows. The values of the keys are not used, because
   files and arrays may have different keys for the same groups. */
static mercer_status fold_groups(maker *self)
{
    int64_t *group, count, n = self->data->rows;
    MRC_SCOPE(scope, self->data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &group, n, sizeof *group, "folds of rows"));
    MRC_TRY(mrc_row_units(self->data, NULL, n, group, &count));
    for (int64_t i = 0; i < n; i++) self->fold[i] = (uint8_t)(group[i] % FOLDS);
    return MERCER_OK;
}

/* Divides the rows, in the order of time, into folds of about equal size. Rows with equal times, and equal rows, are in
   one fold. */
static mercer_status fold_times(maker *self)
{
    mrc_keyed *sorted;
    double *times;
    int64_t n = self->data->rows;
    MRC_SCOPE(scope, self->data->context);
    MRC_TRY(mrc_scope_alloc(&scope, &sorted, n, sizeof *sorted, "folds of rows"));
    MRC_TRY(mrc_scope_alloc(&scope, &times, n, sizeof *times, "times of rows"));
    MRC_TRY(mrc_first_times(self->data, times));
    for (int64_t i = 0; i < n; i++) sorted[i] = (mrc_keyed){times[i], i};
    mrc_keyed_sort(sorted, n);
    for (int64_t i = 0, first = 0; i < n; i++) {
        if (i > 0 && sorted[i].key != sorted[i - 1].key) first = i;
        self->fold[sorted[i].row] = (uint8_t)(first * TIME_FOLDS / n);
    }
    return MERCER_OK;
}

/* Returns a hash of a row's features, in which -0 equals 0. */
static uint64_t hash_row(float *row, int64_t features)
{
    for (int64_t j = 0; j < features; j++) row[j] = row[j] == 0 ? 0 : row[j];
    return XXH3_64bits(row, (size_t)features * sizeof *row);
}

static void read_block(const maker *self, int64_t first, mercer_matrix *x)
{
    *x = mrc_rows(&self->block, 0, mrc_min(BLOCK, self->data->rows - first));
    mrc_dataset_fetch(self->data, NULL, first, x, NULL, NULL);
}

static mercer_status choose_folds(maker *self)
{
    const mercer_dataset *data = self->data;
    mercer_matrix x;
    self->folds = data->key_kind == MRC_KEYS_TIMES ? TIME_FOLDS : FOLDS;
    MRC_TRY(mrc_scope_alloc(self->scope, &self->fold, data->rows, 1, "folds of rows"));
    if (data->key_kind == MRC_KEYS_GROUPS) return fold_groups(self);
    if (data->key_kind == MRC_KEYS_TIMES) return fold_times(self);
    /* Rows with equal features have equal hashes and so are in one fold. At this point, features for statistics still
       have the number of the level. */
    for (int64_t first = 0; first < data->rows; first += BLOCK) {
        read_block(self, first, &x);
        for (int64_t i = 0; i < x.rows; i++)
            self->fold[first + i] = (uint8_t)(hash_row(mrc_row(&x, i), x.cols) % FOLDS);
    }
    return MERCER_OK;
}

/* ---- Sums ------------------------------------------------------------------------------------------------------ */

/* Adds a row to the sums of its fold in a category. level is the number of its level plus 1, or 0 for a word that is
   not among the levels. */
static void add_row(const maker *self, const category *one, int64_t row, int64_t level, const double *t)
{
    sums *to = (sums *)&one->folds[self->fold[row]];
    double w = weight_of(self, row);
    to->weight[level] += w;
    to->total += w;
    for (int64_t k = 0; k < self->k; k++) {
        double square = w * t[k] * t[k];
        to->sum[level * self->k + k] += w * t[k];
        to->mean[k] += w * t[k];
        to->square[k] += square;
        to->known_square[k] += level > 0 ? square : 0;
    }
}

static void add_rows(const maker *self)
{
    mercer_matrix x;
    double t[MOST];
    for (int64_t first = 0; first < self->data->rows; first += BLOCK) {
        read_block(self, first, &x);
        for (int64_t i = 0; i < x.rows; i++) {
            load_targets(self, first + i, t);
            for (int64_t c = 0; c < self->count; c++) {
                const category *one = &self->list[c];
                add_row(self, one, first + i, (int64_t)((const float *)mrc_row(&x, i))[one->feature], t);
            }
        }
    }
}

/* Adds the sums of one fold to the sums of several folds. */
static void add_sums(const maker *self, int64_t levels, sums *to, const sums *from)
{
    to->total += from->total;
    for (int64_t i = 0; i < levels * (1 + self->k); i++) to->weight[i] += from->weight[i];
    for (int64_t k = 0; k < self->k; k++) {
        to->mean[k] += from->mean[k];
        to->square[k] += from->square[k];
        to->known_square[k] += from->known_square[k];
    }
}

/* ---- Statistics ------------------------------------------------------------------------------------------------ */

/*
 * Returns the smoothing parameter a of statistic k, or infinity if levels do not differ. Let g levels have weights n_l
 * with the sum N, and weighted sums T_l of their targets:
 *     W = (sum t^2 - sum T_l^2 / n_l) / (N - g),   B = (sum n_l (T_l / n_l - mean)^2 / (g - 1) - W) / m,
 *     m = (N - sum n_l^2 / N) / (g - 1)
 */
static double smoothing(const maker *self, int64_t levels, const sums *all, int64_t k)
{
    double rows = 0, squares = 0, between = 0, means = 0, mean = all->mean[k] / all->total;
    int64_t count = 0;
    for (int64_t l = 1; l < levels; l++) {
        double n = all->weight[l], sum = all->sum[l * self->k + k];
        if (!(n > 0)) continue;
        count++;
        rows += n, squares += n * n;
        means += sum * sum / n;
        between += n * (sum / n - mean) * (sum / n - mean);
    }
    double freedom = rows - (double)count, size = (rows - squares / rows) / (double)(count - 1);
    if (count < 2 || !(freedom > 0) || !(size > 0)) return (double)INFINITY;
    double within = fmax(0, all->known_square[k] - means) / freedom;
    double spread = (between / (double)(count - 1) - within) / size;
    return spread > 0 ? fmax(1, within / spread) : (double)INFINITY;
}

/* Computes the statistics of all levels from sums over several folds. */
static void compute_values(const maker *self, int64_t levels, const sums *all, double *values)
{
    for (int64_t k = 0; k < self->k && all->total > 0; k++) {
        double mean = all->mean[k] / all->total, variance = all->square[k] / all->total - mean * mean;
        double a = smoothing(self, levels, all, k);
        /* A variance this small compared with the mean square is only rounding error. */
        if (!(variance > 1e-12 * all->square[k] / all->total) || !isfinite(a)) continue;
        for (int64_t l = 1; l < levels; l++) {
            double n = all->weight[l], sum = all->sum[l * self->k + k];
            if (n > 0) values[l * self->k + k] = (sum - n * mean) / (n + a) / sqrt(variance);
        }
    }
}

/* Returns whether the rows of `other` count for the statistics of the rows of `fold`. */
static bool counts(const maker *self, int fold, int other)
{
    return fold == self->folds || (self->data->key_kind == MRC_KEYS_TIMES ? other < fold : other != fold);
}

static mercer_status finish_category(const maker *self, category *one)
{
    for (int fold = 0; fold <= self->folds; fold++) {
        sums all = {0};
        MRC_SCOPE(scope, self->data->context);
        MRC_TRY(
            mrc_scope_alloc_zero(&scope, &all.weight, one->levels * (1 + self->k), sizeof(double), "sums of levels"));
        all.sum = all.weight + one->levels;
        for (int other = 0; other < self->folds; other++)
            if (counts(self, fold, other)) add_sums(self, one->levels, &all, &one->folds[other]);
        compute_values(self, one->levels, &all, one->values[fold]);
    }
    /* The schema has no entry for index 0, the words that are not among the levels. */
    one->column->statistic = one->values[self->folds] + self->k;
    return MERCER_OK;
}

/* Lists the categories with statistics, and allocates their sums and statistics. */
static mercer_status open_categories(maker *self)
{
    int64_t values = 0;
    double *memory;
    for (int64_t i = 0; i < self->schema->count; i++) {
        mrc_column *column = &self->schema->columns[i];
        category *one = &self->list[self->count];
        if (column->statistics == 0) continue;
        *one = (category){.column = column,
                          .feature = column->first + column->width - column->statistics,
                          .levels = mrc_column_levels(column) + 2};
        values += one->levels * ((self->folds + 1) * self->k + self->folds * (1 + self->k));
        self->count++;
    }
    MRC_TRY(mrc_scope_alloc_zero(self->scope, &memory, values, sizeof(double), "statistics of levels"));
    for (int64_t c = 0; c < self->count; c++) {
        category *one = &self->list[c];
        for (int fold = 0; fold <= self->folds; fold++, memory += one->levels * self->k) one->values[fold] = memory;
        for (int fold = 0; fold < self->folds; fold++, memory += one->levels * (1 + self->k))
            one->folds[fold] = (sums){.weight = memory, .sum = memory + one->levels};
    }
    return MERCER_OK;
}

/* ---- The samples ----------------------------------------------------------------------------------------------- */

/* Replaces the numbers of levels in x, the rows of the dataset from `first` on, by the statistics of these levels. */
static void replace_levels(const maker *self, int64_t first, const mercer_matrix *x)
{
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t c = 0; c < self->count; c++) {
            const category *one = &self->list[c];
            float *to = (float *)mrc_row(x, i) + one->feature;
            const double *from = one->values[self->fold[first + i]] + (int64_t)*to * self->k;
            for (int64_t k = 0; k < self->k; k++) to[k] = (float)from[k];
        }
}

/* Writes the samples to a new temporary file, because changed pages of a mapped file would stay in memory. */
static mercer_status replace_file(const maker *self)
{
    mercer_dataset *data = self->data;
    MRC_OWNED(mrc_spill_close) mrc_spill spill = {.descriptor = -1};
    mrc_mapping map;
    mercer_matrix x;
    MRC_TRY(mrc_spill_open(&spill, data->context));
    for (int64_t first = 0; first < data->rows; first += BLOCK) {
        read_block(self, first, &x);
        replace_levels(self, first, &x);
        MRC_TRY(mrc_spill_write(&spill, x.data, x.rows * x.cols * (int64_t)sizeof(float)));
    }
    MRC_TRY(mrc_spill_map(&spill, &map));
    mrc_unmap(&data->x_map);
    data->x_map = map;
    data->x.data = map.data;
    return MERCER_OK;
}

/* Prints the schema with its statistics. */
static mercer_status replace_schema(const maker *self)
{
    mercer_dataset *data = self->data;
    mrc_schema *schema = self->schema;
    char *text;
    for (int64_t i = 0; i < schema->count; i++) {
        mrc_column *column = &schema->columns[i];
        /* Parsed rows of P are complete; mrc_schema_print writes them up to the diagonal. */
        if (column->deviation > 0) column->precision = schema->gaps.precision + column->gap * schema->gaps.count;
    }
    MRC_TRY(mrc_schema_print(data->context, schema->columns, schema->count, &schema->missing, &text));
    mrc_free(data->context, data->schema_text);
    data->schema = data->schema_text = text;
    return MERCER_OK;
}

static mercer_status add_statistics(maker *self)
{
    mercer_dataset *data = self->data;
    const mrc_schema *schema = self->schema;
    MRC_TRY(mrc_scope_alloc(self->scope, &self->list, schema->count + 1, sizeof *self->list, "columns of a table"));
    MRC_TRY(mrc_scope_view(self->scope, &self->block, BLOCK, data->features, MERCER_F32, "rows of a table"));
    MRC_TRY(choose_classes(self));
    find_centers(self);
    MRC_TRY(choose_folds(self));
    MRC_TRY(open_categories(self));
    add_rows(self);
    for (int64_t c = 0; c < self->count; c++) MRC_TRY(finish_category(self, &self->list[c]));
    if (data->spilled)
        MRC_TRY(replace_file(self));
    else
        replace_levels(self, 0, &data->x);
    return replace_schema(self);
}

/* Checks that each category with statistics has k statistics per level and no values yet. A schema from the caller may
   differ. */
static mercer_status check_counts(const maker *self)
{
    const mrc_schema *schema = self->schema;
    for (int64_t i = 0; i < schema->count; i++) {
        const mrc_column *column = &schema->columns[i];
        if (column->statistics == 0 || (!column->statistic && column->statistics == self->k)) continue;
        return mrc_fail(self->data->context, MERCER_ERROR_FORMAT,
                        "schema: column '%s' has %lld statistics per level%s, but these targets have %lld",
                        column->name ? column->name : "", (long long)column->statistics,
                        column->statistic ? " with values, unlike another column" : "", (long long)self->k);
    }
    return MERCER_OK;
}

mercer_status mrc_dataset_add_statistics(mercer_dataset *data)
{
    MRC_OWNED(mrc_release_schema) mrc_schema *schema = NULL;
    bool known = true;
    if (!data->schema || data->rows == 0) return MERCER_OK;
    MRC_TRY(mrc_schema_read(&schema, data->context, data->schema));
    for (int64_t i = 0; i < schema->count; i++)
        known = known && (schema->columns[i].statistics == 0 || schema->columns[i].statistic);
    if (known) return MERCER_OK;
    MRC_SCOPE(scope, data->context);
    maker self = {.data = data, .schema = schema, .scope = &scope};
    if (data->task != MERCER_TASK_UNLABELED) self.k = mrc_statistic_count(data->labels != NULL, data->outputs);
    MRC_TRY(check_counts(&self));
    return add_statistics(&self);
}
