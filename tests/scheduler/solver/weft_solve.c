/* SPDX-License-Identifier: Apache-2.0 */
/* The program weft-solve, through its protocol. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "tests/scheduler/solver.h"

/* A knapsack: sizes 4 5 7, room 10, values 5 6 8, of which the minimum takes the negative. */
struct knapsack {
    double cost[3], lower[3], upper[3], row_lower[1], row_upper[1], value[3];
    int32_t column[3];
    int64_t row_start[2];
    struct weft_lp lp;
};

static void knapsack_init(struct knapsack *k)
{
    *k = (struct knapsack){.cost = {-5, -6, -8},
                           .upper = {1, 1, 1},
                           .row_lower = {-INFINITY},
                           .row_upper = {10},
                           .value = {4, 5, 7},
                           .column = {0, 1, 2},
                           .row_start = {0, 3}};
    k->lp = (struct weft_lp){.n_columns = 3,
                             .cost = k->cost,
                             .lower = k->lower,
                             .upper = k->upper,
                             .n_rows = 1,
                             .row_lower = k->row_lower,
                             .row_upper = k->row_upper,
                             .n_entries = 3,
                             .row_start = k->row_start,
                             .column = k->column,
                             .value = k->value};
}

static struct weft_lp_result solve(const struct weft_lp *lp, struct weft_lp_limits limits,
                                   struct weft_pool *pool)
{
    struct weft_lp_result result = {0};
    struct weft_error err = {0};
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    cr_assert_eq(test_solver().solve(NULL, lp, &limits, pool, &result, &err), WEFT_OK, "%s",
                 err.text);
    return result;
}

Test(weft_solve, finds_the_optimum_and_its_multipliers)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    knapsack_init(&k);
    struct weft_lp_result result = solve(&k.lp, (struct weft_lp_limits){0}, &pool);
    cr_assert_eq(result.status, WEFT_LP_OPTIMAL, "%s", result.stop);
    cr_assert_str_eq(result.stop, "optimal");
    /* The first two, and a seventh of the third. */
    cr_assert_lt(fabs(result.value - (-11 - 8.0 / 7)), 1e-9);
    cr_assert_eq(result.bound, result.value);
    cr_assert(result.x[0] == 1 && result.x[1] == 1);
    cr_assert_lt(fabs(result.x[2] - 1.0 / 7), 1e-9);
    cr_assert_lt(fabs(result.duals[0] + 8.0 / 7), 1e-9);
    weft_pool_finish(&pool);
}

Test(weft_solve, calls_infeasible_only_an_infeasible_program)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    knapsack_init(&k);
    k.row_lower[0] = k.row_upper[0] = 17; /* more than all together */
    cr_assert_eq(solve(&k.lp, (struct weft_lp_limits){0}, &pool).status, WEFT_LP_INFEASIBLE);
    k.row_lower[0] = k.row_upper[0] = 10; /* only fractions add up to it */
    cr_assert_eq(solve(&k.lp, (struct weft_lp_limits){0}, &pool).status, WEFT_LP_OPTIMAL);
    /* Equal bounds of a column are no contradiction. */
    knapsack_init(&k);
    k.lower[2] = k.upper[2] = 1;
    struct weft_lp_result result = solve(&k.lp, (struct weft_lp_limits){0}, &pool);
    cr_assert_eq(result.status, WEFT_LP_OPTIMAL);
    cr_assert_lt(fabs(result.value - (-8 - 3.0 * 5 / 4)), 1e-9, "%g", result.value);
    weft_pool_finish(&pool);
}

Test(weft_solve, unbounded_is_not_infeasible)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    knapsack_init(&k);
    for (int j = 0; j < 3; j++)
        k.upper[j] = INFINITY;
    k.row_upper[0] = INFINITY;
    struct weft_lp_result result = solve(&k.lp, (struct weft_lp_limits){0}, &pool);
    cr_assert_eq(result.status, WEFT_LP_UNKNOWN);
    cr_assert_null(result.x);
    weft_pool_finish(&pool);
}

/* An assignment of N to N by random costs, which takes the simplex method many iterations. */
Test(weft_solve, stops_at_the_limit_of_iterations)
{
    enum { N = 12, COLUMNS = N * N, ROWS = 2 * N };
    static double cost[COLUMNS], lower[COLUMNS], upper[COLUMNS], value[2 * COLUMNS], row[ROWS];
    static int32_t column[2 * COLUMNS];
    static int64_t row_start[ROWS + 1];
    for (int j = 0; j < COLUMNS; j++) {
        cost[j] = 1 + (double)weft_rng_below(3, 0, (uint64_t)j, 100);
        upper[j] = INFINITY;
    }
    for (int i = 0; i < ROWS; i++) {
        row[i] = 1;
        row_start[i + 1] = (int64_t)(i + 1) * N;
        for (int k = 0; k < N; k++) {
            column[i * N + k] = i < N ? i * N + k : k * N + i - N;
            value[i * N + k] = 1;
        }
    }
    struct weft_lp lp = {.n_columns = COLUMNS,
                         .cost = cost,
                         .lower = lower,
                         .upper = upper,
                         .n_rows = ROWS,
                         .row_lower = row,
                         .row_upper = row,
                         .n_entries = 2 * COLUMNS,
                         .row_start = row_start,
                         .column = column,
                         .value = value};
    struct weft_pool pool = {0};
    struct weft_lp_result whole = solve(&lp, (struct weft_lp_limits){0}, &pool);
    cr_assert_eq(whole.status, WEFT_LP_OPTIMAL, "%s", whole.stop);
    cr_assert_gt(whole.iterations, 10);
    struct weft_lp_result part = solve(&lp, (struct weft_lp_limits){.iterations = 5}, &pool);
    cr_assert_eq(part.status, WEFT_LP_UNKNOWN);
    cr_assert_str_eq(part.stop, "iteration limit");
    cr_assert_leq(part.iterations, 5);
    cr_assert_null(part.x);
    cr_assert_leq(part.bound, whole.value * (1 + 1e-9));
    weft_pool_finish(&pool);
}

/* Its first line of words, and its exit code. */
static int say(const char *text, char line[200])
{
    char command[800];
    snprintf(command, sizeof command, "printf '%s' | '%s' 2>&1", text, getenv("WEFT_SOLVE"));
    FILE *stream = popen(command, "r");
    line[0] = '\0';
    cr_assert_not_null(fgets(line, 200, stream));
    return WEXITSTATUS(pclose(stream));
}

Test(weft_solve, refuses_garbage_and_arguments)
{
    char command[600], line[200] = "";
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    cr_assert_eq(say("hello\\n", line), 65);
    cr_assert_str_eq(line, "weft-solve: solver protocol, line 1: expected weft-lp\n");
    cr_assert_eq(say("weft-lp-changes 1\\nof 3 1\\n", line), 65);
    cr_assert_str_eq(line, "weft-solve: solver protocol: changes of no program\n");
    snprintf(command, sizeof command, "'%s' problem.txt 2>&1 < /dev/null", getenv("WEFT_SOLVE"));
    FILE *stream = popen(command, "r");
    cr_assert_not_null(fgets(line, sizeof line, stream));
    cr_assert_not_null(strstr(line, "usage: "));
    while (fgets(line, sizeof line, stream)) {
    }
    cr_assert_eq(WEXITSTATUS(pclose(stream)), 64);
}

/* The knapsack of whole things: 4 and 5 fit, 7 alone is worth less. */
Test(weft_solve, finds_the_optimum_in_whole_numbers)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    bool integer[3] = {true, true, true};
    double start[3] = {0, 0, 1};
    knapsack_init(&k);
    k.lp.integer = integer;
    for (int i = 0; i < 2; i++) {
        struct weft_lp_result result = solve(&k.lp, (struct weft_lp_limits){0}, &pool);
        cr_assert_eq(result.status, WEFT_LP_OPTIMAL, "%s", result.stop);
        cr_assert(result.x[0] == 1 && result.x[1] == 1 && result.x[2] == 0);
        cr_assert(result.value == -11 && result.bound == -11 && result.duals == NULL);
        k.lp.start = start;
    }
    weft_pool_finish(&pool);
}

/* A program of many alike things, which takes a large tree. The limit ends it at the same place. */
Test(weft_solve, a_limit_ends_the_tree_alike_and_keeps_the_start)
{
    enum { N = 40 };
    double cost[N], lower[N] = {0}, upper[N], value[N], row_lower[1] = {-INFINITY};
    double row_upper[1] = {2 * (N / 2) + 1}, start[N] = {0};
    int32_t column[N];
    int64_t row_start[2] = {0, N};
    bool integer[N];
    struct weft_pool pool = {0};
    for (int j = 0; j < N; j++) {
        cost[j] = -2.0 - j * 1e-3;
        upper[j] = 1;
        value[j] = 2;
        column[j] = j;
        integer[j] = true;
    }
    start[0] = 1;
    const struct weft_lp lp = {N, cost,      lower,  upper, 1,       row_lower, row_upper,
                               N, row_start, column, value, integer, start};
    const struct weft_lp_limits limits = {.iterations = 2};
    struct weft_lp_result one = solve(&lp, limits, &pool), two = solve(&lp, limits, &pool);
    cr_assert_eq(one.status, two.status);
    cr_assert_eq(one.iterations, two.iterations);
    if (one.status == WEFT_LP_FEASIBLE) {
        cr_assert_str_eq(one.stop, "iteration limit");
        cr_assert_eq(memcmp(one.x, two.x, sizeof start), 0);
        cr_assert(one.bound <= one.value && one.value <= cost[0]);
    }
    cr_assert(one.iterations <= 2 + N);
    weft_pool_finish(&pool);
}
