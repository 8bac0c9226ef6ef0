/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of list scheduling, and the waits that a placement records. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_RULE_H
#define WEFT_SCHEDULER_PLACE_LIST_RULE_H

#include <stdbool.h>
#include <stdint.h>

/* Choice between ready blocks. If a gather and a reduction are ready, the gather goes first when
 * its deadline is within `gather_within` slots. A rule that stages reserves free bytes in the last
 * slot of each gather's window, so the gather can launch there. Without staging any block may take
 * them, and gathers without room block. */
struct weft_list_rule {
    int32_t gather_within;
    bool stages;
    const int32_t *launch; /* [n_blocks] or NULL, indexed by weft_list_first_blocks: the earliest
                              slot of a block that may wait. Does not decrease over an item's
                              blocks. A gather blocks if it exceeds its window */
    const bool *clear; /* [n_slots] or NULL: no block may run into a marked slot's begin, unless it
                          must be put */
    const int32_t *order;      /* [n_blocks] or NULL: ready reductions go in rising order, then by
                                  release. Does not decrease over an item's blocks */
    const int64_t *late_bytes; /* [n_slots] or NULL: most bytes, over all tiers, of pending
                                  reductions released before the slot when it begins */
};
/* The reason why compute waited at a slot. */
enum weft_list_wait_kind {
    WEFT_WAIT_BLOCKING, /* before the slot, for blocks ahead of gathers that block */
    WEFT_WAIT_DUE,      /* after the slot, for gathers due in it */
    WEFT_WAIT_ROOM,  /* the same wait; short_bytes counts the due gathers that were launched in the
                        slot */
    WEFT_WAIT_SHORT, /* after the slot, for reductions; without them the next slot does not fit */
    WEFT_WAIT_FULL, /* no wait of compute: a lane was idle in the slot for lack of room. short_bytes
                       counts reductions released before the slot */
    WEFT_WAIT_KINDS
};

struct weft_list_wait {
    int64_t ns;
    int64_t short_bytes;
    int32_t ahead, nth; /* the item ahead on the lane and its block's number, or -1 */
    bool straddles;     /* that block was put before the slot */
};

#endif
