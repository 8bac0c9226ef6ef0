/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_rule.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/units.h"
#include "scheduler/paged_rows.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"

/* Steps of a part of the series, at least, and in each of them, at most. A rule may refuse a limit
 * and have a plan below. */
enum { PART_STEPS = 32, FINER_STEPS = 8 };

/* Most work of a part with one decision at the least distance. There only the room to move blocks
 * apart changes. */
enum { EQUAL_UNITS = 50000000 };

/* Rungs from a power of two to the next. */
enum { RUNGS_BITS = 2 };

struct decision {
    int64_t rows_bytes;  /* the rule's limit */
    int64_t peak_bytes;  /* with blocks as they are; 0: the rule refuses the limit */
    int64_t moved_bytes; /* peak with blocks moved apart */
    bool applies;        /* false: to the problem at no limit */
    struct weft_hash strategies, moves;
};

struct series {
    struct weft_paged *run;
    int32_t n_plans;
    int64_t rows_bytes;   /* limit of the fastest plan */
    int64_t below_ns;     /* of the caller: slower plans get no pages; 0: all do */
    bool may_end;         /* with the budget; otherwise with the alarm alone */
    struct decision last; /* measured last; peak_bytes 0: none */
};

bool weft_paged_has_series(const struct weft_planner *planner)
{
    return !planner->searches && !planner->solves && planner->decide != weft_planner_random;
}

/* Distance of the rungs at `bytes`. */
static int64_t rung_width(int64_t bytes)
{
    int64_t width = 1;
    while (bytes >> RUNGS_BITS >= 2 * width)
        width *= 2;
    return width;
}

static int64_t rung_below(int64_t bytes)
{
    const int64_t width = rung_width(bytes - 1);
    return (bytes - 1) / width * width;
}

static int64_t rung_from(int64_t bytes)
{
    const int64_t width = rung_width(bytes);
    return (bytes + width - 1) / width * width;
}

/* Gives pages to the run's candidate, with blocks moved apart within `rows_bytes` (0: as they are).
 * Keeps the plan if it fits and is faster than the one so far. Sets *peak_bytes to its largest
 * row. */
static enum weft_status measure_decision(struct series *series, int64_t rows_bytes,
                                         int64_t *peak_bytes, struct weft_error *err)
{
    struct weft_paged *run = series->run;
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    run->below_ns = aside.plan ? aside.plan->prediction.step_ns : series->below_ns;
    enum weft_status status = weft_paged_within(run, rows_bytes, peak_bytes, err);
    if (status == WEFT_OK && run->plan && !weft_paged_fits(run))
        status = weft_paged_least_pages(run, err);
    run->below_ns = series->below_ns;
    weft_paged_keep_faster(run, aside);
    return status;
}

static bool is_equal(const struct decision *a, const struct decision *b)
{
    return a->peak_bytes > 0 && b->peak_bytes > 0 &&
           weft_hash_equal(a->strategies, b->strategies) && weft_hash_equal(a->moves, b->moves);
}

/* Measures the run's candidate in all forms that its planner allows, and sets the peaks. The form
 * with blocks as they are depends on the decision alone, so it is not measured twice. */
static enum weft_status measure_forms(struct series *series, struct decision *decision,
                                      struct weft_error *err)
{
    const struct weft_plan *before = series->run->plan;
    const int64_t before_ns = before ? before->prediction.step_ns : INT64_MAX;
    const bool is_literal = series->run->planner->literal;
    if (!is_literal)
        WEFT_TRY(measure_decision(series, decision->rows_bytes, &decision->moved_bytes, err));
    decision->peak_bytes = series->last.peak_bytes;
    if (!is_equal(decision, &series->last))
        WEFT_TRY(measure_decision(series, 0, &decision->peak_bytes, err));
    if (is_literal) decision->moved_bytes = decision->peak_bytes;
    series->last = *decision;
    const struct weft_plan *now = series->run->plan;
    if (now && now->prediction.step_ns < before_ns) series->rows_bytes = decision->rows_bytes;
    return WEFT_OK;
}

/* Decides for one limit. */
static enum weft_status decide_at(struct series *series, int64_t rows_bytes,
                                  struct decision *decision, struct weft_error *err)
{
    struct weft_paged *run = series->run;
    struct weft_schedule_options options = *run->options;
    struct weft_problem rows = *run->problem;
    struct weft_outcome none = {.pool = &run->pool};
    struct weft_error refusal = {0};
    rows.tiers[0].limit_bytes = rows_bytes;
    options.table = run->table;
    options.n_starts = 0;
    series->n_plans++;
    weft_work_spend(run->budget.work, weft_planner_rule_units(run->table));
    enum weft_status status =
        weft_planner_decide(run->planner, &rows, &options, &run->candidate, &none, &refusal);
    *decision = (struct decision){.rows_bytes = rows_bytes, .applies = status != WEFT_E_DATA};
    if (status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail_again(err, &refusal, "%s", refusal.text);
    const struct weft_candidate *made = &run->candidate;
    decision->strategies = weft_hash_bytes(made->strategies, (size_t)run->table->n_decisions *
                                                                 sizeof *made->strategies);
    decision->moves = weft_hash_bytes(made->moves, (size_t)made->n_moves * sizeof *made->moves);
    return measure_forms(series, decision, err);
}

static bool is_over(const struct series *series)
{
    const struct weft_budget budget = series->run->budget;
    return series->may_end ? weft_budget_is_over(budget) : weft_paged_is_late(series->run);
}

/* Distances of the limits to look at between two rungs, least and usual; 0: no limit between them
 * gives another plan, as far as the series looks. */
struct steps {
    int64_t least_bytes, usual_bytes;
};

static struct steps steps_between(const struct series *series, const struct decision *high,
                                  const struct decision *low)
{
    const int64_t width = rung_width(low->rows_bytes);
    const int64_t fine_bytes =
        width > PART_STEPS * FINER_STEPS ? width / (PART_STEPS * FINER_STEPS) : 1;
    const int64_t bytes = width > PART_STEPS ? width / PART_STEPS : 1;
    const int64_t all_units =
        PART_STEPS * FINER_STEPS * weft_planner_rule_units(series->run->table);
    const bool is_one = is_equal(high, low) && high->peak_bytes <= low->rows_bytes;
    if (is_one && high->moved_bytes == low->moved_bytes) return (struct steps){0};
    const bool is_costly = is_one && all_units > EQUAL_UNITS;
    return (struct steps){is_costly ? bytes : fine_bytes, bytes};
}

/* Decides for the limits of a part between `at` and the lower rung. */
static enum weft_status decide_part(struct series *series, struct decision at,
                                    const struct decision *low, struct weft_error *err)
{
    const int64_t proven_bytes = series->run->table->least_proven_bytes;
    const struct steps steps = steps_between(series, &at, low);
    while (steps.least_bytes > 0 && !is_over(series)) {
        int64_t rows_bytes = at.rows_bytes - steps.usual_bytes;
        if (at.moved_bytes > rows_bytes) rows_bytes = at.moved_bytes - 1;
        if (rows_bytes > at.rows_bytes - steps.least_bytes)
            rows_bytes = at.rows_bytes - steps.least_bytes;
        if (rows_bytes <= low->rows_bytes || rows_bytes < proven_bytes) break;
        WEFT_TRY(decide_at(series, rows_bytes, &at, err));
    }
    return WEFT_OK;
}

/* Decides for the limits from the rung above the run's limit down to the least that any plan
 * needs. */
static enum weft_status decide_parts(struct series *series, struct weft_error *err)
{
    const struct weft_paged *run = series->run;
    struct decision high, low;
    WEFT_TRY(decide_at(series, INT64_MAX, &high, err));
    if (!high.applies) return WEFT_OK;
    const int64_t limit_bytes = run->problem->tiers[0].limit_bytes;
    const int64_t from_bytes = limit_bytes < WEFT_PROBLEM_MOST ? limit_bytes : WEFT_PROBLEM_MOST;
    WEFT_TRY(decide_at(series, rung_from(from_bytes), &high, err));
    while (high.rows_bytes > 1 && high.rows_bytes >= run->table->least_proven_bytes &&
           !is_over(series)) {
        WEFT_TRY(decide_at(series, rung_below(high.rows_bytes), &low, err));
        WEFT_TRY(decide_part(series, high, &low, err));
        high = low;
    }
    return WEFT_OK;
}

enum weft_status weft_paged_series(struct weft_paged *run, bool may_end, struct weft_error *err)
{
    struct series series = {.run = run, .below_ns = run->below_ns, .may_end = may_end};
    weft_paged_keep(run, NULL, NULL);
    const enum weft_status status = decide_parts(&series, err);
    if (status == WEFT_OK && run->plan != NULL && !run->options->draft) {
        char rows[WEFT_UNITS_TEXT_BYTES] = "any size";
        if (series.rows_bytes < INT64_MAX) weft_units_show_bytes(series.rows_bytes, rows);
        weft_log(WEFT_LOG_DEBUG,
                 "planner %s: the fastest of its decisions for %d limits is for rows of %s",
                 run->options->planner, (int)series.n_plans, rows);
    }
    return status;
}
