/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model as an ONNX graph of operators that runtimes support in double.
 *
 *   x (m, d) -> preprocessing -> s (m, p): |x|^2 + |z|^2 - 2 x z', sums of |x - z|^q, or x z' -> K -> K W -> units
 *
 * Computations are in double: if x is near a center, |x|^2 + |z|^2 - 2 x z' loses half of the digits of the distance,
 * which leaves 8 digits of a double but none of a float. Only asin is in float, because runtimes do not support it in
 * double; its argument is computed in double and is at most sqrt(1/2), where asin is well-conditioned. A runtime and
 * Mercer therefore agree up to the rounding of Mercer: rounding to float for models in float.
 *
 * Memory of a runtime: m p doubles, and m p d doubles for kernels of differences.
 */
#include "core/memory.h"
#include "export/onnx_proto.h"
#include "kernels/formulas.h"
#include "kernels/kernel.h"
#include "model/model_file.h"

#include <math.h>

/* Short forms of the functions of onnx_proto.h. Arguments and results are indices of values. `with` has a number as its
   second operand; `reduce` reduces one axis and keeps it with size 1; `unsqueeze` inserts an axis of size 1. In
   operator set 13 axes are an input of Unsqueeze, Squeeze and ReduceSum, and an attribute of other reductions. */
static int node(mrc_onnx *g, const char *operator, int a, int b)
{
    return mrc_onnx_node(g, operator, a, b, -1);
}

static int with(mrc_onnx *g, const char *operator, int a, double number)
{
    return node(g, operator, a, mrc_onnx_number(g, number));
}

static int reduce(mrc_onnx *g, const char *operator, int a, int64_t axis)
{
    return mrc_onnx_with(g, operator, a, -1, "axes", axis, true);
}

static int unsqueeze(mrc_onnx *g, int a, int64_t axis)
{
    return node(g, "Unsqueeze", a, mrc_onnx_integers(g, 1, &axis));
}

/* ---- Piecewise linear functions ------------------------------------------------------------------------------ */

/* Counts the knots (1, d, count) below x (m, d) (operator Less), or not above it (LessOrEqual): integers (m, d). The
   comparison has m d count elements. */
static int count_knots(mrc_onnx *g, int x, int knots, const char *operator)
{
    const int64_t last = 2;
    int below = mrc_onnx_cast(g, node(g, operator, knots, unsqueeze(g, x, last)), MRC_ONNX_INT64);
    int axes = mrc_onnx_integers(g, 1, &last);
    return mrc_onnx_with(g, "ReduceSum", below, axes, "keepdims", 0, false);
}

/* Adds nodes that read the entries at - shift (m, d), clamped to 0 .. count - 1, from a flattened table (d, count):
   feature j reads from row j. */
static int add_gather(mrc_onnx *g, int flat, int rows, int at, int64_t shift, int64_t count)
{
    const int64_t least = 0, most = count - 1;
    int place = node(g, "Sub", at, mrc_onnx_integers(g, -1, &shift));
    place = node(g, "Max", place, mrc_onnx_integers(g, -1, &least));
    place = node(g, "Min", place, mrc_onnx_integers(g, -1, &most));
    if (rows >= 0) place = node(g, "Add", place, rows);
    return node(g, "Gather", flat, place);
}

/* Adds the constant 0, count, 2 count, ..., the offsets of the rows in a flattened table. */
static mercer_status row_starts(mrc_onnx *g, int64_t rows, int64_t count, int *out)
{
    int64_t *starts;
    MRC_SCOPE(scope, g->context);
    MRC_TRY(mrc_scope_alloc(&scope, &starts, rows, sizeof *starts, "rows of a table"));
    for (int64_t i = 0; i < rows; i++) starts[i] = i * count;
    *out = mrc_onnx_integers(g, rows, starts);
    return MERCER_OK;
}

/* The rank transform of data/prepare/preprocess_rank.c, for every feature, without branches. A value between two knots
   is interpolated between their normal quantiles; a value that equals one or more knots gets the mean of the first and
   the last quantile of these knots. Both results are computed for all elements, and Where selects one. A width of 0,
   where both ends are the same knot, is replaced by 1 to avoid 0 / 0. */
static mercer_status rank_transform(mrc_onnx *g, const mercer_preprocess *of, int x, int *out)
{
    const int64_t d = of->features, q = MRC_RANK_KNOTS, none = 0;
    int starts, flat = mrc_onnx_doubles(g, d * q, -1, -1, of->knots),
                normal = mrc_onnx_doubles(g, q, -1, -1, of->normal);
    int knots = mrc_onnx_doubles(g, 1, d, q, of->knots);
    MRC_TRY(row_starts(g, d, q, &starts));
    int below = count_knots(g, x, knots, "Less"), upto = count_knots(g, x, knots, "LessOrEqual");
    int low = add_gather(g, flat, starts, below, 1, q), high = add_gather(g, flat, starts, below, 0, q);
    int from = add_gather(g, normal, -1, below, 1, q), to = add_gather(g, normal, -1, below, 0, q);
    int width = node(g, "Sub", high, low), zero = mrc_onnx_number(g, 0);
    width = mrc_onnx_node(g, "Where", node(g, "Greater", width, zero), width, mrc_onnx_number(g, 1));
    int share = node(g, "Div", node(g, "Sub", x, low), width);
    /* Before the first and after the last knot both ends are the same knot. */
    int between = node(g, "Add", from, node(g, "Mul", share, node(g, "Sub", to, from)));
    int middle = with(g, "Mul", node(g, "Add", to, add_gather(g, normal, -1, upto, 1, q)), 0.5);
    int equal = node(g, "Greater", node(g, "Sub", upto, below), mrc_onnx_integers(g, -1, &none));
    *out = mrc_onnx_node(g, "Where", equal, middle, between);
    return MERCER_OK;
}

/* The inverse transform of core/numbers/target_curve.c: quantiles (c, k) to values (c, k). The curve stores, for each
   output, a row of values and then a row of quantiles; here they are separated into two tables. v is clamped to the
   first and the last quantile, so predictions stay within the range of the training targets. */
static mercer_status leave_ranks(mrc_onnx *g, const mrc_curve *curve, int64_t c, int v, int *out)
{
    const int64_t k = curve->count;
    double *table;
    int starts;
    MRC_SCOPE(scope, g->context);
    MRC_TRY(mrc_scope_alloc(&scope, &table, 2 * c * k + 2 * c, sizeof *table, "a curve of targets"));
    double *values = table + c * k, *first = values + c * k, *last = first + c;
    for (int64_t j = 0; j < c; j++) {
        const double *of = curve->numbers + 2 * j * k;
        for (int64_t i = 0; i < k; i++) values[j * k + i] = of[i], table[j * k + i] = of[k + i];
        first[j] = of[k], last[j] = of[k + k - 1];
    }
    MRC_TRY(row_starts(g, c, k, &starts));
    int knots = mrc_onnx_doubles(g, 1, c, k, table), flat = mrc_onnx_doubles(g, c * k, -1, -1, table);
    int to = mrc_onnx_doubles(g, c * k, -1, -1, values);
    v = node(g, "Max", v, mrc_onnx_doubles(g, c, -1, -1, first));
    v = node(g, "Min", v, mrc_onnx_doubles(g, c, -1, -1, last));
    int upto = count_knots(g, v, knots, "LessOrEqual");
    int low = add_gather(g, flat, starts, upto, 1, k), high = add_gather(g, flat, starts, upto, 0, k);
    int begin = add_gather(g, to, starts, upto, 1, k), end = add_gather(g, to, starts, upto, 0, k);
    int width = node(g, "Sub", high, low);
    width = mrc_onnx_node(g, "Where", node(g, "Greater", width, mrc_onnx_number(g, 0)), width, mrc_onnx_number(g, 1));
    int share = node(g, "Div", node(g, "Sub", v, low), width);
    *out = node(g, "Add", begin, node(g, "Mul", share, node(g, "Sub", end, begin)));
    return MERCER_OK;
}

/* ---- Preprocessing ------------------------------------------------------------------------------------------- */

/* Adds x / |x|; rows of zeros stay 0. */
static int unit_features(mrc_onnx *g, int x)
{
    int sum = reduce(g, "ReduceSumSquare", x, 1);
    int zero = node(g, "Equal", sum, mrc_onnx_number(g, 0));
    return node(g, "Div", x, node(g, "Sqrt", mrc_onnx_node(g, "Where", zero, mrc_onnx_number(g, 1), sum), -1));
}

/* Adds (x - shift) * factor, feature by feature. */
static int shift_features(mrc_onnx *g, const mercer_preprocess *of, int x)
{
    const int64_t d = of->features;
    int shifted = node(g, "Sub", x, mrc_onnx_doubles(g, d, -1, -1, of->shift));
    return node(g, "Mul", shifted, mrc_onnx_doubles(g, d, -1, -1, of->factor));
}

/* Adds the rank transform. Features with a factor above 0 are only scaled (preprocess.h). */
static mercer_status rank_features(mrc_onnx *g, const mercer_preprocess *of, int x, int *out)
{
    int factor = mrc_onnx_doubles(g, of->features, -1, -1, of->factor), ranked;
    MRC_TRY(rank_transform(g, of, x, &ranked));
    int scaled = node(g, "Greater", factor, mrc_onnx_number(g, 0));
    *out = mrc_onnx_node(g, "Where", scaled, node(g, "Mul", x, factor), ranked);
    return MERCER_OK;
}

/* The blend of data/prepare/preprocess_blend.c. The rank transform is finite, so a weight of 0 removes it. */
static mercer_status blend_features(mrc_onnx *g, const mercer_preprocess *of, int x, int *out)
{
    int ranked, weight = mrc_onnx_doubles(g, of->features, -1, -1, of->rank_weight);
    MRC_TRY(rank_transform(g, of, x, &ranked));
    *out = node(g, "Add", shift_features(g, of, x), node(g, "Mul", ranked, weight));
    return MERCER_OK;
}

/* Adds the preprocessing, then its map. */
static mercer_status add_preprocessing(mrc_onnx *g, const mercer_preprocess *of, int x, int *out)
{
    const mrc_linear_map *map = of->map;
    *out = x;
    switch (of->kind) {
        case MRC_PREPROCESS_NONE: break;
        case MRC_PREPROCESS_SCALE:
            if (!of->folded) *out = with(g, "Mul", x, of->scale);
            break;
        case MRC_PREPROCESS_STANDARDIZE:
        case MRC_PREPROCESS_MINMAX: *out = shift_features(g, of, x); break;
        case MRC_PREPROCESS_UNIT: *out = unit_features(g, x); break;
        case MRC_PREPROCESS_RANK: MRC_TRY(rank_features(g, of, x, out)); break;
        case MRC_PREPROCESS_BLEND: MRC_TRY(blend_features(g, of, x, out)); break;
    }
    if (map && map->diagonal) *out = node(g, "Mul", *out, mrc_onnx_doubles(g, map->features, -1, -1, map->values));
    if (map && !map->diagonal)
        *out = node(g, "MatMul", *out, mrc_onnx_doubles(g, map->features, map->width, -1, map->values));
    return MERCER_OK;
}

/* ---- Kernels ------------------------------------------------------------------------------------------------- */

/* Adds the transpose of a matrix; without an attribute the operator reverses the axes. */
static int add_transpose(mrc_onnx *g, int a)
{
    return node(g, "Transpose", a, -1);
}

/* Adds the squared norms of the rows of x (m, d), as a column (m, 1). */
static int squared_norms(mrc_onnx *g, int x)
{
    return reduce(g, "ReduceSumSquare", x, 1);
}

/* Squared distances (m, p) of x (m, d) and z (p, d), computed after subtracting the origin from both. Rounding can make
   a small distance negative, and the root or power in the kernel would then be NaN, so negative distances become 0. */
static int squares(mrc_onnx *g, int x, int z, const double *origin, int64_t d)
{
    int from = mrc_onnx_doubles(g, d, -1, -1, origin);
    x = node(g, "Sub", x, from);
    z = node(g, "Sub", z, from);
    int sum = node(g, "Add", squared_norms(g, x), add_transpose(g, squared_norms(g, z)));
    int twice = with(g, "Mul", node(g, "MatMul", x, add_transpose(g, z)), 2);
    return with(g, "Max", node(g, "Sub", sum, twice), 0);
}

/* Adds sum_k |x_k - z_k|^p (m, p) of x (m, d) and z (p, d), through an intermediate result (m, p, d). */
static int differences(mrc_onnx *g, int x, int z, double p)
{
    const int64_t last = 2;
    int size = node(g, "Abs", node(g, "Sub", unsqueeze(g, x, 1), unsqueeze(g, z, 0)), -1);
    if (p != 1) size = with(g, "Pow", size, p);
    return mrc_onnx_with(g, "ReduceSum", size, mrc_onnx_integers(g, 1, &last), "keepdims", 0, false);
}

static int exp_of(mrc_onnx *g, int a)
{
    return node(g, "Exp", a, -1);
}

/* exp(-(s / scale)^power) */
static int stretched(mrc_onnx *g, int s, double scale, double power)
{
    return exp_of(g, node(g, "Neg", with(g, "Pow", with(g, "Div", s, scale), power), -1));
}

/* acos c = 2 asin(sqrt((1 - |c|) / 2)) for c >= 0, or pi minus this value for c < 0. */
static int arc_cosine(mrc_onnx *g, int c)
{
    int half = with(g, "Mul", node(g, "Sub", mrc_onnx_number(g, 1), node(g, "Abs", c, -1)), 0.5);
    int root = mrc_onnx_cast(g, node(g, "Sqrt", half, -1), MRC_ONNX_FLOAT);
    int angle = with(g, "Mul", mrc_onnx_cast(g, node(g, "Asin", root, -1), MRC_ONNX_DOUBLE), 2);
    int other = node(g, "Sub", mrc_onnx_number(g, 3.14159265358979323846), angle);
    return mrc_onnx_node(g, "Where", node(g, "Less", c, mrc_onnx_number(g, 0)), other, angle);
}

/* The layers of ntk and nngp, see kernels/formulas.h: s and t are S_l and T_l (m, p). Rows with norm 0 have the angle
   0. The cosine is clamped to -1 .. 1, because rounding may exceed it. */
static int layers(mrc_onnx *g, const mercer_kernel *kernel, int x, int z)
{
    const double pi = 3.14159265358979323846, variance = kernel->bias * kernel->bias;
    int xx = squared_norms(g, x), zz = add_transpose(g, squared_norms(g, z));
    int s = with(g, "Add", node(g, "MatMul", x, add_transpose(g, z)), variance), t = s;
    for (int32_t layer = 1; layer <= kernel->depth; layer++) {
        int norms = node(g, "Mul", node(g, "Sqrt", with(g, "Add", xx, layer * variance), -1),
                         node(g, "Sqrt", with(g, "Add", zz, layer * variance), -1));
        int one = mrc_onnx_number(g, 1), none = node(g, "Equal", norms, mrc_onnx_number(g, 0));
        int c = node(g, "Div", s, mrc_onnx_node(g, "Where", none, one, norms));
        c = mrc_onnx_node(g, "Where", none, one, c);
        c = node(g, "Min", node(g, "Max", c, mrc_onnx_number(g, -1)), one);
        int k0 = node(g, "Sub", one, with(g, "Div", arc_cosine(g, c), pi));
        int sine = node(g, "Sqrt", with(g, "Max", node(g, "Sub", one, node(g, "Mul", c, c)), 0), -1);
        int k1 = node(g, "Add", node(g, "Mul", c, k0), with(g, "Div", sine, pi));
        s = with(g, "Add", node(g, "Mul", norms, k1), variance);
        t = node(g, "Add", node(g, "Mul", t, k0), s);
    }
    return kernel->id == MRC_KERNEL_NTK ? t : s;
}

/* (1 + u [+ u^2 / 3]) exp(-u) with u = scale sqrt(s). */
static int matern(mrc_onnx *g, int s, double scale, bool second)
{
    int u = with(g, "Mul", node(g, "Sqrt", s, -1), scale), sum = with(g, "Add", u, 1);
    if (second) sum = node(g, "Add", sum, with(g, "Div", node(g, "Mul", u, u), 3));
    return node(g, "Mul", sum, exp_of(g, node(g, "Neg", u, -1)));
}

/* A kernel as a function of s: the squared distance, or the sum of |x_k - z_k|^p. Returns -1 for other kernels. A
   factor 1 / b^2 is computed by two divisions, because b^2 may underflow. */
static int of_distance(mrc_onnx *g, const mercer_kernel *kernel, int s)
{
    const double b = kernel->bandwidth;
    switch (kernel->id) {
        case MRC_KERNEL_LAPLACE: return exp_of(g, with(g, "Div", node(g, "Sqrt", s, -1), -b));
        case MRC_KERNEL_GAUSSIAN: return exp_of(g, with(g, "Mul", s, -0.5 / b / b));
        case MRC_KERNEL_MATERN32: return matern(g, s, sqrt(3) / b, false);
        case MRC_KERNEL_MATERN52: return matern(g, s, sqrt(5) / b, true);
        case MRC_KERNEL_EXPPOWER: return stretched(g, s, b * b, kernel->gamma / 2);
        case MRC_KERNEL_CAUCHY:
            return node(g, "Div", mrc_onnx_number(g, 1), with(g, "Add", with(g, "Mul", s, 1 / b / b), 1));
        case MRC_KERNEL_RATIONAL_QUADRATIC:
            return with(g, "Pow", with(g, "Add", with(g, "Mul", s, 1 / b / b / (2 * kernel->alpha)), 1),
                        -kernel->alpha);
        case MRC_KERNEL_LAPLACE_L1: return exp_of(g, with(g, "Div", s, -b));
        case MRC_KERNEL_EXPPOWER_L1: return stretched(g, s, b, kernel->gamma);
        case MRC_KERNEL_LPQ: return stretched(g, s, pow(b, kernel->p), kernel->q / kernel->p);
        default: return -1;
    }
}

/* Adds K(x, z). Returns -1 for kernels that cannot be expressed. */
static int kernel_matrix(mrc_onnx *g, const mercer_model *model, int x, int z)
{
    const mercer_kernel *kernel = &model->kernel;
    double norm = mrc_kernel_norm(kernel);
    if (mrc_kernel_is_angular(kernel)) return layers(g, kernel, x, z);
    if (norm == 2) return of_distance(g, kernel, squares(g, x, z, model->origin, model->centers.cols));
    if (norm > 0) return of_distance(g, kernel, differences(g, x, z, norm));
    int dot = node(g, "MatMul", x, add_transpose(g, z));
    if (kernel->id == MRC_KERNEL_LINEAR) return dot;
    if (kernel->id != MRC_KERNEL_POLYNOMIAL) return -1;
    return with(g, "Pow", with(g, "Add", with(g, "Mul", dot, kernel->scale), kernel->offset), kernel->degree);
}

/* ---- Predictions --------------------------------------------------------------------------------------------- */

/* Adds the conversion of sums to the units of the targets: scale and offset, then the inverse of the transform: exp(f)
   - shift for log, leave_ranks for rank. */
static mercer_status leave_units(mrc_onnx *g, const mercer_model *model, int f, int *out)
{
    const mrc_units *units = &model->units;
    int64_t c = model->weights.cols;
    *out = f;
    if (!mrc_units_given(units)) return MERCER_OK;
    f = node(g, "Mul", f, mrc_onnx_doubles(g, c, -1, -1, units->scale));
    *out = f = node(g, "Add", f, mrc_onnx_doubles(g, c, -1, -1, units->offset));
    if (units->curve.kind == MRC_CURVE_LOG)
        *out = node(g, "Sub", exp_of(g, f), mrc_onnx_doubles(g, c, -1, -1, units->curve.numbers));
    if (units->curve.kind == MRC_CURVE_RANK) return leave_ranks(g, &units->curve, c, f, out);
    return MERCER_OK;
}

/* Adds curved scores, asinh(k f) / asinh(k) as sign(f) log(|k f| + sqrt((k f)^2 + 1)) / asinh(k): Asinh exists in float
   only. */
static int curve_scores(mrc_onnx *g, int f, double curvature)
{
    int u = node(g, "Abs", with(g, "Mul", f, curvature), -1);
    int root = node(g, "Sqrt", with(g, "Add", node(g, "Mul", u, u), 1), -1);
    int size = with(g, "Div", node(g, "Log", node(g, "Add", u, root), -1), asinh(curvature));
    return node(g, "Mul", node(g, "Sign", f, -1), size);
}

/* Adds the outputs: predictions and, for classes, probabilities and labels. The class is the largest output, not the
   largest probability, as in mrc_model_classify: class shifts change probabilities only. */
static void add_outputs(mrc_onnx *g, const mercer_model *model, int f, mrc_onnx_type real)
{
    int64_t c = model->weights.cols;
    bool classes = model->labels && model->label_count == c;
    mrc_onnx_output(g, mrc_onnx_cast(g, f, real), "predictions", real, c);
    if (!classes) return;
    const mrc_calibration *known = &model->calibration;
    const double *shift = known->shift;
    int curved = known->curvature > 0 ? curve_scores(g, f, known->curvature) : f;
    int shifted = shift ? node(g, "Add", curved, mrc_onnx_doubles(g, c, -1, -1, shift)) : curved;
    int scores = with(g, "Div", shifted, mrc_model_temperature(model));
    int p = mrc_onnx_cast(g, mrc_onnx_with(g, "Softmax", scores, -1, "axis", 1, false), real);
    mrc_onnx_output(g, p, "probabilities", real, c);
    const int64_t axis = 1;
    int label = mrc_onnx_with(g, "ArgMax", f, -1, "axis", axis, false);
    label = node(g, "Squeeze", label, mrc_onnx_integers(g, 1, &axis));
    mrc_onnx_output(g, label, "class", MRC_ONNX_INT64, -1);
}

/* Adds the predictions (m, c) of a model or member for x (m, features), in double. */
static mercer_status predict(mrc_onnx *g, const mercer_model *model, int x, int *f)
{
    if (model->preprocess) MRC_TRY(add_preprocessing(g, model->preprocess, x, &x));
    if (model->centers.dtype != MERCER_F64) /* round samples where the library does */
        x = mrc_onnx_cast(g, mrc_onnx_cast(g, x, MRC_ONNX_FLOAT), MRC_ONNX_DOUBLE);
    int z = mrc_onnx_cast(g, mrc_onnx_matrix(g, &model->centers), MRC_ONNX_DOUBLE);
    int w = mrc_onnx_cast(g, mrc_onnx_matrix(g, &model->weights), MRC_ONNX_DOUBLE);
    int k = kernel_matrix(g, model, x, z);
    if (k < 0)
        return mrc_fail(model->context, MERCER_ERROR_UNSUPPORTED, "format onnx cannot express this kernel function");
    return leave_units(g, model, node(g, "MatMul", k, w), f);
}

/* Adds the whole graph: input, mean over the members, outputs. Input and outputs are double if any member has centers
   or weights in double. Each member adds its own preprocessing of the same input. */
static mercer_status make_onnx_graph(mrc_onnx *g, const mercer_model *model)
{
    bool wide = false;
    for (int64_t m = 0; m < model->member_count; m++)
        wide |= model->members[m]->centers.dtype == MERCER_F64 || model->members[m]->weights.dtype == MERCER_F64;
    mrc_onnx_type real = wide ? MRC_ONNX_DOUBLE : MRC_ONNX_FLOAT;
    int x = mrc_onnx_input(g, "x", real, mrc_model_features(model)), f = -1, sum = -1;
    x = mrc_onnx_cast(g, x, MRC_ONNX_DOUBLE);
    for (int64_t m = 0; m < model->member_count; m++) {
        MRC_TRY(predict(g, model->members[m], x, &f));
        sum = m == 0 ? f : node(g, "Add", sum, f);
    }
    add_outputs(g, model, model->member_count > 1 ? with(g, "Div", sum, (double)model->member_count) : sum, real);
    return g->status;
}

/* Properties of the file. The first LISTS of them are JSON lists, which are allocated for the file. */
enum { LABELS, FEATURES, TARGETS, KERNEL, SCHEMA, NOTE, TEXTS, LISTS = KERNEL };

/* Makes the graph, and writes it with the model's names and metadata as properties. */
static mercer_status write_graph(mrc_onnx *g, const mercer_model *model, const char *path, char **lists)
{
    static const char *const keys[TEXTS] = {"labels", "feature_names", "target_names", "kernel", "schema", "note"};
    char kernel[512];
    MRC_TRY(make_onnx_graph(g, model));
    MRC_TRY(mrc_kernel_print(model->context, &model->kernel, kernel, sizeof kernel, NULL));
    MRC_TRY(mrc_print_names(g->context, model->labels, model->label_count, &lists[LABELS]));
    MRC_TRY(mrc_print_names(g->context, model->feature_names, mrc_model_features(model), &lists[FEATURES]));
    MRC_TRY(mrc_print_names(g->context, model->target_names, model->target_count, &lists[TARGETS]));
    const char *const texts[TEXTS] = {lists[LABELS], lists[FEATURES], lists[TARGETS],
                                      kernel,        model->schema,   model->note};
    return mrc_onnx_write(g, path, keys, texts, TEXTS);
}

mercer_status mrc_export_onnx(const mercer_model *model, const char *path)
{
    MRC_OWNED(mrc_onnx_close) mrc_onnx graph = {.context = model->context};
    char *lists[LISTS] = {NULL};
    mercer_status status = write_graph(&graph, model, path, lists);
    for (int i = 0; i < LISTS; i++) mrc_free(model->context, lists[i]);
    return status;
}
