/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/gzip.h"
#include "cli/job/elastic.h"
#include "cli/job/hosts.h"
#include "cli/job/job.h"
#include "cli/job/rank.h"
#include "cli/job/resume.h"
#include "cli/job/tracing.h"
#include "cli/report.h"
#include "cli/study/refusal.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "library/mappings.h"
#include "library/metrics/load.h"
#include "library/metrics/metrics.h"
#include "library/run_directory.h"
#include "library/session.h"
#include "library/split_kept.h"
#include "report/offloaded.h"
#include "report/plan_report.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/train/evaluation.h"
#include "spec/config_batch.h"
#include "spec/profile/flops.h"

static struct weft_stop stop;
/* Set when ranks start: from then on a single signal does not end the launcher. */
static volatile sig_atomic_t ranks_ran;

/* Before ranks start there is nothing to save, so a signal ends the process with the exit code of a
 * stop. While ranks run, weft_launch handles signals. After a stop the same request may arrive
 * again; output is then still written. */
static void stop_without_ranks(int signal_number, siginfo_t *info, void *context)
{
    static const char text[] = "weft: stopped by a signal while no rank was running\n";
    (void)signal_number;
    (void)context;
    const enum weft_stop_answer answer = weft_stop_note(&stop, info, weft_clock_now_ns());
    if (answer == WEFT_STOP_GOES_ON || (ranks_ran && answer != WEFT_STOP_AT_ONCE)) return;
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(weft_status_exit_code(WEFT_E_STOPPED));
}

static bool is_virtual(const struct weft_cli *cli)
{
    return cli->clock && strcmp(cli->clock, "virtual") == 0;
}

/* Compares the profile's inputs with the run's. A rank's memory depends on the machine, its threads
 * and the number of ranks, and the limit applies here. So base memory is measured here, except with
 * a given plan, which has its own base. */
static enum weft_status look_at_inputs(const struct weft_cli *cli, struct weft_session *session,
                                       bool measured_now, struct weft_error *err)
{
    const uint32_t of_memory = UINT32_C(1) << WEFT_INPUT_MACHINE |
                               UINT32_C(1) << WEFT_INPUT_THREADS | UINT32_C(1) << WEFT_INPUT_RANKS;
    const bool has_other_memory = (weft_session_compare_inputs(session) & of_memory) != 0;
    struct weft_profile *profile = NULL;
    int64_t base_bytes = 0;
    weft_session_tell_inputs(session, true, measured_now);
    if (!has_other_memory || cli->plan || is_virtual(cli)) return WEFT_OK;
    weft_log(WEFT_LOG_INFO, "measuring the memory of a rank on this machine first");
    WEFT_TRY(weft_job_measure_base(session->config, session->watch, &base_bytes, err));
    WEFT_TRY(weft_profile_with_base(session->profile, base_bytes, &profile, err));
    return weft_session_stage(session, profile, err);
}

static enum weft_status stage_session(const struct weft_cli *cli,
                                      const struct weft_resumption *from,
                                      struct weft_session *session, struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    WEFT_TRY(weft_resume_profile(from, session->config->cluster.ranks, &profile, err));
    bool measures = profile == NULL && weft_session_must_measure(session);
    if (measures && cli->plan) return weft_cli_refuse_plan(cli->plan, from->config, err);
    if (measures) WEFT_TRY(weft_cli_measure(session, &profile, err));
    WEFT_TRY(weft_session_stage(session, profile, err));
    return look_at_inputs(cli, session, measures, err);
}

/* Puts planned and measured memory of each tier. A plan without a base is compared by its arena
 * alone. */
static void put_memory(const struct weft_program *program, const struct weft_train_result *result,
                       struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES], base[WEFT_UNITS_TEXT_BYTES];
    const struct weft_tier_use *device = &result->tiers[WEFT_LOCATION_DEVICE];
    if (program->base_bytes > 0) {
        weft_text_addf(out, "memory    %s measured, %s planned a rank\n",
                       weft_units_show_bytes(device->measured_bytes, a),
                       weft_units_show_bytes(device->planned_bytes, b));
    } else {
        const struct weft_tier_use *outside = &result->outside;
        weft_text_addf(
            out,
            "memory    %s measured in the arena, %s planned a rank; outside it %s, which no plan "
            "counts without cluster.base or a measured profile (weft profile)\n",
            weft_units_show_bytes(device->measured_bytes - outside->measured_bytes, a),
            weft_units_show_bytes(device->planned_bytes - outside->planned_bytes, b),
            weft_units_show_bytes(outside->measured_bytes, base));
    }
    for (int location = WEFT_LOCATION_HOST; location < WEFT_LOCATION_COUNT; location++) {
        const struct weft_tier_use *use = &result->tiers[location];
        if (use->planned_bytes == 0 && use->measured_bytes <= 0) continue;
        weft_text_addf(out, "%-9s %s measured, %s planned a rank\n", weft_location_names[location],
                       weft_units_show_bytes(use->measured_bytes, a),
                       weft_units_show_bytes(use->planned_bytes, b));
    }
}

/* Puts the flops of a rank, and their share of its device's peak. */
static void put_flops(const struct weft_config *config, const struct weft_train_result *result,
                      struct weft_text *out)
{
    const char *figure;
    double flops = 0;
    const double peak = weft_flops_peak(config, &figure);
    if (result->step_ns <= 0 || weft_flops_of_step(config, &flops, NULL) != WEFT_OK) return;
    const double rate = 1e9 * flops / (double)result->step_ns / (double)config->cluster.ranks;
    weft_text_addf(out, "flops     %.3g T/s a rank, ", rate / 1e12);
    if (peak > 0)
        weft_text_addf(out, "%.1f %% of the %.3g T/s of cluster.%s\n", 100 * rate / peak,
                       peak / 1e12, figure);
    else
        weft_text_addf(out, "of an unknown peak: cluster.%s is not given\n", figure);
}

/* Puts the last evaluation, since --quiet hides its line among the steps. */
static void put_validation(const struct weft_config *config, const struct weft_train_result *result,
                           struct weft_text *out)
{
    const double loss = weft_units_unsigned_nan(result->validation_loss);
    const struct weft_train *train = &config->train;
    if (train->validation.data == NULL && train->validation.share <= 0) return;
    if (isnan(loss) && !weft_evaluation_is_due(train, result->steps_done)) return;
    weft_text_addf(out, "validated loss %.4f of the held-out data\n", loss);
}

static void put_summary(const struct weft_session *session, const struct weft_train_result *result,
                        struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES], hash[WEFT_HASH_TEXT_BYTES];
    const struct weft_prediction *p = &session->plan->prediction;
    if (result->step_ns == WEFT_UNMEASURED) { /* no step was left to do */
        weft_text_addf(out, "steps     all %lld were done before; parameters %s\n",
                       (long long)result->steps_done, weft_hash_show(result->fingerprint, hash));
        return;
    }
    const char *link = result->emulated ? " over an emulated link" : "";
    weft_text_addf(
        out, "step      %s measured%s, %s predicted (%+.1f %%)\n",
        weft_units_show_ns(result->step_ns, a), link, weft_units_show_ns(p->step_ns, b),
        p->step_ns > 0 ? 100.0 * (double)(result->step_ns - p->step_ns) / (double)p->step_ns : 0.0);
    weft_text_addf(out, "exposed   %s measured%s, %s predicted\n",
                   weft_units_show_ns(result->exposed_ns, a), link,
                   weft_units_show_ns(p->exposed_ns, b));
    put_flops(session->config, result, out);
    put_memory(session->program, result, out);
    weft_text_addf(out, "loss      %.4f to %.4f after %lld steps; parameters %s\n",
                   weft_units_unsigned_nan(result->first_loss),
                   weft_units_unsigned_nan(result->last_loss), (long long)result->steps_done,
                   weft_hash_show(result->fingerprint, hash));
    put_validation(session->config, result, out);
}

static enum weft_status fail_stopped(const struct weft_train_result *result,
                                     const struct weft_config *config, const char *directory,
                                     struct weft_error *err)
{
    struct weft_text command;
    bool saved = result->saved_step == result->steps_done;
    weft_text_init(&command);
    if (saved) weft_resume_command(directory, config->kinds, &command);
    enum weft_status status = weft_fail(
        err, WEFT_E_STOPPED, "stopped by a signal after step %lld of %lld%s%s",
        (long long)result->steps_done, (long long)config->train.steps,
        saved ? ", which is saved. Go on with: " : "; it is not saved", weft_text_chars(&command));
    weft_text_finish(&command);
    return status;
}

/* Reports the lost steps of ranks that ended before they could save. */
static enum weft_status fail_ended(const struct weft_error *why, const struct weft_job_reach *reach,
                                   const struct weft_config *config, const char *directory,
                                   struct weft_error *err)
{
    struct weft_text lost;
    weft_text_init(&lost);
    int64_t first = reach->saved_step > 0 ? reach->saved_step + 1 : reach->first_step;
    if (first < reach->steps_done)
        weft_text_addf(&lost, ". Steps %lld to %lld are not saved", (long long)first,
                       (long long)reach->steps_done);
    else if (reach->steps_done > 0 && first == reach->steps_done)
        weft_text_addf(&lost, ". Step %lld is not saved", (long long)first);
    if (reach->saved_step > 0) {
        weft_text_addf(&lost, ". Step %lld is saved; go on with: ", (long long)reach->saved_step);
        weft_resume_command(directory, config->kinds, &lost);
    }
    enum weft_status status = weft_fail_again(err, why, "%s%s", why->text, weft_text_chars(&lost));
    weft_text_finish(&lost);
    return status;
}

/* Emits the end of a run, also if its trace or report failed: that error counts then. */
static enum weft_status emit_end(const struct weft_cli *cli, const struct weft_text *text,
                                 enum weft_status status, struct weft_error *err)
{
    struct weft_error ignored = {0};
    if (status == WEFT_OK) return weft_cli_emit(cli, text, err);
    const enum weft_status unheard = weft_cli_emit(cli, text, &ignored);
    (void)unheard;
    return status;
}

/* The trace that a report reads: none of a folder's form, which names work as GPUs do, and none
 * that is compressed. */
static const char *read_again(const char *trace)
{
    const bool reads =
        trace != NULL && !weft_tracing_is_folder(trace) && !weft_gzip_is_asked(trace);
    return reads ? trace : NULL;
}

/* Keeps the first error of several. */
static void keep_first(enum weft_status *status, struct weft_error *why, enum weft_status later,
                       const struct weft_error *later_why)
{
    if (*status != WEFT_OK || later == WEFT_OK) return;
    *status = later;
    *why = *later_why;
}

/* Returns whether result.json is written, also if only the trace of an ended training failed. */
static bool write_result(const struct weft_run_directory *run, const struct weft_text *text,
                         struct weft_train_result *result, enum weft_status *status,
                         struct weft_error *why)
{
    struct weft_error unkept = {0};
    if (text->length == 0) return false;
    enum weft_status kept = weft_job_read_result(text, result, &unkept);
    if (kept == WEFT_OK) kept = weft_run_directory_write(run, "result.json", text, &unkept);
    keep_first(status, why, kept, &unkept);
    return kept == WEFT_OK;
}

/* Returns whether the page is written; without the trace if that failed. */
static bool write_page(const char *run, const char *trace, const char *path,
                       enum weft_status *status, struct weft_error *why)
{
    struct weft_error unwritten = {0};
    const enum weft_status written = weft_report_write_run(
        run, *status == WEFT_OK ? read_again(trace) : NULL, path, 0, &unwritten);
    keep_first(status, why, written, &unwritten);
    return written == WEFT_OK;
}

static enum weft_status train_session(const struct weft_cli *cli, struct weft_session *session,
                                      const struct weft_run_directory *run,
                                      const struct weft_elastic *elastic,
                                      struct weft_job_reach *reach, struct weft_error *err)
{
    const char *directory = run->path;
    char metrics[WEFT_RUN_FILE_BYTES], trace[WEFT_RUN_FILE_BYTES];
    char page[WEFT_RUN_FILE_BYTES];
    const bool is_live = cli->report != NULL && strcmp(cli->report, "live") == 0;
    struct weft_report_live live = {.run = directory, .path = page};
    struct weft_error why = {0};
    struct weft_job job = {
        .kind = WEFT_JOB_TRAIN,
        .config = session->config,
        .profile = session->profile,
        .plan = session->plan,
        .virtual_clock = is_virtual(cli),
        .poison = cli->poison,
        .steps = cli->json    ? WEFT_STEPS_JSON
                 : cli->quiet ? WEFT_STEPS_SILENT
                              : WEFT_STEPS_TEXT,
        .metrics = metrics,
        .trace = cli->trace != NULL    ? cli->trace
                 : cli->report != NULL ? trace
                                       : NULL,
        .trace_steps = cli->trace_steps,
        .tensorboard = cli->tensorboard,
        .checkpoints = weft_run_saves(&session->config->train) ? run->checkpoints : NULL,
        .resume = run->resume,
        .from = run->from[0] != '\0' ? run->from : NULL,
        .kept_fd = run->lock_fd,
        .kept = elastic->keeps ? &elastic->kept : NULL,
        .watch = cli->watch,
        .look = is_live ? weft_report_look : NULL,
        .look_context = &live,
        .stop = &stop,
        .reach = reach,
    };
    struct weft_text text, out;
    struct weft_train_result result = {0};
    struct weft_load before, load = {0};
    WEFT_TRY(weft_metrics_prepare(directory, run->own ? run->resume : NULL, metrics, err));
    snprintf(trace, sizeof trace, "%s/trace.json", directory);
    snprintf(page, sizeof page, "%s/report.html", directory);
    if (cli->report != NULL && !is_live) live.path = cli->report;
    if (job.trace == trace) unlink(trace); /* of another plan, perhaps */
    weft_text_init(&text);
    weft_cli_report_init(cli, cli->output, &out);
    ranks_ran = 1;
    weft_load_read(&before);
    enum weft_status status = weft_job_run(&job, &text, &why);
    weft_load_spend(&before, &load);
    const bool left = write_result(run, &text, &result, &status, &why);
    const bool has_page =
        left && cli->report != NULL && write_page(directory, cli->trace, live.path, &status, &why);
    if (left && !cli->json) {
        put_summary(session, &result, &out);
        /* Other ranks of an MPI launcher would count as other programs; the page has their load. */
        if (!job.virtual_clock && !weft_hosts_are_ours()) weft_load_add(&load, &out);
        weft_text_addf(&out, "run       %s\n", directory);
        if (has_page) weft_text_addf(&out, "report    %s\n", live.path);
        status = emit_end(cli, &out, status, &why);
    } else if (left) {
        status = emit_end(cli, &text, status, &why);
    }
    weft_text_finish(&text);
    weft_text_finish(&out);
    /* The same signal may have ended the summary's reader, so the stop is reported first. */
    if (left && result.stopped) return fail_stopped(&result, session->config, directory, err);
    if (status == WEFT_E_STOPPED) return fail_ended(&why, reach, session->config, directory, err);
    return status == WEFT_OK ? status : weft_fail_again(err, &why, "%s", why.text);
}

static enum weft_status check_flags(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_tracing_steps steps;
    if (cli->trace_steps && !cli->trace)
        return weft_fail(err, WEFT_E_USAGE, "--trace-steps goes with --trace FILE");
    WEFT_TRY(weft_tracing_read_steps(cli->trace_steps, 0, &steps, err));
    if (cli->trace) WEFT_TRY(weft_tracing_check(cli->trace, err));
    if (cli->report && strcmp(cli->report, "live") != 0)
        WEFT_TRY(weft_report_check_train(cli, err));
    if (cli->clock && strcmp(cli->clock, "wall") != 0 && strcmp(cli->clock, "virtual") != 0)
        return weft_fail(err, WEFT_E_USAGE, "--clock %s: wall or virtual", cli->clock);
    if (cli->output)
        return weft_fail(err, WEFT_E_USAGE, "train writes to a directory: give --run DIR, not -o");
    return WEFT_OK;
}

/* Adds advice if a resumed run's data has moved. */
static enum weft_status check_training(const struct weft_resumption *from,
                                       const struct weft_config *config, struct weft_error *err)
{
    struct weft_error why = {0};
    const enum weft_status status = weft_train_check(config, &why);
    if (status == WEFT_OK) return status;
    if (status != WEFT_E_NO_INPUT || !from->own) return weft_fail_again(err, &why, "%s", why.text);
    return weft_fail_again(
        err, &why,
        "%s. %s says so: if the data has moved, give its path with --set "
        "train.data=PATH%s",
        why.text, from->config,
        config->train.validation.data == NULL ? "" : " or --set train.validation.data=PATH");
}

/* Makes all checks that need no measurement and no files of the run. */
static enum weft_status prepare_run(const struct weft_cli *cli, struct weft_resumption *from,
                                    const struct weft_run_request *request,
                                    const struct weft_elastic *elastic,
                                    struct weft_session *session, bool *finished,
                                    struct weft_error *err)
{
    WEFT_TRY(weft_cli_read_config(cli, from->config, session, err));
    WEFT_TRY(weft_elastic_check(elastic, session->config, err));
    struct weft_tracing_steps traced;
    WEFT_TRY(weft_tracing_read_steps(cli->trace_steps, session->config->train.steps, &traced, err));
    struct weft_manifest_split split;
    WEFT_TRY(weft_run_directory_check(request, session->config, finished, &split, err));
    if (*finished) return WEFT_OK;
    /* Without a checkpoint the batch is that of the first start, as the user asked for it. */
    if (split.micro_batch == 0 && elastic->starts > 0) {
        split = elastic->split;
        session->config->split_given = session->config->order_given = false;
    }
    WEFT_TRY(weft_split_keep(&split, session->config, err));
    WEFT_TRY(check_training(from, session->config, err));
    WEFT_TRY(weft_job_check(session->config, err));
    /* Other configs may plan without a disk, which may be gone. */
    if (weft_config_state_locations(session->config) == 1 << WEFT_LOCATION_DISK)
        WEFT_TRY(weft_job_check_disk(session->config, NULL, err));
    return weft_resume_tell(from, session->config, err);
}

static enum weft_status decide_plan(const struct weft_cli *cli, const struct weft_resumption *from,
                                    struct weft_session *session, struct weft_error *err)
{
    struct weft_answer answer = {0};
    WEFT_TRY(stage_session(cli, from, session, err));
    const enum weft_status status = cli->plan ? weft_session_load(session, cli->plan, err)
                                              : weft_resume_plan(from, session, err);
    if (status == WEFT_E_INFEASIBLE && !cli->plan && !from->own)
        weft_refusal_answer(cli, session, err);
    WEFT_TRY(status);
    WEFT_TRY(weft_job_check_disk(session->config, session->plan, err));
    const int64_t mapped = weft_hosts_are_ours() ? 1 : session->config->cluster.ranks;
    WEFT_TRY(weft_session_fit_mappings(session, mapped, !cli->plan, err));
    if (cli->json || cli->quiet) return WEFT_OK;
    /* A given plan, and that of a resumed run, were shown when they were made. */
    if (cli->plan || (from->own && from->same_plan)) {
        weft_report_plan_briefly(session->plan, &answer);
        weft_answer_say(&answer, NULL,
                        "          `weft explain` with the plan or the run shows all of it\n");
    } else {
        weft_report_plan(session->plan, &answer);
    }
    weft_report_wear(session->plan, session->config->cluster.disk.endurance_bytes, &answer);
    weft_report_mappings(session->program, &answer);
    return weft_cli_emit_answer(cli, &answer, err);
}

/* Writes the step of the run's latest checkpoint; 0: there is none. */
static enum weft_status find_saved(const char *run_directory, int64_t *step, struct weft_error *err)
{
    struct weft_text checkpoints;
    char *latest = NULL;
    *step = 0;
    weft_text_init(&checkpoints);
    weft_text_addf(&checkpoints, "%s/checkpoints", run_directory);
    enum weft_status status = weft_checkpoint_latest(weft_text_chars(&checkpoints), &latest, err);
    if (latest != NULL) weft_checkpoint_step_of(latest, step);
    free(latest);
    weft_text_finish(&checkpoints);
    return status;
}

/* Reports a finished run without touching its files. */
static enum weft_status tell_finished(const struct weft_cli *cli,
                                      const struct weft_session *session, struct weft_error *err)
{
    const int64_t most_bytes = INT64_C(1) << 24;
    struct weft_text path, out;
    char *bytes = NULL;
    size_t length = 0;
    enum weft_status status = WEFT_OK;
    weft_text_init(&path);
    weft_cli_report_init(cli, cli->output, &out);
    weft_text_addf(&path, "%s/result.json", cli->run_directory);
    if (cli->json) {
        status = weft_file_read(weft_text_chars(&path), most_bytes, &bytes, &length, err);
        weft_text_append(&out, bytes, length);
    } else {
        int64_t saved = 0;
        status = find_saved(cli->run_directory, &saved, err);
        weft_text_addf(&out,
                       "steps     all %lld were done before: nothing to do, and no file is "
                       "touched (%s)\nrun       %s\n",
                       (long long)session->config->train.steps,
                       saved > 0
                           ? "for more, raise train.steps"
                           : "nothing is saved to go on from: for more steps, train anew with "
                             "another --run",
                       cli->run_directory);
    }
    if (status == WEFT_OK) status = weft_cli_emit(cli, &out, err);
    free(bytes);
    weft_text_finish(&path);
    weft_text_finish(&out);
    return status;
}

static void begin_elastic(const struct weft_session *session, struct weft_elastic *elastic)
{
    const struct weft_config *config = session->config;
    const struct weft_period_rule *rule = &session->plan->problem->period;
    const struct weft_manifest_split split = {.micro_batch = config->train.micro_batch,
                                              .micro_steps = rule->n_micro,
                                              .group = rule->group,
                                              .layers = rule->layers,
                                              .ranks = config->cluster.ranks,
                                              .idle = rule->idle,
                                              .bundle = weft_config_bundle(config)};
    weft_elastic_begin(elastic, session->plan->prediction.step_ns, &split);
}

static enum weft_status run_steps(const struct weft_cli *cli, const struct weft_resumption *from,
                                  const struct weft_run_request *request,
                                  struct weft_session *session, struct weft_elastic *elastic,
                                  struct weft_job_reach *reach, struct weft_error *err)
{
    struct weft_run_directory directory = {.lock_fd = -1};
    enum weft_status status = decide_plan(cli, from, session, err);
    if (status == WEFT_OK) status = weft_elastic_check_least(elastic, session->config, err);
    if (status == WEFT_OK) begin_elastic(session, elastic);
    if (status == WEFT_OK)
        status = weft_run_directory_open(request, session->config, &directory, err);
    if (status == WEFT_OK && directory.finished)
        status = tell_finished(cli, session, err);
    else if (status == WEFT_OK)
        status = weft_run_directory_record(&directory, session, err);
    if (status == WEFT_OK && !directory.finished)
        status = weft_elastic_keep(elastic, session->config, err);
    if (status == WEFT_OK && !directory.finished)
        status = train_session(cli, session, &directory, elastic, reach, err);
    weft_run_directory_close(&directory);
    return status;
}

static enum weft_status start_once(const struct weft_cli *cli, struct weft_elastic *elastic,
                                   struct weft_job_reach *reach, struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_resumption from;
    bool finished = false;
    WEFT_TRY(check_flags(cli, err));
    WEFT_TRY(weft_resume_find(cli, &from, err));
    const struct weft_run_request request = {
        .directory = cli->run_directory,
        .resume = cli->resume,
        .from = cli->from,
        .config = from.config,
        .kept = elastic->keeps ? &elastic->kept : NULL,
    };
    weft_stop_handle(stop_without_ranks, false);
    enum weft_status status = prepare_run(cli, &from, &request, elastic, &session, &finished, err);
    if (status == WEFT_OK)
        status = finished ? tell_finished(cli, &session, err)
                          : run_steps(cli, &from, &request, &session, elastic, reach, err);
    weft_session_close(&session);
    return status;
}

/* A run with a checkpoint goes on with its own config, which has all flags of the first start. */
static void prepare_start(const struct weft_elastic *elastic, struct weft_cli *cli)
{
    cli->ranks = elastic->ranks;
    if (cli->resume == NULL) cli->resume = "if-any";
    if (elastic->saved_step == 0) return;
    cli->resume = "";
    cli->n_operands = cli->n_overrides = 0;
    cli->model = cli->hf = cli->profile = cli->plan = cli->from = NULL;
}

/* Starts the run again as long as it may go on; returns the status of the last start. */
static enum weft_status start_elastic(struct weft_cli *cli, struct weft_elastic *elastic,
                                      struct weft_error *err)
{
    struct weft_job_reach reach = {0};
    int64_t on_disk = 0, saved_step = 0;
    enum weft_status status = start_once(cli, elastic, &reach, err);
    while (weft_elastic_may_go_on(elastic, status) &&
           find_saved(cli->run_directory, &on_disk, NULL) == WEFT_OK &&
           weft_elastic_find_saved(elastic, on_disk, &saved_step, NULL) == WEFT_OK &&
           weft_elastic_goes_on(elastic, err, reach.steps_done, saved_step)) {
        ranks_ran = 0;
        *err = (struct weft_error){0};
        reach = (struct weft_job_reach){0};
        prepare_start(elastic, cli);
        status = start_once(cli, elastic, &reach, err);
    }
    return status;
}

static enum weft_status train_run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_elastic elastic;
    struct weft_job_reach reach = {0};
    struct weft_error why = {0};
    WEFT_TRY(weft_elastic_read(cli, &elastic, err));
    if (elastic.most == 0) return start_once(cli, &elastic, &reach, err);
    struct weft_cli *again = malloc(sizeof *again);
    if (again == NULL) return weft_fail_memory(err, "an elastic run");
    *again = *cli;
    again->ranks = elastic.ranks;
    const enum weft_status status = start_elastic(again, &elastic, &why);
    weft_elastic_close(&elastic);
    free(again);
    return status == WEFT_OK ? status : weft_fail_again(err, &why, "%s", why.text);
}

static enum weft_status run_train(const struct weft_cli *cli, struct weft_error *err)
{
    return weft_hosts_run(cli, train_run, weft_rank_work, err);
}

const struct weft_command weft_command_train = {
    .name = "train",
    .usage = "[CONFIG]",
    .summary = "runs the plan on local ranks",
    .details =
        "Plans (or takes --plan, refusing one that was made for something else), starts the ranks "
        "and trains: a line a step, and in the run directory the resolved config, profile, plan, "
        "metrics.jsonl, result.json and the checkpoints of train.checkpoint. A directory that has "
        "such files and no mark of a run (weft-run) is refused, as is one with a run that has "
        "trained, unless --resume is given. --resume goes on with the latest checkpoint of --run "
        "DIR (--resume=if-any begins anew if there is none, --resume=RUN/checkpoints/step-N "
        "begins with that one), with any number of ranks and any plan; a damaged one is refused, "
        "and a run that has ended is left as it is. Without a CONFIG it is DIR's own, with its "
        "profile and plan; flags override it, each change is told, and another plan is made where "
        "that one does not fit any more. --from begins a run with the parameters of another one's "
        "checkpoint, and with nothing else of it: step 0, moments of 0, the data's beginning. "
        "Frozen layers, optimizer, precision and ranks may differ; names and shapes of all "
        "tensors may not. With --resume=if-any it counts until the run has a checkpoint. A rank "
        "that dies ends the job within 2 s with exit 69. With --elastic MIN:MAX the run starts "
        "again from its last checkpoint: with as many ranks, and with fewer only if that fails "
        "before it has saved a step. The groups of a step keep its bits (train.group). "
        "train.checkpoint.host: K keeps checkpoints in host memory too, so at most K steps are "
        "lost. SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGINT and SIGHUP, to the launcher or to "
        "ranks, stop it after the step with a checkpoint and exit 75. With train.across.every: H "
        "nodes agree on a stop at their next average, so it takes up to H steps. Further signals "
        "are the same request; Ctrl-C twice, or the first signal again after 10 s, ends it at once "
        "and tells which steps are lost. --clock virtual runs the same program with predicted "
        "durations, --poison fills memory that the plan says is dead. --trace FILE writes the "
        "last step of all ranks, and the prediction, as one Chrome trace; --trace DIR/ writes a "
        "file for each rank, as Holistic Trace Analysis reads them. If mpirun or srun starts the "
        "ranks, FILE has rank 0 alone, and DIR/ has all. --trace-steps 3,10..12 traces these "
        "steps. --tensorboard DIR writes event files. --report FILE writes the page of `weft "
        "report` after the last step, with that step kept as RUN/trace.json; --report live writes "
        "RUN/report.html, every minute while the run goes on.",
    .flags = "--set --model --cluster --layers --ranks --seed --memory-limit --planner "
             "--work-limit --time-limit --gap --profile --plan --run --resume --from --elastic "
             "--clock --poison --trace --trace-steps --tensorboard --report",
    .least_operands = 0,
    .most_operands = 1,
    .starts_ranks = true,
    .serves_hosts = true,
    .run = run_train,
};
