/* A checkpoint is all that training goes on from: every tensor of the model and of its optimizer,
 * whole and by name, and where training stood. Reading one trusts nothing in it: what is missing,
 * damaged or of another model is WEFT_E_DATA with file, tensor and chunk. */
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
    struct weft_safetensors *files[WEFT_CHECKPOINT_FILES]; /* as in the layout */
};

/* Path of the latest checkpoint of a directory (malloc'd, the caller frees), NULL when it has none.
 * Whether that one is whole is found out by opening it: an older one is never taken instead. */
WEFT_MUST_USE enum weft_status weft_checkpoint_latest(const char *directory, char **path,
                                                      struct weft_error *err);

/* Manifest and headers, checked against each other and the chunks that hold headers against their
 * CRCs; other data are not read. WEFT_E_NO_INPUT when nothing
 * is there; a link to nothing is WEFT_E_DATA. */
WEFT_MUST_USE enum weft_status weft_checkpoint_open(const char *path, struct weft_checkpoint **out,
                                                    struct weft_error *err);
void weft_checkpoint_close(struct weft_checkpoint *checkpoint);

/* WEFT_OK when it has exactly the parameters of the layout, moments of its tensors alone, and is of
 * a model of the same function (function.h); else WEFT_E_DATA with the first five differences. */
WEFT_MUST_USE enum weft_status weft_checkpoint_matches(const struct weft_checkpoint *checkpoint,
                                                       const struct weft_layout *layout,
                                                       struct weft_error *err);

/* Whether it has a tensor's state; of a layout that matches. */
bool weft_checkpoint_has(const struct weft_checkpoint *checkpoint, const struct weft_layout *layout,
                         int32_t tensor, enum weft_state state);
/* Appends a line a layer for moments that the layout has and the checkpoint has not, or the other
 * way round: "h.1: moments start at 0". Counts layers of the first sort in *n_begun; returns how
 * many lines there are. */
int32_t weft_checkpoint_compare_moments(const struct weft_checkpoint *checkpoint,
                                        const struct weft_layout *layout, int32_t *n_begun,
                                        struct weft_text *out);

/* WEFT_E_DATA with the first five differences when it is of a model of another function. Tensors
 * are not compared. */
WEFT_MUST_USE enum weft_status weft_checkpoint_has_function(
    const struct weft_checkpoint *checkpoint, const struct weft_model *model,
    struct weft_error *err);

/* Warns where the checkpoint is too old to tell its model's function. */
void weft_checkpoint_warn(const struct weft_checkpoint *checkpoint);

/* Reads every chunk c with c % parts == part and compares CRCs. */
WEFT_MUST_USE enum weft_status weft_checkpoint_verify(const struct weft_checkpoint *checkpoint,
                                                      int64_t part, int64_t parts,
                                                      struct weft_error *err);
/* The same of the parameters alone. */
WEFT_MUST_USE enum weft_status weft_checkpoint_verify_parameters(
    const struct weft_checkpoint *checkpoint, int64_t part, int64_t parts, struct weft_error *err);

/* Elements [first, first + count) of a tensor of a model whose layout matches. */
WEFT_MUST_USE enum weft_status weft_checkpoint_read(const struct weft_checkpoint *checkpoint,
                                                    const struct weft_layout *layout,
                                                    int32_t tensor, enum weft_state state,
                                                    int64_t first, int64_t count, float *out,
                                                    struct weft_error *err);

#endif
