/* SPDX-License-Identifier: Apache-2.0 */
/* A subject is one layer with all the buffers of a call, each allocated alone and at exactly its
 * declared size, so that a sanitizer sees every overrun; filled with random numbers. */
#ifndef WEFT_TESTS_RUNTIME_NN_CPU_LAYERS_SUBJECT_H
#define WEFT_TESTS_RUNTIME_NN_CPU_LAYERS_SUBJECT_H

#include <stddef.h>

#include "runtime/nn/cpu/cpu.h"
#include "spec/kind.h"
#include "spec/layer.h"

enum { SUBJECT_BUFFERS = 2 * WEFT_LAYER_TENSORS + 8 };

struct subject {
    struct weft_layer layer;
    struct weft_layer_work work;
    struct weft_nn_call call; /* batch.compute and gradient_dtype are the buffers' dtypes */
    int64_t elements[WEFT_LAYER_TENSORS];
    int64_t n_inputs, n_outputs; /* elements; outputs: logits for loss layers */
    double loss;
    double looser; /* factor of tolerances, for many roundings in a row; 0: 1 */
    size_t offset_bytes;
    int n_buffers;
    void *buffers[SUBJECT_BUFFERS];
};

/* Whether later subjects have a batch that hides rows of padding: about a third of them, and all of
 * a third sample. */
extern bool subject_hides;

/* The layer types with sizes; outputs, ffn, heads, vocab as the type needs them. */
struct weft_layer subject_embedding(int64_t vocab, int64_t positions, int64_t hidden);
struct weft_layer subject_block(int64_t hidden, int64_t heads, int64_t ffn);
/* llama_block or qwen3_block. */
struct weft_layer subject_llama(const struct weft_kind *type, int64_t hidden, int64_t heads,
                                int64_t kv_heads, int64_t head_dim, int64_t ffn);
struct weft_layer subject_same(const struct weft_kind *type, int64_t hidden); /* norm, relu, gelu */
struct weft_layer subject_linear(int64_t inputs, int64_t outputs, bool bias);
struct weft_layer subject_head(const struct weft_kind *type, int64_t hidden, int64_t classes,
                               bool bias);

/* Each buffer begins offset_bytes after malloc's address. Free with subject_finish. */
void subject_init(struct subject *subject, struct weft_layer layer, int64_t samples,
                  int64_t seq_len, size_t offset_bytes);
/* The same in other dtypes; subject_init is in f32. */
void subject_init_as(struct subject *subject, struct weft_layer layer, int64_t samples,
                     int64_t seq_len, size_t offset_bytes, enum weft_dtype compute,
                     enum weft_dtype gradient);
void subject_init_for(struct subject *subject, struct weft_layer layer,
                      const struct weft_batch *batch, size_t offset_bytes,
                      enum weft_dtype gradient);
/* Element i of an array of the dtype. */
double subject_value(enum weft_dtype dtype, const void *array, int64_t i);
void subject_finish(struct subject *subject);

/* "cpu" with one thread and the library asked for. Aborts the test when it cannot be opened. */
struct weft_nn *subject_open(const char *gemm);
/* Synchronous; fail the test on an error. */
void subject_forward(struct weft_nn *nn, struct subject *subject);
void subject_backward(struct weft_nn *nn, struct subject *subject);

/* Forward against the reference; backward against central differences of the reference at up to
 * `probes` elements of the input and of each tensor. Errors relative to the largest magnitude. */
void subject_check(struct weft_nn *nn, struct subject *subject, int64_t probes);
/* After subject_check: accumulated gradients are the old ones plus the same sums; frozen tensors
 * get none and leave the rest as it was. */
void subject_check_switches(struct weft_nn *nn, const struct subject *plain);
/* Output (or loss), gradients and input gradient of two subjects of one shape, bit by bit. */
bool subject_same_bits(const struct subject *a, const struct subject *b);

/* Every level of recomputation has the bits of none, with every library and dtype. */
void subject_check_levels(struct weft_layer layer, int64_t samples, int64_t seq_len);

/* All of the above at offset 0, with every library, every kernel level, and every dtype: in f32,
 * and in 16 bits with gradients of f32 and of their own. */
void subject_check_layer(struct weft_layer layer, int64_t samples, int64_t seq_len, int64_t probes);
/* The same in f32 alone. */
void subject_check_layer_in_f32(struct weft_layer layer, int64_t samples, int64_t seq_len,
                                int64_t probes);

/* A layer at a level of recomputation: room for its kept bytes, and for temporaries of both passes,
 * each of its size. `run` runs both as the executor does, with another temporary buffer in
 * backward, which begins as NaN. */
struct subject_level {
    struct subject subject;
    void *forward_temporary, *backward_temporary;
};
/* False for a level that the layer lacks. */
bool subject_has_level(const struct subject *plain, int level);
void subject_level_init(struct subject_level *it, const struct subject *plain,
                        enum weft_recompute level);
void subject_level_run(struct weft_nn *nn, struct subject_level *it);
void subject_level_finish(struct subject_level *it);

#endif
