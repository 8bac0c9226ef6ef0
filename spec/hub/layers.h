/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a family's models: layers before the blocks, any number of blocks, layers after the
 * blocks. Models of images have a product of patches and positions first, and a classifier last. */
#ifndef WEFT_SPEC_HUB_LAYERS_H
#define WEFT_SPEC_HUB_LAYERS_H

#include "base/json/json.h"
#include "spec/hub/families.h"
#include "spec/hub/tensors.h"

struct weft_hub_layers {
    int32_t n_before, n_after;
    enum weft_hub_place places[WEFT_HUB_PLACES]; /* before the blocks, then after them */
};

const struct weft_hub_layers *weft_hub_layers_of(const struct weft_hub_family *family);
/* The place of layer `index` of `n_layers`. */
enum weft_hub_place weft_hub_place_of(const struct weft_hub_family *family, int32_t index,
                                      int32_t n_layers);
/* The layer kind at a place, and the name of the layer. */
const char *weft_hub_kind_at(const struct weft_hub_family *family, enum weft_hub_place place);
const char *weft_hub_name_at(const struct weft_hub_family *family, enum weft_hub_place place);
/* The prefix of tensors' names at a place. */
const char *weft_hub_prefix_at(enum weft_hub_place place, const char *prefix);

/* Rows of a sample of a model of images of Hugging Face: its patches and the class token; 0: not
 * known, or another model. */
int64_t weft_hub_image_rows(const struct weft_json_value *root);
/* Longest sequence of a model of Hugging Face or Weft; 0: not known. */
int64_t weft_hub_positions(const struct weft_json_value *root);

#endif
