/* SPDX-License-Identifier: Apache-2.0 */
/* Each way to copy writes exactly the bytes that it should. */
#include "offload/copy_bytes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { COPY_BYTES = 1 << 13, COPY_CASES = 400 };

static void fill_randomly(unsigned char *bytes, int64_t n, uint64_t stream)
{
    for (int64_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)weft_rng_u64(4, stream, (uint64_t)i);
}

Test(copy_bytes, ways_copy_what_memcpy_does)
{
    static unsigned char from[COPY_BYTES], to[COPY_BYTES], expected[COPY_BYTES];
    fill_randomly(from, COPY_BYTES, 1);
    cr_assert_str_eq(weft_copy_ways[0].name, "plain");
    for (int32_t way = 0; way < weft_copy_n_ways; way++) {
        if (!weft_copy_ways[way].is_here()) continue;
        for (uint64_t draw = 0; draw < COPY_CASES; draw++) {
            const size_t at = weft_rng_below(2, 1, draw, COPY_BYTES / 2);
            const size_t source = weft_rng_below(2, 2, draw, COPY_BYTES / 2);
            const size_t bytes = weft_rng_below(2, 3, draw, draw % 2 ? 200 : COPY_BYTES / 2);
            fill_randomly(to, COPY_BYTES, draw);
            memcpy(expected, to, COPY_BYTES);
            memcpy(expected + at, from + source, bytes);
            weft_copy_ways[way].copy(to + at, from + source, (int64_t)bytes);
            cr_assert_eq(memcmp(to, expected, COPY_BYTES), 0, "%s: %zu bytes from %zu to %zu",
                         weft_copy_ways[way].name, bytes, source, at);
        }
    }
}

Test(copy_bytes, small_copies_stay_in_the_caches)
{
    cr_assert_str_eq(weft_copy_way_for(1000)->name, "plain");
    cr_assert(weft_copy_way_for(1 << 30)->is_here());
#if defined(__x86_64__)
    cr_assert_str_neq(weft_copy_way_for(1 << 30)->name, "plain");
#endif
}

/* Cuts [0, bytes) into spans of random lengths, some empty. */
static int32_t cut_randomly(unsigned char *memory, int64_t bytes, uint64_t stream,
                            struct weft_memory_span *out, int32_t most)
{
    int32_t n = 0;
    for (int64_t at = 0; at < bytes; n++) {
        const int64_t part = n == most - 1 ? bytes - at
                                           : (int64_t)weft_rng_below(5, stream, (uint64_t)n,
                                                                     (uint64_t)(bytes - at + 1));
        out[n] = (struct weft_memory_span){memory + at, part};
        at += part;
    }
    return n;
}

Test(copy_bytes, lists_may_be_cut_anywhere)
{
    enum { SPANS = 9 };
    static unsigned char from[COPY_BYTES], to[COPY_BYTES];
    struct weft_memory_span sources[SPANS], targets[SPANS];
    for (uint64_t draw = 0; draw < COPY_CASES; draw++) {
        const int64_t bytes = (int64_t)weft_rng_below(6, 1, draw, COPY_BYTES - 1);
        fill_randomly(from, COPY_BYTES, 2 * draw);
        fill_randomly(to, COPY_BYTES, 2 * draw + 1);
        const unsigned char behind = to[bytes];
        const int32_t n = cut_randomly(from, bytes, 2 * draw, sources, SPANS);
        cut_randomly(to, bytes, 2 * draw + 1, targets, SPANS);
        weft_copy_spans(weft_copy_way_for(INT64_MAX), targets, sources, n);
        cr_assert_eq(memcmp(from, to, (size_t)bytes), 0);
        cr_assert_eq(to[bytes], behind);
    }
}
