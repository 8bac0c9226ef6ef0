/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of the host: a thread with a queue. It does tasks that wait for a disk or compute for
 * long, which CUDA's host functions must not do. Its CUDA stream has only copies that the thread
 * issues and awaits. Events order it with other streams:
 * - it waits for a record of CUDA's by polling;
 * - each of its own records is the next value of a word in pinned memory. The thread stores that
 *   value, and CUDA's streams wait for it.
 * A stream that failed or stopped drops tasks and copies, and still stores every value: CUDA cannot
 * cancel a wait. No wait is for work that is issued later, so none lasts for ever. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine/mappings.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/futex.h"

enum item_kind { TASK, CALL, STAMP, RECORD, WAIT_FOR_EVENT, WAIT_FOR_WORD };

struct item {
    enum item_kind kind;
    weft_task_fn *task;
    weft_cuda_call_fn *call;
    const char *what;              /* of a call */
    int64_t *ns;                   /* of a stamp */
    struct weft_cuda_event *event; /* recorded by a stream of the device */
    const _Atomic uint32_t *word;  /* of the stream that recorded */
    uint32_t value;                /* of a record */
    _Alignas(max_align_t) unsigned char argument[WEFT_TASK_BYTES];
};

struct weft_cuda_host {
    struct weft_cuda_stream *stream;
    struct weft_cuda_host *next; /* of the finished ones */
    void *ring;                  /* of the mailbox, once finished */
    struct item *items;          /* [n_tasks of the stream] */
    pthread_t thread;
    bool started;
    _Atomic uint32_t pushed, done;
    _Atomic uint32_t bell; /* the thread sleeps on it; each push and the end change it */
    atomic_bool ends;
    uint32_t recorded;      /* value of the last record pushed */
    _Atomic uint32_t *word; /* pinned: value of the last record done */
};

/* Words count on, modulo 2^32. */
static bool has_come(const _Atomic uint32_t *word, uint32_t value)
{
    return (int32_t)(atomic_load(word) - value) >= 0;
}

/* The thread */

/* Whether polling goes on: `code` is not ready, and there is time. The thread calls no function of
 * the owner of pending work (gpu.h), because these are bound to the issuing thread. */
static bool polls_on(const struct weft_cuda_host *host, cudaError_t *code, int64_t since_ns,
                     int32_t tries)
{
    if (*code != cudaErrorNotReady || atomic_load(&host->ends)) return false;
    *code = weft_cuda_pause(since_ns, tries);
    return *code == cudaErrorNotReady;
}

static void wait_for_event(struct weft_cuda_host *host, struct weft_cuda_event *event)
{
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaErrorNotReady;
    for (int32_t tries = 0; polls_on(host, &code, since_ns, tries); tries++)
        code = cudaEventQuery(event->cuda);
    if (code == cudaErrorNotReady) code = cudaSuccess;
    weft_cuda_stream_worked(&host->stream->stream, code, "wait for an event");
    atomic_fetch_sub(&event->polls, 1);
}

static void wait_for_word(struct weft_cuda_host *host, const struct item *item)
{
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaErrorNotReady;
    for (int32_t tries = 0; polls_on(host, &code, since_ns, tries); tries++)
        if (has_come(item->word, item->value)) code = cudaSuccess;
    if (code == cudaErrorNotReady) code = cudaSuccess;
    weft_cuda_stream_worked(&host->stream->stream, code, "wait for an event");
}

/* Issues copies and awaits them. */
static void do_call(struct weft_cuda_stream *s, const struct item *item)
{
    cudaError_t code = weft_cuda_stream_goes_on(s) ? item->call(s, item->argument) : cudaSuccess;
    const cudaError_t ended = weft_cuda_await(NULL, s->cuda);
    weft_cuda_stream_worked(&s->stream, code != cudaSuccess ? code : ended, item->what);
}

static void do_item(struct weft_cuda_host *host, struct item *item)
{
    switch (item->kind) {
    case TASK:
        weft_cuda_stream_run(host->stream, item->task, item->argument);
        return;
    case CALL:
        do_call(host->stream, item);
        return;
    case STAMP:
        *item->ns = weft_clock_now_ns();
        return;
    case RECORD:
        atomic_store(host->word, item->value);
        return;
    case WAIT_FOR_EVENT:
        wait_for_event(host, item->event);
        return;
    case WAIT_FOR_WORD:
        wait_for_word(host, item);
        return;
    }
}

static void *work_on_host(void *argument)
{
    struct weft_cuda_host *host = argument;
    weft_cuda_stream_worked(&host->stream->stream, weft_cuda_enter(host->stream->gpu),
                            "use the GPU");
    for (;;) {
        const uint32_t bell = atomic_load(&host->bell), done = atomic_load(&host->done);
        if (atomic_load(&host->pushed) != done) {
            do_item(host, &host->items[done % host->stream->n_tasks]);
            atomic_store(&host->done, done + 1);
        } else if (atomic_load(&host->ends)) {
            return NULL;
        } else {
            weft_futex_wait(&host->bell, bell, -1, false);
        }
    }
}

static void ring_bell(struct weft_cuda_host *host)
{
    atomic_fetch_add(&host->bell, 1);
    weft_futex_wake(&host->bell, false);
}

/* Signals are the thread's that installed their handlers. */
static int start_thread(struct weft_cuda_host *host)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&host->thread, NULL, work_on_host, host);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    host->started = error == 0;
    return error;
}

enum weft_status weft_cuda_host_start(struct weft_cuda_stream *s, struct weft_error *err)
{
    char reason[WEFT_REFUSAL_BYTES];
    void *word = NULL;
    struct weft_cuda_host *host = calloc(1, sizeof *host);
    if (host == NULL) return weft_fail_memory(err, "a stream of the host");
    s->host = host;
    host->stream = s;
    host->items = calloc(s->n_tasks, sizeof *host->items);
    if (host->items == NULL) return weft_fail_memory(err, "a stream of the host");
    if (s->gpu->driver.library == NULL) WEFT_TRY(weft_cuda_driver_open(&s->gpu->driver, err));
    cudaError_t code =
        cudaHostAlloc(&word, sizeof *host->word, cudaHostAllocMapped | cudaHostAllocPortable);
    if (code != cudaSuccess) return weft_cuda_fail(code, "make a stream of the host", err);
    host->word = word;
    atomic_store(host->word, 0);
    code = weft_cuda_mailbox_open(&s->mailbox); /* a stream may wait for the thread by then */
    if (code != cudaSuccess) return weft_cuda_fail(code, "make a stream of the host", err);
    const int error = start_thread(host);
    if (error == 0) return WEFT_OK;
    weft_thread_refusal(error, reason, sizeof reason);
    return weft_fail(err, WEFT_E_SYSTEM, "a stream of the host: %s", reason);
}

void weft_cuda_host_finish(struct weft_cuda_stream *s)
{
    struct weft_cuda_host *host = s->host;
    if (host == NULL) return;
    if (host->started) {
        atomic_store(&s->stopped, true);
        atomic_store(&host->ends, true);
        ring_bell(host);
        pthread_join(host->thread, NULL);
    }
    free(host->items);
    host->items = NULL;
    host->ring = s->mailbox.ring;
    s->mailbox.ring = NULL;
    s->host = NULL;
    pthread_mutex_lock(&s->gpu->lock);
    host->next = s->gpu->finished;
    s->gpu->finished = host;
    pthread_mutex_unlock(&s->gpu->lock);
}

void weft_cuda_host_forget(struct weft_cuda_gpu *gpu)
{
    while (gpu->finished != NULL) {
        struct weft_cuda_host *host = gpu->finished;
        gpu->finished = host->next;
        if (host->ring != NULL) (void)cudaFreeHost(host->ring);
        if (host->word != NULL) (void)cudaFreeHost((void *)(uintptr_t)host->word);
        free(host);
    }
}

/* The issuing thread */

/* Sleeps briefly, and tends pending work. */
static cudaError_t nap_and_tend(const struct weft_cuda_gpu *gpu, int64_t since_ns, int32_t tries)
{
    const cudaError_t code = weft_cuda_pause(since_ns, tries);
    if (gpu->tend != NULL) gpu->tend(gpu->tend_context);
    return code;
}

/* Opens the next item; NULL after a failure. It waits for room. */
static struct item *open_item(struct weft_cuda_stream *s, enum item_kind kind)
{
    struct weft_cuda_host *host = s->host;
    const int64_t since_ns = weft_clock_now_ns();
    const uint32_t pushed = atomic_load(&host->pushed);
    cudaError_t code = cudaErrorNotReady;
    for (int32_t tries = 0; pushed - atomic_load(&host->done) == s->n_tasks; tries++) {
        code = nap_and_tend(s->gpu, since_ns, tries);
        if (code == cudaErrorNotReady) continue;
        weft_cuda_stream_worked(&s->stream, code, "go on");
        return NULL;
    }
    struct item *item = &host->items[pushed % s->n_tasks];
    item->kind = kind;
    return item;
}

static void close_item(struct weft_cuda_host *host)
{
    atomic_fetch_add(&host->pushed, 1);
    ring_bell(host);
}

void weft_cuda_host_push(struct weft_cuda_stream *s, weft_task_fn *task, const void *argument,
                         size_t bytes)
{
    struct item *item = open_item(s, TASK);
    if (item == NULL) return;
    item->task = task;
    if (bytes > 0) memcpy(item->argument, argument, bytes);
    close_item(s->host);
}

void weft_cuda_host_call(struct weft_cuda_stream *s, weft_cuda_call_fn *call, const char *what,
                         const void *argument, size_t bytes)
{
    struct item *item = open_item(s, CALL);
    if (item == NULL) return;
    item->call = call;
    item->what = what;
    if (bytes > 0) memcpy(item->argument, argument, bytes);
    close_item(s->host);
}

void weft_cuda_host_stamp(struct weft_cuda_stream *s, int64_t *ns)
{
    struct item *item = open_item(s, STAMP);
    if (item == NULL) return;
    item->ns = ns;
    close_item(s->host);
}

void weft_cuda_host_record(struct weft_cuda_stream *s, struct weft_cuda_event *event)
{
    struct item *item = open_item(s, RECORD);
    if (item == NULL) return;
    item->value = ++s->host->recorded;
    event->by = s->host;
    event->value = item->value;
    event->recorded = true;
    close_item(s->host);
}

void weft_cuda_host_wait(struct weft_cuda_stream *s, struct weft_cuda_event *event)
{
    if (!event->recorded || event->by == s->host) return;
    struct item *item = open_item(s, event->by == NULL ? WAIT_FOR_EVENT : WAIT_FOR_WORD);
    if (item == NULL) return;
    if (event->by == NULL) {
        item->event = event;
        atomic_fetch_add(&event->polls, 1);
    } else {
        item->word = event->by->word;
        item->value = event->value;
    }
    close_item(s->host);
}

/* A GPU or driver without waits for words makes the issuing thread wait. Then less overlaps. */
static cudaError_t wait_here(const struct weft_cuda_gpu *gpu, const struct weft_cuda_event *event)
{
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaErrorNotReady;
    for (int32_t tries = 0; code == cudaErrorNotReady; tries++)
        code = has_come(event->by->word, event->value) ? cudaSuccess
                                                       : nap_and_tend(gpu, since_ns, tries);
    return code;
}

cudaError_t weft_cuda_host_release(struct weft_cuda_stream *s, const struct weft_cuda_event *event)
{
    if (has_come(event->by->word, event->value)) return cudaSuccess;
    const CUresult code = s->gpu->driver.wait_word(s->cuda, (CUdeviceptr)(uintptr_t)event->by->word,
                                                   event->value, CU_STREAM_WAIT_VALUE_GEQ);
    return code == CUDA_ERROR_NOT_SUPPORTED ? wait_here(s->gpu, event) : (cudaError_t)code;
}

cudaError_t weft_cuda_host_unpoll(const struct weft_cuda_gpu *gpu,
                                  const struct weft_cuda_event *event)
{
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaErrorNotReady;
    for (int32_t tries = 0; atomic_load(&event->polls) > 0 && code == cudaErrorNotReady; tries++)
        code = nap_and_tend(gpu, since_ns, tries);
    return code == cudaErrorNotReady ? cudaSuccess : code;
}

cudaError_t weft_cuda_host_await(const struct weft_cuda_stream *s)
{
    const struct weft_cuda_host *host = s->host;
    const int64_t since_ns = weft_clock_now_ns();
    cudaError_t code = cudaErrorNotReady;
    for (int32_t tries = 0; code == cudaErrorNotReady; tries++)
        code = atomic_load(&host->done) == atomic_load(&host->pushed)
                   ? cudaSuccess
                   : nap_and_tend(s->gpu, since_ns, tries);
    return code;
}
