/* SPDX-License-Identifier: Apache-2.0 */
/* Loop of the fingerprint's hash on the CPU, for tasks of nn and for updates on the host. */
#ifndef WEFT_RUNTIME_NN_HASH_H
#define WEFT_RUNTIME_NN_HASH_H

#include <stdint.h>

#include "base/hash.h"
#include "runtime/nn/elements.h"

/* Adds the hashes of elements [first, first + n) of the tensor with the hashed name `name`. */
static inline void weft_nn_hash_elements(struct weft_hash *sum, uint64_t name, int64_t first,
                                         const float *values, int64_t n)
{
    for (int64_t e = 0; e < n; e++) {
        const uint64_t place = hash_place(name, (uint64_t)(first + e));
        sum->high += hash_high(place, values[e]);
        sum->low += hash_low(place, values[e]);
    }
}

#endif
