/* A digest is a problem made quick to ask: what every decision holds in every slot under every
 * strategy, and its items in the orders in which planners walk them. `fixed` is what a strategy
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

/* Bytes that a row has more in a slot than in the one before it. */
struct weft_row_step {
    int64_t bytes;
    int32_t slot;
};

/* Rows by their steps: row r's are steps[start[r] .. start[r + 1] - 1], slots increasing. */
struct weft_row_steps {
    int64_t *start; /* [n_strategies + 1] */
    struct weft_row_step *steps;
};

struct weft_digest {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    int32_t n_slots, n_decisions, n_items;
    int64_t *common;       /* [n_slots] */
    int64_t *fixed, *lean; /* [n_strategies][n_slots]; see weft_digest_row */
    struct weft_row_steps fixed_steps, lean_steps; /* the same rows, quick to sum */
    int32_t *gathers;                              /* AllGather items by last, first, index */
    int32_t n_gathers;
    int32_t *reductions; /* other items by first, index */
    int32_t n_reductions;
    int32_t n_blocks;        /* of all items: the most moves of any plan */
    int64_t most_bytes;      /* no plan holds more in any slot */
    int64_t most_lane_ns;    /* no plan moves more, agreements apart */
    int32_t *leanest;        /* [n_decisions]: strategies with the least limit found */
    int64_t least_bytes;     /* largest row of their lean placement */
    int32_t least_slot;      /* where it is */
    int64_t *slotwise_least; /* [n_slots]: common, and every decision at its least in this slot */
    int64_t least_proven_bytes; /* no plan needs less: == least_bytes when that is proven */
};

WEFT_MUST_USE enum weft_status weft_digest_create(const struct weft_problem *problem,
                                                  struct weft_digest **out, struct weft_error *err);
void weft_digest_destroy(struct weft_digest *table); /* accepts NULL */

static inline int64_t weft_digest_limit_bytes(const struct weft_digest *table)
{
    return table->problem->memory_limit_bytes;
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
    return weft_digest_at(table, decision, strategy) * (size_t)table->n_slots;
}

/* Sums common and lean (or fixed) rows into rows[n_slots]; the largest, and its slot when
 * `peak_slot` is not NULL. */
int64_t weft_digest_lean_rows(const struct weft_digest *table, const int32_t *strategies,
                              int64_t *rows, int32_t *peak_slot);
void weft_digest_fixed_rows(const struct weft_digest *table, const int32_t *strategies,
                            int64_t *rows);

/* Adds what blocks hold where the moves put them, before normal form, which holds no more. */
void weft_moves_add_rows(const struct weft_problem *problem, const struct weft_move *moves,
                         int32_t n_moves, int64_t *rows);

/* Memory rows of strategies with moves, as placed. */
void weft_digest_move_rows(const struct weft_digest *table, const int32_t *strategies,
                           const struct weft_move *moves, int32_t n_moves, int64_t *rows);

/* Fills slotwise_least, leanest, least_bytes, least_slot, least_proven_bytes (least.c). */
WEFT_MUST_USE enum weft_status weft_digest_find_least(struct weft_digest *table,
                                                      struct weft_error *err);

/* The least memory limit (bytes, base included, what pages round up not counted) at which any plan
 * of the problem fits: every decision at its leanest strategy, all gathers blocking, reductions as
 * early as they can be. Also the slot of that peak. */
int64_t weft_least_limit(const struct weft_problem *problem, int32_t *peak_slot);

#endif
