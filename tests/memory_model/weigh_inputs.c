/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "memory_model/life.h"
#include "tests/memory_model/stage.h"

enum {
    DEVICE = 1 << WEFT_LOCATION_DEVICE,
    HOST = 1 << WEFT_LOCATION_HOST,
    INPUT = 512, /* 300 bytes, rounded to the arena's alignment */
    PAGE = 4096
};

/* Slots: 0-3 updates, 4 fill, 5 F:a, 6 F:b, 7 F:c, 8 F:d, 9 B:d, 10 B:c, 11 B:b, 12 B:a, 13 drain,
 * 14 norm. b saves activations, c none. */
static struct stage four_layers(int saved_locations, int input_locations)
{
    struct weft_layer layers[] = {custom_layer("a", 100, false), custom_layer("b", 100, false),
                                  custom_layer("c", 100, false), custom_layer("d", 100, false)};
    struct weft_weigh_options options = single;
    for (int l = 0; l < 4; l++)
        layers[l].keys[WEFT_CUSTOM_OUTPUT].integer = 300;
    layers[1].keys[WEFT_CUSTOM_SAVED].integer = 1000;
    options.saved_locations = saved_locations;
    options.input_locations = input_locations;
    struct stage stage = {.model = make_model(layers, 4)};
    cut(&stage, 2, &(struct weft_block_rule){.blocks = 1});
    weigh(&stage, &options);
    return stage;
}

/* Names of the strategies of layers with a decision: "b: device host, c: device". */
static void expect_ways(int saved_locations, int input_locations, const char *names)
{
    struct stage stage = four_layers(saved_locations, input_locations);
    struct weft_text found;
    weft_text_init(&found);
    for (int32_t i = 0; i < stage.weights->n_layers; i++) {
        const struct weft_weighed_layer *layer = &stage.weights->layers[i];
        weft_text_addf(&found, "%s%s:", i > 0 ? ", " : "", stage.model->layers[layer->layer].name);
        for (int32_t k = 0; k < layer->n_strategies; k++)
            weft_text_addf(&found, " %s", weft_layer_choice_name(layer->strategies[k].choice));
    }
    cr_expect_str_eq(weft_text_chars(&found), names);
    weft_text_finish(&found);
    finish(&stage);
}

Test(weigh_inputs, an_input_goes_after_all_that_its_layer_saves)
{
    expect_ways(DEVICE | HOST, 0, "b: device host");
    expect_ways(DEVICE | HOST, DEVICE, "b: device host");
    expect_ways(DEVICE | HOST, DEVICE | HOST,
                "b: device host host+host-input, c: device device+host-input");
    expect_ways(0, DEVICE | HOST, "b: device device+host-input, c: device device+host-input");
    expect_ways(DEVICE | HOST, HOST, "b: device+host-input host+host-input, c: device+host-input");
}

/* Bytes of a strategy's activations in a slot of a tier. */
static int64_t held(const struct weft_weighed_saved *of, int32_t tier, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < of->n_holds; i++) {
        const struct weft_life life = {of->holds[i].first, of->holds[i].last};
        if (of->holds[i].tier == tier && weft_life_has(life, slot)) bytes += of->holds[i].bytes;
    }
    return bytes;
}

Test(weigh_inputs, an_input_on_the_host_leaves_the_device_between_its_readers)
{
    struct stage stage = four_layers(0, DEVICE | HOST);
    cr_assert_eq(stage.weights->n_layers, 2);
    const struct weft_weighed_layer *layer = &stage.weights->layers[1]; /* c, which saves nothing */
    for (int32_t s = 0; s < stage.period->n_slots; s++) {
        const bool kept = s >= 6 && s <= 10, here = s == 6 || s == 7 || s == 10;
        cr_assert_eq(held(&layer->strategies[0], 0, s), kept ? INPUT : 0, "slot %d", (int)s);
        cr_assert_eq(held(&layer->strategies[1], 0, s), here ? INPUT : 0, "slot %d", (int)s);
        cr_assert_eq(held(&layer->strategies[0], 1, s), 0);
        cr_assert_eq(held(&layer->strategies[1], 1, s), PAGE);
    }
    static const int32_t windows[][2] = {{7, 8}, {9, 10}, {8, 8}, {9, 9}};
    int32_t n = 0;
    for (int32_t i = 0; i < stage.weights->n_items; i++) {
        const struct weft_item *item = &stage.weights->items[i];
        if (!weft_item_kind_is_of_input(item->kind)) continue;
        cr_assert_lt(n, 4);
        cr_assert_eq(item->kind, n % 2 == 0 ? WEFT_INPUT_DOWN : WEFT_INPUT_UP);
        cr_assert(item->first == windows[n][0] && item->last == windows[n][1], "item %d", (int)n);
        cr_assert(item->block_bytes == 300 && item->stair_bytes == INPUT);
        cr_assert_eq(item->strategies, 1u << 1);
        n++;
    }
    cr_assert_eq(n, 4);
    finish(&stage);
}

/* The bytes of all plans and of the first strategies do not depend on the locations that inputs may
 * have. */
Test(weigh_inputs, inputs_on_the_device_are_where_they_were)
{
    struct stage plain = four_layers(0, 0), open = four_layers(0, DEVICE | HOST);
    cr_assert_eq(plain.weights->n_layers, 0);
    for (int32_t s = 0; s < plain.period->n_slots; s++) {
        int64_t bytes[2] = {0};
        for (int32_t i = 0; i < plain.weights->n_common; i++) {
            const struct weft_hold *hold = &plain.weights->common[i];
            if (weft_life_has((struct weft_life){hold->first, hold->last}, s))
                bytes[0] += hold->bytes;
        }
        for (int32_t i = 0; i < open.weights->n_common; i++) {
            const struct weft_hold *hold = &open.weights->common[i];
            if (weft_life_has((struct weft_life){hold->first, hold->last}, s))
                bytes[1] += hold->bytes;
        }
        for (int32_t l = 0; l < open.weights->n_layers; l++)
            bytes[1] += held(&open.weights->layers[l].strategies[0], 0, s);
        cr_assert_eq(bytes[0], bytes[1], "slot %d", (int)s);
    }
    finish(&plain);
    finish(&open);
}
