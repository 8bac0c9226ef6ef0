/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's kinds against the formula, by central differences backward; their levels of
 * recomputation, and sequences that come in pieces. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "layers/recipe/walk.h"
#include "layers/shared/block.h"
#include "tests/effort.h"
#include "tests/runtime/nn/cpu/layers/subject.h"

static struct weft_layer with_bias(struct weft_layer layer)
{
    layer.keys[WEFT_BLOCK_QKV_BIAS].flag = true;
    return layer;
}

static struct weft_layer llama_layer(int64_t hidden, int64_t heads, int64_t kv_heads,
                                     int64_t head_dim, int64_t ffn)
{
    return subject_llama(&weft_kind_llama_block, hidden, heads, kv_heads, head_dim, ffn);
}

static struct weft_layer qwen3_layer(int64_t hidden, int64_t heads, int64_t kv_heads,
                                     int64_t head_dim, int64_t ffn)
{
    return subject_llama(&weft_kind_qwen3_block, hidden, heads, kv_heads, head_dim, ffn);
}

Test(attend, llama_block_is_the_formula_at_every_element_of_a_tiny_one)
{
    subject_check_layer(llama_layer(6, 2, 1, 4, 5), 2, 5, 100000);
    subject_check_layer(with_bias(llama_layer(4, 2, 2, 2, 3)), 1, 3, 100000);
}

Test(attend, llama_block_has_heads_of_any_size_and_sequences_that_divide_nothing)
{
    subject_check_layer(llama_layer(48, 3, 1, 32, 34), 1, 67, TEST_CASES(8, 2));
    subject_check_layer(with_bias(llama_layer(10, 2, 2, 80, 7)), 2, 9, TEST_CASES(8, 2));
    subject_check_layer(llama_layer(20, 4, 2, 96, 6), 1, 33, TEST_CASES(6, 2));
    subject_check_layer(llama_layer(8, 4, 2, 2, 16), 3, 1, 1000);
}

Test(attend, llama_block_takes_heads_as_a_whole_where_kernels_do)
{
    subject_check_layer(llama_layer(16, 2, 1, 64, 16), 2, 64, TEST_CASES(3, 1));
}

Test(attend, qwen3_block_is_the_formula)
{
    subject_check_layer(qwen3_layer(6, 2, 1, 4, 5), 2, 5, 100000);
    subject_check_layer(qwen3_layer(10, 4, 2, 32, 7), 1, 35, TEST_CASES(8, 2));
    subject_check_layer_in_f32(qwen3_layer(8, 2, 1, 64, 8), 1, 64, TEST_CASES(3, 1));
}

/* Gemma's blocks: scores of a scalar and a cap, and rows that see no more than a window. */
static struct weft_layer gemma_layer(const struct weft_kind *kind, int64_t head_dim, int64_t window)
{
    struct weft_layer layer = subject_llama(kind, 10, 4, 2, head_dim, 7);
    layer.keys[WEFT_BLOCK_WINDOW].integer = window;
    if (kind == &weft_kind_gemma_block) return layer;
    layer.keys[WEFT_BLOCK_QUERY_SCALAR].number = 3;
    layer.keys[WEFT_BLOCK_ATTENTION_CAP].number = 4;
    return layer;
}

Test(attend, gemma_blocks_are_the_formula)
{
    subject_check_layer(gemma_layer(&weft_kind_gemma_block, 4, 3), 2, 5, TEST_CASES(1000, 20));
    subject_check_layer_in_f32(gemma_layer(&weft_kind_gemma2_block, 6, 3), 2, 7,
                               TEST_CASES(1000, 20));
    subject_check_layer_in_f32(gemma_layer(&weft_kind_gemma3_block, 6, 0), 2, 5,
                               TEST_CASES(1000, 20));
    subject_check_layer_in_f32(gemma_layer(&weft_kind_gemma2_block, 256, 0), 1, 3, 2);
    subject_check_layer_in_f32(gemma_layer(&weft_kind_gemma2_block, 64, 0), 1, 64, 2);
}

/* Stripes of 64 rows leave out the columns before their windows. */
Test(attend, windows_cross_stripes_of_scores)
{
    subject_check_layer_in_f32(gemma_layer(&weft_kind_gemma2_block, 2, 70), 1, 1100,
                               TEST_CASES(3, 1));
}

/* ViT's block and BERT's. */
static struct weft_layer encoder_layer(bool post_norm)
{
    struct weft_layer layer = subject_block(6, 2, 10);
    layer.kind = &weft_kind_encoder_block;
    layer.keys[WEFT_BLOCK_POST_NORM].flag = post_norm;
    layer.keys[WEFT_BLOCK_EPS].number = post_norm ? 0.01 : 0;
    return layer;
}

Test(attend, encoder_blocks_are_the_formula)
{
    for (int post = 0; post < 2; post++) {
        subject_check_layer(encoder_layer(post == 1), 2, 5, TEST_CASES(1000, 20));
        subject_check_levels(encoder_layer(post == 1), 2, 33);
    }
}

/* Rows of padding are no keys, in stripes of 64 rows too. A sample of padding alone has none. */
Test(attend, encoder_blocks_leave_out_padding)
{
    subject_hides = true;
    for (int post = 0; post < 2; post++) {
        subject_check_layer(encoder_layer(post == 1), 3, 5, TEST_CASES(1000, 20));
        subject_check_levels(encoder_layer(post == 1), 3, 33);
    }
    subject_check_layer_in_f32(encoder_layer(true), 1, 70, TEST_CASES(100, 4));
    subject_hides = false;
}

/* Causal attention sees padding. */
Test(attend, blocks_of_decoders_see_padding)
{
    subject_hides = true;
    subject_check_layer_in_f32(subject_block(6, 2, 10), 2, 5, 20);
    subject_hides = false;
}

static void check_norm_of(const struct weft_kind *kind)
{
    struct weft_layer layer = subject_same(kind, 5);
    layer.keys[WEFT_BLOCK_EPS].number = 1e-3;
    subject_check_layer(layer, 3, 4, 1000);
    layer.hidden = layer.outputs = 99;
    subject_check_layer(layer, 2, 7, 200);
}

Test(attend, rms_norms_are_the_formula)
{
    check_norm_of(&weft_kind_rms_norm);
    check_norm_of(&weft_kind_gemma_norm);
}

Test(attend, restores_the_bits_that_it_dropped)
{
    subject_check_levels(with_bias(llama_layer(15, 3, 1, 6, 34)), 2, 37);
    subject_check_levels(llama_layer(16, 2, 1, 64, 20), 1, 64);
    subject_check_levels(qwen3_layer(12, 4, 2, 6, 10), 2, 33);
    subject_check_levels(gemma_layer(&weft_kind_gemma3_block, 6, 5), 2, 33);
}

static int64_t cache_columns(const struct subject *subject)
{
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_assert_eq(
        weft_walk_derive(&subject->layer, &subject->call.batch, WEFT_RECOMPUTE_NONE, &walk, &err),
        WEFT_OK, "%s", err.text);
    return walk.cache_columns;
}

/* Runs a layer on rows in pieces with a cache, and on all of them. */
static void check_pieces(struct weft_nn *nn, struct weft_layer layer)
{
    static const int64_t ends[] = {9, 10, 23};
    struct subject whole;
    subject_init(&whole, layer, 1, 23, 0);
    subject_forward(nn, &whole);
    const int64_t hidden = layer.hidden, columns = cache_columns(&whole);
    struct weft_nn_cache cache = {.most_rows = 23,
                                  .rows = malloc((size_t)(23 * columns) * sizeof(float)),
                                  .scores = malloc(23 * 23 * sizeof(float))};
    for (int i = 0; i < 3; i++) {
        struct subject piece;
        subject_init(&piece, layer, 1, ends[i] - cache.before, 0);
        for (int t = 0; t < WEFT_LAYER_TENSORS; t++) {
            piece.call.tensors[t] = whole.call.tensors[t];
        }
        piece.call.input = (const float *)whole.call.input + cache.before * hidden;
        piece.call.cache = &cache;
        subject_forward(nn, &piece);
        cr_assert_eq(memcmp(piece.call.output,
                            (const float *)whole.call.output + cache.before * hidden,
                            (size_t)((ends[i] - cache.before) * hidden) * sizeof(float)),
                     0, "rows %d to %d", (int)cache.before, (int)ends[i]);
        cache.before = ends[i];
        subject_finish(&piece);
    }
    free(cache.rows);
    free(cache.scores);
    subject_finish(&whole);
}

Test(attend, a_sequence_in_pieces_has_the_bits_of_the_whole)
{
    struct weft_nn *nn = subject_open("plain");
    check_pieces(nn, llama_layer(12, 4, 2, 6, 10));
    check_pieces(nn, qwen3_layer(12, 4, 1, 6, 10));
    check_pieces(nn, subject_block(12, 2, 10));
    check_pieces(nn, gemma_layer(&weft_kind_gemma2_block, 6, 4));
    weft_nn_close(nn);
}
