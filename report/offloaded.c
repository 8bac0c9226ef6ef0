/* SPDX-License-Identifier: Apache-2.0 */
#include "report/offloaded.h"

#include "base/units.h"
#include "problem/names.h"

/* Time of a lane in a step. */
struct busy {
    const char *name;
    int64_t ns;
};

/* Fills busy [WEFT_MOST_LANES], busiest first. Returns the number of lanes. */
static int32_t list_busy(const struct weft_plan *plan, struct busy *busy)
{
    const struct weft_problem *problem = plan->problem;
    int64_t ns[WEFT_MOST_LANES] = {0};
    ns[0] = plan->prediction.compute_ns;
    ns[weft_problem_agree_lane(problem)] += weft_problem_agreements_ns(problem);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_problem_item *item = &problem->items[plan->placements[i].item];
        ns[item->lane] += item->block_ns;
    }
    for (int32_t lane = 0; lane < problem->n_lanes; lane++) {
        int32_t at = lane;
        for (; at > 0 && busy[at - 1].ns < ns[lane]; at--)
            busy[at] = busy[at - 1];
        busy[at] = (struct busy){problem->lanes[lane].name, ns[lane]};
    }
    return problem->n_lanes;
}

void weft_report_lanes(const struct weft_plan *plan, struct weft_answer *out)
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    struct busy busy[WEFT_MOST_LANES];
    if (!weft_problem_moves(plan->problem)) return;
    const int32_t n = list_busy(plan, busy);
    weft_answer_open(out, "lanes");
    for (int32_t i = 0; i < n; i++) {
        weft_answer_integer(out, busy[i].name, busy[i].ns);
        weft_answer_say(out, NULL, "%s%s %s", i == 0 ? "lanes     " : ", ", busy[i].name,
                        weft_units_show_ns(busy[i].ns, shown));
    }
    weft_answer_close(out);
    weft_answer_integer(out, "bandwidth_bound_ns", busy[0].ns);
    weft_answer_say(out, NULL,
                    " of work a step: %s binds, and no step of these strategies is below %s\n",
                    busy[0].name, weft_units_show_ns(busy[0].ns, shown));
}

static int64_t written_bytes(const struct weft_plan *plan)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_item *item = &plan->problem->items[plan->placements[i].item].item;
        if (item->kind == WEFT_STATE_WRITE) bytes += item->block_bytes;
    }
    return bytes;
}

void weft_report_wear(const struct weft_plan *plan, int64_t endurance_bytes,
                      struct weft_answer *out)
{
    const double day_ns = 86400e9, ranks = (double)plan->problem->ranks;
    const double a_step = ranks * (double)written_bytes(plan);
    if (a_step <= 0 || plan->prediction.step_ns <= 0) return;
    weft_answer_say(out, NULL, "wear      %.3g TB are written to the disk a day, by all ranks",
                    a_step * (day_ns / (double)plan->prediction.step_ns) / 1e12);
    if (endurance_bytes > 0)
        weft_answer_say(out, NULL, "; its endurance of %.4g TB is spent in %.0f steps",
                        (double)endurance_bytes / 1e12, (double)endurance_bytes / a_step);
    weft_answer_say(out, NULL, "\n");
}

/* Offloaded bytes of a decision, and the time of moving them. */
struct offloaded {
    int64_t bytes, ns;
};

/* Bytes of a unit's state on the device, all the time, if it is not offloaded; -1: it must be. */
static int64_t state_that_stays(const struct weft_problem *problem, int32_t decision,
                                enum weft_policy policy)
{
    const struct weft_problem_decision *of = &problem->decisions[decision];
    const int32_t k = weft_decision_of_policy(of, policy);
    int64_t bytes = 0;
    if (k < 0 || of->strategies[k].location != WEFT_LOCATION_DEVICE) return -1;
    for (int32_t h = 0; h < of->strategies[k].n_holds; h++)
        if (of->strategies[k].holds[h].category == WEFT_CATEGORY_OPTIMIZER_STATE)
            bytes += of->strategies[k].holds[h].bytes;
    return bytes;
}

/* Parts of a decision that may be offloaded. */
enum part { STATE_OR_SAVED, SHARD, INPUT, N_PARTS };

static enum part part_of(const struct weft_item *item)
{
    if (weft_item_kind_is_of_input(item->kind)) return INPUT;
    return weft_item_kind_of(item)->family == WEFT_ITEM_PARAMETERS ? SHARD : STATE_OR_SAVED;
}

static enum weft_location location_of(const struct weft_problem_strategy *of, enum part part)
{
    return part == INPUT ? of->input : part == SHARD ? of->parameters : of->location;
}

/* Offloaded state is on the device only during its update, or never if the host updates it. The
 * other parts count as they go down. */
static struct offloaded offloaded_of(const struct weft_plan *plan, int32_t decision, enum part part)
{
    const struct weft_problem *problem = plan->problem;
    const struct weft_problem_strategy *of = weft_plan_chosen(plan, decision);
    const bool state = part == STATE_OR_SAVED;
    struct offloaded offloaded = {0};
    if (of->updates_on_host && state)
        offloaded.bytes = state_that_stays(problem, decision, of->policy);
    for (int32_t h = 0; h < of->n_holds && state; h++)
        if (of->holds[h].tier == 0 && of->holds[h].category == WEFT_CATEGORY_OPTIMIZER_STATE)
            offloaded.bytes += of->holds[h].bytes;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->decision != decision || weft_item_is_collective(item) ||
            weft_item_averages(item) || item->kind == WEFT_HOST_UPDATE ||
            !weft_problem_needs(problem, plan->strategies, i) || part_of(item) != part)
            continue;
        offloaded.ns += item->n_blocks * problem->items[i].block_ns;
        if (item->kind == WEFT_SAVED_DOWN || item->kind == WEFT_INPUT_DOWN ||
            item->kind == WEFT_PARAMETERS_DOWN)
            offloaded.bytes += item->n_blocks * item->block_bytes;
    }
    return offloaded;
}

void weft_explain_offloaded(const struct weft_plan *plan, int32_t most_rows,
                            struct weft_answer *out)
{
    enum { NAME, TO, FREES, MOVED, RATE, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [NAME] = {NULL, "offloaded", 'l', WEFT_FIGURE_WORD, 0},
        [TO] = {NULL, "to", 'l', WEFT_FIGURE_WORD, 0},
        [FREES] = {NULL, "frees", 'r', WEFT_FIGURE_BYTES, 0},
        [MOVED] = {NULL, "moved in", 'r', WEFT_FIGURE_NS, 0},
        [RATE] = {NULL, "a ms", 'r', WEFT_FIGURE_BYTES, 0}};
    struct weft_rows *rows = weft_answer_table(out, NULL, columns, N_COLUMNS);
    char name[WEFT_NAMES_BYTES];
    int32_t n = 0;
    weft_rows_title(rows,
                    "offloaded: the device's memory that it frees, and the time of its moves");
    for (int32_t row = 0; row < N_PARTS * plan->problem->n_decisions; row++) {
        const int32_t d = row / N_PARTS;
        const enum part part = (enum part)(row % N_PARTS);
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, d);
        const enum weft_location location = location_of(of, part);
        if (location == WEFT_LOCATION_DEVICE || n++ >= most_rows) continue;
        const struct offloaded offloaded = offloaded_of(plan, d, part);
        const double a_ms =
            offloaded.ns > 0 ? 1e6 * (double)offloaded.bytes / (double)offloaded.ns : 0;
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, NAME, weft_problem_show_name(plan->problem, d, name));
        weft_rows_show(rows, TO, WEFT_PAINT_NONE, "%s%s", weft_location_names[location],
                       part == SHARD         ? ", parameters"
                       : part == INPUT       ? ", input"
                       : of->updates_on_host ? ", updated on the host"
                                             : "");
        weft_rows_integer(rows, MOVED, offloaded.ns);
        if (offloaded.bytes < 0) continue;
        weft_rows_integer(rows, FREES, offloaded.bytes);
        weft_rows_integer(rows, RATE, (int64_t)a_ms);
    }
    weft_rows_more(rows, n - most_rows);
    if (n > 0) weft_answer_say(out, NULL, "\n");
}
