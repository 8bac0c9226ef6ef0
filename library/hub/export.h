/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a checkpoint as a model of Hugging Face: config.json, generation_config.json, tensors,
 * and the files of the tokenizer if the model's source (source.h) has them. With a source its
 * config.json is copied byte for byte, and tensors have its names and types. Otherwise
 * config.json is made from the model, and tensors are F32. */
#ifndef WEFT_LIBRARY_HUB_EXPORT_H
#define WEFT_LIBRARY_HUB_EXPORT_H

#include <stdbool.h>

#include "base/numbers.h"
#include "base/status.h"
#include "runtime/checkpoint/hub_write.h"
#include "spec/config.h"

#define WEFT_HUB_SHARD_BYTES INT64_C(5000000000)

struct weft_hub_export {
    const char *checkpoint; /* RUN/checkpoints/step-N */
    const struct weft_config *config;
    const char *to; /* the folder, which does not exist yet */
    bool has_dtype;
    enum weft_dtype dtype; /* of all tensors, if has_dtype; otherwise as in the source */
    int64_t shard_bytes;
};

struct weft_hub_exported {
    const struct weft_hub_family *family;
    int32_t n_tensors;
    struct weft_hub_written written;
    struct weft_text source; /* folder that config.json is from, or ""; the caller finishes it */
};

/* WEFT_E_CREATE if `to` exists; WEFT_E_DATA for a model or a checkpoint that cannot be written;
 * WEFT_E_NUMERIC for a parameter that is not finite in its type; WEFT_E_IO. On failure nothing is
 * left at `to`. */
WEFT_MUST_USE enum weft_status weft_hub_export(const struct weft_hub_export *request,
                                               struct weft_hub_exported *out,
                                               struct weft_error *err);

#endif
