#include "runtime/nn/cpu/cpu.h"
#include "spec/kind.h"

struct functions {
    const struct weft_kind *kind;
    weft_nn_cpu_fn *forward, *backward;
    bool restores; /* every level that the kind has */
};

/* Kinds that train. All others are for planning only. */
static const struct functions table[] = {
#define ROW(kind, name, ...)                                                                       \
    {                                                                                              \
        &weft_kind_##kind, weft_nn_cpu_##name##_forward, weft_nn_cpu_##name##_backward,            \
            __VA_ARGS__                                                                            \
    }
    ROW(embedding, embedding, .restores = false),
    ROW(transformer_block, block, .restores = true),
    ROW(layer_norm, layer_norm, .restores = false),
    ROW(linear, linear, .restores = false),
    ROW(relu, relu, .restores = false),
    ROW(gelu, gelu, .restores = false),
    ROW(lm_head, lm_head, .restores = false),
    ROW(classifier, classifier, .restores = false),
#undef ROW
};
static const struct functions supplied = {NULL, weft_nn_cpu_supplied_forward,
                                          weft_nn_cpu_supplied_backward, false};
static const struct functions none = {NULL, NULL, NULL, false};

static const struct functions *functions_of(const struct weft_layer *layer)
{
    if (layer->kind->supplied != NULL) return &supplied;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].kind == layer->kind) return &table[i];
    }
    return &none;
}

static enum weft_status run_layer(weft_nn_cpu_fn *function, bool restores, const struct weft_nn *nn,
                                  const struct weft_nn_call *call, struct weft_error *err)
{
    if (call->recompute != WEFT_RECOMPUTE_NONE && !restores) {
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the CPU kernels restore no saved activations of a %s; set "
                         "plan.recompute to \"none\"",
                         call->layer->name, weft_layer_type_of(call->layer));
    }
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
    const struct functions *functions = functions_of(call->layer);
    return run_layer(functions->forward, functions->restores, nn, call, err);
}

enum weft_status weft_nn_cpu_backward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_error *err)
{
    const struct functions *functions = functions_of(call->layer);
    return run_layer(functions->backward, functions->restores, nn, call, err);
}
