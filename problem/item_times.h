/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes and times of items: a function of the kind's role, the profile and the period. */
#ifndef WEFT_PROBLEM_ITEM_TIMES_H
#define WEFT_PROBLEM_ITEM_TIMES_H

#include <stdint.h>

#include "base/rank_group.h"
#include "problem/problem.h"
#include "spec/config.h"
#include "spec/profile/profile.h"

/* The lane for a role. With two networks gathers are on the first, reductions on the second. Writes
 * to a half-duplex disk are on its one lane. */
int32_t weft_problem_lane_of(const struct weft_problem *problem, enum weft_lane_role role);

/* Lane time of one block of an item. With clipping a gradient's part of the norm is computed before
 * its copy down; `accumulate` is the dtype of its elements. */
int64_t weft_item_ns(const struct weft_profile *profile, const struct weft_period_rule *rule,
                     enum weft_dtype accumulate, const struct weft_item *item);

/* Lane time of a collective within a node or across nodes: measured, if the profile has times of
 * levels for nodes of as many ranks, otherwise from the config's links. Within a node of L ranks it
 * is alpha + B (L-1)/L / bandwidth. Across H nodes it is alpha + B (H-1)/H / bandwidth, and twice
 * that for an AllReduce. B is then of all ranks of a node, which share the link. Where a profile
 * has only an AllReduce across nodes, one pass takes half of its time. */
int64_t weft_item_level_ns(const struct weft_profile *profile, const struct weft_cluster *cluster,
                           enum weft_rank_group group, const struct weft_item *item);

/* WEFT_E_DATA if neither the profile nor the config has times of levels. */
WEFT_MUST_USE enum weft_status weft_item_need_levels(const struct weft_profile *profile,
                                                     const struct weft_config *config,
                                                     struct weft_error *err);

/* Lane time of an average of a node and one neighbour, an AllReduce over two nodes. Measured times
 * of more nodes are scaled by the bytes that each rank sends. */
int64_t weft_item_pair_ns(const struct weft_profile *profile, const struct weft_cluster *cluster,
                          const struct weft_item *item);

/* WEFT_E_DATA if neither the profile nor the config has the time of an average. */
WEFT_MUST_USE enum weft_status weft_average_need(const struct weft_profile *profile,
                                                 const struct weft_config *config,
                                                 struct weft_error *err);

#endif
