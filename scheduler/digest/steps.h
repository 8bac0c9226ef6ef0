/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of strategies as steps: the bytes of a strategy change in few rows. So a problem of a
 * thousand layers needs megabytes, where an array of all rows needs hundreds. */
#ifndef WEFT_SCHEDULER_DIGEST_STEPS_H
#define WEFT_SCHEDULER_DIGEST_STEPS_H

#include <stdint.h>

#include "base/status.h"
#include "problem/problem.h"

/* The bytes from `row` on, up to the next step. Before the first step they are 0. */
struct weft_row_step {
    int64_t bytes;
    int32_t row;
};

/* Strategy r has steps[start[r] .. start[r + 1] - 1], in rising order of rows. */
struct weft_row_steps {
    int64_t *start; /* [n_strategies + 1] */
    struct weft_row_step *steps;
};

/* Fills both with arrays of the pool. Fixed rows are of the holds alone; lean rows add the least
 * bytes of blocks. */
WEFT_MUST_USE enum weft_status weft_row_steps_make(const struct weft_problem *problem,
                                                   struct weft_pool *pool,
                                                   struct weft_row_steps *fixed,
                                                   struct weft_row_steps *lean,
                                                   struct weft_error *err);

/* Adds `sign` times the strategy's rows to rows[n_rows]. */
void weft_row_steps_add(const struct weft_row_steps *of, size_t strategy, int64_t sign,
                        int32_t n_rows, int64_t *rows);

/* Bytes of a strategy in a row. */
static inline int64_t weft_row_steps_at(const struct weft_row_steps *of, size_t strategy,
                                        int32_t row)
{
    int64_t low = of->start[strategy], high = of->start[strategy + 1];
    const int64_t first = low;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (of->steps[middle].row <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return low > first ? of->steps[low - 1].bytes : 0;
}

/* Walks a strategy's rows in rising order. Begins with row 0. */
struct weft_row_walk {
    const struct weft_row_step *next, *end;
    int64_t bytes; /* in the row of the last call of weft_row_walk_to */
};

static inline struct weft_row_walk weft_row_walk_begin(const struct weft_row_steps *of,
                                                       size_t strategy)
{
    return (struct weft_row_walk){&of->steps[of->start[strategy]],
                                  &of->steps[of->start[strategy + 1]], 0};
}

/* Returns the bytes in the row, which no earlier call may exceed. */
static inline int64_t weft_row_walk_to(struct weft_row_walk *walk, int32_t row)
{
    while (walk->next < walk->end && walk->next->row <= row)
        walk->bytes = walk->next++->bytes;
    return walk->bytes;
}

#endif
