/* SPDX-License-Identifier: Apache-2.0 */
/* The back end on a real GPU: the machine of machine.h, built on runtime/device/cuda. It is in the
 * module of the device "cuda". */
#include "runtime/device/cuda/stream.h"
#include "runtime/nn/cuda/cuda.h"
#include "runtime/nn/cuda/products/libraries.h"

WEFT_API extern const struct weft_nn_backend weft_nn_backend_cuda;

static void gpu_issue(struct weft_stream *stream, weft_cuda_work_fn *work, const void *argument,
                      size_t bytes)
{
    (void)bytes; /* work is issued at once, so nothing is kept */
    struct weft_error err = {0};
    struct CUstream_st *on = weft_cuda_stream_open_for_work(stream);
    if (on == NULL) return;
    const enum weft_status status = work(stream, on, argument, &err);
    if (status == WEFT_OK) return;
    weft_fail(&err, status, "work on a GPU failed: %s", weft_status_text(status));
    weft_cuda_stream_fail(stream, &err);
}

static int gpu_allocate(int64_t bytes, void **out)
{
    return (int)cudaMalloc(out, (size_t)bytes);
}

static void gpu_release(void *memory)
{
    (void)cudaFree(memory);
}

/* Pinned memory has one address for host and GPU. */
static int gpu_share(int64_t bytes, void **out)
{
    return (int)cudaHostAlloc(out, (size_t)bytes, cudaHostAllocMapped | cudaHostAllocPortable);
}

static void gpu_unshare(void *memory)
{
    (void)cudaFreeHost(memory);
}

static int gpu_send(struct weft_stream *stream, struct CUstream_st *on, void *to, const void *host,
                    int64_t bytes)
{
    (void)on;
    return (int)weft_cuda_send(&weft_cuda_stream_of(stream)->mailbox, to, host, bytes);
}

static const char *gpu_explain(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}

static const struct weft_cuda_machine gpu = {
    .name = "cuda",
    .issue = gpu_issue,
    .allocate = gpu_allocate,
    .release = gpu_release,
    .share = gpu_share,
    .unshare = gpu_unshare,
    .send = gpu_send,
    .explain = gpu_explain,
    .library = WEFT_CUDA_LIBRARY,
    .attending = WEFT_CUDA_ATTENDING_LIBRARY,
};

static enum weft_status gpu_open(const struct weft_nn_options *options, struct weft_nn **out,
                                 struct weft_error *err)
{
    return weft_nn_cuda_open(&weft_nn_backend_cuda, &gpu, options, out, err);
}

const struct weft_nn_backend weft_nn_backend_cuda = {
    .name = "cuda",
    .open = gpu_open,
    WEFT_NN_CUDA_FUNCTIONS,
};
