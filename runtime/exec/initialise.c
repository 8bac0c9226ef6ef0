#include "base/hash.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/state.h"

/* Under zero1 only this rank's slices get values: the first gather brings the others. */
enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed, struct weft_error *err)
{
    const struct weft_tensor *tensors = exec->options.config->model->tensors;
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    WEFT_TRY(weft_exec_state_clear(exec, err));
    while (weft_exec_state_next(exec, &cursor, &piece)) {
        const struct weft_tensor *tensor = &tensors[piece.tensor];
        const struct weft_nn_initial initial = {.init = tensor->init,
                                                .std = tensor->init_std,
                                                .seed = seed,
                                                .name = weft_hash_string(tensor->name),
                                                .first = piece.first,
                                                .n = piece.count,
                                                .to = exec->base + piece.offset};
        if (piece.state == WEFT_STATE_PARAMETER)
            weft_nn_initialise(exec->options.nn, exec->streams[WEFT_STREAM_COMPUTE], &initial);
    }
    return weft_exec_state_filled(exec, err);
}
