/* SPDX-License-Identifier: Apache-2.0 */
/* Stages are the objects between a config with its profile and a plan: shards, period, weights and
 * the problem. */
#ifndef WEFT_PROBLEM_STAGES_H
#define WEFT_PROBLEM_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "memory_model/weigh.h"
#include "problem/problem.h"
#include "problem/variants.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

/* Makes the stages of a config and a profile. The caller owns all four and frees them with
 * weft_stages_finish. *out is untouched on failure. WEFT_E_DATA when the profile is for other ranks
 * or lacks a layer, or when a sum is out of range. */
struct weft_stages {
    struct weft_variant variant;
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
                                                          const struct weft_variant *variant,
                                                          struct weft_stages *out,
                                                          struct weft_error *err);
void weft_stages_finish(struct weft_stages *stages); /* accepts {0} and half-made stages */

/* Options for weighing the layers of a config in such a variant. */
struct weft_weigh_options weft_stages_weigh_options(const struct weft_config *config,
                                                    const struct weft_profile *profile,
                                                    const struct weft_variant *variant);

#endif
