/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/schema: what the columns of a table are, and how they become features.
 *
 * A table is read into cells, one float for each column that is used: a number, the days of a date (date.h), or the
 * number of a word (levels.h); NaN is a missing value. words.c finds columns whose words are numbers or dates, schema.c
 * looks at the cells and finds what each column is, column_warnings.c warns about columns.
 * A schema is a text (JSON, schema_text.c), kept in datasets and model files; read, it is the struct below. encode.c
 * makes features of cells by it. A table of numbers without gaps has no schema: its cells are its features.
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

enum { MRC_KEPT_LEVELS = 255 }; /* of a category; all others together are one more */

/* Words that mean "no value", whatever their capitals; an empty cell always does. */
typedef struct mrc_missing {
    const char *const *words; /* (count) */
    int64_t count;
} mrc_missing;

extern const mrc_missing mrc_missing_default;
bool mrc_is_missing(const mrc_missing *missing, const char *text, int64_t length);

typedef struct mrc_column {
    const char *name; /* NULL: it goes by its position */
    mrc_kind kind;
    mrc_notation notation; /* of a number or date; all zero: plain numbers, ISO dates */
    double origin;         /* of a number or date: taken away before it is rounded to float; 0 for most */
    double mean;           /* of what is left: stands where a value is missing, if nothing better does (gaps.h) */
    int64_t missing;       /* cells without a value when the schema was found; if there were any, they get a feature */
    const char *const *levels; /* (level_count) of a category, in the order of their features */
    int64_t level_count;
    double deviation;        /* of a number or date that takes part in filling gaps; 0: it does not */
    const double *precision; /* its row of the matrix, up to the diagonal, while a schema is found */
    int64_t gap;             /* its place among those that take part; -1: none */
    bool other;              /* a category with further levels, which share one feature */
    const char *why;         /* of a column that is left out */
    int64_t first, width;    /* its features */
} mrc_column;

typedef struct mrc_schema {
    mercer_context *context;
    mrc_column *columns; /* (count) */
    int64_t count, used; /* all; those that are not left out */
    int64_t features;
    mrc_missing missing;
    mrc_gaps gaps; /* how missing numbers are filled in; count 0: with means */
    bool named;    /* every column has a name */
    bool noted;    /* a column has a notation */
    void *root;    /* what the texts above lie in */
    void *lists;   /* memory of their lists */
} mrc_schema;

/* ---- Texts --------------------------------------------------------------------------------------------------- */

mercer_status mrc_schema_read(mrc_schema **out, mercer_context *context, const char *text);
void mrc_schema_free(mrc_schema *schema);
MRC_RELEASE(mrc_release_schema, mrc_schema, mrc_schema_free)
/* The text of these columns. Released with mrc_free. */
mercer_status mrc_schema_print(mercer_context *context, const mrc_column *columns, int64_t count,
                               const mrc_missing *missing, char **out);
const char *mrc_kind_name(mrc_kind kind);
bool mrc_kind_find(const char *name, int64_t length, mrc_kind *kind);

/* ---- Cells --------------------------------------------------------------------------------------------------- */

/* What the cells of a column have been so far; those of words are counted in its levels. */
typedef struct mrc_tally {
    double sum, low, high; /* of the values; low and high mean something if there are any */
    int64_t missing, beyond;
} mrc_tally;

/* A column while its cells are read. */
typedef struct mrc_cell_column {
    const char *name;      /* borrowed, or NULL */
    int64_t place;         /* index among all columns of the table */
    mrc_kind kind;         /* NUMBER, DATE, or CATEGORY: cells are numbers of `levels`; BOOLEAN by a schema */
    mrc_notation notation; /* of a number or date; all zero: plain numbers, ISO dates */
    bool fixed;            /* asked for, or a schema's: what does not fit is an error */
    bool asked;            /* the caller asked for a kind: */
    mrc_kind wish;         /* that one; `kind` becomes CATEGORY if cells do not fit it at first */
    mrc_date_order order;  /* of day and month, if the caller said so */
    bool strict;           /* fixed, and a missing value is an error: a model without a schema cannot fill it */
    bool odd;              /* not fixed, and a cell did not fit: it is to be read again as CATEGORY */
    mrc_levels levels;
    bool closed; /* the levels are a schema's; other words become `beyond` */
    float beyond;
    int64_t unknown;                  /* number of those, where `beyond` is not a level either */
    char stranger[MRC_EXCERPT_CHARS]; /* one of them */
    int64_t gaps;                     /* missing values that were read */
    bool has_missing;                 /* the schema has a feature for them */
    double origin;                    /* taken away before a value is rounded to float */
    double off;                       /* most that rounding has changed, */
    double rounded;                   /* of this value */
    mrc_tally tally;
} mrc_cell_column;

typedef struct mrc_cells {
    mercer_context *context;
    const char *path;         /* of the table, for messages; NULL: it is not a file */
    char separator;           /* of its fields; 0: it is not a file */
    mercer_matrix x;          /* (rows, count) f32: all rows, or those that are being looked at */
    mrc_cell_column *columns; /* (count) */
    int64_t count;
    int64_t table_columns; /* number of columns of the file, with targets; 0: it is not a file */
    int64_t tallied;       /* rows that mrc_cells_tally has seen */
    mrc_spread_rows some;  /* of them */
} mrc_cells;

/* Adds the rows of x to the tallies. */
mercer_status mrc_cells_tally(mrc_cells *cells);
/* Forgets all cells that were read, with their levels; levels of a schema stay. */
void mrc_cells_forget(mrc_cells *cells);
/* Releases what the columns hold; the list of columns and x are not its own. */
void mrc_cells_close(mrc_cells *cells);

/* Columns that are left out because somebody said so: they stand in the schema all the same. */
typedef struct mrc_left_out {
    const char *const *names; /* (count) NULL for those without a name */
    const int64_t *places;    /* (count) among all columns of the table that are no targets, ascending */
    int64_t count;
} mrc_left_out;

/*
 * Finds what the columns are. If rows were tallied, from the tallies; else x holds all rows, and its cells of
 * categories are brought into the order of their levels. *out is the text, released with mrc_free; NULL if the table
 * has numbers without gaps alone.
 */
mercer_status mrc_schema_find(mrc_cells *cells, const mrc_left_out *left_out, const mrc_missing *missing, char **out);

/* Why a column is left out. */
extern const char *const mrc_why_constant, *const mrc_why_empty, *const mrc_why_words, *const mrc_why_asked;

/* ---- Words that are numbers or dates ------------------------------------------------------------------------- */

/*
 * words.c: turns columns of words whose values are all in one notation into columns of numbers or dates. *changed says
 * whether there are any, whose cells must then be read again. A few values that do not fit what nearly all are, and
 * dates whose day and month can be exchanged, are errors. If no rows were tallied, x holds all rows.
 */
mercer_status mrc_cells_read_words(mrc_cells *cells, const mrc_missing *missing, bool *changed);
/* Reads a text as a cell of a column of numbers, booleans or dates; false if it is something else. */
bool mrc_read_value(mrc_kind kind, const mrc_notation *notation, const char *text, const char *end, double *value);

/* ---- Messages about columns ---------------------------------------------------------------------------------- */

enum { MRC_PLACE_CHARS = 512, MRC_COLUMN_WARNINGS = 8 }; /* warnings of one kind about columns, then one for the rest */

/* "t.csv: column 'a'", or "column 'a'" if the table is not a file. */
const char *mrc_column_place(const mrc_cells *cells, int64_t j, char out[MRC_PLACE_CHARS]);
/* "t.csv: line 3, column 'a'", or "column 'a', row 1" (from 0): where a level was seen first. */
const char *mrc_level_place(const mrc_cells *cells, int64_t j, const mrc_level *level, char out[MRC_PLACE_CHARS]);
/* The name of a column as an option takes it: its name, or its index in the table, from the end where another column
   is named like the index. */
const char *mrc_column_option(const mrc_cells *cells, int64_t j, char out[MRC_EXCERPT_CHARS]);

/* Warns about cells that the schema they were read by did not expect. */
void mrc_cells_warn(const mrc_cells *cells);
/* Warns about columns (cells->count) that are left out without having been asked for. */
void mrc_cells_warn_dropped(const mrc_cells *cells, const mrc_column *columns);
/* Warns about columns that count the rows. */
void mrc_cells_warn_row_numbers(const mrc_cells *cells);

/* ---- Numbers as cells ---------------------------------------------------------------------------------------- */

/* Counts a word that the schema does not have. */
static inline void mrc_note_unknown(mrc_cell_column *column, const char *text, int64_t length)
{
    if (column->unknown++ == 0) mrc_excerpt(column->stranger, text, length);
}

/* A number as a cell. */
static inline float mrc_cell_number(mrc_cell_column *column, double value)
{
    double moved = value - column->origin;
    float cell = (float)moved;
    double off = __builtin_fabs((double)cell - moved);
    if (off > column->off) column->off = off, column->rounded = value;
    return cell;
}
/* origin.c: gives an origin to columns whose values floats would not tell apart; whether any has got one, so that its
   cells must be read again. Then mrc_cells_settle takes it back from columns that have one value. */
bool mrc_cells_move(mrc_cells *cells);
void mrc_cells_settle(mrc_cells *cells);
/* Logs which columns have numbers that floats do not hold, with or without an origin. */
void mrc_cells_warn_coarse(const mrc_cells *cells);

/* ---- Features ------------------------------------------------------------------------------------------------ */

/* x (rows, features) f32 of the cells (rows, used) of the columns that are not left out. */
void mrc_schema_encode(const mrc_schema *schema, const mercer_matrix *cells, const mercer_matrix *x);
/* What a feature is: a value; or 0 or 1, a level, or a sign that a value is missing, which is filled in. */
typedef enum mrc_role { MRC_ROLE_VALUE, MRC_ROLE_LEVEL, MRC_ROLE_SIGN } mrc_role;
void mrc_schema_roles(const mrc_schema *schema, mrc_role *roles);
/* Names of the features as a list in one block; NULL if the columns have none. */
mercer_status mrc_schema_feature_names(const mrc_schema *schema, void **out);

#endif
