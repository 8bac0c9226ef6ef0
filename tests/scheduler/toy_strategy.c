/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy that no policy is: a unit's layer keeps no activations for its backward and computes
 * them again there. It is put into tiny problems by hand, and planner, proof and files take it as
 * they take any other. */
#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/tiny.h"

static const char toy_name[] = "sdp+host";

static void *more(struct weft_problem *problem, const void *old, int32_t n, size_t size)
{
    unsigned char *made = weft_pool_array(&problem->pool, (size_t)n + 1, size);
    cr_assert_not_null(made);
    if (n > 0) memcpy(made, old, (size_t)n * size);
    return made;
}

static void add_hold(struct weft_problem *problem, struct weft_problem_strategy *to,
                     struct weft_hold hold)
{
    to->holds = more(problem, to->holds, to->n_holds, sizeof *to->holds);
    to->holds[to->n_holds++] = hold;
}

/* A copy of sdp that holds `kept` in its last slot alone, and computes its layer again there. */
static void add_toy(struct weft_problem *problem, int32_t unit, struct weft_hold kept)
{
    struct weft_problem_decision *d = &problem->decisions[unit];
    int32_t sdp = weft_decision_of_policy(d, WEFT_POLICY_SDP), toy = d->n_strategies;
    cr_assert_geq(sdp, 0);
    d->strategies = more(problem, d->strategies, toy, sizeof *d->strategies);
    struct weft_problem_strategy *to = &d->strategies[toy];
    *to = d->strategies[sdp];
    to->name = toy_name;
    to->kind = problem->n_kinds - 1;
    to->times = more(problem, to->times, to->n_times, sizeof *to->times);
    to->times[to->n_times++] = (struct weft_slot_time){kept.last, problem->slot_ns[kept.first] / 2};
    for (int32_t k = 0; k < toy; k++)
        add_hold(problem, &d->strategies[k], kept);
    kept.first = kept.last;
    add_hold(problem, to, kept);
    d->n_strategies++;
    for (int32_t i = 0; i < problem->n_items; i++) {
        struct weft_item *item = &problem->items[i].item;
        if (item->decision == unit && (item->strategies >> sdp & 1u) != 0)
            item->strategies |= UINT64_C(1) << toy;
    }
}

/* Activations, which all strategies hold, become what each holds. */
static void add_toys(struct weft_problem *problem)
{
    int32_t n = 0;
    problem->kinds = more(problem, problem->kinds, problem->n_kinds, sizeof *problem->kinds);
    problem->kinds[problem->n_kinds++] = toy_name;
    for (int32_t i = 0; i < problem->n_common; i++) {
        struct weft_hold hold = problem->common[i];
        if (hold.category == WEFT_CATEGORY_ACTIVATIONS)
            add_toy(problem, hold.first - problem->n_decisions - 1, hold);
        else
            problem->common[n++] = hold;
    }
    problem->n_common = n;
    cr_assert_eq(weft_problem_link(problem, "toy", NULL), WEFT_OK);
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(problem, "toy", &err), WEFT_OK, "%s", err.text);
}

static void check_files(const struct weft_problem *problem)
{
    struct weft_error err = {0};
    struct weft_json *document = NULL;
    struct weft_problem *again = NULL;
    struct weft_text text, differences;
    weft_text_init(&text);
    weft_text_init(&differences);
    struct weft_json_writer writer;
    weft_json_writer_init(&writer, &text, 0);
    weft_problem_write(problem, &writer);
    cr_assert_eq(weft_json_parse(weft_text_chars(&text), text.length, "toy", &document, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_problem_read(weft_json_root(document), "toy", &again, &err), WEFT_OK, "%s",
                 err.text);
    weft_problem_compare(problem, again, &differences);
    cr_assert_str_eq(weft_text_chars(&differences), "");
    weft_problem_destroy(again);
    weft_json_destroy(document);
    weft_text_finish(&text);
    weft_text_finish(&differences);
}

/* It always runs: the plan has a toy strategy, and is faster than any without. Few drawn ones are.
 */
static const uint64_t SEED_THAT_CHOOSES = 66;

Test(toy_strategy, is_planned_proven_and_written_as_any_other, .timeout = 900)
{
    int32_t n_chosen = 0, n_faster = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        if (seed != SEED_THAT_CHOOSES && !test_draws(seed, 3, 9)) continue;
        struct weft_problem *problem = tiny_problem_of(seed, 1);
        int64_t without_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        add_toys(problem);
        check_files(problem);
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        struct weft_work work = {0};
        struct weft_schedule_options options = {
            .planner = "ilp", .seed = 5, .budget = weft_budget_of(&work, 10000000000)};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_eq(plan->prediction.step_ns, best_ns, "seed %d: %lld, the best is %lld",
                     (int)seed, (long long)plan->prediction.step_ns, (long long)best_ns);
        cr_assert_leq(plan->bound_ns, best_ns);
        cr_assert_eq(
            weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
            WEFT_OK, "%s", err.text);
        for (int32_t u = 0; u < problem->n_decisions; u++) {
            const struct weft_problem_strategy *chosen =
                weft_problem_chosen(problem, plan->strategies, u);
            n_chosen += strcmp(chosen->name, toy_name) == 0;
        }
        n_faster += best_ns < without_ns;
        weft_plan_destroy(plan);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_chosen, TEST_CASES_OF(5, 0, 0), "chosen %d times", n_chosen);
    cr_assert_geq(n_faster, TEST_CASES_OF(3, 1, 1), "faster %d times", n_faster);
}
