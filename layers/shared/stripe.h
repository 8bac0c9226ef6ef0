/* SPDX-License-Identifier: Apache-2.0 */
/* A stripe is a group of rows of a head's scores. Products of a CPU compute one after another, and
 * each stays in the second cache from its scores to the output. */
#ifndef WEFT_LAYERS_SHARED_STRIPE_H
#define WEFT_LAYERS_SHARED_STRIPE_H

#include <stdint.h>

enum { WEFT_STRIPE_ELEMENTS = 128 << 10, WEFT_STRIPE_UNIT = 64 };

/* Rows of a stripe of scores with `seq_len` columns: whole units, as long as the sequence lasts. */
static inline int64_t weft_stripe_rows(int64_t seq_len)
{
    const int64_t most = WEFT_STRIPE_ELEMENTS / seq_len / WEFT_STRIPE_UNIT * WEFT_STRIPE_UNIT;
    return most > 0 ? most : WEFT_STRIPE_UNIT;
}

#endif
