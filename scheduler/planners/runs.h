/* A run is moves of equal keys that stand one after another, as blocks of one item do. Moves are
 * sorted run by run: there are few of them, however many blocks a unit has. */
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
