/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model as one C99 file: macros, the text of c99_runtime.h, and the data of the model, or of every member of a mean.
 * Its predictions are bitwise those of the library's CPU backend: the data say which arithmetic that takes.
 *
 * Types differ in one place from what the types say: where samples go as they are, they are rounded to the type of the
 * centers, as samples of that type would be in the library.
 *
 * Not the same: pairs whose sum of differences is beyond the type, where kernels that are evaluated in double are 0
 * here, and at most 1e-38 (float) in the library.
 */
#include "backends/cpu/tile.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "export/c99_job.h"
#include "kernels/formulas.h"
#include "kernels/kernel.h"

#include <math.h>
#include <string.h>

extern const unsigned char mrc_c99_runtime[]; /* made by cmake/MercerEmbed.cmake */

/* What the CPU backend computes with a member, decided by its types and kernel (backends/cpu/product.c). */
typedef struct arithmetic {
    mrc_map map;
    double norm; /* of the distance; 0: inner products */
    bool wide;   /* kernel and sums in double */
    bool exact;  /* integers */
    bool norms;  /* of centers are needed */
    bool centered;
} arithmetic;

static const char *const kernel_names[MRC_KERNEL_END] = {[MRC_KERNEL_LAPLACE] = "LAPLACE",
                                                         [MRC_KERNEL_GAUSSIAN] = "GAUSSIAN",
                                                         [MRC_KERNEL_MATERN32] = "MATERN32",
                                                         [MRC_KERNEL_MATERN52] = "MATERN52",
                                                         [MRC_KERNEL_EXPPOWER] = "EXPPOWER",
                                                         [MRC_KERNEL_CAUCHY] = "CAUCHY",
                                                         [MRC_KERNEL_POLYNOMIAL] = "POLYNOMIAL",
                                                         [MRC_KERNEL_RATIONAL_QUADRATIC] = "RATIONAL_QUADRATIC",
                                                         [MRC_KERNEL_LINEAR] = "LINEAR",
                                                         [MRC_KERNEL_NTK] = "NTK",
                                                         [MRC_KERNEL_NNGP] = "NNGP",
                                                         [MRC_KERNEL_LAPLACE_L1] = "LAPLACE_L1",
                                                         [MRC_KERNEL_LPQ] = "LPQ",
                                                         [MRC_KERNEL_EXPPOWER_L1] = "EXPPOWER_L1"};

static arithmetic arithmetic_of(const mercer_model *model)
{
    const mercer_kernel *kernel = &model->kernel;
    arithmetic self = {.map = mrc_map_for(kernel), .norm = mrc_kernel_norm(kernel)};
    bool direct = mrc_kernel_argument(kernel) == MRC_ON_DIFFERENCES, bytes = model->centers.dtype == MERCER_U8;
    /* As in product.c. */
    bool fits = !mrc_kernel_is_stationary(kernel) || (kernel->bandwidth >= 1e-15 && kernel->bandwidth <= 1e15);
    self.wide = model->centers.dtype == MERCER_F64 || model->weights.dtype == MERCER_F64 || !fits ||
                (bytes && model->centers.cols > MRC_U8_MAX_FEATURES);
    self.exact = bytes && !self.wide && !(direct && self.norm != 1);
    self.norms = !self.exact && !direct && (self.norm > 0 || mrc_kernel_is_angular(kernel));
    self.centered = self.norms && self.norm > 0 && !bytes;
    return self;
}

static bool has_classes(const mercer_model *model)
{
    return model->labels && model->label_count == model->weights.cols;
}

/* Whether sums are floats before units are applied. Those of values stay double where the arithmetic is. */
static bool rounds_sums(const mrc_c99_job *job, const mercer_model *member)
{
    bool kept = member->centers.dtype == MERCER_F64 && mrc_units_given(&member->units) &&
                (!has_classes(job->model) || job->model->member_count > 1); /* members are summed in double */
    return member->weights.dtype == MERCER_F32 && !kept;
}

/* ---- Head ---------------------------------------------------------------------------------------------------- */

static void put_head(mrc_c99_job *job, const mrc_schema *schema)
{
    const mercer_model *model = job->model;
    char kernel[512] = "";
    mrc_kernel_print(model->context, &model->kernel, kernel, sizeof kernel, NULL);
    const char *name = job->name, *sample = model->centers.dtype == MERCER_U8 ? "unsigned char" : "double";
    mrc_output_text(&job->out,
                    "/*\n * A kernel model, written by Mercer %s: %s%s, %lld centers.\n *\n"
                    " *   int %s_predict(const %s *x, double *f);                     x (%lld), f (%lld)\n"
                    " *   int %s_predict_rows(long rows, const %s *x, double *f);     the same for many rows\n",
                    mercer_version(), kernel, model->member_count > 1 ? " and others, their mean" : "",
                    (long long)model->total, name, sample, (long long)mrc_model_features(model),
                    (long long)model->weights.cols, name, sample);
    if (has_classes(model))
        mrc_output_text(&job->out,
                        " *   int %s_classify(const %s *x);                               the number of a class\n"
                        " *   int %s_probabilities(const %s *x, double *p);               p (%lld)\n"
                        " *   const char *const %s_labels[];                              names of the classes\n",
                        name, sample, name, sample, (long long)model->weights.cols, name);
    if (schema)
        mrc_output_text(&job->out,
                        " *   int %s_encode(const char *const *cells, double *x);         features of %lld cells\n"
                        " *   int %s_predict_cells(const char *const *cells, double *f);  texts, in the order of\n"
                        " *   const char *const %s_columns[];                             names of the columns\n",
                        name, (long long)schema->used, name, name);
    mrc_output_text(&job->out,
                    " *\n * They return 0, or -1 if a value or the result is not finite%s\n"
                    " * Scratch is on the stack. Compile with: cc -std=c99 -O2 -c, and link with -lm. Predictions are "
                    "bitwise those\n * of Mercer without -ffast-math, with double arithmetic in double "
                    "(FLT_EVAL_METHOD 0).\n */\n",
                    schema ? "; for cells also 1 + the number of a\n * column whose cell is not a value of it. "
                             "A cell that is NULL or empty is missing; numbers have a point\n * (LC_NUMERIC is C)."
                           : ".");
}

static void put_macros(mrc_c99_job *job, const mrc_schema *schema)
{
    const mercer_model *model = job->model;
    int64_t width = 0;
    for (int64_t m = 0; m < model->member_count; m++) width = mrc_max(width, model->members[m]->centers.cols);
    mrc_output_text(&job->out,
                    "#define FEATURES %lld\n#define OUTPUTS %lld\n#define WIDTH %lld\n#define SAMPLE %s\n"
                    "#define PUBLIC(name) %s_##name\n",
                    (long long)mrc_model_features(model), (long long)model->weights.cols, (long long)width,
                    model->centers.dtype == MERCER_U8 ? "unsigned char" : "double", job->name);
    if (has_classes(model)) mrc_output_text(&job->out, "#define CLASSES\n");
    if (schema) mrc_output_text(&job->out, "#define COLUMNS %lld\n", (long long)schema->used);
    mrc_output_text(&job->out, "\n");
}

/* ---- Data ------------------------------------------------------------------------------------------------------ */

static void put_ranks(mrc_c99_job *job, const mercer_preprocess *of)
{
    mrc_c99_doubles(job, "knots", of->features * MRC_RANK_KNOTS, of->knots, false);
    mrc_c99_doubles(job, "normal", MRC_RANK_KNOTS, of->normal, false);
}

/* The data of the preprocessing; the name of its step. */
static const char *put_preprocessing(mrc_c99_job *job, const mercer_preprocess *of)
{
    if (!of) return "NONE";
    const mrc_linear_map *map = of->map;
    if (map)
        mrc_c99_doubles(job, "metric", map->diagonal ? map->width : map->features * map->width, map->values, false);
    switch (of->kind) {
        case MRC_PREPROCESS_NONE: return "NONE";
        case MRC_PREPROCESS_UNIT: return "UNIT";
        case MRC_PREPROCESS_SCALE:
            if (of->folded) return "NONE";
            mrc_c99_doubles(job, "factor", 1, &of->scale, false);
            return "SCALE";
        case MRC_PREPROCESS_RANK:
            mrc_c99_doubles(job, "factor", of->features, of->factor, false);
            put_ranks(job, of);
            return "RANK";
        default: break;
    }
    mrc_c99_doubles(job, "shift", of->features, of->shift, false);
    mrc_c99_doubles(job, "factor", of->features, of->factor, false);
    if (of->kind != MRC_PREPROCESS_BLEND) return "SHIFT";
    mrc_c99_doubles(job, "rank_weight", of->features, of->rank_weight, false);
    put_ranks(job, of);
    return "BLEND";
}

/* Squared norms of the centers, less the origin, in the chain of the micro-kernels. */
static mercer_status put_norms(mrc_c99_job *job, const mercer_model *member, const arithmetic *how)
{
    const mercer_matrix *z = &member->centers;
    double *norms;
    MRC_SCOPE(scope, member->context);
    MRC_TRY(mrc_scope_alloc(&scope, &norms, z->rows, sizeof *norms, "norms of the centers"));
    for (int64_t i = 0; i < z->rows; i++) {
        float single = 0;
        double wide = 0;
        for (int64_t k = 0; k < z->cols; k++) {
            double value = mrc_load(z, i, k), origin = how->centered ? member->origin[k] : 0;
            float rounded = (float)value - (float)origin;
            single = fmaf(rounded, rounded, single);
            wide = fma(value - origin, value - origin, wide);
        }
        norms[i] = how->wide ? wide : (double)single;
    }
    mrc_c99_doubles(job, "norms", z->rows, norms, !how->wide);
    return MERCER_OK;
}

static void put_field(mrc_c99_job *job, const char *name, double value, bool single)
{
    mrc_output_text(&job->out, "    .%s = ", name);
    mrc_c99_number(job, value, single);
    mrc_output_text(&job->out, ",\n");
}

static mercer_status put_member(mrc_c99_job *job, const mercer_model *member)
{
    const mercer_preprocess *preprocess = member->preprocess;
    arithmetic how = arithmetic_of(member);
    mercer_dtype dtype = member->centers.dtype;
    bool single = how.map.in_float && !how.wide;
    mrc_c99_matrix(job, "points", &member->centers);
    mrc_c99_matrix(job, "weights", &member->weights);
    const char *step = put_preprocessing(job, preprocess);
    if (how.norms) MRC_TRY(put_norms(job, member, &how));
    if (how.centered) mrc_c99_doubles(job, "origin", member->centers.cols, member->origin, !how.wide);
    mrc_c99_struct(job, "member", "member");
    mrc_output_text(&job->out,
                    "    .centers = %lld,\n    .width = %lld,\n    .type = %s,\n    .weight_type = %s,\n"
                    "    .step = STEP_%s,\n    .diagonal = %d,\n    .wide = %d,\n    .wide_kernel = %d,\n"
                    "    .exact = %d,\n    .four = %d,\n    .rounded = %d,\n    .kernel = %s,\n    .degree = %d,\n",
                    (long long)member->total, (long long)member->centers.cols,
                    dtype == MERCER_F64  ? "DOUBLE"
                    : dtype == MERCER_U8 ? "BYTE"
                                         : "FLOAT",
                    member->weights.dtype == MERCER_F64 ? "DOUBLE" : "FLOAT", step,
                    preprocess && preprocess->map && preprocess->map->diagonal, how.wide, !single, how.exact,
                    dtype == MERCER_F32, rounds_sums(job, member), kernel_names[member->kernel.id], how.map.degree);
    put_field(job, "a", how.map.a, single);
    put_field(job, "b", how.map.b, single);
    put_field(job, "bias", member->kernel.bias, false);
    put_field(job, "norm", how.norm, false);
    mrc_output_text(&job->out, "};\n\n");
    return MERCER_OK;
}

static mercer_status put_model(mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    const mrc_units *units = &model->units;
    const mrc_curve *curve = &units->curve;
    const double *shift = mrc_model_class_shift(model);
    int64_t c = model->weights.cols;
    bool classes = has_classes(model);
    for (job->member = 0; job->member < model->member_count; job->member++)
        MRC_TRY(put_member(job, model->members[job->member]));
    mrc_output_text(&job->out, "static const member *const members[] = {");
    for (int64_t m = 0; m < model->member_count; m++) mrc_output_text(&job->out, "&member_%lld, ", (long long)m);
    mrc_output_text(&job->out, "};\n\n");
    job->member = -1;
    if (mrc_units_given(units)) {
        mrc_c99_doubles(job, "offset", c, units->offset, false);
        mrc_c99_doubles(job, "scale", c, units->scale, false);
        if (curve->kind != MRC_CURVE_NONE)
            mrc_c99_doubles(job, "curve", mrc_curve_size(curve, c), curve->numbers, false);
    }
    if (classes && shift) mrc_c99_doubles(job, "class_shift", c, shift, false);
    mrc_c99_struct(job, "ensemble", "the_model");
    mrc_output_text(&job->out, "    .count = %lld,\n    .members = members,\n    .knots = %lld,\n    .rounded = %d,\n",
                    (long long)model->member_count, (long long)curve->count,
                    classes && model->weights.dtype == MERCER_F32);
    put_field(job, "temperature", mercer_model_temperature(model, NULL), false);
    mrc_output_text(&job->out, "};\n\n");
    return MERCER_OK;
}

static mercer_status put_file(mrc_c99_job *job, const mrc_schema *schema)
{
    const mercer_model *model = job->model;
    put_head(job, schema);
    put_macros(job, schema);
    mrc_output_bytes(&job->out, mrc_c99_runtime, (int64_t)strlen((const char *)mrc_c99_runtime));
    mrc_output_text(&job->out, "\n/* ---- The model ---- */\n\n");
    if (has_classes(model)) {
        mrc_output_text(&job->out, "const char *const %s", job->name);
        mrc_c99_texts(job, "_labels", model->labels, model->label_count);
    }
    if (schema) mrc_c99_table(job, schema);
    return put_model(job);
}

/* What the file takes to be the same for all members, and kernels that it knows. */
static mercer_status check_members(const mercer_model *model)
{
    for (int64_t m = 0; m < model->member_count; m++) {
        const mercer_model *member = model->members[m];
        bool bytes = member->centers.dtype == MERCER_U8, single = member->weights.dtype == MERCER_F32;
        if (!kernel_names[member->kernel.id])
            return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                            "format c99: the kernel function is not supported");
        if (mrc_map_for(&member->kernel).id == 0)
            return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                            "format c99: a parameter of the kernel is too near to the end of the range of double");
        if (bytes != (model->centers.dtype == MERCER_U8) || member->weights.dtype != model->weights.dtype)
            return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                            "format c99: members of the model differ in the types of their samples or weights");
        if (model->member_count > 1 && single && !mrc_units_given(&model->units))
            return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                            "format c99: the model is a mean in float, without units of its targets");
    }
    return MERCER_OK;
}

mercer_status mrc_export_c99(const mercer_model *model, const char *path, const char *name)
{
    mrc_c99_job job = {.model = model, .name = name, .member = -1};
    MRC_OWNED(mrc_release_schema) mrc_schema *schema = NULL;
    MRC_TRY(check_members(model));
    if (model->schema) MRC_TRY(mrc_schema_read(&schema, model->context, model->schema));
    MRC_TRY(mrc_output_open(&job.out, model->context, path));
    mercer_status status = put_file(&job, schema);
    if (job.out.status == MERCER_OK) job.out.status = status;
    return mrc_output_close(&job.out);
}
