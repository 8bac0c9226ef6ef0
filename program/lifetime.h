/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of pieces. A piece lives from the first slot in which its first writer may begin. Its last
 * slot is the last one before the end of its last reader is known. Happens-before decides, never
 * time. memory_model/weigh.h plans the same bytes, and a test compares both. */
#ifndef WEFT_PROGRAM_LIFETIME_H
#define WEFT_PROGRAM_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

/* Whether the next step needs a buffer's content, so that it lives in every slot. Full parameters
 * persist if no gather fills them. */
bool weft_buffer_persists(const struct weft_program *program, const struct weft_buffer *buffer);

/* Number of pieces of all buffers, which are numbered in order. */
int32_t weft_program_pieces(const struct weft_program *program);

/* Computes the lives of all pieces, lives[weft_program_pieces()]. It uses instructions,
 * dependencies and operands alone, not the buffers' own lives. WEFT_E_DATA names a buffer that no
 * instruction writes. Indices in the program must be in range. */
WEFT_MUST_USE enum weft_status weft_program_lives(const struct weft_program *program,
                                                  struct weft_life *lives, struct weft_error *err);

/* Fills began_before of all operands. WEFT_E_INTERNAL if pieces of one operand began in different
 * periods. */
WEFT_MUST_USE enum weft_status weft_program_mark_begun(struct weft_program *program,
                                                       struct weft_error *err);

/* Bytes live in each slot by category, with base, from the buffers' lives: rows[n_slots *
 * WEFT_CATEGORY_COUNT], as weft_plan_rows. */
void weft_program_live(const struct weft_program *program, int64_t *rows);

#endif
