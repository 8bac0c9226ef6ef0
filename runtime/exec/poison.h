/* Poison: who holds which memory from when on, so that what is read of a dead buffer is a pattern,
 * and what is written beside one is seen. Shared by the files of this folder alone. */
#ifndef WEFT_RUNTIME_EXEC_POISON_H
#define WEFT_RUNTIME_EXEC_POISON_H

#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "runtime/arena/arena.h"

struct weft_exec;

/* Who holds the memory from the start of a slot on. */
struct exec_deaths {
    struct weft_arena_turn turn;
    int32_t *owners; /* by margin: the buffer beside which it lies */
    int32_t margin;  /* that somebody wrote to; -1: none */
};

WEFT_MUST_USE enum weft_status weft_exec_poison_create(struct weft_exec *exec,
                                                       struct weft_error *err);
void weft_exec_poison_push(struct weft_exec *exec, int32_t slot);
/* Before the first slot of what is issued: where it follows no period, nothing lives but what
 * stays. */
void weft_exec_poison_begin(struct weft_exec *exec);
/* Behind a synchronise: WEFT_E_INTERNAL naming a buffer beside which somebody wrote. */
WEFT_MUST_USE enum weft_status weft_exec_poison_check(struct weft_exec *exec,
                                                      struct weft_error *err);
/* "saved of layer h.2", also in parts, for signal handlers. */
struct weft_buffer_name {
    const char *kind, *of, *owner; /* owner is NULL of what is no layer's and no unit's */
};
struct weft_buffer_name weft_exec_name_buffer(const struct weft_exec *exec, int32_t b);
void weft_exec_describe_buffer(const struct weft_exec *exec, int32_t b, struct weft_text *out);
/* Opens the whole arena again; before the streams are destroyed. */
void weft_exec_poison_destroy(struct weft_exec *exec);

#endif
