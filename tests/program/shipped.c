/* SPDX-License-Identifier: Apache-2.0 */
/* Every run that Weft ships, planned at random with its analytic profile: rows are lives, verify
 * accepts, and both ways to simulate agree. Runs in the root of the sources. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "program/lifetime.h"
#include "program/trace.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

enum { PATH_BYTES = 512, SHIPPED_PLANS = TEST_CASES(2, 1) };

static void check_rows_shipped(const char *path, const struct weft_plan *plan,
                               const struct weft_program *program)
{
    size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows), *live = calloc(n, sizeof *live);
    cr_assert(rows != NULL && live != NULL);
    weft_plan_rows(plan, 0, rows);
    weft_program_live(program, live);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(rows[i], live[i], "%s, slot %s, %s", path,
                     plan->problem->slot_names[i / WEFT_CATEGORY_COUNT],
                     weft_category_key((enum weft_category)(i % WEFT_CATEGORY_COUNT)));
    }
    free(rows);
    free(live);
}

static void check_run(const char *path)
{
    struct random_case random;
    random_case_read(&random, path);
    for (uint64_t p = 0; p < SHIPPED_PLANS; p++) {
        struct weft_error err = {0};
        struct weft_trace *trace = NULL;
        struct weft_trace_summary summary;
        struct weft_plan *plan = random_plan(&random, p);
        struct weft_program *program = random_program(&random, plan);
        check_rows_shipped(path, plan, program);
        enum weft_status status = weft_program_verify(program, INT64_MAX, &err);
        cr_assert_eq(status, WEFT_OK, "%s: %s", path, err.text);
        cr_assert_eq(weft_simulate(program, &trace, &err), WEFT_OK);
        weft_trace_summarise(program, trace, &summary);
        cr_assert_eq(summary.step_ns, plan->prediction.step_ns, "%s", path);
        cr_assert_eq(summary.exposed_ns, plan->prediction.exposed_ns, "%s", path);
        weft_trace_destroy(trace);
        weft_program_destroy(program);
        weft_plan_destroy(plan);
    }
    random_case_finish(&random);
}

Test(shipped, every_run)
{
    int n = 0;
    DIR *directory = opendir("configs/runs");
    cr_assert_not_null(directory, "configs/runs is not here: run in the root of the sources");
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[PATH_BYTES];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "configs/runs/%s", entry->d_name);
        if (TEST_CASES(true, n % 3 == 0)) check_run(path);
        n++;
    }
    closedir(directory);
    cr_assert_gt(n, 0);
}
