/* SPDX-License-Identifier: Apache-2.0 */
#include "base/work.h"

#include <stddef.h>

/* Units between two readings of the clock. */
enum { LOOK_UNITS = 1000000 };

struct weft_work weft_work_begin(int64_t (*now_ns)(void), int64_t time_ns)
{
    struct weft_work work = {0};
    if (!now_ns || time_ns <= 0) return work;
    int64_t from_ns = now_ns();
    work.now_ns = now_ns;
    work.alarm_ns = time_ns < INT64_MAX - from_ns ? from_ns + time_ns : INT64_MAX;
    work.look_at = LOOK_UNITS;
    return work;
}

static void show_work(const struct weft_work *work, int64_t best_ns, int64_t bound_ns)
{
    double share = work->whole > 0 ? (double)work->spent / (double)work->whole : -1;
    weft_watch_plan(work->watch, best_ns, bound_ns, share);
}

void weft_work_look(struct weft_work *work)
{
    if (!work || (!work->now_ns && !work->watch)) return;
    if (work->now_ns) work->rang = work->rang || work->now_ns() >= work->alarm_ns;
    if (work->watch) show_work(work, work->watch->best_ns, work->watch->bound_ns);
    work->look_at = work->spent < INT64_MAX - LOOK_UNITS ? work->spent + LOOK_UNITS : INT64_MAX;
}

void weft_work_spend(struct weft_work *work, int64_t units)
{
    if (!work || units <= 0) return;
    work->spent = units < INT64_MAX - work->spent ? work->spent + units : INT64_MAX;
    bool looks = work->now_ns || work->watch;
    if (looks && work->spent >= work->look_at) weft_work_look(work);
}

void weft_work_return(struct weft_work *work, int64_t spent)
{
    if (!work) return;
    work->returned += work->spent - spent;
    work->spent = spent;
    weft_work_look(work); /* the next look at the alarm counts from here */
}

void weft_work_add_returned(struct weft_work *work, const struct weft_work *own)
{
    if (work) work->returned += own->spent + own->returned;
}

int64_t weft_work_part_late(struct weft_work *work, double part)
{
    const int64_t late_at = work->late_at, done = work->spent + work->returned;
    if (late_at > done) work->late_at = done + (int64_t)((double)(late_at - done) * part);
    return late_at;
}

void weft_work_be_watched(struct weft_work *work, struct weft_watch *watch, int64_t units)
{
    work->watch = watch;
    work->whole = units;
}

void weft_work_show_best(struct weft_work *work, int64_t step_ns)
{
    if (work && work->watch) show_work(work, step_ns, work->watch->bound_ns);
}

void weft_work_show_bound(struct weft_work *work, int64_t bound_ns)
{
    if (work && work->watch) show_work(work, work->watch->best_ns, bound_ns);
}

int64_t weft_work_alarm_left_ns(struct weft_work *work)
{
    if (!work || !work->now_ns) return 0;
    int64_t left_ns = work->alarm_ns - work->now_ns();
    return left_ns > 1 ? left_ns : 1;
}

int64_t weft_work_within(int64_t units, int64_t time_ns)
{
    return time_ns <= 0 || units < time_ns / 2 ? units : time_ns / 2;
}

struct weft_budget weft_budget_of(struct weft_work *work, int64_t units)
{
    struct weft_budget budget = {.work = work, .until = INT64_MAX - 1};
    if (work && units > 0 && units < budget.until - work->spent) budget.until = work->spent + units;
    return budget;
}

struct weft_budget weft_budget_unlimited(struct weft_work *work)
{
    return (struct weft_budget){.work = work, .until = INT64_MAX};
}

struct weft_budget weft_budget_part(struct weft_budget budget, double part)
{
    if (!budget.work || budget.until >= INT64_MAX - 1) return budget;
    budget.until = budget.work->spent + (int64_t)((double)weft_budget_left(budget) * part);
    return budget;
}

int64_t weft_budget_left(struct weft_budget budget)
{
    if (!budget.work || budget.until >= INT64_MAX - 1) return INT64_MAX;
    return budget.until > budget.work->spent ? budget.until - budget.work->spent : 0;
}
