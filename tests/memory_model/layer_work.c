/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/weigh.h"
#include "tests/shard/models.h"

enum { LAYERS = 2, FORWARD_BYTES = 100, BACKWARD_BYTES = 70 };

/* a has 256 bytes of temporaries each way, b 100. */
static struct weft_model *two_layers(void)
{
    struct weft_layer layers[LAYERS] = {custom_layer("a", 1000, false),
                                        custom_layer("b", 2000, false)};
    layers[0].keys[WEFT_CUSTOM_TEMPORARY].integer = 256;
    layers[1].keys[WEFT_CUSTOM_TEMPORARY].integer = 100;
    return make_model(layers, LAYERS);
}

/* Temporaries begin with scratch in whole units of the arena. */
Test(layer_work, temporaries_begin_with_the_profiles_scratch)
{
    static const int64_t with[LAYERS][2] = {{512, 256}, {100, 356}};
    struct weft_model *model = two_layers();
    struct weft_pool pool = {0};
    struct weft_layer_times times[LAYERS] = {{.forward_scratch_bytes = FORWARD_BYTES},
                                             {.backward_scratch_bytes = BACKWARD_BYTES}};
    struct weft_weigh_options options = {
        .batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32}};
    const struct weft_profile profile = {.n_layers = LAYERS, .layers = times};
    for (int l = 0; l < LAYERS; l++)
        times[l].key = weft_layer_key(&pool, &model->layers[l], &options.batch);
    for (int given = 0; given < 2; given++) {
        options.profile = given ? &profile : NULL;
        for (int l = 0; l < LAYERS; l++) {
            struct weft_layer_work plain, work;
            cr_assert_eq(weft_layer_work(&model->layers[l], &options.batch, &plain, NULL), WEFT_OK);
            cr_assert_eq(weft_weigh_layer_work(&options, &model->layers[l], &pool, &work, NULL),
                         WEFT_OK);
            cr_expect_eq(work.forward_temporary_bytes,
                         given ? with[l][0] : plain.forward_temporary_bytes);
            cr_expect_eq(work.backward_temporary_bytes,
                         given ? with[l][1] : plain.backward_temporary_bytes);
        }
    }
    weft_pool_finish(&pool);
    weft_model_destroy(model);
}

Test(layer_work, scratch_beyond_63_bits_is_refused)
{
    struct weft_model *model = two_layers();
    struct weft_pool pool = {0};
    struct weft_layer_times times = {.backward_scratch_bytes = INT64_MAX - 64};
    const struct weft_profile profile = {.n_layers = 1, .layers = &times, .source = "measured"};
    const struct weft_weigh_options options = {
        .batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32}, .profile = &profile};
    struct weft_layer_work work = {.output_bytes = -7};
    struct weft_error err = {0};
    times.key = weft_layer_key(&pool, &model->layers[0], &options.batch);
    cr_assert_eq(weft_weigh_layer_work(&options, &model->layers[0], &pool, &work, &err),
                 WEFT_E_DATA);
    cr_expect(strstr(err.text, "measured profile: the scratch of layer a"), "%s", err.text);
    cr_expect_eq(work.output_bytes, -7);
    weft_pool_finish(&pool);
    weft_model_destroy(model);
}
