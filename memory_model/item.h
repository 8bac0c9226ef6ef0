/* An item is the equal blocks that a strategy sends over a lane, or processes on it. It acquires
 * (bytes are held from launch to use) or releases (bytes are held from their birth to completion).
 */
#ifndef WEFT_MEMORY_MODEL_ITEM_H
#define WEFT_MEMORY_MODEL_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/category.h"
#include "spec/profile/profile.h"
#include "spec/tiers.h"

/* Kinds of items that are not collectives. They copy a unit's state from its disk or host to the
 * device for its update, and back. For an update on the host they copy the reduced gradient down,
 * update, and copy the parameters up. They copy a layer's saved activations to the host and back.
 */
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

/* All blocks of one kind that one unit moves once in a step, or that one layer moves once in a
 * micro-step. `gather` counts repetitions: a unit's AllGathers, its ReduceScatters (one a
 * micro-step, or one), or a layer's micro-steps. A block gets a slot s in [first, last]:
 *
 *  An item that acquires (AllGather) is launched at the start of s and used from the start of
 *    last + 1. It holds its bytes from s to `last`; later the strategy's holds have them. If it may
 *    block, slot last + 1 may wait for it (plan/plan.h): then it holds nothing.
 *  One that releases (ReduceScatter, AllReduce) is launched at the start of `first`, after the last
 *    backward that adds to it, or of a later slot. It is complete by the end of s and holds its
 *    bytes from `first` to s. */
struct weft_item {
    int32_t decision;    /* a unit, or a layer after all units */
    int32_t kind;        /* below WEFT_ITEM_KIND_COUNT; decides the instructions */
    bool acquires;       /* false: releases */
    bool may_block;      /* acquires: the slot that uses it may launch it and wait */
    int32_t gather;      /* 0, 1, ... in order of time within a step */
    uint64_t strategies; /* bit k: the item exists under strategy k of its decision */
    int32_t n_blocks;
    int32_t first, last; /* the window of s */
    int64_t block_bytes; /* full (gathered) bytes that the collective of one block moves */
    int64_t
        stair_bytes; /* held by one block as above; 0 if the strategy's holds have it all step */
    enum weft_category stair_category;
    int32_t stair_tier; /* the tier that holds them */
};

static inline bool weft_item_moves_state(const struct weft_item *item)
{
    return item->kind >= WEFT_STATE_READ && item->kind <= WEFT_STATE_DOWN;
}

/* Part of a unit's update on the host. */
static inline bool weft_item_updates_there(const struct weft_item *item)
{
    return item->kind >= WEFT_GRADIENT_DOWN && item->kind <= WEFT_PARAMETERS_UP;
}

static inline bool weft_item_moves_saved(const struct weft_item *item)
{
    return item->kind == WEFT_SAVED_DOWN || item->kind == WEFT_SAVED_UP;
}

/* False: it moves bytes between tiers. */
static inline bool weft_item_is_collective(const struct weft_item *item)
{
    return item->kind < WEFT_COLLECTIVE_COUNT;
}

/* The other tier of an item that is no collective. */
static inline enum weft_home weft_item_home(const struct weft_item *item)
{
    return item->kind >= WEFT_STATE_UP ? WEFT_HOME_HOST : WEFT_HOME_DISK;
}

#endif
