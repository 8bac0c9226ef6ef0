/* SPDX-License-Identifier: Apache-2.0 */
/* The "layers" array through the public decoder. */
#include <stdio.h>

#include "layers/custom.h"
#include "layers/shared/block.h"
#include "layers/shared/image.h"
#include "tests/spec/config_text.h"

#define WITH_LAYERS(layers) CONFIG("{\"layers\":" layers "}", SMALL_CLUSTER, SMALL_TRAIN)

Test(config_layers, repeats_and_ties)
{
    struct weft_config *config = must_parse(SMALL_CONFIG);
    const struct weft_model *model = config->model;
    static const char *const names[] = {"wte", "h.0", "h.1", "h.2", "ln_f", "head"};
    cr_assert_eq(model->n_layers, 6);
    for (int i = 0; i < 6; i++)
        cr_assert_str_eq(model->layers[i].name, names[i]);
    cr_assert_eq(model->layers[5].tie, 0);
    cr_assert_eq(model->layers[5].outputs, 256);
    cr_assert_eq(model->layers[0].tie, -1);
    cr_assert_eq(model->layers[1].keys[WEFT_BLOCK_KV_HEADS].integer, 4);
    cr_assert_eq(model->layers[1].outputs, 48);
    cr_assert(!model->layers[5].bias);
    weft_config_destroy(config);
}

Test(config_layers, reads_every_type)
{
    struct weft_config *config = must_parse(WITH_LAYERS(
        "[{\"name\":\"in\",\"type\":\"linear\",\"hidden\":16,\"outputs\":8,\"frozen\":true},"
        "{\"name\":\"r\",\"type\":\"relu\",\"hidden\":8},"
        "{\"name\":\"g\",\"type\":\"gelu\",\"hidden\":8},"
        "{\"name\":\"b\",\"type\":\"llama_block\",\"hidden\":8,\"heads\":4,\"kv_heads\":2,"
        "\"ffn\":12},"
        "{\"name\":\"n\",\"type\":\"rms_norm\",\"hidden\":8},"
        "{\"name\":\"c\",\"type\":\"custom\",\"hidden\":8,\"parameters\":99,\"forward_flops\":"
        "\"1.5M\",\"backward_flops\":\"3M\",\"output\":\"1KiB\",\"saved\":\"2kB\",\"temporary\":"
        "\"7B\"},"
        "{\"name\":\"out\",\"type\":\"classifier\",\"hidden\":8,\"classes\":10}]"));
    const struct weft_layer *layers = config->model->layers;
    cr_assert(layers[0].frozen);
    cr_assert(layers[0].bias, "the default");
    cr_assert_eq(layers[0].outputs, 8);
    cr_assert(!layers[1].bias, "a type without bias has none");
    cr_assert_eq(layers[3].keys[WEFT_BLOCK_KV_HEADS].integer, 2);
    cr_assert_eq(layers[5].keys[WEFT_CUSTOM_PARAMETERS].integer, 99);
    cr_assert_eq(layers[5].keys[WEFT_CUSTOM_FORWARD_FLOPS].number, 1.5e6);
    cr_assert_eq(layers[5].keys[WEFT_CUSTOM_BACKWARD_FLOPS].number, 3e6);
    cr_assert_eq(layers[5].keys[WEFT_CUSTOM_OUTPUT].integer, 1024);
    cr_assert_eq(layers[5].keys[WEFT_CUSTOM_SAVED].integer, 2000);
    cr_assert_eq(layers[5].keys[WEFT_CUSTOM_TEMPORARY].integer, 7);
    cr_assert_eq(layers[6].outputs, 10);
    weft_config_destroy(config);
}

Test(config_layers, reads_types_that_are_only_planned)
{
    struct weft_config *config = must_parse(WITH_LAYERS(
        "[{\"name\":\"c\",\"type\":\"conv2d\",\"image\":8,\"channels\":3,\"filters\":4,\"kernel\":"
        "3,"
        "\"stride\":2,\"bias\":false,\"norm\":true},"
        "{\"name\":\"b\",\"type\":\"bottleneck\",\"image\":4,\"channels\":4,\"width\":2,"
        "\"filters\":8},"
        "{\"name\":\"p\",\"type\":\"pool2d\",\"image\":4,\"channels\":8,\"stride\":4},"
        "{\"name\":\"e\",\"type\":\"encoder_block\",\"hidden\":8,\"heads\":2,\"ffn\":16},"
        "{\"name\":\"m\",\"type\":\"moe_block\",\"hidden\":8,\"heads\":2,\"ffn\":16,"
        "\"experts\":4,\"active_experts\":3}]"));
    const struct weft_layer *layers = config->model->layers;
    cr_assert_eq(layers[0].outputs, 4 * 16);
    cr_assert(layers[0].keys[WEFT_IMAGE_NORM].flag && !layers[0].bias);
    cr_assert_eq(layers[1].keys[WEFT_IMAGE_STRIDE].integer, 1);
    cr_assert_eq(layers[1].keys[WEFT_IMAGE_WIDTH].integer, 2);
    cr_assert_eq(layers[2].outputs, 8);
    cr_assert_eq(layers[4].keys[WEFT_BLOCK_EXPERTS].integer, 4);
    cr_assert_eq(layers[4].keys[WEFT_BLOCK_ACTIVE_EXPERTS].integer, 3);
    cr_assert_eq(layers[4].keys[WEFT_BLOCK_KV_HEADS].integer, 2);
    weft_config_destroy(config);
}

Test(config_layers, knows_the_keys_of_each_type)
{
    cr_assert_str_eq(
        finding(WITH_LAYERS("[{\"name\":\"a\",\"type\":\"layer_norm\",\"hidden\":8,\"ffn\":3},"
                            "{\"name\":\"b\",\"type\":\"transformer_block\",\"hidden\":8,"
                            "\"heads\":2,\"widht\":2},"
                            "{\"name\":\"c\",\"type\":\"transformr_block\",\"hidden\":8}]")),
        "run.json: $.model.layers[0].ffn: a layer of type \"layer_norm\" has no such key; it has: "
        "hidden, eps\n"
        "run.json: $.model.layers[1]: the key \"ffn\" is missing; an integer: width between the "
        "two products of the feed-forward part\n"
        "run.json: $.model.layers[1].widht: unknown key; did you mean \"width\"?\n"
        "run.json: $.model.layers[2].type: \"transformr_block\" is not possible; did you mean "
        "\"transformer_block\"?\n"
        "run.json: $.model.layers[2].type: a layer of your own needs an element of "
        "model.kinds, --layers FILE, or "
        "weft_add_kind in a program");
}

Test(config_layers, refuses_heads_that_do_not_divide)
{
    cr_assert_str_eq(
        finding(WITH_LAYERS("[{\"name\":\"b\",\"type\":\"llama_block\",\"hidden\":48,\"heads\":5,"
                            "\"kv_heads\":2,\"ffn\":12}]")),
        "run.json: $.model.layers[0].heads: hidden 48 is not a multiple of heads 5; every head "
        "needs the same whole number of columns\n"
        "run.json: $.model.layers[0].kv_heads: heads 5 is not a multiple of kv_heads 2");
}

#define NORM(name) "{\"name\":\"" name "\",\"type\":\"layer_norm\",\"hidden\":48}"

Test(config_layers, refuses_names_that_are_not_unique)
{
    cr_assert_str_eq(
        finding(WITH_LAYERS("[" NORM("a") "," NORM("b") "," NORM("a") "]")),
        "run.json: $.model.layers[2].name: \"a\" is also the name of layers[0]; names must be "
        "unique");
    cr_assert_str_eq(
        finding_with(SMALL_CONFIG, SET("model.layers.2.name=h.1"), WEFT_E_DATA),
        "run.json: $.model.layers[2].name: \"h.1\" is also the name of layers[1]; names must be "
        "unique (model.layers.2.name=h.1 was given)");
    cr_assert_str_eq(finding_with(SMALL_CONFIG, SET("model.layers.1.name=h"), WEFT_E_DATA),
                     "run.json: $.model.layers[1].name: \"h\" would name all 3 copies; write for "
                     "example \"h.{i}\" (model.layers.1.name=h was given)");
}

Test(config_layers, refuses_names_that_files_cannot_hold)
{
    static const char *const bad[] = {"a b", "h.{i}.{i}", "h.{j}", "\303\244", "a\\n",
                                      "a/b", "../x",      "..",    "a..b",     "a.",
                                      ".a",  "h..{i}",    "{i}."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[512];
        snprintf(text, sizeof text, WITH_LAYERS("[" NORM("%s") "]"), bad[i]);
        const char *error = finding(text);
        cr_assert_not_null(strstr(error, "layers[0].name: "), "%s", error);
        cr_assert_not_null(strstr(error, "cannot be a name; at most 200 letters"), "%s", error);
    }
}

Test(config_layers, refuses_tensors_of_one_name)
{
    const char *text = WITH_LAYERS(
        "[{\"name\":\"h.0\",\"type\":\"transformer_block\",\"hidden\":48,\"heads\":4,\"ffn\":96},"
        "{\"name\":\"h.0.mlp.fc\",\"type\":\"linear\",\"hidden\":48,\"outputs\":48}]");
    cr_assert_str_eq(finding(text),
                     "run.json: $.model: layer \"h.0.mlp.fc\" (linear): its tensor "
                     "h.0.mlp.fc.bias has the name of one of layer \"h.0\" (transformer_block), "
                     "and values are saved, read and drawn by name: rename one of the layers");
}

Test(config_layers, refuses_ties_to_what_is_no_earlier_embedding)
{
    static const char *const ties[][2] = {
        {"model.layers.3.tie=wpe", "\"wpe\" cannot be tied to: no earlier layer has this name"},
        {"model.layers.3.tie=ln_f", "\"ln_f\" cannot be tied to: that layer is of another type"},
        {"model.layers.3.tie=head", "\"head\" cannot be tied to: no earlier layer has this name"},
        {"model.layers.0.vocab=9", "\"wte\" cannot be tied to: that embedding has another vocab"},
    };
    for (size_t i = 0; i < sizeof ties / sizeof *ties; i++) {
        const char *error = finding_with(SMALL_CONFIG, SET(ties[i][0]), WEFT_E_DATA);
        cr_assert_not_null(strstr(error, "$.model.layers[3].tie: "), "%s", error);
        cr_assert_not_null(strstr(error, ties[i][1]), "%s", error);
    }
}

Test(config_layers, refuses_shapes_that_do_not_chain)
{
    const char *error = finding_with(SMALL_CONFIG, SET("model.layers.2.hidden=32"), WEFT_E_DATA);
    cr_assert_not_null(strstr(error, "run.json:1:14: $.model: "), "%s", error);
    cr_assert_not_null(strstr(error, "ln_f"), "%s", error);
}

Test(config_layers, refuses_sizes_that_overflow)
{
    cr_assert_str_eq(finding_with(SMALL_CONFIG, SET("model.layers.1.ffn=99999999999"), WEFT_E_DATA),
                     "run.json: $.model.layers[1].ffn: 99999999999 is out of range; must be 1 to "
                     "2147483647 (model.layers.1.ffn=99999999999 was given)");
    /* Each size is possible, their product with the number of copies is not. */
    const char *error =
        finding(WITH_LAYERS("[{\"name\":\"b.{i}\",\"type\":\"transformer_block\",\"repeat\":16000,"
                            "\"hidden\":16777216,\"heads\":1,\"ffn\":2147483647}]"));
    cr_assert_not_null(strstr(error, "run.json: $.model: "), "%s", error);
}

Test(config_layers, refuses_too_many_layers_and_none)
{
    cr_assert_str_eq(finding(WITH_LAYERS("[]")),
                     "run.json: $.model.layers: is empty; a model has at least one layer");
    cr_assert_str_eq(
        finding(WITH_LAYERS("[{\"name\":\"a.{i}\",\"type\":\"relu\",\"hidden\":8,\"repeat\":16384},"
                            "{\"name\":\"b\",\"type\":\"relu\",\"hidden\":8}]")),
        "run.json: $.model.layers[1]: makes more than 16384 layers in all; repeat it less often");
}
