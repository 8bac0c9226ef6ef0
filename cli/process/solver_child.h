/* SPDX-License-Identifier: Apache-2.0 */
/* The process of weft-solve. It starts once and answers questions in the documents of
 * scheduler/solver/lp.h, one at a time. It is killed when it hangs or is no longer needed. */
#ifndef WEFT_CLI_PROCESS_SOLVER_CHILD_H
#define WEFT_CLI_PROCESS_SOLVER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/text.h"
#include "base/watch.h"

enum { WEFT_SOLVER_NOTE_BYTES = 512 };

struct weft_solver_child {
    pid_t pid;                         /* 0: none */
    const char *path;                  /* borrowed */
    int in, out, note;                 /* our ends of its stdin, stdout, stderr; -1: closed */
    char said[WEFT_SOLVER_NOTE_BYTES]; /* on stderr, as one line */
    size_t said_length;
    int64_t idle_ns; /* time without CPU time of its own after which it counts as hung */
};

/* Runs `path`, with `flag` unless NULL. The child ends with this process. WEFT_E_SYSTEM. A path
 * that cannot be executed fails at the first question. */
WEFT_MUST_USE enum weft_status weft_solver_child_start(const char *path, const char *flag,
                                                       struct weft_solver_child *child,
                                                       struct weft_error *err);

/* Kills the child and clears *child. Accepts {0}. */
void weft_solver_child_stop(struct weft_solver_child *child);

/* True if the child runs, as far as is known, and has sent nothing unasked. */
bool weft_solver_child_is_ready(const struct weft_solver_child *child);

/* Appends the child's answer: up to the line "end", or all of its output if it ends with exit
 * code 0 (then there is no child). The limits are patience_ns (0: none), child->idle_ns and
 * most_bytes. The clock of idle_ns stands still while this process does. Calls weft_watch_look
 * meanwhile. After an error there is no child. WEFT_E_HANG: it was late, or idle.
 * WEFT_E_INTERNAL: it crashed or its answer is too long. WEFT_E_ENVIRONMENT: it cannot be
 * executed. */
WEFT_MUST_USE enum weft_status weft_solver_child_ask(
    struct weft_solver_child *child, const struct weft_text *question, int64_t patience_ns,
    size_t most_bytes, struct weft_watch *watch, struct weft_text *answer, struct weft_error *err);

#endif
