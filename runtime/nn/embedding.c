#include <string.h>

#include "runtime/nn/cpu.h"

static enum weft_status check_tokens(const struct weft_nn_call *call, struct weft_error *err)
{
    const int32_t *tokens = call->input;
    const int64_t rows = call->batch.samples * call->batch.seq_len;
    for (int64_t i = 0; i < rows; i++) {
        if (tokens[i] < 0 || tokens[i] >= call->layer->vocab) {
            return weft_fail(
                err, WEFT_E_DATA,
                "layer %s: token %d at position %lld of sample %lld is outside the "
                "vocabulary 0 to %lld",
                call->layer->name, (int)tokens[i], (long long)(i % call->batch.seq_len),
                (long long)(i / call->batch.seq_len), (long long)call->layer->vocab - 1);
        }
    }
    return WEFT_OK;
}

enum weft_status weft_nn_cpu_embedding_forward(const struct weft_nn_cpu *cpu,
                                               const struct weft_nn_call *call,
                                               struct weft_error *err)
{
    WEFT_TRY(check_tokens(call, err));
    const int64_t width = call->layer->hidden, rows = call->batch.samples * call->batch.seq_len;
    const float *positions = call->layer->positions > 0 ? call->tensors[1] : NULL;
    const int32_t *tokens = call->input;
    for (int64_t i = 0; i < rows; i++) {
        cpu->kernels->fill(1, width, call->tensors[0] + tokens[i] * width,
                           positions ? positions + i % call->batch.seq_len * width : NULL,
                           call->output + i * width);
    }
    return WEFT_OK;
}

/* Row i of dy is added to row `row_of_i` of each table, in the order of i: tokens repeat, and the
 * order of their sum must not depend on anything else. */
enum weft_status weft_nn_cpu_embedding_backward(const struct weft_nn_cpu *cpu,
                                                const struct weft_nn_call *call,
                                                struct weft_error *err)
{
    WEFT_TRY(check_tokens(call, err));
    const int64_t width = call->layer->hidden, rows = call->batch.samples * call->batch.seq_len;
    const int64_t table_rows[2] = {call->layer->vocab, call->layer->positions};
    const int32_t *tokens = call->input;
    for (int tensor = 0; tensor < 2; tensor++) {
        float *gradient = call->gradients[tensor];
        if (!gradient || table_rows[tensor] == 0) continue;
        if (!call->accumulate[tensor]) {
            memset(gradient, 0, (size_t)(table_rows[tensor] * width) * sizeof(float));
        }
        for (int64_t i = 0; i < rows; i++) {
            const int64_t row = tensor == 0 ? tokens[i] : i % call->batch.seq_len;
            cpu->kernels->add_to(width, 1, call->output_gradient + i * width, true,
                                 gradient + row * width);
        }
    }
    return WEFT_OK;
}
