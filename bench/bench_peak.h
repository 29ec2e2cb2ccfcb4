/* SPDX-License-Identifier: BSD-3-Clause */
/* The peak rate of inner products on this machine: the rate of the library's micro-kernel on one thread, with panels in
   the first-level cache, times the number of threads. No product with these instructions is faster. */
#ifndef MERCER_BENCH_PEAK_H
#define MERCER_BENCH_PEAK_H

#include "bench.h"

#include "backends/cpu/micro/ukernels.h"

enum { BENCH_PEAK_DEPTH = 128, BENCH_PEAK_ROUNDS = 2000, BENCH_PEAK_BYTES = 1 << 16 };

typedef struct bench_panels {
    mrc_ukernels uk;
    mercer_dtype dtype;
    char *a, *c; /* BENCH_PEAK_BYTES each: both panels; the results */
} bench_panels;

static inline void bench_multiply_panels(void *argument)
{
    const bench_panels *self = argument;
    const void *b = self->a + BENCH_PEAK_BYTES / 2;
    for (int i = 0; i < BENCH_PEAK_ROUNDS; i++) {
        if (self->dtype == MERCER_U8)
            self->uk.dot_u8(BENCH_PEAK_DEPTH / 4, self->a, b, (int32_t *)(void *)(self->c + BENCH_PEAK_BYTES / 2),
                            (int32_t *)(void *)self->c);
        else if (self->dtype == MERCER_F64)
            self->uk.gemm_f64(BENCH_PEAK_DEPTH, (double *)(void *)self->a, b, (double *)(void *)self->c);
        else
            self->uk.gemm_f32(BENCH_PEAK_DEPTH, (float *)(void *)self->a, b, (float *)(void *)self->c);
    }
}

/* Return the peak in operations per second for points of type `dtype`; NaN if memory is insufficient. */
static inline double bench_peak(mercer_dtype dtype, int threads, int repeats)
{
    bench_panels self = {.uk = mrc_ukernels_for(mrc_isa_best()), .dtype = dtype};
    void *memory = NULL;
    if (posix_memalign(&memory, 64, 2 * (size_t)BENCH_PEAK_BYTES)) return 0.0 / 0.0;
    memset(memory, 0, 2 * (size_t)BENCH_PEAK_BYTES);
    self.a = memory, self.c = self.a + BENCH_PEAK_BYTES;
    const mrc_ukernels *uk = &self.uk;
    int area = dtype == MERCER_U8    ? uk->mr_u8 * uk->nr_u8
               : dtype == MERCER_F64 ? uk->mr_f64 * uk->nr_f64
                                     : uk->mr_f32 * uk->nr_f32;
    /* Bytes in groups of 2 are stored as words of 16 bits: 32 bits hold two features instead of four. */
    double depth = BENCH_PEAK_DEPTH / (dtype == MERCER_U8 && uk->group_u8 == 2 ? 2 : 1);
    double seconds = bench_time(bench_multiply_panels, &self, repeats).best;
    free(memory);
    return 2 * depth * area * BENCH_PEAK_ROUNDS * threads / seconds;
}

#endif
