#include "base/watch.h"

#include <criterion/criterion.h>
#include <string.h>

static int n_watch_looks;

static void count_look(struct weft_watch *watch)
{
    (void)watch;
    n_watch_looks++;
}

static struct weft_watch new_watch(void)
{
    n_watch_looks = 0;
    return (struct weft_watch){.look = count_look, .share = -1};
}

Test(watch, nobody_need_watch)
{
    weft_watch_begin(NULL, "plan");
    weft_watch_count(NULL, "step", 1, 2);
    weft_watch_part(NULL, "sweep", "run", 0, 2, 0);
    weft_watch_plan(NULL, 1, 1, 0.5);
    weft_watch_look(NULL);
    weft_watch_end(NULL);
}

Test(watch, whoever_watches_is_called_each_time)
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
    cr_assert_eq(weft_watch_left_ns(&watch, watch.begun_ns + 50), -1, "nothing is counted");
    weft_watch_count(&watch, "step", 0, 4);
    cr_assert_eq(weft_watch_left_ns(&watch, watch.begun_ns + 50), -1, "nothing is done");
    weft_watch_count(&watch, "step", 1, 4);
    cr_assert_eq(weft_watch_left_ns(&watch, watch.begun_ns + 50), 150);
    weft_watch_count(&watch, "step", 4, 4);
    cr_assert_eq(weft_watch_left_ns(&watch, watch.begun_ns + 200), 0);
}

/* A run that goes on from step 100 has not done these 100 steps in its time. */
Test(watch, a_count_that_goes_on_begins_where_it_begins)
{
    struct weft_watch watch = new_watch();
    weft_watch_begin(&watch, "train");
    weft_watch_count(&watch, "step", 100, 110);
    weft_watch_count(&watch, "step", 105, 110);
    cr_assert_float_eq(weft_watch_share(&watch), 0.5, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch, watch.begun_ns + 70), 70);
    weft_watch_begin(&watch, "train");
    weft_watch_count(&watch, "step", 0, 10);
    weft_watch_count(&watch, "step", 1, 10);
    cr_assert_float_eq(weft_watch_share(&watch), 0.1, 1e-12, "another count is another beginning");
}

Test(watch, parts_share_a_beginning_and_an_end)
{
    struct weft_watch watch = new_watch();
    weft_watch_part(&watch, "sweep", "run", 1, 4, 1000);
    cr_assert_float_eq(weft_watch_share(&watch), 0.25, 1e-12);
    weft_watch_begin(&watch, "train");
    cr_assert_str_eq(watch.what, "sweep", "it is part of that");
    cr_assert_eq(watch.begun_ns, 1000);
    weft_watch_count(&watch, "step", 0, 2);
    weft_watch_count(&watch, "step", 1, 2);
    cr_assert_float_eq(weft_watch_share(&watch), 0.375, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch, 1000 + 300), 500);
    weft_watch_end(&watch);
    cr_assert_str_eq(watch.what, "sweep", "the larger work goes on");
    weft_watch_part(&watch, NULL, NULL, 0, 0, 0);
    cr_assert_null(watch.what);
}

/* A planner may end before its budget does: what is left of it is no time that is left. */
Test(watch, a_budget_tells_no_end)
{
    struct weft_watch watch = new_watch();
    weft_watch_begin(&watch, "plan");
    weft_watch_plan(&watch, 100, 90, 0.5);
    cr_assert_float_eq(weft_watch_share(&watch), 0.5, 1e-12);
    cr_assert_eq(weft_watch_left_ns(&watch, watch.begun_ns + 100), -1);
}
