/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of an axis: multiples of 1, 2 or 5 times a power of ten of a whole unit, so that a label is
 * a whole number. */
#ifndef WEFT_REPORT_STUDY_TICKS_H
#define WEFT_REPORT_STUDY_TICKS_H

#include <stdint.h>

struct weft_tick_unit {
    const char *name;
    int64_t size;
};

/* From the smallest unit to the largest; a NULL name ends the table. */
extern const struct weft_tick_unit weft_byte_ticks[], weft_time_ticks[]; /* B.. and ns.. */

struct weft_ticks {
    const struct weft_tick_unit *unit;
    int64_t step;  /* 1, 2 or 5 times a power of ten, times unit->size */
    int64_t first; /* the least multiple of step in the range */
    int32_t n;     /* multiples of step in the range */
};

/* The ticks of [low, high] with the least step that has at most `most` multiples in the range. 0 <=
 * low < high, and most is at least 6. There are always two ticks or more. */
struct weft_ticks weft_ticks_choose(const struct weft_tick_unit *units, int64_t low, int64_t high,
                                    int32_t most);

#endif
