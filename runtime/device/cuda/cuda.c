/* SPDX-License-Identifier: Apache-2.0 */
/* The device "cuda": the GPU of this process, its streams and its events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/device/cuda/doctor.h"
#include "runtime/device/cuda/stream.h"

enum { LEAST_CAPABILITY = 8 };

WEFT_API extern const struct weft_device_ops weft_device_cuda;
/* module.h reads the version before it takes anything from the module. */
WEFT_API extern const char *const weft_module_version;
const char *const weft_module_version = WEFT_MODULE_VERSION;

static struct weft_cuda_gpu *gpu_of(const struct weft_device *device)
{
    return (struct weft_cuda_gpu *)device;
}

static void cuda_record(struct weft_stream *stream, struct weft_event *event)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    struct weft_cuda_event *e = (struct weft_cuda_event *)event;
    if (s->host != NULL) {
        weft_cuda_host_record(s, e);
        return;
    }
    cudaError_t code = weft_cuda_enter(s->gpu);
    if (code == cudaSuccess) code = weft_cuda_host_unpoll(s->gpu, e);
    if (code == cudaSuccess) code = cudaEventRecord(e->cuda, s->cuda);
    if (code == cudaSuccess) e->by = NULL;
    e->recorded = e->recorded || code == cudaSuccess;
    weft_cuda_stream_worked(stream, code, "record an event");
}

static void cuda_wait(struct weft_stream *stream, struct weft_event *event)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    struct weft_cuda_event *e = (struct weft_cuda_event *)event;
    if (s->host != NULL) {
        weft_cuda_host_wait(s, e);
        return;
    }
    if (!e->recorded) return;
    cudaError_t code = weft_cuda_enter(s->gpu);
    if (code == cudaSuccess)
        code =
            e->by != NULL ? weft_cuda_host_release(s, e) : cudaStreamWaitEvent(s->cuda, e->cuda, 0);
    weft_cuda_stream_worked(stream, code, "wait for an event");
}

static enum weft_status cuda_event_create(struct weft_device *device, struct weft_event **out,
                                          struct weft_error *err)
{
    struct weft_cuda_event *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(err, "an event");
    e->event.device = device;
    cudaError_t code = weft_cuda_enter(gpu_of(device));
    if (code == cudaSuccess) code = cudaEventCreateWithFlags(&e->cuda, cudaEventDisableTiming);
    if (code != cudaSuccess) {
        free(e);
        return weft_cuda_fail(code, "make an event", err);
    }
    *out = &e->event;
    return WEFT_OK;
}

static void cuda_event_destroy(struct weft_event *event)
{
    cudaEventDestroy(((struct weft_cuda_event *)event)->cuda);
    free(event);
}

/* The device has the wall clock only, so functions of the virtual clock do nothing. */
static void cuda_advance(struct weft_stream *stream, int64_t ns)
{
    (void)stream;
    (void)ns;
}

static void cuda_run(struct weft_stream *stream, int64_t start_ns, int64_t ns)
{
    (void)stream;
    (void)start_ns;
    (void)ns;
}

static int64_t cuda_now(const struct weft_stream *stream)
{
    (void)stream;
    return weft_clock_now_ns();
}

static enum weft_status cuda_contend(struct weft_stream *stream, int lane, struct weft_rates rates,
                                     struct weft_error *err)
{
    (void)stream;
    (void)lane;
    (void)rates;
    return weft_fail(err, WEFT_E_INTERNAL, "device \"cuda\" has no virtual clock");
}

static void cuda_close(struct weft_device *device)
{
    struct weft_cuda_gpu *gpu = gpu_of(device);
    if (gpu->anchor != NULL) cudaEventDestroy(gpu->anchor);
    if (gpu->clock != NULL) cudaStreamDestroy(gpu->clock);
    weft_nvml_close(&gpu->nvml);
    weft_cuda_host_forget(gpu);
    weft_cuda_driver_close(&gpu->driver);
    pthread_mutex_destroy(&gpu->lock);
    free(gpu);
}

/* With one visible GPU every rank takes it. With several, local rank r takes GPU r. */
static enum weft_status choose_gpu(struct weft_cuda_gpu *gpu, struct weft_error *err)
{
    int n = 0;
    const char *text = getenv("LOCAL_RANK");
    const long local = text != NULL ? strtol(text, NULL, 10) : 0;
    const cudaError_t code = cudaGetDeviceCount(&n);
    if (code != cudaSuccess) return weft_cuda_fail(code, "look for GPUs", err);
    if (n > 1 && local >= n) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "local rank %ld has no GPU: %d are visible. Start at most %d ranks on "
                         "this node, or let each see one (CUDA_VISIBLE_DEVICES)",
                         local, n, n);
    }
    gpu->ordinal = n > 1 ? (int)local : 0;
    return WEFT_OK;
}

static enum weft_status open_gpu(struct weft_cuda_gpu *gpu, struct weft_error *err)
{
    struct cudaDeviceProp properties;
    WEFT_TRY(choose_gpu(gpu, err));
    cudaError_t code = weft_cuda_enter(gpu);
    if (code == cudaSuccess) code = cudaGetDeviceProperties(&properties, gpu->ordinal);
    if (code != cudaSuccess) return weft_cuda_fail(code, "open the GPU", err);
    snprintf(gpu->name, sizeof gpu->name, "%s", properties.name);
    memcpy(gpu->uuid, properties.uuid.bytes, sizeof gpu->uuid);
    if (properties.major >= LEAST_CAPABILITY) return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "GPU %d, %s, has compute capability %d.%d, and Weft's kernels need %d.0 "
                     "(A100, RTX 30 and newer)",
                     gpu->ordinal, gpu->name, properties.major, properties.minor, LEAST_CAPABILITY);
}

static enum weft_status cuda_open(enum weft_clock clock, struct weft_device **out,
                                  struct weft_error *err)
{
    if (clock != WEFT_CLOCK_WALL) {
        return weft_fail(err, WEFT_E_USAGE,
                         "device \"cuda\" has no virtual clock, which is the CPU's: leave it out, "
                         "or train with cluster.device.type \"cpu\"");
    }
    struct weft_cuda_gpu *gpu = calloc(1, sizeof *gpu);
    if (gpu == NULL) return weft_fail_memory(err, "a device");
    gpu->device.ops = &weft_device_cuda;
    gpu->device.clock = clock;
    pthread_mutex_init(&gpu->lock, NULL);
    const enum weft_status status = open_gpu(gpu, err);
    if (status != WEFT_OK) {
        cuda_close(&gpu->device);
        return status;
    }
    *out = &gpu->device;
    return WEFT_OK;
}

static const char *cuda_hardware(const struct weft_device *device)
{
    const struct weft_cuda_gpu *gpu = (const struct weft_cuda_gpu *)device;
    return gpu->name;
}

const struct weft_device_ops weft_device_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .describe = weft_cuda_describe,
    .hardware = cuda_hardware,
    .memory = weft_cuda_memory,
    .stream_create = weft_cuda_stream_create,
    .stream_create_on_host = weft_cuda_stream_create_on_host,
    .stream_destroy = weft_cuda_stream_destroy,
    .event_create = cuda_event_create,
    .event_destroy = cuda_event_destroy,
    .push = weft_cuda_stream_push,
    .on_failure = weft_cuda_stream_on_failure,
    .stop = weft_cuda_stream_stop,
    .record = cuda_record,
    .wait = cuda_wait,
    .stamp = weft_cuda_stream_stamp,
    .advance = cuda_advance,
    .synchronise = weft_cuda_stream_synchronise,
    .now = cuda_now,
    .run = cuda_run,
    .contend = cuda_contend,
};
