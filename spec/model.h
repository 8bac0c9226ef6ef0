/* A model is the list of layers that a user wrote, expanded ("h.{i}" repeated) and checked, and
 * the tensors that those layers own. Layers run in order; each reads the previous one's output.
 * Tensors are owned by one layer; a tied head refers to the embedding's. */
#ifndef WEFT_SPEC_MODEL_H
#define WEFT_SPEC_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/numbers.h"
#include "base/pool.h"
#include "base/status.h"
#include "base/text.h"

/* X(enumerator, name in configs, does it train with the kernels of runtime/nn). */
#define WEFT_LAYER_MAP(X)                                                                          \
    X(EMBEDDING, "embedding", true)                                                                \
    X(TRANSFORMER_BLOCK, "transformer_block", true)                                                \
    X(LAYER_NORM, "layer_norm", true)                                                              \
    X(LINEAR, "linear", true)                                                                      \
    X(RELU, "relu", true)                                                                          \
    X(GELU, "gelu", true)                                                                          \
    X(LM_HEAD, "lm_head", true)                                                                    \
    X(CLASSIFIER, "classifier", true)                                                              \
    X(LLAMA_BLOCK, "llama_block", false)                                                           \
    X(RMS_NORM, "rms_norm", false)                                                                 \
    X(ENCODER_BLOCK, "encoder_block", false)                                                       \
    X(MOE_BLOCK, "moe_block", false)                                                               \
    X(CONV2D, "conv2d", false)                                                                     \
    X(BOTTLENECK, "bottleneck", false)                                                             \
    X(POOL2D, "pool2d", false)                                                                     \
    X(CUSTOM, "custom", false)

enum weft_layer_type {
#define WEFT_LAYER_ENUMERATOR(name, text, trains) WEFT_LAYER_##name,
    WEFT_LAYER_MAP(WEFT_LAYER_ENUMERATOR)
#undef WEFT_LAYER_ENUMERATOR
        WEFT_LAYER_TYPE_COUNT, /* of Weft's own types */
    WEFT_LAYER_SUPPLIED        /* one that the user of the library brings (spec/supplied.h) */
};

/* Of Weft's own types. */
const char *weft_layer_type_name(enum weft_layer_type type);
bool weft_layer_type_trains(enum weft_layer_type type);

struct weft_tensor {
    const char *name; /* "h.3.attn.qkv.weight", unique */
    int32_t layer;    /* owner */
    int32_t n_dims;   /* 1 or 2, row-major; a product y = x W^T + b has W of [outputs, inputs] */
    int64_t dims[2];
    int64_t elements;
    enum weft_init init;
    double init_std; /* of WEFT_INIT_NORMAL, whose mean is 0 */
    bool decays;     /* weight decay applies (matrices: yes; biases, norms: no) */
    bool trainable;  /* false when its layer is frozen */
};

/* X(enumerator, behind the tensor's name in files). What is kept of a tensor from step to step, in
 * f32; how many moments there are is the optimizer's. */
#define WEFT_STATE_MAP(X)                                                                          \
    X(PARAMETER, "")                                                                               \
    X(MOMENT1, ".moment1")                                                                         \
    X(MOMENT2, ".moment2")

enum weft_state {
#define WEFT_STATE_ENUMERATOR(name, text) WEFT_STATE_##name,
    WEFT_STATE_MAP(WEFT_STATE_ENUMERATOR)
#undef WEFT_STATE_ENUMERATOR
        WEFT_STATE_COUNT
};

struct weft_layer {
    const char *name; /* "h.3" */
    enum weft_layer_type type;
    bool frozen;
    bool bias;         /* linear, lm_head, classifier */
    int32_t tie;       /* lm_head: index of the embedding layer whose tokens it shares, or -1 */
    int64_t vocab;     /* embedding, lm_head */
    int64_t positions; /* embedding; 0 = no position table */
    int64_t hidden;    /* width of what flows in (and out, where the type keeps it) */
    int64_t outputs;   /* width of what flows out: linear's outputs, vocab, classes, else hidden */
    int64_t heads, kv_heads, ffn;    /* blocks */
    int64_t experts, active_experts; /* moe_block */
    /* On images: a row is channels x image x image numbers. */
    int64_t image, channels, filters, width, kernel, stride;
    bool norm; /* conv2d: normalised over the batch */
    /* custom: per sample of seq_len tokens */
    double forward_flops, backward_flops;
    int64_t parameters, output_bytes, saved_bytes, temporary_bytes;
    /* supplied; its parameters are counted above */
    const struct weft_layer_kind *supplied; /* outlives the model; NULL for other types */
    int64_t keys[WEFT_KIND_KEYS];
    /* Tensors that forward reads, in the fixed order of the type (see spec/layer.h). */
    int32_t n_tensors;
    int32_t tensors[WEFT_LAYER_TENSORS];
};

/* The name of the layer's type in configs. */
const char *weft_layer_type_of(const struct weft_layer *layer);

struct weft_model {
    struct weft_pool pool;
    int32_t n_layers;
    struct weft_layer *layers;
    int32_t n_tensors;
    struct weft_tensor *tensors; /* in order of their owners */
    int64_t parameters;          /* unique elements, tied once */
};

/* Gives every layer its tensors and checks sizes, names, ties and that shapes chain. `layers` is
 * copied into the model's pool; names too. Sizes that follow from others (outputs but of linear,
 * classifier and custom; kv_heads 0 = heads) are filled in, also an image layer's hidden, and what
 * a supplied layer's kind says of it.
 * WEFT_E_DATA naming the layer. */
WEFT_MUST_USE enum weft_status weft_model_create(const struct weft_layer *layers, int32_t n_layers,
                                                 struct weft_model **out, struct weft_error *err);
void weft_model_destroy(struct weft_model *model);

/* WEFT_OK when every layer has kernels and the chain can be trained on text (first layer an
 * embedding, or linear with seq_len 1; last layer lm_head or classifier); else WEFT_E_DATA saying
 * which layer cannot and what would work. */
WEFT_MUST_USE enum weft_status weft_model_trains(const struct weft_model *model, int64_t seq_len,
                                                 struct weft_error *err);

#endif
