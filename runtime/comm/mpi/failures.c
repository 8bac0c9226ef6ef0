/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks over MPI that give up, hang or have ended. */
#include "base/clock.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/failure.h"
#include "runtime/comm/mpi/communicator.h"

enum {
    SLEEP_NS = 20000,
    LOOK_NS = 5000000, /* period of looks for ranks that have given up */
    LAST_WORD_NS = 200000000
};

/* Messages do not tell for whom a late rank waits. */
static const char may_wait[] = ". They may wait for other ranks themselves";

enum weft_status weft_mpi_fail_for_good(struct weft_mpi_comm *c, struct weft_error *err)
{
    weft_fail(err, c->broken.status, "%s", c->broken.text);
    return c->broken.status;
}

static int32_t rank_of(const struct weft_mpi_comm *c, int32_t rank)
{
    return weft_comm_rank_of_all(&c->comm, rank);
}

/* This rank's latest call, for errors. */
static struct weft_comm_failing failing_of(struct weft_mpi_comm *c)
{
    return (struct weft_comm_failing){&c->comm, &c->own.call, c->own.calls, &c->broken};
}

/* `rank` is of all ranks. */
static enum weft_status fail_lost(struct weft_mpi_comm *c, int32_t rank)
{
    const struct weft_comm_failing failing = failing_of(c);
    struct weft_text text;
    weft_text_init(&text);
    weft_comm_show_rank(&c->comm, rank, 0, &text);
    weft_text_addf(&text, " has ended without a word while rank %d was in ",
                   rank_of(c, c->comm.rank));
    weft_comm_show_call(&failing, &text);
    weft_fail(&c->broken, WEFT_E_LOST, "%s. It was killed, or it crashed: see its host's log",
              weft_text_chars(&text));
    weft_text_finish(&text);
    return WEFT_E_LOST;
}

/* A peer waited too long: one cause and one code for all ranks that the peer reaches. Both ranks
 * are of all ranks. */
static enum weft_status fail_missed(struct weft_mpi_comm *c, int32_t peer, int32_t missed)
{
    const struct weft_comm_failing failing = failing_of(c);
    struct weft_text text;
    weft_mpi_miss(c->mpi, missed);
    weft_text_init(&text);
    weft_text_addf(&text, "rank %d was in ", rank_of(c, c->comm.rank));
    weft_comm_show_call(&failing, &text);
    weft_text_add(&text, " when ");
    weft_comm_show_rank(&c->comm, peer, 0, &text);
    weft_text_add(&text, " gave up its wait for ranks that did not come: ");
    weft_comm_show_rank(&c->comm, missed, 0, &text);
    weft_text_add(&text, may_wait);
    weft_fail(&c->broken, WEFT_E_HANG, "%s. If they are only slow, a longer cluster.timeout helps",
              weft_text_chars(&text));
    weft_text_finish(&text);
    return WEFT_E_HANG;
}

enum weft_status weft_mpi_fail_cancelled(struct weft_mpi_comm *c)
{
    const struct weft_comm_failing failing = failing_of(c);
    if (weft_mpi_missed(c->mpi) >= 0)
        return fail_missed(c, rank_of(c, c->comm.rank), weft_mpi_missed(c->mpi));
    return weft_comm_fail_cancelled(&failing);
}

static enum weft_status fail_given_up(struct weft_mpi_comm *c, int32_t rank,
                                      const struct weft_mpi_farewell *farewell)
{
    const struct weft_comm_failing failing = failing_of(c);
    const uint32_t ranks = (uint32_t)weft_mpi_ranks(c->mpi);
    if (farewell->lost > 0 && farewell->lost <= ranks)
        return fail_lost(c, (int32_t)farewell->lost - 1);
    if (farewell->missed > 0 && farewell->missed <= ranks)
        return fail_missed(c, rank, (int32_t)farewell->missed - 1);
    return weft_comm_fail_gone(&failing, rank, 0, "has given up", farewell->calls, farewell->kinds);
}

static int64_t patience_ns(const struct weft_mpi_comm *c)
{
    return weft_comm_patience_ns(&c->comm, weft_comm_call_is_collective((uint32_t)c->own.call.kind),
                                 c->timeout_ns);
}

/* Nothing moved between this rank and the peer. */
static enum weft_status fail_hang(struct weft_mpi_comm *c, int32_t peer)
{
    const struct weft_comm_failing failing = failing_of(c);
    struct weft_text late;
    weft_text_init(&late);
    for (int32_t rank = 0; rank < c->comm.ranks; rank++) {
        if (rank == c->comm.rank || c->headers[rank].calls == c->own.calls) continue;
        weft_text_add(&late, late.length > 0 ? "; " : "");
        weft_comm_show_rank(&c->comm, rank_of(c, rank), 0, &late);
        weft_text_addf(&late, " was last heard in call %u", c->heard[rank]);
        weft_mpi_miss(c->mpi, rank_of(c, rank));
    }
    if (late.length == 0) {
        weft_comm_show_rank(&c->comm, rank_of(c, peer), 0, &late);
        weft_text_addf(&late, " was last heard in call %u, and then moved no bytes",
                       c->headers[peer].calls);
        weft_mpi_miss(c->mpi, rank_of(c, peer));
    }
    weft_text_add(&late, may_wait);
    weft_comm_fail_late(&failing, patience_ns(c), &late);
    weft_text_finish(&late);
    return WEFT_E_HANG;
}

enum weft_status weft_mpi_fail_differs(struct weft_mpi_comm *c, int32_t rank)
{
    const struct weft_comm_failing failing = failing_of(c);
    return weft_comm_fail_differs(&failing, rank_of(c, rank), &c->headers[rank].call);
}

enum weft_status weft_mpi_look_for_farewells(struct weft_mpi_comm *c)
{
    struct weft_error unsaid = {.status = WEFT_OK};
    struct weft_mpi_farewell farewell = {0};
    int32_t rank = -1;
    if (weft_mpi_look(c->mpi, WEFT_MPI_GIVE_UP, &rank, &unsaid) != WEFT_OK || rank < 0)
        return weft_mpi_lost(c->mpi) < 0 ? WEFT_OK : fail_lost(c, weft_mpi_lost(c->mpi));
    if (weft_mpi_receive_whole(c->mpi, &farewell, sizeof farewell, rank, WEFT_MPI_GIVE_UP,
                               LAST_WORD_NS, &unsaid) != WEFT_OK)
        farewell = (struct weft_mpi_farewell){0};
    return fail_given_up(c, rank, &farewell);
}

enum weft_status weft_mpi_wait_idly(void *context, int64_t idle_ns, int32_t peer,
                                    struct weft_error *err)
{
    struct weft_mpi_comm *c = context;
    if (atomic_load(&c->cancelled)) weft_mpi_fail_cancelled(c);
    if (c->broken.status == WEFT_OK && idle_ns >= patience_ns(c) &&
        weft_mpi_look_for_farewells(c) == WEFT_OK)
        fail_hang(c, peer); /* a rank that was stopped itself may have missed a farewell */
    if (c->broken.status != WEFT_OK) return weft_mpi_fail_for_good(c, err);
    if (idle_ns < c->spin_ns) return WEFT_OK;
    const int64_t now_ns = weft_clock_now_ns();
    if (now_ns - c->looked_ns >= LOOK_NS) {
        c->looked_ns = now_ns;
        if (weft_mpi_look_for_farewells(c) != WEFT_OK) return weft_mpi_fail_for_good(c, err);
    }
    weft_clock_sleep_until_ns(now_ns + SLEEP_NS);
    return WEFT_OK;
}
