/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of supplied layers: backward must be the derivative of forward, and both must write all
 * their outputs and nothing more. Runs in f32 on random numbers, on one rank. */
#ifndef WEFT_LIBRARY_CHECK_LAYERS_H
#define WEFT_LIBRARY_CHECK_LAYERS_H

#include "base/status.h"
#include "spec/config.h"

/* Checks every layer of a supplied kind, and equal layers once. weft_check_layers in include/weft.h
 * describes the checks and the errors. */
WEFT_MUST_USE enum weft_status weft_config_check_layers(const struct weft_config *config,
                                                        struct weft_error *err);

#endif
