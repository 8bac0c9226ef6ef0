/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "layers/supplied.h"
#include "runtime/nn/cpu/cpu.h"

static struct weft_layer_call call_of(const struct weft_nn_call *call)
{
    const struct weft_layer *layer = call->layer;
    struct weft_layer_call out = {
        .facts = weft_supplied_facts(layer, &call->batch),
        .rows = call->batch.samples * call->batch.seq_len,
        .outputs = layer->outputs,
        .input = call->input,
        .output = call->output,
        .saved = call->saved,
        .temporary = call->temporary,
        .output_gradient = call->output_gradient,
        .input_gradient = call->input_gradient,
        .gradient_dtype = call->gradient_dtype,
    };
    memcpy(out.tensors, call->tensors, sizeof out.tensors);
    memcpy(out.gradients, call->gradients, sizeof out.gradients);
    memcpy(out.accumulate, call->accumulate, sizeof out.accumulate);
    return out;
}

enum weft_status weft_nn_cpu_supplied_forward(const struct weft_nn_cpu *cpu,
                                              const struct weft_nn_call *call,
                                              struct weft_error *err)
{
    (void)cpu;
    const struct weft_layer_kind *kind = call->layer->kind->supplied;
    const struct weft_layer_call given = call_of(call);
    struct weft_error said = {0};
    enum weft_status status = kind->forward(kind->context, &given, &said);
    return weft_supplied_verdict(call->layer, "its forward function failed", status, &said, err);
}

enum weft_status weft_nn_cpu_supplied_backward(const struct weft_nn_cpu *cpu,
                                               const struct weft_nn_call *call,
                                               struct weft_error *err)
{
    (void)cpu;
    const struct weft_layer_kind *kind = call->layer->kind->supplied;
    const struct weft_layer_call given = call_of(call);
    struct weft_error said = {0};
    enum weft_status status = kind->backward(kind->context, &given, &said);
    return weft_supplied_verdict(call->layer, "its backward function failed", status, &said, err);
}
