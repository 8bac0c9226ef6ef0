/* SPDX-License-Identifier: Apache-2.0 */
#include "base/work.h"

#include <criterion/criterion.h>

static int64_t now, n_looks;

static int64_t look_ns(void)
{
    n_looks++;
    return now;
}

Test(work, ends_when_its_units_are_spent)
{
    struct weft_work work = {0};
    struct weft_budget budget = weft_budget_of(&work, 100);
    weft_work_spend(&work, 99);
    cr_assert(!weft_budget_is_over(budget));
    cr_assert_eq(weft_budget_left(budget), 1);
    weft_work_spend(&work, 1);
    cr_assert(weft_budget_is_over(budget));
    cr_assert_eq(weft_budget_left(budget), 0);
    weft_work_spend(&work, 7);
    cr_assert_eq(weft_budget_left(budget), 0, "never less than nothing");
}

Test(work, a_part_is_one_of_what_is_left_and_shares_the_count)
{
    struct weft_work work = {.spent = 1000};
    struct weft_budget whole = weft_budget_of(&work, 800);
    weft_work_spend(&work, 400);
    struct weft_budget quarter = weft_budget_part(whole, 0.25);
    cr_assert_eq(weft_budget_left(quarter), 100);
    weft_work_spend(quarter.work, 100);
    cr_assert(weft_budget_is_over(quarter));
    cr_assert_eq(weft_budget_left(whole), 300);
    cr_assert_eq(weft_budget_left(weft_budget_part(quarter, 0.5)), 0);
}

Test(work, without_a_limit_nothing_ends_it_but_the_alarm)
{
    now = 0;
    struct weft_work work = weft_work_begin(look_ns, 5);
    struct weft_budget budget = weft_budget_of(&work, 0), must = weft_budget_unlimited(&work);
    struct weft_budget uncounted = {0};
    weft_work_spend(&work, INT64_MAX / 2);
    cr_assert(!weft_budget_is_over(budget));
    cr_assert_eq(weft_budget_left(weft_budget_part(budget, 0.5)), INT64_MAX);
    now = 5;
    weft_work_look(&work);
    cr_assert(work.rang && weft_budget_is_over(budget));
    cr_assert(!weft_budget_is_over(must), "what must be done is");
    cr_assert(!weft_budget_is_over(uncounted));
    cr_assert_eq(weft_budget_left(uncounted), INT64_MAX);
}

/* The clock is asked once a million units, and once it rang that is not taken back. */
Test(work, an_alarm_rings_when_its_time_is_over_whatever_is_left)
{
    now = 1000;
    n_looks = 0;
    struct weft_work work = weft_work_begin(look_ns, 50);
    struct weft_budget budget = weft_budget_of(&work, 1000000000);
    for (int i = 0; i < 2000; i++)
        weft_work_spend(&work, 1000);
    cr_assert_eq(n_looks, 1 + 2);
    cr_assert_eq(weft_work_alarm_left_ns(&work), 50);
    now = 1050;
    cr_assert(!weft_budget_is_over(budget), "it has not looked");
    weft_work_spend(&work, 1000000);
    cr_assert(weft_budget_is_over(budget));
    cr_assert_gt(weft_budget_left(budget), 0);
    cr_assert_eq(weft_work_alarm_left_ns(&work), 1, "0 would be none");
    now = 0;
    weft_work_spend(&work, 1000000);
    cr_assert(work.rang);
}

Test(work, without_a_time_there_is_no_alarm)
{
    n_looks = 0;
    struct weft_work timeless = weft_work_begin(look_ns, 0), blind = weft_work_begin(NULL, 50);
    weft_work_spend(&timeless, 10000000);
    weft_work_look(&blind);
    cr_assert_eq(n_looks, 0);
    cr_assert_eq(weft_work_alarm_left_ns(&timeless), 0);
    cr_assert_eq(weft_work_alarm_left_ns(&blind), 0);
    cr_assert(!timeless.rang && !blind.rang);
}

Test(work, half_of_a_short_time_is_less_than_the_units)
{
    cr_assert_eq(weft_work_within(100, 1000), 100);
    cr_assert_eq(weft_work_within(100, 100), 50);
    cr_assert_eq(weft_work_within(100, 0), 100, "without an alarm");
}

/* NULL counts no work, and a sum that is too large saturates. */
Test(work, keeps_to_its_range)
{
    struct weft_work work = {.spent = INT64_MAX - 5};
    weft_work_spend(NULL, 5);
    weft_work_look(NULL);
    cr_assert_eq(weft_work_alarm_left_ns(NULL), 0);
    weft_work_spend(&work, INT64_MAX);
    cr_assert_eq(work.spent, INT64_MAX);
    weft_work_spend(&work, -1);
    cr_assert_eq(work.spent, INT64_MAX);
    now = 100;
    struct weft_work late = weft_work_begin(look_ns, INT64_MAX);
    cr_assert_eq(late.alarm_ns, INT64_MAX);
}

static int n_work_shown;

static void count_shown_work(struct weft_watch *watch)
{
    (void)watch;
    n_work_shown++;
}

/* The watch is told each time the clock is read, also without a clock, and at each news. */
Test(work, a_watch_is_told_what_part_is_spent)
{
    struct weft_watch watch = {.look = count_shown_work, .now_ns = look_ns, .share = -1};
    struct weft_work work = {0};
    weft_watch_begin(&watch, "plan");
    n_work_shown = 0;
    weft_work_be_watched(&work, &watch, 40000000);
    for (int i = 0; i < 10000; i++)
        weft_work_spend(&work, 1000);
    cr_assert_eq(n_work_shown, 10);
    weft_work_look(&work);
    cr_assert_float_eq(watch.share, 0.25, 1e-9);
    weft_work_show_best(&work, 120);
    weft_work_show_bound(&work, 100);
    cr_assert(watch.best_ns == 120 && watch.bound_ns == 100 && n_work_shown == 13);
    weft_work_look(&work);
    cr_assert(watch.best_ns == 120 && watch.bound_ns == 100 && n_work_shown == 14);
    weft_work_show_best(NULL, 1);
    weft_work_show_bound(NULL, 1);
}

/* Returned units end no budget, but they count towards the end of plans after it. */
Test(work, is_late_after_counted_and_returned_units)
{
    struct weft_work work = {0};
    const struct weft_budget budget = weft_budget_of(&work, 100);
    cr_assert(!weft_work_is_late(&work) && !weft_work_is_late(NULL));
    work.late_at = 200;
    weft_work_spend(&work, 90);
    weft_work_return(&work, 10);
    cr_assert_eq(weft_budget_left(budget), 90);
    cr_assert_eq(weft_work_part_late(&work, 0.5), 200);
    cr_assert_eq(work.late_at, 145);
    weft_work_spend(&work, 54);
    cr_assert(!weft_work_is_late(&work));
    weft_work_add_returned(&work, &(struct weft_work){.spent = 1});
    cr_assert(weft_work_is_late(&work));
    cr_assert(!weft_budget_is_over(budget));
    cr_assert_eq(weft_work_part_late(&work, 0.5), 145);
    cr_assert_eq(work.late_at, 145, "an end that is past stays");
}
