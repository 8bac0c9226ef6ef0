/* SPDX-License-Identifier: Apache-2.0 */
#include "text/merges.h"

#include <stdlib.h>

enum { FREE = -1, FEW = 64 };

enum weft_status weft_merges_init(struct weft_merges *merges, size_t count, struct weft_pool *pool,
                                  struct weft_error *err)
{
    size_t places = 16;
    while (places < 2 * count)
        places *= 2;
    *merges = (struct weft_merges){weft_pool_array(pool, places, sizeof *merges->places), places};
    if (merges->places == NULL) return weft_fail_memory(err, "merges of a tokenizer");
    for (size_t i = 0; i < places; i++)
        merges->places[i].left = FREE;
    return WEFT_OK;
}

/* The place of a pair, or the free one where it belongs. */
static struct weft_merge *find_pair(const struct weft_merges *merges, int32_t left, int32_t right)
{
    uint64_t hash =
        ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (hash >> 29) & (merges->n_places - 1);
    while (merges->places[at].left != FREE &&
           (merges->places[at].left != left || merges->places[at].right != right))
        at = (at + 1) & (merges->n_places - 1);
    return &merges->places[at];
}

void weft_merges_add(struct weft_merges *merges, const struct weft_merge *merge)
{
    struct weft_merge *place = find_pair(merges, merge->left, merge->right);
    if (place->left == FREE) *place = *merge;
}

enum weft_status weft_tokens_add(struct weft_tokens *tokens, int32_t token, struct weft_error *err)
{
    if (tokens->n == tokens->room) {
        const size_t room = tokens->room == 0 ? 256 : 2 * tokens->room;
        int32_t *all = realloc(tokens->all, room * sizeof *all);
        if (all == NULL) return weft_fail_memory(err, "tokens of a text");
        tokens->all = all;
        tokens->room = room;
    }
    tokens->all[tokens->n++] = token;
    return WEFT_OK;
}

/* A token of the piece, and its neighbours' places. */
struct symbol {
    int32_t token;         /* FREE: merged into the one before */
    int32_t before, after; /* FREE: none */
};

/* A possible merge of the symbol at `at` with the next one. It is stale if their tokens differ. */
struct candidate {
    int32_t rank, at, left, right, token;
};

struct piece {
    const struct weft_merges *merges;
    struct symbol *symbols; /* [n] */
    struct candidate *heap; /* [2 n] */
    int32_t n, n_heap;
};

static bool goes_first(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void push_candidate(struct piece *piece, int32_t at)
{
    const struct symbol *left = &piece->symbols[at];
    if (at == FREE || left->after == FREE) return;
    const int32_t right = piece->symbols[left->after].token;
    const struct weft_merge *merge = find_pair(piece->merges, left->token, right);
    if (merge->left == FREE) return;
    const struct candidate new = {merge->rank, at, left->token, right, merge->token};
    int32_t i = piece->n_heap++;
    for (; i > 0 && goes_first(&new, &piece->heap[(i - 1) / 2]); i = (i - 1) / 2)
        piece->heap[i] = piece->heap[(i - 1) / 2];
    piece->heap[i] = new;
}

static struct candidate pop_candidate(struct piece *piece)
{
    const struct candidate top = piece->heap[0], last = piece->heap[--piece->n_heap];
    int32_t i = 0;
    for (int32_t child; (child = 2 * i + 1) < piece->n_heap; i = child) {
        if (child + 1 < piece->n_heap && goes_first(&piece->heap[child + 1], &piece->heap[child]))
            child++;
        if (!goes_first(&piece->heap[child], &last)) break;
        piece->heap[i] = piece->heap[child];
    }
    piece->heap[i] = last;
    return top;
}

static void merge_symbols(struct piece *piece, const struct candidate *candidate)
{
    struct symbol *left = &piece->symbols[candidate->at];
    if (left->token != candidate->left || left->after == FREE) return;
    struct symbol *right = &piece->symbols[left->after];
    if (right->token != candidate->right) return;
    left->token = candidate->token;
    left->after = right->after;
    right->token = FREE;
    if (left->after != FREE) piece->symbols[left->after].before = candidate->at;
    if (left->before != FREE) push_candidate(piece, left->before);
    push_candidate(piece, candidate->at);
}

enum weft_status weft_merges_apply(const struct weft_merges *merges, const int32_t of_bytes[256],
                                   const unsigned char *bytes, size_t length,
                                   struct weft_tokens *out, struct weft_error *err)
{
    struct symbol few[FEW];
    struct candidate few_candidates[3 * FEW];
    struct piece piece = {merges, few, few_candidates, (int32_t)length, 0};
    enum weft_status status = WEFT_OK;
    if (length > FEW) {
        piece.symbols = malloc(length * sizeof *piece.symbols);
        piece.heap = malloc(3 * length * sizeof *piece.heap);
    }
    if (piece.symbols == NULL || piece.heap == NULL)
        status = weft_fail_memory(err, "a piece of text");
    for (int32_t i = 0; i < piece.n && status == WEFT_OK; i++)
        piece.symbols[i] =
            (struct symbol){of_bytes[bytes[i]], i - 1, i + 1 < piece.n ? i + 1 : FREE};
    for (int32_t i = 0; i < piece.n && status == WEFT_OK; i++)
        push_candidate(&piece, i);
    while (status == WEFT_OK && piece.n_heap > 0) {
        const struct candidate next = pop_candidate(&piece);
        merge_symbols(&piece, &next);
    }
    for (int32_t i = 0; i < piece.n && status == WEFT_OK; i++)
        if (piece.symbols[i].token != FREE)
            status = weft_tokens_add(out, piece.symbols[i].token, err);
    if (length > FEW) {
        free(piece.symbols);
        free(piece.heap);
    }
    return status;
}
