/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/schema: kinds of the columns of a table, and their encoding as features.
 *
 * A table is read into cells, one float per used column: a number, the days of a date (date.h), or the number of a word
 * (levels.h); NaN is a missing value. words.c finds columns whose words are numbers or dates, schema.c finds the kind
 * of each column from its cells, column_warnings.c warns about columns. A schema is a text (JSON, schema_text.c),
 * stored in datasets and model files; mrc_schema is the parsed schema. encode.c turns cells into features by a schema.
 * A table of numbers without missing values has no schema: its cells are its features.
 */
#ifndef MRC_DATA_SCHEMA_SCHEMA_H
#define MRC_DATA_SCHEMA_SCHEMA_H

#include "core/memory.h"
#include "data/files/input.h"
#include "data/schema/gaps.h"
#include "data/schema/levels.h"
#include "data/table/notation.h"

#include <stdbool.h>

typedef enum mrc_kind { MRC_KIND_NUMBER, MRC_KIND_BOOLEAN, MRC_KIND_DATE, MRC_KIND_CATEGORY, MRC_KIND_DROP } mrc_kind;

enum { MRC_KEPT_LEVELS = 255 }; /* most levels of a category with their own feature; all other levels share one */
/* Limits for statistics of the targets (level_statistics.c). LEVELS: only categories with at least this number of
   levels have statistics. MOST: largest number of statistics per level. VALUES: largest number of statistics of all
   levels in a table. */
enum { MRC_STATISTIC_LEVELS = 100, MRC_STATISTICS_MOST = 16, MRC_STATISTIC_VALUES = 1 << 18 };

/* Words that mean "no value", compared case-insensitively; an empty cell is always missing. */
typedef struct mrc_missing {
    const char *const *words; /* (count) */
    int64_t count;
} mrc_missing;

extern const mrc_missing mrc_missing_default;
bool mrc_is_missing(const mrc_missing *missing, const char *text, int64_t length);

typedef struct mrc_column {
    const char *name; /* NULL: matched by position */
    mrc_kind kind;
    mrc_notation notation; /* notation of a number or date; all zero: plain numbers, ISO dates */
    double origin;         /* number or date: subtracted before rounding to float; 0 for most */
    double mean;           /* mean after subtracting the origin; fallback for missing values (gaps.h) */
    /* number of missing values when the schema was found; if above 0, the column has a flag for them */
    int64_t missing;
    /* (level_count + rare_count) category: words in the order of their features, then words that have only
       statistics */
    const char *const *levels;
    int64_t level_count, rare_count;
    int64_t statistics; /* number of features that are statistics of the targets by level; 0: none */
    /* (level_count + rare_count + 1, statistics) statistics of each level, and of missing values. NULL while they are
       not known; the first of these features is then the number of the level (mrc_column_level) plus 1 */
    const double *statistic;
    double deviation;        /* standard deviation if the column takes part in filling missing numbers, else 0 */
    const double *precision; /* row of P up to the diagonal (gaps.h); set only while a schema is found */
    /* index among the columns that take part in filling missing numbers; -1: the column does not take part */
    int64_t gap;
    bool other;           /* category: there are levels that share one feature */
    const char *why;      /* reason why a column is left out */
    int64_t first, width; /* index of the column's first feature; number of its features */
} mrc_column;

typedef struct mrc_schema {
    mercer_context *context;
    mrc_column *columns; /* (count) */
    int64_t count, used; /* number of columns; number of columns that are not left out */
    int64_t features;
    mrc_missing missing;
    mrc_gaps gaps;      /* parameters for filling missing numbers; count 0: means are used */
    bool named;         /* every column has a name */
    bool noted;         /* at least one column has a notation */
    int64_t statistics; /* number of features that are statistics of the targets */
    double *values;     /* (value_count) memory of mrc_column.statistic of all columns */
    int64_t value_count;
    void *root;  /* JSON document that owns the texts above */
    void *lists; /* memory of the lists of texts */
} mrc_schema;

/* ---- Texts --------------------------------------------------------------------------------------------------- */

mercer_status mrc_schema_read(mrc_schema **out, mercer_context *context, const char *text);
void mrc_schema_free(mrc_schema *schema);
MRC_RELEASE(mrc_release_schema, mrc_schema, mrc_schema_free)
/* Prints columns (count) as the text of a schema, which the caller releases with mrc_free. */
mercer_status mrc_schema_print(mercer_context *context, const mrc_column *columns, int64_t count,
                               const mrc_missing *missing, char **out);
const char *mrc_kind_name(mrc_kind kind);
bool mrc_kind_find(const char *name, int64_t length, mrc_kind *kind);

/* Returns the number of a category's levels that have a cell of their own. Larger cells stand for other words. */
static inline int64_t mrc_column_levels(const mrc_column *column)
{
    return column->level_count + column->rare_count;
}

/* Returns the row of a cell in column->statistic, or -1 for words that are not among the levels. */
static inline int64_t mrc_column_level(const mrc_column *column, float cell)
{
    int64_t levels = mrc_column_levels(column);
    if (__builtin_isnan(cell)) return column->missing > 0 ? levels : -1;
    return cell >= 0 && cell < (float)levels ? (int64_t)cell : -1;
}

/* ---- Cells --------------------------------------------------------------------------------------------------- */

/* Statistics of the cells of a column so far; words are counted in its levels. */
typedef struct mrc_tally {
    double sum, low, high;   /* sum, minimum and maximum of the values; low > high if there are none */
    int64_t missing, beyond; /* number of missing cells; number of cells whose word is beyond the limit of levels */
} mrc_tally;

/* A column while its cells are read. */
typedef struct mrc_cell_column {
    const char *name; /* borrowed, or NULL */
    int64_t place;    /* index among all columns of the table */
    /* NUMBER, DATE or CATEGORY (cells are indices into `levels`); BOOLEAN only if the caller or the schema says so */
    mrc_kind kind;
    mrc_notation notation; /* notation of a number or date; all zero: plain numbers, ISO dates */
    bool fixed;            /* the kind is final; a value that does not fit is an error */
    bool asked;            /* the caller asked for the kind `wish` */
    /* kind that the caller asked for; `kind` becomes CATEGORY if cells do not fit, and words.c then looks for another
       notation */
    mrc_kind wish;
    mrc_date_order order; /* order of day and month, if the caller gave it */
    bool strict;          /* fixed, and missing values are errors, because a model without a schema cannot fill them */
    bool odd;             /* a cell did not fit the kind, which is not fixed: read the column again as CATEGORY */
    mrc_levels levels;
    bool closed;  /* levels come from a schema; other words become `beyond` */
    float beyond; /* cell of words that are not among the levels of a schema */
    /* number of cells with words that are not in the schema, if no feature is for other words */
    int64_t unknown;
    char stranger[MRC_EXCERPT_CHARS]; /* first of the unknown words */
    int64_t gaps;                     /* number of missing values read */
    bool has_missing;                 /* the schema has a feature for missing values */
    double origin;                    /* subtracted before a value is rounded to float */
    double off;                       /* largest rounding error so far */
    double rounded;                   /* value with this rounding error */
    mrc_tally tally;
} mrc_cell_column;

typedef struct mrc_cells {
    mercer_context *context;
    const char *path;         /* path of the table, for messages; NULL if it is not a file */
    const char *unit;         /* name of a record in messages: "line" or "row" */
    char separator;           /* field separator; 0 if it is not a file */
    mercer_matrix x;          /* (rows, count) f32: all rows, or the current block of rows */
    mrc_cell_column *columns; /* (count) */
    int64_t count;
    int64_t table_columns; /* number of columns of the file, including targets; 0 if it is not a file */
    int64_t tallied;       /* number of rows that mrc_cells_tally has added */
    int64_t statistics;    /* statistics of the targets per category with many levels; 0: there are no targets */
    mrc_spread_rows some;  /* sample of the tallied rows */
} mrc_cells;

/* Adds the rows of x to the tallies. */
mercer_status mrc_cells_tally(mrc_cells *cells);
/* Discards the counts and levels of all cells that were read, but not the levels of a schema. */
void mrc_cells_forget(mrc_cells *cells);
/* Releases the levels and the sampled rows. The list of columns and x belong to the caller. */
void mrc_cells_close(mrc_cells *cells);

/* Columns excluded by the user. They are still listed in the schema. */
typedef struct mrc_left_out {
    const char *const *names; /* (count) NULL for columns without a name */
    const int64_t *places;    /* (count) ascending indices among all columns that are not targets */
    int64_t count;
} mrc_left_out;

/*
 * Finds the kinds of the columns and prints their schema. If rows were tallied, only the tallies are used. Otherwise x
 * must have all rows, and is prepared for mrc_schema_encode: cells of categories become indices of the schema's levels,
 * and columns that are left out are removed. *out: the text, which the caller releases with mrc_free; NULL if the table
 * has only numbers and no missing values.
 */
mercer_status mrc_schema_find(mrc_cells *cells, const mrc_left_out *left_out, const mrc_missing *missing, char **out);

/* Reasons for leaving out a column. */
extern const char *const mrc_why_constant, *const mrc_why_empty, *const mrc_why_words, *const mrc_why_asked;

/* ---- Words that are numbers or dates ------------------------------------------------------------------------- */

/*
 * words.c: turns columns of words whose values all have one notation into columns of numbers or dates. Sets *changed to
 * whether there are such columns; their cells must then be read again. Fails if nearly all values have one notation and
 * a few values do not fit, or if the order of day and month is ambiguous. If no rows were tallied, x must have all
 * rows.
 */
mercer_status mrc_cells_read_words(mrc_cells *cells, const mrc_missing *missing, bool *changed);
/* Reads a text as the value of a number, boolean or date column; false if it is something else. */
bool mrc_read_value(mrc_kind kind, const mrc_notation *notation, const char *text, const char *end, double *value);

/* ---- Messages about columns ---------------------------------------------------------------------------------- */

enum { MRC_LOCATION_CHARS = 512, MRC_COLUMN_WARNINGS = 8 }; /* warnings of one kind before a summary of the rest */

/* Returns "t.csv: column 'a'", or "column 'a'" if the table is not a file. */
const char *mrc_column_location(const mrc_cells *cells, int64_t j, char out[MRC_LOCATION_CHARS]);
/* Returns the first occurrence of a level: "t.csv: line 3, column 'a'", or "column 'a', row 1" (from 0). */
const char *mrc_level_location(const mrc_cells *cells, int64_t j, const mrc_level *level, char out[MRC_LOCATION_CHARS]);
/* Returns the text that selects a column in an option: its name, or its index in the table, counted from the end if the
   name of another column equals the index. */
const char *mrc_column_option(const mrc_cells *cells, int64_t j, char out[MRC_EXCERPT_CHARS]);

/* Warns about unknown categories and unexpected missing values in cells that were read by a schema. */
void mrc_cells_warn(const mrc_cells *cells);
/* Warns about columns (cells->count) that are left out without a request by the user. */
void mrc_cells_warn_dropped(const mrc_cells *cells, const mrc_column *columns);
/* Warns about columns that look like row numbers. */
void mrc_cells_warn_row_numbers(const mrc_cells *cells);

/* ---- Numbers as cells ---------------------------------------------------------------------------------------- */

/* Counts a word that is not in the schema, and saves the first such word for the warning. */
static inline void mrc_note_unknown(mrc_cell_column *column, const char *text, int64_t length)
{
    if (column->unknown++ == 0) mrc_excerpt(column->stranger, text, length);
}

/* Rounds a number to a cell and records the largest rounding error. */
static inline float mrc_cell_number(mrc_cell_column *column, double value)
{
    double moved = value - column->origin;
    float cell = (float)moved;
    double off = __builtin_fabs((double)cell - moved);
    if (off > column->off) column->off = off, column->rounded = value;
    return cell;
}
/* origin.c: mrc_cells_move sets the origin of columns whose values float cannot distinguish, and returns whether there
   are such columns; their cells must then be read again. After that, mrc_cells_clear_origins removes the origin of
   columns that turn out to have a single value. */
bool mrc_cells_move(mrc_cells *cells);
void mrc_cells_clear_origins(mrc_cells *cells);
/* Warns about columns whose numbers float cannot distinguish even after subtracting an origin. */
void mrc_cells_warn_coarse(const mrc_cells *cells);

/* ---- Features ------------------------------------------------------------------------------------------------ */

/* Encodes cells (rows, used) of the columns that are not left out as x (rows, features) f32. */
void mrc_schema_encode(const mrc_schema *schema, const mercer_matrix *cells, const mercer_matrix *x);
/* Role of a feature: a value; a level of a category (0 or 1); a flag (0 or 1) for a missing value that was filled
   in. */
typedef enum mrc_role { MRC_ROLE_VALUE, MRC_ROLE_LEVEL, MRC_ROLE_SIGN } mrc_role;
void mrc_schema_roles(const mrc_schema *schema, mrc_role *roles);
/* Returns the number of statistics per category of a dataset with these outputs: 1 for two classes, else `outputs`, but
   at most MRC_STATISTICS_MOST. */
int64_t mrc_statistic_count(bool classes, int64_t outputs);
/* level_statistics.c: replaces the level numbers in the samples of a dataset by statistics of its targets, and
   completes its schema. Does nothing if the schema already contains the values of all statistics. */
mercer_status mrc_dataset_add_statistics(mercer_dataset *dataset);
/* Makes the list of feature names, one allocation with its texts; NULL if the columns have no names. */
mercer_status mrc_schema_feature_names(const mrc_schema *schema, void **out);

#endif
