/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward of every kind of layer on an emulated GPU, compared with the reference in
 * fp64. With plain products in f32 they are compared with the CPU's bits. Subjects call the two
 * functions here instead of the CPU's. */
#include <criterion/criterion.h>

#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "runtime/device/device.h"
#include "tests/runtime/nn/cpu/layers/subject.h"

enum weft_status emulated_forward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                  struct weft_error *err);
enum weft_status emulated_backward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                   struct weft_error *err);

typedef void push_fn(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_call *call);

static enum weft_status run_on_stream(push_fn *push, const struct weft_nn *nn,
                                      const struct weft_nn_call *call, struct weft_error *err)
{
    struct weft_nn *mine = (struct weft_nn *)(uintptr_t)nn;
    struct weft_device *device = NULL;
    struct weft_stream *stream = NULL;
    WEFT_TRY(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, err));
    WEFT_TRY(weft_stream_create(device, "compute", 0, &stream, err));
    push(mine, stream, call);
    enum weft_status status = weft_stream_synchronise(stream, err);
    if (status == WEFT_OK) status = weft_nn_verdict(mine, err);
    weft_stream_destroy(stream);
    weft_device_close(device);
    return status;
}

enum weft_status emulated_forward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                  struct weft_error *err)
{
    return run_on_stream(weft_nn_forward, nn, call, err);
}

enum weft_status emulated_backward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                   struct weft_error *err)
{
    return run_on_stream(weft_nn_backward, nn, call, err);
}

/* Buffers have the layout of a GPU, so attention on tensor cores has no place for probabilities. */
static void check_in(struct weft_layer layer, int64_t samples, int64_t seq_len, const char *way,
                     enum weft_dtype compute, enum weft_dtype gradient)
{
    const struct weft_batch batch = {
        .samples = samples, .seq_len = seq_len, .compute = compute, .on_gpu = true};
    struct weft_nn *nn = subject_open(way);
    struct subject subject, moved;
    cr_assert_str_eq(weft_nn_gemm_name(nn), way);
    subject_init_for(&subject, layer, &batch, 0, gradient);
    subject_check(nn, &subject, 40);
    subject_check_switches(nn, &subject);
    subject_init_for(&moved, layer, &batch, 64, gradient);
    subject_forward(nn, &moved);
    subject_backward(nn, &moved);
    cr_expect(subject_same_bits(&subject, &moved), "%s: other bits elsewhere", layer.name);
    subject_finish(&moved);
    subject_finish(&subject);
    weft_nn_close(nn);
}

/* Opens the CPU's back end by its table, since its name finds another one here. */
static void expect_bits_of_cpu(struct weft_layer layer, int64_t samples, int64_t seq_len)
{
    const struct weft_nn_options options = {.threads = 1, .compute = WEFT_F32, .gemm = "plain"};
    struct weft_nn *emulated = subject_open("plain"), *cpu = NULL;
    struct weft_error err = {0};
    struct subject here, there;
    cr_assert_eq(weft_nn_backend_cpu.open(&options, &cpu, &err), WEFT_OK, "%s", err.text);
    subject_init(&here, layer, samples, seq_len, 0);
    subject_init(&there, layer, samples, seq_len, 0);
    subject_forward(emulated, &here);
    subject_backward(emulated, &here);
    there.call.layer = &there.layer;
    there.call.loss = &there.loss;
    cr_assert_eq(weft_nn_cpu_forward(cpu, &there.call, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_nn_cpu_backward(cpu, &there.call, &err), WEFT_OK, "%s", err.text);
    cr_expect(subject_same_bits(&here, &there), "%s: other bits than the CPU's", layer.name);
    subject_finish(&here);
    subject_finish(&there);
    weft_nn_close(emulated);
    weft_nn_close(cpu);
}

static void check_in_f32(struct weft_layer layer, int64_t samples, int64_t seq_len)
{
    expect_bits_of_cpu(layer, samples, seq_len);
    check_in(layer, samples, seq_len, "plain", WEFT_F32, WEFT_F32);
    check_in(layer, samples, seq_len, "own", WEFT_F32, WEFT_F32);
}

static void check_everywhere(struct weft_layer layer, int64_t samples, int64_t seq_len)
{
    check_in_f32(layer, samples, seq_len);
    check_in(layer, samples, seq_len, "own", WEFT_BF16, WEFT_F32);
    check_in(layer, samples, seq_len, "own", WEFT_BF16, WEFT_BF16);
    check_in(layer, samples, seq_len, "own", WEFT_F16, WEFT_F32);
    check_in(layer, samples, seq_len, "own", WEFT_F16, WEFT_F16);
}

Test(emulated_layers, embeddings)
{
    check_everywhere(subject_embedding(7, 6, 5), 2, 6);
    check_everywhere(subject_embedding(7, 0, 8), 2, 6);
}

Test(emulated_layers, maps_and_activations)
{
    check_everywhere(subject_linear(7, 5, true), 2, 4);
    check_everywhere(subject_linear(16, 24, false), 2, 4);
    check_everywhere(subject_same(&weft_kind_relu, 9), 2, 5);
    check_everywhere(subject_same(&weft_kind_gelu, 16), 2, 5);
}

Test(emulated_layers, norms)
{
    check_everywhere(subject_same(&weft_kind_layer_norm, 20), 3, 7);
}

Test(emulated_layers, blocks)
{
    check_everywhere(subject_block(12, 3, 20), 2, 5);
    check_everywhere(subject_block(16, 2, 24), 1, 17);
    check_everywhere(subject_block(8, 1, 8), 2, 1);
}

/* A level restores the dropped parts only, so kept ones may not be written again. */
static void check_levels(struct weft_layer layer, const char *way, enum weft_dtype compute)
{
    const struct weft_batch batch = {
        .samples = 2, .seq_len = 17, .compute = compute, .on_gpu = true};
    struct weft_nn *nn = subject_open(way);
    struct subject plain;
    subject_init_for(&plain, layer, &batch, 0, compute);
    subject_forward(nn, &plain);
    subject_backward(nn, &plain);
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        struct subject_level it;
        if (!subject_has_level(&plain, level)) continue;
        subject_level_init(&it, &plain, (enum weft_recompute)level);
        subject_level_run(nn, &it);
        cr_expect(subject_same_bits(&plain, &it.subject), "%s, level %d", way, level);
        subject_level_finish(&it);
    }
    subject_finish(&plain);
    weft_nn_close(nn);
}

static void check_levels_everywhere(struct weft_layer layer)
{
    check_levels(layer, "plain", WEFT_F32);
    check_levels(layer, "own", WEFT_F32);
    check_levels(layer, "own", WEFT_BF16);
    check_levels(layer, "own", WEFT_F16);
}

Test(emulated_layers, blocks_restore_the_bits_that_they_dropped)
{
    check_levels_everywhere(subject_block(16, 2, 24));
    check_levels_everywhere(subject_llama(&weft_kind_llama_block, 16, 4, 2, 8, 24));
    check_levels_everywhere(subject_llama(&weft_kind_qwen3_block, 12, 2, 1, 8, 20));
}

Test(emulated_layers, heads_and_classifiers)
{
    check_everywhere(subject_head(&weft_kind_lm_head, 6, 11, true), 2, 5);
    check_everywhere(subject_head(&weft_kind_classifier, 21, 10, true), 4, 3);
    check_everywhere(subject_head(&weft_kind_classifier, 6, 4, false), 3, 5);
}

/* Heads that share keys, heads that tensor cores cannot load, and heads wider than theirs. */
Test(emulated_layers, llama_blocks)
{
    check_everywhere(subject_llama(&weft_kind_llama_block, 16, 4, 2, 8, 24), 2, 9);
    check_everywhere(subject_llama(&weft_kind_llama_block, 12, 3, 1, 4, 20), 2, 5);
    check_everywhere(subject_llama(&weft_kind_llama_block, 8, 2, 2, 136, 8), 1, 3);
    check_everywhere(subject_llama(&weft_kind_qwen3_block, 16, 4, 2, 8, 24), 2, 9);
}

/* Blocks of BERT and ViT, with heads of 16 bits that tensor cores load, and others. */
static struct weft_layer encoder_block(int64_t hidden, int64_t heads, int64_t ffn, bool post_norm)
{
    struct weft_layer layer = subject_block(hidden, heads, ffn);
    layer.kind = &weft_kind_encoder_block;
    layer.keys[WEFT_BLOCK_POST_NORM].flag = post_norm;
    layer.keys[WEFT_BLOCK_EPS].number = post_norm ? 1e-3 : 0;
    return layer;
}

Test(emulated_layers, encoder_blocks)
{
    check_everywhere(encoder_block(12, 3, 20, false), 2, 5);
    check_everywhere(encoder_block(16, 2, 24, true), 1, 17);
    check_levels_everywhere(encoder_block(16, 2, 24, true));
    check_levels_everywhere(encoder_block(16, 2, 24, false));
}

/* Heads of 16 bits too have whole score matrices then. */
Test(emulated_layers, encoder_blocks_leave_out_padding)
{
    subject_hides = true;
    check_everywhere(encoder_block(12, 3, 20, false), 3, 5);
    check_everywhere(encoder_block(16, 2, 24, true), 1, 17);
    check_levels_everywhere(encoder_block(16, 2, 24, true));
    subject_hides = false;
}

/* Added rows: positions, with a class token, and token types. */
Test(emulated_layers, added_rows)
{
    struct weft_layer layer = subject_same(&weft_kind_positions, 16);
    layer.keys[0].integer = 9;
    check_everywhere(layer, 3, 7);
    layer.keys[1].flag = true;
    check_everywhere(layer, 3, 7);
    layer = subject_same(&weft_kind_token_types, 7);
    layer.keys[0].integer = 3;
    check_everywhere(layer, 3, 50);
    struct weft_layer scaled = subject_embedding(7, 0, 8);
    scaled.keys[WEFT_EMBEDDING_SCALE].number = 2.5;
    check_everywhere(scaled, 2, 6);
}

/* The first row of a sample, a pooler with tanh, and a cap of logits. 16 bits of tanh's output
 * leave few digits of its slope. */
Test(emulated_layers, heads_with_poolers_and_caps)
{
    struct weft_layer head = subject_head(&weft_kind_classifier, 6, 4, true);
    head.keys[0].flag = true;
    check_everywhere(head, 3, 5);
    head.keys[1].flag = true;
    check_in_f32(head, 3, 5);
    struct weft_layer gelu = subject_same(&weft_kind_gelu, 16);
    gelu.keys[0].flag = true;
    check_everywhere(gelu, 2, 5);
    struct weft_layer capped = subject_head(&weft_kind_lm_head, 6, 11, false);
    capped.keys[0].number = 1.5;
    check_everywhere(capped, 2, 5);
}

/* Blocks of Gemma: windows, a scalar, and caps, which tensor cores lack. */
static struct weft_layer gemma_block(const struct weft_kind *kind, int64_t window, double cap)
{
    struct weft_layer layer = subject_llama(kind, 16, 4, 2, 8, 24);
    layer.keys[WEFT_BLOCK_WINDOW].integer = window;
    if (kind == &weft_kind_gemma_block) return layer;
    layer.keys[WEFT_BLOCK_QUERY_SCALAR].number = 3;
    layer.keys[WEFT_BLOCK_ATTENTION_CAP].number = cap;
    return layer;
}

Test(emulated_layers, gemma_blocks)
{
    check_everywhere(gemma_block(&weft_kind_gemma_block, 3, 0), 2, 9);
    check_everywhere(gemma_block(&weft_kind_gemma2_block, 9, 4), 2, 9);
    check_everywhere(gemma_block(&weft_kind_gemma3_block, 0, 0), 2, 9);
    check_levels_everywhere(gemma_block(&weft_kind_gemma3_block, 5, 4));
    struct weft_layer norm = subject_same(&weft_kind_gemma_norm, 20);
    check_everywhere(norm, 3, 7);
}

Test(emulated_layers, rms_norms)
{
    struct weft_layer norm = subject_same(&weft_kind_rms_norm, 20);
    check_everywhere(norm, 3, 7);
}
