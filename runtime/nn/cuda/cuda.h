/* SPDX-License-Identifier: Apache-2.0 */
/* The back end for GPUs. It puts kernels of this folder on the call's stream, over the machine that
 * it is opened with. Tests without a GPU use an emulated machine (tests/emulation).
 *
 * "own" multiplies by tiles of our own and uses tensor cores for attention. With a library
 * (products/library.h) that library multiplies. "plain" computes everything in the CPU's order, so
 * an f32 run has the bits of a CPU's run with plain products.
 *
 * A layer's scratch is the plan's (nn.h). The library's workspace, and the scratch of work on
 * units, are this back end's own, so all work of one object must be on one stream. The norm has its
 * own scratch: gradients that the host updates with are added up on their way there. */
#ifndef WEFT_RUNTIME_NN_CUDA_CUDA_H
#define WEFT_RUNTIME_NN_CUDA_CUDA_H

#include "runtime/nn/backend.h"
#include "runtime/nn/cuda/kernels/attention.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/cuda/machine.h"
#include "runtime/nn/nn.h"
#include "runtime/nn/product.h"

/* A finding of kernels in a layer's input, in memory shared with the host: the first row out of
 * range, or UINT32_MAX. */
enum { WEFT_CUDA_CHECKS = 32 };
struct weft_cuda_check {
    const struct weft_layer *layer; /* NULL: unused */
    struct weft_batch batch;
    bool of_targets;
    int64_t limit; /* of its numbers */
};

struct weft_nn_cuda {
    struct weft_nn base;
    const struct weft_cuda_machine *machine;
    bool plain;
    const struct weft_cuda_library_ops *ops; /* functions of a library that multiplies */
    struct weft_cuda_library *library;       /* NULL: products are our own */
    struct weft_cuda_choice *choices;        /* [n_choices], choices/multiply.h */
    int32_t n_choices;
    char *choices_text;              /* NULL: nothing is bound */
    struct weft_cuda_choice *proved; /* [n_proved] choices that this object made */
    int32_t n_proved;
    struct weft_cuda_attending *attending; /* library of attention; NULL: own kernels */
    bool wants_library;                    /* of attention, however fast own kernels are */
    struct weft_cuda_attended *attended;   /* [n_attended], choices/attention_choices.h */
    int32_t n_attended;
    char *workspace; /* GPU memory; begins with the library's part */
    int64_t workspace_bytes;
    void *norm; /* scratch of the norm alone, whose stream may be another one than the layers' */
    void **outgrown; /* [n_outgrown] workspaces that pending work may use */
    int32_t n_outgrown;
    uint32_t *found; /* [WEFT_CUDA_CHECKS], shared with the host */
    struct weft_cuda_check checks[WEFT_CUDA_CHECKS];
    char description[1024]; /* attention's part begins at `described` */
    size_t described;
};

static inline struct weft_nn_cuda *weft_nn_cuda_of(struct weft_nn *nn)
{
    return (struct weft_nn_cuda *)(void *)nn;
}

/* bind.c. Opens a back end over a machine. options->gemm is "own", "plain", the name of the
 * machine's library, or "auto": that library if it can be opened, otherwise "own". WEFT_E_USAGE for
 * another name, WEFT_E_ENVIRONMENT if a named library cannot be opened. options->attention is as in
 * choices/attention_choices.h. */
WEFT_MUST_USE enum weft_status weft_nn_cuda_open(const struct weft_nn_backend *backend,
                                                 const struct weft_cuda_machine *machine,
                                                 const struct weft_nn_options *options,
                                                 struct weft_nn **out, struct weft_error *err);
#define WEFT_NN_CUDA_FUNCTIONS                                                                     \
    .close = weft_nn_cuda_close, .describe = weft_nn_cuda_describe,                                \
    .add_bits = weft_nn_cuda_add_bits, .gemm_name = weft_nn_cuda_gemm_name,                        \
    .needs = weft_nn_cuda_needs, .unit_needs = weft_nn_cuda_unit_needs,                            \
    .receive_needs = weft_nn_cuda_receive_needs, .has_choices = weft_nn_cuda_has_choices,          \
    .choose = weft_nn_cuda_choose, .bind = weft_nn_cuda_bind, .choices = weft_nn_cuda_choices,     \
    .verdict = weft_nn_cuda_verdict, .prepare = weft_nn_cuda_prepare,                              \
    .forward = weft_nn_cuda_forward, .backward = weft_nn_cuda_backward, .load = weft_nn_cuda_load, \
    .initialise = weft_nn_cuda_initialise, .round = weft_nn_cuda_round,                            \
    .average = weft_nn_cuda_average, .update = weft_nn_cuda_update,                                \
    .moments = weft_nn_cuda_moments, .apply = weft_nn_cuda_apply,                                  \
    .add_norm = weft_nn_cuda_add_norm, .record_loss = weft_nn_cuda_record_loss,                    \
    .look = weft_nn_cuda_look, .add_hash = weft_nn_cuda_add_hash,                                  \
    .mix_hash = weft_nn_cuda_mix_hash
void weft_nn_cuda_close(struct weft_nn *nn);
const char *weft_nn_cuda_describe(const struct weft_nn *nn);
void weft_nn_cuda_add_bits(const struct weft_nn *nn, struct weft_text *out);
const char *weft_nn_cuda_gemm_name(const struct weft_nn *nn);
struct weft_nn_needs weft_nn_cuda_needs(const struct weft_nn *nn, const struct weft_layer *layer,
                                        const struct weft_batch *batch);
int64_t weft_nn_cuda_unit_needs(const struct weft_nn *nn);
int64_t weft_nn_cuda_receive_needs(int32_t ranks, int64_t slice_bytes);
enum weft_status weft_nn_cuda_verdict(struct weft_nn *nn, struct weft_error *err);
/* The walk of a layer with a recipe, of which each call takes its layout. */
struct weft_pool;
enum weft_status weft_nn_cuda_prepare(const struct weft_nn *nn, const struct weft_nn_call *call,
                                      struct weft_pool *pool, const void **out,
                                      struct weft_error *err);
void weft_nn_cuda_forward(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_call *call);
void weft_nn_cuda_backward(struct weft_nn *nn, struct weft_stream *stream,
                           const struct weft_nn_call *call);

/* choices/choices.c */
struct weft_text;
enum weft_status weft_nn_cuda_choose(struct weft_nn *nn, const struct weft_layer *layers,
                                     int32_t n_layers, const struct weft_batch *batch,
                                     const char *earlier, struct weft_text *out,
                                     struct weft_text *warnings, struct weft_error *err);
enum weft_status weft_nn_cuda_bind(struct weft_nn *nn, const struct weft_layer *layers,
                                   int32_t n_layers, const struct weft_batch *batch,
                                   const char *text, struct weft_error *err);
bool weft_nn_cuda_has_choices(const struct weft_nn *nn);
const char *weft_nn_cuda_choices(const struct weft_nn *nn);

/* choices/attention_choices.c. Opens the library of attention as `name` wants: "own", "auto", or
 * the library's name. "auto" and NULL go on without one that cannot be opened, and *unopened has
 * the reason. */
WEFT_MUST_USE enum weft_status weft_cuda_attention_open(struct weft_nn_cuda *cuda, const char *name,
                                                        struct weft_error *unopened,
                                                        struct weft_error *err);
void weft_cuda_attention_close(struct weft_nn_cuda *cuda);
/* Writes the last part of the back end's description: the library, and after binding the engines.
 * *unopened is why there is none. */
void weft_cuda_attention_describe(struct weft_nn_cuda *cuda, const struct weft_error *unopened);

/* Reserves a workspace of at least `bytes` bytes. Issued work may still use the former one, which
 * is kept. */
WEFT_MUST_USE enum weft_status weft_nn_cuda_reserve(struct weft_nn_cuda *cuda, int64_t bytes,
                                                    struct weft_error *err);
/* The code of weft_cuda_multiply for a product that was not bound. CUDA and libraries never give
 * it. */
enum { WEFT_CUDA_NOT_BOUND = -100000 };

/* Returns WEFT_OK for code 0, otherwise the error of CUDA or the library. `what` names the failed
 * operation. */
enum weft_status weft_nn_cuda_status(const struct weft_nn_cuda *cuda, int code, const char *what,
                                     struct weft_error *err);

/* units.c */
void weft_nn_cuda_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype,
                       int64_t n, const float *host, void *to);
void weft_nn_cuda_initialise(struct weft_nn *nn, struct weft_stream *stream,
                             const struct weft_nn_initial *initial);
void weft_nn_cuda_round(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_unit *unit);
void weft_nn_cuda_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                           const struct weft_nn_unit *unit, void *sum);
void weft_nn_cuda_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                           int64_t bytes, void *word);
/* Element `at` of an array with elements of `size` bytes, and below the fp32 parameters of a piece:
 * the master's if there is one. */
static inline void *weft_nn_cuda_element(const void *address, int64_t at, int64_t size)
{
    return (char *)(uintptr_t)address + at * size;
}
static inline float *weft_nn_cuda_values(const struct weft_nn_unit *unit,
                                         const struct weft_nn_piece *piece)
{
    if (unit->master != NULL)
        return weft_nn_cuda_element(unit->master, piece->state_at, sizeof(float));
    return weft_nn_cuda_element(unit->parameters, piece->parameter_at, sizeof(float));
}

/* Joins piece i with the next ones that continue it in every array, so that one launch does them;
 * with `alike` only those that decay as it does. Returns the next piece's index. */
int64_t weft_nn_cuda_join(const struct weft_nn_piece *pieces, int64_t n, int64_t i, bool alike,
                          struct weft_nn_piece *out);

/* update.c */
void weft_nn_cuda_average(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, const struct weft_nn_outer *outer);
weft_nn_update_fn weft_nn_cuda_update, weft_nn_cuda_moments, weft_nn_cuda_apply;

/* step.c. Work on units needs at most this much of the workspace. */
enum { WEFT_CUDA_NORM_BYTES = 16 }; /* the bins' former words for infinities and NaNs */
enum { WEFT_CUDA_WIDE_PIECE = 1 << 18, WEFT_CUDA_UNIT_BYTES = 64 + 4 * WEFT_CUDA_WIDE_PIECE };
void weft_nn_cuda_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                           const struct weft_nn_unit *unit, void *bins, void *bad);
void weft_nn_cuda_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                              const void *before, void *words);
void weft_nn_cuda_look(struct weft_nn *nn, struct weft_stream *stream,
                       const struct weft_nn_look *look);

#endif
