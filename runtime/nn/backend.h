/* SPDX-License-Identifier: Apache-2.0 */
/* A back end of runtime/nn is a const table of functions. Its object begins with struct weft_nn.
 * nn.c finds it by name. Functions with a stream push work on it; nn.h and units.h state their
 * contracts.
 */
#ifndef WEFT_RUNTIME_NN_BACKEND_H
#define WEFT_RUNTIME_NN_BACKEND_H

#include "runtime/device/backends.h"
#include "runtime/nn/units.h"

struct weft_batch;
struct weft_layer;
struct weft_nn_call; /* nn.h; so is the next */
struct weft_nn_needs;
struct weft_nn_options;
struct weft_pool;
struct weft_text;

typedef void weft_nn_update_fn(struct weft_nn *nn, struct weft_stream *stream,
                               const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                               const void *step);

struct weft_nn_backend {
    const char *name;
    enum weft_status (*open)(const struct weft_nn_options *options, struct weft_nn **out,
                             struct weft_error *err);
    void (*close)(struct weft_nn *nn);
    const char *(*describe)(const struct weft_nn *nn);
    const char *(*gemm_name)(const struct weft_nn *nn);
    void (*add_bits)(const struct weft_nn *nn, struct weft_text *out);
    /* All NULL if there is nothing to choose. */
    bool (*has_choices)(const struct weft_nn *nn);
    enum weft_status (*choose)(struct weft_nn *nn, const struct weft_layer *layers,
                               int32_t n_layers, const struct weft_batch *batch,
                               const char *earlier, struct weft_text *out,
                               struct weft_text *warnings, struct weft_error *err);
    enum weft_status (*bind)(struct weft_nn *nn, const struct weft_layer *layers, int32_t n_layers,
                             const struct weft_batch *batch, const char *choices,
                             struct weft_error *err);
    const char *(*choices)(const struct weft_nn *nn);
    /* NULL if no work needs extra memory. */
    struct weft_nn_needs (*needs)(const struct weft_nn *nn, const struct weft_layer *layer,
                                  const struct weft_batch *batch);
    int64_t (*unit_needs)(const struct weft_nn *nn);
    int64_t (*receive_needs)(int32_t ranks, int64_t slice_bytes);
    /* NULL if streams report every failure. */
    enum weft_status (*verdict)(struct weft_nn *nn, struct weft_error *err);
    /* NULL if nothing is the same for all calls of a layer. */
    enum weft_status (*prepare)(const struct weft_nn *nn, const struct weft_nn_call *call,
                                struct weft_pool *pool, const void **out, struct weft_error *err);
    void (*forward)(struct weft_nn *nn, struct weft_stream *stream,
                    const struct weft_nn_call *call);
    void (*backward)(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_call *call);
    void (*load)(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype, int64_t n,
                 const float *host, void *to);
    void (*initialise)(struct weft_nn *nn, struct weft_stream *stream,
                       const struct weft_nn_initial *initial);
    void (*round)(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit);
    void (*average)(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                    const struct weft_nn_outer *outer);
    weft_nn_update_fn *update, *moments, *apply;
    void (*add_norm)(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, void *bins, void *bad);
    /* NULL on a GPU; weft_precision_check refuses optimizers that need it. */
    void (*add_squares)(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_unit *unit, void *bins, void *bad, void *squares);
    void (*record_loss)(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                        const void *before, void *words);
    void (*look)(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_look *look);
    void (*add_hash)(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, void *sum);
    void (*mix_hash)(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                     int64_t bytes, void *word);
};

#define WEFT_NN_DECLARE(name) extern const struct weft_nn_backend weft_nn_backend_##name;
WEFT_DEVICES(WEFT_NN_DECLARE)
#undef WEFT_NN_DECLARE

struct weft_nn {
    const struct weft_nn_backend *backend;
};

#endif
