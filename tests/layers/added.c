/* SPDX-License-Identifier: Apache-2.0 */
/* An added kind. This file is all that a planned-only layer needs, except for the row in
 * spec/kind.h. A list of kinds next to Weft's own replaces that row here. */
#include <string.h>

#include "layers/shared/keys.h"
#include "tests/spec/config_text.h"

/* A scan: rows pass through `states` numbers each, with a gate if wanted, and a cache of so many
 * bytes a sample. */
enum { SCAN_STATES, SCAN_GATED, SCAN_CACHE, SCAN_FACTOR };

static const struct weft_field scan_keys[] = {
    WEFT_ROW_HIDDEN,
    {"states", WEFT_FIELD_INTEGER, WEFT_KEY_AT(SCAN_STATES), NULL, 1, 4096, NULL, NULL,
     "numbers that a row passes through"},
    {"gated", WEFT_FIELD_BOOL, WEFT_KEY_AT(SCAN_GATED), "false", 0, 0, NULL, NULL, "with a gate"},
    {"cache", WEFT_FIELD_BYTES, WEFT_KEY_AT(SCAN_CACHE), "\"1KiB\"", 0, WEFT_LARGE, NULL, NULL,
     "what forward keeps, a sample"},
    {"factor", WEFT_FIELD_NUMBER, WEFT_KEY_AT(SCAN_FACTOR), "0.5", 0, 1, NULL, NULL, "of flops"},
};

static int32_t scan_check(const struct weft_layer *layer, struct weft_fault faults[WEFT_FAULTS])
{
    if (layer->keys[SCAN_STATES].integer % 2 == 0) return 0;
    faults[0] = (struct weft_fault){"states", "states must be even"};
    return 1;
}

static enum weft_status scan_shape(const struct weft_layer *layer, double residual_std,
                                   struct weft_layer_shape *out, struct weft_error *err)
{
    (void)err;
    const int64_t states = layer->keys[SCAN_STATES].integer;
    weft_add_matrix(out, "in.weight", states, layer->hidden, WEFT_INIT_STD);
    if (layer->keys[SCAN_GATED].flag) weft_add_vector(out, "gate", states, WEFT_INIT_ONE);
    weft_add_matrix(out, "out.weight", layer->hidden, states, residual_std);
    return WEFT_OK;
}

static enum weft_status scan_needs(struct weft_subject *subject, struct weft_layer_work *work,
                                   struct weft_error *err)
{
    (void)err;
    const union weft_key *keys = subject->layer->keys;
    subject->weights = 2 * subject->h * (double)keys[SCAN_STATES].integer;
    work->saved_bytes =
        weft_times(&subject->sizes, subject->batch->samples, keys[SCAN_CACHE].integer);
    work->backward_reads_input = true;
    work->forward_flops = 2 * subject->t * subject->weights * keys[SCAN_FACTOR].number;
    work->backward_flops = subject->backward_products * work->forward_flops;
    return WEFT_OK;
}

static void scan_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " hidden=%lld states=%lld%s", (long long)layer->hidden,
                   (long long)layer->keys[SCAN_STATES].integer,
                   layer->keys[SCAN_GATED].flag ? " gated" : "");
}

static const struct weft_kind scan = {
    .type = "scan",
    .text = "a scan (planning only)",
    WEFT_KEYS(scan_keys),
    .closes_residual = true,
    .check = scan_check,
    .shape = scan_shape,
    .needs = scan_needs,
    .add_sizes = scan_sizes,
};

#define SCAN_CONFIG(keys)                                                                          \
    CONFIG("{\"layers\":[{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":48},"   \
           "{\"name\":\"s.{i}\",\"type\":\"scan\",\"repeat\":2,\"hidden\":48," keys "},"           \
           "{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":48}]}",               \
           SMALL_CLUSTER, SMALL_TRAIN)

static enum weft_status load_scan(const char *text, struct weft_config **out,
                                  struct weft_error *err)
{
    static const struct weft_kind *const kinds[] = {&scan};
    static const struct weft_kinds others = {.kinds = kinds, .n = 1};
    const struct weft_config_input input = {.bytes = text,
                                            .length = strlen(text),
                                            .source = "run.json",
                                            .directory = "/",
                                            .kinds = &others};
    return weft_config_load(&input, out, err);
}

Test(added, keys_of_every_sort_are_read_and_written)
{
    struct weft_config *config = NULL, *again = NULL;
    struct weft_error err = {0};
    struct weft_text text;
    weft_text_init(&text);
    cr_assert_eq(
        load_scan(SCAN_CONFIG("\"states\":6,\"gated\":true,\"cache\":\"2kB\""), &config, &err),
        WEFT_OK, "%s", err.text);
    const struct weft_layer *layer = &config->model->layers[2];
    cr_assert_eq(layer->kind, &scan);
    cr_assert_eq(layer->outputs, 48);
    cr_assert_eq(layer->keys[SCAN_STATES].integer, 6);
    cr_assert(layer->keys[SCAN_GATED].flag);
    cr_assert_eq(layer->keys[SCAN_CACHE].integer, 2000);
    cr_assert_eq(layer->keys[SCAN_FACTOR].number, 0.5);
    weft_config_write(config, &text);
    cr_assert_eq(load_scan(weft_text_chars(&text), &again, &err), WEFT_OK, "%s", err.text);
    cr_assert(weft_hash_equal(config->hash, again->hash));
    weft_text_finish(&text);
    weft_config_destroy(again);
    weft_config_destroy(config);
}

Test(added, tensors_needs_and_key_are_its_own)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    struct weft_pool pool = {0};
    struct weft_layer_work work;
    cr_assert_eq(load_scan(SCAN_CONFIG("\"states\":6,\"gated\":true"), &config, &err), WEFT_OK);
    const struct weft_model *model = config->model;
    const struct weft_layer *layer = &model->layers[1];
    cr_assert_eq(layer->n_tensors, 3);
    cr_assert_str_eq(model->tensors[layer->tensors[1]].name, "s.0.gate");
    cr_assert_eq(model->tensors[layer->tensors[2]].dims[0], 48);
    /* Two blocks, so four branches. */
    cr_assert_float_eq(model->tensors[layer->tensors[2]].init_std, 0.01, 1e-15);
    const struct weft_batch batch = {.samples = 4, .seq_len = 8, .compute = WEFT_F32};
    cr_assert_eq(weft_layer_work(layer, &batch, &work, &err), WEFT_OK);
    cr_assert_eq(work.saved_bytes, 4 * 1024);
    cr_assert_eq(work.output_bytes, 4 * 8 * 48 * 4);
    cr_assert_eq(work.forward_flops, 2.0 * 32 * (2 * 48 * 6) * 0.5);
    cr_assert_str_eq(weft_layer_key(&pool, layer, &batch),
                     "scan hidden=48 states=6 gated samples=4 seq=8 f32");
    cr_assert_eq(weft_model_trains(model, 64, WEFT_DEVICE_CPU, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "\"s.0\" (scan): it can be planned but not trained"));
    weft_pool_finish(&pool);
    weft_config_destroy(config);
}

static void refuses_scan(const char *text, const char *says)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_eq(load_scan(text, &config, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, says), "\"%s\" is not in: %s", says, err.text);
}

Test(added, what_is_wrong_is_told_as_of_any_kind)
{
    refuses_scan(SCAN_CONFIG("\"states\":7"), "$.model.layers[1].states: states must be even");
    refuses_scan(SCAN_CONFIG("\"gated\":true"), "the key \"states\" is missing");
    refuses_scan(SCAN_CONFIG("\"states\":8192"), "$.model.layers[1].states");
    refuses_scan(SCAN_CONFIG("\"states\":6,\"heads\":4"),
                 "$.model.layers[1].heads: a layer of type \"scan\" has no such key; it has: "
                 "hidden, states, gated, cache, factor");
}
