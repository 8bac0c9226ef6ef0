/* SPDX-License-Identifier: Apache-2.0 */
/* Names of modules in transformers, for the layers of a model of Hugging Face. */
#ifndef WEFT_SPEC_HUB_MODULES_H
#define WEFT_SPEC_HUB_MODULES_H

#include "base/text.h"
#include "spec/hub/families.h"
#include "spec/hub/tensors.h"

/* Appends the modules of a layer, each once: "model.layers.0" for block 0. */
void weft_hub_list_modules(const struct weft_hub_family *family, enum weft_hub_place place,
                           int32_t block, struct weft_text *out);

#endif
