/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a model's tensors as files of Hugging Face: model.safetensors, or shards with an index.
 * Tensors fill shards in the model's order. Within a file they stand in one fixed order, as the
 * safetensors library writes them: by type, wider ones first, and then by name. */
#ifndef WEFT_RUNTIME_CHECKPOINT_HUB_WRITE_H
#define WEFT_RUNTIME_CHECKPOINT_HUB_WRITE_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/checkpoint/hub_map.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/sink.h"

struct weft_hub_write {
    const char *directory; /* it exists, and has none of the files */
    const struct weft_sink *sink;
    const struct weft_hub_map *map;
    const enum weft_tensor_type *types; /* [map->n]: F32, F16 or BF16 */
    int64_t shard_bytes;                /* most bytes of tensors in a file, unless one is larger */
    /* Elements [first, first + count) of a tensor of the model. */
    enum weft_status (*read)(const void *context, int32_t tensor, int64_t first, int64_t count,
                             float *out, struct weft_error *err);
    const void *context;
};

struct weft_hub_written {
    int32_t n_files; /* of tensors */
    int64_t bytes;   /* of tensors */
};

/* Writes and syncs all files. WEFT_E_NUMERIC names an element that is not finite in its type;
 * WEFT_E_IO. Files are left on failure. */
WEFT_MUST_USE enum weft_status weft_hub_write(const struct weft_hub_write *options,
                                              struct weft_hub_written *out, struct weft_error *err);

#endif
