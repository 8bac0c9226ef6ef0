#include <stdlib.h>

#include "runtime/exec/exec.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"
#include "runtime/exec/window.h"

/* Hashes a chunk of an offloaded master in the buffer of the record's sum. */
static enum weft_status hash_chunk(struct weft_exec *exec, const struct exec_chunk *chunk,
                                   struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    struct weft_nn_piece piece = *chunk->piece;
    struct weft_nn_unit unit = exec->units[chunk->unit].nn;
    piece.first += chunk->from;
    piece.count = chunk->n;
    piece.state_at = 0;
    unit.master = exec->record_sum;
    unit.own = &piece;
    unit.n_own = 1;
    weft_arena_write(exec->arena, stream, exec->record_sum, chunk->values,
                     chunk->n * (int64_t)sizeof *chunk->values);
    weft_nn_add_hash(exec->options.nn, stream, &unit, EXEC_OWN(exec, hash));
    return weft_stream_synchronise(stream, err);
}

/* Hashes the pieces that this rank owns. */
static enum weft_status hash_own(struct weft_exec *exec, struct weft_hash *out,
                                 struct weft_error *err)
{
    static const struct weft_range words = {0, sizeof exec->mailbox.hash};
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    weft_arena_fill(exec->arena, stream, EXEC_OWN(exec, hash), &words, 1, 0);
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        if (unit->away && unit->states[WEFT_STATE_PARAMETER])
            WEFT_TRY(
                weft_exec_window_walk(exec, unit, WEFT_STATE_PARAMETER, false, hash_chunk, err));
        else
            weft_nn_add_hash(exec->options.nn, stream, &unit->nn, EXEC_OWN(exec, hash));
    }
    weft_arena_read(exec->arena, stream, EXEC_OWN(exec, hash), sizeof exec->mailbox.hash,
                    exec->mailbox.hash);
    WEFT_TRY(weft_stream_synchronise(stream, err));
    *out = (struct weft_hash){.high = exec->mailbox.hash[0], .low = exec->mailbox.hash[1]};
    return WEFT_OK;
}

enum weft_status weft_exec_fingerprint(struct weft_exec *exec, struct weft_hash *out,
                                       struct weft_error *err)
{
    struct weft_hash mine = {0}, sum = {0};
    WEFT_TRY(hash_own(exec, &mine, err));
    struct weft_hash *all = calloc((size_t)exec->ranks, sizeof *all);
    if (all == NULL) return weft_fail_memory(err, "the ranks' fingerprints");
    enum weft_status status = weft_comm_exchange(exec->options.comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < exec->ranks && status == WEFT_OK; r++) {
        sum.high += all[r].high;
        sum.low += all[r].low;
    }
    free(all);
    if (status == WEFT_OK) *out = sum;
    return status;
}
