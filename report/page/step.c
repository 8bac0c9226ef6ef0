/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report/html/stack.h"
#include "report/page/report.h"

/* A step as a timeline, and its memory. */

static void add_rows(const struct weft_spans *spans, int32_t lane, const char *source, bool light,
                     struct weft_timeline *timeline, struct weft_span_row *rows)
{
    if (spans == NULL || lane >= spans->n_lanes || spans->n[lane] == 0) return;
    rows[timeline->n_rows++] = (struct weft_span_row){spans->lanes[lane], source, light,
                                                      spans->n[lane], spans->spans[lane]};
}

static const struct weft_timeline *make_timeline(struct weft_report *report, int32_t i)
{
    const struct weft_spans *predicted = report->predicted[i], *measured = report->measured[i];
    int32_t n_lanes = predicted != NULL ? predicted->n_lanes : 0;
    if (measured != NULL && measured->n_lanes > n_lanes) n_lanes = measured->n_lanes;
    struct weft_timeline *timeline = weft_page_array(report->page, 1, sizeof *timeline);
    struct weft_span_row *rows = weft_page_array(report->page, 2 * (int64_t)n_lanes, sizeof *rows);
    if (timeline == NULL || rows == NULL) return NULL;
    *timeline = (struct weft_timeline){
        .label = "A step by lane, predicted above measured",
        .x_name = "time in the step",
        .end_ns = report->end_ns,
        .rows = rows,
    };
    for (int32_t lane = 0; lane < n_lanes; lane++) {
        add_rows(predicted, lane, "predicted", measured != NULL, timeline, rows);
        add_rows(measured, lane, "measured", false, timeline, rows);
    }
    return timeline;
}

/* "simulated", or the clock of the trace. */
static const char *name_sources(struct weft_report *report, int32_t i)
{
    const struct weft_source *record = &report->records[i];
    return weft_page_format(
        report->page, "%s%s%s%s", report->n > 1 ? record->name : "", report->n > 1 ? ": " : "",
        report->predicted[i] != NULL ? "predicted by the simulator" : "",
        record->trace == NULL
            ? ""
            : weft_page_format(report->page, "%smeasured by the %s",
                               report->predicted[i] != NULL ? ", " : "", record->trace->source));
}

void weft_report_add_timeline(struct weft_report *report)
{
    struct weft_page_section *section =
        weft_page_section(report->page, "step", "A step as a timeline");
    int32_t n = 0;
    for (int32_t i = 0; i < report->n; i++) {
        const struct weft_source *record = &report->records[i];
        if (report->predicted[i] == NULL && report->measured[i] == NULL) continue;
        if (n++ == 0)
            weft_section_say(section,
                             "One row a lane, all on one axis. Hatched: compute waits for "
                             "communication or for another tier, so this time is exposed.");
        if (record->kind == WEFT_SOURCE_RUN && report->measured[i] == NULL)
            weft_section_say(section, "No measured step%s: %s.", weft_report_of(report, i),
                             record->lacks_trace != NULL ? record->lacks_trace : "");
        weft_section_draw(section, weft_report_key(report, i, "timeline"), name_sources(report, i),
                          &weft_drawing_timeline, make_timeline(report, i));
    }
    if (n == 0)
        weft_section_miss(section, "%s",
                          report->records[0].lacks_plan != NULL ? report->records[0].lacks_plan
                                                                : "It needs a plan or a run.");
}

/* Hues of categories. Parameters, gradients and state have those of the work on them. */
static const enum weft_hue hues[WEFT_CATEGORY_COUNT] = {
    [WEFT_CATEGORY_SHARDED_PARAMETERS] = WEFT_HUE_BLUE,
    [WEFT_CATEGORY_GATHERED_PARAMETERS] = WEFT_HUE_ORANGE,
    [WEFT_CATEGORY_SHARDED_GRADIENTS] = WEFT_HUE_ROSE,
    [WEFT_CATEGORY_FULL_GRADIENTS] = WEFT_HUE_MAGENTA,
    [WEFT_CATEGORY_OPTIMIZER_STATE] = WEFT_HUE_GREEN,
    [WEFT_CATEGORY_ACTIVATIONS] = WEFT_HUE_PURPLE,
    [WEFT_CATEGORY_COMMUNICATION] = WEFT_HUE_TEAL,
    [WEFT_CATEGORY_TEMPORARY] = WEFT_HUE_AMBER,
    [WEFT_CATEGORY_STAGING] = WEFT_HUE_BROWN,
    [WEFT_CATEGORY_BASE] = WEFT_HUE_SLATE,
};
/* From the bottom: bytes that stay all step come first. */
static const enum weft_category order[] = {WEFT_CATEGORY_BASE,
                                           WEFT_CATEGORY_STAGING,
                                           WEFT_CATEGORY_OPTIMIZER_STATE,
                                           WEFT_CATEGORY_SHARDED_PARAMETERS,
                                           WEFT_CATEGORY_SHARDED_GRADIENTS,
                                           WEFT_CATEGORY_GATHERED_PARAMETERS,
                                           WEFT_CATEGORY_FULL_GRADIENTS,
                                           WEFT_CATEGORY_ACTIVATIONS,
                                           WEFT_CATEGORY_COMMUNICATION,
                                           WEFT_CATEGORY_TEMPORARY};
enum { N_ORDER = sizeof order / sizeof *order };

static int64_t sum_row(const int64_t *row)
{
    int64_t sum = 0;
    for (int32_t c = 0; c < WEFT_CATEGORY_OF_DEVICE; c++)
        sum += row[c];
    return sum;
}

/* Columns of slots. Slots that share a pixel are one column, the fullest of them. */
static void fill_columns(const struct weft_spans *spans, const int64_t *rows, double pixel_ns,
                         double *from_ns, double *values, struct weft_stack *stack)
{
    for (int32_t s = 0, next; s < spans->n_slots; s = next) {
        int32_t fullest = s;
        for (next = s + 1; next < spans->n_slots; next++) {
            if ((double)(spans->slot_ns[next] - spans->slot_ns[s]) >= pixel_ns) break;
            if (sum_row(rows + (int64_t)next * WEFT_CATEGORY_COUNT) >
                sum_row(rows + (int64_t)fullest * WEFT_CATEGORY_COUNT))
                fullest = next;
        }
        from_ns[stack->n_columns] = (double)spans->slot_ns[s];
        for (int32_t p = 0; p < stack->n_parts; p++) {
            int32_t part = p, k = 0;
            for (; k < N_ORDER; k++)
                if (stack->parts[p].name == weft_category_text(order[k])) break;
            values[(int64_t)stack->n_columns * stack->n_parts + part] =
                (double)rows[(int64_t)fullest * WEFT_CATEGORY_COUNT + (int64_t)order[k]];
        }
        stack->n_columns++;
    }
    from_ns[stack->n_columns] = spans->step_ns;
}

/* Categories that hold bytes in some slot. */
static int32_t list_parts(const int64_t *rows, int32_t n_slots, struct weft_stack_part *parts)
{
    int32_t n = 0;
    for (int32_t k = 0; k < N_ORDER; k++) {
        bool is_held = false;
        for (int32_t s = 0; s < n_slots && !is_held; s++)
            is_held = rows[(int64_t)s * WEFT_CATEGORY_COUNT + (int64_t)order[k]] > 0;
        if (is_held)
            parts[n++] = (struct weft_stack_part){weft_category_text(order[k]), hues[order[k]]};
    }
    return n;
}

static void add_level(struct weft_page *page, struct weft_stack *stack, struct weft_level *levels,
                      const char *name, int64_t bytes)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    levels[stack->n_levels++] = (struct weft_level){
        weft_page_format(page, "%s %s", name, weft_units_show_bytes(bytes, text)), (double)bytes};
}

static void add_levels(struct weft_page *page, const struct weft_source *record,
                       struct weft_stack *stack)
{
    struct weft_level *levels = weft_page_array(page, 3, sizeof *levels);
    const struct weft_prediction *p = &record->plan->prediction;
    const int64_t limit = record->plan->problem->tiers[0].limit_bytes;
    if (levels == NULL) return;
    if (limit != INT64_MAX) add_level(page, stack, levels, "limit", limit);
    add_level(page, stack, levels, "planned with pages",
              p->total_bytes > 0 ? p->total_bytes : p->peak_bytes);
    if (record->result != NULL) {
        const struct weft_json_value *root = weft_json_root(record->result);
        const double all = weft_record_number(root, "measured_bytes");
        const double outside = weft_record_number(root, "outside_measured_bytes");
        const bool counts = weft_record_number(root, "outside_planned_bytes") > 0;
        if (isfinite(all) && isfinite(outside))
            add_level(page, stack, levels, counts ? "measured" : "measured in the arena",
                      (int64_t)(counts ? all : all - outside));
    }
    stack->levels = levels;
}

/* The live bytes that the executor counted, at the measured times. */
static void add_measured(struct weft_page *page, const struct weft_record_trace *trace,
                         struct weft_stack *stack)
{
    if (trace == NULL || trace->n_lives == 0) return;
    double *values = weft_page_array(page, 2 * (int64_t)trace->n_lives, sizeof *values);
    if (values == NULL) return;
    for (int32_t i = 0; i < trace->n_lives; i++) {
        values[i] = (double)trace->lives[i].ns;
        values[trace->n_lives + i] = (double)trace->lives[i].bytes;
    }
    stack->line_name = "counted by the executor";
    stack->n_line = trace->n_lives;
    stack->line_ns = values;
    stack->line = values + trace->n_lives;
}

static const struct weft_stack *make_stack(struct weft_report *report, int32_t i)
{
    struct weft_page *page = report->page;
    const struct weft_source *record = &report->records[i];
    const struct weft_spans *spans = report->predicted[i];
    const double width = WEFT_TIMELINE_WIDTH - WEFT_TIMELINE_LEFT - WEFT_TIMELINE_RIGHT;
    struct weft_stack *stack = weft_page_array(page, 1, sizeof *stack);
    struct weft_stack_part *parts = weft_page_array(page, N_ORDER, sizeof *parts);
    int64_t *rows =
        weft_page_array(page, (int64_t)spans->n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    double *from_ns = weft_page_array(page, (int64_t)spans->n_slots + 1, sizeof *from_ns);
    double *values = weft_page_array(page, (int64_t)spans->n_slots * N_ORDER, sizeof *values);
    if (!stack || !parts || !rows || !from_ns || !values) return NULL;
    weft_plan_rows(record->plan, 0, rows);
    *stack = (struct weft_stack){.label = "Memory of a rank over the step, by category",
                                 .end_ns = report->end_ns,
                                 .measure = WEFT_MEASURE_BYTES,
                                 .y_name = "memory of a rank",
                                 .parts = parts,
                                 .n_parts = list_parts(rows, spans->n_slots, parts),
                                 .from_ns = from_ns,
                                 .values = values};
    fill_columns(spans, rows, report->end_ns / width, from_ns, values, stack);
    add_levels(page, record, stack);
    add_measured(page, record->trace, stack);
    return stack;
}

/* Bytes that a run measured in a tier; NAN: none. */
static double measured_bytes(const struct weft_source *record, enum weft_location tier)
{
    if (record->result == NULL) return NAN;
    const struct weft_json_value *root = weft_json_root(record->result);
    if (tier == WEFT_LOCATION_DEVICE) return weft_record_number(root, "measured_bytes");
    return weft_record_number(root, tier == WEFT_LOCATION_HOST ? "host_measured_bytes"
                                                               : "disk_measured_bytes");
}

/* A row for each tier of a rank, if there are several. */
static void add_tiers(struct weft_report *report, int32_t i, struct weft_answer *body)
{
    enum { TIER, LIMIT, PLANNED, MEASURED, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [TIER] = {"tier", "tier", 'l', WEFT_FIGURE_WORD, 0},
        [LIMIT] = {"limit_bytes", "limit", 'r', WEFT_FIGURE_BYTES, 0},
        [PLANNED] = {"planned_bytes", "planned", 'r', WEFT_FIGURE_BYTES, 0},
        [MEASURED] = {"measured_bytes", "measured", 'r', WEFT_FIGURE_BYTES, 0}};
    const struct weft_source *record = &report->records[i];
    const struct weft_plan *plan = record->plan;
    const struct weft_prediction *p = &plan->prediction;
    if (plan->problem->n_tiers < 2) return;
    struct weft_rows *rows =
        weft_answer_table(body, weft_report_key(report, i, "tiers"), columns, N_COLUMNS);
    weft_rows_title(rows, "Memory of a rank by tier%s", weft_report_of(report, i));
    if (record->result == NULL) weft_rows_head(rows, MEASURED, NULL);
    for (int32_t t = 0; t < plan->problem->n_tiers; t++) {
        const struct weft_problem_tier *tier = &plan->problem->tiers[t];
        const double measured = measured_bytes(record, tier->kind);
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, TIER, tier->name);
        if (tier->limit_bytes != INT64_MAX) weft_rows_integer(rows, LIMIT, tier->limit_bytes);
        weft_rows_integer(rows, PLANNED,
                          t == 0 && p->total_bytes > 0 ? p->total_bytes
                                                       : weft_plan_peak(plan, t, NULL));
        if (measured >= 0 && measured < 9e15) weft_rows_integer(rows, MEASURED, (int64_t)measured);
    }
}

void weft_report_add_memory(struct weft_report *report)
{
    struct weft_page_section *section =
        weft_page_section(report->page, "memory", "Memory over the step");
    int32_t n = 0;
    for (int32_t i = 0; i < report->n; i++) {
        char text[WEFT_UNITS_TEXT_BYTES];
        if (report->predicted[i] == NULL) continue;
        const struct weft_plan *plan = report->records[i].plan;
        weft_section_say(section, "The fullest slot%s is %s with %s, as planned.",
                         weft_report_of(report, i),
                         plan->problem->slot_names[plan->prediction.peak_slot],
                         weft_units_show_bytes(plan->prediction.peak_bytes, text));
        weft_section_draw(section, weft_report_key(report, i, "memory"),
                          report->n > 1 ? report->records[i].name : NULL, &weft_drawing_stack,
                          make_stack(report, i));
        add_tiers(report, i, &section->body);
        n++;
    }
    if (n == 0) weft_section_miss(section, "It needs a plan, or a run with its plan.");
}
