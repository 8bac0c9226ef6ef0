/* SPDX-License-Identifier: Apache-2.0 */
/* A mistake for each rule of code.py, for nvcc alone. Warnings are off, since some of these would
 * stop a build. */
#include <cuda_runtime.h>

__global__ void planted_approximation(float *x)
{
    x[threadIdx.x] = __expf(x[threadIdx.x]);
}

__global__ void planted_contraction(float *x, float y)
{
    x[threadIdx.x] = fmaf(x[threadIdx.x], y, 1.0f);
}

__global__ void planted_flush(float *x, float y)
{
    asm("add.rn.ftz.f32 %0, %0, %1;" : "+f"(x[threadIdx.x]) : "f"(y));
}

__global__ void planted_float_atomic(float *x)
{
    atomicAdd(x, 1.0f);
}

__global__ void planted_local_memory(const float *x, float *y, const int *place)
{
    float own[64];
    for (int i = 0; i < 64; i++) {
        own[place[i] & 63] = x[i];
    }
    y[threadIdx.x] = own[place[threadIdx.x] & 63];
}

__global__ void planted_wide_access(const float *x, float *y)
{
    y[threadIdx.x] = x[threadIdx.x];
}

__global__ void planted_tensor_core(const float *x, float *y)
{
    y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x + 1];
}

/* Correct code, without a finding. */
__global__ void planted_nothing(const float4 *x, float4 *y)
{
    const float4 value = x[threadIdx.x];
    y[threadIdx.x] =
        make_float4(value.x * value.y, value.z + value.w, sqrtf(value.x), 1.0f / value.y);
}
