/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of many ranks of unequal speed. Every rank runs the plan with compute times of its own. A
 * collective begins when its last member has come to it: all ranks, those of a node, or those of
 * one place in every node. It takes the time of the plan, since the link does not jitter. Copies
 * and updates on the host are a rank's own. All ranks meet at the end of a step. Nodes that step on
 * their own (period.every) meet before the step of an average alone, so a node that is slow in one
 * step may catch up in the next. Blocks, launches and deadlines have the order of
 * weft_simulate_plan. */
#ifndef WEFT_PROGRAM_JITTER_H
#define WEFT_PROGRAM_JITTER_H

#include <stdint.h>

#include "base/status.h"
#include "plan/plan.h"

/* Compute time of a rank's slot: a function of its arguments alone. `slot_ns` is the plan's. */
struct weft_jitter_law {
    int64_t (*time_ns)(const void *of, int64_t step, int64_t rank, int32_t slot, int64_t slot_ns);
    const void *of;
};

/* A factor of mean 1 for each step, rank and slot. Its logarithm is normal with variance
 * ln(1 + cv^2), so cv is the standard deviation over the mean. cv 0: the plan's times. */
struct weft_jitter_factors {
    double cv;
    uint64_t seed;
};
struct weft_jitter_law weft_jitter_lognormal(const struct weft_jitter_factors *of);

struct weft_jitter_steps {
    int64_t mean_ns, median_ns, p99_ns, longest_ns; /* from the last rank's end of a step to
                                                     * its end of the next */
    double waiting; /* share of a step in which a rank's compute waits, over all ranks and steps */
};

/* Simulates steps, at least 1. With the plan's own times each takes exactly the plan's predicted
 * step, or period.every steps on average. Takes time and memory by ranks x blocks. WEFT_E_DATA:
 * compute and communication slow each other, or a plan with hsdp or averages does not say how many
 * ranks a node has. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_simulate_jitter(const struct weft_plan *plan,
                                                    struct weft_jitter_law law, int64_t n_steps,
                                                    struct weft_jitter_steps *out,
                                                    struct weft_error *err);

#endif
