/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer's step of a unit: kernels for every piece that this rank updates. LAMB has two
 * parts, as on the CPU (runtime/nn/cpu/update.c). */
#include <stddef.h>

#include "runtime/nn/cuda/cuda.h"
#include "runtime/nn/cuda/kernels/average.h"
#include "runtime/nn/cuda/kernels/record.h"

_Static_assert(offsetof(struct weft_nn_step, stop) == offsetof(struct weft_cuda_step, stop) &&
                   offsetof(struct weft_nn_step, adamw) == offsetof(struct weft_cuda_step, adamw) &&
                   offsetof(struct weft_nn_step, sgd) == offsetof(struct weft_cuda_step, sgd),
               "a kernel reads the beginning of the scalars of a step");

struct update_argument {
    struct weft_nn_cuda *cuda;
    const struct weft_nn_unit *unit;
    const struct weft_nn_rule *rule;
    const struct weft_cuda_step *step;
};

static float *state_of(const void *state, const struct weft_nn_piece *piece)
{
    return state == NULL ? NULL : weft_nn_cuda_element(state, piece->state_at, sizeof(float));
}

static struct weft_update update_of(const struct weft_nn_unit *unit,
                                    const struct weft_nn_piece *piece)
{
    const int64_t size = weft_dtype_bytes(unit->dtype);
    return (struct weft_update){
        .parameters = weft_nn_cuda_values(unit, piece),
        .gradients = weft_nn_cuda_element(unit->gradient, piece->state_at,
                                          weft_dtype_bytes(unit->gradient_dtype)),
        .gradient_dtype = unit->gradient_dtype,
        .moment1 = state_of(unit->moment1, piece),
        .moment2 = state_of(unit->moment2, piece),
        .copy = unit->master == NULL
                    ? NULL
                    : weft_nn_cuda_element(unit->parameters, piece->parameter_at, size),
        .copy_dtype = unit->dtype,
        .n = piece->count,
    };
}

static bool adapts_rate(const struct weft_nn_rule *rule, const struct weft_nn_piece *piece)
{
    return piece->matrix || !rule->exempt_vectors;
}

static float decay_of(const struct weft_nn_rule *rule, const struct weft_nn_piece *piece)
{
    return adapts_rate(rule, piece) ? rule->decay : 0;
}

static enum weft_status issue_update(struct weft_stream *stream, struct CUstream_st *on,
                                     const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct update_argument *a = argument;
    int code = 0;
    for (int64_t i = 0; i < a->unit->n_renew && code == 0;) {
        struct weft_nn_piece piece;
        i = weft_nn_cuda_join(a->unit->renew, a->unit->n_renew, i, a->rule->exempt_vectors, &piece);
        const struct weft_update what = update_of(a->unit, &piece);
        const float decay = decay_of(a->rule, &piece);
        code = weft_cuda_update(a->rule->type, a->step, decay, &what, on);
    }
    return weft_nn_cuda_status(a->cuda, code, "an update", err);
}

/* LAMB: squares of a tensor's parameters and steps, over the pieces that this rank counts. */
struct bins {
    uint64_t parameters[WEFT_NORM_WORDS], steps[WEFT_NORM_WORDS];
};
_Static_assert(sizeof(struct bins) <= WEFT_CUDA_UNIT_BYTES, "they lie in the workspace");

static int count_tensor(const struct update_argument *a, const struct weft_nn_piece *pieces,
                        int64_t n, struct bins *bins, struct CUstream_st *on)
{
    uint64_t *words = (uint64_t *)a->unit->norms + (int64_t)pieces->place * WEFT_NN_TENSOR_WORDS;
    int code = weft_cuda_fill(bins, 0, sizeof *bins, on);
    for (int64_t i = 0; i < n && code == 0 && adapts_rate(a->rule, pieces); i++) {
        const struct weft_update what = update_of(a->unit, &pieces[i]);
        code = weft_cuda_norm_add(bins->parameters, WEFT_F32, what.parameters, what.n, on);
        if (code == 0)
            code =
                weft_cuda_lamb_squares(a->step, decay_of(a->rule, pieces), &what, bins->steps, on);
    }
    if (code == 0) code = weft_cuda_norm_pack(bins->parameters, words, on);
    if (code != 0) return code;
    return weft_cuda_norm_pack(bins->steps, words + WEFT_NORM_PACKED_WORDS, on);
}

static enum weft_status issue_moments(struct weft_stream *stream, struct CUstream_st *on,
                                      const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct update_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    int code = 0;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, WEFT_CUDA_UNIT_BYTES, err));
    for (int64_t i = 0; i < unit->n_renew && code == 0; i++) {
        const struct weft_update what = update_of(unit, &unit->renew[i]);
        code = weft_cuda_lamb_moments(a->step, &what, on);
    }
    for (int64_t i = 0, next; i < unit->n_own && code == 0; i = next) {
        next = i + 1;
        while (next < unit->n_own && unit->own[next].place == unit->own[i].place)
            next++;
        code = count_tensor(a, &unit->own[i], next - i, (void *)a->cuda->workspace, on);
    }
    return weft_nn_cuda_status(a->cuda, code, "LAMB's moments", err);
}

static enum weft_status issue_apply(struct weft_stream *stream, struct CUstream_st *on,
                                    const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct update_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    int code = 0;
    WEFT_TRY(weft_nn_cuda_reserve(a->cuda, WEFT_CUDA_UNIT_BYTES, err));
    float *trust = (float *)(void *)a->cuda->workspace;
    for (int64_t i = 0; i < unit->n_renew && code == 0; i++) {
        const struct weft_nn_piece *piece = &unit->renew[i];
        const struct weft_update what = update_of(unit, piece);
        const uint64_t *words =
            (const uint64_t *)unit->norms_sum + (int64_t)piece->place * WEFT_NN_TENSOR_WORDS;
        const bool trusts = adapts_rate(a->rule, piece);
        if (trusts) code = weft_cuda_lamb_trust(words, words + WEFT_NORM_PACKED_WORDS, trust, on);
        if (code == 0)
            code = weft_cuda_lamb_apply(a->step, decay_of(a->rule, piece), trusts ? trust : NULL,
                                        &what, on);
    }
    return weft_nn_cuda_status(a->cuda, code, "LAMB's update", err);
}

struct average_argument {
    struct weft_nn_cuda *cuda;
    const struct weft_nn_unit *unit;
    struct weft_nn_outer outer;
};

static enum weft_status issue_average(struct weft_stream *stream, struct CUstream_st *on,
                                      const void *argument, struct weft_error *err)
{
    (void)stream;
    const struct average_argument *a = argument;
    const struct weft_nn_unit *unit = a->unit;
    int code = 0;
    for (int64_t i = 0; i < unit->n_own && code == 0;) {
        struct weft_nn_piece piece;
        i = weft_nn_cuda_join(unit->own, unit->n_own, i, false, &piece);
        const struct weft_cuda_average what = {
            .values = weft_nn_cuda_values(unit, &piece),
            .anchor = state_of(unit->anchor, &piece),
            .momentum = state_of(unit->outer, &piece),
            .copy = unit->master == NULL
                        ? NULL
                        : weft_nn_cuda_element(unit->parameters, piece.parameter_at,
                                               weft_dtype_bytes(unit->dtype)),
            .copy_dtype = unit->dtype,
            .n = piece.count,
            .nodes = (float)a->outer.nodes,
            .decay = a->outer.momentum,
            .lr = a->outer.lr,
        };
        code = weft_cuda_average(&what, on);
    }
    return weft_nn_cuda_status(a->cuda, code, "an average over nodes", err);
}

void weft_nn_cuda_average(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, const struct weft_nn_outer *outer)
{
    const struct average_argument argument = {weft_nn_cuda_of(nn), unit, *outer};
    argument.cuda->machine->issue(stream, issue_average, &argument, sizeof argument);
}

static void issue_work(struct weft_nn *nn, struct weft_stream *stream, weft_cuda_work_fn *work,
                       const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                       const void *step)
{
    const struct update_argument argument = {weft_nn_cuda_of(nn), unit, rule, step};
    argument.cuda->machine->issue(stream, work, &argument, sizeof argument);
}

void weft_nn_cuda_update(struct weft_nn *nn, struct weft_stream *stream,
                         const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                         const void *step)
{
    issue_work(nn, stream, issue_update, unit, rule, step);
}

void weft_nn_cuda_moments(struct weft_nn *nn, struct weft_stream *stream,
                          const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                          const void *step)
{
    issue_work(nn, stream, issue_moments, unit, rule, step);
}

void weft_nn_cuda_apply(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                        const void *step)
{
    issue_work(nn, stream, issue_apply, unit, rule, step);
}
