/* A stream on a GPU. GPU work enters CUDA's stream when it is issued. A task is a host function
 * that the stream calls in order. It must not call CUDA. */
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

struct weft_cuda_stream {
    struct weft_stream stream; /* first */
    struct weft_cuda_gpu *gpu;
    struct weft_cuda_stream *next;
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

/* CUDA's stream, for back ends that add work to it directly. Returns NULL after a failure or a
 * stop: then add nothing. */
cudaStream_t weft_cuda_stream_open_for_work(struct weft_stream *stream);
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
void weft_cuda_stream_destroy(struct weft_stream *stream);
void weft_cuda_stream_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                           size_t bytes);
void weft_cuda_stream_on_failure(struct weft_stream *stream, weft_failure_fn *function,
                                 void *context);
void weft_cuda_stream_stop(struct weft_stream *stream);
void weft_cuda_stream_stamp(struct weft_stream *stream, int64_t *ns);
enum weft_status weft_cuda_stream_synchronise(struct weft_stream *stream, struct weft_error *err);

#endif
