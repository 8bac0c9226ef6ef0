#include "plan/trace.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/plan/random_model.h"

enum { CASES = 150 };

Test(simulate, plan_and_program_take_the_same_time)
{
    for (uint64_t seed = 0; seed < CASES; seed++) {
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
        bool contends =
            program->rates.compute < WEFT_RATE_ONE || program->rates.channel < WEFT_RATE_ONE;
        if (contends) {
            cr_assert_geq(summary.channel_ns, plan->prediction.channel_ns);
        } else {
            cr_assert_eq(summary.channel_ns, plan->prediction.channel_ns);
            cr_assert_eq(plan->prediction.slowdown_ns, 0);
        }
        cr_assert_eq(summary.peak_bytes, plan->prediction.peak_bytes);
        cr_assert_eq(summary.step_ns, summary.compute_ns + summary.exposed_ns);
        cr_assert_leq(summary.overlapped_ns, summary.channel_ns);
        if (program->n_channels == 1)
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
    for (uint64_t seed = 0; seed < CASES; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 2);
        int64_t before_ns = plan->prediction.step_ns;
        const struct weft_profile *profile = random.profile;
        bool contends =
            profile->rates.compute < WEFT_RATE_ONE || profile->rates.channel < WEFT_RATE_ONE;
        cr_assert_eq(weft_plan_relax(plan, INT64_MAX, &err), WEFT_OK);
        cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
        /* What overlaps more may slow more. */
        if (!contends) cr_assert_leq(plan->prediction.step_ns, before_ns);
        faster += plan->prediction.step_ns < before_ns;
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(faster, CASES / 4);
}
