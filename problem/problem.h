/* A problem is everything that a planner may know, in integers: slots with their times, decisions
 * with their strategies, items with their windows and block times, holds in bytes, and the limit. A
 * plan carries the problem that it solves, so that it can be checked anywhere. */
#ifndef WEFT_PROBLEM_PROBLEM_H
#define WEFT_PROBLEM_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/lanes.h"
#include "base/pool.h"
#include "base/status.h"
#include "memory_model/weigh.h"
#include "problem/decision.h"

struct weft_problem_item {
    struct weft_item item;
    int32_t lane;     /* that its blocks move on, WEFT_LANE_FIRST to n_lanes - 1 */
    int64_t block_ns; /* lane time of one block */
    int32_t after;    /* another item of its decision: block b begins when that one's is over; -1 */
};

/* How units were cut into blocks: told to people, and no part of what is planned. All zero where it
 * is not known. */
struct weft_problem_blocks {
    int64_t least_bytes;    /* smaller neighbours were fused to it, larger units split by it */
    int64_t count;          /* blocks of every unit; 0 = least_bytes says */
    int64_t efficiency_ppm; /* least_bytes reaches this share of the best bandwidth in the profile,
                               in millionths; 0 = the config gave it */
    int64_t fused;          /* 1: small neighbours share a unit */
};

struct weft_problem {
    struct weft_pool pool;
    struct weft_problem_blocks blocks;
    int64_t ranks;
    int64_t memory_limit_bytes; /* INT64_MAX when the user gave none */
    const char *profile_source; /* "analytic", "measured, emulated link": weft_profile.source */
    struct weft_hash config_hash, profile_hash;
    struct weft_period_rule period;
    int32_t n_slots;
    struct weft_slot *slots;
    const char **slot_names; /* "U:h.3", "F:h.3" or with several micro-steps "F2:h.3", "drain" */
    int64_t *slot_ns;        /* compute time under every strategy; 0 for fill and drain */
    int32_t *slot_decisions; /* whose strategies add to the slot's time; -1: none. Made by
                                weft_problem_link */
    /* Compute first. The two rates of a lane add up to at least WEFT_RATE_ONE, as what shares a
     * machine does. */
    int32_t n_lanes; /* 2 to WEFT_MOST_LANES */
    struct weft_lane *lanes;
    int64_t agree_ns; /* lane time of one agreement: see weft_problem_agreements_ns */
    int32_t n_kinds;
    const char **kinds; /* names of strategies, which several decisions may have */
    int32_t n_decisions;
    struct weft_problem_decision *decisions;
    int32_t n_strategies; /* of all decisions */
    int32_t n_common;
    struct weft_hold *common;
    int32_t n_items;
    struct weft_problem_item *items; /* in order of decision, then kind, then gather */
};

void weft_problem_destroy(struct weft_problem *problem);

/* Integers of a problem and sums of them are at most this, which JSON readers hold exactly. */
#define WEFT_PROBLEM_MOST (INT64_C(9007199254740991))
/* Blocks of all items of a problem are at most this, so that whatever is made of them (a program's
 * instructions, operands, pieces) can be numbered with 32 bits. */
enum { WEFT_PROBLEM_MOST_BLOCKS = 1 << 24 };
/* Periods that a config may leave open, each of which is a problem. */
enum { WEFT_MOST_VARIANTS = 32 };

/* Counts strategies and finds which decision adds to which slot's time. Whatever fills a problem
 * calls it, and checks it then. WEFT_E_DATA when two decisions add to one slot's time, a slot is
 * out of range, or a decision has too many strategies. */
WEFT_MUST_USE enum weft_status weft_problem_link(struct weft_problem *problem, const char *where,
                                                 struct weft_error *err);

/* WEFT_OK when every index, window and sum of the problem is in its range and its slots make a
 * period; else WEFT_E_DATA with `where` and the place. Whatever makes a problem calls it, so that
 * whoever plans may add and index without a thought. */
WEFT_MUST_USE enum weft_status weft_problem_check(const struct weft_problem *problem,
                                                  const char *where, struct weft_error *err);

/* Blocks of all items: the most placements of any plan. */
static inline int32_t weft_problem_count_blocks(const struct weft_problem *problem)
{
    int32_t n_blocks = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        n_blocks += problem->items[i].item.n_blocks;
    return n_blocks;
}

/* Lanes but compute, and where a lane's slots are in arrays [n_moving][n_slots] of them. */
static inline int32_t weft_problem_n_moving(const struct weft_problem *problem)
{
    return problem->n_lanes - WEFT_LANE_FIRST;
}

static inline size_t weft_problem_lane_at(const struct weft_problem *problem, int32_t lane)
{
    return (size_t)(lane - WEFT_LANE_FIRST) * (size_t)problem->n_slots;
}

/* Makes the lanes: compute, and 1 or 2 of the network. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_problem_networks(struct weft_problem *problem, int32_t n,
                                                     struct weft_rates rates,
                                                     struct weft_error *err);

/* The last lane of the network, on which ranks agree. */
int32_t weft_problem_agree_lane(const struct weft_problem *problem);

/* True when some item comes after another. */
bool weft_problem_chains(const struct weft_problem *problem);

/* How many items come before it in its chain. */
int32_t weft_problem_depth(const struct weft_problem *problem, int32_t item);

/* On how many lanes items may block a slot, into n_lanes [n_slots]. */
void weft_problem_blocking(const struct weft_problem *problem, int32_t *n_lanes);

/* True when compute and some lane slow each other. */
bool weft_problem_contends(const struct weft_problem *problem);

/* Lane time of a step's agreements: the sum at the end of the norm slot, and one in every update
 * of a period that has those. None is hidden, as nothing else runs then. */
int64_t weft_problem_agreements_ns(const struct weft_problem *problem);

/* True where a plan whose gathers are launched earlier may take longer: where compute slows beside
 * communication, what overlaps more slows more; and with several lanes, what waits for a gather
 * before a slot's start, and not in the slot, also holds up what that slot launches on another.
 */
static inline bool weft_problem_relaxing_may_slow(const struct weft_problem *problem)
{
    return weft_problem_contends(problem) || weft_problem_n_moving(problem) > 1;
}

/* Lanes at rest, at time 0, of the problem, which must outlive them. */
static inline struct weft_lanes weft_problem_lanes(const struct weft_problem *problem)
{
    return (struct weft_lanes){.lanes = problem->lanes, .n_lanes = problem->n_lanes};
}

/* True when its times are those of an emulated link, as its profile's source says. */
bool weft_problem_emulates(const struct weft_problem *problem);

/* Where a decision's strategy is in arrays of all decisions' strategies. */
static inline size_t weft_strategy_at(const struct weft_problem *problem, int32_t decision,
                                      int32_t strategy)
{
    return (size_t)problem->decisions[decision].first_strategy + (size_t)strategy;
}

/* The most strategies that a decision of the problem has. */
int32_t weft_problem_most_strategies(const struct weft_problem *problem);

/* What is chosen of every decision, by index: strategies [n_decisions]. */
static inline const struct weft_problem_strategy *weft_problem_chosen(
    const struct weft_problem *problem, const int32_t *strategies, int32_t decision)
{
    return &problem->decisions[decision].strategies[strategies[decision]];
}

/* Compute time of a slot under the strategies chosen. */
static inline int64_t weft_problem_slot_ns(const struct weft_problem *problem,
                                           const int32_t *strategies, int32_t slot)
{
    int32_t d = problem->slot_decisions[slot];
    if (d < 0) return problem->slot_ns[slot];
    return problem->slot_ns[slot] +
           weft_strategy_ns(weft_problem_chosen(problem, strategies, d), slot);
}

/* True when the item exists under the strategies chosen. */
static inline bool weft_item_active(const struct weft_item *item, const int32_t *strategies)
{
    return (item->strategies >> strategies[item->decision] & 1u) != 0;
}

/* The same for an item by its index. */
static inline bool weft_problem_needs(const struct weft_problem *problem, const int32_t *strategies,
                                      int32_t item)
{
    return weft_item_active(&problem->items[item].item, strategies);
}

/* JSON object in integers (times _ns, sizes _bytes), and back. Reading checks every index, window
 * and sum; WEFT_E_DATA with the place. */
void weft_problem_write(const struct weft_problem *problem, struct weft_json_writer *writer);
WEFT_MUST_USE enum weft_status weft_problem_read(const struct weft_json_value *value,
                                                 const char *where, struct weft_problem **out,
                                                 struct weft_error *err);

/* The first differences (at most 5, one a line) between two problems, "" when they are equal. */
void weft_problem_compare(const struct weft_problem *a, const struct weft_problem *b,
                          struct weft_text *out);

#endif
