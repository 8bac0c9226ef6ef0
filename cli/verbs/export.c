/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/study/attempt.h"
#include "cli/study/run_as.h"
#include "cli/verbs/export_hf.h"
#include "library/session.h"
#include "plan/plan.h"
#include "problem/target.h"
#include "report/export/fsdp2.h"
#include "report/export/others.h"
#include "scheduler/planners/deepspeed.h"
#include "spec/profile/profile.h"

static enum weft_status refuse_snippet(const struct weft_cli *cli, struct weft_error *err)
{
    if (!cli->snippet) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE, "--snippet: only --to fsdp2 has one");
}

/* Runs the plan as FSDP2 does, and refuses it above its limit. With --force, a plan that FSDP2
 * cannot run has no figures, which is logged. */
static enum weft_status run_fsdp2(const struct weft_cli *cli, const struct weft_fsdp2 *fsdp2,
                                  struct weft_run_as *run, struct weft_error *err)
{
    struct weft_error why = {0};
    enum weft_status status = weft_run_as_fsdp2(cli, fsdp2, run, &why);
    if (status == WEFT_OK) status = weft_run_as_check(run, cli->operands[0], &why);
    if (status == WEFT_OK) return WEFT_OK;
    if (!cli->force || status == WEFT_E_SYSTEM) return weft_fail(err, status, "%s", why.text);
    weft_log(WEFT_LOG_WARNING, "%s", why.text);
    return WEFT_OK;
}

/* The answer of an export, or with --snippet a text. */
struct document {
    struct weft_answer answer;
    struct weft_text snippet;
};

static enum weft_status write_fsdp2(const struct weft_cli *cli, const struct weft_plan *plan,
                                    struct document *out, struct weft_error *err)
{
    struct weft_fsdp2 *fsdp2 = NULL;
    enum weft_status status = WEFT_OK;
    struct weft_run_as run = {0};
    WEFT_TRY(weft_fsdp2_create(plan, cli->operands[0], &fsdp2, err));
    if (fsdp2->n_sentences > 0 && !cli->force)
        status = weft_fail(err, WEFT_E_DATA,
                           "%s: FSDP2 cannot follow this plan in %d points. %s --force writes the "
                           "nearest, with a sentence for each in not_expressed",
                           cli->operands[0], fsdp2->n_sentences, fsdp2->sentences[0]);
    if (status == WEFT_OK) status = run_fsdp2(cli, fsdp2, &run, err);
    if (status == WEFT_OK) {
        fsdp2->run = run.plan;
        if (cli->snippet)
            weft_fsdp2_snippet(fsdp2, &out->snippet);
        else
            weft_fsdp2_put(fsdp2, &out->answer);
    }
    weft_run_as_finish(&run);
    weft_fsdp2_destroy(fsdp2);
    return status;
}

static enum weft_status write_megatron(const struct weft_cli *cli, const struct weft_plan *plan,
                                       struct document *out, struct weft_error *err)
{
    struct weft_fsdp2 *units = NULL;
    WEFT_TRY(refuse_snippet(cli, err));
    WEFT_TRY(weft_fsdp2_create(plan, cli->operands[0], &units, err));
    weft_megatron_put(units, &out->answer);
    weft_fsdp2_destroy(units);
    return WEFT_OK;
}

/* The fastest setting of DeepSpeed's rule within a problem's limit. */
struct deepspeed {
    struct weft_plan *best; /* NULL: none */
    const struct weft_setting *setting;
    struct weft_error why; /* of a setting without a plan */
};

static enum weft_status find_setting(const struct weft_problem *problem, struct deepspeed *out,
                                     struct weft_error *err)
{
    const struct weft_setting *setting = weft_deepspeed_settings;
    for (; setting->name; setting++) {
        const struct weft_schedule_options options = {.planner = "deepspeed", .setting = setting};
        struct weft_plan *tried = NULL;
        WEFT_TRY(weft_study_attempt(problem, &options, &tried, &out->why, err));
        if (tried && tried->prediction.peak_bytes <= problem->tiers[0].limit_bytes &&
            (!out->best || tried->prediction.step_ns < out->best->prediction.step_ns)) {
            weft_plan_destroy(out->best);
            out->best = tried;
            out->setting = setting;
        } else {
            weft_plan_destroy(tried);
        }
    }
    return WEFT_OK;
}

/* The same for the problem of the config with all policies, and with the plan's limit, micro-steps
 * and rounds: plans for other runtimes lack some policies. */
static enum weft_status find_in_config(const struct weft_cli *cli,
                                       const struct weft_problem *planned,
                                       struct weft_session *session, struct deepspeed *out,
                                       struct weft_error *err)
{
    struct weft_cli own = *cli, same = *cli;
    char target[64];
    if (own.n_overrides + 2 > WEFT_CLI_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "--to: too many --set");
    snprintf(target, sizeof target, "plan.for=%s", weft_problem_target(planned)->name);
    same.overrides[same.n_overrides++] = target;
    WEFT_TRY(weft_run_as_check_config(&same, planned, err));
    own.overrides[own.n_overrides++] = "plan.for=weft";
    own.overrides[own.n_overrides++] = "plan.policies=dp,zero1,sdp,fsdp";
    WEFT_TRY(weft_run_as_open(&own, planned, session, err));
    WEFT_TRY(weft_run_as_stage(session, planned, 0, err));
    return find_setting(session->stages.problem, out, err);
}

static enum weft_status write_deepspeed(const struct weft_cli *cli, const struct weft_plan *plan,
                                        struct document *out, struct weft_error *err)
{
    struct deepspeed found = {0};
    struct weft_session session = {0};
    WEFT_TRY(refuse_snippet(cli, err));
    enum weft_status status = find_setting(plan->problem, &found, err);
    if (status == WEFT_OK && !found.best && cli->config)
        status = find_in_config(cli, plan->problem, &session, &found, err);
    if (status == WEFT_OK && !found.best)
        status =
            weft_fail(err, WEFT_E_INFEASIBLE, "%s: no setting of DeepSpeed has a plan: %s%s",
                      cli->operands[0],
                      found.why.text[0] != '\0' ? found.why.text : "all exceed the plan's limit",
                      cli->config ? "" : ". A --config gives the policies that it lacks");
    if (status == WEFT_OK)
        weft_deepspeed_put(
            plan,
            &(struct weft_deepspeed_export){.found = found.best,
                                            .setting = found.setting->name,
                                            .prefetch_elements = found.setting->values[0],
                                            .live_elements = found.setting->values[1],
                                            .reuse_elements = found.setting->values[2],
                                            .persistent_elements = WEFT_DEEPSPEED_PERSISTENT,
                                            .bucket_elements = WEFT_DEEPSPEED_BUCKET},
            &out->answer);
    weft_plan_destroy(found.best);
    weft_session_close(&session);
    return status;
}

/* Targets by name: of a plan, which is written as a document, or of a run. */
static const struct export_target {
    const char *name;
    enum weft_status (*write)(const struct weft_cli *cli, const struct weft_plan *plan,
                              struct document *out, struct weft_error *err);
    enum weft_status (*run)(const struct weft_cli *cli, struct weft_error *err);
} export_targets[] = {{"fsdp2", write_fsdp2, NULL},
                      {"megatron-fsdp", write_megatron, NULL},
                      {"deepspeed", write_deepspeed, NULL},
                      {"hf", NULL, weft_cli_export_hf}};
static const char target_names[] = "fsdp2, megatron-fsdp, deepspeed or hf";

static enum weft_status find_target(const char *name, const struct export_target **out,
                                    struct weft_error *err)
{
    for (size_t i = 0; name && i < sizeof export_targets / sizeof *export_targets; i++)
        if (strcmp(export_targets[i].name, name) == 0) {
            *out = &export_targets[i];
            return WEFT_OK;
        }
    if (!name) return weft_fail(err, WEFT_E_USAGE, "export needs a target: --to %s", target_names);
    return weft_fail(err, WEFT_E_USAGE, "--to %s: no such target; %s", name, target_names);
}

/* No other runtime's state has one second moment a tensor. */
static enum weft_status check_optimizer(const struct weft_problem *problem, const char *source,
                                        struct weft_error *err)
{
    if (!problem->period.means) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: is of an optimizer with one second moment a tensor (adam_mini), and its "
                     "state is Weft's alone: plan with train.optimizer.type \"adamw\"",
                     source);
}

static enum weft_status export_plan(const struct weft_cli *cli, const struct export_target *target,
                                    struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_error why = {0};
    struct document out = {0};
    struct weft_cli as_json = *cli;
    as_json.json = true;
    if (cli->dtype != NULL || cli->shard_size != NULL)
        return weft_fail(err, WEFT_E_USAGE, "%s: only --to hf has it",
                         cli->dtype != NULL ? "--dtype" : "--shard-size");
    enum weft_status status = weft_plan_read(cli->operands[0], &plan, err);
    if (status == WEFT_OK) status = weft_plan_check_rows(plan, cli->operands[0], err);
    if (status == WEFT_OK && weft_plan_check_bounds(plan, &why) != WEFT_OK)
        status = weft_fail_in(err, &why, cli->operands[0]);
    if (status == WEFT_OK) status = check_optimizer(plan->problem, cli->operands[0], err);
    weft_text_init(&out.snippet);
    if (status == WEFT_OK) status = target->write(cli, plan, &out, err);
    if (status == WEFT_OK)
        status = cli->snippet ? weft_cli_emit_text(cli, &out.snippet, err)
                              : weft_cli_emit_answer(&as_json, &out.answer, err);
    weft_text_finish(&out.snippet);
    weft_answer_finish(&out.answer);
    weft_plan_destroy(plan);
    return status;
}

static enum weft_status run_export(const struct weft_cli *cli, struct weft_error *err)
{
    const struct export_target *target = NULL;
    WEFT_TRY(find_target(cli->to, &target, err));
    return target->run != NULL ? target->run(cli, err) : export_plan(cli, target, err);
}

const struct weft_command weft_command_export = {
    .name = "export",
    .usage = "RUN|PLAN",
    .summary = "a run as a model of Hugging Face, or a plan in the terms of other runtimes",
    .details =
        "--to hf makes the folder of -o from a run's latest checkpoint, or from "
        "RUN/checkpoints/step-N: config.json, generation_config.json, model.safetensors, in "
        "shards with an index above --shard-size (5GB). A run that began with a model of Hugging "
        "Face passes on its config.json and tokenizer, and the type of each tensor unless --dtype "
        "gives one; otherwise config.json is made from the model. docs/huggingface.md The other "
        "targets are of a PLAN. fsdp2: JSON (`weft schema export`) with a unit for each "
        "fully_shard call, its prefetch lists, the place of its reduction, the collectives in "
        "order, and the PyTorch release of each call. --snippet writes the same as Python that "
        "needs PyTorch alone. Exit 65 if FSDP2 cannot follow the plan; --force writes the "
        "nearest, and names each difference. A plan that was not made --for fsdp2 needs --config, "
        "and is refused with exit 78 if FSDP2 needs more than its limit. --config of another one, "
        "with cluster.pools, gives its memory in as_run. docs/pytorch.md applies it. "
        "megatron-fsdp and deepspeed are written from documentation and were not run. The "
        "first has placements and prefetch budgets by unit, the second the best setting of "
        "DeepSpeed's rule within the plan's limit, with its distance from the plan's bound.",
    .flags = "--to --dtype --shard-size --snippet --force --config --set --model --cluster "
             "--layers --ranks --seed --profile --memory-limit",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_export,
};
