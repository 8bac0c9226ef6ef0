/* The one implementation of the scheduler's solve function: the program weft-solve in a process of
 * its own, which stays from one question of a plan to the next, so that a relaxation that differs
 * from the one before in bounds and added rows starts from its basis. It is started at the first
 * question, again after a failure, and killed when its answer is not there in time, which is the
 * last that is asked of it. */
#ifndef WEFT_CLI_PROCESS_SOLVER_H
#define WEFT_CLI_PROCESS_SOLVER_H

#include "cli/process/solver_child.h"
#include "scheduler/solver/mip_changes.h"

struct weft_solver_process {
    struct weft_solver_child child;
    struct weft_watch *watch; /* looked at while it is waited for; or NULL */
    char path[4096];
    bool hung;             /* once, and is not asked again */
    bool knows;            /* the child has the basis of: */
    struct weft_pool pool; /* that owns: */
    struct weft_mip mip;
};

/* A solver that starts the weft-solve found by weft_solver_find. Refers to `process`, without a
 * child before and after; releasing the solver stops it. Not for two threads at once. */
struct weft_solver weft_solver_of_process(struct weft_solver_process *process);

/* Ends the process, if it runs. */
void weft_solver_process_stop(struct weft_solver_process *process);

/* Where weft-solve is: $WEFT_SOLVE, beside this program, where it is installed, in the build
 * tree, or in PATH. Fills `out` and returns it; NULL when there is none. */
const char *weft_solver_find(char *out, size_t capacity);

/* Asks the program at `path` for its version, with 5 seconds to answer. True when it answered as
 * weft-solve does; `out` gets the first line that it said, or "". */
bool weft_solver_version(const char *path, char *out, size_t capacity);

#endif
