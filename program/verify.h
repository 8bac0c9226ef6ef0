/* The parts of verifying a program, each sure of what those before it have checked. That all ranks
 * issue the same collectives in the same order needs no part of its own: a program holds nothing
 * that depends on the rank, and its channel is one stream in issue order. Internal to program/. */
#ifndef WEFT_PROGRAM_VERIFY_H
#define WEFT_PROGRAM_VERIFY_H

#include "base/status.h"
#include "program/order.h"
#include "program/program.h"

/* 1. Every index is in range, dependencies are earlier, buffers are inside the arena, every slot
 * begins with its MARK and what is launched in it waits for that. */
WEFT_MUST_USE enum weft_status weft_verify_form(const struct weft_program *program,
                                                struct weft_error *err);

/* 2. The step is a training step: update before gather, all adding before reduction, each block
 * once and in order, all reductions before the norm, the norm before its sum over ranks. */
WEFT_MUST_USE enum weft_status weft_verify_step(const struct weft_program *program,
                                                const struct weft_order *order,
                                                struct weft_error *err);

/* 3. Every two accesses to the same bytes of which one writes are ordered, reads follow the write
 * that made what they read, and pieces that share bytes take turns, period after period. */
WEFT_MUST_USE enum weft_status weft_verify_memory(const struct weft_program *program,
                                                  const struct weft_order *order,
                                                  struct weft_error *err);

/* A piece and its turn: from the write that makes it to all accesses of what that made, which for a
 * gradient end in the next period's update, and in a rotated period for more. Instructions count
 * from the beginning of the period in which the turn begins on (order.h). */
struct weft_turn {
    int32_t buffer, piece;
    bool persists;                 /* it never ends */
    int32_t first;                 /* instruction that begins it */
    int32_t over[WEFT_MOST_LANES]; /* instructions of each lane until it is over */
};

/* True when a's turn is over before b's turn begins that begins `periods` later, whatever the
 * timing. */
bool weft_turn_before(const struct weft_order *order, const struct weft_turn *a,
                      const struct weft_turn *b, int32_t periods);

/* 4. Ranges lie apart, behind each a guard; each is mapped once, buffers lie in theirs, apart; and
 * who shares a page takes turns, over two periods and their two tables. */
WEFT_MUST_USE enum weft_status weft_verify_pages(const struct weft_program *program,
                                                 const struct weft_order *order,
                                                 const struct weft_turn *turns, int32_t n_turns,
                                                 struct weft_error *err);

#endif
