/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collection of targets. A hash table finds the distinct targets during reading.
 *
 * Readers add targets in the order of the rows and do not need to know whether targets are classes. Two lists are
 * filled in parallel: values, for regression, and indices of distinct targets, for classes. When all targets have been
 * read, mrc_targets_finish moves one of the lists into the dataset. Cost: one hash per target, 12 bytes per row, and at
 * most MRC_MOST_CLASSES distinct targets.
 */
#include "data/targets.h"

#include "core/matrix.h"
#include "core/memory.h"
#include "core/spec.h"
#include "data/files/input.h"
#include "data/table/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

/* SLOTS: about three times MRC_MOST_CLASSES, so that the hash table stays sparse. AUTO_OCCURRENCES: numbers in text are
   classes only if each occurs at least this often on average. */
enum { SLOTS = 1 << 15, AUTO_OCCURRENCES = 3, NUMBER_CHARS = 32 };
/* FEW_NAMES: names count as mistakes if fewer than 1 target in FEW_NAMES is a name and the other targets are many
   distinct numbers. NAMED_ROWS: from this number of rows on, names are not classes if more than half of the targets are
   distinct. */
enum { FEW_NAMES = 20, NAMED_ROWS = 50 };

/* ---- Collecting ---------------------------------------------------------------------------------------------- */

mercer_status mrc_targets_open(mrc_targets *out, mercer_context *context, const char *path, mrc_target_origin origin,
                               int64_t capacity)
{
    *out =
        (mrc_targets){.context = context, .path = path, .origin = origin, .capacity = capacity, .texts_capacity = 4096};
    MRC_TRY(mrc_alloc(context, &out->values, capacity, sizeof *out->values, "targets"));
    MRC_TRY(mrc_alloc(context, &out->classes, capacity, sizeof *out->classes, "targets"));
    MRC_TRY(mrc_alloc(context, &out->found, MRC_MOST_CLASSES, sizeof *out->found, "classes"));
    MRC_TRY(mrc_alloc(context, &out->slots, SLOTS, sizeof *out->slots, "classes"));
    MRC_TRY(mrc_alloc(context, &out->texts, out->texts_capacity, 1, "names of classes"));
    mrc_targets_clear(out);
    return MERCER_OK;
}

void mrc_targets_clear(mrc_targets *self)
{
    self->rows = self->count = self->texts_used = 0;
    self->all_integers = true;
    self->too_many = false;
    self->text_place = -1;
    memset(self->slots, 0xff, SLOTS * sizeof(int32_t));
}

void mrc_targets_close(mrc_targets *self)
{
    MRC_FREE_ALL(self->context, self->values, self->classes, self->found, self->slots, self->texts);
    *self = (mrc_targets){.context = self->context};
}

/* Writes "line 3", "row 3" or "element 2 (from 0)". */
static const char *place_text(const mrc_targets *self, int64_t place, char out[64])
{
    if (self->origin == MRC_TARGETS_TEXT)
        snprintf(out, 64, "%s %lld", self->unit ? self->unit : "line", (long long)place);
    else
        snprintf(out, 64, "element %lld (from 0)", (long long)place);
    return out;
}

/* Copies a name into `texts` and sets *at to its offset. */
static mercer_status save_text(mrc_targets *self, const char *text, int64_t length, int64_t *at)
{
    if (self->texts_used + length + 1 > self->texts_capacity) {
        int64_t capacity = 2 * self->texts_capacity + length + 1;
        MRC_TRY(mrc_move(self->context, &self->texts, self->texts_used, capacity, "names of classes"));
        self->texts_capacity = capacity;
    }
    *at = self->texts_used;
    memcpy(self->texts + *at, text, (size_t)length);
    self->texts[*at + length] = 0;
    self->texts_used += length + 1;
    return MERCER_OK;
}

/* Returns whether an entry is the class with this name or, if text is NULL, with this value. */
static bool is_class(const mrc_targets *self, const mrc_target_class *entry, const char *text, int64_t length,
                     double value)
{
    if (!text) return entry->text < 0 && entry->value == value;
    return entry->text >= 0 && strncmp(self->texts + entry->text, text, (size_t)length) == 0 &&
           self->texts[entry->text + length] == 0;
}

/* Returns the slot of a class, or the empty slot where it belongs. The class is a name if text is not NULL, else a
   number. The table has more slots than there can be classes, so the search always ends. */
static int32_t *find_slot(const mrc_targets *self, const char *text, int64_t length, double value)
{
    value += 0.0; /* -0 is 0 */
    uint64_t hash = text ? XXH3_64bits(text, (size_t)length) : XXH3_64bits(&value, sizeof value);
    for (uint64_t i = hash;; i++) {
        int32_t *slot = &self->slots[i % SLOTS];
        if (*slot < 0 || is_class(self, &self->found[*slot], text, length, value)) return slot;
    }
}

/* Fails because a file has more targets than the first pass counted. The arrays have only the capacity for that
   count. */
static mercer_status fail_capacity(const mrc_targets *self)
{
    return mrc_fail(self->context, MERCER_ERROR_INTERNAL, "%s: the number of targets changed while reading",
                    self->path);
}

mercer_status mrc_targets_again(mrc_targets *self, int32_t entry)
{
    if (self->rows == self->capacity) return fail_capacity(self);
    self->values[self->rows] = self->found[entry].value;
    self->classes[self->rows++] = entry;
    return MERCER_OK;
}

/* Adds a target, as a name or a value, and finds or creates its class unless there are too many classes. From then on
   only values are recorded, and `classes` is no longer valid. */
static mercer_status add_target(mrc_targets *self, const char *text, int64_t length, double value, int64_t place)
{
    if (self->rows == self->capacity) return fail_capacity(self);
    self->values[self->rows] = value;
    if (!self->too_many) {
        int32_t *slot = find_slot(self, text, length, value);
        if (*slot < 0 && self->count == MRC_MOST_CLASSES) {
            self->too_many = true;
        } else if (*slot < 0) {
            mrc_target_class *entry = &self->found[self->count];
            *entry = (mrc_target_class){.value = value, .text = -1, .path = self->path, .place = place};
            if (text) MRC_TRY(save_text(self, text, length, &entry->text));
            *slot = (int32_t)self->count++;
        }
        if (!self->too_many) self->classes[self->rows] = *slot;
    }
    self->rows++;
    return MERCER_OK;
}

mercer_status mrc_targets_number(mrc_targets *self, double value, int64_t place)
{
    char where[64];
    if (!isfinite(value))
        return mrc_fail(self->context, MERCER_ERROR_DATA, "%s: %s: the target is %s", self->path,
                        place_text(self, place, where), isnan(value) ? "NaN" : "infinite");
    value += 0.0; /* -0 is 0 */
    if (value != floor(value)) self->all_integers = false;
    return add_target(self, NULL, 0, value, place);
}

/* Adds a target that is not a number. */
static mercer_status add_name(mrc_targets *self, const char *text, int64_t length, int64_t place)
{
    char where[64];
    if (length >= MRC_LABEL_CHARS)
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "%s: %s: the target has %lld characters; a class name can have at most %d", self->path,
                        place_text(self, place, where), (long long)length, MRC_LABEL_CHARS - 1);
    if (memchr(text, 0, (size_t)length))
        return mrc_fail(self->context, MERCER_ERROR_FORMAT, "%s: %s: the target has a zero byte; the file is not text",
                        self->path, place_text(self, place, where));
    if (self->text_place < 0) {
        self->text_place = place;
        self->text_path = self->path;
        MRC_TRY(save_text(self, text, length, &self->text_first));
    }
    self->all_integers = false;
    return add_target(self, text, length, NAN, place);
}

/* Adds a number in the notation that mrc_targets_find_notation found. This notation fits the first MRC_MOST_CLASSES
   distinct targets. Fails for later strings that do not fit, and for plain numbers that the notation excludes, such as
   1.5 with a decimal comma. */
static mercer_status add_amount(mrc_targets *self, const char *text, int64_t length, int64_t place)
{
    char where[64], excerpt[MRC_EXCERPT_CHARS], notation[MRC_NOTATION_CHARS];
    double value = 0;
    if (mrc_read_amount(&self->notation, text, text + length, &value)) return mrc_targets_number(self, value, place);
    return mrc_fail(self->context, MERCER_ERROR_DATA,
                    "%s: %s: target '%s' is not a number such as %s, as in the "
                    "other rows",
                    self->path, place_text(self, place, where), mrc_excerpt(excerpt, text, length),
                    mrc_notation_text(&self->notation, notation));
}

mercer_status mrc_targets_text(mrc_targets *self, const char *text, int64_t length, int64_t place)
{
    char where[64];
    double value = 0;
    while (length > 0 && (*text == ' ' || *text == '\t')) text++, length--;
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) length--;
    if (mrc_notation_is_set(&self->notation)) return add_amount(self, text, length, place);
    mrc_number kind = mrc_read_number(text, text + length, &value);
    if (kind == MRC_NUMBER) return mrc_targets_number(self, value, place);
    if (kind == MRC_NUMBER_INFINITE) return mrc_targets_number(self, INFINITY, place);
    if (length == 0)
        return mrc_fail(self->context, MERCER_ERROR_DATA, "%s: %s: the target is missing", self->path,
                        place_text(self, place, where));
    if (length == 3 && strncasecmp(text, "nan", 3) == 0) return mrc_targets_number(self, (double)NAN, place);
    return add_name(self, text, length, place);
}

/* Prints the name of a class that is a number; integers have no decimal point and no exponent. */
static void print_number(char out[NUMBER_CHARS], double value)
{
    if (value == floor(value) && fabs(value) < 0x1p53)
        snprintf(out, NUMBER_CHARS, "%lld", (long long)value);
    else
        mrc_print_number(value, out, NUMBER_CHARS);
}

/* ---- Settling ------------------------------------------------------------------------------------------------ */

static int compare_values(const void *a, const void *b)
{
    double x = (*(const mrc_target_class *const *)a)->value, y = (*(const mrc_target_class *const *)b)->value;
    return x < y ? -1 : x > y;
}

typedef struct named {
    const char *name;
    mrc_target_class *entry;
} named;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* Scratch space for the names of all classes found. */
typedef struct naming {
    named *list;                   /* (count) */
    char (*printed)[NUMBER_CHARS]; /* (count) */
    const char **names;            /* (count) */
    mrc_target_class **sorted;     /* (count) */
} naming;

static mercer_status open_naming(mrc_targets *self, mrc_scope *scope, naming *out)
{
    int64_t n = self->count;
    int64_t each = sizeof(named) + NUMBER_CHARS + sizeof(char *) + sizeof(mrc_target_class *);
    MRC_TRY(mrc_scope_alloc(scope, &out->list, n, each, "names of classes"));
    /* All arrays share one allocation. Arrays with pointers come first, so that they are aligned; text needs no
       alignment. */
    out->names = (const char **)(out->list + n);
    out->sorted = (mrc_target_class **)(out->names + n);
    out->printed = (char(*)[NUMBER_CHARS])(out->sorted + n);
    for (int64_t i = 0; i < n; i++) {
        mrc_target_class *entry = &self->found[i];
        if (entry->text < 0) print_number(out->printed[i], entry->value);
        out->list[i] = (named){entry->text < 0 ? out->printed[i] : self->texts + entry->text, entry};
        out->sorted[i] = entry;
    }
    return MERCER_OK;
}

/* Numbers the classes in the order of their values or names, and copies the names into the dataset. If at least one
   class is a name, numbers are compared as text, too. */
static mercer_status number_found(mrc_targets *self, mercer_dataset *dataset)
{
    naming work;
    MRC_SCOPE(scope, self->context);
    MRC_TRY(open_naming(self, &scope, &work));
    int64_t n = self->count;
    if (self->text_place < 0) {
        qsort(work.sorted, (size_t)n, sizeof *work.sorted, compare_values);
        for (int64_t i = 0; i < n; i++) work.names[i] = work.list[work.sorted[i] - self->found].name;
        for (int64_t i = 0; i < n; i++) work.sorted[i]->number = (int32_t)i;
    } else {
        qsort(work.list, (size_t)n, sizeof *work.list, compare_names);
        for (int64_t i = 0; i < n; i++) work.names[i] = work.list[i].name;
        for (int64_t i = 0; i < n; i++) work.list[i].entry->number = (int32_t)i;
    }
    dataset->outputs = n;
    return mrc_copy_texts(self->context, &dataset->label_text, work.names, n);
}

/* Numbers the classes as the caller listed them. A class that is not in the list is an error; a listed class need not
   occur. */
static mercer_status number_listed(mrc_targets *self, const mrc_target_wish *wish, mercer_dataset *dataset)
{
    for (int64_t i = 0; i < self->count; i++) self->found[i].number = -1;
    for (int64_t i = 0; i < wish->label_count; i++) {
        const char *label = wish->labels[i];
        int64_t length = (int64_t)strlen(label);
        double value = 0;
        bool number = mrc_read_number(label, label + length, &value) == MRC_NUMBER;
        int32_t *slot = find_slot(self, number ? NULL : label, length, value);
        if (*slot < 0) continue;
        if (self->found[*slot].number >= 0)
            return mrc_fail(self->context, MERCER_ERROR_ARGUMENT, "labels: '%s' is listed twice", label);
        self->found[*slot].number = (int32_t)i;
    }
    for (int64_t i = 0; i < self->count; i++) {
        const mrc_target_class *entry = &self->found[i];
        if (entry->number >= 0) continue;
        char where[64], excerpt[MRC_EXCERPT_CHARS], printed[NUMBER_CHARS];
        if (entry->text < 0) print_number(printed, entry->value);
        const char *name = entry->text < 0 ? printed : self->texts + entry->text;
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "%s: %s: label '%s' is not one of the %lld known classes ('%s', ...)", entry->path,
                        place_text(self, entry->place, where), mrc_excerpt(excerpt, name, (int64_t)strlen(name)),
                        (long long)wish->label_count, wish->labels[0]);
    }
    dataset->outputs = wish->label_count;
    return mrc_copy_texts(self->context, &dataset->label_text, wish->labels, wish->label_count);
}

/* Stores the targets in the dataset as classes. Each entry of `classes` changes from an index of a distinct target to a
   class number, and the list moves into the dataset. */
static mercer_status settle_classes(mrc_targets *self, const mrc_target_wish *wish, mercer_dataset *dataset)
{
    if (self->too_many)
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "%s: more than %d distinct targets; if they are values, use the task regression", self->path,
                        MRC_MOST_CLASSES);
    if (wish->labels)
        MRC_TRY(number_listed(self, wish, dataset));
    else
        MRC_TRY(number_found(self, dataset));
    for (int64_t i = 0; i < self->rows; i++) self->classes[i] = self->found[self->classes[i]].number;
    dataset->task = MERCER_TASK_CLASSIFICATION;
    dataset->label_names = dataset->label_text;
    dataset->labels = self->classes;
    dataset->label_memory = self->classes;
    self->classes = NULL;
    return MERCER_OK;
}

/* Stores the targets in the dataset as values. Fails if a target is a name. */
static mercer_status settle_values(mrc_targets *self, mercer_dataset *dataset)
{
    char where[64], excerpt[MRC_EXCERPT_CHARS];
    if (self->text_place >= 0) {
        const char *text = self->texts + self->text_first;
        return mrc_fail(self->context, MERCER_ERROR_DATA,
                        "%s: %s: target '%s' is not a number; regression needs "
                        "numbers",
                        self->text_path, place_text(self, self->text_place, where),
                        mrc_excerpt(excerpt, text, (int64_t)strlen(text)));
    }
    dataset->task = MERCER_TASK_REGRESSION;
    dataset->outputs = 1;
    dataset->y = mrc_view(self->values, self->rows, 1, MERCER_F64);
    dataset->y_memory = self->values;
    self->values = NULL;
    return MERCER_OK;
}

/* ---- Classes or values --------------------------------------------------------------------------------------- */

/* Returns whether numbers in text have few distinct values, each frequent enough to be a class. */
static bool are_few(const mrc_targets *self)
{
    return self->count <= MRC_AUTO_CLASSES && self->count <= mrc_max(2, self->rows / AUTO_OCCURRENCES);
}

/* Returns whether targets are classes by default. Integers in text may be measurements, so each value must also occur
   several times on average. */
static bool look_like_classes(const mrc_targets *self)
{
    bool few = self->all_integers && !self->too_many && self->count <= MRC_AUTO_CLASSES;
    if (self->text_place >= 0) return true;
    switch (self->origin) {
        case MRC_TARGETS_LABELS: return true;
        case MRC_TARGETS_INTEGER: return few;
        case MRC_TARGETS_TEXT: return few && are_few(self) && !mrc_notation_is_set(&self->notation);
        case MRC_TARGETS_REAL: return false;
    }
    return false;
}

int64_t mrc_targets_outputs(const mrc_targets *self, const mrc_target_wish *wish, bool *classes)
{
    *classes = wish->labels ||
               (wish->task == MERCER_TASK_AUTO ? look_like_classes(self) : wish->task == MERCER_TASK_CLASSIFICATION);
    return !*classes ? 1 : wish->labels ? wish->label_count : self->count;
}

bool mrc_targets_find_notation(mrc_targets *self, const mrc_target_wish *wish)
{
    mrc_readings common = mrc_readings_numbers;
    bool date, ambiguous, whole = true;
    if (self->text_place < 0 || mrc_notation_is_set(&self->notation) || wish->labels) return false;
    if (wish->task == MERCER_TASK_CLASSIFICATION) return false;
    for (int64_t i = 0; i < self->count; i++) {
        const char *text = self->texts + self->found[i].text;
        if (self->found[i].text >= 0) common &= mrc_readings_of(text, text + strlen(text), self->separator);
    }
    if (!mrc_readings_choose(common, self->separator, MRC_ORDER_UNKNOWN, &self->notation, &date, &ambiguous))
        return false;
    for (int64_t i = 0; i < self->count; i++) {
        const char *text = self->texts + self->found[i].text;
        double value = self->found[i].value;
        if (self->found[i].text >= 0) mrc_read_amount(&self->notation, text, text + strlen(text), &value);
        whole = whole && value == floor(value);
    }
    if (wish->task == MERCER_TASK_AUTO && whole && !self->too_many && are_few(self))
        self->notation = (mrc_notation){0}; /* "10%" and "20%" stay classes, just like 10 and 20 */
    return mrc_notation_is_set(&self->notation);
}

/* Fails if a few targets are names and the other targets are many distinct numbers. */
static mercer_status refuse_few_names(const mrc_targets *self)
{
    char where[64], excerpt[MRC_EXCERPT_CHARS];
    const char *text = self->texts + self->text_first;
    int64_t names = 0, numbers = 0;
    bool whole = true;
    for (int64_t i = 0; i < self->count; i++) {
        if (self->found[i].text >= 0) continue;
        numbers++;
        whole = whole && self->found[i].value == floor(self->found[i].value);
    }
    for (int64_t i = 0; i < self->rows; i++) names += self->found[self->classes[i]].text >= 0;
    if (names * FEW_NAMES >= self->rows || (whole && numbers <= MRC_AUTO_CLASSES)) return MERCER_OK;
    return mrc_fail(self->context, MERCER_ERROR_DATA,
                    "%s: %s: target '%s' is not a number, but %lld of %lld are; if it means \"no value\", add "
                    "--missing='%s'; if these are classes, add --task classification",
                    self->text_path, place_text(self, self->text_place, where),
                    mrc_excerpt(excerpt, text, (int64_t)strlen(text)), (long long)(self->rows - names),
                    (long long)self->rows, excerpt);
}

/* Fails if targets are names and too many of them are distinct for classes. */
static mercer_status check_names(const mrc_targets *self)
{
    char excerpt[MRC_EXCERPT_CHARS];
    const char *text = self->texts + self->text_first;
    if (self->text_place < 0 || self->too_many) return MERCER_OK;
    MRC_TRY(refuse_few_names(self));
    if (self->rows < NAMED_ROWS || 2 * self->count <= self->rows) return MERCER_OK;
    return mrc_fail(
        self->context, MERCER_ERROR_DATA,
        "%s: the target has %lld distinct strings in %lld rows, such as '%s'; if these are numbers, write them "
        "as 1234.5; if they are classes, add --task classification",
        self->path, (long long)self->count, (long long)self->rows, mrc_excerpt(excerpt, text, (int64_t)strlen(text)));
}

mercer_status mrc_targets_finish(mrc_targets *self, const mrc_target_wish *wish, mercer_dataset *dataset)
{
    bool classes = wish->task == MERCER_TASK_CLASSIFICATION || wish->labels;
    dataset->distinct = self->all_integers && !self->too_many && self->text_place < 0 ? self->count : 0;
    if (wish->task == MERCER_TASK_AUTO && !wish->labels) {
        classes = look_like_classes(self);
        MRC_TRY(check_names(self));
        mrc_log(self->context, MERCER_LOG_INFO, "%s: the targets are %s", self->path, classes ? "classes" : "values");
    }
    return classes ? settle_classes(self, wish, dataset) : settle_values(self, dataset);
}
