/* A config may be within every key's range and still make a problem with sums that are out of
 * range. Such an error names the key of the config, not the part of the problem. */
#ifndef WEFT_PROBLEM_EXTREMES_H
#define WEFT_PROBLEM_EXTREMES_H

#include "problem/problem.h"
#include "shard/shard.h"
#include "spec/config.h"

/* Refuses the config where the problem's times, bytes or blocks add up to more than
 * weft_problem_check allows: WEFT_E_DATA with the key that adds most. WEFT_OK otherwise. */
WEFT_MUST_USE enum weft_status weft_extremes_check(const struct weft_config *config,
                                                   const struct weft_problem *problem,
                                                   const struct weft_shards *shards,
                                                   struct weft_error *err);

#endif
