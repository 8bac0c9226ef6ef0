/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as jobs of a back end, and as tasks on the channels of back ends on the host. */
#include "runtime/comm/backend.h"
#include "runtime/comm/job.h"

struct comm_task {
    struct weft_comm *comm;
    struct weft_comm_job job;
};

static enum weft_status run_task(struct weft_stream *channel, const void *argument,
                                 struct weft_error *err)
{
    const struct comm_task *task = argument;
    struct weft_comm *comm = task->comm;
    WEFT_TRY(weft_comm_job_check(&task->job, comm->ranks, comm->span_bytes, err));
    return comm->ops->tasks[task->job.call.kind](comm, channel, &task->job, err);
}

void weft_comm_push_task(struct weft_comm *comm, struct weft_stream *channel,
                         const struct weft_comm_job *job)
{
    const struct comm_task task = {comm, *job};
    weft_stream_push(channel, run_task, &task, sizeof task);
}

static void post_block(struct weft_comm *comm, struct weft_stream *channel,
                       enum weft_comm_call_kind kind, const struct weft_comm_block *block)
{
    const struct weft_comm_job job = weft_comm_job_of(kind, block);
    comm->ops->post(comm, channel, &job);
}

void weft_comm_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block)
{
    post_block(comm, channel, WEFT_COMM_CALL_ALL_GATHER, block);
}

void weft_comm_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                              const struct weft_comm_block *block)
{
    post_block(comm, channel, WEFT_COMM_CALL_REDUCE_SCATTER, block);
}

void weft_comm_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                          const struct weft_comm_block *block)
{
    post_block(comm, channel, WEFT_COMM_CALL_ALL_REDUCE, block);
}

bool weft_comm_has_owners(const struct weft_comm *comm)
{
    return comm->ops->has_owners;
}

void weft_comm_reduce(struct weft_comm *comm, struct weft_stream *channel,
                      const struct weft_comm_block *block)
{
    post_block(comm, channel, WEFT_COMM_CALL_REDUCE, block);
}

void weft_comm_broadcast(struct weft_comm *comm, struct weft_stream *channel,
                         const struct weft_comm_block *block)
{
    post_block(comm, channel, WEFT_COMM_CALL_BROADCAST, block);
}

void weft_comm_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                     int64_t to_offset, int64_t words, int64_t ns)
{
    const struct weft_comm_job job = weft_comm_job_of_agreement(from_offset, to_offset, words, ns);
    comm->ops->post(comm, channel, &job);
}
