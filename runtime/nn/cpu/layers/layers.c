/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/recipe.h"
#include "runtime/nn/cpu/cpu.h"

struct functions {
    weft_nn_cpu_fn *forward, *backward;
};

static const struct functions walk = {weft_nn_cpu_walk_forward, weft_nn_cpu_walk_backward};
static const struct functions supplied = {weft_nn_cpu_supplied_forward,
                                          weft_nn_cpu_supplied_backward};

/* NULL for a kind for planning only. */
static const struct functions *functions_of(const struct weft_layer *layer)
{
    if (layer->kind->supplied != NULL) return &supplied;
    return layer->kind->trains && layer->kind->recipe != NULL ? &walk : NULL;
}

static enum weft_status check_call(const struct weft_nn_call *call, struct weft_error *err)
{
    if (functions_of(call->layer) == NULL)
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the CPU kernels train no %s; weft_model_trains names the "
                         "layers that train",
                         call->layer->name, weft_layer_type_of(call->layer));
    if (call->recompute != WEFT_RECOMPUTE_NONE &&
        (call->layer->kind->recipe == NULL || !call->layer->kind->recipe->recomputes))
        return weft_fail(err, WEFT_E_DATA,
                         "layer %s: the CPU kernels restore no saved activations of a %s; set "
                         "plan.recompute to \"none\"",
                         call->layer->name, weft_layer_type_of(call->layer));
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_prepare(const struct weft_nn *nn, const struct weft_nn_call *call,
                                     struct weft_pool *pool, const void **out,
                                     struct weft_error *err)
{
    (void)nn;
    WEFT_TRY(check_call(call, err));
    if (functions_of(call->layer) != &walk) return WEFT_OK;
    return weft_nn_cpu_walk_prepare(call, pool, out, err);
}

enum weft_status weft_nn_cpu_forward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                     struct weft_error *err)
{
    WEFT_TRY(check_call(call, err));
    return functions_of(call->layer)->forward(weft_nn_cpu_of(nn), call, err);
}

enum weft_status weft_nn_cpu_backward(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_error *err)
{
    WEFT_TRY(check_call(call, err));
    return functions_of(call->layer)->backward(weft_nn_cpu_of(nn), call, err);
}
