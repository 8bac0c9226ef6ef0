/* A recorder keeps the last operations of a rank, in a ring that lies in memory which the other
 * ranks of the machine have too: a rank that has ended still tells what it did last. The thread
 * that issues writes what it issues, the watchdog writes when that started and was done, and
 * anybody reads. After a failure the rings of all ranks are laid side by side: collectives are the
 * same sequence everywhere, so the first place where they are not is where it went wrong. */
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

const char *weft_nccl_kind_name(enum weft_nccl_kind kind);

/* What all ranks must have issued with the same values. */
struct weft_nccl_call {
    enum weft_nccl_kind kind;
    int64_t bytes;    /* that this rank gives or gets in all */
    int64_t from, to; /* offsets of the arena */
};

bool weft_nccl_is_same_call(const struct weft_nccl_call *a, const struct weft_nccl_call *b);

/* Times are of the rank's own monotonic clock; 0: not yet, as far as is known. */
struct weft_nccl_operation {
    _Atomic uint64_t sequence; /* from 1 on; 0: nothing, or it is being written */
    struct weft_nccl_call call;
    int64_t issued_ns;
    _Atomic int64_t started_ns, done_ns;
};

/* All zeros is an empty one. */
struct weft_nccl_ring {
    _Atomic uint64_t issued; /* how many operations, ever */
    /* Not WEFT_OK: the rank has given up for a reason that is everybody's, and this is why. */
    _Atomic int32_t status;
    char why[WEFT_NCCL_WHY_BYTES];
    struct weft_nccl_operation operations[WEFT_NCCL_RECORDED];
};

/* By the thread that issues: its sequence. */
uint64_t weft_nccl_record(struct weft_nccl_ring *ring, const struct weft_nccl_call *call,
                          int64_t now_ns);
/* By the watchdog. Nothing where the ring has gone on to a later operation. */
void weft_nccl_record_started(struct weft_nccl_ring *ring, uint64_t sequence, int64_t now_ns);
void weft_nccl_record_done(struct weft_nccl_ring *ring, uint64_t sequence, int64_t now_ns);

/* What the ring has of an operation. False: nothing, for it has not been issued, or is forgotten.
 */
struct weft_nccl_seen {
    struct weft_nccl_call call;
    int64_t issued_ns, started_ns, done_ns;
};
bool weft_nccl_recorded(const struct weft_nccl_ring *ring, uint64_t sequence,
                        struct weft_nccl_seen *out);

/* The first operation that started `timeout_ns` ago or more and is not done; 0: there is none. */
uint64_t weft_nccl_overdue(const struct weft_nccl_ring *ring, int64_t now_ns, int64_t timeout_ns);

/* How ranks are not alike. */
enum weft_nccl_finding_kind {
    WEFT_NCCL_ALIKE,
    WEFT_NCCL_DIFFERS,     /* the rank issued something else than most */
    WEFT_NCCL_MISSING,     /* the rank has not issued what another has */
    WEFT_NCCL_NOT_STARTED, /* the rank has not come to what another has started */
    WEFT_NCCL_NOT_DONE,    /* the rank has not done what another has; or it ends on no rank */
    WEFT_NCCL_FINDING_COUNT
};

struct weft_nccl_finding {
    enum weft_nccl_finding_kind kind;
    uint64_t sequence;
    int32_t rank;  /* -1: all alike, or WEFT_NCCL_NOT_DONE on every rank */
    int32_t other; /* the first rank that is as most are, or has what this one has not */
};

/* The first operation, and there the first rank, that is not like the others: what they issued, and
 * where that is alike how far they have come, which a rank may not have noted of its last ones. Of
 * ranks whose ring is NULL nothing is known. What a ring has forgotten is taken for alike. */
struct weft_nccl_finding weft_nccl_compare(const struct weft_nccl_ring *const *rings,
                                           int32_t ranks);
/* Adds a sentence that says it; nothing for WEFT_NCCL_ALIKE. */
void weft_nccl_show_finding(const struct weft_nccl_finding *finding,
                            const struct weft_nccl_ring *const *rings, struct weft_text *out);

#endif
