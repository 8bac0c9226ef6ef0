/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/study/rank_plans.h"
#include "cli/study/refusal.h"
#include "cli/terminal.h"
#include "library/foreign.h"
#include "library/rival.h"
#include "library/session.h"
#include "library/target_cost.h"
#include "program/program_text.h"
#include "report/offloaded.h"
#include "report/plan_report.h"
#include "report/study/first_line.h"
#include "spec/target.h"

static void fill_answer(const struct weft_session *session, struct weft_answer *out)
{
    const struct weft_train *train = &session->config->train;
    const int64_t step_ns = session->plan->prediction.step_ns;
    const double tokens = (double)(train->micro_batch * train->grad_accum * train->seq_len) *
                          (double)session->config->cluster.ranks;
    weft_answer_plan(session->plan, step_ns > 0 ? 1e9 * tokens / (double)step_ns : 0, out);
    weft_report_plan(session->plan, out);
    weft_report_wear(session->plan, session->config->cluster.disk.endurance_bytes, out);
    if (session->program) weft_report_mappings(session->program, out);
}

/* Writes one document. --program adds the instructions to text; in JSON they make an object
 * {"plan": ..., "program": ...}. */
static void render_answer(const struct weft_cli *cli, const struct weft_session *session,
                          const struct weft_answer *answer, struct weft_text *out)
{
    struct weft_json_writer writer;
    if (!cli->json) {
        weft_answer_text(answer, out);
        if (cli->program_dump) weft_program_dump(session->program, session->plan, out);
        return;
    }
    if (cli->program_dump) weft_text_add(out, "{\"plan\": ");
    weft_json_writer_init(&writer, out, 2);
    weft_answer_json(answer, &writer);
    if (cli->program_dump) {
        weft_text_add(out, ",\n\"program\": ");
        weft_program_write(session->program, out);
        weft_text_add(out, "}");
    }
    weft_text_add(out, "\n");
}

/* Keeps the measured profile next to the plan. Commands that read the plan with its config need
 * these times. */
static enum weft_status keep_profile(const struct weft_cli *cli, const struct weft_profile *profile,
                                     struct weft_error *err)
{
    struct weft_text path, text;
    if (!cli->output || strcmp(cli->output, "-") == 0) return WEFT_OK;
    weft_text_init(&path);
    weft_text_init(&text);
    weft_cli_name_profile(cli->output, &path);
    weft_profile_write(profile, &text);
    enum weft_status status =
        weft_text_ok(&path) && weft_text_ok(&text)
            ? weft_file_write(weft_text_chars(&path), weft_text_chars(&text), text.length, err)
            : weft_fail_memory(err, "a profile");
    if (status == WEFT_OK)
        weft_log(WEFT_LOG_INFO, "measured times kept: --profile %s for what reads the plan",
                 weft_text_chars(&path));
    weft_text_finish(&path);
    weft_text_finish(&text);
    return status;
}

static enum weft_status stage_session(const struct weft_cli *cli, struct weft_session *session,
                                      struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    if (!weft_cli_measures(session)) {
        WEFT_TRY(weft_session_stage(session, NULL, err));
        weft_session_tell_inputs(session, false, false);
        return WEFT_OK;
    }
    WEFT_TRY(weft_cli_measure(session, &profile, err));
    enum weft_status status = keep_profile(cli, profile, err);
    if (status != WEFT_OK) {
        weft_profile_destroy(profile);
        return status;
    }
    WEFT_TRY(weft_session_stage(session, profile, err));
    weft_session_tell_inputs(session, false, true);
    return WEFT_OK;
}

/* Refuses to show a program that there is not. */
static enum weft_status check_program(const struct weft_session *session, struct weft_error *err)
{
    const struct weft_target *target = weft_config_target(session->config);
    if (!target->is_foreign) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "--program: a plan for %s has no program of Weft's; leave the flag out",
                     target->title);
}

/* Plans, or takes the plan of a rival. */
static enum weft_status make_plan(const struct weft_cli *cli, struct weft_session *session,
                                  struct weft_error *err)
{
    if (cli->rival && (cli->planner || cli->start))
        return weft_fail(err, WEFT_E_USAGE, "--rival: leave out %s, since the file has the plans",
                         cli->planner ? "--planner" : "--start");
    if (cli->rival) return weft_rival_load(session, cli->rival, err);
    const enum weft_status status = weft_session_plan(session, NULL, err);
    if (status == WEFT_E_INFEASIBLE) weft_refusal_answer(cli, session, err);
    return status;
}

static enum weft_status run_plan(const struct weft_cli *given, struct weft_error *err)
{
    struct weft_cli line, *cli = &line;
    struct weft_session session = {0};
    struct weft_text file, out;
    struct weft_answer answer = {0};
    WEFT_TRY(weft_cli_make_config(given, cli, err));
    if (cli->last_ranks > 0) return weft_rank_plans_run(cli, stage_session, err);
    weft_text_init(&file);
    weft_cli_report_init(cli, NULL, &out);
    enum weft_status status = weft_cli_read_config(cli, cli->operands[0], &session, err);
    if (status == WEFT_OK) status = stage_session(cli, &session, err);
    if (status == WEFT_OK && cli->start) status = weft_session_start(&session, cli->start, err);
    if (status == WEFT_OK && cli->program_dump) status = check_program(&session, err);
    if (status == WEFT_OK) status = make_plan(cli, &session, err);
    if (status == WEFT_OK) status = weft_session_add_cost(&session, err);
    if (status == WEFT_OK) {
        weft_plan_write(session.plan, &file);
        fill_answer(&session, &answer);
        render_answer(cli, &session, &answer, &out);
        status = weft_cli_emit_file(cli, &file, &out, err);
    }
    weft_answer_finish(&answer);
    weft_text_finish(&file);
    weft_text_finish(&out);
    weft_session_close(&session);
    return status;
}

const struct weft_command weft_command_plan = {
    .name = "plan",
    .usage = "[CONFIG]",
    .summary = "policies and placements within the limit, with a proven bound",
    .details =
        "The gap is against a bound that weft itself derives from the solver's multipliers, not\n"
        "the solver's word. If no plan fits, a table has the changes with which one would: "
        "limits,\n"
        "recomputation, smaller micro-batches, offloading, ranks, the cheapest first. Exit "
        "78 then.\n"
        "--work-limit (30G) counts what is done, so that the same config gives the same plan\n"
        "wherever and whenever; a unit is about a nanosecond. --time-limit is an alarm, if given,\n"
        "next to it, and says when it rang.\n"
        "With --start, ilp is never slower than that plan, where it fits. --rival takes the "
        "fastest\n"
        "plan that fits from a file of another program (docs/rivals.md) and judges it alike.\n"
        "--ranks 4..8 plans each number of ranks for the batch of the config's own ranks: a "
        "table,\n"
        "and with -o DIR the plans DIR/plans/4.json to 8.json. If DIR is a run's directory,\n"
        "`weft train --resume --run DIR -n 6` takes the plan of 6 ranks.\n"
        "A config of one node with neither a profile (--profile) nor figures of the device is\n"
        "planned with this machine, which is measured first; -o plan.json then keeps the times in\n"
        "plan.profile.json. Give it with --profile to commands that read the plan. --hf\n"
        "config.json or --model NAME plans a model without a config, on --cluster NAME.",
    .flags = "--set --model --cluster --hf --layers --ranks --seed --memory-limit --for --planner "
             "--work-limit "
             "--time-limit --gap "
             "--profile --program "
             "--start --rival",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_plan,
};
