/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/average.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/outcome.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

struct exec_average {
    struct weft_nn_outer outer; /* with the number of nodes */
    int32_t nodes, ranks;       /* ranks: of all nodes */
};

enum weft_status weft_exec_average_create(struct weft_exec *exec, struct weft_error *err)
{
    const struct weft_train *train = &exec->options.config->train;
    struct weft_comm *all = exec->options.comm;
    if (exec->options.program->period.every == 0) return WEFT_OK;
    exec->average = calloc(1, sizeof *exec->average);
    if (exec->average == NULL) return weft_fail_memory(err, "averages over nodes");
    WEFT_TRY(weft_comm_branch(all, exec->options.program->lanes[WEFT_LANE_FIRST].name,
                              WEFT_GROUP_NODE, &exec->comm, err));
    exec->average->ranks = weft_comm_ranks(all);
    exec->average->nodes = exec->average->ranks / weft_comm_ranks(exec->comm);
    exec->average->outer = (struct weft_nn_outer){
        exec->average->nodes, (float)train->across_momentum, (float)train->across_lr};
    return WEFT_OK;
}

void weft_exec_average_destroy(struct exec_average *average)
{
    free(average); /* the communicator owns its branches */
}

/* A rank's part of a step's result. The ranks of a node have the same. */
struct shared {
    uint64_t loss[WEFT_NN_LOSS_WORDS];
    int32_t stop, not_finite, earlier, suspect;
};

/* Gives each rank's `bytes` at `mine` to all ranks; NULL after an error. The caller frees it. */
static void *share_all(struct weft_exec *exec, const void *mine, size_t bytes,
                       enum weft_status *status, struct weft_error *err)
{
    void *all = calloc((size_t)exec->average->ranks, bytes);
    *status = all == NULL ? weft_fail_memory(err, "the nodes' results")
                          : weft_comm_exchange(exec->options.comm, mine, bytes, all, err);
    if (*status == WEFT_OK) return all;
    free(all);
    return NULL;
}

enum weft_status weft_exec_share_result(struct weft_exec *exec, struct weft_step_result *result,
                                        struct weft_error *err)
{
    struct shared mine, *all;
    enum weft_status status;
    if (exec->average == NULL) return WEFT_OK;
    memset(&mine, 0, sizeof mine); /* the exchange sends padding too */
    memcpy(mine.loss, exec->mailbox.sum + EXEC_WORD_LOSS, sizeof mine.loss);
    mine.stop = result->stop;
    mine.not_finite = !result->finite;
    mine.earlier = result->earlier;
    mine.suspect = result->suspect;
    all = share_all(exec, &mine, sizeof mine, &status, err);
    if (all == NULL) return status;
    memset(mine.loss, 0, sizeof mine.loss);
    for (int32_t r = 0; r < exec->average->ranks; r += exec->ranks) {
        for (int w = 0; w < WEFT_NN_LOSS_WORDS; w++)
            mine.loss[w] += all[r].loss[w]; /* integers, in any order */
        result->stop |= all[r].stop != 0;
        result->finite &= all[r].not_finite == 0;
        result->earlier |= all[r].earlier != 0;
        if (all[r].suspect > result->suspect) result->suspect = all[r].suspect;
    }
    result->loss = weft_exec_mean_loss(mine.loss, exec->rows * exec->average->nodes);
    free(all);
    return WEFT_OK;
}

enum weft_status weft_exec_share_bad(struct weft_exec *exec, bool *bad, struct weft_error *err)
{
    enum weft_status status;
    const unsigned char mine = *bad;
    if (exec->average == NULL) return WEFT_OK;
    unsigned char *all = share_all(exec, &mine, sizeof mine, &status, err);
    for (int32_t r = 0; all != NULL && r < exec->average->ranks; r++)
        *bad = *bad || all[r] != 0;
    free(all);
    return status;
}

enum weft_status weft_exec_share_hash(struct weft_exec *exec, struct weft_hash *hash,
                                      struct weft_error *err)
{
    enum weft_status status;
    bool equal = true;
    if (exec->average == NULL) return WEFT_OK;
    struct weft_hash *all = share_all(exec, hash, sizeof *hash, &status, err);
    if (all == NULL) return status;
    for (int32_t node = 0; node < exec->average->nodes; node++) {
        all[node] = all[node * exec->ranks];
        equal = equal && weft_hash_equal(all[node], all[0]);
    }
    if (!equal) *hash = weft_hash_bytes(all, (size_t)exec->average->nodes * sizeof *all);
    free(all);
    return WEFT_OK;
}

enum weft_status weft_exec_share_status(struct weft_exec *exec, enum weft_status status,
                                        const struct weft_error *own, struct weft_error *err)
{
    return weft_comm_share_outcome(exec->options.comm, status, own, err);
}

/* Lists the parts of pieces with states [from, to) of the unit's buffers. */
static enum weft_status cut_pieces(struct weft_exec *exec, const struct weft_nn_piece *pieces,
                                   int64_t n_pieces, int64_t from, int64_t to,
                                   const struct weft_nn_piece **out, int64_t *n_out,
                                   struct weft_error *err)
{
    struct weft_nn_piece *cut = weft_pool_array(&exec->pool, (size_t)n_pieces, sizeof *cut);
    int64_t n = 0;
    if (cut == NULL) return weft_fail_memory(err, "pieces of a unit");
    for (int64_t i = 0; i < n_pieces; i++) {
        struct weft_nn_piece piece = pieces[i];
        const int64_t end = piece.state_at + piece.count;
        const int64_t skipped = piece.state_at < from ? from - piece.state_at : 0;
        piece.count = (end < to ? end : to) - piece.state_at - skipped;
        if (piece.count <= 0) continue;
        piece.first += skipped;
        piece.parameter_at += skipped;
        piece.state_at += skipped;
        cut[n++] = piece;
    }
    *out = cut;
    *n_out = n;
    return WEFT_OK;
}

enum weft_status weft_exec_bind_average(struct weft_exec *exec, const struct weft_instruction *at,
                                        struct exec_averaged *out, struct weft_error *err)
{
    const struct exec_unit *unit = &exec->units[at->unit];
    const bool gathers = at->op == WEFT_OP_AVERAGE_GATHER;
    const int64_t slice = exec->options.shards->units[at->unit].slice_elements;
    const unsigned char *values = unit->nn.master != NULL ? unit->nn.master : unit->nn.parameters;
    /* Resident fp32 parameters are their own master, in the full buffer. */
    const bool full = unit->whole || (unit->resident && unit->nn.master == NULL);
    const int64_t first =
        full ? (at->block * exec->ranks + (gathers ? 0 : exec->rank)) * slice : at->block * slice;
    const int64_t elements = gathers ? exec->ranks * slice : slice;
    const int32_t members = gathers ? exec->ranks : exec->average->outer.nodes;
    /* Pieces of zero1 have their states in a slice, and in fp32 their parameters in all slices. */
    const int64_t state = unit->whole ? first : at->block * slice;
    struct weft_nn_unit *part = weft_pool_array(&exec->pool, 1, sizeof *part);
    if (part == NULL) return weft_fail_memory(err, "pieces of a unit");
    *part = unit->nn;
    if (gathers)
        WEFT_TRY(cut_pieces(exec, unit->nn.renew, unit->nn.n_renew, state, state + elements,
                            &part->renew, &part->n_renew, err));
    else
        WEFT_TRY(cut_pieces(exec, unit->nn.own, unit->nn.n_own, state, state + elements, &part->own,
                            &part->n_own, err));
    *out = (struct exec_averaged){
        .block = {.full_offset = values - exec->base + first * (int64_t)sizeof(float),
                  .slice_offset = -1,
                  .slice_elements = elements / members,
                  .dtype = WEFT_F32,
                  .slice_dtype = WEFT_F32,
                  .ns = at->ns},
        .unit = part,
    };
    return WEFT_OK;
}

void weft_exec_push_average(struct weft_exec *exec, const struct exec_bound *bound)
{
    const struct exec_averaged *averaged = &bound->with.averaged;
    struct weft_nn *nn = exec->options.nn;
    if (bound->op == WEFT_OP_AVERAGE_GATHER) {
        weft_comm_all_gather(bound->comm, bound->stream, &averaged->block);
        weft_nn_round(nn, bound->stream, averaged->unit);
        return;
    }
    weft_comm_all_reduce(bound->comm, bound->stream, &averaged->block);
    weft_nn_average(nn, bound->stream, averaged->unit, &exec->average->outer);
}
