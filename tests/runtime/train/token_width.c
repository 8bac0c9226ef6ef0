/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/token_width.h"

#include <criterion/criterion.h>
#include <string.h>

enum { TOKENS = 1000 };

static int32_t width_of(int width, int64_t below, int64_t vocab)
{
    unsigned char bytes[8 * TOKENS] = {0};
    for (int i = 0; i < TOKENS; i++)
        for (int b = 0; b < width; b++)
            bytes[i * width + b] = (unsigned char)(INT64_C(7919) * (i + 1) % below >> (8 * b));
    return weft_token_width(bytes, (size_t)TOKENS * (size_t)width, vocab);
}

Test(token_width, the_bytes_of_tokens_tell_their_width)
{
    for (int width = 2; width <= 8; width *= 2)
        for (int64_t vocab = 300; vocab <= 1 << 18; vocab = vocab * 3 + 7) {
            const int64_t below = width == 2 && vocab > 65536 ? 65536 : vocab;
            cr_assert_eq(width_of(width, below, vocab), width, "%d %lld", width, (long long)vocab);
        }
    cr_assert_eq(width_of(2, 60000, 5000), 0);
    cr_assert_eq(width_of(4, 1 << 20, 300), 0);
    cr_assert_eq(weft_token_width((const unsigned char *)"", 0, 300), 0);
}

Test(token_width, halves_have_zeros_at_every_second_place)
{
    int32_t tokens[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i % 2 == 0 ? i % 97 : 0;
    cr_assert(weft_token_halves(tokens, TOKENS));
    cr_assert(weft_token_halves(tokens + 1, TOKENS - 1), "also high parts first");
    cr_assert_not(weft_token_halves(tokens, 63), "few tokens tell nothing");
    tokens[501] = 1;
    cr_assert_not(weft_token_halves(tokens, TOKENS));
    memset(tokens, 0, sizeof tokens);
    cr_assert_not(weft_token_halves(tokens, TOKENS), "zeros are zeros");
    for (int i = 0; i < TOKENS; i += 4)
        tokens[i] = 5;
    cr_assert_not(weft_token_halves(tokens, TOKENS), "few tokens are set");
}
