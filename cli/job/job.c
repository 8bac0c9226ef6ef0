/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for memfd_create */
#include "cli/job/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/machine/cores.h"
#include "cli/job/hosts.h"
#include "cli/job/tracing.h"
#include "cli/process/rank_watch.h"
#include "cli/progress.h"
#include "library/machine.h"
#include "library/metrics/load.h"
#include "offload/disk.h"
#include "runtime/comm/comm.h"
#include "runtime/launch/launch.h"
#include "spec/config_batch.h"

enum { DESCRIPTION, RESULT, ERRORS, REACH, TRACE, N_FILES };
static const char *const file_names[N_FILES] = {"WEFT_JOB_FD", "WEFT_RESULT_FD", "WEFT_ERROR_FD",
                                                "WEFT_REACH_FD", "WEFT_TRACE_FD"};

static enum weft_status make_files(int fds[N_FILES], struct weft_error *err)
{
    for (int i = 0; i < N_FILES; i++) {
        fds[i] = memfd_create(file_names[i], 0);
        if (fds[i] < 0)
            return weft_fail(err, WEFT_E_SYSTEM, "a memory file for the ranks cannot be made: %s%s",
                             strerror(errno),
                             errno == EMFILE ? ". Raise the limit of open files (ulimit -n)" : "");
    }
    return WEFT_OK;
}

static void close_files(int fds[N_FILES])
{
    for (int i = 0; i < N_FILES; i++)
        if (fds[i] >= 0) close(fds[i]);
}

static enum weft_status write_description(const struct weft_job *job, int fd,
                                          struct weft_error *err)
{
    struct weft_text text;
    enum weft_status status = WEFT_OK;
    weft_text_init(&text);
    weft_job_write(job, &text);
    if (!weft_text_ok(&text)) status = weft_fail_memory(err, "the job's description");
    for (size_t written = 0; status == WEFT_OK && written < text.length;) {
        ssize_t n = write(fd, weft_text_chars(&text) + written, text.length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            status = weft_fail(err, WEFT_E_SYSTEM,
                               "the job's description cannot be handed over: %s", strerror(errno));
        else
            written += (size_t)n;
    }
    weft_text_finish(&text);
    return status;
}

static enum weft_status take_result(int fd, struct weft_text *result, struct weft_error *err)
{
    WEFT_TRY(weft_file_read_open(fd, "rank 0's result", result, err));
    if (result->length == 0) return weft_fail(err, WEFT_E_INTERNAL, "rank 0 left no result");
    return WEFT_OK;
}

static void take_reach(int fd, struct weft_job_reach *reach)
{
    if (fd < 0 || pread(fd, reach, sizeof *reach, 0) != (ssize_t)sizeof *reach)
        *reach = (struct weft_job_reach){0};
}

/* Each rank leaves its error at its own offset of the error file. The job's error is that of the
 * rank that failed first, with its number if there are several ranks. Without one (the rank was
 * killed) it is the launcher's error. */
static enum weft_status tell_failure(int fd, int32_t ranks,
                                     const struct weft_launch_outcome *outcome,
                                     enum weft_status status, const struct weft_error *launcher,
                                     struct weft_error *err)
{
    struct weft_error left = {0};
    bool whole = false;
    if (outcome->rank >= 0 && outcome->signal_number == 0 && status != WEFT_E_STOPPED)
        whole = pread(fd, &left, sizeof left, (off_t)outcome->rank * (off_t)sizeof left) ==
                (ssize_t)sizeof left;
    left.text[sizeof left.text - 1] = '\0';
    if (!whole || !left.text[0]) return weft_fail(err, status, "%s", launcher->text);
    if (ranks == 1) return weft_fail(err, status, "%s", left.text);
    if (left.of_rank == 0) return weft_fail_of_rank(err, status, outcome->rank, left.text);
    left.status = status;
    return weft_fail_again(err, &left, "%s", left.text);
}

/* Files and variables for a job's ranks. */
struct handed {
    int fds[N_FILES + 2 + WEFT_VAULT_GENERATIONS * WEFT_VAULT_FILES];
    const char *environment[N_FILES + 1];
    char texts[N_FILES + 1][64];
    int32_t n_fds, n_environment;
};

static void hand_file(struct handed *handed, const char *name, int fd)
{
    if (fd <= 0) return;
    handed->fds[handed->n_fds++] = fd;
    if (!name) return;
    char *text = handed->texts[handed->n_environment];
    snprintf(text, sizeof handed->texts[0], "%s=%d", name, fd);
    handed->environment[handed->n_environment++] = text;
}

/* The launcher's looks at the ranks: for the watch, and for the job's caller. */
struct looks {
    const struct weft_job *job;
    struct weft_watched_ranks *watched;
};

static void look_at_ranks(void *context)
{
    const struct looks *looks = context;
    if (looks->watched->watch) weft_watched_ranks_look(looks->watched);
    if (looks->job->look) looks->job->look(looks->job->look_context);
}

static enum weft_status launch_job(const struct weft_job *job, const int fds[N_FILES],
                                   struct weft_watched_ranks *watched, struct weft_error *err)
{
    char program[] = "weft", verb[] = "rank", progress[32];
    char *const argv[] = {program, verb, progress, NULL};
    int32_t ranks = (int32_t)job->config->cluster.ranks;
    struct handed handed = {0};
    struct looks looks = {job, watched};
    snprintf(progress, sizeof progress, "%s", weft_cli_progress_flag(job->watch));
    for (int i = 0; i < N_FILES; i++)
        hand_file(&handed, file_names[i], fds[i]);
    hand_file(&handed, WEFT_RANK_WATCH_NAME, watched->ends[1]);
    hand_file(&handed, NULL, job->kept_fd);
    for (int f = 0; job->kept != NULL && f < WEFT_VAULT_GENERATIONS * WEFT_VAULT_FILES; f++)
        hand_file(&handed, NULL, job->kept->fds[f / WEFT_VAULT_FILES][f % WEFT_VAULT_FILES]);
    struct weft_launch_options options = {
        .ranks = ranks,
        .argv = argv,
        .control_bytes = weft_comm_control_bytes(ranks),
        .fds = handed.fds,
        .n_fds = handed.n_fds,
        .environment = handed.environment,
        .n_environment = handed.n_environment,
        .threads = job->config->cluster.threads,
        .stop = job->stop,
        /* Ranks end themselves when they hang. The launcher also watches, in case all ranks are
         * stopped. */
        .hang_ns = weft_cluster_timeout_ns(&job->config->cluster),
        .look = watched->watch || job->look ? look_at_ranks : NULL,
        .look_context = &looks,
    };
    struct weft_launch_outcome outcome = {.rank = -1};
    struct weft_error *launcher = calloc(1, sizeof *launcher);
    if (!launcher) return weft_fail_memory(err, "an error");
    enum weft_status status = weft_launch(&options, &outcome, launcher);
    if (status != WEFT_OK) tell_failure(fds[ERRORS], ranks, &outcome, status, launcher, err);
    free(launcher);
    return status;
}

/* Lines of steps already show progress, so plain progress lines would repeat it. */
static struct weft_watch *watch_of(const struct weft_job *job)
{
    bool lines = job->kind == WEFT_JOB_TRAIN && job->steps == WEFT_STEPS_TEXT;
    return lines && !weft_cli_progress_is_redrawn(job->watch) ? NULL : job->watch;
}

static enum weft_status watch_launch(const struct weft_job *job, const int fds[N_FILES],
                                     struct weft_error *err)
{
    struct weft_watched_ranks watched;
    WEFT_TRY(weft_watched_ranks_open(watch_of(job), &watched, err));
    weft_watch_begin(watched.watch, job->kind == WEFT_JOB_TRAIN ? "train" : "profile");
    enum weft_status status = launch_job(job, fds, &watched, err);
    weft_watch_end(watched.watch);
    weft_watched_ranks_close(&watched);
    return status;
}

static bool keeps_on_disk(const struct weft_plan *plan)
{
    for (int32_t d = 0; d < plan->problem->n_decisions; d++)
        if (weft_plan_chosen(plan, d)->location == WEFT_LOCATION_DISK) return true;
    return false;
}

enum weft_status weft_job_check_disk(const struct weft_config *config, const struct weft_plan *plan,
                                     struct weft_error *err)
{
    struct weft_disk disk;
    struct weft_error why = {0};
    const bool is_used = plan != NULL ? keeps_on_disk(plan) : weft_config_uses_disk(config);
    if (!is_used) return WEFT_OK;
    const enum weft_status status =
        weft_disk_open(&weft_disk_calls, config->cluster.disk.path, true, &disk, &why);
    if (status != WEFT_OK)
        return weft_fail(err, status, "cluster.disk.path: %s%s", why.text,
                         plan == NULL ? ""
                                      : ". The plan keeps state there; another plan needs no disk: "
                                        "--set 'plan.offload.state=[\"device\"]'");
    weft_disk_close(&disk);
    return WEFT_OK;
}

enum weft_status weft_job_check(const struct weft_config *config, struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    if (weft_hosts_are_ours()) return weft_hosts_check(config, err);
    if (cluster->ranks > WEFT_LAUNCH_MOST_RANKS)
        return weft_fail(err, WEFT_E_USAGE,
                         "%lld local ranks are more than the %d that one machine can be asked for; "
                         "give -n",
                         (long long)cluster->ranks, WEFT_LAUNCH_MOST_RANKS);
    return cluster->bind ? weft_bind_check((int32_t)cluster->ranks, cluster->threads, err)
                         : WEFT_OK;
}

/* Rank 0 of a world runs the job in this process too, so it hands the files to itself. */
static enum weft_status run_on_hosts(const struct weft_job *job, const int fds[N_FILES],
                                     struct weft_error *err)
{
    struct weft_text description;
    weft_text_init(&description);
    weft_job_write(job, &description);
    enum weft_status status =
        weft_text_ok(&description) ? WEFT_OK : weft_fail_memory(err, "the job's description");
    for (int i = RESULT; i < N_FILES; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", fds[i]);
        if (i != ERRORS) setenv(file_names[i], number, 1);
    }
    if (status == WEFT_OK) status = weft_hosts_run_job(&description, err);
    for (int i = RESULT; i < N_FILES; i++)
        unsetenv(file_names[i]);
    weft_text_finish(&description);
    return status;
}

static enum weft_status launch_ranks(const struct weft_job *job, const int fds[N_FILES],
                                     struct weft_error *err)
{
    WEFT_TRY(write_description(job, fds[DESCRIPTION], err));
    return watch_launch(job, fds, err);
}

enum weft_status weft_job_run(const struct weft_job *job, struct weft_text *result,
                              struct weft_error *err)
{
    WEFT_TRY(weft_job_check(job->config, err));
    WEFT_TRY(weft_job_check_disk(job->config, job->plan, err));
    int fds[N_FILES] = {-1, -1, -1, -1, -1};
    enum weft_status status = make_files(fds, err);
    if (status == WEFT_OK)
        status = weft_hosts_are_ours() ? run_on_hosts(job, fds, err) : launch_ranks(job, fds, err);
    if (job->reach) take_reach(fds[REACH], job->reach);
    struct weft_error unheard = {0};
    if (status == WEFT_OK)
        status = take_result(fds[RESULT], result, err);
    else if (job->trace && take_result(fds[RESULT], result, &unheard) != WEFT_OK)
        result->length = 0;
    if (status == WEFT_OK && job->trace)
        status =
            weft_tracing_join(job->trace, fds[TRACE], (int32_t)job->config->cluster.ranks, err);
    close_files(fds);
    return status;
}

static enum weft_status run_profile(const struct weft_job *job, struct weft_profile **out,
                                    struct weft_error *err)
{
    struct weft_text text;
    WEFT_TRY(weft_machine_check_measuring(job->config, job->contention, err));
    weft_text_init(&text);
    enum weft_status status = weft_job_run(job, &text, err);
    if (status == WEFT_OK)
        status =
            weft_profile_parse(weft_text_chars(&text), text.length, "measured profile", out, err);
    weft_text_finish(&text);
    return status;
}

/* Measures one split of the batch, with the load meanwhile. `known` has the curves, or is NULL. */
static enum weft_status profile_split(const struct weft_config *config, int64_t micro_batch,
                                      bool contention, const struct weft_profile *known,
                                      struct weft_watch *watch, struct weft_profile **out,
                                      struct weft_error *err)
{
    struct weft_config split = *config;
    struct weft_load before, spent = {0};
    struct weft_profile *profile = NULL;
    const struct weft_job job = {.kind = WEFT_JOB_PROFILE,
                                 .config = &split,
                                 .profile = known,
                                 .contention = contention,
                                 .watch = watch};
    weft_config_settle(&split, micro_batch);
    split.train.asked.micro_batch = micro_batch;
    weft_load_read(&before);
    WEFT_TRY(run_profile(&job, &profile, err));
    weft_load_spend(&before, &spent);
    if (spent.known) profile->origin.cores = weft_cores();
    /* Ranks of an MPI launcher are no children of this process: they would count as others. */
    profile->origin.busy_millicores =
        weft_hosts_are_ours()
            ? -1
            : (int64_t)(1000 * (weft_load_of_others(&spent) + weft_load_stolen(&spent)));
    /* Writes and reads the profile again, so its hash covers the load. */
    enum weft_status status = weft_profile_of_split(profile, micro_batch, out, err);
    weft_profile_destroy(profile);
    return status;
}

/* Measures one more split, and joins it with the profile so far, which is NULL before the first
 * one. */
static enum weft_status add_split(const struct weft_config *config, int64_t micro_batch,
                                  bool contention, struct weft_watch *watch,
                                  struct weft_profile **profile, struct weft_error *err)
{
    struct weft_profile *measured = NULL;
    WEFT_TRY(profile_split(config, micro_batch, contention, *profile, watch, &measured, err));
    return weft_profile_add(profile, measured, err);
}

enum weft_status weft_job_profile(const struct weft_config *config, bool contention,
                                  struct weft_watch *watch, struct weft_profile **out,
                                  struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    int64_t splits[WEFT_MOST_SPLITS];
    const int32_t n = weft_config_splits(config, splits);
    enum weft_status status = WEFT_OK;
    for (int32_t i = 0; i < n && status == WEFT_OK; i++)
        status = add_split(config, splits[i], contention, watch, &profile, err);
    if (status == WEFT_OK)
        *out = profile;
    else
        weft_profile_destroy(profile);
    return status;
}

enum weft_status weft_job_profile_splits(const struct weft_config *config, bool contention,
                                         int64_t limit_ns, struct weft_watch *watch,
                                         struct weft_profile **out, int32_t *n_left,
                                         struct weft_error *err)
{
    struct weft_config open = *config;
    struct weft_profile *profile = NULL;
    int64_t splits[WEFT_MOST_SPLITS];
    const int64_t begun_ns = weft_clock_now_ns();
    *n_left = 0;
    WEFT_TRY(weft_job_profile(config, contention, watch, &profile, err));
    const int32_t n = weft_config_open_split(&open) ? weft_config_splits(&open, splits) : 0;
    enum weft_status status = WEFT_OK;
    for (int32_t i = 0; i < n && status == WEFT_OK; i++) {
        if (splits[i] == config->train.micro_batch) continue;
        if (weft_clock_now_ns() - begun_ns < limit_ns)
            status = add_split(&open, splits[i], contention, watch, &profile, err);
        else
            ++*n_left;
    }
    if (status == WEFT_OK)
        *out = profile;
    else
        weft_profile_destroy(profile);
    return status;
}

enum weft_status weft_job_measure_base(const struct weft_config *config, struct weft_watch *watch,
                                       int64_t *base_bytes, struct weft_error *err)
{
    const struct weft_cluster *cluster = &config->cluster;
    const struct weft_job job = {.kind = WEFT_JOB_PROFILE,
                                 .config = config,
                                 .contention = cluster->contention.compute > 0 ||
                                               cluster->contention.channel > 0,
                                 .rounds = 1,
                                 .watch = watch};
    struct weft_profile *profile = NULL;
    WEFT_TRY(run_profile(&job, &profile, err));
    *base_bytes = profile->base_bytes + profile->staging_bytes;
    weft_profile_destroy(profile);
    return WEFT_OK;
}
