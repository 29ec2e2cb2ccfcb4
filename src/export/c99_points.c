/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a C file computes of one model, or of a member of a mean: preprocessing, kernel values, sums.
 *
 *   sample -> preprocessing in double -> stored type -> argument of the kernel -> kernel value -> sums
 *
 * in the arithmetic of backends/cpu: one chain of fused multiply-adds over the features, one over each 240 centers,
 * whose sums are added in double. Every rounding of the library is there, so the bits are the same on any machine
 * whose libm rounds fma and sqrt correctly; where the library itself asks libm (exp of a log curve, of probabilities,
 * sine and cosine of dates, acos of nearly parallel rows), so does the file.
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

/* ---- What is decided before ---------------------------------------------------------------------------------- */

#define TEXT(value)          #value
#define EXPANDED_TEXT(value) TEXT(value)

static void find_form(mrc_c99_job *job)
{
    static const struct {
        int32_t id;
        mrc_form form;
        const char *text;
    } forms[] = {
#define FORM(ID, TYPES, first, second, value) {MRC_KERNEL_##ID, MRC_FORM_##TYPES, TEXT(value)},
        MRC_VECTOR_FORMS(FORM)
#undef FORM
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i].id == job->model->kernel.id) job->form = forms[i].form, job->text = forms[i].text;
}

mercer_status mrc_c99_decide(mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    const mercer_kernel *kernel = &model->kernel;
    job->map = mrc_map_for(kernel);
    find_form(job);
    if (job->form == MRC_FORM_NONE || job->map.id == 0)
        return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED,
                        "format c99: a parameter of the kernel is too near to the end of the range of double");
    bool stationary = mrc_kernel_is_stationary(kernel), bytes = model->centers.dtype == MERCER_U8;
    bool fits = !stationary || (kernel->bandwidth >= 1e-15 && kernel->bandwidth <= 1e15); /* as in product.c */
    job->norm = mrc_kernel_norm(kernel);
    job->direct = mrc_kernel_argument(kernel) == MRC_ON_DIFFERENCES;
    job->wide = model->centers.dtype == MERCER_F64 || model->weights.dtype == MERCER_F64 || !fits ||
                (bytes && model->centers.cols > MRC_U8_MAX_FEATURES);
    job->bytes = bytes && !job->wide && !(job->direct && job->norm != 1);
    job->classes = model->labels && model->label_count == model->weights.cols;
    return MERCER_OK;
}

/* Those of values stay double where the arithmetic is. */
bool mrc_c99_rounds_sums(const mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    bool kept = model->centers.dtype == MERCER_F64 && mrc_units_given(&model->units) &&
                (!job->classes || job->members > 1); /* members are summed in double */
    return model->weights.dtype == MERCER_F32 && !kept;
}

static bool is_centred(const mrc_c99_job *job)
{
    return job->norm > 0 && !job->direct && job->model->centers.dtype != MERCER_U8;
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

static void put_sizes(mrc_c99_job *job)
{
    const mercer_model *model = job->model;
    mrc_c99_own(job, "stored");
    mrc_c99_own(job, "real");
    mrc_output_text(&job->out,
                    "#define WIDTH %lld\n#define CENTERS %lld\n"
                    "#define TILE %d\ntypedef %s stored;\ntypedef %s real;\n",
                    (long long)model->centers.cols, (long long)model->total, MRC_TILE_CENTERS,
                    mrc_c99_type(model->centers.dtype), job->wide ? "double" : "float");
    mrc_output_text(&job->out, "#define FMA fma%s\n#define ABS fabs%s\n#define NEAR %s\n\n", job->wide ? "" : "f",
                    job->wide ? "" : "f", job->wide ? EXPANDED_TEXT(MRC_NEAR_F64) : EXPANDED_TEXT(MRC_NEAR_F32));
}

/* ---- Preprocessing ------------------------------------------------------------------------------------------- */

static void put_constant(mrc_c99_job *job, const char *name, double value)
{
    mrc_c99_own(job, name);
    mrc_output_text(&job->out, "static const double %s = ", name);
    mrc_c99_number(job, value, false);
    mrc_output_text(&job->out, ";\n\n");
}

/* Writes the knots of the rank transform and its functions. */
static void put_ranks(mrc_c99_job *job, const mercer_preprocess *of)
{
    mrc_c99_array(job, "knots", of->features, MRC_RANK_KNOTS, of->knots, false);
    mrc_c99_array(job, "normal", 0, MRC_RANK_KNOTS, of->normal, false);
    mrc_c99_own(job, "MRC_RANK_KNOTS");
    mrc_output_text(&job->out, "enum { MRC_RANK_KNOTS = %d };\n\n", MRC_RANK_KNOTS);
    mrc_c99_function(job, "preprocess_rank.c", "count_below");
    mrc_c99_function(job, "preprocess_rank.c", "mrc_rank_value");
}

/* The step's data and function; its name, or NULL if there is none. */
static const char *put_step(mrc_c99_job *job, const mercer_preprocess *of)
{
    int64_t d = of->features;
    switch (of->kind) {
        case MRC_PREPROCESS_NONE: return NULL;
        case MRC_PREPROCESS_SCALE:
            if (of->folded) return NULL;
            put_constant(job, "scale", of->scale);
            return "scale_features";
        case MRC_PREPROCESS_STANDARDISE:
        case MRC_PREPROCESS_MINMAX:
            mrc_c99_array(job, "shift", 0, d, of->shift, false);
            mrc_c99_array(job, "factor", 0, d, of->factor, false);
            return "shift_features";
        case MRC_PREPROCESS_UNIT: mrc_c99_function(job, "c99_parts.h", "sum_of_squares"); return "unit_features";
        case MRC_PREPROCESS_RANK:
            mrc_c99_array(job, "factor", 0, d, of->factor, false);
            put_ranks(job, of);
            return "rank_features";
        case MRC_PREPROCESS_BLEND:
            mrc_c99_array(job, "shift", 0, d, of->shift, false);
            mrc_c99_array(job, "factor", 0, d, of->factor, false);
            mrc_c99_array(job, "rank_weight", 0, d, of->rank_weight, false);
            put_ranks(job, of);
            return "blend_features";
    }
    return NULL;
}

static void put_preprocessing(mrc_c99_job *job)
{
    const mercer_preprocess *of = job->model->preprocess;
    const mrc_linear_map *map = of ? of->map : NULL;
    const char *step = of ? put_step(job, of) : NULL;
    if (step) mrc_c99_function(job, "c99_parts.h", step);
    if (map) {
        mrc_c99_array(job, "metric", map->diagonal ? 0 : map->features, map->width, map->values, false);
        mrc_c99_function(job, "c99_parts.h", map->diagonal ? "weigh_features" : "map_features");
    }
    mrc_c99_own(job, "prepare");
    mrc_output_text(&job->out, "/* A sample as the kernel sees it; 0: a value is not finite. */\n"
                               "static int prepare(const sample *x, stored *out)\n{\n    double row[FEATURES];\n"
                               "    for (int j = 0; j < FEATURES; j++) {\n        row[j] = (double)x[j];\n"
                               "        if (!isfinite(row[j])) return 0;\n    }\n");
    if (step) mrc_output_text(&job->out, "    %s(row);\n", step);
    if (map && map->diagonal) mrc_output_text(&job->out, "    weigh_features(row);\n");
    const char *from = map && !map->diagonal ? "mapped" : "row";
    if (map && !map->diagonal)
        mrc_output_text(&job->out, "    double mapped[WIDTH];\n    map_features(row, mapped);\n");
    mrc_output_text(&job->out,
                    "    for (int j = 0; j < WIDTH; j++) {\n        out[j] = (stored)%s[j];\n"
                    "        if (!isfinite((double)out[j])) return 0;\n    }\n    return 1;\n}\n\n",
                    from);
}

/* ---- Kernel -------------------------------------------------------------------------------------------------- */

static void put_math(mrc_c99_job *job)
{
    const char *source = "uk_math_body.h", *text = job->text ? job->text : "";
    bool general = job->direct && job->norm != 1 && job->norm != 0.5 && job->norm != 1.5;
    bool wide = job->wide || !job->map.in_float, logs = strstr(text, "LOG") != NULL,
         wide_logs = (logs && wide) || general;
    bool angle = job->form == MRC_FORM_ANGLE, exps = strstr(text, "EXP") != NULL;
    if (exps && !wide) mrc_c99_function(job, source, "exp_f32");
    if (logs && !wide) mrc_c99_function(job, source, "log_f32");
    if ((exps && wide) || wide_logs) {
        mrc_c99_function(job, source, "from_bits_f64");
        mrc_c99_function(job, source, "to_bits_f64");
        mrc_c99_function(job, source, "exp_f64");
    }
    if (wide_logs) mrc_c99_function(job, source, "log_f64");
    if (strstr(text, "LOG1P")) mrc_c99_function(job, source, "log1p_f64");
    if (general) mrc_c99_function(job, source, "power_f64");
    if (job->direct && job->norm == 0.5) mrc_c99_function(job, source, "power_1_2_f64");
    if (job->direct && job->norm == 1.5) mrc_c99_function(job, source, "power_3_2_f64");
    if (angle) mrc_c99_function(job, source, "acos_f64");
}

/* The function of squared distances, sums of differences or inner products. */
static void put_formula(mrc_c99_job *job)
{
    bool wide = job->wide || !job->map.in_float;
    const char *real = wide ? "double" : "float";
    mrc_output_text(&job->out,
                    "#define REAL %s\n#define EXP exp_%s\n#define LOG log_%s\n#define LOG1P log1p_f64\n"
                    "#define SQRT sqrt%s\n#define CAP(u) ((u) < %s ? (u) : %s)\n\n",
                    real, wide ? "f64" : "f32", wide ? "f64" : "f32", wide ? "" : "f", wide ? "800.0" : "128.0f",
                    wide ? "800.0" : "128.0f");
    mrc_c99_own(job, "kernel_value");
    mrc_output_text(&job->out,
                    "static real kernel_value(real argument)\n{\n    const REAL a = KERNEL_A, b = KERNEL_B;\n"
                    "    REAL s = argument, u = 0;\n    (void)a, (void)b, (void)u;\n");
    if (wide) mrc_output_text(&job->out, "    if (isinf(s)) return 0;\n");
    mrc_output_text(&job->out, "    return (real)(");
    mrc_output_bytes(&job->out, job->text, (int64_t)strlen(job->text));
    mrc_output_text(&job->out, ");\n}\n\n");
}

static void put_kernel(mrc_c99_job *job)
{
    static const char *const types[] = {"mrc_map", "mercer_kernel", "WIDE_STRIP"};
    const char *parts = "c99_parts.h";
    bool single = job->map.in_float && !job->wide;
    mrc_output_text(&job->out, "#define KERNEL_A ");
    mrc_c99_number(job, job->map.a, single);
    mrc_output_text(&job->out, "\n#define KERNEL_B ");
    mrc_c99_number(job, job->map.b, single);
    mrc_output_text(&job->out, "\n#define DEGREE %d\n#define NORM ", job->map.degree);
    mrc_c99_number(job, job->norm, false);
    mrc_output_text(&job->out, "\n#define BIAS ");
    mrc_c99_number(job, job->model->kernel.bias, false);
    mrc_output_text(&job->out, "\n\n");
    put_math(job);
    if (job->form == MRC_FORM_ANGLE) {
        for (int i = 0; i < 3; i++) mrc_c99_own(job, types[i]);
        mrc_output_text(&job->out, "typedef struct { int degree; double a, b; } mrc_map;\n"
                                   "typedef struct { double bias; int32_t depth; } mercer_kernel;\n"
                                   "enum { WIDE_STRIP = 64 };\n#define MRC_HD static\n"
                                   "#define UK_PANEL_FN(name) name\n\n");
        mrc_c99_function(job, "uk_panel_body.h", "UK_PANEL_FN(angular)");
        if (!job->bytes) mrc_c99_function(job, "formulas.h", "mrc_relu_layers");
        mrc_c99_function(job, parts, "angle_value");
    } else if (job->form == MRC_FORM_POWER) {
        mrc_c99_function(job, parts, "power_value");
    } else if (job->form != MRC_FORM_SAME) {
        put_formula(job);
    }
}

/* ---- Sums ---------------------------------------------------------------------------------------------------- */

/* Squared norms of the centers, less the origin, in the chain of the micro-kernels. */
static mercer_status put_norms(mrc_c99_job *job)
{
    const mercer_matrix *z = &job->model->centers;
    double *norms;
    MRC_SCOPE(scope, job->model->context);
    MRC_TRY(mrc_scope_alloc(&scope, &norms, z->rows, sizeof *norms, "norms of the centers"));
    for (int64_t i = 0; i < z->rows; i++) {
        float single = 0;
        double wide = 0;
        for (int64_t k = 0; k < z->cols; k++) {
            double value = mrc_load(z, i, k), origin = is_centred(job) ? job->model->origin[k] : 0;
            float rounded = (float)value - (float)origin;
            single = fmaf(rounded, rounded, single);
            wide = fma(value - origin, value - origin, wide);
        }
        norms[i] = job->wide ? wide : (double)single;
    }
    mrc_c99_array(job, "center_norms", 0, z->rows, norms, !job->wide);
    return MERCER_OK;
}

/* Functions of a pair; and what is said of a sample before the loop, and the kernel's value in it. */
typedef struct pair_code {
    const char *before, *argument;
} pair_code;

static void put_no_origin(mrc_c99_job *job)
{
    mrc_c99_own(job, "origin");
    mrc_output_text(&job->out, "static const real origin[WIDTH] = {0};\n\n");
}

static mercer_status put_pair(mrc_c99_job *job, pair_code *out)
{
    const char *parts = "c99_parts.h";
    const mercer_model *model = job->model;
    *out = (pair_code){"", "pair_dot(x, j)"};
    if (job->form == MRC_FORM_ANGLE && job->bytes) {
        mrc_c99_function(job, parts, "bytes_dot");
        *out = (pair_code){"    const double xx = bytes_dot(x, x);\n",
                           "angle_value(bytes_dot(x, centers[j]), xx, bytes_dot(centers[j], centers[j]))"};
    } else if (job->form == MRC_FORM_ANGLE) {
        MRC_TRY(put_norms(job));
        const char *const list[] = {"pair_dot", "exact_inner", "pair_angle", "row_norm"};
        for (int i = 0; i < 4; i++) mrc_c99_function(job, parts, list[i]);
        *out = (pair_code){"    const real norm = row_norm(x);\n", "pair_angle(x, norm, j)"};
    } else if (job->norm == 0) {
        mrc_c99_function(job, parts, job->bytes ? "bytes_dot" : "pair_dot");
        if (job->bytes) out->argument = "(real)bytes_dot(x, centers[j])";
    } else if (job->direct && job->norm == 1) {
        mrc_c99_function(job, parts, job->bytes ? "bytes_l1" : "pair_l1");
        out->argument = job->bytes ? "(real)bytes_l1(x, j)" : "pair_l1(x, j)";
    } else if (job->direct) {
        mrc_output_text(&job->out, "#define POWER power%s_f64\n\n",
                        job->norm == 0.5   ? "_1_2"
                        : job->norm == 1.5 ? "_3_2"
                                           : "");
        mrc_c99_function(job, parts, "pair_powers");
        out->argument = "pair_powers(x, j)";
    } else if (job->bytes) {
        mrc_c99_function(job, parts, "bytes_square");
        out->argument = "(real)bytes_square(x, j)";
    } else {
        MRC_TRY(put_norms(job));
        if (is_centred(job))
            mrc_c99_array(job, "origin", 0, model->centers.cols, model->origin, !job->wide);
        else
            put_no_origin(job);
        bool four = model->centers.dtype == MERCER_F32;
        mrc_output_text(&job->out, four ? "#define EXACT_SQUARE(x, z) sqdist_f32(x, z, WIDTH)\n\n"
                                        : "#define EXACT_SQUARE exact_square\n\n");
        mrc_c99_function(job, four ? "pack_panels.c" : parts, four ? "sqdist_f32" : "exact_square");
        mrc_c99_function(job, parts, "center_point");
        mrc_c99_function(job, parts, "pair_square");
        *out = (pair_code){"    real point[WIDTH];\n    const real norm = center_point(x, point);\n",
                           "pair_square(x, point, norm, j)"};
    }
    return MERCER_OK;
}

static mercer_status put_sums(mrc_c99_job *job)
{
    pair_code pair;
    const char *value = job->form == MRC_FORM_ANGLE || job->form == MRC_FORM_SAME ? ""
                        : job->form == MRC_FORM_POWER                             ? "power_value"
                                                                                  : "kernel_value";
    MRC_TRY(put_pair(job, &pair));
    mrc_c99_own(job, "add_up");
    mrc_output_text(&job->out,
                    "/* sum_j w_j K(x, z_j): a chain over each tile of centers, whose sums are added in double. */\n"
                    "static void add_up(const stored *x, double *f)\n{\n    double total[OUTPUTS] = {0};\n%s"
                    "    for (int first = 0; first < CENTERS; first += TILE) {\n        real sum[OUTPUTS] = {0};\n"
                    "        for (int j = first; j < CENTERS && j < first + TILE; j++) {\n"
                    "            const real value = %s(%s);\n"
                    "            for (int c = 0; c < OUTPUTS; c++) sum[c] = FMA((real)weights[j][c], value, sum[c]);\n"
                    "        }\n        for (int c = 0; c < OUTPUTS; c++) total[c] += (double)sum[c];\n    }\n"
                    "    for (int c = 0; c < OUTPUTS; c++) f[c] = %s;\n}\n\n",
                    pair.before, value, pair.argument, mrc_c99_rounds_sums(job) ? "rounded(total[c])" : "total[c]");
    return MERCER_OK;
}

mercer_status mrc_c99_points(mrc_c99_job *job)
{
    put_sizes(job);
    mrc_c99_matrix(job, "centers", &job->model->centers);
    mrc_c99_matrix(job, "weights", &job->model->weights);
    put_preprocessing(job);
    put_kernel(job);
    return put_sums(job);
}
