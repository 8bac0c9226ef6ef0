/* SPDX-License-Identifier: Apache-2.0 */
/* Precision: the dtypes of compute, reduction and accumulation, and for f16 the loss scale. The
 * scale multiplies the loss, so that small gradients do not become 0. It changes only after all
 * ranks have agreed on a step's gradients, so it is the same on all ranks. */
#ifndef WEFT_RUNTIME_EXEC_PRECISION_H
#define WEFT_RUNTIME_EXEC_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "spec/config.h"

/* WEFT_E_DATA for dtypes that the executor cannot train with. The message names settings that
 * work. */
WEFT_MUST_USE enum weft_status weft_precision_check(const struct weft_config *config,
                                                    struct weft_error *err);

/* WEFT_E_DATA for an optimizer that the device lacks; weft_precision_check includes it. */
WEFT_MUST_USE enum weft_status weft_precision_check_update(const struct weft_config *config,
                                                           struct weft_error *err);

#define WEFT_LOSS_SCALE_MOST 0x1p24

struct weft_loss_scale {
    double scale;       /* of the next backward: a power of two up to the most; 1 unless f16 */
    int64_t good_steps; /* in a row with this scale */
};

/* The scale at a run's start. */
struct weft_loss_scale weft_loss_scale_first(const struct weft_train *train);

/* Adapts the scale after a step with finite gradients or not. Returns false if they were not finite
 * and a smaller scale cannot help. Without f16 the scale stays 1. */
bool weft_loss_scale_next(struct weft_loss_scale *scale, const struct weft_train *train,
                          bool finite);

#endif
