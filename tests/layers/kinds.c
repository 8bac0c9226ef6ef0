/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/layer.h"

#include <criterion/criterion.h>
#include <string.h>

#include "layers/custom.h"
#include "layers/embedding.h"
#include "layers/recipe/layout.h"
#include "layers/shared/block.h"
#include "layers/shared/image.h"
#include "spec/model.h"

static const struct weft_layer block = {
    .name = "h.0",
    .kind = &weft_kind_transformer_block,
    .hidden = 64,
    .outputs = 64,
    .keys[WEFT_BLOCK_HEADS].integer = 4,
    .keys[WEFT_BLOCK_KV_HEADS].integer = 4,
    .keys[WEFT_BLOCK_FFN].integer = 256,
};
static const struct weft_batch batch = {.samples = 4, .seq_len = 64, .compute = WEFT_F32};
enum { ROWS = 256 };

/* A small layer of the kind, with a value for every key. */
static struct weft_layer layer_of(int32_t index)
{
    static const struct {
        const char *name;
        int64_t value;
    } values[] = {{"heads", 4},          {"kv_heads", 4},  {"ffn", 256},    {"experts", 8},
                  {"active_experts", 2}, {"image", 8},     {"channels", 1}, {"filters", 1},
                  {"width", 1},          {"kernel", 3},    {"stride", 1},   {"vocab", 256},
                  {"positions", 256},    {"head_dim", 16}, {"types", 2}};
    const double base = 10000;
    const struct weft_kind *kind = weft_kind_at(index);
    struct weft_layer layer = {.name = "l", .kind = kind, .hidden = 64, .outputs = 64};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const struct weft_field *key = weft_kind_key(kind, values[i].name);
        if (key != NULL) memcpy((char *)&layer + key->offset, &values[i].value, sizeof(int64_t));
    }
    const struct weft_field *rope = weft_kind_key(kind, "rope_base");
    if (rope != NULL) memcpy((char *)&layer + rope->offset, &base, sizeof base);
    return layer;
}

static struct weft_layer_work work_of(const struct weft_layer *layer, const struct weft_batch *of)
{
    struct weft_layer_work work;
    struct weft_error err = {0};
    cr_assert_eq(weft_layer_work(layer, of, &work, &err), WEFT_OK, "%s", err.text);
    return work;
}

static void refuses_layer(const struct weft_layer *layer, const struct weft_batch *of,
                          const char *text)
{
    struct weft_layer_work work = {.output_bytes = 12345};
    struct weft_error err = {0};
    cr_assert_eq(weft_layer_work(layer, of, &work, &err), WEFT_E_DATA);
    cr_assert_eq(work.output_bytes, 12345);
    cr_assert(strstr(err.text, text), "\"%s\" does not say \"%s\"", err.text, text);
}

Test(kinds, transformer_block_has_the_buffers_of_its_layout)
{
    struct weft_layer_work work = work_of(&block, &batch);
    struct weft_transformer_block_layout layout =
        weft_layout_transformer_block(&block, &batch, WEFT_RECOMPUTE_NONE);
    cr_assert_eq(work.output_bytes, ROWS * 64 * 4);
    cr_assert_eq(work.saved_bytes, layout.saved.bytes);
    /* All of these sizes are multiples of the alignment, so their sum is exact. */
    cr_assert_eq(work.saved_bytes,
                 4 * (4 * ROWS + ROWS * 64 * (1 + 3 + 1 + 1 + 1) + 2 * ROWS * 256 + 16 * 64 * 64));
    cr_assert_eq(work.forward_temporary_bytes, 0);
    cr_assert_eq(work.backward_temporary_bytes, layout.backward.bytes);
    cr_assert(work.backward_reads_input);
    cr_assert_not(work.backward_reads_output);
}

Test(kinds, transformer_block_flops_are_those_of_the_design)
{
    struct weft_layer_work work = work_of(&block, &batch);
    double t = ROWS, h = 64, f = 256, s = 64;
    double forward = 2 * t * (4 * h * h + 2 * h * f) + 4 * t * s * h / 2;
    cr_assert_eq(work.forward_flops, forward);
    cr_assert_eq(work.backward_flops, 2 * forward);
}

Test(kinds, frozen_layers_save_the_products_of_weight_gradients)
{
    struct weft_layer frozen = block;
    frozen.frozen = true;
    struct weft_layer_work work = work_of(&block, &batch), less = work_of(&frozen, &batch);
    double t = ROWS, h = 64, f = 256;
    cr_assert_eq(work.forward_flops, less.forward_flops);
    cr_assert_eq(work.backward_flops - less.backward_flops, 2 * t * (4 * h * h + 2 * h * f));

    struct weft_layer linear = {
        .name = "l", .kind = &weft_kind_linear, .hidden = 5, .outputs = 7, .frozen = true};
    cr_assert_not(work_of(&linear, &batch).backward_reads_input);
    linear.frozen = false;
    cr_assert(work_of(&linear, &batch).backward_reads_input);
}

Test(kinds, half_precision_halves_rows_but_not_statistics)
{
    struct weft_batch half = batch;
    half.compute = WEFT_BF16;
    struct weft_layer_work full = work_of(&block, &batch), less = work_of(&block, &half);
    int64_t statistics = 4 * ROWS * 4;
    cr_assert_eq(2 * (less.saved_bytes - statistics), full.saved_bytes - statistics);
    cr_assert_eq(2 * less.output_bytes, full.output_bytes);
    cr_assert_eq(less.forward_flops, full.forward_flops);
}

Test(kinds, relu_reads_its_output_and_gelu_its_input)
{
    struct weft_layer layer = {.name = "a", .kind = &weft_kind_relu, .hidden = 7, .outputs = 7};
    struct weft_layer_work work = work_of(&layer, &batch);
    cr_assert(work.backward_reads_output && !work.backward_reads_input);
    cr_assert_eq(work.saved_bytes + work.backward_temporary_bytes, 0);
    cr_assert_eq(work.output_bytes, ROWS * 7 * 4);
    layer.kind = &weft_kind_gelu;
    work = work_of(&layer, &batch);
    cr_assert(work.backward_reads_input && !work.backward_reads_output);
}

Test(kinds, losses_have_no_output)
{
    struct weft_layer head = {
        .name = "h", .kind = &weft_kind_lm_head, .hidden = 64, .vocab = 256, .outputs = 256};
    struct weft_layer_work work = work_of(&head, &batch);
    cr_assert_eq(work.output_bytes, 0);
    cr_assert_eq(work.saved_bytes, ROWS * 256 * 4);
    cr_assert_eq(work.forward_flops, 2.0 * ROWS * 64 * 256);
    cr_assert(work.backward_reads_input);

    struct weft_layer classifier = {
        .name = "c", .kind = &weft_kind_classifier, .hidden = 64, .outputs = 16};
    work = work_of(&classifier, &batch);
    cr_assert_eq(work.output_bytes, 0);
    cr_assert_eq(work.saved_bytes, 4 * 64 * 4 + 4 * 32 * 4);
    cr_assert_not(work.backward_reads_input);
}

Test(kinds, embedding_reads_tokens_and_moves_only_their_rows)
{
    struct weft_layer layer = {.name = "wte",
                               .kind = &weft_kind_embedding,
                               .vocab = 50257,
                               .keys[WEFT_EMBEDDING_POSITIONS].integer = 64,
                               .hidden = 64,
                               .outputs = 64};
    struct weft_layer_work work = work_of(&layer, &batch);
    cr_assert_eq(work.output_bytes, ROWS * 64 * 4);
    cr_assert_eq(work.saved_bytes, 0);
    cr_assert(work.backward_reads_input);
    cr_assert_eq(work.forward_moved_bytes, ROWS * (64 * 4 + 4 + 64 * 4));
    /* The gradient of the table is dense. */
    cr_assert_geq(work.backward_moved_bytes, 50257.0 * 64 * 4);
}

Test(kinds, llama_block_keeps_no_probabilities)
{
    struct weft_layer layer = block;
    layer.kind = &weft_kind_llama_block;
    layer.keys[WEFT_BLOCK_KV_HEADS].integer = 2;
    layer.keys[WEFT_BLOCK_ROPE_BASE].number = 10000;
    layer.keys[WEFT_BLOCK_EPS].number = 1e-5;
    weft_layer_complete(&layer);
    struct weft_layer_work work = work_of(&layer, &batch);
    double t = ROWS, h = 64, f = 256, s = 64, kv = 32;
    cr_assert_eq(work.forward_flops, 2 * t * (2 * h * h + 2 * h * kv + 3 * h * f) + 2 * t * s * h);
    cr_assert_eq(work.backward_flops, 2 * work.forward_flops);
    cr_assert_eq(work.saved_bytes, ROWS * 4 * (5 * 64 + 2 * 32 + 3 * 256 + 2 + 4));
    cr_assert_eq(work.forward_temporary_bytes, 64 * 64 * 4); /* scores of a head */
    cr_assert_eq(work.splits[WEFT_RECOMPUTE_SELECTIVE].kept_bytes,
                 ROWS * 4 * (2 * 64 + 2 * 32 + 2 * 256));
    cr_assert_eq(work.splits[WEFT_RECOMPUTE_WHOLE].kept_bytes, 0);
    cr_assert_eq(work.splits[WEFT_RECOMPUTE_WHOLE].flops, work.forward_flops - 2 * t * h * f);
}

Test(kinds, a_window_leaves_out_the_flops_before_it)
{
    struct weft_layer layer = block;
    struct weft_layer_work work;
    struct weft_error err = {0};
    layer.kind = &weft_kind_llama_block;
    layer.keys[WEFT_BLOCK_ROPE_BASE].number = 10000;
    layer.keys[WEFT_BLOCK_EPS].number = 1e-5;
    layer.keys[WEFT_BLOCK_WINDOW].integer = 64;
    weft_layer_complete(&layer);
    cr_assert_eq(weft_layer_work(&layer, &batch, &work, &err), WEFT_OK, "%s", err.text);
    const double whole = work.forward_flops, t = ROWS, h = 64, s = 64;
    layer.keys[WEFT_BLOCK_WINDOW].integer = 16;
    cr_assert_eq(weft_layer_work(&layer, &batch, &work, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(work.forward_flops, whole - 2 * t * s * h + 4 * t * h * (16 - 16 * 16 / (2 * s)));
}

static void check_llama_fault(int key, union weft_key value, const char *text)
{
    struct weft_layer layer = block;
    struct weft_error err = {0};
    layer.kind = &weft_kind_qwen3_block;
    layer.keys[WEFT_BLOCK_ROPE_BASE].number = 10000;
    layer.keys[WEFT_BLOCK_ROPE_FACTOR].number = 8;
    layer.keys[WEFT_BLOCK_ROPE_LOW].number = 1;
    layer.keys[WEFT_BLOCK_ROPE_HIGH].number = 4;
    layer.keys[WEFT_BLOCK_ROPE_ORIGINAL].integer = 8192;
    layer.keys[key] = value;
    weft_layer_complete(&layer);
    cr_assert_eq(weft_layer_check(&layer, &err), text == NULL ? WEFT_OK : WEFT_E_DATA, "%s",
                 err.text);
    if (text != NULL) cr_assert_not_null(strstr(err.text, text), "%s", err.text);
}

Test(kinds, llama_blocks_check_heads_and_rope)
{
    check_llama_fault(WEFT_BLOCK_HEAD_DIM, (union weft_key){.integer = 80}, NULL);
    check_llama_fault(WEFT_BLOCK_HEAD_DIM, (union weft_key){.integer = 15}, "an even number");
    check_llama_fault(WEFT_BLOCK_KV_HEADS, (union weft_key){.integer = 3}, "multiple of kv_heads");
    check_llama_fault(WEFT_BLOCK_ROPE_FACTOR, (union weft_key){.number = 0.5}, "at least 1, or 0");
    check_llama_fault(WEFT_BLOCK_ROPE_LOW, (union weft_key){.number = 4}, "below rope_high");
    check_llama_fault(WEFT_BLOCK_ROPE_ORIGINAL, (union weft_key){.integer = 0}, "above 0");
    check_llama_fault(WEFT_BLOCK_ROPE_BASE, (union weft_key){.number = 0}, "rope_base is 0");
}

Test(kinds, encoder_block_sees_the_whole_sequence)
{
    struct weft_layer layer = block;
    layer.kind = &weft_kind_encoder_block;
    struct weft_layer_work work = work_of(&layer, &batch);
    double t = ROWS, h = 64, f = 256, s = 64;
    cr_assert_eq(work.forward_flops, 2 * t * (4 * h * h + 2 * h * f) + 4 * t * s * h);
    cr_assert_eq(work.backward_flops, 2 * work.forward_flops);
    cr_assert_eq(work.saved_bytes, ROWS * 4 * (7 * 64 + 2 * 256 + 4 + 4));
    layer.keys[WEFT_BLOCK_POST_NORM].flag = true;
    const struct weft_layer_work post = work_of(&layer, &batch);
    cr_assert_eq(post.saved_bytes, work.saved_bytes);
    cr_assert_eq(post.forward_flops, work.forward_flops);
}

Test(kinds, moe_block_computes_with_the_active_experts_and_reads_all)
{
    struct weft_layer layer = block;
    layer.kind = &weft_kind_moe_block;
    layer.keys[WEFT_BLOCK_KV_HEADS].integer = 2;
    layer.keys[WEFT_BLOCK_EXPERTS].integer = 8;
    layer.keys[WEFT_BLOCK_ACTIVE_EXPERTS].integer = 2;
    struct weft_layer_work work = work_of(&layer, &batch);
    double t = ROWS, h = 64, f = 256, s = 64, kv = 32;
    double outer = 2 * h * h + 2 * h * kv + 8 * h;
    cr_assert_eq(work.forward_flops, 2 * t * (outer + 2 * 3 * h * f) + 2 * t * s * h);
    cr_assert_eq(work.saved_bytes,
                 ROWS * 4 * (5 * 64 + 2 * 32 + 2 * (3 * 256 + 2 * 64) + 2 + 4 + 8));
    cr_assert_eq(work.backward_temporary_bytes, ROWS * 4 * (2 * (2 * 256 + 64) + 2 * 64));
    cr_assert_gt(work.forward_moved_bytes, 4 * (outer + 8 * 3 * h * f));
}

/* The stem of ResNet-50 on two images: 224 x 224 x 3 onto 112 x 112 x 64. */
Test(kinds, conv2d_multiplies_each_weight_at_each_place)
{
    struct weft_layer layer = {.name = "conv1",
                               .kind = &weft_kind_conv2d,
                               .keys[WEFT_IMAGE_SIDE].integer = 224,
                               .keys[WEFT_IMAGE_CHANNELS].integer = 3,
                               .keys[WEFT_IMAGE_FILTERS].integer = 64,
                               .keys[WEFT_IMAGE_KERNEL].integer = 7,
                               .keys[WEFT_IMAGE_STRIDE].integer = 2,
                               .hidden = 224 * 224 * 3,
                               .outputs = 112 * 112 * 64};
    struct weft_batch images = {.samples = 2, .seq_len = 1, .compute = WEFT_F32};
    struct weft_layer_work work = work_of(&layer, &images);
    cr_assert_eq(work.forward_flops, 2 * 2.0 * 112 * 112 * 64 * 3 * 49);
    cr_assert_eq(work.saved_bytes, 0);
    cr_assert_eq(work.output_bytes, 2 * 112 * 112 * 64 * 4);
    cr_assert_eq(work.backward_temporary_bytes, work.output_bytes);
    cr_assert(work.backward_reads_input && work.backward_reads_output);
    layer.keys[WEFT_IMAGE_NORM].flag = true;
    cr_assert_eq(work_of(&layer, &images).saved_bytes, work.output_bytes + 64 * 8);
    layer.keys[WEFT_IMAGE_SIDE].integer = 225;
    cr_assert_eq(weft_image_side(&layer), 113);
}

/* The first block of stage 2: 56 x 56 x 256 onto 28 x 28 x 512, 128 wide. */
Test(kinds, bottleneck_projects_where_shapes_differ)
{
    struct weft_layer layer = {.name = "layer2.0",
                               .kind = &weft_kind_bottleneck,
                               .keys[WEFT_IMAGE_SIDE].integer = 56,
                               .keys[WEFT_IMAGE_CHANNELS].integer = 256,
                               .keys[WEFT_IMAGE_WIDTH].integer = 128,
                               .keys[WEFT_IMAGE_FILTERS].integer = 512,
                               .keys[WEFT_IMAGE_STRIDE].integer = 2,
                               .hidden = 56 * 56 * 256,
                               .outputs = 28 * 28 * 512};
    struct weft_batch images = {.samples = 1, .seq_len = 1, .compute = WEFT_F32};
    struct weft_layer_work work = work_of(&layer, &images);
    double in = 56 * 56, out = 28 * 28;
    double shortcut = out * 256 * 512;
    double products = in * 256 * 128 + out * 9 * 128 * 128 + out * 128 * 512 + shortcut;
    cr_assert_eq(work.forward_flops, 2 * products);
    int64_t inner = 128 * (56 * 56 + 28 * 28), outer = 512 * 28 * 28;
    cr_assert_eq(work.saved_bytes, 4 * (2 * inner + 2 * outer) + 8 * (2 * 128 + 2 * 512));
    cr_assert_eq(work.backward_temporary_bytes, 4 * (inner + outer));

    layer.keys[WEFT_IMAGE_SIDE].integer = 28;
    layer.keys[WEFT_IMAGE_CHANNELS].integer = 512;
    layer.keys[WEFT_IMAGE_STRIDE].integer = 1;
    layer.hidden = layer.outputs;
    work = work_of(&layer, &images);
    cr_assert_eq(work.forward_flops, 2 * out * (512 * 128 * 2 + 9 * 128 * 128));
    cr_assert_eq(work.saved_bytes, 4 * (4 * 128 * 28 * 28 + outer) + 8 * (2 * 128 + 512));
}

Test(kinds, custom_recomputes_if_it_says_so)
{
    struct weft_error err = {0};
    struct weft_layer_work work;
    struct weft_layer layer = {.name = "a",
                               .kind = &weft_kind_custom,
                               .keys = {[WEFT_CUSTOM_FORWARD_FLOPS].number = 7,
                                        [WEFT_CUSTOM_SAVED].integer = 640,
                                        [WEFT_CUSTOM_TEMPORARY].integer = 64,
                                        [WEFT_CUSTOM_KEPT].integer = 64}};
    const struct weft_batch batch = {.samples = 2, .seq_len = 1, .compute = WEFT_F32};
    cr_assert_eq(weft_layer_work(&layer, &batch, &work, &err), WEFT_OK, "%s", err.text);
    cr_assert_not(work.splits[WEFT_RECOMPUTE_WHOLE].possible);
    layer.keys[WEFT_CUSTOM_CHECKPOINTS].flag = true;
    cr_assert_eq(weft_layer_work(&layer, &batch, &work, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(work.splits[WEFT_RECOMPUTE_WHOLE].kept_bytes, 128);
    cr_assert_eq(work.splits[WEFT_RECOMPUTE_WHOLE].dropped_bytes, 1152);
    cr_assert_eq(work.splits[WEFT_RECOMPUTE_WHOLE].flops, 14);
    layer.keys[WEFT_CUSTOM_RESTORED].integer = 320;
    cr_assert_eq(weft_layer_work(&layer, &batch, &work, &err), WEFT_OK, "%s", err.text);
    const struct weft_layer_work at = weft_layer_work_at(&work, WEFT_RECOMPUTE_WHOLE);
    cr_assert_eq(at.saved_bytes, 128);
    cr_assert_eq(at.backward_temporary_bytes, 128 + 640);
    cr_assert_not(work.splits[WEFT_RECOMPUTE_SELECTIVE].possible);
}

Test(kinds, custom_is_what_it_says_times_samples)
{
    struct weft_layer layer = {.name = "c",
                               .kind = &weft_kind_custom,
                               .keys[WEFT_CUSTOM_FORWARD_FLOPS].number = 10,
                               .keys[WEFT_CUSTOM_BACKWARD_FLOPS].number = 30,
                               .keys[WEFT_CUSTOM_OUTPUT].integer = 5,
                               .keys[WEFT_CUSTOM_SAVED].integer = 7,
                               .keys[WEFT_CUSTOM_TEMPORARY].integer = 11};
    struct weft_layer_work work = work_of(&layer, &batch);
    cr_assert_eq(work.forward_flops, 40);
    cr_assert_eq(work.backward_flops, 120);
    cr_assert_eq(work.output_bytes, 20);
    cr_assert_eq(work.saved_bytes, 28);
    cr_assert_eq(work.forward_temporary_bytes, 44);
    cr_assert_eq(work.backward_temporary_bytes, 44);
    cr_assert(work.backward_reads_input);
    cr_assert_not(work.backward_reads_output);
    layer.keys[WEFT_CUSTOM_READS_OUTPUT].flag = true;
    work = work_of(&layer, &batch);
    cr_assert(work.backward_reads_output);
}

Test(kinds, refuses_batches_that_cannot_be)
{
    struct weft_layer layer = {.name = "wte",
                               .kind = &weft_kind_embedding,
                               .vocab = 256,
                               .keys[WEFT_EMBEDDING_POSITIONS].integer = 63,
                               .hidden = 64,
                               .outputs = 64};
    refuses_layer(&layer, &batch,
                  "layer \"wte\" (embedding): train.seq_len 64 is beyond its 63 positions");
    layer.keys[WEFT_EMBEDDING_POSITIONS].integer = 0;
    work_of(&layer, &batch);
    refuses_layer(&block, &(struct weft_batch){.samples = 0, .seq_len = 64, .compute = WEFT_F32},
                  "must be at least 1");
    refuses_layer(&block, &(struct weft_batch){.samples = 1, .seq_len = -1, .compute = WEFT_F32},
                  "must be at least 1");
}

Test(kinds, refuses_sizes_that_overflow)
{
    struct weft_batch large = {
        .samples = INT64_C(1) << 31, .seq_len = INT64_C(1) << 31, .compute = WEFT_F32};
    for (int32_t type = 0; type < WEFT_KIND_COUNT; type++) {
        struct weft_layer layer = layer_of(type);
        if (layer.kind == &weft_kind_custom) layer.keys[WEFT_CUSTOM_SAVED].integer = INT64_MAX;
        if (layer.kind == &weft_kind_embedding) layer.keys[WEFT_EMBEDDING_POSITIONS].integer = 0;
        if (layer.kind == &weft_kind_positions) layer.keys[0].integer = large.seq_len;
        refuses_layer(&layer, &large, "do not fit in 63 bits");
    }
}

Test(kinds, flops_and_traffic_are_positive_for_every_type)
{
    for (int32_t type = 0; type < WEFT_KIND_COUNT; type++) {
        struct weft_layer layer = layer_of(type);
        if (layer.kind == &weft_kind_custom) {
            layer.keys[WEFT_CUSTOM_FORWARD_FLOPS].number = 1;
            layer.keys[WEFT_CUSTOM_BACKWARD_FLOPS].number = 1;
        }
        struct weft_layer_work work = work_of(&layer, &batch);
        cr_assert_gt(work.forward_flops, 0, "type %d", (int)type);
        cr_assert_gt(work.backward_flops, 0, "type %d", (int)type);
        cr_assert_gt(work.forward_moved_bytes, 0, "type %d", (int)type);
        cr_assert_gt(work.backward_moved_bytes, 0, "type %d", (int)type);
    }
}

Test(kinds, keys_are_equal_for_what_takes_the_same_time)
{
    struct weft_pool pool = {0};
    struct weft_layer other = block;
    cr_assert_str_eq(weft_layer_key(&pool, &block, &batch),
                     "transformer_block hidden=64 heads=4 ffn=256 samples=4 seq=64 f32");
    other.name = "h.1";
    cr_assert_str_eq(weft_layer_key(&pool, &block, &batch), weft_layer_key(&pool, &other, &batch));
    other.frozen = true;
    cr_assert_str_eq(weft_layer_key(&pool, &other, &batch),
                     "transformer_block hidden=64 heads=4 ffn=256 frozen samples=4 seq=64 f32");

    struct weft_layer linear = {
        .name = "l", .kind = &weft_kind_linear, .hidden = 5, .outputs = 7, .bias = true};
    struct weft_batch half = {.samples = 4, .seq_len = 1, .compute = WEFT_BF16};
    cr_assert_str_eq(weft_layer_key(&pool, &linear, &half),
                     "linear inputs=5 outputs=7 bias samples=4 seq=1 bf16");
    weft_pool_finish(&pool);
}

/* A change of any size that a type has changes its key. */
Test(kinds, keys_differ_by_every_size)
{
    struct weft_pool pool = {0};
    for (int32_t type = 0; type < WEFT_KIND_COUNT; type++) {
        struct weft_layer layer = layer_of(type);
        char *key = weft_layer_key(&pool, &layer, &batch);
        struct weft_layer wider = layer;
        wider.hidden = 128;
        cr_assert_str_neq(key, weft_layer_key(&pool, &wider, &batch));
        struct weft_batch longer = batch;
        longer.samples++;
        cr_assert_str_neq(key, weft_layer_key(&pool, &layer, &longer));
        longer = batch;
        longer.seq_len++;
        cr_assert_str_neq(key, weft_layer_key(&pool, &layer, &longer));
    }
    weft_pool_finish(&pool);
}

Test(kinds, input_and_targets_have_the_bytes_of_their_rows)
{
    struct weft_layer tokens[] = {
        {.name = "e", .kind = &weft_kind_embedding, .vocab = 256, .hidden = 8},
        {.name = "h", .kind = &weft_kind_lm_head, .vocab = 256, .hidden = 8, .tie = -1},
    };
    struct weft_layer rows[] = {
        {.name = "l", .kind = &weft_kind_linear, .hidden = 5, .outputs = 8},
        {.name = "c", .kind = &weft_kind_classifier, .hidden = 8, .outputs = 3, .tie = -1},
    };
    struct weft_model *text = NULL, *numbers = NULL, *open = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_model_create(tokens, 2, &text, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_model_create(rows, 2, &numbers, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_model_create(rows, 1, &open, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_model_input_bytes(text, &batch), ROWS * 4);
    cr_assert_eq(weft_model_target_bytes(text, &batch), ROWS * 4);
    cr_assert_eq(weft_model_input_bytes(numbers, &batch), ROWS * 5 * 4);
    cr_assert_eq(weft_model_target_bytes(numbers, &batch), 4 * 4);
    cr_assert_eq(weft_model_target_bytes(open, &batch), 0);
    weft_model_destroy(text);
    weft_model_destroy(numbers);
    weft_model_destroy(open);
}
