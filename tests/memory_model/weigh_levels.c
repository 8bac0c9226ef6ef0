/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/weigh.h"

#include "base/text.h"
#include "spec/profile/profile.h"
#include "tests/shard/models.h"

enum {
    NONE = 1 << WEFT_RECOMPUTE_NONE,
    LIGHT = 1 << WEFT_RECOMPUTE_LIGHT,
    SELECTIVE = 1 << WEFT_RECOMPUTE_SELECTIVE,
    WHOLE = 1 << WEFT_RECOMPUTE_WHOLE,
    ALL = (1 << WEFT_RECOMPUTE_COUNT) - 1
};

/* Selective drops a byte that rounding to the arena's alignment gives back. */
static enum weft_status saving_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                     struct weft_error *err)
{
    enum weft_status status = weft_kind_transformer_block.needs(subject, work, err);
    work->saved_bytes = weft_arena_round(work->saved_bytes);
    work->splits[WEFT_RECOMPUTE_SELECTIVE].kept_bytes = work->saved_bytes - 1;
    work->splits[WEFT_RECOMPUTE_SELECTIVE].dropped_bytes = 1;
    return status;
}

/* Names of the alternatives of a block of the kind. `timed`: levels that its profile has times of;
 * negative: there is no profile. */
static void expect_choices(const struct weft_kind *kind, int asked, int timed, const char *names)
{
    const uint8_t levels[] = {(uint8_t)asked, (uint8_t)asked};
    struct weft_layer layers[] = {{.name = "a", .kind = kind, .tie = -1},
                                  custom_layer("b", 2000, false)};
    for (int l = 0; l < 2; l++)
        layers[l].hidden = layers[l].outputs = 40;
    for (int key = WEFT_BLOCK_HEADS; key <= WEFT_BLOCK_KV_HEADS; key++)
        layers[0].keys[key].integer = 1;
    layers[0].keys[WEFT_BLOCK_FFN].integer = 900;
    struct weft_layer_times times = {.key = "a", .is_name = true, .recomputes = timed};
    const struct weft_profile profile = {.source = "test", .n_layers = 1, .layers = &times};
    const struct weft_weigh_options options = {
        .batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32},
        .n_moments = 2,
        .saved_locations = 1 << WEFT_LOCATION_DEVICE | 1 << WEFT_LOCATION_HOST,
        .recomputes = levels,
        .profile = timed < 0 ? NULL : &profile,
    };
    const struct weft_period_rule rule = {.n_micro = 1, .group = 1};
    const struct weft_block_rule blocks = {.blocks = 1};
    struct weft_model *model = make_model(layers, 2);
    struct weft_shards *shards = NULL;
    struct weft_period *period = NULL;
    struct weft_weights *weights = NULL;
    struct weft_error err = {0};
    struct weft_text found;
    cr_assert_eq(weft_shards_create(model, 2, &blocks, &shards, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_period_create(model, shards, &rule, &period, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_weights_create(model, shards, period, &options, &weights, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_eq(weights->n_layers, 1);
    const struct weft_weighed_layer *layer = &weights->layers[0];
    weft_text_init(&found);
    for (int32_t k = 0; k < layer->n_strategies; k++)
        weft_text_addf(&found, "%s%s", k > 0 ? " " : "",
                       weft_layer_choice_name(layer->strategies[k].choice));
    cr_expect_str_eq(weft_text_chars(&found), names);
    weft_text_finish(&found);
    weft_weights_destroy(weights);
    weft_period_destroy(period);
    weft_shards_destroy(shards);
    weft_model_destroy(model);
}

Test(weigh_levels, a_level_that_frees_nothing_is_not_listed)
{
    struct weft_kind kind = weft_kind_transformer_block;
    kind.needs = saving_needs;
    expect_choices(&kind, NONE | SELECTIVE | WHOLE, -1, "device host whole");
}

/* An older profile has no times of derived levels. One of levels that were asked for by name and
 * that all lack times stays, so that the problem refuses it. */
Test(weigh_levels, a_level_without_times_is_not_listed_next_to_others)
{
    const struct weft_kind *kind = &weft_kind_transformer_block;
    expect_choices(kind, NONE | LIGHT | WHOLE, -1, "device host light light+host whole");
    expect_choices(kind, ALL, SELECTIVE | WHOLE, "device host selective selective+host whole");
    expect_choices(kind, NONE | LIGHT | WHOLE, WHOLE, "device host whole");
    expect_choices(kind, LIGHT, SELECTIVE | WHOLE, "light light+host");
    expect_choices(kind, NONE | WHOLE, 0, "device host whole");
}
