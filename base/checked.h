/* Checked integer arithmetic, for every size or count that was read from a file. Each returns
 * false and leaves *out untouched when the exact result does not fit (or an operand is negative,
 * for the size functions). */
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

/* The least multiple of `unit` (> 0) that is not below `value` (>= 0). */
static inline bool weft_checked_round_up(int64_t value, int64_t unit, int64_t *out)
{
    int64_t padded;
    if (unit <= 0 || !weft_checked_add(value, unit - 1, &padded)) return false;
    *out = padded / unit * unit;
    return true;
}

#endif
