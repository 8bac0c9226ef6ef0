/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/layers/walk.h"

struct functions {
    const struct weft_op *op;
    weft_nn_cpu_step_fn *forward;
    weft_nn_cpu_step_fn *backward; /* NULL: nothing is left to do */
};

static const struct functions table[] = {
#define ROW(name)                                                                                  \
    {                                                                                              \
        &weft_op_##name, weft_nn_cpu_##name##_forward, weft_nn_cpu_##name##_backward               \
    }
    ROW(product),
    ROW(norm),
    ROW(rope),
    ROW(gate),
    ROW(attend),
    ROW(activate),
    ROW(embed),
    ROW(mean_rows),
    ROW(first_rows),
    ROW(add_rows),
    {&weft_op_loss, weft_nn_cpu_loss_forward, NULL},
    {&weft_op_add, weft_nn_cpu_add_forward, NULL},
#undef ROW
};

static const struct functions *functions_of(const struct weft_op *op)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].op == op) return &table[i];
    return NULL;
}

/* Derives the walk of the call's layer, with ops that the CPU has. */
static enum weft_status derive_walk(const struct weft_nn_call *call, struct weft_walk *out,
                                    struct weft_error *err)
{
    WEFT_TRY(weft_walk_derive(call->layer, &call->batch, call->recompute, out, err));
    for (int32_t i = 0; i < out->n_steps; i++)
        if (functions_of(out->steps[i].op) == NULL)
            return weft_fail(err, WEFT_E_DATA, "layer %s (%s): the CPU has no kernel of \"%s\"",
                             call->layer->name, weft_layer_type_of(call->layer),
                             out->steps[i].op->name);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_walk_prepare(const struct weft_nn_call *call, struct weft_pool *pool,
                                          const void **out, struct weft_error *err)
{
    struct weft_walk *walk = weft_pool_array(pool, 1, sizeof *walk);
    if (walk == NULL) return weft_fail_memory(err, "the steps of a layer");
    WEFT_TRY(derive_walk(call, walk, err));
    *out = walk;
    return WEFT_OK;
}

/* Takes the call's prepared walk, or derives it into `own`. */
static enum weft_status begin_pass(const struct weft_nn_call *call, bool backward,
                                   struct weft_walk *own, struct weft_nn_pass *out,
                                   struct weft_error *err)
{
    if (call->prepared == NULL) WEFT_TRY(derive_walk(call, own, err));
    *out = weft_nn_pass_of(call, call->prepared != NULL ? call->prepared : own, backward);
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_walk_forward(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_call *call, struct weft_error *err)
{
    struct weft_walk own;
    struct weft_nn_pass pass;
    WEFT_TRY(begin_pass(call, false, &own, &pass, err));
    for (int32_t i = 0; i < pass.walk->n_steps; i++) {
        const struct weft_walk_step *step = &pass.walk->steps[i];
        struct weft_nn_walked at = weft_nn_step_forward(&pass, step);
        at.cpu = cpu;
        WEFT_TRY(functions_of(step->op)->forward(&at, err));
    }
    return WEFT_OK;
}

static enum weft_status restore_values(const struct weft_nn_cpu *cpu,
                                       const struct weft_nn_pass *pass, struct weft_error *err)
{
    for (int32_t i = 0; i < pass->walk->n_steps; i++) {
        const struct weft_walk_step *step = &pass->walk->steps[i];
        if (step->restore == WEFT_RESTORE_NONE) continue;
        struct weft_nn_walked at = weft_nn_step_forward(pass, step);
        at.cpu = cpu;
        WEFT_TRY(step->restore == WEFT_RESTORE_THEN ? weft_nn_cpu_product_then(&at, err)
                                                    : functions_of(step->op)->forward(&at, err));
    }
    return WEFT_OK;
}

static float scale_of_loss(const struct weft_nn_call *call)
{
    return (float)(call->scale != NULL ? call->loss_scale * *call->scale : call->loss_scale);
}

enum weft_status weft_nn_cpu_walk_backward(const struct weft_nn_cpu *cpu,
                                           const struct weft_nn_call *call, struct weft_error *err)
{
    struct weft_walk own;
    struct weft_nn_pass pass;
    WEFT_TRY(begin_pass(call, true, &own, &pass, err));
    WEFT_TRY(restore_values(cpu, &pass, err));
    for (int32_t i = pass.walk->n_steps - 1; i >= 0; i--) {
        const struct functions *functions = functions_of(pass.walk->steps[i].op);
        if (functions->backward == NULL) continue;
        struct weft_nn_walked at = weft_nn_step_backward(&pass, &pass.walk->steps[i]);
        at.cpu = cpu;
        if (pass.walk->steps[i].d_out == WEFT_GRADIENT_SAVED) at.scale = scale_of_loss(call);
        if (weft_nn_step_has_work(&at)) WEFT_TRY(functions->backward(&at, err));
    }
    return WEFT_OK;
}
