/* SPDX-License-Identifier: Apache-2.0 */
#include "library/check_layers.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/rng.h"
#include "base/text.h"
#include "layers/supplied.h"
#include "spec/layer.h"

enum {
    GUARD_BYTES = 64,    /* before and after memory that may be written */
    GUARD = 0xA5,        /* content of the guards */
    UNWRITTEN = 0xFF,    /* initial content of outputs: NaN */
    MOST_ELEMENTS = 256, /* checked elements of a tensor */
    SEED = 20,
    INPUT = -1,             /* "tensor" of the input gradient */
    STREAM_OF_CHOICE = 1000 /* lower streams of random numbers are the tensors' */
};

/* Steps of the differences. At the second one a smooth function's error is a quarter. */
static const double STEP = 0x1p-7;
/* Share of the larger of gradient and difference. f32 does not show a smaller error. */
static const double TOLERANCE = 0.01;

struct buffer {
    unsigned char *block; /* with guards; NULL: no bytes needed */
    unsigned char *bytes; /* given to the functions */
    int64_t n_bytes;
};

struct check {
    const struct weft_layer *layer;
    const struct weft_tensor *tensors; /* of the model */
    struct weft_layer_work work;
    struct weft_layer_call call;
    int64_t inputs, outputs; /* numbers of elements */
    struct buffer input, output, first_output, low_output, saved, temporary;
    struct buffer output_gradient, input_gradient;
    struct buffer parameters[WEFT_LAYER_TENSORS], gradients[WEFT_LAYER_TENSORS];
    struct buffer first_gradients[WEFT_LAYER_TENSORS];
};

static float *floats_of(const struct buffer *buffer)
{
    return (float *)(void *)buffer->bytes;
}

static enum weft_status make_buffer(struct buffer *buffer, int64_t n_bytes, struct weft_error *err)
{
    int64_t whole = (n_bytes + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES + 2 * GUARD_BYTES;
    buffer->n_bytes = n_bytes;
    if (n_bytes == 0) return WEFT_OK;
    buffer->block = aligned_alloc(GUARD_BYTES, (size_t)whole);
    if (buffer->block == NULL) return weft_fail_memory(err, "the check of a layer");
    buffer->bytes = buffer->block + GUARD_BYTES;
    memset(buffer->block, GUARD, (size_t)whole);
    memset(buffer->bytes, UNWRITTEN, (size_t)n_bytes);
    return WEFT_OK;
}

static bool is_guarded(const struct buffer *buffer)
{
    for (int64_t i = 0; buffer->block != NULL && i < GUARD_BYTES; i++) {
        if (buffer->block[i] != GUARD || buffer->bytes[buffer->n_bytes + i] != GUARD) return false;
    }
    return true;
}

static void fill_normal(const struct buffer *buffer, uint64_t stream, double std)
{
    for (int64_t i = 0; i < buffer->n_bytes / (int64_t)sizeof(float); i++)
        floats_of(buffer)[i] = (float)(std * weft_rng_normal(SEED, stream, (uint64_t)i));
}

/* Fills with numbers around the initial values. Those may be 0, which would hide their factors. */
static void fill_parameter(const struct buffer *buffer, const struct weft_tensor *tensor,
                           uint64_t stream)
{
    fill_normal(buffer, stream, tensor->init == WEFT_INIT_NORMAL ? tensor->init_std : 0.25);
    for (int64_t i = 0; tensor->init == WEFT_INIT_ONE && i < tensor->elements; i++)
        floats_of(buffer)[i] += 1;
}

static const struct weft_tensor *tensor_of(const struct check *check, int32_t t)
{
    return &check->tensors[check->layer->tensors[t]];
}

static enum weft_status make_buffers(struct check *check, struct weft_error *err)
{
    const struct weft_layer_work *work = &check->work;
    const int64_t size = sizeof(float);
    int64_t temporary = work->forward_temporary_bytes > work->backward_temporary_bytes
                            ? work->forward_temporary_bytes
                            : work->backward_temporary_bytes;
    WEFT_TRY(make_buffer(&check->input, check->inputs * size, err));
    WEFT_TRY(make_buffer(&check->output, check->outputs * size, err));
    WEFT_TRY(make_buffer(&check->first_output, check->outputs * size, err));
    WEFT_TRY(make_buffer(&check->low_output, check->outputs * size, err));
    WEFT_TRY(make_buffer(&check->output_gradient, check->outputs * size, err));
    WEFT_TRY(make_buffer(&check->input_gradient, check->inputs * size, err));
    WEFT_TRY(make_buffer(&check->saved, work->saved_bytes, err));
    WEFT_TRY(make_buffer(&check->temporary, temporary, err));
    for (int32_t t = 0; t < check->layer->n_tensors; t++) {
        const struct weft_tensor *tensor = tensor_of(check, t);
        WEFT_TRY(make_buffer(&check->parameters[t], tensor->elements * size, err));
        WEFT_TRY(make_buffer(&check->gradients[t], tensor->elements * size, err));
        WEFT_TRY(make_buffer(&check->first_gradients[t], tensor->elements * size, err));
        fill_parameter(&check->parameters[t], tensor, (uint64_t)t + 2);
    }
    fill_normal(&check->input, 0, 1);
    fill_normal(&check->output_gradient, 1, 1);
    return WEFT_OK;
}

static void drop_buffer(struct buffer *buffer)
{
    free(buffer->block);
}

static void close_check(struct check *check)
{
    drop_buffer(&check->input);
    drop_buffer(&check->output);
    drop_buffer(&check->first_output);
    drop_buffer(&check->low_output);
    drop_buffer(&check->output_gradient);
    drop_buffer(&check->input_gradient);
    drop_buffer(&check->saved);
    drop_buffer(&check->temporary);
    for (int t = 0; t < WEFT_LAYER_TENSORS; t++) {
        drop_buffer(&check->parameters[t]);
        drop_buffer(&check->gradients[t]);
        drop_buffer(&check->first_gradients[t]);
    }
}

static enum weft_status check_guards(const struct check *check, const char *function,
                                     struct weft_error *err)
{
    struct {
        const char *name;
        const struct buffer *buffer;
    } const buffers[] = {
        {"its input", &check->input},
        {"its output", &check->output},
        {"the output's gradient", &check->output_gradient},
        {"the input's gradient", &check->input_gradient},
        {"saved", &check->saved},
        {"temporary", &check->temporary},
    };
    struct weft_text text;
    weft_text_init(&text);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        if (!is_guarded(buffers[i].buffer)) weft_text_addf(&text, "%s", buffers[i].name);
    }
    for (int32_t t = 0; t < check->layer->n_tensors; t++) {
        if (!is_guarded(&check->parameters[t]) || !is_guarded(&check->gradients[t]))
            weft_text_addf(&text, "tensor %s", tensor_of(check, t)->name);
    }
    enum weft_status status = WEFT_OK;
    if (text.length > 0)
        status =
            weft_fail(err, WEFT_E_NUMERIC,
                      "layer \"%s\" (%s): its %s function writes outside of %s", check->layer->name,
                      check->layer->kind->supplied->type, function, weft_text_chars(&text));
    weft_text_finish(&text);
    return status;
}

static enum weft_status run_forward(struct check *check, struct weft_error *err)
{
    const struct weft_layer_kind *kind = check->layer->kind->supplied;
    struct weft_layer_call call = check->call;
    struct weft_error said = {0};
    call.output = check->output.bytes;
    call.temporary = check->work.forward_temporary_bytes > 0 ? check->temporary.bytes : NULL;
    memset(check->output.bytes, UNWRITTEN, (size_t)check->output.n_bytes);
    enum weft_status status = kind->forward(kind->context, &call, &said);
    return weft_supplied_verdict(check->layer, "its forward function failed", status, &said, err);
}

static enum weft_status run_backward(struct check *check, bool accumulate, struct weft_error *err)
{
    const struct weft_layer_kind *kind = check->layer->kind->supplied;
    struct weft_layer_call call = check->call;
    struct weft_error said = {0};
    call.input = check->work.backward_reads_input ? check->input.bytes : NULL;
    call.output = check->work.backward_reads_output ? check->output.bytes : NULL;
    call.temporary = check->work.backward_temporary_bytes > 0 ? check->temporary.bytes : NULL;
    call.output_gradient = check->output_gradient.bytes;
    call.input_gradient = check->input_gradient.bytes;
    for (int32_t t = 0; t < check->layer->n_tensors; t++) {
        call.gradients[t] = check->gradients[t].bytes;
        call.accumulate[t] = accumulate;
    }
    memset(check->input_gradient.bytes, UNWRITTEN, (size_t)check->input_gradient.n_bytes);
    enum weft_status status = kind->backward(kind->context, &call, &said);
    return weft_supplied_verdict(check->layer, "its backward function failed", status, &said, err);
}

static const struct buffer *gradient_of(const struct check *check, int32_t t)
{
    return t == INPUT ? &check->input_gradient : &check->gradients[t];
}

static const char *name_of(const struct check *check, int32_t t)
{
    return t == INPUT ? "the input" : tensor_of(check, t)->name;
}

/* The difference of the sum of outputs times their gradients. Its derivative is the result of
 * backward. */
struct difference {
    double slope;
    double bend;  /* distance of the slopes on both sides: a kink, as of relu */
    double noise; /* possible effect of rounded outputs on the slope */
};

/* low_output has the outputs at x - step, output those at x + step. */
static struct difference compare_outputs(const struct check *check, double step)
{
    const float *low = floats_of(&check->low_output), *high = floats_of(&check->output);
    const float *middle = floats_of(&check->first_output),
                *weight = floats_of(&check->output_gradient);
    double left = 0, right = 0, square = 0;
    for (int64_t i = 0; i < check->outputs; i++) {
        double of = (double)weight[i], y = (double)middle[i], rounding = of * y * FLT_EPSILON;
        left += of * (y - (double)low[i]);
        right += of * ((double)high[i] - y);
        if (low[i] != high[i]) square += rounding * rounding;
    }
    return (struct difference){.slope = (left + right) / (2 * step),
                               .bend = fabs(right - left) / step,
                               .noise = 4 * sqrt(square) / step};
}

static enum weft_status differentiate_output(struct check *check, float *at, double step,
                                             struct difference *out, struct weft_error *err)
{
    const float x = *at;
    *at = (float)((double)x - step);
    enum weft_status status = run_forward(check, err);
    memcpy(check->low_output.bytes, check->output.bytes, (size_t)check->output.n_bytes);
    *at = (float)((double)x + step);
    if (status == WEFT_OK) status = run_forward(check, err);
    *at = x;
    *out = compare_outputs(check, step);
    return status;
}

/* The element with the largest error relative to the allowed one. */
struct worst {
    int64_t element;
    double gradient, difference, excess; /* excess: error over allowed error */
};

/* At a kink any slope between those of both sides is accepted. */
static enum weft_status check_element(struct check *check, const struct buffer *values, int32_t t,
                                      int64_t element, double scale, struct worst *worst,
                                      struct weft_error *err)
{
    float *at = floats_of(values) + element;
    double gradient = (double)floats_of(gradient_of(check, t))[element];
    /* A power of two makes x + step exact in f32 except for its last bits. */
    double step = STEP * exp2(ceil(log2(fmax(1, fabs((double)*at)))));
    struct difference far, near;
    WEFT_TRY(differentiate_output(check, at, step, &far, err));
    WEFT_TRY(differentiate_output(check, at, step / 2, &near, err));
    double best = (4 * near.slope - far.slope) / 3;
    double allowed = TOLERANCE * fmax(fabs(gradient), fabs(best)) + TOLERANCE * 0.1 * scale +
                     2 * fabs(near.slope - far.slope) + near.bend + near.noise + far.noise;
    double excess = fabs(gradient - best) / allowed;
    if (!(excess <= worst->excess)) *worst = (struct worst){element, gradient, best, excess};
    return WEFT_OK;
}

static double root_mean_square(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return n > 0 ? sqrt(sum / (double)n) : 0;
}

static enum weft_status check_tensor(struct check *check, int32_t t, struct weft_error *err)
{
    const struct buffer *values = t == INPUT ? &check->input : &check->parameters[t];
    int64_t elements = values->n_bytes / (int64_t)sizeof(float);
    int64_t n = elements < MOST_ELEMENTS ? elements : MOST_ELEMENTS;
    double scale = root_mean_square(floats_of(gradient_of(check, t)), elements);
    struct worst worst = {.excess = 0};
    for (int64_t i = 0; i < n; i++) {
        uint64_t stream = (uint64_t)(STREAM_OF_CHOICE + t);
        int64_t element =
            n == elements ? i
                          : (int64_t)weft_rng_below(SEED, stream, (uint64_t)i, (uint64_t)elements);
        WEFT_TRY(check_element(check, values, t, element, scale, &worst, err));
    }
    if (worst.excess <= 1) return WEFT_OK;
    return weft_fail(err, WEFT_E_NUMERIC,
                     "layer \"%s\" (%s): its backward function is not the derivative of its "
                     "forward: for %s, of %lld elements that were tried worst at element %lld, it "
                     "gives %g where differences of forward give %g",
                     check->layer->name, check->layer->kind->supplied->type, name_of(check, t),
                     (long long)n, (long long)worst.element, worst.gradient, worst.difference);
}

static enum weft_status check_written(const struct check *check, const struct buffer *buffer,
                                      const char *what, const char *of, struct weft_error *err)
{
    const float *x = floats_of(buffer);
    for (int64_t i = 0; i < buffer->n_bytes / (int64_t)sizeof(float); i++) {
        if (isfinite(x[i])) continue;
        return weft_fail(err, WEFT_E_NUMERIC, "layer \"%s\" (%s): %s%s: element %lld is %s",
                         check->layer->name, check->layer->kind->supplied->type, what, of,
                         (long long)i, isnan(x[i]) ? "not written, or not a number" : "infinite");
    }
    return WEFT_OK;
}

/* A second backward that accumulates must double the gradients. */
static enum weft_status check_accumulation(struct check *check, struct weft_error *err)
{
    for (int32_t t = 0; t < check->layer->n_tensors; t++)
        memcpy(check->first_gradients[t].bytes, check->gradients[t].bytes,
               (size_t)check->gradients[t].n_bytes);
    WEFT_TRY(run_backward(check, true, err));
    for (int32_t t = 0; t < check->layer->n_tensors; t++) {
        const float *once = floats_of(&check->first_gradients[t]),
                    *twice = floats_of(&check->gradients[t]);
        int64_t elements = tensor_of(check, t)->elements;
        double scale = root_mean_square(once, elements);
        for (int64_t i = 0; i < elements; i++) {
            double allowed = 1e-3 * (fabs((double)once[i]) + scale);
            if (fabs((double)twice[i] - 2 * (double)once[i]) <= allowed) continue;
            return weft_fail(
                err, WEFT_E_NUMERIC,
                "layer \"%s\" (%s): its backward function does not add to the gradient "
                "of %s where `accumulate` asks for it: element %lld is %g after one "
                "micro-step and %g after the same one again",
                check->layer->name, check->layer->kind->supplied->type, name_of(check, t),
                (long long)i, (double)once[i], (double)twice[i]);
        }
        memcpy(check->gradients[t].bytes, once, (size_t)check->gradients[t].n_bytes);
    }
    return WEFT_OK;
}

static enum weft_status check_functions(struct check *check, struct weft_error *err)
{
    WEFT_TRY(run_forward(check, err));
    WEFT_TRY(check_guards(check, "forward", err));
    WEFT_TRY(check_written(check, &check->output, "output of its forward function", "", err));
    memcpy(check->first_output.bytes, check->output.bytes, (size_t)check->output.n_bytes);
    WEFT_TRY(run_backward(check, false, err));
    WEFT_TRY(check_guards(check, "backward", err));
    for (int32_t t = INPUT; t < check->layer->n_tensors; t++)
        WEFT_TRY(check_written(check, gradient_of(check, t), "its backward function: gradient of ",
                               name_of(check, t), err));
    WEFT_TRY(check_accumulation(check, err));
    for (int32_t t = INPUT; t < check->layer->n_tensors; t++)
        WEFT_TRY(check_tensor(check, t, err));
    return WEFT_OK;
}

static enum weft_status check_layer(const struct weft_config *config,
                                    const struct weft_layer *layer, struct weft_error *err)
{
    struct weft_batch batch = weft_config_batch(config);
    batch.compute = WEFT_F32;
    int64_t rows = batch.samples * batch.seq_len;
    struct check check = {.layer = layer,
                          .tensors = config->model->tensors,
                          .inputs = rows * layer->hidden,
                          .outputs = rows * layer->outputs};
    if ((layer->kind->supplied->dtypes >> WEFT_F32 & 1u) == 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "layer \"%s\" (%s): differences tell nothing in 16 bits, and it does not "
                         "compute in f32: let it, if only for this check",
                         layer->name, layer->kind->supplied->type);
    WEFT_TRY(weft_layer_work(layer, &batch, &check.work, err));
    enum weft_status status = make_buffers(&check, err);
    check.call = (struct weft_layer_call){
        .facts = weft_supplied_facts(layer, &batch),
        .rows = rows,
        .outputs = layer->outputs,
        .input = check.input.bytes,
        .saved = check.saved.bytes,
        .gradient_dtype = WEFT_F32,
    };
    check.call.facts.frozen = false;
    for (int32_t t = 0; t < layer->n_tensors; t++)
        check.call.tensors[t] = check.parameters[t].bytes;
    if (status == WEFT_OK) status = check_functions(&check, err);
    close_check(&check);
    return status;
}

/* Whether an earlier layer of the model is equal to this one. */
static bool is_known(const struct weft_config *config, int32_t l, struct weft_pool *pool)
{
    struct weft_batch batch = weft_config_batch(config);
    const struct weft_layer *layers = config->model->layers;
    const char *key = weft_layer_key(pool, &layers[l], &batch);
    for (int32_t i = 0; i < l && key != NULL; i++) {
        if (layers[i].kind != layers[l].kind) continue;
        const char *other = weft_layer_key(pool, &layers[i], &batch);
        if (other != NULL && strcmp(other, key) == 0) return true;
    }
    return false;
}

enum weft_status weft_config_check_layers(const struct weft_config *config, struct weft_error *err)
{
    struct weft_pool pool = {0};
    enum weft_status status = WEFT_OK;
    for (int32_t l = 0; l < config->model->n_layers && status == WEFT_OK; l++) {
        const struct weft_layer *layer = &config->model->layers[l];
        if (layer->kind->supplied != NULL && !is_known(config, l, &pool))
            status = check_layer(config, layer, err);
    }
    weft_pool_finish(&pool);
    return status;
}
