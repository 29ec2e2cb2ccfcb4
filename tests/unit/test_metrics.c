/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Metrics against plain references: AUC over all pairs, quantiles by counting, sums in long double.
 *
 * A sum of n terms in double is off by at most n U of the sum of their sizes, U = 2^-53, and exp and log of the C
 * library by an ulp or two: with up to 3 operations per term, (n + 16) 4 U of that sum bounds all of them. Scores are
 * at most 10 in size and their temperature is at least 0.25, so no term of a log loss exceeds 100.
 */
#include "support/datasets.h"

#include "support/data.h"

#include "core/numbers/softmax.h"
#include "mercer/advanced.h"
#include "mercer/evaluation.h"
#include "metrics/metrics.h"

#include <float.h>

enum { N = 301, MOST = 5 };

static const double T = 0.3;

static double scores[N][MOST], targets[N][MOST], weights[N];
static int32_t labels[N];

static double bound(double size)
{
    return (N + 16) * 4 * (DBL_EPSILON / 2) * size;
}

/* Generate scores on a grid, so that many are equal; classes that correlate with them; weights, some of them 0. */
static void make_rows(int64_t c)
{
    const mrc_rng rng = {17, 3};
    for (int64_t i = 0; i < N; i++) {
        labels[i] = (int32_t)(mrc_random_uniform(rng, (uint64_t)i) * (double)c);
        weights[i] = (double)(i % 4) * 0.75;
        for (int64_t j = 0; j < c; j++) {
            double noise = mrc_random_normal(rng, (uint64_t)(1000 + i * MOST + j));
            scores[i][j] = floor(8 * (noise + (labels[i] == j))) / 8;
            targets[i][j] = 100 + (double)(j + 1) * noise;
        }
    }
}

static mercer_matrix view(double (*of)[MOST], int64_t first, int64_t rows, int64_t c)
{
    mercer_matrix out = mercer_matrix_view(of[first], rows, c, MERCER_F64);
    out.ld = MOST;
    return out;
}

/* Evaluate the rows in three blocks. */
static mercer_evaluation *evaluate(mercer_task task, int64_t c, const double *given, const double *radius)
{
    static const int64_t cuts[] = {0, 7, 150, N};
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    mercer_evaluation *out = NULL;
    options.task = task, options.outputs = c, options.rows = N, options.temperature = T;
    options.radius = radius, options.interval = 0.5;
    assert_succeeds(context, mercer_evaluation_create(&out, context, &options));
    for (int k = 0; k < 3; k++) {
        int64_t first = cuts[k], rows = cuts[k + 1] - first;
        mercer_matrix f = view(scores, first, rows, c), y = view(targets, first, rows, c);
        bool classes = task == MERCER_TASK_CLASSIFICATION;
        assert_succeeds(context, mercer_evaluation_add(out, &f, classes ? NULL : &y, classes ? labels + first : NULL,
                                                       given ? given + first : NULL));
    }
    return out;
}

static mercer_metrics query(const mercer_evaluation *of)
{
    mercer_metrics out = MERCER_INIT(mercer_metrics);
    assert_succeeds(context, mercer_evaluation_query(of, &out));
    return out;
}

static mercer_output_metrics query_output(const mercer_evaluation *of, int64_t j)
{
    mercer_output_metrics out = MERCER_INIT(mercer_output_metrics);
    assert_succeeds(context, mercer_evaluation_output(of, &out, j));
    return out;
}

/* ---- Classes --------------------------------------------------------------------------------------------------- */

static double weight(const double *given, int64_t i)
{
    return given ? given[i] : 1;
}

/* Return p_j of row i. */
static long double probability(int64_t i, int64_t j, int64_t c)
{
    long double sum = 0;
    for (int64_t k = 0; k < c; k++)
        sum += expl(((long double)scores[i][k] - (long double)scores[i][j]) / (long double)T);
    return 1 / sum;
}

/* Return the AUC over all pairs. For two classes, p orders rows as the score differences do, which are exact on the
   grid. For more, values of p may be equal up to rounding: *slack receives the effect of such pairs. */
static double plain_auc(int64_t j, int64_t c, const double *given, double *slack)
{
    long double pairs = 0, all = 0, open = 0;
    for (int64_t a = 0; a < N; a++)
        for (int64_t b = 0; b < N; b++) {
            if (labels[a] != j || labels[b] == j) continue;
            long double w = (long double)weight(given, a) * (long double)weight(given, b);
            long double left = probability(a, j, c), right = probability(b, j, c);
            bool near = fabsl(left - right) < 1e-12L * left;
            bool equal = c == 2 ? scores[a][1] - scores[a][0] == scores[b][1] - scores[b][0]
                                : memcmp(scores[a], scores[b], (size_t)c * sizeof(double)) == 0;
            pairs += equal || near ? w / 2 : left > right ? w : 0;
            open += near && !equal ? w / 2 : 0;
            all += w;
        }
    *slack = (double)(open / all) + bound(1);
    return (double)(pairs / all);
}

static void check_sums(const mercer_metrics *found, int64_t c, const double *given)
{
    long double loss = 0, brier = 0, right = 0, all = 0, squared = 0;
    for (int64_t i = 0; i < N; i++) {
        long double w = weight(given, i), one = 0;
        int64_t best = 0;
        for (int64_t j = 0; j < c; j++) {
            long double truth = labels[i] == j, p = probability(i, j, c), f = scores[i][j];
            one += (p - truth) * (p - truth), squared += w * (f - truth) * (f - truth);
            if (scores[i][j] > scores[i][best]) best = j;
        }
        loss -= w * logl(probability(i, labels[i], c));
        brier += w * one / (c == 2 ? 2 : 1), right += best == labels[i] ? w : 0, all += w;
    }
    assert_that(fabs(found->log_loss - (double)(loss / all)) <= bound(100), "log loss %g", found->log_loss);
    assert_that(fabs(found->brier - (double)(brier / all)) <= bound(2), "Brier score %g", found->brier);
    assert_that(fabs(found->accuracy - (double)(right / all)) <= bound(1), "accuracy %g", found->accuracy);
    assert_that(fabs(found->mse - (double)(squared / all / c)) <= bound(100), "mse %g", found->mse);
    assert_that(fabs(found->weight - (double)all) <= bound((double)all), "weight %g", found->weight);
}

static void check_classes(int64_t c, const double *given)
{
    double mean = 0, f1 = 0, slack, most = 0;
    mercer_evaluation *of = evaluate(MERCER_TASK_CLASSIFICATION, c, given, NULL);
    mercer_metrics found = query(of);
    const double *confusion = mercer_evaluation_confusion(of);
    check_sums(&found, c, given);
    for (int64_t j = 0; j < c; j++) {
        double hits = 0, own = 0, taken = 0, auc = plain_auc(j, c, given, &slack);
        mercer_output_metrics one = query_output(of, j);
        assert_that(fabs(one.auc - auc) <= slack, "class %d: AUC %.17g, not %.17g", (int)j, one.auc, auc);
        for (int64_t i = 0; i < N; i++) {
            int64_t best = 0;
            for (int64_t k = 1; k < c; k++)
                if (scores[i][k] > scores[i][best]) best = k;
            hits += best == j && labels[i] == j ? weight(given, i) : 0;
            own += labels[i] == j ? weight(given, i) : 0, taken += best == j ? weight(given, i) : 0;
        }
        assert_true(confusion[j * c + j] == hits && one.weight == own); /* multiples of 3/4 are exact */
        assert_true(one.precision == hits / taken && one.recall == hits / own && one.f1 == 2 * hits / (own + taken));
        most = slack > most ? slack : most;
        mean += auc / (double)c, f1 += one.f1 / (double)c;
    }
    if (c == 2) mean = plain_auc(1, 2, given, &most);
    assert_true(c > 2 || most == bound(1));
    assert_that(fabs(found.auc - mean) <= most, "AUC %.17g, not %.17g", found.auc, mean);
    assert_that(fabs(found.f1 - f1) <= bound(1), "F1 %g, not %g", found.f1, f1);
    assert_true(isnan(found.r2) && isnan(found.mae) && isnan(found.coverage) && isnan(found.interval_score));
    assert_true(found.temperature == T);
    mercer_evaluation_free(of);
}

static void test_classes(void **state)
{
    (void)state;
    for (int64_t c = 2; c <= MOST; c += 3) {
        make_rows(c);
        check_classes(c, NULL);
        check_classes(c, weights);
    }
}

/* A row of weight 2 equals two copies of the row. */
static void test_a_weight_is_a_row_twice(void **state)
{
    (void)state;
    enum { H = 40 };
    make_rows(3);
    double twice[H];
    mercer_evaluation *one[2];
    mercer_metrics found[2];
    for (int k = 0; k < 2; k++) {
        mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
        options.task = MERCER_TASK_CLASSIFICATION, options.outputs = 3, options.rows = 2 * H;
        assert_succeeds(context, mercer_evaluation_create(&one[k], context, &options));
        for (int i = 0; i < H; i++) twice[i] = k == 0 ? 2 : 1;
        mercer_matrix f = view(scores, 0, H, 3);
        for (int again = 0; again <= k; again++)
            assert_succeeds(context, mercer_evaluation_add(one[k], &f, NULL, labels, twice));
        found[k] = query(one[k]);
        mercer_evaluation_free(one[k]);
    }
    assert_true(found[0].auc == found[1].auc && found[0].accuracy == found[1].accuracy && found[0].f1 == found[1].f1);
    assert_true(fabs(found[0].log_loss - found[1].log_loss) <= bound(100));
    assert_true(fabs(found[0].calibration_error - found[1].calibration_error) <= bound(1));
}

/* Bins of the largest probability, computed by their definition; the curve has the same values. */
static void test_calibration(void **state)
{
    (void)state;
    enum { BINS = 15 };
    double right[BINS] = {0}, sure[BINS] = {0}, count[BINS] = {0}, error = 0, x[BINS], y[BINS];
    int64_t points = 0;
    make_rows(3);
    mercer_evaluation *of = evaluate(MERCER_TASK_CLASSIFICATION, 3, NULL, NULL);
    for (int64_t i = 0; i < N; i++) {
        int64_t best = 0;
        for (int64_t j = 1; j < 3; j++)
            if (scores[i][j] > scores[i][best]) best = j;
        double p = (double)probability(i, best, 3);
        int bin = (int)(p * BINS) < BINS ? (int)(p * BINS) : BINS - 1;
        right[bin] += best == labels[i], sure[bin] += p, count[bin]++;
    }
    for (int b = 0; b < BINS; b++) error += fabs(right[b] - sure[b]) / N;
    assert_that(fabs(query(of).calibration_error - error) <= bound(1), "%g", query(of).calibration_error);
    assert_succeeds(context, mercer_evaluation_curve(of, "calibration", 0, x, y, BINS, &points));
    for (int b = 0, k = 0; b < BINS; b++) {
        if (count[b] == 0) continue;
        assert_true(k < points && fabs(x[k] - sure[b] / count[b]) <= bound(1) && y[k] == right[b] / count[b]);
        k++;
    }
    mercer_evaluation_free(of);
}

/* The area below the full curve, by the trapezoidal rule, is the AUC; a curve with fewer points still goes from
   corner to corner. */
static void test_roc(void **state)
{
    (void)state;
    double x[N + 1], y[N + 1], area = 0;
    int64_t points = 0;
    make_rows(2);
    mercer_evaluation *of = evaluate(MERCER_TASK_CLASSIFICATION, 2, weights, NULL);
    for (int64_t capacity = N + 1; capacity >= 4; capacity = capacity / 3) {
        assert_succeeds(context, mercer_evaluation_curve(of, "roc", 1, x, y, capacity, &points));
        assert_true(points <= capacity && x[0] == 0 && y[0] == 0 && x[points - 1] == 1 && y[points - 1] == 1);
        for (int64_t k = 1; k < points; k++) {
            assert_true(x[k] >= x[k - 1] && y[k] >= y[k - 1]);
            if (capacity == N + 1) area += (x[k] - x[k - 1]) * (y[k] + y[k - 1]) / 2;
        }
    }
    assert_that(fabs(area - query(of).auc) <= bound(1), "area %g, AUC %g", area, query(of).auc);
    assert_fails(context, mercer_evaluation_curve(of, "predictions", 1, x, y, N, &points), MERCER_ERROR_ARGUMENT,
                 "roc");
    mercer_evaluation_free(of);
}

/* The set for a threshold, computed by its definition; a class is covered if it is in the set. */
static void test_sets(void **state)
{
    (void)state;
    const double threshold = 0.6;
    double covered = 0, size = 0, p[MOST];
    int32_t members[MOST], sets[MOST];
    make_rows(MOST);
    for (int64_t i = 0; i < N; i++) {
        bool in = false;
        mrc_softmax(p, scores[i], MOST, T);
        int64_t count = mrc_softmax_set(p, MOST, threshold, members);
        double ahead = 0;
        for (int64_t k = 0; k < count; k++) {
            assert_true(ahead <= threshold && (k == 0 || p[members[k]] <= p[members[k - 1]]));
            assert_true(fabs(mrc_softmax_ahead(p, MOST, members[k]) - ahead) <= bound(1));
            ahead += p[members[k]];
            in = in || members[k] == labels[i];
        }
        assert_true(count >= 1 && (ahead > threshold || count == MOST));
        mercer_matrix row = mercer_matrix_view(p, 1, MOST, MERCER_F64);
        assert_succeeds(context, mercer_class_sets(context, sets, &row, threshold));
        for (int64_t k = 0; k < MOST; k++) assert_int_equal(sets[k], k < count ? members[k] : -1);
        covered += in, size += (double)count;
    }
    mercer_evaluation *of = evaluate(MERCER_TASK_CLASSIFICATION, MOST, NULL, &threshold);
    mercer_metrics found = query(of);
    assert_that(fabs(found.coverage - covered / N) <= bound(1), "%g, not %g", found.coverage, covered / N);
    assert_that(fabs(found.interval_size - size / N) <= bound(MOST), "%g, not %g", found.interval_size, size / N);
    mercer_evaluation_free(of);
}

/* ---- Regression ------------------------------------------------------------------------------------------------ */

/* Return the smallest error that a share q of the weight does not exceed, by counting for each error. */
static double plain_quantile(int64_t first, int64_t last, const double *given, double q)
{
    double best = (double)INFINITY, all = 0;
    for (int64_t i = 0; i < N; i++) all += weight(given, i) * (double)(last - first);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = first; j < last; j++) {
            double error = fabs(scores[i][j] - targets[i][j]), below = 0;
            for (int64_t a = 0; a < N; a++)
                for (int64_t b = first; b < last; b++)
                    below += fabs(scores[a][b] - targets[a][b]) <= error ? weight(given, a) : 0;
            if (weight(given, i) > 0 && below >= q * all && error < best) best = error;
        }
    return best;
}

static void check_values(int64_t c, const double *given)
{
    static const double radius[MOST] = {99, 101, 98, 102, 100};
    mercer_evaluation *of = evaluate(MERCER_TASK_REGRESSION, c, given, radius);
    mercer_metrics found = query(of);
    long double squared = 0, absolute = 0, spread = 0, all = 0, covered = 0, score = 0;
    for (int64_t i = 0; i < N; i++) all += weight(given, i);
    for (int64_t j = 0; j < c; j++) {
        long double mean = 0, own = 0, off = 0, misses = 0;
        for (int64_t i = 0; i < N; i++) mean += weight(given, i) * (long double)targets[i][j] / all;
        for (int64_t i = 0; i < N; i++) {
            long double e = (long double)scores[i][j] - targets[i][j], w = weight(given, i);
            own += w * e * e, off += w * (targets[i][j] - mean) * (targets[i][j] - mean);
            absolute += w * fabsl(e), covered += fabsl(e) <= radius[j] ? w : 0;
            /* level 1/2: 2 / (1 - level) = 4 */
            misses += w * (2 * (long double)radius[j] + 4 * fmaxl(0, fabsl(e) - radius[j]));
        }
        score += misses;
        mercer_output_metrics one = query_output(of, j);
        assert_that(fabs(one.rmse - (double)sqrtl(own / all)) <= bound(200), "rmse %g", one.rmse);
        assert_true(one.error_90 == plain_quantile(j, j + 1, given, 0.9));
        assert_that(fabs(one.interval_score - (double)(misses / all)) <= bound(600), "score %g", one.interval_score);
        squared += own, spread += off;
    }
    assert_that(fabs(found.mse - (double)(squared / all / c)) <= bound(4e4), "mse %g", found.mse);
    assert_that(fabs(found.mae - (double)(absolute / all / c)) <= bound(200), "mae %g", found.mae);
    assert_that(fabs(found.r2 - (double)(1 - squared / spread)) <= bound(4e4) * 100, "r2 %g", found.r2);
    assert_that(fabs(found.coverage - (double)(covered / all / c)) <= bound(1), "coverage %g", found.coverage);
    assert_that(fabs(found.interval_score - (double)(score / all / c)) <= bound(600), "score %g", found.interval_score);
    assert_true(found.error_median == plain_quantile(0, c, given, 0.5));
    assert_true(found.error_99 == plain_quantile(0, c, given, 0.99));
    assert_true(found.error_max == plain_quantile(0, c, given, 1) && isnan(found.auc) && isnan(found.accuracy));
    assert_null(mercer_evaluation_confusion(of));
    mercer_evaluation_free(of);
}

static void test_values(void **state)
{
    (void)state;
    for (int64_t c = 1; c <= 2; c++) {
        make_rows(c);
        check_values(c, NULL);
        check_values(c, weights);
    }
}

/* ---- Memory limits, extreme scores, refusals ------------------------------------------------------------------- */

/* With memory for fewer rows, AUC is computed from evenly spaced rows; sums include all rows. */
static void test_little_memory(void **state)
{
    (void)state;
    make_rows(2);
    mercer_evaluation *whole = evaluate(MERCER_TASK_CLASSIFICATION, 2, NULL, NULL), *part = NULL;
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    options.task = MERCER_TASK_CLASSIFICATION, options.outputs = 2, options.rows = N, options.temperature = T;
    options.memory = 100 * 4 * (int64_t)sizeof(double);
    mercer_matrix f = view(scores, 0, N, 2);
    assert_succeeds(context, mercer_evaluation_create(&part, context, &options));
    assert_succeeds(context, mercer_evaluation_add(part, &f, NULL, labels, NULL));
    mercer_metrics a = query(whole), b = query(part);
    assert_int_equal(a.ranked_rows, N);
    assert_int_equal(b.ranked_rows, 100);
    /* The standard deviation of an AUC from 100 rows of two equal classes is at most 1 / sqrt(4 50) = 0.07. */
    assert_true(a.log_loss == b.log_loss && a.auc != b.auc && fabs(a.auc - b.auc) < 0.21);
    assert_fails(context, mercer_evaluation_add(part, &f, NULL, labels, NULL), MERCER_ERROR_SHAPE, "602 rows");
    mercer_evaluation_free(whole), mercer_evaluation_free(part);
}

/* With a curvature, metrics of probabilities are those of the curved scores; decisions and errors are those of the
   original scores. */
static void test_curvature(void **state)
{
    (void)state;
    make_rows(3);
    mercer_evaluation *curved = NULL, *after = NULL, *plain = evaluate(MERCER_TASK_CLASSIFICATION, 3, NULL, NULL);
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    mercer_matrix f = view(scores, 0, N, 3);
    options.task = MERCER_TASK_CLASSIFICATION, options.outputs = 3, options.rows = N, options.temperature = T;
    options.curvature = 20;
    assert_succeeds(context, mercer_evaluation_create(&curved, context, &options));
    assert_succeeds(context, mercer_evaluation_add(curved, &f, NULL, labels, NULL));
    options.curvature = 0;
    assert_succeeds(context, mercer_evaluation_create(&after, context, &options));
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < 3; j++) scores[i][j] = asinh(20 * scores[i][j]) / asinh(20);
    assert_succeeds(context, mercer_evaluation_add(after, &f, NULL, labels, NULL));
    mercer_metrics a = query(curved), b = query(after), c = query(plain);
    assert_true(a.log_loss == b.log_loss && a.brier == b.brier && a.auc == b.auc && a.f1 == b.f1);
    assert_true(a.calibration_error == b.calibration_error && a.curvature == 20 && b.curvature == 0);
    assert_true(a.accuracy == c.accuracy && a.mse == c.mse && a.mse != b.mse && a.log_loss != c.log_loss);
    mercer_evaluation_free(curved), mercer_evaluation_free(after), mercer_evaluation_free(plain);
}

/* Scores that overflow when they are divided by the temperature can still be ranked. NaN has no rank, and must not
   cause an endless loop. */
static void test_extreme_scores(void **state)
{
    (void)state;
    enum { ROWS = 4, C = 3 };
    static const int32_t classes[ROWS] = {0, 1, 2, 1};
    double f[ROWS][C] = {{1e305, -1e305, 0}, {0, 1e300, -1e300}, {-1, -2, 1e304}, {1, 3, 2}};
    double most[] = {1e6, 0, 0}; /* curvatures */
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    mercer_matrix F = mercer_matrix_view(f, ROWS, C, MERCER_F64);
    options.task = MERCER_TASK_CLASSIFICATION, options.outputs = C, options.rows = ROWS;
    for (int k = 0; k < 3; k++) {
        bool unknown = k == 2;
        mercer_evaluation *of = NULL;
        options.temperature = 1e-6, options.curvature = most[k];
        assert_succeeds(context, mercer_evaluation_create(&of, context, &options));
        if (unknown) { /* bypasses the check of the public function */
            f[2][0] = f[2][1] = f[2][2] = (double)NAN;
            assert_succeeds(context, mrc_evaluation_add(of, &F, NULL, classes, NULL));
        } else {
            assert_succeeds(context, mercer_evaluation_add(of, &F, NULL, classes, NULL));
        }
        mercer_metrics all = query(of);
        if (unknown)
            assert_true(isnan(all.auc));
        else
            assert_true(all.auc == 1 && all.log_loss == 0 && all.brier == 0 && all.accuracy == 1);
        mercer_evaluation_free(of);
    }
    static const double refused[] = {1e-320, 9e-7, 1.1e6, -1, INFINITY, NAN};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mercer_evaluation *of = NULL;
        options.temperature = 1, options.curvature = refused[i];
        assert_fails(context, mercer_evaluation_create(&of, context, &options), MERCER_ERROR_ARGUMENT, "curvature");
    }
    options.curvature = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        mercer_evaluation *of = NULL;
        options.temperature = refused[i];
        assert_fails(context, mercer_evaluation_create(&of, context, &options), MERCER_ERROR_ARGUMENT, "temperature");
    }
}

static void test_refused(void **state)
{
    (void)state;
    mercer_evaluation_options options = MERCER_INIT(mercer_evaluation_options);
    mercer_evaluation *of = NULL;
    mercer_metrics out = MERCER_INIT(mercer_metrics);
    mercer_output_metrics one = MERCER_INIT(mercer_output_metrics);
    mercer_matrix f = view(scores, 0, 4, 2), narrow = view(scores, 0, 4, 1);
    int32_t wrong[4] = {0, 1, 2, 0};
    double negative[4] = {1, 1, -1, 1}, nothing[4] = {0};
    make_rows(2);
    assert_fails(context, mercer_evaluation_create(&of, context, &options), MERCER_ERROR_ARGUMENT, "task");
    options.task = MERCER_TASK_CLASSIFICATION;
    assert_fails(context, mercer_evaluation_create(&of, context, &options), MERCER_ERROR_ARGUMENT, "outputs");
    options.outputs = 2, options.rows = N;
    assert_succeeds(context, mercer_evaluation_create(&of, context, &options));
    assert_fails(context, mercer_evaluation_query(of, &out), MERCER_ERROR_DATA, "no row");
    assert_fails(context, mercer_evaluation_add(of, &f, NULL, NULL, NULL), MERCER_ERROR_ARGUMENT, "labels");
    assert_fails(context, mercer_evaluation_add(of, &f, NULL, wrong, NULL), MERCER_ERROR_DATA, "2");
    assert_fails(context, mercer_evaluation_add(of, &narrow, NULL, labels, NULL), MERCER_ERROR_SHAPE, "F");
    assert_fails(context, mercer_evaluation_add(of, &f, NULL, labels, negative), MERCER_ERROR_DATA, "-1");
    assert_succeeds(context, mercer_evaluation_add(of, &f, NULL, labels, nothing));
    assert_fails(context, mercer_evaluation_query(of, &out), MERCER_ERROR_DATA, "no row");
    assert_succeeds(context, mercer_evaluation_add(of, &f, NULL, labels, NULL));
    assert_fails(context, mercer_evaluation_output(of, &one, 2), MERCER_ERROR_ARGUMENT, "index");
    mercer_evaluation_free(of);
    mercer_evaluation_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),        cmocka_unit_test(test_a_weight_is_a_row_twice),
        cmocka_unit_test(test_calibration),    cmocka_unit_test(test_roc),
        cmocka_unit_test(test_sets),           cmocka_unit_test(test_values),
        cmocka_unit_test(test_little_memory),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_extreme_scores), cmocka_unit_test(test_curvature)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
