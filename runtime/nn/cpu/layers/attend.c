/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "layers/recipe/op.h"
#include "layers/shared/stripe.h"
#include "runtime/nn/cpu/layers/walk.h"

enum { QUERY, KEY, VALUE };

/* Without them backward computes a stripe's or tile's probabilities again. */
static bool saves_probabilities(const struct weft_nn_walked *at)
{
    return at->step->from->save != WEFT_WORD_LOG_SUMS;
}

static struct weft_nn_attention attention_of(const struct weft_nn_walked *at)
{
    return (struct weft_nn_attention){
        .dtype = at->call->batch.compute,
        .samples = at->call->batch.samples,
        .seq_len = at->call->batch.seq_len,
        .heads = at->step->sizes.heads,
        .kv_heads = at->step->sizes.kv_heads,
        .size = at->step->sizes.head_dim,
        .both_ways = at->step->sizes.causal == 0,
        .window = at->step->sizes.window,
        .cap = (float)at->step->numbers.cap,
        .scalar = at->step->numbers.scalar,
        .tokens = weft_attend_hides(at->walk, at->step) ? at->call->tokens : NULL,
        .padding = at->call->batch.padding,
        .query = at->in[QUERY].data,
        .key = at->in[KEY].data,
        .value = at->in[VALUE].data,
        .query_stride = at->in[QUERY].stride,
        .key_stride = at->in[KEY].stride,
        .value_stride = at->in[VALUE].stride,
        .probabilities = saves_probabilities(at) ? at->statistics[0] : NULL,
        .log_sums = saves_probabilities(at) ? NULL : at->statistics[0],
        .stripe = at->scores};
}

/* Appends rows of the operand to cached ones. Returns all of them, which are dense. */
static const void *append_rows(const struct weft_nn_walked *at, const struct weft_nn_operand *rows,
                               int64_t column)
{
    const enum weft_dtype dtype = at->call->batch.compute;
    const struct weft_nn_cache *cache = at->call->cache;
    char *all = weft_nn_to(dtype, cache->rows, cache->most_rows * column);
    for (int64_t i = 0; i < rows->rows; i++)
        memcpy(weft_nn_to(dtype, all, (cache->before + i) * rows->columns),
               weft_nn_at(dtype, rows->data, i * rows->stride),
               (size_t)(rows->columns * weft_dtype_bytes(dtype)));
    return all;
}

/* Attends with this call's rows, which follow those in the cache. */
static enum weft_status attend_cached(const struct weft_nn_walked *at, struct weft_error *err)
{
    const int64_t columns = at->in[KEY].columns, column = at->step->cache_column;
    struct weft_nn_attention attention = attention_of(at);
    attention.first = at->call->cache->before;
    attention.seq_len = attention.first + at->in[QUERY].rows;
    attention.key = append_rows(at, &at->in[KEY], column);
    attention.value = append_rows(at, &at->in[VALUE], column + columns);
    attention.key_stride = attention.value_stride = columns;
    attention.stripe = at->call->cache->scores;
    return weft_nn_cpu_attend_heads_from(at->cpu, &attention, at->out[0].data, err);
}

enum weft_status weft_nn_cpu_attend_forward(const struct weft_nn_walked *at, struct weft_error *err)
{
    if (at->call->cache != NULL) return attend_cached(at, err);
    const struct weft_nn_attention attention = attention_of(at);
    return weft_nn_cpu_attend_heads(at->cpu, &attention, at->out[0].data, err);
}

enum weft_status weft_nn_cpu_attend_backward(const struct weft_nn_walked *at,
                                             struct weft_error *err)
{
    const struct weft_nn_attention attention = attention_of(at);
    const int64_t rows = weft_stripe_rows(attention.seq_len), most = attention.seq_len;
    const int64_t stripe = (rows < most ? rows : most) * most;
    const struct weft_nn_attention_gradients to = {
        .query = at->d_in[QUERY].data,
        .key = at->d_in[KEY].data,
        .value = at->d_in[VALUE].data,
        .scores =
            saves_probabilities(at) ? at->scores : weft_nn_to(attention.dtype, at->scores, stripe),
        .uncapped = attention.cap > 0 ? weft_nn_to(attention.dtype, at->scores, 2 * stripe) : NULL,
        .sums = at->sums};
    return weft_nn_cpu_attend_heads_backward(at->cpu, &attention, at->out[0].data, at->d_out.data,
                                             &to, err);
}
