/* SPDX-License-Identifier: Apache-2.0 */
/* Models of Hugging Face: their config.json as a model section. Only models that a layer kind
 * describes are read. Each key that is set is used, told in a note, known to change nothing
 * (hub/families.h), or refused by its name, value and place. */
#ifndef WEFT_SPEC_HUB_MODEL_H
#define WEFT_SPEC_HUB_MODEL_H

#include "base/json/json.h"
#include "base/pool.h"
#include "spec/field.h"
#include "spec/hub/families.h"

/* Begins the note of keys for numbers that Weft's layers do not give. Weights are not imported with
 * such a note. */
#define WEFT_HUB_NUMBERS_NOTE "change numbers, but no memory and no time of a plan"

struct weft_model; /* model.h */

/* A config.json as a section. */
struct weft_hub_model {
    struct weft_json *section; /* {"layers": [...]} */
    /* Keys of the section and the user's keys in their place. */
    struct weft_findings_rename renames[3 * WEFT_HUB_SIZES];
    int32_t n_renames;
    const char *notes;       /* lines for the user, without a last newline; "": none */
    int64_t window;          /* longest sequence that attention sees whole; 0: any */
    const char *window_path; /* of the key in the user's file */
};

/* True if the document has a key "model_type" and no "layers". */
bool weft_hub_model_is(const struct weft_json_value *root);

/* Appends the path of a model's config.json: `given`, or the one in the folder `given`. */
void weft_hub_model_path(const char *given, struct weft_text *out);

/* Converts a document, read from `source`. The pool owns strings; the caller destroys out->section.
 * WEFT_E_DATA names the key and its place for a type that is not known, a key that cannot be, and a
 * value that no layer kind describes. */
WEFT_MUST_USE enum weft_status weft_hub_model_convert(const char *source,
                                                      const struct weft_json *document,
                                                      struct weft_pool *pool,
                                                      struct weft_hub_model *out,
                                                      struct weft_error *err);

/* Gives the layers of a converted model the names of their modules in transformers:
 * "model.layers.0". A family that can only be planned has none. */
WEFT_MUST_USE enum weft_status weft_hub_model_name_modules(const struct weft_json *document,
                                                           struct weft_model *model,
                                                           struct weft_error *err);

#endif
