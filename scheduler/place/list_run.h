/* SPDX-License-Identifier: Apache-2.0 */
/* State of a running list schedule. Internal to list.c, list_begin.c and list_waits.c. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_RUN_H
#define WEFT_SCHEDULER_PLACE_LIST_RUN_H

#include "base/work.h"
#include "scheduler/digest/digest.h"
#include "scheduler/place/list_rule.h"

/* Blocks of an item that follow one another on a lane. Units may have thousands of equal blocks, so
 * a lane keeps runs of them. */
struct weft_list_run {
    int32_t begin; /* position of the first on the lane; the run ends where the next begins */
    int32_t item;
    int32_t nth;      /* number of the first within its item, from 0 */
    int32_t furthest; /* last slot of any window up to these blocks */
};

/* Reductions of one item that follow one another on their lane and may be incomplete. */
struct weft_list_flight {
    int32_t move;     /* index of the first one's move, or -1 without moves */
    int32_t begin, n; /* position of the first on the lane; number */
    int64_t bytes;    /* of each */
    int32_t tier;
};

/* Bytes of a tier at the present time. */
struct weft_list_tier {
    int64_t held;          /* by launched gathers with an open window */
    int64_t pending;       /* by incomplete reductions */
    int64_t row, next_row; /* of this slot; of the next, with no further launch */
};

/* Blocks put on a lane, in order. The first incomplete block is in progress. */
struct weft_list_lane {
    struct weft_list_run *runs;       /* [n_blocks] */
    int32_t n_runs, head;             /* head: of block n_done, or the last */
    int32_t *upto;                    /* [n_slots + 1]: blocks up to the last one due in the slot */
    int32_t n_put, n_done, n_before;  /* n_before: put before the slot */
    bool begun;                       /* block n_done has begun */
    struct weft_list_flight *flights; /* [n_blocks] */
    int32_t flight_begin, flight_end; /* in flights */
    /* The lane carries only reductions and is one of several. It is never idle while one is
     * ready. */
    bool is_eager;
    bool is_full;    /* the last search found a gather that did not fit */
    bool idle;       /* it gets no more blocks in the slot */
    int64_t idle_ns; /* begin of the idle time */
    int64_t let_ns;  /* last time at which a block ended that an item of this lane follows; or -1 */
};

/* Rows that `highest` sums up. Windows of a thousand slots are checked and filled often. */
enum { WEFT_LIST_STRETCH = 32 };

/* Sets of a lane's open gathers. A search looks at no gather that it cannot take. */
enum weft_list_set {
    WEFT_LIST_ALL,
    WEFT_LIST_FREE,    /* of zero bytes */
    WEFT_LIST_CHAINED, /* that follow another item */
    WEFT_LIST_SETS
};

struct weft_list {
    const struct weft_digest *table;
    struct weft_work *work; /* borrowed; NULL: no work is counted */
    /* Rows [n_tiers][n_slots + 1]; the last slot is an empty one after the period. */
    int64_t *fixed, *least;
    int64_t *highest; /* [n_tiers][n_stretches]: the most of `least` in WEFT_LIST_STRETCH rows */
    int32_t n_stretches;
    int64_t *reserved_bytes, *launched_bytes; /* of gathers, by last slot */
    int64_t *kept_bytes;                      /* of reserved_bytes: for items that cannot block */
    int64_t *release_bytes;                   /* of reductions, by first slot */
    int32_t *left;                            /* [n_items]: blocks not yet placed */
    int32_t *blocked;                         /* [n_items]: first slot of a new try */
    int32_t *first_block;                     /* [n_items + 1] */
    uint32_t *followers;                      /* [n_items]: lanes of items that follow it */
    /* State of one run. */
    const int32_t *strategies;
    struct weft_move *moves; /* or NULL */
    int64_t limit;
    int64_t used; /* bytes: least limit that admits every choice so far */
    struct weft_lanes lanes;
    struct weft_list_lane moving[WEFT_MOST_LANES]; /* without compute */
    int32_t n_lanes;
    /* Only if has_chains: completed blocks of each item and the time of the last one, [n_items]. */
    bool has_chains;
    int32_t *done;
    int64_t *done_ns;
    struct weft_list_tier tiers[WEFT_MOST_TIERS];
    int32_t n_tiers;
    int64_t pending; /* in all tiers, by incomplete reductions */
    int32_t slot, n_moves;
    /* Gathers with an open window and blocks left, one bit for each position in the table's order,
     * by set and lane; and the order in which windows open. */
    uint64_t *open; /* [WEFT_LIST_SETS][n_lanes][n_words] */
    int32_t n_words;
    int32_t *position; /* [n_items] */
    int32_t *opening;  /* [n_gathers]: positions by first slot */
    int32_t n_opened;
    int32_t gather_at, reduction_at; /* positions in the table's orders */
    bool has_free_gathers;           /* gathers of zero bytes */
    int32_t gather_within;           /* of the rule */
    bool *hooks;                     /* [n_slots]: slots that may launch gathers */
    bool puts_off;                   /* the rule has one of these arrays */
    const int32_t *launch, *order;
    const int64_t *late_bytes;
    int64_t *clear_ns; /* [n_slots]: compute from the end of the slot to the next clear slot */
    struct weft_list_wait *waits; /* [n_slots][WEFT_WAIT_KINDS] */
};

static inline const struct weft_problem_item *weft_list_item(const struct weft_list *list,
                                                             int32_t item)
{
    return &list->table->problem->items[item];
}

/* Index of the run of the block at this position, which was put. */
static inline int32_t weft_list_run_at(const struct weft_list_lane *lane, int32_t at)
{
    int32_t low = 0, high = lane->n_runs;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        if (lane->runs[middle].begin <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Position after the run's last block. */
static inline int32_t weft_list_run_end(const struct weft_list_lane *lane, int32_t run)
{
    return run + 1 < lane->n_runs ? lane->runs[run + 1].begin : lane->n_put;
}

/* True if the bytes are within the limit. Raises `used`. */
static inline bool weft_list_holds(struct weft_list *list, int64_t bytes)
{
    if (bytes > list->limit) return false;
    if (bytes > list->used) list->used = bytes;
    return true;
}

/* Adds bytes to rows first .. end - 1 of a tier's `least`. */
void weft_list_add_least(struct weft_list *list, int32_t tier, int32_t first, int32_t end,
                         int64_t bytes);

/* Index of a tier's rows, and of the rows of an item's tier. */
static inline int32_t weft_list_tier_at(const struct weft_list *list, int32_t tier)
{
    return tier * (list->table->n_slots + 1);
}

static inline int32_t weft_list_stair_at(const struct weft_list *list, const struct weft_item *item)
{
    return weft_list_tier_at(list, item->stair_tier);
}

/* Begins a run by the rule, within the problem's limit. The arrays must outlive the run. */
void weft_list_begin(struct weft_list *list, const int32_t *strategies, struct weft_list_rule rule,
                     struct weft_move *moves);

/* weft_list_begin_waits clears the waits of a slot. Each other function records one wait that
 * began at from_ns and ends now: for blocks put before the n_before-th of a lane, ahead of gathers
 * that block; for gathers due on one lane; for reductions without which the next slot does not
 * fit; and for a lane that is idle although a gather is left. */
void weft_list_begin_waits(struct weft_list *list);
void weft_list_note_blocking(struct weft_list *list, const struct weft_list_lane *lane,
                             int32_t n_before, int64_t from_ns);
void weft_list_note_due(struct weft_list *list, const struct weft_list_lane *lane, int64_t from_ns);
void weft_list_note_short(struct weft_list *list, int64_t short_bytes, int64_t from_ns);
void weft_list_note_full(struct weft_list *list, int64_t late_bytes, int64_t from_ns);

#endif
