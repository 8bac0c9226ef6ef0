/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/hypotheses.h"

#include <criterion/criterion.h>

/* A case of four limits with a given step for each division; 0: no plan. */
enum { N_LIMITS = 4 };
struct table_of_steps {
    struct weft_sweep_point points[1 + N_LIMITS][N_LIMITS];
    struct weft_sweep_curve curves[1 + N_LIMITS];
    struct weft_case one;
};

/* Measured steps have predictions that are all alike. */
static void fill_steps(const int64_t steps[N_LIMITS][N_LIMITS], enum weft_clock_of_case times,
                       struct table_of_steps *out)
{
    *out = (struct table_of_steps){.one = {.model = "m", .network = "1"}};
    for (int i = 0; i < N_LIMITS; i++) {
        out->points[0][i] =
            (struct weft_sweep_point){.limit_bytes = i + 1,
                                      .fits = true,
                                      .step_ns = 1000,
                                      .measured_ns = times == WEFT_CASE_MEASURED ? 1000 : 0};
        for (int j = i; j < N_LIMITS; j++)
            out->points[1 + i][j - i] = (struct weft_sweep_point){
                .limit_bytes = j + 1,
                .policy_limit_bytes = i + 1,
                .fits = steps[i][j] > 0,
                .step_ns = times == WEFT_CASE_MEASURED ? 1000 : steps[i][j],
                .measured_ns = times == WEFT_CASE_MEASURED ? steps[i][j] : 0};
        out->curves[1 + i] =
            (struct weft_sweep_curve){"two-stage", N_LIMITS - i, out->points[1 + i]};
    }
    out->curves[0] = (struct weft_sweep_curve){"ilp", N_LIMITS, out->points[0]};
    out->one.n_limits = N_LIMITS;
    out->one.n_planners = 1;
    out->one.curves = out->curves;
}

static void expect_of(enum weft_clock_of_case times, const int64_t steps[N_LIMITS][N_LIMITS],
                      int hypothesis, int32_t line, enum weft_verdict expected)
{
    struct table_of_steps table;
    fill_steps(steps, times, &table);
    const enum weft_verdict found = weft_hypothesis_judge(&table.one, times, hypothesis - 1, line);
    cr_expect_eq(found, expected, "hypothesis %d, line %d: %d", hypothesis, (int)line, (int)found);
}

static void expect_verdict(const int64_t steps[N_LIMITS][N_LIMITS], int hypothesis, int32_t line,
                           enum weft_verdict expected)
{
    expect_of(WEFT_CASE_SIMULATED, steps, hypothesis, line, expected);
}

static void expect_measured(const int64_t steps[N_LIMITS][N_LIMITS], int hypothesis, int32_t line,
                            enum weft_verdict expected)
{
    expect_of(WEFT_CASE_MEASURED, steps, hypothesis, line, expected);
}

Test(hypotheses, lines_are_judged_by_their_steps)
{
    /* Rows are limits of policies, columns limits of the sum. */
    static const int64_t steps[N_LIMITS][N_LIMITS] = {
        {2000, 1500, 1400, 1390},
        {0, 1450, 1300, 1150},
        {0, 0, 1350, 1100},
        {0, 0, 0, 1200},
    };
    expect_verdict(steps, 1, 0, WEFT_VERDICT_SATURATES);
    expect_verdict(steps, 1, 1, WEFT_VERDICT_HOLDS);
    expect_verdict(steps, 2, 0, WEFT_VERDICT_HOLDS);
    expect_verdict(steps, 2, 1, WEFT_VERDICT_HOLDS);
    expect_verdict(steps, 3, 2, WEFT_VERDICT_HOLDS);
    expect_verdict(steps, 3, 3, WEFT_VERDICT_HOLDS);
}

Test(hypotheses, a_rise_refutes_and_small_differences_are_none)
{
    static const int64_t rising[N_LIMITS][N_LIMITS] = {
        {20000, 15000, 15010, 15000},
        {0, 15000, 14000, 13000},
        {0, 0, 16000, 12000},
        {0, 0, 0, 12005},
    };
    expect_verdict(rising, 1, 0, WEFT_VERDICT_REFUTED);
    expect_verdict(rising, 2, 0, WEFT_VERDICT_REFUTED);
    expect_verdict(rising, 2, 1, WEFT_VERDICT_HOLDS);
    expect_verdict(rising, 3, 2, WEFT_VERDICT_HOLDS);
    expect_verdict(rising, 3, 3, WEFT_VERDICT_REFUTED);
    static const int64_t equal[N_LIMITS][N_LIMITS] = {
        {1000, 1000, 1000, 1000}, {0, 1000, 1000, 1000}, {0, 0, 1000, 1000}, {0, 0, 0, 1000}};
    for (int hypothesis = 1; hypothesis <= WEFT_HYPOTHESES; hypothesis++)
        expect_verdict(equal, hypothesis, hypothesis < 3 ? 0 : 2, WEFT_VERDICT_EQUAL);
}

/* A division without a plan is slower than any other in the third, and no point in the others. */
Test(hypotheses, a_division_may_have_no_plan)
{
    static const int64_t steps[N_LIMITS][N_LIMITS] = {
        {0, 0, 0, 1500},
        {0, 0, 1400, 1300},
        {0, 0, 0, 1200},
        {0, 0, 0, 0},
    };
    expect_verdict(steps, 1, 0, WEFT_VERDICT_NONE);
    expect_verdict(steps, 2, 1, WEFT_VERDICT_NONE);
    expect_verdict(steps, 3, 2, WEFT_VERDICT_HOLDS);
    expect_verdict(steps, 3, 3, WEFT_VERDICT_HOLDS);
}

/* Repeats of one plan differ by 2 %, so measured steps within 2 % are equal. */
Test(hypotheses, measured_steps_have_their_own_tolerance)
{
    static const int64_t near[N_LIMITS][N_LIMITS] = {
        {1000, 1015, 1000, 985}, {0, 1000, 1000, 1000}, {0, 0, 1000, 1000}, {0, 0, 0, 1000}};
    static const int64_t far[N_LIMITS][N_LIMITS] = {
        {1000, 1025, 1000, 900}, {0, 970, 900, 900}, {0, 0, 1000, 900}, {0, 0, 0, 1000}};
    static const int64_t none[N_LIMITS][N_LIMITS] = {{0}};
    expect_verdict(near, 1, 0, WEFT_VERDICT_REFUTED);
    expect_measured(near, 1, 0, WEFT_VERDICT_EQUAL);
    expect_measured(near, 3, 3, WEFT_VERDICT_EQUAL);
    expect_measured(far, 1, 0, WEFT_VERDICT_REFUTED);
    expect_measured(far, 3, 3, WEFT_VERDICT_REFUTED);
    expect_measured(far, 3, 2, WEFT_VERDICT_HOLDS);
    expect_measured(none, 2, 0, WEFT_VERDICT_NONE);
}
