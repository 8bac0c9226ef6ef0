/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator over MPI: ranks of any hosts. Sums are taken in canonical order by the owner of
 * the slice, from whole chunks, so the bits are those of "local". With several nodes of several
 * ranks blocks go on two levels (levels.h). */
#include "runtime/comm/mpi/communicator.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/comm/host.h"
#include "runtime/comm/mpi/levels.h"

enum {
    SPIN_NS = 200000,
    LOOK_NS = 5000000,         /* period of looks for ranks that have given up */
    MOST_BROKEN_NS = 200000000 /* time for the give-up of a peer to arrive after an error */
};

static const int64_t default_timeout_ns = INT64_C(600) * 1000000000;

/* Calls */

static _Atomic uint32_t *flag_of(const struct weft_mpi_comm *c)
{
    if (c->flag_offset < 0 || c->comm.span_bytes == 0) return NULL;
    return (_Atomic uint32_t *)(void *)(c->memory + c->flag_offset);
}

/* The library may have failed because ranks make different calls, or because a peer is gone. */
static enum weft_status fail_flows(struct weft_mpi_comm *c, const struct weft_error *why,
                                   struct weft_error *err)
{
    for (int32_t rank = 0; rank < c->comm.ranks && c->broken.status == WEFT_OK; rank++) {
        if (rank != c->comm.rank && c->headers[rank].calls == c->own.calls &&
            !weft_comm_call_equal(&c->headers[rank].call, &c->own.call))
            weft_mpi_fail_differs(c, rank);
    }
    const int64_t end_ns = weft_clock_now_ns() + MOST_BROKEN_NS;
    while (c->broken.status == WEFT_OK && weft_clock_now_ns() < end_ns) {
        if (weft_mpi_look_for_farewells(c) == WEFT_OK)
            weft_clock_sleep_until_ns(weft_clock_now_ns() + LOOK_NS);
    }
    if (c->broken.status == WEFT_OK) weft_fail(&c->broken, why->status, "%s", why->text);
    return weft_mpi_fail_for_good(c, err);
}

static struct weft_mpi_flow header_flow(struct weft_mpi_comm *c)
{
    return (struct weft_mpi_flow){
        .tag = WEFT_MPI_HEADER,
        .bytes = sizeof c->own,
        .send = (const void *)&c->own,
        .receive = (void *)c->headers,
        .receive_stride = sizeof *c->headers,
    };
}

enum weft_status weft_mpi_send_flows(struct weft_mpi_comm *c, const struct weft_mpi_flow *flows,
                                     int32_t n, struct weft_error *err)
{
    struct weft_error why = {.status = WEFT_OK};
    if (weft_mpi_exchange_flows(&c->rounds, flows, n, &why) == WEFT_OK) return WEFT_OK;
    return fail_flows(c, &why, err);
}

enum weft_status weft_mpi_make_call(struct weft_mpi_comm *c, const struct weft_comm_call *call,
                                    int64_t arrival_ns, int32_t n, int64_t *latest_ns,
                                    struct weft_error *err)
{
    if (c->broken.status == WEFT_OK && atomic_load(&c->cancelled)) weft_mpi_fail_cancelled(c);
    if (c->broken.status != WEFT_OK) return weft_mpi_fail_for_good(c, err);
    _Atomic uint32_t *flag = flag_of(c);
    c->own = (struct weft_mpi_header){
        .call = *call,
        .arrival_ns = arrival_ns,
        .sent_ns = weft_clock_now_ns(),
        .calls = c->own.calls + 1,
        .raised = flag != NULL && atomic_load(flag) != 0,
    };
    pthread_mutex_lock(&c->lock);
    c->farewell.calls = c->own.calls;
    c->farewell.kinds[c->own.calls % WEFT_COMM_RECENT] = (uint32_t)call->kind;
    pthread_mutex_unlock(&c->lock);
    c->rounds.meter = weft_comm_call_is_collective((uint32_t)call->kind) ? &c->meter : NULL;
    c->flows[0] = header_flow(c);
    WEFT_TRY(weft_mpi_send_flows(c, c->flows, 1 + n, err));
    int64_t latest = arrival_ns;
    /* With many peers some headers wait for others to come. */
    const bool hears = c->rounds.meter != NULL &&
                       c->comm.ranks - 1 <= weft_mpi_rounds_depth(c->rounds.message_bytes);
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        const struct weft_mpi_header *theirs = &c->headers[rank];
        if (rank == c->comm.rank) continue;
        c->heard[rank] = theirs->calls;
        if (hears) weft_comm_meter_hear(&c->meter, rank, theirs->sent_ns);
        if (theirs->calls != c->own.calls || !weft_comm_call_equal(&theirs->call, call)) {
            weft_mpi_fail_differs(c, rank);
            return weft_mpi_fail_for_good(c, err);
        }
        if (theirs->arrival_ns > latest) latest = theirs->arrival_ns;
        if (theirs->raised != 0 && flag != NULL) atomic_store(flag, 1);
    }
    if (latest_ns != NULL) *latest_ns = latest;
    return WEFT_OK;
}

static enum weft_status mpi_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                     void *all, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    const struct weft_comm_call call = {.kind = WEFT_COMM_CALL_EXCHANGE, .count = (int64_t)bytes};
    c->flows[1] = (struct weft_mpi_flow){
        .tag = WEFT_MPI_DATA,
        .bytes = (int64_t)bytes,
        .send = mine,
        .receive = all,
        .receive_stride = (int64_t)bytes,
    };
    WEFT_TRY(weft_mpi_make_call(c, &call, 0, bytes > 0, NULL, err));
    if (bytes > 0) memcpy((unsigned char *)all + (size_t)comm->rank * bytes, mine, bytes);
    return WEFT_OK;
}

static enum weft_status mpi_swap(struct weft_comm *comm, int32_t peer, const void *mine,
                                 int64_t bytes, void *theirs, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    const bool is_second = peer < comm->rank;
    const int32_t first = is_second ? peer : comm->rank, second = is_second ? comm->rank : peer;
    const struct weft_mpi_group pair = {is_second, 2, first, second - first - 1};
    const struct weft_mpi_flow data = {
        .tag = WEFT_MPI_DATA, .group = &pair, .bytes = bytes, .send = mine, .receive = theirs};
    if (c->broken.status == WEFT_OK && atomic_load(&c->cancelled)) weft_mpi_fail_cancelled(c);
    if (c->broken.status != WEFT_OK) return weft_mpi_fail_for_good(c, err);
    return weft_mpi_send_flows(c, &data, 1, err);
}

/* Life */

static enum weft_status mpi_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                   const struct weft_ranges *reads, struct weft_error *err)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    (void)reads; /* peers only get sent bytes */
    (void)err;
    c->memory = comm->trunk != NULL ? weft_mpi_comm_of(comm->trunk)->memory
                                    : weft_arena_memory(comm->arena);
    c->comm.span_bytes = comm->trunk != NULL ? comm->trunk->span_bytes : shape->span_bytes;
    return WEFT_OK;
}

static bool has_failed(struct weft_mpi_comm *c)
{
    return c->broken.status != WEFT_OK || atomic_load(&c->cancelled);
}

/* After a failure peers' libraries may still read what this rank has sent. Some read this process's
 * addresses, and end the peer if they are not mapped. */
static bool mpi_detach(struct weft_comm *comm)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    c->memory = NULL;
    c->comm.span_bytes = 0;
    c->flag_offset = -1;
    if (has_failed(c) && comm->trunk != NULL) {
        atomic_store(&weft_mpi_comm_of(comm->trunk)->cancelled, true); /* it keeps the arena */
    } else if (has_failed(c)) {
        weft_mpi_keep(c->mpi, NULL, comm->arena);
        comm->arena = NULL;
    }
    return true;
}

static void mpi_carry(struct weft_comm *comm, int64_t flag_offset)
{
    weft_mpi_comm_of(comm)->flag_offset = flag_offset;
}

static void mpi_cancel(struct weft_comm *comm)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    pthread_mutex_lock(&c->lock);
    struct weft_mpi_farewell farewell = c->farewell;
    pthread_mutex_unlock(&c->lock);
    farewell.lost = (uint32_t)(weft_mpi_lost(c->mpi) + 1);
    farewell.missed = (uint32_t)(weft_mpi_missed(c->mpi) + 1);
    if (!atomic_exchange(&c->cancelled, true)) weft_mpi_give_up(c->mpi, &farewell);
}

static int32_t mpi_lost(const struct weft_comm *comm)
{
    return weft_mpi_lost(weft_mpi_comm_of(comm)->mpi);
}

static void mpi_close(struct weft_comm *comm)
{
    struct weft_mpi_comm *c = weft_mpi_comm_of(comm);
    void *const hosts = comm->trunk == NULL ? c->hosts : NULL;
    void *const memory[] = {
        c->rounds.staging, c->rounds.operands, c->flows, c->headers, c->heard, hosts, c};
    const bool keeps = has_failed(c);
    struct weft_mpi *mpi = c->mpi;
    weft_comm_meter_close(&c->meter);
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++) {
        if (keeps)
            weft_mpi_keep(mpi, memory[i], NULL);
        else
            free(memory[i]);
    }
}

static enum weft_status take_memory(struct weft_mpi_comm *c, struct weft_error *err)
{
    const size_t ranks = (size_t)c->comm.ranks;
    c->comm.meter = &c->meter;
    c->comm.staging_bytes = WEFT_MPI_STAGING_BYTES;
    c->rounds.staging = malloc(WEFT_MPI_STAGING_BYTES);
    c->rounds.operands = calloc(ranks, sizeof *c->rounds.operands);
    c->flows = calloc(1 + (size_t)weft_mpi_level_flows(c->comm.ranks), sizeof *c->flows);
    c->headers = calloc(ranks, sizeof *c->headers);
    c->heard = calloc(ranks, sizeof *c->heard);
    if (c->comm.trunk == NULL) c->hosts = calloc(ranks, sizeof *c->hosts);
    if (!weft_comm_meter_open(&c->meter, c->comm.ranks) || c->rounds.staging == NULL ||
        c->rounds.operands == NULL || c->flows == NULL || c->headers == NULL || c->heard == NULL ||
        c->hosts == NULL)
        return weft_fail_memory(err, "a communicator");
    memset(c->rounds.staging, UCHAR_MAX, WEFT_MPI_STAGING_BYTES); /* resident when it is measured */
    return WEFT_OK;
}

static void begin_rounds(struct weft_mpi_comm *c)
{
    c->rounds = (struct weft_mpi_rounds){
        .mpi = c->mpi,
        .group = {c->comm.rank, c->comm.ranks, c->comm.place.first, c->comm.place.gap},
        .message_bytes = weft_mpi_round_bytes(c->mpi),
        .tags = c->comm.trunk != NULL ? (c->comm.place.number + 1) * WEFT_MPI_TAGS : 0,
        .idle = weft_mpi_wait_idly,
        .context = c,
    };
}

static enum weft_status set_up(struct weft_mpi_comm *c, const struct weft_comm_options *options,
                               struct weft_error *err)
{
    char own[WEFT_HOST_NAME_BYTES];
    if (options->local.emulate)
        return weft_fail(err, WEFT_E_USAGE,
                         "cluster.emulate paces ranks of one machine, and these run over MPI, on a "
                         "real network: leave it out (--set cluster.emulate=false)");
    c->timeout_ns = options->timeout_ns > 0 ? options->timeout_ns : default_timeout_ns;
    c->spin_ns = options->local.own_cores ? SPIN_NS : 0;
    begin_rounds(c);
    snprintf(c->comm.description, sizeof c->comm.description, "mpi, %.100s",
             weft_mpi_version(c->mpi));
    WEFT_TRY(take_memory(c, err));
    c->comm.hosts = (const char(*)[WEFT_HOST_NAME_BYTES])c->hosts;
    return mpi_exchange(&c->comm, weft_host_name(own), sizeof own, c->hosts, err);
}

static enum weft_status mpi_open(const struct weft_comm_options *options, struct weft_comm **out,
                                 struct weft_error *err)
{
    if (options->mpi == NULL)
        return weft_fail(err, WEFT_E_INTERNAL, "the communicator \"mpi\" needs a started MPI");
    struct weft_mpi_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm.ops = &weft_comm_mpi;
    c->comm.rank = options->rank;
    c->comm.ranks = options->ranks;
    c->flag_offset = -1;
    c->mpi = options->mpi;
    pthread_mutex_init(&c->lock, NULL);
    const enum weft_status status = set_up(c, options, err);
    if (status != WEFT_OK) {
        mpi_close(&c->comm);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

/* Opening needs no message: the first call meets the peers. */
static enum weft_status mpi_branch(struct weft_comm *trunk, const struct weft_comm_place *place,
                                   int32_t rank, int32_t ranks, struct weft_comm **out,
                                   struct weft_error *err)
{
    const struct weft_mpi_comm *t = weft_mpi_comm_of(trunk);
    struct weft_mpi_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm = weft_comm_branch_of(trunk, place, rank, ranks);
    c->flag_offset = t->flag_offset;
    c->mpi = t->mpi;
    c->timeout_ns = t->timeout_ns;
    c->spin_ns = t->spin_ns;
    c->hosts = t->hosts;
    pthread_mutex_init(&c->lock, NULL);
    begin_rounds(c);
    const enum weft_status status = take_memory(c, err);
    if (status != WEFT_OK) {
        mpi_close(&c->comm);
        return status;
    }
    *out = &c->comm;
    return WEFT_OK;
}

const struct weft_comm_ops weft_comm_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .attach = mpi_attach,
    .detach = mpi_detach,
    .post = weft_comm_push_task,
    .tasks = weft_mpi_tasks,
    .exchange = mpi_exchange,
    .swap = mpi_swap,
    .carry = mpi_carry,
    .cancel = mpi_cancel,
    .lost = mpi_lost,
    .branch = mpi_branch,
    .has_owners = true,
    .takes_host_memory = true,
};
