/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/function.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct weft_layer layers[] = {
    {.name = "wte",
     .kind = &weft_kind_embedding,
     .vocab = 16,
     .keys[WEFT_EMBEDDING_POSITIONS].integer = 4,
     .hidden = 8},
    {.name = "h.0",
     .kind = &weft_kind_transformer_block,
     .hidden = 8,
     .keys[WEFT_BLOCK_HEADS].integer = 2,
     .keys[WEFT_BLOCK_FFN].integer = 8},
    {.name = "a", .kind = &weft_kind_linear, .hidden = 8, .outputs = 8},
    {.name = "act", .kind = &weft_kind_relu, .hidden = 8},
    {.name = "b", .kind = &weft_kind_linear, .hidden = 8, .outputs = 8},
    {.name = "head", .kind = &weft_kind_lm_head, .vocab = 16, .hidden = 8, .tie = 0},
};
enum { N = sizeof layers / sizeof *layers, MOST = 5 };

static struct weft_text function_of(const struct weft_layer *of, int32_t n)
{
    struct weft_model *model = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(weft_model_create(of, n, &model, &err), WEFT_OK, "%s", err.text);
    weft_function_write(model, &text);
    cr_assert(weft_text_ok(&text));
    weft_model_destroy(model);
    return text;
}

/* Expects this text about `n` layers compared with those above. */
static void differ(const struct weft_layer *of, int32_t n, int32_t wanted, const char *says)
{
    struct weft_text now = function_of(of, n), before = function_of(layers, N), out;
    weft_text_init(&out);
    cr_assert_eq(weft_function_compare(weft_text_chars(&now), weft_text_chars(&before), MOST, &out),
                 wanted, "%s", weft_text_chars(&out));
    cr_assert_str_eq(weft_text_chars(&out), says);
    cr_assert_eq(strcmp(weft_text_chars(&now), weft_text_chars(&before)) == 0, wanted == 0);
    weft_text_finish(&out);
    weft_text_finish(&before);
    weft_text_finish(&now);
}

static void differ_with(int32_t at, struct weft_layer layer, int32_t wanted, const char *says)
{
    struct weft_layer changed[N];
    memcpy(changed, layers, sizeof layers);
    changed[at] = layer;
    differ(changed, N, wanted, says);
}

Test(function, is_of_all_that_is_computed)
{
    struct weft_layer block = layers[1], act = layers[3], head = layers[5];
    differ(layers, N, 0, "");
    block.keys[WEFT_BLOCK_HEADS].integer = 4;
    differ_with(1, block, 1, "h.0: heads is 4, and was 2");
    act.kind = &weft_kind_gelu;
    differ_with(3, act, 1, "layer 3 is a gelu, and was a relu");
    head.tie = -1;
    differ_with(5, head, 1, "head: tie is not there, and was \"wte\"");
    struct weft_layer bias = layers[2];
    bias.bias = true;
    differ_with(2, bias, 1, "a: bias is true, and was false");
}

Test(function, is_not_of_what_is_trained_and_of_names_without_tensors)
{
    struct weft_layer block = layers[1], act = layers[3];
    block.frozen = true;
    differ_with(1, block, 0, "");
    act.name = "another";
    differ_with(3, act, 0, "");
}

Test(function, a_layer_more_or_less_is_one_difference)
{
    struct weft_layer more[N + 1], less[N];
    memcpy(more, layers, sizeof layers);
    memmove(&more[2], &layers[1], (N - 1) * sizeof *layers);
    more[1] = (struct weft_layer){.name = "new", .kind = &weft_kind_gelu, .hidden = 8};
    differ(more, N + 1, 1, "layer 1, a gelu, was not there");
    memcpy(less, layers, sizeof layers);
    memmove(&less[3], &layers[4], 2 * sizeof *layers);
    differ(less, N - 1, 1, "layer 3, a relu, is missing");
}

Test(function, order_counts)
{
    struct weft_layer swapped[N];
    memcpy(swapped, layers, sizeof layers);
    swapped[2] = layers[4];
    swapped[4] = layers[2];
    differ(swapped, N, 2,
           "layer 2 is b (linear), and was a (linear); layer 4 is a (linear), and was b (linear)");
}

Test(function, the_first_differences_are_told)
{
    struct weft_layer other[N];
    memcpy(other, layers, sizeof layers);
    other[1].keys[WEFT_BLOCK_HEADS].integer = 4;
    other[2].name = "c";
    other[3].kind = &weft_kind_gelu;
    other[4].name = "d";
    other[5].tie = -1;
    struct weft_text now = function_of(other, N), before = function_of(layers, N), out;
    weft_text_init(&out);
    cr_assert_eq(weft_function_compare(weft_text_chars(&now), weft_text_chars(&before), 2, &out),
                 3);
    cr_assert_str_eq(weft_text_chars(&out),
                     "h.0: heads is 4, and was 2; layer 2 is c (linear), and was a (linear)");
    weft_text_finish(&out);
    weft_text_finish(&before);
    weft_text_finish(&now);
}
