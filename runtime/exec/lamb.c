/* LAMB scales the step of a tensor by lengths of all of it, of which a rank has slices. So an
 * update has two parts, and between them ranks add up what each has counted: every element on the
 * one rank that owns its slice, whatever the policy, as in the norm for clipping. */
#include <string.h>

#include "runtime/exec/parts.h"
#include "spec/profile.h"

enum { OF_PARAMETERS = 0, OF_STEPS = WEFT_NORM_PACKED_WORDS, TENSOR_WORDS = OF_STEPS * 2 };
_Static_assert(TENSOR_WORDS * sizeof(uint64_t) == WEFT_TENSOR_NORMS_BYTES, "what plans hold");

struct moments_argument {
    struct weft_exec *exec;
    struct exec_unit *unit;
    bool works; /* there are gradients to apply */
};

/* Where a tensor stands in its unit; `from`: where the one of the piece before stood. */
static int32_t place_of(const struct weft_exec *exec, const struct exec_unit *unit, int32_t tensor,
                        int32_t from)
{
    const struct weft_unit *of = &exec->options.shards->units[unit - exec->units];
    while (of->tensors[from] != tensor)
        from++;
    return from;
}

/* A rank's pieces are in order of tensors. */
static void count_norms(const struct weft_exec *exec, const struct exec_unit *unit)
{
    const struct weft_optimizer *optimizer = &exec->pending.optimizer;
    const struct weft_tensor *tensors = exec->options.config->model->tensors;
    int32_t place = 0;
    for (int64_t i = 0, next; i < unit->n_own; i = next) {
        int32_t tensor = unit->own[i].tensor;
        bool matrix = tensors[tensor].decays;
        struct weft_lamb_bins bins = {0};
        place = place_of(exec, unit, tensor, place);
        for (next = i; next < unit->n_own && unit->own[next].tensor == tensor; next++) {
            struct weft_update what = weft_exec_update_of(exec, unit, &unit->own[next]);
            if (weft_lamb_adapts(optimizer, matrix)) weft_lamb_add(optimizer, matrix, &what, &bins);
        }
        uint64_t *words = unit->norms + (int64_t)place * TENSOR_WORDS;
        weft_norm_pack(bins.parameters, words + OF_PARAMETERS);
        weft_norm_pack(bins.steps, words + OF_STEPS);
    }
}

static enum weft_status moments(struct weft_stream *stream, const void *argument,
                                struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct moments_argument *a = argument;
    memset(a->unit->norms, 0, (size_t)a->unit->norms_words * sizeof *a->unit->norms);
    if (!a->works) return WEFT_OK;
    for (int64_t i = 0; i < a->unit->n_updated; i++) {
        struct weft_update what = weft_exec_update_of(a->exec, a->unit, &a->unit->updated[i]);
        weft_lamb_moments(&a->exec->pending.optimizer, &what);
    }
    count_norms(a->exec, a->unit);
    return WEFT_OK;
}

void weft_exec_push_moments(struct weft_exec *exec, struct exec_unit *unit)
{
    struct moments_argument argument = {exec, unit, exec->pending.valid};
    weft_stream_push(exec->streams[WEFT_STREAM_COMPUTE], moments, &argument, sizeof argument);
}

void weft_exec_apply_lamb(struct weft_exec *exec, struct exec_unit *unit)
{
    const struct weft_optimizer *optimizer = &exec->pending.optimizer;
    const struct weft_tensor *tensors = exec->options.config->model->tensors;
    int32_t place = 0;
    for (int64_t i = 0; i < unit->n_updated; i++) {
        const struct weft_piece *piece = &unit->updated[i];
        bool matrix = tensors[piece->tensor].decays;
        place = place_of(exec, unit, piece->tensor, place);
        const uint64_t *words = unit->norms_sum + (int64_t)place * TENSOR_WORDS;
        float trust = weft_lamb_trust(optimizer, matrix, words + OF_PARAMETERS, words + OF_STEPS);
        struct weft_update what = weft_exec_update_of(exec, unit, piece);
        weft_lamb_apply(optimizer, matrix, trust, &what);
    }
}
