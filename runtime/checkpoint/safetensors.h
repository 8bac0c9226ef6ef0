/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors is a file of named tensors: a length N in 8 little-endian bytes, N bytes of JSON
 * header, and data. Readers treat a file as hostile. They check every rule of the format, and every
 * size against the file's length, before they allocate or use anything from it. */
#ifndef WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_H
#define WEFT_RUNTIME_CHECKPOINT_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/checkpoint/safetensors_header.h"

/* Opens `path` and checks its header. The handle keeps the file open until it is destroyed.
 * WEFT_E_NO_INPUT, WEFT_E_PERMISSION, WEFT_E_IO; WEFT_E_DATA names the file, and the tensor if
 * there is one. */
WEFT_MUST_USE enum weft_status weft_safetensors_open(const char *path,
                                                     struct weft_safetensors **out,
                                                     struct weft_error *err);
/* The same checks on the first `length` bytes of a file of `file_bytes`: the length field, and the
 * header or a part of it. */
WEFT_MUST_USE enum weft_status weft_safetensors_parse(const void *bytes, size_t length,
                                                      int64_t file_bytes, const char *path,
                                                      struct weft_safetensors **out,
                                                      struct weft_error *err);
void weft_safetensors_destroy(struct weft_safetensors *file);

/* Finds a tensor in logarithmic time; NULL if there is none of that name. */
const struct weft_safetensors_tensor *weft_safetensors_find(const struct weft_safetensors *file,
                                                            const char *name);

bool weft_safetensors_has_shape(const struct weft_safetensors_tensor *tensor, const int64_t *dims,
                                int32_t n_dims);
/* Appends the two shapes: " is [2, 3], the model's [3]". */
void weft_safetensors_put_shapes(const struct weft_safetensors_tensor *tensor, const int64_t *dims,
                                 int32_t n_dims, struct weft_text *out);

/* Reads `count` elements from element `first` on. WEFT_E_DATA if the file has become shorter since
 * it was opened; WEFT_E_IO. */
WEFT_MUST_USE enum weft_status weft_safetensors_read(const struct weft_safetensors *file,
                                                     const struct weft_safetensors_tensor *tensor,
                                                     int64_t first, int64_t count, void *out,
                                                     struct weft_error *err);
/* Reads bytes of the file from a byte offset on. */
WEFT_MUST_USE enum weft_status weft_safetensors_read_bytes(const struct weft_safetensors *file,
                                                           int64_t offset, int64_t bytes, void *out,
                                                           struct weft_error *err);
/* Reads elements of F32, F16 or BF16 as floats; WEFT_E_DATA for other types. */
WEFT_MUST_USE enum weft_status weft_safetensors_read_f32(
    const struct weft_safetensors *file, const struct weft_safetensors_tensor *tensor,
    int64_t first, int64_t count, float *out, struct weft_error *err);

#endif
