/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the form "name:parameter=value,...": one reader for kernels, preprocessings, synthetic data and
   augmentations. */
#ifndef MRC_CORE_SPEC_H
#define MRC_CORE_SPEC_H

#include "core/context.h"

#include <stdbool.h>

enum { MRC_SPEC_PARAMETERS = 6, MRC_SPEC_WORD = 64 };

/* What a parameter's field is: a double, an int32_t, or a char[MRC_SPEC_WORD]. */
typedef enum mrc_parameter_kind { MRC_REAL, MRC_WHOLE, MRC_WORD } mrc_parameter_kind;

/* One parameter: where its field lies in the object, and which values are valid: low < value (or <=) and value <=
   high. */
typedef struct mrc_parameter {
    const char *name;
    size_t offset;
    mrc_parameter_kind kind;
    bool required;
    bool low_included;
    double low, high;
    double fallback; /* when not given and not required; a word is then "" */
} mrc_parameter;

/* One name with its parameters, up to the first without a name. */
typedef struct mrc_spec_form {
    const char *name;
    const char *example;
    mrc_parameter parameters[MRC_SPEC_PARAMETERS];
} mrc_spec_form;

/* A list of `count` structs, `stride` bytes apart, each of which begins with an mrc_spec_form. */
typedef struct mrc_spec_grammar {
    const char *what;     /* for messages: "kernel" */
    mercer_status status; /* of a text that is not understood */
    const void *forms;
    size_t stride;
    int count;
} mrc_spec_grammar;

/*
 * Reads a text into an object: *index tells which form it names, and the fields of that form's parameters are set. A
 * failure says what is valid, and what may have been meant. What the fields were is lost then.
 */
mercer_status mrc_spec_read(mercer_context *context, const mrc_spec_grammar *grammar, const char *text, void *object,
                            int *index);
/* NULL if the form has no parameter of that name. */
const mrc_parameter *mrc_spec_parameter(const mrc_spec_form *form, const char *name);

/* The number in a parameter's field; not for words. */
double mrc_parameter_get(const void *object, const mrc_parameter *parameter);
void mrc_parameter_set(void *object, const mrc_parameter *parameter, double value);
bool mrc_parameter_valid(const mrc_parameter *parameter, double value);
/* "> 0", ">= 1 and <= 64, whole" */
void mrc_parameter_range(const mrc_parameter *parameter, char *text, size_t size);

/* Keeps the name if it is nearer to the word than the best so far (`fewest` letters off; INT_MAX at first) and not too
   far off to be meant. */
void mrc_consider_name(const char *word, const char *name, const char **best, int *fewest);

/* Bytes of the UTF-8 character at text; 0 if there is none: cut short, overlong, a surrogate, beyond U+10FFFF. */
int mrc_utf8_length(const unsigned char *text);

/* The shortest decimal that reads back to the same double, with a point whatever the locale; 10, not 1e+01. */
void mrc_print_number(double value, char *text, size_t size);
void mrc_print_single(float value, char *text, size_t size); /* the same for a float */
/* A number in C notation whatever the locale's decimal point is; false unless the whole word is one, and finite. */
bool mrc_scan_number(const char *word, double *value);

#endif
