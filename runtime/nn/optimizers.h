/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers that update each element alone: a row and a file each. Every device has one loop over
 * these functions, so bits are equal. `moments` is the number of them that the update has, a
 * constant of the loop; others are undefined. */
#ifndef WEFT_RUNTIME_NN_OPTIMIZERS_H
#define WEFT_RUNTIME_NN_OPTIMIZERS_H

#include "runtime/nn/elements.h"

struct weft_element {
    float parameter, moment1, moment2;
};

/* The scalars of a step, with the tensor's decay in both, and its divisor. */
struct weft_scalars {
    struct weft_adamw adamw;
    struct weft_sgd sgd;
    float divisor;
};

#include "runtime/nn/optimizers/adam_mini.h"
#include "runtime/nn/optimizers/adamw.h"
#include "runtime/nn/optimizers/lion.h"
#include "runtime/nn/optimizers/sgd.h"

/* X(enumerator, the file's name, least moments, most moments). */
#define WEFT_ELEMENT_OPTIMIZERS(X)                                                                 \
    X(ADAMW, adamw, 2, 2)                                                                          \
    X(SGD, sgd, 0, 1)                                                                              \
    X(LION, lion, 1, 1)

/* Optimizers with a divisor for each tensor. GPUs do not have them. */
#define WEFT_TENSOR_OPTIMIZERS(X) X(ADAM_MINI, adam_mini, 1, 1)

#endif
