/* SPDX-License-Identifier: Apache-2.0 */
/* A recorder keeps the last operations of a rank in a ring, in memory shared by the ranks of a
 * machine. So a rank that has ended still shows its last operations. The issuing thread writes
 * calls, the watchdog writes their starts and ends, and any process reads. After a failure the
 * rings of all ranks are compared. Collectives are the same sequence on all ranks, so the first
 * difference is the fault. */
#ifndef WEFT_RUNTIME_COMM_NCCL_RECORDER_H
#define WEFT_RUNTIME_COMM_NCCL_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

enum { WEFT_NCCL_RECORDED = 1024, WEFT_NCCL_WHY_BYTES = 1024 };

/* X(enumerator, name) */
#define WEFT_NCCL_KIND_MAP(X)                                                                      \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(REDUCE_SCATTER, "reduce_scatter")                                                            \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(AGREE, "agree")

enum weft_nccl_kind {
#define WEFT_NCCL_KIND_ENUMERATOR(name, text) WEFT_NCCL_##name,
    WEFT_NCCL_KIND_MAP(WEFT_NCCL_KIND_ENUMERATOR)
#undef WEFT_NCCL_KIND_ENUMERATOR
        WEFT_NCCL_KIND_COUNT
};

/* A call. All ranks must issue it with equal values. */
struct weft_nccl_call {
    enum weft_nccl_kind kind;
    int64_t bytes;    /* full block, or the agreement's words */
    int64_t from, to; /* offsets of the arena */
};

bool weft_nccl_is_same_call(const struct weft_nccl_call *a, const struct weft_nccl_call *b);

/* Times are of the rank's own monotonic clock; 0: not known to have happened. */
struct weft_nccl_operation {
    _Atomic uint64_t sequence; /* from 1; 0: empty, or being written */
    struct weft_nccl_call call;
    int64_t issued_ns;
    _Atomic int64_t started_ns, done_ns;
};

/* A ring of zeros is empty. */
struct weft_nccl_ring {
    _Atomic uint64_t issued; /* number of operations since the start */
    /* Not WEFT_OK: the rank has given up for a reason common to all ranks. `why` is its text. */
    _Atomic int32_t status;
    char why[WEFT_NCCL_WHY_BYTES];
    struct weft_nccl_operation operations[WEFT_NCCL_RECORDED];
};

/* Records a call, in the issuing thread. Returns its sequence. */
uint64_t weft_nccl_record(struct weft_nccl_ring *ring, const struct weft_nccl_call *call,
                          int64_t now_ns);
/* Record a start or an end, in the watchdog. They do nothing if the ring has lost the operation. */
void weft_nccl_record_started(struct weft_nccl_ring *ring, uint64_t sequence, int64_t now_ns);
void weft_nccl_record_done(struct weft_nccl_ring *ring, uint64_t sequence, int64_t now_ns);

/* Reads an operation. Returns false if it has not been issued, or is lost. */
struct weft_nccl_seen {
    struct weft_nccl_call call;
    int64_t issued_ns, started_ns, done_ns;
};
bool weft_nccl_recorded(const struct weft_nccl_ring *ring, uint64_t sequence,
                        struct weft_nccl_seen *out);

/* The first operation that started at least `timeout_ns` ago and is not done; 0: none. */
uint64_t weft_nccl_overdue(const struct weft_nccl_ring *ring, int64_t now_ns, int64_t timeout_ns);

/* The difference between ranks. */
enum weft_nccl_finding_kind {
    WEFT_NCCL_ALIKE,
    WEFT_NCCL_DIFFERS,     /* the rank issued another call than most ranks */
    WEFT_NCCL_MISSING,     /* the rank has not issued it, another has */
    WEFT_NCCL_NOT_STARTED, /* the rank has not started it, another has */
    WEFT_NCCL_NOT_DONE,    /* the rank has not done it, another has; or no rank has */
    WEFT_NCCL_FINDING_COUNT
};

struct weft_nccl_finding {
    enum weft_nccl_finding_kind kind;
    uint64_t sequence;
    int32_t rank;       /* -1: no difference, or WEFT_NCCL_NOT_DONE on every rank */
    int32_t other;      /* first rank with the usual call, or ahead of `rank` */
    int32_t first, gap; /* of a branch: its rank r is rank first + r * (1 + gap) of all */
};

/* Finds the first operation, and there the first rank, that differs. Calls are compared first. If
 * all calls agree, their progress is compared; a rank may lack progress of its last operations. A
 * NULL ring is unknown. Lost operations count as equal. */
struct weft_nccl_finding weft_nccl_compare(const struct weft_nccl_ring *const *rings,
                                           int32_t ranks);
/* Appends a sentence about the finding; nothing for WEFT_NCCL_ALIKE. */
void weft_nccl_show_finding(const struct weft_nccl_finding *finding,
                            const struct weft_nccl_ring *const *rings, struct weft_text *out);

#endif
