/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool weft_utf8_continues(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* Bytes (1 to 4) of the valid sequence at `at`, with `left` (> 0) readable bytes; 0 if there is
 * none. */
static inline size_t weft_utf8_sequence(const unsigned char *at, size_t left)
{
    unsigned char lead = at[0];
    if (lead < 0x80) return 1;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || left < length) return 0;
    for (size_t i = 1; i < length; i++) {
        if (!weft_utf8_continues(at[i])) return 0;
    }
    if ((lead == 0xE0 && at[1] < 0xA0) || (lead == 0xED && at[1] > 0x9F)) return 0;
    if ((lead == 0xF0 && at[1] < 0x90) || (lead == 0xF4 && at[1] > 0x8F)) return 0;
    return length;
}

/* The code point of the valid sequence of `length` bytes. */
static inline uint32_t weft_utf8_code(const unsigned char *at, size_t length)
{
    static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = at[0] & masks[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | (at[i] & 0x3F);
    return code;
}

#endif
