/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/step.h"

struct weft_nn_pass weft_nn_pass_of(const struct weft_nn_call *call, const struct weft_walk *walk,
                                    bool backward)
{
    const int64_t bytes = backward ? walk->backward_bytes : walk->forward_bytes;
    const bool drops = call->recompute != WEFT_RECOMPUTE_NONE;
    return (struct weft_nn_pass){
        .call = call,
        .walk = walk,
        .backward = backward,
        .dropped = drops ? weft_nn_part(call->temporary, weft_dropped_offset(bytes)) : NULL};
}

static int64_t element_bytes(const struct weft_nn_pass *pass, const struct weft_value *value)
{
    return weft_value_element(pass->walk, value);
}

/* The memory of a value's place. */
static char *value_data(const struct weft_nn_pass *pass, int32_t value)
{
    const struct weft_value *place = &pass->walk->values[pass->walk->values[value].place];
    switch (place->location) {
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
static struct weft_nn_operand columns_of(const struct weft_nn_pass *pass, char *data,
                                         const struct weft_value *value,
                                         const struct weft_span *span)
{
    if (data != NULL) data += span->from * element_bytes(pass, value);
    return (struct weft_nn_operand){data, value->rows, span->to - span->from,
                                    value->columns + value->gap};
}

static struct weft_nn_operand span_operand(const struct weft_nn_pass *pass,
                                           const struct weft_span *span)
{
    if (span->value == WEFT_WALK_NONE) return (struct weft_nn_operand){0};
    return columns_of(pass, value_data(pass, span->value), &pass->walk->values[span->value], span);
}

static struct weft_nn_operand value_operand(const struct weft_nn_pass *pass, int32_t value)
{
    const struct weft_span span = {value, 0, pass->walk->values[value].columns};
    return span_operand(pass, &span);
}

/* Columns of a gradient. They may lie among columns of another one. */
static struct weft_nn_operand gradient_operand(const struct weft_nn_pass *pass, int32_t index,
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

struct weft_nn_walked weft_nn_step_forward(const struct weft_nn_pass *pass,
                                           const struct weft_walk_step *step)
{
    struct weft_nn_walked at = {.call = pass->call, .walk = pass->walk, .step = step, .scale = 1};
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
static bool is_wanted(const struct weft_nn_pass *pass, int32_t value)
{
    return pass->walk->values[value].trains || pass->call->input_gradient != NULL;
}

struct weft_nn_walked weft_nn_step_backward(const struct weft_nn_pass *pass,
                                            const struct weft_walk_step *step)
{
    const struct weft_nn_call *call = pass->call;
    struct weft_nn_walked at = weft_nn_step_forward(pass, step);
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
    at.sums = weft_nn_part(call->temporary, pass->walk->sums);
    return at;
}

bool weft_nn_step_has_work(const struct weft_nn_walked *at)
{
    bool works = at->step->n_tensors > 0;
    for (int32_t i = 0; i < at->step->n_in; i++)
        works = works || at->d_in[i].data != NULL;
    return works && (at->d_out.data != NULL || at->step->op->is_loss);
}
