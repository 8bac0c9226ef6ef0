/* SPDX-License-Identifier: Apache-2.0 */
/* The integer program with which Weft began: blocks in slots for the most overlap. Policies are
 * given. Each AllGather and ReduceScatter block has a binary column for each slot of its window,
 * and for the slot that uses it if it may block there. The program maximises the time that lanes
 * work next to compute:
 *
 *   max  sum of o[lane][slot]
 *   o[lane][slot] <= compute time of the slot
 *   o[lane][slot] <= time of the lane's blocks in the slot
 *   each block in one slot; a block of a chain not before the same block of the item before;
 *   every memory row within its limit.
 *
 * The order of blocks within a slot is not part of it, and no block is cut by the end of a slot. So
 * its optimum is no step and no bound of one. */
#ifndef WEFT_SCHEDULER_PLANNERS_SEED_SEED_H
#define WEFT_SCHEDULER_PLANNERS_SEED_SEED_H

#include "plan/plan.h"
#include "scheduler/digest/planner.h"
#include "scheduler/solver/lp.h"

/* The columns of a block are those of slots `first` to `first + n - 1`, from `column` on. */
struct weft_seed_block {
    int32_t item, column, first, n;
};

struct weft_seed {
    const struct weft_problem *problem; /* borrowed, with the strategies */
    const int32_t *strategies;
    struct weft_pool pool;
    struct weft_lp lp; /* in units of the longest slot; its columns are binaries, then overlaps */
    int32_t n_blocks;
    struct weft_seed_block *blocks; /* by item */
    int64_t *slot_ns;               /* [n_slots]: compute under the strategies */
    int64_t *rows;                  /* [n_tiers][n_slots]: bytes without blocks */
    double unit_ns;
};

/* Makes the program. `slack` is the part of each memory row's room that stays free, against the
 * solver's rounding. WEFT_E_SYSTEM without memory. weft_seed_finish frees it. */
WEFT_MUST_USE enum weft_status weft_seed_init(struct weft_seed *seed,
                                              const struct weft_problem *problem,
                                              const int32_t *strategies, double slack,
                                              struct weft_error *err);
void weft_seed_finish(struct weft_seed *seed);

/* Makes the moves the program's start, unless they break one of its rows. */
WEFT_MUST_USE enum weft_status weft_seed_start(struct weft_seed *seed,
                                               const struct weft_move *moves, int32_t n_moves,
                                               struct weft_error *err);

/* Overlap of moves, in ns. */
int64_t weft_seed_overlap(const struct weft_seed *seed, const struct weft_move *moves,
                          int32_t n_moves);

/* Reads moves from a solver's point, ordered by item. `moves` has room for all blocks. WEFT_E_DATA
 * if a block is not in one slot, a block of a chain comes before its predecessor, or a row exceeds
 * its limit, checked in whole numbers. *over: a row alone is the reason. */
WEFT_MUST_USE enum weft_status weft_seed_read(const struct weft_seed *seed, const double *x,
                                              struct weft_move *moves, int32_t *n_moves, bool *over,
                                              struct weft_error *err);

/* Puts moves into the order of lanes: by slot, and within a slot as the simulator likes best of a
 * few orders. WEFT_E_INFEASIBLE if no order is a plan. */
WEFT_MUST_USE enum weft_status weft_seed_order(const struct weft_seed *seed,
                                               struct weft_move *moves, int32_t n_moves,
                                               struct weft_error *err);

#endif
