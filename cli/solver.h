/* The one implementation of the scheduler's solve function: starts the program weft-solve, hands it
 * the problem on its standard input, reads its answer, and kills it when it hangs. */
#ifndef WEFT_CLI_SOLVER_H
#define WEFT_CLI_SOLVER_H

#include "scheduler/mip.h"

/* A solver that starts `path`, or, when that is NULL, the weft-solve found by
 * weft_solver_find. The returned value refers to `path`. */
struct weft_solver weft_solver_process(const char *path);

/* Where weft-solve is: $WEFT_SOLVE, beside this program, where it is installed, in the build
 * tree, or in PATH. Fills `out` and returns it; NULL when there is none. */
const char *weft_solver_find(char *out, size_t capacity);

#endif
