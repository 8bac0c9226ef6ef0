/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of a config may be in its range and still the sums of the problem may not. The error
 * then names the key of the config, not the part of the problem. */
#ifndef WEFT_PROBLEM_EXTREMES_H
#define WEFT_PROBLEM_EXTREMES_H

#include "problem/problem.h"
#include "shard/shard.h"
#include "spec/config.h"

/* Returns WEFT_E_DATA with the key that adds most if the problem's times, bytes or blocks add up to
 * more than weft_problem_check allows. WEFT_OK otherwise. */
WEFT_MUST_USE enum weft_status weft_extremes_check(const struct weft_config *config,
                                                   const struct weft_problem *problem,
                                                   const struct weft_shards *shards,
                                                   struct weft_error *err);

#endif
