/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pthread_sigmask */
#include "runtime/comm/nccl/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/failure.h"
#include "runtime/comm/local.h"

enum {
    LOOK_NS = 20000000,
    LONG_NS = 100000000 /* a wait that other ranks are told of */
};

struct weft_nccl_watchdog {
    struct weft_nccl_watchdog_options options;
    pthread_t thread;
    atomic_bool stops;
    /* Only the thread uses these. */
    uint64_t started, done; /* marked in the ring */
    uint64_t compared;      /* operations that all ranks have issued alike */
    pthread_mutex_t lock;   /* of `found` */
    struct weft_error found;
};

/* Marking */

static struct weft_nccl_ring *own_ring(const struct weft_nccl_watchdog *w)
{
    return weft_nccl_own_ring(w->options.rings);
}

/* The operation with these low 32 bits: the latest one up to `issued`. */
static uint64_t whole_sequence(uint32_t word, uint64_t issued)
{
    return issued - (uint32_t)((uint32_t)issued - word);
}

static void mark_progress(struct weft_nccl_watchdog *w)
{
    struct weft_nccl_ring *ring = own_ring(w);
    const int64_t now_ns = weft_clock_now_ns();
    /* Read in this order: a done operation has been started, and a started one issued. */
    const uint32_t done = atomic_load(&w->options.progress->done);
    const uint32_t started = atomic_load(&w->options.progress->started);
    const uint64_t issued = atomic_load(&ring->issued);
    while (w->started < whole_sequence(started, issued))
        weft_nccl_record_started(ring, ++w->started, now_ns);
    while (w->done < whole_sequence(done, issued))
        weft_nccl_record_done(ring, ++w->done, now_ns);
}

/* Looking */

/* True if the finding explains the failure. Healthy ranks differ in progress too. */
static bool says_why(enum weft_nccl_finding_kind kind, enum weft_status status)
{
    switch (kind) {
    case WEFT_NCCL_DIFFERS:
        return true;
    case WEFT_NCCL_MISSING:
        return status == WEFT_E_HANG || status == WEFT_E_LOST;
    case WEFT_NCCL_NOT_STARTED:
    case WEFT_NCCL_NOT_DONE:
        return status == WEFT_E_HANG;
    case WEFT_NCCL_ALIKE:
    case WEFT_NCCL_FINDING_COUNT:
        break;
    }
    return false;
}

static struct weft_nccl_finding compare_rings(const struct weft_nccl_rings *rings)
{
    const struct weft_nccl_ring *const *all = (const struct weft_nccl_ring *const *)rings->all;
    return weft_nccl_compare(all, weft_comm_ranks(rings->control));
}

static bool names_late_rank(const struct weft_nccl_finding *finding)
{
    return finding->kind == WEFT_NCCL_MISSING || finding->kind == WEFT_NCCL_NOT_STARTED;
}

/* Appends the rank that holds up the late one, perhaps in another branch. If all have started the
 * operation, a stopped one may hold it up. */
static void show_cause(const struct weft_comm *control, const struct weft_nccl_finding *finding,
                       struct weft_text *out)
{
    int32_t rank = -1, cause = -1;
    if (names_late_rank(finding)) {
        rank = weft_comm_rank_of_all(control, finding->rank);
        cause = weft_local_cause(control, rank);
    }
    for (int32_t r = 0; r < weft_comm_ranks(control) && finding->kind == WEFT_NCCL_NOT_DONE; r++)
        if (cause < 0 && weft_local_is_stopped(control, weft_comm_rank_of_all(control, r)))
            cause = weft_comm_rank_of_all(control, r);
    const bool stopped = cause >= 0 && weft_local_is_stopped(control, cause);
    if (stopped)
        weft_text_addf(out, "rank %d is stopped by a signal (SIGCONT continues it)", cause);
    else if (cause != rank)
        weft_text_addf(out, "rank %d is late", cause);
    if (rank >= 0 && cause != rank) weft_text_addf(out, ", and rank %d waits for it", rank);
    if (stopped || cause != rank) weft_text_add(out, ": ");
}

enum weft_status weft_nccl_explain(const struct weft_nccl_rings *rings,
                                   const struct weft_error *why, struct weft_error *err)
{
    const struct weft_nccl_ring *const *all = (const struct weft_nccl_ring *const *)rings->all;
    const struct weft_comm_place *place = &rings->control->place;
    struct weft_nccl_finding finding = compare_rings(rings);
    if (!says_why(finding.kind, why->status)) finding.kind = WEFT_NCCL_ALIKE;
    finding.first = place->first;
    finding.gap = place->gap;
    struct weft_text text;
    weft_text_init(&text);
    if (why->of_rank == 0 && why->status == WEFT_E_HANG)
        show_cause(rings->control, &finding, &text);
    if (why->of_rank == 0) weft_nccl_show_finding(&finding, all, &text);
    if (text.length > 0) weft_comm_show_place(rings->control, &text);
    const enum weft_status status =
        finding.kind == WEFT_NCCL_DIFFERS ? WEFT_E_DISAGREE : why->status;
    weft_fail(err, status, "%s%s%s", weft_text_chars(&text), text.length > 0 ? ": " : "",
              why->text);
    weft_text_finish(&text);
    return status;
}

void weft_nccl_tell_why(const struct weft_nccl_rings *rings, const struct weft_error *why)
{
    struct weft_nccl_ring *own = weft_nccl_own_ring(rings);
    if (why->of_rank != 0 || (why->status != WEFT_E_HANG && why->status != WEFT_E_DISAGREE)) return;
    snprintf(own->why, sizeof own->why, "%.1000s", why->text);
    atomic_store(&own->status, (int32_t)why->status);
}

/* False if a peer issued another call. Lost operations count as equal. */
static bool compare_next(const struct weft_nccl_watchdog *w, uint64_t sequence)
{
    const struct weft_nccl_rings *rings = w->options.rings;
    struct weft_nccl_seen mine, theirs;
    if (!weft_nccl_recorded(own_ring(w), sequence, &mine)) return true;
    for (int32_t rank = 0; rank < weft_comm_ranks(rings->control); rank++) {
        if (weft_nccl_recorded(rings->all[rank], sequence, &theirs) &&
            !weft_nccl_is_same_call(&mine.call, &theirs.call))
            return false;
    }
    return true;
}

static enum weft_status look_for_difference(struct weft_nccl_watchdog *w, struct weft_error *err)
{
    const struct weft_nccl_rings *rings = w->options.rings;
    uint64_t all = UINT64_MAX;
    for (int32_t rank = 0; rank < weft_comm_ranks(rings->control); rank++) {
        const uint64_t issued = atomic_load(&rings->all[rank]->issued);
        if (issued < all) all = issued;
    }
    if (all > WEFT_NCCL_RECORDED && w->compared < all - WEFT_NCCL_RECORDED)
        w->compared = all - WEFT_NCCL_RECORDED;
    for (; w->compared < all; w->compared++) {
        if (compare_next(w, w->compared + 1)) continue;
        return weft_fail(err, WEFT_E_DISAGREE,
                         "all ranks must run the same plan with the same options");
    }
    return WEFT_OK;
}

/* Returns the reason of a peer that gave up, if it is common to all ranks. */
static enum weft_status look_for_reason(const struct weft_nccl_rings *rings, struct weft_error *err)
{
    for (int32_t rank = 0; rank < weft_comm_ranks(rings->control); rank++) {
        const int32_t status = atomic_load(&rings->all[rank]->status);
        if (status == WEFT_OK || rank == weft_comm_rank(rings->control)) continue;
        return weft_fail_of_rank(err, (enum weft_status)status,
                                 weft_comm_rank_of_all(rings->control, rank),
                                 rings->all[rank]->why);
    }
    return WEFT_OK;
}

/* A missing peer matters only while work is pending, because its part of that work never ends. */
static enum weft_status look_for_lost(const struct weft_nccl_watchdog *w, struct weft_error *err)
{
    const struct weft_nccl_rings *rings = w->options.rings;
    if (w->done == atomic_load(&own_ring(w)->issued)) return WEFT_OK;
    WEFT_TRY(look_for_reason(rings, err));
    for (int32_t rank = 0; rank < weft_comm_ranks(rings->control); rank++) {
        const char *how = rank == weft_comm_rank(rings->control)
                              ? NULL
                              : weft_local_gone(w->options.control, rank);
        if (how == NULL) continue;
        const struct weft_comm_failing failing = {w->options.control, NULL, 0, err};
        return weft_comm_fail_gone(&failing, weft_comm_rank_of_all(rings->control, rank), 0, how, 0,
                                   NULL);
    }
    return WEFT_OK;
}

static enum weft_status look_for_overdue(const struct weft_nccl_watchdog *w, struct weft_error *err)
{
    const int64_t timeout_ns = w->options.timeout_ns;
    const struct weft_comm_failing failing = {w->options.control, NULL, 0, err};
    if (weft_nccl_overdue(own_ring(w), weft_clock_now_ns(), timeout_ns) == 0) return WEFT_OK;
    return weft_comm_fail_late(&failing, timeout_ns, NULL);
}

/* Tells the ranks of other branches for whom this rank waits. */
static void tell_wait(const struct weft_nccl_watchdog *w)
{
    const struct weft_nccl_rings *rings = w->options.rings;
    struct weft_nccl_finding late = {.kind = WEFT_NCCL_ALIKE};
    if (weft_nccl_overdue(own_ring(w), weft_clock_now_ns(), LONG_NS) != 0)
        late = compare_rings(rings);
    const bool waits = names_late_rank(&late) && late.rank != weft_comm_rank(rings->control);
    weft_local_note_wait(rings->control, WEFT_LOCAL_ON_STREAM, waits ? late.rank : -1);
}

static void look_at_ranks(struct weft_nccl_watchdog *w)
{
    struct weft_error err = {.status = WEFT_OK};
    mark_progress(w);
    tell_wait(w);
    if (atomic_load(w->options.given) != 0) return;
    if (look_for_difference(w, &err) == WEFT_OK && look_for_lost(w, &err) == WEFT_OK &&
        look_for_overdue(w, &err) == WEFT_OK)
        return;
    pthread_mutex_lock(&w->lock);
    w->found = err;
    pthread_mutex_unlock(&w->lock);
    atomic_store(w->options.given, 1);
}

static void *watch_ranks(void *argument)
{
    struct weft_nccl_watchdog *w = argument;
    while (!atomic_load(&w->stops)) {
        look_at_ranks(w);
        weft_clock_sleep_until_ns(weft_clock_now_ns() + LOOK_NS);
    }
    return NULL;
}

enum weft_status weft_nccl_watchdog_found(struct weft_nccl_watchdog *w, struct weft_error *err)
{
    pthread_mutex_lock(&w->lock);
    const struct weft_error found = w->found;
    pthread_mutex_unlock(&w->lock);
    return found.status == WEFT_OK ? WEFT_OK : weft_fail_again(err, &found, "%s", found.text);
}

/* Life and death */

enum weft_status weft_nccl_watchdog_start(const struct weft_nccl_watchdog_options *options,
                                          struct weft_nccl_watchdog **out, struct weft_error *err)
{
    struct weft_nccl_watchdog *w = calloc(1, sizeof *w);
    if (w == NULL) return weft_fail_memory(err, "a watchdog");
    w->options = *options;
    pthread_mutex_init(&w->lock, NULL);
    /* Signal handlers belong to the thread that installed them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&w->thread, NULL, watch_ranks, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        pthread_mutex_destroy(&w->lock);
        free(w);
        return weft_fail(err, WEFT_E_SYSTEM, "cannot start a thread that watches collectives");
    }
    *out = w;
    return WEFT_OK;
}

void weft_nccl_watchdog_stop(struct weft_nccl_watchdog *w)
{
    if (w == NULL) return;
    atomic_store(&w->stops, true);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
