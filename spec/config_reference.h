/* SPDX-License-Identifier: Apache-2.0 */
/* Texts generated from the field tables, so that they match the decoder: the schema, the key
 * reference, and the list of keys. */
#ifndef WEFT_SPEC_CONFIG_REFERENCE_H
#define WEFT_SPEC_CONFIG_REFERENCE_H

#include "base/status.h"
#include "base/text.h"

/* JSON Schema (draft-07) of "config", "model" or "cluster"; WEFT_E_USAGE lists these for another
 * kind. */
WEFT_MUST_USE enum weft_status weft_config_schema(const char *kind, struct weft_text *out,
                                                  struct weft_error *err);
/* The key reference in Markdown, from the same tables. */
void weft_config_reference(struct weft_text *out);

/* Visits every key, such as "train.optimizer.lr" or "model.layers[].hidden", with one line:
 * meaning, form of the value, and default. */
typedef void weft_config_key_fn(void *context, const char *path, const char *text);
void weft_config_visit_keys(weft_config_key_fn *visit, void *context);

#endif
