/* How kernels are launched: by a call, which nvcc and a C++ compiler understand alike. The one file
 * that knows CUDA's runtime. A launch returns CUDA's code, 0 when the kernel is on its stream;
 * what goes wrong later is told by the stream. Parameters are copied. */
#ifndef WEFT_RUNTIME_NN_CUDA_LAUNCH_H
#define WEFT_RUNTIME_NN_CUDA_LAUNCH_H

#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

#include <stddef.h>
#include <stdint.h>
#include <type_traits>

/* How many blocks and threads, and bytes of shared memory a block. */
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
