/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Failures */

/* Fails the stream with *err. Only the first failure is kept and reported. */
static void fail_stream(struct weft_cuda_stream *s, const struct weft_error *err)
{
    pthread_mutex_lock(&s->lock);
    const bool first = s->status == WEFT_OK;
    if (first) {
        s->status = err->status;
        s->error = *err;
    }
    pthread_mutex_unlock(&s->lock);
    atomic_store(&s->failed, true);
    if (first && s->on_failure != NULL) s->on_failure(s->on_failure_context);
}

bool weft_cuda_stream_goes_on(const struct weft_cuda_stream *s)
{
    return !atomic_load(&s->failed) && !atomic_load(&s->stopped);
}

void weft_cuda_stream_fail(struct weft_stream *stream, const struct weft_error *err)
{
    fail_stream(weft_cuda_stream_of(stream), err);
}

cudaStream_t weft_cuda_stream_open_for_work(struct weft_stream *stream)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    if (!weft_cuda_stream_goes_on(s)) return NULL;
    const cudaError_t code = s->host != NULL ? cudaErrorNotPermitted : weft_cuda_enter(s->gpu);
    if (code == cudaSuccess) return s->cuda;
    weft_cuda_stream_worked(stream, code, "use the GPU");
    return NULL;
}

bool weft_cuda_stream_lives(struct weft_cuda_gpu *gpu, const struct weft_stream *stream)
{
    pthread_mutex_lock(&gpu->lock);
    const struct weft_cuda_stream *s = gpu->streams;
    while (s != NULL && &s->stream != stream)
        s = s->next;
    pthread_mutex_unlock(&gpu->lock);
    return s != NULL;
}

void weft_cuda_stream_worked(struct weft_stream *stream, cudaError_t code, const char *what)
{
    struct weft_error err = {0};
    if (code == cudaSuccess) return;
    (void)weft_cuda_fail(code, what, &err);
    fail_stream(weft_cuda_stream_of(stream), &err);
}

void weft_cuda_stream_call(struct weft_stream *stream, weft_cuda_call_fn *call, const char *what,
                           const void *argument, size_t bytes)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    if (s->host != NULL)
        weft_cuda_host_call(s, call, what, argument, bytes);
    else if (weft_cuda_stream_open_for_work(stream) != NULL)
        weft_cuda_stream_worked(stream, call(s, argument), what);
}

/* Tasks */

void weft_cuda_stream_run(struct weft_cuda_stream *s, weft_task_fn *task, const void *argument)
{
    struct weft_error err = {0};
    if (!weft_cuda_stream_goes_on(s)) return;
    const enum weft_status status = task(&s->stream, argument, &err);
    if (status == WEFT_OK) return;
    weft_fail(&err, status, "a task on stream \"%s\" failed: %s", s->name,
              weft_status_text(status));
    fail_stream(s, &err);
}

/* Called by the stream. */
static void run_task(void *argument)
{
    struct weft_cuda_task *task = argument;
    struct weft_cuda_stream *s = task->stream;
    weft_cuda_stream_run(s, task->run, task->argument);
    atomic_fetch_add(&s->done, 1);
}

/* The next free task of the ring, or NULL after a failure. It waits for room. Earlier tasks end
 * without help, unless CUDA has failed. */
static struct weft_cuda_task *next_task(struct weft_cuda_stream *s)
{
    const int64_t since_ns = weft_clock_now_ns();
    while (s->pushed - atomic_load(&s->done) == s->n_tasks) {
        const cudaError_t code = weft_cuda_nap(s->gpu, s->cuda, since_ns);
        if (!weft_cuda_is_bad(code)) continue;
        weft_cuda_stream_worked(&s->stream, code, "go on");
        return NULL;
    }
    return &s->tasks[s->pushed % s->n_tasks];
}

void weft_cuda_stream_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                           size_t bytes)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    if (s->host != NULL) {
        weft_cuda_host_push(s, task, argument, bytes);
        return;
    }
    if (weft_cuda_stream_open_for_work(stream) == NULL) return;
    struct weft_cuda_task *next = next_task(s);
    if (next == NULL) return;
    next->stream = s;
    next->run = task;
    if (bytes > 0) memcpy(next->argument, argument, bytes);
    const cudaError_t code = cudaLaunchHostFunc(s->cuda, run_task, next);
    if (code == cudaSuccess) s->pushed++;
    weft_cuda_stream_worked(stream, code, "put a function on a stream");
}

void weft_cuda_stream_on_failure(struct weft_stream *stream, weft_failure_fn *function,
                                 void *context)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    s->on_failure = function;
    s->on_failure_context = context;
}

void weft_cuda_stream_stop(struct weft_stream *stream)
{
    atomic_store(&weft_cuda_stream_of(stream)->stopped, true);
}

/* Stamps */

/* Writes the times of reached stamps. The caller holds the GPU's lock. */
static cudaError_t tell_stamps(struct weft_cuda_stream *s)
{
    for (; s->first_stamp != s->next_stamp; s->first_stamp++, s->gpu->n_stamps--) {
        const struct weft_cuda_stamp *stamp = &s->stamps[s->first_stamp % s->n_tasks];
        const cudaError_t asked = cudaEventQuery(stamp->event);
        if (asked == cudaErrorNotReady) return cudaSuccess;
        if (asked != cudaSuccess) return asked;
        const cudaError_t code = weft_cuda_time_of(s->gpu, stamp->event, stamp->issued_ns,
                                                   weft_clock_now_ns(), stamp->ns);
        if (code != cudaSuccess) return code;
    }
    return cudaSuccess;
}

/* Covers all streams: if another stream waited for this one's work, its earlier stamps are complete
 * too. */
static cudaError_t tell_all_stamps(struct weft_cuda_gpu *gpu)
{
    cudaError_t code = cudaSuccess;
    pthread_mutex_lock(&gpu->lock);
    for (struct weft_cuda_stream *s = gpu->streams; s != NULL && code == cudaSuccess; s = s->next)
        code = tell_stamps(s);
    pthread_mutex_unlock(&gpu->lock);
    return code;
}

/* The caller holds the GPU's lock. */
static cudaError_t put_stamp(struct weft_cuda_stream *s, int64_t *ns)
{
    struct weft_cuda_stamp *stamp = &s->stamps[s->next_stamp % s->n_tasks];
    cudaError_t code = weft_cuda_anchor(s->gpu);
    if (code == cudaSuccess && stamp->event == NULL)
        code = cudaEventCreateWithFlags(&stamp->event, cudaEventDefault);
    stamp->ns = ns;
    stamp->issued_ns = weft_clock_now_ns();
    if (code == cudaSuccess) code = cudaEventRecord(stamp->event, s->cuda);
    if (code != cudaSuccess) return code;
    s->next_stamp++;
    s->gpu->n_stamps++;
    return cudaSuccess;
}

static cudaError_t stamp_stream(struct weft_cuda_stream *s, int64_t *ns)
{
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaSuccess;
    bool room = false;
    while (!room && !weft_cuda_is_bad(code)) {
        pthread_mutex_lock(&s->gpu->lock);
        code = tell_stamps(s);
        room = s->next_stamp - s->first_stamp < s->n_tasks;
        if (room && code == cudaSuccess) code = put_stamp(s, ns);
        pthread_mutex_unlock(&s->gpu->lock);
        if (!room && code == cudaSuccess) code = weft_cuda_nap(s->gpu, s->cuda, since_ns);
    }
    return code;
}

/* A failed stream still takes stamps. */
void weft_cuda_stream_stamp(struct weft_stream *stream, int64_t *ns)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    if (s->host != NULL) {
        weft_cuda_host_stamp(s, ns);
        return;
    }
    cudaError_t code = weft_cuda_enter(s->gpu);
    if (code == cudaSuccess) code = stamp_stream(s, ns);
    weft_cuda_stream_worked(stream, code, "take a time");
}

enum weft_status weft_cuda_stream_synchronise(struct weft_stream *stream, struct weft_error *err)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    cudaError_t code = weft_cuda_enter(s->gpu);
    if (code == cudaSuccess)
        code = s->host != NULL ? weft_cuda_host_await(s) : weft_cuda_await(s->gpu, s->cuda);
    if (code == cudaSuccess) code = tell_all_stamps(s->gpu);
    weft_cuda_stream_worked(stream, code, "finish the work of a stream");
    pthread_mutex_lock(&s->lock);
    const struct weft_error error = s->error;
    const enum weft_status status = s->status;
    pthread_mutex_unlock(&s->lock);
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", error.text);
}

/* Creation and destruction */

static void free_stream(struct weft_cuda_stream *s)
{
    weft_cuda_host_finish(s);
    for (uint32_t i = 0; s->stamps != NULL && i < s->n_tasks; i++) {
        if (s->stamps[i].event != NULL) cudaEventDestroy(s->stamps[i].event);
    }
    weft_cuda_mailbox_finish(&s->mailbox);
    if (s->cuda != NULL) cudaStreamDestroy(s->cuda);
    pthread_mutex_destroy(&s->lock);
    free(s->stamps);
    free(s->tasks);
    free(s);
}

/* All streams except "compute" get the higher priority, so their work runs first where both want
 * the GPU. Copies between host and GPU have engines of their own and ignore priorities. */
static cudaError_t create_cuda_stream(struct weft_cuda_stream *s)
{
    int least = 0, greatest = 0;
    const cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (code != cudaSuccess) return code;
    const int priority = strcmp(s->name, "compute") == 0 ? least : greatest;
    return cudaStreamCreateWithPriority(&s->cuda, cudaStreamNonBlocking, priority);
}

static enum weft_status make_stream(struct weft_cuda_gpu *gpu, const char *name, int32_t queue,
                                    struct weft_cuda_stream **out, struct weft_error *err)
{
    struct weft_cuda_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return weft_fail_memory(err, "a stream");
    *out = s;
    pthread_mutex_init(&s->lock, NULL);
    s->stream.device = &gpu->device;
    s->gpu = gpu;
    s->n_tasks = (uint32_t)queue;
    strncpy(s->name, name, sizeof s->name - 1);
    cudaError_t code = weft_cuda_enter(gpu);
    if (code == cudaSuccess) code = create_cuda_stream(s);
    return code == cudaSuccess ? WEFT_OK : weft_cuda_fail(code, "make a stream", err);
}

/* The mailbox of a stream of the host is its thread's, which must not tend the GPU's owner. */
static enum weft_status fill_stream(struct weft_cuda_stream *s, bool on_host,
                                    struct weft_error *err)
{
    weft_cuda_mailbox_init(&s->mailbox, on_host ? NULL : s->gpu, s->cuda);
    if (on_host) return weft_cuda_host_start(s, err);
    s->tasks = calloc(s->n_tasks, sizeof *s->tasks);
    s->stamps = calloc(s->n_tasks, sizeof *s->stamps);
    return s->tasks != NULL && s->stamps != NULL ? WEFT_OK : weft_fail_memory(err, "a stream");
}

static enum weft_status create_stream(struct weft_device *device, const char *name, int32_t queue,
                                      bool on_host, struct weft_stream **out,
                                      struct weft_error *err)
{
    struct weft_cuda_gpu *gpu = (struct weft_cuda_gpu *)device;
    struct weft_cuda_stream *s = NULL;
    enum weft_status status = make_stream(gpu, name, queue, &s, err);
    if (status == WEFT_OK) status = fill_stream(s, on_host, err);
    if (status != WEFT_OK) {
        if (s != NULL) free_stream(s);
        return status;
    }
    pthread_mutex_lock(&gpu->lock);
    s->next = gpu->streams;
    gpu->streams = s;
    pthread_mutex_unlock(&gpu->lock);
    *out = &s->stream;
    return WEFT_OK;
}

enum weft_status weft_cuda_stream_create(struct weft_device *device, const char *name,
                                         int32_t queue, struct weft_stream **out,
                                         struct weft_error *err)
{
    return create_stream(device, name, queue, false, out, err);
}

enum weft_status weft_cuda_stream_create_on_host(struct weft_device *device, const char *name,
                                                 int32_t queue, struct weft_stream **out,
                                                 struct weft_error *err)
{
    return create_stream(device, name, queue, true, out, err);
}

void weft_cuda_stream_destroy(struct weft_stream *stream)
{
    struct weft_cuda_stream *s = weft_cuda_stream_of(stream);
    struct weft_cuda_gpu *gpu = s->gpu;
    struct weft_error unsaid = {0};
    (void)weft_cuda_stream_synchronise(stream, &unsaid);
    pthread_mutex_lock(&gpu->lock);
    struct weft_cuda_stream **at = &gpu->streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    gpu->n_stamps -= (int32_t)(s->next_stamp - s->first_stamp);
    pthread_mutex_unlock(&gpu->lock);
    free_stream(s);
}
