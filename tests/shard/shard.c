/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/shard.h"

#include "tests/shard/models.h"

static struct weft_shards *shard_model(const struct weft_model *model, int64_t ranks,
                                       struct weft_block_rule rule)
{
    struct weft_error err = {0};
    struct weft_shards *shards = NULL;
    enum weft_status status = weft_shards_create(model, ranks, &rule, &shards, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    return shards;
}

/* One layer of `parameters`, cut by the rule, with its blocks and slices. */
static struct weft_unit cut_layer(int64_t parameters, int64_t ranks, struct weft_block_rule rule)
{
    struct weft_layer layer = custom_layer("a", parameters, false);
    struct weft_model *model = make_model(&layer, 1);
    struct weft_shards *shards = shard_model(model, ranks, rule);
    struct weft_unit unit = shards->units[0];
    cr_assert_eq(unit.elements, parameters);
    cr_assert_eq(unit.padded_elements, unit.n_blocks * ranks * unit.slice_elements);
    cr_assert_geq(unit.padded_elements, parameters);
    cr_assert_eq(unit.slice_elements % WEFT_SLICE_ALIGN_ELEMENTS, 0);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
    return unit;
}

Test(shard, blocks_as_many_as_asked)
{
    struct weft_unit unit = cut_layer(1000, 3, (struct weft_block_rule){.blocks = 2});
    cr_assert_eq(unit.n_blocks, 2);
    cr_assert_eq(unit.slice_elements, 256); /* 1000 / 6 = 166.7 */
    unit = cut_layer(1, 4, (struct weft_block_rule){.blocks = 7});
    cr_assert_eq(unit.n_blocks, 7);
    cr_assert_eq(unit.slice_elements, 128);
    unit = cut_layer(1024, 2, (struct weft_block_rule){.blocks = 4});
    cr_assert_eq(unit.slice_elements, 128);
    cr_assert_eq(unit.padded_elements, 1024, "nothing is added where it divides");
}

Test(shard, blocks_no_smaller_than_block_bytes)
{
    struct weft_block_rule rule = {.block_bytes = 4096, .element_bytes = 4};
    cr_assert_eq(cut_layer(3 * 1024 + 1023, 2, rule).n_blocks, 3);
    cr_assert_eq(cut_layer(4 * 1024, 2, rule).n_blocks, 4);
    cr_assert_eq(cut_layer(1000, 2, rule).n_blocks, 1);
    rule.element_bytes = 2;
    cr_assert_eq(cut_layer(4 * 1024, 2, rule).n_blocks, 2);
}

Test(shard, blocks_are_not_all_padding)
{
    struct weft_unit unit =
        cut_layer(10000, 4, (struct weft_block_rule){.block_bytes = 1, .element_bytes = 4});
    cr_assert_eq(unit.n_blocks, 10000 / (4 * 128));
    cr_assert_leq(unit.padded_elements, 2 * 10000);
}

Test(shard, units_know_their_layers)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_shards *shards = shard_model(model, 2, (struct weft_block_rule){.blocks = 1});
    cr_assert_eq(shards->n_units, 4);
    const struct weft_unit *tied = &shards->units[0], *positions = &shards->units[1];
    cr_assert_str_eq(tied->name, model->tensors[tied->tensors[0]].name);
    cr_assert_eq(tied->n_layers, 2);
    cr_assert_eq(tied->layers[0], 0);
    cr_assert_eq(tied->layers[1], 3);
    cr_assert_not(tied->reads_in_backward[0], "an embedding's backward reads no parameters");
    cr_assert(tied->reads_in_backward[1]);
    cr_assert_str_eq(positions->name, "wte");
    cr_assert_eq(positions->n_layers, 1);
    cr_assert_str_eq(shards->units[2].name, "h.0");
    cr_assert_eq(shards->units[2].n_tensors, 12);
    cr_assert(shards->units[2].reads_in_backward[0]);
    cr_assert_str_eq(shards->units[3].name, "ln_f");
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(shard, fused_units_are_named_after_their_ends)
{
    struct weft_layer layers[] = {custom_layer("a", 1, false), custom_layer("b", 1, false),
                                  custom_layer("c", 1, false)};
    struct weft_block_rule rule = {.block_bytes = 4096, .element_bytes = 4, .fuse = true};
    for (int32_t n = 1; n <= 3; n++) {
        static const char *const names[] = {"a", "a+b", "a+..+c"};
        struct weft_model *model = make_model(layers, n);
        struct weft_shards *shards = shard_model(model, 2, rule);
        cr_assert_eq(shards->n_units, 1);
        cr_assert_str_eq(shards->units[0].name, names[n - 1]);
        weft_shards_destroy(shards);
        weft_model_destroy(model);
    }
}

Test(shard, a_frozen_tied_unit_is_frozen)
{
    struct weft_model *model = make_tied_model(true);
    struct weft_shards *shards = shard_model(model, 2, (struct weft_block_rule){.blocks = 1});
    cr_assert_not(shards->units[0].trainable);
    cr_assert_not(shards->units[1].trainable);
    cr_assert(shards->units[2].trainable);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(shard, tensors_are_placed_without_overlap)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_block_rule rule = {.block_bytes = 1 << 20, .element_bytes = 4, .fuse = true};
    struct weft_shards *shards = shard_model(model, 3, rule);
    for (int32_t u = 0; u < shards->n_units; u++) {
        const struct weft_unit *unit = &shards->units[u];
        int64_t end = 0;
        for (int32_t i = 0; i < unit->n_tensors; i++) {
            int32_t t = unit->tensors[i];
            cr_assert_eq(shards->tensor_unit[t], u);
            cr_assert_eq(shards->tensor_offset[t], unit->offsets[i]);
            cr_assert_eq(unit->offsets[i] % WEFT_TENSOR_ALIGN_ELEMENTS, 0);
            cr_assert_geq(unit->offsets[i], end);
            cr_assert_lt(unit->offsets[i] - end, WEFT_TENSOR_ALIGN_ELEMENTS);
            end = unit->offsets[i] + model->tensors[t].elements;
        }
        cr_assert_leq(end, unit->padded_elements);
    }
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

/* 4 ranks of 2 nodes: each node has all, in slices of twice the elements. */
Test(shard, nodes_have_units_of_their_own)
{
    struct weft_layer layer = custom_layer("a", 4000, false);
    struct weft_model *model = make_model(&layer, 1);
    struct weft_shards *shards = shard_model(model, 4, (struct weft_block_rule){.blocks = 2});
    cr_assert_eq(shards->units[0].slice_elements, 512); /* 4000 / 8 = 500 */
    shards->ranks_per_node = 2;
    weft_shards_split(shards);
    cr_assert_eq(shards->ranks, 2);
    cr_assert_eq(shards->units[0].slice_elements, 1024);
    cr_assert_eq(shards->units[0].padded_elements, 4096, "2 blocks of 2 slices");
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(shard, no_parameters_no_units)
{
    struct weft_layer layer = custom_layer("a", 0, false);
    struct weft_model *model = make_model(&layer, 1);
    struct weft_shards *shards = shard_model(model, 2, (struct weft_block_rule){.blocks = 1});
    cr_assert_eq(shards->n_units, 0);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

static void refuse_cut(int64_t parameters, int64_t ranks, struct weft_block_rule rule,
                       const char *text)
{
    struct weft_layer layer = custom_layer("wide", parameters, false);
    struct weft_model *model = make_model(&layer, 1);
    struct weft_error err = {0};
    struct weft_shards *shards = NULL;
    cr_assert_eq(weft_shards_create(model, ranks, &rule, &shards, &err), WEFT_E_DATA);
    cr_assert_null(shards);
    cr_assert_not_null(strstr(err.text, text), "%s", err.text);
    weft_model_destroy(model);
}

Test(shard, refuses_what_cannot_be)
{
    refuse_cut(10, 0, (struct weft_block_rule){.blocks = 1}, "ranks is 0");
    refuse_cut(10, 1, (struct weft_block_rule){.element_bytes = 4}, "block_bytes is 0");
    refuse_cut(10, 1, (struct weft_block_rule){.blocks = INT64_MAX}, "unit wide: its padded size");
    refuse_cut(10, INT64_MAX, (struct weft_block_rule){.blocks = 2}, "use fewer blocks or ranks");
    refuse_cut(10, INT64_MAX / 2, (struct weft_block_rule){.block_bytes = 1, .element_bytes = 4},
               "unit wide");
    refuse_cut(INT64_MAX / 4 + 1, 1, (struct weft_block_rule){.block_bytes = 1, .element_bytes = 4},
               "unit wide");
}

Test(shard, destroy_accepts_nothing)
{
    weft_shards_destroy(NULL);
}
