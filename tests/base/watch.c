/* SPDX-License-Identifier: Apache-2.0 */
#include "base/watch.h"

#include <criterion/criterion.h>
#include <string.h>

static int n_watch_looks;
static int64_t watch_now_ns;

static void count_look(struct weft_watch *watch)
{
    (void)watch;
    n_watch_looks++;
}

static int64_t read_watch_clock(void)
{
    return watch_now_ns;
}

static struct weft_watch new_watch(void)
{
    n_watch_looks = 0;
    watch_now_ns = 7000;
    return (struct weft_watch){.look = count_look, .now_ns = read_watch_clock, .share = -1};
}

Test(watch, nobody_need_watch)
{
    const struct weft_watch other = new_watch();
    weft_watch_begin(NULL, "plan");
    weft_watch_count(NULL, "step", 1, 2);
    weft_watch_part(NULL, "sweep", "run", 0, 2, 0);
    weft_watch_plan(NULL, 1, 1, 0.5);
    weft_watch_follow(NULL, &other);
    weft_watch_look(NULL);
    weft_watch_end(NULL);
}

Test(watch, the_watcher_is_called_each_time)
{
    struct weft_watch watch = new_watch();
    weft_watch_look(&watch);
    cr_assert_eq(n_watch_looks, 0, "nothing is being done");
    weft_watch_begin(&watch, "train");
    weft_watch_count(&watch, "step", 0, 4);
    weft_watch_look(&watch);
    weft_watch_plan(&watch, 10, 9, 0.25);
    cr_assert_eq(n_watch_looks, 4);
    cr_assert_str_eq(watch.what, "train");
    weft_watch_end(&watch);
    cr_assert_eq(n_watch_looks, 5);
    cr_assert_null(watch.what);
}

Test(watch, what_is_left_follows_from_what_is_counted)
{
    struct weft_watch watch = new_watch();
    weft_watch_begin(&watch, "train");
    cr_assert_eq(weft_watch_left_ns(&watch), -1, "nothing is counted");
    weft_watch_count(&watch, "step", 0, 4);
    watch_now_ns += 50;
    cr_assert_eq(weft_watch_left_ns(&watch), -1, "nothing is done");
    weft_watch_count(&watch, "step", 1, 4);
    cr_assert_eq(weft_watch_left_ns(&watch), 150);
    watch_now_ns += 150;
    weft_watch_count(&watch, "step", 4, 4);
    cr_assert_eq(weft_watch_left_ns(&watch), 0);
}

/* Otherwise it would grow while a long step is done, and fall when it ends. */
Test(watch, what_is_left_counts_down_until_the_next_is_due)
{
    struct weft_watch watch = new_watch();
    weft_watch_begin(&watch, "train");
    weft_watch_count(&watch, "step", 0, 4);
    watch_now_ns += 100;
    weft_watch_count(&watch, "step", 1, 4);
    watch_now_ns += 60;
    weft_watch_count(&watch, "step", 1, 4);
    cr_assert_eq(weft_watch_left_ns(&watch), 240, "nothing was done in the meantime");
    watch_now_ns += 40;
    cr_assert_eq(weft_watch_left_ns(&watch), 200);
    watch_now_ns += 100;
    cr_assert_eq(weft_watch_left_ns(&watch), 300, "two steps have taken 300 at least");
    watch_now_ns += 100;
    weft_watch_count(&watch, "step", 3, 4);
    cr_assert_eq(weft_watch_left_ns(&watch), 133);
    watch_now_ns += 133;
    cr_assert_eq(weft_watch_left_ns(&watch), 0);
    watch_now_ns += 10;
    cr_assert_eq(weft_watch_left_ns(&watch), -1, "the last one is late, nobody knows how much");
}

/* A run that goes on from step 100 has not done these 100 steps in its time. */
Test(watch, a_count_that_goes_on_begins_where_it_begins)
{
    struct weft_watch watch = new_watch();
    weft_watch_begin(&watch, "train");
    weft_watch_count(&watch, "step", 100, 110);
    watch_now_ns += 70;
    weft_watch_count(&watch, "step", 105, 110);
    cr_assert_float_eq(weft_watch_share(&watch), 0.5, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch), 70);
    weft_watch_begin(&watch, "train");
    weft_watch_count(&watch, "step", 0, 10);
    weft_watch_count(&watch, "step", 1, 10);
    cr_assert_float_eq(weft_watch_share(&watch), 0.1, 1e-12, "another count is another beginning");
}

Test(watch, parts_share_a_beginning_and_an_end)
{
    struct weft_watch watch = new_watch();
    int64_t begun_ns = watch_now_ns;
    watch_now_ns += 100;
    weft_watch_part(&watch, "sweep", "run", 1, 4, begun_ns);
    cr_assert_float_eq(weft_watch_share(&watch), 0.25, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch), 300);
    weft_watch_begin(&watch, "train");
    cr_assert_str_eq(watch.what, "sweep", "it is part of that");
    cr_assert_eq(watch.begun_ns, begun_ns);
    weft_watch_count(&watch, "step", 0, 2);
    watch_now_ns += 200;
    weft_watch_count(&watch, "step", 1, 2);
    cr_assert_float_eq(weft_watch_share(&watch), 0.375, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch), 500);
    weft_watch_end(&watch);
    cr_assert_str_eq(watch.what, "sweep", "the larger work goes on");
    weft_watch_part(&watch, NULL, NULL, 0, 0, 0);
    cr_assert_null(watch.what);
}

/* Another process works; this one shows it, as a work of its own or as part of a larger one. */
Test(watch, another_watch_is_followed)
{
    struct weft_watch watch = new_watch(), other = new_watch();
    weft_watch_begin(&watch, "train");
    watch_now_ns += 30;
    weft_watch_begin(&other, "train");
    weft_watch_count(&other, "step", 0, 4);
    watch_now_ns += 50;
    weft_watch_count(&other, "step", 1, 4);
    weft_watch_follow(&watch, &other);
    cr_assert_str_eq(watch.noun, "step");
    cr_assert_eq(weft_watch_left_ns(&watch), 150, "the start of the process is no step");
    other.what = "start";
    weft_watch_follow(&watch, &other);
    cr_assert_str_eq(watch.what, "start");
    weft_watch_part(&watch, "sweep", "run", 1, 2, 6000);
    weft_watch_follow(&watch, &other);
    cr_assert_eq(watch.begun_ns, 6000);
    cr_assert_str_eq(watch.what, "sweep", "a part keeps the larger work's name");
    cr_assert_float_eq(weft_watch_share(&watch), 0.625, 1e-12);
}

/* A planner may end before its budget does, so the unspent budget is not the remaining time. */
Test(watch, a_budget_tells_no_end)
{
    struct weft_watch watch = new_watch();
    weft_watch_begin(&watch, "plan");
    weft_watch_plan(&watch, 100, 90, 0.5);
    watch_now_ns += 100;
    cr_assert_float_eq(weft_watch_share(&watch), 0.5, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch), -1);
}
