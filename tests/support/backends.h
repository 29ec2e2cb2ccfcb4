/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a test on every backend of the registry, on each instruction set that changes its code. */
#ifndef MRC_TESTS_BACKENDS_H
#define MRC_TESTS_BACKENDS_H

#include "support/check.h"

#include "core/matrix.h"
#include "support/levels.h"

typedef void (*backend_test)(mrc_backend *backend);

/* Run the test for each backend, on every instruction set of this machine for which the backend has separate code. Skip
   a backend whose device is missing. */
static inline void for_each_backend(backend_test test)
{
    for (int b = 0; mrc_backend_registry[b]; b++) {
        const char *name = mrc_backend_registry[b]->name;
        for (int isa = 0; isa <= (int)mrc_isa_best(); isa++) {
            mercer_context context = {.threads = 2, .isa = (mrc_isa)isa};
            mrc_backend *backend = NULL;
            mercer_status status = mrc_backend_create(&backend, &context, name);
            if (is_left_out(mrc_backend_registry[b], status)) {
                print_message("    %s left out: %s\n", name, context.error);
                break;
            }
            assert_succeeds(&context, status);
            bool other = follows_level(backend);
            if (other) print_message("    %s %s\n", name, mrc_isa_name(context.isa));
            if (other) test(backend);
            mrc_backend_free(backend);
            assert_that(context.bytes_now == 0, "%s leaks %lld bytes", name, (long long)context.bytes_now);
            if (!other) break;
        }
    }
}

/* Value of the padding bytes between rows, which start ld elements apart. An operation must not change them. */
enum { SENTINEL_BYTE = 0x6b };

static inline void set_sentinels(const mercer_matrix *matrix)
{
    int64_t size = mrc_dtype_size(matrix->dtype);
    for (int64_t i = 0; i + 1 < matrix->rows; i++)
        memset((char *)mrc_row(matrix, i) + matrix->cols * size, SENTINEL_BYTE,
               (size_t)((matrix->ld - matrix->cols) * size));
}

static inline bool sentinels_intact(const mercer_matrix *matrix)
{
    int64_t size = mrc_dtype_size(matrix->dtype);
    for (int64_t i = 0; i + 1 < matrix->rows; i++) {
        const unsigned char *gap = (const unsigned char *)mrc_row(matrix, i) + matrix->cols * size;
        for (int64_t k = 0; k < (matrix->ld - matrix->cols) * size; k++)
            if (gap[k] != SENTINEL_BYTE) return false;
    }
    return true;
}

#endif
