/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps BLAS single-threaded while Mercer uses it. Only OpenBLAS has a setting; other libraries link without these
   symbols. */
#include "cpu/cpu.h"

#include <stdatomic.h>

extern void openblas_set_num_threads(int count) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));

static atomic_flag lock = ATOMIC_FLAG_INIT;
static int users;        /* guarded by lock */
static int threads_were; /* guarded by lock */

static void enter(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) continue;
}

static void leave(void)
{
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

void mrc_blas_begin(void)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    enter();
    if (users++ == 0) {
        threads_were = openblas_get_num_threads();
        if (threads_were != 1) openblas_set_num_threads(1);
    }
    leave();
}

void mrc_blas_end(void)
{
    if (!openblas_set_num_threads || !openblas_get_num_threads) return;
    enter();
    if (--users == 0 && threads_were != 1) openblas_set_num_threads(threads_were);
    leave();
}
