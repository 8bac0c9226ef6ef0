/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers.h"
#include "runtime/nn/cuda/layers/walk.h"

enum { TOKENS, POSITIONS };

/* The scale of token rows, as a number of the compute dtype: models were trained with that. */
static float scale_of(const struct weft_nn_walked *at)
{
    const float given = (float)at->step->numbers.scale;
    switch (at->call->batch.compute) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        return given;
    case WEFT_BF16:
        return weft_bf16_widen(weft_bf16_narrow(given));
    case WEFT_F16:
        return weft_f16_widen(weft_f16_narrow(given));
    }
    return given;
}

static struct weft_cuda_embedding embedding_of(const struct weft_nn_walked *at)
{
    return (struct weft_cuda_embedding){.rows = at->in[0].rows,
                                        .width = at->out[0].columns,
                                        .seq_len = at->call->batch.seq_len,
                                        .vocab = at->step->sizes.vocab,
                                        .tokens = at->in[0].data,
                                        .scale = scale_of(at)};
}

int weft_cuda_embed_forward(const struct weft_cuda_walked *s)
{
    const struct weft_cuda_embedding embedding = embedding_of(s->at);
    return weft_cuda_embed(weft_cuda_step_dtype(s), &embedding, weft_nn_step_weight(s->at, TOKENS),
                           weft_nn_step_weight(s->at, POSITIONS), s->at->out[0].data, s->found,
                           s->on);
}

static struct weft_cuda_table table_of(const struct weft_nn_walked *at, int32_t index)
{
    const int32_t tensor = weft_nn_step_tensor(at, index);
    return (struct weft_cuda_table){.dy = at->d_out.data,
                                    .gradient_dtype = at->call->gradient_dtype,
                                    .accumulate = at->call->accumulate[tensor],
                                    .gradient = at->call->gradients[tensor]};
}

int weft_cuda_embed_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_cuda_embedding embedding = embedding_of(at);
    const struct weft_cuda_table tokens = table_of(at, TOKENS);
    int code = 0;
    if (tokens.gradient != NULL)
        code = weft_cuda_embed_tokens(weft_cuda_step_dtype(s), &embedding, &tokens, s->on);
    if (code != 0 || at->step->n_tensors <= POSITIONS) return code;
    const struct weft_cuda_table positions = table_of(at, POSITIONS);
    if (positions.gradient == NULL) return 0;
    return weft_cuda_embed_positions(weft_cuda_step_dtype(s), &embedding, at->step->sizes.positions,
                                     &positions, s->on);
}
