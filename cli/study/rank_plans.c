/* SPDX-License-Identifier: Apache-2.0 */
/* weft plan --ranks FIRST..LAST: a plan for each number of ranks, of the same batch. */
#include "cli/study/rank_plans.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "report/answer.h"
#include "report/study/first_line.h"
#include "spec/config_batch.h"
#include "spec/target.h"

enum { MOST_PLANS = 64, REASON_BYTES = 256 };

/* A number of ranks and its plan. */
struct row {
    int64_t ranks, idle, samples, tokens;
    int64_t step_ns, bound_ns, bytes; /* 0: no plan */
    char reason[REASON_BYTES];        /* of no plan */
};

/* The order of sums that the config begins with on its own ranks; micro_batch 0: left open, or not
 * for any number of ranks. */
static struct weft_order first_order(const struct weft_config *config)
{
    const struct weft_train *train = &config->train;
    const bool fixed = train->delay > 0 || train->every > 0 || train->asked.micro_batch == 0 ||
                       weft_config_target(config)->is_foreign;
    const int64_t group = train->group > 0                            ? train->group
                          : train->cadence == WEFT_CADENCE_MICRO_STEP ? 1
                                                                      : train->grad_accum;
    return (struct weft_order){.ranks = config->cluster.ranks,
                               .micro_batch = fixed ? 0 : train->micro_batch,
                               .micro_steps = train->grad_accum,
                               .group = group,
                               .idle = train->idle,
                               .bundle = weft_config_bundle(config),
                               .layers = weft_config_turn_layers(config)};
}

/* Gives the config the batch of the first order. */
static enum weft_status share_batch(const struct weft_order *order, struct weft_config *config,
                                    struct weft_error *err)
{
    enum weft_order_kept kept;
    if (order->micro_batch == 0 || config->cluster.ranks == order->ranks) return WEFT_OK;
    config->split_given = config->order_given = false;
    WEFT_TRY(weft_config_keep_order(config, order, &kept, err));
    if (kept == WEFT_ORDER_KEPT) return WEFT_OK;
    if (weft_order_groups(order) < config->cluster.ranks)
        return weft_fail(err, WEFT_E_DATA,
                         "a step has %" PRId64 " groups of micro-batches (train.group)",
                         weft_order_groups(order));
    return weft_fail(err, WEFT_E_DATA, "these ranks cannot keep the order of sums");
}

static enum weft_status plan_row(const struct weft_cli *cli, weft_stage_fn *stage,
                                 const struct weft_order *order, struct row *row,
                                 struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_text file;
    weft_text_init(&file);
    enum weft_status status = weft_cli_read_config(cli, cli->operands[0], &session, err);
    if (status == WEFT_OK) status = share_batch(order, session.config, err);
    if (status == WEFT_OK) status = stage(cli, &session, err);
    if (status == WEFT_OK) status = weft_session_plan(&session, NULL, err);
    if (status == WEFT_OK && cli->output != NULL) {
        weft_plan_write(session.plan, &file);
        status = weft_text_ok(&file)
                     ? weft_file_write(cli->output, weft_text_chars(&file), file.length, err)
                     : weft_fail_memory(err, "a plan");
    }
    if (status == WEFT_OK) {
        row->step_ns = session.plan->prediction.step_ns;
        row->bytes = session.plan->prediction.total_bytes;
        row->bound_ns = weft_plan_least_bound_ns(session.plan);
        row->idle = session.plan->problem->period.idle;
        row->samples = weft_config_samples(session.config);
        row->tokens = row->samples * session.config->train.seq_len;
    }
    weft_text_finish(&file);
    weft_session_close(&session);
    return status;
}

/* A number without a plan is a row of the table with the reason. Other failures end the verb. */
static bool is_row(enum weft_status status)
{
    return status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA || status == WEFT_E_USAGE;
}

static double rate_of(const struct row *row)
{
    return row->step_ns > 0 ? (double)row->tokens / ((double)row->step_ns * 1e-9) : 0;
}

enum { RANKS, ERROR, STEP, BOUND, SAMPLES, TOKENS, MEMORY, IDLE, SHOWN_BOUND, GAP, NOTE };
enum { N_COLUMNS = NOTE + 1 };

static const struct weft_column columns[N_COLUMNS] = {
    [RANKS] = {"ranks", "ranks", 'r', WEFT_FIGURE_INTEGER, 0},
    [ERROR] = {"error", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, 0},
    [BOUND] = {"bound_ns", NULL, 'r', WEFT_FIGURE_NS, 0},
    [SAMPLES] = {"samples", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
    [TOKENS] = {"tokens_per_s", "tokens/s", 'r', WEFT_FIGURE_INTEGER, 0},
    [MEMORY] = {"total_bytes", "memory", 'r', WEFT_FIGURE_BYTES, 0},
    [IDLE] = {"idle_ranks", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
    [SHOWN_BOUND] = {NULL, "bound", 'r', WEFT_FIGURE_NS, 0},
    [GAP] = {NULL, "gap", 'r', WEFT_FIGURE_PERMIL, 0},
    [NOTE] = {NULL, "", 'w', WEFT_FIGURE_WORD, 0},
};

static void add_row(struct weft_rows *rows, const struct row *row)
{
    const double bound_ns = (double)(row->bound_ns > 0 ? row->bound_ns : 1);
    weft_rows_begin(rows, NULL);
    weft_rows_integer(rows, RANKS, row->ranks);
    if (row->step_ns == 0) {
        weft_rows_word(rows, ERROR, row->reason);
        weft_rows_word(rows, NOTE, row->reason);
        return;
    }
    weft_rows_integer(rows, STEP, row->step_ns);
    weft_rows_integer(rows, BOUND, row->bound_ns);
    weft_rows_integer(rows, SAMPLES, row->samples);
    weft_rows_real(rows, TOKENS, rate_of(row));
    weft_rows_show(rows, TOKENS, WEFT_PAINT_NONE, "%.0f", rate_of(row));
    weft_rows_integer(rows, MEMORY, row->bytes);
    weft_rows_integer(rows, IDLE, row->idle);
    weft_rows_integer(rows, SHOWN_BOUND, row->bound_ns);
    weft_rows_real(rows, GAP, (double)(row->step_ns - row->bound_ns) / bound_ns);
    weft_rows_word(rows, NOTE, "");
    if (row->idle > 0)
        weft_rows_show(rows, NOTE, WEFT_PAINT_NONE, "%" PRId64 " idle in the last round",
                       row->idle);
}

/* The first line: the number of ranks with the most tokens a second. */
static void say_fastest(const struct row *rows, int32_t n, struct weft_answer *answer)
{
    const struct row *best = rows;
    struct weft_text line;
    for (int32_t i = 1; i < n; i++)
        if (rate_of(&rows[i]) > rate_of(best)) best = &rows[i];
    if (best->step_ns == 0) {
        weft_answer_say(answer, "answer", "no number of ranks has a plan\n");
        return;
    }
    weft_text_init(&line);
    weft_answer_step(best->step_ns, rate_of(best), best->bytes, &line);
    if (best->bound_ns > 0) weft_text_add(&line, "; ");
    weft_answer_bound(best->step_ns, (struct weft_plan_claim){.bound_ns = best->bound_ns}, &line);
    weft_answer_say(answer, "answer", "%" PRId64 " rank%s: the most tokens/s: %s\n", best->ranks,
                    best->ranks == 1 ? "" : "s", weft_text_chars(&line));
    weft_text_finish(&line);
}

static enum weft_status emit_rows(const struct weft_cli *cli, const struct row *rows, int32_t n,
                                  struct weft_error *err)
{
    struct weft_answer answer = {0};
    say_fastest(rows, n, &answer);
    struct weft_rows *table = weft_answer_table(&answer, "plans", columns, N_COLUMNS);
    for (int32_t i = 0; i < n; i++)
        add_row(table, &rows[i]);
    return weft_cli_emit_answer(cli, &answer, err);
}

/* Makes DIR and DIR/plans. */
static enum weft_status make_folders(const char *directory, struct weft_error *err)
{
    struct weft_text plans;
    weft_text_init(&plans);
    weft_text_addf(&plans, "%s/plans", directory);
    enum weft_status status = WEFT_OK;
    if (!weft_text_ok(&plans))
        status = weft_fail_memory(err, "a path");
    else if ((mkdir(directory, 0777) != 0 && errno != EEXIST) ||
             (mkdir(weft_text_chars(&plans), 0777) != 0 && errno != EEXIST))
        status = weft_fail(err, WEFT_E_CREATE,
                           "-o %s: %s; plans of several numbers of ranks need "
                           "a folder",
                           directory, strerror(errno));
    weft_text_finish(&plans);
    return status;
}

/* Plans all numbers of ranks; *made counts those with a plan. */
static enum weft_status plan_rows(const struct weft_cli *cli, weft_stage_fn *stage,
                                  struct weft_cli *one, struct row *rows, int32_t n, int32_t *made,
                                  struct weft_error *err)
{
    struct weft_session session = {0};
    one->ranks = one->last_ranks = 0;
    WEFT_TRY(weft_cli_read_config(one, cli->operands[0], &session, err));
    const struct weft_order order = first_order(session.config);
    weft_session_close(&session);
    for (int32_t i = 0; i < n; i++) {
        char path[4096];
        struct weft_error why = {0};
        rows[i].ranks = one->ranks = cli->ranks + i;
        if (cli->output != NULL) {
            const int length = snprintf(path, sizeof path, "%s/plans/%" PRId64 ".json", cli->output,
                                        rows[i].ranks);
            if (length < 0 || (size_t)length >= sizeof path)
                return weft_fail(err, WEFT_E_USAGE, "-o: the path is too long");
            one->output = path;
        }
        const enum weft_status status = plan_row(one, stage, &order, &rows[i], &why);
        one->output = NULL;
        if (status != WEFT_OK && !is_row(status)) return weft_fail_again(err, &why, "%s", why.text);
        snprintf(rows[i].reason, sizeof rows[i].reason, "%.*s", REASON_BYTES - 1, why.text);
        *made += status == WEFT_OK;
    }
    return WEFT_OK;
}

enum weft_status weft_rank_plans_run(const struct weft_cli *cli, weft_stage_fn *stage,
                                     struct weft_error *err)
{
    const int64_t n = cli->last_ranks - cli->ranks + 1;
    struct row rows[MOST_PLANS] = {{0}};
    int32_t made = 0;
    if (n > MOST_PLANS)
        return weft_fail(err, WEFT_E_USAGE,
                         "--ranks %" PRId64 "..%" PRId64 ": at most %d numbers at a time",
                         cli->ranks, cli->last_ranks, MOST_PLANS);
    if (cli->program_dump || cli->start != NULL)
        return weft_fail(err, WEFT_E_USAGE, "%s: is for one number of ranks",
                         cli->start != NULL ? "--start" : "--program");
    if (cli->output != NULL) WEFT_TRY(make_folders(cli->output, err));
    struct weft_cli *one = malloc(sizeof *one);
    if (one == NULL) return weft_fail_memory(err, "plans");
    *one = *cli;
    enum weft_status status = plan_rows(cli, stage, one, rows, (int32_t)n, &made, err);
    if (status == WEFT_OK) {
        one->output = NULL;
        status = emit_rows(one, rows, (int32_t)n, err);
    }
    if (status == WEFT_OK && made == 0)
        status = weft_fail(err, WEFT_E_INFEASIBLE, "no number of ranks has a plan: %s",
                           rows[n - 1].reason);
    free(one);
    return status;
}
