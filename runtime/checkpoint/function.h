/* A model's function is what it computes of its tensors: its layers in order, each with its type
 * and every key that its forward depends on. Shapes do not tell it: 2 heads and 8 have the same
 * tensors, and an activation has none. As text it is a JSON array, an object a layer, in which a
 * layer has its name only if tensors are found by it. */
#ifndef WEFT_RUNTIME_CHECKPOINT_FUNCTION_H
#define WEFT_RUNTIME_CHECKPOINT_FUNCTION_H

#include <stdint.h>

#include "base/json/json.h"
#include "base/text.h"
#include "spec/model.h"

/* Appends the function of a model on one line: equal texts, equal functions. */
void weft_function_write(const struct weft_model *model, struct weft_text *out);

/* WEFT_E_DATA naming `path` when the value is none that weft_function_write gives. */
WEFT_MUST_USE enum weft_status weft_function_check(const struct weft_json_value *list,
                                                   const char *path, struct weft_error *err);

/* Appends the first `most` differences between the function of a model and another one,
 * "h.0: heads is 8, and was 2; ..."; returns how many there are, or most + 1 when there are more.
 */
int32_t weft_function_compare(const char *now, const char *before, int32_t most,
                              struct weft_text *out);

#endif
