/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* syscall, memfd_create */
#include "runtime/comm/local.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine/cores.h"
#include "base/text.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/failure.h"
#include "runtime/device/futex.h"

enum {
    LOOK_NS = 100000000, /* period in which a sleeper checks that its peers are alive */
    /* Peers are mostly late by less than this. A thread that sleeps for so short a time next to a
     * computing thread may wait for the scheduler's next tick, several milliseconds. */
    SPIN_NS = 100000
};

static size_t bytes_of_group(int32_t ranks)
{
    return sizeof(struct weft_local_control) + (size_t)ranks * sizeof(struct weft_local_rank);
}

/* Bytes of the controls of a branch's groups, if each rank is a group. That is the most. */
static size_t bytes_of_branch(int32_t ranks)
{
    return (size_t)ranks * bytes_of_group(1);
}

/* The control of all ranks comes first, then those of each branch's groups. Pages of branches that
 * are never opened take no memory. */
size_t weft_comm_control_bytes(int32_t ranks)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = bytes_of_group(ranks) + WEFT_COMM_MOST_BRANCHES * bytes_of_branch(ranks);
    return (bytes + page - 1) / page * page;
}

/* Place of the control of this communicator's group. */
static size_t control_at(const struct weft_comm *comm)
{
    const struct weft_comm_place *place = &comm->place;
    if (comm->trunk == NULL) return 0;
    return bytes_of_group(comm->trunk->ranks) +
           (size_t)place->number * bytes_of_branch(comm->trunk->ranks) +
           (size_t)place->index * bytes_of_group(comm->ranks);
}

static struct weft_local_post *post_of(const struct weft_local_comm *c, int32_t rank)
{
    return &c->control->ranks[rank].posts[c->calls % WEFT_LOCAL_POSTS];
}

/* This rank's latest call, for errors. */
static struct weft_comm_failing failing_of(struct weft_local_comm *c)
{
    return (struct weft_comm_failing){&c->comm, &post_of(c, c->comm.rank)->call, c->calls,
                                      &c->broken};
}

static int32_t rank_of(const struct weft_local_comm *c, int32_t rank)
{
    return weft_comm_rank_of_all(&c->comm, rank);
}

/* Returns the first failure again: after it ranks are out of step, so later calls must not wait. */
static enum weft_status fail_for_good(struct weft_local_comm *c, struct weft_error *err)
{
    weft_fail(err, c->broken.status, "%s", c->broken.text);
    return c->broken.status;
}

/* Peers */

static void open_peer_fd(struct weft_local_comm *c, int32_t rank)
{
    int32_t pid = atomic_load(&c->control->ranks[rank].pid);
    if (c->peer_fds[rank] < 0 && pid > 0)
        c->peer_fds[rank] = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

/* True if the rank's process has ended. A pidfd also reports a process that is not waited for yet;
 * for kill(pid, 0) it is alive. Kernels without pidfds need kill. */
static bool has_ended(const struct weft_local_comm *c, int32_t rank)
{
    if (c->peer_fds[rank] >= 0) {
        struct pollfd poll_fd = {.fd = c->peer_fds[rank], .events = POLLIN};
        return poll(&poll_fd, 1, 0) == 1;
    }
    int32_t pid = atomic_load(&c->control->ranks[rank].pid);
    return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

static bool peer_has_ended(struct weft_local_comm *c, int32_t rank)
{
    open_peer_fd(c, rank);
    return has_ended(c, rank);
}

const char *weft_local_gone(const struct weft_comm *comm, int32_t rank)
{
    const struct weft_local_comm *c = weft_local_comm_of(comm);
    const uint32_t closed = atomic_load(&c->control->ranks[rank].closed);
    if ((closed & WEFT_LOCAL_GAVE_UP) != 0) return "has given up";
    if (has_ended(c, rank)) return "has ended";
    return closed != 0 ? "has left" : NULL;
}

static bool is_complete(const struct weft_local_comm *c)
{
    return (int32_t)(atomic_load(&c->control->complete) - c->barriers) >= 0;
}

static enum weft_status fail_lost(struct weft_local_comm *c, int32_t rank, const char *how)
{
    const struct weft_local_rank *peer = &c->control->ranks[rank];
    const struct weft_comm_failing failing = failing_of(c);
    uint32_t kinds[WEFT_COMM_RECENT];
    weft_local_read_kinds(peer, kinds);
    return weft_comm_fail_gone(&failing, rank_of(c, rank), atomic_load(&peer->pid), how,
                               atomic_load(&peer->calls), kinds);
}

/* WEFT_E_LOST if this barrier can never complete. */
static enum weft_status look_for_lost(struct weft_local_comm *c)
{
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        if (rank == c->comm.rank) continue;
        uint32_t closed = atomic_load(&c->control->ranks[rank].closed);
        const char *how = NULL;
        if ((closed & WEFT_LOCAL_GAVE_UP) != 0 && !is_complete(c))
            return fail_lost(c, rank, "has given up");
        if (!weft_local_is_missing(c, rank)) continue;
        if (peer_has_ended(c, rank)) {
            how = "has ended";
        } else if (closed != 0) {
            how = "has left";
        }
        /* It may have arrived and then ended between the two checks. */
        if (how != NULL && weft_local_is_missing(c, rank)) return fail_lost(c, rank, how);
    }
    return WEFT_OK;
}

/* Limit of a wait in the latest call. */
static int64_t patience_ns(const struct weft_local_comm *c)
{
    const uint32_t kind = atomic_load(&weft_local_self(c)->kinds[c->calls % WEFT_COMM_RECENT]);
    return weft_comm_patience_ns(&c->comm, weft_comm_call_is_collective(kind), c->timeout_ns);
}

static enum weft_status fail_hang(struct weft_local_comm *c)
{
    const struct weft_comm_failing failing = failing_of(c);
    struct weft_text late;
    weft_text_init(&late);
    weft_local_show_late(c, &late);
    weft_comm_fail_late(&failing, patience_ns(c), &late);
    weft_text_finish(&late);
    return WEFT_E_HANG;
}

static enum weft_status fail_cancelled(struct weft_local_comm *c)
{
    const struct weft_comm_failing failing = failing_of(c);
    return weft_comm_fail_cancelled(&failing);
}

void weft_local_cancel(struct weft_comm *comm)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    atomic_store(&c->cancelled, true);
    atomic_fetch_or(&weft_local_self(c)->closed, WEFT_LOCAL_GAVE_UP);
    weft_futex_wake(&c->control->complete, true);
}

/* Barrier */

static bool spin_until_complete(const struct weft_local_comm *c)
{
    if (c->spin_ns == 0) return is_complete(c);
    int64_t end_ns = weft_clock_now_ns() + c->spin_ns;
    do {
        for (int i = 0; i < 16; i++) {
            if (is_complete(c)) return true;
            weft_cpu_relax();
        }
    } while (weft_clock_now_ns() < end_ns);
    return false;
}

/* The first rank of the group that is missing; -1: none. */
static int32_t find_missing(const struct weft_local_comm *c)
{
    for (int32_t rank = 0; rank < c->comm.ranks; rank++)
        if (rank != c->comm.rank && weft_local_is_missing(c, rank)) return rank;
    return -1;
}

static enum weft_status sleep_until_complete(struct weft_local_comm *c)
{
    struct weft_local_control *control = c->control;
    enum weft_status status = WEFT_OK;
    int64_t start_ns = weft_clock_now_ns();
    int64_t look_ns = start_ns + LOOK_NS;
    atomic_fetch_add(&control->sleepers, 1);
    while (status == WEFT_OK && !is_complete(c)) {
        if (atomic_load(&c->cancelled)) {
            status = fail_cancelled(c);
            break;
        }
        int64_t now_ns = weft_clock_now_ns();
        int64_t left_ns = start_ns + patience_ns(c) - now_ns;
        if (now_ns >= look_ns || left_ns <= 0) {
            look_ns = now_ns + LOOK_NS;
            status = look_for_lost(c);
            if (status == WEFT_OK)
                weft_local_note_wait(&c->comm, WEFT_LOCAL_AT_BARRIER, find_missing(c));
            if (status == WEFT_OK && left_ns <= 0 && !is_complete(c)) status = fail_hang(c);
            continue;
        }
        int64_t sleep_ns = look_ns - now_ns < left_ns ? look_ns - now_ns : left_ns;
        weft_futex_wait(&control->complete, c->barriers - 1, sleep_ns, true);
        /* A leaving rank wakes all sleepers, so an early wake calls for a check. */
        if (!is_complete(c)) status = look_for_lost(c);
    }
    atomic_fetch_sub(&control->sleepers, 1);
    /* After a failure others may still ask for whom this rank waited. */
    if (status == WEFT_OK) weft_local_note_wait(&c->comm, WEFT_LOCAL_AT_BARRIER, -1);
    return status;
}

enum weft_status weft_local_barrier(struct weft_local_comm *c, struct weft_error *err)
{
    if (c->broken.status == WEFT_OK && atomic_load(&c->cancelled)) fail_cancelled(c);
    if (c->broken.status != WEFT_OK) return fail_for_good(c, err);
    if (c->comm.ranks == 1) return WEFT_OK;
    struct weft_local_control *control = c->control;
    c->barriers++;
    /* Both counts run modulo 2^32. */
    uint32_t arrivals = atomic_fetch_add(&control->arrivals, 1) + 1;
    bool last = arrivals == c->barriers * (uint32_t)c->comm.ranks;
    if (last) atomic_store(&control->complete, c->barriers);
    /* Last, so that peers notice if this rank dies before it. */
    atomic_store(&weft_local_self(c)->arrived, c->barriers);
    if (last) {
        if (atomic_load(&control->sleepers) > 0) weft_futex_wake(&control->complete, true);
        return WEFT_OK;
    }
    if (spin_until_complete(c)) return WEFT_OK;
    if (sleep_until_complete(c) != WEFT_OK) return fail_for_good(c, err);
    return WEFT_OK;
}

/* Posts */

const struct weft_local_post *weft_local_posted(const struct weft_local_comm *c, int32_t rank)
{
    return post_of(c, rank);
}

static enum weft_status fail_disagree(struct weft_local_comm *c, int32_t rank)
{
    const struct weft_comm_failing failing = failing_of(c);
    return weft_comm_fail_differs(&failing, rank_of(c, rank), &post_of(c, rank)->call);
}

static _Atomic uint32_t *flag_of(const struct weft_local_comm *c)
{
    if (c->flag_offset < 0 || c->comm.span_bytes == 0) return NULL;
    return (_Atomic uint32_t *)(void *)(c->arenas[c->comm.rank] + c->flag_offset);
}

enum weft_status weft_local_enter(struct weft_local_comm *c, const struct weft_comm_call *call,
                                  int64_t arrival_ns, const void *mine, size_t bytes,
                                  int64_t *latest_ns, struct weft_error *err)
{
    if (c->broken.status != WEFT_OK) return fail_for_good(c, err);
    c->calls++;
    struct weft_local_rank *self = weft_local_self(c);
    atomic_store_explicit(&self->kinds[c->calls % WEFT_COMM_RECENT], (uint32_t)call->kind,
                          memory_order_relaxed);
    atomic_store_explicit(&self->calls, c->calls, memory_order_relaxed);
    struct weft_local_post *post = post_of(c, c->comm.rank);
    post->arrival_ns = arrival_ns;
    post->call = *call;
    _Atomic uint32_t *flag = flag_of(c);
    post->raised = flag != NULL && atomic_load(flag) != 0;
    if (bytes > 0) memcpy(post->bytes, mine, bytes);
    WEFT_TRY(weft_local_barrier(c, err));
    int64_t latest = arrival_ns;
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        const struct weft_local_post *theirs = post_of(c, rank);
        if (!weft_comm_call_equal(call, &theirs->call)) {
            fail_disagree(c, rank);
            return fail_for_good(c, err);
        }
        if (theirs->arrival_ns > latest) latest = theirs->arrival_ns;
        if (theirs->raised && flag != NULL) atomic_store(flag, 1);
    }
    *latest_ns = latest;
    return WEFT_OK;
}

/* Opening and closing */

static enum weft_status map_control(struct weft_local_comm *c, struct weft_error *err)
{
    const struct weft_comm *trunk = c->comm.trunk != NULL ? c->comm.trunk : &c->comm;
    c->mapped_bytes = weft_comm_control_bytes(trunk->ranks);
    if (c->control_fd < 0) {
        c->mapped =
            mmap(NULL, c->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    } else {
        struct stat status;
        if (fstat(c->control_fd, &status) != 0 || status.st_size < (off_t)c->mapped_bytes) {
            return weft_fail(err, WEFT_E_INTERNAL,
                             "descriptor %d is not the control memory of %d ranks (%zu bytes): "
                             "ranks must be started by weft",
                             c->control_fd, trunk->ranks, c->mapped_bytes);
        }
        c->mapped =
            mmap(NULL, c->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->control_fd, 0);
    }
    if (c->mapped == MAP_FAILED) {
        c->mapped = NULL;
        return weft_fail(err, WEFT_E_SYSTEM, "cannot map %zu bytes of control memory: %s",
                         c->mapped_bytes, strerror(errno));
    }
    c->control = (void *)((unsigned char *)c->mapped + control_at(&c->comm));
    return WEFT_OK;
}

enum weft_status weft_local_control_open(struct weft_local_comm *c, struct weft_error *err)
{
    WEFT_TRY(map_control(c, err));
    /* With more ranks than cores, a spinning rank would keep its peer from running. */
    const struct weft_comm *all = c->comm.trunk != NULL ? c->comm.trunk : &c->comm;
    c->spin_ns = c->own_cores || all->ranks <= weft_cores() ? SPIN_NS : 0;
    atomic_store(&weft_local_self(c)->pid, (int32_t)getpid());
    int64_t latest_ns;
    const struct weft_comm_call call = {.kind = WEFT_COMM_CALL_OPEN,
                                        .count = c->comm.ranks,
                                        .from = c->emulate ? c->alpha_ns : -1,
                                        .to = c->emulate ? (int64_t)c->bytes_per_s : -1};
    WEFT_TRY(weft_local_enter(c, &call, 0, NULL, 0, &latest_ns, err));
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        if (rank != c->comm.rank) open_peer_fd(c, rank);
    }
    return WEFT_OK;
}

void weft_local_control_close(struct weft_local_comm *c)
{
    if (c->control != NULL) {
        atomic_fetch_or(&weft_local_self(c)->closed, WEFT_LOCAL_LEFT);
        weft_futex_wake(&c->control->complete, true);
        munmap(c->mapped, c->mapped_bytes);
        c->control = NULL;
    }
    if (c->peer_fds == NULL) return;
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        if (c->peer_fds[rank] >= 0) close(c->peer_fds[rank]);
        c->peer_fds[rank] = -1;
    }
}
