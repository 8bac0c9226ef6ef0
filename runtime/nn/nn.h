/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward of layers, on exactly the buffers that spec/layer.h declares. A back end is
 * a const table of functions; "cpu" is always built. Work is pushed on a stream. Its operands are
 * in device memory and must stay valid until it is done. A false `accumulate[i]` writes the
 * gradient of tensor i, and a true one adds to it. Inputs, outputs and saved activations have the
 * batch's dtype. Gradients of tensors have their own. Sums and statistics are fp32.
 */
#ifndef WEFT_RUNTIME_NN_NN_H
#define WEFT_RUNTIME_NN_NN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/device/device.h"
#include "spec/layer.h"

struct weft_nn;

struct weft_nn_options {
    int32_t threads;         /* of products and of attention's heads, at least 1 */
    enum weft_dtype compute; /* of later calls */
    const char *gemm;        /* as in weft_gemm_open; "auto" measures the fastest */
    const char *attention;   /* "own", "cudnn" on a GPU, or "auto", the faster; NULL: auto */
};

/* Opens a back end. `name` is as in weft_device_open (WEFT_E_ENVIRONMENT for others). Errors of the
 * GEMM library are in runtime/nn/cpu/gemm/gemm.h. Free with weft_nn_close, which accepts NULL;
 * streams must be idle. */
WEFT_MUST_USE enum weft_status weft_nn_open(const char *name, const struct weft_nn_options *options,
                                            struct weft_nn **out, struct weft_error *err);
void weft_nn_close(struct weft_nn *nn);
/* Describes products and kernels, as "oneDNN 2.6.3 (70 GFLOP/s a thread), avx2 kernels".
 * The text lives as long as nn. */
const char *weft_nn_describe(const struct weft_nn *nn);
/* The chosen library, as "onednn" or "avx512". Another library gives other bits. So a comparison
 * of runs, or a start of several ranks, chooses once and then opens by this name. */
const char *weft_nn_gemm_name(const struct weft_nn *nn);
struct weft_text;
/* Appends what bits depend on, in parts of "name: value" with "; " between them: "products: onednn,
 * oneDNN 2.6.3, avx2; attention: products". */
void weft_nn_add_bits(const struct weft_nn *nn, struct weft_text *out);

/* Chooses algorithms of products, if the back end's library has several. Bits depend on them. The
 * text has the library's title and the choices. Rank 0 chooses for the layers of a model, shares
 * the text, and every rank binds it before it computes. `earlier` is the text of a checkpoint or
 * profile, or NULL. Its choices are kept if this library allows. `warnings` gets a line for each
 * change or problem. Without choices the text stays empty. WEFT_E_DATA if `earlier` cannot be
 * read. */
WEFT_MUST_USE enum weft_status weft_nn_choose(struct weft_nn *nn, const struct weft_layer *layers,
                                              int32_t n_layers, const struct weft_batch *batch,
                                              const char *earlier, struct weft_text *out,
                                              struct weft_text *warnings, struct weft_error *err);
/* Binds a text of choices. WEFT_E_DISAGREE if this rank cannot compute in these ways,
 * WEFT_E_ENVIRONMENT if results are wrong. */
WEFT_MUST_USE enum weft_status weft_nn_bind(struct weft_nn *nn, const struct weft_layer *layers,
                                            int32_t n_layers, const struct weft_batch *batch,
                                            const char *choices, struct weft_error *err);
/* True if rank 0 has something to choose. Equal on all ranks with the same library. */
bool weft_nn_has_choices(const struct weft_nn *nn);
/* The bound text, or NULL. */
const char *weft_nn_choices(const struct weft_nn *nn);

/* Bytes of device memory that work needs besides its buffers. The plan gives layers theirs as a
 * call's scratch; a back end allocates the rest, and what a call lacks. The CPU needs none. */
struct weft_nn_needs {
    int64_t forward_bytes, backward_bytes;
};
struct weft_nn_needs weft_nn_layer_needs(const struct weft_nn *nn, const struct weft_layer *layer,
                                         const struct weft_batch *batch);
/* For work on units (units.h), of any unit. */
int64_t weft_nn_unit_needs(const struct weft_nn *nn);
/* Bytes of the buffer that holds all ranks' slices before their sum, for slices of this size. */
int64_t weft_nn_receive_needs(const struct weft_nn *nn, int32_t ranks, int64_t slice_bytes);

/* Call it after a synchronise of the streams. WEFT_E_DATA if the device found bad data that its
 * stream could not report. The verdict stays. */
WEFT_MUST_USE enum weft_status weft_nn_verdict(struct weft_nn *nn, struct weft_error *err);

/* Rows of a sequence that comes in pieces: then only new rows are computed. For forward only, with
 * one sample and without saved probabilities. Every step of attention keeps keys and values: of
 * weft_walk.cache_columns elements for each row. */
struct weft_nn_cache {
    int64_t before;    /* rows of earlier calls */
    int64_t most_rows; /* that fit into `rows` */
    void *rows;        /* [cache_columns, most_rows] of the batch's dtype; a call writes its own */
    void *scores;      /* [rows of the call, before + rows of the call]: scratch */
};

struct weft_nn_call {
    const struct weft_layer *layer; /* outlives the call */
    struct weft_batch batch;
    enum weft_dtype gradient_dtype; /* f32, or that of the batch */
    /* Backward first restores what forward dropped. The stream fails with WEFT_E_DATA if the back
     * end cannot do this level for the layer. */
    enum weft_recompute recompute;
    const void *tensors[WEFT_LAYER_TENSORS];
    void *gradients[WEFT_LAYER_TENSORS]; /* backward; NULL: frozen, not computed */
    bool accumulate[WEFT_LAYER_TENSORS];
    bool adds_loss;         /* adds to *loss */
    const void *prepared;   /* of weft_nn_prepare; or NULL: each call does its work */
    const void *input;      /* int32 tokens for an embedding, otherwise [T, width] */
    const int32_t *targets; /* of classes; also WEFT_NO_TARGET or WEFT_LEFT_OUT */
    const int32_t *tokens;  /* the model's input, for a layer that reads padding; or NULL */
    void *output;
    void *saved;     /* of the bytes that the level keeps */
    void *temporary; /* with the bytes that the level drops */
    void *scratch;   /* the plan's memory for a GPU's kernels; NULL: none */
    int64_t scratch_bytes;
    const void *output_gradient;       /* [T, outputs]; not for loss layers */
    void *input_gradient;              /* NULL: not wanted (first layer) */
    double loss_scale;                 /* loss layers: factor of every row's loss in the gradient */
    const double *scale;               /* in device memory: another factor, of the step; NULL: 1 */
    const struct weft_nn_cache *cache; /* of a part of a sequence; or NULL */
    double *loss; /* loss layers, forward: sum of rows' losses on this rank (natural log) */
};

/* Does the work that calls have in common if their layer, batch and level are equal. The pool owns
 * the result, which is NULL if there is none. WEFT_E_DATA if the back end cannot do the call. */
struct weft_pool;
WEFT_MUST_USE enum weft_status weft_nn_prepare(const struct weft_nn *nn,
                                               const struct weft_nn_call *call,
                                               struct weft_pool *pool, const void **out,
                                               struct weft_error *err);

/* Push the call, copied, on the stream. WEFT_E_DATA, from stream or verdict, if a token or target
 * is out of range. The stream fails with WEFT_E_DATA if the layer does not train on this device,
 * and with WEFT_E_SYSTEM if the GEMM library or the device fails. */
void weft_nn_forward(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_call *call);
void weft_nn_backward(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_call *call);

#endif
