/* SPDX-License-Identifier: Apache-2.0 */
/* The width of tokens in bytes that have no header, or a wrong one. Little-endian tokens leave a
 * pattern: the high part of a wide token is 0 in a vocabulary that is narrower. */
#ifndef WEFT_RUNTIME_TRAIN_TOKEN_WIDTH_H
#define WEFT_RUNTIME_TRAIN_TOKEN_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { WEFT_TOKEN_16_BITS = 65536 }; /* the largest vocabulary of tokens of 16 bits */

/* The bytes of a token, 8, 4 or 2, if the first bytes of a file without a header are tokens below
 * `vocab`; otherwise 0. */
int32_t weft_token_width(const unsigned char *bytes, size_t n, int64_t vocab);

/* Whether tokens are the halves of tokens twice as wide: every second one is 0, and most of the
 * others are not. Fewer than 64 tokens tell nothing. */
bool weft_token_halves(const int32_t *tokens, int64_t n);

/* Appends the way to a token file for the vocabulary: "write its tokens, 16 bits each, after a
 * header of 256 int32: ...". */
void weft_token_advise(int64_t vocab, struct weft_text *out);

#endif
