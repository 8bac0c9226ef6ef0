#include "spec/layer.h"

#include "spec/layer_layout.h"
#include "spec/layer_work.h"
#include "spec/supplied.h"

static double bytes_of(const struct weft_subject *subject, double elements)
{
    return elements * (double)subject->element_bytes;
}

/* Each of the following fills in a type's part of the work, buffers but the output and flops, and
 * returns the elements of parameters that forward reads. */
static double embedding_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    double elements = subject->t * subject->h;
    work->backward_reads_input = !layer->frozen;
    work->forward_flops = layer->positions > 0 ? elements : 0;
    work->backward_flops = layer->frozen ? 0 : (layer->positions > 0 ? 2 : 1) * elements;
    return elements; /* only the rows of its tokens */
}

static double transformer_block_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_transformer_block_layout layout =
        weft_layout_transformer_block(subject->layer, subject->batch);
    double t = subject->t, s = subject->s, h = subject->h, f = subject->f;
    double weights = 4 * h * h + 2 * h * f;
    double attention = 2 * t * s * h; /* scores and values, each 2tsh, of which causal half */
    work->saved_bytes = layout.saved.bytes;
    work->backward_temporary_bytes = layout.backward.bytes;
    work->backward_reads_input = true; /* by the first layer norm */
    work->forward_flops = 2 * t * weights + attention;
    work->backward_flops = subject->backward_products * 2 * t * weights + 2 * attention;
    return weights;
}

static double layer_norm_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_layer_norm_layout layout = weft_layout_layer_norm(subject->layer, subject->batch);
    work->saved_bytes = layout.saved.bytes;
    work->backward_temporary_bytes = layout.backward.bytes;
    work->backward_reads_input = true;
    work->forward_flops = 8 * subject->t * subject->h;
    work->backward_flops = 2 * work->forward_flops;
    return 2 * subject->h;
}

static double rms_norm_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    work->saved_bytes = weft_times(&subject->sizes, subject->rows, 4); /* rstd in fp32 */
    work->backward_temporary_bytes = weft_times(&subject->sizes, subject->layer->hidden, 4);
    work->backward_reads_input = true;
    work->forward_flops = 4 * subject->t * subject->h;
    work->backward_flops = 2 * work->forward_flops;
    return subject->h;
}

static double linear_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_linear_layout layout = weft_layout_linear(subject->layer, subject->batch);
    double weights = subject->h * (double)subject->layer->outputs;
    work->backward_temporary_bytes = layout.backward.bytes;
    work->backward_reads_input = !subject->layer->frozen;
    work->forward_flops = 2 * subject->t * weights;
    work->backward_flops = subject->backward_products * work->forward_flops;
    return weights;
}

static double lm_head_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_lm_head_layout layout = weft_layout_lm_head(subject->layer, subject->batch);
    double weights = subject->h * (double)subject->layer->vocab;
    work->saved_bytes = layout.saved.bytes;
    work->backward_temporary_bytes = layout.backward.bytes;
    work->backward_reads_input = !subject->layer->frozen;
    work->forward_flops = 2 * subject->t * weights;
    work->backward_flops = subject->backward_products * work->forward_flops;
    return weights;
}

static double classifier_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    struct weft_classifier_layout layout = weft_layout_classifier(subject->layer, subject->batch);
    double weights = subject->h * (double)subject->layer->outputs;
    double products = 2 * (double)subject->batch->samples * weights;
    work->saved_bytes = layout.saved.bytes; /* with the pooled rows: backward needs no input */
    work->backward_temporary_bytes = layout.backward.bytes;
    work->forward_flops = products + subject->t * subject->h;
    work->backward_flops = subject->backward_products * products + subject->t * subject->h;
    return weights;
}

/* The derivative of relu is known from its output, which the next layer mostly keeps anyway; that
 * of gelu only from its input. */
static double activation_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    bool gelu = subject->layer->type == WEFT_LAYER_GELU;
    work->backward_reads_input = gelu;
    work->backward_reads_output = !gelu;
    work->forward_flops = (gelu ? 8 : 1) * subject->t * subject->h;
    work->backward_flops = 2 * work->forward_flops;
    return 0;
}

static double custom_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    int64_t samples = subject->batch->samples;
    work->output_bytes = weft_times(&subject->sizes, samples, layer->output_bytes);
    work->saved_bytes = weft_times(&subject->sizes, samples, layer->saved_bytes);
    work->forward_temporary_bytes = weft_times(&subject->sizes, samples, layer->temporary_bytes);
    work->backward_temporary_bytes = work->forward_temporary_bytes;
    work->backward_reads_input = true; /* not known, so the safe answer */
    work->forward_flops = (double)samples * layer->forward_flops;
    work->backward_flops = (double)samples * layer->backward_flops;
    return (double)layer->parameters;
}

static double supplied_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    const struct weft_layer_needs *needs = subject->needs;
    work->saved_bytes = needs->saved_bytes;
    work->forward_temporary_bytes = needs->forward_temporary_bytes;
    work->backward_temporary_bytes = needs->backward_temporary_bytes;
    work->backward_reads_input = needs->backward_reads_input;
    work->backward_reads_output = needs->backward_reads_output;
    work->forward_flops = needs->forward_flops;
    work->backward_flops = needs->backward_flops;
    return (double)subject->layer->parameters;
}

static double type_work(struct weft_subject *subject, struct weft_layer_work *work)
{
    switch (subject->layer->type) {
    case WEFT_LAYER_EMBEDDING:
        return embedding_work(subject, work);
    case WEFT_LAYER_TRANSFORMER_BLOCK:
        return transformer_block_work(subject, work);
    case WEFT_LAYER_LAYER_NORM:
        return layer_norm_work(subject, work);
    case WEFT_LAYER_LINEAR:
        return linear_work(subject, work);
    case WEFT_LAYER_RELU:
    case WEFT_LAYER_GELU:
        return activation_work(subject, work);
    case WEFT_LAYER_LM_HEAD:
        return lm_head_work(subject, work);
    case WEFT_LAYER_CLASSIFIER:
        return classifier_work(subject, work);
    case WEFT_LAYER_LLAMA_BLOCK:
        return weft_work_llama_block(subject, work);
    case WEFT_LAYER_ENCODER_BLOCK:
        return weft_work_encoder_block(subject, work);
    case WEFT_LAYER_MOE_BLOCK:
        return weft_work_moe_block(subject, work);
    case WEFT_LAYER_CONV2D:
        return weft_work_conv2d(subject, work);
    case WEFT_LAYER_BOTTLENECK:
        return weft_work_bottleneck(subject, work);
    case WEFT_LAYER_POOL2D:
        return weft_work_pool2d(subject, work);
    case WEFT_LAYER_RMS_NORM:
        return rms_norm_work(subject, work);
    case WEFT_LAYER_CUSTOM:
        return custom_work(subject, work);
    case WEFT_LAYER_SUPPLIED:
        return supplied_work(subject, work);
    case WEFT_LAYER_TYPE_COUNT:
        break;
    }
    return 0;
}

/* Least traffic: each of weights, input, output and what is saved goes over the bus once; backward
 * moves the gradients of what forward moved beside what it reads again. */
static void moved_work(const struct weft_subject *subject, double weights,
                       struct weft_layer_work *work)
{
    const struct weft_layer *layer = subject->layer;
    bool tokens = layer->type == WEFT_LAYER_EMBEDDING;
    double input = tokens ? 4 * subject->t : bytes_of(subject, subject->t * subject->h);
    double input_gradient = tokens ? 0 : input, output = (double)work->output_bytes;
    double saved = (double)work->saved_bytes, weight_bytes = bytes_of(subject, weights);
    /* A token table's gradient is dense: every row is written, read or not. */
    double gradient = tokens ? bytes_of(subject, subject->h * (double)layer->vocab) : weight_bytes;

    work->forward_moved_bytes = weight_bytes + input + output + saved;
    work->backward_moved_bytes = (tokens ? 0 : weight_bytes) + (layer->frozen ? 0 : gradient) +
                                 saved + output + input_gradient +
                                 (work->backward_reads_input ? input : 0) +
                                 (work->backward_reads_output ? output : 0);
}

static enum weft_status check_batch(const struct weft_layer *layer, const struct weft_batch *batch,
                                    struct weft_error *err)
{
    const char *type = weft_layer_type_of(layer);
    if (batch->samples < 1 || batch->seq_len < 1)
        return weft_fail(err, WEFT_E_DATA,
                         "layer \"%s\" (%s): a batch of %lld samples of %lld; train.micro_batch "
                         "and train.seq_len must be at least 1",
                         layer->name, type, (long long)batch->samples, (long long)batch->seq_len);
    if (layer->type == WEFT_LAYER_EMBEDDING && layer->positions > 0 &&
        batch->seq_len > layer->positions)
        return weft_fail(err, WEFT_E_DATA,
                         "layer \"%s\" (%s): train.seq_len %lld is beyond its %lld positions; "
                         "shorten seq_len or give it more positions",
                         layer->name, type, (long long)batch->seq_len, (long long)layer->positions);
    return WEFT_OK;
}

int64_t weft_layer_side(const struct weft_layer *layer)
{
    return layer->image / layer->stride + (layer->image % layer->stride != 0);
}

bool weft_layer_projects(const struct weft_layer *layer)
{
    return layer->type == WEFT_LAYER_BOTTLENECK &&
           (layer->stride != 1 || layer->channels != layer->filters);
}

static bool is_loss(const struct weft_layer *layer)
{
    return layer->type == WEFT_LAYER_LM_HEAD || layer->type == WEFT_LAYER_CLASSIFIER;
}

enum weft_status weft_layer_work(const struct weft_layer *layer, const struct weft_batch *batch,
                                 struct weft_layer_work *out, struct weft_error *err)
{
    WEFT_TRY(check_batch(layer, batch, err));
    struct weft_layer_needs needs = {0};
    if (layer->type == WEFT_LAYER_SUPPLIED)
        WEFT_TRY(weft_supplied_needs(layer, batch, &needs, err));
    struct weft_subject subject = {.layer = layer, .batch = batch, .needs = &needs};
    struct weft_sizes *sizes = &subject.sizes;
    subject.rows = weft_times(sizes, batch->samples, batch->seq_len);
    subject.element_bytes = weft_dtype_bytes(batch->compute);
    subject.t = (double)subject.rows;
    subject.s = (double)batch->seq_len;
    subject.h = (double)layer->hidden;
    subject.f = (double)layer->ffn;
    subject.backward_products = layer->frozen ? 1 : 2;

    /* The input too, so that weft_model_input_bytes cannot overflow for a layer that passed. */
    int64_t row_bytes = weft_times(sizes, layer->hidden, subject.element_bytes);
    weft_times(sizes, subject.rows, row_bytes > 4 ? row_bytes : 4);

    struct weft_layer_work work = {0};
    if (!is_loss(layer))
        work.output_bytes = weft_times(sizes, weft_times(sizes, subject.rows, layer->outputs),
                                       subject.element_bytes);
    double weights = type_work(&subject, &work);
    moved_work(&subject, weights, &work);
    if (sizes->overflowed || work.saved_bytes < 0 || work.backward_temporary_bytes < 0)
        return weft_fail(err, WEFT_E_DATA,
                         "layer \"%s\" (%s): its buffers for %lld samples of %lld do not fit in 63 "
                         "bits; make the layer, train.micro_batch or train.seq_len smaller",
                         layer->name, weft_layer_type_of(layer), (long long)batch->samples,
                         (long long)batch->seq_len);
    *out = work;
    return WEFT_OK;
}

static void add_image_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    weft_text_addf(out, " inputs=%lld outputs=%lld image=%lld channels=%lld",
                   (long long)layer->hidden, (long long)layer->outputs, (long long)layer->image,
                   (long long)layer->channels);
    if (layer->type != WEFT_LAYER_POOL2D)
        weft_text_addf(out, " filters=%lld", (long long)layer->filters);
    if (layer->type == WEFT_LAYER_BOTTLENECK)
        weft_text_addf(out, " width=%lld", (long long)layer->width);
    if (layer->type == WEFT_LAYER_CONV2D)
        weft_text_addf(out, " kernel=%lld%s", (long long)layer->kernel, layer->norm ? " norm" : "");
    weft_text_addf(out, " stride=%lld", (long long)layer->stride);
}

/* Adds what of the layer its time depends on. */
static void add_sizes(const struct weft_layer *layer, struct weft_text *out)
{
    long long hidden = layer->hidden, outputs = layer->outputs;
    switch (layer->type) {
    case WEFT_LAYER_EMBEDDING:
        weft_text_addf(out, " vocab=%lld positions=%lld hidden=%lld", (long long)layer->vocab,
                       (long long)layer->positions, hidden);
        break;
    case WEFT_LAYER_TRANSFORMER_BLOCK:
        weft_text_addf(out, " hidden=%lld heads=%lld ffn=%lld", hidden, (long long)layer->heads,
                       (long long)layer->ffn);
        break;
    case WEFT_LAYER_LLAMA_BLOCK:
        weft_text_addf(out, " hidden=%lld heads=%lld kv_heads=%lld ffn=%lld", hidden,
                       (long long)layer->heads, (long long)layer->kv_heads, (long long)layer->ffn);
        break;
    case WEFT_LAYER_ENCODER_BLOCK:
        weft_text_addf(out, " hidden=%lld heads=%lld ffn=%lld", hidden, (long long)layer->heads,
                       (long long)layer->ffn);
        break;
    case WEFT_LAYER_MOE_BLOCK:
        weft_text_addf(out, " hidden=%lld heads=%lld kv_heads=%lld ffn=%lld experts=%lld/%lld",
                       hidden, (long long)layer->heads, (long long)layer->kv_heads,
                       (long long)layer->ffn, (long long)layer->active_experts,
                       (long long)layer->experts);
        break;
    case WEFT_LAYER_CONV2D:
    case WEFT_LAYER_BOTTLENECK:
    case WEFT_LAYER_POOL2D:
        add_image_sizes(layer, out);
        break;
    case WEFT_LAYER_LINEAR:
        weft_text_addf(out, " inputs=%lld outputs=%lld", hidden, outputs);
        break;
    case WEFT_LAYER_LM_HEAD:
        weft_text_addf(out, " vocab=%lld hidden=%lld", outputs, hidden);
        break;
    case WEFT_LAYER_CLASSIFIER:
        weft_text_addf(out, " hidden=%lld classes=%lld", hidden, outputs);
        break;
    case WEFT_LAYER_LAYER_NORM:
    case WEFT_LAYER_RMS_NORM:
    case WEFT_LAYER_RELU:
    case WEFT_LAYER_GELU:
        weft_text_addf(out, " hidden=%lld", hidden);
        break;
    case WEFT_LAYER_CUSTOM:
        weft_text_addf(out, " flops=%.17g,%.17g hidden=%lld parameters=%lld output=%lld saved=%lld",
                       layer->forward_flops, layer->backward_flops, hidden,
                       (long long)layer->parameters, (long long)layer->output_bytes,
                       (long long)layer->saved_bytes);
        break;
    case WEFT_LAYER_SUPPLIED:
        weft_text_addf(out, " hidden=%lld outputs=%lld", hidden, outputs);
        for (int32_t k = 0; k < layer->supplied->n_keys; k++)
            weft_text_addf(out, " %s=%lld", layer->supplied->keys[k].name,
                           (long long)layer->keys[k]);
        break;
    case WEFT_LAYER_TYPE_COUNT:
        break;
    }
}

char *weft_layer_key(struct weft_pool *pool, const struct weft_layer *layer,
                     const struct weft_batch *batch)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_add(&text, weft_layer_type_of(layer));
    add_sizes(layer, &text);
    if (layer->bias) weft_text_add(&text, " bias");
    /* A frozen layer computes no gradients of its weights. */
    if (layer->frozen) weft_text_add(&text, " frozen");
    weft_text_addf(&text, " samples=%lld seq=%lld %s", (long long)batch->samples,
                   (long long)batch->seq_len, weft_dtype_name(batch->compute));
    char *key = weft_text_ok(&text) ? weft_pool_string(pool, weft_text_chars(&text)) : NULL;
    weft_text_finish(&text);
    return key;
}

int64_t weft_model_input_bytes(const struct weft_model *model, const struct weft_batch *batch)
{
    const struct weft_layer *first = &model->layers[0];
    int64_t rows = batch->samples * batch->seq_len;
    if (first->type == WEFT_LAYER_EMBEDDING) return rows * (int64_t)sizeof(int32_t);
    return rows * first->hidden * weft_dtype_bytes(batch->compute);
}

int64_t weft_model_host_input_bytes(const struct weft_model *model, const struct weft_batch *batch)
{
    struct weft_batch host = *batch;
    host.compute = WEFT_F32;
    return weft_model_input_bytes(model, &host);
}

int64_t weft_model_target_bytes(const struct weft_model *model, const struct weft_batch *batch)
{
    const struct weft_layer *last = &model->layers[model->n_layers - 1];
    int64_t row_bytes = (int64_t)sizeof(int32_t);
    if (last->type == WEFT_LAYER_LM_HEAD) return batch->samples * batch->seq_len * row_bytes;
    return last->type == WEFT_LAYER_CLASSIFIER ? batch->samples * row_bytes : 0;
}
