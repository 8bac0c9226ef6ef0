/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/average.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "plan/plan.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/outcome.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"
#include "spec/config_batch.h"

struct exec_average {
    struct weft_nn_outer outer; /* with the number of nodes */
    struct weft_comm *pairs[2]; /* gossip: of this node and a neighbour, by round; otherwise NULL */
    int32_t nodes, ranks;       /* ranks: of all nodes */
    /* Losses of the node since nodes met last. */
    uint64_t since[WEFT_NN_LOSS_WORDS];
    int64_t since_rows, since_steps;
    int64_t met_ns; /* time at which nodes met last, or began */
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
    exec->average->met_ns = weft_clock_now_ns();
    for (int32_t round = 0; round < 2 && exec->options.program->period.gossip; round++)
        WEFT_TRY(weft_comm_pair(all, "across", round, &exec->average->pairs[round], err));
    return WEFT_OK;
}

void weft_exec_average_destroy(struct exec_average *average)
{
    free(average); /* the communicator owns its branches */
}

/* A node's part of a result, and of the losses since nodes met last. */
struct shared {
    uint64_t loss[WEFT_NN_LOSS_WORDS], since[WEFT_NN_LOSS_WORDS];
    int64_t step, rows, since_rows;
    double norm;
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

/* Time that nodes may take for the steps between two averages. A node that cannot go on, or is
 * fast, waits for all of them: four times as long as its own steps took. */
static int64_t apart_ns(const struct weft_exec *exec)
{
    static const double most_ns = 1e17;
    enum { TIMES = 4 };
    const struct exec_average *average = exec->average;
    const double step_ns =
        (double)(weft_clock_now_ns() - average->met_ns) / (double)average->since_steps;
    const double ns = TIMES * step_ns * (double)exec->options.program->period.every;
    return (int64_t)(ns < most_ns ? ns : most_ns);
}

static void add_words(uint64_t *to, const uint64_t *words)
{
    for (int w = 0; w < WEFT_NN_LOSS_WORDS; w++)
        to[w] += words[w]; /* integers, in any order */
}

/* Takes a node's part. Its loss counts if it is of the same step. */
static void add_node(struct shared *sum, const struct shared *node, struct weft_step_result *result)
{
    result->stop |= node->stop != 0;
    result->finite &= node->not_finite == 0;
    result->earlier |= node->earlier != 0;
    if (node->suspect > result->suspect) result->suspect = node->suspect;
    if (node->step != sum->step && (result->lost_step == 0 || node->step < result->lost_step))
        result->lost_step = node->step < sum->step ? node->step : sum->step;
    if (node->step != sum->step) return;
    add_words(sum->loss, node->loss);
    add_words(sum->since, node->since);
    sum->rows += node->rows;
    sum->since_rows += node->since_rows;
}

/* Takes loss and norm of a node that could not go on at an earlier step than this one. */
static void take_lost(const struct weft_exec *exec, const struct shared *all,
                      struct weft_step_result *result)
{
    for (int32_t r = 0; r < exec->average->ranks; r += exec->ranks) {
        if (all[r].step != result->lost_step || all[r].not_finite == 0) continue;
        result->loss = weft_exec_mean_loss(all[r].loss, all[r].rows);
        result->norm = all[r].norm;
        return;
    }
}

enum weft_status weft_exec_share_result(struct weft_exec *exec,
                                        const struct weft_step_inputs *inputs,
                                        struct weft_step_result *result, struct weft_error *err)
{
    struct exec_average *average = exec->average;
    struct shared mine, *all;
    enum weft_status status;
    if (average == NULL) return WEFT_OK;
    const bool ends = exec->mailbox.sum[EXEC_WORD_STOP] >= EXEC_STOP_ENDS;
    add_words(average->since, exec->mailbox.sum + EXEC_WORD_LOSS);
    average->since_rows += exec->rows;
    average->since_steps++;
    result->met = inputs->meets || ends || !result->finite;
    if (!result->met) {
        result->stop = false; /* the node goes on until all can stop */
        return WEFT_OK;
    }
    memset(&mine, 0, sizeof mine); /* the exchange sends padding too */
    memcpy(mine.loss, exec->mailbox.sum + EXEC_WORD_LOSS, sizeof mine.loss);
    memcpy(mine.since, average->since, sizeof mine.since);
    mine.step = inputs->step;
    mine.rows = exec->rows;
    mine.since_rows = average->since_rows;
    mine.stop = result->stop;
    mine.not_finite = !result->finite;
    mine.earlier = result->earlier;
    mine.suspect = result->suspect;
    mine.norm = result->norm;
    weft_comm_wait_longer(exec->options.comm, apart_ns(exec));
    all = share_all(exec, &mine, sizeof mine, &status, err);
    weft_comm_wait_longer(exec->options.comm, 0);
    if (all == NULL) return status;
    struct shared sum = {.step = mine.step};
    for (int32_t r = 0; r < average->ranks; r += exec->ranks)
        add_node(&sum, &all[r], result);
    /* Nodes meet for a save under way too, and a replay has none: such steps keep their own loss.
     */
    if (!result->finite || weft_config_averages_after(exec->options.config, inputs->step))
        result->loss = weft_exec_mean_loss(sum.loss, sum.rows);
    take_lost(exec, all, result);
    free(all);
    result->nodes_loss = weft_exec_mean_loss(sum.since, sum.since_rows);
    result->nodes_steps = average->since_steps;
    memset(average->since, 0, sizeof average->since);
    average->since_rows = average->since_steps = 0;
    average->met_ns = weft_clock_now_ns();
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
                                        const struct exec_averaged **out, struct weft_error *err)
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
    /* Pieces of zero1 have their states in a slice, and in fp32 their parameters in all slices. */
    const int64_t state = unit->whole ? first : at->block * slice;
    struct weft_nn_unit *part = weft_pool_array(&exec->pool, 1, sizeof *part);
    struct exec_averaged *averaged = weft_pool_array(&exec->pool, 1, sizeof *averaged);
    if (part == NULL || averaged == NULL) return weft_fail_memory(err, "pieces of a unit");
    *part = unit->nn;
    if (gathers)
        WEFT_TRY(cut_pieces(exec, unit->nn.renew, unit->nn.n_renew, state, state + elements,
                            &part->renew, &part->n_renew, err));
    else
        WEFT_TRY(cut_pieces(exec, unit->nn.own, unit->nn.n_own, state, state + elements, &part->own,
                            &part->n_own, err));
    *averaged = (struct exec_averaged){
        .block = {.full_offset = values - exec->base + first * (int64_t)sizeof(float),
                  .slice_offset = -1,
                  .slice_elements = elements, /* of all ranks of the collective */
                  .dtype = WEFT_F32,
                  .slice_dtype = WEFT_F32,
                  .ns = at->ns},
        .unit = part,
    };
    *out = averaged;
    return WEFT_OK;
}

struct weft_comm *weft_exec_average_pair(const struct weft_exec *exec, int32_t round)
{
    return exec->average == NULL ? NULL : exec->average->pairs[round];
}

/* The communicator of an average: gossip has a turn with each neighbour. */
static struct weft_comm *comm_of(const struct weft_exec *exec, const struct exec_bound *bound)
{
    const bool gossips = bound->op == WEFT_OP_AVERAGE && exec->average->pairs[0] != NULL;
    const int64_t round = exec->updated / bound->at->every % 2;
    return gossips ? exec->average->pairs[round] : bound->comm;
}

void weft_exec_push_average(struct weft_exec *exec, const struct exec_bound *bound)
{
    const struct weft_nn_unit *unit = bound->with.averaged->unit;
    struct weft_comm_block block = bound->with.averaged->block;
    struct weft_comm *comm = comm_of(exec, bound);
    block.slice_elements /= weft_comm_ranks(comm);
    if (bound->op == WEFT_OP_AVERAGE_GATHER) {
        weft_comm_all_gather(comm, bound->stream, &block);
        weft_nn_round(exec->options.nn, bound->stream, unit);
        return;
    }
    struct weft_nn_outer outer = exec->average->outer;
    outer.nodes = weft_comm_ranks(comm);
    weft_comm_all_reduce(comm, bound->stream, &block);
    weft_nn_average(exec->options.nn, bound->stream, unit, &outer);
}
