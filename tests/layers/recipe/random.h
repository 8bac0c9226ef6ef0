/* SPDX-License-Identifier: Apache-2.0 */
/* Random recipes: chains of parts that layers are made of, each valid by itself. Some are refused
 * as a whole, because parts meet in ways that no kernel has. */
#ifndef WEFT_TESTS_LAYERS_RECIPE_RANDOM_H
#define WEFT_TESTS_LAYERS_RECIPE_RANDOM_H

#include "layers/recipe/recipe.h"

enum { RANDOM_TEXT = 24, RANDOM_TEXTS = 256 };

/* A layer of a random kind. Its texts and tables are in it, so it stays where it was made. */
struct random_recipe {
    uint64_t seed, drawn;
    int32_t n_texts;
    char texts[RANDOM_TEXTS][RANDOM_TEXT];
    struct weft_recipe_step steps[WEFT_RECIPE_STEPS];
    struct weft_recipe recipe;
    struct weft_kind kind;
    struct weft_layer layer;
};

/* Makes the recipe of a seed: of 1 to 31 steps that keep the width, from 4 to 24 columns. */
void random_recipe_make(struct random_recipe *out, uint64_t seed);
/* Changes one step, so that the recipe is most often wrong. */
void random_recipe_spoil(struct random_recipe *recipe);

#endif
