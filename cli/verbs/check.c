/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/command.h"
#include "cli/job/job.h"
#include "library/foreign.h"
#include "library/session.h"
#include "report/answer.h"
#include "runtime/train/schedule.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"

/* Texts for all files together, a line a file. */
struct findings {
    struct weft_text problems;
    struct weft_text missing;   /* keys that times need and the config lacks */
    struct weft_text untrained; /* reasons why a model can be planned alone */
    struct weft_answer answer;
};

/* Stages without times: verbs that need them measure collectives, and layers that the profile
 * lacks. */
static enum weft_status check_other_ranks(struct weft_session *session, struct weft_error *err)
{
    struct weft_text unneeded;
    weft_text_init(&unneeded);
    enum weft_status status = weft_session_stage_for_memory(session, &unneeded, err);
    weft_text_finish(&unneeded);
    return status;
}

/* Checks the source of times: this machine (not measured here), a profile, or computed figures. */
static enum weft_status check_times(struct weft_session *session, struct weft_text *missing,
                                    struct weft_error *err)
{
    if (session->config->cluster.profile) {
        WEFT_TRY(weft_cli_measures(session) ? check_other_ranks(session, err)
                                            : weft_session_stage(session, NULL, err));
        weft_session_tell_inputs(session, false, false);
        return WEFT_OK;
    }
    if (weft_cli_measures(session)) return WEFT_OK;
    return weft_session_stage_for_memory(session, missing, err);
}

static void report_ok(const char *path, const char *missing, const char *untrained,
                      struct weft_answer *out)
{
    const char *verbs = *untrained == '\0' ? "plan, sweep and train" : "plan and sweep";
    if (*untrained != '\0')
        weft_answer_say(out, NULL, "%s: can be planned, not trained: %s\n", path, untrained);
    if (*missing != '\0')
        weft_answer_say(out, NULL,
                        "%s: ok for estimate; for %s there are no times: they need %s, or "
                        "--profile FILE (weft profile makes one)\n",
                        path, verbs, missing);
    else if (*untrained == '\0')
        weft_answer_say(out, NULL, "%s: ok\n", path);
}

static void add_line(const char *path, const char *line, struct weft_text *out)
{
    if (*line != '\0') weft_text_addf(out, "%s%s: %s", out->length ? "\n" : "", path, line);
}

/* Checks the disk if all ranks are on one machine, which is taken to be this one. */
static enum weft_status check_disk(const struct weft_session *session, struct weft_error *err)
{
    const struct weft_cluster *cluster = &session->config->cluster;
    const bool is_here = cluster->ranks <= cluster->ranks_per_node;
    return is_here ? weft_job_check_disk(session->config, NULL, err) : WEFT_OK;
}

/* Checks one file with its own error, so a bad file does not hide the others. */
static enum weft_status check_one(const struct weft_cli *cli, const char *path,
                                  struct weft_text *out, struct findings *found)
{
    struct weft_error err = {0}, untrained = {0};
    struct weft_session session = {0};
    struct weft_text missing;
    weft_text_init(&missing);
    enum weft_status status = weft_cli_read_config(cli, path, &session, &err);
    if (status == WEFT_OK) status = weft_planner_need(session.config->plan.planner, &err);
    if (status == WEFT_OK) status = check_disk(&session, &err);
    if (status == WEFT_OK) status = check_times(&session, &missing, &err);
    if (status == WEFT_OK) weft_train_warn_of_lr(&session.config->train);
    if (status == WEFT_OK && cli->print) weft_config_write(session.config, out);
    const bool trains =
        status != WEFT_OK ||
        weft_model_trains(session.config->model, session.config->train.seq_len,
                          session.config->cluster.device.type, &untrained) == WEFT_OK;
    weft_session_close(&session);
    if (status != WEFT_OK)
        weft_text_addf(&found->problems, "%s%s", found->problems.length ? "\n" : "", err.text);
    else if (!cli->print && !cli->json && !cli->quiet)
        report_ok(path, weft_text_chars(&missing), untrained.text, &found->answer);
    if (status == WEFT_OK) add_line(path, weft_text_chars(&missing), &found->missing);
    if (status == WEFT_OK && !trains) add_line(path, untrained.text, &found->untrained);
    weft_text_finish(&missing);
    return status;
}

/* One word for all files: the worst that is known of one of them. */
static const char *code_of(enum weft_status worst, const struct findings *found)
{
    if (worst != WEFT_OK) return "refused";
    if (found->untrained.length > 0) return "planned_only";
    return found->missing.length > 0 ? "no_times" : "ok";
}

static enum weft_status run_check(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out;
    struct findings found = {.answer.is_line = true};
    weft_text_init(&out);
    weft_text_init(&found.problems);
    weft_text_init(&found.missing);
    weft_text_init(&found.untrained);
    enum weft_status worst = WEFT_OK;
    if (cli->json && cli->print && cli->n_operands > 1)
        return weft_fail(err, WEFT_E_USAGE,
                         "check --print --json: one FILE at a time, for one JSON document");
    for (int32_t i = 0; i < cli->n_operands; i++) {
        enum weft_status status = check_one(cli, cli->operands[i], &out, &found);
        if (worst == WEFT_OK) worst = status;
    }
    weft_answer_bool(&found.answer, "ok", worst == WEFT_OK);
    weft_answer_word(&found.answer, "code", code_of(worst, &found));
    weft_answer_word(&found.answer, "problems", weft_text_chars(&found.problems));
    weft_answer_word(&found.answer, "missing", weft_text_chars(&found.missing));
    weft_answer_word(&found.answer, "untrained", weft_text_chars(&found.untrained));
    enum weft_status status = cli->print && (!cli->json || worst == WEFT_OK)
                                  ? weft_cli_emit(cli, &out, err)
                                  : weft_cli_emit_answer(cli, &found.answer, err);
    weft_answer_finish(&found.answer);
    if (status == WEFT_OK && worst != WEFT_OK)
        status = weft_fail(err, worst, "%s", weft_text_chars(&found.problems));
    weft_text_finish(&out);
    weft_text_finish(&found.untrained);
    weft_text_finish(&found.missing);
    weft_text_finish(&found.problems);
    return status;
}

const struct weft_command weft_command_check = {
    .name = "check",
    .usage = "FILE...",
    .summary = "validates configs; all problems at once",
    .details =
        "Each problem comes with file, JSON path, what is wrong and what would be right. A "
        "profile that it names, or --profile, is read too. Where there is none, all figures that "
        "times need and the config does not give are told, and are no problem: estimate needs no "
        "times. A model that can be planned but not trained is told with the reason. With --json, "
        "code is \"ok\", \"no_times\", \"planned_only\" or \"refused\".",
    .flags = "--print --set --model --cluster --layers --ranks --seed --profile --memory-limit "
             "--planner --work-limit --time-limit --gap",
    .least_operands = 1,
    .most_operands = WEFT_CLI_OPERANDS,
    .run = run_check,
};
