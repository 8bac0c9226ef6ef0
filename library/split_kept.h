/* SPDX-License-Identifier: Apache-2.0 */
/* The split of a batch and the order of micro-steps that a resumed run keeps. */
#ifndef WEFT_LIBRARY_SPLIT_KEPT_H
#define WEFT_LIBRARY_SPLIT_KEPT_H

#include "runtime/checkpoint/manifest.h"
#include "spec/config.h"

/* Plans only the split and rounds of the checkpoint, as far as the config leaves them open. With
 * another number of ranks, the batch and its groups stay, so the bits do. Logs a split that is
 * kept, or cannot be. A zero split is not known. */
WEFT_MUST_USE enum weft_status weft_split_keep(const struct weft_manifest_split *split,
                                               struct weft_config *config, struct weft_error *err);

#endif
