/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of units, and modules of layers: names for other runtimes. A problem without them is the
 * same problem, so no hash and no comparison counts them. */
#ifndef WEFT_PROBLEM_UNIT_LAYERS_H
#define WEFT_PROBLEM_UNIT_LAYERS_H

#include "base/json/json.h"
#include "problem/problem.h"
#include "shard/shard.h"

/* The layers of a unit; NULL for a decision of a layer, or in a plan before there were any. */
const struct weft_unit_layers *weft_problem_unit_layers(const struct weft_problem *problem,
                                                        int32_t unit);

/* Whether a unit is of several layers that follow one another, and of no shared tensor. */
bool weft_problem_is_fused(const struct weft_problem *problem, int32_t unit);

/* Fills both for a problem of these shards. */
WEFT_MUST_USE enum weft_status weft_problem_name_layers(struct weft_problem *problem,
                                                        const struct weft_model *model,
                                                        const struct weft_shards *shards,
                                                        struct weft_error *err);

/* The members "layers" and "tied_layers" of a unit's decision, and "modules" of a problem. */
void weft_unit_layers_write(const struct weft_problem *problem, int32_t unit,
                            struct weft_json_writer *writer);
void weft_problem_write_modules(const struct weft_problem *problem,
                                struct weft_json_writer *writer);
/* WEFT_E_DATA names `where`. Absent members leave the problem without them. */
WEFT_MUST_USE enum weft_status weft_unit_layers_read(struct weft_problem *problem, int32_t unit,
                                                     const struct weft_json_value *object,
                                                     const char *where, struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_problem_read_modules(struct weft_problem *problem,
                                                         const struct weft_json_value *object,
                                                         const char *where, struct weft_error *err);

#endif
