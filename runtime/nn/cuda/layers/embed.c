/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/layers/walk.h"

enum { TOKENS, POSITIONS };

static struct weft_cuda_embedding embedding_of(const struct weft_nn_walked *at)
{
    return (struct weft_cuda_embedding){.rows = at->in[0].rows,
                                        .width = at->out[0].columns,
                                        .seq_len = at->call->batch.seq_len,
                                        .vocab = at->step->sizes.vocab,
                                        .tokens = at->in[0].data};
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
