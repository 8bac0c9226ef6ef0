/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/model.h"
#include "layers/custom.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "layers/shared/image.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof(*(array))))

static const struct weft_layer gpt[] = {
    {.name = "wte",
     .kind = &weft_kind_embedding,
     .vocab = 256,
     .keys[WEFT_EMBEDDING_POSITIONS].integer = 33,
     .hidden = 36},
    {.name = "h.0",
     .kind = &weft_kind_transformer_block,
     .hidden = 36,
     .keys[WEFT_BLOCK_HEADS].integer = 3,
     .keys[WEFT_BLOCK_FFN].integer = 101},
    {.name = "h.1",
     .kind = &weft_kind_transformer_block,
     .hidden = 36,
     .keys[WEFT_BLOCK_HEADS].integer = 3,
     .keys[WEFT_BLOCK_FFN].integer = 101},
    {.name = "ln_f", .kind = &weft_kind_layer_norm, .hidden = 36},
    {.name = "head", .kind = &weft_kind_lm_head, .vocab = 256, .hidden = 36, .tie = 0},
};

enum { EMBEDDING, BLOCK_0, BLOCK_1, NORM, HEAD };

static struct weft_model *create_model(const struct weft_layer *layers, int32_t n)
{
    struct weft_model *model = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_model_create(layers, n, &model, &err), WEFT_OK, "%s", err.text);
    return model;
}

/* Creation fails with bad data, says `text`, and leaves the output alone. */
static void refuses_model(const struct weft_layer *layers, int32_t n, const char *text)
{
    struct weft_model *untouched = (struct weft_model *)(uintptr_t)&gpt, *model = untouched;
    struct weft_error err = {0};
    cr_assert_eq(weft_model_create(layers, n, &model, &err), WEFT_E_DATA);
    cr_assert_eq(model, untouched);
    cr_assert(strstr(err.text, text), "\"%s\" does not say \"%s\"", err.text, text);
}

/* `gpt` with one layer replaced is refused. */
static void refuses_with(int32_t index, struct weft_layer layer, const char *text)
{
    struct weft_layer layers[COUNT(gpt)];
    memcpy(layers, gpt, sizeof(gpt));
    layers[index] = layer;
    refuses_model(layers, COUNT(gpt), text);
}

Test(model, names_and_bytes_of_dtypes)
{
    cr_assert_eq(weft_dtype_bytes(WEFT_F32), 4);
    cr_assert_eq(weft_dtype_bytes(WEFT_BF16), 2);
    cr_assert_eq(weft_dtype_bytes(WEFT_F16), 2);
    cr_assert_str_eq(weft_dtype_name(WEFT_F32), "f32");
    cr_assert_str_eq(weft_dtype_name(WEFT_BF16), "bf16");
    cr_assert_str_eq(weft_dtype_name(WEFT_F16), "f16");
}

Test(model, kinds_know_whether_they_train)
{
    cr_assert_eq(weft_kind_find(NULL, "embedding"), &weft_kind_embedding);
    cr_assert_eq(weft_kind_find(NULL, "custom"), &weft_kind_custom);
    cr_assert_null(weft_kind_find(NULL, "Embedding"));
    cr_assert(weft_kind_classifier.trains);
    cr_assert(weft_kind_llama_block.trains);
    cr_assert_not(weft_kind_moe_block.trains);
    cr_assert_not(weft_kind_custom.trains);
}

Test(model, gives_a_block_its_tensors_in_order)
{
    struct weft_model *model = create_model(gpt, COUNT(gpt));
    const struct weft_layer *block = &model->layers[BLOCK_1];
    static const struct {
        const char *name;
        int64_t rows, columns;
    } expected[] = {
        {"h.1.ln1.weight", 36, 1},        {"h.1.ln1.bias", 36, 1},
        {"h.1.attn.qkv.weight", 108, 36}, {"h.1.attn.qkv.bias", 108, 1},
        {"h.1.attn.proj.weight", 36, 36}, {"h.1.attn.proj.bias", 36, 1},
        {"h.1.ln2.weight", 36, 1},        {"h.1.ln2.bias", 36, 1},
        {"h.1.mlp.fc.weight", 101, 36},   {"h.1.mlp.fc.bias", 101, 1},
        {"h.1.mlp.proj.weight", 36, 101}, {"h.1.mlp.proj.bias", 36, 1},
    };
    cr_assert_eq(block->n_tensors, COUNT(expected));
    for (int32_t i = 0; i < COUNT(expected); i++) {
        const struct weft_tensor *tensor = &model->tensors[block->tensors[i]];
        bool is_matrix = expected[i].columns > 1;
        cr_assert_str_eq(tensor->name, expected[i].name);
        cr_assert_eq(tensor->layer, BLOCK_1);
        cr_assert_eq(tensor->n_dims, is_matrix ? 2 : 1);
        cr_assert_eq(tensor->dims[0], expected[i].rows);
        cr_assert_eq(tensor->dims[1], expected[i].columns);
        cr_assert_eq(tensor->elements, expected[i].rows * expected[i].columns);
        cr_assert_eq(tensor->decays, is_matrix, "only matrices decay: %s", tensor->name);
        cr_assert(tensor->trainable);
    }
    weft_model_destroy(model);
}

Test(model, starts_as_gpt2_does)
{
    struct weft_model *model = create_model(gpt, COUNT(gpt));
    const struct weft_layer *block = &model->layers[BLOCK_0];
    cr_assert_eq(model->tensors[block->tensors[0]].init, WEFT_INIT_ONE);
    cr_assert_eq(model->tensors[block->tensors[1]].init, WEFT_INIT_ZERO);
    cr_assert_eq(model->tensors[block->tensors[2]].init, WEFT_INIT_NORMAL);
    cr_assert_eq(model->tensors[block->tensors[2]].init_std, 0.02);
    /* Two blocks, so four branches: 0.02 / sqrt(4). */
    cr_assert_float_eq(model->tensors[block->tensors[4]].init_std, 0.01, 1e-15);
    cr_assert_float_eq(model->tensors[block->tensors[10]].init_std, 0.01, 1e-15);
    weft_model_destroy(model);
}

Test(model, counts_tied_weights_once)
{
    struct weft_layer layers[COUNT(gpt)];
    memcpy(layers, gpt, sizeof(gpt));
    struct weft_model *tied = create_model(layers, COUNT(gpt));
    cr_assert_eq(tied->layers[HEAD].n_tensors, 1);
    cr_assert_eq(tied->layers[HEAD].tensors[0], tied->layers[EMBEDDING].tensors[0]);
    cr_assert_eq(tied->tensors[tied->layers[HEAD].tensors[0]].layer, EMBEDDING);

    layers[HEAD].tie = -1;
    struct weft_model *untied = create_model(layers, COUNT(gpt));
    cr_assert_eq(untied->parameters - tied->parameters, 256 * 36);
    cr_assert_str_eq(untied->tensors[untied->layers[HEAD].tensors[0]].name, "head.weight");

    layers[HEAD].bias = true;
    struct weft_model *biased = create_model(layers, COUNT(gpt));
    cr_assert_eq(biased->parameters - untied->parameters, 256);

    int64_t sum = 0;
    for (int32_t i = 0; i < biased->n_tensors; i++)
        sum += biased->tensors[i].elements;
    cr_assert_eq(sum, biased->parameters);
    weft_model_destroy(tied);
    weft_model_destroy(untied);
    weft_model_destroy(biased);
}

Test(model, fills_in_sizes_that_follow)
{
    struct weft_model *model = create_model(gpt, COUNT(gpt));
    cr_assert_eq(model->layers[EMBEDDING].outputs, 36);
    cr_assert_eq(model->layers[BLOCK_0].outputs, 36);
    cr_assert_eq(model->layers[BLOCK_0].keys[WEFT_BLOCK_KV_HEADS].integer, 3);
    cr_assert_eq(model->layers[BLOCK_0].tie, -1);
    cr_assert_eq(model->layers[HEAD].outputs, 256);
    weft_model_destroy(model);
}

Test(model, owns_its_names)
{
    char name[] = "fc";
    struct weft_layer layer = {
        .name = name, .kind = &weft_kind_linear, .hidden = 5, .outputs = 7, .bias = true};
    struct weft_model *model = create_model(&layer, 1);
    name[0] = 'x';
    cr_assert_str_eq(model->layers[0].name, "fc");
    cr_assert_str_eq(model->tensors[1].name, "fc.bias");
    cr_assert_eq(model->parameters, 5 * 7 + 7);
    weft_model_destroy(model);
}

Test(model, shares_heads_in_llama_blocks)
{
    struct weft_layer layer = {.name = "b",
                               .kind = &weft_kind_llama_block,
                               .hidden = 48,
                               .keys[WEFT_BLOCK_HEADS].integer = 6,
                               .keys[WEFT_BLOCK_KV_HEADS].integer = 2,
                               .keys[WEFT_BLOCK_FFN].integer = 100,
                               .keys[WEFT_BLOCK_ROPE_BASE].number = 10000,
                               .keys[WEFT_BLOCK_EPS].number = 1e-5};
    struct weft_model *model = create_model(&layer, 1);
    cr_assert_eq(model->tensors[model->layers[0].tensors[1]].dims[0], 48 + 2 * 16);
    cr_assert_eq(model->parameters, 2 * 48 + 2 * 48 * 48 + 2 * 16 * 48 + 3 * 48 * 100);
    weft_model_destroy(model);
}

Test(model, freezes_all_tensors_of_a_layer)
{
    struct weft_layer layers[COUNT(gpt)];
    memcpy(layers, gpt, sizeof(gpt));
    layers[BLOCK_0].frozen = true;
    struct weft_model *model = create_model(layers, COUNT(gpt));
    for (int32_t i = 0; i < model->n_tensors; i++)
        cr_assert_eq(model->tensors[i].trainable, model->tensors[i].layer != BLOCK_0);
    weft_model_destroy(model);
}

Test(model, refuses_what_does_not_chain)
{
    struct weft_layer layer = gpt[NORM];
    layer.hidden = 35;
    refuses_with(NORM, layer,
                 "layer \"ln_f\" (layer_norm): it reads rows of 35, but \"h.1\" "
                 "before it gives rows of 36");
    layer = gpt[EMBEDDING];
    layer.name = "second";
    refuses_with(BLOCK_0, layer, "it can only be the first layer; \"wte\" is before it");
    layer = gpt[HEAD];
    layer.name = "early";
    refuses_with(BLOCK_1, layer,
                 "layer \"ln_f\" (layer_norm): it follows \"early\" (lm_head), "
                 "whose output is the loss");
    layer = gpt[BLOCK_0];
    refuses_with(BLOCK_1, layer, "layer \"h.0\" (transformer_block): another layer has this name");
}

Test(model, refuses_heads_that_do_not_divide)
{
    struct weft_layer layer = gpt[BLOCK_0];
    layer.keys[WEFT_BLOCK_HEADS].integer = 5;
    refuses_with(BLOCK_0, layer, "hidden 36 is not a multiple of heads 5");
    layer.keys[WEFT_BLOCK_HEADS].integer = 0;
    refuses_with(BLOCK_0, layer, "heads is 0; it must be from 1");
    layer = gpt[BLOCK_0];
    layer.kind = &weft_kind_llama_block;
    layer.keys[WEFT_BLOCK_ROPE_BASE].number = 10000;
    layer.keys[WEFT_BLOCK_KV_HEADS].integer = 2;
    refuses_with(BLOCK_0, layer, "heads 3 is not a multiple of kv_heads 2");
    layer.keys[WEFT_BLOCK_KV_HEADS].integer = 4;
    refuses_with(BLOCK_0, layer, "kv_heads is 4; it must be from 1 to 3");
}

Test(model, refuses_ties_that_cannot_share)
{
    struct weft_layer layer = gpt[HEAD];
    layer.tie = BLOCK_0;
    refuses_with(HEAD, layer, "it can only be tied to a layer of type embedding before it");
    layer.tie = HEAD;
    refuses_with(HEAD, layer, "it can only be tied to a layer of type embedding before it");
    layer = gpt[HEAD];
    layer.vocab = 255;
    refuses_with(HEAD, layer, "its weight is 255 x 36 and the embedding's 256 x 36");
    layer = gpt[HEAD];
    layer.frozen = true;
    refuses_with(HEAD, layer, "only one of them is frozen");
}

Test(model, refuses_sizes_that_are_none)
{
    refuses_model(NULL, 0, "the model has no layers");
    struct weft_layer layer = gpt[EMBEDDING];
    layer.vocab = 0;
    refuses_with(EMBEDDING, layer, "vocab is 0; it must be from 1 to 2147483647");
    layer = gpt[EMBEDDING];
    layer.keys[WEFT_EMBEDDING_POSITIONS].integer = -1;
    refuses_with(EMBEDDING, layer, "positions is -1");
    layer = (struct weft_layer){
        .name = "c", .kind = &weft_kind_custom, .tie = -1, .keys[WEFT_CUSTOM_SAVED].integer = -1};
    refuses_model(&layer, 1, "layer \"c\" (custom): saved is -1; it must be from 0");
    layer = (struct weft_layer){.name = "c", .kind = &weft_kind_classifier, .hidden = 3, .tie = -1};
    refuses_model(&layer, 1, "classes is 0");
}

Test(model, refuses_parameters_that_overflow)
{
    enum { N = 1024 };
    static struct weft_layer layers[N];
    static char names[N][16];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "c.%d", i);
        layers[i] = (struct weft_layer){.name = names[i],
                                        .kind = &weft_kind_custom,
                                        .tie = -1,
                                        .keys[WEFT_CUSTOM_PARAMETERS].integer = INT64_C(1) << 53};
    }
    struct weft_model *model = create_model(layers, N - 1);
    cr_assert_eq(model->parameters, (N - 1) * (INT64_C(1) << 53));
    weft_model_destroy(model);
    refuses_model(layers, N, "with c.1023.parameters the model's parameters do not fit in 63 bits");

    struct weft_layer moe = {.name = "m", .kind = &weft_kind_moe_block, .hidden = 1 << 24};
    moe.keys[WEFT_BLOCK_HEADS].integer = 1;
    moe.keys[WEFT_BLOCK_FFN].integer = INT32_MAX;
    moe.keys[WEFT_BLOCK_EXPERTS].integer = 65536;
    moe.keys[WEFT_BLOCK_ACTIVE_EXPERTS].integer = 2;
    refuses_model(&moe, 1, "with m.experts.gate.weight the model's parameters do not fit");
}

static void trains(const struct weft_layer *layers, int32_t n, int64_t seq_len, const char *text)
{
    struct weft_model *model = create_model(layers, n);
    struct weft_error err = {0};
    enum weft_status status = weft_model_trains(model, seq_len, WEFT_DEVICE_CPU, &err);
    cr_assert_eq(status, text ? WEFT_E_DATA : WEFT_OK, "%s", err.text);
    if (text) cr_assert(strstr(err.text, text), "\"%s\" does not say \"%s\"", err.text, text);
    weft_model_destroy(model);
}

Test(model, trains_what_begins_with_text_and_ends_with_a_loss)
{
    static const struct weft_layer mlp[] = {
        {.name = "fc", .kind = &weft_kind_linear, .hidden = 5, .outputs = 7},
        {.name = "act", .kind = &weft_kind_relu, .hidden = 7},
        {.name = "head", .kind = &weft_kind_classifier, .hidden = 7, .outputs = 3, .tie = -1},
    };
    trains(gpt, COUNT(gpt), 33, NULL);
    trains(mlp, COUNT(mlp), 1, NULL);
    const struct weft_layer of_rows[] = {
        mlp[0], {.name = "head", .kind = &weft_kind_lm_head, .hidden = 7, .vocab = 3, .tie = -1}};
    trains(mlp, COUNT(mlp), 2, NULL);
    trains(of_rows, COUNT(of_rows), 2,
           "layer \"fc\" (linear): it is first and reads one row a sample, "
           "but train.seq_len is 2");
    trains(mlp + 1, 2, 1, "layer \"act\" (relu): it is first, but text can only be read by");
    trains(gpt, NORM + 1, 1, "layer \"ln_f\" (layer_norm): it is last, so there is no loss");
}

Test(model, says_why_it_does_not_train)
{
    struct weft_layer layers[] = {
        {.name = "wte", .kind = &weft_kind_embedding, .vocab = 256, .hidden = 8, .frozen = true},
        {.name = "norm",
         .kind = &weft_kind_moe_block,
         .hidden = 8,
         .frozen = true,
         .keys[WEFT_BLOCK_EXPERTS].integer = 2,
         .keys[WEFT_BLOCK_ACTIVE_EXPERTS].integer = 1,
         .keys[WEFT_BLOCK_HEADS].integer = 2,
         .keys[WEFT_BLOCK_FFN].integer = 8},
        {.name = "head", .kind = &weft_kind_lm_head, .vocab = 256, .hidden = 8, .frozen = true},
    };
    trains(layers, 3, 4, "layer \"norm\" (moe_block): it can be planned but not trained");
    layers[1] = (struct weft_layer){.name = "gelu", .kind = &weft_kind_gelu, .hidden = 8};
    trains(layers, 3, 4, "the model has no parameter that is not frozen");
}

Test(model, of_kinds_without_kernels_of_a_gpu_trains_on_cpus)
{
    struct weft_kind own = weft_kind_rms_norm;
    own.cpu_only = true;
    const struct weft_layer layers[] = {
        {.name = "wte", .kind = &weft_kind_embedding, .vocab = 256, .hidden = 8},
        {.name = "norm", .kind = &own, .hidden = 8},
        {.name = "head", .kind = &weft_kind_lm_head, .vocab = 256, .hidden = 8}};
    struct weft_model *model = create_model(layers, 3);
    struct weft_error err = {0};
    cr_assert_eq(weft_model_trains(model, 4, WEFT_DEVICE_CPU, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_model_trains(model, 4, WEFT_DEVICE_CUDA, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "layer \"norm\" (rms_norm): CPUs alone train it so far"),
                       "%s", err.text);
    weft_model_destroy(model);
}

Test(model, destroys_nothing)
{
    weft_model_destroy(NULL);
}

Test(model, image_layers_chain_by_maps_and_side)
{
    struct weft_layer layers[] = {
        {.name = "conv",
         .kind = &weft_kind_conv2d,
         .keys[WEFT_IMAGE_SIDE].integer = 9,
         .keys[WEFT_IMAGE_CHANNELS].integer = 3,
         .keys[WEFT_IMAGE_FILTERS].integer = 8,
         .keys[WEFT_IMAGE_KERNEL].integer = 3,
         .keys[WEFT_IMAGE_STRIDE].integer = 2,
         .keys[WEFT_IMAGE_NORM].flag = true},
        {.name = "block",
         .kind = &weft_kind_bottleneck,
         .keys[WEFT_IMAGE_SIDE].integer = 5,
         .keys[WEFT_IMAGE_CHANNELS].integer = 8,
         .keys[WEFT_IMAGE_WIDTH].integer = 2,
         .keys[WEFT_IMAGE_FILTERS].integer = 16,
         .keys[WEFT_IMAGE_STRIDE].integer = 1},
        {.name = "pool",
         .kind = &weft_kind_pool2d,
         .keys[WEFT_IMAGE_SIDE].integer = 5,
         .keys[WEFT_IMAGE_CHANNELS].integer = 16,
         .keys[WEFT_IMAGE_STRIDE].integer = 5},
        {.name = "fc", .kind = &weft_kind_classifier, .hidden = 16, .outputs = 3, .tie = -1},
    };
    struct weft_model *model = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_model_create(layers, 4, &model, &err), WEFT_OK, "%s", err.text);
    int64_t conv = 8 * 27 + 16, inner = 2 * 8 + 4 + 2 * 18 + 4 + 16 * 2 + 32;
    cr_assert_eq(model->parameters, conv + inner + 16 * 8 + 32 + 3 * 16);
    cr_assert_eq(model->layers[0].hidden, 243);
    cr_assert_eq(model->layers[1].outputs, 400);
    weft_model_destroy(model);

    model = NULL;
    layers[1].keys[WEFT_IMAGE_SIDE].integer = 4;
    cr_assert_eq(weft_model_create(layers, 4, &model, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "reads rows of 128, but \"conv\" before it gives rows of 200"), "%s",
              err.text);
    layers[1].keys[WEFT_IMAGE_SIDE].integer = 5;
    layers[0].keys[WEFT_IMAGE_STRIDE].integer = 10;
    err = (struct weft_error){0};
    cr_assert_eq(weft_model_create(layers, 4, &model, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "stride is 10; it must be from 1 to 9"), "%s", err.text);
    layers[0].keys[WEFT_IMAGE_STRIDE].integer = 0;
    err = (struct weft_error){0};
    cr_assert_eq(weft_model_create(layers, 4, &model, &err), WEFT_E_DATA);
    cr_assert_null(model);
}

Test(model, moe_block_stacks_its_experts)
{
    struct weft_layer layer = {.name = "m",
                               .kind = &weft_kind_moe_block,
                               .hidden = 8,
                               .keys[WEFT_BLOCK_HEADS].integer = 4,
                               .keys[WEFT_BLOCK_KV_HEADS].integer = 2,
                               .keys[WEFT_BLOCK_FFN].integer = 12,
                               .keys[WEFT_BLOCK_EXPERTS].integer = 3,
                               .keys[WEFT_BLOCK_ACTIVE_EXPERTS].integer = 2};
    struct weft_model *model = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_model_create(&layer, 1, &model, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(model->parameters, 2 * 8 + 2 * 64 + 2 * 8 * 4 + 3 * 8 + 3 * 3 * 8 * 12);
    cr_assert_eq(model->n_tensors, 10);
    weft_model_destroy(model);
    layer.keys[WEFT_BLOCK_ACTIVE_EXPERTS].integer = 4;
    cr_assert_eq(weft_model_create(&layer, 1, &model, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "active_experts is 4; it must be from 1 to 3"), "%s", err.text);
}
