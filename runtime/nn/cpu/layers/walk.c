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

/* A pass over a call's steps: addresses of places. */
struct pass {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_call *call;
    const struct weft_walk *walk;
    bool backward;
    char *dropped;
};

static int64_t element_bytes(const struct pass *pass, const struct weft_value *value)
{
    return weft_value_element(pass->walk, value);
}

/* The memory of a value's place. */
static char *value_data(const struct pass *pass, int32_t value)
{
    const struct weft_value *place = &pass->walk->values[pass->walk->values[value].place];
    switch (place->home) {
    case WEFT_VALUE_INPUT:
        return (char *)(uintptr_t)pass->call->input;
    case WEFT_VALUE_OUTPUT:
        return pass->call->output;
    case WEFT_VALUE_KEPT:
        return weft_nn_part(pass->call->saved, place->offset);
    case WEFT_VALUE_DROPPED:
        return weft_nn_part(pass->dropped, place->offset);
    case WEFT_VALUE_TEMPORARY:
        return weft_nn_part(pass->call->temporary, place->offset);
    }
    return NULL;
}

/* Columns of a matrix of the value's shape. */
static struct weft_nn_operand columns_of(const struct pass *pass, char *data,
                                         const struct weft_value *value,
                                         const struct weft_span *span)
{
    if (data != NULL) data += span->from * element_bytes(pass, value);
    return (struct weft_nn_operand){data, value->rows, span->to - span->from,
                                    value->columns + value->gap};
}

static struct weft_nn_operand span_operand(const struct pass *pass, const struct weft_span *span)
{
    if (span->value == WEFT_WALK_NONE) return (struct weft_nn_operand){0};
    return columns_of(pass, value_data(pass, span->value), &pass->walk->values[span->value], span);
}

static struct weft_nn_operand value_operand(const struct pass *pass, int32_t value)
{
    const struct weft_span span = {value, 0, pass->walk->values[value].columns};
    return span_operand(pass, &span);
}

/* Columns of a gradient. They may lie among columns of another one. */
static struct weft_nn_operand gradient_operand(const struct pass *pass, int32_t index,
                                               const struct weft_span *span)
{
    if (index == WEFT_WALK_NONE) return (struct weft_nn_operand){0};
    const struct weft_nn_call *call = pass->call;
    const struct weft_gradient *gradient = &pass->walk->gradients[index];
    const struct weft_value *value = &pass->walk->values[span->value];
    if (index == WEFT_GRADIENT_OUTPUT)
        return columns_of(pass, (char *)(uintptr_t)call->output_gradient, value, span);
    if (index == WEFT_GRADIENT_INPUT) return columns_of(pass, call->input_gradient, value, span);
    if (index == WEFT_GRADIENT_SAVED)
        return columns_of(pass, value_data(pass, gradient->value), value, span);
    if (gradient->into != WEFT_WALK_NONE) {
        const int64_t at = gradient->column;
        const struct weft_gradient *into = &pass->walk->gradients[gradient->into];
        const struct weft_span part = {into->value, at + span->from, at + span->to};
        return gradient_operand(pass, gradient->into, &part);
    }
    return columns_of(pass, weft_nn_part(call->temporary, gradient->offset), value, span);
}

static struct weft_nn_cpu_step forward_step(const struct pass *pass,
                                            const struct weft_walk_step *step)
{
    struct weft_nn_cpu_step at = {
        .cpu = pass->cpu, .call = pass->call, .walk = pass->walk, .step = step, .scale = 1};
    for (int32_t i = 0; i < step->n_in; i++)
        at.in[i] = span_operand(pass, &step->in[i]);
    at.add = span_operand(pass, &step->add);
    for (int32_t i = 0; i < step->n_out; i++)
        at.out[i] = value_operand(pass, step->out[i]);
    for (int32_t i = 0; i < step->n_statistics; i++)
        at.statistics[i] = value_data(pass, step->statistics[i]);
    at.scores = weft_nn_part(pass->call->temporary,
                             pass->backward ? pass->walk->scores : pass->walk->forward_scores);
    return at;
}

/* True if backward needs the gradient of the value. */
static bool is_wanted(const struct pass *pass, int32_t value)
{
    return pass->walk->values[value].trains || pass->call->input_gradient != NULL;
}

static struct weft_nn_cpu_step backward_step(const struct pass *pass,
                                             const struct weft_walk_step *step)
{
    const struct weft_nn_call *call = pass->call;
    struct weft_nn_cpu_step at = forward_step(pass, step);
    const int32_t last = step->out[step->n_out - 1];
    const struct weft_span out = {last, 0, pass->walk->values[last].columns};
    at.d_out = gradient_operand(pass, step->d_out, &out);
    at.turned = gradient_operand(pass, step->turned, &out);
    for (int32_t i = 0; i < step->n_in; i++) {
        if (!is_wanted(pass, step->in[i].value)) continue;
        at.d_in[i] = gradient_operand(pass, step->d_in[i], &step->in[i]);
        at.old[i] = gradient_operand(pass, step->old[i], &step->in[i]);
    }
    if (step->slope != WEFT_WALK_NONE)
        at.slope = value_operand(pass, pass->walk->steps[step->slope].out[0]);
    if (step->d_out == WEFT_GRADIENT_SAVED)
        at.scale =
            (float)(call->scale != NULL ? call->loss_scale * *call->scale : call->loss_scale);
    at.sums = weft_nn_part(call->temporary, pass->walk->sums);
    return at;
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
static enum weft_status begin_pass(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call,
                                   bool backward, struct weft_walk *own, struct pass *out,
                                   struct weft_error *err)
{
    if (call->prepared == NULL) WEFT_TRY(derive_walk(call, own, err));
    const struct weft_walk *walk = call->prepared != NULL ? call->prepared : own;
    const int64_t bytes = backward ? walk->backward_bytes : walk->forward_bytes;
    const bool drops = call->recompute != WEFT_RECOMPUTE_NONE;
    *out = (struct pass){
        .cpu = cpu,
        .call = call,
        .walk = walk,
        .backward = backward,
        .dropped = drops ? weft_nn_part(call->temporary, weft_dropped_offset(bytes)) : NULL};
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_walk_forward(const struct weft_nn_cpu *cpu,
                                          const struct weft_nn_call *call, struct weft_error *err)
{
    struct weft_walk own;
    struct pass pass;
    WEFT_TRY(begin_pass(cpu, call, false, &own, &pass, err));
    for (int32_t i = 0; i < pass.walk->n_steps; i++) {
        const struct weft_walk_step *step = &pass.walk->steps[i];
        const struct weft_nn_cpu_step at = forward_step(&pass, step);
        WEFT_TRY(functions_of(step->op)->forward(&at, err));
    }
    return WEFT_OK;
}

static enum weft_status restore_values(const struct pass *pass, struct weft_error *err)
{
    for (int32_t i = 0; i < pass->walk->n_steps; i++) {
        const struct weft_walk_step *step = &pass->walk->steps[i];
        if (step->restore == WEFT_RESTORE_NONE) continue;
        const struct weft_nn_cpu_step at = forward_step(pass, step);
        WEFT_TRY(step->restore == WEFT_RESTORE_THEN ? weft_nn_cpu_product_then(&at, err)
                                                    : functions_of(step->op)->forward(&at, err));
    }
    return WEFT_OK;
}

/* True if the step has a gradient to compute. */
static bool has_work(const struct weft_nn_cpu_step *at)
{
    bool works = at->step->n_tensors > 0;
    for (int32_t i = 0; i < at->step->n_in; i++)
        works = works || at->d_in[i].data != NULL;
    return works && (at->d_out.data != NULL || at->step->op->is_loss);
}

enum weft_status weft_nn_cpu_walk_backward(const struct weft_nn_cpu *cpu,
                                           const struct weft_nn_call *call, struct weft_error *err)
{
    struct weft_walk own;
    struct pass pass;
    WEFT_TRY(begin_pass(cpu, call, true, &own, &pass, err));
    WEFT_TRY(restore_values(&pass, err));
    for (int32_t i = pass.walk->n_steps - 1; i >= 0; i--) {
        const struct functions *functions = functions_of(pass.walk->steps[i].op);
        if (functions->backward == NULL) continue;
        const struct weft_nn_cpu_step at = backward_step(&pass, &pass.walk->steps[i]);
        if (has_work(&at)) WEFT_TRY(functions->backward(&at, err));
    }
    return WEFT_OK;
}
