/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator of a single rank on a GPU. Kernels on the channel do a collective's local part.
 * It is in the module of the device "cuda". */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/cuda/work.h"
#include "runtime/comm/job.h"
#include "runtime/nn/cuda/kernels/kernels.h"

WEFT_API extern const struct weft_comm_ops weft_comm_cuda;

struct alone_comm {
    struct weft_comm comm; /* first */
    struct weft_cuda_span span;
    atomic_bool cancelled;
};

static struct alone_comm *alone_of(const struct weft_comm *comm)
{
    return (struct alone_comm *)comm;
}

static bool alone_detach(struct weft_comm *comm)
{
    alone_of(comm)->span.bytes = 0;
    return true;
}

static void alone_close(struct weft_comm *comm)
{
    free(comm);
}

static enum weft_status alone_open(const struct weft_comm_options *options, struct weft_comm **out,
                                   struct weft_error *err)
{
    if (options->ranks != 1) return weft_cuda_several_open(options, out, err);
    struct alone_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm.ops = &weft_comm_cuda;
    c->comm.ranks = 1;
    strcpy(c->comm.description, "one GPU, no communication");
    *out = &c->comm;
    return WEFT_OK;
}

static enum weft_status alone_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                     const struct weft_ranges *reads, struct weft_error *err)
{
    (void)reads; /* there are no peers */
    (void)err;
    alone_of(comm)->span = (struct weft_cuda_span){comm->arena, shape->span_bytes};
    return WEFT_OK;
}

static void copy_bytes(const struct alone_comm *c, struct weft_stream *channel, int64_t from,
                       int64_t to, int64_t bytes)
{
    const cudaStream_t cuda =
        weft_cuda_channel(&c->span, channel, (struct weft_cuda_part){from, bytes},
                          (struct weft_cuda_part){to, bytes});
    if (cuda == NULL || from == to) return;
    const int code =
        weft_cuda_copy(weft_cuda_byte(&c->span, to), weft_cuda_byte(&c->span, from), bytes, cuda);
    weft_cuda_stream_worked(channel, (cudaError_t)code, "copy in the GPU's memory");
}

static void sum_block(const struct alone_comm *c, struct weft_stream *channel,
                      const struct weft_comm_block *block)
{
    const int64_t full_bytes = weft_cuda_bytes_of(block->slice_elements, block->dtype),
                  slice_bytes = weft_cuda_bytes_of(block->slice_elements, block->slice_dtype);
    const cudaStream_t cuda = weft_cuda_channel(
        &c->span, channel, (struct weft_cuda_part){block->full_offset, full_bytes},
        (struct weft_cuda_part){block->slice_offset, slice_bytes});
    if (cuda == NULL) return;
    const struct weft_cuda_sum sum = {.dtype = block->dtype,
                                      .ranks = 1,
                                      .own = -1,
                                      .n = block->slice_elements,
                                      .stride_bytes = full_bytes,
                                      .from = weft_cuda_byte(&c->span, block->full_offset),
                                      .adds = block->adds,
                                      .to_dtype = block->slice_dtype,
                                      .to = weft_cuda_byte(&c->span, block->slice_offset)};
    weft_cuda_stream_worked(channel, (cudaError_t)weft_cuda_sum_ranks(&sum, cuda),
                            "add up in the GPU's memory");
}

/* With one rank the slice is the block, and a sum has one operand. In place there is nothing to do,
 * as in an AllReduce. */
static void alone_post(struct weft_comm *comm, struct weft_stream *channel,
                       const struct weft_comm_job *job)
{
    const struct alone_comm *c = alone_of(comm);
    const struct weft_comm_block *block = &job->block;
    if (job->call.kind == WEFT_COMM_CALL_AGREE)
        copy_bytes(c, channel, job->call.from, job->call.to,
                   job->call.count * (int64_t)sizeof(uint64_t));
    else if (job->call.kind == WEFT_COMM_CALL_ALL_GATHER && block->slice_offset >= 0)
        copy_bytes(c, channel, block->slice_offset, block->full_offset,
                   weft_cuda_bytes_of(block->slice_elements, block->dtype));
    else if (job->call.kind == WEFT_COMM_CALL_REDUCE_SCATTER && block->slice_offset >= 0)
        sum_block(c, channel, block);
}

static enum weft_status alone_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                       void *all, struct weft_error *err)
{
    if (atomic_load(&alone_of(comm)->cancelled))
        return weft_fail(err, WEFT_E_LOST, "rank 0 has given up");
    if (bytes > 0) memcpy(all, mine, bytes);
    return WEFT_OK;
}

/* A single rank's flag needs no carrying. */
static void alone_carry(struct weft_comm *comm, int64_t flag_offset)
{
    (void)comm;
    (void)flag_offset;
}

static void alone_cancel(struct weft_comm *comm)
{
    atomic_store(&alone_of(comm)->cancelled, true);
}

const struct weft_comm_ops weft_comm_cuda = {
    .name = "cuda",
    .open = alone_open,
    .close = alone_close,
    .attach = alone_attach,
    .detach = alone_detach,
    .post = alone_post,
    .exchange = alone_exchange,
    .carry = alone_carry,
    .cancel = alone_cancel,
};
