/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels as plain calls, for nvcc and for C++ compilers. Only this file knows CUDA's
 * runtime. A launch returns CUDA's code, 0 once the kernel is on its stream. The stream reports
 * later failures. Parameters are copied. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_LAUNCH_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_LAUNCH_H

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

#include <stddef.h>
#include <stdint.h>
#include <type_traits>

/* Numbers of blocks and threads, and bytes of shared memory for each block. */
struct weft_grid {
    dim3 blocks, threads;
    size_t shared_bytes;
};

enum { SHARED_BYTES_UNASKED = 48 << 10 };

template <typename... P, typename... A>
static inline int launch(void (*kernel)(P...), struct weft_grid grid, cudaStream_t stream,
                         A... given)
{
    static_assert(sizeof...(P) == sizeof...(A), "every parameter is given");
    if (grid.shared_bytes > SHARED_BYTES_UNASKED) {
        const cudaError_t error =
            cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)grid.shared_bytes);
        if (error != cudaSuccess) return (int)error;
    }
    return [&](P... values) {
        void *arguments[] = {(void *)&values...};
        return (int)cudaLaunchKernel(kernel, grid.blocks, grid.threads, arguments,
                                     grid.shared_bytes, stream);
    }(given...);
}

static inline int64_t divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

#endif
