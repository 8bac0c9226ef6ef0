/* What GPUs have an instruction for that is near, but rounded in a way of its own: for kernels
 * whose bits are nobody else's. */
#ifndef WEFT_RUNTIME_NN_CUDA_APPROXIMATE_H
#define WEFT_RUNTIME_NN_CUDA_APPROXIMATE_H

#include "runtime/nn/cuda/math.h"

/* 2^x within 2^-22 of it, relative; results below the least normal number are 0. */
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

/* log2(x) of a normal number, within 2^-22 of it, relative to it or to 1. */
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
