/* SPDX-License-Identifier: Apache-2.0 */
/* The process of weft-solve: with the basis of the program before, it gives the same answers as a
 * new process. */
#include "cli/process/solver.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"

enum { COLUMNS = 12, MOST_ROWS = 12, FIRST_ROWS = 6 };
static const struct weft_lp_limits no_limit = {0};

/* A covering program: each row needs at least a sum of columns, at least cost, in changing
 * bounds. */
struct cover {
    double cost[COLUMNS], lower[COLUMNS], upper[COLUMNS], row_lower[MOST_ROWS];
    double row_upper[MOST_ROWS], value[MOST_ROWS * COLUMNS];
    int32_t column[MOST_ROWS * COLUMNS];
    int64_t row_start[MOST_ROWS + 1];
    struct weft_lp lp;
    uint64_t seed, drawn;
};

static double draw(struct cover *c, uint64_t n)
{
    return (double)weft_rng_below(4, c->seed, c->drawn++, n);
}

static void set_rows(struct cover *c, int32_t n)
{
    c->lp.n_rows = n;
    c->lp.n_entries = (int64_t)n * COLUMNS;
}

static void cover_init(struct cover *c, uint64_t seed)
{
    *c = (struct cover){.seed = seed};
    for (int j = 0; j < COLUMNS; j++) {
        c->cost[j] = 1 + draw(c, 20);
        c->upper[j] = 1;
    }
    for (int i = 0; i < MOST_ROWS; i++) {
        c->row_start[i + 1] = (int64_t)(i + 1) * COLUMNS;
        c->row_upper[i] = INFINITY;
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++) {
            c->column[i * COLUMNS + j] = j;
            sum += c->value[i * COLUMNS + j] = draw(c, 10) / 3;
        }
        c->row_lower[i] = sum / 4;
    }
    c->lp = (struct weft_lp){.n_columns = COLUMNS,
                             .cost = c->cost,
                             .lower = c->lower,
                             .upper = c->upper,
                             .row_lower = c->row_lower,
                             .row_upper = c->row_upper,
                             .row_start = c->row_start,
                             .column = c->column,
                             .value = c->value};
    set_rows(c, FIRST_ROWS);
}

/* Fixes or frees some columns, changes the bound of a row, and may add a row. */
static void cover_change(struct cover *c)
{
    for (int k = 0; k < 3; k++) {
        int j = (int)draw(c, COLUMNS), kind = (int)draw(c, 3);
        c->lower[j] = kind == 1 ? 1 : 0;
        c->upper[j] = kind == 2 ? 0 : 1;
    }
    c->row_lower[(int)draw(c, FIRST_ROWS)] = draw(c, 12);
    if (c->lp.n_rows < MOST_ROWS && draw(c, 3) == 0) set_rows(c, c->lp.n_rows + 1);
}

static void needs_solver(void)
{
    const char *path = getenv("WEFT_SOLVE");
    if (!path || access(path, X_OK) != 0) cr_skip("no weft-solve in this build");
    signal(SIGPIPE, SIG_IGN); /* as in the program */
}

static struct weft_lp_result ask(struct weft_solver_process *process, const struct weft_lp *lp,
                                 const struct weft_lp_limits *limits, struct weft_pool *pool)
{
    struct weft_solver solver = weft_solver_of_process(process);
    struct weft_lp_result result = {0};
    struct weft_error err = {0};
    cr_assert_eq(solver.solve(solver.context, lp, limits, pool, &result, &err), WEFT_OK, "%s",
                 err.text);
    return result;
}

/* The bound that the multipliers prove. */
static double dual_bound(const struct weft_lp *lp, const double *y)
{
    double bound = 0;
    for (int32_t i = 0; i < lp->n_rows; i++)
        bound += y[i] > 0 ? y[i] * lp->row_lower[i] : 0;
    for (int32_t j = 0; j < lp->n_columns; j++) {
        double reduced = lp->cost[j];
        for (int32_t i = 0; i < lp->n_rows; i++)
            reduced -= y[i] > 0 ? y[i] * lp->value[lp->row_start[i] + j] : 0;
        bound += reduced * (reduced > 0 ? lp->lower[j] : lp->upper[j]);
    }
    return bound;
}

Test(solver, a_known_basis_changes_the_way_and_not_the_value)
{
    needs_solver();
    int64_t warm_iterations = 0, cold_iterations = 0;
    int infeasible = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct weft_solver_process warm = {0}, cold = {0};
        struct cover c;
        cover_init(&c, seed);
        for (int step = 0; step < 30; step++) {
            struct weft_pool pool = {0};
            struct weft_lp_result one = ask(&warm, &c.lp, &no_limit, &pool);
            struct weft_lp_result two = ask(&cold, &c.lp, &no_limit, &pool);
            cr_assert_eq(one.status, two.status);
            infeasible += one.status == WEFT_LP_INFEASIBLE;
            if (one.status == WEFT_LP_OPTIMAL) {
                double close = 1e-9 * (1 + fabs(two.value));
                cr_assert_lt(fabs(one.value - two.value), close);
                cr_assert_lt(fabs(dual_bound(&c.lp, one.duals) - two.value), close);
            }
            if (step > 0) {
                warm_iterations += one.iterations;
                cold_iterations += two.iterations;
            }
            weft_solver_process_stop(&cold);
            weft_pool_finish(&pool);
            cover_change(&c);
        }
        weft_solver_process_stop(&warm);
    }
    cr_assert(infeasible > 0 && infeasible < 60, "%d", infeasible);
    cr_assert_lt(warm_iterations, cold_iterations);
}

Test(solver, that_was_killed_is_started_again)
{
    needs_solver();
    struct weft_solver_process process = {0};
    struct weft_pool pool = {0};
    struct cover c;
    cover_init(&c, 3);
    double before = ask(&process, &c.lp, &no_limit, &pool).value;
    pid_t first = process.child.pid;
    cr_assert_eq(kill(first, SIGKILL), 0);
    cr_assert_lt(fabs(ask(&process, &c.lp, &no_limit, &pool).value - before), 1e-9);
    cr_assert_neq(process.child.pid, first);
    cr_assert_neq(kill(first, 0), 0, "it was waited for");
    weft_solver_process_stop(&process);
    weft_pool_finish(&pool);
}

/* Asks a shell script; returns the error's text. */
static const char *ask_script(const char *script, int64_t idle_ns, struct weft_error *err)
{
    char path[] = "/tmp/weft-solve-XXXXXX";
    struct weft_solver_child child = {0};
    struct weft_text question, answer;
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && dprintf(fd, "#!/bin/sh\n%s\n", script) > 0 && fchmod(fd, 0700) == 0);
    close(fd);
    *err = (struct weft_error){0};
    weft_text_init(&question);
    weft_text_init(&answer);
    weft_text_add(&question, "end\n");
    cr_assert_eq(weft_solver_child_start(path, NULL, &child, err), WEFT_OK, "%s", err->text);
    child.idle_ns = idle_ns;
    (void)!weft_solver_child_ask(&child, &question, 0, 1000, NULL, &answer, err);
    weft_solver_child_stop(&child);
    weft_text_finish(&answer);
    weft_text_finish(&question);
    unlink(path);
    return err->text;
}

/* Without an alarm a solver that sleeps is lost, and one that works for as long is not. */
Test(solver, that_is_idle_is_hung)
{
    const int64_t idle_ns = INT64_C(500000000);
    struct weft_error err;
    const char *says = "no answer, and no CPU time used in 0.5 s, killed";
    cr_assert_str_eq(ask_script("exec sleep 1000", idle_ns, &err), says);
    cr_assert_eq(err.status, WEFT_E_HANG);
    cr_assert_str_eq(ask_script("exec >&- 2>&-\nexec sleep 1000", idle_ns, &err), says);
    cr_assert_str_eq(ask_script("i=0; while [ $i -lt 800000 ]; do i=$((i + 1)); done; "
                                "printf 'answer\\nend\\n'; exec sleep 1000",
                                idle_ns, &err),
                     "");
}

static int count_descriptors(void)
{
    int n = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

Test(solver, leaves_nothing_behind)
{
    needs_solver();
    struct weft_solver_process process = {0};
    struct weft_solver solver = weft_solver_of_process(&process);
    struct weft_pool pool = {0};
    struct cover c;
    cover_init(&c, 5);
    int before = count_descriptors();
    ask(&process, &c.lp, &no_limit, &pool);
    pid_t pid = process.child.pid;
    cr_assert_gt(pid, 0);
    cr_assert_gt(count_descriptors(), before);
    solver.release(solver.context);
    cr_assert_neq(kill(pid, 0), 0);
    cr_assert_eq(count_descriptors(), before);
    cr_assert_eq(process.child.pid, 0);
    solver.release(solver.context); /* a second release has no effect */
    weft_pool_finish(&pool);
}
