/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hopper's matrix and copy instructions as functions: one PTX instruction each, no policy. Accumulator registers are
 * listed one by one because the instructions require it.
 */
#ifndef MRC_BACKENDS_CUDA_HALF_PRECISION_HOPPER_CUH
#define MRC_BACKENDS_CUDA_HALF_PRECISION_HOPPER_CUH

#include <cuda.h>
#include <stdint.h>

/* ---- Barriers ------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

/* Arrives at the barrier, and adds `bytes` to the bytes that must be copied before the phase of the barrier ends. */
static __device__ __forceinline__ void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives at the barrier with the same address in another block of the cluster. */
static __device__ __forceinline__ void barrier_arrive_at(uint32_t barrier, uint32_t block)
{
    asm volatile("{\n.reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier),
                 "r"(block)
                 : "memory");
}

/* Waits until the phase of this parity has ended. Parity 1 passes at once on a new barrier, as if a phase had ended
   before. */
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\n"
                 "bra again;\n"
                 "over:\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* ---- Clusters ------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ uint32_t cluster_rank(void)
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* Waits for all threads of the cluster; their writes before the call are visible after the call. */
static __device__ __forceinline__ void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* ---- Copies -------------------------------------------------------------------------------------------------- */

/* Copies a box of a matrix to shared memory; its bytes count toward the barrier's transaction. */
static __device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap *map, int32_t column, int32_t row,
                                                uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                 "[%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

/* Copies a box to every block of the cluster whose bit in `blocks` is set, at the same address and barrier in each. */
static __device__ __forceinline__ void copy_box_to_all(uint32_t to, const CUtensorMap *map, int32_t column, int32_t row,
                                                       uint32_t barrier, uint16_t blocks)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}

static __device__ __forceinline__ void copy_bytes(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* ---- Matrix products ----------------------------------------------------------------------------------------- */

/* Returns the descriptor of a wgmma operand: rows of 128 bytes in shared memory, swizzled as by the copy engine.
   Fields, in units of 16 bytes: address (bits 0 to 13), leading offset (16, unused when swizzled), offset between
   groups of eight rows (32); the swizzle of 128 bytes (62). The next 32 bytes of a row are at the descriptor + 2. */
static __device__ __forceinline__ uint64_t operand_at(uint32_t address)
{
    return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* Orders accesses to registers before the wgmma instructions that use them. */
static __device__ __forceinline__ void wgmma_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits until at most LEFT of the committed groups are still running. */
template <int LEFT> static __device__ __forceinline__ void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

/* The registers of an accumulator d, in the text of an instruction and as operands of the asm statement. */
/* clang-format off */
#define REGISTERS_128 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, " \
    "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, " \
    "%62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, " \
    "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, " \
    "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, " \
    "%119, %120, %121, %122, %123, %124, %125, %126, %127"
#define OPERANDS_4(how, i) how(d[i]), how(d[(i) + 1]), how(d[(i) + 2]), how(d[(i) + 3])
#define OPERANDS_16(how, i) \
    OPERANDS_4(how, i), OPERANDS_4(how, (i) + 4), OPERANDS_4(how, (i) + 8), OPERANDS_4(how, (i) + 12)
#define OPERANDS_64(how, i) \
    OPERANDS_16(how, i), OPERANDS_16(how, (i) + 16), OPERANDS_16(how, (i) + 32), OPERANDS_16(how, (i) + 48)

/* d (64, 256) = or += (add) A (64, k) B (256, k)', both in shared memory; k = 16 halves or 32 bytes. */
static __device__ __forceinline__ void wgmma_dots(float (&d)[128], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" REGISTERS_128
                 "}, %128, %129, p, 1, 1, 0, 0;\n}\n"
                 : OPERANDS_64("+f", 0), OPERANDS_64("+f", 64)
                 : "l"(a), "l"(b), "r"(add));
}

static __device__ __forceinline__ void wgmma_dots(int32_t (&d)[128], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k32.s32.u8.u8 {" REGISTERS_128 "}, %128, %129, p;\n}\n"
                 : OPERANDS_64("+r", 0), OPERANDS_64("+r", 64)
                 : "l"(a), "l"(b), "r"(add));
}

/* d (64, N) += A (64, 16) B (N, 16)' with A in registers and B in shared memory; N = 8, 24 or 32. */
static __device__ __forceinline__ void wgmma_multiply_weights(float (&d)[4], const uint32_t *a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {"
                 "%0, %1, %2, %3"
                 "}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;\n"
                 : OPERANDS_4("+f", 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

static __device__ __forceinline__ void wgmma_multiply_weights(float (&d)[12], const uint32_t *a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11"
                 "}, {%12, %13, %14, %15}, %16, 1, 1, 1, 0;\n"
                 : OPERANDS_4("+f", 0), OPERANDS_4("+f", 4), OPERANDS_4("+f", 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

static __device__ __forceinline__ void wgmma_multiply_weights(float (&d)[16], const uint32_t *a, uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
                 "}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;\n"
                 : OPERANDS_16("+f", 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
/* clang-format on */

#endif
