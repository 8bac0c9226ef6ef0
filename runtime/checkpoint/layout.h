/* A layout says where every tensor of a model and of its optimizer stands in a checkpoint's files.
 * It follows from the model alone: whole tensors by name, in the model's order, with no trace of
 * units, blocks, policies or ranks. */
#ifndef WEFT_RUNTIME_CHECKPOINT_LAYOUT_H
#define WEFT_RUNTIME_CHECKPOINT_LAYOUT_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "spec/model.h"

/* CRCs are of chunks of a file; the last one may be shorter. Runs save with this size; another one
 * within the limits is read as well. */
#define WEFT_CHECKPOINT_CHUNK_BYTES       (INT64_C(8) << 20)
#define WEFT_CHECKPOINT_LEAST_CHUNK_BYTES INT64_C(256)
#define WEFT_CHECKPOINT_MOST_CHUNK_BYTES  (INT64_C(1) << 30)

enum { WEFT_CHECKPOINT_FILES = 2 };

struct weft_layout_entry {
    const char *name; /* in the file */
    int32_t tensor;   /* of the model */
    enum weft_state state;
    int64_t begin; /* bytes, in the file */
    int64_t bytes;
};

struct weft_layout_file {
    const char *name;     /* "model.safetensors": parameters; "optimizer.safetensors": moments */
    int64_t header_bytes; /* before the first tensor, a multiple of 4096 */
    int64_t bytes;
    int32_t n_chunks;
    int32_t n_entries;
    struct weft_layout_entry *entries; /* by offset */
};

struct weft_layout {
    struct weft_pool pool;
    const struct weft_model *model; /* must outlive the layout */
    int64_t chunk_bytes;
    struct weft_layout_file files[WEFT_CHECKPOINT_FILES];
    struct weft_layout_place {
        int32_t file, entry; /* file -1: not kept (moments of frozen tensors) */
    } * places;              /* [n_tensors * WEFT_STATE_COUNT] */
};

/* For an optimizer of 0 to 2 moments, with CRCs of chunks of `chunk_bytes`. WEFT_E_DATA when the
 * reader (safetensors.h) would refuse a header of it: nothing is written that could not be read. */
WEFT_MUST_USE enum weft_status weft_layout_create(const struct weft_model *model, int32_t n_moments,
                                                  int64_t chunk_bytes, struct weft_layout **out,
                                                  struct weft_error *err);
void weft_layout_destroy(struct weft_layout *layout);

/* The place of a tensor's state; NULL where none is kept. */
const struct weft_layout_entry *weft_layout_find(const struct weft_layout *layout, int32_t tensor,
                                                 enum weft_state state, int32_t *file);

/* The end of a state's name in the files: "", ".moment1", ".moment2". */
const char *weft_layout_suffix(enum weft_state state);

/* Appends the first header_bytes of a file. */
void weft_layout_header(const struct weft_layout *layout, int32_t file, struct weft_text *out);

/* How many chunks of `chunk_bytes` a file of `bytes` has, and how long number `chunk` is. */
int64_t weft_checkpoint_chunks(int64_t bytes, int64_t chunk_bytes);
int64_t weft_checkpoint_chunk_length(int64_t bytes, int64_t chunk_bytes, int64_t chunk);

#endif
