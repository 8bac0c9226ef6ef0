/* SPDX-License-Identifier: Apache-2.0 */
/* A life is the slots in which bytes are needed. */
#ifndef WEFT_MEMORY_MODEL_LIFE_H
#define WEFT_MEMORY_MODEL_LIFE_H

#include <stdint.h>

/* Slots, inclusive; first > last wraps around the period's end. */
struct weft_life {
    int32_t first, last;
};

/* True when slot is within the life. */
static inline int weft_life_has(struct weft_life life, int32_t slot)
{
    return life.first <= life.last ? slot >= life.first && slot <= life.last
                                   : slot >= life.first || slot <= life.last;
}

#endif
