/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions and refusals of the GPU back end, on an emulated GPU. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "runtime/device/device.h"
#include "runtime/nn/cuda/cuda.h"
#include "runtime/nn/cuda/kernels/kernels.h"
#include "runtime/nn/nn.h"
#include "runtime/nn/units.h"
#include "spec/kind.h"
#include "tests/emulation/runs/machine.h"
#include "tests/runtime/nn/cpu/layers/subject.h"

static struct weft_device *device;
static struct weft_stream *stream;
static struct weft_error err;

static struct weft_nn *opened(const char *way)
{
    const struct weft_nn_options options = {.threads = 1, .compute = WEFT_F32, .gemm = way};
    struct weft_nn *nn = NULL;
    err = (struct weft_error){0};
    cr_assert_eq(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "compute", 0, &stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_nn_open("cpu", &options, &nn, &err), WEFT_OK, "%s", err.text);
    return nn;
}

static void closed(struct weft_nn *nn)
{
    weft_stream_destroy(stream);
    weft_device_close(device);
    weft_nn_close(nn);
}

Test(bind, names_its_products_and_machine)
{
    struct weft_nn *nn = opened("plain");
    cr_expect_str_eq(weft_nn_describe(nn), "plain kernels of a GPU (emulated)");
    cr_expect_str_eq(weft_nn_gemm_name(nn), "plain");
    closed(nn);
}

/* The kernel notes it, and the host sees it after the synchronise, as on a GPU. */
Test(bind, a_token_outside_the_vocabulary_is_the_verdict)
{
    enum { VOCAB = 5, WIDTH = 4, ROWS = 6 };
    static const struct weft_layer layer = {.name = "wte",
                                            .kind = &weft_kind_embedding,
                                            .hidden = WIDTH,
                                            .outputs = WIDTH,
                                            .vocab = VOCAB};
    const float table[VOCAB * WIDTH] = {1};
    const int32_t good[ROWS] = {0, 1, 2, 3, 4, 0}, bad[ROWS] = {0, 1, 2, 3, 5, -1};
    float output[ROWS * WIDTH];
    struct weft_nn_call call = {.layer = &layer,
                                .batch = {.samples = 2, .seq_len = 3, .compute = WEFT_F32},
                                .tensors = {table},
                                .output = output};
    struct weft_nn *nn = opened("own");
    call.input = good;
    weft_nn_forward(nn, stream, &call);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_nn_verdict(nn, &err), WEFT_OK, "%s", err.text);
    call.input = bad;
    weft_nn_forward(nn, stream, &call);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_nn_verdict(nn, &err), WEFT_E_DATA);
    cr_expect_str_eq(err.text, "layer wte: the token at position 1 of sample 1 is outside the "
                               "vocabulary 0 to 4");
    closed(nn);
}

static void expect_refused(const struct weft_layer *layer, const char *says)
{
    const struct weft_nn_call call = {.layer = layer,
                                      .batch = {.samples = 1, .seq_len = 1, .compute = WEFT_F32}};
    struct weft_nn *nn = opened("own");
    weft_nn_forward(nn, stream, &call);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_E_DATA);
    cr_expect(strstr(err.text, says) != NULL, "%s", err.text);
    closed(nn);
}

Test(bind, a_layer_that_only_plans_is_refused)
{
    const struct weft_layer layer = {.name = "h.7", .kind = &weft_kind_moe_block};
    expect_refused(&layer, "layer h.7: the GPU's kernels train no moe_block");
}

Test(bind, a_supplied_layer_is_refused_with_the_reason)
{
    const struct weft_layer_kind supplied = {0};
    const struct weft_kind kind = {.supplied = &supplied};
    const struct weft_layer layer = {.name = "mine", .kind = &kind};
    expect_refused(&layer, "layer mine: the functions of its kind are the CPU's");
}

/* Plan and kernels ask one predicate: a shape that tensor cores refuse keeps its probabilities. */
Test(bind, tensor_cores_attend_where_the_plan_saves_statistics)
{
    struct weft_layer layer = subject_block(16, 2, 24);
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        for (int64_t size = 1; size <= 160; size++) {
            const struct weft_batch batch = {
                .samples = 1, .seq_len = 2, .compute = (enum weft_dtype)dtype, .on_gpu = true};
            layer.hidden = 2 * size;
            const struct weft_cuda_attention shape = {.dtype = batch.compute,
                                                      .samples = 1,
                                                      .seq_len = 2,
                                                      .heads = 2,
                                                      .hidden = layer.hidden};
            const struct weft_cuda_heads heads = weft_cuda_heads_of(&shape);
            cr_expect_eq(weft_block_saves_statistics(&layer, &batch), weft_cuda_attends(&heads));
        }
    }
}

Test(bind, plain_kernels_refuse_a_plan_without_probabilities)
{
    const struct weft_layer layer = subject_block(16, 2, 24);
    struct weft_nn_call call = {
        .layer = &layer,
        .batch = {.samples = 1, .seq_len = 2, .compute = WEFT_BF16, .on_gpu = true}};
    struct weft_nn *nn = opened("plain");
    weft_nn_forward(nn, stream, &call);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_E_DATA);
    cr_expect(strstr(err.text, "set WEFT_GEMM=plain before planning too") != NULL, "%s", err.text);
    closed(nn);
}

/* Partial sums, gradients of whole score matrices, or dots of rows. */
Test(bind, needs_are_those_of_its_way)
{
    enum { SAMPLES = 2, SEQ = 16, HEADS = 2 };
    struct weft_layer layer = {.name = "h.0", .kind = &weft_kind_transformer_block, .hidden = 32};
    const struct weft_batch f32 = {.samples = SAMPLES, .seq_len = SEQ, .compute = WEFT_F32},
                            bf16 = {.samples = SAMPLES, .seq_len = SEQ, .compute = WEFT_BF16};
    layer.keys[WEFT_BLOCK_HEADS].integer = HEADS;
    layer.keys[WEFT_BLOCK_FFN].integer = 128;
    weft_layer_complete(&layer);
    struct weft_nn *nn = opened("plain");
    cr_expect_eq(weft_nn_layer_needs(nn, &layer, &f32).forward_bytes, 0);
    cr_expect_eq(weft_nn_layer_needs(nn, &layer, &f32).backward_bytes,
                 SAMPLES * HEADS * SEQ * SEQ * 4);
    closed(nn);
    nn = opened("own");
    cr_expect_eq(weft_nn_layer_needs(nn, &layer, &f32).backward_bytes,
                 SAMPLES * HEADS * SEQ * SEQ * 4);
    cr_expect_eq(weft_nn_layer_needs(nn, &layer, &bf16).backward_bytes, 128 * 4);
    cr_expect_eq(weft_nn_receive_needs(nn, 4, 1000), 3000);
    closed(nn);
}

static struct weft_layer scratch_layer(int i)
{
    switch (i) {
    case 0:
        return subject_block(16, 2, 24);
    case 1:
        return subject_block(12, 3, 20);
    case 2:
        return subject_same(&weft_kind_layer_norm, 20);
    case 3:
        return subject_linear(7, 5, true);
    case 4:
        return subject_linear(7, 5, false);
    case 5:
        return subject_head(&weft_kind_lm_head, 6, 11, true);
    case 6:
        return subject_llama(&weft_kind_llama_block, 16, 4, 2, 8, 24);
    case 7:
        return subject_llama(&weft_kind_qwen3_block, 12, 3, 1, 4, 20);
    default:
        return subject_head(&weft_kind_classifier, 21, 10, true);
    }
}

/* An analytic profile counts the needs of the back end, and a plan holds them. */
Test(bind, scratch_of_the_plan_is_all_that_layers_need)
{
    static const enum weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};
    for (int i = 0; i < 9; i++) {
        for (int d = 0; d < 3; d++) {
            struct weft_nn *nn = opened("own");
            struct subject subject;
            subject_init_as(&subject, scratch_layer(i), 3, 47, 0, dtypes[d], WEFT_F32);
            const struct weft_nn_needs needs =
                weft_nn_layer_needs(nn, &subject.layer, &subject.call.batch);
            cr_expect_eq(needs.forward_bytes, subject.work.forward_scratch_bytes, "layer %d", i);
            cr_expect_eq(needs.backward_bytes, subject.work.backward_scratch_bytes, "layer %d", i);
            const int64_t most_bytes = needs.forward_bytes > needs.backward_bytes
                                           ? needs.forward_bytes
                                           : needs.backward_bytes;
            subject.call.scratch_bytes = most_bytes;
            subject.call.scratch =
                aligned_alloc(64, (size_t)(subject.call.scratch_bytes + 63) & ~(size_t)63);
            subject_forward(nn, &subject);
            subject_backward(nn, &subject);
            cr_expect_eq(weft_nn_cuda_of(nn)->workspace_bytes, 0, "layer %d", i);
            free(subject.call.scratch);
            subject.call.scratch_bytes = 0;
            subject_forward(nn, &subject);
            subject_backward(nn, &subject);
            cr_expect_eq(weft_nn_cuda_of(nn)->workspace_bytes, most_bytes);
            subject_finish(&subject);
            closed(nn);
        }
    }
}

/* Host and GPU draw the same values, from any element on. */
Test(bind, initial_values_are_those_of_their_elements)
{
    enum { N = 10000 };
    float *got = calloc(N, sizeof *got), *wanted = calloc(N, sizeof *wanted);
    struct weft_nn *nn = opened("own");
    struct weft_nn_initial initial = {.init = WEFT_INIT_NORMAL,
                                      .std = 0.02,
                                      .seed = 3,
                                      .name = 9,
                                      .first = 77,
                                      .n = N,
                                      .to = got};
    weft_nn_initialise(nn, stream, &initial);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    for (int64_t i = 0; i < initial.n; i++) {
        wanted[i] =
            (float)(weft_rng_normal(initial.seed, initial.name, (uint64_t)(initial.first + i)) *
                    initial.std);
    }
    cr_expect_eq(memcmp(got, wanted, N * sizeof *got), 0);
    closed(nn);
    free(got);
    free(wanted);
}

Test(bind, loads_norms_and_hashes_go_on_after_a_piece)
{
    enum { N = 300000 };
    float *host = calloc(N, sizeof *host);
    uint16_t *halves = calloc(N, sizeof *halves);
    uint64_t bins[WEFT_NORM_WORDS] = {0}, wanted[WEFT_NORM_WORDS] = {0}, bad = 0;
    uint64_t narrow_sum[2] = {0}, wide_sum[2] = {0};
    int finite = 0;
    for (int i = 0; i < N; i++) {
        host[i] = weft_bf16_widen(weft_bf16_narrow((float)(i % 1001) * 0.25f - 100));
    }
    const struct weft_nn_piece piece = {.count = N};
    const struct weft_nn_unit unit = {
        .gradient = halves, .gradient_dtype = WEFT_BF16, .own = &piece, .n_own = 1};
    struct weft_nn *nn = opened("own");
    weft_nn_load(nn, stream, WEFT_BF16, N, host, halves);
    weft_nn_add_norm(nn, stream, &unit, bins, &bad);
    const struct weft_nn_unit frozen = {
        .parameters = halves, .dtype = WEFT_BF16, .own = &piece, .n_own = 1};
    const struct weft_nn_unit same = {.parameters = host, .own = &piece, .n_own = 1};
    weft_nn_add_hash(nn, stream, &frozen, narrow_sum);
    weft_nn_add_hash(nn, stream, &same, wide_sum);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    cr_expect_eq(memcmp(narrow_sum, wide_sum, sizeof narrow_sum), 0);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(weft_bf16_widen(halves[i]), host[i], "element %d", i);
    }
    weft_norm_add(wanted, host, N);
    cr_expect_eq(weft_norm_result(bins, &finite), weft_norm_result(wanted, &finite));
    cr_expect_eq(bad, 0);
    closed(nn);
    free(host);
    free(halves);
}

/* Pieces that continue one another are one launch, for the norm and for updates of one decay. The
 * last two are apart. Bits are those of pieces alone. */
Test(bind, pieces_that_continue_one_another_are_one_launch)
{
    enum { PIECES = 6, N = 4000 };
    static const struct weft_nn_piece pieces[PIECES] = {
        {.count = 512, .matrix = true},
        {.parameter_at = 512, .state_at = 512, .count = 64},
        {.parameter_at = 576, .state_at = 576, .count = 100},
        {.parameter_at = 676, .state_at = 676, .count = 924, .matrix = true},
        {.parameter_at = 1602, .state_at = 1602, .count = 98, .matrix = true},
        {.parameter_at = 2000, .state_at = 1700, .count = 300, .matrix = true}};
    static const int launches[2][2] = {{3, 5}, {6, 6}}; /* joined or not: of a norm, of an update */
    static float values[2][3][N], gradient[N];
    static uint64_t bins[2][WEFT_NORM_WORDS];
    const struct weft_nn_rule rule = {.type = WEFT_ADAMW, .exempt_vectors = true, .decay = 0.1f};
    struct weft_cuda_step step = {.adamw = {.lr = 0.01f, .eps = 1e-8f, .clip = 1}};
    weft_adamw_at(&step.adamw, 0.9, 0.95, 3);
    uint64_t bad = 0;
    int finite = 0;
    struct weft_nn *nn = opened("own");
    for (int i = 0; i < N; i++) {
        gradient[i] = (float)(i % 97) - 48;
    }
    for (int alone = 0; alone < 2; alone++) {
        long of_norm = 0, of_update = 0;
        for (int i = 0; i < (alone ? PIECES : 1); i++) {
            const struct weft_nn_unit unit = {.parameters = values[alone][0],
                                              .moment1 = values[alone][1],
                                              .moment2 = values[alone][2],
                                              .gradient = gradient,
                                              .own = &pieces[i],
                                              .renew = &pieces[i],
                                              .n_own = alone ? 1 : PIECES,
                                              .n_renew = alone ? 1 : PIECES};
            const long before = emu_machine_launches();
            weft_nn_add_norm(nn, stream, &unit, bins[alone], &bad);
            cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
            of_norm += emu_machine_launches() - before - 2; /* two are of the whole unit */
            weft_nn_update(nn, stream, &unit, &rule, &step);
            cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
            of_update += emu_machine_launches() - before - 2;
        }
        cr_expect_eq(of_norm, launches[alone][0], "%ld", of_norm);
        cr_expect_eq(of_update - of_norm, launches[alone][1], "%ld", of_update - of_norm);
    }
    cr_expect_eq(memcmp(values[0], values[1], sizeof values[0]), 0);
    cr_expect_eq(weft_norm_result(bins[0], &finite), weft_norm_result(bins[1], &finite));
    closed(nn);
}
