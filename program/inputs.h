/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with their input on the host between forward and backward. */
#ifndef WEFT_PROGRAM_INPUTS_H
#define WEFT_PROGRAM_INPUTS_H

#include "program/program.h"

/* Whether a layer's input is on the host between its forward and its first reader in backward. */
static inline bool weft_program_moves_input(const struct weft_program *program, int32_t layer)
{
    return program->inputs_at != NULL && program->inputs_at[layer] >= 0;
}

/* Whether a layer's output is: it is the input of the next layer. */
static inline bool weft_program_moves_output(const struct weft_program *program, int32_t layer)
{
    return layer + 1 < program->n_layers && weft_program_moves_input(program, layer + 1);
}

#endif
