/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/comm/nccl/recorder.h"

#include <stddef.h>

static const char *name_kind(enum weft_nccl_kind kind)
{
    static const char *const names[WEFT_NCCL_KIND_COUNT] = {
#define WEFT_NCCL_KIND_NAME(name, text) text,
        WEFT_NCCL_KIND_MAP(WEFT_NCCL_KIND_NAME)
#undef WEFT_NCCL_KIND_NAME
    };
    return (unsigned)kind < WEFT_NCCL_KIND_COUNT ? names[kind] : "?";
}

/* Writing */

static struct weft_nccl_operation *slot_of(struct weft_nccl_ring *ring, uint64_t sequence)
{
    return &ring->operations[sequence % WEFT_NCCL_RECORDED];
}

uint64_t weft_nccl_record(struct weft_nccl_ring *ring, const struct weft_nccl_call *call,
                          int64_t now_ns)
{
    const uint64_t sequence = atomic_load(&ring->issued) + 1;
    struct weft_nccl_operation *slot = slot_of(ring, sequence);
    atomic_store(&slot->sequence, 0);
    slot->call = *call;
    slot->issued_ns = now_ns;
    atomic_store(&slot->started_ns, 0);
    atomic_store(&slot->done_ns, 0);
    atomic_store(&slot->sequence, sequence);
    atomic_store(&ring->issued, sequence);
    return sequence;
}

void weft_nccl_record_started(struct weft_nccl_ring *ring, uint64_t sequence, int64_t now_ns)
{
    struct weft_nccl_operation *slot = slot_of(ring, sequence);
    if (atomic_load(&slot->sequence) == sequence) atomic_store(&slot->started_ns, now_ns);
}

void weft_nccl_record_done(struct weft_nccl_ring *ring, uint64_t sequence, int64_t now_ns)
{
    struct weft_nccl_operation *slot = slot_of(ring, sequence);
    if (atomic_load(&slot->sequence) == sequence) atomic_store(&slot->done_ns, now_ns);
}

/* Reading */

bool weft_nccl_recorded(const struct weft_nccl_ring *ring, uint64_t sequence,
                        struct weft_nccl_seen *out)
{
    const struct weft_nccl_operation *slot = &ring->operations[sequence % WEFT_NCCL_RECORDED];
    if (sequence == 0 || atomic_load(&slot->sequence) != sequence) return false;
    const struct weft_nccl_seen seen = {
        .call = slot->call,
        .issued_ns = slot->issued_ns,
        .started_ns = atomic_load(&slot->started_ns),
        .done_ns = atomic_load(&slot->done_ns),
    };
    /* The rank may have overwritten this slot meanwhile. */
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load(&slot->sequence) != sequence) return false;
    *out = seen;
    return true;
}

/* The oldest operation in the ring, or 1 if none has been lost. */
static uint64_t first_recorded(const struct weft_nccl_ring *ring)
{
    const uint64_t issued = atomic_load(&ring->issued);
    return issued < WEFT_NCCL_RECORDED ? 1 : issued - WEFT_NCCL_RECORDED + 1;
}

uint64_t weft_nccl_overdue(const struct weft_nccl_ring *ring, int64_t now_ns, int64_t timeout_ns)
{
    const uint64_t issued = atomic_load(&ring->issued);
    struct weft_nccl_seen seen;
    for (uint64_t i = first_recorded(ring); i <= issued; i++) {
        if (!weft_nccl_recorded(ring, i, &seen) || seen.done_ns != 0) continue;
        /* Operations of one stream run in order, so later ones have not started. */
        return seen.started_ns != 0 && now_ns - seen.started_ns >= timeout_ns ? i : 0;
    }
    return 0;
}

/* Comparing */

bool weft_nccl_is_same_call(const struct weft_nccl_call *a, const struct weft_nccl_call *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->from == b->from && a->to == b->to;
}

/* Knowledge of a rank's operation. KNOWN_NOT: its ring is missing, or has lost it. */
enum known { KNOWN_NOT, KNOWN_MISSING, KNOWN_ISSUED };

static enum known look_up(const struct weft_nccl_ring *ring, uint64_t sequence,
                          struct weft_nccl_seen *out)
{
    if (ring == NULL) return KNOWN_NOT;
    if (atomic_load(&ring->issued) < sequence) return KNOWN_MISSING;
    return weft_nccl_recorded(ring, sequence, out) ? KNOWN_ISSUED : KNOWN_NOT;
}

/* Number of ranks that issued this call. */
static int32_t count_alike(const struct weft_nccl_ring *const *rings, int32_t ranks,
                           uint64_t sequence, const struct weft_nccl_call *call)
{
    int32_t alike = 0;
    struct weft_nccl_seen seen;
    for (int32_t r = 0; r < ranks; r++) {
        if (look_up(rings[r], sequence, &seen) == KNOWN_ISSUED &&
            weft_nccl_is_same_call(&seen.call, call))
            alike++;
    }
    return alike;
}

/* The first rank with the most frequent call, or -1 if no call is known. */
static int32_t find_usual(const struct weft_nccl_ring *const *rings, int32_t ranks,
                          uint64_t sequence, struct weft_nccl_seen *usual)
{
    int32_t most = 0, found = -1;
    struct weft_nccl_seen seen;
    for (int32_t r = 0; r < ranks && most <= ranks / 2; r++) {
        if (look_up(rings[r], sequence, &seen) != KNOWN_ISSUED) continue;
        const int32_t alike = count_alike(rings, ranks, sequence, &seen.call);
        if (alike <= most) continue;
        most = alike;
        found = r;
        *usual = seen;
    }
    return found;
}

/* Compares the progress of ranks that have issued the same. */
static struct weft_nccl_finding compare_times(const struct weft_nccl_ring *const *rings,
                                              int32_t ranks, uint64_t sequence)
{
    struct weft_nccl_finding finding = {.sequence = sequence, .rank = -1, .other = -1};
    int32_t started = -1, waits = -1, done = -1, open = -1;
    struct weft_nccl_seen seen;
    for (int32_t r = ranks - 1; r >= 0; r--) {
        if (look_up(rings[r], sequence, &seen) != KNOWN_ISSUED) continue;
        if (seen.done_ns != 0) done = r;
        if (seen.done_ns == 0) open = r;
        if (seen.started_ns != 0) started = r;
        if (seen.started_ns == 0 && seen.done_ns == 0) waits = r;
    }
    if (waits >= 0 && (started >= 0 || done >= 0)) {
        finding.kind = WEFT_NCCL_NOT_STARTED;
        finding.rank = waits;
        finding.other = started >= 0 ? started : done;
    } else if (open >= 0 && done >= 0) {
        finding.kind = WEFT_NCCL_NOT_DONE;
        finding.rank = open;
        finding.other = done;
    } else if (open >= 0 && started >= 0) {
        finding.kind = WEFT_NCCL_NOT_DONE;
    }
    return finding;
}

/* Compares the calls that ranks have issued. */
static struct weft_nccl_finding compare_calls(const struct weft_nccl_ring *const *rings,
                                              int32_t ranks, uint64_t sequence)
{
    struct weft_nccl_finding finding = {.sequence = sequence, .rank = -1, .other = -1};
    struct weft_nccl_seen usual = {.issued_ns = 0}, seen;
    finding.other = find_usual(rings, ranks, sequence, &usual);
    if (finding.other < 0) return finding;
    for (int32_t r = 0; r < ranks; r++) {
        const enum known known = look_up(rings[r], sequence, &seen);
        if (known == KNOWN_NOT ||
            (known == KNOWN_ISSUED && weft_nccl_is_same_call(&seen.call, &usual.call)))
            continue;
        finding.kind = known == KNOWN_MISSING ? WEFT_NCCL_MISSING : WEFT_NCCL_DIFFERS;
        finding.rank = r;
        return finding;
    }
    return finding;
}

typedef struct weft_nccl_finding compare_fn(const struct weft_nccl_ring *const *rings,
                                            int32_t ranks, uint64_t sequence);

struct weft_nccl_finding weft_nccl_compare(const struct weft_nccl_ring *const *rings, int32_t ranks)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (int32_t r = 0; r < ranks; r++) {
        if (rings[r] == NULL) continue;
        const uint64_t issued = atomic_load(&rings[r]->issued);
        if (first_recorded(rings[r]) < first) first = first_recorded(rings[r]);
        if (issued > last) last = issued;
    }
    static compare_fn *const comparisons[] = {compare_calls, compare_times};
    for (size_t c = 0; c < sizeof comparisons / sizeof comparisons[0]; c++) {
        for (uint64_t i = first; i <= last; i++) {
            const struct weft_nccl_finding finding = comparisons[c](rings, ranks, i);
            if (finding.kind != WEFT_NCCL_ALIKE) return finding;
        }
    }
    return (struct weft_nccl_finding){.kind = WEFT_NCCL_ALIKE, .rank = -1, .other = -1};
}

static void show_call(const struct weft_nccl_ring *ring, uint64_t sequence, struct weft_text *out)
{
    struct weft_nccl_seen seen;
    if (!weft_nccl_recorded(ring, sequence, &seen)) return;
    weft_text_addf(out, "%s of %lld bytes from offset %lld to %lld", name_kind(seen.call.kind),
                   (long long)seen.call.bytes, (long long)seen.call.from, (long long)seen.call.to);
}

void weft_nccl_show_finding(const struct weft_nccl_finding *finding,
                            const struct weft_nccl_ring *const *rings, struct weft_text *out)
{
    /* The first rank with this operation in its ring. */
    int32_t has = finding->other >= 0 ? finding->other : 0;
    while (finding->kind != WEFT_NCCL_ALIKE && rings[has] == NULL)
        has++;
    const unsigned long long sequence = finding->sequence;
    const int32_t rank = finding->first + finding->rank * (1 + finding->gap);
    const int32_t other = finding->first + has * (1 + finding->gap);
    switch (finding->kind) {
    case WEFT_NCCL_ALIKE:
    case WEFT_NCCL_FINDING_COUNT:
        return;
    case WEFT_NCCL_DIFFERS:
        weft_text_addf(out, "operation %llu differs: rank %d issued ", sequence, rank);
        show_call(rings[finding->rank], sequence, out);
        weft_text_addf(out, " and rank %d ", other);
        break;
    case WEFT_NCCL_MISSING:
        weft_text_addf(out, "rank %d has not issued operation %llu, which on rank %d is ", rank,
                       sequence, other);
        break;
    case WEFT_NCCL_NOT_STARTED:
        weft_text_addf(out,
                       "rank %d has not come to operation %llu, which rank %d has started: ", rank,
                       sequence, other);
        break;
    case WEFT_NCCL_NOT_DONE:
        if (finding->rank >= 0) {
            weft_text_addf(out, "rank %d has not done operation %llu, which rank %d has: ", rank,
                           sequence, other);
        } else {
            weft_text_addf(out, "operation %llu has started and ends on no rank: ", sequence);
        }
        break;
    }
    show_call(rings[has], sequence, out);
}
