#include <string.h>

#include "layers/embedding.h"
#include "runtime/nn/cpu/cpu.h"

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
    const enum weft_dtype dtype = call->batch.compute;
    const int64_t width = call->layer->hidden, rows = call->batch.samples * call->batch.seq_len;
    const void *positions = weft_embedding_positions(call->layer) > 0 ? call->tensors[1] : NULL;
    const int32_t *tokens = call->input;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t position = i % call->batch.seq_len * width;
        weft_nn_kernels(cpu, call)->fill(1, width,
                                         weft_nn_at(dtype, call->tensors[0], tokens[i] * width),
                                         positions ? weft_nn_at(dtype, positions, position) : NULL,
                                         width, weft_nn_to(dtype, call->output, i * width));
    }
    return WEFT_OK;
}

/* gradient += row, widened in pieces on the stack. */
static void add_row(const struct weft_nn_cpu *cpu, const struct weft_nn_call *call, const void *row,
                    void *gradient)
{
    enum { PIECE = 1024 };
    const enum weft_dtype from = call->batch.compute, to = call->gradient_dtype;
    const int64_t width = call->layer->hidden;
    float wide[PIECE];
    for (int64_t at = 0; at < width; at += PIECE) {
        const int64_t n = width - at < PIECE ? width - at : PIECE;
        const void *piece = weft_nn_at(from, row, at);
        if (from != WEFT_F32) cpu->kernels->widen(from, n, piece, wide);
        cpu->kernels->layers[to]->add_to(n, 1, from == WEFT_F32 ? piece : wide, true,
                                         weft_nn_to(to, gradient, at));
    }
}

/* Adds row i of dy to its row of each table, in the order of i. Tokens repeat, and the order of
 * their sum must be fixed. */
enum weft_status weft_nn_cpu_embedding_backward(const struct weft_nn_cpu *cpu,
                                                const struct weft_nn_call *call,
                                                struct weft_error *err)
{
    WEFT_TRY(check_tokens(call, err));
    const enum weft_dtype from = call->batch.compute, to = call->gradient_dtype;
    const int64_t width = call->layer->hidden, rows = call->batch.samples * call->batch.seq_len;
    const int64_t table_rows[2] = {call->layer->vocab, weft_embedding_positions(call->layer)};
    const int32_t *tokens = call->input;
    for (int tensor = 0; tensor < 2; tensor++) {
        void *gradient = call->gradients[tensor];
        if (!gradient || table_rows[tensor] == 0) continue;
        if (!call->accumulate[tensor]) {
            memset(gradient, 0, (size_t)(table_rows[tensor] * width * weft_dtype_bytes(to)));
        }
        for (int64_t i = 0; i < rows; i++) {
            const int64_t row = tensor == 0 ? tokens[i] : i % call->batch.seq_len;
            add_row(cpu, call, weft_nn_at(from, call->output_gradient, i * width),
                    weft_nn_to(to, gradient, row * width));
        }
    }
    return WEFT_OK;
}
