/* SPDX-License-Identifier: Apache-2.0 */
#include "report/progress.h"

#include <criterion/criterion.h>

static const int64_t progress_s = INT64_C(1000000000), progress_ms = 1000000;
static int64_t progress_now_ns;

static void look_nowhere(struct weft_watch *watch)
{
    (void)watch;
}

static int64_t read_progress_clock(void)
{
    return progress_now_ns;
}

static struct weft_watch progress_watch(const char *what)
{
    struct weft_watch watch = {.look = look_nowhere, .now_ns = read_progress_clock, .share = -1};
    progress_now_ns = 1000;
    weft_watch_begin(&watch, what);
    return watch;
}

static void expect_progress(const struct weft_watch *watch, int32_t columns, const char *expected)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_report_progress(watch, columns, &out);
    cr_assert_str_eq(weft_text_chars(&out), expected, "got '%s'", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(progress, steps_and_the_time_that_is_left)
{
    struct weft_watch watch = progress_watch("train");
    progress_now_ns += progress_s / 2;
    expect_progress(&watch, 0, "train: 0.5 s so far");
    weft_watch_count(&watch, "step", 0, 20);
    progress_now_ns += 19 * progress_s / 2;
    expect_progress(&watch, 0, "train: step 0 of 20, 10 s so far");
    weft_watch_count(&watch, "step", 5, 20);
    expect_progress(&watch, 0, "train: step 5 of 20, 30 s left");
    progress_now_ns += progress_s / 10;
    expect_progress(&watch, 0, "train: step 5 of 20, 30 s left");
    progress_now_ns += progress_s;
    expect_progress(&watch, 0, "train: step 5 of 20, 29 s left");
    weft_watch_count(&watch, "token", 7, 0);
    progress_now_ns += 80 * progress_s;
    expect_progress(&watch, 0, "train: token 7, 2 min so far");
}

Test(progress, longer_times_have_larger_units)
{
    struct weft_watch watch = progress_watch("train");
    weft_watch_count(&watch, "step", 0, 20);
    progress_now_ns += 100 * progress_s;
    weft_watch_count(&watch, "step", 5, 20);
    expect_progress(&watch, 0, "train: step 5 of 20, 5 min left");
    progress_now_ns += 7100 * progress_s;
    weft_watch_count(&watch, "step", 6, 24);
    expect_progress(&watch, 0, "train: step 6 of 24, 6.0 h left");
}

Test(progress, a_plan_and_its_budget)
{
    struct weft_watch watch = progress_watch("plan");
    progress_now_ns += progress_s;
    weft_watch_plan(&watch, 0, 0, 0.02);
    expect_progress(&watch, 0, "plan: budget 2 %, 1.0 s so far");
    weft_watch_plan(&watch, 351 * progress_ms, 0, 0.1);
    expect_progress(&watch, 0, "plan: best 351 ms, budget 10 %, 1.0 s so far");
    progress_now_ns += 28 * progress_s;
    weft_watch_plan(&watch, 351 * progress_ms, 350 * progress_ms, 1.2);
    expect_progress(&watch, 0,
                    "plan: best 351 ms, bound 350 ms, gap 0.29 %, budget 100 %, 29 s so far");
}

Test(progress, a_narrow_line_has_what_matters_most)
{
    struct weft_watch watch = progress_watch("plan");
    weft_watch_plan(&watch, 351 * progress_ms, 350 * progress_ms, 0.5);
    progress_now_ns += 29 * progress_s;
    expect_progress(&watch, 46, "plan: best 351 ms, gap 0.29 %, 29 s so far");
    expect_progress(&watch, 30, "plan: best 351 ms, 29 s so far");
    expect_progress(&watch, 8, "plan: ");
}

Test(progress, runs_of_a_sweep)
{
    struct weft_watch watch = progress_watch("sweep");
    weft_watch_part(&watch, "sweep", "run", 2, 20, progress_now_ns);
    weft_watch_count(&watch, "step", 0, 20);
    progress_now_ns += 10 * progress_s;
    weft_watch_count(&watch, "step", 10, 20);
    expect_progress(&watch, 0, "sweep: run 3 of 20, step 10 of 20, 70 s left");
}
