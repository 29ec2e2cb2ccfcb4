/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any text as a schema, which then converts some cells to features. */
#include "fuzz/fuzz.h"

#include "data/schema/schema.h"

#include <math.h>

enum { ROWS = 3, MOST_COLUMNS = 64, MOST_FEATURES = 4096 };

/* Encode cells, some of them missing: no feature may be NaN, and features that are not values must be 0 or 1. */
static void encode(const mrc_schema *schema)
{
    float *cells = malloc(sizeof(float) * ROWS * MOST_COLUMNS),
          *features = malloc(sizeof(float) * ROWS * MOST_FEATURES);
    mrc_role roles[MOST_FEATURES];
    if (schema->used <= MOST_COLUMNS && schema->features <= MOST_FEATURES) {
        for (int64_t i = 0; i < ROWS * schema->used; i++) cells[i] = i % 5 == 4 ? (float)NAN : (float)(i - 2);
        mercer_matrix from = mrc_view(cells, ROWS, schema->used, MERCER_F32);
        mercer_matrix to = mrc_view(features, ROWS, schema->features, MERCER_F32);
        mrc_schema_encode(schema, &from, &to);
        mrc_schema_roles(schema, roles);
        for (int64_t i = 0; i < ROWS; i++)
            for (int64_t j = 0; j < schema->features; j++) {
                double value = mrc_load(&to, i, j);
                if (isnan(value) || (roles[j] != MRC_ROLE_VALUE && value != 0 && value != 1)) abort();
            }
    }
    free(cells), free(features);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mrc_schema *schema = NULL;
    void *names = NULL;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    mercer_status status = mrc_schema_read(&schema, fuzz_context(), text);
    if (status == MERCER_OK) {
        encode(schema);
        if (mrc_schema_feature_names(schema, &names) != MERCER_OK) abort();
        for (int64_t j = 0; names && j < schema->features; j++) (void)strlen(((const char **)names)[j]);
        mrc_free(fuzz_context(), names);
    } else if (strchr(mercer_last_error(fuzz_context()), '\n')) {
        abort();
    }
    mrc_schema_free(schema);
    free(text);
    return 0;
}
