/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of units: loads from the host, initial values, rounded copies, hashes. */
#include "runtime/nn/cuda/cuda.h"
#include "runtime/nn/cuda/kernels/initial.h"
#include "runtime/nn/cuda/kernels/record.h"

int64_t weft_nn_cuda_join(const struct weft_nn_piece *pieces, int64_t n, int64_t i, bool alike,
                          struct weft_nn_piece *out)
{
    *out = pieces[i++];
    while (i < n && pieces[i].state_at == out->state_at + out->count &&
           pieces[i].parameter_at == out->parameter_at + out->count &&
           (!alike || pieces[i].matrix == out->matrix)) {
        out->count += pieces[i++].count;
    }
    return i;
}

struct load_argument {
    struct weft_nn_cuda *cuda;
    enum weft_dtype dtype;
    int64_t n;
    const float *host;
    void *to;
};

/* Loads through the workspace, a part at a time. */
static enum weft_status issue_load(struct weft_stream *stream, struct CUstream_st *on,
                                   const void *argument, struct weft_error *err)
{
    enum { PIECE = WEFT_CUDA_WIDE_PIECE };
    const struct load_argument *a = argument;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, WEFT_CUDA_UNIT_BYTES, err));
    float *wide = (float *)(void *)a->cuda->workspace;
    int code = 0;
    for (int64_t at = 0; at < a->n && code == 0; at += PIECE) {
        const int64_t n = a->n - at < PIECE ? a->n - at : PIECE;
        void *to = weft_nn_cuda_element(a->to, at, weft_dtype_bytes(a->dtype));
        code = a->cuda->machine->send(stream, on, wide, a->host + at, n * (int64_t)sizeof *wide);
        if (code == 0) code = weft_cuda_narrow(a->dtype, n, wide, to, on);
    }
    return weft_nn_cuda_status(a->cuda, code, "numbers of the host", err);
}

void weft_nn_cuda_load(struct weft_nn *nn, struct weft_stream *stream, enum weft_dtype dtype,
                       int64_t n, const float *host, void *to)
{
    const struct load_argument argument = {weft_nn_cuda_of(nn), dtype, n, host, to};
    argument.cuda->machine->issue(stream, issue_load, &argument, sizeof argument);
}

struct initial_argument {
    struct weft_nn_cuda *cuda;
    struct weft_nn_initial initial;
};

static int draw_values(const struct weft_nn_initial *initial, struct CUstream_st *on)
{
    const struct weft_normal law = {initial->seed, initial->name, initial->std};
    switch (initial->init) {
    case WEFT_INIT_ZERO:
        return weft_cuda_set(initial->dtype, initial->n, 0, initial->to, on);
    case WEFT_INIT_ONE:
        return weft_cuda_set(initial->dtype, initial->n, 1, initial->to, on);
    case WEFT_INIT_NORMAL:
        return weft_cuda_normal(&law, initial->first, initial->dtype, initial->n, initial->to, on);
    case WEFT_INIT_COUNT:
        break;
    }
    return 0;
}

static enum weft_status issue_initialise(struct weft_stream *stream, struct CUstream_st *on,
                                         const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct initial_argument *a = argument;
    return weft_nn_cuda_status(a->cuda, draw_values(&a->initial, on), "initial values", err);
}

void weft_nn_cuda_initialise(struct weft_nn *nn, struct weft_stream *stream,
                             const struct weft_nn_initial *initial)
{
    const struct initial_argument argument = {weft_nn_cuda_of(nn), *initial};
    argument.cuda->machine->issue(stream, issue_initialise, &argument, sizeof argument);
}

struct unit_argument {
    struct weft_nn_cuda *cuda;
    const struct weft_nn_unit *unit;
    uint64_t *sum;
};

static enum weft_status issue_round(struct weft_stream *stream, struct CUstream_st *on,
                                    const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct unit_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    int code = 0;
    for (int64_t i = 0; unit->master != NULL && i < unit->n_renew && code == 0; i++) {
        const struct weft_nn_piece *piece = &unit->renew[i];
        code = weft_cuda_narrow(unit->dtype, piece->count, weft_nn_cuda_values(unit, piece),
                                weft_nn_cuda_element(unit->parameters, piece->parameter_at,
                                                     weft_dtype_bytes(unit->dtype)),
                                on);
    }
    return weft_nn_cuda_status(a->cuda, code, "parameters of masters", err);
}

void weft_nn_cuda_round(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_unit *unit)
{
    const struct unit_argument argument = {weft_nn_cuda_of(nn), unit, NULL};
    argument.cuda->machine->issue(stream, issue_round, &argument, sizeof argument);
}

/* Hashes parameters of 16 bits without a master as fp32, part by part. */
static int hash_narrow(const struct unit_argument *a, const struct weft_nn_piece *piece,
                       struct CUstream_st *on)
{
    enum { PIECE = WEFT_CUDA_WIDE_PIECE };
    const enum weft_dtype dtype = a->unit->dtype;
    float *wide = (float *)(void *)a->cuda->workspace;
    int code = 0;
    for (int64_t at = 0; at < piece->count && code == 0; at += PIECE) {
        const int64_t n = piece->count - at < PIECE ? piece->count - at : PIECE;
        const void *from = weft_nn_cuda_element(a->unit->parameters, piece->parameter_at + at,
                                                weft_dtype_bytes(dtype));
        code = weft_cuda_widen(dtype, n, from, wide, on);
        if (code == 0)
            code = weft_cuda_hash_add(a->sum, piece->name, piece->first + at, wide, n, on);
    }
    return code;
}

static enum weft_status issue_hash(struct weft_stream *stream, struct CUstream_st *on,
                                   const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct unit_argument *a = argument;
    const bool narrow = a->unit->master == NULL && a->unit->dtype != WEFT_F32;
    int code = 0;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, narrow ? WEFT_CUDA_UNIT_BYTES : 0, err));
    for (int64_t i = 0; i < a->unit->n_own && code == 0; i++) {
        const struct weft_nn_piece *piece = &a->unit->own[i];
        code = narrow ? hash_narrow(a, piece, on)
                      : weft_cuda_hash_add(a->sum, piece->name, piece->first,
                                           weft_nn_cuda_values(a->unit, piece), piece->count, on);
    }
    return weft_nn_cuda_status(a->cuda, code, "hashes of parameters", err);
}

void weft_nn_cuda_add_hash(struct weft_nn *nn, struct weft_stream *stream,
                           const struct weft_nn_unit *unit, void *sum)
{
    const struct unit_argument argument = {weft_nn_cuda_of(nn), unit, sum};
    argument.cuda->machine->issue(stream, issue_hash, &argument, sizeof argument);
}

struct mix_argument {
    struct weft_nn_cuda *cuda;
    const void *from;
    int64_t bytes;
    uint64_t *word;
};

static enum weft_status issue_mix(struct weft_stream *stream, struct CUstream_st *on,
                                  const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct mix_argument *a = argument;
    const int64_t sums_bytes = 2 * (int64_t)sizeof(uint64_t);
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, WEFT_CUDA_UNIT_BYTES, err));
    uint64_t *sums = (uint64_t *)(void *)a->cuda->workspace;
    int code = weft_cuda_fill(sums, 0, sums_bytes, on);
    if (code == 0)
        code = weft_cuda_hash_add(sums, 0, 0, (const float *)a->from,
                                  a->bytes / (int64_t)sizeof(float), on);
    if (code == 0) code = weft_cuda_mix(sums, a->from, a->bytes, a->word, on);
    return weft_nn_cuda_status(a->cuda, code, "a hash of bytes", err);
}

void weft_nn_cuda_mix_hash(struct weft_nn *nn, struct weft_stream *stream, const void *from,
                           int64_t bytes, void *word)
{
    const struct mix_argument argument = {weft_nn_cuda_of(nn), from, bytes, word};
    argument.cuda->machine->issue(stream, issue_mix, &argument, sizeof argument);
}
