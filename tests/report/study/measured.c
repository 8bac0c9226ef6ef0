/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "report/study/cases.h"

enum { N = 2 };

static struct weft_sweep_point run_of(int64_t step_ns, int64_t measured_ns, int64_t spread_ns)
{
    return (struct weft_sweep_point){.fits = true,
                                     .step_ns = step_ns,
                                     .measured_ns = measured_ns,
                                     .measured_spread_ns = spread_ns};
}

/* The second case has no rule; one point was not measured. */
Test(measured, planners_are_compared_where_both_ran)
{
    struct weft_sweep_point ilp[N] = {run_of(100, 100, 1), run_of(100, 200, 10)};
    struct weft_sweep_point rule[N] = {run_of(100, 150, 0), run_of(100, 0, 0)};
    struct weft_sweep_point alone[1] = {run_of(100, 100, 2)}, part[1] = {run_of(100, 110, 33)};
    struct weft_sweep_curve one[N + 2] = {{"ilp", N, ilp}, {"rule", N, rule}};
    struct weft_sweep_curve other[2] = {{"ilp", 1, alone}, {"two-stage", 1, part}};
    struct weft_case cases[] = {{.model = "a",
                                 .network = "1",
                                 .n_limits = N,
                                 .n_planners = 2,
                                 .curves = one,
                                 .measured = true,
                                 .has_drift = true,
                                 .compute_drift = 0.01,
                                 .network_drift = -0.02,
                                 .n_repeats = 2,
                                 .n_repeated = 3},
                                {.model = "b",
                                 .network = "4",
                                 .n_limits = 1,
                                 .n_planners = 1,
                                 .curves = other,
                                 .measured = true,
                                 .n_repeats = 3}};
    const struct weft_cases all = {.n = 2, .cases = cases};
    struct weft_answer answer = {0};
    struct weft_text text;
    weft_text_init(&text);
    weft_cases_put_measured(&all, &answer);
    weft_answer_text(&answer, &text);
    const char *said = weft_text_chars(&text);
    cr_expect(
        strstr(said, "  ilp           3        3     0.00 %   0.00 %  2.00 %  5.00 %   0.00 %"),
        "%s", said);
    cr_expect(
        strstr(said, "  rule          1        0    50.00 %  50.00 %  0.00 %  0.00 %  50.00 %"),
        "%s", said);
    cr_expect(strstr(said, "a x1: 3 points ran again, and 1 differ by more than 2 %; after the"),
              "%s", said);
    cr_expect(strstr(said, "layers took +1.0 %, collectives -2.0 %"), "%s", said);
    cr_expect(strstr(said, "b x4: 0 points ran again, and 1 differ by more than 2 %\n"), "%s",
              said);
    weft_answer_finish(&answer);
    weft_text_finish(&text);
}

/* Rule is faster at one point, and as fast at the other. */
Test(measured, a_single_run_is_told_without_drift)
{
    struct weft_sweep_point ilp[N] = {run_of(100, 100, 0), run_of(100, 100, 0)};
    struct weft_sweep_point rule[N] = {run_of(100, 50, 0), run_of(100, 99, 0)};
    struct weft_sweep_curve curves[N + 2] = {{"ilp", N, ilp}, {"rule", N, rule}};
    struct weft_case one = {.model = "a",
                            .network = "1",
                            .n_limits = N,
                            .n_planners = 2,
                            .curves = curves,
                            .measured = true,
                            .n_repeats = 1};
    const struct weft_cases all = {.n = 1, .cases = &one};
    struct weft_answer answer = {0};
    struct weft_text text;
    weft_text_init(&text);
    weft_cases_put_measured(&all, &answer);
    weft_answer_text(&answer, &text);
    const char *said = weft_text_chars(&text);
    cr_expect(strstr(said, "  rule          2        1 "), "%s", said);
    cr_expect_null(strstr(said, "a x1"), "%s", said);
    weft_answer_finish(&answer);
    weft_text_finish(&text);
}

Test(measured, a_simulated_study_has_no_table)
{
    struct weft_case one = {.model = "a", .network = "1"};
    const struct weft_cases all = {.n = 1, .cases = &one};
    struct weft_answer answer = {0};
    weft_cases_put_measured(&all, &answer);
    cr_expect_null(answer.first);
    weft_answer_finish(&answer);
}
