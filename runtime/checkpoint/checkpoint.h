/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint is everything that training resumes from: every tensor of the model and its
 * optimizer, whole and by name, and the progress. A reader trusts nothing in it. Missing, damaged
 * or foreign content is WEFT_E_DATA with file, tensor and chunk. */
#ifndef WEFT_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define WEFT_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/checkpoint/layout.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

struct weft_checkpoint {
    char *path; /* ".../step-N" */
    struct weft_manifest *manifest;
    struct weft_safetensors *files[WEFT_CHECKPOINT_FILES]; /* in order of the layout */
};

/* Path of the latest checkpoint in a directory; the caller frees it. NULL if there is none. An
 * incomplete latest one is an error when it is opened: an older one never replaces it. */
WEFT_MUST_USE enum weft_status weft_checkpoint_latest(const char *directory, char **path,
                                                      struct weft_error *err);

/* Reads manifest and headers, and checks them against each other. The chunks that hold headers are
 * checked by CRC; other data are not read. WEFT_E_NO_INPUT if the path does not exist, WEFT_E_DATA
 * for a dangling link. */
WEFT_MUST_USE enum weft_status weft_checkpoint_open(const char *path, struct weft_checkpoint **out,
                                                    struct weft_error *err);
void weft_checkpoint_close(struct weft_checkpoint *checkpoint);

/* WEFT_OK if the checkpoint has exactly the layout's parameters, no moments of foreign tensors, and
 * a model of the same function (function.h). Otherwise WEFT_E_DATA with the first five
 * differences. */
WEFT_MUST_USE enum weft_status weft_checkpoint_matches(const struct weft_checkpoint *checkpoint,
                                                       const struct weft_layout *layout,
                                                       struct weft_error *err);

/* Whether it has a tensor's state. The layout must match. */
bool weft_checkpoint_has(const struct weft_checkpoint *checkpoint, const struct weft_layout *layout,
                         int32_t tensor, enum weft_state state);
/* Appends one line per layer for moments that only the layout or only the checkpoint has: "h.1:
 * moments start at 0". *n_begun counts the layers with moments that start. Returns the number of
 * lines. */
int32_t weft_checkpoint_compare_moments(const struct weft_checkpoint *checkpoint,
                                        const struct weft_layout *layout, int32_t *n_begun,
                                        struct weft_text *out);

/* WEFT_E_DATA with the first five differences if its model has another function. Tensors are not
 * compared. */
WEFT_MUST_USE enum weft_status weft_checkpoint_has_function(
    const struct weft_checkpoint *checkpoint, const struct weft_model *model,
    struct weft_error *err);

/* Warns if the checkpoint is too old to record its model's function. */
void weft_checkpoint_warn(const struct weft_checkpoint *checkpoint);

/* Reads every chunk c with c % parts == part and checks its CRC. WEFT_E_DATA if one differs. */
WEFT_MUST_USE enum weft_status weft_checkpoint_verify(const struct weft_checkpoint *checkpoint,
                                                      int64_t part, int64_t parts,
                                                      struct weft_error *err);
/* The same for parameters only. */
WEFT_MUST_USE enum weft_status weft_checkpoint_verify_parameters(
    const struct weft_checkpoint *checkpoint, int64_t part, int64_t parts, struct weft_error *err);

/* Reads elements [first, first + count) of a tensor's state as fp32. The layout must match. */
WEFT_MUST_USE enum weft_status weft_checkpoint_read(const struct weft_checkpoint *checkpoint,
                                                    const struct weft_layout *layout,
                                                    int32_t tensor, enum weft_state state,
                                                    int64_t first, int64_t count, float *out,
                                                    struct weft_error *err);

#endif
