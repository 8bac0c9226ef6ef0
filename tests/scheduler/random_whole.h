/* SPDX-License-Identifier: Apache-2.0 */
/* Whole configs at random (tests/program/random_config.h) with the network and the memory limit
 * that their seeds want, which only their problem tells. Nothing of Criterion's, so that bench/ has
 * them too. */
#ifndef WEFT_TESTS_SCHEDULER_RANDOM_WHOLE_H
#define WEFT_TESTS_SCHEDULER_RANDOM_WHOLE_H

#include "problem/problem.h"
#include "tests/program/random_config.h"

/* The seed's config, appended to `out`: channel time is random_whole_ratio times compute time when
 * every unit is fsdp, and the limit lies between the least that any plan fits in that of its
 * periods that holds least, layout included, and what all-zero1 takes there.
 * Errors of parsing and staging, which are the generator's mistakes. */
WEFT_MUST_USE enum weft_status random_whole_write(uint64_t seed, struct weft_text *out,
                                                  struct weft_error *err);

/* Channel time over compute time, without updates, of a step in which every unit is fsdp. */
double fsdp_ratio(const struct weft_problem *problem);

#endif
