/* Stages are the objects between a config with its profile and a plan: shards, period, weights and
 * the problem. */
#ifndef WEFT_PROBLEM_STAGES_H
#define WEFT_PROBLEM_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "memory_model/weigh.h"
#include "problem/problem.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

/* Lists the periods that a config allows, at least 1, and returns their number. They are both
 * cadences if train.reduce is auto and there are several micro-steps. Without clipping they also
 * have some values of update_ahead if that is 0. If offloading is allowed but not forced, periods
 * with it come first, then periods without it, which need no ring. */
int32_t weft_stages_variants(const struct weft_config *config,
                             struct weft_period_rule out[WEFT_MOST_VARIANTS]);

/* True if the config allows the period: it is one of the variants, or one of them with whole copies
 * if plan.offload.block_size is left out. */
bool weft_stages_is_open(const struct weft_config *config, const struct weft_period_rule *rule);

/* Makes the stages of a config and a profile. The caller owns all four and frees them with
 * weft_stages_finish. *out is untouched on failure. WEFT_E_DATA when the profile is for other ranks
 * or lacks a layer, or when a sum is out of range. */
struct weft_stages {
    struct weft_shards *shards;
    struct weft_period *period;
    struct weft_weights *weights;
    struct weft_problem *problem;
};
WEFT_MUST_USE enum weft_status weft_stages_create(const struct weft_config *config,
                                                  const struct weft_profile *profile,
                                                  struct weft_stages *out, struct weft_error *err);
/* The same for one of the config's variants; weft_stages_create takes the first. */
WEFT_MUST_USE enum weft_status weft_stages_create_variant(const struct weft_config *config,
                                                          const struct weft_profile *profile,
                                                          const struct weft_period_rule *rule,
                                                          struct weft_stages *out,
                                                          struct weft_error *err);
void weft_stages_finish(struct weft_stages *stages); /* accepts {0} and half-made stages */

/* Options for weighing the layers of a config in such a period. */
struct weft_weigh_options weft_stages_weigh_options(const struct weft_config *config,
                                                    const struct weft_profile *profile,
                                                    const struct weft_period_rule *rule);

#endif
