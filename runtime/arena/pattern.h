/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the pattern that memory without an owner holds (arena.h, watching). */
#ifndef WEFT_RUNTIME_ARENA_PATTERN_H
#define WEFT_RUNTIME_ARENA_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/arena/arena.h"

/* True if all `bytes` bytes at `at` are the pattern. Bytes that AddressSanitizer has closed may be
 * read. */
#if defined(__GNUC__)
__attribute__((no_sanitize("address", "undefined")))
#endif
static inline bool
weft_arena_is_pattern(const void *at, int64_t bytes)
{
    enum { BLOCK_BYTES = 256 };
    const unsigned char *byte = at;
    int64_t i = 0;
    /* The loop over a block has no early exit, so it becomes vector instructions. A call of memcmp
     * would be refused closed bytes. */
    for (; bytes - i >= BLOCK_BYTES; i += BLOCK_BYTES) {
        unsigned char difference = 0;
        for (int64_t k = 0; k < BLOCK_BYTES; k++)
            difference |= (unsigned char)(byte[i + k] ^ WEFT_ARENA_PATTERN);
        if (difference != 0) return false;
    }
    for (; i < bytes; i++) {
        if (byte[i] != WEFT_ARENA_PATTERN) return false;
    }
    return true;
}

#endif
