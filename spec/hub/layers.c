/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/hub/layers.h"

const struct weft_hub_layers *weft_hub_layers_of(const struct weft_hub_family *family)
{
    static const struct weft_hub_layers usual = {
        1, 2, {WEFT_HUB_IN_EMBEDDING, WEFT_HUB_IN_NORM, WEFT_HUB_IN_HEAD}};
    static const struct weft_hub_layers masked = {
        3,
        4,
        {WEFT_HUB_IN_EMBEDDING, WEFT_HUB_IN_TYPES, WEFT_HUB_IN_EMBEDDING_NORM, WEFT_HUB_IN_DENSE,
         WEFT_HUB_IN_ACTIVATION, WEFT_HUB_IN_HEAD_NORM, WEFT_HUB_IN_HEAD}};
    static const struct weft_hub_layers images = {
        2, 2, {WEFT_HUB_IN_EMBEDDING, WEFT_HUB_IN_POSITIONS, WEFT_HUB_IN_NORM, WEFT_HUB_IN_HEAD}};
    if (family->images) return &images;
    return family->masked ? &masked : &usual;
}

enum weft_hub_place weft_hub_place_of(const struct weft_hub_family *family, int32_t index,
                                      int32_t n_layers)
{
    const struct weft_hub_layers *layers = weft_hub_layers_of(family);
    const int32_t after = index - (n_layers - layers->n_after);
    if (after >= 0) return layers->places[layers->n_before + after];
    return index < layers->n_before ? layers->places[index] : WEFT_HUB_IN_BLOCK;
}

const char *weft_hub_kind_at(const struct weft_hub_family *family, enum weft_hub_place place)
{
    const char *const kinds[WEFT_HUB_PLACES] = {
        [WEFT_HUB_IN_EMBEDDING] = family->images ? "linear" : "embedding",
        [WEFT_HUB_IN_TYPES] = "token_types",
        [WEFT_HUB_IN_POSITIONS] = "positions",
        [WEFT_HUB_IN_EMBEDDING_NORM] = family->norm,
        [WEFT_HUB_IN_BLOCK] = family->block,
        [WEFT_HUB_IN_NORM] = family->norm,
        [WEFT_HUB_IN_HEAD] = family->images ? "classifier" : "lm_head",
        [WEFT_HUB_IN_DENSE] = "linear",
        [WEFT_HUB_IN_ACTIVATION] = "gelu",
        [WEFT_HUB_IN_HEAD_NORM] = family->norm};
    return kinds[place];
}

const char *weft_hub_name_at(const struct weft_hub_family *family, enum weft_hub_place place)
{
    const char *const names[WEFT_HUB_PLACES] = {[WEFT_HUB_IN_EMBEDDING] = family->embed_name,
                                                [WEFT_HUB_IN_TYPES] = "token_types",
                                                [WEFT_HUB_IN_POSITIONS] = "positions",
                                                [WEFT_HUB_IN_EMBEDDING_NORM] = "ln_e",
                                                [WEFT_HUB_IN_BLOCK] = family->block_name,
                                                [WEFT_HUB_IN_NORM] = family->norm_name,
                                                [WEFT_HUB_IN_HEAD] = "head",
                                                [WEFT_HUB_IN_DENSE] = "transform",
                                                [WEFT_HUB_IN_ACTIVATION] = "gelu",
                                                [WEFT_HUB_IN_HEAD_NORM] = family->norm_name};
    return names[place];
}

const char *weft_hub_prefix_at(enum weft_hub_place place, const char *prefix)
{
    return place >= WEFT_HUB_IN_HEAD ? "" : prefix;
}

/* A size of the family in the file, or its default. */
static int64_t size_of(const struct weft_hub_family *family, const struct weft_json_value *root,
                       enum weft_hub_size size)
{
    int64_t value = family->sizes[size].missing;
    weft_json_integer(weft_json_member(root, family->sizes[size].key), &value);
    return value;
}

int64_t weft_hub_image_rows(const struct weft_json_value *root)
{
    enum { MOST_SIDE = 4096 };
    const char *type = "";
    weft_json_string(weft_json_member(root, "model_type"), &type);
    const struct weft_hub_family *family = weft_hub_family_find(type);
    if (family == NULL || !family->images) return 0;
    const int64_t image = size_of(family, root, WEFT_HUB_IMAGE);
    const int64_t patch = size_of(family, root, WEFT_HUB_PATCH);
    const int64_t side = patch > 0 ? image / patch : 0;
    return 0 < side && side <= MOST_SIDE ? side * side + 1 : 0;
}

int64_t weft_hub_positions(const struct weft_json_value *root)
{
    static const char *const keys[] = {"n_positions", "max_position_embeddings"};
    const struct weft_json_value *layers = weft_json_member(root, "layers");
    const char *type = "";
    int64_t positions = 0;
    if (layers != NULL && weft_json_first(layers) != NULL)
        weft_json_integer(weft_json_member(weft_json_first(layers), "positions"), &positions);
    weft_json_string(weft_json_member(root, "model_type"), &type);
    const struct weft_hub_family *family = weft_hub_family_find(type);
    if (family != NULL) positions = family->sizes[WEFT_HUB_POSITIONS].missing;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (weft_json_integer(weft_json_member(root, keys[i]), &positions)) return positions;
    return positions;
}
