#include "spec/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "spec/layer.h"
#include "spec/names.h"
#include "spec/supplied.h"

enum { MOST_EXPERTS = 65536, MOST_SIDE = 65536, MOST_MAPS = 1 << 20 };

/* GPT-2's initial spread of every matrix but those that close a residual branch. */
static const double INIT_STD = 0.02;

const char *weft_layer_type_name(enum weft_layer_type type)
{
    static const char *const names[WEFT_LAYER_TYPE_COUNT] = {
#define LAYER_NAME(name, text, trains) text,
        WEFT_LAYER_MAP(LAYER_NAME)
#undef LAYER_NAME
    };
    return names[type];
}

bool weft_layer_type_trains(enum weft_layer_type type)
{
    static const bool trains_of[WEFT_LAYER_TYPE_COUNT] = {
#define LAYER_TRAINS(name, text, trains) trains,
        WEFT_LAYER_MAP(LAYER_TRAINS)
#undef LAYER_TRAINS
    };
    return trains_of[type];
}

const char *weft_layer_type_of(const struct weft_layer *layer)
{
    return layer->type == WEFT_LAYER_SUPPLIED ? layer->supplied->type
                                              : weft_layer_type_name(layer->type);
}

/* What a type says of one of its tensors. */
struct shape {
    const char *suffix;
    int32_t n_dims;
    int64_t dims[2];
    enum weft_init init;
    double init_std;
    bool decays;
};

static struct shape matrix(const char *suffix, int64_t rows, int64_t columns, double std)
{
    return (struct shape){suffix, 2, {rows, columns}, WEFT_INIT_NORMAL, std, true};
}

static struct shape vector(const char *suffix, int64_t length, enum weft_init init)
{
    return (struct shape){suffix, 1, {length, 1}, init, 0, false};
}

/* a * b for use as a size: -1, which no later check accepts, when it overflows. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t out;
    return weft_checked_mul(a, b, &out) ? out : -1;
}

static int32_t transformer_block_shapes(const struct weft_layer *layer, double residual_std,
                                        struct shape *out)
{
    int64_t h = layer->hidden, f = layer->ffn, h3 = times(3, h);
    int32_t n = 0;
    out[n++] = vector("ln1.weight", h, WEFT_INIT_ONE);
    out[n++] = vector("ln1.bias", h, WEFT_INIT_ZERO);
    out[n++] = matrix("attn.qkv.weight", h3, h, INIT_STD);
    out[n++] = vector("attn.qkv.bias", h3, WEFT_INIT_ZERO);
    out[n++] = matrix("attn.proj.weight", h, h, residual_std);
    out[n++] = vector("attn.proj.bias", h, WEFT_INIT_ZERO);
    out[n++] = vector("ln2.weight", h, WEFT_INIT_ONE);
    out[n++] = vector("ln2.bias", h, WEFT_INIT_ZERO);
    out[n++] = matrix("mlp.fc.weight", f, h, INIT_STD);
    out[n++] = vector("mlp.fc.bias", f, WEFT_INIT_ZERO);
    out[n++] = matrix("mlp.proj.weight", h, f, residual_std);
    out[n++] = vector("mlp.proj.bias", h, WEFT_INIT_ZERO);
    return n;
}

/* What stands before the MLP, or before the experts, and the norm behind it. */
static int32_t llama_attention_shapes(const struct weft_layer *layer, double residual_std,
                                      struct shape *out)
{
    int64_t h = layer->hidden, kv = h / layer->heads * layer->kv_heads;
    int32_t n = 0;
    out[n++] = vector("input_norm.weight", h, WEFT_INIT_ONE);
    out[n++] = matrix("attn.q.weight", h, h, INIT_STD);
    out[n++] = matrix("attn.k.weight", kv, h, INIT_STD);
    out[n++] = matrix("attn.v.weight", kv, h, INIT_STD);
    out[n++] = matrix("attn.o.weight", h, h, residual_std);
    out[n++] = vector("post_norm.weight", h, WEFT_INIT_ONE);
    return n;
}

static int32_t llama_block_shapes(const struct weft_layer *layer, double residual_std,
                                  struct shape *out)
{
    int64_t h = layer->hidden, f = layer->ffn;
    int32_t n = llama_attention_shapes(layer, residual_std, out);
    out[n++] = matrix("mlp.gate.weight", f, h, INIT_STD);
    out[n++] = matrix("mlp.up.weight", f, h, INIT_STD);
    out[n++] = matrix("mlp.down.weight", h, f, residual_std);
    return n;
}

static int32_t moe_block_shapes(const struct weft_layer *layer, double residual_std,
                                struct shape *out)
{
    int64_t h = layer->hidden, f = layer->ffn;
    int32_t n = llama_attention_shapes(layer, residual_std, out);
    out[n++] = matrix("router.weight", layer->experts, h, INIT_STD);
    out[n++] = matrix("experts.gate.weight", times(layer->experts, f), h, INIT_STD);
    out[n++] = matrix("experts.up.weight", times(layer->experts, f), h, INIT_STD);
    out[n++] = matrix("experts.down.weight", times(layer->experts, h), f, residual_std);
    return n;
}

static int32_t norm_shapes(const char *weight, const char *bias, int64_t length, struct shape *out)
{
    out[0] = vector(weight, length, WEFT_INIT_ONE);
    out[1] = vector(bias, length, WEFT_INIT_ZERO);
    return 2;
}

/* He et al. 2015, equation 10: what keeps the variance through a ReLU. */
static struct shape convolution(const char *suffix, int64_t filters, int64_t inputs)
{
    return matrix(suffix, filters, inputs, sqrt(2 / (double)inputs));
}

static int32_t conv2d_shapes(const struct weft_layer *layer, struct shape *out)
{
    int32_t n = 0;
    out[n++] = convolution("weight", layer->filters,
                           times(layer->channels, layer->kernel * layer->kernel));
    if (layer->bias) out[n++] = vector("bias", layer->filters, WEFT_INIT_ZERO);
    if (layer->norm) n += norm_shapes("norm.weight", "norm.bias", layer->filters, &out[n]);
    return n;
}

static int32_t bottleneck_shapes(const struct weft_layer *layer, struct shape *out)
{
    int64_t c = layer->channels, w = layer->width, f = layer->filters;
    int32_t n = 0;
    out[n++] = convolution("conv1.weight", w, c);
    n += norm_shapes("norm1.weight", "norm1.bias", w, &out[n]);
    out[n++] = convolution("conv2.weight", w, times(9, w));
    n += norm_shapes("norm2.weight", "norm2.bias", w, &out[n]);
    out[n++] = convolution("conv3.weight", f, w);
    n += norm_shapes("norm3.weight", "norm3.bias", f, &out[n]);
    if (!weft_layer_projects(layer)) return n;
    out[n++] = convolution("shortcut.weight", f, c);
    n += norm_shapes("shortcut.norm.weight", "shortcut.norm.bias", f, &out[n]);
    return n;
}

/* Tensors that the layer owns, in the order of spec/layer.h; returns how many. A tied head's
 * weight is the embedding's, so it is not among them. */
static int32_t owned_shapes(const struct weft_layer *layer, double residual_std, struct shape *out)
{
    int64_t h = layer->hidden;
    int32_t n = 0;
    switch (layer->type) {
    case WEFT_LAYER_EMBEDDING:
        out[n++] = matrix("tokens", layer->vocab, h, INIT_STD);
        if (layer->positions > 0) out[n++] = matrix("positions", layer->positions, h, INIT_STD);
        break;
    case WEFT_LAYER_TRANSFORMER_BLOCK:
    case WEFT_LAYER_ENCODER_BLOCK:
        return transformer_block_shapes(layer, residual_std, out);
    case WEFT_LAYER_MOE_BLOCK:
        return moe_block_shapes(layer, residual_std, out);
    case WEFT_LAYER_CONV2D:
        return conv2d_shapes(layer, out);
    case WEFT_LAYER_BOTTLENECK:
        return bottleneck_shapes(layer, out);
    case WEFT_LAYER_LAYER_NORM:
        out[n++] = vector("weight", h, WEFT_INIT_ONE);
        out[n++] = vector("bias", h, WEFT_INIT_ZERO);
        break;
    case WEFT_LAYER_LINEAR:
        out[n++] = matrix("weight", layer->outputs, h, 1 / sqrt((double)h));
        if (layer->bias) out[n++] = vector("bias", layer->outputs, WEFT_INIT_ZERO);
        break;
    case WEFT_LAYER_LM_HEAD:
    case WEFT_LAYER_CLASSIFIER:
        if (layer->tie < 0) out[n++] = matrix("weight", layer->outputs, h, INIT_STD);
        if (layer->bias) out[n++] = vector("bias", layer->outputs, WEFT_INIT_ZERO);
        break;
    case WEFT_LAYER_LLAMA_BLOCK:
        return llama_block_shapes(layer, residual_std, out);
    case WEFT_LAYER_RMS_NORM:
        out[n++] = vector("weight", h, WEFT_INIT_ONE);
        break;
    case WEFT_LAYER_CUSTOM:
        if (layer->parameters > 0)
            out[n++] = vector("parameters", layer->parameters, WEFT_INIT_ZERO);
        break;
    case WEFT_LAYER_RELU:
    case WEFT_LAYER_GELU:
    case WEFT_LAYER_POOL2D:
    case WEFT_LAYER_TYPE_COUNT:
    case WEFT_LAYER_SUPPLIED: /* its kind says so, and may fail: own_supplied */
        break;
    }
    return n;
}

static bool is_block(enum weft_layer_type type)
{
    return type == WEFT_LAYER_TRANSFORMER_BLOCK || type == WEFT_LAYER_LLAMA_BLOCK ||
           type == WEFT_LAYER_ENCODER_BLOCK || type == WEFT_LAYER_MOE_BLOCK;
}

static bool is_image(enum weft_layer_type type)
{
    return type == WEFT_LAYER_CONV2D || type == WEFT_LAYER_BOTTLENECK || type == WEFT_LAYER_POOL2D;
}

static bool is_loss(enum weft_layer_type type)
{
    return type == WEFT_LAYER_LM_HEAD || type == WEFT_LAYER_CLASSIFIER;
}

/* Widths of an image layer's rows; what it has no key for keeps a value that does no harm. Sizes
 * are checked later, so 0 may not divide. */
static void complete_image(struct weft_layer *layer)
{
    if (layer->type == WEFT_LAYER_POOL2D) layer->filters = layer->channels;
    layer->hidden = times(layer->channels, times(layer->image, layer->image));
    int64_t side = layer->stride > 0 ? weft_layer_side(layer) : -1;
    layer->outputs = times(layer->filters, times(side, side));
}

/* Sizes that follow from others, so that the rest of Weft need not know which those are. */
static void complete(struct weft_layer *layer)
{
    if (layer->type == WEFT_LAYER_LM_HEAD)
        layer->outputs = layer->vocab;
    else if (is_image(layer->type))
        complete_image(layer);
    else if (layer->type == WEFT_LAYER_CUSTOM)
        layer->outputs = layer->outputs ? layer->outputs : layer->hidden;
    else if (layer->type != WEFT_LAYER_LINEAR && layer->type != WEFT_LAYER_CLASSIFIER)
        layer->outputs = layer->hidden;
    if (is_block(layer->type) && layer->kv_heads == 0) layer->kv_heads = layer->heads;
    if (layer->type != WEFT_LAYER_LM_HEAD) layer->tie = -1;
    if (layer->type != WEFT_LAYER_LINEAR && layer->type != WEFT_LAYER_CONV2D &&
        !is_loss(layer->type))
        layer->bias = false;
    layer->n_tensors = 0;
}

/* WEFT_E_DATA: layer "h.3" (linear): what is wrong; what would work. */
static WEFT_PRINTF(3, 4) enum weft_status
    refuse(struct weft_error *err, const struct weft_layer *layer, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return weft_fail(err, WEFT_E_DATA, "layer \"%s\" (%s): %s", layer->name,
                     weft_layer_type_of(layer), text);
}

static enum weft_status check_range(const struct weft_layer *layer, const char *key, int64_t value,
                                    int64_t most, struct weft_error *err)
{
    if (value >= 1 && value <= most) return WEFT_OK;
    return refuse(err, layer, "%s is %lld; it must be from 1 to %lld", key, (long long)value,
                  (long long)most);
}

static enum weft_status check_heads(const struct weft_layer *layer, struct weft_error *err)
{
    long long hidden = layer->hidden, heads = layer->heads, kv_heads = layer->kv_heads;
    WEFT_TRY(check_range(layer, "heads", heads, INT32_MAX, err));
    WEFT_TRY(check_range(layer, "ffn", layer->ffn, INT32_MAX, err));
    if (hidden % heads != 0)
        return refuse(err, layer,
                      "hidden %lld is not a multiple of heads %lld; every head needs the same "
                      "whole number of columns",
                      hidden, heads);
    WEFT_TRY(check_range(layer, "kv_heads", kv_heads, heads, err));
    if (heads % kv_heads != 0)
        return refuse(err, layer, "heads %lld is not a multiple of kv_heads %lld", heads, kv_heads);
    if ((layer->type == WEFT_LAYER_TRANSFORMER_BLOCK || layer->type == WEFT_LAYER_ENCODER_BLOCK) &&
        kv_heads != heads)
        return refuse(
            err, layer,
            "kv_heads %lld is not heads %lld; only a llama_block or moe_block shares keys "
            "and values between heads",
            kv_heads, heads);
    if (layer->type != WEFT_LAYER_MOE_BLOCK) return WEFT_OK;
    WEFT_TRY(check_range(layer, "experts", layer->experts, MOST_EXPERTS, err));
    WEFT_TRY(check_range(layer, "active_experts", layer->active_experts, layer->experts, err));
    return WEFT_OK;
}

/* Far beyond any image, and small enough that sizes of one layer are exact in 63 bits. */
static enum weft_status check_image(const struct weft_layer *layer, struct weft_error *err)
{
    WEFT_TRY(check_range(layer, "image", layer->image, MOST_SIDE, err));
    WEFT_TRY(check_range(layer, "channels", layer->channels, MOST_MAPS, err));
    WEFT_TRY(check_range(layer, "filters", layer->filters, MOST_MAPS, err));
    WEFT_TRY(check_range(layer, "stride", layer->stride, layer->image, err));
    if (layer->type == WEFT_LAYER_CONV2D)
        WEFT_TRY(check_range(layer, "kernel", layer->kernel, MOST_SIDE, err));
    if (layer->type == WEFT_LAYER_BOTTLENECK)
        WEFT_TRY(check_range(layer, "width", layer->width, MOST_MAPS, err));
    return WEFT_OK;
}

static enum weft_status check_custom(const struct weft_layer *layer, struct weft_error *err)
{
    if (layer->hidden >= 0 && layer->outputs >= 0 && layer->parameters >= 0 &&
        layer->output_bytes >= 0 && layer->saved_bytes >= 0 && layer->temporary_bytes >= 0 &&
        layer->forward_flops >= 0 && layer->backward_flops >= 0 && isfinite(layer->forward_flops) &&
        isfinite(layer->backward_flops))
        return WEFT_OK;
    return refuse(err, layer,
                  "a size or a number of flops is negative or not finite; each must be 0 or more");
}

static enum weft_status check_sizes(const struct weft_layer *layer, struct weft_error *err)
{
    enum weft_layer_type type = layer->type;
    if (type == WEFT_LAYER_CUSTOM) return check_custom(layer, err);
    if (is_image(type)) return check_image(layer, err);
    WEFT_TRY(check_range(layer, "hidden", layer->hidden, INT32_MAX, err));
    if (type == WEFT_LAYER_SUPPLIED) return WEFT_OK; /* of the kind's own keys it judges itself */
    if (type == WEFT_LAYER_EMBEDDING || type == WEFT_LAYER_LM_HEAD)
        WEFT_TRY(check_range(layer, "vocab", layer->vocab, INT32_MAX, err));
    if (type == WEFT_LAYER_EMBEDDING && layer->positions != 0)
        WEFT_TRY(check_range(layer, "positions", layer->positions, INT32_MAX, err));
    if (type == WEFT_LAYER_CLASSIFIER)
        WEFT_TRY(check_range(layer, "classes", layer->outputs, INT32_MAX, err));
    if (type == WEFT_LAYER_LINEAR)
        WEFT_TRY(check_range(layer, "outputs", layer->outputs, INT32_MAX, err));
    return is_block(type) ? check_heads(layer, err) : WEFT_OK;
}

static enum weft_status check_tie(const struct weft_layer *layers, int32_t index,
                                  struct weft_error *err)
{
    const struct weft_layer *head = &layers[index];
    if (head->tie < 0) return WEFT_OK;
    if (head->tie >= index || layers[head->tie].type != WEFT_LAYER_EMBEDDING)
        return refuse(err, head, "it can only be tied to an embedding before it");
    const struct weft_layer *embedding = &layers[head->tie];
    if (head->vocab != embedding->vocab || head->hidden != embedding->hidden)
        return refuse(err, head,
                      "it is tied to \"%s\", but its weight is %lld x %lld and the embedding's "
                      "%lld x %lld; make them equal or leave tie out",
                      embedding->name, (long long)head->vocab, (long long)head->hidden,
                      (long long)embedding->vocab, (long long)embedding->hidden);
    if (head->frozen != embedding->frozen)
        return refuse(err, head,
                      "it is tied to \"%s\", but only one of them is frozen; they share one "
                      "weight, so freeze both or neither",
                      embedding->name);
    return WEFT_OK;
}

/* Layer `index` can follow the one before it. */
static enum weft_status check_chain(const struct weft_layer *layers, int32_t index,
                                    struct weft_error *err)
{
    const struct weft_layer *layer = &layers[index];
    if (index == 0) return WEFT_OK;
    const struct weft_layer *before = &layers[index - 1];
    if (layer->type == WEFT_LAYER_EMBEDDING)
        return refuse(err, layer,
                      "it reads tokens, so it can only be the first layer; \"%s\" is before it",
                      before->name);
    if (is_loss(before->type))
        return refuse(err, layer,
                      "it follows \"%s\" (%s), whose output is the loss; a loss must be the last "
                      "layer",
                      before->name, weft_layer_type_of(before));
    /* A custom layer may keep its widths to itself. */
    if (layer->hidden != before->outputs && layer->hidden != 0 && before->outputs != 0)
        return refuse(err, layer, "it reads rows of %lld, but \"%s\" before it gives rows of %lld",
                      (long long)layer->hidden, before->name, (long long)before->outputs);
    return WEFT_OK;
}

static enum weft_status own_tensor(struct weft_model *model, int32_t index,
                                   const struct shape *shape, struct weft_error *err)
{
    struct weft_layer *layer = &model->layers[index];
    struct weft_tensor *tensor = &model->tensors[model->n_tensors];
    tensor->name = weft_pool_format(&model->pool, "%s.%s", layer->name, shape->suffix);
    if (!tensor->name) return weft_fail_memory(err, "a tensor's name");
    tensor->layer = index;
    tensor->n_dims = shape->n_dims;
    memcpy(tensor->dims, shape->dims, sizeof(tensor->dims));
    tensor->init = shape->init;
    tensor->init_std = shape->init_std;
    tensor->decays = shape->decays;
    tensor->trainable = !layer->frozen;
    if (!weft_checked_mul(shape->dims[0], shape->dims[1], &tensor->elements) ||
        !weft_checked_add(model->parameters, tensor->elements, &model->parameters))
        return refuse(err, layer, "with %s the model's parameters do not fit in 63 bits",
                      tensor->name);
    layer->tensors[layer->n_tensors++] = model->n_tensors++;
    return WEFT_OK;
}

static enum weft_status own_supplied(struct weft_model *model, int32_t index,
                                     struct weft_error *err)
{
    struct weft_layer_shape said;
    WEFT_TRY(weft_supplied_shape(&model->layers[index], &said, err));
    for (int32_t k = 0; k < said.n_tensors; k++) {
        const struct weft_layer_tensor *tensor = &said.tensors[k];
        bool matrix = tensor->columns > 0;
        struct shape shape = {.suffix = tensor->name,
                              .n_dims = matrix ? 2 : 1,
                              .dims = {tensor->rows, matrix ? tensor->columns : 1},
                              .init = tensor->init,
                              .init_std = tensor->init_std,
                              .decays = tensor->decays};
        WEFT_TRY(own_tensor(model, index, &shape, err));
    }
    return WEFT_OK;
}

static enum weft_status own_tensors(struct weft_model *model, struct weft_error *err)
{
    int32_t n_blocks = 0;
    for (int32_t i = 0; i < model->n_layers; i++)
        n_blocks += is_block(model->layers[i].type);
    /* As in GPT-2: two branches a block add to the residual stream, which must not grow. */
    double residual_std = INIT_STD / sqrt(2.0 * (n_blocks ? n_blocks : 1));

    for (int32_t i = 0; i < model->n_layers; i++) {
        struct weft_layer *layer = &model->layers[i];
        struct shape shapes[WEFT_LAYER_TENSORS];
        if (layer->type == WEFT_LAYER_SUPPLIED) WEFT_TRY(own_supplied(model, i, err));
        int32_t n = owned_shapes(layer, residual_std, shapes);
        if (layer->tie >= 0)
            layer->tensors[layer->n_tensors++] = model->layers[layer->tie].tensors[0];
        for (int32_t k = 0; k < n; k++)
            WEFT_TRY(own_tensor(model, i, &shapes[k], err));
    }
    return WEFT_OK;
}

static enum weft_status copy_layers(struct weft_model *model, const struct weft_layer *layers,
                                    int32_t n_layers, struct weft_error *err)
{
    size_t n = (size_t)n_layers;
    model->layers = weft_pool_array(&model->pool, n, sizeof(*model->layers));
    model->tensors = weft_pool_array(&model->pool, n * WEFT_LAYER_TENSORS, sizeof(*model->tensors));
    if (!model->layers || !model->tensors) return weft_fail_memory(err, "a model");
    model->n_layers = n_layers;
    for (int32_t i = 0; i < n_layers; i++) {
        model->layers[i] = layers[i];
        model->layers[i].name = weft_pool_string(&model->pool, layers[i].name);
        if (!model->layers[i].name) return weft_fail_memory(err, "a layer's name");
        complete(&model->layers[i]);
    }
    return WEFT_OK;
}

static enum weft_status complete_supplied(struct weft_layer *layer, struct weft_error *err)
{
    struct weft_layer_shape said;
    WEFT_TRY(weft_supplied_shape(layer, &said, err));
    layer->outputs = said.outputs;
    layer->parameters = 0;
    for (int32_t i = 0; i < said.n_tensors; i++) {
        int64_t columns = said.tensors[i].columns > 0 ? said.tensors[i].columns : 1, elements;
        if (!weft_checked_mul(said.tensors[i].rows, columns, &elements) ||
            !weft_checked_add(layer->parameters, elements, &layer->parameters))
            return refuse(err, layer, "its parameters do not fit in 63 bits");
    }
    return WEFT_OK;
}

static enum weft_status build(struct weft_model *model, const struct weft_layer *layers,
                              int32_t n_layers, struct weft_error *err)
{
    WEFT_TRY(copy_layers(model, layers, n_layers, err));
    WEFT_TRY(weft_names_check_layers(model, err));
    for (int32_t i = 0; i < n_layers; i++) {
        WEFT_TRY(check_sizes(&model->layers[i], err));
        if (layers[i].type == WEFT_LAYER_SUPPLIED)
            WEFT_TRY(complete_supplied(&model->layers[i], err));
        WEFT_TRY(check_chain(model->layers, i, err));
        WEFT_TRY(check_tie(model->layers, i, err));
    }
    WEFT_TRY(own_tensors(model, err));
    return weft_names_check_tensors(model, err);
}

enum weft_status weft_model_create(const struct weft_layer *layers, int32_t n_layers,
                                   struct weft_model **out, struct weft_error *err)
{
    if (n_layers < 1)
        return weft_fail(err, WEFT_E_DATA, "the model has no layers; it needs at least one");
    struct weft_model *model = calloc(1, sizeof(*model));
    if (!model) return weft_fail_memory(err, "a model");
    enum weft_status status = build(model, layers, n_layers, err);
    if (status != WEFT_OK) {
        weft_model_destroy(model);
        return status;
    }
    *out = model;
    return WEFT_OK;
}

void weft_model_destroy(struct weft_model *model)
{
    if (!model) return;
    weft_pool_finish(&model->pool);
    free(model);
}

static enum weft_status check_ends(const struct weft_model *model, int64_t seq_len,
                                   struct weft_error *err)
{
    const struct weft_layer *first = &model->layers[0];
    const struct weft_layer *last = &model->layers[model->n_layers - 1];
    if (first->type == WEFT_LAYER_LINEAR && seq_len != 1)
        return refuse(err, first,
                      "it is first and reads one row a sample, but train.seq_len is %lld; set it "
                      "to 1 or begin with an embedding",
                      (long long)seq_len);
    if (first->type != WEFT_LAYER_LINEAR && first->type != WEFT_LAYER_EMBEDDING)
        return refuse(err, first,
                      "it is first, but text can only be read by an embedding, or by a linear "
                      "with train.seq_len 1");
    if (!is_loss(last->type))
        return refuse(err, last,
                      "it is last, so there is no loss; end with an lm_head or a classifier");
    return WEFT_OK;
}

enum weft_status weft_model_trains(const struct weft_model *model, int64_t seq_len,
                                   struct weft_error *err)
{
    bool any = false;
    for (int32_t i = 0; i < model->n_layers; i++)
        if (model->layers[i].type != WEFT_LAYER_SUPPLIED &&
            !weft_layer_type_trains(model->layers[i].type))
            return refuse(err, &model->layers[i],
                          "it can be planned but not trained, for lack of kernels; `weft plan`, "
                          "`weft estimate` and `weft simulate` work");
    for (int32_t i = 0; i < model->n_tensors; i++)
        any |= model->tensors[i].trainable;
    if (!any)
        return weft_fail(err, WEFT_E_DATA,
                         "the model has no parameter that is not frozen, so there is nothing to "
                         "train; leave frozen out of at least one layer");
    return check_ends(model, seq_len, err);
}
