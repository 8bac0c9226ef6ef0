/* SPDX-License-Identifier: Apache-2.0 */
/* A layout gives the place of every tensor of a model and its optimizer in a checkpoint's files. It
 * depends on the model alone: whole tensors by name, in the model's order. Units, blocks, policies
 * and ranks do not matter. Nodes that step on their own have a state each: the tensors of node N
 * after the first are "NAME.nodeN", with the moments. The first node has what all share. */
#ifndef WEFT_RUNTIME_CHECKPOINT_LAYOUT_H
#define WEFT_RUNTIME_CHECKPOINT_LAYOUT_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "spec/model.h"

/* Each chunk of a file has a CRC; the last chunk may be shorter. Runs save with this size, and read
 * any size within the limits. */
#define WEFT_CHECKPOINT_CHUNK_BYTES       (INT64_C(8) << 20)
#define WEFT_CHECKPOINT_LEAST_CHUNK_BYTES INT64_C(256)
#define WEFT_CHECKPOINT_MOST_CHUNK_BYTES  (INT64_C(1) << 30)

enum { WEFT_CHECKPOINT_FILES = 2 };

struct weft_layout_entry {
    const char *name; /* in the file */
    int32_t tensor;   /* index in the model */
    enum weft_state state;
    int32_t node;
    int64_t begin; /* byte offset in the file */
    int64_t bytes;
};

struct weft_layout_file {
    const char *name;     /* "model.safetensors": parameters; "optimizer.safetensors": moments, and
                             all of nodes after the first */
    int64_t header_bytes; /* of the header, a multiple of 4096 */
    int64_t bytes;
    int32_t n_chunks;
    int32_t n_entries;
    struct weft_layout_entry *entries; /* by offset */
};

struct weft_layout {
    struct weft_pool pool;
    const struct weft_model *model; /* must outlive the layout */
    int64_t chunk_bytes;
    int32_t nodes; /* that step on their own; 1: none */
    int32_t node;  /* weft_layout_find gives this node's entries; 0 unless the caller sets it */
    struct weft_layout_file files[WEFT_CHECKPOINT_FILES];
    struct weft_layout_place {
        int32_t file, entry; /* file -1: not stored (moments of frozen tensors) */
    } * places;              /* [nodes * n_tensors * WEFT_STATE_COUNT] */
};

/* Makes the layout of parameters and of the states of trained tensors (a bit for each enum
 * weft_state) on `nodes` nodes, with chunks of `chunk_bytes`. WEFT_E_DATA if the reader
 * (safetensors.h) would refuse one of its headers. */
WEFT_MUST_USE enum weft_status weft_layout_create(const struct weft_model *model, uint32_t states,
                                                  int32_t nodes, int64_t chunk_bytes,
                                                  struct weft_layout **out, struct weft_error *err);
void weft_layout_destroy(struct weft_layout *layout);

/* The entry of a tensor's state; NULL if it is not stored. */
const struct weft_layout_entry *weft_layout_find(const struct weft_layout *layout, int32_t tensor,
                                                 enum weft_state state, int32_t *file);

/* Shape of an entry: of its tensor, or one number. */
struct weft_layout_shape {
    const int64_t *dims;
    int32_t n_dims;
};
static inline struct weft_layout_shape weft_layout_shape_of(const struct weft_model *model,
                                                            const struct weft_layout_entry *entry)
{
    static const int64_t one = 1;
    const struct weft_tensor *tensor = &model->tensors[entry->tensor];
    if (entry->state == WEFT_STATE_MEAN2) return (struct weft_layout_shape){&one, 1};
    return (struct weft_layout_shape){tensor->dims, tensor->n_dims};
}

/* Whether all nodes have the same: frozen tensors, and states that averages alone change. */
static inline bool weft_layout_shares(const struct weft_model *model, int32_t tensor,
                                      enum weft_state state)
{
    return !model->tensors[tensor].trainable || state == WEFT_STATE_ANCHOR ||
           state == WEFT_STATE_OUTER;
}

/* Length of an entry's name without its state's suffix and its node: of the tensor's name. */
size_t weft_layout_tensor_length(const char *name, size_t length);

/* Suffix of a state's name in the files: "", ".moment1", ".moment2", ".mean2", ".pending". */
const char *weft_layout_suffix(enum weft_state state);

/* Appends a file's first header_bytes. */
void weft_layout_header(const struct weft_layout *layout, int32_t file, struct weft_text *out);

/* Number of chunks in a file of `bytes`, and length of chunk number `chunk`. */
int64_t weft_checkpoint_chunks(int64_t bytes, int64_t chunk_bytes);
int64_t weft_checkpoint_chunk_length(int64_t bytes, int64_t chunk_bytes, int64_t chunk);

#endif
