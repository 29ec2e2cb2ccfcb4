/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model as one C99 file: what c99_points.c writes of it, or of every member of a mean, and the functions that are
 * called. The bits of its predictions are those of the library.
 */
#include "core/memory.h"
#include "export/c99_job.h"
#include "kernels/kernel.h"

#include <stdio.h>
#include <string.h>

/* ---- Head ---------------------------------------------------------------------------------------------------- */

static void put_head(mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    char kernel[512] = "";
    mrc_kernel_print(model->context, &model->kernel, kernel, sizeof kernel, NULL);
    const char *name = job->name, *sample = model->centers.dtype == MERCER_U8 ? "unsigned char" : "double";
    mrc_output_text(&job->out,
                    "/*\n * A kernel model, written by Mercer %s: %s%s, %lld centers.\n *\n"
                    " *   int %s_predict(const %s *x, double *f);                     x (%lld), f (%lld)\n"
                    " *   int %s_predict_rows(long rows, const %s *x, double *f);     the same of many rows\n",
                    mercer_version(), kernel, job->members > 1 ? " and others, their mean" : "",
                    (long long)model->total, name, sample, (long long)mrc_model_features(model),
                    (long long)model->weights.cols, name, sample);
    if (job->classes)
        mrc_output_text(&job->out,
                        " *   int %s_classify(const %s *x);                               the number of a class\n"
                        " *   int %s_probabilities(const %s *x, double *p);               p (%lld)\n"
                        " *   const char *const %s_labels[];                              names of the classes\n",
                        name, sample, name, sample, (long long)model->weights.cols, name);
    if (job->schema)
        mrc_output_text(&job->out,
                        " *   int %s_encode(const char *const *cells, double *x);         features of %lld cells\n"
                        " *   int %s_predict_cells(const char *const *cells, double *f);  texts, in the order of\n"
                        " *   const char *const %s_columns[];                             names of the columns\n",
                        name, (long long)job->schema->used, name, name);
    mrc_output_text(&job->out,
                    " *\n * They return 0, or -1 if a value or the result is not finite%s\n"
                    " * Scratch is on the stack. Compile with: cc -std=c99 -O2 -c, and link with -lm. With the same "
                    "bits as Mercer:\n * without -ffast-math, with double arithmetic in double (FLT_EVAL_METHOD "
                    "0).\n */\n",
                    job->schema
                        ? "; for cells also 1 + the number of a\n * column whose cell is not what it has to be. "
                          "A cell that is NULL or empty is missing; numbers have a point\n * (LC_NUMERIC is C)."
                        : ".");
    mrc_output_text(
        &job->out,
        "#include <float.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n\n"
        "/* No fused operations but those that are written. */\n"
        "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n"
        "#elif defined(__GNUC__)\n#pragma GCC optimize(\"fp-contract=off\", \"no-tree-slp-vectorize\")\n#endif\n\n");
}

/* What samples and predictions are, whatever the members. */
static void put_shape(mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    mrc_output_text(&job->out, "#define FEATURES %lld\n#define OUTPUTS %lld\ntypedef %s sample;\n\n",
                    (long long)mrc_model_features(model), (long long)model->weights.cols,
                    model->centers.dtype == MERCER_U8 ? "unsigned char" : "double");
}

/* ---- Predictions --------------------------------------------------------------------------------------------- */

static void put_units(mrc_c99_job *job)
{
    const mrc_units *units = &job->model->units;
    const mrc_curve *curve = &units->curve;
    int64_t c = job->model->weights.cols;
    if (!mrc_units_given(units)) return;
    mrc_c99_array(job, "target_offset", 0, c, units->offset, false);
    mrc_c99_array(job, "target_scale", 0, c, units->scale, false);
    if (curve->kind != MRC_CURVE_NONE)
        mrc_c99_array(job, "curve", mrc_curve_size(curve, c) / curve->count, curve->count, curve->numbers, false);
    if (curve->kind == MRC_CURVE_RANK) mrc_c99_function(job, "target_curve.c", "interpolate");
    mrc_output_text(&job->out, "static double leave_units(double value, int c)\n{\n"
                               "    value = target_offset[c] + target_scale[c] * value;\n");
    if (curve->kind == MRC_CURVE_LOG)
        mrc_output_text(&job->out, "    return exp(value) - curve[c][0];\n}\n\n");
    else if (curve->kind == MRC_CURVE_RANK)
        mrc_output_text(&job->out, "    return interpolate(curve[2 * c + 1], curve[2 * c], %lld, value);\n}\n\n",
                        (long long)curve->count);
    else
        mrc_output_text(&job->out, "    return value;\n}\n\n");
}

/* Public functions, declared before they are defined, as some compilers want it. */
static void put_public(mrc_c99_job *job, const char *result, const char *function, const char *arguments)
{
    for (int i = 0; i < 2; i++)
        mrc_output_text(&job->out, "%s %s_%s(%s)%s", result, job->name, function, arguments, i == 0 ? ";\n" : "\n");
}

/* The predictions of one model, or of a member, which are rounded when they are added up. */
static void put_one(mrc_c99_job *job)
{
    bool units = mrc_units_given(&job->model->units);
    bool rounded = job->classes && job->model->weights.dtype == MERCER_F32 && job->members == 1;
    mrc_output_text(&job->out, "{\n    stored row[WIDTH];\n    if (!prepare(x, row)) return -1;\n    add_up(row, f);\n"
                               "    for (int c = 0; c < OUTPUTS; c++) {\n");
    if (units)
        mrc_output_text(&job->out, rounded ? "        f[c] = rounded(leave_units(f[c], c));\n"
                                           : "        f[c] = leave_units(f[c], c);\n");
    mrc_output_text(&job->out, "        if (!isfinite(f[c])) return -1;\n    }\n    return 0;\n}\n\n");
}

/* model/members.c; scores of classes are rounded when they are told, after what is made of them. */
static void put_mean(mrc_c99_job *job)
{
    mrc_output_text(&job->out, "static int mean(const sample *x, double *f)\n{\n"
                               "    static int (*const members[])(const sample *x, double *f) = {");
    for (int64_t i = 0; i < job->members; i++)
        mrc_output_text(&job->out, "%smember_%lld", i > 0 ? ", " : "", (long long)i);
    mrc_output_text(&job->out,
                    "};\n    double one[OUTPUTS];\n    for (int c = 0; c < OUTPUTS; c++) f[c] = 0;\n"
                    "    for (int m = 0; m < %lld; m++) {\n        if (members[m](x, one) != 0) return -1;\n"
                    "        for (int c = 0; c < OUTPUTS; c++) f[c] += (1 / %lld.0) * one[c];\n    }\n"
                    "    return 0;\n}\n\n",
                    (long long)job->members, (long long)job->members);
}

static void put_told_mean(mrc_c99_job *job)
{
    bool rounded = job->classes && job->model->weights.dtype == MERCER_F32;
    mrc_output_text(&job->out,
                    "{\n    if (mean(x, f) != 0) return -1;\n    for (int c = 0; c < OUTPUTS; c++) {\n%s"
                    "        if (!isfinite(f[c])) return -1;\n    }\n    return 0;\n}\n\n",
                    rounded ? "        f[c] = rounded(f[c]);\n" : "");
}

static void put_predict(mrc_c99_job *job)
{
    if (job->members > 1) put_mean(job);
    put_public(job, "int", "predict", "const sample *x, double *f");
    (job->members == 1 ? put_one : put_told_mean)(job);
    put_public(job, "int", "predict_rows", "long rows, const sample *x, double *f");
    mrc_output_text(&job->out,
                    "{\n    for (long i = 0; i < rows; i++)\n"
                    "        if (%s_predict(x + i * FEATURES, f + i * OUTPUTS) != 0) return -1;\n    return 0;\n}\n",
                    job->name);
}

static void put_classes(mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    char list[256], scores[80];
    snprintf(scores, sizeof scores, "%s%s", job->members > 1 ? "mean" : job->name, job->members > 1 ? "" : "_predict");
    snprintf(list, sizeof list, "\nextern const char *const %s_labels[];\nconst char *const %s_labels", job->name,
             job->name);
    mrc_c99_texts(job, list, model->labels, model->label_count);
    put_public(job, "int", "classify", "const sample *x");
    mrc_output_text(&job->out,
                    "{\n    double f[OUTPUTS];\n    int best = 0;\n    if (%s(x, f) != 0) return -1;\n"
                    "    for (int c = 1; c < OUTPUTS; c++)\n        if (f[c] > f[best]) best = c;\n"
                    "    return best;\n}\n\n",
                    scores);
    mrc_c99_function(job, "softmax.c", "mrc_softmax");
    put_public(job, "int", "probabilities", "const sample *x, double *p");
    mrc_output_text(&job->out, "{\n    if (%s(x, p) != 0) return -1;\n", scores);
    const double *shift = mercer_model_class_shift(model);
    for (int64_t j = 0; shift && j < model->weights.cols; j++) {
        mrc_output_text(&job->out, "    p[%lld] += ", (long long)j);
        mrc_c99_number(job, shift[j], false);
        mrc_output_text(&job->out, ";\n");
    }
    mrc_output_text(&job->out, "    mrc_softmax(p, p, OUTPUTS, ");
    mrc_c99_number(job, mercer_model_temperature(model, NULL), false);
    mrc_output_text(&job->out, ");\n    return 0;\n}\n");
}

static void put_cells(mrc_c99_job *job)
{
    mrc_output_text(&job->out, "\n");
    put_public(job, "int", "encode", "const char *const *cells, double *x");
    mrc_output_text(&job->out, "{\n    return encode_cells(cells, x);\n}\n\n");
    put_public(job, "int", "predict_cells", "const char *const *cells, double *f");
    mrc_output_text(&job->out,
                    "{\n    double x[FEATURES];\n    int column = encode_cells(cells, x);\n"
                    "    return column != 0 ? column : %s_predict(x, f);\n}\n",
                    job->name);
}

/* The members of a mean, each with names of its own. */
static mercer_status put_members(mrc_c99_job *job)
{
    static const char *const macros[] = {"WIDTH",    "CENTERS",     "TILE",        "FMA",  "ABS",  "NEAR",
                                         "KERNEL_A", "KERNEL_B",    "DEGREE",      "NORM", "BIAS", "REAL",
                                         "EXP",      "LOG",         "LOG1P",       "SQRT", "CAP",  "POWER",
                                         "MRC_HD",   "UK_PANEL_FN", "EXACT_SQUARE"};
    const mrc_c99_job whole = *job;
    for (int64_t m = 0; m < job->members; m++) {
        const mercer_model *member = whole.model->members[m];
        char kernel[512] = "";
        mrc_kernel_print(member->context, &member->kernel, kernel, sizeof kernel, NULL);
        job->model = member, job->member = (int)m;
        MRC_TRY(mrc_c99_decide(job));
        mrc_output_text(&job->out, "/* ---- Member %d: %s, %lld centers ---- */\n\n", job->member, kernel,
                        (long long)member->total);
        MRC_TRY(mrc_c99_points(job));
        mrc_output_text(&job->out, "static int member_%d(const sample *x, double *f)\n", job->member);
        put_one(job);
        mrc_c99_disown(job);
        for (size_t i = 0; i < sizeof macros / sizeof *macros; i++)
            mrc_output_text(&job->out, "#undef %s\n", macros[i]);
        mrc_output_text(&job->out, "\n");
    }
    job->model = whole.model, job->member = -1;
    return mrc_c99_decide(job);
}

/* Whether anything is rounded to float: cells, sums, or the mean of scores. */
static bool needs_rounding(const mrc_c99_job *job)
{
    bool scores = job->members > 1 && job->classes && job->model->weights.dtype == MERCER_F32;
    bool found = job->schema || scores;
    for (int64_t m = 0; m < job->members && !found; m++) {
        mrc_c99_job of = *job;
        of.model = job->model->members[m];
        found = mrc_c99_rounds_sums(&of);
    }
    return found;
}

static mercer_status put_file(mrc_c99_job *job)
{
    put_head(job);
    put_shape(job);
    if (needs_rounding(job)) mrc_c99_function(job, "c99_parts.h", "rounded");
    if (job->members > 1) put_units(job);
    MRC_TRY(job->members > 1 ? put_members(job) : mrc_c99_points(job));
    if (job->members == 1) put_units(job);
    if (job->schema) mrc_c99_schema(job);
    put_predict(job);
    if (job->classes) put_classes(job);
    if (job->schema) put_cells(job);
    return MERCER_OK;
}

/* What the file takes to be the same of all members: how they are computed follows from their types. */
static mercer_status check_members(const mercer_model *model)
{
    for (int64_t m = 0; model->member_count > 1 && m < model->member_count; m++) {
        const mercer_model *member = model->members[m];
        bool bytes = member->centers.dtype == MERCER_U8, single = member->weights.dtype == MERCER_F32;
        if (bytes != (model->centers.dtype == MERCER_U8) || member->weights.dtype != model->weights.dtype)
            return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                            "format c99: members of the model differ in the types of their samples or weights");
        if (single && !mrc_units_given(&model->units))
            return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                            "format c99: the model is a mean in float, without units of its targets");
    }
    return MERCER_OK;
}

mercer_status mrc_export_c99(const mercer_model *model, const char *path, const char *name)
{
    mrc_c99_job job = {.model = model, .name = name, .members = model->member_count, .member = -1};
    MRC_OWNED(mrc_release_schema) mrc_schema *schema = NULL;
    MRC_TRY(check_members(model));
    for (int64_t m = model->member_count - 1; m >= 0; m--) {
        job.model = model->members[m];
        MRC_TRY(mrc_c99_decide(&job));
    }
    if (model->schema) MRC_TRY(mrc_schema_read(&schema, model->context, model->schema));
    job.schema = schema;
    MRC_TRY(mrc_output_open(&job.out, model->context, path));
    mercer_status status = put_file(&job);
    if (job.out.status == MERCER_OK) job.out.status = status;
    return mrc_output_close(&job.out);
}
