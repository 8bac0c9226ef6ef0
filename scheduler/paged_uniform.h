/* SPDX-License-Identifier: Apache-2.0 */
/* Uniform plans: all units have one strategy. Rules of one policy leave layers as they are, so they
 * may exceed the limit where a plan that recomputes or offloads activations does not. */
#ifndef WEFT_SCHEDULER_PAGED_UNIFORM_H
#define WEFT_SCHEDULER_PAGED_UNIFORM_H

#include "scheduler/paged_try.h"

/* Gives each strategy to all units that may have it, with the layers of the run's plan, and with
 * the leanest ones. The search places these strategies. Keeps the fastest plan that fits in pages.
 * It spends none of the run's budget, but stops at the alarm. The run must have a plan. */
WEFT_MUST_USE enum weft_status weft_paged_uniform(struct weft_paged *run, struct weft_error *err);

/* The time of the busiest lane under these strategies. No plan of them is faster. */
int64_t weft_busiest_ns(const struct weft_problem *problem, const int32_t *strategies);

#endif
