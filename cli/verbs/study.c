/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/job/hosts.h"
#include "cli/job/rank.h"
#include "cli/study/cases.h"
#include "cli/terminal.h"
#include "report/study/hypotheses.h"

static enum weft_status write_file(const struct weft_cli *cli, const char *name,
                                   struct weft_text *text, struct weft_error *err)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", cli->output, name);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(text)) status = weft_fail_memory(err, name);
    if (length < 0 || (size_t)length >= sizeof path)
        status = weft_fail(err, WEFT_E_USAGE, "-o %s: the path is too long", cli->output);
    if (status == WEFT_OK) status = weft_file_write(path, weft_text_chars(text), text->length, err);
    weft_text_finish(text);
    return status;
}

/* Writes the files of points: CSV with its schema. */
static enum weft_status write_points(const struct weft_cli *cli, const struct weft_cases *cases,
                                     struct weft_error *err)
{
    struct weft_answer points = {0};
    struct weft_text csv, schema;
    weft_text_init(&csv);
    weft_text_init(&schema);
    weft_cases_put_points(cases, &points);
    weft_answer_csv(&points, &csv);
    weft_answer_finish(&points);
    weft_cases_schema(&schema);
    const enum weft_status status = write_file(cli, "study.csv", &csv, err);
    if (status != WEFT_OK) weft_text_finish(&schema);
    WEFT_TRY(status);
    return write_file(cli, "study.schema.json", &schema, err);
}

static enum weft_status write_figures(const struct weft_cli *cli, const struct weft_cases *cases,
                                      struct weft_error *err)
{
    struct weft_text svg, gains, measured, gnuplot;
    weft_text_init(&svg);
    weft_cases_svg(cases, WEFT_CASE_SIMULATED, &svg);
    WEFT_TRY(write_file(cli, "study.svg", &svg, err));
    weft_text_init(&gains);
    weft_cases_gains_svg(cases, &gains);
    WEFT_TRY(write_file(cli, "study.gains.svg", &gains, err));
    if (cli->measure) {
        weft_text_init(&measured);
        weft_cases_svg(cases, WEFT_CASE_MEASURED, &measured);
        WEFT_TRY(write_file(cli, "study.measured.svg", &measured, err));
    }
    weft_text_init(&gnuplot);
    weft_cases_gnuplot(cases, &gnuplot);
    return write_file(cli, "study.gp", &gnuplot, err);
}

/* Writes all files, and prints the report, which is one of them. */
static enum weft_status write_results(const struct weft_cli *cli, const struct weft_cases *cases,
                                      struct weft_error *err)
{
    struct weft_cli to_stdout = *cli;
    struct weft_answer answer = {0};
    struct weft_text text;
    to_stdout.output = NULL;
    weft_text_init(&text);
    weft_cases_report(cases, &answer);
    weft_hypotheses_report(cases, WEFT_CASE_SIMULATED, &answer);
    weft_hypotheses_report(cases, WEFT_CASE_MEASURED, &answer);
    weft_answer_text(&answer, &text);
    enum weft_status status = write_points(cli, cases, err);
    if (status == WEFT_OK) status = write_figures(cli, cases, err);
    if (status == WEFT_OK)
        status = write_file(cli, "study.txt", &text, err);
    else
        weft_text_finish(&text);
    if (status == WEFT_OK) return weft_cli_emit_answer(&to_stdout, &answer, err);
    weft_answer_finish(&answer);
    return status;
}

/* A folder that is empty after a failure goes, unless it was there before. */
static enum weft_status make_study(struct weft_case_plans *plans, struct weft_error *err)
{
    const char *folder = plans->cli->output;
    WEFT_TRY(weft_cases_read_options(plans, err));
    const bool was_there = access(folder, F_OK) == 0;
    WEFT_TRY(weft_file_make_directory(folder, err));
    enum weft_status status = weft_cases_plan(plans, err);
    if (status == WEFT_OK) status = write_results(plans->cli, &plans->cases, err);
    if (status == WEFT_OK) weft_kept_remove(&plans->kept);
    if (status != WEFT_OK && !was_there) (void)rmdir(folder);
    return status;
}

static enum weft_status run_cases(const struct weft_cli *cli, struct weft_error *err)
{
    static struct weft_case_plans plans;
    struct weft_error why = {0};
    plans = (struct weft_case_plans){.cli = cli};
    const enum weft_status status = make_study(&plans, &why);
    if (status == WEFT_E_STOPPED)
        weft_study_tell_stop(&plans.kept, "-o DIR", &why, err);
    else if (status != WEFT_OK)
        *err = why;
    weft_pool_finish(&plans.pool);
    return status;
}

static enum weft_status run_study(const struct weft_cli *cli, struct weft_error *err)
{
    return cli->measure ? weft_hosts_run(cli, run_cases, weft_rank_work, err) : run_cases(cli, err);
}

const struct weft_command weft_command_study = {
    .name = "study",
    .usage = "CONFIG...",
    .summary = "models, networks, limits and planners, and three hypotheses about memory",
    .details =
        "Plans each config over each network (--networks 0.25,1,4: factors of its bandwidths) at "
        "N\n"
        "limits (7 unless said) by several planners, and divides each limit between policies and\n"
        "scheduling: two-stage chooses policies within a smaller limit. Says how ilp compares "
        "with\n"
        "every planner and with the best rule, and on how many lines of divisions three "
        "hypotheses\n"
        "hold: more memory for scheduling shortens the step and saturates, less memory for "
        "policies\n"
        "lengthens the step, and the best division lies in between (docs/study.md).\n"
        "-o DIR gets study.csv with its schema, study.txt, study.gains.svg (gain over the best "
        "rule,\n"
        "and bands of policies by limit), and the figure of two panels as "
        "study.svg\n"
        "and as study.gp for gnuplot. The same study writes the same bytes. Each plan is kept in\n"
        "DIR/study.sweep until all files are written, so the same command goes on after a stop.\n"
        "--measure trains each plan on local ranks too, with --repeat N in turns (A B C, B C A) "
        "and\n"
        "without the first two steps. The machine is measured before and after the runs, unless\n"
        "--profile has its times. Points whose steps differ by more than 2 % run again. Measured\n"
        "steps have a table, verdicts and study.measured.svg of their own.",
    .flags = "--networks --planners --rival --points --limits --jobs --measure --repeat --profile "
             "--set --cluster --layers "
             "--ranks --seed --work-limit --time-limit --gap",
    .least_operands = 1,
    .most_operands = WEFT_CLI_OPERANDS,
    .measures_hosts = true,
    .run = run_study,
};
