/* SPDX-License-Identifier: Apache-2.0 */
/* Places of offloaded activations, and layers with their input on the host between forward and
 * backward. */
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

/* Offset of a micro-step's activations of so many bytes in the host's memory, from the place of the
 * layer's first ones. */
static inline int64_t weft_program_place(const struct weft_program *program, int32_t micro,
                                         int64_t bytes)
{
    const int64_t pages = (bytes + WEFT_HOST_PAGE_BYTES - 1) / WEFT_HOST_PAGE_BYTES;
    return weft_period_places(&program->period) > 1 ? micro * pages * WEFT_HOST_PAGE_BYTES : 0;
}

#endif
