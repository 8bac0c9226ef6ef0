/* SPDX-License-Identifier: Apache-2.0 */

#include "base/units.h"
#include "cli/command.h"
#include "library/foreign.h"
#include "library/session.h"
#include "problem/stages.h"
#include "problem/target.h"
#include "program/predict.h"
#include "report/answer.h"

/* Checks the total: within the limit, and not below the rows. Rows count the base rounded up. The
 * pages belong to the program, which is checked with --config. */
static enum weft_status check_total(const char *path, const struct weft_plan *plan,
                                    struct weft_error *err)
{
    const struct weft_prediction *said = &plan->prediction;
    bool possible = said->total_bytes > said->peak_bytes - WEFT_ARENA_ALIGN_BYTES &&
                    said->total_bytes <= plan->problem->tiers[0].limit_bytes &&
                    said->arena_bytes <= said->total_bytes;
    if (possible) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: the plan says that it takes %lld bytes, its arena %lld, where one slot "
                     "holds %lld and the limit is %lld: plan again",
                     path, (long long)said->total_bytes, (long long)said->arena_bytes,
                     (long long)said->peak_bytes, (long long)plan->problem->tiers[0].limit_bytes);
}

/* Checks that there are as many pages as the arena has. Their owners belong to the program. */
static enum weft_status check_pages(const char *path, const struct weft_plan *plan,
                                    struct weft_error *err)
{
    const int64_t pages = weft_page_lists_count(&plan->pages);
    if (pages == -2) return weft_fail_memory(err, "pages");
    if (pages >= 0 && pages * plan->pages.page_bytes == plan->prediction.arena_bytes)
        return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: the plan says that its arena takes %lld bytes; its stretches are not the "
                     "pages of that, of %lld bytes each: plan again",
                     path, (long long)plan->prediction.arena_bytes,
                     (long long)plan->pages.page_bytes);
}

static enum weft_status check_claims(const char *path, struct weft_plan **plan,
                                     struct weft_error *err)
{
    WEFT_TRY(weft_plan_read(path, plan, err));
    WEFT_TRY(weft_plan_check_prediction(*plan, err));
    WEFT_TRY(weft_plan_check_rows(*plan, path, err));
    WEFT_TRY(check_total(path, *plan, err));
    WEFT_TRY(check_pages(path, *plan, err));
    return weft_plan_check_bounds(*plan, err);
}

/* Checks the file's own claims, without the config. */
static enum weft_status verify_alone(const char *path, struct weft_plan **plan,
                                     struct weft_error *err)
{
    struct weft_error why = {0};
    const enum weft_status status = check_claims(path, plan, &why);
    return status == WEFT_OK ? WEFT_OK : weft_fail_in(err, &why, path);
}

/* *n_open: number of periods that the config allows. */
static enum weft_status verify_with_config(const struct weft_cli *cli, int32_t *n_open,
                                           struct weft_error *err)
{
    struct weft_session session = {0};
    enum weft_status status = weft_cli_read_config(cli, cli->config, &session, err);
    if (status == WEFT_OK && weft_session_must_measure(&session))
        status = weft_cli_refuse_plan(cli->operands[0], cli->config, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK) weft_session_tell_inputs(&session, false, false);
    if (status == WEFT_OK) status = weft_session_load(&session, cli->operands[0], err);
    if (status == WEFT_OK) status = weft_session_check_others(&session, cli->operands[0], err);
    if (status == WEFT_OK) *n_open = weft_variants_count(session.config);
    weft_session_close(&session);
    return status;
}

static int32_t n_leaves(const struct weft_certificate *certificate)
{
    int32_t n = 0;
    for (int32_t i = 0; i < certificate->n_nodes; i++)
        n += certificate->nodes[i].kind == WEFT_NODE_LEAF;
    return n;
}

/* Reports the bound. The file may prove it for only some of the periods that the config allows.
 * Bounds of the others are proven with the config, which makes their problems. */
static void say_bound(const struct weft_plan *plan, bool config_given, int32_t n_open,
                      struct weft_answer *out)
{
    char bound[WEFT_UNITS_TEXT_BYTES];
    const int32_t leaves = n_leaves(&plan->certificate);
    if (plan->bound_ns == 0) {
        weft_answer_say(out, NULL, "it claims no bound");
        return;
    }
    weft_answer_say(out, NULL, "no plan is faster than %s, proven by %d %s",
                    weft_units_show_ns(plan->bound_ns, bound), leaves,
                    leaves == 1 ? "leaf" : "leaves");
    if (plan->n_others > 0 || n_open > 1) weft_answer_say(out, NULL, " for its period");
    if (plan->paged_bound_ns > 0) {
        const int32_t paged_leaves = n_leaves(&plan->paged_certificate);
        char page[WEFT_UNITS_TEXT_BYTES];
        weft_answer_say(out, NULL, ", and in pages of %s than %s, by %d",
                        weft_units_show_bytes(plan->pages.page_bytes, page),
                        weft_units_show_ns(plan->paged_bound_ns, bound), paged_leaves);
    }
    if (plan->n_others > 0 && config_given)
        weft_answer_say(out, NULL, ", and none of %d of %d periods than %s", plan->n_others + 1,
                        n_open, weft_units_show_ns(weft_plan_least_bound_ns(plan), bound));
    else if (plan->n_others > 0)
        weft_answer_say(out, NULL,
                        " (--config also proves the bounds of the %d other periods planned)",
                        plan->n_others);
    if (n_open > plan->n_others + 1)
        weft_answer_say(out, NULL, "; the config leaves %d periods open", n_open);
}

/* Adds "proven": the plan's period first, then with the config each other with a bound. */
static void put_proven(const struct weft_plan *plan, bool config_given, struct weft_answer *out)
{
    weft_answer_open_list(out, "proven");
    for (int32_t i = -1; i < (config_given ? plan->n_others : 0); i++) {
        const int64_t bound_ns = i < 0 ? plan->bound_ns : plan->others[i].bound_ns;
        if (bound_ns == 0) continue;
        weft_answer_open(out, NULL);
        weft_answer_integer(out, "bound_ns", bound_ns);
        if (i < 0) weft_answer_integer(out, "leaves", n_leaves(&plan->certificate));
        weft_answer_close(out);
    }
    weft_answer_close_list(out);
}

static void put_facts(const struct weft_cli *cli, const struct weft_plan *plan, int32_t n_open,
                      struct weft_answer *out)
{
    weft_answer_word(out, "plan", cli->operands[0]);
    weft_answer_bool(out, "ok", true);
    weft_answer_integer(out, "step_ns", plan->prediction.step_ns);
    weft_answer_bool(out, "emulated", weft_problem_emulates(plan->problem));
    weft_answer_integer(out, "bound_ns",
                        cli->config ? weft_plan_least_bound_ns(plan) : plan->bound_ns);
    if (plan->paged_bound_ns > 0) weft_answer_integer(out, "paged_bound_ns", plan->paged_bound_ns);
    put_proven(plan, cli->config != NULL, out);
    weft_answer_bool(out, "config_checked", cli->config != NULL);
    if (cli->config) weft_answer_integer(out, "periods_open", n_open);
    if (plan->solver_name) weft_answer_word(out, "solver", plan->solver_name);
}

static void fill_answer(const struct weft_cli *cli, const struct weft_plan *plan, int32_t n_open,
                        struct weft_answer *out)
{
    char step[WEFT_UNITS_TEXT_BYTES];
    put_facts(cli, plan, n_open, out);
    weft_answer_say(out, NULL, "%s: placements, order and memory rows hold; step %s%s as said; ",
                    cli->operands[0], weft_units_show_ns(plan->prediction.step_ns, step),
                    weft_problem_emulates(plan->problem) ? " over an emulated link" : "");
    say_bound(plan, cli->config != NULL, n_open, out);
    if (plan->solver_name) weft_answer_say(out, NULL, "; planned with %s", plan->solver_name);
    const bool runs = !weft_problem_target(plan->problem)->is_foreign;
    if (!cli->config)
        weft_answer_say(out, NULL, "; give --config to check the %sproblem too\n",
                        runs ? "program and the " : "");
    else
        weft_answer_say(out, NULL, "; the problem is the config's%s\n",
                        runs ? "; the program is safe in every timing" : "");
}

static enum weft_status run_verify(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_answer answer = {0};
    int32_t n_open = 1;
    WEFT_TRY(weft_cli_need_config(cli, err));
    enum weft_status status = verify_alone(cli->operands[0], &plan, err);
    if (status == WEFT_OK && cli->config) status = verify_with_config(cli, &n_open, err);
    if (status == WEFT_OK) {
        fill_answer(cli, plan, n_open, &answer);
        status = weft_cli_emit_answer(cli, &answer, err);
    }
    weft_plan_destroy(plan);
    weft_answer_finish(&answer);
    return status;
}

const struct weft_command weft_command_verify = {
    .name = "verify",
    .usage = "PLAN",
    .summary = "checks a plan without the solver",
    .details =
        "Reads the plan as a stranger would: every block placed once, inside its window, in an\n"
        "order that exists; memory rows within the limit; time as the simulator has it; and the\n"
        "certificate of its bound, leaf by leaf in whole numbers. With --config also: the plan's\n"
        "problem is the one that this config and profile make, and its program is safe under\n"
        "happens-before in every timing, and the bounds of the other periods planned hold.\n"
        "Without --config they are not checked, since the config makes their problems. --json\n"
        "prints the step, the least proven bound (bound_ns, 0 if there is none), and in\n"
        "\"proven\" the bound of each period checked, the plan's own first.",
    .flags =
        "--config --set --model --cluster --layers --ranks --seed --profile --memory-limit --for",
    .least_operands = 1,
    .most_operands = 1,
    .run = run_verify,
};
