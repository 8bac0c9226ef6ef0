/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/layout.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json/json.h"
#include "runtime/checkpoint/safetensors.h"

enum { LENGTH_BYTES = 8, ELEMENT_BYTES = 4 };
#define NODE_SUFFIX ".node"

static const char *const file_names[WEFT_CHECKPOINT_FILES] = {"model.safetensors",
                                                              "optimizer.safetensors"};

static const char *const suffixes[WEFT_STATE_COUNT] = {
#define STATE_ROW(name, text) [WEFT_STATE_##name] = text,
    WEFT_STATE_MAP(STATE_ROW)
#undef STATE_ROW
};

const char *weft_layout_suffix(enum weft_state state)
{
    return suffixes[state];
}

size_t weft_layout_tensor_length(const char *name, size_t length)
{
    const size_t mark = sizeof NODE_SUFFIX - 1;
    for (int state = WEFT_STATE_PARAMETER + 1; state < WEFT_STATE_COUNT; state++) {
        const size_t after = strlen(suffixes[state]);
        if (length <= after || memcmp(name + length - after, suffixes[state], after) != 0) continue;
        length -= after;
        break;
    }
    size_t digits = 0;
    while (digits < length && isdigit((unsigned char)name[length - 1 - digits]))
        digits++;
    const bool of_node = digits > 0 && length > digits + mark &&
                         memcmp(name + length - digits - mark, NODE_SUFFIX, mark) == 0;
    return of_node ? length - digits - mark : length;
}

int64_t weft_checkpoint_chunks(int64_t bytes, int64_t chunk_bytes)
{
    return bytes / chunk_bytes + (bytes % chunk_bytes != 0);
}

int64_t weft_checkpoint_chunk_length(int64_t bytes, int64_t chunk_bytes, int64_t chunk)
{
    int64_t left = bytes - chunk * chunk_bytes;
    return left < chunk_bytes ? left : chunk_bytes;
}

static bool is_kept(const struct weft_tensor *tensor, int32_t state, uint32_t states)
{
    return state == WEFT_STATE_PARAMETER || (tensor->trainable && (states >> state & 1u) != 0);
}

static struct weft_layout_place *place_of(const struct weft_layout *layout, int32_t node,
                                          int32_t tensor, int32_t state)
{
    const int64_t row = (int64_t)node * layout->model->n_tensors + tensor;
    return &layout->places[row * WEFT_STATE_COUNT + state];
}

static enum weft_status add_entry(struct weft_layout *layout, int32_t node, int32_t tensor,
                                  int32_t state, struct weft_error *err)
{
    int32_t which = state == WEFT_STATE_PARAMETER && node == 0 ? 0 : 1;
    const struct weft_tensor *of = &layout->model->tensors[tensor];
    struct weft_layout_file *file = &layout->files[which];
    struct weft_layout_entry *entry = &file->entries[file->n_entries];
    entry->name = node == 0 ? weft_pool_format(&layout->pool, "%s%s", of->name, suffixes[state])
                            : weft_pool_format(&layout->pool, "%s" NODE_SUFFIX "%d%s", of->name,
                                               node, suffixes[state]);
    if (entry->name == NULL) return weft_fail_memory(err, "names of a checkpoint");
    entry->tensor = tensor;
    entry->node = node;
    entry->state = (enum weft_state)state;
    entry->begin = file->bytes;
    if (!weft_checked_mul(weft_state_elements(of, state), ELEMENT_BYTES, &entry->bytes) ||
        !weft_checked_add(file->bytes, entry->bytes, &file->bytes))
        return weft_fail(err, WEFT_E_DATA, "tensor %s is too large for a file", of->name);
    *place_of(layout, node, tensor, state) = (struct weft_layout_place){which, file->n_entries++};
    return WEFT_OK;
}

static void put_entry(struct weft_json_writer *writer, const struct weft_layout *layout,
                      const struct weft_layout_entry *entry, int64_t data_begin)
{
    const struct weft_layout_shape shape = weft_layout_shape_of(layout->model, entry);
    weft_json_key(writer, entry->name);
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "dtype", weft_tensor_type_name(WEFT_TENSOR_F32));
    weft_json_key(writer, "shape");
    weft_json_begin_array(writer);
    for (int32_t d = 0; d < shape.n_dims; d++)
        weft_json_add_integer(writer, shape.dims[d]);
    weft_json_end_array(writer);
    weft_json_key(writer, "data_offsets");
    weft_json_begin_array(writer);
    weft_json_add_integer(writer, entry->begin - data_begin);
    weft_json_add_integer(writer, entry->begin - data_begin + entry->bytes);
    weft_json_end_array(writer);
    weft_json_end_object(writer);
}

static void put_json(const struct weft_layout *layout, int32_t file, struct weft_text *out)
{
    const struct weft_layout_file *at = &layout->files[file];
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, out, 0);
    weft_json_begin_object(&writer);
    for (int32_t i = 0; i < at->n_entries; i++)
        put_entry(&writer, layout, &at->entries[i], at->header_bytes);
    weft_json_end_object(&writer);
}

/* Offsets within the data do not depend on the header's length, so the header is written first and
 * the data placed after it. */
static enum weft_status place_data(struct weft_layout *layout, int32_t file, struct weft_error *err)
{
    struct weft_layout_file *at = &layout->files[file];
    struct weft_text text;
    weft_text_init(&text);
    put_json(layout, file, &text);
    bool written = weft_text_ok(&text);
    int64_t length = (int64_t)text.length;
    weft_text_finish(&text);
    if (!written) return weft_fail_memory(err, "a checkpoint's header");
    if (!weft_checked_round_up(LENGTH_BYTES + length, WEFT_SAFETENSORS_ALIGN_BYTES,
                               &at->header_bytes) ||
        at->header_bytes > WEFT_SAFETENSORS_MOST_HEADER_BYTES ||
        !weft_checked_add(at->bytes, at->header_bytes, &at->bytes) ||
        weft_checkpoint_chunks(at->bytes, layout->chunk_bytes) > INT32_MAX)
        return weft_fail(err, WEFT_E_DATA, "the model has too many tensors for one file");
    for (int32_t i = 0; i < at->n_entries; i++)
        at->entries[i].begin += at->header_bytes;
    at->n_chunks = (int32_t)weft_checkpoint_chunks(at->bytes, layout->chunk_bytes);
    return WEFT_OK;
}

/* Finds a header that the reader refuses before training, and not when it is read. */
static enum weft_status read_back(const struct weft_layout *layout, int32_t file,
                                  struct weft_error *err)
{
    const struct weft_layout_file *at = &layout->files[file];
    struct weft_safetensors *header = NULL;
    struct weft_error why = {0};
    struct weft_text text;
    weft_text_init(&text);
    weft_layout_header(layout, file, &text);
    enum weft_status status = weft_text_ok(&text)
                                  ? weft_safetensors_parse(weft_text_chars(&text), text.length,
                                                           at->bytes, at->name, &header, &why)
                                  : weft_fail_memory(&why, "a checkpoint's header");
    weft_safetensors_destroy(header);
    weft_text_finish(&text);
    if (status != WEFT_E_DATA)
        return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", why.text);
    return weft_fail(err, status,
                     "checkpoints of this model could be written and not be read: %s. Give its "
                     "layers other names, or make it of fewer",
                     why.text);
}

static enum weft_status fill_files(struct weft_layout *layout, uint32_t states,
                                   struct weft_error *err)
{
    const struct weft_model *model = layout->model;
    size_t n = (size_t)layout->nodes * (size_t)model->n_tensors * WEFT_STATE_COUNT;
    layout->places = weft_pool_array(&layout->pool, n, sizeof *layout->places);
    if (layout->places == NULL) return weft_fail_memory(err, "a checkpoint's layout");
    for (size_t i = 0; i < n; i++)
        layout->places[i] = (struct weft_layout_place){-1, 0};
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        layout->files[f].name = file_names[f];
        layout->files[f].entries =
            weft_pool_array(&layout->pool, n, sizeof(struct weft_layout_entry));
        if (layout->files[f].entries == NULL) return weft_fail_memory(err, "a checkpoint's layout");
    }
    for (int32_t node = 0; node < layout->nodes; node++) {
        for (int32_t t = 0; t < model->n_tensors; t++) {
            for (int32_t state = 0; state < WEFT_STATE_COUNT; state++) {
                if (node > 0 && weft_layout_shares(model, t, (enum weft_state)state))
                    *place_of(layout, node, t, state) = *place_of(layout, 0, t, state);
                else if (is_kept(&model->tensors[t], state, states))
                    WEFT_TRY(add_entry(layout, node, t, state, err));
            }
        }
    }
    for (int32_t f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        WEFT_TRY(place_data(layout, f, err));
        WEFT_TRY(read_back(layout, f, err));
    }
    return WEFT_OK;
}

enum weft_status weft_layout_create(const struct weft_model *model, uint32_t states, int32_t nodes,
                                    int64_t chunk_bytes, struct weft_layout **out,
                                    struct weft_error *err)
{
    struct weft_layout *layout = calloc(1, sizeof *layout);
    if (layout == NULL) return weft_fail_memory(err, "a checkpoint's layout");
    layout->model = model;
    layout->chunk_bytes = chunk_bytes;
    layout->nodes = nodes;
    enum weft_status status = fill_files(layout, states, err);
    if (status != WEFT_OK) {
        weft_layout_destroy(layout);
        return status;
    }
    *out = layout;
    return WEFT_OK;
}

void weft_layout_destroy(struct weft_layout *layout)
{
    if (layout == NULL) return;
    weft_pool_finish(&layout->pool);
    free(layout);
}

const struct weft_layout_entry *weft_layout_find(const struct weft_layout *layout, int32_t tensor,
                                                 enum weft_state state, int32_t *file)
{
    const struct weft_layout_place *place = place_of(layout, layout->node, tensor, (int32_t)state);
    if (place->file < 0) return NULL;
    *file = place->file;
    return &layout->files[place->file].entries[place->entry];
}

void weft_layout_header(const struct weft_layout *layout, int32_t file, struct weft_text *out)
{
    const struct weft_layout_file *at = &layout->files[file];
    size_t begin = out->length;
    uint64_t length = (uint64_t)(at->header_bytes - LENGTH_BYTES);
    for (int i = 0; i < LENGTH_BYTES; i++)
        weft_text_append(out, &(char){(char)(length >> (8 * i) & 255)}, 1);
    put_json(layout, file, out);
    while (weft_text_ok(out) && out->length < begin + (size_t)at->header_bytes)
        weft_text_append(out, " ", 1);
}
