/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/gpu.h"

#include <stdlib.h>

#include "base/clock.h"
#include "runtime/device/futex.h"

enum { ANCHOR_AGE_S = 2, ANCHOR_TRIES = 5, TIMEOUT_S = 1800, SPINS = 200, NAP_NS = 20000 };

cudaError_t weft_cuda_enter(const struct weft_cuda_gpu *gpu)
{
    return cudaSetDevice(gpu->ordinal);
}

const struct weft_nvml *weft_cuda_nvml(struct weft_cuda_gpu *gpu)
{
    pthread_mutex_lock(&gpu->lock);
    const bool open = gpu->nvml.library != NULL || weft_nvml_open(gpu->uuid, &gpu->nvml);
    pthread_mutex_unlock(&gpu->lock);
    return open ? &gpu->nvml : NULL;
}

bool weft_cuda_memory(const struct weft_device *device, int64_t *bytes, bool *exact)
{
    struct weft_cuda_gpu *gpu = (struct weft_cuda_gpu *)(uintptr_t)device;
    const struct weft_nvml *nvml = weft_cuda_nvml(gpu);
    size_t free_bytes = 0, total_bytes = 0;
    int n_processes = -1;
    const int64_t own_bytes = nvml != NULL ? weft_nvml_own_bytes(nvml, &n_processes) : -1;
    *exact = own_bytes >= 0 || n_processes == 1;
    if (own_bytes < 0 && (weft_cuda_enter(gpu) != cudaSuccess ||
                          cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess))
        *exact = false;
    *bytes = own_bytes >= 0 ? own_bytes : (int64_t)(total_bytes - free_bytes);
    return true;
}

static const char *cure_of(cudaError_t code)
{
    switch ((int)code) {
    case cudaErrorInsufficientDriver:
        return "NVIDIA's driver is missing here, or older than this toolkit: CUDA 13 needs driver "
               "580, 12 runs from 525 (docs/gpu.md; in a container, start it with its GPUs)";
    case cudaErrorNoDevice:
        return "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorDevicesUnavailable:
        return "another process has the GPU for itself (compute mode), or all of it is taken";
    case cudaErrorMemoryAllocation:
        return "the GPU's memory is taken: look at nvidia-smi, or lower the memory limit";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
        return "this build has no kernels for this GPU: Weft needs compute capability 8.0";
    case cudaErrorUnsupportedPtxVersion:
        return "the driver is older than the toolkit that built the kernels: update it";
    case cudaErrorTimeout:
        return "the GPU is still at work: raise WEFT_CUDA_TIMEOUT_S if steps are that long";
    default:
        return "the GPU cannot go on in this process; dmesg may have an Xid that says why";
    }
}

static enum weft_status status_of(cudaError_t code)
{
    switch ((int)code) {
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
        return WEFT_E_ENVIRONMENT;
    case cudaErrorTimeout:
        return WEFT_E_HANG;
    default:
        return WEFT_E_SYSTEM;
    }
}

enum weft_status weft_cuda_fail(cudaError_t code, const char *what, struct weft_error *err)
{
    return weft_fail(err, status_of(code), "CUDA: cannot %s: %s (%s, %d). %s", what,
                     cudaGetErrorString(code), cudaGetErrorName(code), (int)code, cure_of(code));
}

/* The event lies between two readings of the host's clock. Several tries are made, and the one with
 * the narrowest interval is kept. */
cudaError_t weft_cuda_anchor(struct weft_cuda_gpu *gpu)
{
    const int64_t age_ns = weft_clock_now_ns() - gpu->anchor_ns;
    const bool fresh = age_ns < ANCHOR_AGE_S * INT64_C(1000000000) || gpu->n_stamps > 0;
    if (gpu->anchor != NULL && fresh) return cudaSuccess;
    cudaError_t code = cudaSuccess;
    if (gpu->clock == NULL)
        code = cudaStreamCreateWithPriority(&gpu->clock, cudaStreamNonBlocking, 0);
    cudaEvent_t best = NULL;
    for (int i = 0; i < ANCHOR_TRIES && code == cudaSuccess; i++) {
        cudaEvent_t event = NULL;
        code = cudaEventCreateWithFlags(&event, cudaEventDefault);
        const int64_t before_ns = weft_clock_now_ns();
        if (code == cudaSuccess) code = cudaEventRecord(event, gpu->clock);
        if (code == cudaSuccess) code = weft_cuda_await(gpu, gpu->clock);
        const int64_t error_ns = weft_clock_now_ns() - before_ns;
        const bool better = best == NULL || error_ns < gpu->anchor_error_ns;
        cudaEvent_t worse = code == cudaSuccess && better ? best : event;
        if (code == cudaSuccess && better) {
            best = event;
            gpu->anchor_ns = before_ns + error_ns;
            gpu->anchor_error_ns = error_ns;
        }
        if (worse != NULL) cudaEventDestroy(worse);
    }
    if (best != NULL) {
        if (gpu->anchor != NULL) cudaEventDestroy(gpu->anchor);
        gpu->anchor = best;
    }
    return code;
}

cudaError_t weft_cuda_time_of(const struct weft_cuda_gpu *gpu, cudaEvent_t event, int64_t least_ns,
                              int64_t most_ns, int64_t *ns)
{
    float ms = 0;
    const cudaError_t code = cudaEventElapsedTime(&ms, gpu->anchor, event);
    if (code != cudaSuccess) return code;
    const int64_t at_ns = gpu->anchor_ns + (int64_t)((double)ms * 1e6);
    *ns = at_ns < least_ns ? least_ns : at_ns > most_ns ? most_ns : at_ns;
    return cudaSuccess;
}

static int64_t timeout_ns(void)
{
    const char *text = getenv("WEFT_CUDA_TIMEOUT_S");
    const long seconds = text != NULL ? strtol(text, NULL, 10) : 0;
    return (seconds > 0 ? seconds : TIMEOUT_S) * INT64_C(1000000000);
}

cudaError_t weft_cuda_nap(const struct weft_cuda_gpu *gpu, cudaStream_t stream, int64_t since_ns)
{
    const int64_t now_ns = weft_clock_now_ns();
    const cudaError_t code = cudaStreamQuery(stream);
    if (code == cudaErrorNotReady && now_ns - since_ns > timeout_ns()) return cudaErrorTimeout;
    if (!weft_cuda_is_bad(code)) weft_clock_sleep_until_ns(now_ns + NAP_NS);
    if (gpu != NULL && gpu->tend != NULL) gpu->tend(gpu->tend_context);
    return code;
}

cudaError_t weft_cuda_pause(int64_t since_ns, int32_t tries)
{
    if (tries < SPINS) {
        weft_cpu_relax();
        return cudaErrorNotReady;
    }
    const int64_t now_ns = weft_clock_now_ns();
    if (now_ns - since_ns > timeout_ns()) return cudaErrorTimeout;
    weft_clock_sleep_until_ns(now_ns + NAP_NS);
    return cudaErrorNotReady;
}

cudaError_t weft_cuda_await(const struct weft_cuda_gpu *gpu, cudaStream_t stream)
{
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaErrorNotReady;
    for (int i = 0; code == cudaErrorNotReady && i < SPINS; i++) {
        code = cudaStreamQuery(stream);
        weft_cpu_relax();
    }
    while (code == cudaErrorNotReady)
        code = weft_cuda_nap(gpu, stream, since_ns);
    return code;
}
