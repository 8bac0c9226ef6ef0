/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over MPI, as tasks on the channel. */
#include <string.h>

#include "runtime/comm/mpi/communicator.h"
#include "runtime/comm/mpi/flows.h"
#include "runtime/comm/mpi/levels.h"
#include "runtime/comm/sum.h"

/* On a virtual clock the collective began when the last rank arrived and the link was free. */
static void end_call(struct weft_mpi_comm *c, const struct weft_comm_job *job,
                     struct weft_stream *channel, int64_t latest_ns)
{
    if (weft_stream_clock(channel) != WEFT_CLOCK_VIRTUAL) return;
    weft_stream_run(channel, latest_ns > c->link_free_ns ? latest_ns : c->link_free_ns, job->ns);
    c->link_free_ns = weft_stream_now(channel);
}

static bool has_levels(const struct weft_mpi_comm *c)
{
    return weft_mpi_has_levels(c->comm.ranks, c->comm.ranks_per_node);
}

static struct weft_mpi_levels levels_of(const struct weft_mpi_comm *c,
                                        const struct weft_comm_job *job, int64_t full, int64_t own,
                                        bool gathers)
{
    return weft_mpi_levels_of(&c->rounds, c->comm.ranks_per_node, job, c->memory, full, own,
                              gathers);
}

/* Sums into the slice at `own`. The call's header goes first. */
static enum weft_status reduce_block(struct weft_mpi_comm *c, const struct weft_comm_job *job,
                                     struct weft_stream *channel, int64_t own, int64_t *latest_ns,
                                     struct weft_error *err)
{
    const struct weft_comm_call *call = &job->call;
    const int64_t now_ns = weft_stream_now(channel);
    if (!has_levels(c)) {
        struct weft_mpi_sum sum = weft_mpi_sum_of(&c->comm, job, c->memory, own);
        c->flows[1] = weft_mpi_scatter_flow(job, c->memory, &sum);
        return weft_mpi_make_call(c, call, now_ns, 1, latest_ns, err);
    }
    const struct weft_mpi_levels levels = levels_of(c, job, call->from, own, false);
    for (int32_t i = 0; i < levels.stages; i++) {
        const int32_t n = weft_mpi_reduce_stage(&levels, i, c->flows + 1);
        if (i == 0)
            WEFT_TRY(weft_mpi_make_call(c, call, now_ns, n, latest_ns, err));
        else
            WEFT_TRY(weft_mpi_send_flows(c, c->flows + 1, n, err));
        weft_mpi_end_reduce_stage(&levels, i);
    }
    return WEFT_OK;
}

/* Gathers the slices at `own`. `latest_ns` NULL: the call was made, and its header has gone. */
static enum weft_status gather_block(struct weft_mpi_comm *c, const struct weft_comm_job *job,
                                     struct weft_stream *channel, int64_t full, int64_t own,
                                     int64_t *latest_ns, struct weft_error *err)
{
    const int64_t now_ns = weft_stream_now(channel);
    const bool levelled = has_levels(c);
    const struct weft_mpi_levels levels = levels_of(c, job, full, own, true);
    for (int32_t i = 0; i < (levelled ? levels.stages : 1); i++) {
        int32_t n = 1;
        c->flows[1] = weft_mpi_gather_flow(job, c->memory + full, c->memory + own);
        if (levelled) n = weft_mpi_gather_stage(&levels, i, c->flows + 1);
        if (i == 0 && latest_ns != NULL)
            WEFT_TRY(weft_mpi_make_call(c, &job->call, now_ns, n, latest_ns, err));
        else
            WEFT_TRY(weft_mpi_send_flows(c, c->flows + 1, n, err));
    }
    return WEFT_OK;
}

static enum weft_status run_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                                       const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    int64_t latest_ns;
    const int64_t bytes = weft_comm_slice_bytes(job), full = job->call.to;
    const int64_t place = full + c->comm.rank * bytes;
    const int64_t own = job->call.from >= 0 ? job->call.from : place;
    WEFT_TRY(gather_block(c, job, channel, full, own, &latest_ns, err));
    if (own != place) memcpy(c->memory + place, c->memory + own, (size_t)bytes);
    end_call(c, job, channel, latest_ns);
    return WEFT_OK;
}

static enum weft_status run_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                                           const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    int64_t latest_ns;
    const int64_t place = job->call.from + c->comm.rank * weft_comm_slice_bytes(job);
    WEFT_TRY(
        reduce_block(c, job, channel, job->call.to >= 0 ? job->call.to : place, &latest_ns, err));
    end_call(c, job, channel, latest_ns);
    return WEFT_OK;
}

/* ReduceScatter in place, then AllGather in place. */
static enum weft_status run_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                                       const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    int64_t latest_ns;
    const int64_t full = job->call.from;
    const int64_t place = full + c->comm.rank * weft_comm_slice_bytes(job);
    WEFT_TRY(reduce_block(c, job, channel, place, &latest_ns, err));
    WEFT_TRY(gather_block(c, job, channel, full, place, NULL, err));
    weft_comm_finish_partials(job, c->comm.ranks, c->memory);
    end_call(c, job, channel, latest_ns);
    return WEFT_OK;
}

/* It goes on one level. */
static enum weft_status run_owned(struct weft_comm *comm, struct weft_stream *channel,
                                  const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    unsigned char *block = c->memory + job->call.from;
    struct weft_mpi_sum sum = weft_mpi_sum_of(&c->comm, job, c->memory, job->call.from);
    int64_t latest_ns;
    c->flows[1] = weft_mpi_owned_flow(job, c->comm.ranks, block, &sum);
    WEFT_TRY(weft_mpi_make_call(c, &job->call, weft_stream_now(channel), 1, &latest_ns, err));
    end_call(c, job, channel, latest_ns);
    return WEFT_OK;
}

struct word_sums {
    int32_t ranks;
    unsigned char *to;
};

static void sum_words(void *context, int64_t at, int64_t bytes,
                      const unsigned char *const *operands)
{
    const struct word_sums *sums = context;
    weft_comm_sum_words(sums->ranks, operands, bytes / (int64_t)sizeof(uint64_t), sums->to + at);
}

static enum weft_status run_agree(struct weft_comm *comm, struct weft_stream *channel,
                                  const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    struct word_sums sums = {comm->ranks, c->memory + job->call.to};
    int64_t latest_ns;
    c->flows[1] = (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .bytes = job->call.count * (int64_t)sizeof(uint64_t),
        .send = c->memory + job->call.from,
        .consume = sum_words,
        .context = &sums,
    };
    WEFT_TRY(weft_mpi_make_call(c, &job->call, weft_stream_now(channel), 1, &latest_ns, err));
    end_call(c, job, channel, latest_ns);
    return WEFT_OK;
}

weft_comm_task_fn *const weft_mpi_tasks[WEFT_COMM_CALL_COUNT] = {
    [WEFT_COMM_CALL_ALL_GATHER] = run_all_gather,
    [WEFT_COMM_CALL_REDUCE_SCATTER] = run_reduce_scatter,
    [WEFT_COMM_CALL_ALL_REDUCE] = run_all_reduce,
    [WEFT_COMM_CALL_AGREE] = run_agree,
    [WEFT_COMM_CALL_REDUCE] = run_owned,
    [WEFT_COMM_CALL_BROADCAST] = run_owned,
};
