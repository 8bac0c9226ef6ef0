/* SPDX-License-Identifier: Apache-2.0 */
/* A program as text and as JSON, and names of its parts for messages. */
#ifndef WEFT_PROGRAM_PROGRAM_TEXT_H
#define WEFT_PROGRAM_PROGRAM_TEXT_H

#include <stdint.h>

#include "base/text.h"
#include "program/program.h"

/* Writes text with one instruction per line, and JSON. */
void weft_program_dump(const struct weft_program *program, const struct weft_plan *plan,
                       struct weft_text *out);
void weft_program_write(const struct weft_program *program, struct weft_text *out);

enum { WEFT_PROGRAM_NAME_BYTES = 128 };

/* Names for messages: "instruction 45 (all_gather of unit 3, block 2)" and "full 3.1 piece 2". */
const char *weft_program_instruction_name(const struct weft_program *program, int32_t index,
                                          char out[WEFT_PROGRAM_NAME_BYTES]);
const char *weft_program_piece_name(const struct weft_program *program, int32_t buffer,
                                    int32_t piece, char out[WEFT_PROGRAM_NAME_BYTES]);

#endif
