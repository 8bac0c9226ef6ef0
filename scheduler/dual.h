/* The dual function of the slot form: what plan/certificate.h makes of prices, in doubles, with its
 * slope, for those who look for good prices. Whatever they find is rounded to integers and bounded
 * exactly there; nothing here has to be trusted. */
#ifndef WEFT_SCHEDULER_DUAL_H
#define WEFT_SCHEDULER_DUAL_H

#include "plan/certificate.h"
#include "scheduler/digest.h"

struct weft_dual {
    struct weft_pool pool;
    const struct weft_digest *table; /* borrowed */
    int64_t limit_bytes;
    int32_t n_slots, n_channels;
    double bytes_per_ns; /* of blocks that hold bytes: makes mu comparable with lambda */
    /* The point: */
    double *lambda; /* [n_channels][n_slots] */
    double *mu;     /* [n_slots], ns a byte */
    /* What weft_dual_evaluate makes of it: */
    double value_ns;
    double *cost;               /* [n_units * WEFT_POLICY_COUNT] */
    enum weft_policy *policies; /* [n_units]: the cheapest */
    double *share;              /* [n_units * WEFT_POLICY_COUNT]: of `policies`, over an ascent */
    double *load;               /* by lambda: channel time asked for, less what there is, ns */
    double *excess;             /* by mu: bytes held above the limit */
    /* Scratch: */
    int32_t *choice; /* by span of the box: slot of its blocks; last + 1: blocking */
    double *before;  /* [n_slots + 1]: sum of mu */
    double *total;   /* [n_slots]: sum of lambda over channels */
    double *item_cost;
};

WEFT_MUST_USE enum weft_status weft_dual_create(const struct weft_digest *table,
                                                int64_t limit_bytes, struct weft_dual **out,
                                                struct weft_error *err);
void weft_dual_destroy(struct weft_dual *dual); /* accepts NULL */

/* The value and slope at the point, in a box that is not empty. */
void weft_dual_evaluate(struct weft_dual *dual, const struct weft_box *box);

/* Moves the point uphill by projected subgradients, steps as Polyak's with `target_ns`, and leaves
 * it at the best one found, evaluated. At most `most_steps` evaluations; stops when the value
 * reaches enough_ns. Returns how many it took. */
int32_t weft_dual_ascend(struct weft_dual *dual, const struct weft_box *box, double target_ns,
                         double enough_ns, int32_t most_steps);

/* The point as integer prices, whose arrays are the caller's, and back. */
void weft_dual_round(const struct weft_dual *dual, struct weft_prices *prices);
void weft_dual_take(struct weft_dual *dual, const struct weft_prices *prices);

/* Every lambda of one channel (-1: none) is 1, all else 0: what compute or a channel needs alone.
 */
void weft_dual_reset(struct weft_dual *dual, int32_t channel);

#endif
