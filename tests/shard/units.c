/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/units.h"

#include "tests/shard/models.h"

/* Layers of (parameters, frozen), and the unit that each layer's tensor should be in; -1 for a
 * layer without. Rule: fuse below 1000 bytes of 4-byte elements, that is below 250 elements. */
struct scenario {
    const char *what;
    int32_t n_layers;
    int64_t parameters[6];
    bool frozen[6];
    int32_t unit[6];
};

static void check_units(const struct scenario *scenario, const struct weft_block_rule *rule)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct weft_layer layers[6];
    for (int32_t l = 0; l < scenario->n_layers; l++)
        layers[l] = custom_layer(names[l], scenario->parameters[l], scenario->frozen[l]);
    struct weft_model *model = make_model(layers, scenario->n_layers);
    struct weft_pool pool = {0};
    struct weft_grouping grouping;
    struct weft_error err = {0};
    cr_assert_eq(weft_units_group(&pool, model, rule, &grouping, &err), WEFT_OK, "%s", err.text);
    int32_t n_units = 0;
    for (int32_t l = 0; l < scenario->n_layers; l++) {
        if (scenario->parameters[l] == 0) continue;
        cr_assert_eq(grouping.tensor_unit[model->layers[l].tensors[0]], scenario->unit[l],
                     "%s: layer %s", scenario->what, names[l]);
        if (scenario->unit[l] >= n_units) n_units = scenario->unit[l] + 1;
    }
    cr_assert_eq(grouping.n_units, n_units, "%s", scenario->what);
    weft_pool_finish(&pool);
    weft_model_destroy(model);
}

static const struct weft_block_rule fusing = {
    .block_bytes = 1000, .element_bytes = 4, .fuse = true};

Test(units, small_neighbours_share_one)
{
    static const struct scenario scenarios[] = {
        {"large stay alone", 3, {250, 300, 9000}, {0}, {0, 1, 2}},
        {"small ones collect until they reach a block", 4, {100, 100, 100, 250}, {0}, {0, 0, 0, 1}},
        {"a large one closes what is open", 3, {10, 9000, 250}, {0}, {0, 0, 1}},
        {"a small tail joins its predecessor", 3, {250, 250, 10}, {0}, {0, 1, 1}},
        {"several small ones in the tail", 4, {250, 250, 10, 10}, {0}, {0, 1, 1, 1}},
        {"all small together are one", 3, {1, 1, 1}, {0}, {0, 0, 0}},
        {"no parameters, no break", 5, {0, 10, 0, 250, 0}, {0}, {-1, 0, -1, 0, -1}},
        {"no parameters at all", 2, {0, 0}, {0}, {-1, -1}},
        /* Rounded to where the next tensor may start, 241 and 1 are 257. */
        {"gaps between tensors count", 3, {241, 1, 250}, {0}, {0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check_units(&scenarios[i], &fusing);
}

Test(units, trainable_and_frozen_never_share)
{
    static const struct scenario scenarios[] = {
        {"a change breaks a run", 4, {10, 10, 10, 10}, {false, false, true, true}, {0, 0, 1, 1}},
        {"a small rest before the change joins its predecessor",
         3,
         {250, 10, 250},
         {true, true, false},
         {0, 0, 1}},
        {"but not one of the other kind", 2, {250, 10}, {true, false}, {0, 1}},
        {"nor one beyond the other kind", 3, {250, 10, 10}, {false, true, false}, {0, 1, 2}},
    };
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
        check_units(&scenarios[i], &fusing);
}

Test(units, nothing_is_fused_unless_asked)
{
    static const struct scenario scenario = {"alone", 3, {1, 1, 1}, {0}, {0, 1, 2}};
    check_units(&scenario, &(struct weft_block_rule){.block_bytes = 1000, .element_bytes = 4});
    /* With an exact number of blocks there is no size to reach. */
    check_units(&scenario, &(struct weft_block_rule){
                               .blocks = 2, .block_bytes = 1000, .element_bytes = 4, .fuse = true});
}

Test(units, a_tied_tensor_is_one_of_its_own)
{
    struct weft_model *model = make_tied_model(false);
    struct weft_pool pool = {0};
    struct weft_grouping grouping;
    struct weft_block_rule rule = {.block_bytes = 1 << 20, .element_bytes = 4, .fuse = true};
    cr_assert_eq(weft_units_group(&pool, model, &rule, &grouping, NULL), WEFT_OK);
    cr_assert_eq(grouping.n_units, 2);
    int32_t tokens = model->layers[0].tensors[0];
    cr_assert_eq(tokens, model->layers[3].tensors[0]);
    for (int32_t t = 0; t < model->n_tensors; t++)
        cr_assert_eq(grouping.tensor_unit[t], t == tokens ? 0 : 1);
    weft_pool_finish(&pool);
    weft_model_destroy(model);
}
