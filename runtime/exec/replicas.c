/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of the parameters. Replicas are bytes that all ranks have: parameters under dp, zero1 and
 * central, and the optimizer's state under dp. The ranks of one place in every node have the same
 * shards under hsdp and nodes, and the same state under hsdp. Only their comparison shows a rank
 * with wrong memory or arithmetic. A fingerprint is of the parameters alone. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/comm/branch.h"
#include "runtime/exec/average.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/host.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"
#include "runtime/exec/window.h"

enum { HASHES = 256 }; /* later units share the last */

static void push_buffer(const struct weft_exec *exec, enum weft_buffer_kind kind, int32_t unit)
{
    const struct weft_program *program = exec->options.program;
    int32_t buffer = weft_program_buffer(program, kind, unit, 0);
    if (buffer < 0) return;
    const struct weft_buffer *at = &program->buffers[buffer];
    weft_nn_mix_hash(exec->options.nn, exec->streams[WEFT_LANE_COMPUTE],
                     exec->base + exec->places.offsets[0][buffer], at->bytes, EXEC_OWN(exec, hash));
}

static enum weft_status mix_chunk(struct weft_exec *exec, const struct exec_chunk *chunk,
                                  struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    const int64_t bytes = chunk->n * (int64_t)sizeof *chunk->values;
    weft_arena_write(exec->arena, stream, exec->record_sum, chunk->values, bytes);
    weft_nn_mix_hash(exec->options.nn, stream, exec->record_sum, bytes, EXEC_OWN(exec, hash));
    return weft_stream_synchronise(stream, err);
}

/* Mixes a unit's state into the hash, from its location. */
static enum weft_status push_state(struct weft_exec *exec, const struct exec_unit *unit,
                                   struct weft_error *err)
{
    static const enum weft_buffer_kind kinds[WEFT_STATE_COUNT] = {
        [WEFT_STATE_PARAMETER] = WEFT_BUFFER_MASTER,
        [WEFT_STATE_MOMENT1] = WEFT_BUFFER_MOMENT1,
        [WEFT_STATE_MOMENT2] = WEFT_BUFFER_MOMENT2,
    };
    /* A pending gradient has no replicas. */
    for (int state = 0; state < WEFT_STATE_PENDING; state++) {
        if (!unit->offloaded)
            push_buffer(exec, kinds[state], unit->index);
        else if (unit->states[state])
            WEFT_TRY(
                weft_exec_window_walk(exec, unit, (enum weft_state)state, true, mix_chunk, err));
    }
    return WEFT_OK;
}

/* Mixes the shard of a unit of nodes into the hash, from the arena or from the host. */
static enum weft_status push_shard(struct weft_exec *exec, const struct exec_unit *unit,
                                   struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    const int64_t most = EXEC_CHUNK * (int64_t)sizeof(float);
    if (!unit->fetches) {
        push_buffer(exec, WEFT_BUFFER_SHARD, unit->index);
        return WEFT_OK;
    }
    const struct weft_memory_span shard =
        weft_exec_host_part(exec->host, unit->index, EXEC_HOST_PARAMETERS);
    for (int64_t from = 0, n; from < shard.bytes; from += n) {
        n = shard.bytes - from < most ? shard.bytes - from : most;
        weft_arena_write(exec->arena, stream, exec->record_sum, (unsigned char *)shard.at + from,
                         n);
        weft_nn_mix_hash(exec->options.nn, stream, exec->record_sum, n, EXEC_OWN(exec, hash));
        WEFT_TRY(weft_stream_synchronise(stream, err));
    }
    return WEFT_OK;
}

static int32_t slot_of(int32_t unit)
{
    return unit < HASHES ? unit : HASHES - 1;
}

/* Hashes the replicas of each unit. Mixing continues from the hash of earlier units in the same
 * slot. */
static enum weft_status hash_units(struct weft_exec *exec, uint64_t hashes[HASHES],
                                   struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    const int64_t bytes = sizeof *hashes;
    memset(hashes, 0, HASHES * sizeof *hashes);
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        uint64_t *hash = &hashes[slot_of(u)];
        weft_arena_write(exec->arena, stream, EXEC_OWN(exec, hash), hash, bytes);
        if (unit->resident) push_buffer(exec, WEFT_BUFFER_FULL, u);
        if (unit->in_node) WEFT_TRY(push_shard(exec, unit, err));
        if ((unit->whole && !unit->central) || unit->hybrid) WEFT_TRY(push_state(exec, unit, err));
        weft_arena_read(exec->arena, stream, EXEC_OWN(exec, hash), bytes, hash);
    }
    return weft_stream_synchronise(stream, err);
}

/* Ranks with the same replicas in a slot: `first`, and every `gap`-th rank after it. */
struct replica_holders {
    const uint64_t *all; /* hashes by rank and slot */
    int32_t slot, first, gap, ranks;
};

/* The gap between holders: 1, or the ranks of a node if the slot has a unit of nodes' ranks. */
static int32_t gap_of_slot(const struct weft_exec *exec, int32_t slot)
{
    for (int32_t u = slot; u < exec->options.program->n_units; u++)
        if (slot_of(u) == slot && exec->units[u].in_node)
            return (int32_t)exec->options.shards->ranks_per_node;
    return 1;
}

/* Number of holders with the hash of `rank`. */
static int32_t count_alike(const struct replica_holders *of, int32_t rank)
{
    int32_t alike = 0;
    for (int32_t r = of->first; r < of->ranks; r += of->gap)
        alike += of->all[r * HASHES + of->slot] == of->all[rank * HASHES + of->slot];
    return alike;
}

/* Names the holders outside the largest group that agrees, or all holders if no group is largest.
 */
static enum weft_status blame_ranks(const struct weft_exec *exec, const struct replica_holders *of,
                                    struct weft_error *err)
{
    struct weft_text odd;
    int32_t most = 0, groups = 0;
    for (int32_t r = of->first; r < of->ranks; r += of->gap) {
        const int32_t alike = count_alike(of, r);
        groups += alike == most;
        if (alike > most) most = alike, groups = 1;
    }
    bool known = groups == most;
    weft_text_init(&odd);
    for (int32_t r = of->first; r < of->ranks; r += of->gap) {
        if (known && count_alike(of, r) == most) continue;
        weft_text_addf(&odd, "%s%d", odd.length > 0 ? ", " : "",
                       weft_comm_rank_of_all(exec->comm, r));
    }
    enum weft_status status = weft_fail(
        err, WEFT_E_NUMERIC,
        "the ranks' replicas of unit %s differ: rank %s %s. Memory or arithmetic of a machine is "
        "not to be trusted; start again from the last checkpoint, on other hardware if it comes "
        "again",
        exec->options.shards->units[of->slot].name, weft_text_chars(&odd),
        known ? "holds other bits than the other ranks"
              : "(which of them is wrong cannot be told)");
    weft_text_finish(&odd);
    return status;
}

static enum weft_status compare_hashes(const struct weft_exec *exec, const uint64_t *all,
                                       struct weft_error *err)
{
    for (int32_t slot = 0; slot < HASHES && slot < exec->options.program->n_units; slot++) {
        const int32_t gap = gap_of_slot(exec, slot);
        for (int32_t first = 0; first < gap; first++) {
            const struct replica_holders of = {all, slot, first, gap, exec->ranks};
            if (count_alike(&of, first) * gap < exec->ranks) return blame_ranks(exec, &of, err);
        }
    }
    return WEFT_OK;
}

/* Flips a bit of the first unit with replicas of parameters, if a failpoint asks for it. */
static enum weft_status flip_bit(struct weft_exec *exec, int64_t step, struct weft_error *err)
{
    struct weft_stream *stream = exec->streams[WEFT_LANE_COMPUTE];
    unsigned char byte;
    int32_t u = 0;
    if (weft_failpoint_at(exec->options.failpoint, "replica", weft_comm_rank(exec->options.comm),
                          step) != WEFT_FAILURE_FLIP)
        return WEFT_OK;
    while (u < exec->options.program->n_units && !exec->units[u].resident &&
           !exec->units[u].in_node)
        u++;
    if (u == exec->options.program->n_units) return WEFT_OK;
    if (exec->units[u].fetches) {
        unsigned char *shard = weft_exec_host_part(exec->host, u, EXEC_HOST_PARAMETERS).at;
        shard[0] ^= 1;
        return WEFT_OK;
    }
    weft_arena_read(exec->arena, stream, exec->units[u].nn.parameters, 1, &byte);
    WEFT_TRY(weft_stream_synchronise(stream, err));
    byte ^= 1;
    weft_arena_write(exec->arena, stream, exec->units[u].nn.parameters, &byte, 1);
    return weft_stream_synchronise(stream, err);
}

static enum weft_status compare_ranks(struct weft_exec *exec, int64_t step, struct weft_error *err)
{
    uint64_t mine[HASHES];
    uint64_t *all = calloc((size_t)exec->ranks, sizeof mine);
    if (all == NULL) return weft_fail_memory(err, "the ranks' hashes");
    enum weft_status status = flip_bit(exec, step, err);
    if (status == WEFT_OK) status = hash_units(exec, mine, err);
    if (status == WEFT_OK) status = weft_comm_exchange(exec->comm, mine, sizeof mine, all, err);
    if (status == WEFT_OK) status = compare_hashes(exec, all, err);
    free(all);
    return status;
}

enum weft_status weft_exec_compare_replicas(struct weft_exec *exec, int64_t step,
                                            struct weft_error *err)
{
    if (exec->average == NULL) return compare_ranks(exec, step, err);
    struct weft_error *own = calloc(1, sizeof *own);
    if (own == NULL) return weft_fail_memory(err, "an error");
    enum weft_status status = compare_ranks(exec, step, own);
    status = weft_exec_share_status(exec, status, own, err);
    free(own);
    return status;
}

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
        if (unit->offloaded && unit->states[WEFT_STATE_PARAMETER])
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
    enum weft_status status = weft_comm_exchange(exec->comm, &mine, sizeof mine, all, err);
    for (int32_t r = 0; r < exec->ranks && status == WEFT_OK; r++) {
        sum.high += all[r].high;
        sum.low += all[r].low;
    }
    free(all);
    if (status == WEFT_OK) status = weft_exec_share_hash(exec, &sum, err);
    if (status == WEFT_OK) *out = sum;
    return status;
}
