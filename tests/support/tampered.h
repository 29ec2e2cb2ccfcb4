/* SPDX-License-Identifier: BSD-3-Clause */
/* Rewrites tensor files with one part changed and all checksums valid. */
#ifndef MRC_TESTS_TAMPERED_H
#define MRC_TESTS_TAMPERED_H

#include "support/training.h"

#include "model/tensor_file.h"

#include <jansson.h>

typedef enum damage { NONE, DROPPED, ROW_LESS, COLUMN_LESS, OTHER_TYPE, NOT_FINITE } damage;

typedef struct tampering {
    const char *name; /* name of the tensor or metadata string to change */
    damage what;
    const char *text;                                   /* new value of a metadata string; NULL: unchanged */
    void (*set)(const mercer_matrix *value, double to); /* changes the tensor's values; NULL: unchanged */
    double to;
} tampering;

static inline void tamper_tensor(mrc_tensor *one, const tampering *with)
{
    mercer_matrix *value = &one->value;
    if (with->what == ROW_LESS) value->rows--;
    if (with->what == COLUMN_LESS) value->cols--;
    if (with->what == OTHER_TYPE) one->stored = value->dtype == MERCER_F64 ? MERCER_F32 : MERCER_F64;
    for (int64_t j = 0; with->what == OTHER_TYPE && j < value->cols; j++) /* store 0 for non-finite values */
        if (!isfinite(mrc_load(value, 0, j))) data_store(value, 0, j, 0);
    if (with->what == NOT_FINITE) data_store(value, value->rows - 1, value->cols - 1, (double)NAN);
    if (with->set) with->set(value, with->to);
}

/* Copy the tensor file `from` to `to` with the change `with`. */
static inline void write_again(const char *from, const char *to, const tampering *with)
{
    enum { MOST = 60 };
    mrc_tensor tensors[MOST];
    mrc_metadata texts[MOST];
    int count = 0, entries = 0;
    mrc_tensor_file *file;
    int64_t length;
    const char *key;
    json_t *about;
    assert_succeeds(context, mrc_tensor_file_open(&file, context, from));
    const char *header = mrc_tensor_file_header(file, &length);
    json_t *root = json_loadb(header, (size_t)length, 0, NULL);
    json_object_foreach(json_object_get(root, "__metadata__"), key, about)
    {
        bool this = strcmp(key, with->name) == 0;
        if (strncmp(key, "xxh3.", 5) == 0 || (this && with->what == DROPPED)) continue;
        texts[entries++] = (mrc_metadata){key, this && with->text ? with->text : json_string_value(about)};
    }
    json_object_foreach(root, key, about)
    {
        mrc_tensor *one = &tensors[count];
        *one = (mrc_tensor){.name = key};
        bool this = strcmp(key, with->name) == 0;
        if (!mrc_tensor_file_find(file, key, &one->value) || (this && with->what == DROPPED)) continue;
        one->vector = json_array_size(json_object_get(about, "shape")) == 1;
        if (this) tamper_tensor(one, with);
        count++;
    }
    assert_succeeds(context, mrc_tensor_file_write(context, to, tensors, count, texts, entries));
    json_decref(root);
    mrc_tensor_file_close(file);
}

#endif
