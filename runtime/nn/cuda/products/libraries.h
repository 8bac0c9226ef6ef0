/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's libraries, only in the module. NULL in a build without a library's headers. */
#ifndef WEFT_RUNTIME_NN_CUDA_PRODUCTS_LIBRARIES_H
#define WEFT_RUNTIME_NN_CUDA_PRODUCTS_LIBRARIES_H

#include "runtime/nn/cuda/products/attending.h"
#include "runtime/nn/cuda/products/library.h"

#ifdef __cplusplus
extern "C" {
#endif

#if WEFT_HAVE_CUBLASLT
extern const struct weft_cuda_library_ops weft_cuda_cublaslt;
#define WEFT_CUDA_LIBRARY (&weft_cuda_cublaslt)
#else
#define WEFT_CUDA_LIBRARY NULL
#endif

#if WEFT_HAVE_CUDNN
extern const struct weft_cuda_attending_ops weft_cuda_cudnn;
#define WEFT_CUDA_ATTENDING_LIBRARY (&weft_cuda_cudnn)
#else
#define WEFT_CUDA_ATTENDING_LIBRARY NULL
#endif

#ifdef __cplusplus
}
#endif

#endif
