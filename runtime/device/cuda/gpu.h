/* The GPU of a process: which one, and its clock. A stream's stamps are events with a time; the
 * anchor is one whose time is known on the host's clock too, made anew every two seconds, because
 * CUDA tells differences in single precision. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_GPU_H
#define WEFT_RUNTIME_DEVICE_CUDA_GPU_H

#include <pthread.h>

#include "runtime/device/backend.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/toolkit.h"

struct weft_cuda_stream;

struct weft_cuda_gpu {
    struct weft_device device; /* first */
    int ordinal;               /* among those that the process sees */
    char name[256];
    unsigned char uuid[16];
    pthread_mutex_t lock;  /* of all below */
    struct weft_nvml nvml; /* what is not open is looked for when somebody asks */
    struct weft_cuda_stream *streams;
    int32_t n_stamps;   /* of all streams that are under way */
    cudaStream_t clock; /* NULL: nobody has asked for a stamp yet */
    cudaEvent_t anchor;
    int64_t anchor_ns;
    int64_t anchor_error_ns; /* it was at most so long before */
    /* Called by a thread that waits for the GPU, now and then: whoever has work under way that may
     * never end looks at it there. NULL: nobody. */
    void (*tend)(void *context);
    void *tend_context;
};

/* Makes the GPU the calling thread's. */
cudaError_t weft_cuda_enter(const struct weft_cuda_gpu *gpu);

/* NVIDIA's management library with this GPU; NULL where it cannot be had. */
const struct weft_nvml *weft_cuda_nvml(struct weft_cuda_gpu *gpu);
/* weft_device_memory: as NVML tells this process's; else what of the GPU is taken, which is exact
 * where NVML knows of one process alone. */
bool weft_cuda_memory(const struct weft_device *device, int64_t *bytes, bool *exact);

/* Fills *err with what CUDA says of a call that did `what`: WEFT_E_SYSTEM where memory is short,
 * WEFT_E_ENVIRONMENT where driver or device are, WEFT_E_SYSTEM otherwise. */
enum weft_status weft_cuda_fail(cudaError_t code, const char *what, struct weft_error *err);

/* With the lock, before a stamp: the anchor is no older than two seconds, unless stamps are under
 * way, which are told by the one before. */
cudaError_t weft_cuda_anchor(struct weft_cuda_gpu *gpu);
/* When the event was reached, on the host's clock: between `least` and `most`, which the host
 * knows. */
cudaError_t weft_cuda_time_of(const struct weft_cuda_gpu *gpu, cudaEvent_t event, int64_t least_ns,
                              int64_t most_ns, int64_t *ns);

/* Waits until the stream has nothing left to do, by asking. cudaErrorTimeout, a code that CUDA does
 * not give here, when that takes longer than WEFT_CUDA_TIMEOUT_S (1800). gpu NULL: nobody tends. */
cudaError_t weft_cuda_await(const struct weft_cuda_gpu *gpu, cudaStream_t stream);
/* A moment's sleep of who waits for something that the stream will do, since `since_ns`: what the
 * stream says, cudaSuccess or cudaErrorNotReady if one is to look again. */
cudaError_t weft_cuda_nap(const struct weft_cuda_gpu *gpu, cudaStream_t stream, int64_t since_ns);
/* True: neither of those two. */
static inline bool weft_cuda_is_bad(cudaError_t code)
{
    return code != cudaSuccess && code != cudaErrorNotReady;
}

#endif
