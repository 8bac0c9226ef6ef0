/* SPDX-License-Identifier: Apache-2.0 */
#include "library/hub/config.h"

#include <math.h>
#include <string.h>

#include "base/json/json.h"
#include "spec/config.h"
#include "spec/hub/layers.h"
#include "spec/hub/windows.h"

/* A model's layers, as they stand in a config of Weft. */
struct hub_writing {
    const struct weft_hub_family *family;
    const struct weft_json_value *embedding, *block, *norm, *head;
    const struct weft_json_value *second; /* token types or positions, if the family has them */
    const struct weft_json_value *local;  /* the first block with a window; NULL: none */
    const struct weft_json_value *first;  /* the first block */
    int64_t first_local;
    int64_t n_blocks, positions;
    struct weft_json_writer *writer;
};

/* The value of a key of the block, the norm or the head; NULL if none has it. */
static const struct weft_json_value *find_value(const struct hub_writing *w, const char *key)
{
    const struct weft_json_value *value = weft_json_member(w->block, key);
    /* Left out, it is the size of a head. */
    if (value == NULL && strcmp(key, "query_scalar") == 0) key = "head_dim";
    if (value == NULL) value = weft_json_member(w->block, key);
    if (value == NULL) value = weft_json_member(w->norm, key);
    return value != NULL ? value : weft_json_member(w->head, key);
}

/* The size of an image of square patches, of one at least; 0 for other sizes. */
static int64_t image_size_of(const struct hub_writing *w, enum weft_hub_size size)
{
    int64_t patch = 1, inputs = 0, positions = 1, classes = 0;
    if (!w->family->images) return 0;
    weft_json_integer(weft_json_member(w->embedding, "patch"), &patch);
    weft_json_integer(weft_json_member(w->embedding, "hidden"), &inputs);
    weft_json_integer(weft_json_member(w->second, "positions"), &positions);
    weft_json_integer(weft_json_member(w->head, "classes"), &classes);
    if (size == WEFT_HUB_PATCH) return patch;
    if (size == WEFT_HUB_CHANNELS) return inputs / (patch * patch);
    if (size == WEFT_HUB_IMAGE)
        return positions > 1 ? (int64_t)sqrt((double)(positions - 1)) * patch : patch;
    return size == WEFT_HUB_CLASSES ? classes : 0;
}

static void put_sizes(const struct hub_writing *w)
{
    for (int i = 0; i < WEFT_HUB_SIZES; i++) {
        const struct weft_hub_size_key *size = &w->family->sizes[i];
        const char *own = weft_hub_block_keys[i];
        if (size->key == NULL) continue;
        weft_json_key(w->writer, size->key);
        if (image_size_of(w, i) > 0)
            weft_json_add_integer(w->writer, image_size_of(w, i));
        else if (i == WEFT_HUB_LAYERS)
            weft_json_add_integer(w->writer, w->n_blocks);
        else if (i == WEFT_HUB_TOKEN_TYPES)
            weft_json_add_value(w->writer, weft_json_member(w->second, "types"));
        else if (i == WEFT_HUB_VOCAB || i == WEFT_HUB_POSITIONS)
            weft_json_add_value(
                w->writer,
                weft_json_member(w->embedding, i == WEFT_HUB_VOCAB ? "vocab" : "positions"));
        else
            weft_json_add_value(w->writer, weft_json_member(w->block, own));
    }
    if (w->family->sizes[WEFT_HUB_POSITIONS].key == NULL && !w->family->images)
        weft_json_put_integer(w->writer, "max_position_embeddings", w->positions);
}

/* The first of a key's usual values, which stand for Weft's computation. */
static enum weft_status put_usual(const struct hub_writing *w, const struct weft_hub_key *row,
                                  struct weft_error *err)
{
    struct weft_json *document = NULL;
    WEFT_TRY(weft_json_parse(row->usual, strcspn(row->usual, "|"), row->key, &document, err));
    if (weft_json_kind(weft_json_root(document)) != WEFT_JSON_NULL) {
        weft_json_key(w->writer, row->key);
        weft_json_add_value(w->writer, weft_json_root(document));
    }
    weft_json_destroy(document);
    return WEFT_OK;
}

/* Writes a value of the model. transformers refuses a whole number for a bound of logits. */
static void put_value(const struct hub_writing *w, const char *key,
                      const struct weft_json_value *value)
{
    double number;
    weft_json_key(w->writer, key);
    weft_json_add_value(w->writer, value);
    if (strstr(key, "softcapping") != NULL && weft_json_number(value, &number) &&
        number == floor(number) && number < 1e9)
        weft_text_add(w->writer->text, ".0");
}

static enum weft_status put_keys(const struct hub_writing *w, struct weft_error *err)
{
    for (const struct weft_hub_key *row = w->family->keys; row->key != NULL; row++) {
        const struct weft_json_value *value = row->to != NULL ? find_value(w, row->to) : NULL;
        if (value != NULL) {
            put_value(w, row->key, value);
        } else if (row->to != NULL && strcmp(row->to, "eps") == 0) {
            weft_json_put_number(w->writer, row->key, 1e-5); /* of a layer norm that gives none */
        } else if (row->to != NULL && row->missing != NULL) {
            weft_json_key(w->writer, row->key);
            weft_json_add_null(w->writer);
        } else if (row->to == NULL && row->change != WEFT_HUB_NOTHING) {
            WEFT_TRY(put_usual(w, row, err));
        }
    }
    return WEFT_OK;
}

static void put_rope(const struct hub_writing *w)
{
    double factor = 0;
    if (!weft_json_number(weft_json_member(w->block, "rope_factor"), &factor) || factor == 0)
        return;
    weft_json_key(w->writer, "rope_scaling");
    weft_json_begin_object(w->writer);
    weft_json_put_string(w->writer, "rope_type", "llama3");
    for (int i = 1; i < WEFT_HUB_ROPE_MEMBERS; i++) {
        weft_json_key(w->writer, weft_hub_rope_members[i].member);
        weft_json_add_value(w->writer, weft_json_member(w->block, weft_hub_rope_members[i].to));
    }
    weft_json_end_object(w->writer);
}

static int64_t window_of(const struct weft_json_value *block)
{
    int64_t window = 0;
    weft_json_integer(weft_json_member(block, "window"), &window);
    return window;
}

/* The type of each layer, where a family has a pattern. */
static void put_types(const struct hub_writing *w)
{
    const struct weft_json_value *block = w->first;
    weft_json_key(w->writer, WEFT_HUB_LAYER_TYPES);
    weft_json_begin_array(w->writer);
    for (int64_t i = 0; i < w->n_blocks; i++, block = weft_json_next(block))
        weft_json_add_string(w->writer, window_of(block) > 0 ? WEFT_HUB_LOCAL : WEFT_HUB_GLOBAL);
    weft_json_end_array(w->writer);
}

/* With a flag the window begins at some layer. */
static void put_window(const struct hub_writing *w)
{
    const struct weft_hub_family *family = w->family;
    const int64_t window = window_of(w->local);
    if (family->window == NULL) return;
    if (family->pattern > 0) put_types(w);
    if (family->local_base != NULL && w->local != NULL) {
        weft_json_key(w->writer, family->local_base);
        weft_json_add_value(w->writer, weft_json_member(w->local, "rope_base"));
    }
    weft_json_key(w->writer, family->window);
    if (window > 0)
        weft_json_add_integer(w->writer, window);
    else
        weft_json_add_null(w->writer);
    if (family->window_flag == NULL) return;
    weft_json_put_bool(w->writer, family->window_flag, window > 0);
    if (window > 0) weft_json_put_integer(w->writer, "max_window_layers", w->first_local);
}

static enum weft_status write_config(const struct hub_writing *w, const char *dtype,
                                     struct weft_error *err)
{
    /* Defaults of transformers may be beyond the vocabulary. */
    static const char *const tokens[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    const char *tie = NULL;
    weft_json_begin_object(w->writer);
    weft_json_put_string(w->writer, "model_type", w->family->type);
    weft_json_key(w->writer, "architectures");
    weft_json_begin_array(w->writer);
    weft_json_add_string(w->writer, w->family->architecture);
    weft_json_end_array(w->writer);
    put_sizes(w);
    WEFT_TRY(put_keys(w, err));
    put_rope(w);
    put_window(w);
    if (!w->family->images)
        weft_json_put_bool(w->writer, "tie_word_embeddings",
                           weft_json_string(weft_json_member(w->head, "tie"), &tie));
    weft_json_put_string(w->writer, "dtype", dtype);
    weft_json_put_string(w->writer, "torch_dtype", dtype);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens && !w->family->images; i++) {
        weft_json_key(w->writer, tokens[i]);
        weft_json_add_null(w->writer);
    }
    weft_json_end_object(w->writer);
    return WEFT_OK;
}

/* Keys are those of the first block without a window, if there is one. */
static void take_block(struct hub_writing *w, int64_t index, const struct weft_json_value *block)
{
    if (window_of(block) == 0) {
        if (window_of(w->block) > 0) w->block = block;
        return;
    }
    if (w->local == NULL) {
        w->local = block;
        w->first_local = index;
    }
}

enum weft_status weft_hub_config_write(const struct weft_model *model,
                                       const struct weft_hub_family *family, int64_t positions,
                                       const char *dtype, struct weft_text *out,
                                       struct weft_error *err)
{
    struct weft_json *document = NULL;
    struct weft_json_writer writer;
    struct weft_text layers;
    weft_text_init(&layers);
    weft_json_writer_init(&writer, &layers, 0);
    weft_layers_encode(model, &writer);
    enum weft_status status = weft_text_ok(&layers) ? WEFT_OK : weft_fail_memory(err, "a model");
    if (status == WEFT_OK)
        status = weft_json_parse(weft_text_chars(&layers), layers.length, "layers", &document, err);
    weft_text_finish(&layers);
    if (status != WEFT_OK) return status;
    weft_json_writer_init(&writer, out, 2);
    const struct weft_hub_layers *layers_of = weft_hub_layers_of(family);
    const int32_t first = layers_of->n_before;
    struct hub_writing w = {.family = family,
                            .n_blocks = model->n_layers - layers_of->n_before - layers_of->n_after,
                            .positions = positions,
                            .writer = &writer};
    int32_t i = 0;
    for (const struct weft_json_value *layer = weft_json_first(weft_json_root(document)); layer;
         layer = weft_json_next(layer), i++) {
        if (i == 0) w.embedding = layer;
        if (i == 1 && first > 1) w.second = layer;
        if (i == first) w.first = w.block = layer;
        if (i >= first && i < model->n_layers - layers_of->n_after)
            take_block(&w, i - first, layer);
        if (i == model->n_layers - 2) w.norm = layer;
        if (i == model->n_layers - 1) w.head = layer;
    }
    status = write_config(&w, dtype, err);
    weft_text_add(out, "\n");
    weft_json_destroy(document);
    if (status == WEFT_OK && !weft_text_ok(out)) status = weft_fail_memory(err, "a config.json");
    return status;
}
