/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/page/report.h"

/* Ranks, hosts and lanes. */

static double sum_lane(const struct weft_spans *spans, int32_t lane)
{
    double sum = 0;
    for (int32_t i = 0; i < spans->n[lane]; i++)
        if (!spans->spans[lane][i].kind->hatched)
            sum += spans->spans[lane][i].to_ns - spans->spans[lane][i].from_ns;
    return sum;
}

enum { LANE, PREDICTED, PREDICTED_SHARE, MEASURED, MEASURED_SHARE, N_COLUMNS };

static void put_lane(struct weft_rows *rows, int32_t column, const struct weft_spans *spans,
                     int32_t lane)
{
    if (spans == NULL || lane >= spans->n_lanes || spans->step_ns <= 0) return;
    const double ns = sum_lane(spans, lane);
    weft_rows_integer(rows, column, (int64_t)ns);
    weft_rows_real(rows, column + 1, ns / spans->step_ns);
}

static void add_lanes(struct weft_report *report, int32_t i, struct weft_answer *body)
{
    static const struct weft_column columns[N_COLUMNS] = {
        [LANE] = {"lane", "lane", 'l', WEFT_FIGURE_WORD, 0},
        [PREDICTED] = {"predicted_ns", "busy, predicted", 'r', WEFT_FIGURE_NS, 0},
        [PREDICTED_SHARE] = {"predicted_share", "of the step", 'r', WEFT_FIGURE_PERCENT, 0},
        [MEASURED] = {"measured_ns", "busy, measured", 'r', WEFT_FIGURE_NS, 0},
        [MEASURED_SHARE] = {"measured_share", "of the step", 'r', WEFT_FIGURE_PERCENT, 0}};
    const struct weft_spans *predicted = report->predicted[i], *measured = report->measured[i];
    const struct weft_spans *any = predicted != NULL ? predicted : measured;
    struct weft_rows *rows =
        weft_answer_table(body, weft_report_key(report, i, "lanes"), columns, N_COLUMNS);
    weft_rows_title(rows, "Lanes of a rank%s", weft_report_of(report, i));
    if (measured == NULL) weft_rows_head(rows, MEASURED, NULL);
    if (measured == NULL) weft_rows_head(rows, MEASURED_SHARE, NULL);
    for (int32_t lane = 0; lane < any->n_lanes; lane++) {
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, LANE, any->lanes[lane]);
        put_lane(rows, PREDICTED, predicted, lane);
        put_lane(rows, MEASURED, measured, lane);
    }
}

static void say_ranks(struct weft_report *report, int32_t i, struct weft_page_section *section)
{
    const struct weft_plan *plan = report->records[i].plan;
    if (plan == NULL) return;
    const struct weft_problem *problem = plan->problem;
    weft_section_say(
        section, "%lld rank%s%s%s%s.", (long long)problem->ranks, problem->ranks == 1 ? "" : "s",
        problem->ranks_per_node > 0 ? weft_page_format(report->page, ", %lld on each node",
                                                       (long long)problem->ranks_per_node)
                                    : "",
        weft_report_of(report, i), weft_problem_emulates(problem) ? ", over an emulated link" : "");
}

void weft_report_add_ranks(struct weft_report *report)
{
    struct weft_page_section *section =
        weft_page_section(report->page, "ranks", "Ranks, hosts and links");
    bool has_run = false;
    int32_t n = 0;
    for (int32_t i = 0; section != NULL && i < report->n; i++) {
        say_ranks(report, i, section);
        if (report->predicted[i] == NULL && report->measured[i] == NULL) continue;
        has_run |= report->records[i].kind == WEFT_SOURCE_RUN;
        add_lanes(report, i, &section->body);
        n++;
    }
    if (n == 0) weft_section_miss(section, "It needs a plan or a run.");
    if (has_run)
        weft_section_say(section, "The page shows rank 0 alone, so the slowest rank is not named "
                                  "here.");
}
