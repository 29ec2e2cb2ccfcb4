/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CSV and TSV: a first pass over the text counts its records, so that all memory is allocated (or refused) before a
 * value is read; a second pass reads the values. A table may consist of several files. A Parquet file (data/parquet)
 * contains the number of its records and the names of its columns.
 *
 * Samples that are too large for memory (mrc_budget_spills) go to a temporary file, which is mapped. They are read in
 * blocks: once if the schema is given, else twice, because the schema must be found before rows can be encoded. Only a
 * block, the targets and the weights are in memory.
 */
#include "core/file/spill.h"
#include "core/matrix.h"
#include "core/memory.h"
#include "data/parquet/parquet_rows.h"
#include "data/table/csv_schema.h"

#include <string.h>

/* The files of a table. */
typedef struct tables {
    mrc_reading *reading;
    mrc_table *list; /* (reading->count) */
    mrc_table *lead; /* first file that has records */
    mrc_layout layout;
    int64_t records; /* number of records in all files */
    bool warned;     /* true: the warning about rows without a target was given */
} tables;

/* ---- First pass ---------------------------------------------------------------------------------------------- */

/* Opens all files. The table has the columns of the first file that has records. */
static mercer_status open_tables(tables *self)
{
    mrc_reading *reading = self->reading;
    bool parquet = reading->format == &mrc_format_parquet;
    MRC_TRY(
        mrc_alloc_zero(reading->input->context, &self->list, reading->count, sizeof *self->list, "files of a table"));
    self->lead = self->list;
    for (int64_t i = 0; i < reading->count; i++) {
        MRC_TRY(parquet ? mrc_parquet_table_open(&self->list[i], &reading->input[i])
                        : mrc_table_open(&self->list[i], &reading->input[i], reading->format->separator));
        if (i > 0 && self->lead->records == 0) self->lead = &self->list[i];
        self->records += self->list[i].records;
    }
    if (self->records == 0)
        return mrc_fail(reading->input->context, MERCER_ERROR_FORMAT, "%s: holds no samples", reading->name);
    return MERCER_OK;
}

static void close_tables(tables *self)
{
    mrc_layout_free(self->reading->input->context, &self->layout);
    for (int64_t i = 0; self->list && i < self->reading->count; i++) mrc_parquet_table_close(&self->list[i]);
    mrc_free(self->reading->input->context, self->list);
}

/* Finds the layout of the first file that has records, and checks that all other files have the same columns. */
static mercer_status follow_lead(tables *self, const mrc_layout_wish *wish)
{
    MRC_TRY(mrc_layout_find(&self->layout, self->lead, wish));
    self->lead->layout = &self->layout;
    self->records = 0;
    for (int64_t i = 0; i < self->reading->count; i++) {
        mrc_table *table = &self->list[i];
        if (table != self->lead) MRC_TRY(mrc_table_follow(table, self->lead, self->reading->options->header));
        self->records += table->records;
    }
    return MERCER_OK;
}

/* ---- Second pass --------------------------------------------------------------------------------------------- */

/* Consumer of blocks of cells. Functions below take NULL instead if the cells of all rows stay in memory. */
typedef struct consumer {
    mercer_status (*take)(struct consumer *self, mrc_cells *cells);
    mrc_column_set *columns;
    mercer_matrix x; /* (block, features) encoded block, owned */
    mrc_spill spill;
} consumer;

/* Reads `count` records, and passes them to the consumer block by block. */
static mercer_status read_some(const mrc_table *table, mrc_csv *csv, mrc_sink *to, int64_t count, consumer *through)
{
    mercer_status (*read)(const mrc_table *, mrc_csv *, mrc_sink *, int64_t) =
        table->parquet ? mrc_parquet_records_read : mrc_records_read;
    if (!through) return read(table, csv, to, count);
    /* Here x.rows of the cells is the capacity of a block; the consumer sees only the rows that were filled. */
    int64_t block = to->cells->x.rows;
    for (int64_t done = 0; done < count; done += block) {
        MRC_TRY(read(table, csv, to, mrc_min(block, count - done)));
        to->cells->x.rows = to->rows - to->base;
        mercer_status status = through->take(through, to->cells);
        to->cells->x.rows = block;
        MRC_TRY(status);
        to->base = to->rows;
    }
    return MERCER_OK;
}

/* Reads the records of the slice. */
static mercer_status read_records(const tables *self, mrc_sink *to, consumer *through)
{
    const mrc_slice *slice = &self->reading->slice;
    int64_t before = 0, end = slice->first + slice->rows;
    if (to->targets) mrc_targets_clear(to->targets);
    to->rows = to->base = to->left_out = 0;
    MRC_SCOPE(scope, self->reading->input->context);
    MRC_TRY(mrc_sink_open(to, &scope, &self->layout));
    for (int64_t k = 0; k < self->reading->count; before += self->list[k++].records) {
        const mrc_table *table = &self->list[k];
        int64_t first = mrc_max(slice->first, before), last = mrc_min(end, before + table->records);
        if (first >= last) continue;
        mrc_csv csv = table->data;
        to->released = NULL;
        if (to->targets) to->targets->path = table->input->path;
        if (table->parquet)
            csv.line += first - before;
        else
            mrc_records_skip(&csv, first - before);
        MRC_TRY(read_some(table, &csv, to, last - first, through));
    }
    if (to->targets) to->targets->path = self->reading->name;
    return MERCER_OK;
}

/* ---- Targets ------------------------------------------------------------------------------------------------- */

/* Allocates the targets. Several columns are values; a single column is collected first and may turn out to be
   classes. */
static mercer_status open_targets(tables *self, mercer_dataset *dataset, mrc_sink *to)
{
    mrc_reading *reading = self->reading;
    mercer_context *context = reading->input->context;
    int64_t rows = reading->slice.rows, count = self->layout.targets;
    MRC_TRY(mrc_layout_names(&self->layout, context, MRC_COLUMN_TARGET, &dataset->target_text));
    dataset->target_names = dataset->target_text;
    if (count == 1) {
        reading->have_targets = true;
        to->targets = &reading->targets;
        MRC_TRY(mrc_targets_open(&reading->targets, context, reading->name, MRC_TARGETS_TEXT, rows));
        reading->targets.separator = self->lead->start.separator;
        reading->targets.unit = self->lead->unit;
        return MERCER_OK;
    }
    if (reading->options->task == MERCER_TASK_CLASSIFICATION || reading->options->labels)
        return mrc_fail(context, MERCER_ERROR_SHAPE,
                        "%s: has %lld columns of targets, but classes must be one column of numbers or names",
                        reading->name, (long long)count);
    MRC_TRY(mrc_alloc(context, &dataset->y_memory, rows * count, sizeof(double), "targets"));
    dataset->y = to->y = mrc_view(dataset->y_memory, rows, count, MERCER_F64);
    dataset->task = MERCER_TASK_REGRESSION;
    dataset->outputs = count;
    return MERCER_OK;
}

/* Returns the bytes of targets per row. */
static int64_t target_bytes(const tables *self)
{
    int64_t count = self->layout.targets;
    return count == 1 ? (int64_t)MRC_TARGET_BYTES : count * (int64_t)sizeof(double);
}

/* ---- Samples ------------------------------------------------------------------------------------------------- */

static mercer_status save_unused(const mrc_layout *layout, mercer_dataset *dataset)
{
    MRC_TRY(mrc_layout_names(layout, dataset->context, MRC_COLUMN_UNUSED, &dataset->unused_text));
    dataset->unused_names = dataset->unused_text;
    dataset->unused = layout->unused;
    return MERCER_OK;
}

/* Returns the bytes of `rows` rows of `floats` floats; INT64_MAX on overflow. */
static int64_t bytes_of(int64_t rows, int64_t floats)
{
    int64_t bytes;
    return mrc_multiply(rows, floats, &bytes) && mrc_multiply(bytes, sizeof(float), &bytes) ? bytes : INT64_MAX;
}

/* Allocates targets, weights and keys for the slice, and cells for `rows` rows. */
static mercer_status allocate_table(tables *self, mercer_dataset *dataset, mrc_sink *to, int64_t rows, void **memory)
{
    mrc_reading *reading = self->reading;
    const mrc_input *input = self->lead->input;
    int64_t all = reading->slice.rows, cols = self->layout.features, bytes;
    if (cols == 0) return mrc_fail(input->context, MERCER_ERROR_FORMAT, "%s: has no feature columns", input->path);
    if (!mrc_multiply(all, reading->want_targets ? target_bytes(self) : 0, &bytes) ||
        !mrc_add(bytes, bytes_of(rows, cols), &bytes))
        bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, reading->name, bytes));
    MRC_TRY(mrc_alloc(input->context, memory, rows * cols, sizeof(float), "samples"));
    to->cells->x = mrc_view(*memory, rows, cols, MERCER_F32);
    MRC_TRY(save_unused(&self->layout, dataset));
    if (self->layout.weight >= 0) {
        dataset->rows = all;
        MRC_TRY(mrc_dataset_make_weights(dataset, &to->weights));
    }
    if (self->layout.key >= 0) {
        dataset->rows = all;
        to->key_kind = reading->options->group_column ? MRC_KEYS_GROUPS : MRC_KEYS_TIMES;
        MRC_TRY(mrc_dataset_make_keys(dataset, to->key_kind, &to->keys));
    }
    return reading->want_targets ? open_targets(self, dataset, to) : MERCER_OK;
}

/* Warns once about rows without a target. Fails if every target is missing. */
static mercer_status tell_left_out(tables *self, const mrc_sink *to)
{
    const mrc_reading *reading = self->reading;
    if (to->left_out == 0 || self->warned) return MERCER_OK;
    self->warned = true;
    if (to->rows == 0)
        return mrc_fail(reading->input->context, MERCER_ERROR_DATA,
                        "%s: every target is missing; check the name of the target column", reading->name);
    mrc_warn(reading->input->context, "target",
             "%s: ignoring %lld of %lld rows, which have no target; the first is %s %lld", reading->name,
             (long long)to->left_out, (long long)to->rows + (long long)to->left_out, self->lead->unit,
             (long long)to->left_line);
    return MERCER_OK;
}

/* Returns whether the targets turned out to be numbers in another notation, and so must be read again. */
static bool turn_targets(const tables *self, const mrc_sink *to)
{
    const mercer_dataset_options *options = self->reading->options;
    const mrc_target_wish wish = {options->task, options->labels, options->label_count};
    return to->targets && mrc_targets_find_notation(to->targets, &wish);
}

/* Sets the number of rows of the cells, unless the cells went to a consumer block by block. */
static void end_at(mrc_cells *cells, const mrc_sink *to, const consumer *through)
{
    if (!through) cells->x.rows = to->rows;
}

/* Reads cells and targets. Reads them again if a column that began with numbers or dates turned out to be words, or if
   words turned out to be numbers or dates in another notation. Also reads them again if float cannot distinguish the
   values of a column. */
static mercer_status read_all(tables *self, mrc_column_set *columns, mrc_sink *to, consumer *through)
{
    mrc_cells *cells = &columns->cells;
    bool changed = false;
    MRC_TRY(read_records(self, to, through));
    if (mrc_column_set_turn_odd(columns)) MRC_TRY(read_records(self, to, through));
    end_at(cells, to, through);
    if (to->rows > 0) MRC_TRY(mrc_cells_read_words(cells, columns->words, &changed));
    changed = turn_targets(self, to) || changed;
    if (changed) mrc_cells_forget(cells);
    if (changed) MRC_TRY(read_records(self, to, through));
    if (to->rows > 0 && mrc_cells_move(cells)) {
        mrc_cells_forget(cells);
        MRC_TRY(read_records(self, to, through));
        mrc_cells_clear_origins(cells);
    }
    return tell_left_out(self, to);
}

/* ---- In memory ------------------------------------------------------------------------------------------------- */

/* Returns the number of target statistics per category. All targets must have been read. */
static int64_t count_statistics(const tables *self, const mrc_sink *to)
{
    const mercer_dataset_options *options = self->reading->options;
    const mrc_target_wish wish = {options->task, options->labels, options->label_count};
    bool classes = false;
    if (!self->reading->want_targets) return 0;
    int64_t outputs = to->targets ? mrc_targets_outputs(to->targets, &wish, &classes) : to->y.cols;
    return mrc_statistic_count(classes, outputs);
}

/* Reads all cells into memory, and finds the schema unless it is given. */
static mercer_status read_held(tables *self, mrc_column_set *columns, mrc_sink *to, mercer_dataset *dataset)
{
    MRC_TRY(read_all(self, columns, to, NULL));
    return columns->given ? MERCER_OK : mrc_column_set_find(columns, self->lead, count_statistics(self, to), dataset);
}

/* ---- In a temporary file --------------------------------------------------------------------------------------- */

/* Consumer of the pass that finds the schema: tallies the cells of a block. */
static mercer_status tally_block(consumer *self, mrc_cells *cells)
{
    (void)self;
    return mrc_cells_tally(cells);
}

/* Consumer of the last pass over the table: encodes a block and appends it to the temporary file. */
static mercer_status spill_block(consumer *self, mrc_cells *cells)
{
    const mrc_schema *schema = self->columns->schema;
    mercer_matrix x = schema ? mrc_rows(&self->x, 0, cells->x.rows) : cells->x;
    if (schema) mrc_schema_encode(schema, &cells->x, &x);
    return mrc_spill_write(&self->spill, x.data, bytes_of(x.rows, x.cols));
}

/* Reads the table with its final schema, if it has one, and writes the features to the temporary file. */
static mercer_status spill_cells(tables *self, consumer *through, mrc_sink *to, mercer_dataset *dataset)
{
    mrc_column_set *columns = through->columns;
    int64_t block = to->cells->x.rows, features = mrc_column_set_features(columns);
    /* A schema that was found may leave out columns, so the number of cells per row may change. */
    if (!columns->given && columns->schema) MRC_TRY(mrc_column_set_adopt(columns, &self->layout));
    to->cells->x = mrc_view(to->cells->x.data, block, to->cells->count, MERCER_F32);
    through->x = mrc_view(NULL, block, features, MERCER_F32);
    if (columns->schema)
        MRC_TRY(mrc_alloc(columns->context, &through->x.data, block * features, sizeof(float), "samples"));
    through->take = spill_block;
    MRC_TRY(mrc_spill_open(&through->spill, columns->context));
    MRC_TRY(read_records(self, to, through));
    if (turn_targets(self, to)) {
        mrc_cells_forget(to->cells);
        mrc_spill_close(&through->spill);
        MRC_TRY(mrc_spill_open(&through->spill, columns->context));
        MRC_TRY(read_records(self, to, through));
    }
    MRC_TRY(tell_left_out(self, to));
    MRC_TRY(mrc_spill_map(&through->spill, &dataset->x_map));
    dataset->x = mrc_view(dataset->x_map.data, to->rows, features, MERCER_F32);
    dataset->spilled = true;
    return MERCER_OK;
}

static void close_consumer(consumer *self)
{
    mrc_spill_close(&self->spill);
    mrc_free(self->columns->context, self->x.data);
}

/* Reads block by block into a temporary file. `known`: the schema has been found, or the table has none. The cells have
   the capacity of one block. */
static mercer_status read_spilled(tables *self, mrc_column_set *columns, mrc_sink *to, mercer_dataset *dataset,
                                  bool known)
{
    MRC_OWNED(close_consumer) consumer through = {.take = tally_block, .columns = columns};
    mrc_log(columns->context, MERCER_LOG_INFO, "%s: samples are stored in a temporary file", self->reading->name);
    if (!known) {
        MRC_TRY(read_all(self, columns, to, &through));
        MRC_TRY(mrc_column_set_find(columns, self->lead, count_statistics(self, to), dataset));
    }
    MRC_TRY(spill_cells(self, &through, to, dataset));
    mrc_free(columns->context, dataset->x_memory);
    dataset->x_memory = NULL;
    return MERCER_OK;
}

/* ---- In memory or in a temporary file -------------------------------------------------------------------------- */

/* Returns the number of rows of a block of about 1 MiB of features. */
static int64_t block_rows(const mrc_column_set *columns)
{
    enum { BLOCK_BYTES = 1 << 20 };
    return mrc_max(1, BLOCK_BYTES / bytes_of(1, mrc_column_set_features(columns)));
}

/* Reads cells and targets, and makes the samples of the dataset: in memory if they fit, else in a temporary file. */
static mercer_status read_cells(tables *self, mrc_column_set *columns, mercer_dataset *dataset, bool strict)
{
    mrc_budget *budget = self->lead->input->budget;
    mrc_sink to = {.cells = &columns->cells, .missing = columns->words, .leave_out = true};
    int64_t rows = self->reading->slice.rows, floats = columns->cells.count;
    bool known = columns->given || strict;
    if (columns->given) MRC_TRY(mrc_column_set_find(columns, self->lead, 0, dataset));
    /* Cells and features are both in memory while they are encoded. */
    if (columns->given) floats += columns->schema->features;
    bool spills = mrc_budget_spills(budget, bytes_of(rows, floats));
    MRC_TRY(allocate_table(self, dataset, &to, spills ? mrc_min(rows, block_rows(columns)) : rows, &dataset->x_memory));
    if (!spills) {
        MRC_TRY(read_held(self, columns, &to, dataset));
        spills =
            !known && columns->schema && mrc_budget_spills(budget, bytes_of(to.rows, mrc_column_set_features(columns)));
        known = true;
        if (spills) columns->cells.x.rows = mrc_min(rows, block_rows(columns)); /* reuse the buffer for blocks */
    }
    if (spills)
        MRC_TRY(read_spilled(self, columns, &to, dataset, known));
    else
        MRC_TRY(mrc_column_set_encode(columns, self->lead, dataset));
    if (dataset->y.data) dataset->y.rows = to.rows;
    dataset->left_out = to.left_out;
    self->reading->slice.rows = to.rows;
    return mrc_column_set_finish(columns, self->lead, dataset);
}

/* Returns whether the first line has a name from the schema or from the options. */
static bool names_columns(const tables *self, const mrc_column_set *columns)
{
    const mercer_dataset_options *options = self->reading->options;
    const mrc_schema *schema = columns->schema;
    if (schema && mrc_table_names_one(self->lead, &schema->columns->name, schema->count, sizeof *schema->columns))
        return true;
    return options->columns && mrc_table_names_one(self->lead, options->columns, options->column_count, sizeof(char *));
}

/* Returns whether the header option requires a header; fails if the option excludes a header, but the file is a Parquet
   file, whose columns always have names. */
static mercer_status asked_header(const tables *self, bool *header)
{
    mercer_switch asked = self->reading->options->header;
    *header = asked == MERCER_ON || self->lead->parquet;
    if (!self->lead->parquet || asked != MERCER_OFF) return MERCER_OK;
    return mrc_fail(self->reading->input->context, MERCER_ERROR_ARGUMENT,
                    "%s: is a Parquet file, whose columns have names; remove the option header", self->reading->name);
}

/* Determines the header and the layout of the table, then reads it. */
static mercer_status read_samples(tables *self, mrc_column_set *columns, mercer_dataset *dataset)
{
    mrc_reading *reading = self->reading;
    const mercer_dataset_options *options = reading->options;
    bool header;
    MRC_TRY(asked_header(self, &header));
    if (!header && options->header == MERCER_AUTO)
        header = mrc_table_shows_header(self->lead, options->target) || names_columns(self, columns);
    mrc_table_set_header(self->lead, header);
    bool numbers = options->kinds && strcmp(options->kinds, "numbers") == 0; /* no missing values */
    /* If there is a separate file of targets, `target` names a column of that file. */
    mrc_layout_wish wish = {
        .target = options->y && options->task != MERCER_TASK_UNLABELED ? NULL : options->target,
        .needed = reading->want_targets,
        .columns = options->columns,
        .column_count = options->column_count,
        .kinds = numbers ? NULL : options->kinds,
        .only = options->only,
        .weight = options->weight_column,
        .id = options->id_column,
        .key = options->group_column ? options->group_column : options->time_column,
        .schema = columns->schema,
    };
    MRC_TRY(follow_lead(self, &wish));
    MRC_TRY(mrc_slice_resolve(&reading->slice, reading->input->context, reading->name, self->records));
    bool strict = options->columns || numbers;
    MRC_TRY(mrc_column_set_prepare(columns, self->lead, strict));
    return read_cells(self, columns, dataset, strict);
}

static mercer_status csv_samples(mrc_reading *reading, mercer_dataset *dataset)
{
    MRC_OWNED(close_tables) tables self = {.reading = reading};
    MRC_OWNED(mrc_column_set_close) mrc_column_set columns = {0};
    MRC_TRY(open_tables(&self));
    MRC_TRY(mrc_column_set_open(&columns, reading->input->context, reading->options));
    return read_samples(&self, &columns, dataset);
}

/* ---- Files of targets only ----------------------------------------------------------------------------------- */

/* Returns whether the first record must be a header. It must be text, and there must be one more record than samples,
   or one more in each file that is not empty. */
static bool first_is_extra(const tables *self, int64_t expected)
{
    int64_t filled = 0;
    for (int64_t i = 0; i < self->reading->count; i++) filled += self->list[i].records > 0;
    return (self->records == expected + 1 || self->records == expected + filled) &&
           mrc_table_begins_with_text(self->lead);
}

/* Reads a table that has only targets. */
static mercer_status read_targets(tables *self, mercer_dataset *dataset, int64_t expected)
{
    mrc_reading *reading = self->reading;
    const mrc_input *input = reading->input;
    const mercer_dataset_options *options = reading->options;
    bool header;
    MRC_TRY(asked_header(self, &header));
    if (!header && options->header == MERCER_AUTO)
        header = mrc_table_shows_header(self->lead, options->target) || first_is_extra(self, expected);
    mrc_table_set_header(self->lead, header);
    /* A single column is the target, whatever its name is. */
    mrc_layout_wish wish = {.target = self->lead->columns == 1 ? NULL : options->target, .alone = true};
    mrc_sink to = {.missing = &mrc_missing_default};
    int64_t bytes;
    MRC_TRY(follow_lead(self, &wish));
    reading->slice.total = self->records;
    /* the caller reports the error, because it knows the names of both files */
    if (self->records != expected) return MERCER_OK;
    if (!mrc_multiply(reading->slice.rows, target_bytes(self), &bytes)) bytes = INT64_MAX;
    MRC_TRY(mrc_budget_take(input->context, input->budget, reading->name, bytes));
    MRC_TRY(open_targets(self, dataset, &to));
    MRC_TRY(read_records(self, &to, NULL));
    return turn_targets(self, &to) ? read_records(self, &to, NULL) : MERCER_OK;
}

static mercer_status csv_targets(mrc_reading *reading, mercer_dataset *dataset, int64_t expected)
{
    MRC_OWNED(close_tables) tables self = {.reading = reading};
    MRC_TRY(open_tables(&self));
    return read_targets(&self, dataset, expected);
}

/* ---- The formats ------------------------------------------------------------------------------------------------- */

static bool looks_like_samples(const mrc_input *input, bool targets)
{
    (void)input;
    return !targets;
}

static bool looks_like_targets(const mrc_input *input, bool targets)
{
    (void)input;
    return targets;
}

const mrc_format mrc_format_csv = {.name = "csv",
                                   .endings = {".csv"},
                                   .looks_like = looks_like_samples,
                                   .read_samples = csv_samples,
                                   .read_targets = csv_targets};
const mrc_format mrc_format_tsv = {.name = "tsv",
                                   .endings = {".tsv", ".tab"},
                                   .separator = '\t',
                                   .read_samples = csv_samples,
                                   .read_targets = csv_targets};
const mrc_format mrc_format_parquet = {.name = "parquet",
                                       .endings = {".parquet", ".pq"},
                                       .has_header = true,
                                       .separator = ',',
                                       .is_marked = mrc_parquet_is_marked,
                                       .read_samples = csv_samples,
                                       .read_targets = csv_targets};
/* One label per line. */
const mrc_format mrc_format_text = {.name = "text",
                                    .endings = {".labels"},
                                    .separator = '\n',
                                    .looks_like = looks_like_targets,
                                    .read_targets = csv_targets};
