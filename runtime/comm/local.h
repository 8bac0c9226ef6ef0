/* SPDX-License-Identifier: Apache-2.0 */
/* The local communicator. Ranks are processes of one machine, and arenas are shared memory: each
 * rank maps the parts of its peers' arenas that it reads. A collective is a barrier, then copies or
 * sums of the peers' bytes, then a barrier. The local_*.c files share this header, and so do
 * communicators that use this one for rendezvous.
 *
 * The control memory holds posts of all ranks. A rank writes only its own part, except for the
 * words of the barrier. It posts before a barrier and reads the peers' posts after it. The count of
 * posts selects one of two halves. So a half is written again only after all ranks have reached the
 * next barrier. A branch has a control of its own in the same memory (branch.c), and reads peers
 * through the views of its trunk. */
#ifndef WEFT_RUNTIME_COMM_LOCAL_H
#define WEFT_RUNTIME_COMM_LOCAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/arena/view.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/job.h"

enum {
    WEFT_LOCAL_POST_BYTES = WEFT_COMM_EXCHANGE_BYTES,
    WEFT_LOCAL_LINE_BYTES = 64,
    WEFT_LOCAL_POSTS = 2,
    WEFT_LOCAL_WAITS = 1 + WEFT_COMM_MOST_BRANCHES
};

/* Reasons why a rank does not come again. LEFT: it is done, or has failed in a collective, as its
 * peers do then. GAVE_UP: its reason is invisible to its peers. */
enum { WEFT_LOCAL_LEFT = 1, WEFT_LOCAL_GAVE_UP = 2 };

/* Waits of a rank that may overlap: of its threads at a barrier, and of its stream, as its watchdog
 * sees them. */
enum weft_local_waiter { WEFT_LOCAL_AT_BARRIER, WEFT_LOCAL_ON_STREAM, WEFT_LOCAL_WAITERS };

struct weft_local_post {
    int64_t arrival_ns; /* on the channel's clock */
    bool raised;
    struct weft_comm_call call;
    unsigned char bytes[WEFT_LOCAL_POST_BYTES];
};

struct weft_local_rank {
    alignas(WEFT_LOCAL_LINE_BYTES) _Atomic int32_t pid; /* 0 until it has opened */
    _Atomic uint32_t closed;                            /* flags below */
    _Atomic uint32_t arrived;                           /* barriers that it has reached */
    /* In the control of all ranks, by branch, the first for all: 1 + the rank for which it waits,
     * a rank of all; 0: for none, or not for long. */
    _Atomic int32_t waits[WEFT_LOCAL_WAITS][WEFT_LOCAL_WAITERS];
    /* For messages: the number of its calls, and the kinds of the latest ones. Call n is in word n
     * modulo WEFT_COMM_RECENT. */
    _Atomic uint32_t calls;
    _Atomic uint32_t kinds[WEFT_COMM_RECENT];
    struct weft_local_post posts[WEFT_LOCAL_POSTS];
};

struct weft_local_control {
    alignas(WEFT_LOCAL_LINE_BYTES) _Atomic uint32_t arrivals; /* of all ranks at all barriers */
    alignas(WEFT_LOCAL_LINE_BYTES) _Atomic uint32_t complete; /* complete barriers; futex word */
    _Atomic uint32_t sleepers;                                /* on `complete` */
    struct weft_local_rank ranks[];
};

struct weft_local_comm {
    struct weft_comm comm; /* first */
    int64_t timeout_ns;
    bool emulate;
    int64_t alpha_ns;
    double bytes_per_s;

    int control_fd;
    void *mapped; /* the control memory of all groups; `control` is a part of it */
    size_t mapped_bytes;
    struct weft_local_control *control;
    int *peer_fds; /* [ranks] pidfds, -1 if there is none yet */
    bool own_cores;
    int64_t spin_ns;
    uint32_t barriers; /* that it has reached */
    uint32_t calls;
    atomic_bool cancelled;
    struct weft_error broken; /* the first failure; after it ranks are out of step */

    int *arena_fds;                 /* [ranks], unused with 1 rank */
    struct weft_arena_view *peers;  /* [ranks], own entry unused; NULL in a branch */
    unsigned char **arenas;         /* [ranks], addresses of byte 0 */
    const unsigned char **operands; /* [ranks], of a sum; for the channel */
    struct weft_range *reads;       /* that collectives may read of peers; NULL: all */
    int32_t n_reads;

    int64_t flag_offset;  /* of the flag that collectives carry; negative: none */
    int64_t link_free_ns; /* end of the last collective, for virtual clock and emulated link */
};

static inline struct weft_local_comm *weft_local_comm_of(const struct weft_comm *comm)
{
    return (struct weft_local_comm *)comm;
}

static inline struct weft_local_rank *weft_local_self(const struct weft_local_comm *c)
{
    return &c->control->ranks[c->comm.rank];
}

static inline bool weft_local_is_missing(const struct weft_local_comm *c, int32_t rank)
{
    return atomic_load(&c->control->ranks[rank].arrived) != c->barriers;
}

static inline void weft_local_read_kinds(const struct weft_local_rank *rank,
                                         uint32_t kinds[WEFT_COMM_RECENT])
{
    for (int i = 0; i < WEFT_COMM_RECENT; i++)
        kinds[i] = atomic_load(&rank->kinds[i]);
}

/* local_waits.c */

/* Tells the other ranks that this rank waits for another one of the group in this communicator, and
 * not just now; -1: for none. Replaces the same waiter's rank alone. */
void weft_local_note_wait(const struct weft_comm *comm, enum weft_local_waiter waiter,
                          int32_t rank);
/* The rank that holds up a late rank, perhaps over others: it waits for none, or is stopped. The
 * late rank itself if all wait for one another. Both are ranks of all. */
int32_t weft_local_cause(const struct weft_comm *comm, int32_t rank);
/* Whether a rank of all is stopped by a signal. */
bool weft_local_is_stopped(const struct weft_comm *comm, int32_t rank);
/* Appends the ranks that hold up this barrier, and those of the group that wait for them. */
void weft_local_show_late(const struct weft_local_comm *c, struct weft_text *out);

/* local_control.c */

/* Maps the control memory, announces this rank, and waits for all others. */
enum weft_status weft_local_control_open(struct weft_local_comm *c, struct weft_error *err);
/* Announces that this rank does not come again, and unmaps. Accepts a half-opened one. */
void weft_local_control_close(struct weft_local_comm *c);

/* Returns how the rank is gone ("has ended", ...), or NULL if it may still come. Any thread may
 * call it. The rank must have opened. */
const char *weft_local_gone(const struct weft_comm *comm, int32_t rank);

/* Implements weft_comm_cancel. */
void weft_local_cancel(struct weft_comm *comm);

/* Waits for all ranks. WEFT_E_LOST if one is gone, WEFT_E_HANG if one does not come in time. */
enum weft_status weft_local_barrier(struct weft_local_comm *c, struct weft_error *err);

/* Posts `call`, the time and `bytes` bytes of `mine`, then waits for all ranks. WEFT_E_DISAGREE if
 * a rank makes another call. *latest_ns is the latest arrival. */
enum weft_status weft_local_enter(struct weft_local_comm *c, const struct weft_comm_call *call,
                                  int64_t arrival_ns, const void *mine, size_t bytes,
                                  int64_t *latest_ns, struct weft_error *err);
/* The post of `rank` in the latest weft_local_enter, valid until the next one. */
const struct weft_local_post *weft_local_posted(const struct weft_local_comm *c, int32_t rank);

/* local_arena.c */

enum weft_status weft_local_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                   const struct weft_ranges *reads, struct weft_error *err);
bool weft_local_detach(struct weft_comm *comm);

/* local_collectives.c */

extern weft_comm_task_fn *const weft_local_tasks[WEFT_COMM_CALL_COUNT];

#endif
