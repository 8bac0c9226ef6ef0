/* SPDX-License-Identifier: Apache-2.0 */
/* The files of Hugging Face that a model came from: config.json, generation_config.json and those
 * of the tokenizer or of the preparation of images. An import keeps them in RUN/hub, with the types
 * and names of the tensors. */
#ifndef WEFT_LIBRARY_HUB_SOURCE_H
#define WEFT_LIBRARY_HUB_SOURCE_H

#include <stdbool.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/hub_files.h"
#include "runtime/checkpoint/safetensors.h"
#include "spec/config.h"

#define WEFT_HUB_CONFIG_NAME     "config.json"
#define WEFT_HUB_GENERATION_NAME "generation_config.json"
#define WEFT_HUB_TENSORS_NAME    "tensors.json" /* of RUN/hub */

struct weft_hub_source {
    struct weft_text folder; /* "": not known, or of another model */
    const struct weft_hub_family *family;
};

/* Whether the folder has a file of that name. */
bool weft_hub_source_has(const char *folder, const char *name);
/* Copies the files that are in folder `from` to `to`; config.json only if `config`. */
WEFT_MUST_USE enum weft_status weft_hub_source_copy(const char *from, const char *to, bool config,
                                                    struct weft_error *err);
/* Writes names and types of the map's tensors as tensors.json. */
WEFT_MUST_USE enum weft_status weft_hub_source_keep(const struct weft_hub_files *files,
                                                    const char *folder, struct weft_error *err);

/* Finds the source of a checkpoint (RUN/checkpoints/step-N): RUN/hub, or the model that the run
 * began with, over any number of runs. A source of a model with another function than the config's
 * is not taken, with a warning. The caller finishes it, also on failure. */
WEFT_MUST_USE enum weft_status weft_hub_source_find(const char *checkpoint,
                                                    const struct weft_config *config,
                                                    struct weft_hub_source *out,
                                                    struct weft_error *err);
void weft_hub_source_finish(struct weft_hub_source *source);

/* Keeps the source of a run that begins with `from`, a checkpoint or files of Hugging Face, as
 * RUN/hub: its small files, and names and types of tensors. So an export needs no other path. A
 * folder of an earlier run at this place is replaced, and any other folder of that name stays.
 * `from` NULL, or without a source of the model's function: RUN gets none. A source that cannot be
 * copied costs a warning. */
WEFT_MUST_USE enum weft_status weft_hub_source_take(const char *from,
                                                    const struct weft_model *model, const char *run,
                                                    struct weft_error *err);

/* The map of the source's names, and its types [map->n], which the caller frees. Without a source:
 * the family's names, and F32. */
WEFT_MUST_USE enum weft_status weft_hub_source_map(const struct weft_hub_source *source,
                                                   const struct weft_model *model,
                                                   struct weft_hub_map **map,
                                                   enum weft_tensor_type **types,
                                                   struct weft_error *err);

#endif
