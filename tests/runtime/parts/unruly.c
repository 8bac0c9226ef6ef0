/* SPDX-License-Identifier: Apache-2.0 */
/* The unruly communicator is the local one, as late and in as free an order as comm.h allows. Code
 * that relies on more fails under it. A program that links this file with unruly_link_args
 * (meson.build) opens it by the name "unruly". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/job.h"

/* Each rank draws its own waits. All ranks cut the same blocks at the same places. */
enum { MOST_WAIT_NS = 200000, WAITS = 1, CUTS = 2, ORDERS = 3 };

struct unruly {
    struct weft_comm comm; /* first */
    struct weft_comm *local;
    uint64_t calls, waits;
};

static const struct weft_comm_ops unruly_ops;

static struct unruly *unruly_of(struct weft_comm *comm)
{
    return (struct unruly *)comm;
}

static enum weft_status be_late(struct weft_stream *channel, const void *argument,
                                struct weft_error *err)
{
    const int64_t *wait_ns = argument;
    (void)channel;
    (void)err;
    weft_clock_sleep_until_ns(weft_clock_now_ns() + *wait_ns);
    return WEFT_OK;
}

/* Pushes a wait of random length; in half of all calls none. */
static void push_wait(struct unruly *u, struct weft_stream *channel)
{
    const uint64_t rank = (uint64_t)u->comm.rank, draw = u->waits++;
    const int64_t drawn = (int64_t)weft_rng_below(WAITS, rank, draw, 2 * MOST_WAIT_NS);
    const int64_t wait_ns = drawn - MOST_WAIT_NS;
    if (wait_ns > 0) weft_stream_push(channel, be_late, &wait_ns, sizeof wait_ns);
}

/* Elements of the first of two parts of `n`; 0: one part. Even, so offsets stay multiples of 4. */
static int64_t cut(const struct unruly *u, int64_t n)
{
    return n < 4 ? 0 : 2 * (int64_t)weft_rng_below(CUTS, u->calls, 0, (uint64_t)n / 2);
}

static bool second_first(const struct unruly *u)
{
    return weft_rng_below(ORDERS, u->calls, 0, 2) == 1;
}

/* Elements are summed one by one, so parts of a block may be summed in any order. */
static void cut_all_reduce(const struct unruly *u, const struct weft_comm_block *block,
                           struct weft_comm_job parts[2])
{
    const int64_t first = cut(u, block->slice_elements), ahead = first * u->comm.ranks;
    struct weft_comm_block blocks[2] = {*block, *block};
    blocks[0].slice_elements = first;
    blocks[0].ns = block->ns / 2;
    blocks[1].slice_elements -= first;
    blocks[1].ns -= first > 0 ? blocks[0].ns : 0;
    const enum weft_dtype full = block->of_partials ? block->slice_dtype : block->dtype;
    blocks[1].full_offset += ahead * weft_dtype_bytes(full);
    if (block->of_partials) blocks[1].slice_offset += ahead * weft_dtype_bytes(block->slice_dtype);
    for (int i = 0; i < 2; i++)
        parts[i] = weft_comm_job_of(WEFT_COMM_CALL_ALL_REDUCE, &blocks[i]);
}

static void cut_agreement(const struct unruly *u, const struct weft_comm_job *job,
                          struct weft_comm_job parts[2])
{
    const struct weft_comm_call *call = &job->call;
    const int64_t first = cut(u, call->count), ahead = first * (int64_t)sizeof(uint64_t);
    const int64_t first_ns = first > 0 ? job->ns / 2 : 0;
    parts[0] = weft_comm_job_of_agreement(call->from, call->to, first, first_ns);
    parts[1] = weft_comm_job_of_agreement(call->from + ahead, call->to + ahead, call->count - first,
                                          job->ns - first_ns);
}

static void unruly_post(struct weft_comm *comm, struct weft_stream *channel,
                        const struct weft_comm_job *job)
{
    struct unruly *u = unruly_of(comm);
    struct weft_comm_job parts[2] = {*job}; /* the second: nothing */
    if (job->call.kind == WEFT_COMM_CALL_ALL_REDUCE) cut_all_reduce(u, &job->block, parts);
    if (job->call.kind == WEFT_COMM_CALL_AGREE) cut_agreement(u, job, parts);
    const int turn = second_first(u);
    u->calls++;
    for (int i = 0; i < 2; i++) {
        const struct weft_comm_job *part = &parts[(i + turn) % 2];
        if (part->call.count == 0) continue;
        push_wait(u, channel);
        u->local->ops->post(u->local, channel, part);
    }
    push_wait(u, channel);
}

static enum weft_status unruly_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                        void *all, struct weft_error *err)
{
    return weft_comm_exchange(unruly_of(comm)->local, mine, bytes, all, err);
}

static enum weft_status unruly_branch(struct weft_comm *trunk, const struct weft_comm_place *place,
                                      int32_t rank, int32_t ranks, struct weft_comm **out,
                                      struct weft_error *err)
{
    struct unruly *u = calloc(1, sizeof *u);
    if (u == NULL) return weft_fail_memory(err, "a communicator");
    u->comm = weft_comm_branch_of(trunk, place, rank, ranks);
    struct weft_comm *local = unruly_of(trunk)->local;
    const enum weft_status status =
        place->round >= 0 ? weft_comm_pair(local, place->lane, place->round, &u->local, err)
                          : weft_comm_branch(local, place->lane, place->group, &u->local, err);
    if (status != WEFT_OK) {
        free(u);
        return status;
    }
    u->comm.arena = u->local->arena;
    *out = &u->comm;
    return WEFT_OK;
}

static enum weft_status unruly_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                      const struct weft_ranges *reads, struct weft_error *err)
{
    struct weft_comm *local = unruly_of(comm)->local;
    return local->ops->attach(local, shape, reads, err);
}

static bool unruly_detach(struct weft_comm *comm)
{
    struct weft_comm *local = unruly_of(comm)->local;
    return local->ops->detach(local);
}

static void unruly_carry(struct weft_comm *comm, int64_t flag_offset)
{
    weft_comm_carry(unruly_of(comm)->local, flag_offset);
}

static void unruly_cancel(struct weft_comm *comm)
{
    weft_comm_cancel(unruly_of(comm)->local);
}

static void unruly_close(struct weft_comm *comm)
{
    if (comm->trunk == NULL) {
        unruly_of(comm)->local->arena = NULL; /* the caller closes it */
        weft_comm_close(unruly_of(comm)->local);
    }
    free(comm);
}

static enum weft_status unruly_open(const struct weft_comm_options *options, struct weft_comm **out,
                                    struct weft_error *err)
{
    struct unruly *u = calloc(1, sizeof *u);
    if (u == NULL) return weft_fail_memory(err, "a communicator");
    enum weft_status status = weft_comm_open("local", options, &u->local, err);
    if (status != WEFT_OK) {
        free(u);
        return status;
    }
    u->comm = (struct weft_comm){.ops = &unruly_ops,
                                 .rank = options->rank,
                                 .ranks = options->ranks,
                                 .ranks_per_node = u->local->ranks_per_node,
                                 .arena = u->local->arena};
    snprintf(u->comm.description, sizeof u->comm.description, "unruly, %.100s",
             weft_comm_describe(u->local));
    *out = &u->comm;
    return WEFT_OK;
}

static const struct weft_comm_ops unruly_ops = {
    .name = "unruly",
    .open = unruly_open,
    .close = unruly_close,
    .attach = unruly_attach,
    .detach = unruly_detach,
    .post = unruly_post,
    .exchange = unruly_exchange,
    .carry = unruly_carry,
    .cancel = unruly_cancel,
    .branch = unruly_branch,
    .has_owners = true,
    .takes_host_memory = true,
};

enum weft_status __real_weft_comm_open(const char *name, const struct weft_comm_options *options,
                                       struct weft_comm **out, struct weft_error *err);
enum weft_status __wrap_weft_comm_open(const char *name, const struct weft_comm_options *options,
                                       struct weft_comm **out, struct weft_error *err);
enum weft_status __wrap_weft_comm_open(const char *name, const struct weft_comm_options *options,
                                       struct weft_comm **out, struct weft_error *err)
{
    if (strcmp(name, "unruly") == 0) return unruly_open(options, out, err);
    return __real_weft_comm_open(name, options, out, err);
}
