/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/recipe/op.h"
#include "layers/shared/place.h"
#include "runtime/nn/cuda/choices/attention_choices.h"
#include "runtime/nn/cuda/layers/walk.h"

enum { QUERY, KEY, VALUE };

static struct weft_cuda_heads heads_of(const struct weft_nn_walked *at)
{
    const struct weft_nn_operand *in = at->in;
    const int64_t window = at->step->sizes.window, seq_len = at->call->batch.seq_len;
    return (struct weft_cuda_heads){
        .dtype = at->call->batch.compute,
        .samples = at->call->batch.samples,
        .seq_len = seq_len,
        .heads = at->step->sizes.heads,
        .kv_heads = at->step->sizes.kv_heads,
        .size = at->step->sizes.head_dim,
        .query = in[QUERY].data,
        .key = in[KEY].data,
        .value = in[VALUE].data,
        .query_stride = in[QUERY].stride,
        .key_stride = in[KEY].stride,
        .value_stride = in[VALUE].stride,
        .scalar = at->step->numbers.scalar,
        .mask = {.both_ways = at->step->sizes.causal == 0,
                 .window = window < seq_len ? window : 0,
                 .cap = (float)at->step->numbers.cap,
                 .tokens = weft_attend_hides(at->walk, at->step) ? at->call->tokens : NULL,
                 .padding = at->call->batch.padding}};
}

/* The same heads of one sample. */
static struct weft_cuda_heads sample_of(const struct weft_cuda_heads *all, int64_t sample)
{
    struct weft_cuda_heads heads = *all;
    const int64_t row = sample * all->seq_len;
    heads.samples = 1;
    if (heads.mask.tokens != NULL) heads.mask.tokens += row;
    heads.query = weft_nn_at(all->dtype, all->query, row * all->query_stride);
    heads.key = weft_nn_at(all->dtype, all->key, row * all->key_stride);
    heads.value = weft_nn_at(all->dtype, all->value, row * all->value_stride);
    return heads;
}

static struct weft_cuda_head_gradients gradients_of(const struct weft_nn_walked *at,
                                                    const struct weft_cuda_heads *all,
                                                    int64_t sample)
{
    const int64_t row = sample * all->seq_len;
    return (struct weft_cuda_head_gradients){
        .query = weft_nn_to(all->dtype, at->d_in[QUERY].data, row * all->query_stride),
        .key = weft_nn_to(all->dtype, at->d_in[KEY].data, row * all->key_stride),
        .value = weft_nn_to(all->dtype, at->d_in[VALUE].data, row * all->value_stride)};
}

/* Bytes of score matrices in the scratch, as the op counts them. */
static int64_t score_bytes(const struct weft_cuda_heads *heads)
{
    const int64_t elements = heads->samples * heads->heads * heads->seq_len * heads->seq_len;
    const int64_t unit = WEFT_LAYOUT_ALIGN_BYTES;
    return (elements * weft_dtype_bytes(heads->dtype) + unit - 1) / unit * unit;
}

static bool saves_probabilities(const struct weft_nn_walked *at)
{
    return at->step->from->save != WEFT_WORD_LOG_SUMS;
}

/* Rows of a sample in the output, and in its gradient. */
static int64_t output_at(const struct weft_cuda_heads *heads, int64_t sample)
{
    return sample * heads->seq_len * heads->heads * heads->size;
}

int weft_cuda_attend_forward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_cuda_heads all = heads_of(at);
    if (weft_cuda_on_tensor_cores(s->cuda->plain, at->walk, at->step))
        return weft_cuda_attention_forward(s->cuda, at->walk, at->step, &all, at->out[0].data,
                                           at->statistics[0], s->scratch, s->on);
    if (saves_probabilities(at))
        return weft_cuda_attend_plain(&all, NULL, at->statistics[0], at->out[0].data, s->on);
    int code = 0;
    for (int64_t i = 0; i < all.samples && code == 0; i++) {
        const struct weft_cuda_heads heads = sample_of(&all, i);
        code = weft_cuda_attend_plain(&heads, NULL, s->scratch,
                                      weft_nn_to(all.dtype, at->out[0].data, output_at(&all, i)),
                                      s->on);
    }
    return code;
}

/* Backward of a sample whose probabilities are not saved. The scratch has them, gradients of
 * scores, with a cap the scores before it, and sums. */
static int backward_again(const struct weft_cuda_walked *s, const struct weft_cuda_heads *all,
                          int64_t sample)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_cuda_heads heads = sample_of(all, sample);
    const struct weft_cuda_head_gradients to = gradients_of(at, all, sample);
    const void *d_output = weft_nn_at(all->dtype, at->d_out.data, output_at(all, sample));
    char *d_scores = s->scratch + score_bytes(&heads), *next = d_scores + score_bytes(&heads);
    void *uncapped = heads.mask.cap > 0 ? next : NULL;
    float *sums = (float *)(void *)(uncapped != NULL ? next + score_bytes(&heads) : next);
    const int code = weft_cuda_attend_plain(&heads, uncapped, s->scratch, NULL, s->on);
    if (code != 0) return code;
    return weft_cuda_attend_plain_backward(&heads, uncapped, s->scratch, d_output, d_scores, sums,
                                           &to, s->on);
}

int weft_cuda_attend_step_backward(const struct weft_cuda_walked *s)
{
    const struct weft_nn_walked *at = s->at;
    const struct weft_cuda_heads all = heads_of(at);
    const struct weft_cuda_head_gradients to = gradients_of(at, &all, 0);
    if (weft_cuda_on_tensor_cores(s->cuda->plain, at->walk, at->step))
        return weft_cuda_attention_backward(s->cuda, at->walk, at->step, &all, at->out[0].data,
                                            at->statistics[0], at->d_out.data, s->scratch, &to,
                                            s->on);
    if (saves_probabilities(at))
        return weft_cuda_attend_plain_backward(
            &all, NULL, at->statistics[0], at->d_out.data, s->scratch,
            (float *)(void *)(s->scratch + score_bytes(&all)), &to, s->on);
    int code = 0;
    for (int64_t i = 0; i < all.samples && code == 0; i++)
        code = backward_again(s, &all, i);
    return code;
}
