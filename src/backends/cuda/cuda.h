/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cuda: products and dense algebra on an NVIDIA GPU.
 *
 * The files here run on the host: memory, copies, the loops over blocks, cuBLAS and cuSOLVER (libraries.h, loaded when
 * a backend is made). Code of the device is in device/, products in half precision in half_precision/. Here: the
 * backend's state, device memory and operands, and the operations that its files give to its table.
 */
#ifndef MRC_BACKENDS_CUDA_CUDA_H
#define MRC_BACKENDS_CUDA_CUDA_H

#include "backends/backend.h"
#include "backends/cuda/device/launch.h"
#include "backends/cuda/libraries.h"
#include "core/threads/background.h"

#include <stdatomic.h>

enum { MRC_CUDA_NAME = 320, MRC_CUDA_WIDE = 17 /* columns from which on products in half precision go by tiles */ };

/* One block of device memory, and what the context counts for it. */
typedef struct mrc_cuda_block {
    char *memory;
    int64_t bytes;
} mrc_cuda_block;

enum { MRC_CUDA_RING_PARTS = 4, MRC_CUDA_RING_PART = 2 << 20 };

/* Page-locked memory through which small things pass (stage.c). */
typedef struct mrc_cuda_ring_memory {
    char *memory;
    int part;
    int64_t used;                          /* bytes of the part */
    cudaEvent_t done[MRC_CUDA_RING_PARTS]; /* the copies out of it */
} mrc_cuda_ring_memory;

/* Where points or targets of a batch lie on their way; of two batches: one is sent while the other is used. */
enum { MRC_CUDA_SLOTS = 4 };
typedef struct mrc_cuda_slot {
    mrc_cuda_block device;
    char *locked; /* page-locked memory of the host */
    int64_t locked_bytes;
    cudaEvent_t used, ready; /* computing with it is over; the copy is there */
} mrc_cuda_slot;

typedef struct mrc_cuda {
    int device;
    char name[MRC_CUDA_NAME];    /* "NVIDIA H200, sm_90" */
    uint64_t place;              /* a number of this GPU among all there are */
    bool hopper;                 /* has the instructions of the fused product */
    int difference_columns;      /* of W that a product of differences takes at a time */
    int *overflow;               /* host memory that kernels write to: a coordinate did not fit a half */
    cudaStream_t stream, copies; /* of all computing; of batches on their way to the device */
    cudaMemPool_t pool;
    mrc_cuda_ring_memory ring;
    mrc_cuda_slot slots[MRC_CUDA_SLOTS];
    int turn; /* which slot is next */
    mrc_cuda_libraries libraries;
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    mrc_background *warming; /* a thread that has the libraries load what they will need; or NULL */
    atomic_bool ending;      /* told to it */
    double device_seconds, library_seconds;
    mrc_cuda_block *blocks; /* what alloc gave out */
    int64_t count, room;
    /* Scratch of the running operation: pieces of one block; a call that outgrows it gets further blocks, and when
       nothing is in use any more they become one. */
    mrc_cuda_block scratch[16];
    int scratches;
    int64_t used, needed; /* bytes of the last block; of all of them */
} mrc_cuda;

static inline mrc_cuda *mrc_cuda_of(const mrc_backend *backend)
{
    return backend->state;
}

/* The calling thread's work goes to the backend's device from here on: which one is current is a thread's own affair,
   and threads may work on different ones. A failure shows in the work that follows. */
static inline void mrc_cuda_select(const mrc_backend *backend)
{
    cudaSetDevice(mrc_cuda_of(backend)->device);
}

/* Turns an error of the CUDA runtime into a status with a message; MERCER_OK for cudaSuccess. */
mercer_status mrc_cuda_check(mrc_backend *backend, cudaError_t error, const char *what);

#define MRC_CUDA_TRY(backend, call) MRC_TRY(mrc_cuda_check(backend, call, #call))

/* The operations of its table, by the files that have them. */
/* clang-format off */
#define MRC_CUDA_OPERATIONS(X)                                                                              \
    X(cuda, alloc) X(cuda, free) X(cuda, sync) X(cuda, clear) X(cuda, free_memory)    /* cuda_memory.c */    \
    X(cuda, copy) X(cuda, stage)                                                      /* operands.c, stage.c */ \
    X(cuda, kernel_matmul) X(cuda, kernel_forward) X(cuda, kernel_transpose)          /* cuda_product.c */   \
    X(cuda, kernel_eval) X(cuda, nearest_rows)                                                              \
    X(cuda, kernel_diagonal) X(cuda, work_bytes)                       /* diagonal.c, footprint.c */ \
    X(cuda, gemm) X(cuda, eigen_top) X(cuda, cholesky) X(cuda, triangular_solve)      /* cuda_dense.c */     \
    X(cuda, split_gemm)                                                 /* half_precision/split_gemm.c */    \
    X(cuda, invert)                                                                   /* cuda_inverse.c */   \
    X(cuda, gather_rows) X(cuda, scatter_rows) X(cuda, scatter_add_rows)              /* cuda_vectors.c */   \
    X(cuda, axpby) X(cuda, scale_rows)                                                                      \
    X(cuda, scale_columns) X(cuda, add_columns) X(cuda, round_half) X(cuda, symmetrise) X(cuda, column_dots) \
    X(cuda, column_mean) X(cuda, row_sqnorms) X(cuda, affine) X(cuda, draw_normals) X(cuda, change_rows)    \
    X(cuda, row_losses) X(cuda, feature_sums)                                                               \
    X(cuda, check_memory) X(cuda, wait) X(cuda, scan)                                 /* callers.c */         \
    X(cuda, pack_create) X(cuda, pack_rows) X(cuda, pack_free) X(cuda, gemm_baseline) /* half_precision/ */  \
    X(cuda, gains_by_half)
/* clang-format on */
MRC_CUDA_OPERATIONS(MRC_DECLARE_OPERATION)

/* ---- cuda_memory.c ---------------------------------------------------------------------------------------------- */

/* A block of its own, counted, and its end. */
mercer_status mrc_cuda_take(mrc_backend *backend, mrc_cuda_block *block, int64_t bytes, const char *what);
void mrc_cuda_give(mrc_backend *backend, mrc_cuda_block *block);
void mrc_cuda_release_all(mrc_backend *backend);
/* Room in the list of blocks for one more. */
mercer_status mrc_cuda_make_room(mrc_backend *backend);

/*
 * Scratch: an operation begins with MRC_CUDA_SCRATCH and pushes pieces, which are given back when it returns, whichever
 * way it does; so operations nest. Pieces are 256-byte aligned and not cleared.
 */
typedef struct mrc_cuda_mark {
    mrc_backend *backend;
    int scratches;
    int64_t used;
} mrc_cuda_mark;

#define MRC_CUDA_SCRATCH(backend) __attribute__((cleanup(mrc_cuda_end))) mrc_cuda_mark mark = mrc_cuda_begin(backend)
mrc_cuda_mark mrc_cuda_begin(mrc_backend *backend);
void mrc_cuda_end(mrc_cuda_mark *mark);
/* out: the address of a pointer to whatever lies there. */
mercer_status mrc_cuda_push(mrc_backend *backend, void *out, int64_t bytes);

/* ---- stage.c ---------------------------------------------------------------------------------------------------- */

mercer_status mrc_cuda_open_staging(mrc_backend *backend);
void mrc_cuda_close_staging(mrc_backend *backend);
/* Room for at most MRC_CUDA_RING_PART bytes, for a copy that the stream is given next. */
mercer_status mrc_cuda_ring(mrc_backend *backend, int64_t bytes, void **out);
/* The same elements, both in host memory, by all threads. */
void mrc_cuda_copy_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
/* To the device, and from it, through the ring; a row is not larger than a part. The host's memory is free, or filled,
   when they return. */
mercer_status mrc_cuda_send_large(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
mercer_status mrc_cuda_fetch_large(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);

/* ---- warming.c -------------------------------------------------------------------------------------------------- */

/* Begins in a thread, while the host reads and packs: what libraries load when a function is first called. Nothing
   waits for it, and nothing fails with it. */
void mrc_cuda_start_warming(mrc_backend *backend);

/* ---- operands.c ------------------------------------------------------------------------------------------------- */

/* Where memory that is not described by a view lies. */
mrc_memory mrc_cuda_memory_of(const void *memory);
/* One copy that is queued, by rows only where rows have gaps. */
mercer_status mrc_cuda_queue_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
/* A contiguous piece of scratch as a view. */
mercer_status mrc_cuda_scratch(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                               mercer_dtype dtype);
/* *out: the operand itself if it lies on the device, else a copy of it in scratch. */
mercer_status mrc_cuda_read(mrc_backend *backend, const mercer_matrix *operand, mercer_matrix *out);
/* The same for a result: written back by mrc_cuda_write_back. content: copied in first, because it is read too. */
mercer_status mrc_cuda_write(mrc_backend *backend, const mercer_matrix *operand, bool content, mercer_matrix *out);
mercer_status mrc_cuda_write_back(mrc_backend *backend, const mercer_matrix *operand, const mercer_matrix *device);
/* Host arrays to scratch, and scratch to host arrays (the latter waits for the device). */
mercer_status mrc_cuda_upload(mrc_backend *backend, void *out, const void *host, int64_t bytes);
mercer_status mrc_cuda_download(mrc_backend *backend, void *host, const void *device, int64_t bytes);

/* ---- cuda_vectors.c --------------------------------------------------------------------------------------------- */

/* The column means (d) of a matrix on the device, in scratch. */
mercer_status mrc_cuda_device_mean(mrc_backend *backend, const mercer_matrix *x, double **mean);

/* ---- cuda_dense.c ----------------------------------------------------------------------------------------------- */

/* dots (rows, ld) = A B' of packed rows (rows, width), (cols, width) on the device. */
mercer_status mrc_cuda_dots(mrc_backend *backend, mrc_cuda_arithmetic arithmetic, int64_t rows, int64_t cols,
                            int64_t width, const void *a, const void *b, void *dots, int64_t ld);

/* ---- cuda_differences.c ------------------------------------------------------------------------------------------ */

/* Whether Y = K(X, Z) W is done from differences in one kernel. k: (m, columns) f32 on the device, where the first
   columns of K are left; or no columns. */
bool mrc_cuda_uses_differences(const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y);
mercer_status mrc_cuda_multiply_differences(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                            const mercer_matrix *y, bool add, const mercer_matrix *k);
int64_t mrc_cuda_differences_bytes(const mrc_backend *backend, const mrc_extent *work);

/* ---- half_precision/half_precision.c ---------------------------------------------------------------------------- */

/* Whether Y = K(X, Z) W may and can be done by the fused product in half precision or bytes. */
bool mrc_cuda_uses_half(const mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                        const mercer_matrix *y);
mercer_status mrc_cuda_half_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add);

/* Of a fast pair: forward that keeps K in half precision, and H = K(Z, X) G for the columns that were kept. */
mercer_status mrc_cuda_half_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_kept *kept);
mercer_status mrc_cuda_half_transpose(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_kept *kept);

#endif
