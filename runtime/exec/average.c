/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/average.h"

#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "problem/item_times.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/outcome.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"

struct exec_average {
    struct weft_comm *across; /* of the ranks with this rank's place */
    int32_t nodes, ranks;     /* ranks: of all nodes */
};

enum weft_status weft_exec_average_create(struct weft_exec *exec, struct weft_error *err)
{
    struct weft_comm *all = exec->options.comm;
    if (exec->options.program->period.every == 0) return WEFT_OK;
    exec->average = calloc(1, sizeof *exec->average);
    if (exec->average == NULL) return weft_fail_memory(err, "averages over nodes");
    WEFT_TRY(weft_comm_branch(all, exec->options.program->lanes[WEFT_LANE_FIRST].name,
                              WEFT_GROUP_NODE, &exec->comm, err));
    WEFT_TRY(weft_comm_branch(all, "across", WEFT_GROUP_ACROSS, &exec->average->across, err));
    exec->average->nodes = weft_comm_ranks(exec->average->across);
    exec->average->ranks = weft_comm_ranks(all);
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

/* The parameters' fp32 values in the arena, and this rank's first slice of them. */
struct values {
    struct weft_average blocks;
    int64_t at;     /* offset of the first block's slice */
    int64_t stride; /* bytes from one block's slice to the next */
    int64_t block_ns;
};

static struct values values_of(const struct weft_exec *exec, const struct exec_unit *unit)
{
    const struct weft_unit *of = &exec->options.shards->units[unit->index];
    const enum weft_policy policy = exec->options.program->ways[unit->index].policy;
    const unsigned char *at = unit->nn.master != NULL ? unit->nn.master : unit->nn.parameters;
    const int64_t slice = of->slice_elements * (int64_t)sizeof(float);
    const bool full = unit->whole || (unit->resident && unit->nn.master == NULL);
    const struct weft_average blocks = weft_average_of(of, policy, exec_compute(exec));
    return (struct values){
        .blocks = blocks,
        .block_ns = weft_plan_chosen(exec->options.plan, unit->index)->average_ns / blocks.blocks,
        .at = at - exec->base + (full ? exec->rank * slice : 0),
        .stride = exec->ranks * slice,
    };
}

static void push_sums(struct weft_exec *exec, const struct values *values)
{
    const struct weft_average *blocks = &values->blocks;
    struct weft_comm_block block = {
        .slice_offset = -1,
        .slice_elements = blocks->elements / exec->average->nodes,
        .dtype = WEFT_F32,
        .slice_dtype = WEFT_F32,
        .ns = values->block_ns,
    };
    for (int64_t b = 0; b < blocks->blocks; b++) {
        block.full_offset = values->at + b * values->stride;
        weft_comm_all_reduce(exec->average->across, exec->streams[WEFT_LANE_FIRST], &block);
    }
}

/* dp: every rank of the node gets the averages of all others. */
static void push_gathers(struct weft_exec *exec, const struct values *values)
{
    struct weft_comm_block block = {
        .slice_offset = -1,
        .slice_elements = values->blocks.elements,
        .dtype = WEFT_F32,
        .slice_dtype = WEFT_F32,
    };
    for (int64_t b = 0; values->blocks.gathers && b < values->blocks.blocks; b++) {
        block.full_offset =
            values->at - exec->rank * values->stride / exec->ranks + b * values->stride;
        weft_comm_all_gather(exec->comm, exec->streams[WEFT_LANE_FIRST], &block);
    }
}

enum weft_status weft_exec_average(struct weft_exec *exec, struct weft_error *err)
{
    struct weft_nn *nn = exec->options.nn;
    struct weft_stream *compute = exec->streams[WEFT_LANE_COMPUTE];
    if (exec->average == NULL) return WEFT_OK;
    const struct weft_train *train = &exec->options.config->train;
    const struct weft_nn_outer outer = {exec->average->nodes, (float)train->across_momentum,
                                        (float)train->across_lr};
    for (int32_t u = 0; u < exec->options.program->n_units; u++) {
        const struct exec_unit *unit = &exec->units[u];
        if (!unit->trainable) continue;
        const struct values values = values_of(exec, unit);
        push_sums(exec, &values);
        WEFT_TRY(weft_exec_synchronise(exec, err));
        weft_nn_average(nn, compute, &unit->nn, &outer);
        WEFT_TRY(weft_exec_synchronise(exec, err));
        if (!values.blocks.gathers) continue;
        push_gathers(exec, &values);
        WEFT_TRY(weft_exec_synchronise(exec, err));
        weft_nn_round(nn, compute, &unit->nn);
        WEFT_TRY(weft_exec_synchronise(exec, err));
    }
    return WEFT_OK;
}
