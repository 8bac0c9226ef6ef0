/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

enum { SLICES = 8, TABLE_LEAST_BYTES = 16384, THREE_ROWS_LEAST_BYTES = 65536 };
static const uint32_t polynomial = 0x82F63B78u;

/* nibbles[b]: the remainder of half a byte. */
static const uint32_t nibbles[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75};

/* These functions work on the plain remainder, without the inversions before and after. */
static uint32_t by_nibbles(uint32_t state, const unsigned char *at, size_t length)
{
    for (; length > 0; at++, length--) {
        state ^= *at;
        state = state >> 4 ^ nibbles[state & 15];
        state = state >> 4 ^ nibbles[state & 15];
    }
    return state;
}

/* table[k][b]: the remainder of byte b followed by k zero bytes. Computed for each long call: it
 * takes microseconds, and threads share nothing. */
static void fill_slices(uint32_t table[SLICES][256])
{
    for (uint32_t b = 0; b < 256; b++) {
        unsigned char byte = (unsigned char)b;
        table[0][b] = by_nibbles(0, &byte, 1);
    }
    for (int k = 1; k < SLICES; k++) {
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
    }
}

static uint32_t load_word(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t by_slices(uint32_t state, const unsigned char *at, size_t length)
{
    uint32_t table[SLICES][256];
    if (length < TABLE_LEAST_BYTES) return by_nibbles(state, at, length);
    fill_slices(table);
    for (; length >= 8; at += 8, length -= 8) {
        uint32_t low = state ^ load_word(at), high = load_word(at + 4);
        state = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
                table[4][low >> 24] ^ table[3][high & 255] ^ table[2][high >> 8 & 255] ^
                table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    return by_nibbles(state, at, length);
}

/* Product of two polynomials modulo the CRC's, in its reflected order: bit 31 is x^0. */
static uint32_t multiply_polynomials(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; b != 0; b <<= 1) {
        if ((b & 0x80000000u) != 0) product ^= a;
        a = a >> 1 ^ (polynomial & (0u - (a & 1)));
    }
    return product;
}

/* The remainder after `zeros` more zero bytes: times x^(8 zeros), by squaring. */
static uint32_t shift_zeros(uint32_t state, int64_t zeros)
{
    uint32_t power = 0x00800000u; /* x^8 */
    for (; zeros > 0; zeros >>= 1) {
        if ((zeros & 1) != 0) state = multiply_polynomials(state, power);
        power = multiply_polynomials(power, power);
    }
    return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t in_one_row(uint32_t state,
                                                             const unsigned char *at, size_t length)
{
    uint64_t wide = state;
    for (; length >= 8; at += 8, length -= 8) {
        uint64_t eight;
        memcpy(&eight, at, sizeof eight);
        wide = _mm_crc32_u64(wide, eight);
    }
    uint32_t narrow = (uint32_t)wide;
    for (; length > 0; at++, length--)
        narrow = _mm_crc32_u8(narrow, *at);
    return narrow;
}

/* The instruction has three times the throughput of a dependent chain. So three parts of the bytes
 * run in parallel, and their remainders are combined. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t state,
                                                                 const unsigned char *at,
                                                                 size_t length)
{
    if (length < THREE_ROWS_LEAST_BYTES) return in_one_row(state, at, length);
    const size_t part = length / 24 * 8;
    uint64_t first = state, second = 0, third = 0;
    for (size_t i = 0; i < part; i += 8) {
        uint64_t words[3];
        memcpy(&words[0], at + i, 8);
        memcpy(&words[1], at + part + i, 8);
        memcpy(&words[2], at + 2 * part + i, 8);
        first = _mm_crc32_u64(first, words[0]);
        second = _mm_crc32_u64(second, words[1]);
        third = _mm_crc32_u64(third, words[2]);
    }
    const uint32_t two = shift_zeros((uint32_t)first, (int64_t)part) ^ (uint32_t)second;
    const uint32_t three = shift_zeros(two, (int64_t)part) ^ (uint32_t)third;
    return in_one_row(three, at + 3 * part, length - 3 * part);
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}
#else
static uint32_t by_instruction(uint32_t state, const unsigned char *at, size_t length)
{
    return by_slices(state, at, length);
}

static bool has_instruction(void)
{
    return false;
}
#endif

static uint32_t remainder_of(uint32_t state, const void *bytes, size_t length)
{
    return has_instruction() ? by_instruction(state, bytes, length)
                             : by_slices(state, bytes, length);
}

uint32_t weft_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    return ~remainder_of(~crc, bytes, length);
}

uint32_t weft_crc32c_table(uint32_t crc, const void *bytes, size_t length)
{
    return ~by_slices(~crc, bytes, length);
}

uint32_t weft_crc32c_share(const void *bytes, size_t length, int64_t behind)
{
    return shift_zeros(remainder_of(0, bytes, length), behind);
}

uint32_t weft_crc32c_frame(int64_t length)
{
    return ~shift_zeros(0xFFFFFFFFu, length);
}
