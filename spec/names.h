/* SPDX-License-Identifier: Apache-2.0 */
/* Names identify layers and tensors in checkpoints and in initial values. So they are unique in a
 * model, also with the suffixes of files. */
#ifndef WEFT_SPEC_NAMES_H
#define WEFT_SPEC_NAMES_H

#include "spec/model.h"

/* True if a layer or tensor may have the name: at most `most_bytes` letters, digits, "_", "-" and
 * ".". Names go into paths, so ".." is refused. A "." at an end is refused too, because dots join
 * names. */
bool weft_name_is_good(const char *name, size_t most_bytes);

/* A sentence that says why Weft has no such method, and what it has in its place; NULL for a name
 * that is none of them. These methods change results, or let them depend on timing. */
const char *weft_name_refused(const char *name);

/* WEFT_E_DATA when two layers of the model have one name. */
WEFT_MUST_USE enum weft_status weft_names_check_layers(const struct weft_model *model,
                                                       struct weft_error *err);
/* WEFT_E_DATA, naming both layers, when two tensors have one name, or one has the name of another's
 * moments. */
WEFT_MUST_USE enum weft_status weft_names_check_tensors(const struct weft_model *model,
                                                        struct weft_error *err);

#endif
