/* What the back end for GPUs asks of the machine that its kernels run on: a GPU's memory and
 * streams. CUDA's is in runtime/device/cuda; tests have one that is emulated. Codes are CUDA's, 0
 * for success. */
#ifndef WEFT_RUNTIME_NN_CUDA_MACHINE_H
#define WEFT_RUNTIME_NN_CUDA_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/device/device.h"
#include "runtime/nn/cuda/library.h"

/* Puts kernels on `on`, CUDA's stream behind `stream`. A status other than WEFT_OK makes the stream
 * fail. */
typedef enum weft_status weft_cuda_work_fn(struct weft_stream *stream, struct CUstream_st *on,
                                           const void *argument, struct weft_error *err);

struct weft_cuda_machine {
    const char *name; /* "cuda", "emulated" */
    /* Calls `work` in the stream's order with a copy of its argument, at most WEFT_TASK_BYTES: when
     * it is issued, for kernels wait on the GPU. Not after the stream has failed or was stopped. */
    void (*issue)(struct weft_stream *stream, weft_cuda_work_fn *work, const void *argument,
                  size_t bytes);
    /* Memory of the GPU; and memory that GPU and host both have, where its address is the same. */
    int (*allocate)(int64_t bytes, void **out);
    void (*release)(void *memory);
    int (*share)(int64_t bytes, void **out);
    void (*unshare)(void *memory);
    /* Copies to the GPU in the stream's order; the host's bytes are read before it returns. */
    int (*send)(struct weft_stream *stream, struct CUstream_st *on, void *to, const void *host,
                int64_t bytes);
    const char *(*explain)(int code);
    const struct weft_cuda_library_ops *library; /* of products; NULL: there is none */
};

#endif
