/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of a process, and its clock. A stream's stamps are events with a time. The anchor is an
 * event with a known time on the host's clock. It is renewed every two seconds, because CUDA
 * reports time differences in single precision. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_GPU_H
#define WEFT_RUNTIME_DEVICE_CUDA_GPU_H

#include <pthread.h>

#include "runtime/device/backend.h"
#include "runtime/device/cuda/calls.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/toolkit.h"
#include "runtime/device/device.h"

struct weft_cuda_host;
struct weft_cuda_stream;

struct weft_cuda_gpu {
    struct weft_device device; /* first */
    int ordinal;               /* among the GPUs visible to the process */
    char name[256];
    unsigned char uuid[16];
    pthread_mutex_t lock;  /* of all below */
    struct weft_nvml nvml; /* opened at first use */
    struct weft_cuda_stream *streams;
    int32_t n_stamps;   /* pending ones, of all streams */
    cudaStream_t clock; /* NULL before the first stamp */
    cudaEvent_t anchor;
    int64_t anchor_ns;
    int64_t anchor_error_ns;         /* bound on the anchor's error */
    struct weft_cuda_host *finished; /* their pinned memory may still be read */
    struct weft_cuda_driver driver;  /* opened with the first stream of the host */
    /* Called now and then by a thread that waits for the GPU. There the owner checks pending work
     * that may never end. May be NULL. */
    void (*tend)(void *context);
    void *tend_context;
};

/* Makes the GPU current in the calling thread. */
cudaError_t weft_cuda_enter(const struct weft_cuda_gpu *gpu);

/* NVIDIA's management library, opened for this GPU; NULL if it is not available. */
const struct weft_nvml *weft_cuda_nvml(struct weft_cuda_gpu *gpu);
/* Implements weft_device_memory. NVML reports this process's own bytes. Otherwise the result is all
 * used bytes of the GPU, and it is exact only if NVML counts a single process. */
bool weft_cuda_memory(const struct weft_device *device, int64_t *bytes, bool *exact);

/* Renews the anchor if it is older than two seconds. Call it with the lock, before a stamp. While
 * stamps are pending the anchor stays, because their times refer to it. */
cudaError_t weft_cuda_anchor(struct weft_cuda_gpu *gpu);
/* Writes the event's time on the host's clock, clamped to [least_ns, most_ns], the interval known
 * to the host. */
cudaError_t weft_cuda_time_of(const struct weft_cuda_gpu *gpu, cudaEvent_t event, int64_t least_ns,
                              int64_t most_ns, int64_t *ns);

/* Sleeps briefly in a wait that began at `since_ns`, then queries the stream. cudaSuccess and
 * cudaErrorNotReady mean: look again. Any other code is an error. */
cudaError_t weft_cuda_nap(const struct weft_cuda_gpu *gpu, cudaStream_t stream, int64_t since_ns);
/* The same for a wait in which nothing of CUDA is queried: spins at first. Returns
 * cudaErrorNotReady, or cudaErrorTimeout. `tries` counts the calls of one wait. */
cudaError_t weft_cuda_pause(int64_t since_ns, int32_t tries);
/* True for any code but cudaSuccess and cudaErrorNotReady. */
static inline bool weft_cuda_is_bad(cudaError_t code)
{
    return code != cudaSuccess && code != cudaErrorNotReady;
}

#endif
