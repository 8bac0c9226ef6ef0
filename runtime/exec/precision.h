/* Precision is in which dtypes a run computes, reduces and accumulates, and, for f16, the loss
 * scale: the factor of the loss that keeps small gradients from becoming 0. It changes only behind
 * the agreement of all ranks on what a step's gradients are, and is the same on all of them. */
#ifndef WEFT_RUNTIME_EXEC_PRECISION_H
#define WEFT_RUNTIME_EXEC_PRECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "spec/config.h"

/* WEFT_E_DATA for dtypes, or models in them, that the executor cannot train: what, and what would
 * work. */
WEFT_MUST_USE enum weft_status weft_precision_check(const struct weft_config *config,
                                                    struct weft_error *err);

#define WEFT_LOSS_SCALE_MOST 0x1p24

struct weft_loss_scale {
    double scale;       /* of the next backward; a power of two, 1 to the most. 1 but for f16 */
    int64_t good_steps; /* with this scale, in a row */
};

/* At a run's start. */
struct weft_loss_scale weft_loss_scale_first(const struct weft_train *train);

/* Behind a step whose gradients, with this scale, were finite or not. False when they were not and
 * the scale cannot be smaller: the failure is not of the scale. In dtypes but f16 it stays 1. */
bool weft_loss_scale_next(struct weft_loss_scale *scale, const struct weft_train *train,
                          bool finite);

#endif
