/* SPDX-License-Identifier: Apache-2.0 */
/* A knapsack chooses one option for every group with the least sum of costs. The sums of two
 * weights are each within a capacity. It lists all partial choices that no other beats in cost and
 * both weights. The result is exact if no list is longer than WEFT_KNAPSACK_MOST_LABELS. Otherwise
 * every other label of the list is dropped: the result still fits, but may not be the best. */
#ifndef WEFT_SCHEDULER_PLANNERS_KNAPSACK_H
#define WEFT_SCHEDULER_PLANNERS_KNAPSACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/work.h"

enum { WEFT_KNAPSACK_MOST_LABELS = 1 << 14, WEFT_KNAPSACK_WEIGHTS = 2 };

struct weft_knapsack_option {
    bool allowed;
    int64_t cost, weight[WEFT_KNAPSACK_WEIGHTS]; /* weights may be negative */
};

/* Fills choice[n_groups] from options[n_groups * n_options]. Sets *exact, which may be NULL.
 * WEFT_E_INFEASIBLE, without a message, if nothing fits, or if the alarm of `work` (NULL: none)
 * rang. */
WEFT_MUST_USE enum weft_status weft_knapsack(const struct weft_knapsack_option *options,
                                             int32_t n_groups, int32_t n_options,
                                             const int64_t capacity[WEFT_KNAPSACK_WEIGHTS],
                                             int32_t *choice, bool *exact, struct weft_work *work,
                                             struct weft_error *err);

#endif
