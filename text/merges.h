/* SPDX-License-Identifier: Apache-2.0 */
/* Merges of byte-pair encoding (Sennrich et al. 2016). A piece of text begins as its bytes' tokens.
 * The neighbours with the merge of least rank become one token, the leftmost first, until no
 * neighbours have a merge. A heap keeps this at n log n for pieces of any length. */
#ifndef WEFT_TEXT_MERGES_H
#define WEFT_TEXT_MERGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"

struct weft_merge {
    int32_t left, right; /* tokens; left -1: a free place */
    int32_t rank, token; /* of the merged pair */
};

struct weft_merges {
    struct weft_merge *places; /* [n_places]: a hash table */
    size_t n_places;
};

/* Tokens, growing. {0} is empty; free `all`. */
struct weft_tokens {
    int32_t *all;
    size_t n, room;
};

WEFT_MUST_USE enum weft_status weft_merges_init(struct weft_merges *merges, size_t count,
                                                struct weft_pool *pool, struct weft_error *err);
/* The first merge of a pair counts. */
void weft_merges_add(struct weft_merges *merges, const struct weft_merge *merge);

WEFT_MUST_USE enum weft_status weft_tokens_add(struct weft_tokens *tokens, int32_t token,
                                               struct weft_error *err);
/* Appends the tokens of a piece. of_bytes has the token of each byte. */
WEFT_MUST_USE enum weft_status weft_merges_apply(const struct weft_merges *merges,
                                                 const int32_t of_bytes[256],
                                                 const unsigned char *piece, size_t length,
                                                 struct weft_tokens *out, struct weft_error *err);

#endif
