/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "layers/recipe/op.h"
#include "subject.h"
#include "tests/effort.h"

Test(block, is_the_formula_at_every_element_of_a_tiny_one)
{
    subject_check_layer(subject_block(6, 2, 10), 2, 5, 100000);
}

Test(block, crosses_the_blocks_of_the_score_matrix_with_sizes_that_divide_nothing)
{
    subject_check_layer(subject_block(15, 3, 34), 2, 67, TEST_CASES(12, 3));
    subject_check_layer(subject_block(10, 1, 7), 1, 131, TEST_CASES(8, 2));
}

Test(block, takes_exact_blocks)
{
    subject_check_layer(subject_block(32, 2, 64), 1, 128, TEST_CASES(6, 2));
}

Test(block, takes_heads_as_a_whole_where_kernels_do)
{
    subject_check_layer(subject_block(64, 1, 16), 2, 64, TEST_CASES(3, 1));
    subject_check_layer_in_f32(subject_block(128, 2, 16), 2, 128, TEST_CASES(2, 1));
}

Test(block, takes_one_token)
{
    subject_check_layer(subject_block(8, 4, 16), 1, 1, 100000);
    subject_check_layer(subject_block(8, 8, 16), 3, 1, 100000);
}

static struct weft_walk walk_of(const struct subject *subject, enum weft_recompute level)
{
    struct weft_walk walk;
    struct weft_error err = {0};
    cr_assert_eq(weft_walk_derive(&subject->layer, &subject->call.batch, level, &walk, &err),
                 WEFT_OK, "%s", err.text);
    return walk;
}

/* Each saved value of `level` equals that of a block that keeps all. Parts of the probabilities are
 * undefined. */
static void check_values(const struct subject *plain, const struct subject_level *it,
                         enum weft_recompute level)
{
    const struct weft_walk all = walk_of(plain, WEFT_RECOMPUTE_NONE), walk = walk_of(plain, level);
    const char *dropped = (char *)it->backward_temporary + weft_dropped_offset(walk.backward_bytes);
    int32_t compared = 0;
    for (int32_t i = 0; i < walk.n_values; i++) {
        const struct weft_value *value = &walk.values[i];
        const bool kept = value->location == WEFT_VALUE_KEPT;
        const bool undefined = value->suffix != NULL && strcmp(value->suffix, "probabilities") == 0;
        if (all.values[i].location != WEFT_VALUE_KEPT || undefined) continue;
        const char *from = kept ? it->subject.call.saved : dropped;
        const int64_t bytes = value->rows * value->columns * weft_value_element(&walk, value);
        cr_assert_eq(memcmp(from + value->offset, (char *)plain->call.saved + all.values[i].offset,
                            (size_t)bytes),
                     0, "%s of level %d", value->name, (int)level);
        compared++;
    }
    cr_assert_eq(compared, 11);
}

static void check_levels(const char *library, enum weft_dtype compute, enum weft_dtype gradient)
{
    const struct weft_nn_options options = {.threads = 1, .compute = compute, .gemm = library};
    struct weft_nn *nn = NULL;
    struct weft_error err = {0};
    if (weft_nn_open("cpu", &options, &nn, &err) != WEFT_OK) return;
    /* Heads by rows, and as a whole where kernels do. */
    const struct {
        int64_t hidden, heads, ffn, samples, seq_len;
    } shapes[] = {{15, 3, 34, 2, 67}, {64, 1, 80, 2, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct subject plain;
        subject_init_as(&plain, subject_block(shapes[i].hidden, shapes[i].heads, shapes[i].ffn),
                        shapes[i].samples, shapes[i].seq_len, 0, compute, gradient);
        subject_forward(nn, &plain);
        subject_backward(nn, &plain);
        for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
            struct subject_level it;
            if (!subject_has_level(&plain, level)) continue;
            subject_level_init(&it, &plain, (enum weft_recompute)level);
            subject_level_run(nn, &it);
            cr_assert(subject_same_bits(&plain, &it.subject), "%s, level %d", library, level);
            check_values(&plain, &it, (enum weft_recompute)level);
            subject_level_finish(&it);
        }
        subject_finish(&plain);
    }
    weft_nn_close(nn);
}

Test(block, restores_the_bits_that_it_dropped)
{
    static const char *const libraries[] = {"plain", "onednn", "amx", "amx-bf16x3", "avx512"};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        check_levels(libraries[i], WEFT_F32, WEFT_F32);
        check_levels(libraries[i], WEFT_BF16, WEFT_F32);
        check_levels(libraries[i], WEFT_F16, WEFT_F16);
    }
}

Test(block, other_kinds_restore_nothing)
{
    struct weft_nn *nn = subject_open("auto");
    struct subject subject;
    struct weft_error err = {0};
    subject_init(&subject, subject_same(&weft_kind_layer_norm, 8), 1, 4, 0);
    subject.call.recompute = WEFT_RECOMPUTE_WHOLE;
    cr_assert_eq(weft_nn_cpu_forward(nn, &subject.call, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "restore no saved activations of a layer_norm"), "%s",
                       err.text);
    subject_finish(&subject);
    weft_nn_close(nn);
}

static void check_prepared(struct weft_nn *nn, struct weft_layer layer, bool has_levels)
{
    struct weft_pool pool;
    struct weft_error err = {0};
    weft_pool_init(&pool);
    struct subject plain;
    subject_init(&plain, layer, 2, 9, 0);
    subject_forward(nn, &plain);
    subject_backward(nn, &plain);
    for (int level = 0; level < (has_levels ? WEFT_RECOMPUTE_COUNT : 1); level++) {
        struct subject_level it;
        if (!subject_has_level(&plain, level)) continue;
        subject_level_init(&it, &plain, (enum weft_recompute)level);
        cr_assert_eq(weft_nn_prepare(nn, &it.subject.call, &pool, &it.subject.call.prepared, &err),
                     WEFT_OK, "%s", err.text);
        cr_assert_not_null(it.subject.call.prepared);
        subject_level_run(nn, &it);
        cr_assert(subject_same_bits(&plain, &it.subject), "%s, level %d", layer.name, level);
        subject_level_finish(&it);
    }
    subject_finish(&plain);
    weft_pool_finish(&pool);
}

Test(block, prepared_calls_have_the_bits_of_others)
{
    struct weft_nn *nn = subject_open("plain");
    check_prepared(nn, subject_block(6, 2, 10), true);
    check_prepared(nn, subject_llama(&weft_kind_qwen3_block, 8, 2, 1, 4, 6), true);
    check_prepared(nn, subject_linear(5, 7, true), false);
    weft_nn_close(nn);
}

/* A call takes the walk that it is given, here one of fewer heads. */
Test(block, prepared_calls_derive_nothing)
{
    struct weft_nn *nn = subject_open("plain");
    struct weft_pool pool;
    struct weft_error err = {0};
    struct subject two, one;
    weft_pool_init(&pool);
    subject_init(&two, subject_block(6, 2, 10), 1, 5, 0);
    subject_init(&one, subject_block(6, 1, 10), 1, 5, 0);
    cr_assert_eq(weft_nn_prepare(nn, &one.call, &pool, &two.call.prepared, &err), WEFT_OK);
    subject_forward(nn, &one);
    subject_forward(nn, &two);
    cr_assert_eq(memcmp(one.call.output, two.call.output, (size_t)one.n_outputs * sizeof(float)),
                 0);
    two.call.prepared = NULL;
    subject_forward(nn, &two);
    cr_assert_neq(memcmp(one.call.output, two.call.output, (size_t)one.n_outputs * sizeof(float)),
                  0);
    subject_finish(&one);
    subject_finish(&two);
    weft_pool_finish(&pool);
    weft_nn_close(nn);
}

Test(block, kinds_for_planning_are_not_prepared)
{
    struct weft_nn *nn = subject_open("plain");
    struct weft_layer layer = subject_block(6, 2, 10);
    struct weft_error err = {0};
    const void *prepared = &layer;
    layer.kind = &weft_kind_moe_block;
    const struct weft_nn_call call = {.layer = &layer, .batch = {1, 5, WEFT_F32, false, false}};
    cr_assert_eq(weft_nn_prepare(nn, &call, NULL, &prepared, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "moe_block"), "%s", err.text);
    weft_nn_close(nn);
}
