/* SPDX-License-Identifier: Apache-2.0 */
/* MurmurHash3_x64_128 of Austin Appleby (public domain), seed 0. Bytes are little-endian on every
 * machine. */
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t factor_1 = 0x87c37b91114253d5U;
static const uint64_t factor_2 = 0x4cf5ad432745937fU;

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* Up to eight bytes, the first one lowest. */
static uint64_t load_bytes(const unsigned char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static uint64_t scramble_1(uint64_t k)
{
    return rotate_left(k * factor_1, 31) * factor_2;
}

static uint64_t scramble_2(uint64_t k)
{
    return rotate_left(k * factor_2, 33) * factor_1;
}

static uint64_t mix_hash(uint64_t k)
{
    k = (k ^ k >> 33) * 0xff51afd7ed558ccdU;
    k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53U;
    return k ^ k >> 33;
}

struct weft_hash weft_hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t h1 = 0, h2 = 0;
    size_t left = length;
    for (; left >= 16; at += 16, left -= 16) {
        h1 ^= scramble_1(load_bytes(at, 8));
        h1 = (rotate_left(h1, 27) + h2) * 5 + 0x52dce729U;
        h2 ^= scramble_2(load_bytes(at + 8, 8));
        h2 = (rotate_left(h2, 31) + h1) * 5 + 0x38495ab5U;
    }
    if (left > 8) h2 ^= scramble_2(load_bytes(at + 8, left - 8));
    if (left > 0) h1 ^= scramble_1(load_bytes(at, left > 8 ? 8 : left));
    h1 ^= length;
    h2 ^= length;
    h1 += h2;
    h2 += h1;
    h1 = mix_hash(h1);
    h2 = mix_hash(h2);
    h1 += h2;
    h2 += h1;
    return (struct weft_hash){.high = h1, .low = h2};
}

uint64_t weft_hash_string(const char *string)
{
    return weft_hash_bytes(string, strlen(string)).high;
}

bool weft_hash_equal(struct weft_hash a, struct weft_hash b)
{
    return a.high == b.high && a.low == b.low;
}

const char *weft_hash_show(struct weft_hash hash, char out[WEFT_HASH_TEXT_BYTES])
{
    snprintf(out, WEFT_HASH_TEXT_BYTES, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
    return out;
}

bool weft_hash_read(const char *string, struct weft_hash *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    uint64_t halves[2] = {0, 0};
    for (int i = 0; i < WEFT_HASH_TEXT_BYTES - 1; i++) {
        const char *digit = string[i] == '\0' ? NULL : strchr(digits, string[i]);
        if (digit == NULL) return false;
        halves[i / 16] = halves[i / 16] << 4 | (uint64_t)((digit - digits) % 16);
    }
    if (string[WEFT_HASH_TEXT_BYTES - 1] != '\0') return false;
    *out = (struct weft_hash){.high = halves[0], .low = halves[1]};
    return true;
}
