/* An item is what a strategy sends over a lane in equal blocks, or does there: it acquires (bytes
 * are held from its launch to its use) or releases (from their birth to its completion). */
#ifndef WEFT_MEMORY_MODEL_ITEM_H
#define WEFT_MEMORY_MODEL_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/category.h"
#include "spec/profile/profile.h"
#include "spec/tiers.h"

/* What moves a unit's state to the device for its update, and back to its home, a disk or the
 * host's memory; what updates it on the host: its reduced gradient down, the update, its parameters
 * up; and what a layer saved to the host and back. Kinds of items beside enum weft_collective. */
enum {
    WEFT_STATE_READ = WEFT_COLLECTIVE_COUNT,
    WEFT_STATE_WRITE,
    WEFT_STATE_UP,
    WEFT_STATE_DOWN,
    WEFT_GRADIENT_DOWN,
    WEFT_HOST_UPDATE,
    WEFT_PARAMETERS_UP,
    WEFT_SAVED_DOWN,
    WEFT_SAVED_UP,
    WEFT_ITEM_KIND_COUNT
};
const char *weft_item_kind_name(int32_t kind); /* "all_gather", ... "read", ... "saved_up" */

/* All blocks of one kind that one unit moves once: its `gather`-th AllGather of a step, its
 * `gather`-th ReduceScatter (there is one a micro-step, or one) or its AllReduce, its update on the
 * host and the copies before and behind that; or that one layer moves once, down or up, in the
 * `gather`-th micro-step. A block is
 * assigned a slot s in [first, last]:
 *   An item that acquires (AllGather): launched at the start of s, used from the start of last + 1
 *     on, and its bytes are held from s to `last` (from last + 1 on they are part of the strategy's
 *     holds). If it may block, it may also wait for slot last + 1 itself (plan/plan.h): then only
 *     the holds count.
 *   One that releases (ReduceScatter, AllReduce): launched at the start of `first` (after the last
 *     backward slot that adds to it) or of a slot behind it, complete by the end of s, and its
 *     bytes are held from `first` to s. */
struct weft_item {
    int32_t decision;    /* the unit's; of layers, which come behind units, the layer's */
    int32_t kind;        /* below WEFT_ITEM_KIND_COUNT: what lowering makes of it */
    bool acquires;       /* else releases */
    bool may_block;      /* acquires: the slot that uses it may launch it and wait */
    int32_t gather;      /* 0, 1, ... in order of time within a step */
    uint64_t strategies; /* bit k: the item exists under strategy k of its decision */
    int32_t n_blocks;
    int32_t first, last; /* window of s */
    int64_t block_bytes; /* full (gathered) bytes that one block's collective moves */
    int64_t stair_bytes; /* held by one block as above; 0 where the strategy holds it all step */
    enum weft_category stair_category;
    int32_t stair_tier; /* in which they are held */
};

static inline bool weft_item_moves_state(const struct weft_item *item)
{
    return item->kind >= WEFT_STATE_READ && item->kind <= WEFT_STATE_DOWN;
}

/* Is part of a unit's update on the host. */
static inline bool weft_item_updates_there(const struct weft_item *item)
{
    return item->kind >= WEFT_GRADIENT_DOWN && item->kind <= WEFT_PARAMETERS_UP;
}

static inline bool weft_item_moves_saved(const struct weft_item *item)
{
    return item->kind == WEFT_SAVED_DOWN || item->kind == WEFT_SAVED_UP;
}

/* Else it moves something between tiers. */
static inline bool weft_item_is_collective(const struct weft_item *item)
{
    return item->kind < WEFT_COLLECTIVE_COUNT;
}

/* The home of what an item moves that is none. */
static inline enum weft_home weft_item_home(const struct weft_item *item)
{
    return item->kind >= WEFT_STATE_UP ? WEFT_HOME_HOST : WEFT_HOME_DISK;
}

#endif
