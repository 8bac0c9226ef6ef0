/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over MPI, as tasks on the channel. */
#include <string.h>

#include "runtime/comm/mpi/communicator.h"
#include "runtime/comm/mpi/flows.h"
#include "runtime/comm/mpi/levels.h"
#include "runtime/comm/sum.h"

struct mpi_job {
    struct weft_mpi_comm *c;
    struct weft_comm_job job;
};

static enum weft_status check_job(const struct mpi_job *task, struct weft_error *err)
{
    return weft_comm_job_check(&task->job, task->c->comm.ranks, task->c->span_bytes, err);
}

/* On a virtual clock the collective began when the last rank arrived and the link was free. */
static void end_call(const struct mpi_job *task, struct weft_stream *channel, int64_t latest_ns)
{
    struct weft_mpi_comm *c = task->c;
    if (weft_stream_clock(channel) != WEFT_CLOCK_VIRTUAL) return;
    weft_stream_run(channel, latest_ns > c->link_free_ns ? latest_ns : c->link_free_ns,
                    task->job.ns);
    c->link_free_ns = weft_stream_now(channel);
}

static bool has_levels(const struct weft_mpi_comm *c)
{
    return weft_mpi_has_levels(c->comm.ranks, c->comm.ranks_per_node);
}

static struct weft_mpi_levels levels_of(const struct mpi_job *task, int64_t full, int64_t own,
                                        bool gathers)
{
    const struct weft_mpi_comm *c = task->c;
    return weft_mpi_levels_of(&c->rounds, c->comm.ranks_per_node, &task->job, c->memory, full, own,
                              gathers);
}

/* Sums into the slice at `own`. The call's header goes first. */
static enum weft_status reduce_block(const struct mpi_job *task, struct weft_stream *channel,
                                     int64_t own, int64_t *latest_ns, struct weft_error *err)
{
    struct weft_mpi_comm *c = task->c;
    const struct weft_comm_call *call = &task->job.call;
    const int64_t now_ns = weft_stream_now(channel);
    if (!has_levels(c)) {
        struct weft_mpi_sum sum = weft_mpi_sum_of(&c->comm, &task->job, c->memory, own);
        c->flows[1] = weft_mpi_scatter_flow(&task->job, c->memory, &sum);
        return weft_mpi_make_call(c, call, now_ns, 1, latest_ns, err);
    }
    const struct weft_mpi_levels levels = levels_of(task, call->from, own, false);
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
static enum weft_status gather_block(const struct mpi_job *task, struct weft_stream *channel,
                                     int64_t full, int64_t own, int64_t *latest_ns,
                                     struct weft_error *err)
{
    struct weft_mpi_comm *c = task->c;
    const int64_t now_ns = weft_stream_now(channel);
    const bool levelled = has_levels(c);
    const struct weft_mpi_levels levels = levels_of(task, full, own, true);
    for (int32_t i = 0; i < (levelled ? levels.stages : 1); i++) {
        int32_t n = 1;
        c->flows[1] = weft_mpi_gather_flow(&task->job, c->memory + full, c->memory + own);
        if (levelled) n = weft_mpi_gather_stage(&levels, i, c->flows + 1);
        if (i == 0 && latest_ns != NULL)
            WEFT_TRY(weft_mpi_make_call(c, &task->job.call, now_ns, n, latest_ns, err));
        else
            WEFT_TRY(weft_mpi_send_flows(c, c->flows + 1, n, err));
    }
    return WEFT_OK;
}

static enum weft_status run_all_gather(struct weft_stream *channel, const void *argument,
                                       struct weft_error *err)
{
    const struct mpi_job *task = argument;
    struct weft_mpi_comm *c = task->c;
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    const int64_t bytes = weft_comm_slice_bytes(&task->job), full = task->job.call.to;
    const int64_t place = full + c->comm.rank * bytes;
    const int64_t own = task->job.call.from >= 0 ? task->job.call.from : place;
    WEFT_TRY(gather_block(task, channel, full, own, &latest_ns, err));
    if (own != place) memcpy(c->memory + place, c->memory + own, (size_t)bytes);
    end_call(task, channel, latest_ns);
    return WEFT_OK;
}

static enum weft_status run_reduce_scatter(struct weft_stream *channel, const void *argument,
                                           struct weft_error *err)
{
    const struct mpi_job *task = argument;
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    const int64_t place =
        task->job.call.from + task->c->comm.rank * weft_comm_slice_bytes(&task->job);
    WEFT_TRY(reduce_block(task, channel, task->job.call.to >= 0 ? task->job.call.to : place,
                          &latest_ns, err));
    end_call(task, channel, latest_ns);
    return WEFT_OK;
}

/* ReduceScatter in place, then AllGather in place. */
static enum weft_status run_all_reduce(struct weft_stream *channel, const void *argument,
                                       struct weft_error *err)
{
    const struct mpi_job *task = argument;
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    const int64_t full = task->job.call.from;
    const int64_t place = full + task->c->comm.rank * weft_comm_slice_bytes(&task->job);
    WEFT_TRY(reduce_block(task, channel, place, &latest_ns, err));
    WEFT_TRY(gather_block(task, channel, full, place, NULL, err));
    weft_comm_finish_partials(&task->job, task->c->comm.ranks, task->c->memory);
    end_call(task, channel, latest_ns);
    return WEFT_OK;
}

/* It goes on one level. */
static enum weft_status run_owned(struct weft_stream *channel, const void *argument,
                                  struct weft_error *err)
{
    const struct mpi_job *task = argument;
    struct weft_mpi_comm *c = task->c;
    unsigned char *block = c->memory + task->job.call.from;
    struct weft_mpi_sum sum = weft_mpi_sum_of(&c->comm, &task->job, c->memory, task->job.call.from);
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    c->flows[1] = weft_mpi_owned_flow(&task->job, c->comm.ranks, block, &sum);
    WEFT_TRY(weft_mpi_make_call(c, &task->job.call, weft_stream_now(channel), 1, &latest_ns, err));
    end_call(task, channel, latest_ns);
    return WEFT_OK;
}

static void sum_words(void *context, int64_t at, int64_t bytes,
                      const unsigned char *const *operands)
{
    const struct mpi_job *task = context;
    weft_comm_sum_words(task->c->comm.ranks, operands, bytes / (int64_t)sizeof(uint64_t),
                        task->c->memory + task->job.call.to + at);
}

static enum weft_status run_agree(struct weft_stream *channel, const void *argument,
                                  struct weft_error *err)
{
    const struct mpi_job *task = argument;
    struct weft_mpi_comm *c = task->c;
    struct mpi_job copy = *task;
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    c->flows[1] = (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .bytes = task->job.call.count * (int64_t)sizeof(uint64_t),
        .send = c->memory + task->job.call.from,
        .consume = sum_words,
        .context = &copy,
    };
    WEFT_TRY(weft_mpi_make_call(c, &task->job.call, weft_stream_now(channel), 1, &latest_ns, err));
    end_call(task, channel, latest_ns);
    return WEFT_OK;
}

void weft_mpi_post(struct weft_comm *comm, struct weft_stream *channel,
                   const struct weft_comm_job *job)
{
    static weft_task_fn *const tasks[WEFT_COMM_CALL_COUNT] = {
        [WEFT_COMM_CALL_ALL_GATHER] = run_all_gather,
        [WEFT_COMM_CALL_REDUCE_SCATTER] = run_reduce_scatter,
        [WEFT_COMM_CALL_ALL_REDUCE] = run_all_reduce,
        [WEFT_COMM_CALL_AGREE] = run_agree,
        [WEFT_COMM_CALL_REDUCE] = run_owned,
        [WEFT_COMM_CALL_BROADCAST] = run_owned,
    };
    const struct mpi_job task = {weft_mpi_comm_of(comm), *job};
    weft_stream_push(channel, tasks[job->call.kind], &task, sizeof task);
}
