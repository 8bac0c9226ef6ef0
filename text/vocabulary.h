/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary maps tokens, which are byte strings, to their numbers and back. Strings may be read
 * from JSON in GPT-2's alphabet, where each byte is a printable character ("Ġ" is a space). */
#ifndef WEFT_TEXT_VOCABULARY_H
#define WEFT_TEXT_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"

enum { WEFT_MOST_TOKENS = 1 << 24 }; /* numbers are below */

struct weft_token {
    const unsigned char *bytes; /* NULL: no token has this number */
    size_t length;
};

struct weft_vocabulary {
    struct weft_token *tokens; /* [n], by number; with holes */
    int32_t n;
    int32_t *places; /* [n_places]: a hash table of numbers; -1: free */
    size_t n_places;
};

/* Makes room for `count` tokens with numbers below n. The pool owns it. */
WEFT_MUST_USE enum weft_status weft_vocabulary_init(struct weft_vocabulary *vocabulary, int32_t n,
                                                    size_t count, struct weft_pool *pool,
                                                    struct weft_error *err);
/* Adds a token, and borrows its bytes. False if its number or its bytes are there already. */
bool weft_vocabulary_add(struct weft_vocabulary *vocabulary, int32_t number,
                         const unsigned char *bytes, size_t length);
/* The number of a token; -1: there is none. */
int32_t weft_vocabulary_find(const struct weft_vocabulary *vocabulary, const unsigned char *bytes,
                             size_t length);

/* Reads a string of GPT-2's alphabet as bytes, at most `room`. Returns their number, or -1 if a
 * character is no byte. */
int64_t weft_alphabet_read(const char *string, unsigned char *out, size_t room);

#endif
