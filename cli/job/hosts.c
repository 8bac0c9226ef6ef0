/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/hosts.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "library/world.h"
#include "runtime/device/module.h"

static const int64_t same_error_ns = INT64_C(1) * 1000000000;
static const int64_t forward_ns = INT64_C(200) * 1000000;

/* The verb's jobs are made far below it, in functions that know no world. */
static struct {
    const struct weft_cli *cli; /* NULL: no MPI launcher started this process */
    weft_hosts_work_fn *work;
    struct weft_stranger launcher;
    struct weft_world *world; /* NULL until rank 0 has a job */
    bool is_over;             /* a job has failed, so all ranks end */
} hosts;

bool weft_hosts_are_ours(void)
{
    return hosts.cli != NULL;
}

enum weft_status weft_hosts_check(const struct weft_config *config, struct weft_error *err)
{
    const int64_t ranks = config->cluster.ranks;
    if (config->cluster.emulate_link)
        return weft_fail(
            err, WEFT_E_USAGE,
            "%s: cluster.emulate paces ranks of one machine, and %s started these on a "
            "real network: leave it out (--set cluster.emulate=false)",
            config->source, hosts.launcher.launcher);
    if (config->cluster.device.type == WEFT_DEVICE_CUDA)
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: ranks that %s started run on CPUs only; GPUs are of one host, and "
                         "Weft starts their ranks itself (-n)",
                         config->source, hosts.launcher.launcher);
    if (ranks == hosts.launcher.ranks) return WEFT_OK;
    return weft_fail(err, WEFT_E_DISAGREE,
                     "%s started %d ranks, and cluster.ranks is %lld: start as many, or give -n %d",
                     hosts.launcher.launcher, hosts.launcher.ranks, (long long)ranks,
                     hosts.launcher.ranks);
}

bool weft_hosts_are_over(void)
{
    return hosts.is_over;
}

/* Ranks that are not stuck may tell of the lost one too. All may be stuck. */
static void end_stuck_process(const struct weft_error *why)
{
    const bool rank_0_is_lost = hosts.world != NULL && weft_world_lost(hosts.world) == 0;
    if (hosts.launcher.rank == (rank_0_is_lost ? 1 : 0))
        weft_log(WEFT_LOG_WARNING, "%s", why->text);
    _exit(why->exit_code);
}

/* Rank 0 plans before MPI starts, since many MPI libraries forbid child processes after it. */
static enum weft_status need_world(struct weft_error *err)
{
    return hosts.world != NULL ? WEFT_OK : weft_world_start(end_stuck_process, &hosts.world, err);
}

/* Runs the job here, and compares how all ranks ended. */
static enum weft_status work_together(const struct weft_text *description, struct weft_error *err)
{
    struct weft_json *json = NULL;
    struct weft_error why = {.status = WEFT_OK};
    enum weft_status status =
        weft_json_parse(weft_text_chars(description), description->length, "job", &json, &why);
    if (status == WEFT_OK)
        status = hosts.work(hosts.cli, json, weft_world_meeting(hosts.world), &why);
    status = weft_world_judge(hosts.world, status, &why, err);
    hosts.is_over = status != WEFT_OK;
    return status;
}

enum weft_status weft_hosts_run_job(const struct weft_text *description, struct weft_error *err)
{
    WEFT_TRY(need_world(err));
    WEFT_TRY(weft_world_share(hosts.world, description, err));
    return work_together(description, err);
}

static enum weft_status lead_ranks(weft_hosts_verb_fn *verb, struct weft_error *err)
{
    const void *calls = NULL;
    WEFT_TRY(weft_module_find("mpi", hosts.launcher.library, &calls, err)); /* before it plans */
    struct weft_error unsaid = {.status = WEFT_OK};
    const enum weft_status status = verb(hosts.cli, err);
    const int exit_code = status == WEFT_OK       ? 0
                          : err->status == status ? err->exit_code
                                                  : weft_status_exit_code(status);
    /* The others wait for a word, also if there was no job. */
    enum weft_status told = WEFT_OK;
    if (!hosts.is_over) told = need_world(&unsaid);
    if (!hosts.is_over && told == WEFT_OK) told = weft_world_end(hosts.world, exit_code, &unsaid);
    if (status != WEFT_OK || told == WEFT_OK) return status;
    return weft_fail(err, told, "%s", unsaid.text);
}

/* Rank 0 is gone: the lowest rank that is left prints. Rank 0 is out of reach: one of each host. */
static bool speaks_for_rank_0(void)
{
    if (hosts.world == NULL) return false;
    if (weft_world_lost(hosts.world) == 0) return hosts.launcher.rank == 1;
    return weft_world_speaks(hosts.world);
}

static enum weft_status follow_rank_0(struct weft_error *err)
{
    enum weft_status status = weft_world_start(end_stuck_process, &hosts.world, err);
    if (status != WEFT_OK) {
        /* Rank 0 has the same error, as a rule. It prints it, and the launcher ends this rank. */
        weft_clock_sleep_until_ns(weft_clock_now_ns() + same_error_ns);
        hosts.cli->ending->told_elsewhere = false;
    }
    for (bool ended = false; status == WEFT_OK && !ended;) {
        struct weft_text text;
        int exit_code = 0;
        weft_text_init(&text);
        status = weft_world_listen(hosts.world, &text, &ended, &exit_code, err);
        if (status == WEFT_OK && !ended) status = work_together(&text, err);
        if (status == WEFT_OK && ended && exit_code != 0)
            status = weft_fail(err, weft_status_of_exit_code(exit_code), "rank 0 has failed");
        weft_text_finish(&text);
    }
    if (speaks_for_rank_0()) hosts.cli->ending->told_elsewhere = false;
    return status;
}

static bool end_world(void)
{
    /* A launcher asks the last ranks to stop if the first ones have failed; they end anyway. */
    if (hosts.world != NULL) signal(SIGTERM, SIG_IGN);
    const bool ended = weft_world_finish(hosts.world);
    hosts.world = NULL;
    /* Slurm's PMIx ends a step when a rank has left without MPI's end, and drops its last line. */
    if (!ended && !hosts.cli->ending->told_elsewhere)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + forward_ns);
    return ended;
}

enum weft_status weft_hosts_run(const struct weft_cli *cli, weft_hosts_verb_fn *verb,
                                weft_hosts_work_fn *work, struct weft_error *err)
{
    if (!weft_rendezvous_find_stranger(&hosts.launcher)) return verb(cli, err);
    if (hosts.launcher.library == NULL) return weft_rendezvous_refuse_strangers(err);
    hosts.cli = cli;
    hosts.work = work;
    cli->ending->told_elsewhere = hosts.launcher.rank != 0;
    cli->ending->finish = end_world;
    return hosts.launcher.rank == 0 ? lead_ranks(verb, err) : follow_rank_0(err);
}
