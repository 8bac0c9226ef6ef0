/* SPDX-License-Identifier: Apache-2.0 */
/* A model as Hugging Face's config.json. */
#ifndef WEFT_LIBRARY_HUB_CONFIG_H
#define WEFT_LIBRARY_HUB_CONFIG_H

#include "base/status.h"
#include "base/text.h"
#include "spec/hub/families.h"
#include "spec/model.h"

/* Appends the config.json of a model of the family, for sequences of up to `positions` tokens.
 * `dtype` is the name of the tensors' type ("float32"). The caller checks that it reads back as the
 * same model: keys of layers that config.json cannot tell are left out. */
WEFT_MUST_USE enum weft_status weft_hub_config_write(const struct weft_model *model,
                                                     const struct weft_hub_family *family,
                                                     int64_t positions, const char *dtype,
                                                     struct weft_text *out, struct weft_error *err);

#endif
