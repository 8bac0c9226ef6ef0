/* Models of Hugging Face: their config.json as a model section. Only models that a layer kind
 * describes exactly are known. */
#ifndef WEFT_SPEC_HUB_MODEL_H
#define WEFT_SPEC_HUB_MODEL_H

#include "base/json/json.h"

/* The types of models, for messages. */
#define WEFT_HUB_TYPES "gpt2, llama, mistral, mixtral and qwen2"

/* True if the document has a key "model_type" and no "layers". */
bool weft_hub_model_is(const struct weft_json_value *root);

/* Replaces the document by the section that it stands for, with the document's source as its own.
 * WEFT_E_DATA names the key for a type that is not known, a missing key, and a value that no layer
 * kind describes. The document stays then. */
WEFT_MUST_USE enum weft_status weft_hub_model_convert(const char *source,
                                                      struct weft_json **document,
                                                      struct weft_error *err);

/* Appends a run's config without its model, for an estimate of the model in this file: one rank,
 * one sample of 2048 tokens or of the model's most positions, bf16, AdamW and clipping.
 * WEFT_E_NO_INPUT, or WEFT_E_DATA for a file without a "model_type". */
WEFT_MUST_USE enum weft_status weft_hub_model_run(const char *path, struct weft_text *out,
                                                  struct weft_error *err);

#endif
