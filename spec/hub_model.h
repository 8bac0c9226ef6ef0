/* Models of Hugging Face: their config.json as a model section. Only models that a layer kind
 * describes exactly are known. */
#ifndef WEFT_SPEC_HUB_MODEL_H
#define WEFT_SPEC_HUB_MODEL_H

#include "base/json/json.h"

/* True if the document has a key "model_type" and no "layers". */
bool weft_hub_model_is(const struct weft_json_value *root);

/* Replaces the document by the section that it stands for, with the document's source as its own.
 * WEFT_E_DATA names the key for a type that is not known, a missing key, and a value that no layer
 * kind describes. The document stays then. */
WEFT_MUST_USE enum weft_status weft_hub_model_convert(const char *source,
                                                      struct weft_json **document,
                                                      struct weft_error *err);

#endif
