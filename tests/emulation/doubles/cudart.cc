/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libcudart: the functions that Weft calls. */
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sys/mman.h>

#include "tests/emulation/doubles/launches.h"

#define ENTER                                                                                      \
    std::unique_lock<std::mutex> door(double_door);                                                \
    do {                                                                                           \
        const cudaError_t code_ = double_enter(__func__, DOUBLE_PLACE);                            \
        if (code_ != cudaSuccess) return code_;                                                    \
    } while (0)

/* Never freed: the leak check uses it at the program's end. */
struct handles {
    std::set<struct double_stream *> streams;
    std::set<struct double_event *> events;
};

static struct handles *handles(void)
{
    static struct handles *const all = new struct handles();
    return all;
}

/* Returns the stream, or NULL with a finding. */
static struct double_stream *stream_of(cudaStream_t given, const char *call)
{
    struct double_stream *stream = (struct double_stream *)given;
    if (given == NULL || given == cudaStreamLegacy || given == cudaStreamPerThread) {
        weft_double_find(DOUBLE_DEFAULT_STREAM, "%s on the default stream", call);
        return NULL;
    }
    return handles()->streams.count(stream) > 0 ? stream : NULL;
}

/* A function that frees does so before it returns its code. After a lasting failure it frees
 * nothing, since earlier work may still use it. */
#define LEAVE_IF_BROKEN                                                                            \
    do {                                                                                           \
        if (double_is_broken()) return double_enter(__func__, DOUBLE_PLACE);                       \
    } while (0)

static struct double_event *event_of(cudaEvent_t given)
{
    struct double_event *event = (struct double_event *)given;
    return handles()->events.count(event) > 0 ? event : NULL;
}

static int64_t now_ns(void)
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void weft_double_look_for_leaks(void)
{
    const size_t streams = handles()->streams.size(), events = handles()->events.size(),
                 pieces = double_memory_count();
    if (streams + events + pieces == 0) return;
    weft_double_find(DOUBLE_LEAK, "%zu streams, %zu events and %zu pieces of memory are left",
                     streams, events, pieces);
}

extern "C" {

/* Functions that nvcc's host code calls */

void **__cudaRegisterFatBinary(void *binary)
{
    (void)binary;
    static void *handle;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, dim3 *block_size,
                            dim3 *grid_size, int *warp_size)
{
    (void)handle;
    (void)device;
    (void)thread_limit;
    (void)thread;
    (void)block;
    (void)block_size;
    (void)grid_size;
    (void)warp_size;
    double_kernel_add(host, name);
}

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};
static thread_local std::vector<struct configuration> configurations;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream)
{
    configurations.push_back({grid, block, shared_bytes, stream});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream)
{
    if (configurations.empty()) return cudaErrorMissingConfiguration;
    const struct configuration last = configurations.back();
    configurations.pop_back();
    *grid = last.grid;
    *block = last.block;
    *shared_bytes = last.shared_bytes;
    memcpy(stream, &last.stream, sizeof(last.stream));
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)host;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t given)
{
    ENTER;
    struct double_stream *stream = stream_of(given, "a kernel");
    std::function<void(uint32_t id)> run;
    std::string name;
    if (stream == NULL) return cudaErrorInvalidResourceHandle;
    const cudaError_t error =
        double_kernel_prepare(host, grid, block, shared_bytes, arguments, &name, &run);
    if (error == cudaSuccess) double_issue(stream, name.c_str(), run);
    return error;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared_bytes, stream);
}

/* The GPU */

static const char *const gpus_name = "WEFT_DOUBLE_GPUS";

static int count_gpus(void)
{
    const char *text = getenv(gpus_name);
    return text != NULL ? atoi(text) : 1;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    ENTER;
    *count = count_gpus();
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static int current_gpu;

cudaError_t cudaSetDevice(int device)
{
    ENTER;
    if (device < 0 || device >= count_gpus()) return cudaErrorInvalidDevice;
    current_gpu = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    ENTER;
    *device = current_gpu;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    ENTER;
    const char *gpu = getenv("WEFT_DOUBLE_GPU");
    const int capability = gpu != NULL && strncmp(gpu, "sm_", 3) == 0 ? atoi(gpu + 3) : 80;
    if (device < 0 || device >= count_gpus()) return cudaErrorInvalidDevice;
    *properties = cudaDeviceProp();
    snprintf(properties->name, sizeof(properties->name), "a double of sm_%d", capability);
    properties->major = capability / 10;
    properties->minor = capability % 10;
    properties->totalGlobalMem = (size_t)4 << 30;
    properties->uuid.bytes[0] = (char)(device + 1);
    return cudaSuccess;
}

/* Clocks in kHz and widths of an A100. The double has no real rates. */
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    ENTER;
    static const struct {
        cudaDeviceAttr attribute;
        int value;
    } known[] = {{cudaDevAttrClockRate, 1410000},
                 {cudaDevAttrMemoryClockRate, 1215000},
                 {cudaDevAttrGlobalMemoryBusWidth, 5120},
                 {cudaDevAttrMultiProcessorCount, 108}};
    if (device < 0 || device >= count_gpus()) return cudaErrorInvalidDevice;
    for (const auto &one : known) {
        if (one.attribute != attribute) continue;
        *value = one.value;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    ENTER;
    const int n = count_gpus();
    if (device < 0 || device >= n || peer < 0 || peer >= n) return cudaErrorInvalidDevice;
    *can = getenv("WEFT_DOUBLE_NO_PEERS") == NULL && device != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER;
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    ENTER;
    *total_bytes = (size_t)4 << 30;
    const char *taken = getenv("WEFT_DOUBLE_TAKEN_BYTES"); /* by other processes */
    *free_bytes = *total_bytes - double_memory_device_bytes() -
                  (taken != NULL ? strtoull(taken, NULL, 10) : 0);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* Codes */

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaSuccess ? "cudaSuccess" : "cudaError";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error of the double";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

/* Streams */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    ENTER;
    (void)priority;
    if (flags != cudaStreamNonBlocking) {
        weft_double_find(DOUBLE_DEFAULT_STREAM, "a stream that waits for the default stream");
    }
    struct double_stream *made = double_stream_open();
    handles()->streams.insert(made);
    *stream = (cudaStream_t)made;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t given)
{
    std::unique_lock<std::mutex> door(double_door);
    LEAVE_IF_BROKEN;
    struct double_stream *stream = stream_of(given, __func__);
    if (stream == NULL) {
        weft_double_find(DOUBLE_FREED_TWICE, "a stream is destroyed that is not there");
        return cudaErrorInvalidResourceHandle;
    }
    handles()->streams.erase(stream);
    double_stream_close(stream, door);
    return double_enter(__func__, DOUBLE_PLACE);
}

cudaError_t cudaStreamQuery(cudaStream_t given)
{
    ENTER;
    struct double_stream *stream = stream_of(given, __func__);
    if (stream == NULL) return cudaErrorInvalidResourceHandle;
    if (!double_stream_is_idle(stream)) return cudaErrorNotReady;
    double_host_learns(stream->clock);
    double_host_learns(stream->acquired);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t given)
{
    ENTER;
    struct double_stream *stream = stream_of(given, __func__);
    weft_double_find(DOUBLE_BLOCKING, "%s", __func__);
    if (stream == NULL) return cudaErrorInvalidResourceHandle;
    double_moved.wait(door, [=] { return double_stream_is_idle(stream); });
    double_host_learns(stream->clock);
    double_host_learns(stream->acquired);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t given, cudaHostFn_t function, void *argument)
{
    ENTER;
    /* CUDA may run host functions one at a time across streams, so the double does. */
    static std::mutex *const one_at_a_time = new std::mutex();
    struct double_stream *stream = stream_of(given, __func__);
    if (stream == NULL) return cudaErrorInvalidResourceHandle;
    double_issue(stream, "a function of the host", [=](uint32_t id) {
        (void)id;
        const std::lock_guard<std::mutex> guard(*one_at_a_time);
        function(argument);
    });
    return cudaSuccess;
}

/* Events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    ENTER;
    struct double_event *made = new struct double_event();
    made->timed = (flags & cudaEventDisableTiming) == 0;
    handles()->events.insert(made);
    *event = (cudaEvent_t)made;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t given)
{
    std::unique_lock<std::mutex> door(double_door);
    LEAVE_IF_BROKEN;
    struct double_event *event = event_of(given);
    if (event == NULL) {
        weft_double_find(DOUBLE_FREED_TWICE, "an event is destroyed that is not there");
        return cudaErrorInvalidResourceHandle;
    }
    handles()->events.erase(event);
    delete event;
    return double_enter(__func__, DOUBLE_PLACE);
}

cudaError_t cudaEventRecord(cudaEvent_t given, cudaStream_t given_stream)
{
    ENTER;
    struct double_stream *stream = stream_of(given_stream, __func__);
    struct double_event *event = event_of(given);
    if (stream == NULL || event == NULL) return cudaErrorInvalidResourceHandle;
    const auto mark = std::make_shared<struct double_mark>();
    mark->dropped = !event->timed && double_drops(stream->behind);
    double_issue(
        stream, "a record",
        [=](uint32_t id) {
            (void)id;
            const std::lock_guard<std::mutex> guard(double_door);
            mark->reached = true;
            mark->acquired = stream->acquired;
            mark->ns = now_ns();
            double_moved.notify_all();
        },
        NULL, true);
    mark->clock = stream->clock;
    event->last = mark;
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t given_stream, cudaEvent_t given, unsigned flags)
{
    ENTER;
    (void)flags;
    struct double_stream *stream = stream_of(given_stream, __func__);
    struct double_event *event = event_of(given);
    if (stream == NULL || event == NULL) return cudaErrorInvalidResourceHandle;
    if (event->last == NULL) {
        weft_double_find(DOUBLE_NEVER_RECORDED, "a stream waits for an event of no record");
        return cudaSuccess;
    }
    if (!event->last->dropped) double_issue(stream, "a wait", NULL, event->last);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t given)
{
    ENTER;
    struct double_event *event = event_of(given);
    if (event == NULL) return cudaErrorInvalidResourceHandle;
    if (event->last == NULL || event->last->dropped) return cudaSuccess;
    if (!event->last->reached) return cudaErrorNotReady;
    double_host_learns(event->last->clock);
    double_host_learns(event->last->acquired);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t given)
{
    ENTER;
    struct double_event *event = event_of(given);
    weft_double_find(DOUBLE_BLOCKING, "%s", __func__);
    if (event == NULL) return cudaErrorInvalidResourceHandle;
    if (event->last == NULL) return cudaSuccess;
    const std::shared_ptr<double_mark> mark = event->last;
    double_moved.wait(door, [=] { return mark->reached; });
    double_host_learns(mark->clock);
    double_host_learns(mark->acquired);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    ENTER;
    struct double_event *a = event_of(from), *b = event_of(to);
    if (a == NULL || b == NULL || !a->timed || !b->timed) return cudaErrorInvalidResourceHandle;
    if (a->last == NULL || b->last == NULL) return cudaErrorInvalidResourceHandle;
    if (!a->last->reached || !b->last->reached) return cudaErrorNotReady;
    *ms = (float)((double)(b->last->ns - a->last->ns) * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    ENTER;
    weft_double_find(DOUBLE_BLOCKING, "%s", __func__);
    for (struct double_stream *stream : handles()->streams) {
        double_moved.wait(door, [=] { return double_stream_is_idle(stream); });
        double_host_learns(stream->clock);
        double_host_learns(stream->acquired);
    }
    return cudaSuccess;
}

/* Memory */

enum { ALIGNMENT = 4096 };

static void *allocate(size_t bytes, enum double_memory kind)
{
    const size_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, whole);
    if (memory == NULL) return NULL;
    memset(memory, 0xff, whole);
    double_memory_add(memory, bytes, kind);
    return memory;
}

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    ENTER;
    *at = bytes > 0 ? allocate(bytes, DOUBLE_OF_DEVICE) : NULL;
    return *at != NULL || bytes == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *at)
{
    const std::lock_guard<std::mutex> guard(double_door);
    LEAVE_IF_BROKEN;
    if (at == NULL) return cudaSuccess;
    if (!double_memory_remove(at, DOUBLE_OF_DEVICE)) return cudaErrorInvalidValue;
    free(at);
    return double_enter(__func__, DOUBLE_PLACE);
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
    ENTER;
    (void)flags;
    *at = bytes > 0 ? allocate(bytes, DOUBLE_PINNED) : NULL;
    return *at != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *at)
{
    const std::lock_guard<std::mutex> guard(double_door);
    LEAVE_IF_BROKEN;
    if (at == NULL) return cudaSuccess;
    if (!double_memory_remove(at, DOUBLE_PINNED)) return cudaErrorInvalidValue;
    free(at);
    return double_enter(__func__, DOUBLE_PLACE);
}

/* A system call on the pages shows whether they are mapped. */
static bool is_mapped(void *at, size_t bytes)
{
    const size_t before = (uintptr_t)at % ALIGNMENT;
    return msync((char *)at - before, bytes + before, MS_ASYNC) == 0;
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
    ENTER;
    if (bytes == 0 || flags != cudaHostRegisterDefault || !is_mapped(at, bytes))
        return cudaErrorInvalidValue;
    if (double_memory_touches(at, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
    if (!double_drops(__func__)) double_memory_add(at, bytes, DOUBLE_REGISTERED);
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *at)
{
    const std::lock_guard<std::mutex> guard(double_door);
    LEAVE_IF_BROKEN;
    if (!is_mapped(at, 1))
        weft_double_find(DOUBLE_FREED_TWICE, "%p is unpinned, and nothing is there any more", at);
    if (!double_memory_remove(at, DOUBLE_REGISTERED)) return cudaErrorHostMemoryNotRegistered;
    return double_enter(__func__, DOUBLE_PLACE);
}

static bool is_copied_asynchronously(const void *host, size_t bytes)
{
    if (double_memory_has(host, bytes, DOUBLE_PINNED) ||
        double_memory_has(host, bytes, DOUBLE_REGISTERED))
        return true;
    weft_double_find(DOUBLE_UNPINNED,
                     "an asynchronous copy of %zu bytes at %p, which are not pinned", bytes, host);
    return false;
}

static bool is_of_device(const void *at, size_t bytes)
{
    if (double_memory_is_device(at, bytes)) return true;
    weft_double_find(DOUBLE_BOUNDS, "%zu bytes at %p are not the device's", bytes, at);
    return false;
}

/* Finds the host's side among both addresses, not only by the kind. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t given)
{
    ENTER;
    struct double_stream *stream = stream_of(given, __func__);
    if (stream == NULL) return cudaErrorInvalidResourceHandle;
    const bool to_host = kind == cudaMemcpyDeviceToHost, from_host = kind == cudaMemcpyHostToDevice;
    if (!to_host && !from_host && kind != cudaMemcpyDeviceToDevice) return cudaErrorInvalidValue;
    if (!(to_host ? is_copied_asynchronously(to, bytes) : is_of_device(to, bytes)) ||
        !(from_host ? is_copied_asynchronously(from, bytes) : is_of_device(from, bytes))) {
        return cudaErrorInvalidValue;
    }
    const char *what = to_host     ? "a copy to the host"
                       : from_host ? "a copy from the host"
                                   : "a copy";
    double_issue(stream, what, [=](uint32_t id) {
        double_use(id, from, bytes, false);
        double_use(id, to, bytes, true);
        memcpy(to, from, bytes);
    });
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t given)
{
    ENTER;
    struct double_stream *stream = stream_of(given, __func__);
    if (stream == NULL) return cudaErrorInvalidResourceHandle;
    if (!is_of_device(to, bytes)) return cudaErrorInvalidValue;
    double_issue(stream, "a fill", [=](uint32_t id) {
        double_use(id, to, bytes, true);
        memset(to, value, bytes);
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    ENTER;
    (void)to;
    (void)from;
    (void)bytes;
    (void)kind;
    weft_double_find(DOUBLE_DEFAULT_STREAM, "%s", __func__);
    return cudaErrorInvalidValue;
}

} /* extern "C" */
