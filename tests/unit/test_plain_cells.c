/* SPDX-License-Identifier: BSD-3-Clause */
/* Vectorized parsing of table cells: every instruction set finds the same fields and reads the nearest doubles, and
   the result equals that of parsing record by record. */
#include "support/datasets.h"

#include "core/numbers/random.h"
#include "data/table/cells/mark_kernels.h"
#include "data/table/cells/plain_numbers.h"
#include "data/table/number.h"

#include <math.h>

enum { FIELDS = 6000, COLUMNS = 3, TEXT_BYTES = FIELDS * 32 + 64 };

static char text[TEXT_BYTES];
static uint32_t ends_memory[FIELDS + 1], *const ends = ends_memory + 1;

static int64_t below(uint64_t k, int64_t bound)
{
    return mrc_random_below((mrc_rng){11, 3}, k, bound);
}

/* Writes field k: decimals of all lengths, and strings that are not plain decimals. Returns its length. */
static int write_field(char *to, uint64_t k)
{
    static const char *const odd[] = {
        "",    "-",   ".",    "-.",         "1.2.3",      "1e5",      "12a",
        " 1",  "1 ",  "+5",   "--1",        "nan",        "12345678", "123456789",
        "1,5", "-0",  "0.",   ".5",         "-.5",        "1-2",      "999999999999999999999",
        "/:",  "00.", "-0.0", "12345678.5", "1234567.25", "12:4",     "0.000000000000000000001"};
    int kind = (int)below(8 * k, 4), digits = 1 + (int)below(8 * k + 1, 19), point = (int)below(8 * k + 2, 20),
        size = 0;
    if (kind == 0) return sprintf(to, "%s", odd[below(8 * k + 3, (int64_t)(sizeof odd / sizeof *odd))]);
    if (below(8 * k + 4, 2)) to[size++] = '-';
    for (int i = 0; i < digits; i++) {
        if (i == point && kind > 1) to[size++] = '.';
        to[size++] = (char)('0' + below(32 * k + 1000000 + (uint64_t)i, 10));
    }
    return size;
}

/* Writes fields separated by semicolons, so that a comma can be the decimal separator. */
static void write_fields(void)
{
    char *at = text;
    ends[-1] = UINT32_MAX;
    for (uint64_t k = 0; k < FIELDS; k++) {
        at += write_field(at, k);
        ends[k] = (uint32_t)(at - text);
        *at++ = k % COLUMNS == COLUMNS - 1 ? '\n' : ';';
    }
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Checks that a field accepted as a plain decimal is one, and that its value is the nearest double. */
static void check_number(int64_t field, char decimal, double value)
{
    char copy[64] = "";
    double expected;
    uint32_t first = ends[field - 1] + 1;
    memcpy(copy, text + first, ends[field] - first);
    char *comma = decimal == ',' ? strchr(copy, ',') : NULL;
    if (comma) *comma = '.';
    mrc_number kind = mrc_read_number(copy, copy + strlen(copy), &expected);
    assert_that(kind == MRC_NUMBER && same_bits(value, expected) && same_bits(value, strtod(copy, NULL)),
                "'%s' became %.17g", copy, value);
}

static void test_numbers(void **state)
{
    enum { ROWS = FIELDS / COLUMNS - 1 }; /* not a multiple of eight */
    static mrc_eight_numbers some[ROWS / 8 + 1], others[ROWS / 8 + 1];
    (void)state;
    write_fields();
    for (int column = 0; column < COLUMNS; column++) {
        char decimal = column == 0 ? ',' : '.';
        mrc_fields fields = {text, text, ends + column, COLUMNS, decimal, column == 1 ? 12.5 : 0, 1e-7};
        int plain = 0, empty = 0;
        mrc_uk_numbers_u8_scalar(&fields, ROWS, some);
        mrc_numbers_of_isa(mrc_isa_best())(&fields, ROWS, others);
        for (int64_t i = 0; i < ROWS; i++) {
            const mrc_eight_numbers *a = &some[i / 8], *b = &others[i / 8];
            int k = (int)(i % 8);
            assert_true(a->plain == b->plain && a->empty == b->empty);
            empty += a->empty >> k & 1;
            if (a->empty >> k & 1) assert_true(isnan(a->values[k]) && isnan(b->values[k]) && isnan(b->cells[k]));
            if (!(a->plain >> k & 1)) continue;
            plain++;
            check_number(i * COLUMNS + column, decimal, a->values[k]);
            assert_true(same_bits(a->values[k], b->values[k]) && a->cells[k] == b->cells[k]);
            float cell = (float)(a->values[k] - fields.origin);
            bool over = fabs((double)cell - (a->values[k] - fields.origin)) > fields.off;
            assert_true(a->cells[k] == cell && (a->over >> k & 1) == over && (b->over >> k & 1) == over);
        }
        assert_that(plain > ROWS / 2 && empty > 0, "%d of %d are plain", plain, ROWS);
    }
}

static void check_marks(void (*list)(const char *, int64_t, char, mrc_mark_lists *), char separator, bool quote)
{
    static uint32_t found[FIELDS + MRC_MARK_SPARE], lines[FIELDS + MRC_MARK_SPARE];
    mrc_mark_lists to = {found, lines, found + FIELDS - MRC_MARK_BLOCK, false};
    int64_t bytes = (int64_t)ends[FIELDS - 200] / MRC_MARK_BLOCK * MRC_MARK_BLOCK, count = 0, line_count = 0, i = 0;
    list(text, bytes + 5, separator, &to); /* processes whole blocks only */
    for (; i < bytes && text[i] != '"'; i++) {
        if (text[i] != separator && text[i] != '\n') continue;
        assert_true(found[count++] == (uint32_t)i);
        if (text[i] == '\n') assert_true(lines[line_count++] == (uint32_t)i);
    }
    assert_true(to.ends == found + count && to.lines == lines + line_count && to.quoted == quote &&
                (i < bytes) == quote);
}

static void test_marks(void **state)
{
    (void)state;
    write_fields();
    for (int quote = 0; quote < 2; quote++) {
        if (quote) text[ends[3000]] = '"', text[ends[3001]] = '"';
        check_marks(mrc_uk_marks_u8_scalar, ';', quote);
        check_marks(mrc_uk_marks_u8_scalar, '.', quote);
#if defined(MERCER_X86)
        if (mrc_isa_best() >= MRC_ISA_AVX512) check_marks(mrc_uk_marks_u8_avx512, ';', quote);
#endif
    }
}

/* A table of numbers, words, missing cells, dates and targets, some of them missing; with or without quotes. */
static const char *write_table(const char *name, const char *quote, const char *line_end)
{
    static const char *const words[] = {"red", "", "a word of more than sixteen", "?", " blue", "United-States", "NA"};
    static char all[1 << 17];
    char *at = all + sprintf(all, "a,b,c,d,target%s", line_end);
    for (uint64_t i = 0; i < 700; i++) {
        char number[40];
        number[write_field(number, 4 * i + 1)] = 0;
        double value;
        if (mrc_read_number(number, number + strlen(number), &value) != MRC_NUMBER || strchr(number, ','))
            number[0] = 0;
        at += sprintf(at, "%s%s%s,", quote, number, quote);
        at += sprintf(at, "%s,%s%.3f%s,", words[below(i, 7)], quote, (double)below(i + 5000, 100000) / 1000, quote);
        at += sprintf(at, "2024-0%d-1%d,", 1 + (int)below(i + 6000, 9), (int)below(i + 7000, 10));
        if (below(i + 8000, 10)) at += sprintf(at, "%s%d%s", quote, (int)below(i + 9000, 1000), quote);
        at += sprintf(at, "%s", line_end);
    }
    return byte_file(name, all, (size_t)(at - all));
}

static void assert_same_data(const mercer_dataset *a, const mercer_dataset *b)
{
    mercer_matrix x = mercer_dataset_samples(a), z = mercer_dataset_samples(b);
    assert_true(x.rows == z.rows && x.cols == z.cols && x.rows > 500 && x.rows < 700);
    for (int64_t i = 0; i < x.rows; i++)
        assert_memory_equal(mrc_row(&x, i), mrc_row(&z, i), (size_t)x.cols * sizeof(float));
    assert_string_equal(about(a).schema, about(b).schema);
    static double targets[2][700], moved[700 * 64];
    for (int k = 0; k < 2; k++) {
        mercer_matrix y = mrc_view(targets[k], x.rows, 1, MERCER_F64);
        mercer_matrix copy = mrc_view(moved, x.rows, x.cols, MERCER_F32);
        assert_succeeds(context, mercer_dataset_read(k ? b : a, &copy, &y, NULL, NULL, NULL, 0));
    }
    assert_memory_equal(targets[0], targets[1], (size_t)x.rows * sizeof(double));
}

/* Records with quotes are parsed one by one, others column by column; every instruction set gives the same bits. */
static void test_quotes(void **state)
{
    static const char *const levels[] = {"scalar", NULL};
    (void)state;
    mercer_dataset *plain = open_data(write_table("plain.csv", "", "\n"), NULL);
    for (size_t i = 0; i < 2; i++) {
        mercer_context_options with = MERCER_INIT(mercer_context_options);
        mercer_context *other;
        mercer_dataset *data[3];
        with.isa = levels[i];
        assert_succeeds(NULL, mercer_context_create(&other, &with));
        const char *paths[3] = {in_folder("plain.csv"), write_table("quoted.csv", "\"", "\n"),
                                write_table("returned.csv", "", "\r\n")};
        for (size_t k = 0; k < 3; k++) {
            mercer_dataset_options options = data_options(paths[k], NULL);
            assert_succeeds(other, mercer_dataset_open(&data[k], other, &options));
            assert_same_data(plain, data[k]);
            mercer_dataset_free(data[k]);
        }
        mercer_context_free(other);
    }
    mercer_dataset_free(plain);
}

/* If several cells are invalid, the error names the first one in the text, in any column. */
static void test_first_wrong(void **state)
{
    static const struct {
        int row, column;
        const char *cell, *says;
    } wrong[] = {{40, 1, "inf", "line 42, column 'b': 'inf'*range*f32"},
                 {39, 2, "1e300", "line 41, column 'c': '1e300' is outside"},
                 {39, 0, "w", "line 41, column 'a': 'w'*number"},
                 {7, 2, "v", "line 9, column 'c': 'v'*number"},
                 {5, 3, "nan", "line 7: *target"}};
    static char all[1 << 14], cells[200][4][8];
    (void)state;
    for (int i = 0; i < 200; i++)
        for (int j = 0; j < 4; j++) snprintf(cells[i][j], sizeof cells[i][j], "%d.%d", i * 7 % 50, j);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char *at = all + sprintf(all, "a,b,c,t\n");
        snprintf(cells[wrong[k].row][wrong[k].column], sizeof cells[0][0], "%s", wrong[k].cell);
        for (int i = 0; i < 200; i++)
            at += sprintf(at, "%s,%s,%s,%s\n", cells[i][0], cells[i][1], cells[i][2], cells[i][3]);
        mercer_dataset_options options = data_options(text_file("wrong.csv", all), NULL);
        options.target = "t";
        options.kinds = "a:number,b:number,c:number";
        options.missing = k + 1 == sizeof wrong / sizeof *wrong ? "=-" : NULL; /* nan is then not a missing value */
        assert_refused(&options, MERCER_ERROR_DATA, wrong[k].says);
    }
    char *line = strchr(strchr(all, '\n') + 1, '\n') + 1; /* the second record gets one more field */
    memmove(line + 2, line, strlen(line) + 1);
    memcpy(line, "1,", 2);
    mercer_dataset_options options = data_options(text_file("wrong.csv", all), NULL);
    options.target = "t";
    assert_refused(&options, MERCER_ERROR_FORMAT, "line 3*more*4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_marks),
                                       cmocka_unit_test(test_quotes), cmocka_unit_test(test_first_wrong)};
    return cmocka_run_group_tests(tests, open_datasets, close_datasets);
}
