/* SPDX-License-Identifier: Apache-2.0 */
#include "subject.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/rng.h"
#include "layers/embedding.h"
#include "layers/shared/block.h"
#include "reference.h"
#include "tests/effort.h"

bool subject_hides;

struct weft_layer subject_embedding(int64_t vocab, int64_t positions, int64_t hidden)
{
    return (struct weft_layer){.name = "wte",
                               .kind = &weft_kind_embedding,
                               .tie = -1,
                               .vocab = vocab,
                               .keys[WEFT_EMBEDDING_POSITIONS].integer = positions,
                               .hidden = hidden,
                               .outputs = hidden,
                               .n_tensors = positions > 0 ? 2 : 1};
}

struct weft_layer subject_block(int64_t hidden, int64_t heads, int64_t ffn)
{
    return (struct weft_layer){.name = "h.0",
                               .kind = &weft_kind_transformer_block,
                               .tie = -1,
                               .hidden = hidden,
                               .outputs = hidden,
                               .keys[WEFT_BLOCK_HEADS].integer = heads,
                               .keys[WEFT_BLOCK_KV_HEADS].integer = heads,
                               .keys[WEFT_BLOCK_FFN].integer = ffn,
                               .n_tensors = 12};
}

struct weft_layer subject_llama(const struct weft_kind *type, int64_t hidden, int64_t heads,
                                int64_t kv_heads, int64_t head_dim, int64_t ffn)
{
    return (struct weft_layer){.name = "layers.0",
                               .kind = type,
                               .tie = -1,
                               .hidden = hidden,
                               .outputs = hidden,
                               .keys[WEFT_BLOCK_HEADS].integer = heads,
                               .keys[WEFT_BLOCK_KV_HEADS].integer = kv_heads,
                               .keys[WEFT_BLOCK_HEAD_DIM].integer = head_dim,
                               .keys[WEFT_BLOCK_FFN].integer = ffn,
                               .keys[WEFT_BLOCK_ROPE_BASE].number = 10000,
                               .keys[WEFT_BLOCK_EPS].number = 1e-4};
}

struct weft_layer subject_same(const struct weft_kind *type, int64_t hidden)
{
    return (struct weft_layer){.name = "same",
                               .kind = type,
                               .tie = -1,
                               .hidden = hidden,
                               .outputs = hidden,
                               .n_tensors = type == &weft_kind_layer_norm ? 2 : 0};
}

struct weft_layer subject_linear(int64_t inputs, int64_t outputs, bool bias)
{
    return (struct weft_layer){.name = "fc",
                               .kind = &weft_kind_linear,
                               .tie = -1,
                               .bias = bias,
                               .hidden = inputs,
                               .outputs = outputs,
                               .n_tensors = bias ? 2 : 1};
}

struct weft_layer subject_head(const struct weft_kind *type, int64_t hidden, int64_t classes,
                               bool bias)
{
    return (struct weft_layer){.name = "head",
                               .kind = type,
                               .tie = -1,
                               .bias = bias,
                               .vocab = type == &weft_kind_lm_head ? classes : 0,
                               .hidden = hidden,
                               .outputs = classes,
                               .n_tensors = bias ? 2 : 1};
}

/* Lists the layer's tensors. */
static struct weft_layer_shape shape_of(const struct weft_layer *layer)
{
    struct weft_layer_shape shape = {0};
    struct weft_error err = {0};
    if (layer->kind->shape != NULL)
        cr_assert_eq(layer->kind->shape(layer, WEFT_INIT_STD, &shape, &err), WEFT_OK, "%s",
                     err.text);
    return shape;
}

static bool is_loss(const struct weft_layer *layer)
{
    return layer->kind == &weft_kind_lm_head || layer->kind == &weft_kind_classifier;
}

/* Not initialised, but with a byte that makes a float wrong wherever it is read by mistake. */
static void *take(struct subject *subject, int64_t bytes)
{
    if (bytes == 0) return NULL;
    char *buffer = malloc((size_t)bytes + subject->offset_bytes);
    memset(buffer, 0xff, (size_t)bytes + subject->offset_bytes);
    subject->buffers[subject->n_buffers++] = buffer;
    return buffer + subject->offset_bytes;
}

double subject_value(enum weft_dtype dtype, const void *array, int64_t i)
{
    switch (dtype) {
    case WEFT_BF16:
        return (double)weft_bf16_widen(((const uint16_t *)array)[i]);
    case WEFT_F16:
        return (double)weft_f16_widen(((const uint16_t *)array)[i]);
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        break;
    }
    return (double)((const float *)array)[i];
}

static void set_value(enum weft_dtype dtype, void *array, int64_t i, float value)
{
    weft_kernels_best()->narrow(dtype, 1, &value, weft_nn_to(dtype, array, i));
}

static void *take_random(struct subject *subject, int64_t n, double mean, double deviation)
{
    const enum weft_dtype dtype = subject->call.batch.compute;
    void *x = take(subject, n * weft_dtype_bytes(dtype));
    for (int64_t i = 0; i < n; i++) {
        const double draw = weft_rng_normal(7, (uint64_t)subject->n_buffers, (uint64_t)i);
        set_value(dtype, x, i, (float)(mean + deviation * draw));
    }
    return x;
}

static int32_t *take_indices(struct subject *subject, int64_t n, int64_t below)
{
    int32_t *x = take(subject, n * (int64_t)sizeof(int32_t));
    for (int64_t i = 0; i < n; i++) {
        x[i] =
            (int32_t)weft_rng_below(7, (uint64_t)subject->n_buffers, (uint64_t)i, (uint64_t)below);
    }
    return x;
}

static void take_tensors(struct subject *subject)
{
    const struct weft_layer_shape shape = shape_of(&subject->layer);
    for (int i = 0; i < shape.n_tensors; i++) {
        const struct weft_layer_tensor *tensor = &shape.tensors[i];
        const bool is_norm = tensor->init == WEFT_INIT_ONE;
        subject->elements[i] = tensor->rows * (tensor->columns > 0 ? tensor->columns : 1);
        subject->call.tensors[i] =
            take_random(subject, subject->elements[i], is_norm ? 1 : 0, is_norm ? 0.2 : 0.35);
        subject->call.gradients[i] =
            take(subject, subject->elements[i] * weft_dtype_bytes(subject->call.gradient_dtype));
    }
}

static const int32_t *take_tokens(struct subject *subject, const struct weft_batch *batch)
{
    int32_t *tokens = take_indices(subject, batch->samples * batch->seq_len, 3);
    for (int64_t i = 2 * batch->seq_len; i < batch->samples * batch->seq_len; i++)
        tokens[i] = batch->padding;
    return tokens;
}

void subject_init(struct subject *subject, struct weft_layer layer, int64_t samples,
                  int64_t seq_len, size_t offset_bytes)
{
    subject_init_as(subject, layer, samples, seq_len, offset_bytes, WEFT_F32, WEFT_F32);
}

void subject_init_as(struct subject *subject, struct weft_layer layer, int64_t samples,
                     int64_t seq_len, size_t offset_bytes, enum weft_dtype compute,
                     enum weft_dtype gradient)
{
    const struct weft_batch batch = {.samples = samples, .seq_len = seq_len, .compute = compute};
    subject_init_for(subject, layer, &batch, offset_bytes, gradient);
}

void subject_init_for(struct subject *subject, struct weft_layer layer,
                      const struct weft_batch *batch, size_t offset_bytes, enum weft_dtype gradient)
{
    *subject = (struct subject){.layer = layer, .offset_bytes = offset_bytes};
    struct weft_nn_call *call = &subject->call;
    const int64_t samples = batch->samples, rows = samples * batch->seq_len;
    struct weft_error err = {0};
    call->layer = &subject->layer;
    call->batch = *batch;
    call->batch.hides = subject_hides;
    call->batch.padding = subject_hides ? 1 : 0;
    call->gradient_dtype = gradient;
    cr_assert_eq(weft_layer_work(&subject->layer, &call->batch, &subject->work, &err), WEFT_OK,
                 "%s", err.text);
    take_tensors(subject);

    const bool loss = is_loss(&layer), embedding = layer.kind == &weft_kind_embedding;
    subject->n_inputs = embedding ? 0 : rows * layer.hidden;
    subject->n_outputs = (layer.kind == &weft_kind_classifier ? samples : rows) * layer.outputs;
    call->input = embedding ? (const void *)take_indices(subject, rows, layer.vocab)
                            : (const void *)take_random(subject, subject->n_inputs, 0.1, 1);
    if (loss) {
        call->targets = take_indices(subject, layer.kind == &weft_kind_classifier ? samples : rows,
                                     layer.outputs);
        call->loss = &subject->loss;
        call->loss_scale = 0.25;
    } else {
        call->output = take(subject, subject->work.output_bytes);
        call->output_gradient = take_random(subject, subject->n_outputs, 0, 1);
    }
    if (subject_hides) call->tokens = take_tokens(subject, &call->batch);
    call->saved = take(subject, subject->work.saved_bytes);
    const int64_t forward = subject->work.forward_temporary_bytes;
    const int64_t backward = subject->work.backward_temporary_bytes;
    call->temporary = take(subject, forward > backward ? forward : backward);
    call->input_gradient = take(subject, subject->n_inputs * weft_dtype_bytes(batch->compute));
}

void subject_finish(struct subject *subject)
{
    for (int i = 0; i < subject->n_buffers; i++) {
        free(subject->buffers[i]);
    }
    *subject = (struct subject){0};
}

struct weft_nn *subject_open(const char *gemm)
{
    const struct weft_nn_options options = {.threads = 1, .gemm = gemm};
    struct weft_nn *nn = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_nn_open("cpu", &options, &nn, &err), WEFT_OK, "%s", err.text);
    return nn;
}

void subject_forward(struct weft_nn *nn, struct subject *subject)
{
    struct weft_error err = {0};
    subject->call.layer = &subject->layer;
    subject->call.loss = &subject->loss;
    cr_assert_eq(weft_nn_cpu_forward(nn, &subject->call, &err), WEFT_OK, "%s", err.text);
}

void subject_backward(struct weft_nn *nn, struct subject *subject)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_nn_cpu_backward(nn, &subject->call, &err), WEFT_OK, "%s", err.text);
}

static double *widened(enum weft_dtype dtype, const void *x, int64_t n)
{
    double *y = malloc((size_t)(n > 0 ? n : 1) * sizeof(*y));
    for (int64_t i = 0; x && i < n; i++) {
        y[i] = subject_value(dtype, x, i);
    }
    return y;
}

/* Half the distance of 1 from the next number: the relative error of one rounding. */
static double rounding(enum weft_dtype dtype)
{
    return dtype == WEFT_BF16 ? 0x1p-9 : dtype == WEFT_F16 ? 0x1p-12 : 0x1p-25;
}

/* Tolerance for several roundings of values in flow, relative to the largest magnitude. A block
 * has twelve in a row, each of numbers that grew since. The least number of 16 bits is a part of
 * the noise in f16. */
static double tolerance(const struct subject *subject, double in_f32)
{
    const enum weft_dtype dtype = subject->call.batch.compute;
    const bool block = subject->layer.kind->closes_residual;
    const double one = dtype == WEFT_F32 ? in_f32 : (block ? 16 : 4) * rounding(dtype);
    return subject->looser > 0 ? subject->looser * one : one;
}

static double magnitude(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

/* The function of the gradient: loss_scale times the loss, or the output against
 * output_gradient. */
static double objective(const struct subject *subject, const struct reference *reference,
                        double *output)
{
    const double loss = reference_forward(reference, output);
    if (is_loss(&subject->layer)) return subject->call.loss_scale * loss;
    double sum = 0;
    for (int64_t i = 0; i < subject->n_outputs; i++) {
        sum += output[i] *
               subject_value(subject->call.batch.compute, subject->call.output_gradient, i);
    }
    return sum;
}

static void check_gradient(const struct subject *subject, const struct reference *reference,
                           double *x, int64_t n, enum weft_dtype dtype, const void *gradient,
                           int64_t probes, double *output, const char *what, int index)
{
    if (n == 0) return;
    const int64_t step = n > probes ? n / probes : 1;
    double scale = 0;
    for (int64_t i = 0; i < n; i++) {
        cr_assert(isfinite(subject_value(dtype, gradient, i)), "%s %d [%lld] is not finite", what,
                  index, (long long)i);
        scale = fmax(scale, fabs(subject_value(dtype, gradient, i)));
    }
    for (int64_t i = 0; i < n; i += step) {
        const double was = x[i], by = 1e-5;
        x[i] = was + by;
        const double above = objective(subject, reference, output);
        x[i] = was - by;
        const double below = objective(subject, reference, output);
        x[i] = was;
        const double expected = (above - below) / (2 * by);
        const double got = subject_value(dtype, gradient, i);
        cr_assert(fabs(expected - got) <= tolerance(subject, 2e-5) * scale + 1e-7,
                  "%s: gradient of %s %d [%lld] is %.9g, by differences %.9g, of at most %g",
                  subject->layer.name, what, index, (long long)i, got, expected, scale);
    }
}

static void check_forward(const struct subject *subject, const struct reference *reference,
                          double *output)
{
    const double loss = reference_forward(reference, output);
    if (is_loss(&subject->layer)) {
        cr_assert(fabs(subject->loss - loss) <= tolerance(subject, 1e-6) * loss,
                  "loss is %.12g, by reference %.12g", subject->loss, loss);
        return;
    }
    const double scale = magnitude(output, subject->n_outputs);
    for (int64_t i = 0; i < subject->n_outputs; i++) {
        const double got = subject_value(subject->call.batch.compute, subject->call.output, i);
        cr_assert(fabs(output[i] - got) <= tolerance(subject, 3e-6) * scale,
                  "%s: output [%lld] is %.9g, by reference %.9g", subject->layer.name, (long long)i,
                  got, output[i]);
    }
}

void subject_check(struct weft_nn *nn, struct subject *subject, int64_t probes)
{
    const struct weft_nn_call *call = &subject->call;
    const bool embedding = subject->layer.kind == &weft_kind_embedding;
    struct reference reference = {.layer = &subject->layer,
                                  .samples = call->batch.samples,
                                  .seq_len = call->batch.seq_len,
                                  .tokens = embedding ? call->input : call->tokens,
                                  .targets = call->targets,
                                  .hides = call->batch.hides,
                                  .padding = call->batch.padding};
    double *input = widened(call->batch.compute, embedding ? NULL : call->input, subject->n_inputs);
    double *output = widened(call->batch.compute, NULL, subject->n_outputs);
    double *tensors[WEFT_LAYER_TENSORS];
    reference.input = input;
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        tensors[i] = widened(call->batch.compute, call->tensors[i], subject->elements[i]);
        reference.tensors[i] = tensors[i];
    }
    subject_forward(nn, subject);
    check_forward(subject, &reference, output);
    subject_backward(nn, subject);
    check_gradient(subject, &reference, input, subject->n_inputs, call->batch.compute,
                   call->input_gradient, probes, output, "input", 0);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        check_gradient(subject, &reference, tensors[i], subject->elements[i], call->gradient_dtype,
                       call->gradients[i], probes, output, "tensor", i);
    }
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        free(tensors[i]);
    }
    free(input);
    free(output);
}

static bool same(enum weft_dtype dtype, const void *a, const void *b, int64_t n)
{
    return n == 0 || a == b || memcmp(a, b, (size_t)(n * weft_dtype_bytes(dtype))) == 0;
}

bool subject_same_bits(const struct subject *a, const struct subject *b)
{
    const enum weft_dtype flow = a->call.batch.compute, gradient = a->call.gradient_dtype;
    bool equal = memcmp(&a->loss, &b->loss, sizeof(a->loss)) == 0;
    if (a->call.output) equal &= same(flow, a->call.output, b->call.output, a->n_outputs);
    equal &= same(flow, a->call.input_gradient, b->call.input_gradient, a->n_inputs);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        equal &= same(gradient, a->call.gradients[i], b->call.gradients[i], a->elements[i]);
    }
    return equal;
}

void subject_check_switches(struct weft_nn *nn, const struct subject *plain)
{
    struct subject other;
    const enum weft_dtype flow = plain->call.batch.compute, dtype = plain->call.gradient_dtype;
    subject_init_as(&other, plain->layer, plain->call.batch.samples, plain->call.batch.seq_len, 0,
                    flow, dtype);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        if (i % 2) other.call.gradients[i] = NULL;
        other.call.accumulate[i] = i % 2 == 0;
        for (int64_t j = 0; i % 2 == 0 && j < other.elements[i]; j++) {
            set_value(dtype, other.call.gradients[i], j, 3);
        }
    }
    subject_forward(nn, &other);
    subject_backward(nn, &other);
    cr_assert(same(flow, plain->call.input_gradient, other.call.input_gradient, plain->n_inputs));
    for (int i = 0; i < WEFT_LAYER_TENSORS; i += 2) {
        for (int64_t j = 0; j < plain->elements[i]; j++) {
            const double alone = subject_value(dtype, plain->call.gradients[i], j);
            const double got = subject_value(dtype, other.call.gradients[i], j);
            /* Tokens repeat, and so does the rounding of an embedding's sums. */
            const double most = fmax(4e-6, 8 * rounding(dtype)) * (3 + fabs(3 + alone));
            cr_assert(fabs(got - (3 + alone)) <= most, "tensor %d [%lld]: %g is not 3 + %g", i,
                      (long long)j, got, alone);
        }
    }
    other.call.input_gradient = NULL;
    memset(other.call.gradients, 0, sizeof(other.call.gradients));
    subject_backward(nn, &other);
    subject_finish(&other);
}

static void check_bits(struct weft_nn *nn, const struct subject *plain)
{
    static const size_t offsets[] = {64, 192, 4096 + 64, 16};
    struct weft_nn_cpu *cpu = (struct weft_nn_cpu *)(void *)nn;
    const struct weft_kernels *level;
    for (int32_t i = 0; (level = weft_kernels_level(i)) != NULL; i++) {
        /* Whole heads are products, with bits of their own: every level gets the best one's. */
        struct weft_kernels mixed = *level;
        mixed.attend = weft_kernels_best()->attend;
        mixed.attend_backward = weft_kernels_best()->attend_backward;
        mixed.attend_saves = weft_kernels_best()->attend_saves;
        cpu->kernels = &mixed;
        cpu->threads = 1 + i % 2; /* of heads alone; the products were opened for one */
        struct subject moved;
        subject_init_as(&moved, plain->layer, plain->call.batch.samples, plain->call.batch.seq_len,
                        offsets[i % 4], plain->call.batch.compute, plain->call.gradient_dtype);
        subject_forward(nn, &moved);
        subject_backward(nn, &moved);
        cr_assert(subject_same_bits(plain, &moved), "%s: %s kernels at offset %zu differ",
                  plain->layer.name, level->level, offsets[i % 4]);
        subject_finish(&moved);
    }
    cpu->kernels = weft_kernels_best();
    cpu->threads = 1;
}

void subject_check_levels(struct weft_layer layer, int64_t samples, int64_t seq_len)
{
    static const char *const libraries[] = {"plain", "onednn", "amx", "amx-bf16x3", "avx512"};
    for (int i = 0; i < 5 * WEFT_DTYPE_COUNT; i++) {
        const enum weft_dtype dtype = (enum weft_dtype)(i / 5);
        const struct weft_nn_options options = {
            .threads = 1, .compute = dtype, .gemm = libraries[i % 5]};
        if (!test_draws((uint64_t)(i + seq_len), 2, 4)) continue;
        struct weft_nn *nn = NULL;
        struct weft_error err = {0};
        if (weft_nn_open("cpu", &options, &nn, &err) != WEFT_OK) continue;
        struct subject plain;
        subject_init_as(&plain, layer, samples, seq_len, 0, dtype, WEFT_F32);
        subject_forward(nn, &plain);
        subject_backward(nn, &plain);
        for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
            struct subject_level it;
            if (!subject_has_level(&plain, level)) continue;
            subject_level_init(&it, &plain, (enum weft_recompute)level);
            subject_level_run(nn, &it);
            cr_assert(subject_same_bits(&plain, &it.subject), "%s, %s, level %d", libraries[i % 5],
                      weft_dtype_name(dtype), level);
            subject_level_finish(&it);
        }
        subject_finish(&plain);
        weft_nn_close(nn);
    }
}

static const struct {
    enum weft_dtype compute, gradient;
} dtypes[] = {{WEFT_F32, WEFT_F32},
              {WEFT_BF16, WEFT_F32},
              {WEFT_BF16, WEFT_BF16},
              {WEFT_F16, WEFT_F32},
              {WEFT_F16, WEFT_F16}};
enum { N_DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static void check_layer(struct weft_layer layer, int64_t samples, int64_t seq_len, int64_t probes,
                        int n_dtypes)
{
    static const char *const libraries[] = {"onednn", "amx", "amx-bf16x3", "avx512"};
    enum { N_LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };
    int opened = 0;
    for (int i = 0; i < N_LIBRARIES * n_dtypes; i++) {
        const enum weft_dtype compute = dtypes[i / N_LIBRARIES].compute;
        const struct weft_nn_options options = {
            .threads = 1, .compute = compute, .gemm = libraries[i % N_LIBRARIES]};
        struct weft_nn *nn = NULL;
        struct weft_error err = {0};
        if (weft_nn_open("cpu", &options, &nn, &err) != WEFT_OK) continue;
        /* Layers draw differently. */
        if (!test_draws((uint64_t)(opened++ + seq_len), 2, 3)) {
            weft_nn_close(nn);
            continue;
        }
        struct subject subject;
        subject_init_as(&subject, layer, samples, seq_len, 0, compute,
                        dtypes[i / N_LIBRARIES].gradient);
        subject_check(nn, &subject, compute == WEFT_F32 ? probes : probes / 4 + 1);
        subject_check_switches(nn, &subject);
        check_bits(nn, &subject);
        subject_finish(&subject);
        weft_nn_close(nn);
    }
    cr_assert_gt(opened, 0);
}

void subject_check_layer(struct weft_layer layer, int64_t samples, int64_t seq_len, int64_t probes)
{
    check_layer(layer, samples, seq_len, probes, N_DTYPES);
}

void subject_check_layer_in_f32(struct weft_layer layer, int64_t samples, int64_t seq_len,
                                int64_t probes)
{
    check_layer(layer, samples, seq_len, probes, 1);
}

bool subject_has_level(const struct subject *plain, int level)
{
    return level == WEFT_RECOMPUTE_NONE || plain->work.splits[level].possible;
}

void subject_level_init(struct subject_level *it, const struct subject *plain,
                        enum weft_recompute level)
{
    const struct weft_layer_work work = weft_layer_work_at(&plain->work, level);
    struct subject *subject = &it->subject;
    subject_init_for(subject, plain->layer, &plain->call.batch, 0, plain->call.gradient_dtype);
    subject->call.recompute = level;
    subject->call.saved = work.saved_bytes > 0 ? malloc((size_t)work.saved_bytes) : NULL;
    it->forward_temporary = malloc((size_t)work.forward_temporary_bytes);
    it->backward_temporary = malloc((size_t)work.backward_temporary_bytes);
    memset(it->backward_temporary, 0xff, (size_t)work.backward_temporary_bytes);
}

void subject_level_run(struct weft_nn *nn, struct subject_level *it)
{
    it->subject.call.temporary = it->forward_temporary;
    subject_forward(nn, &it->subject);
    it->subject.call.temporary = it->backward_temporary;
    subject_backward(nn, &it->subject);
}

void subject_level_finish(struct subject_level *it)
{
    free(it->subject.call.saved);
    free(it->forward_temporary);
    free(it->backward_temporary);
    subject_finish(&it->subject);
}
