/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/html/chart.h"
#include "report/html/strip.h"
#include "report/html/timeline.h"
#include "report/page/report.h"
#include "report/plan_report.h"

/* Strategies of units and layers. */

/* A choice for each kind of strategy of the problem, in the order of its first use. After all hues
 * the choices begin again, in cells of half the height. */
static struct weft_strip_choice *list_choices(struct weft_page *page, const struct weft_plan *plan,
                                              int32_t begin, int32_t end)
{
    static const enum weft_hue hues[] = {WEFT_HUE_BLUE,  WEFT_HUE_ORANGE,  WEFT_HUE_GREEN,
                                         WEFT_HUE_ROSE,  WEFT_HUE_PURPLE,  WEFT_HUE_TEAL,
                                         WEFT_HUE_AMBER, WEFT_HUE_MAGENTA, WEFT_HUE_BROWN};
    struct weft_strip_choice *choices =
        weft_page_array(page, plan->problem->n_kinds, sizeof *choices);
    const int32_t n_hues = sizeof hues / sizeof *hues;
    int32_t n = 0;
    for (int32_t d = begin; choices != NULL && d < end; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(plan, d);
        if (choices[chosen->kind].name != NULL) continue;
        choices[chosen->kind] =
            (struct weft_strip_choice){chosen->name, hues[n % n_hues], n / n_hues % 2 > 0};
        n++;
    }
    return choices;
}

static const char *name_member(const struct weft_problem_decision *decision)
{
    const size_t prefix = strlen(WEFT_SAVED_PREFIX);
    const bool is_saved = strncmp(decision->name, WEFT_SAVED_PREFIX, prefix) == 0;
    return decision->name + (is_saved ? prefix : 0);
}

/* The strip of decisions [begin, end). */
static const struct weft_strip *make_strip(struct weft_page *page, const struct weft_plan *plan,
                                           int32_t begin, int32_t end, const char *name)
{
    const int32_t n = end - begin;
    struct weft_strip *strip = weft_page_array(page, 1, sizeof *strip);
    struct weft_strip_row *row = weft_page_array(page, 1, sizeof *row);
    const char **members = weft_page_array(page, n, sizeof *members);
    struct weft_strip_choice *choices = list_choices(page, plan, begin, end);
    if (!strip || !row || !members || !choices) return NULL;
    row->name = name;
    row->choices = weft_page_array(page, n, sizeof *row->choices);
    if (row->choices == NULL) return NULL;
    for (int32_t i = 0; i < n; i++) {
        members[i] = name_member(&plan->problem->decisions[begin + i]);
        row->choices[i] = &choices[weft_plan_chosen(plan, begin + i)->kind];
    }
    *strip = (struct weft_strip){
        .label = name, .n_members = n, .n_rows = 1, .members = members, .rows = row};
    return strip;
}

enum { STRATEGY, MEMBERS, ELEMENTS, SHARE, N_COLUMNS };

/* A row for each strategy of decisions [begin, end), with its number of members. */
static void add_table(const struct weft_plan *plan, int32_t begin, int32_t end, const char *key,
                      const char *of, struct weft_answer *body)
{
    const bool is_of_layers = plan->problem->decisions[begin].is_of_layer;
    const struct weft_column columns[] = {
        [STRATEGY] = {"strategy", of, 'l', WEFT_FIGURE_WORD, 0},
        [MEMBERS] = {"members", is_of_layers ? "layers" : "units", 'r', WEFT_FIGURE_INTEGER, 0},
        [ELEMENTS] = {"elements", is_of_layers ? NULL : "parameters", 'r', WEFT_FIGURE_SHORT, 0},
        [SHARE] = {"share", is_of_layers ? NULL : "share", 'r', WEFT_FIGURE_PERCENT, 0}};
    double all = 0;
    for (int32_t d = begin; d < end; d++)
        all += (double)plan->problem->decisions[d].elements;
    struct weft_rows *rows = weft_answer_table(body, key, columns, N_COLUMNS);
    for (int32_t k = 0; k < plan->problem->n_kinds; k++) {
        const char *name = NULL;
        int64_t n = 0;
        double elements = 0;
        for (int32_t d = begin; d < end; d++) {
            if (weft_plan_chosen(plan, d)->kind != k) continue;
            name = weft_plan_chosen(plan, d)->name;
            elements += (double)plan->problem->decisions[d].elements;
            n++;
        }
        if (name == NULL) continue;
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, STRATEGY, name);
        weft_rows_integer(rows, MEMBERS, n);
        if (is_of_layers) continue;
        weft_rows_real(rows, ELEMENTS, elements);
        if (all > 0) weft_rows_real(rows, SHARE, elements / all);
    }
}

/* Blocks of a step by unit, over the numbers of the units. */
static const struct weft_chart *make_blocks(struct weft_page *page, const struct weft_plan *plan,
                                            int32_t n_units)
{
    enum { HEIGHT = 170 };
    struct weft_chart *chart = weft_page_array(page, 1, sizeof *chart);
    struct weft_series *series = weft_page_array(page, 1, sizeof *series);
    double *x = weft_page_array(page, n_units + 1, sizeof *x);
    double *y = weft_page_array(page, n_units + 1, sizeof *y);
    if (!chart || !series || !x || !y) return NULL;
    for (int32_t u = 0; u < n_units; u++)
        x[u] = u;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const int32_t d = plan->problem->items[plan->placements[i].item].item.decision;
        if (d < n_units) y[d]++;
    }
    x[n_units] = n_units;
    y[n_units] = y[n_units - 1];
    *series = (struct weft_series){.name = "blocks",
                                   .hue = WEFT_HUE_TEAL,
                                   .style = WEFT_SERIES_STAIRS,
                                   .n = n_units + 1,
                                   .x = x,
                                   .y = y};
    *chart = (struct weft_chart){.label = "Blocks of a step by unit",
                                 .x_name = "unit, in order of the model",
                                 .y_name = "blocks a step",
                                 .x = WEFT_MEASURE_COUNT,
                                 .y = WEFT_MEASURE_COUNT,
                                 .width = WEFT_TIMELINE_WIDTH,
                                 .height = HEIGHT,
                                 .left = WEFT_TIMELINE_LEFT,
                                 .from_zero = true,
                                 .n_series = 1,
                                 .series = series};
    return chart;
}

/* All names and strategies, as `weft plan` prints them. */
static void fold_names(struct weft_page_section *section, const struct weft_plan *plan)
{
    struct weft_text list;
    weft_text_init(&list);
    weft_report_policies(plan, &list);
    weft_section_fold(section, "Units by name", weft_text_chars(&list));
    section->page->failed |= !weft_text_ok(&list);
    weft_text_finish(&list);
}

void weft_report_add_choices(struct weft_report *report)
{
    struct weft_page *page = report->page;
    struct weft_page_section *section =
        weft_page_section(page, "choices", "Strategies, blocks and recomputation");
    int32_t n = 0;
    for (int32_t i = 0; section != NULL && i < report->n; i++) {
        char bytes[WEFT_UNITS_TEXT_BYTES];
        const struct weft_plan *plan = report->records[i].plan;
        if (plan == NULL) continue;
        const int32_t n_units = weft_problem_n_units(plan->problem);
        const int32_t n_all = plan->problem->n_decisions;
        const char *of = weft_report_of(report, i);
        weft_section_say(section, "%d units%s move in %d blocks a step, cut at %s.", n_units, of,
                         plan->n_placements,
                         plan->problem->blocks.least_bytes > 0
                             ? weft_units_show_bytes(plan->problem->blocks.least_bytes, bytes)
                             : "sizes of the config");
        weft_section_draw(section, weft_report_key(report, i, "units"),
                          weft_page_format(page, "Policy and location by unit%s", of),
                          &weft_drawing_strip, make_strip(page, plan, 0, n_units, "units"));
        if (plan->n_placements > 0)
            weft_section_draw(section, weft_report_key(report, i, "blocks"),
                              weft_page_format(page, "Blocks by unit%s", of), &weft_drawing_chart,
                              make_blocks(page, plan, n_units));
        add_table(plan, 0, n_units, weft_report_key(report, i, "unit_strategies"),
                  weft_page_format(page, "strategy of units%s", of), &section->body);
        if (n_all > n_units) {
            weft_section_draw(
                section, weft_report_key(report, i, "layers"),
                weft_page_format(page, "Saved activations and recomputation by layer%s", of),
                &weft_drawing_strip, make_strip(page, plan, n_units, n_all, "layers"));
            add_table(plan, n_units, n_all, weft_report_key(report, i, "layer_strategies"),
                      weft_page_format(page, "saved activations of layers%s", of), &section->body);
        }
        fold_names(section, plan);
        n++;
    }
    if (n == 0) weft_section_miss(section, "It needs a plan, or a run with its plan.");
}
