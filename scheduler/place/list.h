/* List scheduling: for fixed policies, place every block by walking the slots in time and putting
 * on the channel, whenever it is free, what a rule says is next, without ever holding more than the
 * limit in any slot. Event-exact: the time that it returns is the simulator's. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_H
#define WEFT_SCHEDULER_PLACE_LIST_H

#include "base/work.h"
#include "scheduler/digest/digest.h"

/* With both a gather and a reduction ready, the gather goes first when its deadline is within
 * `gather_within` slots. A rule that stages keeps bytes free in the last slot of every gather's
 * window, as far as there are any, so that the gather can be launched there at the latest; one that
 * does not leaves them to whoever comes first, and gathers for which there is no room block. */
struct weft_list_rule {
    int32_t gather_within;
    bool stages;
    const int32_t *launch; /* [n_blocks], see weft_list_first_blocks, or NULL: until which slot
                              the block waits unless it must be put; does not decrease over the
                              blocks of an item; a gather whose window ends before it blocks */
    const bool *clear; /* [n_slots], or NULL: a slot before which no block begins that compute alone
                          would not give the time to end, unless it must be put */
    const int32_t *order; /* [n_blocks], or NULL: ready reductions go by it, the least first, then
                             by release; does not decrease over the blocks of an item */
    const int64_t *late_bytes; /* [n_slots], or NULL: a slot does not begin while reductions that
                                  were released before it hold more than this */
};
enum { WEFT_LIST_RULES = 7 };
extern const struct weft_list_rule weft_list_rules[WEFT_LIST_RULES];

/* Scratch memory of list scheduling, made once for a table. */
struct weft_list;
WEFT_MUST_USE enum weft_status weft_list_create(const struct weft_digest *table,
                                                struct weft_list **out, struct weft_error *err);
void weft_list_destroy(struct weft_list *list); /* accepts NULL */

/* Placements spend of the work from now on. */
void weft_list_count(struct weft_list *list, struct weft_work *work);

/* Why compute of a slot waited, or the next slot. */
enum weft_list_wait_kind {
    WEFT_WAIT_BLOCKING, /* before it, for what was ahead of gathers that block */
    WEFT_WAIT_DUE,      /* behind it, for gathers due in it */
    WEFT_WAIT_ROOM,     /* as long, for those of them that were launched in it, of short_bytes */
    WEFT_WAIT_SHORT,    /* behind it, for reductions without which the next does not fit */
    WEFT_WAIT_FULL,     /* no wait of compute: of the first channel, idle in the slot for want of
                           room, of which reductions released before the slot held short_bytes */
    WEFT_WAIT_KINDS
};

struct weft_list_wait {
    int64_t ns;
    int64_t short_bytes;
    int32_t ahead, nth; /* item whose nth block was ahead of them on the channel, or -1 */
    bool straddles;     /* it was put before the slot */
};

/* [n_items + 1]: where the blocks of an item begin among those of all. */
const int32_t *weft_list_first_blocks(const struct weft_list *list);

/* [n_slots][WEFT_WAIT_KINDS], of the last placement. */
const struct weft_list_wait *weft_list_waits(const struct weft_list *list);

/* Step time in ns (agreements included), or -1 when the policies' lean rows exceed the limit. Fills
 * moves (room for table->n_blocks) in channel order when it is not NULL. */
int64_t weft_list_place(struct weft_list *list, const enum weft_policy *policies,
                        int64_t limit_bytes, struct weft_list_rule rule, struct weft_move *moves,
                        int32_t *n_moves);

/* The best of all rules: its step time, or -1; *rule is set when it is not NULL. */
int64_t weft_list_best(struct weft_list *list, const enum weft_policy *policies,
                       int64_t limit_bytes, int32_t *rule);

#endif
