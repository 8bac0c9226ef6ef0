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

enum { MOST_RANKS = 64, RANK = 0, COMPUTE, EXPOSED, N_RANK_COLUMNS, MOST_LANES = 16 };

/* The other lanes follow the columns of compute. */
static void fill_rank_columns(struct weft_report *report, const struct weft_record_trace *trace,
                              struct weft_column *columns)
{
    columns[RANK] = (struct weft_column){"rank", "rank", 'r', WEFT_FIGURE_INTEGER, 0};
    columns[COMPUTE] = (struct weft_column){"compute_ns", "computes", 'r', WEFT_FIGURE_NS, 0};
    columns[EXPOSED] = (struct weft_column){"exposed_ns", "waits", 'r', WEFT_FIGURE_NS, 0};
    for (int32_t lane = 1; lane < trace->n_lanes; lane++)
        columns[N_RANK_COLUMNS + lane - 1] =
            (struct weft_column){weft_page_format(report->page, "lane_%d_ns", (int)lane),
                                 trace->lanes[lane], 'r', WEFT_FIGURE_NS, 0};
}

static const struct weft_record_rank *find_slowest(const struct weft_record_trace *trace,
                                                   const struct weft_record_rank **fastest)
{
    const struct weft_record_rank *slowest = *fastest = &trace->ranks[0];
    for (int32_t k = 1; k < trace->n_ranks; k++) {
        const struct weft_record_rank *rank = &trace->ranks[k];
        if (rank->busy_ns[0] > slowest->busy_ns[0]) slowest = rank;
        if (rank->busy_ns[0] < (*fastest)->busy_ns[0]) *fastest = rank;
    }
    return slowest;
}

static void say_slowest(struct weft_report *report, int32_t i, struct weft_page_section *section)
{
    char most[WEFT_UNITS_TEXT_BYTES], least[WEFT_UNITS_TEXT_BYTES];
    const struct weft_record_trace *trace = report->records[i].trace;
    const struct weft_record_rank *fastest, *slowest = find_slowest(trace, &fastest);
    if (slowest->busy_ns[0] == fastest->busy_ns[0])
        weft_section_say(section, "In step %lld all ranks%s compute for %s.",
                         (long long)trace->step, weft_report_of(report, i),
                         weft_units_show_ns(slowest->busy_ns[0], most));
    else
        weft_section_say(section,
                         "In step %lld rank %lld%s computes longest, for %s. Rank %lld computes "
                         "for %s, the shortest time.",
                         (long long)trace->step, (long long)slowest->rank,
                         weft_report_of(report, i), weft_units_show_ns(slowest->busy_ns[0], most),
                         (long long)fastest->rank, weft_units_show_ns(fastest->busy_ns[0], least));
}

/* Ranks of a measured step, with the time of each lane; a lane of the network is busy from the
 * begin of a collective on its rank, so it has the wait for later ranks. */
static void add_ranks_table(struct weft_report *report, int32_t i, struct weft_answer *body)
{
    struct weft_column columns[N_RANK_COLUMNS + MOST_LANES];
    const struct weft_record_trace *trace = report->records[i].trace;
    fill_rank_columns(report, trace, columns);
    struct weft_rows *rows = weft_answer_table(body, weft_report_key(report, i, "ranks"), columns,
                                               N_RANK_COLUMNS + trace->n_lanes - 1);
    weft_rows_title(rows, "Ranks%s in the measured step", weft_report_of(report, i));
    for (int32_t k = 0; k < trace->n_ranks && k < MOST_RANKS; k++) {
        const struct weft_record_rank *rank = &trace->ranks[k];
        weft_rows_begin(rows, NULL);
        weft_rows_integer(rows, RANK, rank->rank);
        weft_rows_integer(rows, COMPUTE, rank->busy_ns[0]);
        weft_rows_integer(rows, EXPOSED, rank->exposed_ns);
        for (int32_t lane = 1; lane < trace->n_lanes; lane++)
            weft_rows_integer(rows, N_RANK_COLUMNS + lane - 1, rank->busy_ns[lane]);
    }
}

static void add_ranks(struct weft_report *report, int32_t i, struct weft_page_section *section)
{
    const struct weft_record_trace *trace = report->records[i].trace;
    if (trace == NULL || trace->n_ranks == 0 || trace->n_lanes > MOST_LANES) return;
    if (trace->n_ranks == 1) {
        weft_section_say(section, "The trace%s has rank %lld alone.", weft_report_of(report, i),
                         (long long)trace->ranks[0].rank);
        return;
    }
    say_slowest(report, i, section);
    if (trace->n_ranks > MOST_RANKS)
        weft_section_say(section, "The table has the first %d of %d ranks.", (int)MOST_RANKS,
                         (int)trace->n_ranks);
    add_ranks_table(report, i, &section->body);
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
    int32_t n = 0;
    if (section != NULL) weft_report_compare_hosts(report, section);
    for (int32_t i = 0; section != NULL && i < report->n; i++) {
        say_ranks(report, i, section);
        weft_report_add_hosts(report, i, section);
        n += report->records[i].kind == WEFT_SOURCE_RUN;
        if (report->predicted[i] == NULL && report->measured[i] == NULL) continue;
        add_ranks(report, i, section);
        add_lanes(report, i, &section->body);
        n++;
    }
    if (n == 0) weft_section_miss(section, "It needs a plan or a run.");
}
