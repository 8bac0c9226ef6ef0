/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as jobs of a back end. */
#include "runtime/comm/backend.h"
#include "runtime/comm/job.h"

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
