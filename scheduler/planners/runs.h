/* SPDX-License-Identifier: Apache-2.0 */
/* A run is moves of equal keys, one after another, like the blocks of one item. Moves are sorted
 * run by run, because there are few runs for any number of blocks. */
#ifndef WEFT_SCHEDULER_PLANNERS_RUNS_H
#define WEFT_SCHEDULER_PLANNERS_RUNS_H

#include <stdint.h>

struct weft_move_run {
    int32_t launch, kind, deadline; /* the key, in this order */
    int32_t index;                  /* of the first among equal keys */
    int32_t begin, n;               /* moves */
};

/* Adds a move (n = 1) to the last run, if it continues that, or as a new run. `runs` has room for
 * all moves. */
void weft_move_runs_add(struct weft_move_run *runs, int32_t *n_runs, struct weft_move_run move);
void weft_move_runs_sort(struct weft_move_run *runs, int32_t n_runs);

#endif
