/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a loss that ranks may add in any order (units.h), for CPU and GPU. */
#ifndef WEFT_RUNTIME_NN_RECORD_H
#define WEFT_RUNTIME_NN_RECORD_H

#include <math.h>

#include "base/compiler.h"

/* A loss is split at the binary point: the integer part in one word, the fraction in units of 2^-32
 * in the next. Both are exact below WEFT_NN_LOSS_MOST, and the sum of 2^16 losses fits. The third
 * word counts losses that are not finite, or too large. */
enum { WEFT_NN_LOSS_WHOLE, WEFT_NN_LOSS_FRACTION, WEFT_NN_LOSS_BAD, WEFT_NN_LOSS_WORDS };
#define WEFT_NN_LOSS_MOST 0x1p46

/* Writes the words of `before` plus the loss. They may be the same words; NULL: zeros. A
 * cross-entropy is at least 0 except for rounding, and floor keeps the fraction positive then. */
WEFT_ALWAYS_INLINE void record_loss(double loss, const uint64_t *before, uint64_t *words)
{
    const int counts = fabs(loss) < WEFT_NN_LOSS_MOST;
    const double whole = counts ? floor(loss) : 0, fraction = counts ? (loss - whole) * 0x1p32 : 0;
    const uint64_t of_loss[WEFT_NN_LOSS_WORDS] = {(uint64_t)(int64_t)whole, (uint64_t)fraction,
                                                  counts ? 0u : 1u};
    for (int i = 0; i < WEFT_NN_LOSS_WORDS; i++) {
        words[i] = (before == NULL ? 0 : before[i]) + of_loss[i];
    }
}

#endif
