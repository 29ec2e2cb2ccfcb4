/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data/parquet: tables in Parquet files. Only flat columns can be read.
 *
 * thrift.h reads the encoding of the metadata, and parquet_meta.c reads the footer: columns, row groups, and positions
 * of the pages of each column. codecs.h decompresses a page, and encodings.h decodes its values. parquet_pages.c reads
 * the pages of a column in order, and value_text.c prints values as in a CSV file. parquet_table.c presents a file as a
 * table (data/table/csv_table.h), and parquet_records.c reads its records into cells. A Parquet file and a CSV file of
 * the same table therefore give the same dataset.
 *
 * Files are read row group by row group. Each used column holds one decompressed page and one dictionary. No count,
 * size or offset in a file is trusted: each is checked against the bytes that exist. Memory is taken from the budget of
 * the input before it is allocated.
 */
#ifndef MRC_DATA_PARQUET_H
#define MRC_DATA_PARQUET_H

#include "data/files/input.h"
#include "data/parquet/encodings.h"

typedef enum mrc_parquet_type {
    MRC_PARQUET_BOOLEAN,
    MRC_PARQUET_INT32,
    MRC_PARQUET_INT64,
    MRC_PARQUET_INT96,
    MRC_PARQUET_FLOAT,
    MRC_PARQUET_DOUBLE,
    MRC_PARQUET_BYTES,
    MRC_PARQUET_FIXED
} mrc_parquet_type;

/* Meaning of the values of a column. */
typedef enum mrc_parquet_kind {
    MRC_PARQUET_NUMBER, /* integer or floating point, by its type */
    MRC_PARQUET_UNSIGNED,
    MRC_PARQUET_HALF,
    MRC_PARQUET_TRUTH,
    MRC_PARQUET_TEXT,
    MRC_PARQUET_DECIMAL,
    MRC_PARQUET_DATE,
    MRC_PARQUET_TIME,
    MRC_PARQUET_MOMENT, /* timestamp */
    MRC_PARQUET_UUID,
    MRC_PARQUET_REFUSED /* values of this column cannot be read */
} mrc_parquet_kind;

typedef struct mrc_parquet_column {
    const char *name; /* (name_length) in the file */
    int64_t name_length;
    const char *refused; /* reason why the values cannot be read, or NULL */
    mrc_parquet_type type;
    mrc_parquet_kind kind;
    int64_t width; /* bytes of a value of type FIXED */
    int64_t leaf;  /* index among the columns of a row group */
    int32_t scale; /* digits after the point of a decimal, or digits of the fraction of a second */
    bool optional; /* true: has definition levels, so values may be missing */
    /* MOMENT: true if times are in UTC, which their text then states */
    bool utc;
} mrc_parquet_column;

/* Pages of a column in a row group. */
typedef struct mrc_parquet_chunk {
    /* offset: position of the first page, which has a dictionary or values; bytes: size of all pages */
    int64_t offset, bytes;
    int32_t codec;
} mrc_parquet_chunk;

typedef struct mrc_parquet {
    const mrc_input *input;      /* borrowed */
    mrc_parquet_column *columns; /* (count) */
    /* count: number of columns; leaves: number of columns per row group, which is larger if some columns are nested */
    int64_t count, leaves;
    mrc_parquet_chunk *chunks; /* (groups, leaves) */
    int64_t *group_rows;       /* (groups) */
    int64_t groups, rows;
    int64_t held; /* bytes of the metadata above, taken from the budget */
} mrc_parquet;

/* Reads and checks the footer. The caller closes `out` even if this fails. */
mercer_status mrc_parquet_open(mrc_parquet *out, const mrc_input *input);
void mrc_parquet_close(mrc_parquet *parquet);
/* Returns whether the file begins like a Parquet file. */
bool mrc_parquet_is_marked(const mrc_input *input);
mercer_status mrc_parquet_fail(const mrc_input *input, const char *what);

/* ---- Values of a column --------------------------------------------------------------------------------------- */

enum { MRC_PARQUET_BATCH = 1024 }; /* largest number of rows in a batch */

typedef struct mrc_parquet_word {
    const uint8_t *bytes;
    int64_t length;
} mrc_parquet_word;

/* Decoded values of consecutive rows; only the array for the column's type is set. */
typedef struct mrc_parquet_batch {
    uint8_t valid[MRC_PARQUET_BATCH];          /* 1: present, 0: missing */
    int64_t integers[MRC_PARQUET_BATCH];       /* integers, booleans, dates, times */
    double reals[MRC_PARQUET_BATCH];           /* floating-point numbers */
    mrc_parquet_word words[MRC_PARQUET_BATCH]; /* bytes; valid until the next batch of any column */
    int32_t codes[MRC_PARQUET_BATCH];          /* index in the dictionary, if `coded` */
    int64_t rows;
    bool coded;
} mrc_parquet_batch;

/* Distinct values of a column in a row group. */
typedef struct mrc_parquet_dictionary {
    uint8_t *memory; /* decompressed page; NULL: the values are in the file */
    /* (count) values; only the array for the column's type is allocated */
    int64_t *integers;
    double *reals;
    mrc_parquet_word *words;
    int64_t count, held;
} mrc_parquet_dictionary;

/* Reads the values of one column in order. */
typedef struct mrc_parquet_reader {
    const mrc_parquet *file;
    const mrc_parquet_column *column;
    int64_t group;           /* current row group */
    const uint8_t *at, *end; /* rest of the row group's pages */
    const char *released;    /* the pages of the file before this address were released */
    uint8_t *memory;         /* (capacity) decompressed page */
    int64_t capacity;
    int64_t group_left; /* rows left in the row group */
    int64_t left;       /* rows left in the page */
    int64_t codec;
    mrc_hybrid levels; /* definition levels of the page */
    mrc_decoder values;
    mrc_parquet_dictionary dictionary;
    int64_t generation; /* number of dictionaries so far */
} mrc_parquet_reader;

/* Prepares for reading a column. Fails with MERCER_ERROR_FORMAT if values of this column cannot be read. The caller
   closes `out` even if this fails. */
mercer_status mrc_parquet_reader_open(mrc_parquet_reader *out, const mrc_parquet *file, int64_t column);
void mrc_parquet_reader_close(mrc_parquet_reader *reader);
/* Skips *skip rows and sets *skip to 0. Then decodes the values of the next rows: at least 1, at most `most`. */
mercer_status mrc_parquet_reader_next(mrc_parquet_reader *reader, int64_t most, int64_t *skip,
                                      mrc_parquet_batch *batch);

/* ---- Text of a value ------------------------------------------------------------------------------------------- */

enum { MRC_PARQUET_TEXT_CHARS = 128 };

/* Returns value i of a batch as text of *length bytes, as in a CSV file: "" if it is missing or NaN. The result is in
   `buffer`, unless the value itself is a text; then the result points to the value. */
const char *mrc_parquet_text(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i,
                             char buffer[MRC_PARQUET_TEXT_CHARS], int64_t *length);
/* Sets *value to the number that the text of value i would be read as. The value must not be missing. Returns false if
   the text must be parsed instead. */
bool mrc_parquet_number(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i, double *value);
/* Sets *days to the days that the text of value i would be read as. The value must not be missing. Returns false if the
   text must be parsed instead. */
bool mrc_parquet_days(const mrc_parquet_column *column, const mrc_parquet_batch *batch, int64_t i, double *days);

#endif
