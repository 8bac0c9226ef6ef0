/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of a plan's strategies: of all parameters by the policy of their unit and by the place
 * of its optimizer state, and of all saved activations that have a choice by location and
 * recomputation. */
#ifndef WEFT_REPORT_STUDY_WAY_SHARES_H
#define WEFT_REPORT_STUDY_WAY_SHARES_H

#include "plan/plan.h"

/* Shares from 0 to 1. They add up to 1, or are all 0: no unit, or no layer with a choice. */
struct weft_way_shares {
    double policies[WEFT_POLICY_COUNT]; /* of elements */
    double keeps[WEFT_KEEP_COUNT];      /* of elements: place of the state */
    double saved[WEFT_SAVED_CHOICES];   /* of the bytes that layers save if they keep all */
};
struct weft_way_shares weft_way_shares_of(const struct weft_plan *plan);

/* Shares by number, from 0 to WEFT_WAY_SHARES - 1, in the order of the struct. */
enum { WEFT_WAY_SHARES = WEFT_POLICY_COUNT + WEFT_KEEP_COUNT + WEFT_SAVED_CHOICES };
struct weft_way_share {
    const char *group; /* "units", "state", "saved" */
    const char *name;  /* "fsdp", "host-update", "selective"; static. NULL: no such choice */
    double share;
};
struct weft_way_share weft_way_share_at(const struct weft_way_shares *shares, int number);

#endif
