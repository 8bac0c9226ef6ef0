/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_rows.h"

#include "problem/pages.h"
#include "program/mappings.h"
#include "scheduler/tree/proof.h"

/* Rounding differs from plan to plan, so lower rows of pages may be too high again, by less. */
enum { MOST_LOWER = 3 };

/* Half of the mappings that Linux lets a process have, as a rule. A rank that needs more would plan
 * again in larger pages. */
enum { MOST_MAPPINGS = 65530 / 2 };

/* True if the budget is over and another plan fits, or the plan is good enough. */
static bool is_done(const struct weft_paged *run)
{
    return run->plan && (weft_budget_is_over(run->budget) || !weft_paged_is_open(run));
}

enum weft_status weft_paged_drop_scattered(struct weft_paged *run, struct weft_error *err)
{
    struct weft_mappings count;
    if (!weft_paged_fits(run) || !run->program) return WEFT_OK;
    WEFT_TRY(weft_program_count_mappings(run->program, run->program->paging, run->problem->ranks,
                                         &count, err));
    if (count.all > MOST_MAPPINGS) weft_paged_keep(run, NULL, NULL);
    return WEFT_OK;
}

/* Asks in the run's rows, then in lower ones while the plan's pages exceed the limit. */
static enum weft_status ask_lower(struct weft_paged *run, struct weft_paged_question question,
                                  int32_t most, struct weft_outcome *outcome,
                                  struct weft_error *err)
{
    struct weft_outcome none;
    for (int32_t i = 0; i <= most && question.rows_bytes > 0; i++) {
        run->n_again++;
        WEFT_TRY(weft_paged_ask(run, &question, i == 0 ? outcome : &none, err));
        if (!run->plan || weft_paged_fits(run) || weft_budget_is_over(run->budget)) break;
        question.rows_bytes -= weft_paged_total_bytes(run) - run->problem->tiers[0].limit_bytes;
    }
    return WEFT_OK;
}

/* Plans in rows of such pages. Keeps the plan if it fits and is faster than the run's. */
static enum weft_status plan_in_rows(struct weft_paged *run, int64_t page_bytes,
                                     enum weft_page_rows rows, struct weft_paged_question question,
                                     struct weft_outcome *outcome, struct weft_error *err)
{
    const int64_t own_bytes = run->counted.page_bytes;
    const int32_t most = rows == WEFT_PAGES_USUAL ? MOST_LOWER : 0;
    struct weft_problem *problem = NULL;
    struct weft_error refusal = {0};
    WEFT_TRY(weft_problem_in_pages(run->problem, page_bytes, rows, &problem, err));
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    run->rows = problem;
    run->counted.page_bytes = page_bytes;
    run->below_ns = aside.plan ? aside.plan->prediction.step_ns : 0;
    question.rows_bytes = problem->tiers[0].limit_bytes;
    question.start = aside.plan;
    enum weft_status status = ask_lower(run, question, most, outcome, &refusal);
    if (status == WEFT_OK && page_bytes < own_bytes)
        status = weft_paged_drop_scattered(run, &refusal);
    run->rows = NULL;
    run->counted.page_bytes = own_bytes;
    run->below_ns = 0;
    weft_problem_destroy(problem);
    weft_paged_keep_faster(run, aside);
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

enum weft_status weft_paged_plan_rows(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_paged_question draft = {.part = 0.5, .draft = true};
    struct weft_outcome none;
    const int64_t sizes[] = {run->counted.page_bytes, WEFT_PAGE_LEAST_BYTES};
    const int n_sizes = run->page_is_open && sizes[0] > sizes[1] ? 2 : 1;
    if (!run->inputs) return WEFT_OK;
    for (int i = 0; i < n_sizes && !is_done(run); i++)
        WEFT_TRY(plan_in_rows(run, sizes[i], WEFT_PAGES_USUAL, draft, &none, err));
    return WEFT_OK;
}

enum weft_status weft_paged_bound(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_paged_question question = {.part = 0.5, .hidden = true};
    if (!run->program || is_done(run)) return WEFT_OK;
    const int64_t page_bytes = run->program->paging->page_bytes;
    if (weft_paged_bound_of(run, page_bytes)) return WEFT_OK;
    run->large_outcome = run->paged_outcome;
    run->large_page_bytes = run->bound_page_bytes;
    run->bound_page_bytes = page_bytes;
    return plan_in_rows(run, page_bytes, WEFT_PAGES_LEAST, question, &run->paged_outcome, err);
}

/* Proves by ascent, or that not even the least rows are within the limit. */
static enum weft_status prove_in_pages(struct weft_paged *run, struct weft_error *err)
{
    enum { MOST_UNITS = 50000000 };
    const int64_t units = weft_budget_left(run->budget) / 4;
    const struct weft_ascent ascent = {.target_ns = run->options->rival_ns,
                                       .units = units < MOST_UNITS ? units : MOST_UNITS,
                                       .work = run->budget.work};
    struct weft_problem *problem = NULL;
    WEFT_TRY(weft_problem_in_pages(run->problem, run->bound_page_bytes, WEFT_PAGES_LEAST, &problem,
                                   err));
    run->paged_outcome = (struct weft_outcome){.pool = &run->pool};
    const enum weft_status status = weft_prove(problem, ascent.target_ns > 0 ? &ascent : NULL,
                                               &run->pool, &run->paged_outcome, err);
    weft_problem_destroy(problem);
    return status;
}

enum weft_status weft_paged_bound_refused(struct weft_paged *run, int64_t page_bytes,
                                          struct weft_error *err)
{
    const struct weft_paged_question question = {.part = 0.5, .hidden = true};
    const int64_t rival_ns = run->options->rival_ns;
    weft_paged_keep(run, NULL, NULL);
    run->bound_page_bytes = page_bytes;
    if (weft_budget_has_rung(run->budget)) return WEFT_OK;
    WEFT_TRY(prove_in_pages(run, err));
    const bool is_enough =
        run->paged_outcome.bound_ns >= (rival_ns > 0 ? rival_ns : WEFT_PROBLEM_MOST);
    if (is_enough || weft_budget_is_over(run->budget)) return WEFT_OK;
    const struct weft_outcome ascended = run->paged_outcome;
    WEFT_TRY(plan_in_rows(run, page_bytes, WEFT_PAGES_LEAST, question, &run->paged_outcome, err));
    if (run->paged_outcome.bound_ns < ascended.bound_ns) run->paged_outcome = ascended;
    return WEFT_OK;
}

enum weft_status weft_paged_spend(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_paged_question question = {.part = 1, .hidden = true};
    struct weft_outcome none;
    if (!run->program || is_done(run)) return WEFT_OK;
    return plan_in_rows(run, run->program->paging->page_bytes, WEFT_PAGES_USUAL, question, &none,
                        err);
}

enum weft_status weft_paged_spend_least(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_paged_question question = {.part = 0.5, .hidden = true};
    struct weft_outcome none;
    if (!run->program || !run->page_is_open || !weft_paged_is_open_in_rows(run)) return WEFT_OK;
    if (run->program->paging->page_bytes > WEFT_PAGE_LEAST_BYTES &&
        !weft_budget_is_over(run->budget))
        WEFT_TRY(plan_in_rows(run, WEFT_PAGE_LEAST_BYTES, WEFT_PAGES_USUAL, question, &none, err));
    return weft_paged_bound(run, err);
}

enum weft_status weft_paged_least_pages(struct weft_paged *run, struct weft_error *err)
{
    if (!run->program || !run->page_is_open || run->counted.page_bytes == WEFT_PAGE_LEAST_BYTES)
        return WEFT_OK;
    WEFT_TRY(weft_paged_again(run, WEFT_PAGE_LEAST_BYTES, err));
    return weft_paged_drop_scattered(run, err);
}
