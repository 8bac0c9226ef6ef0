/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/hub_map.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "spec/hub/layers.h"
#include "spec/kind.h"

/* Families of a model */

static bool is_at(const struct weft_layer *layer, const struct weft_hub_family *family,
                  enum weft_hub_place place)
{
    return strcmp(weft_layer_type_of(layer), weft_hub_kind_at(family, place)) == 0;
}

/* The layer's own key of that name: its bytes; NULL if the kind has none. */
static const char *find_key(const struct weft_layer *layer, const char *name)
{
    const struct weft_field *key = weft_kind_key(layer->kind, name);
    return key != NULL ? (const char *)layer + key->offset : NULL;
}

static bool has_window(const struct weft_layer *block)
{
    const char *window = find_key(block, "window");
    return window != NULL && *(const int64_t *)(const void *)window > 0;
}

/* Blocks of one kind belong to several families: by the flag of one, and by the window. */
static bool suits_block(const struct weft_hub_family *family, const struct weft_layer *block)
{
    static const char *const flags[] = {"qkv_bias", "post_norm"};
    if (!is_at(block, family, WEFT_HUB_IN_BLOCK)) return false;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const char *flag = find_key(block, flags[i]);
        const bool of_family =
            family->block_flag != NULL && strcmp(family->block_flag, flags[i]) == 0;
        if (flag != NULL && *(const bool *)(const void *)flag != of_family) return false;
    }
    return !has_window(block) || family->window != NULL;
}

enum weft_status weft_hub_family_of(const struct weft_model *model,
                                    const struct weft_hub_family **out, struct weft_error *err)
{
    const struct weft_hub_family *family = NULL;
    for (int32_t i = 0; (family = weft_hub_family_at(i)) != NULL; i++) {
        const int32_t first = weft_hub_layers_of(family)->n_before;
        const int32_t block = model->n_layers > first + 1 ? first : 0;
        if (family->rows != NULL && suits_block(family, &model->layers[block])) break;
    }
    if (family == NULL)
        return weft_layer_refuse(err, &model->layers[model->n_layers > 2 ? 1 : 0],
                                 "no family of Hugging Face that Weft reads and writes has such "
                                 "layers; these are " WEFT_HUB_TRAINED_TYPES);
    *out = family;
    return WEFT_OK;
}

/* Maps */

/* Whether the name fits the pattern, in which "{i}" stands for digits. */
static bool fits_pattern(const char *name, const char *pattern)
{
    while (*pattern != '\0') {
        if (strncmp(pattern, "{i}", 3) == 0) {
            if (!isdigit((unsigned char)*name)) return false;
            while (isdigit((unsigned char)*name))
                name++;
            pattern += 3;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    return *name == '\0';
}

static char *fill_pattern(struct weft_hub_map *map, const struct weft_hub_row *row, int32_t number)
{
    const char *prefix = weft_hub_prefix_at(row->place, map->prefix);
    const char *at = strstr(row->hub, "{i}");
    if (at == NULL) return weft_pool_format(&map->pool, "%s%s", prefix, row->hub);
    return weft_pool_format(&map->pool, "%s%.*s%d%s", prefix, (int)(at - row->hub), row->hub,
                            (int)number, at + 3);
}

static const struct weft_hub_row *find_row(const struct weft_hub_family *family,
                                           enum weft_hub_place place, const char *own)
{
    for (const struct weft_hub_row *row = family->rows; row->hub != NULL; row++)
        if (row->place == place && row->own != NULL && strcmp(row->own, own) == 0) return row;
    return NULL;
}

/* The next tensor of the files: `rows` rows of the model's tensor from element `first` on. */
struct hub_piece {
    const struct weft_layer *layer;
    enum weft_hub_place place;
    int32_t number, tensor;
    const char *own;
    int64_t first, rows;
};

/* Sets the dimensions that an entry has in the files. */
static enum weft_status set_dims(const struct hub_piece *piece, const struct weft_hub_row *row,
                                 const struct weft_tensor *tensor, struct weft_hub_entry *out,
                                 struct weft_error *err)
{
    const int64_t rows = piece->rows, columns = tensor->dims[1];
    const char *patch = find_key(piece->layer, "patch");
    const int64_t side = patch != NULL ? *(const int64_t *)(const void *)patch : 0;
    out->n_dims = tensor->n_dims;
    out->dims[0] = rows, out->dims[1] = columns;
    switch (row->form) {
    case WEFT_HUB_AS_IS:
    case WEFT_HUB_LEFT_OUT:
        break;
    case WEFT_HUB_TRANSPOSED:
        out->dims[0] = columns, out->dims[1] = rows;
        break;
    case WEFT_HUB_BATCHED:
        out->n_dims = 3;
        out->dims[0] = 1;
        out->dims[1] = tensor->n_dims > 1 ? rows : 1;
        out->dims[2] = tensor->n_dims > 1 ? columns : rows;
        break;
    case WEFT_HUB_PATCHES:
        if (side < 1)
            return weft_layer_refuse(err, piece->layer,
                                     "files of a model of images have its weight by channels and "
                                     "pixels: give it \"patch\", the pixels of a patch's side");
        out->n_dims = 4;
        out->dims[1] = columns / (side * side);
        out->dims[2] = out->dims[3] = side;
        break;
    }
    return WEFT_OK;
}

static enum weft_status add_entry(struct weft_hub_map *map, const struct weft_model *model,
                                  const struct hub_piece *piece, struct weft_error *err)
{
    const struct weft_hub_row *row = find_row(map->family, piece->place, piece->own);
    const struct weft_tensor *tensor = &model->tensors[piece->tensor];
    const int64_t columns = tensor->dims[1];
    struct weft_hub_entry *out = &map->entries[map->n];
    if (row == NULL)
        return weft_layer_refuse(err, piece->layer,
                                 "files of %s have no tensor for its %s: leave it out of the model",
                                 map->family->type, piece->own);
    *out = (struct weft_hub_entry){.name = fill_pattern(map, row, piece->number),
                                   .tensor = piece->tensor,
                                   .first = piece->first,
                                   .elements = piece->rows * columns,
                                   .transposed = row->form == WEFT_HUB_TRANSPOSED};
    WEFT_TRY(set_dims(piece, row, tensor, out, err));
    map->n++;
    return out->name != NULL ? WEFT_OK : weft_fail_memory(err, "names of tensors");
}

/* Adds the layer's tensor `index`: whole if the files have it so, otherwise its parts. */
static enum weft_status add_tensor(struct weft_hub_map *map, const struct weft_model *model,
                                   struct hub_piece *piece, int32_t index, struct weft_error *err)
{
    const struct weft_layer *layer = piece->layer;
    struct weft_tensor_part parts[WEFT_PARTS];
    int32_t n = 0;
    piece->tensor = layer->tensors[index];
    if (layer->kind->parts != NULL) WEFT_TRY(layer->kind->parts(layer, index, parts, &n, err));
    const struct weft_tensor *tensor = &model->tensors[piece->tensor];
    piece->own = tensor->name + strlen(layer->name) + 1;
    piece->first = 0;
    piece->rows = tensor->dims[0];
    map->begins[piece->tensor] = map->n;
    if (find_row(map->family, piece->place, piece->own) != NULL) n = 0; /* whole in the files */
    for (int32_t p = 0; p < n; p++) {
        piece->own = parts[p].name;
        piece->rows = parts[p].rows;
        WEFT_TRY(add_entry(map, model, piece, err));
        piece->first += piece->rows * tensor->dims[1];
    }
    return n > 0 ? WEFT_OK : add_entry(map, model, piece, err);
}

static enum weft_status fill_map(struct weft_hub_map *map, const struct weft_model *model,
                                 struct weft_error *err)
{
    const size_t most = (size_t)model->n_tensors * WEFT_PARTS;
    map->entries = weft_pool_array(&map->pool, most, sizeof *map->entries);
    map->begins = weft_pool_array(&map->pool, (size_t)model->n_tensors + 1, sizeof *map->begins);
    if (map->entries == NULL || map->begins == NULL)
        return weft_fail_memory(err, "names of tensors");
    for (int32_t i = 0; i < model->n_layers; i++) {
        struct hub_piece piece = {.layer = &model->layers[i],
                                  .place = weft_hub_place_of(map->family, i, model->n_layers),
                                  .number = i - weft_hub_layers_of(map->family)->n_before};
        if (!is_at(piece.layer, map->family, piece.place))
            return weft_layer_refuse(err, piece.layer,
                                     "it is layer %d of %d, where a model of %s has one of type %s",
                                     (int)i, (int)model->n_layers, map->family->type,
                                     weft_hub_kind_at(map->family, piece.place));
        for (int32_t k = 0; k < piece.layer->n_tensors; k++)
            if (model->tensors[piece.layer->tensors[k]].layer == i) /* no tied one */
                WEFT_TRY(add_tensor(map, model, &piece, k, err));
    }
    map->begins[model->n_tensors] = map->n;
    return WEFT_OK;
}

enum weft_status weft_hub_map_create(const struct weft_model *model,
                                     const struct weft_hub_family *family, bool prefixed,
                                     struct weft_hub_map **out, struct weft_error *err)
{
    struct weft_hub_map *map = calloc(1, sizeof *map);
    if (map == NULL) return weft_fail_memory(err, "names of tensors");
    map->family = family;
    map->prefix = prefixed ? family->prefix : "";
    const enum weft_status status = fill_map(map, model, err);
    if (status == WEFT_OK)
        *out = map;
    else
        weft_hub_map_destroy(map);
    return status;
}

void weft_hub_map_destroy(struct weft_hub_map *map)
{
    if (map == NULL) return;
    weft_pool_finish(&map->pool);
    free(map);
}

/* The row of a tensor that no model reads, or NULL. */
static const struct weft_hub_row *find_unread(const struct weft_hub_map *map, const char *name)
{
    for (const struct weft_hub_row *row = map->family->rows; row->hub != NULL; row++) {
        const char *prefix = weft_hub_prefix_at(row->place, map->prefix);
        const size_t length = strlen(prefix);
        if (row->own == NULL && strncmp(name, prefix, length) == 0 &&
            fits_pattern(name + length, row->hub))
            return row;
    }
    return NULL;
}

bool weft_hub_is_unread(const struct weft_hub_map *map, const char *name)
{
    return find_unread(map, name) != NULL;
}

bool weft_hub_is_left_out(const struct weft_hub_map *map, const char *name)
{
    const struct weft_hub_row *row = find_unread(map, name);
    return row != NULL && row->form == WEFT_HUB_LEFT_OUT;
}

const char *weft_hub_old_name(struct weft_pool *pool, const char *name)
{
    static const char *const ends[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                          {"LayerNorm.bias", "LayerNorm.beta"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t length = strlen(name), end = strlen(ends[i][0]);
        if (length >= end && strcmp(name + length - end, ends[i][0]) == 0)
            return weft_pool_format(pool, "%.*s%s", (int)(length - end), name, ends[i][1]);
    }
    return NULL;
}

const char *weft_hub_table_name(const struct weft_hub_family *family)
{
    return family->rows[0].hub;
}

const char *weft_hub_head_name(const struct weft_hub_family *family)
{
    return find_row(family, WEFT_HUB_IN_HEAD, "weight")->hub;
}
