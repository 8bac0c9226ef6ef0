/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of items: one row each. The number of a kind is also its op (program/op.h), and files sort
 * items by it, so the order of kinds never changes. problem/, program/ and runtime/exec/ look up
 * the rest by family or kind. */
#ifndef WEFT_MEMORY_MODEL_ITEM_KIND_H
#define WEFT_MEMORY_MODEL_ITEM_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/profile/profile.h"
#include "spec/tiers.h"

/* Kinds that are not collectives of all ranks or of a node. Between nodes WEFT_ACROSS_REDUCE sums
 * their partial sums, WEFT_ACROSS_SCATTER sums a part of them for each node, and WEFT_ACROSS_GATHER
 * brings updated parts of a slice of parameters. The others copy a unit's state from its disk or
 * host to the device for its update, and back. For an update on the host they copy the reduced
 * gradient down, update, and copy the parameters up. They copy a layer's saved activations, or
 * its input, to the host and back. They copy updated parameters down, and this rank's slices up
 * before each gather. WEFT_AVERAGE sums this rank's slices of a master over nodes that step on
 * their own, and WEFT_AVERAGE_GATHER brings the averages of its node's other ranks under dp. */
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
    WEFT_PARAMETERS_DOWN,
    WEFT_PARAMETERS_FETCH,
    WEFT_ACROSS_REDUCE,
    WEFT_ACROSS_SCATTER,
    WEFT_ACROSS_GATHER,
    WEFT_INPUT_DOWN,
    WEFT_INPUT_UP,
    WEFT_AVERAGE,
    WEFT_AVERAGE_GATHER,
    WEFT_ITEM_KIND_COUNT
};

enum weft_item_family {
    WEFT_ITEM_COLLECTIVE,  /* moves blocks of a unit between ranks */
    WEFT_ITEM_STATE,       /* moves a unit's master and moments between tiers */
    WEFT_ITEM_HOST_UPDATE, /* part of a unit's update on the host, block by block */
    WEFT_ITEM_SAVED,       /* moves a layer's saved activations or its input between tiers */
    WEFT_ITEM_PARAMETERS,  /* moves a unit's slices of parameters on the host, block by block */
    WEFT_ITEM_AVERAGE      /* part of a unit's average over nodes, in one step of several */
};

/* The work of a lane. weft_problem_lane_of finds the lane, because it depends on the problem. */
enum weft_lane_role {
    WEFT_ROLE_GATHERS,
    WEFT_ROLE_REDUCES,
    WEFT_ROLE_DOWN,
    WEFT_ROLE_UP,
    WEFT_ROLE_HOST,
    WEFT_ROLE_READS,
    WEFT_ROLE_WRITES,
    WEFT_ROLE_ACROSS,
    WEFT_ROLE_COUNT
};

/* Repetitions of an item in a step, counted by its `gather`. */
enum weft_item_count {
    WEFT_ITEM_ONCE,
    WEFT_ITEM_A_USE,       /* of the unit's parameters */
    WEFT_ITEM_A_REDUCTION, /* one a micro-step, or one a step */
    WEFT_ITEM_A_MICRO_STEP
};

struct weft_item_kind {
    const char *name;    /* in files: "all_gather", ... "read", ... "saved_up" */
    const char *op_name; /* of its instruction */
    enum weft_item_family family;
    enum weft_lane_role role;
    enum weft_item_count count;
    enum weft_location
        other_tier;  /* the tier at its other end; a collective has none: the device */
    bool acquires;   /* false: releases */
    bool of_update;  /* it is issued again when a run settles its last step */
    bool needs_step; /* it is skipped while no step's update is pending */
};
extern const struct weft_item_kind weft_item_kinds[WEFT_ITEM_KIND_COUNT];

/* The collective of the kind, within its group of ranks; WEFT_COLLECTIVE_COUNT: it is none. */
enum weft_collective weft_item_kind_collective(int32_t kind);

static inline bool weft_item_kind_is_of_layer(const struct weft_item_kind *kind)
{
    return kind->family == WEFT_ITEM_SAVED;
}

/* True if an item moves the input of its layer, which is the output of the layer before. */
static inline bool weft_item_kind_is_of_input(int32_t kind)
{
    return kind == WEFT_INPUT_DOWN || kind == WEFT_INPUT_UP;
}

/* True if an item has as many blocks as its unit, otherwise it has one. */
static inline bool weft_item_kind_is_in_blocks(const struct weft_item_kind *kind)
{
    return kind->family == WEFT_ITEM_COLLECTIVE || kind->family == WEFT_ITEM_HOST_UPDATE ||
           kind->family == WEFT_ITEM_PARAMETERS || kind->family == WEFT_ITEM_AVERAGE;
}

#endif
