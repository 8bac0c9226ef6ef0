/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/windows.h"

#include <string.h>

bool weft_hub_layer_types_fit(const struct weft_json_value *types, int64_t layers)
{
    const char *name;
    if (weft_json_kind(types) != WEFT_JSON_ARRAY || (int64_t)weft_json_count(types) != layers)
        return false;
    for (const struct weft_json_value *at = weft_json_first(types); at; at = weft_json_next(at))
        if (!weft_json_string(at, &name) ||
            (strcmp(name, WEFT_HUB_LOCAL) != 0 && strcmp(name, WEFT_HUB_GLOBAL) != 0))
            return false;
    return true;
}

bool weft_hub_layer_is_local(const struct weft_hub_windows *windows, int64_t layer)
{
    const char *name = "";
    if (windows->window == 0) return false;
    if (windows->types == NULL)
        return windows->pattern > 0 ? (layer + 1) % windows->pattern != 0 : layer >= windows->first;
    const struct weft_json_value *at = weft_json_first(windows->types);
    for (int64_t i = 0; i < layer && at != NULL; i++)
        at = weft_json_next(at);
    weft_json_string(at, &name);
    return strcmp(name, WEFT_HUB_LOCAL) == 0;
}

bool weft_hub_windows_differ(const struct weft_hub_windows *windows, int64_t layers)
{
    for (int64_t i = 1; i < layers; i++)
        if (weft_hub_layer_is_local(windows, i) != weft_hub_layer_is_local(windows, 0)) return true;
    return false;
}
