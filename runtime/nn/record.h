/* Words of a loss that ranks may add in any order (units.h), for CPU and GPU. */
#ifndef WEFT_RUNTIME_NN_RECORD_H
#define WEFT_RUNTIME_NN_RECORD_H

#include <math.h>

#include "base/compiler.h"

/* A loss is split at the binary point: the integer part in one word, the fraction in units of 2^-32
 * in the next. Both are exact below WEFT_NN_LOSS_MOST, and 2^16 ranks fit. A loss that is not
 * finite, or too large, sets the third word to 1. */
enum { WEFT_NN_LOSS_WHOLE, WEFT_NN_LOSS_FRACTION, WEFT_NN_LOSS_BAD, WEFT_NN_LOSS_WORDS };
#define WEFT_NN_LOSS_MOST 0x1p46

/* Writes to zeroed words. A cross-entropy is at least 0 except for rounding, and floor keeps the
 * fraction positive then. */
WEFT_ALWAYS_INLINE void record_loss(double loss, uint64_t *words)
{
    if (!(fabs(loss) < WEFT_NN_LOSS_MOST)) {
        words[WEFT_NN_LOSS_BAD] = 1;
        return;
    }
    const double whole = floor(loss);
    words[WEFT_NN_LOSS_WHOLE] = (uint64_t)(int64_t)whole;
    words[WEFT_NN_LOSS_FRACTION] = (uint64_t)((loss - whole) * 0x1p32);
}

#endif
