/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of a model of Hugging Face that are local: their attention has a sliding window. Other
 * layers see all earlier tokens. */
#ifndef WEFT_SPEC_HUB_WINDOWS_H
#define WEFT_SPEC_HUB_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json.h"

#define WEFT_HUB_LAYER_TYPES "layer_types"
#define WEFT_HUB_LOCAL       "sliding_attention"
#define WEFT_HUB_GLOBAL      "full_attention"

struct weft_hub_windows {
    int64_t window;                      /* of local layers; 0: none is local */
    int64_t first;                       /* the first local layer, without the members below */
    int64_t pattern;                     /* each so many layers the last is not local; 0: no rule */
    const struct weft_json_value *types; /* a name a layer, instead of the rules; or NULL */
};

/* True if "layer_types" has one of the two names for each of `layers` layers. */
bool weft_hub_layer_types_fit(const struct weft_json_value *types, int64_t layers);
bool weft_hub_layer_is_local(const struct weft_hub_windows *windows, int64_t layer);
/* True if some of the layers are local and some are not. */
bool weft_hub_windows_differ(const struct weft_hub_windows *windows, int64_t layers);

#endif
