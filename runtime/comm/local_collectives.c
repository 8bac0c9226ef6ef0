/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/comm/job.h"
#include "runtime/comm/local.h"
#include "runtime/comm/sum.h"

/* Ends a collective on the channel's clock. It began when the last rank arrived. Each byte crosses
 * the link `passes` times. */
static void end_call(struct weft_local_comm *c, const struct weft_comm_job *job,
                     struct weft_stream *channel, int64_t latest_ns, int passes, double bytes)
{
    int64_t start_ns = latest_ns > c->link_free_ns ? latest_ns : c->link_free_ns;
    if (weft_stream_clock(channel) == WEFT_CLOCK_VIRTUAL) {
        weft_stream_run(channel, start_ns, job->ns);
        c->link_free_ns = weft_stream_now(channel);
        return;
    }
    if (!c->emulate || c->comm.ranks == 1) return;
    double share = (double)(c->comm.ranks - 1) / (double)c->comm.ranks;
    double ns = (double)passes * ((double)c->alpha_ns + bytes * share / c->bytes_per_s * 1e9);
    /* All ranks compute the same end from the same numbers. */
    c->link_free_ns = start_ns + (int64_t)llround(ns);
    weft_clock_sleep_until_ns(c->link_free_ns);
}

static enum weft_status enter_call(struct weft_local_comm *c, const struct weft_comm_job *job,
                                   struct weft_stream *channel, int64_t *latest_ns,
                                   struct weft_error *err)
{
    return weft_local_enter(c, &job->call, weft_stream_now(channel), NULL, 0, latest_ns, err);
}

/* True if peers may read these bytes: one of the ranges given to map_arena contains them. */
static bool is_read(const struct weft_local_comm *c, int64_t offset, int64_t bytes)
{
    int32_t low = 0, high = c->n_reads;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (c->reads[middle].end <= offset) low = middle + 1;
        if (c->reads[middle].end > offset) high = middle;
    }
    return c->reads == NULL || (low < c->n_reads && c->reads[low].begin <= offset &&
                                offset + bytes <= c->reads[low].end);
}

static enum weft_status check_reads(const struct weft_local_comm *c,
                                    const struct weft_comm_job *job, int64_t from, int64_t bytes,
                                    struct weft_error *err)
{
    if (is_read(c, from, bytes)) return WEFT_OK;
    return weft_comm_job_fail(job, c->comm.span_bytes,
                              "reads a part of a peer's arena that is not mapped for reading", err);
}

/* Offset of the rank's slice: on its own, or in the full block. */
static int64_t slice_at(int64_t full, int64_t slice, int32_t rank, int64_t slice_bytes)
{
    return slice >= 0 ? slice : full + rank * slice_bytes;
}

/* Operands of all ranks at this offset. */
static const unsigned char *const *operands_at(const struct weft_local_comm *c, int64_t offset)
{
    for (int32_t rank = 0; rank < c->comm.ranks; rank++)
        c->operands[rank] = c->arenas[rank] + offset;
    return c->operands;
}

/* Sums so many elements at `from` over ranks into this rank's `to`. */
static void sum_elements(const struct weft_local_comm *c, const struct weft_comm_job *job,
                         int64_t elements, int64_t from, int64_t to)
{
    const struct weft_comm_sum sum = {
        .ranks = c->comm.ranks,
        .per_node = c->comm.ranks_per_node,
        .idle = (int32_t)job->call.idle,
        .dtype = job->dtype,
        .rounded = weft_comm_rounded(job),
        .to_dtype = job->slice_dtype,
        .elements = elements,
        .from = operands_at(c, from),
        .before = weft_comm_before(job, c->comm.rank, c->arenas[c->comm.rank], to),
        .to = c->arenas[c->comm.rank] + to,
    };
    weft_comm_sum_ranks(&sum);
}

static void sum_slices(const struct weft_local_comm *c, const struct weft_comm_job *job,
                       int64_t from, int64_t to)
{
    sum_elements(c, job, job->slice_elements, from, to);
}

/* Copies all ranks' slices into this rank's full block. It begins with the next rank's, so ranks
 * read different slices at a time. */
static void gather_slices(const struct weft_local_comm *c, int64_t full, int64_t slice,
                          int64_t slice_bytes)
{
    int32_t ranks = c->comm.ranks, self = c->comm.rank;
    for (int32_t i = 0; i < ranks; i++) {
        int32_t rank = (self + 1 + i) % ranks;
        unsigned char *to = c->arenas[self] + full + rank * slice_bytes;
        const unsigned char *from = c->arenas[rank] + slice_at(full, slice, rank, slice_bytes);
        if (to != from) memcpy(to, from, (size_t)slice_bytes);
    }
}

/* The collectives, as tasks on the channel */

static enum weft_status run_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                                       const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    const int64_t full = job->call.to, slice = job->call.from;
    const int64_t bytes = weft_comm_slice_bytes(job), all_bytes = bytes * c->comm.ranks;
    int64_t latest_ns;
    WEFT_TRY(check_reads(c, job, slice >= 0 ? slice : full, slice >= 0 ? bytes : all_bytes, err));
    WEFT_TRY(enter_call(c, job, channel, &latest_ns, err));
    gather_slices(c, full, slice, bytes);
    WEFT_TRY(weft_local_barrier(c, err));
    end_call(c, job, channel, latest_ns, 1, (double)all_bytes);
    return WEFT_OK;
}

static enum weft_status run_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                                           const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    const int32_t rank = c->comm.rank;
    const int64_t full = job->call.from, slice = job->call.to;
    const int64_t bytes = weft_comm_slice_bytes(job), all_bytes = bytes * c->comm.ranks;
    int64_t latest_ns;
    WEFT_TRY(check_reads(c, job, full, all_bytes, err));
    WEFT_TRY(enter_call(c, job, channel, &latest_ns, err));
    sum_slices(c, job, full + rank * bytes, slice_at(full, slice, rank, bytes));
    WEFT_TRY(weft_local_barrier(c, err));
    end_call(c, job, channel, latest_ns, 1, (double)all_bytes);
    return WEFT_OK;
}

static enum weft_status run_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                                       const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    const int64_t full = job->call.from;
    const int64_t bytes = weft_comm_slice_bytes(job), all_bytes = bytes * c->comm.ranks;
    int64_t latest_ns;
    WEFT_TRY(check_reads(c, job, full, all_bytes, err));
    WEFT_TRY(enter_call(c, job, channel, &latest_ns, err));
    /* Only rank r reads slot r of all full blocks and writes its own, so this is safe in place. */
    const int64_t own = full + c->comm.rank * bytes;
    sum_slices(c, job, own, own);
    WEFT_TRY(weft_local_barrier(c, err));
    gather_slices(c, full, -1, bytes);
    WEFT_TRY(weft_local_barrier(c, err));
    weft_comm_finish_partials(job, c->comm.ranks, c->arenas[c->comm.rank]);
    end_call(c, job, channel, latest_ns, 2, (double)all_bytes);
    return WEFT_OK;
}

/* Only the owner writes its block in a reduction, and only it reads the others'. */
static enum weft_status run_owned(struct weft_comm *comm, struct weft_stream *channel,
                                  const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    const struct weft_comm_call *call = &job->call;
    const bool owns = c->comm.rank == call->to, reduces = call->kind == WEFT_COMM_CALL_REDUCE;
    const int64_t bytes = weft_comm_slice_bytes(job) * c->comm.ranks;
    int64_t latest_ns;
    WEFT_TRY(check_reads(c, job, call->from, bytes, err));
    WEFT_TRY(enter_call(c, job, channel, &latest_ns, err));
    if (reduces && owns)
        sum_elements(c, job, job->slice_elements * c->comm.ranks, call->from, call->from);
    if (!reduces && !owns)
        memcpy(c->arenas[c->comm.rank] + call->from, c->arenas[call->to] + call->from,
               (size_t)bytes);
    WEFT_TRY(weft_local_barrier(c, err));
    /* The owner's port moves the block once for each other rank. */
    end_call(c, job, channel, latest_ns, 1, (double)bytes * c->comm.ranks);
    return WEFT_OK;
}

static enum weft_status run_agree(struct weft_comm *comm, struct weft_stream *channel,
                                  const struct weft_comm_job *job, struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    const struct weft_comm_call *call = &job->call;
    int64_t latest_ns;
    WEFT_TRY(check_reads(c, job, call->from, call->count * (int64_t)sizeof(uint64_t), err));
    WEFT_TRY(enter_call(c, job, channel, &latest_ns, err));
    weft_comm_sum_words(c->comm.ranks, operands_at(c, call->from), call->count,
                        c->arenas[c->comm.rank] + call->to);
    WEFT_TRY(weft_local_barrier(c, err));
    end_call(c, job, channel, latest_ns, 2, 0);
    return WEFT_OK;
}

weft_comm_task_fn *const weft_local_tasks[WEFT_COMM_CALL_COUNT] = {
    [WEFT_COMM_CALL_ALL_GATHER] = run_all_gather,
    [WEFT_COMM_CALL_REDUCE_SCATTER] = run_reduce_scatter,
    [WEFT_COMM_CALL_ALL_REDUCE] = run_all_reduce,
    [WEFT_COMM_CALL_AGREE] = run_agree,
    [WEFT_COMM_CALL_REDUCE] = run_owned,
    [WEFT_COMM_CALL_BROADCAST] = run_owned,
};
