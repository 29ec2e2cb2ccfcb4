/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cells of records, one after the other.
 *
 * Nearly all cells are plain decimals or words without quotes: those are read where they stand, in one pass over their
 * bytes. Whatever else a cell may be (quotes, spaces, exponents, the end of the file) goes the general way, through
 * mrc_csv_next and mrc_read_number, which also say what is wrong with it.
 */
#include "data/table/csv_cells.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "data/schema/date.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

typedef enum mrc_act {
    ACT_PASS,
    ACT_NUMBER,
    ACT_BOOLEAN,
    ACT_DATE,
    ACT_WORD,
    ACT_TARGET,
    ACT_VALUE,
    ACT_WEIGHT,
    ACT_KEY
} mrc_act;

struct mrc_action {
    mrc_act act;
    int64_t place;           /* column of the cells, or of several targets */
    mrc_cell_column *column; /* of the cells */
};

enum { FEW_BYTES = 48, MOST_DIGITS = 19 };

/* ---- Actions ------------------------------------------------------------------------------------------------- */

static mrc_act act_of(mrc_kind kind)
{
    static const mrc_act acts[] = {[MRC_KIND_NUMBER] = ACT_NUMBER,
                                   [MRC_KIND_BOOLEAN] = ACT_BOOLEAN,
                                   [MRC_KIND_DATE] = ACT_DATE,
                                   [MRC_KIND_CATEGORY] = ACT_WORD,
                                   [MRC_KIND_DROP] = ACT_PASS};
    return acts[kind];
}

mercer_status mrc_sink_open(mrc_sink *sink, mrc_scope *scope, const mrc_layout *layout)
{
    MRC_TRY(mrc_scope_alloc_zero(scope, &sink->actions, layout->columns, sizeof *sink->actions, "columns of a table"));
    for (int64_t column = 0; column < layout->columns; column++) {
        struct mrc_action *action = &sink->actions[column];
        int64_t role = layout->roles[column];
        if (role >= 0 && sink->cells) {
            action->column = &sink->cells->columns[role];
            action->place = role;
            action->act = act_of(action->column->kind);
        } else if (role <= MRC_COLUMN_TARGET) {
            action->act = sink->targets ? ACT_TARGET : sink->y.data ? ACT_VALUE : ACT_PASS;
            action->place = MRC_COLUMN_TARGET - role;
        } else if (column == layout->weight && sink->weights) {
            action->act = ACT_WEIGHT;
        } else if (column == layout->key && sink->keys) {
            action->act = ACT_KEY;
        }
    }
    return MERCER_OK;
}

/* ---- Failures ------------------------------------------------------------------------------------------------ */

static mercer_status fail_cell(const mrc_table *self, const mrc_csv_field *field, int64_t column, const char *what)
{
    char name[MRC_COLUMN_CHARS], excerpt[MRC_EXCERPT_CHARS];
    return mrc_fail(self->input->context, MERCER_ERROR_DATA, "%s: line %lld, column %s: '%s' %s", self->input->path,
                    (long long)field->line, mrc_column_text(self, column, name),
                    mrc_excerpt(excerpt, field->text, field->length), what);
}

static mercer_status fail_columns(const mrc_table *self, int64_t line, bool fewer)
{
    return mrc_fail(self->input->context, MERCER_ERROR_FORMAT,
                    "%s: line %lld has %s columns than the first line, which has %lld", self->input->path,
                    (long long)line, fewer ? "fewer" : "more", (long long)self->columns);
}

/* ---- Fast ways ----------------------------------------------------------------------------------------------- */

/* Behind a field at `at`, of which `end` is far enough away: passes over the separator or the end of the line. */
static inline bool finish_fast(mrc_csv *csv, const char *at, bool *last)
{
    *last = *at != csv->separator;
    if (*last) {
        at += *at == '\r';
        if (*at != '\n') return false;
        csv->line++;
    }
    csv->at = at + 1;
    return true;
}

/* Eight bytes at once, the first of the text in the lowest. */
enum { WORD_BYTES = 8 };
static const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;

static inline uint64_t load_word(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* The highest bit of the first byte that is `c`, and perhaps of later ones. */
static inline uint64_t find_byte(uint64_t word, char c)
{
    uint64_t off = word ^ (ones * (unsigned char)c);
    return (off - ones) & ~off & tops;
}

/* How many bytes stand before the first that separates fields; 8: none of them does. */
static inline int bytes_before(uint64_t word, char separator)
{
    uint64_t ends = find_byte(word, separator) | find_byte(word, '\n');
    return ends ? __builtin_ctzll(ends) / WORD_BYTES : WORD_BYTES;
}

static inline bool all_digits(uint64_t word)
{
    return ((word & (ones * 0xf0)) | ((word + ones * 6) & (ones * 0xf0)) >> 4) == ones * 0x33;
}

/* Eight decimal digits as a number: pairs, fours, all. */
static inline uint64_t join_digits(uint64_t digits)
{
    digits = (digits & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    digits = (digits & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (digits & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

/*
 * A plain decimal of at most 7 bytes, without a branch that depends on its length: sign and point are shifted out,
 * zeros put in front, and eight digits joined. Where the next field begins; NULL if it is anything else. At least
 * FEW_BYTES are left.
 */
static inline const char *take_short(const char *at, char separator, double *value, bool *last)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    static const double signs[] = {1, -1}; /* a branch would be guessed wrong every other time */
    uint64_t word = load_word(at);
    int length = bytes_before(word, separator);
    if (length == 0 || length == WORD_BYTES) return NULL;
    unsigned negative = (word & 0xff) == '-';
    word >>= 8 * negative;
    int count = length - (int)negative;
    uint64_t points = find_byte(word, separator == ';' ? ',' : '.');
    int place = points ? __builtin_ctzll(points) / WORD_BYTES : count; /* digits before the point */
    bool point = place < count;
    place = point ? place : count;
    uint64_t before = (UINT64_C(1) << 8 * place) - 1; /* count is at most 7 */
    word = (word & before) | (word >> 8 * point & ~before);
    int digits = count - point, fraction = count - place - point;
    if (digits <= 0) return NULL;
    word = word << 8 * (WORD_BYTES - digits) | (ones * '0') >> 8 * digits;
    if (!all_digits(word)) return NULL;
    *value = (double)(int64_t)join_digits(word) / powers[fraction] * signs[negative];
    *last = at[length] == '\n';
    return at + length + 1;
}

/*
 * A word of at most 16 bytes that the column has had lately, found by its bytes as two numbers: where the next field
 * begins; NULL if it is anything else. At least FEW_BYTES are left.
 */
static inline const char *take_recent(const char *at, char separator, const mrc_levels *levels, float *cell, bool *last)
{
    uint64_t low = load_word(at), high = 0;
    int length = bytes_before(low, separator);
    if (length == 0) return NULL;
    if (length == WORD_BYTES) {
        high = load_word(at + WORD_BYTES);
        int more = bytes_before(high, separator);
        if (more == WORD_BYTES) return NULL;
        high &= (UINT64_C(1) << 8 * more) - 1;
        length += more;
    } else {
        low &= (UINT64_C(1) << 8 * length) - 1;
    }
    const mrc_recent_word *word = mrc_recent_place(levels, low, high);
    if (word->low != low || word->high != high || word->length != length) return NULL;
    *cell = (float)word->number;
    *last = at[length] == '\n';
    return at + length + 1;
}

/* A field that is a plain decimal such as -12.5: read and passed over. False, and nothing has happened, if it is
   anything else. */
static inline bool take_number(mrc_csv *csv, double *value, bool *last)
{
    const char *at = csv->at, decimal = csv->separator == ';' ? ',' : '.';
    if (csv->end - at < FEW_BYTES || !csv->separator) return false;
    bool negative = *at == '-';
    at += negative;
    uint64_t digits = 0;
    const char *begin = at, *stop = at + MOST_DIGITS + 1;
    unsigned digit;
    int64_t fraction = 0;
    while ((digit = (unsigned)(unsigned char)*at - '0') <= 9 && at < stop) {
        digits = digits * 10 + digit;
        at++;
    }
    int64_t count = at - begin;
    if (*at == '.' || *at == decimal) {
        begin = ++at;
        for (; stop - at >= WORD_BYTES && all_digits(load_word(at)); at += WORD_BYTES)
            digits = digits * 100000000 + join_digits(load_word(at));
        while ((digit = (unsigned)(unsigned char)*at - '0') <= 9 && at < stop) {
            digits = digits * 10 + digit;
            at++;
        }
        fraction = at - begin;
        count += fraction;
    }
    double size = 0;
    if (count == 0 || count > MOST_DIGITS || (digits > 0 && !mrc_decimal(digits, -fraction, &size))) return false;
    if (!finish_fast(csv, at, last)) return false;
    *value = negative ? -size : size;
    return true;
}

/* The next field, where it stands. */
static inline void take_field(mrc_csv *csv, mrc_csv_field *out)
{
    const char *at = csv->at, *end = csv->end - at > FEW_BYTES ? csv->end - FEW_BYTES : at;
    char separator = csv->separator;
    if (at < end && separator && *at != '"' && *at != ' ') {
        int64_t line = csv->line;
        int before = WORD_BYTES;
        for (; at < end && before == WORD_BYTES; at += before) before = bytes_before(load_word(at), separator);
        const char *text = csv->at;
        bool returned = *at == '\n' && at > text && at[-1] == '\r';
        if (at < end && finish_fast(csv, at, &out->last)) {
            out->text = text;
            out->length = at - text - returned;
            out->line = line;
            out->quoted = out->escaped = false;
            return;
        }
    }
    mrc_csv_next(csv, out); /* the first walk has seen that it is well-formed */
}

/* ---- Features ------------------------------------------------------------------------------------------------ */

static void trim(mrc_csv_field *field)
{
    while (field->length > 0 && (*field->text == ' ' || *field->text == '\t')) field->text++, field->length--;
    while (field->length > 0 && (field->text[field->length - 1] == ' ' || field->text[field->length - 1] == '\t'))
        field->length--;
}

static bool is_missing_field(const mrc_sink *to, mrc_csv_field field)
{
    trim(&field);
    return mrc_is_missing(to->missing, field.text, field.length);
}

/* -999, if that is one of the words. */
static bool is_missing_number(const mrc_sink *to, double value)
{
    if (to->missing == &mrc_missing_default) return false;
    for (int64_t i = 0; i < to->missing->count; i++) {
        const char *word = to->missing->words[i];
        double number;
        if (mrc_read_number(word, word + strlen(word), &number) == MRC_NUMBER && number == value) return true;
    }
    return false;
}

static float note_gap(mrc_cell_column *column)
{
    column->gaps++;
    return (float)NAN;
}

/* A cell that does not fit what the column is so far: it is a mistake, or the column is one of words. */
static mercer_status note_odd(const mrc_table *self, struct mrc_action *action, const mrc_csv_field *field,
                              int64_t column, const char *what)
{
    if (action->column->fixed) return fail_cell(self, field, column, what);
    action->column->odd = true;
    action->act = ACT_PASS;
    return MERCER_OK;
}

static mercer_status general_number(const mrc_table *self, const mrc_csv *csv, const mrc_csv_field *field,
                                    const mrc_sink *to, int64_t column, float *cell)
{
    double value = 0;
    struct mrc_action *action = &to->actions[column];
    mrc_number kind = mrc_csv_number(csv, field, &value);
    if (kind == MRC_NUMBER && isinf((float)value)) kind = MRC_NUMBER_INFINITE;
    if (kind == MRC_NUMBER_INFINITE) return fail_cell(self, field, column, "is outside the range of f32");
    bool missing = kind == MRC_NUMBER ? is_missing_number(to, value) : is_missing_field(to, *field);
    if (!missing && kind != MRC_NUMBER)
        return note_odd(self, action, field, column,
                        "is not a number; the column is one of numbers by the model, or was said to be");
    if (missing && action->column->strict)
        return fail_cell(self, field, column, "the value is missing; fill it in or leave the row out");
    *cell = missing ? note_gap(action->column) : mrc_cell_number(action->column, value);
    return MERCER_OK;
}

static mercer_status read_boolean(const mrc_table *self, const mrc_csv *csv, mrc_csv_field *field, const mrc_sink *to,
                                  int64_t column, float *cell)
{
    trim(field);
    bool yes = field->length == 4 && strncasecmp(field->text, "true", 4) == 0,
         no = field->length == 5 && strncasecmp(field->text, "false", 5) == 0;
    *cell = yes ? 1 : 0;
    return yes || no ? MERCER_OK : general_number(self, csv, field, to, column, cell);
}

static mercer_status read_date(const mrc_table *self, const mrc_csv_field *field, const mrc_sink *to, int64_t column,
                               float *cell)
{
    double days;
    struct mrc_action *action = &to->actions[column];
    bool fine = mrc_read_date(field->text, field->text + field->length, &days);
    if (!fine && !is_missing_field(to, *field))
        return note_odd(self, action, field, column, "is not a date such as 2024-02-29, as the column has to hold");
    *cell = fine ? mrc_cell_number(action->column, days) : note_gap(action->column);
    return MERCER_OK;
}

static mercer_status new_word(const mrc_table *self, const mrc_csv_field *field, const mrc_sink *to, int64_t column,
                              float *cell)
{
    struct mrc_action *action = &to->actions[column];
    int64_t number = -1;
    if (is_missing_field(to, *field)) {
        *cell = note_gap(action->column);
        action->column->unknown += action->column->closed && !action->column->has_missing;
        return MERCER_OK;
    }
    if (action->column->closed) {
        action->column->unknown += action->column->beyond < 0;
        *cell = action->column->beyond;
        return MERCER_OK;
    }
    MRC_TRY(
        mrc_levels_add(&action->column->levels, field->text, field->length, self->input->path, field->line, &number));
    *cell = (float)number;
    return MERCER_OK;
}

static mercer_status read_word(const mrc_table *self, const mrc_csv_field *field, const mrc_sink *to, int64_t column,
                               float *cell)
{
    char copy[MRC_LABEL_CHARS];
    mrc_csv_field word = *field;
    if (word.escaped) {
        word.length = mrc_csv_copy(field, copy, sizeof copy);
        word.text = copy;
    }
    trim(&word);
    mrc_levels *levels = &to->actions[column].column->levels;
    int64_t number = mrc_levels_find(levels, word.text, word.length);
    *cell = (float)number;
    if (number < 0) return new_word(self, &word, to, column, cell);
    if (*word.text != '"') mrc_levels_note(levels, word.text, word.length, number); /* or a quoted field is it */
    return MERCER_OK;
}

/* ---- Targets and weights ------------------------------------------------------------------------------------- */

static mercer_status read_target(const mrc_csv *csv, const mrc_sink *to, const mrc_csv_field *field, bool *missing)
{
    char text[MRC_LABEL_CHARS + 1];
    double value;
    *missing = to->leave_out && is_missing_field(to, *field);
    if (*missing) return MERCER_OK;
    if (csv->separator == ';' && mrc_csv_number(csv, field, &value) == MRC_NUMBER)
        return mrc_targets_number(to->targets, value, field->line);
    if (!field->escaped) return mrc_targets_text(to->targets, field->text, field->length, field->line);
    return mrc_targets_text(to->targets, text, mrc_csv_copy(field, text, sizeof text), field->line);
}

/* One of several targets, or a weight. */
static mercer_status read_value(const mrc_table *self, const mrc_csv *csv, const mrc_sink *to,
                                const mrc_csv_field *field, int64_t column, bool *missing, double *out)
{
    bool target = to->actions[column].act == ACT_VALUE;
    mrc_number kind = mrc_csv_number(csv, field, out);
    *missing = target && to->leave_out &&
               (is_missing_field(to, *field) || (kind == MRC_NUMBER && is_missing_number(to, *out)));
    if (*missing || (kind == MRC_NUMBER && (target || *out >= 0))) return MERCER_OK;
    return fail_cell(self, field, column,
                     kind == MRC_NUMBER            ? "is a weight below 0: weights are at least 0"
                     : kind == MRC_NUMBER_MISSING  ? "the value is missing; fill it in or leave the row out"
                     : kind == MRC_NUMBER_INFINITE ? "is outside the range of f64"
                     : target
                         ? "is not a number; several targets must be (classes are one column: name it as the target)"
                         : "is not a number, as a weight must be");
}

/* A group by its text, of which 53 bits of a hash stand for it; a time as a number, or days of a date. */
static mercer_status read_key(const mrc_table *self, const mrc_csv *csv, const mrc_sink *to, const mrc_csv_field *field,
                              int64_t column, double *out)
{
    char text[MRC_LABEL_CHARS + 1];
    int64_t length = field->escaped ? mrc_csv_copy(field, text, sizeof text) : field->length;
    const char *start = field->escaped ? text : field->text;
    if (to->key_kind == MRC_KEYS_GROUPS) {
        *out = (double)(XXH3_64bits(start, (size_t)length) >> 11);
        return MERCER_OK;
    }
    if (mrc_csv_number(csv, field, out) == MRC_NUMBER || mrc_read_date(start, start + length, out)) return MERCER_OK;
    return fail_cell(self, field, column, "is neither a number nor a date, as a time must be");
}

/* ---- Records ------------------------------------------------------------------------------------------------- */

/* A cell that is no plain decimal, or not one of a feature. */
static mercer_status read_cell(const mrc_table *self, mrc_csv *csv, const mrc_sink *to, int64_t column, float *cells,
                               bool *last, bool *left_out)
{
    const struct mrc_action *action = &to->actions[column];
    mrc_csv_field field;
    bool missing = false;
    double value = 0;
    float nowhere = 0, *cell = cells ? cells + action->place : &nowhere; /* without cells no column is a feature */
    take_field(csv, &field);
    *last = field.last;
    switch (action->act) {
        case ACT_PASS: break;
        case ACT_NUMBER: return general_number(self, csv, &field, to, column, cell);
        case ACT_BOOLEAN: return read_boolean(self, csv, &field, to, column, cell);
        case ACT_DATE: return read_date(self, &field, to, column, cell);
        case ACT_WORD: return read_word(self, &field, to, column, cell);
        case ACT_TARGET:
            if (!*left_out) MRC_TRY(read_target(csv, to, &field, &missing));
            break;
        case ACT_VALUE:
            MRC_TRY(read_value(self, csv, to, &field, column, &missing, &value));
            ((double *)mrc_row(&to->y, to->rows))[action->place] = value;
            break;
        case ACT_WEIGHT:
            MRC_TRY(read_value(self, csv, to, &field, column, &missing, &value));
            to->weights[to->rows] = value;
            break;
        case ACT_KEY: return read_key(self, csv, to, &field, column, &to->keys[to->rows]);
    }
    *left_out = *left_out || missing;
    return MERCER_OK;
}

/* Keeps a number that is no missing word. */
static inline mercer_status keep_number(const mrc_sink *to, const struct mrc_action *action, float *cells, double value,
                                        int64_t line)
{
    if (action->act == ACT_TARGET || !cells) return mrc_targets_number(to->targets, value, line);
    cells[action->place] = mrc_cell_number(action->column, value);
    return MERCER_OK;
}

/* An empty cell of a column of numbers, or a word: where the next field begins, or NULL if it takes the general way. */
static inline const char *take_other(const char *at, char separator, const struct mrc_action *action, float *cells,
                                     bool *last)
{
    if (action->act == ACT_WORD)
        return take_recent(at, separator, &action->column->levels, &cells[action->place], last);
    if (action->act != ACT_NUMBER || (*at != separator && *at != '\n') || action->column->strict) return NULL;
    cells[action->place] = note_gap(action->column);
    *last = *at == '\n';
    return at + 1;
}

static mercer_status read_record(const mrc_table *self, mrc_csv *csv, const mrc_sink *to, bool *left_out)
{
    const struct mrc_action *actions = to->actions;
    float *cells = to->cells ? (float *)mrc_row(&to->cells->x, to->rows - to->base) : NULL;
    int64_t line = csv->line, end = self->columns - 1;
    const char separator = csv->separator, *at = csv->at, *safe = csv->end - at > FEW_BYTES ? csv->end - FEW_BYTES : at;
    bool last, plain = to->missing == &mrc_missing_default && separator;
    *left_out = false;
    for (int64_t column = 0; column <= end; column++) {
        const struct mrc_action *action = &actions[column];
        bool number = plain && (action->act == ACT_NUMBER || action->act == ACT_TARGET);
        double value;
        const char *next = number && at < safe ? take_short(at, separator, &value, &last) : NULL;
        if (next)
            MRC_TRY(keep_number(to, action, cells, value, line));
        else if (separator && at < safe && cells)
            next = take_other(at, separator, action, cells, &last);
        if (next) {
            at = next;
            csv->line += last;
        } else {
            csv->at = at;
            if (number && take_number(csv, &value, &last))
                MRC_TRY(keep_number(to, action, cells, value, line));
            else
                MRC_TRY(read_cell(self, csv, to, column, cells, &last, left_out));
            at = csv->at;
        }
        if (last != (column == end)) return fail_columns(self, line, last);
    }
    csv->at = at;
    return MERCER_OK;
}

mercer_status mrc_records_read(const mrc_table *self, mrc_csv *csv, mrc_sink *to, int64_t count)
{
    if (!to->released) to->released = csv->at;
    for (int64_t i = 0; i < count; i++) {
        int64_t line = csv->line;
        bool left_out;
        MRC_TRY(read_record(self, csv, to, &left_out));
        to->rows += !left_out;
        if (left_out && to->left_out++ == 0) to->left_line = line;
        mrc_input_release(self->input, &to->released, csv->at);
    }
    return MERCER_OK;
}

void mrc_records_skip(mrc_csv *csv, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        mrc_csv_field field;
        do mrc_csv_next(csv, &field);
        while (!field.last);
    }
}
