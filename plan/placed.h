/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies and placements as JSON: in a plan's file, and in a file of another program's plans
 * (library/rival.h). */
#ifndef WEFT_PLAN_PLACED_H
#define WEFT_PLAN_PLACED_H

#include "base/json/json_keys.h"
#include "plan/plan.h"

/* Keys of a placement. */
extern const struct weft_key_table weft_placement_keys;

/* Reads the members `strategies` and `placements` of an object into a plan that has its problem,
 * and links the chains of placements. WEFT_E_DATA names `source`. weft_placements_check checks the
 * rest. */
WEFT_MUST_USE enum weft_status weft_plan_read_placed(const struct weft_json_value *root,
                                                     const char *source, struct weft_plan *plan,
                                                     struct weft_error *err);

#endif
