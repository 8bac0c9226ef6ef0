/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged JSON for tests: seeds, and drawn changes of them. Included by plain programs. */
#ifndef WEFT_TESTS_BASE_JSON_DAMAGE_H
#define WEFT_TESTS_BASE_JSON_DAMAGE_H

#include <stdint.h>
#include <string.h>

#include "base/rng.h"

static const char *const damage_seeds[] = {
    "{\"format\": \"weft-plan\", \"version\": 1, \"units\": [{\"name\": \"layer.0\", \"bytes\": "
    "123456}, {\"name\": \"layer.1\", \"bytes\": 0}], \"ok\": true, \"none\": null}",
    "[1, -2.5e-3, 0.1, 1e308, 9007199254740991, -0, [], {}, [[[[]]]]]",
    "{\"\\u0061\": \"\\uD83D\\uDE00 \\n\\\\\", \"b\\\"\": "
    "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"}",
    "  \"just a string\"  ",
    "-12.75E+3",
};

/* Pieces that damage best. */
static const char *const damage_pieces[] = {
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "0",
    "-",
    ".",
    "e9",
    "\n",
    "\\u00",
    "\\uD800",
    "\\uDC00",
    "\\u0000",
    "true",
    "\xC3",
    "\xED",
    "1e400",
    "//",
    " ",
    "\xEF\xBB\xBF",
    "\"a\": 1, \"a\": 2",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
};

enum {
    DAMAGE_SEEDS = sizeof damage_seeds / sizeof damage_seeds[0],
    DAMAGE_PIECES = sizeof damage_pieces / sizeof damage_pieces[0]
};

struct damage_buffer {
    char bytes[8192];
    size_t length;
};

static void damage_splice(struct damage_buffer *buffer, size_t at, size_t gone, const char *piece,
                          size_t length)
{
    if (gone > buffer->length - at) gone = buffer->length - at;
    if (buffer->length - gone + length > sizeof buffer->bytes) return;
    memmove(buffer->bytes + at + length, buffer->bytes + at + gone, buffer->length - at - gone);
    memcpy(buffer->bytes + at, piece, length);
    buffer->length = buffer->length - gone + length;
}

static void damage_step(struct damage_buffer *buffer, uint64_t round, uint64_t step)
{
    uint64_t draw = step * 8;
    size_t at = weft_rng_below(1, round, draw, buffer->length + 1);
    size_t span = weft_rng_below(1, round, draw + 1, 8);
    const char *piece = damage_pieces[weft_rng_below(1, round, draw + 2, DAMAGE_PIECES)];
    char byte = (char)weft_rng_u64(1, round, draw + 3);
    switch (weft_rng_below(1, round, draw + 4, 5)) {
    case 0:
        damage_splice(buffer, at, 1, &byte, 1);
        break;
    case 1:
        damage_splice(buffer, at, span, "", 0);
        break;
    case 2:
        damage_splice(buffer, at, 0, piece, strlen(piece));
        break;
    case 3:
        buffer->length = at;
        break;
    default: {
        const char *other = damage_seeds[weft_rng_below(1, round, draw + 5, DAMAGE_SEEDS)];
        damage_splice(buffer, at, span, other, strlen(other));
        break;
    }
    }
}

/* Fills the buffer with the changed seed of a round. */
static void damage_make(uint64_t round, struct damage_buffer *buffer)
{
    const char *seed = damage_seeds[round % DAMAGE_SEEDS];
    buffer->length = strlen(seed);
    memcpy(buffer->bytes, seed, buffer->length);
    const uint64_t steps = 1 + weft_rng_below(2, round, 0, 4);
    for (uint64_t step = 0; step < steps; step++)
        damage_step(buffer, round, step);
}

#endif
