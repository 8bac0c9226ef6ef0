/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks train together only with the same program file, libweft, config, plan and library of
 * products. Otherwise they get different bits, or hang. */
#ifndef WEFT_RUNTIME_TRAIN_IDENTITY_H
#define WEFT_RUNTIME_TRAIN_IDENTITY_H

#include "runtime/train/options.h"

/* Collective, before the first step. WEFT_E_DISAGREE names the ranks that differ from rank 0, and
 * the part that differs. */
WEFT_MUST_USE enum weft_status weft_identity_compare(const struct weft_train_options *options,
                                                     struct weft_error *err);

#endif
