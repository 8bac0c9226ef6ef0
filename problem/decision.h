/* SPDX-License-Identifier: Apache-2.0 */
/* A decision is one choice of the planner: the policy and location of a unit, or the locations of a
 * layer's saved activations and input. Its alternatives are its strategies, at most 64. A set of
 * strategies is a uint64_t with bit k for strategy k, and a list of names in files. A strategy
 * depends on no other decision. */
#ifndef WEFT_PROBLEM_DECISION_H
#define WEFT_PROBLEM_DECISION_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/status.h"
#include "memory_model/weigh.h"
#include "spec/tiers.h"

enum { WEFT_MOST_STRATEGIES = 64 }; /* of one decision */
/* Prefix of a layer's decision, so that no unit has the same name. */
#define WEFT_SAVED_PREFIX "saved:"

/* Compute time that a strategy adds to a slot, on top of the time under every strategy. */
struct weft_slot_time {
    int32_t slot;
    int64_t ns;
};

struct weft_problem_strategy {
    const char *name;
    int32_t kind;            /* index of the problem's kind that has its name */
    enum weft_policy policy; /* the policy of its unit, for reports, rules and lowering;
                                WEFT_POLICY_COUNT for a layer */
    int32_t n_times, n_holds;
    struct weft_slot_time *times; /* slots increasing */
    struct weft_hold *holds;
    enum weft_location location; /* location of its unit's state or its layer's saved activations;
                            informs reports, rules and lowering */
    bool updates_on_host; /* true: its unit's state is updated on the host, not on the device */
    enum weft_recompute recompute; /* of its layer's saved activations; NONE for a unit */
    enum weft_location parameters; /* location of its unit's shard: the device or the host */
    enum weft_location input;      /* location of its layer's input; the device for a unit */
};

/* The way of a unit's strategy. */
static inline struct weft_way weft_strategy_way(const struct weft_problem_strategy *strategy)
{
    const enum weft_keep keep =
        strategy->updates_on_host ? WEFT_KEEP_HOST_UPDATE : (enum weft_keep)strategy->location;
    return (struct weft_way){strategy->policy, keep, strategy->parameters};
}

/* Fills the strategy of a unit with policy, locations and the place of the update. */
static inline void weft_strategy_take_way(struct weft_problem_strategy *strategy,
                                          struct weft_way way)
{
    strategy->policy = way.policy;
    strategy->location = weft_keep_location(way.keep);
    strategy->updates_on_host = way.keep == WEFT_KEEP_HOST_UPDATE;
    strategy->parameters = way.parameters;
}

struct weft_problem_decision {
    const char *name;
    int32_t first_strategy; /* index of its first strategy in arrays of all decisions' strategies */
    int32_t n_strategies;   /* 1 to WEFT_MOST_STRATEGIES */
    struct weft_problem_strategy *strategies;
    int32_t update_slot;     /* -1 for a frozen unit or a layer */
    int64_t elements;        /* of the unit's full parameters, with padding; 0 for a layer */
    int64_t frozen_elements; /* of a trainable unit: elements without a gradient */
    bool is_of_layer;        /* false: of a unit */
    int32_t layer;           /* 0 for a unit */
};

/* All strategies of a decision. */
static inline uint64_t weft_decision_all(const struct weft_problem_decision *decision)
{
    return UINT64_MAX >> (WEFT_MOST_STRATEGIES - decision->n_strategies);
}

/* The decision's strategy of a kind, policy or name; -1: none. */
int32_t weft_decision_of_kind(const struct weft_problem_decision *decision, int32_t kind);
int32_t weft_decision_of_policy(const struct weft_problem_decision *decision,
                                enum weft_policy policy);
int32_t weft_decision_of_name(const struct weft_problem_decision *decision, const char *name);

/* A layer's strategy of a level of recomputation, with the locations of its first strategy; -1:
 * none, or a unit. _deepest: of its deepest level; 0: it cannot recompute. */
int32_t weft_decision_of_level(const struct weft_problem_decision *decision,
                               enum weft_recompute level);
int32_t weft_decision_deepest(const struct weft_problem_decision *decision);

/* The decision's strategies with one of the policies (bit p). */
uint64_t weft_decision_policies(const struct weft_problem_decision *decision, uint32_t policies);

/* Compute time that a strategy adds to a slot. */
static inline int64_t weft_strategy_ns(const struct weft_problem_strategy *strategy, int32_t slot)
{
    for (int32_t i = 0; i < strategy->n_times; i++)
        if (strategy->times[i].slot == slot) return strategy->times[i].ns;
    return 0;
}

/* Bytes that a strategy holds in a tier's slot, without those of its items. */
int64_t weft_strategy_held(const struct weft_problem_strategy *strategy, int32_t tier,
                           int32_t slot);

/* Writes some of a decision's strategies as the member "strategies" of a JSON object, and reads
 * them back. Reading fails with WEFT_E_DATA and `where` if the list is empty or has an unknown
 * name. */
void weft_strategies_write(const struct weft_problem_decision *decision, uint64_t strategies,
                           struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_strategies_read(const struct weft_problem_decision *decision,
                                                    const struct weft_json_value *object,
                                                    const char *where, uint64_t *out,
                                                    struct weft_error *err);

#endif
