/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files of Hugging Face: model.safetensors, or shards that model.safetensors.index.json
 * lists. A map (hub_map.h) gives their names, their places in a model's tensors and their
 * transpositions. */
#ifndef WEFT_RUNTIME_CHECKPOINT_HUB_FILES_H
#define WEFT_RUNTIME_CHECKPOINT_HUB_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/hub_map.h"
#include "runtime/checkpoint/safetensors.h"

struct weft_hub_files;

/* A tensor in its file. */
struct weft_hub_tensor {
    const struct weft_safetensors *file;
    const struct weft_safetensors_tensor *tensor; /* NULL: not there */
};

/* Whether the path is a folder with such files, or an index. */
bool weft_hub_files_are(const char *path);
/* Whether the names in a file are those of a family. */
bool weft_hub_files_have_names(const struct weft_safetensors *file);

/* Opens a folder, an index or a file for a model. WEFT_E_NO_INPUT for a missing shard; WEFT_E_DATA
 * if the index and the shards contradict each other, or for names of another family. Shapes are
 * not compared. */
WEFT_MUST_USE enum weft_status weft_hub_files_open(const char *path, const struct weft_model *model,
                                                   struct weft_hub_files **out,
                                                   struct weft_error *err);
void weft_hub_files_close(struct weft_hub_files *files); /* accepts NULL */

const struct weft_hub_map *weft_hub_files_map(const struct weft_hub_files *files);
/* The tensor of an entry of the map; NULL if the files lack it. */
const struct weft_safetensors_tensor *weft_hub_files_tensor(const struct weft_hub_files *files,
                                                            int32_t entry);

/* Appends the names of parameters that the family's class does not have, joined by ", ". */
void weft_hub_files_add_left_out(const struct weft_hub_files *files, struct weft_text *out);

/* Calls `visit` for each tensor that the map does not have. Buffers and heads that are left out are
 * skipped, and so is a copy of the token table as a tied head. WEFT_E_DATA if that head differs
 * from the table. */
typedef void weft_hub_files_visit(void *context, const char *name);
WEFT_MUST_USE enum weft_status weft_hub_files_rest(const struct weft_hub_files *files,
                                                   weft_hub_files_visit *visit, void *context,
                                                   struct weft_error *err);

/* Elements [first, first + count) of a tensor of the model, as fp32. All entries are there and have
 * their shapes. Parts of a transposed tensor are kept in memory between calls. */
WEFT_MUST_USE enum weft_status weft_hub_files_read(struct weft_hub_files *files, int32_t tensor,
                                                   int64_t first, int64_t count, float *out,
                                                   struct weft_error *err);

#endif
