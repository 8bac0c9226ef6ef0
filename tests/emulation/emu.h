/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a .cu file with a C++ compiler: the parts of CUDA C++ that Weft's kernels use, as
 * tests/emulation defines them. It is included before the .cu file; nvcc does not see it. Types are
 * those of CUDA's headers.
 *
 * Functions that threads of a warp or a block call together are meeting places: a fiber waits there
 * for all others. The source line identifies the place, because compilers copy calls. */
#ifndef WEFT_TESTS_EMULATION_EMU_H
#define WEFT_TESTS_EMULATION_EMU_H

#include <cstdint>
#include <cstring>
#include <type_traits>

/* For a compiler other than nvcc these words of host_defines.h mean nothing. */
#include <cuda_runtime_api.h>

#undef __launch_bounds__
#define __launch_bounds__(...)
/* All shared memory is dynamic, so every check knows its size. */
#undef __shared__
#define __shared__ WEFT_EMULATION_HAS_NO_STATIC_SHARED_MEMORY

#define EMU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* Indices of the thread that runs. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

/* The block's shared memory. */
void *emu_shared_memory(void);

void __syncthreads(EMU_SITE);
void __syncwarp(unsigned mask = 0xffffffffu, EMU_SITE);

/* Threads of `mask` meet. The last one calls `work` on their values, indexed by lane, and all go
 * on. */
enum { EMU_WARP = 32 };
typedef void emu_work(void *const brought[EMU_WARP], unsigned mask);
void emu_meet(const char *what, unsigned mask, void *brought, emu_work *work, const char *file,
              int line);

/* Shuffles: lane l gets the value of lane from(l). */
struct emu_shuffle {
    uint64_t value, result;
    int from;
};
void emu_work_shuffle(void *const brought[EMU_WARP], unsigned mask);
int emu_lane(void);

template <typename T>
static inline T emu_shuffle_from(const char *what, unsigned mask, T value, int from,
                                 const char *file, int line)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "what a shuffle moves");
    struct emu_shuffle shuffle = {0, 0, from};
    memcpy(&shuffle.value, &value, sizeof(value));
    emu_meet(what, mask, &shuffle, emu_work_shuffle, file, line);
    memcpy(&value, &shuffle.result, sizeof(value));
    return value;
}

template <typename T>
static inline T __shfl_sync(unsigned mask, T value, int lane, int width = EMU_WARP, EMU_SITE)
{
    const int first = emu_lane() / width * width;
    return emu_shuffle_from("__shfl_sync", mask, value, first + lane % width, file, line);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int by, int width = EMU_WARP, EMU_SITE)
{
    const int lane = emu_lane(), from = lane ^ by;
    const bool inside = from / width == lane / width;
    return emu_shuffle_from("__shfl_xor_sync", mask, value, inside ? from : lane, file, line);
}

template <typename T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = EMU_WARP,
                                 EMU_SITE)
{
    const int lane = emu_lane(), from = lane + (int)by;
    const bool inside = from / width == lane / width;
    return emu_shuffle_from("__shfl_down_sync", mask, value, inside ? from : lane, file, line);
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
unsigned __ballot_sync(unsigned mask, int predicate, EMU_SITE);
unsigned __reduce_add_sync(unsigned mask, unsigned value, EMU_SITE);
unsigned __reduce_max_sync(unsigned mask, unsigned value, EMU_SITE);

/* Atomics exist for integers only: a sum of floats would depend on the order of threads. */
unsigned atomicAdd(unsigned *to, unsigned value);
unsigned long long atomicAdd(unsigned long long *to, unsigned long long value);
unsigned atomicOr(unsigned *to, unsigned value);
unsigned atomicMin(unsigned *to, unsigned value);

/* Each is one access, even if the compiler would split a struct. */
typedef uint32_t emu_words_4 __attribute__((vector_size(16), may_alias));
typedef uint32_t emu_words_2 __attribute__((vector_size(8), may_alias));

static __forceinline__ uint4 emu_load_16(const void *from)
{
    const emu_words_4 w = *(const emu_words_4 *)from;
    return uint4{w[0], w[1], w[2], w[3]};
}
static __forceinline__ void emu_store_16(void *to, uint4 x)
{
    *(emu_words_4 *)to = emu_words_4{x.x, x.y, x.z, x.w};
}
static __forceinline__ uint2 emu_load_8(const void *from)
{
    const emu_words_2 w = *(const emu_words_2 *)from;
    return uint2{w[0], w[1]};
}
static __forceinline__ void emu_store_8(void *to, uint2 x)
{
    *(emu_words_2 *)to = emu_words_2{x.x, x.y};
}

/* ex2.approx.ftz.f32 and lg2, without the GPU's bits. */
float emu_power_of_two(float x);
float emu_logarithm(float x);

/* mma.sync.aligned.m16n8k16.row.col.f32.T.T.f32, T bf16 or f16. Fragments lie in the lanes'
 * registers as in the PTX ISA. Products are exact; the sum of 16 products and c is rounded once. */
void emu_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], EMU_SITE);
void emu_mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2], EMU_SITE);
/* ldmatrix.sync.aligned.m8n8.x4(.trans).shared.b16: lane l gives the address of row l % 8 of matrix
 * l / 8. */
void emu_load_matrices(uint32_t to[4], const void *row, bool transpose, EMU_SITE);

/* cp.async of 16 bytes, or of 16 zeros. The GPU may write the destination at any time until the
 * wait. So it holds NaN from the start, and the bytes at the wait. */
void emu_start_copy(void *shared, const void *from, bool there, EMU_SITE);
void emu_commit_copies(void);
void emu_wait_for_copies(int left);

#include "tests/emulation/calls.h"

#endif
