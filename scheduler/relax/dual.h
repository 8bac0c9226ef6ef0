/* SPDX-License-Identifier: Apache-2.0 */
/* The dual function of the slot form: the bound of proof/prices.h in doubles, with its slope, for
 * searches of good prices. No result needs trust: prices are rounded to integers, and proof/
 * computes the exact bound. */
#ifndef WEFT_SCHEDULER_RELAX_DUAL_H
#define WEFT_SCHEDULER_RELAX_DUAL_H

#include "base/work.h"
#include "problem/waits.h"
#include "proof/certificate.h"
#include "scheduler/digest/digest.h"

struct weft_dual {
    struct weft_pool pool;
    const struct weft_digest *table; /* borrowed */
    struct weft_work *work;          /* borrowed; NULL: nothing is counted */
    int32_t n_slots, n_moving;       /* lanes without compute */
    int32_t n_memory;                /* memory rows of all tiers */
    double bytes_per_ns;             /* over blocks with bytes: scales mu to lambda */
    /* The point. */
    double *lambda; /* [n_moving][n_slots] */
    /* [waits.n]: kappa as a part of the slot's wait that lambda and rho leave. The parts of each
     * slot add up to 1 */
    double *wait_share;
    double *mu;  /* [n_memory], ns a byte */
    double *nu;  /* [n_rows], ns a counted byte */
    double *pi;  /* [n_groups], ns a decision; ascent leaves pi and rho unchanged */
    double *rho; /* [n_items]: of the chain that ends with the item */
    /* Whole rows of the certificate that may have a price, in the order of weft_dual_add_row; at
     * most most_rows. */
    int32_t n_rows, most_rows;
    struct weft_whole_row *rows;
    const uint8_t **references; /* [n_decisions] of every row */
    const uint8_t **uses;       /* [n_groups] of every row: groups that its counts rely on */
    struct weft_usual *usual;   /* [n_decisions], scratch */
    bool *taken;                /* [n_decisions], scratch */
    int32_t n_groups;
    const struct weft_group *groups; /* borrowed */
    int32_t *known;  /* [n_groups]: decisions that have the group's strategies; -1: unknown */
    int32_t *relies; /* [n_groups], scratch */
    /* Results of weft_dual_evaluate. */
    double value_ns;
    double *cost;        /* [n_strategies] */
    int32_t *strategies; /* [n_decisions]: the cheapest */
    double *share;       /* [n_strategies]: average of `strategies` over an ascent */
    double *load;        /* by lambda: demand less capacity of lane time, ns */
    double *waited;      /* by wait_share: slope */
    double *excess;      /* by mu: bytes above the limit */
    double *over;        /* by nu: counted bytes above the room */
    /* Scratch. */
    int32_t *choice;  /* by span of the box: slot of its blocks; last + 1: blocking */
    double *before;   /* [n_memory + 1]: sum of mu */
    double *total;    /* [n_slots]: sum of lambda over lanes */
    double *factor;   /* [n_slots]: f(1) of proof/prices.h */
    double *covered;  /* [n_slots]: sum of rho that compute pays for too */
    double *room;     /* [n_slots]: 1 less the sum of rho: room for lambda and waits */
    int64_t *left;    /* [n_slots], scratch of rounding: the room in whole prices */
    int32_t *slowest; /* [n_slots]: the lane that gives it; 0: f(1) is 1 */
    struct weft_waits waits;
    struct weft_chain *chains; /* [n_items] */
    double *item_cost;
    int32_t *first_row, *next_row; /* [n_memory], [most_rows]: lists; -1: end */
    /* Blocks with the same bytes in the same tier have the same cost of memory. */
    int32_t n_sizes, *size_of; /* [n_items] */
    int64_t *sizes;            /* [n_sizes] */
    int32_t *size_tiers;       /* [n_sizes] */
    double *held_cost;         /* [n_sizes][n_slots + 1]: price of a block over all slots before */
    /* For each row: counts of each size of block [n_sizes], then of each strategy
     * [n_strategies]. */
    double **counts;
};

WEFT_MUST_USE enum weft_status weft_dual_create(const struct weft_digest *table,
                                                struct weft_dual **out, struct weft_error *err);
void weft_dual_destroy(struct weft_dual *dual); /* accepts NULL */

/* Sets the groups that may have a price; they equal the boxes' groups. Returns WEFT_E_SYSTEM
 * without memory. */
WEFT_MUST_USE enum weft_status weft_dual_set_groups(struct weft_dual *dual,
                                                    const struct weft_group *groups,
                                                    int32_t n_groups, struct weft_error *err);

/* Adds a whole row with price 0 for a memory row and a step. `reference` [n_decisions] gives its
 * strategies, and `uses` [n_groups] the groups that it relies on (NULL: none). Copies the arrays.
 * Returns its index, the index of an equal row, or -1 if most_rows are there. */
int32_t weft_dual_add_row(struct weft_dual *dual, int32_t row, int64_t step_bytes,
                          const uint8_t *reference, const uint8_t *uses);

/* Takes from a box the known number of decisions in each group. */
void weft_dual_know(struct weft_dual *dual, const struct weft_box *box);

/* Fills relies [n_groups] with the known counts that whole rows of the reference may use, or -1. A
 * row uses only the groups of `uses` (NULL: all). */
void weft_dual_rely(const struct weft_dual *dual, const uint8_t *reference, const uint8_t *uses,
                    int32_t *relies);

/* Fills usual [n_decisions] with the amounts that whole rows of the reference compare each
 * decision with. Returns the bytes that the memory row leaves for blocks. */
int64_t weft_dual_compare(const struct weft_dual *dual, int32_t row, const uint8_t *reference,
                          const int32_t *relies, struct weft_usual *usual);

/* Lambda of the item's lane, [n_slots]. */
static inline const double *weft_dual_lambda(const struct weft_dual *dual, int32_t item)
{
    const struct weft_problem *problem = dual->table->problem;
    return dual->lambda + weft_problem_lane_at(problem, problem->items[item].lane);
}

/* Price of one ns of a block on the lane that blocks the slot, from the last evaluation. */
double weft_dual_blocking(const struct weft_dual *dual, int32_t lane, int32_t slot);

/* Price of a block's memory over all slots before each, [n_slots + 1], from the last evaluation. */
static inline const double *weft_dual_held(const struct weft_dual *dual, int32_t item)
{
    return dual->held_cost + (size_t)dual->size_of[item] * ((size_t)dual->n_slots + 1);
}

/* The value and slope at the point, in a box that is not empty. */
void weft_dual_evaluate(struct weft_dual *dual, const struct weft_box *box);

/* Moves the point uphill by projected subgradients, steps as Polyak's with `target_ns`, and leaves
 * it at the best one found, evaluated. At most `most_steps` evaluations; stops when the value
 * reaches enough_ns. Returns how many it took. */
int32_t weft_dual_ascend(struct weft_dual *dual, const struct weft_box *box, double target_ns,
                         double enough_ns, int32_t most_steps);

/* Converts the point to integer prices, and back. The caller owns the arrays: `waits` with room for
 * waits.n, `chains` for weft_dual_count_chains, `whole` for n_rows, `pi` for n_groups. The dual
 * owns the references. */
void weft_dual_round(const struct weft_dual *dual, struct weft_prices *prices);
void weft_dual_take(struct weft_dual *dual, const struct weft_prices *prices);

/* Sets every lambda of one lane to 1 (WEFT_LANE_COMPUTE: of none) and all other prices to 0, with
 * equal shares of waits. The bound is then the lane's own time. */
void weft_dual_reset(struct weft_dual *dual, int32_t lane);

/* Sets rho of the chain that ends with the item, at most the room that other chains leave. Takes it
 * off the room of the chain's slots. */
void weft_dual_set_rho(struct weft_dual *dual, int32_t item, double rho);

/* Chains that have a price. */
int32_t weft_dual_count_chains(const struct weft_dual *dual);

/* Scales the shares of a slot's wait to a sum of 1. Equal shares replace shares that are all 0. */
void weft_dual_share_wait(struct weft_dual *dual, int32_t slot);

#endif
