/* SPDX-License-Identifier: Apache-2.0 */
#include "text/vocabulary.h"

#include <string.h>

#include "base/utf8.h"

static uint64_t hash_token(const unsigned char *bytes, size_t length)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash ^ hash >> 32;
}

enum weft_status weft_vocabulary_init(struct weft_vocabulary *vocabulary, int32_t n, size_t count,
                                      struct weft_pool *pool, struct weft_error *err)
{
    size_t places = 16;
    while (places < 2 * count)
        places *= 2;
    *vocabulary = (struct weft_vocabulary){
        .tokens = weft_pool_array(pool, (size_t)n, sizeof *vocabulary->tokens),
        .n = n,
        .places = weft_pool_array(pool, places, sizeof *vocabulary->places),
        .n_places = places};
    if (vocabulary->tokens == NULL || vocabulary->places == NULL)
        return weft_fail_memory(err, "a vocabulary");
    memset(vocabulary->places, 0xff, places * sizeof *vocabulary->places);
    return WEFT_OK;
}

/* The place of a token, or the free one where it belongs. */
static size_t find_place(const struct weft_vocabulary *vocabulary, const unsigned char *bytes,
                         size_t length)
{
    size_t at = hash_token(bytes, length) & (vocabulary->n_places - 1);
    for (; vocabulary->places[at] >= 0; at = (at + 1) & (vocabulary->n_places - 1)) {
        const struct weft_token *token = &vocabulary->tokens[vocabulary->places[at]];
        if (token->length == length && memcmp(token->bytes, bytes, length) == 0) break;
    }
    return at;
}

bool weft_vocabulary_add(struct weft_vocabulary *vocabulary, int32_t number,
                         const unsigned char *bytes, size_t length)
{
    const size_t at = find_place(vocabulary, bytes, length);
    if (vocabulary->places[at] >= 0 || vocabulary->tokens[number].bytes != NULL) return false;
    vocabulary->places[at] = number;
    vocabulary->tokens[number] = (struct weft_token){bytes, length};
    return true;
}

int32_t weft_vocabulary_find(const struct weft_vocabulary *vocabulary, const unsigned char *bytes,
                             size_t length)
{
    return vocabulary->places[find_place(vocabulary, bytes, length)];
}

/* Bytes that are their own character: printable ones of Latin-1. The others are the characters from
 * 256 on, in order. */
static bool is_own_character(uint32_t byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
           (byte >= 174 && byte <= 255);
}

/* The byte of a character of the alphabet, or -1. */
static int read_character(uint32_t code)
{
    if (code < 256) return is_own_character(code) ? (int)code : -1;
    uint32_t left = code - 256;
    for (int byte = 0; byte < 256; byte++)
        if (!is_own_character((uint32_t)byte) && left-- == 0) return byte;
    return -1;
}

int64_t weft_alphabet_read(const char *string, unsigned char *out, size_t room)
{
    const unsigned char *at = (const unsigned char *)string;
    size_t left = strlen(string), n = 0;
    while (left > 0) {
        const size_t taken = weft_utf8_sequence(at, left);
        const int byte = taken > 0 ? read_character(weft_utf8_code(at, taken)) : -1;
        if (byte < 0 || n == room) return -1;
        out[n++] = (unsigned char)byte;
        at += taken;
        left -= taken;
    }
    return (int64_t)n;
}
