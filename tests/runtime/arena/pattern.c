/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/arena/pattern.h"

#include <criterion/criterion.h>
#include <string.h>

enum { MOST_BYTES = 700, MOST_OFFSET = 3 };

Test(arena_pattern, one_other_byte_is_found_at_every_place)
{
    unsigned char bytes[MOST_OFFSET + MOST_BYTES];
    for (int offset = 0; offset <= MOST_OFFSET; offset++) {
        memset(bytes, 0, sizeof bytes); /* the neighbours do not count */
        for (int n = 0; n < MOST_BYTES; n += n < 20 ? 1 : 17) {
            memset(bytes + offset, WEFT_ARENA_PATTERN, (size_t)n);
            cr_assert(weft_arena_is_pattern(bytes + offset, n), "%d bytes at %d", n, offset);
            for (int i = 0; i < n; i++) {
                bytes[offset + i] ^= (unsigned char)(1 << i % 8);
                cr_assert_not(weft_arena_is_pattern(bytes + offset, n), "byte %d of %d", i, n);
                bytes[offset + i] = WEFT_ARENA_PATTERN;
            }
        }
    }
}
