#include "base/hash.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/state.h"

static struct weft_nn_initial initial_of(const struct weft_exec *exec, uint64_t seed,
                                         const struct weft_state_piece *piece)
{
    const struct weft_tensor *tensor = &exec->options.config->model->tensors[piece->tensor];
    return (struct weft_nn_initial){.init = tensor->init,
                                    .std = tensor->init_std,
                                    .seed = seed,
                                    .name = weft_hash_string(tensor->name),
                                    .first = piece->first,
                                    .n = piece->count,
                                    .to = exec->base + piece->at};
}

/* A piece that is away: made part by part where the record is summed, and carried away. */
static enum weft_status initialise_away(struct weft_exec *exec, struct weft_nn_initial initial,
                                        const struct weft_state_piece *piece,
                                        struct weft_state_access *access, struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_STREAM_COMPUTE];
    float values[EXEC_CHUNK];
    initial.to = exec->record_sum;
    for (int64_t from = 0; from < piece->count; from += initial.n) {
        const int64_t left = piece->count - from;
        initial.first = piece->first + from;
        initial.n = left < EXEC_CHUNK ? left : EXEC_CHUNK;
        weft_nn_initialise(exec->options.nn, stream, &initial);
        weft_arena_read(exec->arena, stream, exec->record_sum, initial.n * (int64_t)sizeof *values,
                        values);
        WEFT_TRY(weft_stream_synchronise(stream, err));
        WEFT_TRY(weft_exec_state_write(access, piece, from, initial.n, values, err));
    }
    return WEFT_OK;
}

static enum weft_status initialise_pieces(struct weft_exec *exec, uint64_t seed,
                                          struct weft_state_access *access, struct weft_error *err)
{
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    while (weft_exec_state_next(exec, &cursor, &piece)) {
        if (piece.state != WEFT_STATE_PARAMETER) continue;
        const struct weft_nn_initial initial = initial_of(exec, seed, &piece);
        if (piece.away)
            WEFT_TRY(initialise_away(exec, initial, &piece, access, err));
        else
            weft_nn_initialise(exec->options.nn, exec->streams[WEFT_STREAM_COMPUTE], &initial);
    }
    return WEFT_OK;
}

/* Under zero1 only this rank's slices get values: the first gather brings the others. */
enum weft_status weft_exec_initialise(struct weft_exec *exec, uint64_t seed, struct weft_error *err)
{
    struct weft_state_access *access;
    WEFT_TRY(weft_exec_state_clear(exec, err));
    WEFT_TRY(weft_exec_state_open(exec, &access, err));
    const enum weft_status status = initialise_pieces(exec, seed, access, err);
    weft_exec_state_close(access);
    return status == WEFT_OK ? weft_exec_state_filled(exec, err) : status;
}
