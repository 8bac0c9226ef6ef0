/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models of Hugging Face or Weft that have no config: the keys next to a model. */
#ifndef WEFT_SPEC_RUN_HUB_RUN_H
#define WEFT_SPEC_RUN_HUB_RUN_H

#include "base/text.h"
#include "spec/config.h"

/* Appends a run's config without its model, for a model of Hugging Face or Weft in this file or
 * folder: one rank, one sample of 2048 tokens, of the model's most positions or of an image, bf16,
 * AdamW and clipping. WEFT_E_NO_INPUT, or WEFT_E_DATA for another file. */
WEFT_MUST_USE enum weft_status weft_hub_run_write(const char *path, struct weft_text *out,
                                                  struct weft_error *err);

/* Reads the model at `path`, a config.json or its folder, into a config of weft_hub_run_write.
 * `overrides` [n] may be NULL. The caller destroys it. Errors of weft_hub_model_convert. */
WEFT_MUST_USE enum weft_status weft_hub_run_load(const char *path, const char *const *overrides,
                                                 int32_t n, struct weft_config **out,
                                                 struct weft_error *err);

#endif
