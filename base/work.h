/* SPDX-License-Identifier: Apache-2.0 */
/* Work limits a search. It counts operations in units that depend neither on the machine nor on its
 * load, so equal questions have equal answers. A loop spends a cost that follows from the sizes of
 * its input. A unit is about a nanosecond of one core of the machine that the costs were measured
 * on; bench/planner/work.py measures it elsewhere. A budget is the work that one search may do.
 *
 * An alarm ends the work after a time, if the user sets one. It is the only clock of a search. When
 * it rings, the answer depends on the machine, and the caller must say so.
 */
#ifndef WEFT_BASE_WORK_H
#define WEFT_BASE_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/watch.h"

struct weft_work {
    int64_t spent;    /* units, from 0 */
    int64_t returned; /* units that were done and count in no budget */
    int64_t limit;    /* units of the whole task, if it has a limit; 0: none */
    int64_t late_at;  /* units, returned ones too, at which plans after a budget end; 0: never */
    /* The alarm: */
    int64_t (*now_ns)(void); /* borrowed; NULL: no alarm */
    int64_t alarm_ns;        /* on now_ns */
    int64_t look_at;         /* the value of `spent` at the next reading of the clock */
    bool rang;
    bool disturbed; /* the result depends on more than work; set by the code that met the cause */
    struct weft_watch *watch; /* borrowed: gets reports at each reading of the clock; NULL: none */
    int64_t whole;            /* Total units. The watch is told the share that is spent. */
};

/* Work until `until` units are spent. Copies share the work. */
struct weft_budget {
    struct weft_work *work; /* borrowed; NULL: no count and no end */
    int64_t until;          /* INT64_MAX: counts, but neither units nor alarm end it */
};

/* Starts with nothing spent and an alarm `time_ns` from now. No alarm if time_ns <= 0 or now_ns is
 * NULL. */
struct weft_work weft_work_begin(int64_t (*now_ns)(void), int64_t time_ns);

/* Counts units, and reads the clock about once a millisecond of work. Accepts NULL. */
void weft_work_spend(struct weft_work *work, int64_t units);

/* Takes the units since `spent` was this value out of all budgets. Accepts NULL. */
void weft_work_return(struct weft_work *work, int64_t spent);

/* Adds the units of a search with a work of its own, which count in no budget. Accepts NULL. */
void weft_work_add_returned(struct weft_work *work, const struct weft_work *own);

/* Reads the clock now and calls the watch. Accepts NULL. */
void weft_work_look(struct weft_work *work);

/* Sets the watch (NULL: none), which is told the spent share of `units`. It does not influence the
 * search. */
void weft_work_be_watched(struct weft_work *work, struct weft_watch *watch, int64_t units);

/* Report the best step so far, and its bound, to the watch; 0: none. Accept NULL. */
void weft_work_show_best(struct weft_work *work, int64_t step_ns);
void weft_work_show_bound(struct weft_work *work, int64_t bound_ns);

/* Time until the alarm, at least 1; 0 without an alarm. Accepts NULL. */
int64_t weft_work_alarm_left_ns(struct weft_work *work);

/* `units`, or fewer: the work of half the time. All of them if time_ns <= 0. So an alarm after that
 * time does not ring on a machine of nearly the expected speed. */
int64_t weft_work_within(int64_t units, int64_t time_ns);

/* The next `units` of the work; unlimited if 0 or less. */
struct weft_budget weft_budget_of(struct weft_work *work, int64_t units);

/* Counts but never ends, for work that must be done. */
struct weft_budget weft_budget_unlimited(struct weft_work *work);

/* A share, 0 to 1, of the remaining budget. */
struct weft_budget weft_budget_part(struct weft_budget budget, double part);

/* Units left, at least 0; INT64_MAX without an end. */
int64_t weft_budget_left(struct weft_budget budget);

/* Moves the end of plans after a budget to this part of the units until then. Returns the end that
 * was there, so that the caller can restore late_at. */
int64_t weft_work_part_late(struct weft_work *work, double part);

/* True once plans after a budget end. From then on no plan is begun if there is one that fits. */
static inline bool weft_work_is_late(const struct weft_work *work)
{
    return work && work->late_at > 0 && work->spent + work->returned >= work->late_at;
}

/* True once the alarm rang. From then on only the work that a valid plan needs is done. */
static inline bool weft_budget_has_rung(struct weft_budget budget)
{
    return budget.work && budget.work->rang;
}

static inline bool weft_budget_is_over(struct weft_budget budget)
{
    const struct weft_work *work = budget.work;
    return work && budget.until < INT64_MAX && (work->rang || work->spent >= budget.until);
}

#endif
