/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the derivation of a walk, in order. */
#ifndef WEFT_LAYERS_RECIPE_DERIVE_H
#define WEFT_LAYERS_RECIPE_DERIVE_H

#include "layers/recipe/op.h"

/* steps.c: fills steps, values and tensors from the recipe, and checks them. */
enum weft_status weft_walk_add_steps(struct weft_walk *walk, struct weft_error *err);
/* saved.c: finds the values that backward reads, merges places, and places saved values. */
enum weft_status weft_walk_save(struct weft_walk *walk, struct weft_error *err);
/* The group of a saved value's place, as a bit: a step's statistics and first output, or the
 * activation of its product. A GPU's product may compute its activation with other bits than the
 * activation alone, so there both are one group. A level keeps or drops whole groups. */
uint64_t weft_walk_group(const struct weft_walk *walk, const struct weft_value *value);
/* True if a backward reads a value on the place. */
bool weft_walk_is_read(const struct weft_walk *walk, int32_t place);
/* Sets locations of places, and the steps that restore, for kept groups. Offsets stay. */
void weft_walk_drop(struct weft_walk *walk, uint64_t keeps);
/* Gives the walk a level that keeps the groups `keeps`, with offsets of all values. */
void weft_walk_keep(struct weft_walk *walk, enum weft_recompute level, uint64_t keeps);

/* levels.c: groups that each level keeps. `possible` has a bit for each level that the layer has:
 * none, and each selective, whole or derived level that keeps groups of its own. */
struct weft_walk_levels {
    uint64_t keeps[WEFT_RECOMPUTE_COUNT];
    unsigned possible;
};
struct weft_walk_levels weft_walk_levels(const struct weft_walk *walk);
/* Elements of parameters that the step's forward reads. */
double weft_step_weights(const struct weft_walk *walk, const struct weft_walk_step *step);

/* gradients.c: the way of each gradient, and backward's temporaries. */
enum weft_status weft_walk_add_gradients(struct weft_walk *walk, struct weft_error *err);

/* keys.c: the value of an integer or flag of the layer; false if its kind has no such key. */
bool weft_recipe_find_key(const struct weft_layer *layer, const char *name, size_t length,
                          int64_t *out);
/* Evaluates an expression for the layer; WEFT_E_DATA if it is wrong. An overflow is only noted. */
enum weft_status weft_walk_number(struct weft_walk *walk, int32_t step, const char *text,
                                  size_t length, int64_t *out, struct weft_error *err);
static inline struct weft_value *weft_walk_place(struct weft_walk *walk, int32_t value)
{
    return &walk->values[walk->values[value].place];
}
/* Bytes of a value, rounded up to the alignment of offsets. */
int64_t weft_walk_bytes(struct weft_walk *walk, const struct weft_value *value);

#endif
