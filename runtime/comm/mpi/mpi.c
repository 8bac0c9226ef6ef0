/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/mpi/mpi.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/arena/arena.h"
#include "runtime/comm/mpi/lifeline.h"
#include "runtime/device/module.h"

enum { LONG_SLEEP_NS = 1000000, SHORT_SLEEP_NS = 20000, PATIENT_AFTER_NS = 2000000 };
static const int64_t most_tell_ns = INT64_C(1) * 1000000000;
/* The lifelines tell all ranks of a lost one, and some have ended already. */
static const int64_t tell_lost_ns = INT64_C(100) * 1000000;

struct kept {
    struct kept *next;
    void *memory;
    struct weft_arena *arena;
};

struct weft_mpi {
    const struct weft_mpi_calls *calls;
    pthread_mutex_t lock;
    int32_t rank, ranks;
    atomic_bool has_finished, has_given_up;
    _Atomic int64_t entered_ns; /* 0: no call is under way */
    _Atomic int32_t missed;     /* of weft_mpi_miss */
    char version[WEFT_MPI_TEXT_BYTES];
    struct kept *kept;
    const struct weft_lifeline *line; /* or NULL */
};

static enum weft_status fail_call(struct weft_mpi *mpi, int code, const char *did,
                                  struct weft_error *err)
{
    char words[WEFT_MPI_TEXT_BYTES];
    mpi->calls->explain(code, words);
    return weft_fail(err, WEFT_E_LOST, "%s cannot %s: %s", mpi->version, did, words);
}

/* A process under the launcher of another library is rank 0 of 1. */
static enum weft_status check_ranks(const struct weft_mpi *mpi,
                                    const struct weft_mpi_options *options, struct weft_error *err)
{
    if (options->ranks == 0 || (mpi->rank == options->rank && mpi->ranks == options->ranks))
        return WEFT_OK;
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "%s says that this is rank %d of %d, and %s says rank %d of %d: the launcher "
                     "is another library's. Start the run with the launcher of %s",
                     options->launcher, options->rank, options->ranks, mpi->version, mpi->rank,
                     mpi->ranks, mpi->version);
}

static enum weft_status start_library(struct weft_mpi *mpi, const struct weft_mpi_options *options,
                                      struct weft_error *err)
{
    bool threads = false;
    mpi->calls->version(mpi->version);
    const int code = mpi->calls->start(&mpi->rank, &mpi->ranks, &threads);
    if (code != 0) return fail_call(mpi, code, "start", err);
    if (!threads)
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%s is built without threads (MPI_THREAD_SERIALIZED), which Weft needs",
                         mpi->version);
    return check_ranks(mpi, options, err);
}

enum weft_status weft_mpi_start_over(const struct weft_mpi_calls *calls,
                                     const struct weft_mpi_options *options, struct weft_mpi **out,
                                     struct weft_error *err)
{
    struct weft_mpi *mpi = calloc(1, sizeof *mpi);
    if (mpi == NULL) return weft_fail_memory(err, "MPI");
    mpi->calls = calls;
    atomic_init(&mpi->missed, -1);
    pthread_mutex_init(&mpi->lock, NULL);
    const enum weft_status status = start_library(mpi, options, err);
    if (status != WEFT_OK)
        free(mpi);
    else
        *out = mpi;
    return status;
}

enum weft_status weft_mpi_start(const struct weft_mpi_options *options, struct weft_mpi **out,
                                struct weft_error *err)
{
    const void *calls = NULL;
    WEFT_TRY(weft_module_find("mpi", options->library, &calls, err));
    return weft_mpi_start_over(calls, options, out, err);
}

void weft_mpi_keep(struct weft_mpi *mpi, void *memory, struct weft_arena *arena)
{
    struct kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL) return; /* a leak, in a process that is about to end */
    *kept = (struct kept){mpi->kept, memory, arena};
    mpi->kept = kept;
}

static void free_kept(struct weft_mpi *mpi)
{
    while (mpi->kept != NULL) {
        struct kept *kept = mpi->kept;
        mpi->kept = kept->next;
        weft_arena_close(kept->arena);
        free(kept->memory);
        free(kept);
    }
}

static void *run_finish(void *argument)
{
    struct weft_mpi *mpi = argument;
    (void)mpi->calls->finish();
    atomic_store(&mpi->has_finished, true);
    return NULL;
}

/* Takes last words that nobody has read: libraries complain of messages that are left. */
static void drain_farewells(struct weft_mpi *mpi)
{
    unsigned char farewell[WEFT_MPI_FAREWELL_BYTES];
    struct weft_error unsaid = {.status = WEFT_OK};
    int32_t rank = -1;
    while (weft_mpi_look(mpi, WEFT_MPI_GIVE_UP, &rank, &unsaid) == WEFT_OK && rank >= 0 &&
           weft_mpi_receive_whole(mpi, farewell, sizeof farewell, rank, WEFT_MPI_GIVE_UP,
                                  most_tell_ns, &unsaid) == WEFT_OK) {
    }
}

bool weft_mpi_finish(struct weft_mpi *mpi, int64_t deadline_ns)
{
    pthread_t thread;
    if (mpi == NULL) return true;
    drain_farewells(mpi);
    if (pthread_create(&thread, NULL, run_finish, mpi) != 0) return false;
    const int64_t end_ns = weft_clock_now_ns() + deadline_ns;
    while (!atomic_load(&mpi->has_finished) && weft_clock_now_ns() < end_ns)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + LONG_SLEEP_NS);
    if (!atomic_load(&mpi->has_finished)) {
        pthread_detach(thread); /* it may never return, so its data stay */
        return false;
    }
    pthread_join(thread, NULL);
    pthread_mutex_destroy(&mpi->lock);
    free_kept(mpi);
    free(mpi);
    return true;
}

int32_t weft_mpi_rank(const struct weft_mpi *mpi)
{
    return mpi->rank;
}

int32_t weft_mpi_ranks(const struct weft_mpi *mpi)
{
    return mpi->ranks;
}

int64_t weft_mpi_round_bytes(const struct weft_mpi *mpi)
{
    return mpi->calls->round_bytes;
}

const char *weft_mpi_version(const struct weft_mpi *mpi)
{
    return mpi->version;
}

void weft_mpi_watch(struct weft_mpi *mpi, const struct weft_lifeline *line)
{
    mpi->line = line;
}

int32_t weft_mpi_lost(const struct weft_mpi *mpi)
{
    return weft_lifeline_lost(mpi->line);
}

void weft_mpi_miss(struct weft_mpi *mpi, int32_t rank)
{
    int32_t none = -1;
    (void)atomic_compare_exchange_strong(&mpi->missed, &none, rank);
}

int32_t weft_mpi_missed(const struct weft_mpi *mpi)
{
    return atomic_load(&mpi->missed);
}

int64_t weft_mpi_call_ns(const struct weft_mpi *mpi)
{
    const int64_t entered_ns = atomic_load(&mpi->entered_ns);
    return entered_ns == 0 ? 0 : weft_clock_now_ns() - entered_ns;
}

static void enter_library(struct weft_mpi *mpi)
{
    pthread_mutex_lock(&mpi->lock);
    atomic_store_explicit(&mpi->entered_ns, weft_clock_now_ns(), memory_order_relaxed);
}

static void leave_library(struct weft_mpi *mpi)
{
    atomic_store_explicit(&mpi->entered_ns, 0, memory_order_relaxed);
    pthread_mutex_unlock(&mpi->lock);
}

enum weft_status weft_mpi_send(struct weft_mpi *mpi, const void *from, int64_t bytes, int32_t to,
                               int32_t tag, struct weft_mpi_request *out, struct weft_error *err)
{
    enter_library(mpi);
    const int code = mpi->calls->send(from, (size_t)bytes, to, tag, out);
    leave_library(mpi);
    return code == 0 ? WEFT_OK : fail_call(mpi, code, "send a message", err);
}

enum weft_status weft_mpi_receive(struct weft_mpi *mpi, void *to, int64_t bytes, int32_t from,
                                  int32_t tag, struct weft_mpi_request *out, struct weft_error *err)
{
    enter_library(mpi);
    const int code = mpi->calls->receive(to, (size_t)bytes, from, tag, out);
    leave_library(mpi);
    return code == 0 ? WEFT_OK : fail_call(mpi, code, "receive a message", err);
}

enum weft_status weft_mpi_test(struct weft_mpi *mpi, struct weft_mpi_request *request, bool *done,
                               struct weft_error *err)
{
    *done = request->library == 0;
    if (*done) return WEFT_OK;
    enter_library(mpi);
    const int code = mpi->calls->test(request, done);
    leave_library(mpi);
    return code == 0 ? WEFT_OK : fail_call(mpi, code, "end a message", err);
}

void weft_mpi_drop(struct weft_mpi *mpi, struct weft_mpi_request *request)
{
    enter_library(mpi);
    mpi->calls->drop(request);
    leave_library(mpi);
}

enum weft_status weft_mpi_look(struct weft_mpi *mpi, enum weft_mpi_tag tag, int32_t *rank,
                               struct weft_error *err)
{
    enter_library(mpi);
    const int code = mpi->calls->look((int32_t)tag, rank);
    leave_library(mpi);
    return code == 0 ? WEFT_OK : fail_call(mpi, code, "look for messages", err);
}

/* A rank that is lost takes no message. */
static bool all_are_done(struct weft_mpi *mpi, struct weft_mpi_request *requests)
{
    struct weft_error unsaid = {.status = WEFT_OK};
    bool all = true;
    for (int32_t i = 0; i < mpi->ranks; i++) {
        bool done = true;
        if (i == weft_mpi_lost(mpi)) continue;
        if (weft_mpi_test(mpi, &requests[i], &done, &unsaid) != WEFT_OK)
            requests[i] = (struct weft_mpi_request){0};
        else
            all = all && done;
    }
    return all;
}

void weft_mpi_give_up(struct weft_mpi *mpi, const void *farewell)
{
    struct weft_error unsaid = {.status = WEFT_OK};
    if (atomic_exchange(&mpi->has_given_up, true)) return;
    struct weft_mpi_request *sends = calloc((size_t)mpi->ranks, sizeof *sends);
    for (int32_t i = 0; sends != NULL && i < mpi->ranks; i++) {
        if (i != mpi->rank && weft_mpi_send(mpi, farewell, WEFT_MPI_FAREWELL_BYTES, i,
                                            WEFT_MPI_GIVE_UP, &sends[i], &unsaid) != WEFT_OK)
            sends[i] = (struct weft_mpi_request){0};
    }
    const int64_t most_ns = weft_mpi_lost(mpi) < 0 ? most_tell_ns : tell_lost_ns;
    const int64_t end_ns = weft_clock_now_ns() + most_ns;
    while (sends != NULL && !all_are_done(mpi, sends) && weft_clock_now_ns() < end_ns)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + SHORT_SLEEP_NS);
    for (int32_t i = 0; sends != NULL && i < mpi->ranks; i++)
        weft_mpi_drop(mpi, &sends[i]);
    free(sends);
}

/* Polls seldom after a while: the other rank may plan, or measure alone. */
static enum weft_status await_request(struct weft_mpi *mpi, struct weft_mpi_request *request,
                                      int32_t peer, int64_t deadline_ns, struct weft_error *err)
{
    const int64_t start_ns = weft_clock_now_ns();
    for (bool done = false;;) {
        WEFT_TRY(weft_mpi_test(mpi, request, &done, err));
        if (done) return WEFT_OK;
        if (weft_mpi_lost(mpi) == peer) break;
        const int64_t now_ns = weft_clock_now_ns();
        if (deadline_ns > 0 && now_ns - start_ns >= deadline_ns) break;
        const int64_t sleep_ns =
            now_ns - start_ns < PATIENT_AFTER_NS ? SHORT_SLEEP_NS : LONG_SLEEP_NS;
        weft_clock_sleep_until_ns(now_ns + sleep_ns);
    }
    weft_mpi_drop(mpi, request);
    if (weft_mpi_lost(mpi) == peer)
        return weft_fail(err, WEFT_E_LOST, "rank %d's process has ended", peer);
    return weft_fail(err, WEFT_E_HANG, "a message was not taken or sent in time");
}

enum weft_status weft_mpi_send_whole(struct weft_mpi *mpi, const void *from, int64_t bytes,
                                     int32_t to, enum weft_mpi_tag tag, int64_t deadline_ns,
                                     struct weft_error *err)
{
    for (int64_t at = 0; at < bytes; at += WEFT_MPI_MESSAGE_BYTES) {
        const int64_t n = bytes - at < WEFT_MPI_MESSAGE_BYTES ? bytes - at : WEFT_MPI_MESSAGE_BYTES;
        struct weft_mpi_request request = {0};
        WEFT_TRY(weft_mpi_send(mpi, (const unsigned char *)from + at, n, to, tag, &request, err));
        WEFT_TRY(await_request(mpi, &request, to, deadline_ns, err));
    }
    return WEFT_OK;
}

enum weft_status weft_mpi_receive_whole(struct weft_mpi *mpi, void *to, int64_t bytes, int32_t from,
                                        enum weft_mpi_tag tag, int64_t deadline_ns,
                                        struct weft_error *err)
{
    for (int64_t at = 0; at < bytes; at += WEFT_MPI_MESSAGE_BYTES) {
        const int64_t n = bytes - at < WEFT_MPI_MESSAGE_BYTES ? bytes - at : WEFT_MPI_MESSAGE_BYTES;
        struct weft_mpi_request request = {0};
        WEFT_TRY(weft_mpi_receive(mpi, (unsigned char *)to + at, n, from, tag, &request, err));
        WEFT_TRY(await_request(mpi, &request, from, deadline_ns, err));
    }
    return WEFT_OK;
}
