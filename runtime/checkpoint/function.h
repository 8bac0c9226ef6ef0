/* SPDX-License-Identifier: Apache-2.0 */
/* A model's function is its computation: the layers in order, with their types and every key that
 * their forward depends on. Shapes do not determine it: 2 heads and 8 have the same tensors, and an
 * activation has none. Its text is a JSON array with one object per layer. A layer has its name
 * there only if tensors are found by it. */
#ifndef WEFT_RUNTIME_CHECKPOINT_FUNCTION_H
#define WEFT_RUNTIME_CHECKPOINT_FUNCTION_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"
#include "spec/model.h"

/* Appends a model's function on one line. Equal texts are equal functions. */
void weft_function_write(const struct weft_model *model, struct weft_text *out);

/* The same without names of layers, for tensors that are found by the places of their layers. */
void weft_function_write_nameless(const struct weft_model *model, struct weft_text *out);

/* WEFT_E_DATA naming `path` if the value has not the form of weft_function_write. */
WEFT_MUST_USE enum weft_status weft_function_check(const struct weft_json_value *list,
                                                   const char *path, struct weft_error *err);

/* Appends the first `most` differences between a model's function and an earlier one, like "h.0:
 * heads is 8, and was 2; ...". Returns their number, at most most + 1. */
int32_t weft_function_compare(const char *now, const char *before, int32_t most,
                              struct weft_text *out);

#endif
