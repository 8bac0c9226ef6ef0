#include <string.h>

#include "base/rng.h"
#include "runtime/exec/parts.h"

static void fill_piece(const struct weft_tensor *tensor, uint64_t seed,
                       const struct weft_piece *piece, float *out)
{
    uint64_t stream = weft_hash_string(tensor->name);
    switch (tensor->init) {
    case WEFT_INIT_ZERO:
        memset(out, 0, (size_t)piece->count * sizeof *out);
        return;
    case WEFT_INIT_ONE:
        for (int64_t i = 0; i < piece->count; i++)
            out[i] = 1.0f;
        return;
    case WEFT_INIT_NORMAL:
        for (int64_t i = 0; i < piece->count; i++) {
            uint64_t element = (uint64_t)(piece->tensor_begin + i);
            out[i] = (float)(weft_rng_normal(seed, stream, element) * tensor->init_std);
        }
        return;
    case WEFT_INIT_COUNT:
        return;
    }
}

/* Zeroes gaps and padding along the way. Under zero1 only this rank's slices get values: the first
 * gather brings the others. */
static void fill_unit(struct weft_exec *exec, const struct exec_unit *unit, uint64_t seed)
{
    const struct weft_tensor *tensors = exec->options.config->model->tensors;
    memset(unit->parameters, 0, (size_t)unit->parameter_elements * sizeof(float));
    for (int64_t i = 0; i < unit->n_updated; i++) {
        const struct weft_piece *piece = &unit->updated[i];
        fill_piece(&tensors[piece->tensor], seed, piece,
                   unit->parameters + exec_parameter_at(unit, piece));
    }
    if (!unit->trainable) return;
    if (unit->moment1) memset(unit->moment1, 0, (size_t)unit->state_elements * sizeof(float));
    if (unit->moment2) memset(unit->moment2, 0, (size_t)unit->state_elements * sizeof(float));
}

enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed, struct weft_error *err)
{
    for (int32_t u = 0; u < exec->options.program->n_units; u++)
        fill_unit(exec, &exec->units[u], seed);
    memset(exec->record, 0, WEFT_AGREE_BYTES);
    memset(exec->record_sum, 0, WEFT_AGREE_BYTES);
    exec->pending.valid = false;
    /* No rank gathers what another has not yet written. */
    return weft_comm_exchange(exec->options.comm, NULL, 0, NULL, err);
}
