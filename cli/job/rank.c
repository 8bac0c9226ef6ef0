/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/json/json.h"
#include "base/wrap.h"
#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/job/rank.h"
#include "cli/job/tracing.h"
#include "cli/job/trap.h"
#include "cli/layers.h"
#include "cli/process/rank_watch.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "library/machine.h"
#include "library/metrics/metrics.h"
#include "library/metrics/rank_load.h"
#include "library/metrics/tensorboard.h"
#include "library/session.h"
#include "runtime/checkpoint/shared.h"
#include "runtime/launch/launch.h"
#include "spec/config_batch.h"

/* All objects of a rank; closed in reverse order. */
struct rank {
    const struct weft_cli *cli;
    struct weft_rank_watch watch; /* rank 0 reports progress with it */
    struct weft_rendezvous meeting;
    struct weft_json *description;
    struct weft_layer_files layers;
    struct weft_session session;
    struct weft_job job; /* its strings belong to `description` */
    struct weft_vault kept;
    struct weft_failpoint failpoint;
    struct weft_machine machine;
    struct weft_metrics *metrics;
    struct weft_tensorboard *board; /* NULL: writes no events */
    struct weft_tracing tracing;
    struct weft_error unseen; /* the error of a failed write to stdout; WEFT_OK: none */
    struct weft_job_reach reach;
    struct weft_rank_load load;
};

static atomic_int stop_requested; /* by a signal, or by a failed write of lines */
static atomic_int stop_signalled;

/* Any number of signals is one request. Only the launcher kills. */
static void request_stop(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)info;
    (void)context;
    atomic_store(&stop_signalled, 1);
    atomic_store(&stop_requested, 1);
}

static int inherited_fd(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    long fd = text ? strtol(text, &end, 10) : -1;
    return text && *text && *end == '\0' && fd > 2 && fd < 1 << 20 ? (int)fd : -1;
}

/* Stores the done and saved steps for the launching process, in case this rank is killed. The file
 * is in memory, so it cannot be full. */
static void leave_reach(const struct rank *rank)
{
    int fd = inherited_fd("WEFT_REACH_FD");
    ssize_t written = fd < 0 ? 0 : pwrite(fd, &rank->reach, sizeof rank->reach, 0);
    (void)written;
}

static enum weft_status read_description(struct rank *rank, struct weft_error *err)
{
    int fd = inherited_fd("WEFT_JOB_FD");
    if (fd < 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "rank: this verb is for ranks that `weft train` and `weft profile` start "
                         "themselves");
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return weft_json_read(path, &rank->description, err);
}

static enum weft_status read_part(const struct rank *rank, const char *name, const char **out,
                                  struct weft_error *err)
{
    return weft_json_need_string(weft_json_root(rank->description), "job", name, out, err);
}

/* The launching process resolved these paths, so every rank opens the same files. */
static enum weft_status open_layers(struct rank *rank, struct weft_error *err)
{
    const struct weft_json_value *list =
        weft_json_member(weft_json_root(rank->description), "layers");
    const struct weft_json_value *item = list == NULL ? NULL : weft_json_first(list);
    for (; item != NULL; item = weft_json_next(item)) {
        const char *path = NULL;
        if (!weft_json_string(item, &path))
            return weft_fail(err, WEFT_E_INTERNAL, "the job's layers are not paths");
        WEFT_TRY(weft_layer_files_open(&rank->layers, path, err));
    }
    return WEFT_OK;
}

/* The launching process may plan only a checkpoint's split and order of micro-steps, which the
 * config does not say. */
static enum weft_status read_split(struct rank *rank, struct weft_error *err)
{
    const struct weft_json_value *root = weft_json_root(rank->description);
    int64_t micro_batch = 0, group = 0, layers = 0;
    WEFT_TRY(weft_json_need_integer(root, "job", "kept_micro_batch", 0, WEFT_MOST_MICRO_BATCH,
                                    &micro_batch, err));
    WEFT_TRY(
        weft_json_need_integer(root, "job", "kept_group", 0, WEFT_MOST_MICRO_STEPS, &group, err));
    const bool keeps = micro_batch > 0 || group > 0;
    if (keeps && !weft_config_keep_split(rank->session.config, micro_batch, group) &&
        micro_batch > 0)
        return weft_fail(err, WEFT_E_INTERNAL, "the job's split is none of its config");
    if (weft_json_member(root, "kept_layers") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need_integer(root, "job", "kept_layers", 0, INT32_MAX, &layers, err));
    if (weft_config_keep_turns(rank->session.config, layers)) return WEFT_OK;
    return weft_fail(err, WEFT_E_INTERNAL, "the job's order is none of its config");
}

static enum weft_status read_job(struct rank *rank, struct weft_error *err)
{
    const struct weft_json_value *root = weft_json_root(rank->description);
    int64_t kind = 0, steps = 0, rounds = 0;
    const char *config = NULL, *kept = NULL;
    WEFT_TRY(weft_json_need_integer(root, "job", "kind", 0, WEFT_JOB_KIND_COUNT - 1, &kind, err));
    WEFT_TRY(weft_json_need_integer(root, "job", "steps", 0, WEFT_STEPS_COUNT - 1, &steps, err));
    WEFT_TRY(weft_json_need_integer(root, "job", "rounds", 0, INT32_MAX, &rounds, err));
    WEFT_TRY(
        weft_json_need_integer(root, "job", "replay_to", 0, INT64_MAX, &rank->job.replay_to, err));
    rank->job.kind = (enum weft_job_kind)kind;
    rank->job.rounds = (int32_t)rounds;
    rank->job.steps = (enum weft_step_output)steps;
    weft_json_bool(weft_json_member(root, "virtual_clock"), &rank->job.virtual_clock);
    weft_json_bool(weft_json_member(root, "poison"), &rank->job.poison);
    weft_json_bool(weft_json_member(root, "contention"), &rank->job.contention);
    weft_json_bool(weft_json_member(root, "groups"), &rank->job.groups);
    WEFT_TRY(weft_json_need_integer(root, "job", "replay_from", 0, INT64_MAX,
                                    &rank->job.replay_from, err));
    weft_json_string(weft_json_member(root, "dump"), &rank->job.dump);
    weft_json_string(weft_json_member(root, "dump_to"), &rank->job.dump_to);
    weft_json_string(weft_json_member(root, "replay_bits"), &rank->job.replay_bits);
    weft_json_string(weft_json_member(root, "replay_data"), &rank->job.replay_data);
    weft_json_string(weft_json_member(root, "metrics"), &rank->job.metrics);
    weft_json_string(weft_json_member(root, "trace"), &rank->job.trace);
    weft_json_string(weft_json_member(root, "trace_steps"), &rank->job.trace_steps);
    weft_json_string(weft_json_member(root, "tensorboard"), &rank->job.tensorboard);
    weft_json_string(weft_json_member(root, "checkpoints"), &rank->job.checkpoints);
    weft_json_string(weft_json_member(root, "resume"), &rank->job.resume);
    weft_json_string(weft_json_member(root, "from"), &rank->job.from);
    if (weft_json_string(weft_json_member(root, "kept"), &kept)) {
        if (!weft_vault_read(kept, &rank->kept))
            return weft_fail(err, WEFT_E_INTERNAL, "the job's memory files are not numbers");
        rank->job.kept = &rank->kept;
    }
    WEFT_TRY(read_part(rank, "config", &config, err));
    WEFT_TRY(open_layers(rank, err));
    WEFT_TRY(weft_failpoint_parse(getenv("WEFT_FAILPOINT"), &rank->failpoint, err));
    /* Failpoint: gives this rank another config in a key that no plan depends on. */
    const char *const other[] = {"train.optimizer.eps=0.125"};
    bool differs = weft_failpoint_at(&rank->failpoint, "config", rank->meeting.rank, 0) != 0;
    const struct weft_config_input input = {.bytes = config,
                                            .length = strlen(config),
                                            .source = "job config",
                                            .directory = "/",
                                            .overrides = other,
                                            .n_overrides = differs,
                                            .kinds = &rank->layers.known};
    WEFT_TRY(weft_config_load(&input, &rank->session.config, err));
    WEFT_TRY(weft_config_set_plain(rank->session.config, weft_machine_is_plain(), err));
    return read_split(rank, err);
}

/* Rank 0 alone leaves a result, and only a complete one. */
static enum weft_status leave_result(const struct rank *rank, const struct weft_text *text,
                                     struct weft_error *err)
{
    if (rank->meeting.rank != 0) return WEFT_OK;
    int fd = inherited_fd("WEFT_RESULT_FD");
    if (fd < 0) return weft_fail(err, WEFT_E_INTERNAL, "rank 0 has nowhere to leave its result");
    if (!weft_text_ok(text)) return weft_fail_memory(err, "the result");
    for (size_t written = 0; written < text->length;) {
        ssize_t n =
            pwrite(fd, weft_text_chars(text) + written, text->length - written, (off_t)written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return weft_fail(err, WEFT_E_IO, "rank 0's result could not be written: %s",
                             strerror(errno));
        written += (size_t)n;
    }
    return WEFT_OK;
}

/* A profile of another micro-batch has the curves and the library of products. */
static enum weft_status take_known(struct rank *rank, struct weft_profile **out,
                                   struct weft_error *err)
{
    const char *text = NULL;
    if (!weft_json_string(weft_json_member(weft_json_root(rank->description), "profile"), &text))
        return WEFT_OK;
    WEFT_TRY(weft_profile_parse(text, strlen(text), "job profile", out, err));
    return weft_machine_go_on(&rank->meeting, rank->session.config, *out, NULL, &rank->machine,
                              err);
}

static enum weft_status do_profile(struct rank *rank, struct weft_error *err)
{
    struct weft_profile *profile = NULL, *known = NULL;
    struct weft_text text;
    enum weft_status measured = take_known(rank, &known, err);
    if (measured == WEFT_OK)
        measured = weft_machine_measure(&rank->machine, rank->session.config, rank->job.contention,
                                        rank->job.rounds, known, &rank->watch.watch, &profile, err);
    weft_profile_destroy(known);
    WEFT_TRY(measured);
    weft_text_init(&text);
    weft_profile_write(profile, &text);
    enum weft_status status = leave_result(rank, &text, err);
    weft_text_finish(&text);
    weft_profile_destroy(profile);
    return status;
}

static enum weft_status show_lines(const struct weft_cli *cli, const struct weft_text *text,
                                   struct weft_error *err)
{
    struct weft_text lines;
    weft_text_init(&lines);
    weft_text_add(&lines, weft_cli_progress_eraser(cli, STDOUT_FILENO));
    weft_wrap(weft_text_chars(text), (size_t)text->columns, &lines);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(text) || !weft_text_ok(&lines))
        status = weft_fail_memory(err, "a line");
    else if (fwrite(weft_text_chars(&lines), 1, lines.length, stdout) != lines.length ||
             fflush(stdout) != 0 || ferror(stdout)) /* with line buffering fwrite may succeed
                                                     * although the write failed */
        status =
            weft_fail(err, WEFT_E_IO, "standard output cannot be written: %s", strerror(errno));
    weft_text_finish(&lines);
    return status;
}

/* Each event is a line for the user and a line of JSON for the metrics. */
struct lines {
    struct weft_text shown, json;
};

static struct lines begin_lines(const struct rank *rank)
{
    struct lines lines;
    weft_cli_report_init(rank->cli, NULL, &lines.shown);
    weft_text_init(&lines.json);
    return lines;
}

/* If lines cannot be shown (a closed terminal or pipe), the run stops as after a signal and saves
 * its state. */
static enum weft_status write_lines(struct rank *rank, const struct lines *lines,
                                    struct weft_error *err)
{
    const struct weft_text *shown =
        rank->job.steps == WEFT_STEPS_JSON ? &lines->json : &lines->shown;
    if (rank->job.steps != WEFT_STEPS_SILENT && rank->unseen.status == WEFT_OK &&
        show_lines(rank->cli, shown, &rank->unseen) != WEFT_OK)
        atomic_store(&stop_requested, 1);
    return rank->metrics ? weft_metrics_add(rank->metrics, &lines->json, err) : WEFT_OK;
}

/* Writes the lines and frees them. */
static enum weft_status tell_lines(struct rank *rank, struct lines *lines, struct weft_error *err)
{
    enum weft_status status = write_lines(rank, lines, err);
    weft_text_finish(&lines->shown);
    weft_text_finish(&lines->json);
    return status;
}

static enum weft_status on_evaluation(void *context, const struct weft_evaluation_line *line,
                                      struct weft_error *err)
{
    struct lines lines = begin_lines(context);
    weft_job_evaluation_line(line, &lines.shown);
    weft_metrics_evaluation(line, &lines.json);
    const struct rank *rank = context;
    if (rank->board != NULL) weft_tensorboard_evaluation(rank->board, line);
    return tell_lines(context, &lines, err);
}

static enum weft_status on_group(void *context, const struct weft_group_line *line,
                                 struct weft_error *err)
{
    struct lines lines = begin_lines(context);
    weft_metrics_group(line, &lines.json);
    return tell_lines(context, &lines, err);
}

static enum weft_status on_save(void *context, const struct weft_save_line *line,
                                struct weft_error *err)
{
    struct lines lines = begin_lines(context);
    weft_job_save_line(line, &lines.shown);
    weft_metrics_save(line, &lines.json);
    struct rank *rank = context;
    rank->reach.saved_step = line->step;
    leave_reach(rank);
    return tell_lines(rank, &lines, err);
}

static enum weft_status trace_step(struct rank *rank, const struct weft_step_line *line,
                                   const struct weft_trace *trace, struct weft_error *err)
{
    return weft_tracing_add(&rank->tracing, rank->session.program, rank->session.plan, trace,
                            line->step, line->steps, err);
}

/* On ranks that tell nothing. */
static enum weft_status on_quiet_step(void *context, const struct weft_step_line *line,
                                      const struct weft_trace *trace, struct weft_error *err)
{
    struct rank *rank = context;
    weft_rank_load_note(&rank->load, line);
    return trace_step(rank, line, trace, err);
}

static enum weft_status on_step(void *context, const struct weft_step_line *line,
                                const struct weft_trace *trace, struct weft_error *err)
{
    struct rank *rank = context;
    struct lines lines = begin_lines(rank);
    if (rank->reach.steps_done == 0) rank->reach.first_step = line->step;
    rank->reach.steps_done = line->step;
    leave_reach(rank);
    weft_rank_load_note(&rank->load, line);
    weft_job_step_line(line, &lines.shown);
    weft_metrics_step(line, &lines.json);
    if (rank->board != NULL) weft_tensorboard_step(rank->board, line);
    WEFT_TRY(tell_lines(rank, &lines, err));
    if (!rank->watch.watch.noun)
        weft_watch_count(&rank->watch.watch, "step", line->step - 1, line->steps);
    weft_watch_count(&rank->watch.watch, "step", line->step, line->steps);
    return trace_step(rank, line, trace, err);
}

static void on_exec(void *context, const struct weft_exec *exec)
{
    (void)context;
    weft_trap_watch(exec);
}

static enum weft_status take_plan(struct rank *rank, struct weft_error *err)
{
    const char *profile_text = NULL, *plan_text = NULL;
    struct weft_profile *profile = NULL;
    struct weft_session *session = &rank->session;
    WEFT_TRY(read_part(rank, "profile", &profile_text, err));
    WEFT_TRY(read_part(rank, "plan", &plan_text, err));
    WEFT_TRY(weft_profile_parse(profile_text, strlen(profile_text), "job profile", &profile, err));
    WEFT_TRY(weft_session_stage(session, profile, err));
    return weft_session_take(session, plan_text, strlen(plan_text), "job plan", err);
}

/* Lines that could not be written are an error, unless a signal stopped the run. A signal to a
 * whole pipeline or terminal also ends the reader, and the launching process reports the stop. Then
 * the lost lines must not fail this rank, neither here nor when main flushes. */
static enum weft_status judge_output(const struct rank *rank, struct weft_error *err)
{
    if (rank->unseen.status == WEFT_OK) return WEFT_OK;
    if (atomic_load(&stop_signalled) != 0 && freopen("/dev/null", "w", stdout) != NULL)
        return WEFT_OK;
    return weft_fail(err, rank->unseen.status, "%s", rank->unseen.text);
}

/* A failed rank ends the others, so no rank begins before rank 0 has left the result. */
static enum weft_status end_trace(struct rank *rank, struct weft_error *err)
{
    WEFT_TRY(weft_comm_exchange(rank->machine.comm, NULL, 0, NULL, err));
    return weft_tracing_end(&rank->tracing, err);
}

/* Collective: all ranks give their part of the hosts, and rank 0 leaves the result. */
static enum weft_status end_training(struct rank *rank, const struct weft_train_result *result,
                                     struct weft_error *err)
{
    struct weft_run_hosts hosts;
    struct weft_pool pool;
    struct weft_text text;
    weft_pool_init(&pool);
    weft_text_init(&text);
    enum weft_status status = weft_rank_load_exchange(&rank->load, &rank->meeting,
                                                      rank->machine.comm, &pool, &hosts, err);
    if (status == WEFT_OK) status = judge_output(rank, err);
    if (status == WEFT_OK) {
        weft_metrics_result(result, &hosts, &text);
        status = leave_result(rank, &text, err);
    }
    weft_text_finish(&text);
    weft_pool_finish(&pool);
    return status;
}

static enum weft_status do_train(struct rank *rank, struct weft_error *err)
{
    struct weft_session *session = &rank->session;
    WEFT_TRY(take_plan(rank, err));
    weft_watch_begin(&rank->watch.watch, "start: products");
    WEFT_TRY(weft_machine_go_on(&rank->meeting, session->config, session->profile, rank->job.resume,
                                &rank->machine, err));
    WEFT_TRY(
        weft_machine_expect(&rank->machine, session->config, session->profile, session->plan, err));
    /* From here a signal stops training after a whole step. Before, and in a profile, there is
     * nothing to save and a signal ends the rank at once. */
    weft_stop_handle(request_stop, true);
    weft_trap_set(rank->meeting.rank, inherited_fd("WEFT_ERROR_FD"));
    bool tells = rank->meeting.rank == 0;
    if (rank->job.checkpoints != NULL && weft_rendezvous_has_hosts(&rank->meeting))
        WEFT_TRY(weft_checkpoint_prove_shared(rank->machine.comm, rank->job.checkpoints, err));
    if (tells && rank->job.metrics)
        WEFT_TRY(weft_metrics_open(rank->job.metrics, &rank->metrics, err));
    const struct weft_tensorboard_run run = {.ranks = session->config->cluster.ranks,
                                             .limit_bytes =
                                                 session->plan->problem->tiers[0].limit_bytes};
    if (tells && rank->job.tensorboard)
        WEFT_TRY(weft_tensorboard_open(rank->job.tensorboard, &run, &rank->board, err));
    if (rank->job.trace)
        WEFT_TRY(weft_tracing_open(rank->job.trace, rank->job.trace_steps, rank->meeting.rank,
                                   rank->meeting.ranks, inherited_fd("WEFT_TRACE_FD"),
                                   &rank->tracing, err));
    struct weft_train_options options = {
        .config = session->config,
        .plan = session->plan,
        .program = session->program,
        .shards = session->stages.shards,
        .device = rank->machine.device,
        .comm = rank->machine.comm,
        .nn = rank->machine.nn,
        .poison = rank->job.poison,
        .failpoint = &rank->failpoint,
        .on_exec = on_exec,
        .on_step = tells ? on_step : on_quiet_step,
        .on_group = tells && rank->job.groups ? on_group : NULL,
        .on_evaluation = tells ? on_evaluation : NULL,
        .on_save = tells ? on_save : NULL,
        .measured = weft_profile_timed_network(session->profile),
        .several_hosts = weft_rendezvous_has_hosts(&rank->meeting),
        .checkpoints = rank->job.checkpoints,
        .resume = rank->job.resume,
        .from = rank->job.from,
        .kept = rank->job.kept,
        .replay_to = rank->job.replay_to,
        .replay_bits = rank->job.replay_bits,
        .replay_data = rank->job.replay_data,
        .replay_from = rank->job.replay_from,
        .dump = rank->job.dump,
        .dump_to = rank->job.dump_to,
        .watch = &rank->watch.watch,
        .context = rank,
        .stop = &stop_requested,
    };
    struct weft_train_result result = {0};
    weft_rank_load_begin(&rank->load);
    WEFT_TRY(weft_train_run(&options, &result, err));
    WEFT_TRY(end_training(rank, &result, err));
    return rank->job.trace ? end_trace(rank, err) : WEFT_OK;
}

static void close_rank(struct rank *rank)
{
    weft_metrics_close(rank->metrics);
    weft_tensorboard_close(rank->board);
    weft_tracing_close(&rank->tracing);
    weft_machine_close(&rank->machine);
    weft_session_close(&rank->session);
    weft_layer_files_close(&rank->layers);
    weft_json_destroy(rank->description);
}

static enum weft_status do_job(struct rank *rank, struct weft_error *err)
{
    WEFT_TRY(read_job(rank, err));
    if (rank->job.kind == WEFT_JOB_TRAIN) weft_watch_begin(&rank->watch.watch, "start: device");
    WEFT_TRY(weft_machine_open(&rank->meeting, rank->session.config, rank->job.virtual_clock,
                               &rank->machine, err));
    return rank->job.kind == WEFT_JOB_PROFILE ? do_profile(rank, err) : do_train(rank, err);
}

enum weft_status weft_rank_work(const struct weft_cli *cli, struct weft_json *description,
                                const struct weft_rendezvous *meeting, struct weft_error *err)
{
    struct rank rank = {.cli = cli, .description = description, .meeting = *meeting};
    weft_rank_watch_init(&rank.watch, -1);
    const enum weft_status status = do_job(&rank, err);
    if (status != WEFT_OK) weft_machine_give_up(&rank.machine);
    close_rank(&rank);
    return status;
}

/* Leaves the error for the launching process, which prints that of the rank that failed first. */
static void leave_error(int32_t rank, const struct weft_error *err)
{
    int fd = inherited_fd("WEFT_ERROR_FD");
    if (fd < 0) return;
    ssize_t written = pwrite(fd, err, sizeof *err, (off_t)rank * (off_t)sizeof *err);
    (void)written; /* the exit code still reports the failure */
}

static enum weft_status run_rank(const struct weft_cli *cli, struct weft_error *err)
{
    struct rank rank = {.cli = cli};
    weft_cli_progress_leave(cli);
    enum weft_status status = weft_rendezvous_from_environment(&rank.meeting, err);
    weft_rank_watch_init(&rank.watch,
                         rank.meeting.rank == 0 ? inherited_fd(WEFT_RANK_WATCH_NAME) : -1);
    if (status == WEFT_OK) status = read_description(&rank, err);
    if (status == WEFT_OK) status = do_job(&rank, err);
    if (status != WEFT_OK && rank.description) leave_error(rank.meeting.rank, err);
    if (status != WEFT_OK) weft_machine_give_up(&rank.machine);
    close_rank(&rank);
    weft_rendezvous_finish(&rank.meeting);
    return status;
}

const struct weft_command weft_command_rank = {
    .name = "rank",
    .usage = "",
    .summary = NULL, /* hidden */
    .told_elsewhere = true,
    .run = run_rank,
};
