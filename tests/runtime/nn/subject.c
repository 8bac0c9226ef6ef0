#include "subject.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "reference.h"

struct weft_layer subject_embedding(int64_t vocab, int64_t positions, int64_t hidden)
{
    return (struct weft_layer){.name = "wte",
                               .type = WEFT_LAYER_EMBEDDING,
                               .tie = -1,
                               .vocab = vocab,
                               .positions = positions,
                               .hidden = hidden,
                               .outputs = hidden,
                               .n_tensors = positions > 0 ? 2 : 1};
}

struct weft_layer subject_block(int64_t hidden, int64_t heads, int64_t ffn)
{
    return (struct weft_layer){.name = "h.0",
                               .type = WEFT_LAYER_TRANSFORMER_BLOCK,
                               .tie = -1,
                               .hidden = hidden,
                               .outputs = hidden,
                               .heads = heads,
                               .kv_heads = heads,
                               .ffn = ffn,
                               .n_tensors = 12};
}

struct weft_layer subject_same(enum weft_layer_type type, int64_t hidden)
{
    return (struct weft_layer){.name = "same",
                               .type = type,
                               .tie = -1,
                               .hidden = hidden,
                               .outputs = hidden,
                               .n_tensors = type == WEFT_LAYER_LAYER_NORM ? 2 : 0};
}

struct weft_layer subject_linear(int64_t inputs, int64_t outputs, bool bias)
{
    return (struct weft_layer){.name = "fc",
                               .type = WEFT_LAYER_LINEAR,
                               .tie = -1,
                               .bias = bias,
                               .hidden = inputs,
                               .outputs = outputs,
                               .n_tensors = bias ? 2 : 1};
}

struct weft_layer subject_head(enum weft_layer_type type, int64_t hidden, int64_t classes,
                               bool bias)
{
    return (struct weft_layer){.name = "head",
                               .type = type,
                               .tie = -1,
                               .bias = bias,
                               .vocab = type == WEFT_LAYER_LM_HEAD ? classes : 0,
                               .hidden = hidden,
                               .outputs = classes,
                               .n_tensors = bias ? 2 : 1};
}

static void count_elements(const struct weft_layer *layer, int64_t n[WEFT_LAYER_TENSORS])
{
    const int64_t h = layer->hidden, f = layer->ffn;
    const int64_t of_block[] = {h, h, 3 * h * h, 3 * h, h * h, h, h, h, f * h, f, h * f, h};
    memset(n, 0, WEFT_LAYER_TENSORS * sizeof(*n));
    if (layer->type == WEFT_LAYER_TRANSFORMER_BLOCK) {
        memcpy(n, of_block, sizeof(of_block));
    } else if (layer->type == WEFT_LAYER_LAYER_NORM) {
        n[0] = n[1] = h;
    } else if (layer->type == WEFT_LAYER_EMBEDDING) {
        n[0] = layer->vocab * h;
        n[1] = layer->positions * h;
    } else if (layer->n_tensors > 0) {
        n[0] = layer->outputs * h;
        n[1] = layer->bias ? layer->outputs : 0;
    }
}

static bool is_loss(const struct weft_layer *layer)
{
    return layer->type == WEFT_LAYER_LM_HEAD || layer->type == WEFT_LAYER_CLASSIFIER;
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

static float *take_random(struct subject *subject, int64_t n, double mean, double deviation)
{
    float *x = take(subject, n * (int64_t)sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(mean +
                       deviation * weft_rng_normal(7, (uint64_t)subject->n_buffers, (uint64_t)i));
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
    const struct weft_layer *layer = &subject->layer;
    const bool norms =
        layer->type == WEFT_LAYER_TRANSFORMER_BLOCK || layer->type == WEFT_LAYER_LAYER_NORM;
    count_elements(layer, subject->elements);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        if (subject->elements[i] == 0) continue;
        const bool is_norm = norms && (i == 0 || i == 6);
        subject->call.tensors[i] =
            take_random(subject, subject->elements[i], is_norm ? 1 : 0, is_norm ? 0.2 : 0.35);
        subject->call.gradients[i] = take(subject, subject->elements[i] * (int64_t)sizeof(float));
    }
}

void subject_init(struct subject *subject, struct weft_layer layer, int64_t samples,
                  int64_t seq_len, size_t offset_bytes)
{
    *subject = (struct subject){.layer = layer, .offset_bytes = offset_bytes};
    struct weft_nn_call *call = &subject->call;
    const struct weft_batch batch = {samples, seq_len, WEFT_F32};
    const int64_t rows = samples * seq_len, f32 = (int64_t)sizeof(float);
    struct weft_error err = {0};
    call->layer = &subject->layer;
    call->batch = batch;
    cr_assert_eq(weft_layer_work(&subject->layer, &batch, &subject->work, &err), WEFT_OK, "%s",
                 err.text);
    take_tensors(subject);

    const bool loss = is_loss(&layer), embedding = layer.type == WEFT_LAYER_EMBEDDING;
    subject->n_inputs = embedding ? 0 : rows * layer.hidden;
    subject->n_outputs = (layer.type == WEFT_LAYER_CLASSIFIER ? samples : rows) * layer.outputs;
    call->input = embedding ? (const void *)take_indices(subject, rows, layer.vocab)
                            : (const void *)take_random(subject, subject->n_inputs, 0.1, 1);
    if (loss) {
        call->targets = take_indices(subject, layer.type == WEFT_LAYER_CLASSIFIER ? samples : rows,
                                     layer.outputs);
        call->loss = &subject->loss;
        call->loss_scale = 0.25;
    } else {
        call->output = take(subject, subject->work.output_bytes);
        call->output_gradient = take_random(subject, subject->n_outputs, 0, 1);
    }
    call->saved = take(subject, subject->work.saved_bytes);
    call->temporary = take(subject, subject->work.backward_temporary_bytes);
    call->input_gradient = take(subject, subject->n_inputs * f32);
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
    cr_assert_eq(nn->backend->forward(nn, &subject->call, &err), WEFT_OK, "%s", err.text);
}

void subject_backward(struct weft_nn *nn, struct subject *subject)
{
    struct weft_error err = {0};
    cr_assert_eq(nn->backend->backward(nn, &subject->call, &err), WEFT_OK, "%s", err.text);
}

static double *widened(const float *x, int64_t n)
{
    double *y = malloc((size_t)(n > 0 ? n : 1) * sizeof(*y));
    for (int64_t i = 0; x && i < n; i++) {
        y[i] = x[i];
    }
    return y;
}

static double magnitude(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

/* What the gradient is of: loss_scale times the loss, or the output against output_gradient. */
static double objective(const struct subject *subject, const struct reference *reference,
                        double *output)
{
    const double loss = reference_forward(reference, output);
    if (is_loss(&subject->layer)) return subject->call.loss_scale * loss;
    double sum = 0;
    for (int64_t i = 0; i < subject->n_outputs; i++) {
        sum += output[i] * subject->call.output_gradient[i];
    }
    return sum;
}

static void check_gradient(const struct subject *subject, const struct reference *reference,
                           double *x, int64_t n, const float *gradient, int64_t probes,
                           double *output, const char *what, int index)
{
    if (n == 0) return;
    const int64_t step = n > probes ? n / probes : 1;
    double scale = 0;
    for (int64_t i = 0; i < n; i++) {
        cr_assert(isfinite(gradient[i]), "%s %d [%lld] is not finite", what, index, (long long)i);
        scale = fmax(scale, fabs((double)gradient[i]));
    }
    for (int64_t i = 0; i < n; i += step) {
        const double was = x[i], by = 1e-5;
        x[i] = was + by;
        const double above = objective(subject, reference, output);
        x[i] = was - by;
        const double below = objective(subject, reference, output);
        x[i] = was;
        const double expected = (above - below) / (2 * by);
        cr_assert(fabs(expected - (double)gradient[i]) <= 2e-5 * scale + 1e-7,
                  "%s: gradient of %s %d [%lld] is %.9g, by differences %.9g, of at most %g",
                  subject->layer.name, what, index, (long long)i, (double)gradient[i], expected,
                  scale);
    }
}

static void check_forward(const struct subject *subject, const struct reference *reference,
                          double *output)
{
    const double loss = reference_forward(reference, output);
    if (is_loss(&subject->layer)) {
        cr_assert(fabs(subject->loss - loss) <= 1e-6 * loss, "loss is %.12g, by reference %.12g",
                  subject->loss, loss);
        return;
    }
    const double scale = magnitude(output, subject->n_outputs);
    for (int64_t i = 0; i < subject->n_outputs; i++) {
        cr_assert(fabs(output[i] - (double)subject->call.output[i]) <= 3e-6 * scale,
                  "%s: output [%lld] is %.9g, by reference %.9g", subject->layer.name, (long long)i,
                  (double)subject->call.output[i], output[i]);
    }
}

void subject_check(struct weft_nn *nn, struct subject *subject, int64_t probes)
{
    const struct weft_nn_call *call = &subject->call;
    const bool embedding = subject->layer.type == WEFT_LAYER_EMBEDDING;
    struct reference reference = {.layer = &subject->layer,
                                  .samples = call->batch.samples,
                                  .seq_len = call->batch.seq_len,
                                  .tokens = embedding ? call->input : NULL,
                                  .targets = call->targets};
    double *input = widened(embedding ? NULL : call->input, subject->n_inputs);
    double *output = widened(NULL, subject->n_outputs);
    double *tensors[WEFT_LAYER_TENSORS];
    reference.input = input;
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        tensors[i] = widened(call->tensors[i], subject->elements[i]);
        reference.tensors[i] = tensors[i];
    }
    subject_forward(nn, subject);
    check_forward(subject, &reference, output);
    subject_backward(nn, subject);
    check_gradient(subject, &reference, input, subject->n_inputs, call->input_gradient, probes,
                   output, "input", 0);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        check_gradient(subject, &reference, tensors[i], subject->elements[i], call->gradients[i],
                       probes, output, "tensor", i);
    }
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        free(tensors[i]);
    }
    free(input);
    free(output);
}

static bool same(const float *a, const float *b, int64_t n)
{
    return n == 0 || a == b || memcmp(a, b, (size_t)n * sizeof(float)) == 0;
}

bool subject_same_bits(const struct subject *a, const struct subject *b)
{
    bool equal = memcmp(&a->loss, &b->loss, sizeof(a->loss)) == 0;
    if (a->call.output) equal &= same(a->call.output, b->call.output, a->n_outputs);
    equal &= same(a->call.input_gradient, b->call.input_gradient, a->n_inputs);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        equal &= same(a->call.gradients[i], b->call.gradients[i], a->elements[i]);
    }
    return equal;
}

/* Accumulated gradients are the old ones plus the same sums; frozen tensors get none and leave the
 * rest as it was. */
static void check_switches(struct weft_nn *nn, const struct subject *plain)
{
    struct subject other;
    subject_init(&other, plain->layer, plain->call.batch.samples, plain->call.batch.seq_len, 0);
    for (int i = 0; i < WEFT_LAYER_TENSORS; i++) {
        if (i % 2) other.call.gradients[i] = NULL;
        other.call.accumulate[i] = i % 2 == 0;
        for (int64_t j = 0; i % 2 == 0 && j < other.elements[i]; j++) {
            other.call.gradients[i][j] = 3;
        }
    }
    subject_forward(nn, &other);
    subject_backward(nn, &other);
    cr_assert(same(plain->call.input_gradient, other.call.input_gradient, plain->n_inputs));
    for (int i = 0; i < WEFT_LAYER_TENSORS; i += 2) {
        for (int64_t j = 0; j < plain->elements[i]; j++) {
            const double expected = 3 + (double)plain->call.gradients[i][j];
            cr_assert(fabs((double)other.call.gradients[i][j] - expected) <=
                          4e-6 * (3 + fabs(expected)),
                      "tensor %d [%lld]: %g is not 3 + %g", i, (long long)j,
                      (double)other.call.gradients[i][j], (double)plain->call.gradients[i][j]);
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
        cpu->kernels = level;
        struct subject moved;
        subject_init(&moved, plain->layer, plain->call.batch.samples, plain->call.batch.seq_len,
                     offsets[i % 4]);
        subject_forward(nn, &moved);
        subject_backward(nn, &moved);
        cr_assert(subject_same_bits(plain, &moved), "%s: %s kernels at offset %zu differ",
                  plain->layer.name, level->level, offsets[i % 4]);
        subject_finish(&moved);
    }
    cpu->kernels = weft_kernels_best();
}

void subject_check_layer(struct weft_layer layer, int64_t samples, int64_t seq_len, int64_t probes)
{
    static const char *const libraries[] = {"onednn", "openblas"};
    int opened = 0;
    for (int i = 0; i < 2; i++) {
        const struct weft_nn_options options = {.threads = 1, .gemm = libraries[i]};
        struct weft_nn *nn = NULL;
        struct weft_error err = {0};
        if (weft_nn_open("cpu", &options, &nn, &err) != WEFT_OK) continue;
        opened++;
        struct subject subject;
        subject_init(&subject, layer, samples, seq_len, 0);
        subject_check(nn, &subject, probes);
        check_switches(nn, &subject);
        check_bits(nn, &subject);
        subject_finish(&subject);
        weft_nn_close(nn);
    }
    cr_assert_gt(opened, 0);
}
