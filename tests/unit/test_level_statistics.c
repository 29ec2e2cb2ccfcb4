/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of the targets by level are compared with the formula, and must not depend on the target of the row that
   has them. */
#include "support/datasets.h"

#include "support/info.h"

#include "core/numbers/random.h"
#include "data/dataset.h"
#include "data/schema/schema.h"

#include <math.h>

/* Level k has about 2 to 6 rows; the last words occur once and are not listed. */
enum { ROWS = 1200, WORDS = 320, ONCE = 300, FIRST = 1 + 256, CLASSES = 3, MOST_SCHEMA = 65536 };

/* Statistics are sums of fewer than 2^11 terms of at most 2^7 in double, divided by numbers above 2^-4, and rounded to
   float: their error is below 2^11 2^7 2^4 2^-53 + 2^-24 < 1e-7 relative to values below 8. */
#define TOLERANCE 1e-6

typedef struct table {
    double a[ROWS], y[ROWS], weights[ROWS], keys[ROWS];
    int32_t codes[ROWS], labels[ROWS];
    char names[WORDS][8];
    const char *words[WORDS];
    bool weighted, classes;
    const char *key; /* "group", "time", or NULL */
} table;

static void fill(table *self)
{
    mrc_rng rng = {.seed = 11};
    *self = (table){.classes = false};
    for (int k = 0; k < WORDS; k++) {
        snprintf(self->names[k], sizeof self->names[k], "w%03d", (k * 7) % WORDS);
        self->words[k] = self->names[k];
    }
    for (int i = 0; i < ROWS; i++) {
        uint64_t u = 4 * (uint64_t)i;
        self->a[i] = i + 0.5;
        self->codes[i] = i < WORDS - ONCE ? ONCE + i : (int32_t)(mrc_random_uniform(rng, u) * ONCE);
        if (i % 50 == 49) self->codes[i] = -1;
        self->y[i] = (self->codes[i] % 10) + 4 * mrc_random_uniform(rng, u + 1);
        self->weights[i] = i % 5 == 0 ? 0 : 0.5 + mrc_random_uniform(rng, u + 2);
        self->labels[i] = (int32_t)(self->y[i] / 4.4) % CLASSES;
        self->keys[i] = (double)(i * 31 % 97);
    }
}

static mercer_dataset *create_dataset(const table *self, const char *schema)
{
    static const char *const classes[] = {"x", "y", "z"};
    mercer_table_column columns[] = {
        {.name = "a", .kind = "number", .values = self->a},
        {.name = "w", .kind = "category", .codes = self->codes, .words = self->words, .word_count = WORDS},
        {.name = "y", .kind = "target", .values = self->y},
        {.name = "v", .kind = "weight", .values = self->weights},
        {.name = "k", .kind = self->key, .values = self->keys}};
    int64_t count = 3;
    mercer_dataset *data = NULL;
    if (self->classes)
        columns[2] = (mercer_table_column){
            .name = "y", .kind = "target", .codes = self->labels, .words = classes, .word_count = CLASSES};
    if (self->weighted) count++;
    if (self->key) columns[count++] = columns[4];
    assert_succeeds(context, mercer_dataset_from_columns(&data, context, columns, count, ROWS, schema));
    return data;
}

static double statistic(const mercer_dataset *data, int64_t row, int64_t k)
{
    return mrc_load(&data->x, row, FIRST + k);
}

/* ---- The formula ----------------------------------------------------------------------------------------------- */

static void assert_near(double found, double expected)
{
    assert_that(fabs(found - expected) <= TOLERANCE, "%.9g, not %.9g", found, expected);
}

/* Returns whether row i counts for its level: missing values, and words that occur at least twice. */
static bool is_listed(const table *self, int i)
{
    int count = 0;
    for (int j = 0; j < ROWS; j++) count += self->codes[j] == self->codes[i];
    return self->codes[i] < 0 || count > 1;
}

static double target_of(const table *self, int i, int k)
{
    return self->classes ? self->labels[i] == k : self->y[i];
}

/* Return the statistic of a level (-1: missing values) over all rows, in long double, by the formula at the top of
   level_statistics.c. */
static double formula(const table *self, int level, int k)
{
    long double total = 0, sum = 0, square = 0, n[WORDS + 1] = {0}, s[WORDS + 1] = {0}, known = 0, unit = 0;
    for (int i = 0; i < ROWS; i++) unit += self->weighted ? self->weights[i] : 1;
    unit = ROWS / unit;
    for (int i = 0; i < ROWS; i++) {
        long double w = self->weighted ? self->weights[i] * unit : 1, t = target_of(self, i, k);
        total += w, sum += w * t, square += w * t * t;
        if (!is_listed(self, i)) continue;
        n[self->codes[i] + 1] += w, s[self->codes[i] + 1] += w * t, known += w * t * t;
    }
    long double mean = sum / total, rows = 0, squares = 0, means = 0, between = 0;
    int count = 0;
    for (int l = 0; l <= WORDS; l++) {
        if (n[l] == 0) continue;
        count++, rows += n[l], squares += n[l] * n[l];
        means += s[l] * s[l] / n[l], between += n[l] * (s[l] / n[l] - mean) * (s[l] / n[l] - mean);
    }
    long double within = (known - means) / (rows - count);
    long double spread = (between / (count - 1) - within) / ((rows - squares / rows) / (count - 1));
    long double a = within / spread > 1 ? within / spread : 1;
    if (!(spread > 0)) return 0;
    return (double)((s[level + 1] - n[level + 1] * mean) / (n[level + 1] + a) / sqrtl(square / total - mean * mean));
}

/* Encodes the table by the schema of `data`, as a new one, and compares all statistics with the formula. */
static void check_new_rows(const table *self, const mercer_dataset *data, int count)
{
    double largest = 0;
    mercer_dataset *again = create_dataset(self, about(data).schema);
    assert_int_equal(again->features, FIRST + count + 1);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < count; k++) {
            double expected = is_listed(self, i) ? formula(self, self->codes[i], k) : 0;
            assert_near(statistic(again, i, k + 1), expected);
            largest = fmax(largest, fabs(expected));
        }
    assert_true(largest > 0.1);
    mercer_dataset_free(again);
}

static void test_formula(void **state)
{
    (void)state;
    table one;
    fill(&one);
    mercer_dataset *data = create_dataset(&one, NULL);
    assert_string_equal(data->feature_names[FIRST], "w missing");
    assert_string_equal(data->feature_names[FIRST + 1], "w target");
    check_new_rows(&one, data, 1);
    mercer_dataset_free(data);
    one.weighted = true;
    data = create_dataset(&one, NULL);
    check_new_rows(&one, data, 1);
    mercer_dataset_free(data);
}

/* ---- Folds ----------------------------------------------------------------------------------------------------- */

/* Changes the target of each of some rows. No feature of a row with the same `unit`, nor, with times, of an earlier row,
   may change, and some feature of another row must. */
static void check_folds(table *self)
{
    mercer_dataset *before = create_dataset(self, NULL);
    for (int row = 30; row < ROWS; row += 117) {
        double old = self->y[row], changed = 0;
        int32_t label = self->labels[row];
        self->y[row] += 50, self->labels[row] = (label + 1) % CLASSES;
        mercer_dataset *after = create_dataset(self, NULL);
        self->y[row] = old, self->labels[row] = label;
        for (int i = 0; i < ROWS; i++)
            for (int64_t k = FIRST + 1; k < before->features; k++) {
                double change = fabs(mrc_load(&after->x, i, k) - mrc_load(&before->x, i, k));
                bool bound = i == row || (self->key && self->keys[i] == self->keys[row]) ||
                             (self->key && strcmp(self->key, "time") == 0 && self->keys[i] < self->keys[row]);
                if (bound) assert_that(change <= TOLERANCE, "row %d: target of row %d is in a feature", i, row);
                changed = fmax(changed, change);
            }
        bool last = self->key && strcmp(self->key, "time") == 0 && self->keys[row] > 80;
        assert_that(last || changed > 1e-3, "the target of row %d is in no feature", row);
        mercer_dataset_free(after);
    }
    mercer_dataset_free(before);
}

static void test_own_target(void **state)
{
    (void)state;
    table one;
    fill(&one);
    check_folds(&one);
    one.weighted = true;
    one.weights[30] = 1;
    for (int row = 30; row < ROWS; row += 117) one.weights[row] = 1;
    check_folds(&one);
    one.classes = true;
    check_folds(&one);
}

static void test_groups_and_times(void **state)
{
    (void)state;
    table one;
    fill(&one);
    one.key = "group";
    check_folds(&one);
    one.key = "time";
    check_folds(&one);
    one.key = "group";
    for (int i = 0; i < ROWS; i++) one.keys[i] = 1;
    mercer_dataset *data = create_dataset(&one, NULL); /* one group: no row may see another */
    for (int i = 0; i < ROWS; i++) assert_true(statistic(data, i, 1) == 0);
    mercer_dataset_free(data);
}

/* Equal rows have equal statistics, and the order of rows does not matter. */
static void test_equal_rows(void **state)
{
    (void)state;
    table one, turned;
    fill(&one);
    for (int i = 1; i < ROWS; i += 2) one.a[i] = one.a[i - 1], one.codes[i] = one.codes[i - 1];
    turned = one;
    for (int i = 0; i < ROWS; i++) {
        int j = ROWS - 1 - i;
        turned.a[i] = one.a[j], turned.codes[i] = one.codes[j], turned.y[i] = one.y[j];
    }
    mercer_dataset *data = create_dataset(&one, NULL), *other = create_dataset(&turned, NULL);
    int64_t last = data->features - 1;
    double largest = 0;
    for (int i = 0; i < ROWS; i++) {
        double found = mrc_load(&data->x, i, last);
        assert_true(found == mrc_load(&data->x, i ^ 1, last));
        assert_near(mrc_load(&other->x, ROWS - 1 - i, last), found);
        largest = fmax(largest, fabs(found));
    }
    assert_true(largest > 0.1);
    mercer_dataset_free(data), mercer_dataset_free(other);
}

/* ---- Other targets --------------------------------------------------------------------------------------------- */

/* With three classes, the statistics are the shares of the classes, the most frequent one first. */
static void test_classes(void **state)
{
    (void)state;
    table one;
    int counts[CLASSES] = {0}, order[CLASSES] = {0, 1, 2};
    fill(&one);
    one.classes = true;
    for (int i = 0; i < ROWS; i++) counts[one.labels[i]]++;
    for (int k = 0; k < CLASSES; k++)
        for (int l = k + 1; l < CLASSES; l++)
            if (counts[order[l]] > counts[order[k]]) {
                int other = order[k];
                order[k] = order[l], order[l] = other;
            }
    mercer_dataset *data = create_dataset(&one, NULL);
    assert_string_equal(data->feature_names[FIRST + 3], "w target 3");
    mercer_dataset *again = create_dataset(&one, about(data).schema);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < CLASSES; k++)
            assert_near(statistic(again, i, k + 1), is_listed(&one, i) ? formula(&one, one.codes[i], order[k]) : 0);
    mercer_dataset_free(data), mercer_dataset_free(again);
    assert_int_equal(mrc_statistic_count(true, 2), 1);
    assert_int_equal(mrc_statistic_count(true, 1000), 16);
    assert_int_equal(mrc_statistic_count(false, 2), 2);
}

/* Levels that do not differ by more than chance, and targets that do not vary, have statistics 0. */
static void test_no_effect(void **state)
{
    (void)state;
    table one;
    fill(&one);
    for (int i = 0; i < ROWS; i++) one.codes[i] = i % 150, one.y[i] = 1e6 + (i / 150 % 2 ? 1 : -1);
    mercer_dataset *data = create_dataset(&one, NULL), *again = create_dataset(&one, about(data).schema);
    for (int i = 0; i < ROWS; i++) assert_true(mrc_load(&again->x, i, 1 + 150) == 0);
    mercer_dataset_free(data), mercer_dataset_free(again);
    for (int i = 0; i < ROWS; i++) one.y[i] = 1e6 / 3;
    data = create_dataset(&one, NULL);
    for (int i = 0; i < ROWS; i++) assert_true(mrc_load(&data->x, i, 1 + 150) == 0);
    mercer_dataset_free(data);
}

/* ---- Files ----------------------------------------------------------------------------------------------------- */

/* A file in memory, the same file in a temporary file, and columns have the same features and schema. */
static void test_files(void **state)
{
    (void)state;
    static char text[1 << 16];
    table one;
    size_t used = (size_t)sprintf(text, "a,w,y\n");
    fill(&one);
    for (int i = 0; i < ROWS; i++)
        used += (size_t)sprintf(text + used, "%.17g,%s,%.17g\n", one.a[i],
                                one.codes[i] < 0 ? "" : one.words[one.codes[i]], one.y[i]);
    mercer_dataset_options options = data_options(text_file("t.csv", text), NULL);
    options.target = "y";
    mercer_dataset *held = open_with(&options), *columns = create_dataset(&one, NULL);
    options.spill = 1;
    mercer_dataset *spilled = open_with(&options);
    size_t bytes = (size_t)(held->rows * held->features) * sizeof(float);
    assert_true(spilled->spilled && held->features == FIRST + 2);
    assert_memory_equal(spilled->x.data, held->x.data, bytes);
    assert_memory_equal(columns->x.data, held->x.data, bytes);
    assert_string_equal(spilled->schema, held->schema);
    assert_string_equal(columns->schema, held->schema);
    mercer_dataset_free(held), mercer_dataset_free(spilled), mercer_dataset_free(columns);
    options = data_options(in_folder("t.csv"), NULL);
    options.task = MERCER_TASK_UNLABELED; /* without targets there are no statistics */
    held = open_with(&options);
    assert_null(strstr(held->schema, "statistics"));
    mercer_dataset_free(held);
}

/* ---- Failures -------------------------------------------------------------------------------------------------- */

static void refuse_column(mercer_table_column column, const char *part)
{
    static const double values[] = {1, 2};
    const mercer_table_column columns[] = {{.name = "a", .kind = "number", .values = values}, column, column};
    mercer_dataset *made = NULL;
    assert_fails(context, mercer_dataset_from_columns(&made, context, columns, 3, 2, NULL), MERCER_ERROR_DATA, part);
    assert_null(made);
}

static void test_bad_columns(void **state)
{
    (void)state;
    static const double values[] = {1, -1}, odd[] = {1, (double)NAN};
    static const int32_t codes[] = {0, 1}, gap[] = {0, -1};
    static const char *const words[] = {"u", "v"};
    mercer_dataset *made = NULL;
    refuse_column((mercer_table_column){.kind = "target"}, "target*values");
    refuse_column((mercer_table_column){.kind = "target", .values = odd}, "not finite");
    refuse_column((mercer_table_column){.kind = "weight", .values = values}, "weight*>= 0");
    refuse_column((mercer_table_column){.kind = "group", .values = odd}, "not finite");
    refuse_column((mercer_table_column){.kind = "time", .values = values}, "one of");
    refuse_column((mercer_table_column){.kind = "target", .codes = codes}, "target*words");
    refuse_column((mercer_table_column){.kind = "target", .codes = gap, .words = words, .word_count = 2}, "a code");
    refuse_column((mercer_table_column){.kind = "target", .codes = codes, .words = words, .word_count = 2},
                  "column*codes");
    const mercer_table_column only = {.kind = "target", .values = values};
    assert_fails(context, mercer_dataset_from_columns(&made, context, &only, 1, 2, NULL), MERCER_ERROR_SHAPE,
                 "columns: *features");
}

static void test_bad_statistics(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } list[] = {{"\"statistics\":1}", "column 0 *valid statistics"},
                {"\"rare\":[],\"statistics\":0}", "column 0 *valid statistics"},
                {"\"rare\":[],\"statistics\":17}", "column 0 *valid statistics"},
                {"\"rare\":[\"c\"],\"statistics\":1}", "column 0 *valid statistics"},
                {"\"rare\":[],\"statistics\":1,\"values\":[1,2]}", "column 0 *wrong number"},
                {"\"rare\":[],\"statistics\":1,\"values\":[1,2,\"3\"]}", "column 0 *range"},
                {"\"rare\":[],\"statistics\":1,\"values\":[1,2,1e300]}", "column 0 *range"},
                {"\"rare\":[\"a\"],\"other\":true,\"statistics\":1,\"values\":[1,2,3,4]}", "column 0 *repeated level"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char text[512];
        const mercer_table_column column = {.name = "w", .kind = "number", .values = (double[]){1}};
        mercer_dataset *made = NULL;
        snprintf(text, sizeof text,
                 "{\"missing\":[],\"columns\":[{\"name\":\"w\",\"kind\":\"category\",\"levels\":[\"a\",\"b\"],"
                 "\"missing\":0,%s]}",
                 list[i].text);
        assert_fails(context, mercer_dataset_from_columns(&made, context, &column, 1, 1, text), MERCER_ERROR_FORMAT,
                     list[i].says);
    }
}

/* Statistics that a schema declares without values are computed from the targets; their number per level must match. */
static void test_schema_without_values(void **state)
{
    (void)state;
    static const char *const counts[] = {"\"statistics\":1", "\"statistics\":5"};
    table one;
    fill(&one);
    mercer_dataset *data = create_dataset(&one, NULL), *again, *made = NULL;
    const char *schema = about(data).schema, *from = strstr(schema, ",\"values\":["), *to = strchr(from, ']') + 1;
    const char *count = strstr(schema, counts[0]);
    char text[2][MOST_SCHEMA];
    assert_true(count && count < from && strlen(schema) < sizeof text[0]);
    for (int i = 0; i < 2; i++)
        snprintf(text[i], sizeof text[i], "%.*s%s%.*s%s", (int)(count - schema), schema, counts[i],
                 (int)(from - count - (int64_t)strlen(counts[0])), count + strlen(counts[0]), to);
    again = create_dataset(&one, text[0]);
    assert_string_equal(about(again).schema, schema);
    mercer_table_column columns[] = {
        {.name = "a", .kind = "number", .values = one.a},
        {.name = "w", .kind = "category", .codes = one.codes, .words = one.words, .word_count = WORDS},
        {.name = "y", .kind = "target", .values = one.y}};
    assert_fails(context, mercer_dataset_from_columns(&made, context, columns, 3, ROWS, text[1]), MERCER_ERROR_FORMAT,
                 "'w'");
    assert_fails(context, mercer_dataset_from_columns(&made, context, columns, 2, ROWS, text[0]), MERCER_ERROR_FORMAT,
                 "'w'");
    assert_null(made);
    mercer_dataset_free(again);
    mercer_dataset_free(data);
}

static void test_allocations_fail(void **state)
{
    (void)state;
    table one;
    fill(&one);
    one.weighted = true;
    one.key = "time";
    for (int n = 1;; n++) {
        mercer_table_column columns[] = {
            {.name = "w", .kind = "category", .codes = one.codes, .words = one.words, .word_count = WORDS},
            {.name = "y", .kind = "target", .values = one.y},
            {.name = "k", .kind = "time", .values = one.keys}};
        mercer_dataset *data = NULL;
        int64_t live = allocator.live;
        assert_true(n < 1000);
        allocator.fail_at = allocator.requests + n;
        mercer_status status = mercer_dataset_from_columns(&data, context, columns, 3, ROWS, NULL);
        allocator.fail_at = 0;
        mercer_dataset_free(data);
        assert_int_equal(allocator.live, live);
        if (status == MERCER_OK) break;
        assert_int_equal(status, MERCER_ERROR_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formula),
                                       cmocka_unit_test(test_own_target),
                                       cmocka_unit_test(test_groups_and_times),
                                       cmocka_unit_test(test_equal_rows),
                                       cmocka_unit_test(test_classes),
                                       cmocka_unit_test(test_no_effect),
                                       cmocka_unit_test(test_files),
                                       cmocka_unit_test(test_bad_columns),
                                       cmocka_unit_test(test_bad_statistics),
                                       cmocka_unit_test(test_schema_without_values),
                                       cmocka_unit_test(test_allocations_fail)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
