/* Forward and backward of the layers, on exactly the buffers that spec/layer.h declares. A back end
 * is a const table of functions; "cpu" is always built. Work is pushed on a stream; what it is
 * given is of the device's memory, and must stay until it is done. Gradients: `accumulate[i]` false
 * means that tensor i's gradient is written, true that it is added to. What flows, is saved and is
 * read has the dtype of the batch, gradients of tensors one of their own; sums and statistics are
 * fp32.
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
    enum weft_dtype compute; /* of the calls to come */
    const char *gemm;        /* as weft_gemm_open takes it: "auto" is the fastest by measurement */
};

/* `name` as weft_device_open takes it (WEFT_E_ENVIRONMENT otherwise). Errors of the GEMM library:
 * runtime/nn/cpu/gemm/gemm.h. Freed by weft_nn_close, which accepts NULL and must not run before
 * the streams are idle. */
WEFT_MUST_USE enum weft_status weft_nn_open(const char *name, const struct weft_nn_options *options,
                                            struct weft_nn **out, struct weft_error *err);
void weft_nn_close(struct weft_nn *nn);
/* "oneDNN 2.6.3 (231 GFLOP/s; OpenBLAS 121), avx512 kernels"; lives as long as nn. */
const char *weft_nn_describe(const struct weft_nn *nn);
/* "onednn", "openblas" ...: what "auto" chose. Another library gives other bits, so whoever
 * compares runs, or starts several ranks, decides once and asks for it by this name. */
const char *weft_nn_gemm_name(const struct weft_nn *nn);

/* How products are computed, where a back end's library has several ways: a text with its title and
 * the choices, which bits depend on. Rank 0 chooses for the layers of a model, gives all ranks the
 * text, and every rank binds it before it computes. `earlier`, a text of a checkpoint or profile,
 * is kept where this library may; NULL: none. `warnings`, a line each, say what is not as it was or
 * should be. Where there is nothing to choose the text stays empty. WEFT_E_DATA for an `earlier`
 * that cannot be read. */
struct weft_text;
WEFT_MUST_USE enum weft_status weft_nn_choose(struct weft_nn *nn, const struct weft_layer *layers,
                                              int32_t n_layers, const struct weft_batch *batch,
                                              const char *earlier, struct weft_text *out,
                                              struct weft_text *warnings, struct weft_error *err);
/* WEFT_E_DISAGREE where this rank cannot compute them so, WEFT_E_ENVIRONMENT where what comes out
 * is wrong. */
WEFT_MUST_USE enum weft_status weft_nn_bind(struct weft_nn *nn, const struct weft_layer *layers,
                                            int32_t n_layers, const struct weft_batch *batch,
                                            const char *choices, struct weft_error *err);
/* True: rank 0 has something to choose. The same on all ranks of one library. */
bool weft_nn_has_choices(const struct weft_nn *nn);
/* What was bound; NULL: nothing. */
const char *weft_nn_choices(const struct weft_nn *nn);

/* Bytes of the device's memory that work wants beside the buffers that it is given. A back end that
 * wants any has them of its own so far: they are not yet buffers of the plan. The CPU wants none.
 */
struct weft_nn_needs {
    int64_t forward_bytes, backward_bytes;
};
struct weft_nn_needs weft_nn_layer_needs(const struct weft_nn *nn, const struct weft_layer *layer,
                                         const struct weft_batch *batch);
/* Work on units (units.h), whatever the unit. */
int64_t weft_nn_unit_needs(const struct weft_nn *nn);
/* Where slices of all ranks lie until they are added up, of a rank's that is so large. */
int64_t weft_nn_receive_needs(const struct weft_nn *nn, int32_t ranks, int64_t slice_bytes);

/* Behind a synchronise of the streams: WEFT_E_DATA when work has met what its stream could not fail
 * of, because the device found it and not the host. It stays so. */
WEFT_MUST_USE enum weft_status weft_nn_verdict(struct weft_nn *nn, struct weft_error *err);

/* What a transformer_block's attention keeps of a sequence that comes in pieces, so that only the
 * new rows are computed: forward alone, of 1 sample, without saved probabilities. */
struct weft_nn_cache {
    int64_t before; /* rows that came before those of the call */
    void *qkv;      /* [before + rows of the call, 3 hidden] of the batch's dtype: those of the call
                       are written */
    void *scores;   /* [rows of the call, before + rows of the call]: scratch */
};

struct weft_nn_call {
    const struct weft_layer *layer; /* outlives the call */
    struct weft_batch batch;
    enum weft_dtype gradient_dtype; /* f32, or that of the batch */
    const void *tensors[WEFT_LAYER_TENSORS];
    void *gradients[WEFT_LAYER_TENSORS]; /* backward; NULL = frozen, not computed */
    bool accumulate[WEFT_LAYER_TENSORS];
    const void *input;      /* int32 tokens for an embedding, else [T, width] */
    const int32_t *targets; /* of classes; forward alone: or WEFT_NO_TARGET */
    void *output;
    void *saved;
    void *temporary;
    const void *output_gradient; /* [T, outputs]; not for loss layers */
    void *input_gradient;        /* NULL: not wanted (first layer) */
    double loss_scale;   /* loss layers: factor of every row's loss in the gradient: 1 / rows of all
                            ranks */
    const double *scale; /* of the device's memory: another factor, f16's; NULL: 1 */
    const struct weft_nn_cache *cache; /* transformer_block: or NULL */
    double *loss;   /* loss layers, forward: sum of rows' losses on this rank (natural log) */
    bool adds_loss; /* it is added to what is there */
};

/* Push the call, copied, on the stream. The stream fails, or the verdict is, WEFT_E_DATA when a
 * token or target is out of range; the stream fails with WEFT_E_DATA when the layer does not train
 * there, WEFT_E_SYSTEM when the GEMM library or the device does. */
void weft_nn_forward(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_call *call);
void weft_nn_backward(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_call *call);

#endif
