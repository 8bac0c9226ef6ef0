/* SPDX-License-Identifier: Apache-2.0 */
/* Ways: independent choices of the planner. A layer's ways are the location of its saved
 * activations, their recomputation, and the location of its input. An alternative is one value for
 * each way; the first way varies fastest. Names of alternatives are built here and looked up. */
#ifndef WEFT_SPEC_WAYS_H
#define WEFT_SPEC_WAYS_H

#include <stdbool.h>

#include "spec/tiers.h"

/* Levels of recomputation: the part of a layer's saved activations that forward drops and backward
 * restores. A level is an index of the layer's list of levels, and some layers lack some. Whole
 * drops all: only the layer's input is kept. Selective keeps results of products. Light, medium and
 * deep are derived from a recipe (layers/recipe/levels.c), each with fewer kept bytes. */
enum weft_recompute {
    WEFT_RECOMPUTE_NONE,
    WEFT_RECOMPUTE_LIGHT,
    WEFT_RECOMPUTE_SELECTIVE,
    WEFT_RECOMPUTE_MEDIUM,
    WEFT_RECOMPUTE_DEEP,
    WEFT_RECOMPUTE_WHOLE,
    WEFT_RECOMPUTE_COUNT,
    WEFT_RECOMPUTE_FIRST = WEFT_RECOMPUTE_NONE + 1 /* the first level that drops bytes */
};
/* "none", "light", "selective", "medium", "deep", "whole"; NULL at the end. */
extern const char *const weft_recompute_names[WEFT_RECOMPUTE_COUNT + 1];

struct weft_layer_choice {
    enum weft_location saved_location;
    enum weft_recompute recompute;
    enum weft_location
        input_location; /* between its forward and its backward: the device or the host */
};

/* The numbers of alternatives of a layer: with its input on the device, and of all. No config
 * allows all of them. */
enum {
    WEFT_SAVED_CHOICES = WEFT_LOCATION_COUNT * WEFT_RECOMPUTE_COUNT,
    WEFT_LAYER_CHOICES = 2 * WEFT_SAVED_CHOICES
};

/* The alternative of that number. False if it makes no sense: whole recomputation leaves nothing
 * saved to offload. */
bool weft_layer_choice_at(int number, struct weft_layer_choice *out);
int weft_layer_choice_number(struct weft_layer_choice choice);
/* "device", "host", "selective+host", "whole", "whole+host-input". Static. */
const char *weft_layer_choice_name(struct weft_layer_choice choice);
/* Looks a name up. False for any other text. */
bool weft_layer_choice_read(const char *name, struct weft_layer_choice *out);

#endif
