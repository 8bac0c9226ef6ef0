/* SPDX-License-Identifier: Apache-2.0 */
/* Tiny problems built by hand, small enough that every plan of them can be tried: a chain of units,
 * one a layer, with random sizes and times, in the shapes that weigh gives. */
#ifndef WEFT_TESTS_SCHEDULER_TINY_H
#define WEFT_TESTS_SCHEDULER_TINY_H

#include "problem/problem.h"

struct tiny_shape {
    int32_t n_units;
    int32_t most_blocks; /* of a unit: 1 to this, drawn */
    uint32_t policies;   /* allowed, but fsdp for the last unit */
    double load;         /* channel time of a full gather over compute of a forward, about */
    bool contends;       /* compute and lanes slow each other, by drawn rates */
    bool two_networks;
};

/* The caller destroys it. Fails the test that runs when memory runs out. */
struct weft_problem *tiny_problem(const struct tiny_shape *shape, uint64_t seed);

/* A limit between the least and what everything gathered takes; 0 is the least, 1 the most. */
void tiny_set_limit(struct weft_problem *problem, double share);

/* One that enumerate_best has time for, of all kinds by the seed: two units of up to `most_blocks`
 * blocks and any policy, or three of one block; networks of many speeds, with contention, with two
 * channels; and limits of which some are tight. */
struct weft_problem *tiny_problem_of(uint64_t seed, int32_t most_blocks);

/* For every decision one of its strategies, of any problem; by the seed alone. */
void tiny_draw_strategies(const struct weft_problem *problem, unsigned seed, int32_t *strategies);

#endif
