/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers.h"

#include <math.h>

int64_t weft_dtype_bytes(enum weft_dtype dtype)
{
    return dtype == WEFT_F32 ? 4 : 2;
}

const char *weft_dtype_name(enum weft_dtype dtype)
{
    static const char *const names[WEFT_DTYPE_COUNT] = {"f32", "bf16", "f16"};
    return names[dtype];
}

/* Half a unit of the last place above the largest number: a tie, which rounds to the even infinity.
 */
float weft_dtype_limit(enum weft_dtype dtype)
{
    static const float limits[WEFT_DTYPE_COUNT] = {INFINITY, 0x1.ffp127f, 65520.0f};
    return limits[dtype];
}
