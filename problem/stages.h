/* Stages are what is made on the way from a config and a profile to the problem of a plan: shards,
 * period, weights, and the problem itself. */
#ifndef WEFT_PROBLEM_STAGES_H
#define WEFT_PROBLEM_STAGES_H

#include <stdint.h>

#include "base/status.h"
#include "memory_model/weigh.h"
#include "problem/problem.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

/* The periods that a config leaves to choose: both cadences when train.reduce is auto and there are
 * several micro-steps, and without clipping some values of update_ahead when that is 0. Where state
 * may be away and may stay, first those in which it may be away, and then those in which it stays,
 * which need no ring. Returns how many there are, at least 1. */
int32_t weft_stages_variants(const struct weft_config *config,
                             struct weft_period_rule out[WEFT_MOST_VARIANTS]);

/* What a config and a profile make: shards, period and weights on the way. The caller owns all
 * four and frees them with weft_stages_finish. *out is untouched on failure. WEFT_E_DATA when the
 * profile is for other ranks or lacks a layer, or when a sum is out of range. */
struct weft_stages {
    struct weft_shards *shards;
    struct weft_period *period;
    struct weft_weights *weights;
    struct weft_problem *problem;
};
WEFT_MUST_USE enum weft_status weft_stages_create(const struct weft_config *config,
                                                  const struct weft_profile *profile,
                                                  struct weft_stages *out, struct weft_error *err);
/* The same for one of the config's variants; without, it is the first. */
WEFT_MUST_USE enum weft_status weft_stages_create_variant(const struct weft_config *config,
                                                          const struct weft_profile *profile,
                                                          const struct weft_period_rule *rule,
                                                          struct weft_stages *out,
                                                          struct weft_error *err);
void weft_stages_finish(struct weft_stages *stages); /* accepts {0} and half-made ones */

/* How the layers of a config are weighed in such a period. */
struct weft_weigh_options weft_stages_weigh_options(const struct weft_config *config,
                                                    const struct weft_profile *profile,
                                                    const struct weft_period_rule *rule);

#endif
