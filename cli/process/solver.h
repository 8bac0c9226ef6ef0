/* Runs the scheduler's solver, the program weft-solve, in a process. The process stays between a
 * plan's questions, so a relaxation that differs only in bounds and added rows starts from the last
 * basis. It starts at the first question and again after a failure. If an answer is late, it is
 * killed and not asked again. */
#ifndef WEFT_CLI_PROCESS_SOLVER_H
#define WEFT_CLI_PROCESS_SOLVER_H

#include "cli/process/solver_child.h"
#include "scheduler/solver/mip_changes.h"

struct weft_solver_process {
    struct weft_solver_child child;
    struct weft_watch *watch; /* called while waiting; or NULL */
    char path[4096];
    bool hung;             /* an answer was late: no more questions */
    bool knows;            /* the child has the basis of `mip` */
    struct weft_pool pool; /* owns `mip` */
    struct weft_mip mip;
};

/* Returns a solver that starts the weft-solve found by weft_solver_find. It keeps a pointer to
 * `process`, which has no child at first; releasing the solver stops the child. Only one thread may
 * use it at a time. */
struct weft_solver weft_solver_of_process(struct weft_solver_process *process);

/* Ends the process if it runs. */
void weft_solver_process_stop(struct weft_solver_process *process);

/* Finds weft-solve: $WEFT_SOLVE, or next to this program, in its installed place, in the build
 * tree, or in PATH. Fills `out` and returns it, or NULL. */
const char *weft_solver_find(char *out, size_t capacity);

/* Asks the program at `path` for its version, for at most 5 s. True if it answers as weft-solve
 * does; `out` gets the first line of its answer, or "". */
bool weft_solver_version(const char *path, char *out, size_t capacity);

#endif
