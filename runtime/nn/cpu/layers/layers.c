#include "runtime/nn/cpu/cpu.h"
#include "spec/kind.h"

struct functions {
    const struct weft_kind *kind;
    weft_nn_cpu_fn *forward, *backward;
};

/* Kinds that train. All others are for planning only. */
static const struct functions table[] = {
#define ROW(kind, name)                                                                            \
    {                                                                                              \
        &weft_kind_##kind, weft_nn_cpu_##name##_forward, weft_nn_cpu_##name##_backward             \
    }
    ROW(embedding, embedding),
    ROW(transformer_block, block),
    ROW(layer_norm, layer_norm),
    ROW(linear, linear),
    ROW(relu, relu),
    ROW(gelu, gelu),
    ROW(lm_head, lm_head),
    ROW(classifier, classifier),
#undef ROW
};
static const struct functions supplied = {NULL, weft_nn_cpu_supplied_forward,
                                          weft_nn_cpu_supplied_backward};
static const struct functions none = {NULL, NULL, NULL};

static const struct functions *functions_of(const struct weft_layer *layer)
{
    if (layer->kind->supplied != NULL) return &supplied;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].kind == layer->kind) return &table[i];
    }
    return &none;
}

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
    return run_layer(functions_of(call->layer)->forward, nn, call, err);
}

enum weft_status weft_nn_cpu_backward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_error *err)
{
    return run_layer(functions_of(call->layer)->backward, nn, call, err);
}
