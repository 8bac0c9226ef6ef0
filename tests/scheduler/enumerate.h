/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle of the planners: the fastest plan of a tiny problem, by trying every policy of every
 * unit, every order of all blocks on the channel, and every slot for each. It computes rows and
 * times from the definitions in weigh.h and plan.h, with none of the code under test. */
#ifndef WEFT_TESTS_SCHEDULER_ENUMERATE_H
#define WEFT_TESTS_SCHEDULER_ENUMERATE_H

#include "problem/problem.h"

enum {
    ENUMERATE_MOST_MOVES = 10,
    ENUMERATE_MOST_SLOTS = 20,
    ENUMERATE_MOST_UNITS = 4,
    ENUMERATE_MOST_TIERS = 3
};

/* Step time of the fastest plan within the device's limit and those of the problem's other tiers,
 * -1 when there is none. Writes its strategies when `strategies` is not NULL. */
int64_t enumerate_best(const struct weft_problem *problem, int64_t limit_bytes,
                       int32_t *strategies);

/* Step time of the fastest plan with the given strategies within the problem's limits, -1 when
 * there is none. */
int64_t enumerate_of(const struct weft_problem *problem, const int32_t *strategies);

/* The least limit of the device of any plan within the other tiers: the same, over the largest row;
 * -1 when there is none. */
int64_t enumerate_least_limit(const struct weft_problem *problem);

/* The same if the device's bytes lie in pages. A buffer of a page or more has its own pages, and
 * its blocks share them. Smaller buffers share pages as well as any paging could. */
int64_t enumerate_best_in_pages(const struct weft_problem *problem, int64_t page_bytes,
                                int64_t limit_bytes);
int64_t enumerate_least_limit_in_pages(const struct weft_problem *problem, int64_t page_bytes);

#endif
