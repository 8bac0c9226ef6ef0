/* The rule by which list scheduling goes, and what it tells of waits. */
#ifndef WEFT_SCHEDULER_PLACE_LIST_RULE_H
#define WEFT_SCHEDULER_PLACE_LIST_RULE_H

#include <stdbool.h>
#include <stdint.h>

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
                                  were released before it hold more than this, in all tiers */
};
/* Why compute of a slot waited, or the next slot. */
enum weft_list_wait_kind {
    WEFT_WAIT_BLOCKING, /* before it, for what was ahead of gathers that block */
    WEFT_WAIT_DUE,      /* behind it, for gathers due in it */
    WEFT_WAIT_ROOM,     /* as long, for those of them that were launched in it, of short_bytes */
    WEFT_WAIT_SHORT,    /* behind it, for reductions without which the next does not fit */
    WEFT_WAIT_FULL,     /* no wait of compute: of a lane, idle in the slot for want of
                           room, of which reductions released before the slot held short_bytes */
    WEFT_WAIT_KINDS
};

struct weft_list_wait {
    int64_t ns;
    int64_t short_bytes;
    int32_t ahead, nth; /* item whose nth block was ahead of them on the lane, or -1 */
    bool straddles;     /* it was put before the slot */
};

#endif
