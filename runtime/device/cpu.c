/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device: a stream is a worker thread that calls functions from a ring, one after another.
 */
#define _GNU_SOURCE /* pthread_setname_np, prctl */
#include "runtime/device/backend.h"

#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/machine/cores.h"
#include "base/machine/mappings.h"
#include "runtime/device/device.h"
#include "runtime/device/futex.h"

enum {
    MARKS = 4, /* records of one event that may be pending at once */
    LINE_BYTES = 64,
    NAME_BYTES = 16, /* length of a thread's name in the kernel */
    /* Sleeping and waking cost several microseconds, so spinning for about as long loses little. A
     * longer spin would take the core from a computing thread. */
    SPIN_NS = 3000
};

/* In mark.users: the issuing thread sleeps until the mark has no user. */
static const uint32_t owner_sleeps = UINT32_C(1) << 31;

/* One record of an event. The worker reaches it, and waiters wait for it. Each record of an event
 * takes the next mark, so a wait keeps its own record and time. */
struct mark {
    _Atomic uint32_t reached;  /* futex word: 0 or 1 */
    _Atomic uint32_t sleepers; /* threads that sleep on `reached` */
    _Atomic uint32_t users;    /* queued items that still refer to it; futex word of the issuer */
    int64_t ns;                /* virtual time at which it was reached */
};

struct cpu_event {
    struct weft_event event; /* first */
    struct mark marks[MARKS];
    int last; /* mark of the latest record, -1 before the first; only the issuing thread uses it */
};

enum item_kind { ITEM_TASK, ITEM_RECORD, ITEM_WAIT, ITEM_STAMP, ITEM_ADVANCE, ITEM_EXIT };

struct item {
    alignas(LINE_BYTES) enum item_kind kind;
    union {
        weft_task_fn *task;
        struct mark *mark;
        int64_t *stamp;
        int64_t ns;
    } u;
    alignas(max_align_t) unsigned char argument[WEFT_TASK_BYTES];
};

struct cpu_stream {
    struct weft_stream stream; /* first */
    char name[NAME_BYTES];
    pthread_t worker;
    int64_t spin_ns;
    _Atomic bool contends; /* true if it is a lane of the device's timeline */
    int lane;
    weft_failure_fn *on_failure; /* or NULL */
    void *on_failure_context;
    atomic_bool stopped;

    /* The ring. `pushed` and `done` count items since the start, modulo 2^32. */
    alignas(LINE_BYTES) _Atomic uint32_t pushed; /* futex word of the worker */
    _Atomic uint32_t worker_sleeps;
    alignas(LINE_BYTES) _Atomic uint32_t done; /* futex word of the issuing thread */
    _Atomic uint32_t issuer_sleeps;
    _Atomic uint32_t wanted; /* the count of done items that wakes it */

    /* Only the worker writes these. Other threads may read them after they have seen `done`. */
    alignas(LINE_BYTES) int64_t now;
    struct weft_error error; /* of the first failed task */
    enum weft_status status;

    uint32_t ring_items; /* a power of two; a full ring blocks the issuing thread */
    struct item *items;  /* [ring_items] */
};

static struct cpu_stream *cpu_stream_of(const struct weft_stream *stream)
{
    return (struct cpu_stream *)stream;
}

/* True if the count `a` has reached `b`, modulo 2^32. */
static bool has_come_to(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) >= 0;
}

/* Spins for at most spin_ns while *word equals `seen`. Returns the last value read. */
static uint32_t spin_while(_Atomic uint32_t *word, uint32_t seen, int64_t spin_ns)
{
    uint32_t value = atomic_load_explicit(word, memory_order_acquire);
    if (value != seen || spin_ns == 0) return value;
    int64_t end_ns = weft_clock_now_ns() + spin_ns;
    do {
        for (int i = 0; i < 16; i++) {
            value = atomic_load_explicit(word, memory_order_acquire);
            if (value != seen) return value;
            weft_cpu_relax();
        }
    } while (weft_clock_now_ns() < end_ns);
    return value;
}

static bool is_virtual(const struct cpu_stream *s)
{
    return s->stream.device->clock == WEFT_CLOCK_VIRTUAL;
}

/* The worker */

/* An item's last use of its mark. The owner may reuse or free the mark right after it, so the wake
 * uses only its address. */
static void mark_leave(struct mark *mark)
{
    if (atomic_fetch_sub(&mark->users, 1) == (owner_sleeps | 1))
        weft_futex_wake(&mark->users, false);
}

static void mark_reach(struct mark *mark, int64_t ns)
{
    mark->ns = ns;
    atomic_store(&mark->reached, 1);
    if (atomic_load(&mark->sleepers) > 0) weft_futex_wake(&mark->reached, false);
    mark_leave(mark);
}

static void mark_await(struct mark *mark, int64_t spin_ns)
{
    if (spin_while(&mark->reached, 0, spin_ns) != 0) return;
    atomic_fetch_add(&mark->sleepers, 1);
    while (atomic_load(&mark->reached) == 0)
        weft_futex_wait(&mark->reached, 0, -1, false);
    atomic_fetch_sub(&mark->sleepers, 1);
}

/* The timeline of the stream, or NULL. */
static struct weft_timeline *timeline_of(const struct cpu_stream *s)
{
    return atomic_load(&s->contends) ? s->stream.device->timeline : NULL;
}

/* Returns the virtual time at which the mark was reached. */
static int64_t mark_wait(const struct cpu_stream *s, struct mark *mark)
{
    struct weft_timeline *timeline = timeline_of(s);
    if (timeline != NULL) weft_timeline_block(timeline, s->lane, &mark->reached);
    mark_await(mark, s->spin_ns);
    if (timeline != NULL) weft_timeline_go(timeline, s->lane);
    int64_t ns = mark->ns;
    mark_leave(mark);
    return ns;
}

/* Advances the stream's virtual time. */
static void work_for(struct cpu_stream *s, int64_t start_ns, int64_t ns)
{
    struct weft_timeline *timeline = timeline_of(s);
    if (timeline != NULL && ns > 0) {
        s->now = weft_timeline_run(timeline, s->lane, start_ns, ns);
    } else {
        s->now = start_ns > INT64_MAX - ns ? INT64_MAX : start_ns + ns;
    }
}

static void run_task(struct cpu_stream *s, const struct item *item)
{
    if (s->status != WEFT_OK || atomic_load_explicit(&s->stopped, memory_order_relaxed)) return;
    s->status = item->u.task(&s->stream, item->argument, &s->error);
    if (s->status == WEFT_OK) return;
    weft_fail(&s->error, s->status, "a task on stream \"%s\" failed: %s", s->name,
              weft_status_text(s->status));
    if (s->on_failure != NULL) s->on_failure(s->on_failure_context);
}

static void run_item(struct cpu_stream *s, const struct item *item)
{
    switch (item->kind) {
    case ITEM_TASK:
        run_task(s, item);
        break;
    case ITEM_RECORD:
        mark_reach(item->u.mark, s->now);
        break;
    case ITEM_WAIT: {
        int64_t ns = mark_wait(s, item->u.mark);
        if (ns > s->now) s->now = ns;
        break;
    }
    case ITEM_STAMP:
        *item->u.stamp = weft_stream_now(&s->stream);
        break;
    case ITEM_ADVANCE:
        work_for(s, s->now, item->u.ns);
        break;
    case ITEM_EXIT:
        break;
    }
}

/* Sleeps until more than `done` items have been pushed. Returns the count of pushed items. */
static uint32_t wait_for_item(struct cpu_stream *s, uint32_t done)
{
    uint32_t pushed = spin_while(&s->pushed, done, s->spin_ns);
    struct weft_timeline *timeline = timeline_of(s);
    if (pushed != done) return pushed;
    if (timeline != NULL) weft_timeline_idle(timeline, s->lane);
    atomic_store(&s->worker_sleeps, 1);
    while ((pushed = atomic_load(&s->pushed)) == done)
        weft_futex_wait(&s->pushed, done, -1, false);
    atomic_store_explicit(&s->worker_sleeps, 0, memory_order_relaxed);
    timeline = timeline_of(s);
    if (timeline != NULL) weft_timeline_go(timeline, s->lane);
    return pushed;
}

static void *work_on_stream(void *argument)
{
    struct cpu_stream *s = argument;
    /* Tasks sleep until absolute times (emulated links), and the default timer slack is 50 us. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    uint32_t done = 0;
    for (enum item_kind kind = ITEM_TASK; kind != ITEM_EXIT;) {
        uint32_t pushed = wait_for_item(s, done);
        while (done != pushed && kind != ITEM_EXIT) {
            const struct item *item = &s->items[done % s->ring_items];
            kind = item->kind;
            run_item(s, item);
            atomic_store(&s->done, ++done);
            if (atomic_load(&s->issuer_sleeps) != 0 &&
                has_come_to(done, atomic_load_explicit(&s->wanted, memory_order_relaxed)))
                weft_futex_wake(&s->done, false);
        }
    }
    return NULL;
}

/* The issuing thread */

/* Blocks until `count` items are done. */
static void wait_until_done(struct cpu_stream *s, uint32_t count)
{
    uint32_t done = atomic_load_explicit(&s->done, memory_order_acquire);
    struct weft_timeline *timeline = timeline_of(s);
    if (has_come_to(done, count)) return;
    if (timeline != NULL) weft_timeline_issuer_waits(timeline, true);
    atomic_store_explicit(&s->wanted, count, memory_order_relaxed);
    atomic_store(&s->issuer_sleeps, 1);
    while (!has_come_to(done = atomic_load(&s->done), count))
        weft_futex_wait(&s->done, done, -1, false);
    atomic_store_explicit(&s->issuer_sleeps, 0, memory_order_relaxed);
    if (timeline != NULL) weft_timeline_issuer_waits(timeline, false);
}

/* Blocks until no queued item refers to the mark. These items were pushed earlier, so they end. */
static void wait_until_free(struct mark *mark, struct weft_timeline *timeline)
{
    if (atomic_load(&mark->users) == 0) return;
    if (timeline != NULL) weft_timeline_issuer_waits(timeline, true);
    uint32_t users = atomic_fetch_or(&mark->users, owner_sleeps) | owner_sleeps;
    while (users != owner_sleeps) {
        weft_futex_wait(&mark->users, users, -1, false);
        users = atomic_load(&mark->users);
    }
    atomic_store(&mark->users, 0);
    if (timeline != NULL) weft_timeline_issuer_waits(timeline, false);
}

/* The next free item of the ring, of the given kind. publish_item() passes it to the worker. */
static struct item *next_item(struct cpu_stream *s, enum item_kind kind)
{
    uint32_t pushed = atomic_load_explicit(&s->pushed, memory_order_relaxed);
    uint32_t done = atomic_load_explicit(&s->done, memory_order_acquire);
    /* The worker waits only for items pushed earlier, so a full ring always drains. Waiting for
     * half of it avoids handing over items one by one. */
    if (pushed - done == s->ring_items) wait_until_done(s, pushed - s->ring_items / 2);
    struct item *item = &s->items[pushed % s->ring_items];
    item->kind = kind;
    return item;
}

static void publish_item(struct cpu_stream *s)
{
    atomic_fetch_add(&s->pushed, 1);
    if (atomic_load(&s->worker_sleeps) != 0) weft_futex_wake(&s->pushed, false);
}

static void cpu_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                     size_t bytes)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    struct item *item = next_item(s, ITEM_TASK);
    item->u.task = task;
    if (bytes > 0) memcpy(item->argument, argument, bytes);
    publish_item(s);
}

static void cpu_on_failure(struct weft_stream *stream, weft_failure_fn *function, void *context)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    s->on_failure = function;
    s->on_failure_context = context;
}

static void cpu_stop(struct weft_stream *stream)
{
    atomic_store(&cpu_stream_of(stream)->stopped, true);
}

static void cpu_record(struct weft_stream *stream, struct weft_event *event)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    struct cpu_event *e = (struct cpu_event *)event;
    int next = (e->last + 1) % MARKS;
    struct mark *mark = &e->marks[next];
    wait_until_free(mark, timeline_of(s));
    atomic_store_explicit(&mark->reached, 0, memory_order_relaxed);
    atomic_store_explicit(&mark->users, 1, memory_order_relaxed);
    e->last = next;
    next_item(s, ITEM_RECORD)->u.mark = mark;
    publish_item(s);
}

static void cpu_wait(struct weft_stream *stream, struct weft_event *event)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    struct cpu_event *e = (struct cpu_event *)event;
    if (e->last < 0) return;
    struct mark *mark = &e->marks[e->last];
    atomic_fetch_add(&mark->users, 1);
    next_item(s, ITEM_WAIT)->u.mark = mark;
    publish_item(s);
}

static void cpu_stamp(struct weft_stream *stream, int64_t *ns)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    next_item(s, ITEM_STAMP)->u.stamp = ns;
    publish_item(s);
}

static void cpu_advance(struct weft_stream *stream, int64_t ns)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    if (!is_virtual(s)) return;
    next_item(s, ITEM_ADVANCE)->u.ns = ns;
    publish_item(s);
}

static enum weft_status cpu_synchronise(struct weft_stream *stream, struct weft_error *err)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    wait_until_done(s, atomic_load_explicit(&s->pushed, memory_order_relaxed));
    if (s->status == WEFT_OK) return WEFT_OK;
    return weft_fail(err, s->status, "%s", s->error.text);
}

static int64_t cpu_now(const struct weft_stream *stream)
{
    const struct cpu_stream *s = cpu_stream_of(stream);
    return is_virtual(s) ? s->now : weft_clock_now_ns();
}

static void cpu_run(struct weft_stream *stream, int64_t start_ns, int64_t ns)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    if (is_virtual(s)) work_for(s, start_ns, ns);
}

static bool cpu_is_here(const struct weft_stream *stream)
{
    return pthread_equal(cpu_stream_of(stream)->worker, pthread_self()) != 0;
}

static enum weft_status cpu_contend(struct weft_stream *stream, int lane, struct weft_rates rates,
                                    struct weft_error *err)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    struct weft_device *device = stream->device;
    if (device->timeline == NULL) WEFT_TRY(weft_timeline_create(&device->timeline, err));
    s->lane = lane;
    weft_timeline_attach(device->timeline, lane, rates, &s->pushed, &s->done);
    atomic_store(&s->contends, true);
    return WEFT_OK;
}

/* Creation and destruction */

static enum weft_status cpu_open(enum weft_clock clock, struct weft_device **out,
                                 struct weft_error *err)
{
    struct weft_device *device = calloc(1, sizeof *device);
    if (device == NULL) return weft_fail_memory(err, "a device");
    device->ops = &weft_device_cpu;
    device->clock = clock;
    *out = device;
    return WEFT_OK;
}

static void cpu_close(struct weft_device *device)
{
    weft_timeline_destroy(device->timeline);
    free(device);
}

/* Starts the worker with signals blocked, because handlers belong to the thread that installed
 * them. SIGSEGV and SIGBUS stay open: tasks may cause them, and a blocked one would end the
 * process. */
static int start_worker(struct cpu_stream *s)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&s->worker, NULL, work_on_stream, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) pthread_setname_np(s->worker, s->name);
    return error;
}

static void free_stream(struct cpu_stream *s)
{
    free(s->items);
    free(s);
}

static enum weft_status cpu_stream_create(struct weft_device *device, const char *name,
                                          int32_t queue, struct weft_stream **out,
                                          struct weft_error *err)
{
    struct cpu_stream *s = aligned_alloc(LINE_BYTES, sizeof *s);
    if (s == NULL) return weft_fail_memory(err, "a stream");
    memset(s, 0, sizeof *s);
    s->ring_items = 2;
    while (s->ring_items < (uint32_t)queue)
        s->ring_items *= 2;
    s->items = aligned_alloc(LINE_BYTES, s->ring_items * sizeof *s->items);
    if (s->items == NULL) {
        free(s);
        return weft_fail_memory(err, "a stream");
    }
    s->stream.device = device;
    s->spin_ns = weft_cores() > 1 ? SPIN_NS : 0;
    strncpy(s->name, name, NAME_BYTES - 1);
    int error = start_worker(s);
    if (error != 0) {
        char reason[WEFT_REFUSAL_BYTES];
        weft_thread_refusal(error, reason, sizeof reason);
        weft_fail(err, WEFT_E_SYSTEM, "cannot start a thread for stream \"%s\": %s", name, reason);
        free_stream(s);
        return WEFT_E_SYSTEM;
    }
    *out = &s->stream;
    return WEFT_OK;
}

static void cpu_stream_destroy(struct weft_stream *stream)
{
    struct cpu_stream *s = cpu_stream_of(stream);
    next_item(s, ITEM_EXIT);
    publish_item(s);
    pthread_join(s->worker, NULL);
    free_stream(s);
}

static enum weft_status cpu_event_create(struct weft_device *device, struct weft_event **out,
                                         struct weft_error *err)
{
    struct cpu_event *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(err, "an event");
    e->event.device = device;
    e->last = -1;
    *out = &e->event;
    return WEFT_OK;
}

static void cpu_event_destroy(struct weft_event *event)
{
    struct cpu_event *e = (struct cpu_event *)event;
    for (int i = 0; i < MARKS; i++)
        wait_until_free(&e->marks[i], e->event.device->timeline);
    free(e);
}

const struct weft_device_ops weft_device_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .push = cpu_push,
    .on_failure = cpu_on_failure,
    .stop = cpu_stop,
    .record = cpu_record,
    .wait = cpu_wait,
    .stamp = cpu_stamp,
    .advance = cpu_advance,
    .synchronise = cpu_synchronise,
    .now = cpu_now,
    .run = cpu_run,
    .contend = cpu_contend,
    .is_here = cpu_is_here,
};
