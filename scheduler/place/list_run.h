/* A list schedule under way. Internal to list.c, list_begin.c and list_waits.c. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_RUN_H
#define WEFT_SCHEDULER_PLACE_LIST_RUN_H

#include "base/work.h"
#include "scheduler/digest/digest.h"
#include "scheduler/place/list_rule.h"

/* A reduction on its lane that may not have completed yet. */
struct weft_list_flight {
    int32_t move; /* its index; -1 when moves are not wanted */
    int32_t put;  /* blocks put on the lane with it */
    int64_t bytes;
    int32_t tier;
};

/* What a tier holds as things stand. */
struct weft_list_tier {
    int64_t held;          /* by gathers launched whose window is not over */
    int64_t pending;       /* by reductions not yet complete */
    int64_t row, next_row; /* held in this slot; in the next, if nothing more happens */
};

/* Blocks put on a lane, in order; of those that are not done the first is under way. */
struct weft_list_lane {
    int32_t *item;     /* [n_blocks] */
    int32_t *nth;      /* [n_blocks]: which of the item's own, from 0 on */
    int32_t *furthest; /* [n_blocks]: the last slot of a window of this block or one ahead */
    int32_t *upto;     /* [n_slots + 1]: put, with the last whose window ends in the slot */
    int32_t n_put, n_done, n_before;  /* n_before: put before the slot */
    bool begun;                       /* the first that is not done */
    struct weft_list_flight *flights; /* [n_blocks] */
    int32_t flight_begin, flight_end; /* in flights */
    /* One of several, of reductions alone: it is never idle while one is ready. */
    bool is_eager;
    bool is_full;    /* a gather did not fit when one was last looked for */
    bool idle;       /* nothing more is put on it in the slot */
    int64_t idle_ns; /* since when */
};

struct weft_list {
    const struct weft_digest *table;
    struct weft_work *work; /* borrowed; NULL: nothing is counted */
    /* [n_tiers][n_slots + 1], the last of them an empty slot after the period: */
    int64_t *fixed, *least;
    int64_t *reserved_bytes, *launched_bytes; /* of gathers, by the last slot of their window */
    int64_t *kept_bytes;                      /* of reserved_bytes: for blocks that cannot block */
    int64_t *release_bytes;                   /* of reductions, by the first */
    int32_t *left;                            /* [n_items]: blocks not yet placed */
    int32_t *blocked;                         /* [n_items]: first slot of another try */
    int32_t *first_block;                     /* [n_items + 1] */
    /* One run: */
    const int32_t *strategies;
    struct weft_move *moves; /* or NULL */
    int64_t limit;
    int64_t used; /* the least limit at which all that fitted so far would have fitted */
    struct weft_lanes lanes;
    struct weft_list_lane moving[WEFT_MOST_LANES]; /* but compute */
    int32_t n_lanes;
    /* Where items come after others: how many blocks of an item are over, and since when the last
     * of them is. [n_items] */
    bool has_chains;
    int32_t *done;
    int64_t *done_ns;
    struct weft_list_tier tiers[WEFT_MOST_TIERS];
    int32_t n_tiers;
    int64_t pending; /* in all tiers, by reductions not yet complete */
    int32_t slot, n_moves;
    int32_t gather_at, reduction_at; /* positions in the table's orders */
    bool has_free_gathers;           /* of no bytes of their own */
    int32_t gather_within;           /* of the rule */
    bool puts_off;                   /* the rule has any of these: */
    const int32_t *launch, *order;
    const int64_t *late_bytes;
    int64_t *clear_ns; /* [n_slots]: compute from the end of the slot to the next that is clear */
    struct weft_list_wait *waits; /* [n_slots][WEFT_WAIT_KINDS] */
};

static inline const struct weft_problem_item *weft_list_item(const struct weft_list *list,
                                                             int32_t item)
{
    return &list->table->problem->items[item];
}

/* True when the bytes are within the limit. */
static inline bool weft_list_holds(struct weft_list *list, int64_t bytes)
{
    if (bytes > list->limit) return false;
    if (bytes > list->used) list->used = bytes;
    return true;
}

/* Where the rows of a tier are, and of an item's. */
static inline int32_t weft_list_tier_at(const struct weft_list *list, int32_t tier)
{
    return tier * (list->table->n_slots + 1);
}

static inline int32_t weft_list_stair_at(const struct weft_list *list, const struct weft_item *item)
{
    return weft_list_tier_at(list, item->stair_tier);
}

/* Begins a run of the strategies, within the problem's limit, by the rule. */
void weft_list_begin(struct weft_list *list, const int32_t *strategies, struct weft_list_rule rule,
                     struct weft_move *moves);

/* Begins the waits of a slot; what made its compute wait since from_ns: blocks ahead of its gathers
 * that block, put before the n_before-th of the lane; those due in it, of one lane; and reductions
 * without which the next does not fit. And since when a lane is idle in it though a gather is left.
 * Each while the time is still that of the end of the wait. */
void weft_list_begin_waits(struct weft_list *list);
void weft_list_note_blocking(struct weft_list *list, const struct weft_list_lane *lane,
                             int32_t n_before, int64_t from_ns);
void weft_list_note_due(struct weft_list *list, const struct weft_list_lane *lane, int64_t from_ns);
void weft_list_note_short(struct weft_list *list, int64_t short_bytes, int64_t from_ns);
void weft_list_note_full(struct weft_list *list, int64_t late_bytes, int64_t from_ns);

#endif
