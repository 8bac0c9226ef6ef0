#include "runtime/nn/cpu/cpu.h"

/* By type. Types without functions are for planning alone. */
static const struct {
    weft_nn_cpu_fn *forward, *backward;
} functions_of[WEFT_LAYER_SUPPLIED + 1] = {
    [WEFT_LAYER_EMBEDDING] = {weft_nn_cpu_embedding_forward, weft_nn_cpu_embedding_backward},
    [WEFT_LAYER_TRANSFORMER_BLOCK] = {weft_nn_cpu_block_forward, weft_nn_cpu_block_backward},
    [WEFT_LAYER_LAYER_NORM] = {weft_nn_cpu_layer_norm_forward, weft_nn_cpu_layer_norm_backward},
    [WEFT_LAYER_LINEAR] = {weft_nn_cpu_linear_forward, weft_nn_cpu_linear_backward},
    [WEFT_LAYER_RELU] = {weft_nn_cpu_relu_forward, weft_nn_cpu_relu_backward},
    [WEFT_LAYER_GELU] = {weft_nn_cpu_gelu_forward, weft_nn_cpu_gelu_backward},
    [WEFT_LAYER_LM_HEAD] = {weft_nn_cpu_lm_head_forward, weft_nn_cpu_lm_head_backward},
    [WEFT_LAYER_CLASSIFIER] = {weft_nn_cpu_classifier_forward, weft_nn_cpu_classifier_backward},
    [WEFT_LAYER_SUPPLIED] = {weft_nn_cpu_supplied_forward, weft_nn_cpu_supplied_backward},
};

static enum weft_status run_layer(weft_nn_cpu_fn *function, const struct weft_nn *nn,
                                  const struct weft_nn_call *call, struct weft_error *err)
{
    if (!function) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the CPU kernels train no %s; weft_model_trains names the "
                         "layers that train",
                         call->layer->name, weft_layer_type_of(call->layer));
    }
    return function(weft_nn_cpu_of(nn), call, err);
}

enum weft_status weft_nn_cpu_forward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                     struct weft_error *err)
{
    return run_layer(functions_of[call->layer->type].forward, nn, call, err);
}

enum weft_status weft_nn_cpu_backward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_error *err)
{
    return run_layer(functions_of[call->layer->type].backward, nn, call, err);
}
