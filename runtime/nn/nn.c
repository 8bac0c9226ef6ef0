/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/nn.h"

#include <string.h>

#include "base/text.h"
#include "runtime/device/module.h"
#include "runtime/nn/backend.h"

#define ROW(name) &weft_nn_backend_##name,
static const struct weft_nn_backend *const backends[] = {WEFT_DEVICES(ROW)};
#undef ROW
enum { N_BACKENDS = sizeof(backends) / sizeof(backends[0]) };

enum weft_status weft_nn_open(const char *name, const struct weft_nn_options *options,
                              struct weft_nn **out, struct weft_error *err)
{
    for (size_t i = 0; i < N_BACKENDS; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i]->open(options, out, err);
    }
    if (weft_module_has(name)) {
        const void *backend = NULL;
        WEFT_TRY(weft_module_find("nn_backend", name, &backend, err));
        return ((const struct weft_nn_backend *)backend)->open(options, out, err);
    }
    struct weft_text known;
    weft_text_init(&known);
    weft_module_add_names(&known);
    weft_fail(err, WEFT_E_ENVIRONMENT,
              "no layer kernels for device \"%s\" in this build: it has %s", name,
              weft_text_chars(&known));
    weft_text_finish(&known);
    return WEFT_E_ENVIRONMENT;
}

void weft_nn_close(struct weft_nn *nn)
{
    if (nn) nn->backend->close(nn);
}

const char *weft_nn_describe(const struct weft_nn *nn)
{
    return nn->backend->describe(nn);
}

void weft_nn_add_bits(const struct weft_nn *nn, struct weft_text *out)
{
    nn->backend->add_bits(nn, out);
}

const char *weft_nn_gemm_name(const struct weft_nn *nn)
{
    return nn->backend->gemm_name(nn);
}

enum weft_status weft_nn_choose(struct weft_nn *nn, const struct weft_layer *layers,
                                int32_t n_layers, const struct weft_batch *batch,
                                const char *earlier, struct weft_text *out,
                                struct weft_text *warnings, struct weft_error *err)
{
    if (nn->backend->choose == NULL) return WEFT_OK;
    return nn->backend->choose(nn, layers, n_layers, batch, earlier, out, warnings, err);
}

enum weft_status weft_nn_bind(struct weft_nn *nn, const struct weft_layer *layers, int32_t n_layers,
                              const struct weft_batch *batch, const char *choices,
                              struct weft_error *err)
{
    if (nn->backend->bind == NULL) return WEFT_OK;
    return nn->backend->bind(nn, layers, n_layers, batch, choices, err);
}

bool weft_nn_has_choices(const struct weft_nn *nn)
{
    return nn->backend->has_choices != NULL && nn->backend->has_choices(nn);
}

const char *weft_nn_choices(const struct weft_nn *nn)
{
    return nn->backend->choices == NULL ? NULL : nn->backend->choices(nn);
}

struct weft_nn_needs weft_nn_layer_needs(const struct weft_nn *nn, const struct weft_layer *layer,
                                         const struct weft_batch *batch)
{
    if (nn->backend->needs == NULL) return (struct weft_nn_needs){0};
    return nn->backend->needs(nn, layer, batch);
}

int64_t weft_nn_unit_needs(const struct weft_nn *nn)
{
    return nn->backend->unit_needs == NULL ? 0 : nn->backend->unit_needs(nn);
}

int64_t weft_nn_receive_needs(const struct weft_nn *nn, int32_t ranks, int64_t slice_bytes)
{
    return nn->backend->receive_needs == NULL ? 0 : nn->backend->receive_needs(ranks, slice_bytes);
}

enum weft_status weft_nn_verdict(struct weft_nn *nn, struct weft_error *err)
{
    return nn->backend->verdict == NULL ? WEFT_OK : nn->backend->verdict(nn, err);
}

enum weft_status weft_nn_prepare(const struct weft_nn *nn, const struct weft_nn_call *call,
                                 struct weft_pool *pool, const void **out, struct weft_error *err)
{
    *out = NULL;
    if (nn->backend->prepare == NULL) return WEFT_OK;
    return nn->backend->prepare(nn, call, pool, out, err);
}

void weft_nn_forward(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_call *call)
{
    nn->backend->forward(nn, stream, call);
}

void weft_nn_backward(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_call *call)
{
    nn->backend->backward(nn, stream, call);
}

void weft_nn_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype, int64_t n,
                  const float *host, void *to)
{
    nn->backend->load(nn, stream, dtype, n, host, to);
}

void weft_nn_initialise(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_initial *initial)
{
    nn->backend->initialise(nn, stream, initial);
}

void weft_nn_round(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit)
{
    if (unit->master != NULL) nn->backend->round(nn, stream, unit);
}

void weft_nn_average(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, const struct weft_nn_outer *outer)
{
    nn->backend->average(nn, stream, unit, outer);
}

void weft_nn_update(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                    const struct weft_nn_rule *rule, const void *step)
{
    nn->backend->update(nn, stream, unit, rule, step);
}

void weft_nn_moments(struct weft_nn *nn, struct weft_stream *stream,
                     const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                     const void *step)
{
    nn->backend->moments(nn, stream, unit, rule, step);
}

void weft_nn_apply(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_unit *unit,
                   const struct weft_nn_rule *rule, const void *step)
{
    nn->backend->apply(nn, stream, unit, rule, step);
}

void weft_nn_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_unit *unit, void *bins, void *bad)
{
    nn->backend->add_norm(nn, stream, unit, bins, bad);
}

void weft_nn_add_squares(struct weft_nn *nn, struct weft_stream *stream,
                         const struct weft_nn_unit *unit, void *bins, void *bad, void *squares)
{
    nn->backend->add_squares(nn, stream, unit, bins, bad, squares);
}

void weft_nn_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                         const void *before, void *words)
{
    nn->backend->record_loss(nn, stream, loss, before, words);
}

void weft_nn_look(struct weft_nn *nn, struct weft_stream *stream, const struct weft_nn_look *look)
{
    nn->backend->look(nn, stream, look);
}

void weft_nn_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                      const struct weft_nn_unit *unit, void *sum)
{
    nn->backend->add_hash(nn, stream, unit, sum);
}

void weft_nn_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                      int64_t bytes, void *word)
{
    nn->backend->mix_hash(nn, stream, from, bytes, word);
}
