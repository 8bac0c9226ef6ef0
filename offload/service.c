/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pthread_setname_np */
#include "offload/service.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/machine/mappings.h"

enum { NS_PER_S = 1000000000, NAME_BYTES = 16 };

struct slot {
    bool done;
    int64_t started_ns;
};

/* Counts of requests: submitted, begun, and the first `ended` that have all ended. Request t uses
 * slot t modulo `requests`. */
struct lane {
    int64_t submitted, begun, ended;
    struct slot *slots;
    unsigned char *requests;
    pthread_cond_t queued; /* the lane's threads wait for it */
    pthread_cond_t moved;  /* callers that submit or wait sleep on it */
};

struct worker {
    struct weft_service *service;
    pthread_t thread;
    int32_t lane;
};

struct weft_service {
    struct weft_service_options options;
    size_t stride; /* bytes from one request to the next */
    pthread_mutex_t mutex;
    struct lane lanes[WEFT_SERVICE_LANES];
    struct worker *workers;
    int32_t n_workers; /* started */
    int32_t n_alive;
    bool stopped;
    bool left_behind; /* the last worker frees the service */
    struct weft_error error;
};

static void lock_service(struct weft_service *s)
{
    pthread_mutex_lock(&s->mutex);
}

static void unlock_service(struct weft_service *s)
{
    pthread_mutex_unlock(&s->mutex);
}

static void wake_all(struct weft_service *s)
{
    for (int32_t i = 0; i < s->options.lanes; i++) {
        pthread_cond_broadcast(&s->lanes[i].queued);
        pthread_cond_broadcast(&s->lanes[i].moved);
    }
}

static struct slot *slot_of(const struct weft_service *s, struct lane *lane, int64_t ticket)
{
    return &lane->slots[ticket % s->options.requests];
}

static unsigned char *request_of(const struct weft_service *s, struct lane *lane, int64_t ticket)
{
    return lane->requests + (size_t)(ticket % s->options.requests) * s->stride;
}

static enum weft_status tell_failure(const struct weft_service *s, struct weft_error *err)
{
    if (err != NULL && err->status == WEFT_OK) *err = s->error;
    return s->error.status;
}

/* Workers */

static void end_request(struct weft_service *s, struct lane *lane, int64_t ticket)
{
    slot_of(s, lane, ticket)->done = true;
    while (lane->ended < lane->begun && slot_of(s, lane, lane->ended)->done)
        lane->ended++;
    pthread_cond_broadcast(&lane->moved);
}

static void serve_next(struct weft_service *s, int32_t index)
{
    struct lane *lane = &s->lanes[index];
    struct weft_error err = {.status = WEFT_OK};
    enum weft_status status = WEFT_OK;
    const int64_t ticket = lane->begun++;
    slot_of(s, lane, ticket)->started_ns = weft_clock_now_ns();
    if (s->error.status == WEFT_OK) {
        unlock_service(s);
        status = s->options.serve(s->options.context, index, request_of(s, lane, ticket), &err);
        lock_service(s);
    }
    if (status != WEFT_OK && s->error.status == WEFT_OK) {
        weft_fail(&err, status, "%s: %s", s->options.name, weft_status_text(status));
        s->error = err;
        wake_all(s);
    }
    end_request(s, lane, ticket);
}

static void free_service(struct weft_service *s)
{
    for (int32_t i = 0; i < s->options.lanes; i++) {
        pthread_cond_destroy(&s->lanes[i].queued);
        pthread_cond_destroy(&s->lanes[i].moved);
        free(s->lanes[i].slots);
        free(s->lanes[i].requests);
    }
    pthread_mutex_destroy(&s->mutex);
    free(s->workers);
    free(s);
}

static void release_service(struct weft_service *s)
{
    if (s->options.release != NULL) s->options.release(s->options.context);
    free_service(s);
}

static void *work_for_service(void *argument)
{
    const struct worker *worker = argument;
    struct weft_service *s = worker->service;
    struct lane *lane = &s->lanes[worker->lane];
    lock_service(s);
    while (!s->stopped) {
        if (lane->begun < lane->submitted)
            serve_next(s, worker->lane);
        else
            pthread_cond_wait(&lane->queued, &s->mutex);
    }
    s->n_alive--;
    const bool last = s->left_behind && s->n_alive == 0;
    wake_all(s);
    unlock_service(s);
    if (last) release_service(s);
    return NULL;
}

/* Submitting and waiting */

/* The lane's oldest request under way; -1: none. */
static int64_t oldest_under_way(const struct lane *lane)
{
    return lane->ended < lane->begun ? lane->ended : -1;
}

/* Time at which the lane's oldest request counts as hung. Without a request under way, that of a
 * request that begins now. */
static int64_t lane_hangs_at_ns(const struct weft_service *s, struct lane *lane)
{
    const int64_t oldest = oldest_under_way(lane);
    const int64_t began_ns =
        oldest < 0 ? weft_clock_now_ns() : slot_of(s, lane, oldest)->started_ns;
    return began_ns + s->options.timeout_ns;
}

static bool lane_hangs(const struct weft_service *s, struct lane *lane)
{
    return s->options.timeout_ns > 0 && oldest_under_way(lane) >= 0 &&
           weft_clock_now_ns() >= lane_hangs_at_ns(s, lane);
}

/* Sleeps until the lane moves, or its oldest request may hang. */
static void sleep_on_lane(struct weft_service *s, struct lane *lane)
{
    if (s->options.timeout_ns <= 0) {
        pthread_cond_wait(&lane->moved, &s->mutex);
        return;
    }
    const int64_t ns = lane_hangs_at_ns(s, lane);
    const struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S),
                                   .tv_nsec = (long)(ns % NS_PER_S)};
    pthread_cond_timedwait(&lane->moved, &s->mutex, &until);
}

/* Waits until every request below `ticket` has ended, or with `itself` until request `ticket` alone
 * has. */
static enum weft_status wait_on_lane(struct weft_service *s, int32_t index, int64_t ticket,
                                     bool itself, struct weft_error *err)
{
    struct lane *lane = &s->lanes[index];
    for (;;) {
        if (s->error.status != WEFT_OK) return tell_failure(s, err);
        if (ticket < lane->ended + (itself ? 0 : 1)) return WEFT_OK;
        if (itself && ticket < lane->begun && slot_of(s, lane, ticket)->done) return WEFT_OK;
        if (lane_hangs(s, lane)) {
            s->options.hang(s->options.context, index, request_of(s, lane, lane->ended), &s->error);
            wake_all(s);
            return tell_failure(s, err);
        }
        sleep_on_lane(s, lane);
    }
}

enum weft_status weft_service_submit(struct weft_service *service, int32_t lane,
                                     const struct weft_service_part *parts, int32_t n_parts,
                                     int64_t *ticket, struct weft_error *err)
{
    struct lane *l = &service->lanes[lane];
    size_t bytes = 0;
    for (int32_t i = 0; i < n_parts; i++)
        bytes += parts[i].bytes;
    if (bytes > service->options.request_bytes)
        return weft_fail(err, WEFT_E_INTERNAL, "a request of %s has %zu bytes, at most %zu",
                         service->options.name, bytes, service->options.request_bytes);
    lock_service(service);
    enum weft_status status = WEFT_OK;
    /* Another thread may take the room first. */
    while (status == WEFT_OK && l->submitted - l->ended >= service->options.requests)
        status =
            wait_on_lane(service, lane, l->submitted - service->options.requests + 1, false, err);
    if (service->error.status != WEFT_OK) status = tell_failure(service, err);
    if (status == WEFT_OK) {
        unsigned char *at = request_of(service, l, l->submitted);
        *slot_of(service, l, l->submitted) = (struct slot){.done = false};
        for (int32_t i = 0; i < n_parts; i++) {
            memcpy(at, parts[i].at, parts[i].bytes);
            at += parts[i].bytes;
        }
        *ticket = l->submitted++;
        pthread_cond_signal(&l->queued);
    }
    unlock_service(service);
    return status;
}

enum weft_status weft_service_wait(struct weft_service *service, int32_t lane, int64_t ticket,
                                   struct weft_error *err)
{
    lock_service(service);
    enum weft_status status =
        ticket < 0 || ticket >= service->lanes[lane].submitted
            ? weft_fail(err, WEFT_E_INTERNAL, "%s: nobody submitted request %lld",
                        service->options.name, (long long)ticket)
            : wait_on_lane(service, lane, ticket, true, err);
    unlock_service(service);
    return status;
}

bool weft_service_is_done(struct weft_service *service, int32_t lane, int64_t ticket)
{
    lock_service(service);
    struct lane *l = &service->lanes[lane];
    const bool done = ticket < l->ended || (ticket < l->begun && slot_of(service, l, ticket)->done);
    const bool well = done && service->error.status == WEFT_OK;
    unlock_service(service);
    return well;
}

/* Creation and destruction */

static bool create_lane(const struct weft_service *s, struct lane *lane)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&lane->queued, &monotonic);
    pthread_cond_init(&lane->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    lane->slots = calloc((size_t)s->options.requests, sizeof *lane->slots);
    lane->requests = calloc((size_t)s->options.requests, s->stride);
    return lane->slots != NULL && lane->requests != NULL;
}

/* Blocks all signals: they belong to the caller's threads. */
static int start_worker_of(struct weft_service *s, struct worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&worker->thread, NULL, work_for_service, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) return error;
    char name[NAME_BYTES] = "";
    strncpy(name, s->options.name, NAME_BYTES - 1);
    pthread_setname_np(worker->thread, name);
    return 0;
}

static enum weft_status start_workers(struct weft_service *s, struct weft_error *err)
{
    const int32_t n = s->options.lanes * s->options.threads;
    s->workers = calloc((size_t)n, sizeof *s->workers);
    if (s->workers == NULL) return weft_fail_memory(err, "threads");
    for (int32_t i = 0; i < n; i++) {
        struct worker *worker = &s->workers[i];
        *worker = (struct worker){.service = s, .lane = i % s->options.lanes};
        lock_service(s);
        const int error = start_worker_of(s, worker);
        if (error == 0) s->n_alive = ++s->n_workers;
        unlock_service(s);
        if (error == 0) continue;
        char reason[WEFT_REFUSAL_BYTES];
        weft_thread_refusal(error, reason, sizeof reason);
        return weft_fail(err, WEFT_E_SYSTEM, "cannot start thread %d of %d of %s: %s", (int)i + 1,
                         (int)n, s->options.name, reason);
    }
    return WEFT_OK;
}

enum weft_status weft_service_create(const struct weft_service_options *options,
                                     struct weft_service **out, struct weft_error *err)
{
    const struct weft_service_options *o = options;
    if (o->lanes < 1 || o->lanes > WEFT_SERVICE_LANES || o->threads < 1 ||
        o->threads > WEFT_SERVICE_THREADS || o->requests < 1)
        return weft_fail(err, WEFT_E_INTERNAL,
                         "%s: %d lanes of %d threads and %d requests; 1 to %d, 1 to %d, 1 or more",
                         o->name, (int)o->lanes, (int)o->threads, (int)o->requests,
                         WEFT_SERVICE_LANES, WEFT_SERVICE_THREADS);
    struct weft_service *s = calloc(1, sizeof *s);
    if (s == NULL) return weft_fail_memory(err, o->name);
    s->options = *o;
    s->stride =
        (o->request_bytes + sizeof(max_align_t)) / sizeof(max_align_t) * sizeof(max_align_t);
    pthread_mutex_init(&s->mutex, NULL);
    bool room = true;
    for (int32_t i = 0; i < o->lanes; i++)
        room = create_lane(s, &s->lanes[i]) && room;
    enum weft_status status = room ? start_workers(s, err) : weft_fail_memory(err, o->name);
    if (status != WEFT_OK) {
        s->options.release = NULL;
        weft_service_destroy(s);
        return status;
    }
    *out = s;
    return WEFT_OK;
}

/* Waits until the threads have ended; false if one hangs. */
static bool await_workers(struct weft_service *s)
{
    while (s->n_alive > 0) {
        struct lane *busy = NULL;
        for (int32_t i = 0; i < s->options.lanes; i++) {
            if (lane_hangs(s, &s->lanes[i])) return false;
            if (oldest_under_way(&s->lanes[i]) >= 0) busy = &s->lanes[i];
        }
        sleep_on_lane(s, busy != NULL ? busy : &s->lanes[0]);
    }
    return true;
}

void weft_service_destroy(struct weft_service *service)
{
    if (service == NULL) return;
    lock_service(service);
    service->stopped = true;
    wake_all(service);
    const bool ended = await_workers(service);
    service->left_behind = !ended;
    const int32_t n = service->n_workers;
    for (int32_t i = 0; i < n && !ended; i++)
        pthread_detach(service->workers[i].thread);
    unlock_service(service);
    if (!ended) return;
    for (int32_t i = 0; i < n; i++)
        pthread_join(service->workers[i].thread, NULL);
    release_service(service);
}
