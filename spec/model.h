/* SPDX-License-Identifier: Apache-2.0 */
/* A model is the user's list of layers, expanded ("h.{i}" repeated) and checked, with their
 * tensors. Layers run in order, and each reads the previous one's output. One layer owns a tensor;
 * a tied head refers to the embedding's. */
#ifndef WEFT_SPEC_MODEL_H
#define WEFT_SPEC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"
#include "spec/device.h"
#include "spec/layer.h"

struct weft_tensor {
    const char *name; /* "h.3.attn.qkv.weight", unique */
    int32_t layer;    /* owner */
    int32_t n_dims;   /* 1 or 2, row-major; y = x W^T + b has W of [outputs, inputs] */
    int64_t dims[2];
    int64_t elements;
    enum weft_init init;
    double init_std; /* for WEFT_INIT_NORMAL, with mean 0 */
    bool decays;     /* weight decay applies: true for matrices, false for biases and norms */
    bool trainable;  /* false if its layer is frozen */
};

/* X(enumerator, suffix of the tensor's name in files). State of a tensor that lasts from step to
 * step, in f32. The optimizer determines the number of moments. All but MEAN2 have the tensor's
 * shape. */
#define WEFT_STATE_MAP(X)                                                                          \
    X(PARAMETER, "")                                                                               \
    X(MOMENT1, ".moment1")                                                                         \
    X(MOMENT2, ".moment2")                                                                         \
    X(PENDING, ".pending") /* reduced gradient that the next update applies: train.delay */        \
    X(ANCHOR, ".anchor")   /* parameters after the last average, and the momentum of the step */   \
    X(OUTER, ".outer")     /* there: train.across. Both are the same on all nodes */               \
    X(MEAN2, ".mean2")     /* one number: a second moment's mean over the tensor */

enum weft_state {
#define WEFT_STATE_ENUMERATOR(name, text) WEFT_STATE_##name,
    WEFT_STATE_MAP(WEFT_STATE_ENUMERATOR)
#undef WEFT_STATE_ENUMERATOR
        WEFT_STATE_COUNT
};

/* Elements of a tensor's state. */
static inline int64_t weft_state_elements(const struct weft_tensor *tensor, int state)
{
    return state == WEFT_STATE_MEAN2 ? 1 : tensor->elements;
}

struct weft_model {
    struct weft_pool pool;
    int32_t n_layers;
    struct weft_layer *layers;
    int32_t n_tensors;
    struct weft_tensor *tensors; /* in order of their layers */
    int64_t parameters;          /* elements, a tied tensor counted once */
    const char **modules; /* [n_layers] modules of each layer in a model of Hugging Face, with ","
                             between; NULL: not known */
};

/* Gives every layer its tensors, fills in sizes that follow from others, and checks sizes, names,
 * ties and shapes. Copies layers and names into the model's pool. WEFT_E_DATA names the layer. The
 * caller destroys `out`. */
WEFT_MUST_USE enum weft_status weft_model_create(const struct weft_layer *layers, int32_t n_layers,
                                                 struct weft_model **out, struct weft_error *err);
void weft_model_destroy(struct weft_model *model);

/* WEFT_E_DATA when all parameters are frozen. A model without parameters may be planned. */
WEFT_MUST_USE enum weft_status weft_model_learns(const struct weft_model *model,
                                                 struct weft_error *err);

/* Whether several layers add to the gradient of one tensor. */
bool weft_model_ties(const struct weft_model *model);
/* Whether micro-steps by turns of `a` layers add up such gradients in the order of turns of `b`
 * layers; 0: one micro-step after the other. */
bool weft_model_ties_alike(const struct weft_model *model, int64_t a, int64_t b);

/* WEFT_OK when every layer has kernels of the device and the chain can be trained on text: its
 * first layer is an embedding, or linear with seq_len 1, and its last is lm_head or classifier.
 * Otherwise WEFT_E_DATA names the layer and a cure. */
WEFT_MUST_USE enum weft_status weft_model_trains(const struct weft_model *model, int64_t seq_len,
                                                 enum weft_device_type device,
                                                 struct weft_error *err);

/* Bytes of the model's input for one micro-step, held from the first forward to the first layer's
 * backward. */
int64_t weft_model_input_bytes(const struct weft_model *model, const struct weft_batch *batch);
/* The same before loading: numbers are then fp32 for any compute dtype. Targets are held from the
 * first forward to the last layer's backward. */
int64_t weft_model_host_input_bytes(const struct weft_model *model, const struct weft_batch *batch);
int64_t weft_model_target_bytes(const struct weft_model *model, const struct weft_batch *batch);
/* Number of targets: one a row, one a sample, or none. */
int64_t weft_model_targets(const struct weft_model *model, const struct weft_batch *batch);
/* True if its input is tokens; true if its loss is of classes of whole samples. */
bool weft_model_reads_tokens(const struct weft_model *model);
bool weft_model_tells_classes(const struct weft_model *model);

/* Whether attention of a layer leaves out padding. */
bool weft_model_hides_padding(const struct weft_model *model, const struct weft_batch *batch);

#endif
