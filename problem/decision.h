/* A decision is what a planner decides one of: how a unit's parameters, gradients and state are
 * kept, or where what a layer saved for its backward is until then. What it can come to are its
 * strategies, at most 64: a set of them is a uint64_t with bit k for strategy k, and in files a
 * list of their names. A strategy depends on no other decision. */
#ifndef WEFT_PROBLEM_DECISION_H
#define WEFT_PROBLEM_DECISION_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/status.h"
#include "memory_model/weigh.h"
#include "spec/tiers.h"

enum { WEFT_MOST_STRATEGIES = 64 }; /* of a decision */
/* Before a layer's name in that of its decision, which so is no unit's. */
#define WEFT_SAVED_PREFIX "saved:"

/* Compute time that a slot takes under a strategy, beside what it takes under all. */
struct weft_slot_time {
    int32_t slot;
    int64_t ns;
};

struct weft_problem_strategy {
    const char *name;
    int32_t kind;            /* of the problem's kinds, whose name it has */
    enum weft_policy policy; /* what its unit shards: told by reports, asked by rules, lowered;
                                WEFT_POLICY_COUNT of a layer's */
    int32_t n_times, n_holds;
    struct weft_slot_time *times; /* slots increasing */
    struct weft_hold *holds;
    enum weft_home home; /* of its unit's state, of what its layer saved; as its policy */
    bool updates_there;  /* on the host: its unit's state is updated there, not on the device */
};

/* How a unit's strategy keeps state. */
static inline enum weft_keep weft_strategy_keeps(const struct weft_problem_strategy *strategy)
{
    return strategy->updates_there ? WEFT_KEEP_HOST_UPDATE : (enum weft_keep)strategy->home;
}

struct weft_problem_decision {
    const char *name;
    int32_t first_strategy; /* where its strategies are in arrays of all decisions' strategies */
    int32_t n_strategies;   /* 1 to WEFT_MOST_STRATEGIES */
    struct weft_problem_strategy *strategies;
    int32_t update_slot; /* -1 when frozen, or a layer's */
    int64_t elements;    /* of its full parameters, padding included; 0 of a layer */
    bool is_of_layer;    /* else of a unit */
    int32_t layer;       /* 0 of a unit */
};

/* All strategies of a decision. */
static inline uint64_t weft_decision_all(const struct weft_problem_decision *decision)
{
    return UINT64_MAX >> (WEFT_MOST_STRATEGIES - decision->n_strategies);
}

/* The decision's strategy of a kind, of a policy, of a name; -1: it has none. */
int32_t weft_decision_of_kind(const struct weft_problem_decision *decision, int32_t kind);
int32_t weft_decision_of_policy(const struct weft_problem_decision *decision,
                                enum weft_policy policy);
int32_t weft_decision_of_name(const struct weft_problem_decision *decision, const char *name);

/* Those of a decision's strategies that have one of the policies (bit p). */
uint64_t weft_decision_policies(const struct weft_problem_decision *decision, uint32_t policies);

/* What a strategy of that name shards: the name is a policy's, or goes on behind it with a "+" and
 * what else the strategy does. False when it is neither. */
bool weft_strategy_policy(const char *name, enum weft_policy *out);
/* What a layer's strategy of that name does with what it saved: the name is that of a home. False
 * when it is none. */
bool weft_strategy_saved_home(const char *name, enum weft_home *out);
/* How a strategy of that name keeps state: as it says behind the "+", else on the device. */
enum weft_keep weft_strategy_keep(const char *name);

/* Compute time that a strategy adds to a slot. */
static inline int64_t weft_strategy_ns(const struct weft_problem_strategy *strategy, int32_t slot)
{
    for (int32_t i = 0; i < strategy->n_times; i++)
        if (strategy->times[i].slot == slot) return strategy->times[i].ns;
    return 0;
}

/* Some of a decision's strategies as the member "strategies" of a JSON object, and back. Reading
 * gives WEFT_E_DATA with `where` when the list is empty or names what is no strategy of the
 * decision. */
void weft_strategies_write(const struct weft_problem_decision *decision, uint64_t strategies,
                           struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_strategies_read(const struct weft_problem_decision *decision,
                                                    const struct weft_json_value *object,
                                                    const char *where, uint64_t *out,
                                                    struct weft_error *err);

#endif
