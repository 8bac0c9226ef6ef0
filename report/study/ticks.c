/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/ticks.h"

#include <stddef.h>

#define KIB INT64_C(1024)

const struct weft_tick_unit weft_byte_ticks[] = {
    {"B", 1},
    {"KiB", KIB},
    {"MiB", KIB *KIB},
    {"GiB", KIB *KIB *KIB},
    {"TiB", KIB *KIB *KIB *KIB},
    {"PiB", KIB *KIB *KIB *KIB *KIB},
    {NULL, 0},
};
const struct weft_tick_unit weft_time_ticks[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0},
};

/* Multiples of a step in the range, which may be 2^63. */
static uint64_t count_multiples(int64_t low, int64_t high, int64_t step)
{
    return (uint64_t)(high / step - low / step) + (low % step == 0);
}

/* The next longer step: 1, 2, 5, 10, .. of a unit up to half of the next unit, then 1 of that. A
 * step with more than 6 multiples in a range is far from an overflow. */
static void lengthen_step(struct weft_ticks *ticks)
{
    const struct weft_tick_unit *next = ticks->unit + 1;
    int64_t digit = ticks->step / ticks->unit->size;
    while (digit % 10 == 0)
        digit /= 10;
    ticks->step = digit == 2 ? ticks->step / 2 * 5 : ticks->step * 2;
    if (next->name == NULL || ticks->step <= next->size / 2) return;
    ticks->unit = next;
    ticks->step = next->size;
}

struct weft_ticks weft_ticks_choose(const struct weft_tick_unit *units, int64_t low, int64_t high,
                                    int32_t most)
{
    struct weft_ticks ticks = {.unit = units, .step = units->size};
    while (count_multiples(low, high, ticks.step) > (uint64_t)most)
        lengthen_step(&ticks);
    ticks.n = (int32_t)count_multiples(low, high, ticks.step);
    ticks.first = (low / ticks.step + (low % ticks.step != 0)) * ticks.step;
    return ticks;
}
