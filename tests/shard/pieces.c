/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/rng.h"
#include "shard/shard.h"
#include "tests/shard/models.h"

/* Checks one element against the layout of shard.h, computed the slow way. */
static void check_element(const struct weft_unit *unit, int64_t ranks, int64_t rank,
                          int64_t unit_element, int64_t owned_element)
{
    int64_t block = unit_element / (ranks * unit->slice_elements);
    int64_t within = unit_element % (ranks * unit->slice_elements);
    if (rank < 0) {
        cr_assert_eq(owned_element, unit_element);
        return;
    }
    cr_assert_eq(within / unit->slice_elements, rank);
    cr_assert_eq(owned_element, block * unit->slice_elements + within % unit->slice_elements);
}

/* Walks the pieces of a rank, counts each element of each tensor that it owns. */
static void walk_pieces(const struct weft_shards *shards, const struct weft_model *model, int32_t u,
                        int64_t rank, int8_t *const *owned)
{
    const struct weft_unit *unit = &shards->units[u];
    int64_t block_elements = shards->ranks * unit->slice_elements, before = 0;
    struct weft_piece_cursor cursor = {0};
    struct weft_piece piece;
    while (weft_piece_next(shards, model, u, rank, &cursor, &piece)) {
        cr_assert_gt(piece.count, 0);
        cr_assert_eq(shards->tensor_unit[piece.tensor], u);
        cr_assert_eq(piece.unit_begin - piece.tensor_begin, shards->tensor_offset[piece.tensor]);
        cr_assert_leq(piece.tensor_begin + piece.count, model->tensors[piece.tensor].elements);
        cr_assert_geq(piece.unit_begin, before, "in order");
        before = piece.unit_begin + piece.count;
        cr_assert_eq(piece.unit_begin / block_elements, (before - 1) / block_elements);
        check_element(unit, shards->ranks, rank, piece.unit_begin, piece.shard_begin);
        check_element(unit, shards->ranks, rank, before - 1, piece.shard_begin + piece.count - 1);
        for (int64_t i = 0; i < piece.count; i++)
            owned[piece.tensor][piece.tensor_begin + i]++;
    }
    cr_assert_not(weft_piece_next(shards, model, u, rank, &cursor, &piece), "the end stays");
}

/* Over the ranks `first`..`last`, every element of every tensor comes exactly once. */
static void check_owned_once(const struct weft_shards *shards, const struct weft_model *model,
                             int64_t first, int64_t last)
{
    int8_t **owned = calloc((size_t)model->n_tensors, sizeof *owned);
    for (int32_t t = 0; t < model->n_tensors; t++)
        owned[t] = calloc((size_t)model->tensors[t].elements, 1);
    for (int64_t rank = first; rank <= last; rank++) {
        for (int32_t u = 0; u < shards->n_units; u++)
            walk_pieces(shards, model, u, rank, owned);
    }
    for (int32_t t = 0; t < model->n_tensors; t++) {
        for (int64_t i = 0; i < model->tensors[t].elements; i++)
            cr_assert_eq(owned[t][i], 1, "element %d of %s", (int)i, model->tensors[t].name);
        free(owned[t]);
    }
    free(owned);
}

static void check_model(const struct weft_model *model, bool fuse)
{
    for (int64_t ranks = 1; ranks <= 9; ranks++) {
        for (int64_t blocks = fuse ? 0 : 1; blocks <= (fuse ? 0 : 7); blocks++) {
            struct weft_block_rule rule = {
                .blocks = blocks, .block_bytes = 4096, .element_bytes = 4, .fuse = fuse};
            struct weft_shards *shards = NULL;
            cr_assert_eq(weft_shards_create(model, ranks, &rule, &shards, NULL), WEFT_OK);
            check_owned_once(shards, model, 0, ranks - 1);
            check_owned_once(shards, model, -1, -1);
            weft_shards_destroy(shards);
        }
    }
}

Test(pieces, every_element_is_owned_once_at_random_sizes)
{
    enum { MOST_LAYERS = 5 };
    static const char *const names[MOST_LAYERS] = {"a", "b", "c", "d", "e"};
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct weft_layer layers[MOST_LAYERS];
        int32_t n = 1 + (int32_t)weft_rng_below(seed, 0, 0, MOST_LAYERS);
        for (int32_t l = 0; l < n; l++) {
            uint64_t most = seed % 3 == 0 ? 12 : 4000; /* some with less than one a rank */
            int64_t parameters = (int64_t)weft_rng_below(seed, 1, (uint64_t)l, most);
            layers[l] = custom_layer(names[l], parameters, weft_rng_below(seed, 2, l, 4) == 0);
        }
        struct weft_model *model = make_model(layers, n);
        check_model(model, false);
        check_model(model, true);
        weft_model_destroy(model);
    }
}

Test(pieces, every_element_is_owned_once_with_many_tensors_a_unit)
{
    struct weft_model *model = make_tied_model(false);
    check_model(model, false);
    check_model(model, true);
    weft_model_destroy(model);
}

Test(pieces, a_rank_may_own_nothing)
{
    struct weft_layer layer = custom_layer("tiny", 3, false);
    struct weft_model *model = make_model(&layer, 1);
    struct weft_shards *shards = NULL;
    struct weft_block_rule rule = {.blocks = 2};
    cr_assert_eq(weft_shards_create(model, 4, &rule, &shards, NULL), WEFT_OK);
    for (int64_t rank = 0; rank < 4; rank++) {
        struct weft_piece_cursor cursor = {0};
        struct weft_piece piece;
        cr_assert_eq(weft_piece_next(shards, model, 0, rank, &cursor, &piece), rank == 0);
        if (rank == 0) cr_assert_eq(piece.count, 3);
    }
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}
