/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of verifying a program, private to program/. Each relies on the checks before it. Equal
 * collectives on all ranks need no check: nothing in a program depends on the rank, and its channel
 * is one stream in issue order. */
#ifndef WEFT_PROGRAM_VERIFY_H
#define WEFT_PROGRAM_VERIFY_H

#include "base/status.h"
#include "program/order.h"
#include "program/program.h"

/* 1. Indices are in range, dependencies are earlier, and buffers are inside the arena. Every slot
 * begins with its MARK, and launches wait for it. */
WEFT_MUST_USE enum weft_status weft_verify_form(const struct weft_program *program,
                                                struct weft_error *err);

/* 2. The step is a training step. A gather follows its update, and a reduction follows all
 * additions. Each block moves once and in order. The norm follows all reductions, and its sum
 * follows the norm. */
WEFT_MUST_USE enum weft_status weft_verify_step(const struct weft_program *program,
                                                const struct weft_order *order,
                                                struct weft_error *err);

/* 3. Two accesses to the same bytes are ordered if one of them writes. A read follows the write
 * that made its piece. Pieces that share bytes take turns, period after period. */
WEFT_MUST_USE enum weft_status weft_verify_memory(const struct weft_program *program,
                                                  const struct weft_order *order,
                                                  struct weft_error *err);

/* A piece's turn: from the write that makes it to all accesses of that content. A gradient's
 * accesses end in the next period's update, or later if the period is rotated. Instructions count
 * from the period in which the turn begins (order.h). */
struct weft_turn {
    int32_t buffer, piece;
    bool persists;                 /* it never ends */
    int32_t first;                 /* instruction that begins it */
    int32_t over[WEFT_MOST_LANES]; /* by lane: instructions until its end */
};

/* 4. Ranges are apart with a guard after each. Each is mapped once, and its buffers are inside it
 * and apart. Pieces on one page take turns, over two periods and their two tables. */
WEFT_MUST_USE enum weft_status weft_verify_pages(const struct weft_program *program,
                                                 const struct weft_order *order,
                                                 const struct weft_turn *turns, int32_t n_turns,
                                                 struct weft_error *err);

#endif
