/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps BLAS single-threaded while Mercer uses it. This is implemented only for OpenBLAS: with other libraries the weak
   symbols are NULL. The setting is global to the process: the first user changes it, the last one restores it. */
#include "backends/cpu/cpu.h"

#include "core/threads/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

extern void openblas_set_num_threads(int count) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));

/* Thread count to restore; used only by the two functions below, which never run concurrently. */
static int threads_were;

/* Set BLAS to one thread. `unclosed`: BLAS is already single-threaded, and the count to restore must not change. */
static void take_threads(bool unclosed)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    if (!unclosed) threads_were = openblas_get_num_threads();
    if (threads_were != 1) openblas_set_num_threads(1);
}

/* Restore the thread count that BLAS had before. */
static void give_threads_back(void)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    if (threads_were != 1) openblas_set_num_threads(threads_were);
}

/* Size of the buffer that OpenBLAS 0.3 allocates per thread in its first call on x86-64. */
enum { BUFFER_BYTES = 128 << 20 };

static atomic_bool has_buffer; /* OpenBLAS never releases its buffer, so one check is enough */

mercer_status mrc_blas_begin(mercer_context *context)
{
    if (openblas_set_num_threads && !atomic_load(&has_buffer)) {
        void *buffer = malloc(BUFFER_BYTES); /* tests whether the allocation is possible; never touched */
        if (!buffer)
            return mrc_fail(context, MERCER_ERROR_MEMORY,
                            "LAPACK needs %d bytes of address space for a buffer; raise the limit (ulimit -v)",
                            BUFFER_BYTES);
        free(buffer);
        atomic_store(&has_buffer, true);
    }
    mrc_section_enter(take_threads);
    return MERCER_OK;
}

void mrc_blas_end(void)
{
    mrc_section_leave(give_threads_back);
}
