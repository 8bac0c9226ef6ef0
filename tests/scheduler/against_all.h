/* SPDX-License-Identifier: Apache-2.0 */
/* What planners make of a tiny problem with two tiers, against all plans that there are of it. */
#ifndef WEFT_TESTS_SCHEDULER_AGAINST_ALL_H
#define WEFT_TESTS_SCHEDULER_AGAINST_ALL_H

#include "problem/problem.h"

/* Limits between the least and the most, of the device first. */
void against_set_limits(struct weft_problem *problem, uint64_t seed);

/* Fails the test that runs unless ilp has a plan where there is any, its bound is proven and no
 * higher than the best, the file says what the plan says, and the other planners keep to limits.
 * Adds to *n_chosen the decisions whose strategy has `name` in its own. Returns 1 when the plan is
 * slower than the best of all, else 0. */
int32_t against_all(struct weft_problem *problem, int seed, const char *name, int32_t *n_chosen);

/* Fails it if a certificate with another number proves what is false, or one of another problem
 * is believed; the problem is changed. */
struct against_changes {
    int32_t n, n_refused;
};
void against_changes(struct weft_problem *problem, uint64_t seed, struct against_changes *changes);

#endif
