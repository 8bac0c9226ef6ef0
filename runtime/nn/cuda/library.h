/* A library that multiplies on a GPU, as multiply.h and choices.c ask it: ways to compute a
 * product, whether one can be run here, and a run. A machine (machine.h) has one or none. Codes are
 * CUDA's, 0 for success, or the library's own as numbers below 0. */
#ifndef WEFT_RUNTIME_NN_CUDA_LIBRARY_H
#define WEFT_RUNTIME_NN_CUDA_LIBRARY_H

#include "base/status.h"
#include "runtime/nn/product.h"

struct CUstream_st; /* CUDA's stream */
struct weft_cuda_library;

/* What every operand begins at a multiple of, in bytes, and what is promised to the library. */
enum { WEFT_CUDA_OPERAND_ALIGNMENT = 16 };

/* A way to compute one product, which only the library of the same version reads. */
enum { WEFT_CUDA_ALGORITHM_WORDS = 8, WEFT_CUDA_MOST_CANDIDATES = 8 };
struct weft_cuda_algorithm {
    uint64_t words[WEFT_CUDA_ALGORITHM_WORDS];
};

/* c = alpha op(a) op(b) (+ c), finished, and *times, of the GPU's memory, is another factor unless
 * it is NULL. Where nothing is run, pointers say no more than which of them there are. */
struct weft_cuda_request {
    struct weft_product product;
    const float *times;
};

/* What an algorithm is, as far as the library tells: numbers are its own. */
struct weft_cuda_algorithm_facts {
    int32_t id, tile, stages, parts; /* of k */
    const char *scheme;              /* how parts are added up */
    int64_t workspace_bytes;
};

struct weft_cuda_library_ops {
    const char *name; /* as WEFT_GEMM has it */
    /* With the GPU of the calling thread. WEFT_E_ENVIRONMENT where there is no such library, no
     * usable one, or no GPU for it. */
    enum weft_status (*open)(struct weft_cuda_library **out, struct weft_error *err);
    void (*close)(struct weft_cuda_library *library); /* accepts NULL */
    /* "cublaslt 13.1.0, NVIDIA H100": whose ways can be run by whom. */
    const char *(*title)(const struct weft_cuda_library *library);
    int64_t (*workspace_bytes)(const struct weft_cuda_library *library);
    /* Ways to compute it with fp32 sums whose bits repeat, the library's favourite first; returns
     * how many. 0: none. */
    int (*candidates)(const struct weft_cuda_library *library,
                      const struct weft_cuda_request *asked,
                      struct weft_cuda_algorithm out[WEFT_CUDA_MOST_CANDIDATES]);
    /* NULL if it can be run here; else why not. */
    const char *(*refuses)(const struct weft_cuda_library *library,
                           const struct weft_cuda_request *asked,
                           const struct weft_cuda_algorithm *algorithm);
    /* For reports; the algorithm is not refused. */
    void (*facts)(const struct weft_cuda_library *library, const struct weft_cuda_request *asked,
                  const struct weft_cuda_algorithm *algorithm,
                  struct weft_cuda_algorithm_facts *out);
    int (*run)(const struct weft_cuda_library *library, const struct weft_cuda_request *asked,
               const struct weft_cuda_algorithm *algorithm, void *workspace,
               struct CUstream_st *on);
    /* A stream for what is tried, and a wait for all that was put on it. */
    struct CUstream_st *(*stream)(const struct weft_cuda_library *library);
    int (*await)(const struct weft_cuda_library *library);
    const char *(*explain)(const struct weft_cuda_library *library, int code);
};

#endif
