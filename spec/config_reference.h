/* What is generated from the field tables for people and their tools, so that it cannot differ from
 * what the decoder does: the schema, the reference of keys, and the keys themselves. */
#ifndef WEFT_SPEC_CONFIG_REFERENCE_H
#define WEFT_SPEC_CONFIG_REFERENCE_H

#include "base/status.h"
#include "base/text.h"

/* JSON Schema (draft-07) of "config", "model", "cluster"; WEFT_E_USAGE for another kind, naming
 * those that there are. */
WEFT_MUST_USE enum weft_status weft_config_schema(const char *kind, struct weft_text *out,
                                                  struct weft_error *err);
/* The key reference in Markdown, from the same tables. */
void weft_config_reference(struct weft_text *out);

/* Visits every key, "train.optimizer.lr" or "model.layers[].hidden", with one line on what it is,
 * what its value looks like, and what it is when it is not given. */
typedef void weft_config_key_fn(void *context, const char *path, const char *text);
void weft_config_visit_keys(weft_config_key_fn *visit, void *context);

#endif
