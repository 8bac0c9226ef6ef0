/* SPDX-License-Identifier: Apache-2.0 */
/* A problem is a planner's whole input, in integers. It has slots with times, decisions with
 * strategies, items with windows and block times, holds in bytes, and tiers with limits. A plan
 * carries its problem, so it can be checked anywhere. */
#ifndef WEFT_PROBLEM_PROBLEM_H
#define WEFT_PROBLEM_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/json/json_keys.h"
#include "base/lanes.h"
#include "base/pool.h"
#include "base/status.h"
#include "problem/decision.h"
#include "problem/parts.h"

struct weft_problem {
    struct weft_pool pool;
    struct weft_problem_blocks blocks;
    int32_t target; /* enum weft_target_id, problem/target.h */
    int64_t ranks;
    int64_t ranks_per_node; /* with hsdp or period.every; otherwise 0 */
    int32_t n_tiers;        /* 1 to WEFT_MOST_TIERS; only the first is the device's memory */
    struct weft_problem_tier tiers[WEFT_MOST_TIERS]; /* by value: a copy may have other limits */
    const char *profile_source; /* "analytic", "measured, emulated link": weft_profile.source */
    struct weft_hash config_hash, profile_hash;
    struct weft_period_rule period;
    int64_t micro_batch; /* samples of a rank's micro-step, if it was chosen; 0: the config's */
    int32_t n_slots;
    struct weft_slot *slots;
    const char **slot_names; /* "U:h.3", "F:h.3", "F2:h.3" with several micro-steps, "drain" */
    int64_t *slot_ns;        /* compute time common to all strategies; 0 for fill and drain */
    int32_t *slot_decisions; /* the decision that adds to the slot's time; -1: none. From
                                weft_problem_link */
    /* Compute is first. The two rates of a lane add up to at least WEFT_RATE_ONE. */
    int32_t n_lanes; /* 2 to WEFT_MOST_LANES */
    struct weft_lane *lanes;
    int64_t agree_ns; /* lane time of one agreement: see weft_problem_agreements_ns */
    int32_t n_kinds;
    const char **kinds; /* names of strategies, shared by decisions */
    int32_t n_decisions;
    struct weft_problem_decision *decisions; /* of units, then of layers */
    int32_t n_strategies;                    /* of all decisions */
    int32_t n_common;
    struct weft_hold *common;
    int32_t n_items;
    struct weft_problem_item *items; /* in order of decision, then kind, then gather */
    struct weft_problem_names names; /* unit_layers.h */
};

void weft_problem_destroy(struct weft_problem *problem);

/* Counts strategies and finds the decision that adds to each slot's time. Call it after filling a
 * problem, before weft_problem_check. WEFT_E_DATA when two decisions add to one slot's time, a slot
 * is out of range, or a decision has too many strategies. */
WEFT_MUST_USE enum weft_status weft_problem_link(struct weft_problem *problem, const char *where,
                                                 struct weft_error *err);

/* WEFT_OK when every index, window and sum is in range and the slots make a period. Otherwise
 * WEFT_E_DATA with `where` and the place. Every new problem passes it, so planners add and index
 * without checks. */
WEFT_MUST_USE enum weft_status weft_problem_check(const struct weft_problem *problem,
                                                  const char *where, struct weft_error *err);

/* Blocks of all items: the most placements of a plan. */
int32_t weft_problem_count_blocks(const struct weft_problem *problem);
/* Decisions of units. They come first and have their units' numbers. */
int32_t weft_problem_n_units(const struct weft_problem *problem);

/* Lanes without compute, and the offset of a lane in arrays [n_moving][n_slots]. */
static inline int32_t weft_problem_n_moving(const struct weft_problem *problem)
{
    return problem->n_lanes - WEFT_LANE_FIRST;
}

static inline size_t weft_problem_lane_at(const struct weft_problem *problem, int32_t lane)
{
    return (size_t)(lane - WEFT_LANE_FIRST) * (size_t)problem->n_slots;
}

/* Memory rows of all tiers, and the offset of a tier in arrays [n_tiers][n_slots]. */
static inline int32_t weft_problem_n_rows(const struct weft_problem *problem)
{
    return problem->n_tiers * problem->n_slots;
}
static inline int32_t weft_problem_tier_at(const struct weft_problem *problem, int32_t tier)
{
    return tier * problem->n_slots;
}

/* The same offset for the tier that holds an item's blocks. */
static inline int32_t weft_problem_stair_at(const struct weft_problem *problem,
                                            const struct weft_item *item)
{
    return weft_problem_tier_at(problem, item->stair_tier);
}

/* The row of [n_tiers][n_slots] with the largest excess over its tier's limit, or least room. */
int32_t weft_problem_fullest_row(const struct weft_problem *problem, const int64_t *rows);

/* The hold of the ring of a disk, ahead of other staging; NULL: none. */
const struct weft_hold *weft_problem_ring(const struct weft_problem *problem);
/* True if a plan may hold anything but whole checkpoints outside the device, or move it there. */
bool weft_problem_moves(const struct weft_problem *problem);
/* Gives the problem one tier, the device's memory. */
void weft_problem_device_alone(struct weft_problem *problem, int64_t limit_bytes);

/* Makes the lanes: compute, and 1 or 2 of the network. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_problem_networks(struct weft_problem *problem, int32_t n,
                                                     struct weft_rates rates,
                                                     struct weft_error *err);

/* Adds a lane at the end that does not slow compute. The name must outlive the problem.
 * WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_problem_add_lane(struct weft_problem *problem, const char *name,
                                                     enum weft_lane_kind kind,
                                                     struct weft_error *err);

/* The lane on which ranks agree: the last of the network. */
int32_t weft_problem_agree_lane(const struct weft_problem *problem);

/* True if an item follows another; and the number of items before it in its chain. */
bool weft_problem_chains(const struct weft_problem *problem);
int32_t weft_problem_depth(const struct weft_problem *problem, int32_t item);
/* True when compute and some lane slow each other. */
bool weft_problem_contends(const struct weft_problem *problem);

/* Lane time of a step's agreements: one in the norm slot, and one in every update of a period with
 * agreed updates. None is hidden, because nothing runs at the same time. */
int64_t weft_problem_agreements_ns(const struct weft_problem *problem);

/* True if earlier launches of gathers may lengthen the step: more overlap may slow compute, and a
 * slot that waits for a gather before its start also delays its launches on other lanes. */
static inline bool weft_problem_relaxing_may_slow(const struct weft_problem *problem)
{
    return weft_problem_contends(problem) || weft_problem_n_moving(problem) > 1;
}

/* Idle lanes at time 0, borrowing from the problem, which must outlive them. */
static inline struct weft_lanes weft_problem_lanes(const struct weft_problem *problem)
{
    return (struct weft_lanes){.lanes = problem->lanes, .n_lanes = problem->n_lanes};
}
/* True if its times are of an emulated link, according to its profile's source. */
bool weft_problem_emulates(const struct weft_problem *problem);

/* Index of a decision's strategy in arrays of all decisions' strategies. */
static inline size_t weft_strategy_at(const struct weft_problem *problem, int32_t decision,
                                      int32_t strategy)
{
    return (size_t)problem->decisions[decision].first_strategy + (size_t)strategy;
}

/* The largest number of strategies of a decision. */
int32_t weft_problem_most_strategies(const struct weft_problem *problem);

/* The chosen strategy of a decision; strategies [n_decisions]. */
static inline const struct weft_problem_strategy *weft_problem_chosen(
    const struct weft_problem *problem, const int32_t *strategies, int32_t decision)
{
    return &problem->decisions[decision].strategies[strategies[decision]];
}

/* Compute time of a slot under the chosen strategies. */
static inline int64_t weft_problem_slot_ns(const struct weft_problem *problem,
                                           const int32_t *strategies, int32_t slot)
{
    int32_t d = problem->slot_decisions[slot];
    if (d < 0) return problem->slot_ns[slot];
    return problem->slot_ns[slot] +
           weft_strategy_ns(weft_problem_chosen(problem, strategies, d), slot);
}

/* True if the item exists under the chosen strategies. */
static inline bool weft_item_active(const struct weft_item *item, const int32_t *strategies)
{
    return (item->strategies >> strategies[item->decision] & 1u) != 0;
}

/* The same for an item by index. */
static inline bool weft_problem_needs(const struct weft_problem *problem, const int32_t *strategies,
                                      int32_t item)
{
    return weft_item_active(&problem->items[item].item, strategies);
}

extern const struct weft_key_table weft_problem_keys;
/* Writes a JSON object in integers (times _ns, sizes _bytes), and reads it back. Reading checks
 * every index, window and sum; WEFT_E_DATA names the place. */
void weft_problem_write(const struct weft_problem *problem, struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_problem_read(const struct weft_json_value *value,
                                                 const char *where, struct weft_problem **out,
                                                 struct weft_error *err);

/* Appends the first differences of two problems, at most 5, one a line; nothing if equal. */
void weft_problem_compare(const struct weft_problem *a, const struct weft_problem *b,
                          struct weft_text *out);

#endif
