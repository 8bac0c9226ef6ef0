/* SPDX-License-Identifier: Apache-2.0 */
/* A digest is a problem in a form that planners query fast: the rows of every decision and
 * strategy, and the items in the orders in which planners walk them. All rows, tier after tier,
 * are compared with one limit, the device's. A common offset adds the difference to the limit of
 * any other tier. `fixed` rows are independent of the placement of blocks. `lean` rows add the
 * least bytes of blocks: reductions in the first slot of their window, and zero for gathers, which
 * may block. Strategies fit a limit if and only if their lean rows fit it. */
#ifndef WEFT_SCHEDULER_DIGEST_DIGEST_H
#define WEFT_SCHEDULER_DIGEST_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "problem/problem.h"
#include "proof/box.h"
#include "scheduler/digest/steps.h"

struct weft_digest {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    int32_t n_slots, n_decisions, n_items;
    int32_t n_rows;                    /* memory rows: weft_problem_n_rows */
    int64_t *common;                   /* [n_rows] */
    struct weft_row_steps fixed, lean; /* rows of all strategies */
    int32_t *first_item; /* [n_decisions + 1]: the items of a decision follow one another */
    int32_t *gathers;    /* items that acquire, by last slot, first slot, index */
    int32_t n_gathers;
    int32_t *reductions; /* other items by first slot, index */
    int32_t n_reductions;
    int32_t n_blocks;                         /* of all items: most moves of a plan */
    int64_t most_bytes;                       /* upper bound for any row of any plan */
    int64_t tier_most_bytes[WEFT_MOST_TIERS]; /* the same for each tier's rows */
    int64_t most_lane_ns;    /* upper bound for the lane time of a plan, without agreements */
    int32_t *leanest;        /* [n_decisions]: strategies with the least limit found */
    int64_t least_bytes;     /* their largest lean row */
    int32_t least_row;       /* index of that row */
    int64_t *slotwise_least; /* [n_rows]: common, plus each decision's least strategy in the row */
    int64_t least_proven_bytes; /* lower bound of all plans; least_bytes if proven */
};

WEFT_MUST_USE enum weft_status weft_digest_create(const struct weft_problem *problem,
                                                  struct weft_digest **out, struct weft_error *err);
void weft_digest_destroy(struct weft_digest *table); /* accepts NULL */

/* The same as weft_digest_create. Borrows the arrays of `like`, if not NULL, which must outlive the
 * table, when the two problems differ in the limit of one tier alone. */
WEFT_MUST_USE enum weft_status weft_digest_create_like(const struct weft_digest *like,
                                                       const struct weft_problem *problem,
                                                       struct weft_digest **out,
                                                       struct weft_error *err);

/* No row reaches this limit. Larger limits are treated as this one. */
#define WEFT_DIGEST_MOST_LIMIT (2 * WEFT_PROBLEM_MOST)

/* The limit of all rows, in bytes. */
static inline int64_t weft_digest_limit_bytes(const struct weft_digest *table)
{
    int64_t bytes = table->problem->tiers[0].limit_bytes;
    return bytes < WEFT_DIGEST_MOST_LIMIT ? bytes : WEFT_DIGEST_MOST_LIMIT;
}

/* True if a plan may exceed the tier's limit. */
static inline bool weft_digest_is_short(const struct weft_digest *table, int32_t tier)
{
    return weft_digest_limit_bytes(table) < table->tier_most_bytes[tier];
}

/* Number of a decision's strategies, and the index of the first one in arrays over all
 * decisions. */
static inline int32_t weft_digest_count(const struct weft_digest *table, int32_t decision)
{
    return table->problem->decisions[decision].n_strategies;
}

static inline size_t weft_digest_at(const struct weft_digest *table, int32_t decision,
                                    int32_t strategy)
{
    return weft_strategy_at(table->problem, decision, strategy);
}

/* Bytes of a decision's strategy in a row. */
static inline int64_t weft_digest_fixed(const struct weft_digest *table, int32_t decision,
                                        int32_t strategy, int32_t row)
{
    return weft_row_steps_at(&table->fixed, weft_digest_at(table, decision, strategy), row);
}

static inline int64_t weft_digest_lean(const struct weft_digest *table, int32_t decision,
                                       int32_t strategy, int32_t row)
{
    return weft_row_steps_at(&table->lean, weft_digest_at(table, decision, strategy), row);
}

/* Sums common and lean (or fixed) rows into rows[n_rows]. Returns the largest sum and sets *peak,
 * if not NULL, to its row. */
int64_t weft_digest_lean_rows(const struct weft_digest *table, const int32_t *strategies,
                              int64_t *rows, int32_t *peak);
void weft_digest_fixed_rows(const struct weft_digest *table, const int32_t *strategies,
                            int64_t *rows);

/* Adds the bytes of blocks as placed by the moves. The normal form holds at most as many. */
void weft_moves_add_rows(const struct weft_problem *problem, const struct weft_move *moves,
                         int32_t n_moves, int64_t *rows);

/* Memory rows of strategies with moves, as placed. */
void weft_digest_move_rows(const struct weft_digest *table, const int32_t *strategies,
                           const struct weft_move *moves, int32_t n_moves, int64_t *rows);

/* Fills slotwise_least, leanest, least_bytes, least_row, least_proven_bytes (least.c). */
WEFT_MUST_USE enum weft_status weft_digest_find_least(struct weft_digest *table,
                                                      struct weft_error *err);

/* Returns the least limit of a tier, in bytes, at which some plan fits while the other tiers keep
 * their limits. It includes the base and excludes the rounding to pages. Sets *peak_slot, if not
 * NULL, to its fullest slot. Returns -1 without memory, INT64_MAX if no plan fits the other
 * limits. */
int64_t weft_least_limit(const struct weft_problem *problem, int32_t tier, int32_t *peak_slot);

#endif
