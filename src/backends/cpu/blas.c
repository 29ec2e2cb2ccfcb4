/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps BLAS single-threaded while Mercer uses it. Only OpenBLAS has a setting; other libraries link without these
   symbols. The setting is one for the process: the first user makes it, the last one undoes it. */
#include "backends/cpu/cpu.h"

#include "core/threads/parallel.h"

#include <stdatomic.h>
#include <stdlib.h>

extern void openblas_set_num_threads(int count) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));

static int threads_were; /* written and read by the two functions below, which never run at the same time */

static void take_threads(bool again)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    if (!again) threads_were = openblas_get_num_threads();
    if (threads_were != 1) openblas_set_num_threads(1);
}

static void give_threads_back(void)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    if (threads_were != 1) openblas_set_num_threads(threads_were);
}

/* What OpenBLAS 0.3 takes for a thread at its first call, on x86-64. */
enum { BUFFER_BYTES = 128 << 20 };

static atomic_bool has_buffer; /* it keeps the one it got */

mercer_status mrc_blas_begin(mercer_context *context)
{
    if (openblas_set_num_threads && !atomic_load(&has_buffer)) {
        void *room = malloc(BUFFER_BYTES); /* only asked for, never touched */
        if (!room)
            return mrc_fail(context, MERCER_ERROR_MEMORY,
                            "LAPACK needs %d bytes of address space for a buffer: raise the limit (ulimit -v)",
                            BUFFER_BYTES);
        free(room);
        atomic_store(&has_buffer, true);
    }
    mrc_section_enter(take_threads);
    return MERCER_OK;
}

void mrc_blas_end(void)
{
    mrc_section_leave(give_threads_back);
}
