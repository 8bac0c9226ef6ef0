/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/study/attempt.h"
#include "cli/study/others.h"
#include "cli/terminal.h"
#include "library/session.h"
#include "plan/plan.h"
#include "program/predict.h"
#include "report/explain.h"
#include "report/plan_report.h"
#include "report/study/first_line.h"
#include "scheduler/schedule.h"
#include "spec/kind.h"

/* Default limits of all replans together (AGAIN), the allowed range, and the accepted distance from
 * the bound. */
static const int64_t AGAIN_UNITS = INT64_C(1000000000);
static const double LEAST_UNITS = 1e6, MOST_UNITS = 1e15;
static const int64_t LEAST_NS = INT64_C(1000000), MOST_NS = INT64_C(86400000000000);
static const double GAP = 1e-4;

enum { PATH_BYTES = 4096 };

struct limits {
    int64_t units, time_ns;
};

/* Finds a step that no plan with rows within row_bytes improves by more than GAP; 0 if unknown. It
 * follows from the plan's bound, or from its certificate if row_bytes exceed the plan's limit. */
static enum weft_status find_enough(const struct weft_plan *plan, int64_t row_bytes,
                                    int64_t *enough_ns, struct weft_error *err)
{
    struct weft_problem problem = *plan->problem;
    struct weft_certificate certificate = plan->certificate;
    int64_t bound_ns = plan->bound_ns;
    if (row_bytes > problem.tiers[0].limit_bytes) {
        problem.tiers[0].limit_bytes = row_bytes;
        certificate.problem = weft_problem_hash(&problem);
        WEFT_TRY(weft_certificate_check(&certificate, &problem, 0, &bound_ns, err));
    }
    *enough_ns = (int64_t)((double)bound_ns * (1 + GAP));
    return WEFT_OK;
}

/* Plans with one block less than the plan's largest row, as much, and one block more. */
struct stairs {
    struct weft_problem problems[WEFT_STAIRS];
    struct weft_plan *plans[WEFT_STAIRS]; /* NULL: not planned, or no plan */
    struct weft_budget budget;
};

/* Returns the better step of the plan, if it fits, and of the plan with less memory; -1 for
 * neither. */
static int64_t find_known(const struct weft_plan *plan, const struct weft_plan *less,
                          int64_t row_bytes)
{
    int64_t step_ns = plan->prediction.peak_bytes <= row_bytes ? plan->prediction.step_ns : -1;
    if (less && (step_ns < 0 || less->prediction.step_ns < step_ns))
        step_ns = less->prediction.step_ns;
    return step_ns;
}

/* Finds one stair. It starts from the plan and the plan with less memory, so more memory is never
 * slower. If one of them is good enough, it plans nothing. */
static enum weft_status find_stair(const struct weft_plan *plan, struct stairs *stairs, int32_t i,
                                   int64_t row_bytes, int64_t *step_ns, struct weft_error *err)
{
    const struct weft_plan *less = i > 0 ? stairs->plans[i - 1] : NULL;
    const struct weft_plan *starts[] = {plan, less};
    struct weft_schedule_options options = {
        .planner = "ilp", .gap = GAP, .draft = true, .starts = starts, .n_starts = less ? 2 : 1};
    *step_ns = find_known(plan, less, row_bytes);
    WEFT_TRY(find_enough(plan, row_bytes, &options.enough_ns, err));
    if (*step_ns >= 0 && *step_ns <= options.enough_ns) return WEFT_OK;
    options.budget = weft_budget_part(stairs->budget, 1.0 / (WEFT_STAIRS - i));
    stairs->problems[i] = *plan->problem;
    stairs->problems[i].tiers[0].limit_bytes = row_bytes;
    WEFT_TRY(weft_study_attempt(&stairs->problems[i], &options, &stairs->plans[i], NULL, err));
    if (stairs->plans[i]) *step_ns = stairs->plans[i]->prediction.step_ns;
    return WEFT_OK;
}

static enum weft_status find_stairs(const struct weft_cli *cli, const struct weft_plan *plan,
                                    const struct limits *limits, int64_t step_ns[WEFT_STAIRS],
                                    struct weft_error *err)
{
    struct weft_work work = weft_work_begin(weft_clock_now_ns, limits->time_ns);
    int64_t block_bytes = weft_explain_stair_bytes(plan, weft_explain_dearest(plan));
    struct stairs stairs = {.budget = weft_budget_of(&work, limits->units)};
    enum weft_status status = WEFT_OK;
    weft_work_be_watched(&work, cli->watch, limits->units);
    weft_watch_begin(cli->watch, "explain");
    for (int32_t i = 0; i < WEFT_STAIRS && status == WEFT_OK; i++)
        status = find_stair(plan, &stairs, i, plan->prediction.peak_bytes + (i - 1) * block_bytes,
                            &step_ns[i], err);
    for (int32_t i = 0; i < WEFT_STAIRS; i++)
        weft_plan_destroy(stairs.plans[i]);
    weft_watch_end(cli->watch);
    weft_session_tell_disturbance(&work, limits->time_ns);
    return status;
}

/* The other choices of a plan. */
struct others {
    struct weft_other_study studies[WEFT_OTHER_KINDS];
    bool known[WEFT_OTHER_KINDS];
};

/* Opens the plan with its config and its profile, and finds its other choices. One micro-step has
 * one order. */
static enum weft_status find_others(const struct weft_cli *cli, const char *path,
                                    const struct limits *limits, struct weft_session *session,
                                    struct others *out, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    WEFT_TRY(weft_cli_read_config(cli, cli->config, session, err));
    if (weft_session_must_measure(session)) return weft_cli_refuse_plan(path, cli->config, err);
    WEFT_TRY(weft_session_stage(session, NULL, err));
    WEFT_TRY(weft_session_load(session, path, err));
    weft_watch_begin(cli->watch, "explain");
    for (int kind = 0; kind < WEFT_OTHER_KINDS && status == WEFT_OK; kind++) {
        if (kind == WEFT_OTHER_ORDER && session->plan->problem->period.n_micro < 2) continue;
        status = weft_other_study_make(session, (enum weft_other_kind)kind, limits->units,
                                       &out->studies[kind], err);
        out->known[kind] = status == WEFT_OK;
    }
    weft_watch_end(cli->watch);
    return status;
}

/* The config of a run's directory, with its profile: *own is the command line with both. False if
 * the operand is a plan's file or the command line names a config. */
static bool take_run(const struct weft_cli *cli, const char *path, char config[PATH_BYTES],
                     char profile[PATH_BYTES], struct weft_cli *own)
{
    const char *operand = cli->operands[0];
    *own = *cli;
    if (cli->config != NULL || strcmp(operand, path) == 0) return false;
    snprintf(config, PATH_BYTES, "%s/config.json", operand);
    snprintf(profile, PATH_BYTES, "%s/profile.json", operand);
    if (access(config, R_OK) != 0) return false;
    own->config = config;
    if (cli->profile == NULL && access(profile, R_OK) == 0) own->profile = profile;
    return true;
}

/* Adds the other choices. A run's directory that cannot tell them is no error. */
static enum weft_status explain_others(const struct weft_cli *cli, const struct weft_plan *plan,
                                       const char *path, const struct limits *limits,
                                       struct weft_answer *answer, struct weft_error *err)
{
    char config[PATH_BYTES], profile[PATH_BYTES];
    struct weft_cli own;
    struct weft_session session = {0};
    struct others others = {0};
    struct weft_error why = {0};
    enum weft_status status = WEFT_OK;
    const bool is_run = take_run(cli, path, config, profile, &own);
    if (own.config != NULL) status = find_others(&own, path, limits, &session, &others, &why);
    if (status == WEFT_E_DATA && is_run) {
        weft_log(WEFT_LOG_INFO, "other choices of the plan are not known: %s", why.text);
        status = WEFT_OK;
    }
    for (int kind = 0; kind < WEFT_OTHER_KINDS && status == WEFT_OK; kind++)
        weft_explain_other(plan, (enum weft_other_kind)kind,
                           others.known[kind] ? &others.studies[kind].found : NULL, answer);
    if (status != WEFT_OK) weft_fail_again(err, &why, "%s", why.text);
    for (int kind = 0; kind < WEFT_OTHER_KINDS; kind++)
        weft_other_study_finish(&others.studies[kind]);
    weft_session_close(&session);
    return status;
}

static enum weft_status explain_plan(const struct weft_cli *cli, const struct weft_plan *plan,
                                     const char *path, const struct limits *limits,
                                     struct weft_error *err)
{
    int64_t step_ns[WEFT_STAIRS];
    struct weft_answer answer = {0};
    WEFT_TRY(find_stairs(cli, plan, limits, step_ns, err));
    if (!cli->json) {
        weft_answer_plan(plan, 0, &answer);
        weft_report_plan(plan, &answer);
        weft_answer_say(&answer, NULL, "\n");
    }
    WEFT_TRY(explain_others(cli, plan, path, limits, &answer, err));
    weft_explain(plan, step_ns, cli->all ? INT32_MAX : WEFT_EXPLAIN_ROWS, &answer);
    return weft_cli_emit_answer(cli, &answer, err);
}

static enum weft_status read_time_limit(const char *text, int64_t *ns, struct weft_error *err)
{
    struct weft_error why = {0};
    *ns = 0;
    if (!text) return WEFT_OK;
    if (weft_units_ns(text, ns, &why) != WEFT_OK)
        return weft_fail(err, WEFT_E_USAGE, "--time-limit %s: %s", text, why.text);
    if (*ns >= LEAST_NS && *ns <= MOST_NS) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE, "--time-limit %s: a time from 1ms to 86400s", text);
}

static enum weft_status read_limits(const struct weft_cli *cli, struct limits *out,
                                    struct weft_error *err)
{
    struct weft_error why = {0};
    double units = (double)AGAIN_UNITS;
    WEFT_TRY(read_time_limit(cli->time_limit, &out->time_ns, err));
    if (cli->work_limit && weft_units_count(cli->work_limit, &units, &why) != WEFT_OK)
        return weft_fail(err, WEFT_E_USAGE, "--work-limit %s: %s", cli->work_limit, why.text);
    if (units < LEAST_UNITS || units > MOST_UNITS)
        return weft_fail(err, WEFT_E_USAGE, "--work-limit %s: work from 1M to 1P", cli->work_limit);
    out->units = weft_work_within((int64_t)units, out->time_ns);
    return WEFT_OK;
}

/* The plan's file: the operand, or plan.json of a run's directory. */
static enum weft_status find_plan(const char *operand, char path[PATH_BYTES],
                                  struct weft_error *err)
{
    struct stat about;
    const bool is_run = stat(operand, &about) == 0 && S_ISDIR(about.st_mode);
    const int n = snprintf(path, PATH_BYTES, "%s%s", operand, is_run ? "/plan.json" : "");
    if (n < 0 || n >= PATH_BYTES)
        return weft_fail(err, WEFT_E_USAGE, "%.60s...: the path is too long", operand);
    if (!is_run || access(path, F_OK) == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_NO_INPUT,
                     "%s: is a folder without a plan.json: give a plan, or the directory of a run "
                     "that has begun",
                     operand);
}

/* Prints the recipe of a kind as JSON, an element of "model.kinds". */
static enum weft_status explain_kind(const struct weft_cli *cli, struct weft_error *err)
{
    const char *names[WEFT_KIND_COUNT];
    size_t n = 0;
    const struct weft_kind *kind = weft_kind_find(NULL, cli->kind);
    struct weft_text text;
    struct weft_json_writer writer;
    if (kind == NULL || kind->recipe == NULL) {
        for (int32_t i = 0; i < WEFT_KIND_COUNT; i++)
            if (weft_kind_at(i)->recipe != NULL) names[n++] = weft_kind_at(i)->type;
        const char *near = weft_field_nearest(cli->kind, names, n);
        return weft_fail(err, WEFT_E_USAGE, "--kind %.60s: %s; %s%s%s", cli->kind,
                         kind != NULL ? "this type is for planning alone and has no recipe"
                                      : "there is no such type of layer",
                         near != NULL ? "did you mean \"" : "docs/keys.md lists all types",
                         near != NULL ? near : "", near != NULL ? "\"?" : "");
    }
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 2);
    weft_kind_encode(kind, &writer);
    weft_text_add(&text, "\n");
    const enum weft_status status = weft_text_ok(&text) ? weft_cli_emit_bytes(cli, &text, err)
                                                        : weft_fail_memory(err, "a recipe");
    weft_text_finish(&text);
    return status;
}

/* Limits of work and time are of this verb, and also overrides. */
static enum weft_status need_config(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_cli other = *cli;
    other.n_overrides = 0;
    for (int32_t i = 0; i < cli->n_overrides; i++)
        other.n_overrides += strncmp(cli->overrides[i], "plan.work_limit=", 16) != 0 &&
                             strncmp(cli->overrides[i], "plan.time_limit=", 16) != 0;
    return weft_cli_need_config(&other, err);
}

static enum weft_status run_explain(const struct weft_cli *cli, struct weft_error *err)
{
    if (cli->kind != NULL && cli->n_operands > 0)
        return weft_fail(err, WEFT_E_USAGE, "--kind and a PLAN: give one of them");
    if (cli->kind != NULL) return explain_kind(cli, err);
    if (cli->n_operands == 0)
        return weft_fail(err, WEFT_E_USAGE, "give a PLAN, or a type of layer with --kind NAME");
    struct limits limits;
    struct weft_plan *plan = NULL;
    char path[PATH_BYTES];
    WEFT_TRY(need_config(cli, err));
    WEFT_TRY(read_limits(cli, &limits, err));
    WEFT_TRY(find_plan(cli->operands[0], path, err));
    enum weft_status status = weft_plan_read(path, &plan, err);
    if (status == WEFT_OK) status = weft_plan_check_claims(plan, path, err);
    if (status == WEFT_OK) status = explain_plan(cli, plan, path, &limits, err);
    weft_plan_destroy(plan);
    return status;
}

const struct weft_command weft_command_explain = {
    .name = "explain",
    .usage = "[PLAN]",
    .summary = "why each block sits where it does, and what units cost; recipes",
    .details =
        "PLAN is a file, or the directory of a run, for its plan.json.\n"
        "For every unit its policy, blocks and channel time; for every block in channel order its\n"
        "launch, its deadline and what keeps it from moving: its window, memory (which slot would\n"
        "overflow, by how much), the channel's order (after or before which block), the "
        "channel\n"
        "being busy (with which block), or nothing. And what a block of memory more or less does "
        "to\n"
        "the step, by planning again without solver and pages where the plan's bound does not "
        "tell;\nwith at most --work-limit (1G, about a second) together, and with an\n"
        "alarm after --time-limit, if that is given. Tables are cut after 20 rows, unless --all "
        "is\n"
        "given.\n"
        "With --config CONFIG, or of a run's directory: what the other order of micro-steps costs\n"
        "(plan.micro_step_order), and the other place of updates (plan.update_in), each with as\n"
        "much work again. It names the step and its bound, the lane that binds, the fullest slot,\n"
        "and the least limit.\n"
        "With --kind NAME it prints the recipe of a layer type of Weft's, as JSON: an element to\n"
        "copy into model.kinds of a config (docs/recipes.md).",
    .flags = "--all --work-limit --time-limit --kind --config --set --model --cluster --layers "
             "--ranks --seed --profile --memory-limit",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_explain,
};
