/* Work is what a search is limited by: a count of what it did, in units that neither the machine
 * nor its load changes, so that the same question has the same answer. A loop spends what a turn
 * costs, by the sizes of what it looks at; a unit is about a nanosecond of one core of the machine
 * on which those costs were measured (bench/planner/work.py measures them on any other). A budget
 * is the part of the work that somebody may do.
 *
 * An alarm ends the work when a time is over, whatever was spent: for a machine that is far slower
 * or busier than it should be. It is the only clock that a search asks. When it rings, the answer
 * depends on the machine, and whoever gave the time has to say so. */
#ifndef WEFT_BASE_WORK_H
#define WEFT_BASE_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/watch.h"

struct weft_work {
    int64_t spent; /* units, from 0 on */
    /* The alarm: */
    int64_t (*now_ns)(void); /* borrowed; NULL: there is none */
    int64_t alarm_ns;        /* on now_ns */
    int64_t look_at;         /* as `spent`: when the clock is looked at next */
    bool rang;
    bool disturbed;           /* something else that was not work had a say: set by who met it */
    struct weft_watch *watch; /* borrowed: told what is found, at each look at the clock; or NULL */
    int64_t whole;            /* units, whose part that is spent it is told */
};

/* Work until `until` units are spent. Copies share the work. */
struct weft_budget {
    struct weft_work *work; /* borrowed; NULL: nothing is counted, and nothing ends it */
    int64_t until;          /* INT64_MAX: it is counted, but neither units nor alarm end it */
};

/* Nothing is spent yet; the alarm rings `time_ns` from now. No alarm when time_ns is 0 or less, or
 * now_ns NULL. */
struct weft_work weft_work_begin(int64_t (*now_ns)(void), int64_t time_ns);

/* Counts units, and looks at the clock about once a millisecond of work. Accepts NULL. */
void weft_work_spend(struct weft_work *work, int64_t units);

/* Looks at the clock now, and lets the watch look. Accepts NULL. */
void weft_work_look(struct weft_work *work);

/* From now on `watch` (NULL: nobody) is told, and what part of `units` is spent. It has no say in
 * what is found. */
void weft_work_be_watched(struct weft_work *work, struct weft_watch *watch, int64_t units);

/* The step of the best plan so far and its bound, for the watch; 0: there is none. Accept NULL. */
void weft_work_show_best(struct weft_work *work, int64_t step_ns);
void weft_work_show_bound(struct weft_work *work, int64_t bound_ns);

/* Time until the alarm, at least 1; 0 when there is none. Accepts NULL. */
int64_t weft_work_alarm_left_ns(struct weft_work *work);

/* `units`, or what half of the time should do where that is less: so that an alarm after that time
 * does not ring where the machine is nearly as fast as it should be. */
int64_t weft_work_within(int64_t units, int64_t time_ns);

/* The next so many units of the work; all there can be when it is 0 or less. */
struct weft_budget weft_budget_of(struct weft_work *work, int64_t units);

/* Ended by nothing, and counted: for what must be done. */
struct weft_budget weft_budget_unlimited(struct weft_work *work);

/* A part, from 0 to 1, of what is left. */
struct weft_budget weft_budget_part(struct weft_budget budget, double part);

/* Units left, at least 0; INT64_MAX when nothing ends it. */
int64_t weft_budget_left(struct weft_budget budget);

static inline bool weft_budget_is_over(struct weft_budget budget)
{
    const struct weft_work *work = budget.work;
    return work && budget.until < INT64_MAX && (work->rang || work->spent >= budget.until);
}

#endif
