/* SPDX-License-Identifier: Apache-2.0 */
/* The forward of a recipe in doubles: each step by its formula, one element at a time. It has the
 * ops of layers in the middle of a model. */
#ifndef WEFT_TESTS_RUNTIME_NN_CPU_LAYERS_STEPS_H
#define WEFT_TESTS_RUNTIME_NN_CPU_LAYERS_STEPS_H

#include "reference.h"

/* Writes output [T, outputs]. Aborts if the recipe is wrong. */
void reference_steps(const struct reference *reference, double *output);

#endif
