/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of kernels: elements of the three dtypes, and sums of a warp. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_MATH_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_MATH_H

#include "runtime/nn/cuda/kernels/launch.h"
#include "runtime/nn/elements.h"

#define GPU __device__ __forceinline__

enum { WARP = 32 };
static const unsigned ALL_LANES = 0xffffffffu;

/* Elements. 16-bit numbers are stored as bits; arithmetic is in fp32. */
struct bf16 {
    uint16_t bits;
};
struct f16 {
    uint16_t bits;
};

/* Calls `fn` with an element of the dtype. */
template <typename F> static inline int with_dtype(enum weft_dtype dtype, F fn)
{
    switch (dtype) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        return fn(float());
    case WEFT_BF16:
        return fn(bf16());
    case WEFT_F16:
        return fn(f16());
    }
    return 0;
}

/* Calls fn with an element of a 16-bit dtype. */
template <typename F> static inline int with_half(enum weft_dtype dtype, F fn)
{
    return dtype == WEFT_BF16 ? fn(bf16()) : fn(f16());
}

GPU float widen(float x)
{
    return x;
}
GPU float widen(bf16 x)
{
    return weft_bf16_widen(x.bits);
}
GPU float widen(f16 x)
{
    return weft_f16_widen(x.bits);
}

/* Two 16-bit numbers, rounded to nearest by one instruction, with the bits of base/numbers.h but
 * for NaN. */
template <typename T> GPU uint32_t word_of(float low, float high);
template <> GPU uint32_t word_of<bf16>(float low, float high)
{
#ifdef __CUDACC__
    uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return weft_bf16_narrow(low) | (uint32_t)weft_bf16_narrow(high) << 16;
#endif
}
template <> GPU uint32_t word_of<f16>(float low, float high)
{
#ifdef __CUDACC__
    uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return weft_f16_narrow(low) | (uint32_t)weft_f16_narrow(high) << 16;
#endif
}

GPU void narrow(float x, float *to)
{
    *to = x;
}
template <typename T> GPU void narrow(float x, T *to)
{
    to->bits = (uint16_t)word_of<T>(x, 0);
}

/* Rounds to T and widens again. */
template <typename T> GPU float rounded(float x)
{
    T narrowed;
    narrow(x, &narrowed);
    return widen(narrowed);
}

/* Returns the sum in all lanes: lane l adds lane l ^ 16, then ^ 8, and so on. */
GPU float sum_of_warp(float x)
{
#pragma unroll
    for (int by = WARP / 2; by > 0; by /= 2) {
        x += __shfl_xor_sync(ALL_LANES, x, by);
    }
    return x;
}
GPU float maximum_of_warp(float x)
{
#pragma unroll
    for (int by = WARP / 2; by > 0; by /= 2) {
        x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, by));
    }
    return x;
}
GPU uint64_t integer_sum_of_warp(uint64_t x)
{
#pragma unroll
    for (int by = WARP / 2; by > 0; by /= 2) {
        x += __shfl_xor_sync(ALL_LANES, x, by);
    }
    return x;
}

#endif
