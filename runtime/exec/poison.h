/* SPDX-License-Identifier: Apache-2.0 */
/* Poison tracks the owner of memory by slot. A read of a dead buffer gives a pattern, and a write
 * next to a live buffer is found. Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_POISON_H
#define WEFT_RUNTIME_EXEC_POISON_H

#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/arena/arena.h"

struct weft_exec;

/* Changes of ownership at the start of a slot. */
struct exec_deaths {
    struct weft_arena_turn turn;
    int32_t *owners; /* by margin: the buffer next to it */
    int32_t margin;  /* a margin that was written; -1: none */
};

/* Computes the turns of all slots and begins to watch the arena. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_exec_poison_create(struct weft_exec *exec,
                                                       struct weft_error *err);
/* Queues the turn of a slot; nothing without poison. */
void weft_exec_poison_push(struct weft_exec *exec, int32_t slot);
/* Call it before the first slot is issued. If that follows no period, only persistent buffers
 * live. */
void weft_exec_poison_begin(struct weft_exec *exec);
/* Call it after a synchronise. WEFT_E_INTERNAL names the buffer next to a margin that was
 * written. */
WEFT_MUST_USE enum weft_status weft_exec_poison_check(struct weft_exec *exec,
                                                      struct weft_error *err);
/* "saved of layer h.2", in parts, since signal handlers cannot join text. */
struct weft_buffer_name {
    const char *kind, *of, *owner; /* owner: NULL if no layer or unit owns it */
};
struct weft_buffer_name weft_exec_name_buffer(const struct weft_exec *exec, int32_t b);
/* Opens the whole arena again. Call it before the streams are destroyed. */
void weft_exec_poison_destroy(struct weft_exec *exec);

#endif
