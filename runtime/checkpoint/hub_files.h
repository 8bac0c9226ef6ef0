/* Tensors in files of Hugging Face: model.safetensors, or shards that model.safetensors.index.json
 * lists. A tensor is found by Weft's name; a table gives each family's names and transpositions.
 * GPT-2's files are read, and the names of some other families are known, to be refused. */
#ifndef WEFT_RUNTIME_CHECKPOINT_HUB_FILES_H
#define WEFT_RUNTIME_CHECKPOINT_HUB_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/checkpoint/safetensors.h"

struct weft_hub_files;

/* A tensor in its file. A transposed one has the rows of Weft's as its columns. */
struct weft_hub_tensor {
    const struct weft_safetensors *file;
    const struct weft_safetensors_tensor *tensor; /* NULL: not there */
    bool transposed;
};

/* Whether the path is a folder with such files, or an index. */
bool weft_hub_files_are(const char *path);
/* Whether the names in a file are those of a family. */
bool weft_hub_files_have_names(const struct weft_safetensors *file);

/* Opens a folder, an index or a file. WEFT_E_NO_INPUT for a missing shard; WEFT_E_DATA if the index
 * and the shards contradict each other, or for names of a family that is not read. */
WEFT_MUST_USE enum weft_status weft_hub_files_open(const char *path, struct weft_hub_files **out,
                                                   struct weft_error *err);
void weft_hub_files_close(struct weft_hub_files *files); /* accepts NULL */

/* Finds a tensor by Weft's name. */
struct weft_hub_tensor weft_hub_files_find(const struct weft_hub_files *files, const char *name);

/* Calls `visit` for each tensor that no name in `own` [n] finds. Masks are skipped, and so is a
 * copy of the token table as a tied head. WEFT_E_DATA if that head differs from the table. */
typedef void weft_hub_files_visit(void *context, const char *name);
WEFT_MUST_USE enum weft_status weft_hub_files_rest(const struct weft_hub_files *files,
                                                   const char *const *own, int32_t n,
                                                   weft_hub_files_visit *visit, void *context,
                                                   struct weft_error *err);

/* Elements [first, first + count) in Weft's order, as fp32. */
WEFT_MUST_USE enum weft_status weft_hub_tensor_read(const struct weft_hub_tensor *tensor,
                                                    int64_t first, int64_t count, float *out,
                                                    struct weft_error *err);

#endif
