#include <string.h>

#include "base/rng.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/state.h"

static void fill_piece(const struct weft_tensor *tensor, uint64_t seed,
                       const struct weft_state_piece *piece)
{
    float *out = piece->values;
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
            uint64_t element = (uint64_t)(piece->first + i);
            out[i] = (float)(weft_rng_normal(seed, stream, element) * tensor->init_std);
        }
        return;
    case WEFT_INIT_COUNT:
        return;
    }
}

/* Under zero1 only this rank's slices get values: the first gather brings the others. */
enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed, struct weft_error *err)
{
    const struct weft_tensor *tensors = exec->options.config->model->tensors;
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    weft_exec_state_clear(exec);
    while (weft_exec_state_next(exec, &cursor, &piece)) {
        if (piece.state == WEFT_STATE_PARAMETER) fill_piece(&tensors[piece.tensor], seed, &piece);
    }
    return weft_exec_state_filled(exec, err);
}
