/* SPDX-License-Identifier: Apache-2.0 */
/* A machine provides GPU memory and streams to the back end for GPUs. CUDA's is in
 * runtime/device/cuda, and tests have an emulated one. Codes are CUDA's, 0 for success. */
#ifndef WEFT_RUNTIME_NN_CUDA_MACHINE_H
#define WEFT_RUNTIME_NN_CUDA_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/device/device.h"
#include "runtime/nn/cuda/products/attending.h"
#include "runtime/nn/cuda/products/library.h"

/* Adds kernels to `on`, the CUDA stream of `stream`. A status other than WEFT_OK fails the
 * stream. */
typedef enum weft_status weft_cuda_work_fn(struct weft_stream *stream, struct CUstream_st *on,
                                           const void *argument, struct weft_error *err);

struct weft_cuda_machine {
    const char *name; /* "cuda", "emulated" */
    /* Calls `work` in the stream's order with a copy of its argument, at most WEFT_TASK_BYTES. It
     * may call at once, because kernels wait on the GPU. After a failure or a stop of the stream it
     * does nothing. */
    void (*issue)(struct weft_stream *stream, weft_cuda_work_fn *work, const void *argument,
                  size_t bytes);
    /* Allocate GPU memory, and memory shared by GPU and host at one address. */
    int (*allocate)(int64_t bytes, void **out);
    void (*release)(void *memory);
    int (*share)(int64_t bytes, void **out);
    void (*unshare)(void *memory);
    /* Copies to the GPU in the stream's order. Reads the host's bytes before it returns. */
    int (*send)(struct weft_stream *stream, struct CUstream_st *on, void *to, const void *host,
                int64_t bytes);
    const char *(*explain)(int code);
    const struct weft_cuda_library_ops *library;     /* library of products; NULL: none */
    const struct weft_cuda_attending_ops *attending; /* library of attention; NULL: none */
};

#endif
