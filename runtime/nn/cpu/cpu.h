/* SPDX-License-Identifier: Apache-2.0 */
/* The "cpu" back end. A GEMM library does products, and kernels do the rest. Products and heads of
 * attention share `threads`; all other work runs on the calling thread. Each op of recipes has one
 * file with forward and backward (layers/walk.h). Functions are synchronous and allocate nothing.
 * They touch exactly the buffers of their call, at the offsets of the layer's walk.
 * WEFT_E_DATA if a token or target is out of range, WEFT_E_SYSTEM if the GEMM library fails. */
#ifndef WEFT_RUNTIME_NN_CPU_CPU_H
#define WEFT_RUNTIME_NN_CPU_CPU_H

#include "runtime/nn/backend.h"
#include "runtime/nn/cpu/gemm/gemm.h"
#include "runtime/nn/cpu/kernels/kernels.h"
#include "runtime/nn/nn.h"
#include "runtime/nn/step.h"

struct weft_nn_cpu {
    struct weft_nn base;
    struct weft_gemm *gemm;
    const struct weft_kernels *kernels;
    int32_t threads;     /* of products and of heads */
    bool whole_heads;    /* true if kernels may do heads of attention */
    bool has_tiles;      /* products of 16 bits run on AMX */
    int64_t shift_bytes; /* distance from a work address to its memory */
    char description[384];
};

static inline const struct weft_nn_cpu *weft_nn_cpu_of(const struct weft_nn *nn)
{
    return (const struct weft_nn_cpu *)(const void *)nn;
}

/* The memory of a work address. NULL stays NULL. */
static inline void *weft_nn_cpu_reach(const struct weft_nn_cpu *cpu, const void *address)
{
    return address == NULL ? NULL : (char *)address + cpu->shift_bytes;
}

/* Do a call at once, on the calling thread. Its addresses are of memory. */
WEFT_MUST_USE enum weft_status weft_nn_cpu_forward(const struct weft_nn *nn,
                                                   const struct weft_nn_call *call,
                                                   struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_nn_cpu_backward(const struct weft_nn *nn,
                                                    const struct weft_nn_call *call,
                                                    struct weft_error *err);

/* weft_nn_prepare: the walk of a layer with a recipe. */
WEFT_MUST_USE enum weft_status weft_nn_cpu_prepare(const struct weft_nn *nn,
                                                   const struct weft_nn_call *call,
                                                   struct weft_pool *pool, const void **out,
                                                   struct weft_error *err);

typedef enum weft_status weft_nn_cpu_fn(const struct weft_nn_cpu *cpu,
                                        const struct weft_nn_call *call, struct weft_error *err);

/* layers/walk.c: layers with a recipe. */
weft_nn_cpu_fn weft_nn_cpu_walk_forward, weft_nn_cpu_walk_backward;
WEFT_MUST_USE enum weft_status weft_nn_cpu_walk_prepare(const struct weft_nn_call *call,
                                                        struct weft_pool *pool, const void **out,
                                                        struct weft_error *err);
weft_nn_cpu_fn weft_nn_cpu_supplied_forward, weft_nn_cpu_supplied_backward;

/* Parts of layers */

/* Causal self-attention of every head of every sample. `heads` / `kv_heads` adjacent heads of
 * queries share a head of keys and values. Rows of query, key and value have strides, and
 * gradients have theirs. The output is [T, heads * size]. Queries are those of rows `first`,
 * first + 1, ... of a sample's `seq_len` keys. */
struct weft_nn_attention {
    enum weft_dtype dtype;
    int64_t samples, seq_len, first, heads, kv_heads, size;
    bool both_ways;        /* rows attend to later ones too */
    int64_t window;        /* a row attends to itself and earlier rows, so many at most; 0: all */
    float cap;             /* bounds scores by cap tanh(score / cap); 0: none */
    double scalar;         /* scores are divided by its root; 0: by the root of the size */
    const int32_t *tokens; /* [T]: rows with the token `padding` are no keys; NULL: all rows are */
    int32_t padding;       /* a sample of padding alone attends to nothing: its output is 0 */
    const void *query, *key, *value;
    int64_t query_stride, key_stride, value_stride;
    void *probabilities; /* [samples, heads, seq_len, seq_len], saved for backward, in rows or in
                            the kernels' order; NULL: backward computes them again */
    float *log_sums; /* [T, heads]: of whole heads without probabilities; NULL: products alone */
    void *stripe;    /* scratch, if they are not saved: [weft_stripe_rows, seq_len] or all rows */
};
WEFT_MUST_USE enum weft_status weft_nn_cpu_attend_heads(const struct weft_nn_cpu *cpu,
                                                        const struct weft_nn_attention *attention,
                                                        void *output, struct weft_error *err);
/* The same for one sample, with the bits of products. The output has only the queries' rows.
 * `stripe` has at most [seq_len - first, seq_len], used by one head after another. */
WEFT_MUST_USE enum weft_status weft_nn_cpu_attend_heads_from(
    const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention, void *output,
    struct weft_error *err);

struct weft_nn_attention_gradients {
    void *query, *key, *value; /* written */
    void *scores;              /* scratch, [seq_len, seq_len], or as much as the stripe */
    void *uncapped;            /* with a cap: another stripe */
    float *sums; /* scratch of weft_nn_cpu_attend_sums elements, or NULL if there are none */
};
/* Elements that sum the gradients of a head of keys and values over its queries, in 16 bits: of one
 * of them if heads are shared, and of both if probabilities are computed again. fp32 is summed in
 * place. */
static inline int64_t weft_nn_cpu_attend_sums(const struct weft_nn_attention *attention)
{
    const int64_t head = attention->seq_len * attention->size;
    if (attention->dtype == WEFT_F32) return 0;
    if (attention->probabilities == NULL) return 2 * head;
    return attention->heads > attention->kv_heads ? head : 0;
}
/* `output` is the forward's result, of all rows. */
WEFT_MUST_USE enum weft_status weft_nn_cpu_attend_heads_backward(
    const struct weft_nn_cpu *cpu, const struct weft_nn_attention *attention, const void *output,
    const void *d_output, const struct weft_nn_attention_gradients *to, struct weft_error *err);

#endif
