/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/runs.h"

#include <stddef.h>
#include <stdlib.h>

static int compare_runs(const void *a, const void *b)
{
    const struct weft_move_run *x = a, *y = b;
    if (x->launch != y->launch) return x->launch < y->launch ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->deadline != y->deadline) return x->deadline < y->deadline ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

void weft_move_runs_add(struct weft_move_run *runs, int32_t *n_runs, struct weft_move_run move)
{
    struct weft_move_run *last = *n_runs > 0 ? &runs[*n_runs - 1] : NULL;
    if (last && last->launch == move.launch && last->kind == move.kind &&
        last->deadline == move.deadline && last->index + last->n == move.index)
        last->n++;
    else
        runs[(*n_runs)++] = move;
}

void weft_move_runs_sort(struct weft_move_run *runs, int32_t n_runs)
{
    if (n_runs > 1) qsort(runs, (size_t)n_runs, sizeof *runs, compare_runs);
}
