/* SPDX-License-Identifier: Apache-2.0 */
/* RMS normalisation. Backward reads the input. */
#include "layers/families/llama.h"

static const struct weft_field rms_norm_keys[] = {WEFT_ROW_HIDDEN, WEFT_ROW_EPS};

static const struct weft_recipe_step rms_norm_steps[] = {WEFT_STEP_RMS_NORM("x", "y", "weight")};
static const struct weft_recipe rms_norm_recipe = {WEFT_STEPS(rms_norm_steps),
                                                   .sizes = {{"hidden", "hidden"}}};

const struct weft_kind weft_kind_rms_norm = {
    .type = "rms_norm",
    .text = "RMS normalisation",
    WEFT_KEYS(rms_norm_keys),
    WEFT_RECIPE(rms_norm_recipe),
    .trains = true,
};
