/* SPDX-License-Identifier: Apache-2.0 */
/* A study has cases: each is a model over a network, with plans of several planners within several
 * memory limits. Divisions of a limit show the part of policies: two-stage chooses policies
 * within one limit and schedules within a larger one. All limits of a case have equal distances. So
 * a line of divisions keeps the policies' memory, the scheduling's, or the sum. */
#ifndef WEFT_REPORT_STUDY_CASES_H
#define WEFT_REPORT_STUDY_CASES_H

#include "report/study/sweep.h"

/* At most so many planners of a case. */
enum { WEFT_CASE_CURVES = 64 };

/* The steps that are compared: simulated, or measured on local ranks. */
enum weft_clock_of_case { WEFT_CASE_SIMULATED, WEFT_CASE_MEASURED };

struct weft_case {
    const char *model;   /* the config's file without its folder and end */
    const char *network; /* factor of its bandwidths, as given */
    int32_t n_limits;
    int32_t n_planners; /* the first one is compared with the others */
    /* First of planners, each with a point for each limit. Then one for each limit of policies,
     * increasing, with a point for each limit from its own on. */
    struct weft_sweep_curve *curves;
    bool is_rule[WEFT_CASE_CURVES]; /* by planner: a published rule or a rival */
    bool measured;                  /* otherwise the next members are 0 */
    bool has_drift;                 /* the machine's times before and after the runs are known */
    double compute_drift, network_drift; /* shares by which the times grew */
    int32_t n_repeats;                   /* runs of a point, before any ran again */
    int32_t n_repeated;                  /* points that drifted, and ran again */
};

struct weft_cases {
    int32_t n;
    struct weft_case *cases;
};

/* The division of limit `to` with policies within limit `from`, at most `to`. */
static inline const struct weft_sweep_point *weft_case_division(const struct weft_case *one,
                                                                int32_t from, int32_t to)
{
    return &one->curves[one->n_planners + from].points[to - from];
}

/* Step of a point; 0: no plan, or not measured. */
int64_t weft_case_step(const struct weft_sweep_point *point, enum weft_clock_of_case clock);

/* The fastest plan of a rule at a limit; NULL if none has one. */
const struct weft_sweep_point *weft_case_best_rule(const struct weft_case *one, int32_t limit,
                                                   enum weft_clock_of_case clock);

/* Share of communication next to compute. */
double weft_case_overlap(const struct weft_sweep_point *point, enum weft_clock_of_case clock);

/* Adds a table of all points, which CSV has. */
void weft_cases_put_points(const struct weft_cases *cases, struct weft_answer *answer);
/* Writes the columns of the table of points: name, type and text, as a Table Schema in JSON. */
void weft_cases_schema(struct weft_text *out);

/* Adds a row for each planner and case, and the points at which the first planner is faster by 5 %
 * than every rule. */
void weft_cases_report(const struct weft_cases *cases, struct weft_answer *answer);

/* Adds measured steps by planner next to the first planner's and to the prediction, and a line for
 * each case about drift. Nothing if no case was measured. */
void weft_cases_put_measured(const struct weft_cases *cases, struct weft_answer *answer);

/* A self-contained SVG document of a column of 85 mm: two panels over the share of memory for
 * policies, at one limit of each case. The upper panel has the step as a multiple of the first
 * planner's, the lower one the overlap. Each point has its figures as data attributes. */
void weft_cases_svg(const struct weft_cases *cases, enum weft_clock_of_case clock,
                    struct weft_text *out);
/* An SVG document of 85 mm. Its panel has the gain of the first planner over the best rule by
 * limit, a line for each case, cut where no rule has a plan. Below it each case has bands: the
 * shares of parameters by policy of the first planner's plans. */
void weft_cases_gains_svg(const struct weft_cases *cases, struct weft_text *out);
/* Writes the gains' panels for gnuplot, with their data. */
void weft_cases_gnuplot(const struct weft_cases *cases, struct weft_text *out);

#endif
