/* SPDX-License-Identifier: Apache-2.0 */
/* RMS normalisation that multiplies by 1 + weight. Backward reads the input. */
#include "layers/families/gemma.h"

static const struct weft_field gemma_norm_keys[] = {WEFT_ROW_HIDDEN, WEFT_ROW_EPS};

static const struct weft_recipe_step gemma_norm_steps[] = {
    WEFT_STEP_GEMMA_NORM("x", "y", "weight")};
static const struct weft_recipe gemma_norm_recipe = {WEFT_STEPS(gemma_norm_steps),
                                                     .sizes = {{"hidden", "hidden"}}};

const struct weft_kind weft_kind_gemma_norm = {
    .type = "gemma_norm",
    .text = "RMS normalisation by 1 + weight, as in Gemma",
    WEFT_KEYS(gemma_norm_keys),
    WEFT_RECIPE(gemma_norm_recipe),
    .trains = true,
};
