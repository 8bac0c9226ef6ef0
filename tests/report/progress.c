#include "report/progress.h"

#include <criterion/criterion.h>

static const int64_t progress_s = INT64_C(1000000000), progress_ms = 1000000;

static void look_nowhere(struct weft_watch *watch)
{
    (void)watch;
}

static struct weft_watch progress_watch(void)
{
    return (struct weft_watch){.look = look_nowhere, .share = -1};
}

static void expect_progress(const struct weft_watch *watch, int64_t after_ns, int32_t columns,
                            const char *expected)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_report_progress(watch, watch->begun_ns + after_ns, columns, &out);
    cr_assert_str_eq(weft_text_chars(&out), expected, "got '%s'", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(progress, steps_and_the_time_that_is_left)
{
    struct weft_watch watch = progress_watch();
    weft_watch_begin(&watch, "train");
    expect_progress(&watch, 3 * progress_s, 0, "train: 3 s so far");
    weft_watch_count(&watch, "step", 0, 20);
    expect_progress(&watch, 3 * progress_s, 0, "train: step 0 of 20, 3 s so far");
    weft_watch_count(&watch, "step", 5, 20);
    expect_progress(&watch, 10 * progress_s, 0, "train: step 5 of 20, 30 s left");
    expect_progress(&watch, 100 * progress_s, 0, "train: step 5 of 20, 5 min left");
    expect_progress(&watch, 7200 * progress_s, 0, "train: step 5 of 20, 6.0 h left");
    weft_watch_count(&watch, "token", 7, 0);
    expect_progress(&watch, 90 * progress_s, 0, "train: token 7, 2 min so far");
}

Test(progress, a_plan_and_its_budget)
{
    struct weft_watch watch = progress_watch();
    weft_watch_begin(&watch, "plan");
    weft_watch_plan(&watch, 0, 0, 0.02);
    expect_progress(&watch, progress_s, 0, "plan: 2 % of the budget, 1 s so far");
    weft_watch_plan(&watch, 351 * progress_ms, 0, 0.1);
    expect_progress(&watch, progress_s, 0, "plan: best 351 ms, 10 % of the budget, 1 s so far");
    weft_watch_plan(&watch, 351 * progress_ms, 350 * progress_ms, 1.2);
    expect_progress(&watch, 29 * progress_s, 0,
                    "plan: best 351 ms, bound 350 ms, gap 0.29 %, 100 % of the "
                    "budget, 29 s so far");
}

Test(progress, a_narrow_line_has_what_matters_most)
{
    struct weft_watch watch = progress_watch();
    weft_watch_begin(&watch, "plan");
    weft_watch_plan(&watch, 351 * progress_ms, 350 * progress_ms, 0.5);
    expect_progress(&watch, 29 * progress_s, 46, "plan: best 351 ms, gap 0.29 %, 29 s so far");
    expect_progress(&watch, 29 * progress_s, 30, "plan: best 351 ms, 29 s so far");
    expect_progress(&watch, 29 * progress_s, 8, "plan: ");
}

Test(progress, runs_of_a_sweep)
{
    struct weft_watch watch = progress_watch();
    weft_watch_part(&watch, "sweep", "run", 2, 20, 5);
    weft_watch_count(&watch, "step", 0, 20);
    weft_watch_count(&watch, "step", 10, 20);
    expect_progress(&watch, 10 * progress_s, 0, "sweep: run 3 of 20, step 10 of 20, 70 s left");
}
