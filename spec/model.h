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
#include "spec/layer.h"

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

struct weft_model {
    struct weft_pool pool;
    int32_t n_layers;
    struct weft_layer *layers;
    int32_t n_tensors;
    struct weft_tensor *tensors; /* in order of their owners */
    int64_t parameters;          /* unique elements, tied once */
};

/* Gives every layer its tensors and checks sizes, names, ties and that shapes chain. `layers` is
 * copied into the model's pool; names too. Sizes that follow from others are filled in as the
 * layer's kind has it. WEFT_E_DATA naming the layer. */
WEFT_MUST_USE enum weft_status weft_model_create(const struct weft_layer *layers, int32_t n_layers,
                                                 struct weft_model **out, struct weft_error *err);
void weft_model_destroy(struct weft_model *model);

/* WEFT_E_DATA when all parameters are frozen; a model without any may be planned. */
WEFT_MUST_USE enum weft_status weft_model_learns(const struct weft_model *model,
                                                 struct weft_error *err);

/* WEFT_OK when every layer has kernels and the chain can be trained on text (first layer an
 * embedding, or linear with seq_len 1; last layer lm_head or classifier); else WEFT_E_DATA saying
 * which layer cannot and what would work. */
WEFT_MUST_USE enum weft_status weft_model_trains(const struct weft_model *model, int64_t seq_len,
                                                 struct weft_error *err);

/* Bytes of the model's input and targets for one micro-step, held from the first forward to the
 * first layer's backward (input) and from the first forward to the last layer's backward
 * (targets). */
int64_t weft_model_input_bytes(const struct weft_model *model, const struct weft_batch *batch);
/* The same before it is loaded: numbers are fp32 then, whatever the layers compute in. */
int64_t weft_model_host_input_bytes(const struct weft_model *model, const struct weft_batch *batch);
int64_t weft_model_target_bytes(const struct weft_model *model, const struct weft_batch *batch);
/* How many targets there are: one a row, one a sample, or none. */
int64_t weft_model_targets(const struct weft_model *model, const struct weft_batch *batch);
/* Whether its input is tokens, and whether its loss is one of classes of whole samples. */
bool weft_model_reads_tokens(const struct weft_model *model);
bool weft_model_tells_classes(const struct weft_model *model);

#endif
