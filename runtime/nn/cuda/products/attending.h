/* SPDX-License-Identifier: Apache-2.0 */
/* A library of causal attention on a GPU, for attention.h's choices. A machine (machine.h) has one
 * library or none. A plan computes one shape, forward and backward, on the operands and with the
 * layouts of weft_cuda_attend. Statistics of rows have the library's own meaning, and the same
 * bytes. Codes are CUDA's, 0 for success, or WEFT_CUDA_ATTENDING and less for the library's. */
#ifndef WEFT_RUNTIME_NN_CUDA_PRODUCTS_ATTENDING_H
#define WEFT_RUNTIME_NN_CUDA_PRODUCTS_ATTENDING_H

#include "runtime/nn/cuda/kernels/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "base/status.h"

enum { WEFT_CUDA_ATTENDING = -200000 };

struct weft_cuda_attending;      /* an open library */
struct weft_cuda_attending_plan; /* of one shape */

/* Names of the two engines with their settings, and the workspace of each. The same names of one
 * version and kind of GPU give the same bits. */
struct weft_cuda_attending_facts {
    char forward[96], backward[96];
    int64_t forward_bytes, backward_bytes;
};

struct weft_cuda_attending_ops {
    const char *name; /* as in WEFT_ATTENTION */
    /* Opens the library for the calling thread's GPU. WEFT_E_ENVIRONMENT if there is no usable
     * library or no GPU for it. */
    enum weft_status (*open)(struct weft_cuda_attending **out, struct weft_error *err);
    void (*close)(struct weft_cuda_attending *library); /* accepts NULL */
    /* "cudnn 9.19.0, NVIDIA H100": the library's version and GPU. */
    const char *(*title)(const struct weft_cuda_attending *library);
    /* Prepares a shape; its qkv is not read. An ordered plan's backward repeats its bits; others
     * serve only to measure the price of that. WEFT_E_ENVIRONMENT if the library cannot. */
    enum weft_status (*prepare)(struct weft_cuda_attending *library,
                                const struct weft_cuda_attention *shape, bool ordered,
                                struct weft_cuda_attending_plan **out, struct weft_error *err);
    void (*release)(struct weft_cuda_attending_plan *plan); /* accepts NULL */
    const struct weft_cuda_attending_facts *(*facts)(const struct weft_cuda_attending_plan *plan);
    /* The same as weft_cuda_attend and weft_cuda_attend_backward. Workspaces have the facts' bytes,
     * at a multiple of 256 bytes. */
    int (*forward)(struct weft_cuda_attending_plan *plan, const void *qkv, void *output,
                   float *statistics, void *workspace, struct CUstream_st *on);
    int (*backward)(struct weft_cuda_attending_plan *plan, const void *qkv, const void *output,
                    const float *statistics, const void *d_output, void *d_qkv, void *workspace,
                    struct CUstream_st *on);
    /* A stream for trials. `begin` marks a time on it; `end` waits for all of its work and gives
     * the microseconds since. */
    struct CUstream_st *(*stream)(const struct weft_cuda_attending *library);
    int (*begin)(const struct weft_cuda_attending *library);
    int (*end)(const struct weft_cuda_attending *library, double *us);
    /* The reason of the last code of the library. */
    const char *(*explain)(const struct weft_cuda_attending *library);
};

#ifdef __cplusplus
}
#endif

#endif
