/* SPDX-License-Identifier: Apache-2.0 */
/* An item is the equal blocks that a strategy sends over a lane, or processes on it. It acquires
 * (bytes are held from launch to use) or releases (bytes are held from their birth to completion).
 */
#ifndef WEFT_MEMORY_MODEL_ITEM_H
#define WEFT_MEMORY_MODEL_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/category.h"
#include "memory_model/item_kind.h"

/* All blocks of one kind that one unit moves once in a step, or that one layer moves once in a
 * micro-step. `gather` counts repetitions: a unit's AllGathers and copies up for them, its
 * ReduceScatters (one a micro-step, or one), or a layer's micro-steps. A block gets a slot s in
 * [first, last]:
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

static inline const struct weft_item_kind *weft_item_kind_of(const struct weft_item *item)
{
    return &weft_item_kinds[item->kind];
}

static inline bool weft_item_moves_state(const struct weft_item *item)
{
    return weft_item_kind_of(item)->family == WEFT_ITEM_STATE;
}

/* Part of a unit's update on the host. */
static inline bool weft_item_updates_on_host(const struct weft_item *item)
{
    return weft_item_kind_of(item)->family == WEFT_ITEM_HOST_UPDATE;
}

static inline bool weft_item_moves_saved(const struct weft_item *item)
{
    return weft_item_kind_of(item)->family == WEFT_ITEM_SAVED;
}

/* Part of an average over nodes. */
static inline bool weft_item_averages(const struct weft_item *item)
{
    return weft_item_kind_of(item)->family == WEFT_ITEM_AVERAGE;
}

/* False: it moves bytes between tiers, or averages. */
static inline bool weft_item_is_collective(const struct weft_item *item)
{
    return weft_item_kind_of(item)->family == WEFT_ITEM_COLLECTIVE;
}

#endif
