/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LIBSVM and SVMlight text, "label index:value index:value ... # comment", read as dense samples.
 *
 * Indices are in ascending order. They count from 1, or from 0 if index 0 occurs anywhere in the files. A first pass
 * checks the whole text and finds the number of rows and features. Memory is then allocated (or refused), and a second
 * pass reads the values.
 *
 * Values are rounded to float. Unlike for columns of tables (data/schema/origin.c), no origin is subtracted first,
 * because features that a row does not list must stay 0. A warning reports features whose values float cannot
 * distinguish. In these features, rounding changed a value by more than 2^-17 of the feature's range, or a value above
 * 2^24.
 */
#include "core/matrix.h"
#include "core/memory.h"
#include "data/files/readers.h"
#include "data/table/number.h"

#include <math.h>
#include <string.h>

/* Largest rounding error of a feature (off), and the value with this error. */
typedef struct rounding {
    double off, value;
    double first; /* first value of the feature */
    bool any, varies;
} rounding;

typedef struct sparse {
    mrc_reading *reading;
    const mrc_input *input; /* current file */
    int64_t records;        /* number of records read so far, over all files */
    int64_t least, largest; /* smallest and largest index that occur */
    rounding *rounded;      /* (features) rounding errors; NULL in the first pass */
} sparse;

typedef struct words {
    const char *at, *end; /* rest of a line, or one word of it */
} words;

/* Destination of a record; empty in the first pass. */
typedef struct sink {
    float *row;   /* (features), initially 0; NULL: values are only checked */
    int64_t base; /* index of the first feature */
    mrc_targets *targets;
} sink;

static mercer_status fail_word(const sparse *self, int64_t line, words word, const char *what)
{
    char excerpt[MRC_EXCERPT_CHARS];
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT, "%s: line %lld: '%s' %s", self->input->path,
                    (long long)line, mrc_excerpt(excerpt, word.at, word.end - word.at), what);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Splits the next word off a line. Returns false at the end. */
static bool next_word(words *line, words *word)
{
    while (line->at < line->end && is_space(*line->at)) line->at++;
    word->at = line->at;
    while (line->at < line->end && !is_space(*line->at)) line->at++;
    word->end = line->at;
    return word->end > word->at;
}

/* Parses the digits before a colon. Returns false unless they are an index below 2^31. Ten digits cannot overflow 64
   bits. */
static bool parse_index(const char *at, const char *end, int64_t *index)
{
    if (at == end || end - at > 10) return false;
    for (*index = 0; at < end; at++) {
        if (*at < '0' || *at > '9') return false;
        *index = *index * 10 + (*at - '0');
    }
    return *index < INT64_C(1) << 31;
}

/* Stores a value as float, and updates the rounding statistics of its feature. */
static void store_value(sparse *self, const sink *to, int64_t feature, double value)
{
    to->row[feature] = (float)value;
    double off = fabs((double)to->row[feature] - value);
    rounding *of = &self->rounded[feature];
    if (off > of->off) of->off = off, of->value = value;
    if (!of->any) of->first = value;
    of->varies = of->varies || value != of->first;
    of->any = true;
}

/* Parses index:value, checks the order of indices, and stores the value unless this is the first pass. */
static mercer_status read_pair(sparse *self, int64_t line, words word, const sink *to, int64_t *previous)
{
    const char *colon = memchr(word.at, ':', (size_t)(word.end - word.at));
    int64_t index;
    double value = 0;
    if (!colon) return fail_word(self, line, word, "is not index:value");
    if (colon - word.at == 3 && memcmp(word.at, "qid", 3) == 0)
        return fail_word(self, line, word, "is a group for ranking, which Mercer does not support; remove it");
    if (!parse_index(word.at, colon, &index)) return fail_word(self, line, word, "does not begin with an index");
    if (index <= *previous)
        return fail_word(self, line, word,
                         "has an index that is not larger than the previous "
                         "one");
    *previous = index;
    mrc_number kind = mrc_read_number(colon + 1, word.end, &value);
    if (kind == MRC_NUMBER_INFINITE || (kind == MRC_NUMBER && isinf((float)value)))
        return fail_word(self, line, word, "has a value outside the range of f32");
    if (kind != MRC_NUMBER) return fail_word(self, line, word, "has a value that is not a number");
    self->least = mrc_min(self->least, index);
    self->largest = mrc_max(self->largest, index);
    if (to->row) store_value(self, to, index - to->base, value);
    return MERCER_OK;
}

/* Reads a line. Sets *empty to whether the line has no record. */
static mercer_status read_line(sparse *self, int64_t line, words text, const sink *to, bool *empty)
{
    const char *comment = text.end > text.at ? memchr(text.at, '#', (size_t)(text.end - text.at)) : NULL;
    if (comment) text.end = comment;
    words word;
    int64_t previous = -1;
    *empty = !next_word(&text, &word);
    if (*empty) return MERCER_OK;
    if (memchr(word.at, ':', (size_t)(word.end - word.at)))
        return fail_word(self, line, word, "is where the label should be");
    if (memchr(word.at, ',', (size_t)(word.end - word.at)))
        return fail_word(self, line, word, "are several labels; use one label per row");
    if (to->targets) MRC_TRY(mrc_targets_text(to->targets, word.at, word.end - word.at, line));
    while (next_word(&text, &word)) MRC_TRY(read_pair(self, line, word, to, &previous));
    return MERCER_OK;
}

/* Reads the records of a file. If x is NULL, all records are only checked and counted. Otherwise the records of the
   slice are stored in x and targets. Records before the slice are then only checked and counted, and reading stops
   after the slice. */
static mercer_status walk_file(sparse *self, const mercer_matrix *x, int64_t base, mrc_targets *targets)
{
    const mrc_slice *slice = &self->reading->slice;
    const char *at = (const char *)self->input->data, *end = at + self->input->bytes;
    for (int64_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        words text = {at, stop ? stop : end};
        int64_t row = self->records - slice->first;
        if (x && row >= slice->rows) break;
        bool empty;
        sink to = {.base = base};
        if (x && row >= 0) {
            to.row = mrc_row(x, row);
            to.targets = targets;
        }
        MRC_TRY(read_line(self, line, text, &to, &empty));
        if (!empty) self->records++;
        at = stop ? stop + 1 : end;
    }
    return MERCER_OK;
}

/* Reads all records of all files. x NULL: first pass, which only checks and counts. */
static mercer_status walk(sparse *self, const mercer_matrix *x, int64_t base, mrc_targets *targets)
{
    self->records = 0;
    for (int64_t i = 0; i < self->reading->count; i++) {
        self->input = &self->reading->input[i];
        if (self->input->bytes == 0) continue;
        if (targets) targets->path = self->input->path;
        MRC_TRY(walk_file(self, x, base, targets));
    }
    if (targets) targets->path = self->reading->name;
    return MERCER_OK;
}

/* Refuses a number of features that is implausible for the size of the files, unless the caller has set this number.
   Otherwise a large index in a file of a few bytes would require any amount of memory. Dense samples may take
   FREE_BYTES, plus MOST_RATIO bytes per byte of text; real files have far smaller ratios (news20: 800). */
static mercer_status check_claim(const sparse *self, int64_t cols, int64_t bytes)
{
    enum { FREE_BYTES = 64 << 20, MOST_RATIO = 4096 };
    const mrc_reading *reading = self->reading;
    int64_t held = 0, most;
    if (reading->options->features > 0 || reading->options->column_count > 0) return MERCER_OK;
    for (int64_t i = 0; i < reading->count; i++) held += reading->input[i].bytes;
    if (!mrc_multiply(held, MOST_RATIO, &most) || bytes - FREE_BYTES <= most) return MERCER_OK;
    return mrc_fail(reading->input->context, MERCER_ERROR_MEMORY,
                    "%s: index %lld means %lld features, which need %lld bytes for a file of %lld bytes; if this is "
                    "intended, set the number of features",
                    reading->name, (long long)self->largest, (long long)cols, (long long)bytes, (long long)held);
}

/* Allocates samples, initially 0, and targets for the slice. */
static mercer_status allocate_sparse_samples(sparse *self, mercer_dataset *dataset, int64_t cols)
{
    mrc_reading *reading = self->reading;
    const mrc_input *input = reading->input;
    int64_t rows = reading->slice.rows, count, bytes;
    if (!mrc_multiply(rows, cols, &count) || !mrc_multiply(count, sizeof(float), &bytes) ||
        !mrc_add(bytes, rows * MRC_TARGET_BYTES, &bytes))
        bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, reading->name, bytes));
    MRC_TRY(check_claim(self, cols, bytes));
    MRC_TRY(mrc_alloc_zero(input->context, &dataset->x_memory, count, sizeof(float), "samples"));
    dataset->x = mrc_view(dataset->x_memory, rows, cols, MERCER_F32);
    if (!reading->want_targets) return MERCER_OK;
    reading->have_targets = true;
    return mrc_targets_open(&reading->targets, input->context, reading->name, MRC_TARGETS_TEXT, rows);
}

/* Returns whether the values of a feature are too close together for float to distinguish them. Values below 2^-102 do
   not count, because their differences may be subnormal. */
static bool is_coarse(const mercer_matrix *x, int64_t feature, rounding of)
{
    const double least_range = 0x1p17, whole_numbers = 0x1p24, small = 0x1p-102;
    double low = INFINITY, high = -INFINITY;
    if (of.off == 0 || !of.varies || fabs(of.value) < small) return false;
    if (fabs(of.value) > whole_numbers) return true;
    for (int64_t i = 0; i < x->rows && !(high - low >= of.off * least_range); i++) {
        double value = (double)((const float *)mrc_row(x, i))[feature];
        low = fmin(low, value);
        high = fmax(high, value);
    }
    return high - low < of.off * least_range;
}

/* Warns once about all features whose values float cannot distinguish, with the first of them as the example. */
static void warn_coarse(const sparse *self, const mercer_matrix *x, int64_t base)
{
    int64_t first = -1, count = 0;
    for (int64_t j = 0; j < x->cols; j++) {
        if (!is_coarse(x, j, self->rounded[j])) continue;
        if (count++ == 0) first = j;
    }
    if (count == 0) return;
    double value = self->rounded[first].value;
    mrc_warn(self->reading->input->context, "",
             "%s: index %lld: numbers such as %.17g are rounded to float (%.17g) and become equal to others (in %lld "
             "features); subtract a constant, remove the feature, or use f64 samples in an npy file",
             self->reading->name, (long long)first + (long long)base, value, (double)(float)value, (long long)count);
}

/* Warns that index 0 occurs. The format does not define whether indices begin with 0 or 1, and another file with the
   same features may have no index 0. The features of that file would then be shifted by one. */
static void warn_zero_based(const sparse *self)
{
    if (self->least != 0) return;
    mrc_warn(self->reading->input->context, "",
             "%s: indices count from 0, because index 0 occurs; files without index 0 are read as counting from 1, "
             "so add 0:0 to one of their rows",
             self->reading->name);
}

static mercer_status read_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    const mrc_input *input = reading->input;
    sparse self = {.reading = reading, .least = INT64_MAX, .largest = -1};
    MRC_TRY(walk(&self, NULL, 0, NULL));
    MRC_TRY(mrc_slice_resolve(&reading->slice, input->context, reading->name, self.records));
    int64_t base = self.least == 0 ? 0 : 1, features = reading->options->features;
    if (features == 0) features = reading->options->column_count;
    int64_t found = self.largest - base + 1;
    if (self.largest < 0 && features == 0)
        return mrc_fail(input->context, MERCER_ERROR_FORMAT,
                        "%s: no row has an index:value; set the number of features", reading->name);
    if (features > 0 && found > features)
        return mrc_fail(input->context, MERCER_ERROR_MISMATCH,
                        "%s: index %lld is beyond the requested %lld features (indices count from %lld)", reading->name,
                        (long long)self.largest, (long long)features, (long long)base);
    MRC_TRY(allocate_sparse_samples(&self, dataset, features > 0 ? features : found));
    MRC_SCOPE(scope, input->context);
    MRC_TRY(mrc_scope_alloc_zero(&scope, &self.rounded, dataset->x.cols, sizeof *self.rounded, "features"));
    MRC_TRY(walk(&self, &dataset->x, base, reading->have_targets ? &reading->targets : NULL));
    warn_zero_based(&self);
    warn_coarse(&self, &dataset->x, base);
    return MERCER_OK;
}

/* Returns whether the second word begins with digits and a colon. Never called for files of targets: formats are tried
   from the end of the list, and the text format, which comes later, accepts all of these files. */
static bool looks_like(const mrc_input *input, bool targets)
{
    int64_t i = 0, end = mrc_min(input->bytes, 4096);
    const char *text = (const char *)input->data;
    (void)targets;
    while (i < end && text[i] != ' ' && text[i] != '\t' && text[i] != '\n') i++;
    while (i < end && (text[i] == ' ' || text[i] == '\t')) i++;
    int64_t digits = i;
    while (i < end && text[i] >= '0' && text[i] <= '9') i++;
    return i > digits && i < end && text[i] == ':';
}

const mrc_format mrc_format_libsvm = {.name = "libsvm",
                                      .endings = {".libsvm", ".svm", ".svmlight"},
                                      .sparse = true,
                                      .looks_like = looks_like,
                                      .read_samples = read_samples};
