/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator over MPI: ranks of any hosts. Sums are taken in canonical order by the owner of
 * the slice, from whole chunks, so the bits are those of "local". With several nodes of several
 * ranks blocks go on two levels (levels.h). */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/machine/cores.h"
#include "base/units.h"
#include "runtime/comm/backend.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/host.h"
#include "runtime/comm/job.h"
#include "runtime/comm/mpi/flows.h"
#include "runtime/comm/mpi/levels.h"
#include "runtime/comm/mpi/rounds.h"
#include "runtime/comm/sum.h"

enum {
    SPIN_NS = 200000,
    SLEEP_NS = 20000,
    LOOK_NS = 5000000,         /* period of looks for ranks that have given up */
    MOST_BROKEN_NS = 200000000 /* time for the give-up of a peer to arrive after an error */
};

static const int64_t default_timeout_ns = INT64_C(600) * 1000000000;

/* Goes with every call to all peers. */
struct header {
    struct weft_comm_call call;
    int64_t arrival_ns; /* on the channel's clock */
    int64_t sent_ns;    /* on this host's */
    uint32_t calls;
    uint32_t raised; /* the carried flag */
};

/* The last word of a rank. */
struct farewell {
    uint32_t calls;
    uint32_t kinds[WEFT_COMM_RECENT];
    uint32_t lost;   /* 1 + the rank that it gives up for, if that one has ended; 0: none */
    uint32_t missed; /* 1 + the rank that it gives up for, if that one did not come; 0: none */
    uint32_t unused[9];
};

_Static_assert(sizeof(struct farewell) == WEFT_MPI_FAREWELL_BYTES, "a farewell is one message");

struct mpi_comm {
    struct weft_comm comm; /* first */
    struct weft_mpi *mpi;
    int64_t timeout_ns, spin_ns;
    struct weft_mpi_rounds rounds;
    struct weft_comm_meter meter; /* of collectives */
    struct weft_mpi_flow *flows;  /* of a call: its header, then the data */
    struct header own, *headers;  /* [ranks], of the latest call */
    uint32_t *heard;              /* [ranks], the peer's latest call that this rank knows of */
    char (*hosts)[WEFT_HOST_NAME_BYTES]; /* [ranks of all], the trunk's */
    pthread_mutex_t lock;                /* of the farewell, since any thread may cancel */
    struct farewell farewell;
    int64_t looked_ns;
    atomic_bool cancelled;
    struct weft_error broken; /* the first failure; after it ranks are out of step */
    unsigned char *memory;    /* of the arena */
    int64_t span_bytes, flag_offset, link_free_ns;
};

static struct mpi_comm *mpi_of(const struct weft_comm *comm)
{
    return (struct mpi_comm *)comm;
}

/* Failures */

static enum weft_status fail_for_good(struct mpi_comm *c, struct weft_error *err)
{
    weft_fail(err, c->broken.status, "%s", c->broken.text);
    return c->broken.status;
}

static int32_t rank_of(const struct mpi_comm *c, int32_t rank)
{
    return weft_comm_rank_of_all(&c->comm, rank);
}

/* Appends "all_gather (lane across), call 9": this rank's latest call. */
static void show_own_call(const struct mpi_comm *c, struct weft_text *out)
{
    weft_text_add(out, weft_comm_call_name((uint32_t)c->own.call.kind));
    weft_comm_show_place(&c->comm, out);
    weft_text_addf(out, ", call %u", c->own.calls);
}

/* Appends a rank of all. */
static void add_rank_of_all(const struct mpi_comm *c, int32_t rank, struct weft_text *out)
{
    weft_text_addf(out, "rank %d", rank);
    if (c->hosts[rank][0] != '\0') weft_text_addf(out, " (host %s)", c->hosts[rank]);
}

static void add_rank(const struct mpi_comm *c, int32_t rank, struct weft_text *out)
{
    add_rank_of_all(c, rank_of(c, rank), out);
}

/* `rank` is of all ranks. */
static enum weft_status fail_lost(struct mpi_comm *c, int32_t rank)
{
    struct weft_text text;
    weft_text_init(&text);
    add_rank_of_all(c, rank, &text);
    weft_text_addf(&text, " has ended without a word while rank %d was in ",
                   rank_of(c, c->comm.rank));
    show_own_call(c, &text);
    weft_fail(&c->broken, WEFT_E_LOST, "%s. It was killed, or it crashed: see its host's log",
              weft_text_chars(&text));
    weft_text_finish(&text);
    return WEFT_E_LOST;
}

/* A peer waited too long: one cause and one code for all ranks that the peer reaches. Both ranks
 * are of all ranks. */
static enum weft_status fail_missed(struct mpi_comm *c, int32_t peer, int32_t missed)
{
    struct weft_text text;
    weft_mpi_miss(c->mpi, missed);
    weft_text_init(&text);
    weft_text_addf(&text, "rank %d was in ", rank_of(c, c->comm.rank));
    show_own_call(c, &text);
    weft_text_add(&text, " when ");
    add_rank_of_all(c, peer, &text);
    weft_text_add(&text, " gave up its wait for ranks that did not come: ");
    add_rank_of_all(c, missed, &text);
    weft_fail(&c->broken, WEFT_E_HANG, "%s. If they are only slow, a longer cluster.timeout helps",
              weft_text_chars(&text));
    weft_text_finish(&text);
    return WEFT_E_HANG;
}

static enum weft_status fail_cancelled(struct mpi_comm *c)
{
    struct weft_text call;
    if (weft_mpi_missed(c->mpi) >= 0)
        return fail_missed(c, rank_of(c, c->comm.rank), weft_mpi_missed(c->mpi));
    weft_text_init(&call);
    show_own_call(c, &call);
    weft_fail(&c->broken, WEFT_E_LOST, "rank %d has given up in %s", rank_of(c, c->comm.rank),
              weft_text_chars(&call));
    weft_text_finish(&call);
    return WEFT_E_LOST;
}

static enum weft_status fail_given_up(struct mpi_comm *c, int32_t rank,
                                      const struct farewell *farewell)
{
    struct weft_text text;
    const uint32_t ranks = (uint32_t)weft_mpi_ranks(c->mpi);
    if (farewell->lost > 0 && farewell->lost <= ranks)
        return fail_lost(c, (int32_t)farewell->lost - 1);
    if (farewell->missed > 0 && farewell->missed <= ranks)
        return fail_missed(c, rank, (int32_t)farewell->missed - 1);
    weft_text_init(&text);
    add_rank_of_all(c, rank, &text);
    weft_text_addf(&text, " has given up while rank %d waited for it in ",
                   rank_of(c, c->comm.rank));
    show_own_call(c, &text);
    weft_text_add(&text, "; ");
    weft_comm_call_show_recent(farewell->calls, farewell->kinds, &text);
    weft_text_addf(&text, ". See what rank %d printed last", rank);
    weft_fail(&c->broken, WEFT_E_LOST, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
    return WEFT_E_LOST;
}

static int64_t patience_ns(const struct mpi_comm *c)
{
    return weft_comm_patience_ns(&c->comm, weft_comm_call_is_collective((uint32_t)c->own.call.kind),
                                 c->timeout_ns);
}

/* `rank` is of all ranks. */
static enum weft_status fail_hang(struct mpi_comm *c, int32_t peer)
{
    struct weft_text missing;
    char waited[WEFT_UNITS_TEXT_BYTES];
    weft_text_init(&missing);
    show_own_call(c, &missing);
    weft_text_add(&missing, ", for ranks that did not come: ");
    const size_t length = missing.length;
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        if (rank == c->comm.rank || c->headers[rank].calls == c->own.calls) continue;
        weft_text_add(&missing, missing.length > length ? "; " : "");
        add_rank(c, rank, &missing);
        weft_text_addf(&missing, " was last heard in call %u", c->heard[rank]);
        weft_mpi_miss(c->mpi, rank_of(c, rank));
    }
    if (missing.length == length) {
        add_rank(c, peer, &missing);
        weft_text_addf(&missing, " was last heard in call %u, and then moved no bytes",
                       c->headers[peer].calls);
        weft_mpi_miss(c->mpi, rank_of(c, peer));
    }
    weft_fail(&c->broken, WEFT_E_HANG,
              "rank %d waited %s in %s. If they are only slow, a longer cluster.timeout helps",
              rank_of(c, c->comm.rank), weft_units_show_ns(patience_ns(c), waited),
              weft_text_chars(&missing));
    weft_text_finish(&missing);
    return WEFT_E_HANG;
}

static enum weft_status fail_disagree(struct mpi_comm *c, int32_t rank)
{
    struct weft_text calls;
    weft_text_init(&calls);
    weft_text_addf(&calls, "call %u", c->own.calls);
    weft_comm_show_place(&c->comm, &calls);
    weft_text_addf(&calls, " differs between ranks: rank %d called ", rank_of(c, c->comm.rank));
    weft_comm_call_show(&c->own.call, &calls);
    weft_text_add(&calls, " and ");
    add_rank(c, rank, &calls);
    weft_text_add(&calls, " ");
    weft_comm_call_show(&c->headers[rank].call, &calls);
    weft_fail(&c->broken, WEFT_E_DISAGREE,
              "%s. All ranks must run the same plan with the same options",
              weft_text_chars(&calls));
    weft_text_finish(&calls);
    return WEFT_E_DISAGREE;
}

/* Fails if a rank has given up, or its process has ended. */
static enum weft_status look_for_farewells(struct mpi_comm *c)
{
    struct weft_error unsaid = {.status = WEFT_OK};
    struct farewell farewell = {0};
    int32_t rank = -1;
    if (weft_mpi_look(c->mpi, WEFT_MPI_GIVE_UP, &rank, &unsaid) != WEFT_OK || rank < 0)
        return weft_mpi_lost(c->mpi) < 0 ? WEFT_OK : fail_lost(c, weft_mpi_lost(c->mpi));
    if (weft_mpi_receive_whole(c->mpi, &farewell, sizeof farewell, rank, WEFT_MPI_GIVE_UP,
                               MOST_BROKEN_NS, &unsaid) != WEFT_OK)
        farewell = (struct farewell){0};
    return fail_given_up(c, rank, &farewell);
}

/* Called while nothing moves. Spins, then sleeps. */
static enum weft_status wait_idly(void *context, int64_t idle_ns, int32_t peer,
                                  struct weft_error *err)
{
    struct mpi_comm *c = context;
    if (atomic_load(&c->cancelled)) fail_cancelled(c);
    if (c->broken.status == WEFT_OK && idle_ns >= patience_ns(c) &&
        look_for_farewells(c) == WEFT_OK)
        fail_hang(c, peer); /* a rank that was stopped itself may have missed a farewell */
    if (c->broken.status != WEFT_OK) return fail_for_good(c, err);
    if (idle_ns < c->spin_ns) return WEFT_OK;
    const int64_t now_ns = weft_clock_now_ns();
    if (now_ns - c->looked_ns >= LOOK_NS) {
        c->looked_ns = now_ns;
        if (look_for_farewells(c) != WEFT_OK) return fail_for_good(c, err);
    }
    weft_clock_sleep_until_ns(now_ns + SLEEP_NS);
    return WEFT_OK;
}

/* Calls */

static _Atomic uint32_t *flag_of(const struct mpi_comm *c)
{
    if (c->flag_offset < 0 || c->span_bytes == 0) return NULL;
    return (_Atomic uint32_t *)(void *)(c->memory + c->flag_offset);
}

/* The library may have failed because ranks make different calls, or because a peer is gone. */
static enum weft_status fail_flows(struct mpi_comm *c, const struct weft_error *why,
                                   struct weft_error *err)
{
    for (int32_t rank = 0; rank < c->comm.ranks && c->broken.status == WEFT_OK; rank++) {
        if (rank != c->comm.rank && c->headers[rank].calls == c->own.calls &&
            !weft_comm_call_equal(&c->headers[rank].call, &c->own.call))
            fail_disagree(c, rank);
    }
    const int64_t end_ns = weft_clock_now_ns() + MOST_BROKEN_NS;
    while (c->broken.status == WEFT_OK && weft_clock_now_ns() < end_ns) {
        if (look_for_farewells(c) == WEFT_OK)
            weft_clock_sleep_until_ns(weft_clock_now_ns() + LOOK_NS);
    }
    if (c->broken.status == WEFT_OK) weft_fail(&c->broken, why->status, "%s", why->text);
    return fail_for_good(c, err);
}

static struct weft_mpi_flow header_flow(struct mpi_comm *c)
{
    return (struct weft_mpi_flow){
        .tag = WEFT_MPI_HEADER,
        .bytes = sizeof c->own,
        .send = (const void *)&c->own,
        .receive = (void *)c->headers,
        .receive_stride = sizeof *c->headers,
    };
}

static enum weft_status exchange_flows(struct mpi_comm *c, const struct weft_mpi_flow *flows,
                                       int32_t n, struct weft_error *err)
{
    struct weft_error why = {.status = WEFT_OK};
    if (weft_mpi_exchange_flows(&c->rounds, flows, n, &why) == WEFT_OK) return WEFT_OK;
    return fail_flows(c, &why, err);
}

/* Makes a call: sends its header and n flows of data, which stand behind the first of c->flows, and
 * compares the headers of all ranks. *latest_ns is the latest arrival. */
static enum weft_status make_call_of(struct mpi_comm *c, const struct weft_comm_call *call,
                                     int64_t arrival_ns, int32_t n, int64_t *latest_ns,
                                     struct weft_error *err)
{
    if (c->broken.status == WEFT_OK && atomic_load(&c->cancelled)) fail_cancelled(c);
    if (c->broken.status != WEFT_OK) return fail_for_good(c, err);
    _Atomic uint32_t *flag = flag_of(c);
    c->own = (struct header){
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
    WEFT_TRY(exchange_flows(c, c->flows, 1 + n, err));
    int64_t latest = arrival_ns;
    /* With many peers some headers wait for others to come. */
    const bool hears = c->rounds.meter != NULL &&
                       c->comm.ranks - 1 <= weft_mpi_rounds_depth(c->rounds.message_bytes);
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        const struct header *theirs = &c->headers[rank];
        if (rank == c->comm.rank) continue;
        c->heard[rank] = theirs->calls;
        if (hears) weft_comm_meter_hear(&c->meter, rank, theirs->sent_ns);
        if (theirs->calls != c->own.calls || !weft_comm_call_equal(&theirs->call, call)) {
            fail_disagree(c, rank);
            return fail_for_good(c, err);
        }
        if (theirs->arrival_ns > latest) latest = theirs->arrival_ns;
        if (theirs->raised != 0 && flag != NULL) atomic_store(flag, 1);
    }
    if (latest_ns != NULL) *latest_ns = latest;
    return WEFT_OK;
}

/* `data` may be NULL. */
static enum weft_status make_call(struct mpi_comm *c, const struct weft_comm_call *call,
                                  int64_t arrival_ns, const struct weft_mpi_flow *data,
                                  int64_t *latest_ns, struct weft_error *err)
{
    if (data != NULL) c->flows[1] = *data;
    return make_call_of(c, call, arrival_ns, data != NULL, latest_ns, err);
}

static enum weft_status mpi_exchange(struct weft_comm *comm, const void *mine, size_t bytes,
                                     void *all, struct weft_error *err)
{
    struct mpi_comm *c = mpi_of(comm);
    const struct weft_comm_call call = {.kind = WEFT_COMM_CALL_EXCHANGE, .count = (int64_t)bytes};
    const struct weft_mpi_flow data = {
        .tag = WEFT_MPI_DATA,
        .bytes = (int64_t)bytes,
        .send = mine,
        .receive = all,
        .receive_stride = (int64_t)bytes,
    };
    WEFT_TRY(make_call(c, &call, 0, bytes > 0 ? &data : NULL, NULL, err));
    if (bytes > 0) memcpy((unsigned char *)all + (size_t)comm->rank * bytes, mine, bytes);
    return WEFT_OK;
}

static enum weft_status mpi_swap(struct weft_comm *comm, int32_t peer, const void *mine,
                                 int64_t bytes, void *theirs, struct weft_error *err)
{
    struct mpi_comm *c = mpi_of(comm);
    const bool is_second = peer < comm->rank;
    const int32_t first = is_second ? peer : comm->rank, second = is_second ? comm->rank : peer;
    const struct weft_mpi_group pair = {is_second, 2, first, second - first - 1};
    const struct weft_mpi_flow data = {
        .tag = WEFT_MPI_DATA, .group = &pair, .bytes = bytes, .send = mine, .receive = theirs};
    if (c->broken.status == WEFT_OK && atomic_load(&c->cancelled)) fail_cancelled(c);
    if (c->broken.status != WEFT_OK) return fail_for_good(c, err);
    return exchange_flows(c, &data, 1, err);
}

/* Collectives, as tasks on the channel */

struct mpi_job {
    struct mpi_comm *c;
    struct weft_comm_job job;
};

static enum weft_status check_job(const struct mpi_job *task, struct weft_error *err)
{
    return weft_comm_job_check(&task->job, task->c->comm.ranks, task->c->span_bytes, err);
}

/* On a virtual clock the collective began when the last rank arrived and the link was free. */
static void end_call(const struct mpi_job *task, struct weft_stream *channel, int64_t latest_ns)
{
    struct mpi_comm *c = task->c;
    if (weft_stream_clock(channel) != WEFT_CLOCK_VIRTUAL) return;
    weft_stream_run(channel, latest_ns > c->link_free_ns ? latest_ns : c->link_free_ns,
                    task->job.ns);
    c->link_free_ns = weft_stream_now(channel);
}

static bool has_levels(const struct mpi_comm *c)
{
    return weft_mpi_has_levels(c->comm.ranks, c->comm.ranks_per_node);
}

static struct weft_mpi_levels levels_of(const struct mpi_job *task, int64_t full, int64_t own,
                                        bool gathers)
{
    const struct mpi_comm *c = task->c;
    return weft_mpi_levels_of(&c->rounds, c->comm.ranks_per_node, &task->job, c->memory, full, own,
                              gathers);
}

/* Sums into the slice at `own`. The call's header goes first. */
static enum weft_status reduce_block(const struct mpi_job *task, struct weft_stream *channel,
                                     int64_t own, int64_t *latest_ns, struct weft_error *err)
{
    struct mpi_comm *c = task->c;
    const struct weft_comm_call *call = &task->job.call;
    const int64_t now_ns = weft_stream_now(channel);
    if (!has_levels(c)) {
        struct weft_mpi_sum sum = weft_mpi_sum_of(&c->comm, &task->job, c->memory, own);
        const struct weft_mpi_flow data = weft_mpi_scatter_flow(&task->job, c->memory, &sum);
        return make_call(c, call, now_ns, &data, latest_ns, err);
    }
    const struct weft_mpi_levels levels = levels_of(task, call->from, own, false);
    for (int32_t i = 0; i < levels.stages; i++) {
        const int32_t n = weft_mpi_reduce_stage(&levels, i, c->flows + 1);
        if (i == 0)
            WEFT_TRY(make_call_of(c, call, now_ns, n, latest_ns, err));
        else
            WEFT_TRY(exchange_flows(c, c->flows + 1, n, err));
        weft_mpi_end_reduce_stage(&levels, i);
    }
    return WEFT_OK;
}

/* Gathers the slices at `own`. `latest_ns` NULL: the call was made, and its header has gone. */
static enum weft_status gather_block(const struct mpi_job *task, struct weft_stream *channel,
                                     int64_t full, int64_t own, int64_t *latest_ns,
                                     struct weft_error *err)
{
    struct mpi_comm *c = task->c;
    const int64_t now_ns = weft_stream_now(channel);
    const bool levelled = has_levels(c);
    const struct weft_mpi_levels levels = levels_of(task, full, own, true);
    for (int32_t i = 0; i < (levelled ? levels.stages : 1); i++) {
        int32_t n = 1;
        c->flows[1] = weft_mpi_gather_flow(&task->job, c->memory + full, c->memory + own);
        if (levelled) n = weft_mpi_gather_stage(&levels, i, c->flows + 1);
        if (i == 0 && latest_ns != NULL)
            WEFT_TRY(make_call_of(c, &task->job.call, now_ns, n, latest_ns, err));
        else
            WEFT_TRY(exchange_flows(c, c->flows + 1, n, err));
    }
    return WEFT_OK;
}

static enum weft_status run_all_gather(struct weft_stream *channel, const void *argument,
                                       struct weft_error *err)
{
    const struct mpi_job *task = argument;
    struct mpi_comm *c = task->c;
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
    struct mpi_comm *c = task->c;
    unsigned char *block = c->memory + task->job.call.from;
    struct weft_mpi_sum sum = weft_mpi_sum_of(&c->comm, &task->job, c->memory, task->job.call.from);
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    const struct weft_mpi_flow data = weft_mpi_owned_flow(&task->job, c->comm.ranks, block, &sum);
    WEFT_TRY(make_call(c, &task->job.call, weft_stream_now(channel), &data, &latest_ns, err));
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
    struct mpi_comm *c = task->c;
    struct mpi_job copy = *task;
    int64_t latest_ns;
    WEFT_TRY(check_job(task, err));
    const struct weft_mpi_flow data = {
        .tag = WEFT_MPI_DATA,
        .bytes = task->job.call.count * (int64_t)sizeof(uint64_t),
        .send = c->memory + task->job.call.from,
        .consume = sum_words,
        .context = &copy,
    };
    WEFT_TRY(make_call(c, &task->job.call, weft_stream_now(channel), &data, &latest_ns, err));
    end_call(task, channel, latest_ns);
    return WEFT_OK;
}

static void push_block(struct weft_comm *comm, struct weft_stream *channel, weft_task_fn *run,
                       enum weft_comm_call_kind kind, const struct weft_comm_block *block)
{
    const struct mpi_job task = {mpi_of(comm), weft_comm_job_of(kind, block)};
    weft_stream_push(channel, run, &task, sizeof task);
}

static void mpi_all_gather(struct weft_comm *comm, struct weft_stream *channel,
                           const struct weft_comm_block *block)
{
    push_block(comm, channel, run_all_gather, WEFT_COMM_CALL_ALL_GATHER, block);
}

static void mpi_reduce_scatter(struct weft_comm *comm, struct weft_stream *channel,
                               const struct weft_comm_block *block)
{
    push_block(comm, channel, run_reduce_scatter, WEFT_COMM_CALL_REDUCE_SCATTER, block);
}

static void mpi_all_reduce(struct weft_comm *comm, struct weft_stream *channel,
                           const struct weft_comm_block *block)
{
    push_block(comm, channel, run_all_reduce, WEFT_COMM_CALL_ALL_REDUCE, block);
}

static void mpi_move_owned(struct weft_comm *comm, struct weft_stream *channel, bool reduces,
                           const struct weft_comm_block *block)
{
    const struct mpi_job task = {mpi_of(comm), weft_comm_job_of_owned(reduces, block)};
    weft_stream_push(channel, run_owned, &task, sizeof task);
}

static void mpi_agree(struct weft_comm *comm, struct weft_stream *channel, int64_t from_offset,
                      int64_t to_offset, int64_t words, int64_t ns)
{
    const struct mpi_job task = {
        mpi_of(comm),
        weft_comm_job_of_agreement(from_offset, to_offset, words, ns),
    };
    weft_stream_push(channel, run_agree, &task, sizeof task);
}

/* Life */

static enum weft_status mpi_attach(struct weft_comm *comm, const struct weft_arena_shape *shape,
                                   const struct weft_ranges *reads, struct weft_error *err)
{
    struct mpi_comm *c = mpi_of(comm);
    (void)reads; /* peers only get sent bytes */
    (void)err;
    c->memory = comm->trunk != NULL ? mpi_of(comm->trunk)->memory : weft_arena_memory(comm->arena);
    c->span_bytes = comm->trunk != NULL ? mpi_of(comm->trunk)->span_bytes : shape->span_bytes;
    return WEFT_OK;
}

static bool has_failed(struct mpi_comm *c)
{
    return c->broken.status != WEFT_OK || atomic_load(&c->cancelled);
}

/* After a failure peers' libraries may still read what this rank has sent. Some read this process's
 * addresses, and end the peer if they are not mapped. */
static bool mpi_detach(struct weft_comm *comm)
{
    struct mpi_comm *c = mpi_of(comm);
    c->memory = NULL;
    c->span_bytes = 0;
    c->flag_offset = -1;
    if (has_failed(c) && comm->trunk != NULL) {
        atomic_store(&mpi_of(comm->trunk)->cancelled, true); /* it keeps the arena */
    } else if (has_failed(c)) {
        weft_mpi_keep(c->mpi, NULL, comm->arena);
        comm->arena = NULL;
    }
    return true;
}

static void mpi_carry(struct weft_comm *comm, int64_t flag_offset)
{
    mpi_of(comm)->flag_offset = flag_offset;
}

static void mpi_cancel(struct weft_comm *comm)
{
    struct mpi_comm *c = mpi_of(comm);
    pthread_mutex_lock(&c->lock);
    struct farewell farewell = c->farewell;
    pthread_mutex_unlock(&c->lock);
    farewell.lost = (uint32_t)(weft_mpi_lost(c->mpi) + 1);
    farewell.missed = (uint32_t)(weft_mpi_missed(c->mpi) + 1);
    if (!atomic_exchange(&c->cancelled, true)) weft_mpi_give_up(c->mpi, &farewell);
}

static int32_t mpi_lost(const struct weft_comm *comm)
{
    return weft_mpi_lost(mpi_of(comm)->mpi);
}

static void mpi_close(struct weft_comm *comm)
{
    struct mpi_comm *c = mpi_of(comm);
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

static enum weft_status take_memory(struct mpi_comm *c, struct weft_error *err)
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

static void begin_rounds(struct mpi_comm *c)
{
    c->rounds = (struct weft_mpi_rounds){
        .mpi = c->mpi,
        .group = {c->comm.rank, c->comm.ranks, c->comm.place.first, c->comm.place.gap},
        .message_bytes = weft_mpi_round_bytes(c->mpi),
        .tags = c->comm.trunk != NULL ? (c->comm.place.number + 1) * WEFT_MPI_TAGS : 0,
        .idle = wait_idly,
        .context = c,
    };
}

static enum weft_status set_up(struct mpi_comm *c, const struct weft_comm_options *options,
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
    struct mpi_comm *c = calloc(1, sizeof *c);
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
    const struct mpi_comm *t = mpi_of(trunk);
    struct mpi_comm *c = calloc(1, sizeof *c);
    if (c == NULL) return weft_fail_memory(err, "a communicator");
    c->comm = (struct weft_comm){.ops = &weft_comm_mpi,
                                 .rank = rank,
                                 .ranks = ranks,
                                 .arena = trunk->arena,
                                 .place = *place,
                                 .trunk = trunk};
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
    .all_gather = mpi_all_gather,
    .reduce_scatter = mpi_reduce_scatter,
    .all_reduce = mpi_all_reduce,
    .move_owned = mpi_move_owned,
    .agree = mpi_agree,
    .exchange = mpi_exchange,
    .swap = mpi_swap,
    .carry = mpi_carry,
    .cancel = mpi_cancel,
    .lost = mpi_lost,
    .branch = mpi_branch,
    .takes_host_memory = true,
};
