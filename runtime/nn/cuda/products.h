/* Products by NVIDIA's library, only in the module. NULL in a build without its header. */
#ifndef WEFT_RUNTIME_NN_CUDA_PRODUCTS_H
#define WEFT_RUNTIME_NN_CUDA_PRODUCTS_H

#include "runtime/nn/cuda/library.h"

#if WEFT_HAVE_CUBLASLT
extern const struct weft_cuda_library_ops weft_cuda_cublaslt;
#define WEFT_CUDA_LIBRARY (&weft_cuda_cublaslt)
#else
#define WEFT_CUDA_LIBRARY NULL
#endif

#endif
