/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "spec/kind.h"
#include "spec/names.h"

static enum weft_status check_tie(const struct weft_layer *layers, int32_t index,
                                  struct weft_error *err)
{
    const struct weft_layer *head = &layers[index];
    if (head->tie < 0) return WEFT_OK;
    if (head->tie >= index || layers[head->tie].kind != head->kind->ties)
        return weft_layer_refuse(err, head, "it can only be tied to a layer of type %s before it",
                                 head->kind->ties->type);
    const struct weft_layer *embedding = &layers[head->tie];
    if (embedding->kind != head->kind &&
        (head->vocab != embedding->vocab || head->hidden != embedding->hidden))
        return weft_layer_refuse(
            err, head,
            "it is tied to \"%s\", but its weight is %lld x %lld and the embedding's "
            "%lld x %lld; make them equal or leave tie out",
            embedding->name, (long long)head->vocab, (long long)head->hidden,
            (long long)embedding->vocab, (long long)embedding->hidden);
    if (head->frozen != embedding->frozen)
        return weft_layer_refuse(
            err, head,
            "it is tied to \"%s\", but only one of them is frozen; they share one "
            "weight, so freeze both or neither",
            embedding->name);
    return WEFT_OK;
}

/* Checks that layer `index` can follow the one before it. */
static enum weft_status check_chain(const struct weft_layer *layers, int32_t index,
                                    struct weft_error *err)
{
    const struct weft_layer *layer = &layers[index];
    if (index == 0) return WEFT_OK;
    const struct weft_layer *before = &layers[index - 1];
    if (layer->kind->input == WEFT_READS_TOKENS)
        return weft_layer_refuse(
            err, layer, "it reads tokens, so it can only be the first layer; \"%s\" is before it",
            before->name);
    if (before->kind->loss != WEFT_NO_LOSS)
        return weft_layer_refuse(
            err, layer,
            "it follows \"%s\" (%s), whose output is the loss; a loss must be the last "
            "layer",
            before->name, weft_layer_type_of(before));
    /* A custom layer may have unknown widths. */
    if (layer->hidden != before->outputs && layer->hidden != 0 && before->outputs != 0)
        return weft_layer_refuse(
            err, layer, "it reads rows of %lld, but \"%s\" before it gives rows of %lld",
            (long long)layer->hidden, before->name, (long long)before->outputs);
    return WEFT_OK;
}

static enum weft_status own_tensor(struct weft_model *model, int32_t index,
                                   const struct weft_layer_tensor *shape, struct weft_error *err)
{
    struct weft_layer *layer = &model->layers[index];
    struct weft_tensor *tensor = &model->tensors[model->n_tensors];
    tensor->name = weft_pool_format(&model->pool, "%s.%s", layer->name, shape->name);
    if (!tensor->name) return weft_fail_memory(err, "a tensor's name");
    tensor->layer = index;
    tensor->n_dims = shape->columns != 0 ? 2 : 1;
    tensor->dims[0] = shape->rows;
    tensor->dims[1] = shape->columns != 0 ? shape->columns : 1;
    tensor->init = shape->init;
    tensor->init_std = shape->init_std;
    tensor->decays = shape->decays;
    const char *frozen = layer->kind->frozen_tensor;
    tensor->trainable = !layer->frozen && (frozen == NULL || strcmp(frozen, shape->name) != 0);
    if (!weft_checked_mul(tensor->dims[0], tensor->dims[1], &tensor->elements) ||
        !weft_checked_add(model->parameters, tensor->elements, &model->parameters))
        return weft_layer_refuse(err, layer, "with %s the model's parameters do not fit in 63 bits",
                                 tensor->name);
    layer->tensors[layer->n_tensors++] = model->n_tensors++;
    return WEFT_OK;
}

static enum weft_status shape_of(const struct weft_layer *layer, double residual_std,
                                 struct weft_layer_shape *out, struct weft_error *err)
{
    *out = (struct weft_layer_shape){0};
    if (layer->kind->shape == NULL) return WEFT_OK;
    return layer->kind->shape(layer, residual_std, out, err);
}

static enum weft_status own_tensors(struct weft_model *model, struct weft_error *err)
{
    int32_t n_blocks = 0;
    for (int32_t i = 0; i < model->n_layers; i++)
        n_blocks += model->layers[i].kind->closes_residual;
    /* GPT-2's rule: two branches a block add to the residual stream, which must not grow. */
    double residual_std = WEFT_INIT_STD / sqrt(2.0 * (n_blocks ? n_blocks : 1));

    for (int32_t i = 0; i < model->n_layers; i++) {
        struct weft_layer *layer = &model->layers[i];
        struct weft_layer_shape shape;
        WEFT_TRY(shape_of(layer, residual_std, &shape, err));
        bool tied = layer->tie >= 0;
        if (tied && model->layers[layer->tie].n_tensors == 0)
            return weft_layer_refuse(err, layer, "it is tied to \"%s\", which has no parameters",
                                     model->layers[layer->tie].name);
        if (tied) layer->tensors[layer->n_tensors++] = model->layers[layer->tie].tensors[0];
        for (int32_t k = tied; k < shape.n_tensors; k++)
            WEFT_TRY(own_tensor(model, i, &shape.tensors[k], err));
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
        weft_layer_complete(&model->layers[i]);
    }
    return WEFT_OK;
}

/* Takes the outputs that follow only from the kind's tensors, after its keys passed. */
static enum weft_status take_outputs(struct weft_layer *layer, struct weft_error *err)
{
    struct weft_layer_shape shape;
    WEFT_TRY(shape_of(layer, WEFT_INIT_STD, &shape, err));
    if (shape.outputs > 0) layer->outputs = shape.outputs;
    return WEFT_OK;
}

static enum weft_status build_model(struct weft_model *model, const struct weft_layer *layers,
                                    int32_t n_layers, struct weft_error *err)
{
    WEFT_TRY(copy_layers(model, layers, n_layers, err));
    WEFT_TRY(weft_names_check_layers(model, err));
    for (int32_t i = 0; i < n_layers; i++) {
        WEFT_TRY(weft_layer_check(&model->layers[i], err));
        WEFT_TRY(take_outputs(&model->layers[i], err));
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
    enum weft_status status = build_model(model, layers, n_layers, err);
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
    enum weft_kind_input input = first->kind->input;
    if (input == WEFT_READS_NUMBERS && seq_len != 1 && last->kind->loss != WEFT_LOSS_OF_SAMPLES)
        return weft_layer_refuse(
            err, first,
            "it is first and reads one row a sample, but train.seq_len is %lld; set it "
            "to 1, end with a classifier, or begin with an embedding",
            (long long)seq_len);
    if (input == WEFT_READS_ROWS)
        return weft_layer_refuse(
            err, first,
            "it is first, but text can only be read by an embedding, or by a linear "
            "with train.seq_len 1 or a classifier");
    if (last->kind->loss == WEFT_NO_LOSS)
        return weft_layer_refuse(
            err, last, "it is last, so there is no loss; end with an lm_head or a classifier");
    return WEFT_OK;
}

static enum weft_status fail_frozen(struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA,
                     "the model has no parameter that is not frozen, so there is nothing to "
                     "train; leave frozen out of at least one layer");
}

bool weft_model_ties(const struct weft_model *model)
{
    for (int32_t l = 0; l < model->n_layers; l++)
        for (int32_t i = 0; i < model->layers[l].n_tensors; i++) {
            const struct weft_tensor *tensor = &model->tensors[model->layers[l].tensors[i]];
            if (tensor->trainable && tensor->layer != l) return true;
        }
    return false;
}

static bool reads_tensor(const struct weft_layer *layer, int32_t tensor)
{
    for (int32_t i = 0; i < layer->n_tensors; i++)
        if (layer->tensors[i] == tensor) return true;
    return false;
}

/* Layers of one turn add their terms micro-step by micro-step. */
bool weft_model_ties_alike(const struct weft_model *model, int64_t a, int64_t b)
{
    for (int32_t t = 0; t < model->n_tensors && a != b; t++) {
        if (!model->tensors[t].trainable) continue;
        int32_t before = -1;
        for (int32_t l = 0; l < model->n_layers; l++) {
            if (!reads_tensor(&model->layers[l], t)) continue;
            const bool shared_a = a == 0 || before / a == l / a;
            const bool shared_b = b == 0 || before / b == l / b;
            if (before >= 0 && shared_a != shared_b) return false;
            before = l;
        }
    }
    return true;
}

enum weft_status weft_model_learns(const struct weft_model *model, struct weft_error *err)
{
    for (int32_t i = 0; i < model->n_tensors; i++)
        if (model->tensors[i].trainable) return WEFT_OK;
    return model->n_tensors == 0 ? WEFT_OK : fail_frozen(err);
}

enum weft_status weft_model_trains(const struct weft_model *model, int64_t seq_len,
                                   enum weft_device_type device, struct weft_error *err)
{
    for (int32_t i = 0; i < model->n_layers; i++) {
        if (device == WEFT_DEVICE_CUDA && model->layers[i].kind->cpu_only)
            return weft_layer_refuse(
                err, &model->layers[i],
                "CPUs alone train it so far: a GPU has no kernels of it. Set cluster.device.type "
                "to \"cpu\"; `weft plan`, `weft estimate` and `weft simulate` work for GPUs");
        if (!model->layers[i].kind->trains)
            return weft_layer_refuse(
                err, &model->layers[i],
                "it can be planned but not trained, for lack of kernels; `weft plan`, "
                "`weft estimate` and `weft simulate` work");
    }
    if (model->n_tensors == 0) return fail_frozen(err);
    WEFT_TRY(weft_model_learns(model, err));
    return check_ends(model, seq_len, err);
}

bool weft_model_reads_tokens(const struct weft_model *model)
{
    return model->layers[0].kind->input == WEFT_READS_TOKENS;
}

bool weft_model_tells_classes(const struct weft_model *model)
{
    return model->layers[model->n_layers - 1].kind->loss == WEFT_LOSS_OF_SAMPLES;
}

int64_t weft_model_input_bytes(const struct weft_model *model, const struct weft_batch *batch)
{
    int64_t rows = batch->samples * batch->seq_len;
    if (weft_model_reads_tokens(model)) return rows * (int64_t)sizeof(int32_t);
    return rows * model->layers[0].hidden * weft_dtype_bytes(batch->compute);
}

int64_t weft_model_host_input_bytes(const struct weft_model *model, const struct weft_batch *batch)
{
    struct weft_batch host = *batch;
    host.compute = WEFT_F32;
    return weft_model_input_bytes(model, &host);
}

int64_t weft_model_targets(const struct weft_model *model, const struct weft_batch *batch)
{
    switch (model->layers[model->n_layers - 1].kind->loss) {
    case WEFT_LOSS_OF_ROWS:
        return batch->samples * batch->seq_len;
    case WEFT_LOSS_OF_SAMPLES:
        return batch->samples;
    case WEFT_NO_LOSS:
        break;
    }
    return 0;
}

int64_t weft_model_target_bytes(const struct weft_model *model, const struct weft_batch *batch)
{
    return weft_model_targets(model, batch) * (int64_t)sizeof(int32_t);
}
