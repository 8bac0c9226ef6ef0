/* The program weft-solve, through its protocol. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/rng.h"
#include "tests/scheduler/solver.h"

/* max value of a knapsack as a minimum: sizes 4 5 7, room 10, values 5 6 8. */
struct knapsack {
    double cost[3], lower[3], upper[3], row_lower[1], row_upper[1], value[3];
    bool integer[3];
    int32_t priority[3], column[3];
    int64_t row_start[2];
    struct weft_mip mip;
};

static void knapsack_init(struct knapsack *k)
{
    *k = (struct knapsack){.cost = {-5, -6, -8},
                           .upper = {1, 1, 1},
                           .row_lower = {-INFINITY},
                           .row_upper = {10},
                           .value = {4, 5, 7},
                           .integer = {true, true, true},
                           .column = {0, 1, 2},
                           .row_start = {0, 3}};
    k->mip = (struct weft_mip){.n_columns = 3,
                               .cost = k->cost,
                               .lower = k->lower,
                               .upper = k->upper,
                               .integer = k->integer,
                               .priority = k->priority,
                               .n_rows = 1,
                               .row_lower = k->row_lower,
                               .row_upper = k->row_upper,
                               .n_entries = 3,
                               .row_start = k->row_start,
                               .column = k->column,
                               .value = k->value};
}

static struct weft_mip_result solve(const struct weft_mip *mip, struct weft_mip_limits limits,
                                    struct weft_pool *pool)
{
    struct weft_mip_result result = {0};
    struct weft_error err = {0};
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    cr_assert_eq(test_solver().solve(NULL, mip, &limits, pool, &result, &err), WEFT_OK, "%s",
                 err.text);
    return result;
}

Test(weft_solve, finds_the_optimum_and_the_relaxation)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    knapsack_init(&k);
    for (int priority = 0; priority < 2; priority++) {
        k.priority[1] = priority;
        struct weft_mip_result result = solve(&k.mip, (struct weft_mip_limits){0}, &pool);
        cr_assert_eq(result.status, WEFT_MIP_OPTIMAL, "%s", result.stop);
        cr_assert_str_eq(result.stop, "optimal");
        cr_assert_eq(result.objective, -11);
        cr_assert_eq(result.bound, -11);
        cr_assert(result.x[0] == 1 && result.x[1] == 1 && result.x[2] == 0);
        /* 4 + 5 + 1/7 of the third. */
        cr_assert(result.has_lp);
        cr_assert_lt(fabs(result.lp_value - (-11 - 8.0 / 7)), 1e-9);
        cr_assert_lt(fabs(result.row_duals[0] + 8.0 / 7), 1e-9);
        cr_assert_lt(fabs(result.lp_x[2] - 1.0 / 7), 1e-9);
    }
    weft_pool_finish(&pool);
}

Test(weft_solve, stops_at_the_root_when_asked)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    knapsack_init(&k);
    struct weft_mip_result result = solve(&k.mip, (struct weft_mip_limits){.nodes = -1}, &pool);
    cr_assert_eq(result.status, WEFT_MIP_UNKNOWN);
    cr_assert_str_eq(result.stop, "root only");
    cr_assert(result.has_lp);
    cr_assert_null(result.x);
    weft_pool_finish(&pool);
}

Test(weft_solve, says_infeasible_only_of_what_is)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    knapsack_init(&k);
    k.row_lower[0] = k.row_upper[0] = 17; /* more than all together */
    cr_assert_eq(solve(&k.mip, (struct weft_mip_limits){0}, &pool).status, WEFT_MIP_INFEASIBLE);
    k.row_lower[0] = k.row_upper[0] = 10; /* only fractions add up to it */
    struct weft_mip_result result = solve(&k.mip, (struct weft_mip_limits){0}, &pool);
    cr_assert_eq(result.status, WEFT_MIP_INFEASIBLE);
    cr_assert(result.has_lp);
    /* Equal bounds of a column are no contradiction. */
    knapsack_init(&k);
    k.lower[2] = k.upper[2] = 1;
    result = solve(&k.mip, (struct weft_mip_limits){0}, &pool);
    cr_assert_eq(result.status, WEFT_MIP_OPTIMAL);
    cr_assert_eq(result.objective, -8);
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
    struct weft_mip_result result = solve(&k.mip, (struct weft_mip_limits){0}, &pool);
    cr_assert_eq(result.status, WEFT_MIP_UNKNOWN);
    cr_assert_not(result.has_lp);
    weft_pool_finish(&pool);
}

Test(weft_solve, takes_an_incumbent_and_refuses_a_false_one)
{
    struct knapsack k;
    struct weft_pool pool = {0};
    double good[] = {1, 1, 0}, bad[] = {1, 1, 1}, *points[] = {bad, good};
    knapsack_init(&k);
    k.mip.incumbents = points;
    k.mip.n_incumbents = 2;
    /* A gap so wide that the first solution ends the search. */
    struct weft_mip_result result = solve(&k.mip, (struct weft_mip_limits){.gap = 10}, &pool);
    cr_assert_not_null(result.x);
    cr_assert_eq(result.objective, -11, "%g", result.objective);
    weft_pool_finish(&pool);
}

/* A market split: rows of random coefficients that no 0-1 point meets, and no cut tells. */
Test(weft_solve, stops_at_the_limits_of_nodes_and_iterations)
{
    enum { N = 30, ROWS = 3 };
    static double cost[N], lower[N], upper[N], value[ROWS * N], row[ROWS];
    static bool integer[N];
    static int32_t priority[N], column[ROWS * N];
    static int64_t row_start[ROWS + 1];
    for (int j = 0; j < N; j++) {
        upper[j] = 1;
        cost[j] = 1;
        integer[j] = true;
    }
    for (int i = 0; i < ROWS; i++) {
        int64_t sum = 0;
        row_start[i + 1] = (int64_t)(i + 1) * N;
        for (int j = 0; j < N; j++) {
            int64_t drawn = (int64_t)weft_rng_below(3, (uint64_t)i, (uint64_t)j, 100);
            value[i * N + j] = (double)drawn;
            column[i * N + j] = j;
            sum += drawn;
        }
        row[i] = (double)(sum / 2);
    }
    struct weft_mip mip = {.n_columns = N,
                           .cost = cost,
                           .lower = lower,
                           .upper = upper,
                           .integer = integer,
                           .priority = priority,
                           .n_rows = ROWS,
                           .row_lower = row,
                           .row_upper = row,
                           .n_entries = (int64_t)ROWS * N,
                           .row_start = row_start,
                           .column = column,
                           .value = value};
    struct weft_pool pool = {0};
    struct weft_mip_result result = solve(&mip, (struct weft_mip_limits){.nodes = 20}, &pool);
    cr_assert_str_eq(result.stop, "node limit");
    cr_assert_eq(result.status, WEFT_MIP_UNKNOWN);
    cr_assert_leq(result.nodes, 25);
    cr_assert(isfinite(result.bound));
    result = solve(&mip, (struct weft_mip_limits){.iterations = 60}, &pool);
    cr_assert_str_eq(result.stop, "iteration limit");
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
    cr_assert_str_eq(line, "weft-solve: solver protocol, line 1: expected weft-mip\n");
    cr_assert_eq(say("weft-mip-changes 1\\nof 3 1\\n", line), 65);
    cr_assert_str_eq(line, "weft-solve: solver protocol: changes of no program\n");
    snprintf(command, sizeof command, "'%s' problem.txt 2>&1 < /dev/null", getenv("WEFT_SOLVE"));
    FILE *stream = popen(command, "r");
    cr_assert_not_null(fgets(line, sizeof line, stream));
    cr_assert_not_null(strstr(line, "usage: "));
    while (fgets(line, sizeof line, stream)) {
    }
    cr_assert_eq(WEXITSTATUS(pclose(stream)), 64);
}
