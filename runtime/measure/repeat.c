/* SPDX-License-Identifier: Apache-2.0 */
/* A median of few times is good if they are similar. If they vary, more are taken. */
#include "runtime/measure/measure.h"
#include "runtime/measure/parts.h"

enum { STEADY_THOUSANDTHS = 100 };

int64_t weft_measure_spread(int64_t *values, int64_t n)
{
    const int64_t median = weft_measure_median(values, n);
    if (n == 0 || median <= 0) return 0;
    return (int64_t)(1e3 * (double)(values[n - 1 - n / 4] - values[n / 4]) / (double)median);
}

int32_t weft_measure_more_rounds(int32_t done, int32_t most, int64_t spread)
{
    if (spread <= STEADY_THOUSANDTHS || done >= most) return done;
    return done <= most / 2 ? 2 * done : most;
}
