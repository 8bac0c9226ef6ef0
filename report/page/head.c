/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>

#include "report/page/report.h"
#include "report/study/first_line.h"

static const char *const kind_names[WEFT_SOURCE_KINDS] = {[WEFT_SOURCE_PLAN] = "plan",
                                                          [WEFT_SOURCE_RUN] = "run",
                                                          [WEFT_SOURCE_SWEEP] = "sweep",
                                                          [WEFT_SOURCE_BEST] = "best combination"};

static const char *show_ns(double ns, char out[WEFT_UNITS_TEXT_BYTES])
{
    return weft_units_show_ns((int64_t)ns, out);
}

/* "28.2 % longer than", "as long as". */
static void add_comparison(double ratio, struct weft_text *out)
{
    const double percent = 100 * (ratio - 1);
    if (fabs(percent) < 0.05)
        weft_text_add(out, "as long as");
    else
        weft_text_addf(out, "%.1f %% %s than", fabs(percent), percent > 0 ? "longer" : "shorter");
}

static void answer_run(struct weft_page *page, const struct weft_source *record,
                       struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    const struct weft_record_metrics *metrics = &record->metrics;
    const double step_ns = weft_report_step_ns(page, record);
    const double exposed_ns =
        weft_report_median(page, record, offsetof(struct weft_record_step, exposed_ns));
    if (!isfinite(step_ns)) {
        weft_text_addf(out, "No step of this run is recorded%s",
                       record->plan != NULL ? "; its plan: " : ".");
        if (record->plan == NULL) return;
        weft_answer_ways(record->plan, out);
        weft_text_addf(out, ", %s predicted.",
                       show_ns((double)record->plan->prediction.step_ns, a));
        return;
    }
    weft_text_addf(out, "A step takes %s%s", show_ns(step_ns, a),
                   metrics->is_emulated ? " over an emulated link" : "");
    if (record->plan != NULL) {
        const double predicted = (double)record->plan->prediction.step_ns;
        weft_text_add(out, ", ");
        add_comparison(step_ns / predicted, out);
        weft_text_addf(out, " predicted (%s)", show_ns(predicted, b));
    }
    if (isfinite(exposed_ns))
        weft_text_addf(out, "; compute waits %s of it for communication", show_ns(exposed_ns, a));
    if (metrics->n_steps > 0)
        weft_text_addf(out, "; the loss goes from %.4f to %.4f in %lld steps",
                       metrics->steps[0].loss, metrics->steps[metrics->n_steps - 1].loss,
                       (long long)metrics->n_steps);
    if (record->damaged_result != NULL)
        weft_text_addf(out, ". The run's result is damaged: %s.", record->damaged_result);
    else
        weft_text_add(out, record->result != NULL
                               ? "."
                               : ". The run has no result yet: it goes on, or it was killed.");
}

static void answer_plan(const struct weft_plan *plan, struct weft_text *out)
{
    const struct weft_prediction *p = &plan->prediction;
    const struct weft_plan_claim claim = weft_plan_claim_of(plan);
    weft_answer_ways(plan, out);
    weft_text_add(out, ": ");
    weft_answer_step(p->step_ns, 0, p->total_bytes > 0 ? p->total_bytes : p->peak_bytes, out);
    if (claim.bound_ns > 0) weft_text_add(out, "; ");
    weft_answer_bound(p->step_ns, claim, out);
    weft_text_add(out, ".");
}

/* The fastest step of a sweep within its largest and its least limit. */
static void answer_sweep(const struct weft_sweep *sweep, struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    const struct weft_sweep_point *fastest = NULL, *smallest = NULL;
    const char *planner = "";
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *at = &sweep->curves[c].points[i];
            if (!at->fits) continue;
            if (fastest == NULL || at->step_ns < fastest->step_ns) {
                fastest = at;
                planner = sweep->curves[c].planner;
            }
            if (smallest == NULL || at->limit_bytes < smallest->limit_bytes ||
                (at->limit_bytes == smallest->limit_bytes && at->step_ns < smallest->step_ns))
                smallest = at;
        }
    }
    if (fastest == NULL) {
        weft_text_add(out, "No planner has a plan within any of these limits.");
        return;
    }
    weft_text_addf(out, "The fastest step is %s by %s within %s",
                   show_ns((double)fastest->step_ns, a), planner,
                   weft_units_show_bytes(weft_sweep_x(sweep, fastest), b));
    if (sweep->split) weft_text_add(out, " for policies");
    if (!sweep->split && smallest->limit_bytes < fastest->limit_bytes)
        weft_text_addf(out, "; the least limit with a plan is %s, with a step of %s",
                       weft_units_show_bytes(smallest->limit_bytes, a),
                       show_ns((double)smallest->step_ns, b));
    weft_text_add(out, ".");
}

static double step_of(struct weft_report *report, int32_t i)
{
    const struct weft_source *record = &report->records[i];
    if (record->kind == WEFT_SOURCE_RUN) return weft_report_step_ns(report->page, record);
    return record->kind == WEFT_SOURCE_PLAN ? (double)record->plan->prediction.step_ns : NAN;
}

/* Compares the steps of several records. */
static void answer_several(struct weft_report *report, struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    int32_t fastest = -1, slowest = -1;
    double least = NAN, most = NAN;
    for (int32_t i = 0; i < report->n; i++) {
        const double ns = step_of(report, i);
        if (!isfinite(ns)) continue;
        if (fastest < 0 || ns < least) fastest = i, least = ns;
        if (slowest < 0 || ns > most) slowest = i, most = ns;
    }
    weft_text_addf(out, "%d inputs side by side", report->n);
    if (fastest >= 0)
        weft_text_addf(out, ": %s has the shortest step, %s", report->records[fastest].name,
                       show_ns(least, a));
    if (slowest >= 0 && slowest != fastest)
        weft_text_addf(out, "; %s has the longest, %s (%.2f times)", report->records[slowest].name,
                       show_ns(most, b), most / least);
    weft_text_add(out, ".");
}

static void add_tile(struct weft_page *page, const char *label, const char *value,
                     const char *before, const char *note)
{
    weft_page_tile(page, label, value, weft_page_format(page, "%s%s", before, note));
}

static void add_plan_tiles(struct weft_page *page, const struct weft_plan *plan)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    const struct weft_prediction *p = &plan->prediction;
    const int64_t limit = plan->problem->tiers[0].limit_bytes;
    const int64_t bytes = p->total_bytes > 0 ? p->total_bytes : p->peak_bytes;
    add_tile(page, "step", weft_units_show_ns(p->step_ns, a), "predicted, ",
             plan->problem->profile_source);
    add_tile(page, "exposed", weft_units_show_ns(p->exposed_ns, a), "of ",
             weft_page_format(page, "%s of communication", weft_units_show_ns(p->channel_ns, b)));
    add_tile(page, "memory a rank", weft_units_show_bytes(bytes, a),
             limit == INT64_MAX ? "no limit given" : "limit ",
             limit == INT64_MAX ? "" : weft_units_show_bytes(limit, b));
    if (plan->bound_ns > 0)
        weft_page_tile(
            page, "gap to the bound", weft_page_format(page, "%.2f %%", 100 * weft_plan_gap(plan)),
            weft_page_format(page, "no plan is below %s", weft_units_show_ns(plan->bound_ns, a)));
    weft_page_tile(page, "ranks", weft_page_format(page, "%lld", (long long)plan->problem->ranks),
                   weft_page_format(page, "%d units", weft_problem_n_units(plan->problem)));
}

/* Whether the plan counts memory outside the arena. */
static bool counts_base(const struct weft_plan *plan)
{
    for (int32_t i = 0; i < plan->problem->n_common; i++)
        if (plan->problem->common[i].category == WEFT_CATEGORY_BASE) return true;
    return false;
}

static void add_run_tiles(struct weft_page *page, const struct weft_source *record)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    const struct weft_record_metrics *metrics = &record->metrics;
    const struct weft_prediction *p = record->plan != NULL ? &record->plan->prediction : NULL;
    const double step_ns = weft_report_step_ns(page, record);
    const double exposed_ns =
        weft_report_median(page, record, offsetof(struct weft_record_step, exposed_ns));
    const double rate =
        weft_report_median(page, record, offsetof(struct weft_record_step, tokens_per_s));
    const double held =
        weft_report_median(page, record, offsetof(struct weft_record_step, held_bytes));
    if (isfinite(step_ns))
        add_tile(page, "median step", show_ns(step_ns, a), p != NULL ? "predicted " : "",
                 p != NULL ? weft_units_show_ns(p->step_ns, b) : "");
    if (isfinite(exposed_ns))
        add_tile(page, "exposed", show_ns(exposed_ns, a), p != NULL ? "predicted " : "",
                 p != NULL ? weft_units_show_ns(p->exposed_ns, b) : "");
    if (isfinite(rate))
        add_tile(page, "tokens/s", weft_answer_count(rate, a), "of all ranks",
                 metrics->is_emulated ? ", emulated link" : "");
    if (isfinite(held))
        weft_page_tile(page, "memory of rank 0", weft_units_show_bytes((int64_t)held, a),
                       p == NULL
                           ? ""
                           : weft_page_format(page, "planned %s%s",
                                              weft_units_show_bytes(p->total_bytes, b),
                                              counts_base(record->plan) ? "" : " without base"));
    if (metrics->n_steps > 0)
        weft_page_tile(page, "loss",
                       weft_page_format(page, "%.4f", metrics->steps[metrics->n_steps - 1].loss),
                       weft_page_format(page, "after step %lld",
                                        (long long)metrics->steps[metrics->n_steps - 1].step));
}

void weft_report_add_head(struct weft_report *report)
{
    struct weft_page *page = report->page;
    const struct weft_source *record = &report->records[0];
    struct weft_text answer;
    weft_text_init(&answer);
    page->title = report->n == 1
                      ? record->name
                      : weft_page_format(page, "%s and %d more", record->name, report->n - 1);
    page->subtitle = weft_page_format(page, "Weft report \u00b7 %s",
                                      report->n == 1 ? kind_names[record->kind] : "comparison");
    if (report->n > 1) {
        answer_several(report, &answer);
    } else if (record->kind == WEFT_SOURCE_RUN) {
        answer_run(page, record, &answer);
        add_run_tiles(page, record);
    } else if (record->kind == WEFT_SOURCE_PLAN) {
        answer_plan(record->plan, &answer);
        add_plan_tiles(page, record->plan);
    } else if (record->kind == WEFT_SOURCE_SWEEP) {
        answer_sweep(record->sweep, &answer);
    } else {
        weft_text_addf(&answer, "%s.", record->best->answer);
    }
    page->answer = weft_page_format(page, "%s", weft_text_chars(&answer));
    page->failed |= !weft_text_ok(&answer);
    weft_text_finish(&answer);
}
