/* SPDX-License-Identifier: Apache-2.0 */
/* One try for a plan in pages: a planner decides in some rows, and the decision gets pages. A run
 * keeps one plan and its program. */
#ifndef WEFT_SCHEDULER_PAGED_TRY_H
#define WEFT_SCHEDULER_PAGED_TRY_H

#include "program/program.h"
#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"

struct weft_planner;

/* One call of weft_schedule. */
struct weft_paged {
    const struct weft_problem *problem;
    const struct weft_lower_inputs *inputs; /* NULL: no pages; otherwise: */
    struct weft_lower_inputs counted;       /* with a page size, the limit, and colouring counted */
    const struct weft_schedule_options *options;
    const struct weft_planner *planner;
    struct weft_digest *table;
    struct weft_candidate candidate;
    struct weft_outcome outcome;     /* of the limit's own rows */
    const struct weft_problem *rows; /* rows for the planner's decision; NULL: the problem's own */
    bool page_is_open;               /* the config leaves the page size to the planner */
    bool is_over;                    /* the planner's first plan exceeded the limit in pages */
    struct weft_outcome paged_outcome; /* its bound is of plans in pages of bound_page_bytes */
    int64_t bound_page_bytes;
    struct weft_outcome large_outcome; /* likewise of larger pages, if both sizes have a bound */
    int64_t large_page_bytes;
    struct weft_pool pool; /* of certificates */
    struct weft_budget budget;
    struct weft_plan *plan; /* the candidate's plan that takes least */
    struct weft_program *program;
    struct weft_plan *over; /* the first plan of ilp, if it exceeded the limit in pages */
    bool is_small;          /* weft_paged_is_small at the begin of ilp */
    int32_t n_first;        /* rules that were tried first (scheduler/paged_first.h) */
    bool has_given_up;      /* no work was left to look for a faster plan than kept_ns */
    int32_t n_again;        /* plans in lower rows */
    int64_t lower_bytes;    /* difference of the limit and the last lower rows */
    int64_t below_ns;       /* plans that take as long or longer get no pages; 0: all do */
    bool takes_equal;       /* a plan replaces an equally fast one that is put aside */
    bool has_other;         /* a plan that fits is put aside, for the case that none is better */
    int64_t first_work;     /* work before that plan; 0: there was none */
    int64_t leanest_ns;     /* the step of the leanest plan if it had to be tried; otherwise 0 */
};

/* A plan that is put aside while another is tried. */
struct weft_paged_aside {
    struct weft_plan *plan;
    struct weft_program *program;
};

/* A question to the run's planner. */
struct weft_paged_question {
    int64_t rows_bytes;            /* the device's limit of rows */
    double part;                   /* of the remaining budget */
    bool draft;                    /* the decision needs no proof */
    bool hidden;                   /* progress does not show its best and bound */
    const struct weft_plan *start; /* NULL: none */
};

/* Bytes of run->plan, which there must be. */
int64_t weft_paged_total_bytes(const struct weft_paged *run);

/* True if the run has a plan that fits the limit in pages. */
bool weft_paged_fits(const struct weft_paged *run);

/* True once neither the alarm nor the work allows another plan if the run has one. */
bool weft_paged_is_late(const struct weft_paged *run);

/* Units of one plan: placing, moving blocks apart, and pages. */
int64_t weft_paged_plan_units(const struct weft_paged *run);

/* True if the whole limit is worth few plans of this problem, and the budget even fewer. Then rules
 * come before searches. */
bool weft_paged_is_small(const struct weft_paged *run);

/* The bound of plans in pages of this size; NULL: none. */
const struct weft_outcome *weft_paged_bound_of(const struct weft_paged *run, int64_t page_bytes);

/* True while the run's plan is further than the wanted gap from its best bound. */
bool weft_paged_is_open(const struct weft_paged *run);

/* The same for the bound of rows alone, which holds in pages of each size. */
bool weft_paged_is_open_in_rows(const struct weft_paged *run);

/* Replaces the run's plan and program, which may be NULL. */
void weft_paged_keep(struct weft_paged *run, struct weft_plan *plan, struct weft_program *program);

/* Takes the run's plan out of it. */
struct weft_paged_aside weft_paged_put_aside(struct weft_paged *run);
void weft_paged_drop_aside(struct weft_paged_aside aside);

/* Keeps the run's plan if it fits and is faster than the one aside, or if there is none aside.
 * Otherwise keeps that one. */
void weft_paged_keep_faster(struct weft_paged *run, struct weft_paged_aside aside);

/* The run's candidate gets pages, and the plan that takes least is kept. Blocks are moved apart as
 * far as rows_bytes allow, then as far as they do without the excess, then not at all. Those of a
 * literal candidate are never moved, and none are after the alarm, or once the work of a small
 * limit is late. */
WEFT_MUST_USE enum weft_status weft_paged_candidate(struct weft_paged *run, int64_t rows_bytes,
                                                    bool literal, struct weft_error *err);

/* The run's candidate gets pages, and the plan replaces the run's. Moves its blocks apart as far as
 * rows_bytes allow; 0: leaves them. Without pages, drops a plan with a row above the limit or not
 * below run->below_ns. Sets *peak_bytes to its largest row in every case. */
WEFT_MUST_USE enum weft_status weft_paged_within(struct weft_paged *run, int64_t rows_bytes,
                                                 int64_t *peak_bytes, struct weft_error *err);

/* Measures the run's candidate as weft_paged_within does, without pages and without a change of the
 * run's plan. */
WEFT_MUST_USE enum weft_status weft_paged_measure(const struct weft_paged *run, int64_t rows_bytes,
                                                  int64_t *step_ns, int64_t *peak_bytes,
                                                  struct weft_error *err);

/* Gives pages of another size to the run's plan, which has some. */
WEFT_MUST_USE enum weft_status weft_paged_again(struct weft_paged *run, int64_t page_bytes,
                                                struct weft_error *err);

/* The planner decides in the run's rows, from the question's start and, if it is ilp, the caller's
 * plans. The decision gets pages. Drops the run's plan before. */
WEFT_MUST_USE enum weft_status weft_paged_ask(struct weft_paged *run,
                                              const struct weft_paged_question *question,
                                              struct weft_outcome *outcome, struct weft_error *err);

#endif
