#include "scheduler/rounds/rivals.h"
#include "scheduler/schedule.h"

#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/rounds/tight.h"
#include "tests/program/random_model.h"

/* A run as far as rivals look at it. */
struct rig {
    struct random_case random;
    struct weft_schedule_options options;
    struct weft_packed run;
    int64_t room_bytes[1024];
};

static void begin_rivals(struct rig *rig, uint64_t seed)
{
    struct weft_error err = {0};
    *rig = (struct rig){.options = {.planner = "ilp", .seed = 5}};
    random_case_init(&rig->random, seed);
    struct weft_problem *problem = rig->random.stages.problem;
    problem->memory_limit_bytes = weft_least_limit(problem, NULL) * 6 / 5;
    cr_assert_lt(problem->n_slots, 1024);
    rig->run = (struct weft_packed){.problem = problem, .options = &rig->options};
    cr_assert_eq(weft_digest_create(problem, &rig->run.table, &err), WEFT_OK, "%s", err.text);
    (void)weft_tight_room(rig->run.table, rig->room_bytes);
}

static void end(struct rig *rig)
{
    weft_digest_destroy(rig->run.table);
    random_case_finish(&rig->random);
}

static int64_t peak_of(const struct rig *rig, const struct weft_candidate *candidate,
                       const struct weft_problem *rows)
{
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_create(rows, "ilp", candidate->strategies, candidate->moves,
                                  candidate->n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    int64_t peak = weft_plan_peak(plan, NULL);
    weft_plan_destroy(plan);
    cr_assert_geq(peak, rig->run.table->least_bytes);
    return peak;
}

static bool has(const struct weft_rivals *rivals, const char *planner)
{
    for (int32_t i = 0; i < rivals->n; i++)
        if (strcmp(rivals->rivals[i].planner->name, planner) == 0) return true;
    return false;
}

static bool same(const struct weft_rival *a, const struct weft_rival *b, int32_t n_units)
{
    const struct weft_candidate *x = &a->candidate, *y = &b->candidate;
    return a->step_ns == b->step_ns && x->n_moves == y->n_moves &&
           memcmp(x->strategies, y->strategies, (size_t)n_units * sizeof *x->strategies) == 0 &&
           memcmp(x->moves, y->moves, (size_t)x->n_moves * sizeof *x->moves) == 0;
}

/* The fastest first, none twice, all within rows that hold so much more; ends the rivals. */
static void check_rivals(struct rig *rig, int64_t tight_bytes, int64_t *fastest_ns)
{
    struct weft_rivals rivals;
    struct weft_tight tight;
    struct weft_error err = {0};
    cr_assert_eq(weft_tight_create(rig->run.problem, rig->room_bytes, tight_bytes, &tight, &err),
                 WEFT_OK);
    cr_assert_eq(weft_rivals_create(&rig->run, &tight.problem, &rivals, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_gt(rivals.n, 0);
    cr_assert(has(&rivals, "greedy"));
    for (int32_t i = 0; i < rivals.n; i++) {
        const struct weft_rival *rival = &rivals.rivals[i];
        struct weft_plan *plan = NULL;
        cr_assert_leq(peak_of(rig, &rival->candidate, &tight.problem),
                      rig->run.problem->memory_limit_bytes);
        cr_assert_eq(
            weft_packed_measure(&rig->run, &rival->candidate, &tight.problem, true, &plan, &err),
            WEFT_OK);
        cr_assert_eq(plan->prediction.step_ns, rival->step_ns);
        weft_plan_destroy(plan);
        if (i == 0) continue;
        cr_assert_leq(rivals.rivals[i - 1].step_ns, rival->step_ns);
        cr_assert(!same(&rivals.rivals[i - 1], rival, rig->run.table->n_decisions), "twice");
    }
    *fastest_ns = rivals.rivals[0].step_ns;
    weft_rivals_finish(&rivals);
    weft_tight_finish(&tight);
}

Test(rivals, are_sorted_and_within_the_rows)
{
    int n_slower = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig rig;
        int64_t wide_ns, tight_ns;
        begin_rivals(&rig, seed);
        check_rivals(&rig, 0, &wide_ns);
        check_rivals(&rig, rig.run.problem->memory_limit_bytes / 10, &tight_ns);
        n_slower += tight_ns > wide_ns;
        end(&rig);
    }
    cr_assert_gt(n_slower, 5, "%d", n_slower);
}

/* The fastest of them is what the fastest of all planners but ilp makes by rows. */
Test(rivals, are_what_all_planners_decide)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig rig;
        struct weft_error err = {0};
        int64_t fastest_ns, best_ns = INT64_MAX;
        begin_rivals(&rig, seed);
        check_rivals(&rig, 0, &fastest_ns);
        for (const struct weft_planner *planner = weft_planners() + 1; planner->name; planner++) {
            struct weft_schedule_options options = {.planner = planner->name, .seed = 5};
            struct weft_plan *plan = NULL;
            enum weft_status status =
                weft_schedule(rig.run.problem, NULL, &options, &plan, NULL, &err);
            /* Nothing fits, or the rule cannot be applied. */
            if (status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) continue;
            cr_assert_eq(status, WEFT_OK, "%s", err.text);
            if (plan->prediction.step_ns < best_ns) best_ns = plan->prediction.step_ns;
            weft_plan_destroy(plan);
        }
        cr_assert_leq(fastest_ns, best_ns, "seed %d", (int)seed);
        end(&rig);
    }
}

/* When the budget is used up only what is quick: neither greedy nor other settings. */
Test(rivals, are_rules_alone_when_it_is_late)
{
    struct rig rig;
    struct weft_rivals all, late;
    struct weft_work work = {.spent = 1};
    struct weft_error err = {0};
    begin_rivals(&rig, 3);
    cr_assert_eq(weft_rivals_create(&rig.run, rig.run.problem, &all, &err), WEFT_OK);
    rig.run.budget = (struct weft_budget){&work, 1};
    cr_assert_eq(weft_rivals_create(&rig.run, rig.run.problem, &late, &err), WEFT_OK);
    cr_assert(!has(&late, "greedy"));
    cr_assert(has(&late, "all-fsdp"));
    cr_assert_gt(late.n, 0);
    cr_assert_lt(late.n, all.n);
    for (int32_t i = 0; i < late.n; i++)
        for (int32_t j = 0; j < i; j++)
            cr_assert_neq(late.rivals[i].planner, late.rivals[j].planner, "%s in two settings",
                          late.rivals[i].planner->name);
    weft_rivals_finish(&all);
    weft_rivals_finish(&late);
    end(&rig);
}
