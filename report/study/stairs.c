/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/stairs.h"

#include <stdlib.h>

/* By limit; at the same limit the fastest comes first. */
static int compare_corners(const void *left, const void *right)
{
    const struct weft_sweep_corner *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

bool weft_sweep_climb(const struct weft_sweep *sweep, int32_t first, int32_t end,
                      struct weft_pool *pool, struct weft_sweep_stairs *out)
{
    size_t most = 0;
    int32_t n = 0, n_kept = 0;
    for (int32_t c = first; c < end; c++)
        most += (size_t)sweep->curves[c].n_points;
    struct weft_sweep_corner *corners = weft_pool_array(pool, most, sizeof *corners);
    if (!corners) return false;
    for (int32_t c = first; c < end; c++) {
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *point = &sweep->curves[c].points[i];
            if (!point->fits) continue;
            corners[n++] = (struct weft_sweep_corner){weft_sweep_x(sweep, point), point->step_ns};
        }
    }
    qsort(corners, (size_t)n, sizeof *corners, compare_corners);
    for (int32_t i = 0; i < n; i++)
        if (n_kept == 0 || sweep->split || corners[i].ns < corners[n_kept - 1].ns)
            corners[n_kept++] = corners[i];
    *out = (struct weft_sweep_stairs){n_kept, corners};
    return true;
}

void weft_sweep_spread(double *places, int32_t n, double gap, double low, double high)
{
    enum { PASSES = 100 };
    /* Neighbours give way alike, so that a crowd stays where it is. */
    for (int pass = 0; pass < PASSES; pass++) {
        for (int32_t i = 1; i < n; i++) {
            const double missing = gap - (places[i] - places[i - 1]);
            if (missing <= 0) continue;
            places[i - 1] -= missing / 2;
            places[i] += missing / 2;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        const double least = i == 0 ? low : places[i - 1] + gap;
        if (places[i] < least) places[i] = least;
    }
    for (int32_t i = n - 1; i >= 0; i--) {
        const double most = i == n - 1 ? high : places[i + 1] - gap;
        if (places[i] > most) places[i] = most;
    }
}
