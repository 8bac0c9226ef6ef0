/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a problem: items with their lanes and times, tiers, and the cut of units into blocks. */
#ifndef WEFT_PROBLEM_PARTS_H
#define WEFT_PROBLEM_PARTS_H

#include <stdint.h>

#include "memory_model/weigh.h"
#include "spec/block_scale.h"
#include "spec/tiers.h"

/* The largest integer of a problem and of its sums: JSON readers hold it exactly. */
#define WEFT_PROBLEM_MOST (INT64_C(9007199254740991))
/* The most blocks of all items, so that instructions, operands and pieces of a program have 32-bit
 * numbers. */
enum { WEFT_PROBLEM_MOST_BLOCKS = 1 << 24 };

/* Blocks that a size by efficiency leaves at most if smaller ones are too many. Each placement
 * walks all blocks, so planning near the limit would take hours. */
enum { WEFT_PROBLEM_FEW_BLOCKS = 1 << 20 };
/* The most variants of one split and size of blocks; each is a problem. They are values of
 * update_ahead and update_after, with and without offloading, in three ways: either cadence one
 * micro-step after the other, and turns by layers with one reduction a step. */
enum {
    WEFT_MOST_DISTANCES = 6,
    WEFT_MOST_WAYS = 3,
    WEFT_MOST_VARIANTS = WEFT_MOST_DISTANCES * WEFT_MOST_WAYS * 2
};
/* The most variants that a session plans: the first list, and for each order of micro-steps the
 * best one in other sizes of blocks, and its like in all but the cadence, which has at most two
 * ways. Two more may be in no list: the initial plan's, and the best one's with whole copies. */
enum {
    WEFT_MOST_SCALED = WEFT_BLOCKS_AUTO - 1,
    WEFT_MOST_ALIKE = WEFT_MOST_DISTANCES * 2 * 2 - 1,
    WEFT_MOST_PLANNED = WEFT_MOST_VARIANTS + 2 * (WEFT_MOST_SCALED + WEFT_MOST_ALIKE + 2)
};

struct weft_problem_item {
    struct weft_item item;
    int32_t lane;     /* of its blocks, WEFT_LANE_FIRST to n_lanes - 1 */
    int64_t block_ns; /* lane time of one block; of an average its share of a step, rounded down */
    /* Lane time of an average's block in the step in which it works, one in period.every, and the
     * number of that step modulo period.every. Both are 0 of other items. */
    int64_t average_ns, phase;
    int32_t after; /* the item of its decision that it follows: block b begins after that item's
                      block b; -1: none */
};

enum { WEFT_MOST_TIERS = 8 };

/* A memory: its bytes in a slot are a row, and no row may exceed its limit. Its base, held under
 * every plan, is one of the common holds. */
struct weft_problem_tier {
    const char *name;
    enum weft_location kind;
    int64_t limit_bytes; /* INT64_MAX: no limit */
};

/* The cut of units into blocks. Reports show it, planners ignore it. All zero if it is not known.
 */
struct weft_problem_blocks {
    int64_t least_bytes; /* smaller neighbours are fused up to it, larger units are split by it */
    int64_t count;       /* blocks of every unit; 0: least_bytes decides */
    int64_t efficiency_ppm; /* share of the best bandwidth at least_bytes, in millionths; 0: the
                               config gave least_bytes */
    int64_t fused;          /* 1: small neighbours share a unit */
    int64_t scale;          /* enum weft_block_scale: of the usual size */
    int64_t doublings;      /* of the size by efficiency, so that all blocks can be numbered */
};

/* The layers of a unit: first to last, or all readers of a shared tensor. */
struct weft_unit_layers {
    int32_t first, last;
    int32_t n_tied; /* 0: the unit has the range alone */
    int32_t *tied;  /* increasing */
};

/* Names for other runtimes. Problems are equal without them. */
struct weft_problem_names {
    struct weft_unit_layers *unit_layers; /* by unit; NULL: of a plan before there were any */
    int32_t n_modules;                    /* layers; 0: they have no modules */
    const char **modules; /* by layer: modules of the user's model, with "," between */
};

#endif
