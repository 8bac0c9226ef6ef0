/* A plan with pages. Rows within the limit are the memory that a program takes but for what is
 * rounded up to whole pages, and for pages that colouring takes beyond its fullest slot. Where that
 * ends above the limit, the planner decides again in rows that are lower by as much. ilp begins
 * with greedy's plan, and rules may take what is left of its budget. */
#ifndef WEFT_SCHEDULER_PAGED_H
#define WEFT_SCHEDULER_PAGED_H

#include "program/program.h"
#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"

/* One call of weft_schedule. */
struct weft_paged {
    const struct weft_problem *problem;
    const struct weft_lower_inputs *inputs; /* NULL: no pages; else: */
    struct weft_lower_inputs counted;       /* with a page size, the limit, and colouring counted */
    const struct weft_schedule_options *options;
    const struct weft_planner *planner;
    struct weft_digest *table;
    struct weft_candidate candidate;
    struct weft_outcome outcome; /* of the limit's own rows */
    struct weft_pool pool;       /* of certificates */
    struct weft_budget budget;
    struct weft_plan *plan; /* the candidate's that takes least */
    struct weft_program *program;
    int32_t n_again;     /* plans in lower rows */
    int64_t lower_bytes; /* by which rows were lower in the end */
    int64_t below_ns;    /* plans that take as long or longer get no pages; 0: all do */
    bool has_other;      /* a plan that fits is put aside, for the case that none is better */
    int64_t first_work;  /* after which there was one; 0: there was none */
    int64_t leanest_ns;  /* the step of the leanest plan, where it had to be tried; else 0 */
};

/* True for planners that choose, and so may choose what is leaner; rules have nothing to fall back
 * on. */
bool weft_may_retreat(const struct weft_planner *planner);

/* The page size that a problem's least limit asks for: the largest power of two from 4 KiB to 2 MiB
 * that is at most 1/65536 of its arena. */
int64_t weft_page_of_least(const struct weft_digest *table);

/* Bytes of run->plan, which there must be. */
int64_t weft_paged_total_bytes(const struct weft_paged *run);

/* run->plan and run->outcome; WEFT_E_INFEASIBLE when no plan of the planner has rows or pages
 * within the limit. */
WEFT_MUST_USE enum weft_status weft_plan_in_pages(struct weft_paged *run, struct weft_error *err);

/* Nothing is gathered ahead of its use: no plan takes less. run->plan, whatever it takes. */
WEFT_MUST_USE enum weft_status weft_paged_leanest(struct weft_paged *run, struct weft_error *err);

#endif
