/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thrift's compact protocol, in which Parquet files store their metadata.
 *
 * A reader never fails: the first value that is not valid sets `bad` and ends the input, so loops end, too. The caller
 * checks `bad` once, after the last value. Every element takes at least one byte, so a count that the input claims
 * cannot make a loop longer than the input.
 */
#ifndef MRC_DATA_PARQUET_THRIFT_H
#define MRC_DATA_PARQUET_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mrc_thrift {
    const uint8_t *at, *end; /* rest of the input */
    int depth;               /* nesting of structs and lists at `at` */
    bool bad;                /* a value was not valid */
} mrc_thrift;

typedef struct mrc_thrift_field {
    int64_t id; /* 0 before the first field of a struct */
    int type;
} mrc_thrift_field;

/* Reads an unsigned integer of variable length. */
uint64_t mrc_thrift_unsigned(mrc_thrift *thrift);
/* Undoes the zigzag encoding of a signed integer. */
static inline int64_t mrc_zigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
/* Begins a struct. `type` is the type of the field; returns false if that is not a struct. */
bool mrc_thrift_begin(mrc_thrift *thrift, int type);
/* Reads the header of the next field. At the end of the struct, leaves the struct and returns false. */
bool mrc_thrift_next(mrc_thrift *thrift, mrc_thrift_field *field);
/* Reads an integer or a boolean (0 or 1). */
int64_t mrc_thrift_integer(mrc_thrift *thrift, int type);
/* Reads a text. *text points into the input. */
void mrc_thrift_text(mrc_thrift *thrift, int type, const char **text, int64_t *length);
/* Reads the header of a list and returns its number of elements, at most the number of bytes left. */
int64_t mrc_thrift_list(mrc_thrift *thrift, int type, int *element);
/* Skips a value of any type. */
void mrc_thrift_skip(mrc_thrift *thrift, int type);

#endif
