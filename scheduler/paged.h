/* A plan with pages. Rows within the limit are the memory that a program takes but for what is
 * rounded up to whole pages, and for pages that colouring takes beyond its fullest slot. Where that
 * ends above the limit, the planner decides again in rows that are lower by as much. ilp begins
 * with greedy's plan, and rules may take what is left of its budget. */
#ifndef WEFT_SCHEDULER_PAGED_H
#define WEFT_SCHEDULER_PAGED_H

#include "scheduler/paged_try.h"

/* True for planners that choose, and so may choose what is leaner; rules have nothing to fall back
 * on. */
bool weft_may_retreat(const struct weft_planner *planner);

/* The page size that a problem's least limit asks for: the largest power of two from 4 KiB to 2 MiB
 * that is at most 1/65536 of its arena. */
int64_t weft_page_of_least(const struct weft_digest *table);

/* run->plan and run->outcome; WEFT_E_INFEASIBLE when no plan of the planner has rows or pages
 * within the limit. */
WEFT_MUST_USE enum weft_status weft_plan_in_pages(struct weft_paged *run, struct weft_error *err);

/* Nothing is gathered ahead of its use: no plan takes less. run->plan, whatever it takes. */
WEFT_MUST_USE enum weft_status weft_paged_leanest(struct weft_paged *run, struct weft_error *err);

#endif
