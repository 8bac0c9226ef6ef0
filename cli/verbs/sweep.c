/* SPDX-License-Identifier: Apache-2.0 */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commit.h"
#include "cli/job/hosts.h"
#include "cli/job/rank.h"
#include "cli/study/sweep.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "runtime/train/train.h"
#include "spec/kind.h"

/* Policies within M1 from the least to the limit, and the joint plan within the limit. */
static enum weft_status lay_out_split(struct weft_study *study, struct weft_error *err)
{
    const int64_t limit_bytes = study->session.config->cluster.memory_limit_bytes;
    const int32_t n = study->n_limits;
    int64_t least_bytes;
    if (limit_bytes == 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "--split divides a memory limit: give cluster.memory_limit or "
                         "--memory-limit");
    WEFT_TRY(weft_study_find_least(study, &least_bytes, err));
    if (least_bytes > limit_bytes) least_bytes = limit_bytes; /* no plan fits then */
    for (int32_t i = 0; i < n; i++)
        study->limits[i] = limit_bytes;
    weft_study_add_curve(study, study->planners[0], n);
    weft_study_add_curve(study, study->planners[1], 1);
    study->sweep.split = true;
    WEFT_TRY(weft_study_make_rows(study, err));
    for (int32_t i = 0; i < n; i++)
        study->curves[0].points[i].policy_limit_bytes =
            n == 1 ? limit_bytes
                   : least_bytes + (int64_t)((double)(limit_bytes - least_bytes) * i / (n - 1));
    return WEFT_OK;
}

static enum weft_status lay_out(struct weft_study *study, struct weft_error *err)
{
    if (study->cli->split) return lay_out_split(study, err);
    if (!study->cli->limits) WEFT_TRY(weft_study_find_limits(study, err));
    study->sweep.grid = study->n_hosts > 0;
    if (study->sweep.grid && !study->hosts_given) WEFT_TRY(weft_study_choose_hosts(study, err));
    for (int32_t i = 0; i < study->n_hosts; i++)
        weft_study_add_curve(study, study->planners[0], study->n_limits);
    for (int32_t i = 0; !study->sweep.grid && i < study->n_planners; i++)
        weft_study_add_curve(study, study->planners[i], study->n_limits);
    for (int32_t i = 0; i < study->n_rivals; i++)
        weft_study_add_curve(study, study->rivals[i].planner, study->n_limits);
    return weft_study_make_rows(study, err);
}

/* True if a person looks at a terminal that shows marks beyond ASCII. */
static bool shows_unicode(const struct weft_cli *cli)
{
    if (cli->output || !isatty(STDOUT_FILENO)) return false;
    setlocale(LC_CTYPE, "");
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    setlocale(LC_CTYPE, "C");
    return unicode;
}

static enum weft_status write_file(const char *path, const struct weft_text *text,
                                   struct weft_error *err)
{
    if (path == NULL) return WEFT_OK;
    return weft_text_ok(text) ? weft_file_write(path, weft_text_chars(text), text->length, err)
                              : weft_fail_memory(err, path);
}

static enum weft_status print_report(const struct weft_study *study, struct weft_answer *answer,
                                     struct weft_error *err)
{
    const struct weft_cli *cli = study->cli;
    struct weft_text out;
    if (cli->json) return weft_cli_emit_answer(cli, answer, err);
    weft_cli_report_init(cli, cli->output, &out);
    weft_answer_text(answer, &out);
    if (!weft_hosts_are_ours()) weft_load_add(&study->load, &out);
    weft_text_add(&out, "\n");
    weft_sweep_chart(&study->sweep, out.columns, shows_unicode(cli), &out);
    const enum weft_status status = weft_cli_emit(cli, &out, err);
    weft_text_finish(&out);
    return status;
}

/* Results are many plans and runs, so they are printed before any file is written. A failure keeps
 * no other file from being written; the first one is told. */
static enum weft_status write_results(const struct weft_study *study, struct weft_error *err)
{
    const struct weft_cli *cli = study->cli;
    struct weft_answer answer = {0};
    struct weft_text csv, svg;
    struct weft_error later = {0};
    enum weft_status status = WEFT_OK, failure;
    weft_text_init(&csv);
    weft_text_init(&svg);
    weft_sweep_report(&study->sweep, &answer);
    weft_answer_csv(&answer, &csv);
    if (cli->svg) weft_sweep_svg(&study->sweep, &svg);
    if (!weft_study_is_stdout(cli->csv) && !weft_study_is_stdout(cli->svg))
        status = print_report(study, &answer, err);
    failure = write_file(cli->csv, &csv, status == WEFT_OK ? err : &later);
    if (status == WEFT_OK) status = failure;
    failure = write_file(cli->svg, &svg, status == WEFT_OK ? err : &later);
    weft_answer_finish(&answer);
    weft_text_finish(&csv);
    weft_text_finish(&svg);
    return status == WEFT_OK ? failure : status;
}

/* Opens the kept results, next to the first file that is asked for. */
static void open_kept(struct weft_study *study)
{
    const struct weft_cli *cli = study->cli;
    const char *const files[] = {cli->csv, cli->output, cli->svg};
    const char *file = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files && !file; i++)
        if (!weft_study_is_stdout(files[i])) file = files[i];
    weft_study_keep(cli, study->session.config, file, &study->kept);
}

/* Adds the facts of the sweep for its reports. Only the picture needs the least memory. */
static enum weft_status describe_sweep(struct weft_study *study, struct weft_text *title,
                                       struct weft_error *err)
{
    struct weft_sweep *sweep = &study->sweep;
    if (study->cli->svg) WEFT_TRY(weft_study_find_least(study, &sweep->least_bytes, err));
    if (sweep->least_bytes == INT64_MAX) sweep->least_bytes = 0;
    sweep->config = study->cli->operands[0];
    sweep->curves = study->curves;
    sweep->times = study->stages[0].problem->profile_source;
    sweep->ranks = study->stages[0].problem->ranks;
    sweep->emulated = weft_config_emulates(study->session.config);
    weft_sweep_title(study->session.config, sweep->times, WEFT_VERSION " (" WEFT_BUILD_COMMIT ")",
                     title);
    sweep->title = weft_text_chars(title);
    return weft_text_ok(title) ? WEFT_OK : weft_fail_memory(err, "a title");
}

static enum weft_status make_sweep(struct weft_study *study, struct weft_text *title,
                                   struct weft_error *err)
{
    const struct weft_cli *cli = study->cli;
    const struct weft_place everywhere = {0};
    char hash[WEFT_HASH_TEXT_BYTES];
    WEFT_TRY(weft_study_read_options(study, err));
    WEFT_TRY(weft_place_open(cli, &everywhere, &study->session, err));
    WEFT_TRY(weft_study_check_planners(study, err));
    if (cli->measure) WEFT_TRY(weft_train_check(study->session.config, err));
    open_kept(study);
    WEFT_TRY(weft_study_measure(study, err));
    WEFT_TRY(weft_session_stage(&study->session, NULL, err));
    WEFT_TRY(weft_study_stage(study, err));
    study->kept.base = weft_kept_key(&study->kept, "profile %s",
                                     weft_hash_show(study->session.profile->hash, hash));
    weft_session_tell_inputs(&study->session, cli->measure, study->times.path[0] != '\0');
    WEFT_TRY(lay_out(study, err));
    WEFT_TRY(describe_sweep(study, title, err));
    WEFT_TRY(weft_study_plan(study, err));
    if (cli->measure) WEFT_TRY(weft_study_run(study, err));
    WEFT_TRY(write_results(study, err));
    weft_kept_remove(&study->kept);
    for (int32_t i = 0; i < study->n_rows; i++)
        if (study->rows[i].point->fits) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE, "no planner has a plan within any of the limits");
}

static enum weft_status run_points(const struct weft_cli *cli, struct weft_error *err)
{
    static struct weft_study study;
    struct weft_text title;
    struct weft_error why = {0};
    study = (struct weft_study){.cli = cli, .times.fd = -1};
    weft_text_init(&title);
    enum weft_status status = make_sweep(&study, &title, &why);
    if (status == WEFT_E_STOPPED)
        weft_study_tell_stop(&study.kept, "--csv FILE", &why, err);
    else if (status != WEFT_OK)
        *err = why;
    for (int32_t i = 0; study.rows != NULL && i < study.n_rows; i++)
        weft_text_finish(&study.rows[i].plan);
    for (int32_t v = 0; v < study.n_periods; v++)
        weft_stages_finish(&study.stages[v]);
    weft_times_finish(&study.times);
    weft_text_finish(&title);
    weft_session_close(&study.session);
    weft_pool_finish(&study.pool);
    return status;
}

static enum weft_status run_sweep(const struct weft_cli *cli, struct weft_error *err)
{
    return cli->measure ? weft_hosts_run(cli, run_points, weft_rank_work, err)
                        : run_points(cli, err);
}

const struct weft_command weft_command_sweep = {
    .name = "sweep",
    .usage = "CONFIG",
    .summary = "memory limit against step time, for every planner",
    .details =
        "Plans the config at N limits (9 unless said), from the least that fits up to the limit\n"
        "above which more memory shortens no step. With --to all the last limit is the least at\n"
        "which every planner has a plan. --limits names the limits. All planners but random and\n"
        "seed-ilp take part, or those of --planners. --rival adds plans by other programs. Plans "
        "are made on all cores (--jobs N: N\n"
        "processes). Each point has its step time and the bound below which no plan can be. A\n"
        "planner without any plan is named below the table. Where ilp is slower than at the limit\n"
        "before, it plans again from that plan, from the least limit up.\n"
        "--split keeps one limit and compares two-stage, with policies chosen within a part of "
        "it,\n"
        "with the joint plan. --measure trains each plan on local ranks too, with --repeat N in\n"
        "turns: A B C, B C A. A point has the median, and measured_spread_ns. --host-points N or\n"
        "--host-limits A,B make a grid of one planner (ilp unless --planners names another): each\n"
        "of these limits of the host's memory (cluster.host) with each memory limit of the "
        "device.\n"
        "The shares of parameters by policy and location of their state, and of saved "
        "activations,\n"
        "are those of the first planner in the table, and of all planners in --json.\n"
        "Prints a table and a picture, or --json. --csv FILE and --svg FILE write the same\n"
        "figures. Each plan and run is kept in the folder FILE.sweep next to the first of these\n"
        "files (or of -o). The folder goes when all is written. If the sweep is stopped, the same\n"
        "command goes on from there.",
    .flags =
        "--set --model --cluster --layers --ranks --seed --profile --memory-limit --work-limit "
        "--time-limit --gap "
        "--planners --rival --points "
        "--to --limits --host-points --host-limits --jobs --csv --svg --split --measure --repeat",
    .least_operands = 1,
    .most_operands = 1,
    .measures_hosts = true,
    .run = run_sweep,
};
