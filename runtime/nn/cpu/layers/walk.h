/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of a layer's steps (layers/recipe/walk.h). An op is one row of the table in walk.c: its
 * functions work on one step with the addresses of a call. They are synchronous, allocate nothing
 * and touch no other bytes. */
#ifndef WEFT_RUNTIME_NN_CPU_LAYERS_WALK_H
#define WEFT_RUNTIME_NN_CPU_LAYERS_WALK_H

#include "runtime/nn/cpu/cpu.h"
#include "runtime/nn/step.h"

typedef enum weft_status weft_nn_cpu_step_fn(const struct weft_nn_walked *at,
                                             struct weft_error *err);

weft_nn_cpu_step_fn weft_nn_cpu_product_forward, weft_nn_cpu_product_backward;
weft_nn_cpu_step_fn weft_nn_cpu_product_then; /* computes only the activation */
weft_nn_cpu_step_fn weft_nn_cpu_norm_forward, weft_nn_cpu_norm_backward;
weft_nn_cpu_step_fn weft_nn_cpu_rope_forward, weft_nn_cpu_rope_backward;
weft_nn_cpu_step_fn weft_nn_cpu_gate_forward, weft_nn_cpu_gate_backward;
weft_nn_cpu_step_fn weft_nn_cpu_attend_forward, weft_nn_cpu_attend_backward;
weft_nn_cpu_step_fn weft_nn_cpu_activate_forward, weft_nn_cpu_activate_backward;
weft_nn_cpu_step_fn weft_nn_cpu_embed_forward, weft_nn_cpu_embed_backward;
weft_nn_cpu_step_fn weft_nn_cpu_mean_rows_forward, weft_nn_cpu_mean_rows_backward;
weft_nn_cpu_step_fn weft_nn_cpu_first_rows_forward, weft_nn_cpu_first_rows_backward;
weft_nn_cpu_step_fn weft_nn_cpu_add_rows_forward, weft_nn_cpu_add_rows_backward;
weft_nn_cpu_step_fn weft_nn_cpu_loss_forward, weft_nn_cpu_add_forward;

static inline const struct weft_layer_kernels *weft_nn_step_kernels(const struct weft_nn_walked *at)
{
    return at->cpu->kernels->layers[at->call->batch.compute];
}

/* Writes or adds alpha times n sums to the gradient of the step's tensor, unless it is frozen. */
static inline void weft_nn_step_give(const struct weft_nn_walked *at, int32_t index, int64_t n,
                                     float alpha, const float *sums)
{
    const int32_t tensor = weft_nn_step_tensor(at, index);
    const struct weft_nn_call *call = at->call;
    if (call->gradients[tensor] == NULL) return;
    at->cpu->kernels->layers[call->gradient_dtype]->add_to(n, alpha, sums, call->accumulate[tensor],
                                                           call->gradients[tensor]);
}

#endif
