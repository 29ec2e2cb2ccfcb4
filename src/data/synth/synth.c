/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Synthetic samples: the list of kinds, and datasets of them.
 *
 * digits, clusters and teacher have their own files. For clusters and teacher the smallest possible error is known.
 *
 * spirals: class k of K, place u uniform in [0, 1):  r = sqrt(u),  angle = 2 pi (1.25 r + k / K),
 *     x = r (cos, sin) + noise N(0, I)    in the plane.
 */
#include "data/synth/synth.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/threads/parallel.h"
#include "data/synth/synth_kinds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Mixed into the seed, so that samples and, for example, their reading order draw different numbers. */
#define SEED_SALT UINT64_C(0x73796e7468657469)

enum { LABEL_CHARS = 12 };

/* ---- Spirals ------------------------------------------------------------------------------------------------- */

/* Computes a sample of the spirals; see the top of the file. Draw 0 is the class and draw 1 the radius; the noise
   begins at normal number 8. */
static int32_t sample_spirals(const mrc_synth *self, int64_t index, void *features, const mercer_matrix *y, int64_t row)
{
    (void)y, (void)row;
    const double two_pi = 6.283185307179586, turns = 1.25;
    mrc_rng rng = {self->seed, (uint64_t)index};
    int32_t label = (int32_t)mrc_random_below(rng, 0, self->parameters.classes);
    double radius = sqrt(mrc_random_uniform(rng, 1));
    double angle = two_pi * (turns * radius + (double)label / self->parameters.classes);
    float noise[2], *out = features;
    mrc_random_normals(&self->normals, rng, 8, 2, noise);
    out[0] = (float)(radius * cos(angle) + self->parameters.noise * (double)noise[0]);
    out[1] = (float)(radius * sin(angle) + self->parameters.noise * (double)noise[1]);
    return label;
}

static mercer_status prepare_spirals(mercer_dataset *dataset, mrc_synth *self)
{
    dataset->features = 2;
    dataset->outputs = self->parameters.classes;
    return MERCER_OK;
}

/* ---- Kinds --------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(mrc_synth_parameters, field)
#define NOISE(fallback)                                              \
    {                                                                \
        "noise", AT(noise), MRC_REAL, false, true, 0, 1e30, fallback \
    }

/* clang-format off */
static const mrc_synth_kind kinds[] = {
    {{"digits", "digits:noise=0.1", {NOISE(0.1)}},
     MERCER_TASK_CLASSIFICATION, MERCER_U8, mrc_synth_prepare_digits, mrc_synth_digit},
    {{"spirals", "spirals:classes=3,noise=0.05",
      {{"classes", AT(classes), MRC_WHOLE, false, true, 1, 1000, 2}, NOISE(0.05)}},
     MERCER_TASK_CLASSIFICATION, MERCER_F32, prepare_spirals, sample_spirals},
    {{"clusters", "clusters:d=20,classes=10,centers=1000,overlap=1.5,noise=0.1",
      {{"d", AT(d), MRC_WHOLE, false, true, 1, 1e6, 20},
       {"classes", AT(classes), MRC_WHOLE, false, true, 1, 1000, 10},
       {"centers", AT(centers), MRC_WHOLE, false, true, 1, 1e7, 1000},
       {"overlap", AT(bandwidth), MRC_REAL, false, false, 0, 1e30, 1},
       {"noise", AT(noise), MRC_REAL, false, true, 0, 1, 0}}},
     MERCER_TASK_CLASSIFICATION, MERCER_F32, mrc_synth_prepare_clusters, mrc_synth_cluster},
    {{"teacher", "teacher:d=20,c=1,centers=100,noise=0.1,kernel=laplace,bandwidth=5",
      {{"d", AT(d), MRC_WHOLE, false, true, 1, 1e6, 10},
       {"c", AT(c), MRC_WHOLE, false, true, 1, 1e6, 1},
       {"centers", AT(centers), MRC_WHOLE, false, true, 1, 1e6, 100},
       NOISE(0),
       {"kernel", AT(kernel), MRC_WORD, false, false, 0, 0, 0},
       {"bandwidth", AT(bandwidth), MRC_REAL, false, false, 0, 1e100, 0}}},
     MERCER_TASK_REGRESSION, MERCER_F32, mrc_synth_prepare_teacher, mrc_synth_teach},
};
/* clang-format on */

/* ---- The smallest possible error ----------------------------------------------------------------------------- */

typedef struct error_job {
    const mercer_dataset *dataset;
    float *x;       /* (threads, d) */
    double *shares; /* (threads, classes) */
    double *errors; /* (rows) */
} error_job;

/* A task of mrc_parallel_for: computes the smallest possible error at one sample. */
static void add_error(void *argument, int64_t index, int worker)
{
    const error_job *job = argument;
    const mercer_dataset *data = job->dataset;
    float *x = job->x + worker * data->features;
    data->synth->kind->sample(data->synth, data->synth_first + index, x, NULL, 0);
    job->errors[index] = mrc_synth_cluster_error(data->synth, x, job->shares + worker * data->outputs);
}

mercer_status mrc_synth_least_error(const mercer_dataset *dataset, double *out, int64_t rows)
{
    const mrc_synth *self = dataset->synth;
    mercer_context *context = dataset->context;
    int threads = context->threads;
    error_job job = {.dataset = dataset};
    MRC_SCOPE(scope, context);
    if (self && self->kind->sample == mrc_synth_teach)
        return *out = self->parameters.noise * self->parameters.noise, MERCER_OK;
    if (!self || self->kind->sample != mrc_synth_cluster)
        return mrc_fail(context, MERCER_ERROR_UNSUPPORTED,
                        "the smallest possible error is known only for synthetic data of kind 'clusters' or 'teacher'");
    MRC_TRY(mrc_scope_alloc(&scope, &job.x, threads * dataset->features, sizeof *job.x, "samples"));
    MRC_TRY(mrc_scope_alloc(&scope, &job.shares, threads * dataset->outputs, sizeof *job.shares, "classes"));
    MRC_TRY(mrc_scope_alloc(&scope, &job.errors, rows, sizeof *job.errors, "errors"));
    mrc_parallel_for(threads, rows, add_error, &job);
    /* Errors are added in the order of the samples, so the mean is the same for any number of threads. */
    *out = 0;
    for (int64_t i = 0; i < rows; i++) *out += job.errors[i] / (double)rows;
    return MERCER_OK;
}

void mrc_synth_free(mercer_context *context, mrc_synth *self)
{
    if (!self) return;
    MRC_FREE_ALL(context, self->z, self->alpha, self);
}

void mrc_synth_sample(const mrc_synth *self, int64_t index, const mercer_matrix *x, const mercer_matrix *y, int64_t row,
                      int32_t *label)
{
    bool classes = self->kind->task == MERCER_TASK_CLASSIFICATION;
    int32_t found = self->kind->sample(self, index, mrc_row(x, row), y, row);
    if (!classes) return;
    if (label) *label = found;
    if (!y) return;
    memset(mrc_row(y, row), 0, (size_t)(y->cols * mrc_dtype_size(y->dtype)));
    mrc_store(y, row, found, 1);
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

/* Names the classes "0", "1", ...; pointers and strings are one allocation. */
static mercer_status name_classes(mercer_dataset *dataset)
{
    int64_t classes = dataset->outputs;
    MRC_TRY(mrc_alloc(dataset->context, &dataset->label_text, classes, sizeof(char *) + LABEL_CHARS, "class names"));
    char **names = dataset->label_text, *text = (char *)(names + classes);
    for (int64_t i = 0; i < classes; i++) {
        names[i] = text + i * LABEL_CHARS;
        snprintf(names[i], LABEL_CHARS, "%d", (int)i);
    }
    dataset->label_names = (const char *const *)names;
    return MERCER_OK;
}

/* Parses a specification and lets its kind prepare the dataset. */
static mercer_status make_synth(mercer_dataset *dataset, const char *spec, uint64_t seed)
{
    mercer_context *context = dataset->context;
    const mrc_spec_grammar grammar = {"synthetic data", MERCER_ERROR_ARGUMENT, kinds, sizeof *kinds,
                                      sizeof kinds / sizeof *kinds};
    mrc_synth_parameters given = {0};
    int index;
    MRC_TRY(mrc_spec_read(context, &grammar, spec, &given, &index));
    MRC_TRY(mrc_alloc_zero(context, &dataset->synth, 1, sizeof(mrc_synth), "synthetic data"));
    /* The dataset owns the generator from here on, so a failure below releases it with the dataset. */
    mrc_synth *self = dataset->synth;
    self->kind = &kinds[index];
    self->parameters = given;
    self->seed = seed ^ SEED_SALT;
    mrc_normal_table_init(&self->normals);
    dataset->task = self->kind->task;
    dataset->dtype = self->kind->dtype;
    MRC_TRY(self->kind->prepare(dataset, self));
    return dataset->task == MERCER_TASK_CLASSIFICATION ? name_classes(dataset) : MERCER_OK;
}

mercer_status mrc_synth_dataset(mercer_dataset **out, mercer_context *context, const char *spec, int64_t first,
                                int64_t rows, uint64_t seed)
{
    MRC_OWNED(mrc_release_dataset) mercer_dataset *dataset = NULL;
    *out = NULL;
    MRC_TRY(mrc_alloc_zero(context, &dataset, 1, sizeof *dataset, "the dataset"));
    dataset->context = context;
    dataset->format = "synthetic";
    dataset->rows = rows;
    dataset->synth_first = first;
    MRC_TRY(make_synth(dataset, spec, seed));
    dataset->x = mrc_view(NULL, rows, dataset->features, dataset->dtype);
    *out = dataset, dataset = NULL;
    return MERCER_OK;
}
