/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizer's step of a unit. LAMB scales a tensor's step by norms of the whole tensor, and a
 * rank has only slices of it. So its update has two parts, and between them ranks add their counts.
 * The owner of a slice counts each element once, under any policy, as in the norm for clipping. */
#include <stdatomic.h>

#include "runtime/nn/cpu/units.h"
#include "spec/profile/profile.h"

enum { OF_PARAMETERS = 0, OF_STEPS = WEFT_NORM_PACKED_WORDS };
_Static_assert(WEFT_NN_TENSOR_WORDS * sizeof(uint64_t) == WEFT_TENSOR_NORMS_BYTES,
               "what plans hold");

struct update_argument {
    const struct weft_nn_cpu *cpu;
    const struct weft_nn_unit *unit;
    const struct weft_nn_rule *rule;
    const void *step;
};

static struct weft_nn_step *step_of(const struct update_argument *a)
{
    return weft_nn_cpu_reach(a->cpu, a->step);
}

static struct weft_optimizer optimizer_of(const struct update_argument *a)
{
    const struct weft_nn_step *step = step_of(a);
    return (struct weft_optimizer){.type = a->rule->type,
                                   .exempt_vectors = a->rule->exempt_vectors,
                                   .decay = a->rule->decay,
                                   .adamw = step->adamw,
                                   .sgd = step->sgd,
                                   .divisor = 1};
}

static float *state_of(const struct weft_nn_cpu *cpu, const void *state,
                       const struct weft_nn_piece *piece)
{
    return state == NULL ? NULL : weft_nn_cpu_element(cpu, state, piece->state_at, sizeof(float));
}

/* The arrays for the update of a piece. */
static struct weft_update update_of(const struct weft_nn_cpu *cpu, const struct weft_nn_unit *unit,
                                    const struct weft_nn_piece *piece)
{
    const int64_t size = weft_dtype_bytes(unit->dtype);
    return (struct weft_update){
        .parameters = weft_nn_cpu_values(cpu, unit, piece),
        .gradients = weft_nn_cpu_element(cpu, unit->gradient, piece->state_at,
                                         weft_dtype_bytes(unit->gradient_dtype)),
        .gradient_dtype = unit->gradient_dtype,
        .moment1 = state_of(cpu, unit->moment1, piece),
        .moment2 = state_of(cpu, unit->moment2, piece),
        .copy = unit->master == NULL
                    ? NULL
                    : weft_nn_cpu_element(cpu, unit->parameters, piece->parameter_at, size),
        .copy_dtype = unit->dtype,
        .n = piece->count,
    };
}

static enum weft_status update_unit(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct update_argument *a = argument;
    _Atomic uint32_t *stop = (_Atomic uint32_t *)&step_of(a)->stop;
    if (atomic_load(stop) != 0) return WEFT_OK;
    struct weft_optimizer optimizer = optimizer_of(a);
    const float *divisors =
        a->unit->divisors == NULL ? NULL : weft_nn_cpu_reach(a->cpu, a->unit->divisors);
    for (int64_t i = 0; i < a->unit->n_renew; i++) {
        const struct weft_nn_piece *piece = &a->unit->renew[i];
        const struct weft_update what = update_of(a->cpu, a->unit, piece);
        if (divisors != NULL) optimizer.divisor = divisors[piece->tensor];
        weft_optimizer_update(&optimizer, piece->matrix, &what);
    }
    return WEFT_OK;
}

static void count_norms(const struct update_argument *a, const struct weft_optimizer *optimizer)
{
    const struct weft_nn_unit *unit = a->unit;
    uint64_t *norms = weft_nn_cpu_reach(a->cpu, unit->norms);
    for (int64_t i = 0, next; i < unit->n_own; i = next) {
        const struct weft_nn_piece *first = &unit->own[i];
        struct weft_lamb_bins bins = {0};
        for (next = i; next < unit->n_own && unit->own[next].place == first->place; next++) {
            const struct weft_update what = update_of(a->cpu, unit, &unit->own[next]);
            if (weft_lamb_adapts(optimizer, first->matrix))
                weft_lamb_add(optimizer, first->matrix, &what, &bins);
        }
        uint64_t *words = norms + (int64_t)first->place * WEFT_NN_TENSOR_WORDS;
        weft_norm_pack(bins.parameters, words + OF_PARAMETERS);
        weft_norm_pack(bins.steps, words + OF_STEPS);
    }
}

static enum weft_status renew_moments(struct weft_stream *stream, const void *argument,
                                      struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct update_argument *a = argument;
    const struct weft_optimizer optimizer = optimizer_of(a);
    for (int64_t i = 0; i < a->unit->n_renew; i++) {
        const struct weft_update what = update_of(a->cpu, a->unit, &a->unit->renew[i]);
        weft_lamb_moments(&optimizer, &what);
    }
    count_norms(a, &optimizer);
    return WEFT_OK;
}

static enum weft_status apply_steps(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct update_argument *a = argument;
    const struct weft_optimizer optimizer = optimizer_of(a);
    const uint64_t *sums = weft_nn_cpu_reach(a->cpu, a->unit->norms_sum);
    for (int64_t i = 0; i < a->unit->n_renew; i++) {
        const struct weft_nn_piece *piece = &a->unit->renew[i];
        const uint64_t *words = sums + (int64_t)piece->place * WEFT_NN_TENSOR_WORDS;
        const float trust =
            weft_lamb_trust(&optimizer, piece->matrix, words + OF_PARAMETERS, words + OF_STEPS);
        const struct weft_update what = update_of(a->cpu, a->unit, piece);
        weft_lamb_apply(&optimizer, piece->matrix, trust, &what);
    }
    return WEFT_OK;
}

void weft_nn_cpu_update(struct weft_nn *nn, struct weft_stream *stream,
                        const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                        const void *step)
{
    const struct update_argument argument = {weft_nn_cpu_of(nn), unit, rule, step};
    weft_stream_push(stream, update_unit, &argument, sizeof(argument));
}

void weft_nn_cpu_moments(struct weft_nn *nn, struct weft_stream *stream,
                         const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                         const void *step)
{
    const struct update_argument argument = {weft_nn_cpu_of(nn), unit, rule, step};
    weft_stream_push(stream, renew_moments, &argument, sizeof(argument));
}

void weft_nn_cpu_apply(struct weft_nn *nn, struct weft_stream *stream,
                       const struct weft_nn_unit *unit, const struct weft_nn_rule *rule,
                       const void *step)
{
    const struct update_argument argument = {weft_nn_cpu_of(nn), unit, rule, step};
    weft_stream_push(stream, apply_steps, &argument, sizeof(argument));
}
