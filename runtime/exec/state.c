#include "runtime/exec/state.h"

#include <string.h>

#include "runtime/exec/parts.h"
#include "runtime/nn/kernels.h"

/* Where elements of a piece are, NULL when there is no such state of the unit. */
static float *values_of(const struct exec_unit *unit, enum weft_state state,
                        const struct weft_piece *piece)
{
    switch (state) {
    case WEFT_STATE_PARAMETER:
        return exec_values_at(unit, piece);
    case WEFT_STATE_MOMENT1:
        return unit->moment1 == NULL ? NULL : unit->moment1 + exec_state_at(unit, piece);
    case WEFT_STATE_MOMENT2:
        return unit->moment2 == NULL ? NULL : unit->moment2 + exec_state_at(unit, piece);
    case WEFT_STATE_COUNT:
        break;
    }
    return NULL;
}

bool weft_exec_state_next(const struct weft_exec *exec, struct weft_state_cursor *cursor,
                          struct weft_state_piece *out)
{
    for (; cursor->unit < exec->options.program->n_units; cursor->unit++, cursor->state = 0) {
        const struct exec_unit *unit = &exec->units[cursor->unit];
        const struct weft_piece *pieces = cursor->held ? unit->updated : unit->own;
        int64_t n = cursor->held ? unit->n_updated : unit->n_own;
        for (; cursor->state < WEFT_STATE_COUNT; cursor->state++, cursor->piece = 0) {
            if (cursor->piece >= n) continue;
            const struct weft_piece *piece = &pieces[cursor->piece];
            enum weft_state state = (enum weft_state)cursor->state;
            float *values = values_of(unit, state, piece);
            if (values == NULL) continue;
            cursor->piece++;
            *out = (struct weft_state_piece){piece->tensor, state, piece->tensor_begin,
                                             piece->count, values};
            return true;
        }
    }
    return false;
}

static void zero_floats(float *values, int64_t n)
{
    if (values != NULL) memset(values, 0, (size_t)n * sizeof *values);
}

void weft_exec_state_clear(struct weft_exec *exec)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        struct exec_unit *unit = &exec->units[u];
        memset(unit->parameters, 0,
               (size_t)(unit->parameter_elements * weft_dtype_bytes(exec_compute(exec))));
        zero_floats(unit->master, unit->state_elements);
        zero_floats(unit->moment1, unit->state_elements);
        zero_floats(unit->moment2, unit->state_elements);
    }
    memset(exec->record, 0, WEFT_AGREE_BYTES);
    memset(exec->record_sum, 0, WEFT_AGREE_BYTES);
    exec->pending.valid = false;
}

/* What the layers read follows from the masters. */
static void round_masters(const struct weft_exec *exec, const struct exec_unit *unit)
{
    enum weft_dtype dtype = exec_compute(exec);
    for (int64_t i = 0; unit->master != NULL && i < unit->n_updated; i++) {
        const struct weft_piece *piece = &unit->updated[i];
        weft_kernels_best()->narrow(dtype, piece->count, exec_values_at(unit, piece),
                                    unit->parameters +
                                        exec_parameter_at(unit, piece) * weft_dtype_bytes(dtype));
    }
}

enum weft_status weft_exec_state_filled(struct weft_exec *exec, struct weft_error *err)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++)
        round_masters(exec, &exec->units[u]);
    /* No rank gathers what another has not yet written. */
    return weft_comm_exchange(exec->options.comm, NULL, 0, NULL, err);
}
