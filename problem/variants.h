/* SPDX-License-Identifier: Apache-2.0 */
/* A variant is one setting of everything that a config leaves open below the planner: the form of
 * the period, and the split of a step's batch into micro-steps. Each variant is a problem of its
 * own. */
#ifndef WEFT_PROBLEM_VARIANTS_H
#define WEFT_PROBLEM_VARIANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "memory_model/period.h"
#include "problem/problem.h"
#include "spec/block_scale.h"
#include "spec/config.h"

struct weft_variant {
    struct weft_period_rule rule;
    enum weft_block_scale scale; /* of the size of blocks */
    struct weft_batch batch;     /* of one rank in one micro-step */
};

/* Lists the variants to plan first, at least 1, and returns their number. They are both cadences if
 * train.reduce is auto and there are several micro-steps. Without clipping they also have some
 * values of update_ahead if that is 0. If offloading is allowed but not forced, variants with it
 * come first, then variants without it, which need no ring. If the config leaves the split of the
 * batch open, they are every split with every cadence, each with the first value of the rest.
 * Blocks have the usual size, if the config leaves it open. */
int32_t weft_variants_list(const struct weft_config *config,
                           struct weft_variant out[WEFT_MOST_VARIANTS]);

/* With an open size of blocks: lists the chosen variant with the other sizes. Without one there are
 * none. For a target that finalizes (spec/target.h), lists it with two reductions under way, and
 * with all reductions late if they are once a step. At most WEFT_MOST_SCALED. */
int32_t weft_variants_list_scales(const struct weft_config *config,
                                  const struct weft_variant *chosen,
                                  struct weft_variant out[WEFT_MOST_VARIANTS]);

/* With an open split, or blocks of another size than usual: lists the other variants of the chosen
 * one's split, cadence and size of blocks, at most WEFT_MOST_ALIKE. Otherwise all of them are
 * planned already. */
int32_t weft_variants_list_more(const struct weft_config *config, const struct weft_variant *chosen,
                                struct weft_variant out[WEFT_MOST_VARIANTS]);

/* The number of variants that the config allows, also those that no function lists. Each one that
 * copies state or activations counts with whole copies too, if their blocks are open. */
int32_t weft_variants_count(const struct weft_config *config);

/* Finds the config's variant that made the problem. False if the config does not allow it. If
 * plan.offload.block_size is left out, each variant is also allowed with whole copies. */
bool weft_variants_find(const struct weft_config *config, const struct weft_problem *problem,
                        struct weft_variant *out);

bool weft_variant_same(const struct weft_variant *a, const struct weft_variant *b);

/* True if these policies sum whole gradients in place, once a step. */
bool weft_policies_are_whole(uint32_t policies);

/* Policies, a bit for each, that are no better than zero1 in time and memory (docs/hosts.md). */
uint32_t weft_variants_dominated(const struct weft_config *config);

/* Policies, a bit for each, that the config's planner needs: they need no name in plan.policies. */
uint32_t weft_planner_policies(const struct weft_config *config);

/* Reads plan.policies, "dp,sdp", into a bit for each policy, and adds those that the planner needs.
 * WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_variants_policies(const struct weft_config *config,
                                                      uint32_t *out, struct weft_error *err);

#endif
