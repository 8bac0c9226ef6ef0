/* SPDX-License-Identifier: Apache-2.0 */
/* The program's solve function: weft-solve in a process of its own. The process stays between the
 * questions of a plan. If a relaxation differs from the one before in bounds and added rows alone,
 * it starts from that basis. The first question starts the process, and so does the next one after
 * a failure. A process without an answer in time is killed, and no other is asked. */
#ifndef WEFT_CLI_PROCESS_SOLVER_H
#define WEFT_CLI_PROCESS_SOLVER_H

#include "cli/process/solver_child.h"
#include "scheduler/solver/lp_changes.h"

struct weft_solver_process {
    struct weft_solver_child child;
    struct weft_watch *watch; /* looked at during a wait; or NULL */
    char path[4096];
    bool hung;             /* it had no answer in time, and is not asked again */
    bool knows;            /* the child has the basis of `lp` */
    struct weft_pool pool; /* owns `lp` */
    struct weft_lp lp;
};

/* A solver that starts the weft-solve found by weft_solver_find. Refers to `process`, which has no
 * child before the first question. Releasing the solver stops the child. Not thread-safe. */
struct weft_solver weft_solver_of_process(struct weft_solver_process *process);

/* Ends the process if it runs. */
void weft_solver_process_stop(struct weft_solver_process *process);

/* Finds weft-solve: $WEFT_SOLVE, next to this program, where it is installed, in the build tree, or
 * in PATH. Fills `out` with its path and returns it; NULL if there is none. */
const char *weft_solver_find(char *out, size_t capacity);

/* Asks the program at `path` for its version, with 5 seconds to answer. True if it answers like
 * weft-solve. `out` gets its first line, or "". */
bool weft_solver_version(const char *path, char *out, size_t capacity);

#endif
