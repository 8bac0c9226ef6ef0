/* SPDX-License-Identifier: Apache-2.0 */
#include "library/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "runtime/comm/claims.h"
#include "runtime/comm/host.h"
#include "runtime/comm/mpi/lifeline.h"
#include "runtime/comm/mpi/mpi.h"

enum { NS_PER_S = 1000000000 };

static const int64_t join_ns = INT64_C(10) * NS_PER_S;
static const int64_t end_ns = INT64_C(5) * NS_PER_S;
/* Ranks end a collective together, so the others report soon. Files may need their time. */
static const int64_t report_ns = INT64_C(600) * NS_PER_S;
/* Rank 0 hears of a failure, has late_report_ns for the others, and sends its verdict. It may be
 * out of reach if a peer was silent. Otherwise it may be writing a checkpoint. */
static const int64_t verdict_ns = INT64_C(3) * NS_PER_S;
static const int64_t busy_verdict_ns = INT64_C(30) * NS_PER_S;
static const int64_t lost_verdict_ns = INT64_C(1500000000); /* all ranks know of the lost one */
/* After a rank is lost a library may not return from a call. */
static const int64_t stuck_ns = INT64_C(500000000);
/* After a failure ranks may be dead, and all reports together have this time. */
static const int64_t late_report_ns = INT64_C(1) * NS_PER_S;
static const int64_t torn_verdict_ns = INT64_C(100000000); /* some ranks cannot hear it */
static const int64_t least_report_ns = INT64_C(5000000);

struct weft_world {
    struct weft_mpi *mpi;
    struct weft_rendezvous meeting;
    struct weft_lifeline *line; /* NULL: none */
    weft_world_stuck_fn *stuck; /* or NULL */
    bool is_torn;               /* a rank is gone, so MPI cannot end */
    bool is_alone;              /* rank 0 did not judge this rank's outcome */
};

/* Rank 0's judgement of all outcomes. */
struct verdict {
    struct weft_error error;
    bool is_torn;
};

/* Rank 0's word to the others. */
struct word {
    int64_t length; /* of the text that follows; negative: the end */
    int64_t exit_code;
};

/* Place of a rank. Several hosts of a network may be of one machine. */
struct place {
    struct weft_hash host, machine;
    struct weft_hash cores; /* the set that this rank may use */
    int64_t share;          /* of these cores, this rank's, by rank 0 */
};

/* A rank's word to rank 0 about itself. */
struct report {
    struct place place;
    struct weft_claim cores;
};

static struct report own_report(void)
{
    struct report report = {
        .place = {.host = weft_host_of_network(), .machine = weft_host_of_memory()}};
    weft_claim_cores(report.place.machine, &report.cores);
    report.place.cores = report.cores.limits[0].owner;
    return report;
}

/* Rank 0 collects the reports, divides the cores, and sends all places to all. */
static enum weft_status collect_reports(struct weft_mpi *mpi, struct place *all,
                                        struct weft_claim *cores, struct weft_error *err)
{
    const int32_t ranks = weft_mpi_ranks(mpi);
    for (int32_t i = 0; i < ranks; i++) {
        struct report report;
        if (i == 0)
            report = own_report();
        else
            WEFT_TRY(weft_mpi_receive_whole(mpi, &report, sizeof report, i, WEFT_MPI_JOB, 0, err));
        all[i] = report.place;
        cores[i] = report.cores;
    }
    for (int32_t i = 0; i < ranks; i++)
        all[i].share = weft_claims_share(cores, ranks, i);
    for (int32_t i = 1; i < ranks; i++)
        WEFT_TRY(
            weft_mpi_send_whole(mpi, all, (int64_t)sizeof *all * ranks, i, WEFT_MPI_JOB, 0, err));
    return WEFT_OK;
}

static enum weft_status exchange_places(struct weft_mpi *mpi, struct place *all,
                                        struct weft_error *err)
{
    const int32_t ranks = weft_mpi_ranks(mpi);
    if (weft_mpi_rank(mpi) != 0) {
        const struct report report = own_report();
        WEFT_TRY(weft_mpi_send_whole(mpi, &report, sizeof report, 0, WEFT_MPI_JOB, 0, err));
        return weft_mpi_receive_whole(mpi, all, (int64_t)sizeof *all * ranks, 0, WEFT_MPI_JOB, 0,
                                      err);
    }
    struct weft_claim *cores = calloc((size_t)ranks, sizeof *cores);
    if (cores == NULL) return weft_fail_memory(err, "the ranks' claims of cores");
    const enum weft_status status = collect_reports(mpi, all, cores, err);
    free(cores);
    return status;
}

static void number_hosts(const struct place *all, struct weft_rendezvous *meeting)
{
    const struct place *own = &all[meeting->rank];
    int32_t n = 0;
    meeting->cores = own->share > 1 ? (int32_t)own->share : 1;
    for (int32_t i = 0; i < meeting->ranks; i++) {
        int32_t first = 0;
        while (!weft_hash_equal(all[first].host, all[i].host))
            first++;
        meeting->hosts[i] = first < i ? meeting->hosts[first] : n++;
        if (i < meeting->rank && weft_hash_equal(all[i].host, own->host)) meeting->local_rank++;
        meeting->machine_ranks += weft_hash_equal(all[i].machine, own->machine);
        if (!weft_hash_equal(all[i].cores, own->cores)) continue;
        if (i < meeting->rank) meeting->sharer++;
        meeting->sharers++;
    }
}

static enum weft_status tell_all(struct weft_world *world, const void *bytes, int64_t length,
                                 struct weft_error *err)
{
    for (int32_t i = 1; i < world->meeting.ranks; i++)
        WEFT_TRY(weft_mpi_send_whole(world->mpi, bytes, length, i, WEFT_MPI_JOB, 0, err));
    return WEFT_OK;
}

static void warn_of_line(const struct weft_error *why)
{
    weft_log(WEFT_LOG_WARNING,
             "%s. A rank that dies is found after cluster.timeout only, unless its launcher ends "
             "the others",
             why->text);
}

/* Rank 0 invites the others, and warns once if some cannot come. */
static enum weft_status invite_ranks(struct weft_world *world, struct weft_error *err)
{
    struct weft_lifeline_invitation invitation = {.port = 0};
    struct weft_error why = {.status = WEFT_OK};
    if (weft_lifeline_open(world->meeting.ranks, &world->line, &invitation, &why) != WEFT_OK)
        warn_of_line(&why);
    bool warned = invitation.port == 0;
    WEFT_TRY(tell_all(world, &invitation, sizeof invitation, err));
    for (int32_t i = 1; i < world->meeting.ranks; i++) {
        WEFT_TRY(weft_mpi_receive_whole(world->mpi, &why, sizeof why, i, WEFT_MPI_JOB, 0, err));
        if (why.status != WEFT_OK && !warned) warn_of_line(&why);
        warned = warned || why.status != WEFT_OK;
    }
    return WEFT_OK;
}

static enum weft_status accept_invitation(struct weft_world *world, struct weft_error *err)
{
    struct weft_lifeline_invitation invitation;
    struct weft_error why = {.status = WEFT_OK}, told = {.status = WEFT_OK};
    const int32_t rank = world->meeting.rank;
    const bool same_host = world->meeting.hosts[rank] == world->meeting.hosts[0];
    WEFT_TRY(weft_mpi_receive_whole(world->mpi, &invitation, sizeof invitation, 0, WEFT_MPI_JOB, 0,
                                    err));
    if (invitation.port > 0 &&
        weft_lifeline_join(&invitation, rank, same_host, join_ns, &world->line, &why) != WEFT_OK)
        weft_fail_of_rank(&told, why.status, rank, why.text);
    return weft_mpi_send_whole(world->mpi, &told, sizeof told, 0, WEFT_MPI_JOB, 0, err);
}

static void look_for_stuck_call(void *context)
{
    const struct weft_world *world = context;
    struct weft_error why = {.status = WEFT_OK};
    if (weft_mpi_call_ns(world->mpi) < stuck_ns) return;
    weft_fail(&why, WEFT_E_LOST,
              "rank %d has ended without a word, and %s does not return from a call since",
              weft_lifeline_lost(world->line), weft_mpi_version(world->mpi));
    world->stuck(&why);
}

/* Without a lifeline the run goes on: firewalls may pass MPI alone. */
static enum weft_status open_line(struct weft_world *world, struct weft_error *err)
{
    if (world->meeting.ranks == 1) return WEFT_OK;
    WEFT_TRY(world->meeting.rank == 0 ? invite_ranks(world, err) : accept_invitation(world, err));
    weft_mpi_watch(world->mpi, world->line);
    if (world->stuck != NULL) weft_lifeline_look(world->line, look_for_stuck_call, world);
    return WEFT_OK;
}

static enum weft_status meet_ranks(struct weft_world *world, struct weft_error *err)
{
    const int32_t ranks = weft_mpi_ranks(world->mpi);
    world->meeting = (struct weft_rendezvous){
        .rank = weft_mpi_rank(world->mpi),
        .ranks = ranks,
        .control_fd = -1,
        .mpi = world->mpi,
        .hosts = calloc((size_t)ranks, sizeof *world->meeting.hosts),
    };
    struct place *all = calloc((size_t)ranks, sizeof *all);
    enum weft_status status = all != NULL && world->meeting.hosts != NULL
                                  ? exchange_places(world->mpi, all, err)
                                  : weft_fail_memory(err, "the places of the ranks");
    if (status == WEFT_OK) number_hosts(all, &world->meeting);
    free(all);
    return status == WEFT_OK ? open_line(world, err) : status;
}

enum weft_status weft_world_start(weft_world_stuck_fn *stuck, struct weft_world **out,
                                  struct weft_error *err)
{
    struct weft_stranger launcher;
    if (!weft_rendezvous_find_stranger(&launcher) || launcher.library == NULL)
        return weft_fail(err, WEFT_E_ENVIRONMENT, "this process has no launcher of MPI ranks");
    const struct weft_mpi_options options = {.library = launcher.library,
                                             .rank = launcher.rank,
                                             .ranks = launcher.ranks,
                                             .launcher = launcher.launcher};
    struct weft_world *world = calloc(1, sizeof *world);
    if (world == NULL) return weft_fail_memory(err, "a world of ranks");
    world->stuck = stuck;
    enum weft_status status = weft_mpi_start(&options, &world->mpi, err);
    if (status == WEFT_OK) status = meet_ranks(world, err);
    if (status == WEFT_OK)
        *out = world;
    else
        (void)weft_world_finish(world);
    return status;
}

bool weft_world_finish(struct weft_world *world)
{
    if (world == NULL) return true;
    const bool is_whole = !world->is_torn && weft_lifeline_lost(world->line) < 0;
    if (world->line != NULL) weft_mpi_watch(world->mpi, NULL);
    weft_lifeline_leave(world->line);
    const bool ended = is_whole && weft_mpi_finish(world->mpi, end_ns);
    weft_rendezvous_finish(&world->meeting);
    free(world);
    return ended;
}

int32_t weft_world_lost(const struct weft_world *world)
{
    return weft_mpi_lost(world->mpi);
}

bool weft_world_speaks(const struct weft_world *world)
{
    const struct weft_rendezvous *meeting = &world->meeting;
    const bool with_rank_0 = meeting->hosts[meeting->rank] == meeting->hosts[0];
    return world->is_alone && meeting->local_rank == (with_rank_0 ? 1 : 0);
}

const struct weft_rendezvous *weft_world_meeting(const struct weft_world *world)
{
    return &world->meeting;
}

enum weft_status weft_world_share(struct weft_world *world, const struct weft_text *text,
                                  struct weft_error *err)
{
    const struct word word = {.length = (int64_t)text->length};
    WEFT_TRY(tell_all(world, &word, sizeof word, err));
    return tell_all(world, weft_text_chars(text), word.length, err);
}

enum weft_status weft_world_end(struct weft_world *world, int exit_code, struct weft_error *err)
{
    const struct word word = {.length = -1, .exit_code = exit_code};
    return tell_all(world, &word, sizeof word, err);
}

enum weft_status weft_world_listen(struct weft_world *world, struct weft_text *text, bool *ended,
                                   int *exit_code, struct weft_error *err)
{
    struct word word = {0};
    WEFT_TRY(weft_mpi_receive_whole(world->mpi, &word, sizeof word, 0, WEFT_MPI_JOB, 0, err));
    *ended = word.length < 0;
    *exit_code = (int)word.exit_code;
    if (*ended) return WEFT_OK;
    char *bytes = malloc((size_t)word.length + 1);
    if (bytes == NULL) return weft_fail_memory(err, "the text of a job");
    const enum weft_status status =
        weft_mpi_receive_whole(world->mpi, bytes, word.length, 0, WEFT_MPI_JOB, 0, err);
    if (status == WEFT_OK) weft_text_append(text, bytes, (size_t)word.length);
    free(bytes);
    if (status == WEFT_OK && !weft_text_ok(text)) return weft_fail_memory(err, "the text of a job");
    return status;
}

/* A rank that cannot hear the verdict is gone, or finds out by itself. */
static void ignore_status(enum weft_status status)
{
    (void)status;
}

enum { LEAST_WEIGHT = 1, MOST_WEIGHT = 2 };

/* How likely this outcome is the cause of the others; 0: no failure. */
static int weight_of(const struct weft_error *outcome)
{
    if (outcome->status == WEFT_OK) return 0;
    return outcome->status == WEFT_E_LOST ? LEAST_WEIGHT : MOST_WEIGHT;
}

/* `heard` is WEFT_E_HANG if the rank's process may still run, out of reach. */
static void fail_silent(struct weft_world *world, int32_t rank, enum weft_status heard,
                        struct weft_error *out)
{
    world->is_torn = true;
    weft_fail(out, heard == WEFT_E_HANG ? WEFT_E_HANG : WEFT_E_LOST,
              "rank %d did not report how it ended: its host or process is gone", rank);
}

/* Each of many silent ranks has a part of a second after that time. */
static int64_t time_until(const struct weft_world *world, int64_t then_ns)
{
    const int64_t left_ns = then_ns - weft_clock_now_ns(),
                  part_ns = NS_PER_S / world->meeting.ranks;
    const int64_t least_ns = part_ns < least_report_ns ? part_ns : least_report_ns;
    return left_ns > least_ns ? left_ns : least_ns;
}

/* Rank 0: *verdict is the likely cause. */
static void collect_outcomes(struct weft_world *world, struct weft_error *verdict)
{
    int64_t until_ns =
        weft_clock_now_ns() + (verdict->status == WEFT_OK ? report_ns : late_report_ns);
    int weight = weight_of(verdict);
    for (int32_t i = 1; i < world->meeting.ranks; i++) {
        struct weft_error outcome = {.status = WEFT_OK}, unsaid = {.status = WEFT_OK};
        const enum weft_status heard =
            weft_mpi_receive_whole(world->mpi, &outcome, sizeof outcome, i, WEFT_MPI_OUTCOME,
                                   time_until(world, until_ns), &unsaid);
        int own_weight = weight_of(&outcome);
        if (heard != WEFT_OK) {
            outcome = (struct weft_error){.status = WEFT_OK}; /* a part may have come */
            fail_silent(world, i, heard, &outcome);
            own_weight = LEAST_WEIGHT;
        }
        if (own_weight <= weight) continue;
        weight = own_weight;
        if (verdict->status == WEFT_OK) until_ns = weft_clock_now_ns() + late_report_ns;
        *verdict = (struct weft_error){.status = WEFT_OK};
        if (outcome.of_rank == 0)
            weft_fail_of_rank(verdict, outcome.status, i, outcome.text);
        else
            *verdict = outcome;
    }
}

/* A rank that failed before it had a communicator has told nobody. */
static void give_up(struct weft_world *world)
{
    static const unsigned char farewell[WEFT_MPI_FAREWELL_BYTES];
    weft_mpi_give_up(world->mpi, farewell);
}

/* Rank 0's process has ended or is out of reach, so nobody judges. */
static enum weft_status fail_alone(struct weft_world *world, const struct weft_error *own,
                                   struct weft_error *err)
{
    world->is_torn = world->is_alone = true;
    if (own->status == WEFT_OK) return weft_fail(err, WEFT_E_LOST, "rank 0's process has ended");
    *err = *own;
    return own->status;
}

/* Sends this rank's outcome to rank 0, and hears the verdict. */
static enum weft_status hear_verdict(struct weft_world *world, const struct weft_error *own,
                                     struct verdict *verdict, struct weft_error *err)
{
    const bool peer_was_silent = own->status == WEFT_E_HANG || own->status == WEFT_E_LOST;
    const int64_t most_ns = own->status == WEFT_OK           ? report_ns
                            : weft_mpi_lost(world->mpi) >= 0 ? lost_verdict_ns
                            : peer_was_silent                ? verdict_ns
                                                             : busy_verdict_ns;
    WEFT_TRY(weft_mpi_send_whole(world->mpi, own, sizeof *own, 0, WEFT_MPI_OUTCOME,
                                 most_ns < end_ns ? most_ns : end_ns, err));
    return weft_mpi_receive_whole(world->mpi, verdict, sizeof *verdict, 0, WEFT_MPI_VERDICT,
                                  most_ns, err);
}

static void send_verdict(struct weft_world *world, const struct verdict *verdict)
{
    struct weft_error unsaid = {.status = WEFT_OK};
    const int64_t until_ns = weft_clock_now_ns() + (world->is_torn ? torn_verdict_ns : end_ns);
    for (int32_t i = 1; i < world->meeting.ranks; i++)
        ignore_status(weft_mpi_send_whole(world->mpi, verdict, sizeof *verdict, i, WEFT_MPI_VERDICT,
                                          time_until(world, until_ns), &unsaid));
}

enum weft_status weft_world_judge(struct weft_world *world, enum weft_status status,
                                  const struct weft_error *why, struct weft_error *err)
{
    struct weft_error own = {.status = WEFT_OK}, unsaid = {.status = WEFT_OK};
    struct verdict verdict = {.error = {.status = WEFT_OK}};
    const int32_t rank = world->meeting.rank;
    if (status != WEFT_OK) {
        own = *why;
        own.status = status;
        give_up(world);
    }
    if (rank != 0 && weft_mpi_lost(world->mpi) == 0) return fail_alone(world, &own, err);
    if (rank != 0) {
        const enum weft_status heard = hear_verdict(world, &own, &verdict, &unsaid);
        if (heard == WEFT_E_HANG && own.status == WEFT_OK)
            weft_fail(&own, heard, "rank 0 has not told how all ranks ended: its host is down");
        if (heard != WEFT_OK) return fail_alone(world, own.status != WEFT_OK ? &own : &unsaid, err);
        world->is_torn = verdict.is_torn;
    } else {
        verdict.error = own;
        if (status != WEFT_OK && why->of_rank == 0) {
            verdict.error = (struct weft_error){.status = WEFT_OK};
            weft_fail_of_rank(&verdict.error, status, 0, why->text);
        }
        collect_outcomes(world, &verdict.error);
        verdict.is_torn = world->is_torn;
        send_verdict(world, &verdict);
    }
    if (verdict.error.status != WEFT_OK) *err = verdict.error;
    return verdict.error.status;
}
