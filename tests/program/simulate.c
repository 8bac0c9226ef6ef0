/* SPDX-License-Identifier: Apache-2.0 */
#include "program/predict.h"
#include "program/trace.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/program/random_model.h"

enum { SIMULATE_CASES = 150 };

Test(simulate, plan_and_program_take_the_same_time)
{
    for (uint64_t seed = 0; seed < SIMULATE_CASES; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 1);
        struct weft_program *program = random_program(&random, plan);
        struct weft_trace *trace = NULL;
        struct weft_trace_summary summary;
        cr_assert_eq(weft_simulate(program, &trace, &err), WEFT_OK);
        weft_trace_summarise(program, trace, &summary);
        cr_assert_eq(summary.step_ns, plan->prediction.step_ns);
        cr_assert_eq(summary.exposed_ns, plan->prediction.exposed_ns);
        cr_assert_eq(summary.compute_ns,
                     plan->prediction.compute_ns + plan->prediction.slowdown_ns);
        if (weft_problem_contends(plan->problem)) {
            cr_assert_geq(summary.channel_ns, plan->prediction.channel_ns);
        } else {
            cr_assert_eq(summary.channel_ns, plan->prediction.channel_ns);
            cr_assert_eq(plan->prediction.slowdown_ns, 0);
        }
        cr_assert_eq(summary.peak_bytes, plan->prediction.peak_bytes);
        cr_assert_eq(summary.step_ns, summary.compute_ns + summary.exposed_ns);
        cr_assert_leq(summary.overlapped_ns, summary.channel_ns);
        if (program->n_lanes == 2)
            cr_assert_geq(summary.exposed_ns, summary.channel_ns - summary.overlapped_ns);
        weft_trace_destroy(trace);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

Test(simulate, relaxed_plans_are_never_slower)
{
    int faster = 0;
    for (uint64_t seed = 0; seed < SIMULATE_CASES; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 2);
        int64_t before_ns = plan->prediction.step_ns;
        bool may_slow = weft_problem_relaxing_may_slow(random.stages.problem);
        cr_assert_eq(weft_plan_relax(plan, INT64_MAX, &err), WEFT_OK);
        cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
        if (!may_slow) cr_assert_leq(plan->prediction.step_ns, before_ns);
        faster += plan->prediction.step_ns < before_ns;
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(faster, SIMULATE_CASES / 4);
}

/* Work of slots fills the step up to the waits that are exposed. */
Test(simulate, spans_add_up_to_the_step)
{
    for (uint64_t seed = 0; seed < SIMULATE_CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 3);
        const struct weft_problem *problem = plan->problem;
        const size_t n = (size_t)problem->n_slots, m = (size_t)plan->n_placements;
        int64_t *words = calloc(weft_simulate_words(problem) + 3 * n + 2 * m, sizeof *words);
        int64_t *work = words + n + 2 * m, worked_ns = 0, last_ns = 0;
        struct weft_plan_spans spans = {.times = {words, words + n, words + n + m},
                                        .work_start_ns = work,
                                        .work_end_ns = work + n};
        weft_simulate_plan_spans(plan, work + 2 * n, &spans);
        for (size_t s = 0; s < n; s++) {
            cr_assert(last_ns <= spans.times.slot_start_ns[s] &&
                          spans.times.slot_start_ns[s] <= spans.work_start_ns[s] &&
                          spans.work_start_ns[s] <= spans.work_end_ns[s],
                      "seed %d", (int)seed);
            worked_ns += spans.work_end_ns[s] - spans.work_start_ns[s];
            last_ns = spans.work_end_ns[s];
        }
        cr_assert_eq(worked_ns, plan->prediction.compute_ns + plan->prediction.slowdown_ns);
        cr_assert_eq(plan->prediction.step_ns - worked_ns, plan->prediction.exposed_ns);
        free(words);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

/* The longest wait, launch by launch, from the simulation of the program. */
Test(simulate, longest_wait_is_from_launch_to_launch)
{
    for (uint64_t seed = 0; seed < SIMULATE_CASES; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 3);
        const struct weft_problem *problem = plan->problem;
        int64_t *words = calloc(weft_simulate_words(problem) + (size_t)problem->n_slots +
                                    2 * (size_t)plan->n_placements,
                                sizeof *words);
        struct weft_plan_times times = {words, words + problem->n_slots,
                                        words + problem->n_slots + plan->n_placements};
        weft_simulate_plan_times(plan, words + problem->n_slots + 2 * plan->n_placements, &times);
        int64_t gap_ns = 0, block_ns = 0, told_ns = -1;
        for (int32_t i = 0; i < plan->n_placements; i++) {
            /* The next launch on the lane, in this step or the next one. */
            const int32_t lane = problem->items[plan->placements[i].item].lane;
            int64_t own_ns = 0; /* not before those ahead of it */
            for (int32_t j = 0; j <= i; j++) {
                const int64_t at_ns = times.slot_start_ns[plan->placements[j].launch];
                if (problem->items[plan->placements[j].item].lane == lane && at_ns > own_ns)
                    own_ns = at_ns;
            }
            bool seen = false;
            int64_t first_ns = 0, next_ns = INT64_MAX;
            const int64_t took_ns = times.end_ns[i] - times.start_ns[i];
            if (problem->lanes[lane].kind >= WEFT_LANE_KIND_DOWN) continue;
            for (int32_t j = 0; j < plan->n_placements; j++) {
                if (problem->items[plan->placements[j].item].lane != lane) continue;
                const int64_t at_ns = times.slot_start_ns[plan->placements[j].launch];
                if (j > i && next_ns == INT64_MAX) next_ns = at_ns;
                if (!seen) first_ns = at_ns + plan->prediction.step_ns;
                seen = true;
            }
            if (next_ns == INT64_MAX) next_ns = first_ns;
            if (next_ns - own_ns > gap_ns) gap_ns = next_ns - own_ns;
            if (took_ns > block_ns) block_ns = took_ns;
        }
        cr_assert_eq(weft_plan_longest_wait(plan, &told_ns, &err), WEFT_OK);
        cr_assert_eq(told_ns, gap_ns + block_ns, "seed %d", (int)seed);
        free(words);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

/* Moments of a step: 2s is the start of slot s, 2s + 1 that of its compute. */
static int32_t launched_at(const struct weft_placement *at)
{
    return 2 * at->launch;
}

static int32_t due_at(const struct weft_placement *at)
{
    return 2 * at->deadline + (at->launch == at->deadline);
}

static int64_t moment_ns(const struct weft_plan *plan, int32_t moment)
{
    return moment % 2 == 0 ? 0 : weft_plan_slot_ns(plan, moment / 2);
}

static int64_t block_ns(const struct weft_plan *plan, int32_t i)
{
    return plan->problem->items[plan->placements[i].item].block_ns;
}

/* Step time in the interval model. Between any two moments there is time for all blocks with
 * launch and deadline within them, in any order. */
static int64_t interval_ns(const struct weft_plan *plan)
{
    int32_t n = 2 * plan->problem->n_slots;
    int64_t *times = calloc((size_t)n + 1, sizeof *times);
    for (int32_t b = 1; b <= n; b++) {
        times[b] = times[b - 1] + moment_ns(plan, b - 1);
        for (int32_t a = 0; a < b; a++) {
            int64_t within_ns = 0;
            for (int32_t i = 0; i < plan->n_placements; i++) {
                const struct weft_placement *at = &plan->placements[i];
                if (launched_at(at) >= a && due_at(at) <= b) within_ns += block_ns(plan, i);
            }
            if (times[a] + within_ns > times[b]) times[b] = times[a] + within_ns;
        }
    }
    int64_t step_ns = times[n] + weft_problem_agreements_ns(plan->problem);
    free(times);
    return step_ns;
}

/* Time of blocks on the critical stretch of the channel that launch before it or are due after it.
 * The interval model may place them elsewhere. */
static int64_t out_of_turn_ns(const struct weft_plan *plan, int64_t *step_ns)
{
    int32_t n = 2 * plan->problem->n_slots;
    int64_t *times = calloc((size_t)n + 1, sizeof *times),
            *extra = calloc((size_t)n + 1, sizeof *extra);
    for (int32_t b = 1; b <= n; b++) {
        times[b] = times[b - 1] + moment_ns(plan, b - 1);
        extra[b] = extra[b - 1];
        for (int32_t j = 0; j < plan->n_placements; j++) {
            if (due_at(&plan->placements[j]) != b) continue;
            int64_t stretch_ns = 0;
            for (int32_t i = j; i >= 0; i--) {
                int32_t a = launched_at(&plan->placements[i]);
                stretch_ns += block_ns(plan, i);
                if (times[a] + stretch_ns <= times[b]) continue;
                times[b] = times[a] + stretch_ns;
                extra[b] = extra[a];
                for (int32_t k = i; k <= j; k++) {
                    const struct weft_placement *at = &plan->placements[k];
                    if (launched_at(at) < a || due_at(at) > b) extra[b] += block_ns(plan, k);
                }
            }
        }
    }
    int64_t result = extra[n];
    *step_ns = times[n] + weft_problem_agreements_ns(plan->problem);
    free(times);
    free(extra);
    return result;
}

/* docs/planning.md: interval model <= simulation <= interval model + time out of turn. */
Test(simulate, differs_from_the_interval_model_by_what_is_out_of_turn)
{
    int equal = 0, different = 0;
    for (uint64_t seed = 0; seed < SIMULATE_CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 3);
        const struct weft_problem *problem = plan->problem;
        bool plain = problem->n_lanes == 2 && !weft_problem_contends(problem);
        if (plain) {
            int64_t path_ns = 0, model_ns = interval_ns(plan);
            int64_t extra_ns = out_of_turn_ns(plan, &path_ns), step_ns = plan->prediction.step_ns;
            cr_assert_eq(path_ns, step_ns, "seed %d: a step is its longest path", (int)seed);
            cr_assert_leq(model_ns, step_ns, "seed %d", (int)seed);
            cr_assert_leq(step_ns, model_ns + extra_ns, "seed %d", (int)seed);
            equal += step_ns == model_ns;
            different += step_ns > model_ns;
        }
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(equal, 5);
    cr_assert_gt(different, 5);
}
