/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/place.h"

#include <criterion/criterion.h>

#include "base/rng.h"

enum { MOST_PARTS = 24, STEPS = 16 };

/* Bytes of the parts that are live in the step with most of them. No placement needs less. */
static int64_t most_live_bytes(const struct weft_part *parts, int32_t n)
{
    int64_t most = 0;
    for (int32_t step = 0; step <= 2 * STEPS; step++) {
        int64_t live = 0;
        for (int32_t i = 0; i < n; i++)
            if (parts[i].first <= step && step <= parts[i].last) live += parts[i].bytes;
        if (live > most) most = live;
    }
    return most;
}

/* Places parts, and checks that the buffer ends with one and that none overlap while live. */
static int64_t place_soundly(struct weft_part *parts, int32_t n)
{
    const int64_t bytes = weft_place_parts(parts, n);
    int64_t last = 0;
    for (int32_t i = 0; i < n; i++) {
        const struct weft_part *a = &parts[i];
        cr_assert_geq(a->offset, 0);
        cr_assert_eq(a->offset % WEFT_LAYOUT_ALIGN_BYTES, 0);
        cr_assert_eq(a->bytes % WEFT_LAYOUT_ALIGN_BYTES, 0);
        if (a->offset + a->bytes > last) last = a->offset + a->bytes;
        for (int32_t k = 0; k < i; k++) {
            const struct weft_part *b = &parts[k];
            const bool together = a->first <= b->last && b->first <= a->last;
            cr_assert(!together || a->offset + a->bytes <= b->offset ||
                          b->offset + b->bytes <= a->offset,
                      "parts %d and %d overlap", (int)i, (int)k);
        }
    }
    cr_assert_eq(bytes, last);
    cr_assert_geq(bytes, most_live_bytes(parts, n));
    return bytes;
}

static int64_t draw_number(uint64_t seed, uint64_t stream, int64_t below)
{
    return (int64_t)weft_rng_below(seed, stream, 0, (uint64_t)below);
}

Test(place, parts_of_any_lives_never_overlap)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct weft_part parts[MOST_PARTS];
        const int32_t n = (int32_t)draw_number(seed, 0, MOST_PARTS + 1);
        int64_t sum = 0;
        for (int32_t i = 0; i < n; i++) {
            const uint64_t stream = 1 + 3 * (uint64_t)i;
            const int32_t first = (int32_t)draw_number(seed, stream, STEPS);
            parts[i] = (struct weft_part){draw_number(seed, stream + 1, 5000), first,
                                          first + (int32_t)draw_number(seed, stream + 2, 6), 0};
            sum += parts[i].bytes + WEFT_LAYOUT_ALIGN_BYTES;
        }
        cr_assert_leq(place_soundly(parts, n), sum);
    }
}

/* Backward of a residual block: each gradient lives until the next step has read it, and the
 * residual's until the block's end. */
Test(place, gradients_of_a_block_need_the_most_live_bytes)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct weft_part parts[STEPS];
        const int64_t width = 1 + draw_number(seed, 0, 300);
        const int32_t half = 2 + (int32_t)draw_number(seed, 1, 4), n = 2 * half;
        for (int32_t i = 0; i < n; i++) {
            const int64_t times = i == 0 || i == half + 1 ? 1 + draw_number(seed, 2 + i, 9) : 1;
            parts[i] = (struct weft_part){64 * width * times, i, i == half ? n : i + 1, 0};
        }
        cr_assert_eq(place_soundly(parts, n), most_live_bytes(parts, n), "seed %d", (int)seed);
    }
}

/* Neither order alone is enough: one needs 8 units in the first case, the other in the second. */
Test(place, takes_the_better_of_both_orders)
{
    struct weft_part by_size[] = {{64 * 3, 0, 1, 0}, {64 * 1, 1, 3, 0}, {64 * 4, 2, 3, 0}};
    cr_assert_eq(place_soundly(by_size, 3), 64 * 5);
    struct weft_part by_first[] = {
        {64 * 3, 3, 4, 0}, {64 * 2, 1, 3, 0}, {64 * 4, 2, 2, 0}, {64 * 2, 3, 5, 0}};
    cr_assert_eq(place_soundly(by_first, 4), 64 * 7);
}

Test(place, empty_parts_take_no_bytes)
{
    struct weft_part parts[] = {{0, 0, 3, 0}, {1, 1, 1, 0}, {0, 1, 1, 0}};
    cr_assert_eq(place_soundly(parts, 3), WEFT_LAYOUT_ALIGN_BYTES);
    cr_assert_eq(weft_place_parts(parts, 0), 0);
}

Test(place, overflow_of_a_size_or_of_their_sum_is_minus_one)
{
    const int64_t half = INT64_MAX / 2;
    struct weft_part cases[][2] = {{{-1, 0, 0, 0}, {64, 1, 1, 0}},
                                   {{64, 0, 0, 0}, {INT64_MAX, 1, 1, 0}},
                                   {{half, 0, 0, 0}, {half + 64, 0, 0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(weft_place_parts(cases[i], 2), -1);
        cr_assert_eq(cases[i][0].offset, -1);
        cr_assert_eq(cases[i][1].offset, -1);
    }
}
