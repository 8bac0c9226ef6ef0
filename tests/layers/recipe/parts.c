/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of fused tensors. */
#include <criterion/criterion.h>
#include <string.h>

#include "layers/recipe/recipe.h"
#include "layers/shared/block.h"

static struct weft_layer block_of(const struct weft_kind *kind)
{
    struct weft_layer layer = {.name = "b", .kind = kind, .tie = -1, .hidden = 32};
    layer.keys[WEFT_BLOCK_HEADS].integer = 4;
    layer.keys[WEFT_BLOCK_KV_HEADS].integer = 2;
    layer.keys[WEFT_BLOCK_FFN].integer = 48;
    layer.keys[WEFT_BLOCK_ROPE_BASE].number = 10000;
    layer.keys[WEFT_BLOCK_EPS].number = 1e-5;
    weft_layer_complete(&layer);
    return layer;
}

static void check_parts(const struct weft_layer *layer, int32_t index, const char *names,
                        const int64_t *rows)
{
    struct weft_tensor_part parts[WEFT_PARTS];
    struct weft_error err = {0};
    char found[200] = "";
    int32_t n = -1;
    cr_assert_eq(layer->kind->parts(layer, index, parts, &n, &err), WEFT_OK, "%s", err.text);
    for (int32_t i = 0; i < n; i++) {
        strcat(strcat(found, parts[i].name), " ");
        cr_expect_eq(parts[i].rows, rows[i], "%s", parts[i].name);
    }
    cr_expect_str_eq(found, names);
}

Test(parts, fused_matrices_are_cut_by_from)
{
    const int64_t qkv[] = {32, 16, 16}, gate_up[] = {48, 48};
    struct weft_layer layer = block_of(weft_kind_find(NULL, "llama_block"));
    check_parts(&layer, 0, "", NULL);
    check_parts(&layer, 1, "attn.q.weight attn.k.weight attn.v.weight ", qkv);
    check_parts(&layer, 4, "mlp.gate.weight mlp.up.weight ", gate_up);
    layer.keys[WEFT_BLOCK_QKV_BIAS].flag = true;
    check_parts(&layer, 2, "attn.q.bias attn.k.bias attn.v.bias ", qkv);
    layer = block_of(weft_kind_find(NULL, "transformer_block"));
    for (int32_t i = 0; i < 12; i++)
        check_parts(&layer, i, "", NULL);
}

/* A kind of one product, with this `from`. */
static enum weft_status cut_by(const char *from, struct weft_tensor_part parts[WEFT_PARTS],
                               struct weft_error *err)
{
    const struct weft_recipe_step step = {.op = &weft_op_product,
                                          .in = {"x"},
                                          .out = {"y"},
                                          .columns = "12",
                                          .tensors = {"w.weight"},
                                          .from = from};
    const struct weft_recipe recipe = {.steps = &step, .n_steps = 1};
    const struct weft_kind kind = {.type = "cut", .recipe = &recipe, .outputs_given = true};
    const struct weft_layer layer = {
        .name = "cut", .kind = &kind, .tie = -1, .hidden = 8, .outputs = 12};
    int32_t n = 0;
    return weft_recipe_parts(&layer, 0, parts, &n, err);
}

Test(parts, a_wrong_from_is_refused)
{
    static const char *const wrong[] = {"a",
                                        "a:",
                                        "a:5",
                                        "a:13",
                                        "a:0 b:12",
                                        "a:12 b:12",
                                        "a:5 b:4 c:12",
                                        "a:5 b:none",
                                        "a:1 b:2 c:3 d:4 e:5 f:6 g:7 h:8 i:12"};
    struct weft_tensor_part parts[WEFT_PARTS];
    struct weft_error err = {0};
    cr_assert_eq(cut_by("a:5 b:12", parts, &err), WEFT_OK, "%s", err.text);
    cr_expect_str_eq(parts[1].name, "b.weight");
    cr_expect_eq(parts[1].rows, 7);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect_eq(cut_by(wrong[i], parts, &err), WEFT_E_DATA, "%s", wrong[i]);
}
