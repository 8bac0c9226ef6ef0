/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/turned.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_ELEMENTS = 1 << 16 };

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Puts `n_rows` rows of the source, from `row` on, with `n` elements each, in columns. */
static void put_columns(struct weft_turned *turned, const float *run, int64_t row, int64_t n_rows)
{
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t i = 0; i < turned->n; i++)
            turned->kept[i * turned->columns + row + r] = run[r * turned->n + i];
}

/* Reads rows of the source at once if all their elements are kept, otherwise a part of each. */
static enum weft_status fill_rows(struct weft_turned *turned, struct weft_error *err)
{
    const bool whole = turned->n == turned->rows;
    const int64_t at_once = whole && turned->n < RUN_ELEMENTS ? RUN_ELEMENTS / turned->n : 1;
    float *run = malloc((size_t)(at_once * turned->n) * sizeof *run);
    enum weft_status status = run != NULL ? WEFT_OK : weft_fail_memory(err, "a matrix");
    for (int64_t row = 0; status == WEFT_OK && row < turned->columns; row += at_once) {
        const int64_t n = smaller_of(at_once, turned->columns - row);
        status = turned->source(turned->context, row * turned->rows + turned->first, n * turned->n,
                                run, err);
        if (status == WEFT_OK) put_columns(turned, run, row, n);
    }
    free(run);
    return status;
}

/* Keeps rows from `row` on. */
static enum weft_status keep_rows(struct weft_turned *turned, int64_t row, struct weft_error *err)
{
    const int64_t most =
        turned->most_elements > 0 ? turned->most_elements : (int64_t)WEFT_TURNED_ELEMENTS;
    const int64_t fit = most / turned->columns > 0 ? most / turned->columns : 1;
    const bool all = fit >= turned->rows;
    weft_turned_finish(turned);
    const int64_t first = all ? 0 : row, n = smaller_of(fit, turned->rows - first);
    turned->kept = malloc((size_t)(n * turned->columns) * sizeof *turned->kept);
    if (turned->kept == NULL) return weft_fail_memory(err, "a matrix");
    turned->first = first;
    turned->n = n;
    const enum weft_status status = fill_rows(turned, err);
    if (status != WEFT_OK) weft_turned_finish(turned);
    return status;
}

enum weft_status weft_turned_read(struct weft_turned *turned, int64_t first, int64_t count,
                                  float *out, struct weft_error *err)
{
    while (count > 0) {
        const int64_t row = first / turned->columns;
        if (row < turned->first || row >= turned->first + turned->n)
            WEFT_TRY(keep_rows(turned, row, err));
        const int64_t from = first - turned->first * turned->columns;
        const int64_t n = smaller_of(count, turned->n * turned->columns - from);
        memcpy(out, turned->kept + from, (size_t)n * sizeof *out);
        first += n;
        count -= n;
        out += n;
    }
    return WEFT_OK;
}

void weft_turned_finish(struct weft_turned *turned)
{
    free(turned->kept);
    turned->kept = NULL;
    turned->first = turned->n = 0;
}
