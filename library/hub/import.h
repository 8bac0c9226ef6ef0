/* SPDX-License-Identifier: Apache-2.0 */
/* Imports a model of Hugging Face as a run with one checkpoint, of step 0, that nothing has
 * trained: RUN/config.json, RUN/checkpoints/step-0 with parameters alone, and RUN/hub (source.h).
 * Other verbs take it as any run. */
#ifndef WEFT_LIBRARY_HUB_IMPORT_H
#define WEFT_LIBRARY_HUB_IMPORT_H

#include "base/status.h"
#include "spec/config.h"

struct weft_hub_import {
    const char *from;             /* a folder with config.json and its tensors */
    const char *to;               /* the run, which does not exist yet */
    const char *const *overrides; /* of the run's config */
    int32_t n_overrides;
};

/* *config describes the model, also to tell its notes; the caller destroys it. WEFT_E_DATA names
 * the key or the tensors that Weft cannot read; WEFT_E_CREATE if `to` exists; WEFT_E_IO. On failure
 * nothing is left at `to`. */
WEFT_MUST_USE enum weft_status weft_hub_import(const struct weft_hub_import *request,
                                               struct weft_config **config, struct weft_error *err);

#endif
