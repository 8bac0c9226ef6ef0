/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on sizes that remembers any overflow; such a result is 0. */
#ifndef WEFT_SPEC_SIZES_H
#define WEFT_SPEC_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/checked.h"

struct weft_sizes {
    bool overflowed;
};

static inline int64_t weft_times(struct weft_sizes *sizes, int64_t a, int64_t b)
{
    int64_t out = 0;
    sizes->overflowed |= !weft_checked_mul(a, b, &out);
    return out;
}

static inline int64_t weft_plus(struct weft_sizes *sizes, int64_t a, int64_t b)
{
    int64_t out = 0;
    sizes->overflowed |= !weft_checked_add(a, b, &out);
    return out;
}

#endif
