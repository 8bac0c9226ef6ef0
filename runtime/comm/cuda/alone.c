/* The communicator of a single rank on a GPU: what a collective of one does, by kernels on the
 * channel's stream. In the module of the device "cuda". Never run on a GPU yet. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "runtime/comm/backend.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/nn/cuda/kernels.h"

WEFT_API extern const struct weft_comm_ops weft_comm_cuda;

struct alone_comm {
    struct weft_comm comm; /* first */
    struct weft_arena *arena;
    int64_t span_bytes; /* 0: nothing is mapped */
    atomic_bool cancelled;
};

static struct alone_comm *alone_of(const struct weft_comm *comm)
{
    return (struct alone_comm *)comm;
}

static void alone_unmap_arena(struct weft_comm *comm)
{
    struct alone_comm *c = alone_of(comm);
    if (c->span_bytes > 0) weft_arena_unmap(c->arena, true);
    c->span_bytes = 0;
}

static void alone_close(struct weft_comm *comm)
{
    struct alone_comm *c = alone_of(comm);
    alone_unmap_arena(comm);
    weft_arena_close(c->arena);
    free(c);
}

static enum weft_status alone_open(const struct weft_comm_options *options, struct weft_comm **out,
                                   struct weft_error *err)
{
    if (options->ranks != 1) {
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "%d ranks on GPUs need NCCL, which this build has no communicator for "
                         "yet: one GPU a run (-n 1), or train with cluster.device.type \"cpu\"",
                         options->ranks);
    }
    struct alone_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm.ops = &weft_comm_cuda;
    c->comm.ranks = 1;
    strcpy(c->comm.description, "one GPU, no communication");
    const enum weft_status status = weft_arena_open("cuda", -1, &c->arena, err);
    if (status != WEFT_OK) {
        free(c);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

static enum weft_status alone_map_arena(struct weft_comm *comm,
                                        const struct weft_arena_shape *shape,
                                        const struct weft_ranges *reads, struct weft_arena **out,
                                        struct weft_error *err)
{
    (void)reads; /* no peer reads anything */
    struct alone_comm *c = alone_of(comm);
    WEFT_TRY(weft_arena_map(c->arena, shape, err));
    c->span_bytes = shape->span_bytes;
    *out = c->arena;
    return WEFT_OK;
}

static bool is_inside(const struct alone_comm *c, int64_t offset, int64_t bytes)
{
    return offset >= 0 && bytes <= c->span_bytes && offset <= c->span_bytes - bytes &&
           offset % (int64_t)sizeof(float) == 0;
}

/* Where work of the channel goes; NULL: it is not to be done, or would leave the arena. */
static struct CUstream_st *open_channel(const struct alone_comm *c, struct weft_stream *channel,
                                        int64_t from, int64_t from_bytes, int64_t to,
                                        int64_t to_bytes)
{
    struct weft_error err = {0};
    if (is_inside(c, from, from_bytes) && is_inside(c, to, to_bytes))
        return weft_cuda_stream_open_for_work(channel);
    weft_fail(&err, WEFT_E_INTERNAL,
              "a collective of %lld bytes from offset %lld to %lld leaves the arena of %lld bytes",
              (long long)from_bytes, (long long)from, (long long)to, (long long)c->span_bytes);
    weft_cuda_stream_fail(channel, &err);
    return NULL;
}

static void *byte_of(const struct alone_comm *c, int64_t offset)
{
    return (unsigned char *)weft_arena_address(c->arena) + offset;
}

static void copy_bytes(const struct alone_comm *c, struct weft_stream *channel, int64_t from,
                       int64_t to, int64_t bytes)
{
    struct CUstream_st *cuda = open_channel(c, channel, from, bytes, to, bytes);
    if (cuda == NULL || from == to) return;
    const int code = weft_cuda_copy(byte_of(c, to), byte_of(c, from), bytes, cuda);
    weft_cuda_stream_worked(channel, (cudaError_t)code, "copy in the GPU's memory");
}

static int64_t bytes_of(int64_t elements, enum weft_dtype dtype)
{
    int64_t bytes;
    return weft_checked_mul(elements, weft_dtype_bytes(dtype), &bytes) ? bytes : INT64_MAX;
}

/* The one slice is the block; in place it is there already. */
static void alone_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                             const struct weft_comm_block *block)
{
    if (block->slice_offset < 0) return;
    copy_bytes(alone_of(comm), channel, block->slice_offset, block->full_offset,
               bytes_of(block->slice_elements, block->dtype));
}

/* The sum of one. In place it is what it was. */
static void alone_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                                 const struct weft_comm_block *block)
{
    const struct alone_comm *c = alone_of(comm);
    const int64_t full_bytes = bytes_of(block->slice_elements, block->dtype),
                  slice_bytes = bytes_of(block->slice_elements, block->slice_dtype);
    if (block->slice_offset < 0) return;
    struct CUstream_st *cuda =
        open_channel(c, channel, block->full_offset, full_bytes, block->slice_offset, slice_bytes);
    if (cuda == NULL) return;
    const struct weft_cuda_sum sum = {.dtype = block->dtype,
                                      .ranks = 1,
                                      .own = -1,
                                      .n = block->slice_elements,
                                      .stride_bytes = full_bytes,
                                      .from = byte_of(c, block->full_offset),
                                      .adds = block->adds,
                                      .to_dtype = block->slice_dtype,
                                      .to = byte_of(c, block->slice_offset)};
    weft_cuda_stream_worked(channel, (cudaError_t)weft_cuda_sum_ranks(&sum, cuda),
                            "add up in the GPU's memory");
}

static void alone_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                             const struct weft_comm_block *block)
{
    (void)comm;
    (void)channel;
    (void)block;
}

static void alone_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                        int64_t to_offset, int64_t words, int64_t ns)
{
    (void)ns;
    copy_bytes(alone_of(comm), channel, from_offset, to_offset, words * (int64_t)sizeof(uint64_t));
}

static enum weft_status alone_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                       void *all, struct weft_error *err)
{
    if (atomic_load(&alone_of(comm)->cancelled))
        return weft_fail(err, WEFT_E_LOST, "rank 0 has given up");
    if (bytes > 0) memcpy(all, mine, bytes);
    return WEFT_OK;
}

/* A flag of one rank is what it is. */
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
    .map_arena = alone_map_arena,
    .unmap_arena = alone_unmap_arena,
    .all_gather = alone_all_gather,
    .reduce_scatter = alone_reduce_scatter,
    .all_reduce = alone_all_reduce,
    .agree = alone_agree,
    .exchange = alone_exchange,
    .carry = alone_carry,
    .cancel = alone_cancel,
};
