/* SPDX-License-Identifier: Apache-2.0 */
#include "text/merges.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/rng.h"

enum { LETTERS = 4, MERGES = 40, MOST = 300 };

struct random_merges {
    struct weft_pool pool;
    struct weft_merges merges;
    struct weft_merge list[MERGES];
    int32_t of_bytes[256];
};

static uint64_t draw_number(uint64_t seed, uint64_t stream, uint64_t below)
{
    return weft_rng_below(seed, stream, 1, below);
}

static void make_merges(struct random_merges *made, uint64_t seed)
{
    struct weft_error err = {0};
    *made = (struct random_merges){.pool = {0}};
    cr_assert_eq(weft_merges_init(&made->merges, MERGES, &made->pool, &err), WEFT_OK);
    for (int32_t i = 0; i < 256; i++)
        made->of_bytes[i] = i % LETTERS;
    for (int32_t rank = 0; rank < MERGES; rank++) {
        const uint64_t known = (uint64_t)(LETTERS + rank), stream = 2 * (uint64_t)rank;
        made->list[rank] = (struct weft_merge){(int32_t)draw_number(seed, stream, known),
                                               (int32_t)draw_number(seed, stream + 1, known), rank,
                                               LETTERS + rank};
        weft_merges_add(&made->merges, &made->list[rank]);
    }
}

/* The definition: merge the leftmost pair of the least rank, again and again. */
static size_t merge_slowly(const struct random_merges *made, int32_t *tokens, size_t n)
{
    for (int32_t rank = 0; rank < MERGES;) {
        const struct weft_merge *merge = &made->list[rank];
        size_t at = 0;
        while (at + 1 < n && (tokens[at] != merge->left || tokens[at + 1] != merge->right))
            at++;
        if (at + 1 >= n) {
            rank++;
            continue;
        }
        tokens[at] = merge->token;
        for (size_t i = at + 1; i + 1 < n; i++)
            tokens[i] = tokens[i + 1];
        n--;
        rank = 0;
    }
    return n;
}

Test(merges, follow_ranks_from_the_left)
{
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct random_merges made;
        struct weft_tokens got = {0};
        struct weft_error err = {0};
        unsigned char piece[MOST];
        int32_t wanted[MOST];
        make_merges(&made, seed);
        const size_t length = 1 + (size_t)draw_number(seed, 1000, MOST);
        for (size_t i = 0; i < length; i++) {
            piece[i] = (unsigned char)draw_number(seed, 2000 + i, 256);
            wanted[i] = made.of_bytes[piece[i]];
        }
        const size_t n = merge_slowly(&made, wanted, length);
        cr_assert_eq(weft_merges_apply(&made.merges, made.of_bytes, piece, length, &got, &err),
                     WEFT_OK);
        cr_assert_eq(got.n, n, "seed %d", (int)seed);
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(got.all[i], wanted[i], "seed %d", (int)seed);
        free(got.all);
        weft_pool_finish(&made.pool);
    }
}

/* A million equal letters: quadratic work would take hours. */
Test(merges, a_long_piece_takes_little_work, .timeout = 60)
{
    enum { LONG = 1000000 };
    struct random_merges made;
    struct weft_tokens got = {0};
    struct weft_error err = {0};
    unsigned char *piece = calloc(LONG, 1);
    make_merges(&made, 1);
    weft_merges_add(&made.merges, &(struct weft_merge){0, 0, MERGES, 99});
    cr_assert_eq(weft_merges_apply(&made.merges, made.of_bytes, piece, LONG, &got, &err), WEFT_OK);
    cr_assert_leq(got.n, LONG / 2);
    free(got.all);
    free(piece);
    weft_pool_finish(&made.pool);
}
