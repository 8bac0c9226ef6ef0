/* SPDX-License-Identifier: Apache-2.0 */
/* Colouring pages takes most of a rule's plan. So all rules are measured in rows, and the fastest
 * one gets pages. */
#include "scheduler/paged_first.h"

#include "scheduler/paged_rows.h"
#include "scheduler/paged_uniform.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"

enum { MOST_TRIES = 256 };

/* Order of rules: fsdp2 is the most common one. Rules with other locations follow where state may
 * leave the device, since the others seldom fit there. */
enum pass { PASS_FSDP2, PASS_LOCATIONS, PASS_LITERAL, PASS_MOVED, PASS_SETTINGS, PASS_COUNT };

static enum pass pass_of(const struct weft_planner *rule, const struct weft_setting *setting)
{
    if (setting != rule->settings) return PASS_SETTINGS;
    if (rule == weft_planner_find("fsdp2", NULL)) return PASS_FSDP2;
    if (rule->locations != 0) return PASS_LOCATIONS;
    return rule->literal ? PASS_LITERAL : PASS_MOVED;
}

/* The step that a further plan must beat; 0: any plan is welcome. */
static int64_t best_ns(const struct weft_paged *run)
{
    const int64_t own_ns = run->plan ? run->plan->prediction.step_ns : 0;
    const int64_t kept_ns = run->options->kept_ns;
    return own_ns > 0 && (kept_ns == 0 || own_ns < kept_ns) ? own_ns : kept_ns;
}

/* A decision of a rule in one form, and the step of its plan. */
struct
try {
    const struct weft_planner *rule;
    const struct weft_setting *setting;
    int64_t limit_bytes; /* of the rule's decision */
    int64_t rows_bytes;  /* blocks are moved apart within these rows; 0: not moved */
    int64_t step_ns;     /* 0: it was tried in pages */
};

struct tries {
    struct weft_paged *run;
    int32_t n;
    struct try all[MOST_TRIES];
};

/* Decides by a rule for one limit. *decides: the rule has a decision for this limit. */
static enum weft_status decide_rule(struct weft_paged *run, const struct try *at, bool *decides,
                                    struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    struct weft_problem rows = *run->problem;
    struct weft_outcome none = {.pool = &run->pool};
    struct weft_error refusal = {0};
    rows.tiers[0].limit_bytes = at->limit_bytes;
    options.setting = at->setting;
    options.may_stop = true;
    options.table = run->table;
    options.n_starts = 0;
    weft_work_spend(run->budget.work, weft_planner_rule_units(run->table));
    const enum weft_status status =
        weft_planner_decide(at->rule, &rows, &options, &run->candidate, &none, &refusal);
    *decides = status == WEFT_OK;
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* Measures the run's candidate in rows alone. Adds a try if it fits and may be faster. *fits: its
 * largest row does. */
static enum weft_status measure_form(struct tries *tries, struct try at, bool *fits,
                                     struct weft_error *err)
{
    struct weft_paged *run = tries->run;
    const int64_t below_ns = best_ns(run);
    struct weft_error refusal = {0};
    int64_t peak_bytes;
    *fits = false;
    const enum weft_status status =
        weft_paged_measure(run, at.rows_bytes, &at.step_ns, &peak_bytes, &refusal);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail_again(err, &refusal, "%s", refusal.text);
    *fits = peak_bytes <= run->problem->tiers[0].limit_bytes;
    if (*fits && (below_ns == 0 || at.step_ns < below_ns) && tries->n < MOST_TRIES)
        tries->all[tries->n++] = at;
    return WEFT_OK;
}

/* Decides by a rule for one limit, and measures the decision unless its busiest lane shows that it
 * is not faster. *fits: no lower limit need be asked. */
static enum weft_status try_limit(struct tries *tries, struct try at, bool *fits,
                                  struct weft_error *err)
{
    struct weft_paged *run = tries->run;
    const int64_t below_ns = best_ns(run);
    bool decides, moved_fits;
    WEFT_TRY(decide_rule(run, &at, &decides, err));
    *fits = !decides;
    if (!decides) return WEFT_OK;
    if (below_ns > 0 && weft_busiest_ns(run->problem, run->candidate.strategies) >= below_ns)
        return WEFT_OK;
    WEFT_TRY(measure_form(tries, at, fits, err));
    if (at.rule->literal || !*fits) return WEFT_OK;
    at.rows_bytes = at.limit_bytes;
    WEFT_TRY(measure_form(tries, at, &moved_fits, err));
    if (moved_fits || at.limit_bytes < INT64_MAX) return WEFT_OK;
    at.rows_bytes = run->problem->tiers[0].limit_bytes;
    return measure_form(tries, at, &moved_fits, err);
}

/* Decides for any memory as the rule's series does first. Most rules ignore the limit, so that
 * their own limit is asked only if that decision does not fit. */
static enum weft_status try_rule(struct tries *tries, const struct weft_planner *rule,
                                 const struct weft_setting *setting, struct weft_error *err)
{
    struct try at = {.rule = rule, .setting = setting, .limit_bytes = INT64_MAX};
    bool fits;
    WEFT_TRY(try_limit(tries, at, &fits, err));
    at.limit_bytes = tries->run->problem->tiers[0].limit_bytes;
    return fits ? WEFT_OK : try_limit(tries, at, &fits, err);
}

static bool is_done(const struct weft_paged *run, struct weft_budget until)
{
    return weft_paged_is_late(run) || weft_budget_is_over(until) ||
           (run->plan != NULL && !weft_paged_is_open(run));
}

/* Tries rules in the order of passes until the work is over. */
static enum weft_status try_rules(struct tries *tries, struct weft_budget until,
                                  struct weft_error *err)
{
    struct weft_paged *run = tries->run;
    int32_t at = 0;
    for (int pass = PASS_FSDP2; pass < PASS_COUNT; pass++)
        for (const struct weft_planner *rule = weft_planners(); rule->name; rule++) {
            const struct weft_setting *setting = rule->settings;
            if (!weft_planner_is_rule_for(rule, run->problem) || rule->fills_batch) continue;
            do {
                if ((int)pass_of(rule, setting) != pass || at++ < run->n_first) continue;
                if (run->n_first > 0 && is_done(run, until)) return WEFT_OK;
                run->n_first++;
                WEFT_TRY(try_rule(tries, rule, setting, err));
            } while (setting && (++setting)->name);
        }
    return WEFT_OK;
}

/* Gives pages to a try. Keeps its plan if it fits and is faster. */
static enum weft_status page_try(struct weft_paged *run, const struct try *at,
                                 struct weft_error *err)
{
    int64_t peak_bytes;
    bool decides;
    const int64_t below_ns = best_ns(run);
    WEFT_TRY(decide_rule(run, at, &decides, err));
    if (!decides) return WEFT_OK;
    struct weft_error refusal = {0};
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    run->below_ns = below_ns;
    enum weft_status status = weft_paged_within(run, at->rows_bytes, &peak_bytes, &refusal);
    if (status == WEFT_OK && run->plan && !weft_paged_fits(run))
        status = weft_paged_least_pages(run, &refusal);
    run->below_ns = 0;
    weft_paged_keep_faster(run, aside);
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* Gives pages to tries, the fastest first, until one fits. */
static enum weft_status page_tries(struct tries *tries, struct weft_budget until,
                                   struct weft_error *err)
{
    const struct weft_plan *before = tries->run->plan;
    for (int32_t n = 0; n < tries->n; n++) {
        struct try *best = NULL;
        for (int32_t i = 0; i < tries->n; i++) {
            struct try *at = &tries->all[i];
            if (at->step_ns > 0 && (best == NULL || at->step_ns < best->step_ns)) best = at;
        }
        const int64_t below_ns = best_ns(tries->run);
        if (below_ns > 0 && best->step_ns >= below_ns) return WEFT_OK;
        if (n > 0 && is_done(tries->run, until)) return WEFT_OK;
        WEFT_TRY(page_try(tries->run, best, err));
        if (tries->run->plan != before) return WEFT_OK;
        best->step_ns = 0;
    }
    return WEFT_OK;
}

/* Decides by greedy with its part of the budget. */
static enum weft_status decide_greedily(struct weft_paged *run, bool *decides,
                                        struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    struct weft_outcome none = {.pool = &run->pool};
    struct weft_error refusal = {0};
    const int64_t part = weft_budget_left(run->budget) / WEFT_GREEDY_PART + 1;
    options.budget =
        weft_budget_of(run->budget.work, options.greedy_units > 0 ? options.greedy_units : part);
    options.table = run->table;
    options.n_starts = 0;
    const enum weft_status status =
        weft_planner_decide(weft_planner_find("greedy", NULL), run->problem, &options,
                            &run->candidate, &none, &refusal);
    *decides = status == WEFT_OK;
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* Greedy's decision gets pages if it is faster than all tries. */
static enum weft_status page_greedy(struct tries *tries, struct weft_error *err)
{
    struct weft_paged *run = tries->run;
    const int64_t limit_bytes = run->problem->tiers[0].limit_bytes;
    int64_t below_ns = best_ns(run), step_ns, peak_bytes;
    bool decides;
    for (int32_t i = 0; i < tries->n; i++)
        if (below_ns == 0 || tries->all[i].step_ns < below_ns) below_ns = tries->all[i].step_ns;
    WEFT_TRY(decide_greedily(run, &decides, err));
    if (!decides) return WEFT_OK;
    WEFT_TRY(weft_paged_measure(run, 0, &step_ns, &peak_bytes, err));
    if (below_ns > 0 && step_ns >= below_ns) return WEFT_OK;
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    const enum weft_status status = weft_paged_candidate(run, limit_bytes, false, err);
    weft_paged_keep_faster(run, aside);
    return status;
}

enum weft_status weft_paged_first(struct weft_paged *run, struct weft_budget until,
                                  struct weft_error *err)
{
    struct tries tries = {.run = run};
    const bool begins = run->n_first == 0;
    WEFT_TRY(try_rules(&tries, until, err));
    if (begins && !weft_paged_is_late(run)) WEFT_TRY(page_greedy(&tries, err));
    return page_tries(&tries, until, err);
}
