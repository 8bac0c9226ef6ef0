/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the loops in loops.c and layers.c. A reduction has explicit lanes, because a compiler
 * may not reorder a sum. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_PARTS_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_PARTS_H

#include "runtime/nn/elements.h"

enum { LANES = 16 };

WEFT_ALWAYS_INLINE float sum_lanes(float lanes[LANES])
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) {
            lanes[i] += lanes[i + width];
        }
    }
    return lanes[0];
}

/* Runs `statement` for each i < n with its lane. Whole groups of 16 come first, so that the
 * compiler keeps `lanes` in registers. The rest uses the same lanes. */
#define FOR_LANES(i, lane, n, statement)                                                           \
    do {                                                                                           \
        int64_t group_ = 0;                                                                        \
        for (; group_ + LANES <= (n); group_ += LANES) {                                           \
            for (int lane = 0; lane < LANES; lane++) {                                             \
                const int64_t i = group_ + lane;                                                   \
                statement;                                                                         \
            }                                                                                      \
        }                                                                                          \
        for (int lane = 0; lane < (int)((n)-group_); lane++) {                                     \
            const int64_t i = group_ + lane;                                                       \
            statement;                                                                             \
        }                                                                                          \
    } while (0)

#endif
