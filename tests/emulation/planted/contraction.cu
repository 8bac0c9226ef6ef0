/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes like code.cu's, built without -fmad=false: the compiler and the assembler contract. */
#include <cuda_runtime.h>

__global__ void planted_contraction_by_compiler(float *x, float y, float z)
{
    x[threadIdx.x] = x[threadIdx.x] * y + z;
}

__global__ void planted_contraction_by_assembler(float *x, float y, float z)
{
    float product;
    asm("mul.f32 %0, %1, %2;" : "=f"(product) : "f"(x[threadIdx.x]), "f"(y));
    asm("add.f32 %0, %1, %2;" : "=f"(x[threadIdx.x]) : "f"(product), "f"(z));
}
