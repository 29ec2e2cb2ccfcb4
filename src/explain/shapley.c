/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exact Shapley values of the outputs of a model, for the columns of its table.
 *
 * The game of a row x and a background row b is v(S) = f(x_S, b_rest): the columns in S have the values of x, and all
 * other columns have the values of b. The value of column k is the mean change of f when column k switches from b to x,
 * over all orders of the columns. For sums of products over columns the value is a one-dimensional integral (Owen
 * 1972), which game.c computes exactly; mixture.c writes the other kernels of a distance as sums of products, with an
 * error bound. The values of a background are the means over its rows. They sum to f(x) minus the mean of f over the
 * background.
 *
 * A column comprises all its features: the levels of a category, the flag for missing values, features that a metric
 * combines only with each other. Mixing rows commutes with the preprocessing as long as no preprocessed feature depends
 * on two columns; models with such a feature are refused.
 *
 * The mean of several models: each member has its own game. Given background rows are the same for all members; without
 * them, each member uses its own centers. Values are means over the members. With a target transform (log, rank),
 * values refer to the transformed target, because a nonlinear function of a sum of products is not such a sum.
 */
#include "explain/shapley.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/numbers/random.h"
#include "core/threads/parallel.h"
#include "explain/game_block.h"
#include "explain/model_columns.h"

#include <math.h>
#include <string.h>

enum { BLOCK_BYTES = 16 << 20, USUAL_BACKGROUND = 100, BACKGROUND_SEQUENCE = 0x73686170 };

/* ---- Columns of features ----------------------------------------------------------------------------------------- */

/* Fills owner (features) with the column of each feature of the samples. */
static void find_sample_owners(const mrc_model_columns *columns, const mercer_model *model, int64_t *owner)
{
    for (int64_t k = 0; k < columns->count; k++) {
        mrc_column column = mrc_model_column(columns, model, k);
        for (int64_t l = 0; l < column.width; l++) owner[column.first + l] = k;
    }
}

/* Finds the column that each feature of the centers depends on. Fails if a feature depends on two columns. */
static mercer_status find_owners(const mercer_model *model, const int64_t *sample_owner, int64_t *owner)
{
    const mercer_preprocess *preprocess = model->preprocess;
    const mrc_linear_map *map = preprocess ? preprocess->map : NULL;
    int64_t width = model->centers.cols;
    if (preprocess && preprocess->kind == MRC_PREPROCESS_UNIT && mrc_model_features(model) > 1)
        return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                        "Shapley values: preprocessing 'unit' divides each feature by the norm of its row, so every "
                        "feature depends on all columns; train with another preprocessing");
    for (int64_t q = 0; q < width; q++) {
        if (!map || map->diagonal) {
            owner[q] = sample_owner[q];
            continue;
        }
        owner[q] = -1;
        for (int64_t l = 0; l < map->features; l++) {
            if (map->values[l * width + q] == 0) continue;
            if (owner[q] >= 0 && owner[q] != sample_owner[l])
                return mrc_fail(
                    model->context, MERCER_ERROR_UNSUPPORTED,
                    "Shapley values: the model has a full metric, which combines columns, so they have no exact "
                    "values; train with a kernel of the L1 distance (--kernel exppower-l1) or without a metric");
            owner[q] = sample_owner[l];
        }
        owner[q] = owner[q] < 0 ? 0 : owner[q];
    }
    return MERCER_OK;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Preprocesses rows to points (m, width) f64, rounded to float where a prediction rounds them. */
static mercer_status make_points(const mercer_model *model, const mercer_matrix *points, const mercer_matrix *X)
{
    bool single = model->centers.dtype != MERCER_F64 && model->weights.dtype != MERCER_F64;
    mrc_preprocess_rows(model->preprocess, points, X);
    double *values = points->data;
    for (int64_t i = 0; single && !mrc_preprocess_is_identity(model->preprocess) && i < points->rows * points->cols;
         i++)
        values[i] = (double)(float)values[i];
    return mrc_check_finite(model->context, "X preprocessed", points, NULL);
}

/* Makes the background of a member: given rows, or centers drawn without replacement. */
static mercer_status make_background(mercer_shap *self, mrc_shap_member *member, const mercer_matrix *given)
{
    const mercer_model *model = member->model;
    MRC_TRY(mrc_scope_view(&self->scope, &member->background, self->rows, model->centers.cols, MERCER_F64,
                           "background rows"));
    if (given) return make_points(model, &member->background, given);
    for (int64_t i = 0; i < self->rows; i++)
        mrc_load_row_f64(&model->centers,
                         mrc_random_permutation((mrc_rng){0, BACKGROUND_SEQUENCE}, model->centers.rows, i),
                         mrc_row(&member->background, i));
    return MERCER_OK;
}

/* ---- Base values ------------------------------------------------------------------------------------------------- */

typedef struct base_job {
    const mrc_shap_member *member;
    double *values; /* (rows, outputs) */
    double *row;    /* (threads, width) a center */
} base_job;

/* A task of mrc_parallel_for: the outputs at a background row, without units. */
static void find_output(void *argument, int64_t index, int worker)
{
    const base_job *job = argument;
    const mercer_model *model = job->member->model;
    int64_t width = model->centers.cols, outputs = model->weights.cols;
    const double *b = mrc_row(&job->member->background, index);
    double *z = job->row + worker * width, *values = job->values + index * outputs;
    for (int64_t c = 0; c < outputs; c++) values[c] = 0;
    for (int64_t j = 0; j < model->centers.rows; j++) {
        double sum = 0;
        mrc_load_row_f64(&model->centers, j, z);
        for (int64_t l = 0; l < width; l++) sum += mrc_difference_power(job->member->power, b[l] - z[l]);
        double value = mrc_kernel_of_distance(&model->kernel, sum);
        for (int64_t c = 0; c < outputs; c++) values[c] += value * mrc_load(&model->weights, j, c);
    }
}

/* Returns the bound of the error of an output's values. A value is a mean of differences of two kernel sums; each term
   of the mixture may leave out MRC_GAME_NEGLIGIBLE. */
static double bound_error(const mrc_shap_member *member, int64_t output)
{
    const mercer_model *model = member->model;
    const mrc_mixture *mixture = &member->mixture;
    double sum = 0, each = 2 * mixture->error + (double)mixture->count * MRC_GAME_NEGLIGIBLE(mixture->count);
    for (int64_t j = 0; j < model->weights.rows; j++) sum += fabs(mrc_load(&model->weights, j, output));
    return each * sum * (mrc_units_given(&model->units) ? model->units.scale[output] : 1);
}

/* Adds a member's share of the base values and of the error bound. */
static mercer_status add_base(mercer_shap *self, const mrc_shap_member *member)
{
    const mrc_units *units = &member->model->units;
    base_job job = {.member = member};
    double most = 0;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_scope_alloc(&scope, &job.values, self->rows * self->outputs, sizeof(double), "base values"));
    MRC_TRY(mrc_scope_alloc(&scope, &job.row, mrc_max(1, self->context->threads) * member->background.cols,
                            sizeof(double), "base values"));
    mrc_parallel_for(self->context->threads, self->rows, find_output, &job);
    for (int64_t c = 0; c < self->outputs; c++) {
        double sum = 0;
        for (int64_t i = 0; i < self->rows; i++) sum += job.values[i * self->outputs + c];
        double mean = sum / (double)self->rows;
        if (mrc_units_given(units)) mean = units->offset[c] + units->scale[c] * mean;
        self->base[c] += mean / (double)self->member_count;
        most = fmax(most, bound_error(member, c));
    }
    self->error += most / (double)self->member_count;
    return MERCER_OK;
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

/* Checks what must hold for the whole model. For a mean with a target transform, values would refer to a mean after the
   inverse transforms, which is not a sum of products. */
static mercer_status check_model(const mercer_model *model)
{
    if (model->comm)
        return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                        "Shapley values: the model is shared by ranks; load it in one process");
    if (model->member_count > 1 && model->units.curve.kind != MRC_CURVE_NONE)
        return mrc_fail(
            model->context, MERCER_ERROR_UNSUPPORTED,
            "Shapley values: the mean of %lld models with a target transform has no exact values; train with "
            "an effort of at most 3 or without a transform",
            (long long)model->member_count);
    return MERCER_OK;
}

/* Prepares a member. Its mixture, owners and background depend on its own kernel, metric and preprocessing. */
static mercer_status open_member(mercer_shap *self, mercer_model *model, const int64_t *sample_owner,
                                 const mercer_matrix *background)
{
    mrc_shap_member *member = &self->members[self->member_count++];
    *member = (mrc_shap_member){.model = model, .power = mrc_kernel_norm(&model->kernel)};
    MRC_TRY(mrc_scope_alloc(&self->scope, &member->owner, model->centers.cols, sizeof *member->owner, "columns"));
    MRC_TRY(find_owners(model, sample_owner, member->owner));
    MRC_TRY(mrc_mixture_find(&member->mixture, &self->scope, &model->kernel));
    self->terms = mrc_max(self->terms, member->mixture.count);
    return make_background(self, member, background);
}

static void free_names(void *context, void *names)
{
    mrc_free(context, names);
}

/* Fills the parts of a new object. */
static mercer_status open_parts(mercer_shap *self, mercer_model *model, const mercer_matrix *background)
{
    MRC_OWNED(mrc_model_columns_close) mrc_model_columns columns = {0};
    int64_t *sample_owner;
    void *names = NULL;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(mrc_model_columns_open(&columns, model));
    self->columns = columns.count;
    MRC_TRY(mrc_model_columns_names(&columns, model, &names));
    self->names = names;
    if (names) MRC_TRY(mrc_scope_add(&self->scope, free_names, self->context, names));
    MRC_TRY(mrc_scope_alloc(&self->scope, &self->base, self->outputs, sizeof *self->base, "base values"));
    memset(self->base, 0, (size_t)self->outputs * sizeof *self->base);
    MRC_TRY(mrc_scope_alloc(&scope, &sample_owner, self->features, sizeof *sample_owner, "columns"));
    find_sample_owners(&columns, model, sample_owner);
    MRC_TRY(mrc_gauss_rules(self));
    for (int64_t m = 0; m < model->member_count; m++)
        MRC_TRY(open_member(self, model->members[m], sample_owner, background));
    for (int64_t m = 0; m < self->member_count; m++) MRC_TRY(add_base(self, &self->members[m]));
    return MERCER_OK;
}

mercer_status mrc_shap_create(mercer_shap **out, mercer_model *model, const mercer_matrix *background, int64_t rows)
{
    MRC_OWNED(mrc_release_shap) mercer_shap *self = NULL;
    MRC_TRY(check_model(model));
    if (background) MRC_TRY(mrc_check_finite(model->context, "background", background, NULL));
    MRC_TRY(mrc_alloc_zero(model->context, &self, 1, sizeof *self, "Shapley values"));
    self->context = self->scope.context = model->context;
    self->features = mrc_model_features(model);
    self->outputs = model->weights.cols;
    self->from_centers = !background;
    self->rows = background ? background->rows : rows > 0 ? rows : USUAL_BACKGROUND;
    for (int64_t m = 0; m < model->member_count && !background; m++)
        self->rows = mrc_min(self->rows, model->members[m]->centers.rows);
    MRC_TRY(open_parts(self, model, background));
    *out = self, self = NULL;
    return MERCER_OK;
}

void mrc_shap_free(mercer_shap *shap)
{
    if (!shap) return;
    mercer_context *context = shap->context;
    mrc_scope_close(&shap->scope);
    mrc_free(context, shap);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Computes the values at the rows of X, a block that fits into memory: values is (m, outputs columns), or with `pairs`
   (m, outputs columns columns), f64. memory (m, width): scratch space. */
static mercer_status add_members(const mercer_shap *shap, const mercer_matrix *X, bool pairs, double *memory,
                                 const mercer_matrix *values)
{
    double share = 1 / (double)mrc_max(1, shap->member_count);
    memset(values->data, 0, (size_t)(values->rows * values->cols) * sizeof(double));
    for (int64_t m = 0; m < shap->member_count; m++) {
        const mrc_shap_member *member = &shap->members[m];
        const mrc_units *units = &member->model->units;
        mercer_matrix points = mrc_view(memory, X->rows, member->background.cols, MERCER_F64);
        MRC_TRY(make_points(member->model, &points, X));
        MRC_TRY(
            mrc_game_add(shap, member, &points, share, mrc_units_given(units) ? units->scale : NULL, pairs, values));
    }
    return MERCER_OK;
}

static void store_rows(const mercer_matrix *to, int64_t first, const mercer_matrix *from)
{
    for (int64_t i = 0; i < from->rows; i++)
        for (int64_t k = 0; k < from->cols; k++) mrc_store(to, first + i, k, mrc_load(from, i, k));
}

/* Turns `pairs`, which has I_kl for k < l, into the interactions (columns, columns) of one row and output. values
   (columns). */
static void fill_interactions(int64_t columns, const double *values, double *pairs)
{
    for (int64_t k = 0; k < columns; k++) {
        pairs[k * columns + k] = values[k];
        for (int64_t l = k + 1; l < columns; l++)
            pairs[l * columns + k] = pairs[k * columns + l] = pairs[k * columns + l] / 2;
    }
    for (int64_t k = 0; k < columns; k++)
        for (int64_t l = 0; l < columns; l++)
            if (l != k) pairs[k * columns + k] -= pairs[k * columns + l];
}

/* Computes values or interactions of all rows of X, some rows at a time. */
static mercer_status compute_rows(mercer_shap *shap, bool pairs, const mercer_matrix *values, const mercer_matrix *X)
{
    int64_t width = 1, size = sizeof(double), plain = shap->outputs * shap->columns;
    mercer_matrix sums, squares = {0};
    double *memory;
    MRC_TRY(mrc_check_finite(shap->context, "X", X, NULL));
    for (int64_t m = 0; m < shap->member_count; m++) width = mrc_max(width, shap->members[m].background.cols);
    int64_t most = mrc_max(1, mrc_min(X->rows, BLOCK_BYTES / size / mrc_max(width, values->cols)));
    MRC_SCOPE(scope, shap->context);
    MRC_TRY(mrc_scope_alloc(&scope, &memory, most * width, size, "Shapley values"));
    MRC_TRY(mrc_scope_view(&scope, &sums, most, plain, MERCER_F64, "Shapley values"));
    if (pairs) MRC_TRY(mrc_scope_view(&scope, &squares, most, values->cols, MERCER_F64, "Shapley interactions"));
    for (int64_t first = 0; first < X->rows; first += most) {
        mercer_matrix x = mrc_rows(X, first, mrc_min(most, X->rows - first)), to = mrc_rows(&sums, 0, x.rows);
        MRC_TRY(add_members(shap, &x, false, memory, &to));
        if (pairs) {
            mercer_matrix found = mrc_rows(&squares, 0, x.rows);
            MRC_TRY(add_members(shap, &x, true, memory, &found));
            for (int64_t i = 0; i < x.rows * shap->outputs; i++)
                fill_interactions(shap->columns, (double *)to.data + i * shap->columns,
                                  (double *)found.data + i * shap->columns * shap->columns);
            to = found;
        }
        store_rows(values, first, &to);
    }
    return MERCER_OK;
}

mercer_status mrc_shap_values(mercer_shap *shap, const mercer_matrix *values, const mercer_matrix *X)
{
    return compute_rows(shap, false, values, X);
}

mercer_status mrc_shap_interactions(mercer_shap *shap, const mercer_matrix *values, const mercer_matrix *X)
{
    return compute_rows(shap, true, values, X);
}
