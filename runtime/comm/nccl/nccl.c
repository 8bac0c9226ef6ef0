/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator of several GPUs. NCCL does AllGathers. For sums ranks exchange slices over NCCL,
 * and a kernel adds them in rank order, so the bits equal those of "local". A "local" communicator
 * with empty arenas serves for rendezvous, host exchanges and giving up. A branch has a link, a
 * control, scratch and a watchdog of its own. It is in the module of the device "cuda". */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/cuda/work.h"
#include "runtime/comm/job.h"
#include "runtime/comm/local.h"
#include "runtime/comm/nccl/meet.h"
#include "runtime/comm/nccl/watchdog.h"
#include "runtime/comm/outcome.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/nn/cuda/kernels/kernels.h"
#include "runtime/nn/cuda/kernels/record.h"

static const struct weft_comm_ops nccl_ops;
static const int64_t default_timeout_ns = INT64_C(600) * 1000000000;
static const int64_t scratch_bytes = INT64_C(64) << 20;
/* Wait of an ending rank for its peers' end. */
static const int64_t end_ns = INT64_C(1) * 1000000000;

/* GPU memory besides the arena: words of the carried flag, then the pieces that an exchange
 * receives. */
struct scratch {
    uint32_t greatest, unused; /* largest flag of all ranks */
    int64_t first;             /* output of weft_cuda_find, unused */
    _Alignas(256) unsigned char pieces[];
};

struct nccl_comm {
    struct weft_comm comm;     /* first */
    struct weft_comm *control; /* of a branch: the same branch of its trunk's */
    int64_t timeout_ns;
    struct weft_nccl_link *link;
    struct weft_nccl_shape shape;
    struct weft_cuda_span span;
    struct scratch *scratch;
    int64_t pieces_bytes;
    int64_t flag_offset; /* negative: none */
    struct weft_nccl_rings rings;
    struct weft_nccl_progress *progress; /* pinned; the channel writes it */
    struct weft_cuda_driver driver;
    struct weft_nccl_watchdog *watchdog;
    _Atomic uint32_t given; /* not 0: a rank has given up, so pending work must end */
    /* Only the thread that opened it uses these, because it alone calls NCCL. */
    pthread_t issuer;
    bool ended;                  /* pending work was ended after a failure */
    struct weft_cuda_gpu *gpu;   /* its waits call tend_work; NULL until the first operation */
    struct weft_stream *channel; /* of the latest operation */
};

static struct nccl_comm *nccl_of(const struct weft_comm *comm)
{
    return (struct nccl_comm *)comm;
}

/* Life and death */

static bool nccl_detach(struct weft_comm *comm)
{
    struct nccl_comm *c = nccl_of(comm);
    c->span.bytes = 0;
    c->flag_offset = -1;
    return true;
}

/* Ranks close a link together, or abort it. A peer that still waits for this rank would block it
 * here. When this rank leaves, that peer learns that it does not come. */
static void close_link(struct nccl_comm *c)
{
    struct weft_error unsaid = {0};
    if (c->gpu != NULL) c->gpu->tend = NULL;
    if (c->link == NULL) return;
    weft_local_comm_of(c->control)->timeout_ns = end_ns;
    if (atomic_load(&c->given) != 0 ||
        weft_comm_exchange(c->control, NULL, 0, NULL, &unsaid) != WEFT_OK)
        weft_nccl_link_abort(c->link, WEFT_E_LOST, "the ranks did not end together");
    if (weft_nccl_link_close(c->link, &unsaid) != WEFT_OK) atomic_store(&c->given, 1);
    c->link = NULL;
}

static void nccl_close(struct weft_comm *comm)
{
    struct nccl_comm *c = nccl_of(comm);
    close_link(c);
    weft_nccl_watchdog_stop(c->watchdog);
    weft_nccl_rings_close(&c->rings);
    if (c->scratch != NULL) (void)cudaFree(c->scratch);
    if (c->progress != NULL) (void)cudaFreeHost(c->progress);
    weft_cuda_driver_close(&c->driver);
    if (comm->trunk == NULL) weft_comm_close(c->control);
    free(c);
}

/* Tests set WEFT_NCCL_SCRATCH_BYTES, so that blocks exceed the scratch and are reduced part by
 * part. */
static enum weft_status take_memory(struct nccl_comm *c, struct weft_error *err)
{
    const char *text = getenv("WEFT_NCCL_SCRATCH_BYTES");
    const int64_t asked = text != NULL ? strtoll(text, NULL, 10) : 0;
    c->pieces_bytes = asked > 0 ? asked : scratch_bytes;
    c->comm.staging_bytes = (int64_t)sizeof(struct scratch) + c->pieces_bytes;
    cudaError_t code =
        cudaMalloc((void **)&c->scratch, sizeof(struct scratch) + (size_t)c->pieces_bytes);
    if (code != cudaSuccess) return weft_cuda_fail(code, "take memory for sums over ranks", err);
    code = cudaHostAlloc((void **)&c->progress, sizeof *c->progress,
                         cudaHostAllocMapped | cudaHostAllocPortable);
    if (code != cudaSuccess) return weft_cuda_fail(code, "take memory for a watchdog", err);
    memset(c->progress, 0, sizeof *c->progress);
    return weft_cuda_driver_open(&c->driver, err);
}

static enum weft_status open_control(struct nccl_comm *c, const struct weft_comm_options *options,
                                     struct weft_error *err)
{
    struct weft_comm_options of_control = *options;
    of_control.device = "cpu";
    of_control.local.emulate = false;
    return weft_comm_open("local", &of_control, &c->control, err);
}

/* Links the ranks of the control, which have rings already. */
static enum weft_status link_ranks(struct nccl_comm *c, struct weft_error *err)
{
    const struct weft_nccl_link_options of_link = {.rank = c->comm.rank,
                                                   .ranks = c->comm.ranks,
                                                   .timeout_ns = c->timeout_ns,
                                                   .given = &c->given};
    WEFT_TRY(weft_nccl_meet(c->control, &of_link, &c->link, err));
    const struct weft_nccl_watchdog_options of_watchdog = {.control = c->control,
                                                           .rings = &c->rings,
                                                           .progress = c->progress,
                                                           .timeout_ns = c->timeout_ns,
                                                           .given = &c->given};
    return weft_nccl_watchdog_start(&of_watchdog, &c->watchdog, err);
}

static enum weft_status take_for_all(struct nccl_comm *c, struct weft_error *err)
{
    struct weft_error own = {.status = WEFT_OK};
    const enum weft_status taken = take_memory(c, &own);
    return weft_comm_share_outcome(c->control, taken, &own, err);
}

static enum weft_status set_up(struct nccl_comm *c, const struct weft_comm_options *options,
                               struct weft_error *err)
{
    WEFT_TRY(open_control(c, options, err));
    WEFT_TRY(take_for_all(c, err));
    WEFT_TRY(weft_nccl_rings_open(c->control, options->local.arena_fds, &c->rings, err));
    WEFT_TRY(link_ranks(c, err));
    char version[WEFT_NCCL_VERSION_BYTES];
    snprintf(c->comm.description, sizeof c->comm.description, "NCCL %s, sums in rank order",
             weft_nccl_version(version));
    return WEFT_OK;
}

static enum weft_status set_up_branch(struct nccl_comm *c, const struct nccl_comm *trunk,
                                      struct weft_error *err)
{
    const struct weft_comm_place *place = &c->comm.place;
    if (place->round < 0)
        WEFT_TRY(weft_comm_branch(trunk->control, place->lane, place->group, &c->control, err));
    else
        WEFT_TRY(weft_comm_pair(trunk->control, place->lane, place->round, &c->control, err));
    WEFT_TRY(take_for_all(c, err));
    WEFT_TRY(weft_nccl_rings_branch(&trunk->rings, c->control, &c->rings, err));
    return link_ranks(c, err);
}

static enum weft_status nccl_branch(struct weft_comm *trunk, const struct weft_comm_place *place,
                                    int32_t rank, int32_t ranks, struct weft_comm **out,
                                    struct weft_error *err)
{
    const struct nccl_comm *t = nccl_of(trunk);
    struct nccl_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm = weft_comm_branch_of(trunk, place, rank, ranks);
    c->shape = (struct weft_nccl_shape){rank, ranks, ranks};
    c->timeout_ns = t->timeout_ns;
    c->flag_offset = t->flag_offset;
    c->issuer = pthread_self();
    const enum weft_status status = set_up_branch(c, t, err);
    if (status != WEFT_OK) {
        nccl_close(&c->comm);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

enum weft_status weft_cuda_several_open(const struct weft_comm_options *options,
                                        struct weft_comm **out, struct weft_error *err)
{
    struct nccl_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm.ops = &nccl_ops;
    c->comm.rank = options->rank;
    c->comm.ranks = options->ranks;
    c->shape = (struct weft_nccl_shape){options->rank, options->ranks, options->ranks};
    c->flag_offset = -1;
    c->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : default_timeout_ns;
    c->issuer = pthread_self();
    const enum weft_status status = set_up(c, options, err);
    if (status != WEFT_OK) {
        nccl_close(&c->comm);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

static enum weft_status nccl_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                    const struct weft_ranges *reads, struct weft_error *err)
{
    (void)reads; /* peers only get sent bytes */
    (void)err;
    const int64_t bytes =
        comm->trunk != NULL ? nccl_of(comm->trunk)->span.bytes : shape->span_bytes;
    nccl_of(comm)->span = (struct weft_cuda_span){comm->arena, bytes};
    return WEFT_OK;
}

/* Failures */

/* Ends pending work: frees the channel's stream, and fails it with the known cause. */
static void end_work(struct nccl_comm *c, const struct weft_error *why)
{
    struct weft_error found = {.status = WEFT_OK}, err = {.status = WEFT_OK};
    c->ended = true;
    if (weft_nccl_watchdog_found(c->watchdog, &found) == WEFT_OK) found = *why;
    (void)weft_nccl_explain(&c->rings, &found, &err);
    if (found.of_rank == 0) weft_nccl_tell_why(&c->rings, &err);
    weft_nccl_link_abort(c->link, err.status, err.text);
    /* Peers learn it now, before this rank is gone. */
    atomic_store(&c->given, 1);
    weft_comm_cancel(c->control);
    if (weft_cuda_stream_lives(c->gpu, c->channel)) weft_cuda_stream_fail(c->channel, &err);
}

static void tend_work(struct nccl_comm *c)
{
    struct weft_error why = {.status = WEFT_OK};
    if (c->ended || c->channel == NULL) return;
    if (atomic_load(&c->given) != 0) {
        weft_fail(&why, WEFT_E_LOST, "rank %d has given up",
                  weft_comm_rank_of_all(&c->comm, c->comm.rank));
    } else if (weft_nccl_link_look(c->link, &why) == WEFT_OK) {
        return;
    }
    end_work(c, &why);
}

/* Called in waits for the GPU, with the trunk. */
static void tend_all(void *context)
{
    struct nccl_comm *trunk = context;
    if (!pthread_equal(pthread_self(), trunk->issuer)) return;
    tend_work(trunk);
    for (int32_t i = 0; i < trunk->comm.n_branches; i++)
        tend_work(nccl_of(trunk->comm.branches[i]));
}

/* Work */

/* An operation of this rank, between the two words that mark its start and end. */
struct operation {
    struct nccl_comm *c;
    struct weft_stream *channel;
    cudaStream_t cuda;
    uint32_t sequence; /* modulo 2^32 */
};

static cudaError_t write_progress(const struct operation *op, const _Atomic uint32_t *word)
{
    return (cudaError_t)op->c->driver.write_word(op->cuda, (CUdeviceptr)(uintptr_t)word,
                                                 op->sequence, CU_STREAM_WRITE_VALUE_DEFAULT);
}

static void begin_operation(struct operation *op, const struct weft_nccl_call *call)
{
    struct nccl_comm *c = op->c;
    c->channel = op->channel;
    c->gpu = weft_cuda_stream_of(op->channel)->gpu;
    c->gpu->tend = tend_all;
    c->gpu->tend_context = c->comm.trunk != NULL ? nccl_of(c->comm.trunk) : c;
    op->sequence =
        (uint32_t)weft_nccl_record(c->rings.all[c->comm.rank], call, weft_clock_now_ns());
    weft_cuda_stream_worked(op->channel, write_progress(op, &c->progress->started),
                            "write a word for the watchdog");
}

static void end_operation(const struct operation *op, enum weft_status status,
                          const struct weft_error *err)
{
    if (status != WEFT_OK && !op->c->ended) end_work(op->c, err);
    if (status != WEFT_OK) return;
    weft_cuda_stream_worked(op->channel, write_progress(op, &op->c->progress->done),
                            "write a word for the watchdog");
}

/* The first exchange of an operation carries the flag. */
static struct weft_nccl_memory memory_of(const struct nccl_comm *c)
{
    return (struct weft_nccl_memory){
        .arena = weft_cuda_byte(&c->span, 0),
        .scratch = c->scratch->pieces,
        .flag = c->flag_offset >= 0 ? (uint32_t *)(void *)weft_cuda_byte(&c->span, c->flag_offset)
                                    : NULL,
        .greatest = &c->scratch->greatest,
    };
}

/* Writes only if a rank's flag is raised, so concurrent readers of the flag are undisturbed. */
static enum weft_status raise_flag(const struct nccl_comm *c, cudaStream_t cuda,
                                   struct weft_error *err)
{
    if (c->flag_offset < 0 || c->comm.ranks == 1) return WEFT_OK;
    const struct weft_cuda_finding finding = {
        .flag = &c->scratch->greatest,
        .first = &c->scratch->first,
        .stop = (uint32_t *)(void *)weft_cuda_byte(&c->span, c->flag_offset),
    };
    const cudaError_t code = (cudaError_t)weft_cuda_find(&finding, cuda);
    return code == cudaSuccess ? WEFT_OK
                               : weft_cuda_fail(code, "look at the other ranks' flags", err);
}

static unsigned char *address_of(const struct weft_nccl_memory *memory, struct weft_nccl_place at)
{
    return (at.is_scratch ? memory->scratch : memory->arena) + at.offset;
}

/* If no member has an operand, nothing reads the sum. */
static enum weft_status add_up(const struct nccl_comm *c, const struct weft_nccl_step *step,
                               const struct weft_nccl_memory *memory, cudaStream_t cuda,
                               struct weft_error *err)
{
    if (step->idle >= step->members) return WEFT_OK;
    const struct weft_cuda_sum sum = {.dtype = step->dtype,
                                      .ranks = step->members,
                                      .per_node =
                                          step->level == WEFT_NCCL_ALL ? c->comm.ranks_per_node : 0,
                                      .idle = step->idle,
                                      .own = step->self,
                                      .n = step->elements,
                                      .stride_bytes = step->from.stride,
                                      .from = address_of(memory, step->from.at),
                                      .own_from = address_of(memory, step->own.at),
                                      .partial = step->partial,
                                      .adds = step->adds,
                                      .to_dtype = step->to_dtype,
                                      .to = address_of(memory, step->to.at)};
    const cudaError_t code = (cudaError_t)weft_cuda_sum_ranks(&sum, cuda);
    return code == cudaSuccess ? WEFT_OK : weft_cuda_fail(code, "add up over ranks", err);
}

/* Rounds sums in fp32, or widens the rounded ones. */
static enum weft_status convert_sums(const struct weft_nccl_step *step,
                                     const struct weft_nccl_memory *memory, cudaStream_t cuda,
                                     struct weft_error *err)
{
    const void *from = address_of(memory, step->from.at);
    void *to = address_of(memory, step->to.at);
    const int code = step->kind == WEFT_NCCL_NARROW
                         ? weft_cuda_narrow(step->dtype, step->elements, from, to, cuda)
                         : weft_cuda_widen(step->dtype, step->elements, from, to, cuda);
    return code == 0 ? WEFT_OK : weft_cuda_fail((cudaError_t)code, "round sums over ranks", err);
}

static enum weft_status issue_step(struct nccl_comm *c, const struct weft_nccl_step *step,
                                   const struct weft_nccl_memory *memory, cudaStream_t cuda,
                                   struct weft_error *err)
{
    switch (step->kind) {
    case WEFT_NCCL_SUM:
        return add_up(c, step, memory, cuda, err);
    case WEFT_NCCL_NARROW:
    case WEFT_NCCL_WIDEN:
        return convert_sums(step, memory, cuda, err);
    case WEFT_NCCL_EXCHANGE:
    case WEFT_NCCL_GATHER:
    case WEFT_NCCL_STEP_COUNT:
        break;
    }
    return weft_nccl_issue(c->link, step, memory, cuda, err);
}

static enum weft_status reduce_block(struct nccl_comm *c, const struct weft_comm_block *block,
                                     cudaStream_t cuda, struct weft_error *err)
{
    const int64_t n = block->slice_elements;
    const int64_t most =
        weft_nccl_part_elements(&c->shape, weft_nccl_operand(block), n, c->pieces_bytes);
    struct weft_nccl_memory memory = memory_of(c);
    if (most < 1 && n > 0)
        return weft_fail(err, WEFT_E_INTERNAL, "no element fits %lld bytes for sums over ranks",
                         (long long)c->pieces_bytes);
    for (int64_t first = 0; first < n; first += most) {
        struct weft_nccl_steps steps;
        weft_nccl_reduce_steps(&c->shape, block, first, n - first < most ? n - first : most,
                               &steps);
        for (int32_t i = 0; i < steps.n; i++)
            WEFT_TRY(issue_step(c, &steps.steps[i], &memory, cuda, err));
        memory.flag = NULL;
    }
    return raise_flag(c, cuda, err);
}

static enum weft_status gather_block(struct nccl_comm *c, const struct weft_comm_block *block,
                                     cudaStream_t cuda, struct weft_error *err)
{
    const struct weft_nccl_memory memory = memory_of(c);
    const struct weft_nccl_step step = weft_nccl_gather_step(&c->shape, block);
    return weft_nccl_issue(c->link, &step, &memory, cuda, err);
}

/* Returns false if there is nothing to do. `slice_dtype` is the slice's, unless it is in place. */
static bool open_block(struct operation *op, enum weft_nccl_kind kind,
                       const struct weft_comm_block *block, enum weft_dtype slice_dtype)
{
    const int32_t ranks = op->c->comm.ranks;
    const bool gathers = kind == WEFT_NCCL_ALL_GATHER;
    const int64_t slice_bytes = weft_cuda_bytes_of(block->slice_elements, weft_nccl_operand(block));
    const struct weft_cuda_part full = {
        block->full_offset, slice_bytes <= INT64_MAX / ranks ? slice_bytes * ranks : INT64_MAX};
    const int64_t to_elements = block->slice_elements * (kind == WEFT_NCCL_ALL_REDUCE ? ranks : 1);
    const struct weft_cuda_part slice = {block->slice_offset,
                                         weft_cuda_bytes_of(to_elements, slice_dtype)};
    op->cuda =
        weft_cuda_channel(&op->c->span, op->channel, full, block->slice_offset < 0 ? full : slice);
    if (op->cuda == NULL) return false;
    const struct weft_nccl_call call = {kind, full.bytes,
                                        gathers ? block->slice_offset : block->full_offset,
                                        gathers ? block->full_offset : block->slice_offset};
    begin_operation(op, &call);
    return true;
}

static void nccl_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                            const struct weft_comm_block *block)
{
    struct operation op = {.c = nccl_of(comm), .channel = channel};
    struct weft_error err = {0};
    if (!open_block(&op, WEFT_NCCL_ALL_GATHER, block, block->dtype)) return;
    end_operation(&op, gather_block(op.c, block, op.cuda, &err), &err);
}

static void nccl_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                                const struct weft_comm_block *block)
{
    struct operation op = {.c = nccl_of(comm), .channel = channel};
    struct weft_error err = {0};
    if (!open_block(&op, WEFT_NCCL_REDUCE_SCATTER, block, block->slice_dtype)) return;
    end_operation(&op, reduce_block(op.c, block, op.cuda, &err), &err);
}

/* Each rank sums its slice in place, then an AllGather shares all slices. Those of partial sums are
 * in the result, which has every rank's slice. */
static void nccl_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                            const struct weft_comm_block *block)
{
    struct operation op = {.c = nccl_of(comm), .channel = channel};
    struct weft_error err = {0};
    struct weft_comm_block in_place = *block, gathered = *block;
    if (!block->of_partials) {
        in_place.slice_offset = -1;
        in_place.slice_dtype = block->dtype;
        in_place.adds = false;
    }
    if (!open_block(&op, WEFT_NCCL_ALL_REDUCE, &in_place, in_place.slice_dtype)) return;
    gathered.slice_offset = -1;
    if (block->of_partials) {
        in_place.slice_offset +=
            comm->rank * weft_cuda_bytes_of(block->slice_elements, block->slice_dtype);
        gathered.full_offset = block->slice_offset;
        gathered.dtype = block->slice_dtype;
    }
    enum weft_status status = reduce_block(op.c, &in_place, op.cuda, &err);
    if (status == WEFT_OK) status = gather_block(op.c, &gathered, op.cuda, &err);
    end_operation(&op, status, &err);
}

static void nccl_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                       int64_t to_offset, int64_t words)
{
    struct nccl_comm *c = nccl_of(comm);
    struct operation op = {.c = c, .channel = channel};
    struct weft_error err = {0};
    const int64_t bytes = words * (int64_t)sizeof(uint64_t);
    op.cuda = weft_cuda_channel(&c->span, channel, (struct weft_cuda_part){from_offset, bytes},
                                (struct weft_cuda_part){to_offset, bytes});
    if (op.cuda == NULL) return;
    const struct weft_nccl_call call = {WEFT_NCCL_AGREE, bytes, from_offset, to_offset};
    const struct weft_nccl_memory memory = memory_of(c);
    const struct weft_nccl_agreement agreement = {from_offset, to_offset, words};
    begin_operation(&op, &call);
    enum weft_status status = weft_nccl_agree(c->link, &agreement, &memory, op.cuda, &err);
    if (status == WEFT_OK) status = raise_flag(c, op.cuda, &err);
    end_operation(&op, status, &err);
}

static void nccl_post(struct weft_comm *comm, struct weft_stream *channel,
                      const struct weft_comm_job *job)
{
    const struct weft_comm_call *call = &job->call;
    if (call->kind == WEFT_COMM_CALL_AGREE)
        nccl_agree(comm, channel, call->from, call->to, call->count);
    else if (call->kind == WEFT_COMM_CALL_ALL_GATHER)
        nccl_all_gather(comm, channel, &job->block);
    else if (call->kind == WEFT_COMM_CALL_REDUCE_SCATTER)
        nccl_reduce_scatter(comm, channel, &job->block);
    else if (call->kind == WEFT_COMM_CALL_ALL_REDUCE)
        nccl_all_reduce(comm, channel, &job->block);
}

static enum weft_status nccl_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                      void *all, struct weft_error *err)
{
    return weft_comm_exchange(nccl_of(comm)->control, mine, bytes, all, err);
}

static void nccl_carry(struct weft_comm *comm, int64_t flag_offset)
{
    nccl_of(comm)->flag_offset = flag_offset;
}

static void nccl_cancel(struct weft_comm *comm)
{
    struct nccl_comm *c = nccl_of(comm);
    atomic_store(&c->given, 1);
    weft_comm_cancel(c->control);
}

static const struct weft_comm_ops nccl_ops = {
    .name = "nccl",
    .open = weft_cuda_several_open,
    .close = nccl_close,
    .attach = nccl_attach,
    .detach = nccl_detach,
    .post = nccl_post,
    .exchange = nccl_exchange,
    .carry = nccl_carry,
    .cancel = nccl_cancel,
    .branch = nccl_branch,
};
