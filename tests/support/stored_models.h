/* SPDX-License-Identifier: BSD-3-Clause */
/* Small models to store, and the checks that two of them are equal. */
#ifndef MRC_TESTS_STORED_MODELS_H
#define MRC_TESTS_STORED_MODELS_H

#include "support/training.h"

#include "model/model_file.h"
#include "support/fitted.h"
#include "support/folder.h"
#include "support/info.h"

enum { M = 40, P = 12, D = 5, C = 3 };

static inline int open_files(void **state)
{
    folder_open();
    return open_all(state);
}

static inline int close_files(void **state)
{
    folder_close();
    return close_all(state);
}

/* Create a model whose centers are small nonnegative integers (0 .. 8), which every element type represents exactly. */
static inline mercer_model *make_model(const char *spec, mercer_dtype centers, mercer_dtype weights)
{
    mercer_model *model;
    mercer_kernel kernel;
    mercer_matrix z = data_matrix(P, D, 0, centers);
    data_fill_uniform(&z, (mrc_rng){31, 1}, 0, 9);
    for (int64_t i = 0; i < P; i++)
        for (int64_t j = 0; j < D; j++) data_store(&z, i, j, floor(mrc_load(&z, i, j)));
    assert_succeeds(context, mercer_kernel_parse(&kernel, context, spec));
    assert_succeeds(context, mercer_model_create(&model, context, NULL, &kernel, &z, C, weights));
    mercer_matrix w = model_info(model).weights;
    data_fill_normal(&w, (mrc_rng){31, 2}, 0, 1);
    free(z.data);
    return model;
}

static inline mercer_matrix make_samples(mercer_dtype dtype)
{
    mercer_matrix x = data_matrix(M, D, 0, dtype);
    data_fill_uniform(&x, (mrc_rng){31, 3}, 0, 9);
    return x;
}

static inline mercer_model *load(const char *path)
{
    mercer_model *model;
    assert_succeeds(context, mercer_model_load(&model, context, NULL, path));
    return model;
}

/* Save and load a model and check that saving it again gives the same bytes. The caller frees the loaded model. */
static inline mercer_model *save_and_load(mercer_model *model, const char *path)
{
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    mercer_model *loaded = load(path);
    const char *again = in_folder("again");
    assert_succeeds(context, mercer_model_save(loaded, again, NULL));
    assert_same_bytes(path, again);
    return loaded;
}

static inline void assert_same_predictions(mercer_model *a, mercer_model *b, mercer_dtype dtype, const char *what)
{
    mercer_matrix x = make_samples(dtype), fa = data_matrix(M, C, 0, MERCER_F64), fb = data_matrix(M, C, 0, MERCER_F64);
    assert_succeeds(context, mercer_model_predict(a, &fa, &x));
    assert_succeeds(context, mercer_model_predict(b, &fb, &x));
    assert_that(memcmp(fa.data, fb.data, M * C * sizeof(double)) == 0, "%s", what);
    free(x.data), free(fa.data), free(fb.data);
}

/* Save a model with all optional parts (preprocessing, metric, target units, labels, note); return the file. */
static inline file_bytes rich_file(const char *path)
{
    static const char *const labels[C] = {"a", "b", "c"};
    mercer_preprocess *preprocess;
    mercer_model *model = make_model("laplace:bandwidth=3", MERCER_F16, MERCER_F32);
    mercer_matrix x = make_samples(MERCER_F32);
    assert_succeeds(context, fit_to_matrix(&preprocess, context, "standardize", &x));
    mercer_matrix weights = mrc_view((double[D]){1, 2}, 1, D, MERCER_F64);
    set_metric(preprocess, &weights, D);
    assert_succeeds(context, mercer_model_set_preprocess(model, preprocess));
    assert_succeeds(context,
                    mercer_model_set_targets(model, (const double[C]){0.1, -200, 1e6}, (const double[C]){1, 2, 1e-3}));
    assert_succeeds(context, mercer_model_set_names(model, MERCER_NAMES_LABELS, labels, C));
    assert_succeeds(context, mercer_model_set_note(model, "note"));
    assert_succeeds(context, mercer_model_save(model, path, NULL));
    mercer_preprocess_free(preprocess);
    mercer_model_free(model);
    free(x.data);
    return read_bytes(path);
}

#endif
