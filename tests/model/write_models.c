/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write_models FOLDER: writes model files of every type and preprocessing into the folder, and cases.json with samples
 * and Mercer's predictions for them in double. Tests of independent readers of the format use them.
 */
#include "mercer/advanced.h"

#include "support/data.h"
#include "support/fitted.h"
#include "support/info.h"

#include <stdio.h>
#include <stdlib.h>

enum { P = 11, D = 6, C = 2, M = 5 };

typedef struct model_case {
    const char *kernel, *preprocess;
    mercer_dtype centers;
    int fold, units;
} model_case;

static const model_case cases[] = {
    {"laplace:bandwidth=2.3", NULL, MERCER_F64, 0, 0},
    {"gaussian:bandwidth=1.7", "standardize", MERCER_F32, 0, 1},
    {"matern32:bandwidth=3", "minmax", MERCER_F16, 0, 0},
    {"matern52:bandwidth=3", "unit", MERCER_F32, 0, 0},
    {"exppower:bandwidth=2.5,gamma=1.4", "scale:factor=0.7", MERCER_F32, 0, 0},
    {"cauchy:bandwidth=2", "scale:factor=0.3", MERCER_F32, 1, 1},
    {"rational-quadratic:bandwidth=2,alpha=1.5", "none", MERCER_U8, 0, 0},
    {"polynomial:degree=3,scale=0.5,offset=1.25", NULL, MERCER_U8, 0, 0},
    {"linear", NULL, MERCER_F16, 0, 0},
    {"laplace-l1:bandwidth=4", "standardize", MERCER_F32, 0, 0},
    {"exppower-l1:bandwidth=5,gamma=0.7", "scale:factor=0.3", MERCER_F32, 1, 0},
    {"lpq:p=1.5,q=1.25,bandwidth=3", NULL, MERCER_F64, 0, 1},
};

/* Exit with the error message if a call failed. */
static void need(mercer_context *context, mercer_status status)
{
    if (status == MERCER_OK) return;
    fprintf(stderr, "write_models: %s\n", mercer_last_error(context));
    exit(1);
}

static void print_matrix(FILE *out, const char *name, const mercer_matrix *matrix)
{
    fprintf(out, "\"%s\": [", name);
    for (int64_t i = 0; i < matrix->rows; i++) {
        fprintf(out, "%s[", i ? ", " : "");
        for (int64_t j = 0; j < matrix->cols; j++) fprintf(out, "%s%.17g", j ? ", " : "", mrc_load(matrix, i, j));
        fprintf(out, "]");
    }
    fprintf(out, "]");
}

static mercer_model *make_model(mercer_context *context, const model_case *of, const mercer_matrix *x)
{
    static const char *const labels[C] = {"größer", "\"kleiner\""};
    mercer_kernel kernel;
    mercer_model *model;
    mercer_preprocess *preprocess = NULL;
    mercer_matrix z = data_matrix(P, D, 0, of->centers);
    bool folded = false;
    data_fill_uniform(&z, (mrc_rng){41, 1}, of->centers == MERCER_U8 ? 0 : -2, 3);
    need(context, mercer_kernel_parse(&kernel, context, of->kernel));
    if (of->preprocess) need(context, fit_to_matrix(&preprocess, context, of->preprocess, x));
    if (of->fold) folded = mrc_preprocess_fold(preprocess, &kernel);
    if (folded != of->fold) exit(1);
    need(context, mercer_model_create(&model, context, NULL, &kernel, &z, C, MERCER_F64));
    mercer_matrix weights = model_info(model).weights;
    data_fill_normal(&weights, (mrc_rng){41, 2}, 0, 1);
    need(context, mercer_model_set_preprocess(model, preprocess));
    if (of->units) need(context, mercer_model_set_targets(model, (double[C]){200, -0.5}, (double[C]){3, 0.25}));
    need(context, mercer_model_set_names(model, MERCER_NAMES_LABELS, labels, C));
    need(context, mercer_model_set_note(model, "a note\nof two lines"));
    mercer_preprocess_free(preprocess);
    free(z.data);
    return model;
}

int main(int count, char **words)
{
    char path[4096];
    mercer_context *context;
    if (count != 2) return 2;
    snprintf(path, sizeof path, "%s/cases.json", words[1]);
    FILE *out = fopen(path, "w");
    if (!out) return 1;
    need(NULL, mercer_context_create(&context, NULL));
    mercer_matrix x = data_matrix(M, D, 0, MERCER_F64), f = data_matrix(M, C, 0, MERCER_F64);
    data_fill_uniform(&x, (mrc_rng){41, 3}, -2, 3);
    fprintf(out, "[");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mercer_model *model = make_model(context, &cases[i], &x);
        snprintf(path, sizeof path, "%s/model-%zu.safetensors", words[1], i);
        need(context, mercer_model_predict(model, &f, &x));
        need(context, mercer_model_save(model, path, NULL));
        fprintf(out, "%s{\"file\": \"model-%zu.safetensors\", ", i ? ",\n" : "", i);
        print_matrix(out, "x", &x);
        fprintf(out, ", ");
        print_matrix(out, "f", &f);
        fprintf(out, "}");
        mercer_model_free(model);
    }
    fprintf(out, "]\n");
    mercer_context_free(context);
    free(x.data), free(f.data);
    return fclose(out) == 0 ? 0 : 1;
}
