/* SPDX-License-Identifier: Apache-2.0 */
/* Approximate instructions of GPUs, with their own rounding. They are for kernels with bits that
 * need not match others. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_APPROXIMATE_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_APPROXIMATE_H

#include "runtime/nn/cuda/kernels/math.h"

/* 2^x, with a relative error of 2^-22. Results below the least normal number are 0. */
GPU float power_of_two_near(float x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return emu_power_of_two(x);
#endif
}

/* log2(x) of a normal number, with an error of 2^-22, relative to the result or to 1. */
GPU float logarithm_near(float x)
{
#ifdef __CUDACC__
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return emu_logarithm(x);
#endif
}

#endif
