/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/command.h"
#include "cli/job/hosts.h"
#include "cli/job/rank.h"
#include "report/answer.h"

static enum weft_status parse_steps(const char *text, struct weft_replay_segment *out,
                                    struct weft_error *err)
{
    char *end = NULL;
    const long long first = strtoll(text, &end, 10);
    long long last = first;
    bool ok = end != text;
    if (ok && strncmp(end, "..", 2) == 0) {
        const char *second = end + 2;
        last = strtoll(second, &end, 10);
        ok = end != second;
    }
    if (!ok || *end != '\0' || first < 1 || last < first)
        return weft_fail(err, WEFT_E_USAGE,
                         "--steps %s: write A..B with the first and the last step, such as 8..20",
                         text);
    out->first = first;
    out->last = last;
    return WEFT_OK;
}

/* By default all recorded steps that the first parameters or a kept checkpoint reach. */
static enum weft_status choose_steps(const struct weft_replay *replay,
                                     struct weft_replay_segment *out, struct weft_error *err)
{
    const struct weft_recorded *recorded = &replay->recorded;
    const int64_t last = recorded->last;
    out->first = recorded->first;
    out->last = last;
    if (out->first > 1 && replay->n_kept > 0 && replay->kept[0] >= out->first)
        out->first = replay->kept[0] + 1;
    if (replay->cli->steps != NULL) WEFT_TRY(parse_steps(replay->cli->steps, out, err));
    if (out->first < recorded->first || out->last > last)
        return weft_fail(err, WEFT_E_USAGE, "--steps %s: the run has recorded steps %lld to %lld",
                         replay->cli->steps != NULL ? replay->cli->steps : "",
                         (long long)recorded->first, (long long)last);
    return weft_replay_reach(replay, out->first, &out->from, err);
}

static void tell_begin(const struct weft_replay *replay, const struct weft_replay_segment *segment)
{
    const int64_t ranks = replay->session.config->cluster.ranks;
    char start[48] = "the first parameters";
    if (segment->from > 0) snprintf(start, sizeof start, "step-%lld", (long long)segment->from);
    weft_log(WEFT_LOG_INFO,
             "replays steps %lld to %lld of %s from %s on %lld rank%s, planned by %s",
             (long long)segment->first, (long long)segment->last, replay->run, start,
             (long long)ranks, ranks == 1 ? "" : "s", replay->session.plan->planner);
}

/* A table of all groups, and the one with the highest norm. Data has them if they were asked for.
 */
static void add_groups(const struct weft_replay *replay, const struct weft_replay_outcome *outcome,
                       struct weft_answer *answer)
{
    enum { STEP, GROUP, FIRST, SAMPLES, PLACE, LOSS, NORM, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [STEP] = {"step", "step", 'r', WEFT_FIGURE_INTEGER, 0},
        [GROUP] = {"group", "group", 'r', WEFT_FIGURE_INTEGER, 0},
        [FIRST] = {"first_sample", "samples", 'l', WEFT_FIGURE_INTEGER, 0},
        [SAMPLES] = {"samples", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        [PLACE] = {"place", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        [LOSS] = {"loss", "loss", 'r', WEFT_FIGURE_REAL, WEFT_COLUMN_NULL},
        [NORM] = {"norm", "norm", 'r', WEFT_FIGURE_REAL, WEFT_COLUMN_NULL}};
    const struct weft_replay_group *highest = outcome->groups;
    if (!replay->cli->groups) return;
    struct weft_rows *rows = weft_answer_table(answer, "groups", columns, N_COLUMNS);
    for (int64_t i = 0; i < outcome->n_groups; i++) {
        const struct weft_replay_group *group = &outcome->groups[i];
        weft_rows_begin(rows, NULL);
        weft_rows_integer(rows, STEP, group->step);
        weft_rows_integer(rows, GROUP, group->group);
        weft_rows_integer(rows, FIRST, group->first_sample);
        weft_rows_show(rows, FIRST, WEFT_PAINT_NONE, "%lld to %lld", (long long)group->first_sample,
                       (long long)(group->first_sample + group->samples - 1));
        weft_rows_integer(rows, SAMPLES, group->samples);
        weft_rows_integer(rows, PLACE, group->place);
        weft_rows_real(rows, LOSS, group->loss);
        weft_rows_show(rows, LOSS, WEFT_PAINT_NONE, "%.4f", group->loss);
        weft_rows_real(rows, NORM, group->norm);
        weft_rows_show(rows, NORM, WEFT_PAINT_NONE, "%.4f", group->norm);
        /* A norm that is not a number is the highest of all. */
        if (!isnan(highest->norm) && !(group->norm <= highest->norm)) highest = group;
    }
    if (outcome->n_groups == 0) return;
    weft_answer_say(
        answer, NULL,
        "highest   norm %.4f: group %lld of step %lld, samples %lld to %lld, the first one from "
        "token %lld of the data on\n",
        highest->norm, (long long)highest->group, (long long)highest->step,
        (long long)highest->first_sample, (long long)(highest->first_sample + highest->samples - 1),
        (long long)highest->place);
}

static void fill_answer(const struct weft_replay *replay, const struct weft_replay_segment *segment,
                        const struct weft_replay_outcome *outcome, struct weft_answer *answer)
{
    char hash[WEFT_HASH_TEXT_BYTES];
    weft_hash_show(outcome->parameters, hash);
    answer->is_line = true;
    weft_answer_word(answer, "kind", "replay");
    weft_answer_word(answer, "run", replay->run);
    weft_answer_integer(answer, "from_step", segment->from);
    weft_answer_integer(answer, "first_step", segment->first);
    weft_answer_integer(answer, "last_step", segment->last);
    weft_answer_integer(answer, "ranks", replay->session.config->cluster.ranks);
    weft_answer_word(answer, "planner", replay->session.plan->planner);
    weft_answer_integer(answer, "compared", outcome->compared);
    weft_answer_integer(answer, "missing", outcome->missing);
    weft_answer_bool(answer, "equal", outcome->differs == 0 && outcome->missing == 0);
    if (outcome->differs > 0) {
        weft_answer_integer(answer, "differs_at", outcome->differs);
        weft_answer_word(answer, "differs_in", weft_text_chars(&outcome->how));
        if (outcome->rank >= 0) weft_answer_integer(answer, "rank", outcome->rank);
        weft_answer_say(answer, NULL, "differs   first in step %lld: %s\n",
                        (long long)outcome->differs, weft_text_chars(&outcome->how));
    } else {
        weft_answer_say(answer, NULL, "equal     %lld of %lld steps, in every recorded bit\n",
                        (long long)outcome->compared,
                        (long long)(segment->last - segment->first + 1));
    }
    weft_answer_say(answer, NULL, "end       parameters %s after step %lld%s\n", hash,
                    (long long)segment->last,
                    outcome->ends && outcome->differs == 0 ? ", as in the run's checkpoint" : "");
    add_groups(replay, outcome, answer);
    weft_answer_word(answer, "fingerprint", hash);
}

static enum weft_status judge_replay(const struct weft_replay *replay,
                                     const struct weft_replay_segment *segment,
                                     const struct weft_replay_outcome *outcome,
                                     struct weft_error *err)
{
    char rank[WEFT_REPLAY_RANK_BYTES];
    if (outcome->differs > 0)
        return weft_fail(err, WEFT_E_NUMERIC,
                         "%s: step %lld has other bits when replayed%s. %s the run or the replay "
                         "computed wrongly: replay again, on other hardware, to tell which",
                         replay->run, (long long)outcome->differs,
                         weft_replay_show_rank(outcome, rank), weft_replay_show_doubt(outcome));
    if (outcome->missing > 0)
        return weft_fail(err, WEFT_E_DATA,
                         "%s/metrics.jsonl: %lld of the steps %lld to %lld have no whole line, so "
                         "they were not compared",
                         replay->run, (long long)outcome->missing, (long long)segment->first,
                         (long long)segment->last);
    return WEFT_OK;
}

static enum weft_status run_segment(struct weft_replay *replay, struct weft_error *err)
{
    struct weft_replay_segment segment = {0};
    struct weft_replay_outcome outcome = {0};
    struct weft_answer answer = {0};
    WEFT_TRY(choose_steps(replay, &segment, err));
    WEFT_TRY(weft_replay_plan(replay, err));
    tell_begin(replay, &segment);
    enum weft_status status = weft_replay_run(replay, &segment, &outcome, err);
    if (status == WEFT_OK) {
        fill_answer(replay, &segment, &outcome, &answer);
        status = weft_cli_emit_answer(replay->cli, &answer, err);
    }
    if (status == WEFT_OK) status = judge_replay(replay, &segment, &outcome, err);
    weft_replay_outcome_finish(&outcome);
    weft_answer_finish(&answer);
    return status;
}

static enum weft_status replay_run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_replay replay;
    struct weft_cli one = *cli;
    if (cli->into != NULL && cli->dump == NULL)
        return weft_fail(err, WEFT_E_USAGE, "--into %s: it is the folder of --dump", cli->into);
    if (weft_replay_is_of_one(cli) && cli->ranks == 0) one.ranks = 1;
    enum weft_status status = weft_replay_open(&one, &replay, err);
    if (status == WEFT_OK) status = run_segment(&replay, err);
    weft_replay_close(&replay);
    return status;
}

static enum weft_status run_replay(const struct weft_cli *cli, struct weft_error *err)
{
    return weft_hosts_run(cli, replay_run, weft_rank_work, err);
}

const struct weft_command weft_command_replay = {
    .name = "replay",
    .usage = "RUN",
    .summary = "repeats steps of a run and compares their bits",
    .details =
        "Begins with the run's last kept checkpoint before the steps, or with its first "
        "parameters, and runs the steps again: with any number of ranks that keeps the order of "
        "sums, any plan and any limit. Loss, norm, clipping, learning rate and loss scale of each "
        "step must be the recorded ones, and so must hashes of the parameters, in the metrics "
        "(train.fingerprint.every) and in a checkpoint of the last step. It names the first step "
        "that differs (exit 79), with the rank whose gradient differs before the sum over ranks, "
        "or says that all are equal. It writes no file. With --groups one rank repeats the steps, "
        "and prints loss and gradient norm of each group of micro-batches, as if it were a step "
        "of its own, with its samples: the group of a spike in a run of many ranks has a name. "
        "With --dump layer:NAME one rank writes .npy files of f32 into a folder: values that the "
        "layer's forward leaves, each group's gradients, and updates. Use few steps: it holds a "
        "step's tensors in memory before it writes them. With the run's ranks and no other flags "
        "it runs the run's own plan. Otherwise a rule plans at once (fsdp2), or the named "
        "planner. Other data than the run's, or a machine that computes other bits, are refused.",
    .flags = "--steps --groups --dump --into --set --layers --ranks --memory-limit --planner "
             "--work-limit --profile --plan --poison",
    .least_operands = 1,
    .most_operands = 1,
    .starts_ranks = true,
    .serves_hosts = true,
    .run = run_replay,
};
