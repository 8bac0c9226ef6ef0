/* SPDX-License-Identifier: Apache-2.0 */
/* The layers' forward in doubles and plain loops, written from the formulas and not from the
 * kernels: the oracle of forwards, and by central differences that of backwards. */
#ifndef WEFT_TESTS_RUNTIME_NN_CPU_LAYERS_REFERENCE_H
#define WEFT_TESTS_RUNTIME_NN_CPU_LAYERS_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/layer.h"

struct reference {
    const struct weft_layer *layer;
    int64_t samples, seq_len;
    const double *tensors[WEFT_LAYER_TENSORS];
    const double *input;
    const int32_t *tokens, *targets;
    bool hides; /* keys of rows with the token `padding` */
    int32_t padding;
};

/* Writes output [T, outputs] (logits for loss layers: of a row, or of a sample) and returns the sum
 * of the losses, 0 for other layers. */
double reference_forward(const struct reference *reference, double *output);

#endif
