/* SPDX-License-Identifier: Apache-2.0 */
/* A library that multiplies on a GPU, for multiply.h and choices.c. It lists algorithms for a
 * product, checks whether one can run here, and runs it. A machine (machine.h) has one library or
 * none. Codes are CUDA's, 0 for success, or the library's own as negative numbers. */
#ifndef WEFT_RUNTIME_NN_CUDA_PRODUCTS_LIBRARY_H
#define WEFT_RUNTIME_NN_CUDA_PRODUCTS_LIBRARY_H

#include "base/status.h"
#include "runtime/nn/product.h"

struct CUstream_st; /* CUDA's stream */
struct weft_cuda_library;

/* Alignment of every operand in bytes, promised to the library. */
enum { WEFT_CUDA_OPERAND_ALIGNMENT = 16 };

/* An algorithm for one product. Only the same version of the library can read it. */
enum { WEFT_CUDA_ALGORITHM_WORDS = 8, WEFT_CUDA_MOST_CANDIDATES = 8 };
struct weft_cuda_algorithm {
    uint64_t words[WEFT_CUDA_ALGORITHM_WORDS];
};

/* c = alpha op(a) op(b) (+ c), with a finish. *times in GPU memory is another factor, unless it is
 * NULL. If nothing runs, only the presence of pointers matters. */
struct weft_cuda_request {
    struct weft_product product;
    const float *times;
};

/* Facts about an algorithm, in the library's own numbers. */
struct weft_cuda_algorithm_facts {
    int32_t id, tile, stages, parts; /* parts of k */
    const char *scheme;              /* of adding the parts */
    int64_t workspace_bytes;
};

struct weft_cuda_library_ops {
    const char *name; /* as in WEFT_GEMM */
    /* Opens the library for the calling thread's GPU. WEFT_E_ENVIRONMENT if there is no usable
     * library or no GPU for it. */
    enum weft_status (*open)(struct weft_cuda_library **out, struct weft_error *err);
    void (*close)(struct weft_cuda_library *library); /* accepts NULL */
    /* "cublaslt 13.1.0, NVIDIA H100": the library's version and GPU, which its algorithms are
     * for. */
    const char *(*title)(const struct weft_cuda_library *library);
    int64_t (*workspace_bytes)(const struct weft_cuda_library *library);
    /* Lists algorithms with fp32 sums and repeatable bits, the library's favourite first. Returns
     * their number. */
    int (*candidates)(const struct weft_cuda_library *library,
                      const struct weft_cuda_request *asked,
                      struct weft_cuda_algorithm out[WEFT_CUDA_MOST_CANDIDATES]);
    /* Returns NULL if the algorithm can run here, otherwise the reason. */
    const char *(*refuses)(const struct weft_cuda_library *library,
                           const struct weft_cuda_request *asked,
                           const struct weft_cuda_algorithm *algorithm);
    /* Facts for reports. The algorithm must not be refused. */
    void (*facts)(const struct weft_cuda_library *library, const struct weft_cuda_request *asked,
                  const struct weft_cuda_algorithm *algorithm,
                  struct weft_cuda_algorithm_facts *out);
    int (*run)(const struct weft_cuda_library *library, const struct weft_cuda_request *asked,
               const struct weft_cuda_algorithm *algorithm, void *workspace,
               struct CUstream_st *on);
    /* A stream for trials, and a wait for all of its work. */
    struct CUstream_st *(*stream)(const struct weft_cuda_library *library);
    int (*await)(const struct weft_cuda_library *library);
    const char *(*explain)(const struct weft_cuda_library *library, int code);
};

#endif
