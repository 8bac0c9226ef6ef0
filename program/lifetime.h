/* A piece of a buffer is live from the slot at whose start its first writer may begin to the last
 * slot whose end is not known to follow its last reader, by happens-before and never by time. The
 * planning side of the same bytes is memory_model/weigh.h; a test holds the two to each other. */
#ifndef WEFT_PROGRAM_LIFETIME_H
#define WEFT_PROGRAM_LIFETIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

/* True for kinds whose content the next step needs: live in every slot, whoever touches them.
 * Full parameters are where nothing gathers them into a buffer that comes and goes. */
bool weft_buffer_persists(const struct weft_program *program, const struct weft_buffer *buffer);

/* Pieces of all buffers, numbered one after the other. */
int32_t weft_program_pieces(const struct weft_program *program);

/* Lives of all pieces, lives[weft_program_pieces()], from instructions, dependencies and operands
 * alone; buffers' own lives are not looked at. WEFT_E_DATA naming a buffer that no instruction
 * uses. Indices in the program must be in range. */
WEFT_MUST_USE enum weft_status weft_program_lives(const struct weft_program *program,
                                                  struct weft_life *lives, struct weft_error *err);

/* Fills began_before of all operands. WEFT_E_INTERNAL where pieces that an operand names together
 * began in different periods. */
WEFT_MUST_USE enum weft_status weft_program_mark_begun(struct weft_program *program,
                                                       struct weft_error *err);

/* Bytes live in each slot by category, from the buffers' lives, base included:
 * rows[n_slots * WEFT_CATEGORY_COUNT], as weft_plan_rows. */
void weft_program_live(const struct weft_program *program, int64_t *rows);

#endif
