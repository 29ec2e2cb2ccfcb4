/* SPDX-License-Identifier: BSD-3-Clause */
/* Specifications of the form "name:parameter=value,...": one parser for kernels, preprocessings, synthetic data and
   augmentations. */
#ifndef MRC_CORE_SPEC_H
#define MRC_CORE_SPEC_H

#include "core/context.h"

#include <stdbool.h>

enum { MRC_SPEC_PARAMETERS = 6, MRC_SPEC_WORD = 64 };

/* Type of a parameter's field: double, int32_t, or char[MRC_SPEC_WORD]. */
typedef enum mrc_parameter_kind { MRC_REAL, MRC_WHOLE, MRC_WORD } mrc_parameter_kind;

/* A parameter: the offset of its field in the object, and its range: low < value <= high, or low <= value <= high if
   low_included. */
typedef struct mrc_parameter {
    const char *name;
    size_t offset;
    mrc_parameter_kind kind;
    bool required;
    bool low_included;
    double low, high;
    double fallback; /* default of an optional parameter; words default to "" */
} mrc_parameter;

/* One name with its parameters; the list ends at the first parameter without a name. */
typedef struct mrc_spec_form {
    const char *name;
    /* valid specification for messages. It begins with the name; if the name is an old one, which messages do not list,
       the example begins with the new name */
    const char *example;
    mrc_parameter parameters[MRC_SPEC_PARAMETERS];
} mrc_spec_form;

/* All valid forms: an array of `count` structs of `stride` bytes, each beginning with an mrc_spec_form. */
typedef struct mrc_spec_grammar {
    const char *what;     /* noun for messages, e.g. "kernel" */
    mercer_status status; /* status of a failure to parse */
    const void *forms;
    size_t stride;
    int count;
} mrc_spec_grammar;

/*
 * Parses a string into an object: sets *index to the index of the named form, and sets the fields of that form's
 * parameters. Error messages list the valid names or parameters and suggest a similar name. The fields are undefined
 * after a failure.
 */
mercer_status mrc_spec_read(mercer_context *context, const mrc_spec_grammar *grammar, const char *text, void *object,
                            int *index);
/* Finds a parameter of a form by name; NULL if there is none. */
const mrc_parameter *mrc_spec_parameter(const mrc_spec_form *form, const char *name);

/* Get and set the number in a parameter's field (not for words), and check a value against its range. */
double mrc_parameter_get(const void *object, const mrc_parameter *parameter);
void mrc_parameter_set(void *object, const mrc_parameter *parameter, double value);
bool mrc_parameter_valid(const mrc_parameter *parameter, double value);
/* Describes the range for messages: "> 0", ">= 1 and <= 64, whole". */
void mrc_parameter_range(const mrc_parameter *parameter, char *text, size_t size);

/* Considers `name` as a suggestion for a misspelled word. If their edit distance is below *fewest and at most half of
   the name's length, sets *best to `name` and *fewest to the distance. Before the first call, set *fewest to a large
   number. */
void mrc_consider_name(const char *word, const char *name, const char **best, int *fewest);

/* Returns the length in bytes of the UTF-8 character at text; 0 if it is invalid: incomplete, overlong, a surrogate, or
   above U+10FFFF. */
int mrc_utf8_length(const unsigned char *text);

/* Prints the shortest decimal number that reads back as the same double, with a decimal point in any locale. Whole
   numbers below 1e15 are printed without an exponent (10, not 1e+01). */
void mrc_print_number(double value, char *text, size_t size);
void mrc_print_single(float value, char *text, size_t size); /* the same for a float */
/* Reads a number in C notation, in any locale. Returns false unless the whole word is a finite number. */
bool mrc_scan_number(const char *word, double *value);

#endif
