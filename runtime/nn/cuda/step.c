/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's part of a step's record: squares of gradients, the loss, and infinities and NaNs. */
#include "runtime/nn/cuda/cuda.h"
#include "runtime/nn/cuda/kernels/record.h"

struct norm_argument {
    struct weft_nn_cuda *cuda;
    const struct weft_nn_unit *unit;
    uint64_t *bins, *bad;
};

static enum weft_status issue_norm(struct weft_stream *stream, struct CUstream_st *on,
                                   const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct norm_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    uint64_t *before = a->cuda->norm;
    int code = weft_cuda_copy(before, a->bins + WEFT_NORM_WORDS - 2, WEFT_CUDA_NORM_BYTES, on);
    for (int64_t i = 0; i < unit->n_own && code == 0;) {
        struct weft_nn_piece piece;
        i = weft_nn_cuda_join(unit->own, unit->n_own, i, false, &piece);
        const enum weft_dtype dtype = unit->gradient_dtype;
        code = weft_cuda_norm_add(
            a->bins, dtype,
            weft_nn_cuda_element(unit->gradient, piece.state_at, weft_dtype_bytes(dtype)),
            piece.count, on);
    }
    if (code == 0) code = weft_cuda_norm_bad(a->bins, before, a->bad, on);
    return weft_nn_cuda_status(a->cuda, code, "the norm", err);
}

void weft_nn_cuda_add_norm(struct weft_nn *nn, struct weft_stream *stream,
                           const struct weft_nn_unit *unit, void *bins, void *bad)
{
    const struct norm_argument argument = {weft_nn_cuda_of(nn), unit, bins, bad};
    argument.cuda->machine->issue(stream, issue_norm, &argument, sizeof argument);
}

struct loss_argument {
    struct weft_nn_cuda *cuda;
    const double *loss;
    const uint64_t *before;
    uint64_t *words;
};

static enum weft_status issue_loss(struct weft_stream *stream, struct CUstream_st *on,
                                   const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct loss_argument *a = argument;
    return weft_nn_cuda_status(a->cuda, weft_cuda_record_loss(a->loss, a->before, a->words, on),
                               "the loss", err);
}

void weft_nn_cuda_record_loss(struct weft_nn *nn, struct weft_stream *stream, const void *loss,
                              const void *before, void *words)
{
    const struct loss_argument argument = {weft_nn_cuda_of(nn), loss, before, words};
    argument.cuda->machine->issue(stream, issue_loss, &argument, sizeof argument);
}

struct look_argument {
    struct weft_nn_cuda *cuda;
    struct weft_nn_look look;
};

static enum weft_status issue_look(struct weft_stream *stream, struct CUstream_st *on,
                                   const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct look_argument *a = argument;
    const struct weft_nn_look *look = &a->look;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, WEFT_CUDA_UNIT_BYTES, err));
    uint32_t *flag = (uint32_t *)(void *)a->cuda->workspace;
    const struct weft_cuda_finding finding = {flag, look->loss, look->place, look->first,
                                              look->stop};
    int code = weft_cuda_fill(flag, 0, sizeof *flag, on);
    for (int32_t i = 0; i < look->n_numbers && code == 0; i++) {
        const struct weft_nn_numbers *numbers = &look->numbers[i];
        code = weft_cuda_look(numbers->dtype, numbers->n, numbers->at, look->terms, flag, on);
    }
    if (code == 0) code = weft_cuda_find(&finding, on);
    return weft_nn_cuda_status(a->cuda, code, "a look for what is not finite", err);
}

void weft_nn_cuda_look(struct weft_nn *nn, struct weft_stream *stream,
                       const struct weft_nn_look *look)
{
    const struct look_argument argument = {weft_nn_cuda_of(nn), *look};
    argument.cuda->machine->issue(stream, issue_look, &argument, sizeof argument);
}
