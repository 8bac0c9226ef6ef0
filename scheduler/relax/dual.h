/* The dual function of the slot form: what proof/prices.h makes of prices, in doubles, with its
 * slope, for those who look for good prices. Whatever they find is rounded to integers and bounded
 * exactly there; nothing here has to be trusted. */
#ifndef WEFT_SCHEDULER_RELAX_DUAL_H
#define WEFT_SCHEDULER_RELAX_DUAL_H

#include "base/work.h"
#include "proof/certificate.h"
#include "scheduler/digest/digest.h"

struct weft_dual {
    struct weft_pool pool;
    const struct weft_digest *table; /* borrowed */
    struct weft_work *work;          /* borrowed; NULL: nothing is counted */
    int32_t n_slots, n_moving;       /* lanes but compute */
    int32_t n_memory;                /* memory rows of all tiers */
    double bytes_per_ns; /* of blocks that hold bytes: makes mu comparable with lambda */
    /* The point: */
    double *lambda; /* [n_moving][n_slots] */
    double *mu;     /* [n_memory], ns a byte */
    double *nu;     /* [n_rows], ns a byte that counts */
    double *pi;     /* [n_groups], ns a decision; ascent leaves them alone */
    /* Whole rows of the certificate that may have a price, in the order in which they were added;
     * at most most_rows. */
    int32_t n_rows, most_rows;
    struct weft_whole_row *rows;
    const uint8_t **references; /* [n_decisions] of every row */
    const uint8_t **uses;       /* [n_groups] of every row: on whose counts it relies */
    struct weft_usual *usual;   /* [n_decisions], scratch */
    bool *taken;                /* [n_decisions], scratch */
    int32_t n_groups;
    const struct weft_group *groups; /* borrowed */
    int32_t *known;                  /* [n_groups]: how many decisions have it; -1: not known */
    int32_t *relies;                 /* [n_groups], scratch */
    /* What weft_dual_evaluate makes of it: */
    double value_ns;
    double *cost;        /* [n_strategies] */
    int32_t *strategies; /* [n_decisions]: the cheapest */
    double *share;       /* [n_strategies]: of `strategies`, over an ascent */
    double *load;        /* by lambda: lane time asked for, less what there is, ns */
    double *excess;      /* by mu: bytes held above the limit */
    double *over;        /* by nu: bytes that count above the room */
    /* Scratch: */
    int32_t *choice;     /* by span of the box: slot of its blocks; last + 1: blocking */
    double *before;      /* [n_memory + 1]: sum of mu */
    double *total;       /* [n_slots]: sum of lambda over lanes */
    double *factor;      /* [n_slots]: f(1) of proof/prices.h */
    int32_t *slowest;    /* [n_slots]: lane k of its least; 0: it is 1 */
    int32_t *n_blocking; /* [n_slots]: lanes on which items may block it */
    double *item_cost;
    int32_t *first_row, *next_row; /* [n_memory], [most_rows]: of a memory row; -1: none */
    /* Blocks that hold the same bytes in the same tier cost the same to hold: */
    int32_t n_sizes, *size_of; /* [n_items] */
    int64_t *sizes;            /* [n_sizes] */
    int32_t *size_tiers;       /* [n_sizes] */
    double *held_cost;         /* [n_sizes][n_slots + 1]: of a block, over the slots before */
    /* By row: [n_sizes] of a block in it, then [(size_t)ilp->table->problem->n_strategies] of a
     * strategy. */
    double **counts;
};

WEFT_MUST_USE enum weft_status weft_dual_create(const struct weft_digest *table,
                                                struct weft_dual **out, struct weft_error *err);
void weft_dual_destroy(struct weft_dual *dual); /* accepts NULL */

/* Groups that may have a price, the same as the boxes'. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_dual_set_groups(struct weft_dual *dual,
                                                    const struct weft_group *groups,
                                                    int32_t n_groups, struct weft_error *err);

/* The whole row of a memory row, step, strategies of reference [n_decisions] and groups that it
 * relies on [n_groups] (NULL: none), of which copies are made, with a price of 0; or the one that
 * is there already; or -1 when there is no room for more. */
int32_t weft_dual_add_row(struct weft_dual *dual, int32_t row, int64_t step_bytes,
                          const uint8_t *reference, const uint8_t *uses);

/* Takes from a box how many decisions of groups have their strategies, which whole rows rely on. */
void weft_dual_know(struct weft_dual *dual, const struct weft_box *box);

/* On which of these counts whole rows of the references can rely that rely on no other groups than
 * `uses` (NULL: on any): the count, by group, or -1. */
void weft_dual_rely(const struct weft_dual *dual, const uint8_t *reference, const uint8_t *uses,
                    int32_t *relies);

/* What decisions are compared with in a memory row's whole rows of the references, into usual
 * [n_decisions]; returns what the row has for blocks when each holds that. */
int64_t weft_dual_compare(const struct weft_dual *dual, int32_t row, const uint8_t *reference,
                          const int32_t *relies, struct weft_usual *usual);

/* [n_slots] of an item's lane. */
static inline const double *weft_dual_lambda(const struct weft_dual *dual, int32_t item)
{
    const struct weft_problem *problem = dual->table->problem;
    return dual->lambda + weft_problem_lane_at(problem, problem->items[item].lane);
}

/* [n_slots + 1]: what a block of the item pays for being held over the slots before each, as
 * evaluated last. */
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

/* The point as integer prices, whose arrays are the caller's (`whole` with room for n_rows, `pi`
 * for n_groups), and back. References are the dual's. */
void weft_dual_round(const struct weft_dual *dual, struct weft_prices *prices);
void weft_dual_take(struct weft_dual *dual, const struct weft_prices *prices);

/* Every lambda of one lane (WEFT_LANE_COMPUTE: of none) is 1, all else 0: what that lane needs
 * alone. */
void weft_dual_reset(struct weft_dual *dual, int32_t lane);

#endif
