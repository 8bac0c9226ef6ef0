/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/supplied.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <string.h>

#include "tests/spec/config_text.h"

/* A kind with answers that tests change. */
struct answers {
    struct weft_layer_shape shape;
    struct weft_layer_needs needs;
    enum weft_status status;
    const char *says;
};

static enum weft_status shape(void *context, const struct weft_layer_facts *facts,
                              struct weft_layer_shape *out, struct weft_error *error)
{
    const struct answers *answers = context;
    (void)facts;
    if (answers->status != WEFT_OK && answers->says != NULL)
        return weft_fail(error, answers->status, "%s", answers->says);
    *out = answers->shape;
    return answers->status;
}

static enum weft_status needs(void *context, const struct weft_layer_facts *facts,
                              struct weft_layer_needs *out, struct weft_error *error)
{
    const struct answers *answers = context;
    (void)error;
    *out = answers->needs;
    out->saved_bytes += facts->samples * facts->seq_len * facts->keys[0];
    return WEFT_OK;
}

static enum weft_status compute(void *context, const struct weft_layer_call *call,
                                struct weft_error *error)
{
    (void)context;
    (void)call;
    (void)error;
    return WEFT_OK;
}

static const struct weft_kind_key keys[] = {{"depth", "how deep it is", 1, 9, false, 0},
                                            {"width", NULL, -5, 5, true, -1}};

static struct weft_layer_kind make_kind(struct answers *answers)
{
    *answers = (struct answers){
        .shape = {.n_tensors = 2,
                  .tensors = {{"w", 48, 7, WEFT_INIT_NORMAL, 0.5, true},
                              {"b", 48, 0, WEFT_INIT_ONE, 0, false}}},
        .needs = {.backward_reads_output = true, .forward_flops = 10, .backward_flops = 20}};
    return (struct weft_layer_kind){.type = "mine",
                                    .keys = keys,
                                    .n_keys = 2,
                                    .dtypes = 1u << WEFT_F32,
                                    .context = answers,
                                    .shape = shape,
                                    .needs = needs,
                                    .forward = compute,
                                    .backward = compute};
}

#define MINE_CONFIG(entry)                                                                         \
    CONFIG("{\"layers\":[{\"name\":\"wte\",\"type\":\"embedding\",\"vocab\":256,\"hidden\":48}"    \
           "," entry ",{\"name\":\"head\",\"type\":\"lm_head\",\"vocab\":256,\"hidden\":48}]}",    \
           SMALL_CLUSTER, SMALL_TRAIN)
#define MINE_ENTRY "{\"name\":\"m.{i}\",\"type\":\"mine\",\"repeat\":2,\"hidden\":48,\"depth\":3}"

static enum weft_status load(const char *text, const struct weft_layer_kind *kind,
                             const char *override, struct weft_config **out, struct weft_error *err)
{
    static struct weft_pool pool; /* layers refer to their kind as long as the config is there */
    const struct weft_kind *wrapped = weft_supplied_wrap(kind, &pool);
    const struct weft_kinds kinds = {.kinds = &wrapped, .n = 1};
    const struct weft_config_input input = {.bytes = text,
                                            .length = strlen(text),
                                            .source = "run.json",
                                            .directory = "/",
                                            .overrides = &override,
                                            .n_overrides = override != NULL,
                                            .kinds = &kinds};
    return weft_config_load(&input, out, err);
}

static void expect_refusal(const char *text, const struct weft_layer_kind *kind,
                           const char *override, const char *says)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    cr_assert_neq(load(text, kind, override, &config, &err), WEFT_OK, "not refused: %s", says);
    cr_assert_not_null(strstr(err.text, says), "\"%s\" is not in: %s", says, err.text);
    cr_assert_null(config);
}

Test(supplied, layers_are_what_their_kind_says)
{
    struct answers answers;
    const struct weft_layer_kind kind = make_kind(&answers);
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    answers.shape.outputs = 48;
    cr_assert_eq(load(MINE_CONFIG(MINE_ENTRY), &kind, NULL, &config, &err), WEFT_OK, "%s",
                 err.text);
    const struct weft_model *model = config->model;
    cr_assert_eq(model->n_layers, 4);
    const struct weft_layer *layer = &model->layers[2];
    cr_assert_str_eq(layer->name, "m.1");
    cr_assert_str_eq(weft_layer_type_of(layer), "mine");
    cr_assert_eq(layer->keys[0].integer, 3);
    cr_assert_eq(layer->keys[1].integer, -1);
    cr_assert_eq(layer->n_tensors, 2);
    cr_assert_eq(model->parameters, 2 * 256 * 48 + 256 + 2 * (48 * 7 + 48));
    const struct weft_tensor *w = &model->tensors[layer->tensors[0]];
    const struct weft_tensor *b = &model->tensors[layer->tensors[1]];
    cr_assert_str_eq(w->name, "m.1.w");
    cr_assert_eq(w->elements, 48 * 7);
    cr_assert(w->decays && w->init == WEFT_INIT_NORMAL && w->init_std == 0.5 && w->n_dims == 2);
    cr_assert(!b->decays && b->init == WEFT_INIT_ONE && b->n_dims == 1 && b->elements == 48);
    struct weft_batch batch = weft_config_batch(config);
    struct weft_layer_work work;
    cr_assert_eq(weft_layer_work(layer, &batch, &work, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(work.saved_bytes, 2 * 64 * 3);
    cr_assert_eq(work.output_bytes, 2 * 64 * 48 * 4);
    cr_assert(work.backward_reads_output && !work.backward_reads_input);
    cr_assert_eq(work.forward_flops, 10);
    cr_assert_eq(weft_model_trains(model, 64, WEFT_DEVICE_CPU, &err), WEFT_OK, "%s", err.text);
    weft_config_destroy(config);
}

/* The resolved config says the same layers again; own keys make other plans and other times. */
Test(supplied, configs_are_written_and_read_back)
{
    struct answers answers;
    const struct weft_layer_kind kind = make_kind(&answers);
    struct weft_config *config = NULL, *again = NULL, *other = NULL;
    struct weft_error err = {0};
    struct weft_text text, second;
    weft_text_init(&text);
    weft_text_init(&second);
    cr_assert_eq(load(MINE_CONFIG(MINE_ENTRY), &kind, NULL, &config, &err), WEFT_OK);
    weft_config_write(config, &text);
    cr_assert_eq(load(weft_text_chars(&text), &kind, NULL, &again, &err), WEFT_OK, "%s", err.text);
    weft_config_write(again, &second);
    cr_assert_str_eq(weft_text_chars(&second), weft_text_chars(&text));
    cr_assert(weft_hash_equal(config->hash, again->hash));
    cr_assert_eq(load(MINE_CONFIG(MINE_ENTRY), &kind, "model.layers.1.depth=4", &other, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(other->model->layers[1].keys[0].integer, 4);
    cr_assert_not(weft_hash_equal(config->hash, other->hash));
    struct weft_pool pool = {0};
    struct weft_batch batch = weft_config_batch(config);
    const char *key = weft_layer_key(&pool, &config->model->layers[1], &batch);
    cr_assert_str_eq(key, "mine hidden=48 outputs=48 depth=3 width=-1 samples=2 seq=64 f32");
    cr_assert_str_neq(key, weft_layer_key(&pool, &other->model->layers[1], &batch));
    weft_pool_finish(&pool);
    weft_text_finish(&text);
    weft_text_finish(&second);
    weft_config_destroy(config);
    weft_config_destroy(again);
    weft_config_destroy(other);
}

Test(supplied, wrong_entries_are_refused)
{
    struct answers answers;
    const struct weft_layer_kind kind = make_kind(&answers);
    expect_refusal(MINE_CONFIG("{\"name\":\"m\",\"type\":\"mine\",\"hidden\":48}"), &kind, NULL,
                   "the key \"depth\" is missing; an integer: how deep it is");
    expect_refusal(
        MINE_CONFIG("{\"name\":\"m\",\"type\":\"mine\",\"hidden\":48,\"depth\":3,\"dept\":1}"),
        &kind, NULL, "unknown key; did you mean \"depth\"?");
    expect_refusal(MINE_CONFIG(MINE_ENTRY), &kind, "model.layers.1.depth=10",
                   "10 is out of range; must be 1 to 9");
    expect_refusal(MINE_CONFIG(MINE_ENTRY), &kind, "model.layers.1.dopth=1",
                   "there is no key \"model.layers.1.dopth\"");
    expect_refusal(MINE_CONFIG("{\"name\":\"m\",\"type\":\"mind\",\"hidden\":48,\"depth\":3}"),
                   &kind, NULL, "did you mean \"mine\"?");
    expect_refusal(MINE_CONFIG(MINE_ENTRY), &kind, "model.layers.1.hidden=32",
                   "it reads rows of 32, but \"wte\" before it gives rows of 48");
    expect_refusal(MINE_CONFIG(MINE_ENTRY), &kind, "train.precision.compute=bf16",
                   "it computes in f32, and train.precision.compute is bf16");
}

Test(supplied, wrong_answers_are_refused)
{
    struct answers answers;
    const struct weft_layer_kind kind = make_kind(&answers);
    const char *text = MINE_CONFIG(MINE_ENTRY);
    struct weft_layer_tensor *w = &answers.shape.tensors[0];
    answers.status = WEFT_E_DATA;
    answers.says = "depth is odd";
    expect_refusal(text, &kind, NULL, "layer \"m.0\" (mine): depth is odd");
    answers.says = NULL;
    expect_refusal(text, &kind, NULL, "its shape function failed");
    make_kind(&answers);
    answers.shape.n_tensors = WEFT_LAYER_TENSORS + 1;
    expect_refusal(text, &kind, NULL, "more tensors than a layer can have");
    make_kind(&answers);
    answers.shape.outputs = -1;
    expect_refusal(text, &kind, NULL, "its outputs must be from 1");
    make_kind(&answers);
    w->name = "b";
    expect_refusal(text, &kind, NULL, "two of its tensors have one name");
    w->name = "a b";
    expect_refusal(text, &kind, NULL, "a tensor's name must be of letters");
    w->name = "a..b";
    expect_refusal(text, &kind, NULL, "a tensor's name must be of letters");
    w->name = ".a";
    expect_refusal(text, &kind, NULL, "not two in a row nor at an end");
    w->name = NULL;
    expect_refusal(text, &kind, NULL, "a tensor's name must be of letters");
    w->name = "b.moment2";
    expect_refusal(text, &kind, NULL, "has the name of the state of one of layer \"m.0\"");
    make_kind(&answers);
    w->rows = 0;
    expect_refusal(text, &kind, NULL, "a tensor's rows must be from 1");
    w->rows = 1;
    w->columns = INT64_MAX;
    expect_refusal(text, &kind, NULL, "columns likewise");
    make_kind(&answers);
    w->init = (enum weft_init)77;
    expect_refusal(text, &kind, NULL, "initial values make no sense");
    make_kind(&answers);
    answers.needs.backward_temporary_bytes = -1;
    expect_refusal(text, &kind, NULL, "less than 0 bytes");
    make_kind(&answers);
    answers.needs.forward_flops = -1;
    expect_refusal(text, &kind, NULL, "flops are negative");
    make_kind(&answers);
    answers.shape.n_tensors = 4;
    for (int i = 0; i < 4; i++)
        answers.shape.tensors[i] = (struct weft_layer_tensor){
            (const char *[]){"a", "b", "c", "d"}[i], INT_MAX, INT_MAX, WEFT_INIT_ZERO, 0, false};
    expect_refusal(text, &kind, NULL, "do not fit in 63 bits");
}

static void expect_bad_kind(const struct weft_layer_kind *kind, const char *says)
{
    struct answers answers;
    const struct weft_layer_kind taken = make_kind(&answers);
    struct weft_pool pool = {0};
    const struct weft_kind *known = weft_supplied_wrap(&taken, &pool);
    const struct weft_kinds others = {.kinds = &known, .n = 1};
    struct weft_error err = {0};
    cr_assert_eq(weft_supplied_check(kind, &others, &err), WEFT_E_USAGE, "not refused: %s", says);
    cr_assert_not_null(strstr(err.text, says), "\"%s\" is not in: %s", says, err.text);
    weft_pool_finish(&pool);
}

Test(supplied, incomplete_kinds_are_refused)
{
    struct answers answers;
    const struct weft_layer_kind good = make_kind(&answers);
    struct weft_layer_kind kind = good;
    struct weft_kind_key bad[2] = {keys[0], keys[1]};
    struct weft_error err = {0};
    cr_assert_eq(weft_supplied_check(&good, NULL, &err), WEFT_OK, "%s", err.text);
    expect_bad_kind(&good, "there is a type of this name already");
    kind.type = "linear";
    expect_bad_kind(&kind, "there is a type of this name already");
    kind.type = "my kind";
    expect_bad_kind(&kind, "must be of letters");
    kind = good;
    kind.type = "other";
    kind.backward = NULL;
    expect_bad_kind(&kind, "all of shape, needs, forward and backward");
    kind.backward = compute;
    kind.dtypes = 0;
    expect_bad_kind(&kind, "dtypes must name");
    kind.dtypes = 1u << WEFT_BF16;
    kind.n_keys = WEFT_KIND_KEYS + 1;
    expect_bad_kind(&kind, "0 to 8 are possible");
    kind.n_keys = 2;
    kind.keys = bad;
    bad[1].name = "depth";
    expect_bad_kind(&kind, "two keys are named \"depth\"");
    bad[1].name = "hidden";
    expect_bad_kind(&kind, "every layer has \"hidden\"");
    bad[1] = keys[1];
    bad[1].fallback = 6;
    expect_bad_kind(&kind, "without its fallback");
}

/* The loss and the layer that reads the text are always Weft's. */
Test(supplied, ends_of_a_model_are_not_supplied)
{
    struct answers answers;
    const struct weft_layer_kind kind = make_kind(&answers);
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    const char *text = CONFIG("{\"layers\":[" MINE_ENTRY "]}", SMALL_CLUSTER, SMALL_TRAIN);
    cr_assert_eq(load(text, &kind, NULL, &config, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_model_trains(config->model, 64, WEFT_DEVICE_CPU, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "(mine): it is first"), "%s", err.text);
    weft_config_destroy(config);
}
