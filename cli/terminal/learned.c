/* SPDX-License-Identifier: BSD-3-Clause */
/* The learned metric for the log and the report page: largest weights, eigenvalues, and the matrix as an image. */
#include "options/options.h"
#include "terminal/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_FEATURES = 30, MOST_MAPPED = 128 }; /* maximum number of features in the table, and in the image */

typedef struct weight {
    int64_t feature;
    double value;
} weight;

static int compare_values(const void *a, const void *b)
{
    const weight *left = a, *right = b;
    if (left->value != right->value) return left->value < right->value ? 1 : -1;
    return (left->feature > right->feature) - (left->feature < right->feature);
}

/* Returns the diagonal entries of M = A A', sorted in descending order. `map` is A (d, d'), or the diagonal of A (1,
   d). Release with free. */
static weight *weights_of(const mercer_matrix *map, int64_t d)
{
    const double *a = map->data;
    weight *all = cli_allocate(d, sizeof *all);
    for (int64_t k = 0; k < d; k++) {
        all[k].feature = k;
        if (map->rows == 1) all[k].value = a[k] * a[k];
        for (int64_t j = 0; map->rows > 1 && j < map->cols; j++)
            all[k].value += a[k * map->ld + j] * a[k * map->ld + j];
    }
    qsort(all, (size_t)d, sizeof *all, compare_values);
    return all;
}

/* Returns a bar of block characters, `share` times LONGEST long. Release with free. */
static char *bar_of(double share)
{
    enum { LONGEST = 24 };
    char *text = cli_copy("");
    for (int i = 0; i < (int)lround(share * LONGEST); i++) text = cli_append(text, "\xe2\x96\x88");
    return text;
}

static json_t *feature_rows(const cli_job *job, const mercer_matrix *map)
{
    int64_t d = cli_model_info(job->parts.model).features;
    CLI_OWNED(cli_drop) weight *all = weights_of(map, d);
    json_t *rows = json_array();
    for (int64_t k = 0; k < d && k < MOST_FEATURES; k++) {
        const char *const *names = job->info.feature_names;
        CLI_OWNED(cli_drop)
        char *name = names != NULL ? cli_copy(names[all[k].feature]) : cli_format("feature %" PRId64, all[k].feature);
        CLI_OWNED(cli_drop) char *bar = bar_of(all[0].value > 0 ? all[k].value / all[0].value : 0);
        json_array_append_new(rows, json_pack("[o, o, s]", cli_json_text(name), cli_json_real(all[k].value), bar));
    }
    return rows;
}

/* Returns a line chart of `count` values; their x values are first, first + 1, ... */
static json_t *values_chart(const char *title, const char *x, const char *y, int64_t first, const double *values,
                            int64_t count)
{
    json_t *places = json_array(), *heights = json_array();
    for (int64_t i = 0; i < count; i++) {
        json_array_append_new(places, json_integer(first + i));
        json_array_append_new(heights, cli_json_real(values[i]));
    }
    return json_pack("{ss ss ss sb ss s[{ss so so}]}", "title", title, "x", x, "y", y, "log_y", 1, "section",
                     "Learned features", "series", "name", y, "x", places, "y", heights);
}

/* Returns a chart of the eigenvalues of A A'. They are the squared norms of the columns of A, because the columns of
   a learned map are orthogonal. */
static json_t *spectrum_chart(const mercer_matrix *map)
{
    const double *a = map->data;
    CLI_OWNED(cli_drop) double *values = cli_allocate(map->cols, sizeof *values);
    for (int64_t j = 0; j < map->cols; j++)
        for (int64_t k = 0; k < map->rows; k++) values[j] += a[k * map->ld + j] * a[k * map->ld + j];
    return values_chart("Eigenvalues of the metric", "direction", "eigenvalue", 1, values, map->cols);
}

/* Returns |M| as an image in which large entries are dark. Each entry is a square of `each` pixels per side. */
static json_t *map_image(const mercer_matrix *map)
{
    enum { SIDE = 160 };
    const double *a = map->data;
    int64_t d = map->rows, each = d < SIDE ? SIDE / d : 1, side = d * each;
    double *m = cli_allocate(d * d, sizeof *m), largest = 0;
    json_t *pixels = json_array();
    for (int64_t i = 0; i < d * d; i++) {
        for (int64_t j = 0; j < map->cols; j++) m[i] += a[i / d * map->ld + j] * a[i % d * map->ld + j];
        largest = fmax(largest, fabs(m[i]));
    }
    for (int64_t i = 0; i < side * side; i++) {
        double share = largest > 0 ? fabs(m[i / side / each * d + i % side / each]) / largest : 0;
        json_array_append_new(pixels, json_integer((json_int_t)lround(255 * (1 - sqrt(share)))));
    }
    free(m);
    return json_pack("{ss ss sI sI s[o] s[s]}", "title", "Learned features: the metric as a map", "text",
                     "Absolute values of the entries of M, features in the order of the data; darker is larger.",
                     "height", (json_int_t)side, "width", (json_int_t)side, "images", pixels, "labels", "M");
}

void cli_log_learned(cli_log *log, const cli_job *job)
{
    mercer_matrix map = cli_preprocess_info(cli_model_info(job->parts.model).preprocess).metric;
    if (log == NULL || job->search.steps == NULL || map.rows == 0) return;
    if (map.rows > 1) cli_log_event(log, "chart", spectrum_chart(&map));
    if (map.rows > 1 && map.rows <= MOST_MAPPED) cli_log_event(log, "images", map_image(&map));
    cli_log_event(log, "table",
                  json_pack("{ss ss s[sss] so}", "title", "Learned features: the largest weights", "text",
                            "Diagonal entries of the metric, for preprocessed samples.", "columns", "Feature", "Weight",
                            "", "rows", feature_rows(job, &map)));
}
