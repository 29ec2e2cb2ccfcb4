/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backends/cuda: kernel products and dense linear algebra on an NVIDIA GPU.
 *
 * The files in this folder run on the host: memory, copies, loops over blocks, and calls of cuBLAS and cuSOLVER
 * (libraries.h, loaded when a backend is created). Device code is in device/, products in half precision are in
 * half_precision/. This header declares the backend's state, device memory and operands, and the operations that the
 * files contribute to the backend's table.
 */
#ifndef MRC_BACKENDS_CUDA_CUDA_H
#define MRC_BACKENDS_CUDA_CUDA_H

#include "backends/backend.h"
#include "backends/cuda/device/launch.h"
#include "backends/cuda/libraries.h"
#include "core/threads/background.h"

#include <stdatomic.h>

/* MRC_CUDA_NAME: capacity of a string with the device's name, up to 255 characters, and its compute capability. */
enum { MRC_CUDA_NAME = 320, MRC_CUDA_WIDE = 17 /* minimum columns of W for half-precision products by tiles */ };

/* A block of device memory and its size as counted by the context. */
typedef struct mrc_cuda_block {
    char *memory;
    int64_t bytes;
} mrc_cuda_block;

/* Number of parts of the ring and bytes per part: 8 MB of page-locked memory per backend. */
enum { MRC_CUDA_RING_PARTS = 4, MRC_CUDA_RING_PART = 2 << 20 };

/* Page-locked staging memory for copies between host and device: a ring of parts of fixed size (stage.c). */
typedef struct mrc_cuda_ring_memory {
    char *memory;
    int part;                              /* index of the part in use */
    int64_t used;                          /* bytes used in that part */
    cudaEvent_t done[MRC_CUDA_RING_PARTS]; /* per part: recorded after its last copy */
} mrc_cuda_ring_memory;

/* Staging buffers for the points and targets of two batches: one batch is copied while the other is used. Both buffers
   of a slot have locked_bytes bytes or more. */
enum { MRC_CUDA_SLOTS = 4 };
typedef struct mrc_cuda_slot {
    mrc_cuda_block device;
    char *locked; /* page-locked host buffer */
    int64_t locked_bytes;
    cudaEvent_t used, ready; /* events: the computation with the slot is done; the copy to the device is done */
} mrc_cuda_slot;

typedef struct mrc_cuda {
    int device;
    char name[MRC_CUDA_NAME];    /* "NVIDIA H200, sm_90" */
    uint64_t place;              /* hash of the GPU's UUID: identifies the GPU across processes */
    bool hopper;                 /* whether the GPU has the instructions of the fused product */
    int difference_columns;      /* columns of W per pass of a product of differences */
    int *overflow;               /* flag in mapped host memory, set by kernels: a coordinate does not fit a half */
    cudaStream_t stream, copies; /* for all computation; for copies of batches to the device */
    cudaMemPool_t pool;
    mrc_cuda_ring_memory ring;
    mrc_cuda_slot slots[MRC_CUDA_SLOTS];
    int turn; /* index of the next slot */
    mrc_cuda_libraries libraries;
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
    mrc_background *warming; /* thread that makes the libraries load their kernels early (warming.c), or NULL */
    atomic_bool ending;      /* stop request to that thread */
    double device_seconds, library_seconds; /* time that create spent on opening the device, on loading libraries */
    mrc_cuda_block *blocks;                 /* blocks that mrc_cuda_alloc returned and that are not freed yet */
    int64_t count, capacity;                /* number of these blocks, capacity of the list */
    /* Scratch of the running operation: pieces of the last block. When the last block is full, another block is
       allocated. When the outermost operation ends, several blocks are replaced by one block of their total size. */
    mrc_cuda_block scratch[16];
    int scratches;        /* number of scratch blocks */
    int64_t used, needed; /* bytes used in the last block; total size of all scratch blocks */
} mrc_cuda;

static inline mrc_cuda *mrc_cuda_of(const mrc_backend *backend)
{
    return backend->state;
}

/* Makes the backend's device current for the calling thread. CUDA has one current device per thread, and threads may
   use different devices. The calls that follow report an error of cudaSetDevice. */
static inline void mrc_cuda_select(const mrc_backend *backend)
{
    cudaSetDevice(mrc_cuda_of(backend)->device);
}

/* Converts a CUDA runtime error to a status with a message; MERCER_OK for cudaSuccess. what: text of the call. */
mercer_status mrc_cuda_check(mrc_backend *backend, cudaError_t error, const char *what);

#define MRC_CUDA_TRY(backend, call) MRC_TRY(mrc_cuda_check(backend, call, #call))

/* The operations of the backend's table, grouped by the file that defines them. */
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
    X(cuda, scale_columns) X(cuda, add_columns) X(cuda, round_half) X(cuda, symmetrize) X(cuda, column_dots) \
    X(cuda, column_mean) X(cuda, row_sqnorms) X(cuda, affine) X(cuda, draw_normals) X(cuda, change_rows)    \
    X(cuda, row_losses) X(cuda, feature_sums)                                                               \
    X(cuda, check_memory) X(cuda, wait) X(cuda, scan)                                 /* callers.c */         \
    X(cuda, pack_create) X(cuda, pack_rows) X(cuda, pack_free) X(cuda, gemm_baseline) /* half_precision/ */  \
    X(cuda, gains_by_half)
/* clang-format on */
MRC_CUDA_OPERATIONS(MRC_DECLARE_OPERATION)

/* ---- cuda_memory.c ---------------------------------------------------------------------------------------------- */

/* mrc_cuda_take allocates a block of at least `bytes` and counts it in the context; `what` names its purpose in the
   error message. mrc_cuda_give frees a block; a block without memory is ignored. */
mercer_status mrc_cuda_take(mrc_backend *backend, mrc_cuda_block *block, int64_t bytes, const char *what);
void mrc_cuda_give(mrc_backend *backend, mrc_cuda_block *block);
/* Frees all blocks, scratch included, and waits for the stream. */
void mrc_cuda_release_all(mrc_backend *backend);
/* Ensures that the list of blocks has capacity for one more. */
mercer_status mrc_cuda_reserve_block(mrc_backend *backend);

/*
 * Scratch: an operation begins with MRC_CUDA_SCRATCH and then pushes pieces. The pieces are released when the function
 * returns, on every path, so operations may nest. Pieces are 256-byte aligned and not cleared.
 */
typedef struct mrc_cuda_mark {
    mrc_backend *backend;
    int scratches;
    int64_t used;
} mrc_cuda_mark;

#define MRC_CUDA_SCRATCH(backend) __attribute__((cleanup(mrc_cuda_end))) mrc_cuda_mark mark = mrc_cuda_begin(backend)
mrc_cuda_mark mrc_cuda_begin(mrc_backend *backend);
void mrc_cuda_end(mrc_cuda_mark *mark);
/* Allocates `bytes` of scratch. out: the address of a pointer of any type, which is set to the piece. */
mercer_status mrc_cuda_push(mrc_backend *backend, void *out, int64_t bytes);

/* ---- stage.c ---------------------------------------------------------------------------------------------------- */

/* Create and destroy the copy stream, the ring, and the events of the ring and the slots. */
mercer_status mrc_cuda_open_staging(mrc_backend *backend);
void mrc_cuda_close_staging(mrc_backend *backend);
/* Sets *out to `bytes` (up to MRC_CUDA_RING_PART) bytes of the ring. The caller must queue the copy from or to this
   memory on the stream before the next call. Waits if the ring is full. */
mercer_status mrc_cuda_ring(mrc_backend *backend, int64_t bytes, void **out);
/* Copies rows between host matrices of the same shape and dtype, with all threads. */
void mrc_cuda_copy_rows(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
/* Copy to the device (send) or from the device (fetch) through the ring; a row must not be larger than
   MRC_CUDA_RING_PART. On return the caller may reuse the host memory (send), or the host memory is filled (fetch). */
mercer_status mrc_cuda_send_large(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
mercer_status mrc_cuda_fetch_large(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);

/* ---- warming.c -------------------------------------------------------------------------------------------------- */

/* Starts a thread that makes cuBLAS and cuSOLVER load their kernels while the host reads and packs samples. Operations
   do not wait for this thread, and its errors are ignored. */
void mrc_cuda_start_warming(mrc_backend *backend);

/* ---- operands.c ------------------------------------------------------------------------------------------------- */

/* Returns the kind of memory, host or device, that a pointer refers to. */
mrc_memory mrc_cuda_memory_of(const void *memory);
/* Queues one copy between matrices of the same shape and dtype; a 2-D copy only if rows are not contiguous. */
mercer_status mrc_cuda_queue_copy(mrc_backend *backend, const mercer_matrix *to, const mercer_matrix *from);
/* Allocates a contiguous piece of scratch; *out becomes a view of it. */
mercer_status mrc_cuda_scratch(mrc_backend *backend, mercer_matrix *out, int64_t rows, int64_t cols,
                               mercer_dtype dtype);
/* Sets *out to the operand itself if it is on the device, otherwise to a copy of the operand in scratch. */
mercer_status mrc_cuda_read(mrc_backend *backend, const mercer_matrix *operand, mercer_matrix *out);
/* Sets *out to the result itself if it is on the device, otherwise to scratch that mrc_cuda_write_back copies to the
   host. content: copy the operand to the device first, because the operation also reads the operand. */
mercer_status mrc_cuda_write(mrc_backend *backend, const mercer_matrix *operand, bool content, mercer_matrix *out);
mercer_status mrc_cuda_write_back(mrc_backend *backend, const mercer_matrix *operand, const mercer_matrix *device);
/* upload: copy a host array to new scratch, and store its address in the pointer at `out`. download: copy a device
   array to the host, after waiting for the device. */
mercer_status mrc_cuda_upload(mrc_backend *backend, void *out, const void *host, int64_t bytes);
mercer_status mrc_cuda_download(mrc_backend *backend, void *host, const void *device, int64_t bytes);

/* ---- cuda_vectors.c --------------------------------------------------------------------------------------------- */

/* Computes the column means (d) of a matrix on the device and sets *mean to their address in scratch. */
mercer_status mrc_cuda_device_mean(mrc_backend *backend, const mercer_matrix *x, double **mean);

/* ---- cuda_dense.c ----------------------------------------------------------------------------------------------- */

/* dots (rows, ld) = A B' of packed rows (rows, width), (cols, width) on the device. */
mercer_status mrc_cuda_dots(mrc_backend *backend, mrc_cuda_arithmetic arithmetic, int64_t rows, int64_t cols,
                            int64_t width, const void *a, const void *b, void *dots, int64_t ld);

/* ---- cuda_differences.c ------------------------------------------------------------------------------------------ */

/* Returns whether a single CUDA kernel can compute Y = K(X, Z) W from differences. */
bool mrc_cuda_uses_differences(const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y);
/* Computes Y = K(X, Z) W, or Y += if add. k (m, columns) f32, on the device: receives the first columns of K; columns
   may be 0. */
mercer_status mrc_cuda_multiply_differences(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                            const mercer_matrix *y, bool add, const mercer_matrix *k);
/* Returns an upper bound, in bytes, of the scratch of mrc_cuda_multiply_differences. */
int64_t mrc_cuda_differences_bytes(const mrc_backend *backend, const mrc_extent *work);

/* ---- half_precision/half_precision.c ---------------------------------------------------------------------------- */

/* Returns whether Y = K(X, Z) W is computed in half precision or bytes: the pair allows it, and the kernel has a half
   form. */
bool mrc_cuda_uses_half(const mrc_pair *pair, const mercer_matrix *w, const mercer_matrix *y);
mercer_status mrc_cuda_half_matmul(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                   const mercer_matrix *y, bool add);

/* For pairs that mrc_cuda_uses_half accepts: kernel_forward, which saves K in half precision, and H = K(Z, X) G for the
   saved columns. */
mercer_status mrc_cuda_half_forward(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *w,
                                    const mercer_matrix *f, mrc_cached_block *cached);
mercer_status mrc_cuda_half_transpose(mrc_backend *backend, const mrc_pair *pair, const mercer_matrix *g,
                                      const mercer_matrix *h, const mrc_cached_block *cached);

#endif
