/* SPDX-License-Identifier: Apache-2.0 */
/* A stream on a GPU. GPU work enters CUDA's stream when it is issued. A task is a host function
 * that the stream calls in order. It must not call CUDA. A stream of the host (host_stream.c) has a
 * thread instead. */
#ifndef WEFT_RUNTIME_DEVICE_CUDA_STREAM_H
#define WEFT_RUNTIME_DEVICE_CUDA_STREAM_H

#include <stdatomic.h>

#include "runtime/device/cuda/gpu.h"
#include "runtime/device/cuda/mailbox.h"

struct weft_cuda_task {
    struct weft_cuda_stream *stream;
    weft_task_fn *run;
    _Alignas(max_align_t) unsigned char argument[WEFT_TASK_BYTES];
};

/* An event with a time, and the address for that time. */
struct weft_cuda_stamp {
    cudaEvent_t event;
    int64_t *ns;
    int64_t issued_ns;
};

struct weft_cuda_host; /* host_stream.c */

struct weft_cuda_event {
    struct weft_event event; /* first */
    cudaEvent_t cuda;
    bool recorded;             /* a wait for an event without a record returns at once */
    struct weft_cuda_host *by; /* recorded last; NULL: a stream of the device */
    uint32_t value;            /* of that record */
    _Atomic int32_t polls;     /* pending ones, of CUDA's event */
};

struct weft_cuda_stream {
    struct weft_stream stream; /* first */
    struct weft_cuda_gpu *gpu;
    struct weft_cuda_stream *next;
    struct weft_cuda_host *host; /* NULL: a stream of the device */
    cudaStream_t cuda;
    char name[16];
    struct weft_cuda_mailbox mailbox;
    struct weft_cuda_task *tasks; /* [n_tasks] */
    uint32_t n_tasks, pushed;
    _Atomic uint32_t done;
    struct weft_cuda_stamp *stamps; /* [n_tasks]; pending from first_stamp on */
    uint32_t first_stamp, next_stamp;
    weft_failure_fn *on_failure;
    void *on_failure_context;
    atomic_bool stopped, failed;
    pthread_mutex_t lock; /* of the two below */
    enum weft_status status;
    struct weft_error error;
};

static inline struct weft_cuda_stream *weft_cuda_stream_of(const struct weft_stream *stream)
{
    return (struct weft_cuda_stream *)stream;
}

/* CUDA's stream, for back ends that add work to it directly, on a stream of the device. Returns
 * NULL after a failure or a stop: then add nothing. */
cudaStream_t weft_cuda_stream_open_for_work(struct weft_stream *stream);
/* Adds copies and fills: `call` issues them on s->cuda. On a stream of the device it is called at
 * once. On one of the host its thread calls it in order, with a copy of the argument (at most
 * WEFT_TASK_BYTES), and awaits them. `what` completes "cannot ...". */
typedef cudaError_t weft_cuda_call_fn(struct weft_cuda_stream *s, const void *argument);
void weft_cuda_stream_call(struct weft_stream *stream, weft_cuda_call_fn *call, const char *what,
                           const void *argument, size_t bytes);
/* Runs a task now, unless the stream has failed or stopped. */
void weft_cuda_stream_run(struct weft_cuda_stream *s, weft_task_fn *task, const void *argument);
bool weft_cuda_stream_goes_on(const struct weft_cuda_stream *s);
/* Fails the stream with *err, unless it has failed before. */
void weft_cuda_stream_fail(struct weft_stream *stream, const struct weft_error *err);
/* False once the stream has been destroyed. */
bool weft_cuda_stream_lives(struct weft_cuda_gpu *gpu, const struct weft_stream *stream);
/* Checks CUDA's code after adding work. A code other than success fails the stream. */
void weft_cuda_stream_worked(struct weft_stream *stream, cudaError_t code, const char *what);

/* Functions of backend.h. */
enum weft_status weft_cuda_stream_create(struct weft_device *device, const char *name,
                                         int32_t queue, struct weft_stream **out,
                                         struct weft_error *err);
enum weft_status weft_cuda_stream_create_on_host(struct weft_device *device, const char *name,
                                                 int32_t queue, struct weft_stream **out,
                                                 struct weft_error *err);
void weft_cuda_stream_destroy(struct weft_stream *stream);
void weft_cuda_stream_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                           size_t bytes);
void weft_cuda_stream_on_failure(struct weft_stream *stream, weft_failure_fn *function,
                                 void *context);
void weft_cuda_stream_stop(struct weft_stream *stream);
void weft_cuda_stream_stamp(struct weft_stream *stream, int64_t *ns);
enum weft_status weft_cuda_stream_synchronise(struct weft_stream *stream, struct weft_error *err);

/* host_stream.c */
/* Starts the thread of `s`, whose CUDA stream, tasks and limits exist. WEFT_E_SYSTEM,
 * WEFT_E_ENVIRONMENT. */
enum weft_status weft_cuda_host_start(struct weft_cuda_stream *s, struct weft_error *err);
/* Joins the thread, which first stores all values. Accepts a stream without one. The word stays,
 * because other streams may still wait for it. */
void weft_cuda_host_finish(struct weft_cuda_stream *s);
/* Frees words. All streams of the GPU must be destroyed. */
void weft_cuda_host_forget(struct weft_cuda_gpu *gpu);

/* Queue an item. Only the issuing thread calls them. */
void weft_cuda_host_push(struct weft_cuda_stream *s, weft_task_fn *task, const void *argument,
                         size_t bytes);
void weft_cuda_host_call(struct weft_cuda_stream *s, weft_cuda_call_fn *call, const char *what,
                         const void *argument, size_t bytes);
void weft_cuda_host_stamp(struct weft_cuda_stream *s, int64_t *ns);
void weft_cuda_host_record(struct weft_cuda_stream *s, struct weft_cuda_event *event);
void weft_cuda_host_wait(struct weft_cuda_stream *s, struct weft_cuda_event *event);

/* Makes later work of CUDA's stream `s` wait for the event, which a stream of the host recorded. */
cudaError_t weft_cuda_host_release(struct weft_cuda_stream *s, const struct weft_cuda_event *event);
/* Waits until no stream of the host still polls the event, so that it can be recorded again. */
cudaError_t weft_cuda_host_unpoll(const struct weft_cuda_gpu *gpu,
                                  const struct weft_cuda_event *event);
/* Waits until the queue is empty. */
cudaError_t weft_cuda_host_await(const struct weft_cuda_stream *s);

#endif
