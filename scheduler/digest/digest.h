/* A digest is a problem made quick to ask: what every decision holds in every row under every
 * strategy, and its items in the orders in which planners walk them. All rows, a tier's behind
 * those of another, are counted within one limit, the device's: rows of a tier that has less begin
 * with as much more, and those of one that has more below 0. `fixed` is what a strategy
 * holds whatever its blocks do; `lean` adds the least that its blocks must: reductions in the first
 * slot of their window, and nothing for gathers, which may block. Strategies fit a limit if and
 * only if their lean rows do. */
#ifndef WEFT_SCHEDULER_DIGEST_DIGEST_H
#define WEFT_SCHEDULER_DIGEST_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/plan.h"
#include "problem/problem.h"
#include "proof/box.h"

/* Bytes that a memory row has more than the one before it. */
struct weft_row_step {
    int64_t bytes;
    int32_t row;
};

/* Rows of strategies by their steps: those of strategy r are steps[start[r] .. start[r + 1] - 1],
 * rows increasing. */
struct weft_row_steps {
    int64_t *start; /* [n_strategies + 1] */
    struct weft_row_step *steps;
};

struct weft_digest {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    int32_t n_slots, n_decisions, n_items;
    int32_t n_rows;                                /* of memory: weft_problem_n_rows */
    int64_t *common;                               /* [n_rows] */
    int64_t *fixed, *lean;                         /* [n_strategies][n_rows]; see weft_digest_row */
    struct weft_row_steps fixed_steps, lean_steps; /* the same rows, quick to sum */
    int32_t *gathers;                              /* AllGather items by last, first, index */
    int32_t n_gathers;
    int32_t *reductions; /* other items by first, index */
    int32_t n_reductions;
    int32_t n_blocks;                         /* of all items: the most moves of any plan */
    int64_t most_bytes;                       /* no plan holds more in any row */
    int64_t tier_most_bytes[WEFT_MOST_TIERS]; /* in those of a tier */
    int64_t most_lane_ns;                     /* no plan moves more, agreements apart */
    int32_t *leanest;           /* [n_decisions]: strategies with the least limit found */
    int64_t least_bytes;        /* largest row of their lean placement */
    int32_t least_row;          /* where it is */
    int64_t *slotwise_least;    /* [n_rows]: common, and every decision at its least in this row */
    int64_t least_proven_bytes; /* no plan needs less: == least_bytes when that is proven */
};

WEFT_MUST_USE enum weft_status weft_digest_create(const struct weft_problem *problem,
                                                  struct weft_digest **out, struct weft_error *err);
void weft_digest_destroy(struct weft_digest *table); /* accepts NULL */

/* Limits of more are as good as this, which no row comes near. */
#define WEFT_DIGEST_MOST_LIMIT (2 * WEFT_PROBLEM_MOST)

/* What no row may exceed. */
static inline int64_t weft_digest_limit_bytes(const struct weft_digest *table)
{
    int64_t bytes = table->problem->tiers[0].limit_bytes;
    return bytes < WEFT_DIGEST_MOST_LIMIT ? bytes : WEFT_DIGEST_MOST_LIMIT;
}

/* False when every plan is within the tier's limit. */
static inline bool weft_digest_is_short(const struct weft_digest *table, int32_t tier)
{
    return weft_digest_limit_bytes(table) < table->tier_most_bytes[tier];
}

/* How many strategies a decision has, and where they are in arrays of all decisions'. */
static inline int32_t weft_digest_count(const struct weft_digest *table, int32_t decision)
{
    return table->problem->decisions[decision].n_strategies;
}

static inline size_t weft_digest_at(const struct weft_digest *table, int32_t decision,
                                    int32_t strategy)
{
    return weft_strategy_at(table->problem, decision, strategy);
}

/* Offset of a decision's and strategy's row in `fixed` and `lean`. */
static inline size_t weft_digest_row(const struct weft_digest *table, int32_t decision,
                                     int32_t strategy)
{
    return weft_digest_at(table, decision, strategy) * (size_t)table->n_rows;
}

/* Sums common and lean (or fixed) rows into rows[n_rows]; the largest, and which it is when `peak`
 * is not NULL. */
int64_t weft_digest_lean_rows(const struct weft_digest *table, const int32_t *strategies,
                              int64_t *rows, int32_t *peak);
void weft_digest_fixed_rows(const struct weft_digest *table, const int32_t *strategies,
                            int64_t *rows);

/* Adds what blocks hold where the moves put them, before normal form, which holds no more. */
void weft_moves_add_rows(const struct weft_problem *problem, const struct weft_move *moves,
                         int32_t n_moves, int64_t *rows);

/* Memory rows of strategies with moves, as placed. */
void weft_digest_move_rows(const struct weft_digest *table, const int32_t *strategies,
                           const struct weft_move *moves, int32_t n_moves, int64_t *rows);

/* Fills slotwise_least, leanest, least_bytes, least_row, least_proven_bytes (least.c). */
WEFT_MUST_USE enum weft_status weft_digest_find_least(struct weft_digest *table,
                                                      struct weft_error *err);

/* The least limit of a tier (bytes, base included, what pages round up not counted) at which any
 * plan fits, the others' limits as they are: every decision at its leanest strategy, all gathers
 * blocking, reductions as early as they can be. Also the slot of that peak. -1 when memory runs
 * out; INT64_MAX when no plan is within the other limits. */
int64_t weft_least_limit(const struct weft_problem *problem, int32_t tier, int32_t *peak_slot);

#endif
