/* SPDX-License-Identifier: Apache-2.0 */
/* Checked integer arithmetic, for every size or count from a file. Each function returns false and
 * leaves *out untouched when an operand is negative or the exact result does not fit. */
#ifndef WEFT_BASE_CHECKED_H
#define WEFT_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

/* Non-negative int64 arithmetic: sizes in bytes, counts of elements, nanoseconds. */
static inline bool weft_checked_add(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || a > INT64_MAX - b) return false;
    *out = a + b;
    return true;
}

static inline bool weft_checked_mul(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b)) return false;
    *out = a * b;
    return true;
}

/* The least multiple of `unit` (> 0) that is at least `value` (>= 0). */
static inline bool weft_checked_round_up(int64_t value, int64_t unit, int64_t *out)
{
    int64_t padded;
    if (unit <= 0 || !weft_checked_add(value, unit - 1, &padded)) return false;
    *out = padded / unit * unit;
    return true;
}

#endif
