/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a solver program: reads the documents of lp.h from stdin until that ends, asks a back
 * end, and writes a result for each to stdout. Part of solver programs alone. */
#ifndef WEFT_SCHEDULER_SOLVER_SERVE_H
#define WEFT_SCHEDULER_SOLVER_SERVE_H

#include <stdbool.h>

#include "base/pool.h"
#include "scheduler/solver/lp_changes.h"

struct weft_serve;

struct weft_serve_solver {
    const char *name; /* of the library, such as "GLPK" */
    const char *(*version)(void);
    bool is_named; /* results have both, and so do plans */
    /* Solves serve->lp from nothing, or the kept program after `changes` (NULL: none). Of a changed
     * program serve->lp has only the sizes. Fills serve->result; its arrays are in serve->pool.
     * Keeps the program for changes, and sets serve->n_columns and n_rows; -1: keeps none. */
    void (*solve)(struct weft_serve *serve, const struct weft_lp_changes *changes);
};

struct weft_serve {
    const struct weft_serve_solver *solver;
    struct weft_pool pool; /* of one document: */
    struct weft_lp lp;
    struct weft_lp_limits limits;
    struct weft_lp_result result; /* set to "not solved" before each question */
    int32_t n_columns, n_rows;    /* of the kept program */
    bool over;                    /* the solver is in no state to continue */
};

/* The whole program, but for the solver's own start and end. argv may ask for --version or --help.
 * Returns the exit code. */
int weft_serve_main(struct weft_serve *serve, int argc, char **argv);

#endif
