/* SPDX-License-Identifier: Apache-2.0 */
/* An origin gives a new run its first parameters: a checkpoint, or any safetensors file with the
 * model's tensors by name and shape in F32, F16 or BF16. Only parameters are read: no moments,
 * progress or settings. A checkpoint's parameters are its fp32 masters. */
#ifndef WEFT_RUNTIME_CHECKPOINT_ORIGIN_H
#define WEFT_RUNTIME_CHECKPOINT_ORIGIN_H

#include <stdint.h>

#include "base/status.h"
#include "runtime/checkpoint/manifest.h"
#include "spec/model.h"

struct weft_origin_file;

/* Finds the origin named by `from`: RUN/checkpoints/step-N, RUN for its latest checkpoint, or a
 * file. *path becomes absolute. WEFT_E_NO_INPUT if there is none. */
WEFT_MUST_USE enum weft_status weft_origin_find(const char *from, char path[WEFT_ORIGIN_PATH_BYTES],
                                                struct weft_error *err);

/* Opens a path from weft_origin_find for a model, which must outlive it. WEFT_E_DATA names tensors
 * that are missing, foreign, or of another shape or type. A checkpoint must also have a model of
 * the same function; a file does not record it. */
WEFT_MUST_USE enum weft_status weft_origin_open(const char *path, const struct weft_model *model,
                                                struct weft_origin_file **out,
                                                struct weft_error *err);
void weft_origin_close(struct weft_origin_file *file); /* accepts NULL */

/* Checks the CRCs of a part of a checkpoint's parameters; a file has no CRCs. */
WEFT_MUST_USE enum weft_status weft_origin_verify(const struct weft_origin_file *file, int64_t part,
                                                  int64_t parts, struct weft_error *err);
/* Warns if the model's function cannot be compared. */
void weft_origin_warn(const struct weft_origin_file *file);

/* Elements [first, first + count) of a tensor of the model, as fp32. */
WEFT_MUST_USE enum weft_status weft_origin_read(const struct weft_origin_file *file, int32_t tensor,
                                                int64_t first, int64_t count, float *out,
                                                struct weft_error *err);

#endif
