/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/token_width.h"

enum { LEAST_TOKENS = 64 };

/* Whether all whole tokens are in the vocabulary, and half of them are not 0. */
static bool are_tokens(const unsigned char *bytes, size_t n, size_t width, int64_t vocab)
{
    const size_t count = n / width;
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t token = 0;
        for (size_t b = width; b > 0; b--)
            token = token << 8 | bytes[i * width + b - 1];
        if (token >= (uint64_t)vocab) return false;
        filled += token != 0;
    }
    return count > 0 && 2 * filled >= count;
}

int32_t weft_token_width(const unsigned char *bytes, size_t n, int64_t vocab)
{
    for (size_t width = 8; width >= 2; width /= 2)
        if (are_tokens(bytes, n, width, vocab)) return (int32_t)width;
    return 0;
}

bool weft_token_halves(const int32_t *tokens, int64_t n)
{
    int64_t filled[2] = {0, 0};
    for (int64_t i = 0; i < n; i++)
        filled[i % 2] += tokens[i] != 0;
    const int64_t most = filled[0] > filled[1] ? filled[0] : filled[1];
    return n >= LEAST_TOKENS && filled[0] + filled[1] == most && 4 * most >= 3 * (n / 2);
}

void weft_token_advise(int64_t vocab, struct weft_text *out)
{
    const bool wide = vocab > WEFT_TOKEN_16_BITS;
    weft_text_addf(out,
                   "write its tokens, %d bits each, after a header of 256 int32: %s, their number "
                   "(modulo 2^32), zeros",
                   wide ? 32 : 16, wide ? "20240801, 7" : "20240520, 1");
}
