/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/job/tracing.h"
#include "cli/study/run_as.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "library/rival.h"
#include "library/session.h"
#include "program/predict.h"
#include "report/jitter.h"
#include "report/plan_report.h"
#include "spec/target.h"

/* Writes the trace of the program that the config makes from the plan. */
static enum weft_status write_trace(const struct weft_cli *cli, const struct weft_session *session,
                                    struct weft_error *err)
{
    if (session->program == NULL)
        return weft_fail(err, WEFT_E_USAGE,
                         "--trace: a plan for %s has no program of Weft's to trace; leave the flag "
                         "out",
                         weft_config_target(session->config)->title);
    return weft_tracing_simulate(cli->trace, session->program, session->plan, err);
}

/* Checks the plan against --config, and writes the trace if asked. */
static enum weft_status simulate_program(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_session session = {0};
    enum weft_status status = weft_cli_read_config(cli, cli->config, &session, err);
    if (status == WEFT_OK && weft_session_must_measure(&session))
        status = weft_cli_refuse_plan(cli->operands[0], cli->config, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK) weft_session_tell_inputs(&session, false, false);
    if (status == WEFT_OK) status = weft_session_load(&session, cli->operands[0], err);
    if (status == WEFT_OK && cli->trace) status = write_trace(cli, &session, err);
    weft_session_close(&session);
    return status;
}

/* Replaces the plan by the one that FSDP2 runs, which borrows from `run`. */
static enum weft_status simulate_as(const struct weft_cli *cli, struct weft_plan *plan,
                                    struct weft_run_as *run, struct weft_error *err)
{
    struct weft_fsdp2 *fsdp2 = NULL;
    WEFT_TRY(weft_fsdp2_create(plan, cli->operands[0], &fsdp2, err));
    enum weft_status status = WEFT_OK;
    if (fsdp2->n_sentences > 0 && !cli->force)
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: FSDP2 cannot follow this plan in %d points. %s --force simulates "
                           "the nearest",
                           cli->operands[0], fsdp2->n_sentences, fsdp2->sentences[0]);
    if (status == WEFT_OK) status = weft_run_as_fsdp2(cli, fsdp2, run, err);
    if (status == WEFT_OK && !cli->force) status = weft_run_as_check(run, cli->operands[0], err);
    weft_fsdp2_destroy(fsdp2);
    return status;
}

/* Reads a number of --jitter's flags; NULL: unchanged. */
static enum weft_status read_jitter_number(const char *flag, const char *value, int64_t least,
                                           int64_t *out, struct weft_error *err)
{
    enum { MOST = 1000000 };
    char *end = NULL;
    if (value == NULL) return WEFT_OK;
    const long long n = strtoll(value, &end, 10);
    if (*value == '\0' || *end != '\0' || n < least || n > MOST)
        return weft_fail(err, WEFT_E_USAGE, "%s %s: a whole number from %lld to %d", flag, value,
                         (long long)least, MOST);
    *out = n;
    return WEFT_OK;
}

static enum weft_status read_jitter(const struct weft_cli *cli, struct weft_jitter_report *report,
                                    struct weft_error *err)
{
    enum { MOST_CV = 10, STEPS = 100 };
    char *end = NULL;
    int64_t seed = 0;
    report->n_steps = STEPS;
    if (cli->jitter == NULL && (cli->jitter_steps || cli->jitter_seed))
        return weft_fail(err, WEFT_E_USAGE, "%s goes with --jitter CV",
                         cli->jitter_steps ? "--jitter-steps" : "--jitter-seed");
    if (cli->jitter == NULL) return WEFT_OK;
    const double cv = strtod(cli->jitter, &end);
    if (*cli->jitter == '\0' || *end != '\0' || !(cv >= 0 && cv <= MOST_CV))
        return weft_fail(err, WEFT_E_USAGE,
                         "--jitter %s: a standard deviation over the mean, from 0 (none) to %d, "
                         "such as 0.05",
                         cli->jitter, MOST_CV);
    report->factors.cv = cv;
    WEFT_TRY(read_jitter_number("--jitter-steps", cli->jitter_steps, 1, &report->n_steps, err));
    WEFT_TRY(read_jitter_number("--jitter-seed", cli->jitter_seed, 0, &seed, err));
    report->factors.seed = (uint64_t)seed;
    return WEFT_OK;
}

/* Refuses flags that do not go together. */
static enum weft_status check_flags(const struct weft_cli *cli, struct weft_error *err)
{
    if (cli->trace && !cli->config)
        return weft_fail(err, WEFT_E_USAGE,
                         "--trace needs --config: instructions and addresses are lowered from the "
                         "plan and the config that it was made for");
    if (cli->as && strcmp(cli->as, weft_targets[WEFT_FOR_FSDP2].name) != 0 &&
        strcmp(cli->as, weft_targets[WEFT_FOR_FSDP2_BLOCKING].name) != 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "--as %s: no such runtime; fsdp2, or fsdp2-blocking on a host that waits",
                         cli->as);
    if (cli->as && cli->trace)
        return weft_fail(
            err, WEFT_E_USAGE,
            "--trace: a plan as FSDP2 runs it has no program of Weft's to trace; leave "
            "one of --trace and --as out");
    if (cli->force && !cli->as)
        return weft_fail(err, WEFT_E_USAGE, "--force: goes with --as, which may refuse a plan");
    return WEFT_OK;
}

/* Adds the report of a plan, and of its random steps if asked. */
static enum weft_status report_plan(const struct weft_cli *cli, const struct weft_plan *plan,
                                    struct weft_jitter_report *jitter, struct weft_answer *answer,
                                    struct weft_error *err)
{
    if (cli->jitter)
        WEFT_TRY(weft_simulate_jitter(plan, weft_jitter_lognormal(&jitter->factors),
                                      jitter->n_steps, &jitter->steps, err));
    weft_report_plan(plan, answer);
    if (cli->jitter) weft_report_jitter(plan, jitter, answer);
    return WEFT_OK;
}

/* Judges a rival's plans for --config, and reports the fastest. */
static enum weft_status simulate_rival(const struct weft_cli *cli, const struct weft_text *file,
                                       struct weft_jitter_report *jitter,
                                       struct weft_answer *answer, struct weft_error *err)
{
    struct weft_session session = {0};
    if (!cli->config || cli->as)
        return weft_fail(err, WEFT_E_USAGE, "%s: is a rival: %s", cli->operands[0],
                         cli->as ? "leave out --as, which runs plans of Weft"
                                 : "name the config that it plans with --config");
    enum weft_status status = weft_cli_read_config(cli, cli->config, &session, err);
    if (status == WEFT_OK && weft_session_must_measure(&session))
        status = weft_cli_refuse_plan(cli->operands[0], cli->config, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK) weft_session_tell_inputs(&session, false, false);
    if (status == WEFT_OK)
        status =
            weft_rival_take(&session, weft_text_chars(file), file->length, cli->operands[0], err);
    if (status == WEFT_OK && cli->trace) status = write_trace(cli, &session, err);
    if (status == WEFT_OK) status = report_plan(cli, session.plan, jitter, answer, err);
    weft_session_close(&session);
    return status;
}

/* Simulates a plan's file. */
static enum weft_status simulate_plan(const struct weft_cli *cli, const struct weft_text *file,
                                      struct weft_jitter_report *jitter, struct weft_answer *answer,
                                      struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_run_as run = {0};
    struct weft_error why = {0};
    enum weft_status status =
        weft_plan_parse(weft_text_chars(file), file->length, cli->operands[0], &plan, err);
    if (status == WEFT_OK) status = weft_plan_check_rows(plan, cli->operands[0], err);
    if (status == WEFT_OK) {
        /* Only lowering knows the arena's size, so the plan's figures stay. */
        struct weft_prediction before = plan->prediction;
        status = weft_plan_predict(plan, err);
        plan->prediction.arena_bytes = before.arena_bytes;
        plan->prediction.total_bytes = before.total_bytes;
    }
    if (status == WEFT_OK && weft_plan_check_bounds(plan, &why) != WEFT_OK)
        status = weft_fail_in(err, &why, cli->operands[0]);
    if (status == WEFT_OK && cli->config) status = simulate_program(cli, err);
    if (status == WEFT_OK && cli->as) status = simulate_as(cli, plan, &run, err);
    if (status == WEFT_OK)
        status = report_plan(cli, run.plan ? run.plan : plan, jitter, answer, err);
    weft_run_as_finish(&run);
    weft_plan_destroy(plan);
    return status;
}

static enum weft_status run_simulate(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text file;
    char *bytes = NULL;
    size_t length = 0;
    struct weft_jitter_report jitter = {0};
    struct weft_answer answer = {0};
    WEFT_TRY(weft_cli_need_config(cli, err));
    WEFT_TRY(check_flags(cli, err));
    WEFT_TRY(read_jitter(cli, &jitter, err));
    WEFT_TRY(weft_file_read(cli->operands[0], INT64_C(1) << 30, &bytes, &length, err));
    weft_text_init(&file);
    weft_text_append(&file, bytes, length);
    free(bytes);
    enum weft_status status = !weft_text_ok(&file) ? weft_fail_memory(err, cli->operands[0])
                              : weft_rival_is(weft_text_chars(&file), file.length)
                                  ? simulate_rival(cli, &file, &jitter, &answer, err)
                                  : simulate_plan(cli, &file, &jitter, &answer, err);
    weft_text_finish(&file);
    if (status == WEFT_OK) status = weft_cli_emit_answer(cli, &answer, err);
    weft_answer_finish(&answer);
    return status;
}

const struct weft_command weft_command_simulate = {
    .name = "simulate",
    .usage = "PLAN",
    .summary = "replays a plan in the cost model",
    .details =
        "The same event-by-event replay that judges every planner. --trace writes a Chrome\n"
        "trace (Perfetto) of all lanes, of launches and of memory by category. With --config\n"
        "the plan must be that config's. --as fsdp2 simulates the plan as PyTorch's FSDP2 "
        "runs it:\n"
        "whole units, its hooks and prefetch lists, and memory as it holds it. A plan that "
        "was not made\n"
        "--for fsdp2 needs --config. Exit 78 if FSDP2 needs more than the plan's limit; "
        "--force\n"
        "simulates it. PLAN may also be a rival, a file of plans by another program for --config\n"
        "(docs/rivals.md). --jitter simulates every rank with random compute times: log-normal "
        "with the\n"
        "planned mean, a draw for each step, rank and slot. A collective waits for the last "
        "of its ranks.",
    .flags =
        "--config --trace --set --model --cluster --layers --ranks --seed --profile --memory-limit "
        "--for --as "
        "--force --jitter --jitter-steps --jitter-seed",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_simulate,
};
