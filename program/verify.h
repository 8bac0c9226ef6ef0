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

#endif
