/* SPDX-License-Identifier: Apache-2.0 */
#include "report/explain_other.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"

enum { CHOICE_BYTES = 64 };

static const struct {
    const char *member, *title, *own;
} kinds[WEFT_OTHER_KINDS] = {
    [WEFT_OTHER_ORDER] = {"other_order", "the other order of micro-steps", "order"},
    [WEFT_OTHER_UPDATES] = {"other_updates", "the other place of updates", "place"},
};

/* "by layer", "by 4 layers", "one after the other"; "in forward", "in backward", "in backward, 2
 * layers after a unit's own". */
static const char *show_choice(const struct weft_other_choice *other, char out[CHOICE_BYTES])
{
    const int32_t layers = other->layers;
    if (other->kind == WEFT_OTHER_ORDER && layers > 1)
        snprintf(out, CHOICE_BYTES, "by %d layers", layers);
    else if (other->kind == WEFT_OTHER_ORDER)
        snprintf(out, CHOICE_BYTES, "%s", layers == 1 ? "by layer" : "one after the other");
    else if (layers > 0 && other->plan != NULL)
        snprintf(out, CHOICE_BYTES, "in backward, %d layer%s after a unit's own", layers,
                 layers == 1 ? "" : "s");
    else
        snprintf(out, CHOICE_BYTES, "%s", layers > 0 ? "in backward" : "in forward");
    return out;
}

/* The device row of a plan's fullest slot. */
struct full_row {
    int32_t slot;
    int64_t bytes[WEFT_CATEGORY_OF_DEVICE];
    int32_t n_micro; /* micro-steps with activations there */
};

static bool find_row(const struct weft_plan *plan, struct full_row *out)
{
    int64_t *rows = calloc((size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    *out = (struct full_row){0};
    if (rows == NULL) return false;
    weft_plan_rows(plan, 0, rows);
    (void)weft_plan_peak(plan, 0, &out->slot);
    for (int i = 0; i < WEFT_CATEGORY_OF_DEVICE; i++)
        out->bytes[i] = rows[(size_t)out->slot * WEFT_CATEGORY_COUNT + (size_t)i];
    free(rows);
    return true;
}

/* Marks the micro-step of each hold of activations in a slot. */
static void mark_micro(const struct weft_problem *problem, const struct weft_hold *holds, int32_t n,
                       int32_t slot, bool *marks)
{
    for (int32_t i = 0; i < n; i++) {
        const bool after = holds[i].first <= slot, before = slot <= holds[i].last;
        const bool held = holds[i].first <= holds[i].last ? after && before : after || before;
        const struct weft_slot *first = &problem->slots[holds[i].first];
        const bool is_compute =
            first->kind == WEFT_SLOT_FORWARD || first->kind == WEFT_SLOT_BACKWARD;
        if (held && is_compute && holds[i].tier == 0 &&
            holds[i].category == WEFT_CATEGORY_ACTIVATIONS && holds[i].bytes > 0)
            marks[first->micro] = true;
    }
}

/* Counts the micro-steps with activations in the slot. False if memory is short. */
static bool count_micro(const struct weft_plan *plan, struct full_row *row)
{
    const struct weft_problem *problem = plan->problem;
    bool *marks = calloc((size_t)problem->period.n_micro, sizeof *marks);
    if (marks == NULL) return false;
    mark_micro(problem, problem->common, problem->n_common, row->slot, marks);
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(plan, d);
        mark_micro(problem, chosen->holds, chosen->n_holds, row->slot, marks);
    }
    for (int32_t m = 0; m < problem->period.n_micro; m++)
        row->n_micro += marks[m];
    free(marks);
    return true;
}

/* The category with the largest difference of both rows. */
static enum weft_category differs_most(const struct full_row *a, const struct full_row *b)
{
    int most = 0;
    for (int i = 1; i < WEFT_CATEGORY_OF_DEVICE; i++)
        if (llabs(a->bytes[i] - b->bytes[i]) > llabs(a->bytes[most] - b->bytes[most])) most = i;
    return (enum weft_category)most;
}

/* The busiest lane but compute in a plan's step, and the most gathers of one unit. */
struct lane_use {
    int32_t lane;
    int64_t ns;
    int32_t n_gathers;
};

static int32_t count_gathers(const struct weft_plan *plan)
{
    const struct weft_problem *problem = plan->problem;
    int32_t most = 0, n = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (i == 0 || item->decision != problem->items[i - 1].item.decision) n = 0;
        n += item->acquires && weft_item_is_collective(item) &&
             weft_problem_needs(problem, plan->strategies, i);
        if (n > most) most = n;
    }
    return most;
}

static int64_t lane_ns(const struct weft_plan *plan, int32_t lane)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_problem_item *item = &plan->problem->items[plan->placements[i].item];
        if (item->lane == lane) ns += item->block_ns;
    }
    return ns;
}

static struct lane_use busiest_lane(const struct weft_plan *plan)
{
    struct lane_use use = {.lane = WEFT_LANE_FIRST, .n_gathers = count_gathers(plan)};
    for (int32_t lane = WEFT_LANE_FIRST; lane < plan->problem->n_lanes; lane++) {
        const int64_t ns = lane_ns(plan, lane);
        if (ns > use.ns) use.lane = lane, use.ns = ns;
    }
    return use;
}

static double share_of(int64_t ns, const struct weft_plan *plan)
{
    const int64_t step_ns = plan->prediction.step_ns;
    return step_ns > 0 ? (double)ns / (double)step_ns : 0;
}

static void add_exposed(const struct weft_plan *plan, const struct weft_plan *other,
                        struct weft_answer *out)
{
    char shown[WEFT_UNITS_TEXT_BYTES], before[WEFT_UNITS_TEXT_BYTES];
    const int64_t ns = other->prediction.exposed_ns, own_ns = plan->prediction.exposed_ns;
    weft_answer_integer(out, "exposed_ns", ns);
    weft_answer_integer(out, "own_exposed_ns", own_ns);
    weft_answer_say(out, NULL, "  compute waits %s of a step, in place of %s\n",
                    weft_units_show_ns(ns, shown), weft_units_show_ns(own_ns, before));
}

/* Tells the lane that is busiest in the slower of both plans, and its work in the other one. */
static void add_lane(const struct weft_plan *plan, const struct weft_plan *other,
                     struct weft_answer *out)
{
    const struct lane_use own = busiest_lane(plan), its = busiest_lane(other);
    const bool slower = other->prediction.step_ns > plan->prediction.step_ns;
    const int32_t lane = slower ? its.lane : own.lane;
    const int64_t own_ns = lane_ns(plan, lane), ns = lane_ns(other, lane);
    char shown[WEFT_UNITS_TEXT_BYTES], before[WEFT_UNITS_TEXT_BYTES];
    weft_answer_open(out, "lane");
    weft_answer_word(out, "name", plan->problem->lanes[lane].name);
    weft_answer_integer(out, "busy_ns", ns);
    weft_answer_real(out, "share", share_of(ns, other));
    weft_answer_integer(out, "gathers", its.n_gathers);
    weft_answer_integer(out, "own_busy_ns", own_ns);
    weft_answer_real(out, "own_share", share_of(own_ns, plan));
    weft_answer_integer(out, "own_gathers", own.n_gathers);
    weft_answer_close(out);
    add_exposed(plan, other, out);
    weft_answer_say(
        out, NULL, "  lane %s is busy %s (%.0f %% of the step), in place of %s (%.0f %%)",
        plan->problem->lanes[lane].name, weft_units_show_ns(ns, shown), 100 * share_of(ns, other),
        weft_units_show_ns(own_ns, before), 100 * share_of(own_ns, plan));
    if (its.n_gathers != own.n_gathers)
        weft_answer_say(out, NULL, "; a unit is gathered at most %d time%s a step, in place of %d",
                        its.n_gathers, its.n_gathers == 1 ? "" : "s", own.n_gathers);
    weft_answer_say(out, NULL, "\n");
}

/* Tells the fullest row, and the category that grew most. False if memory is short. */
static bool add_row(const struct weft_plan *plan, const struct weft_plan *other,
                    struct weft_answer *out)
{
    struct full_row own, its;
    char bytes[WEFT_UNITS_TEXT_BYTES], before[WEFT_UNITS_TEXT_BYTES];
    if (!find_row(plan, &own) || !find_row(other, &its) || !count_micro(plan, &own) ||
        !count_micro(other, &its))
        return false;
    const enum weft_category most = differs_most(&its, &own);
    const bool counts = most == WEFT_CATEGORY_ACTIVATIONS;
    weft_answer_open(out, "row");
    weft_answer_word(out, "slot", other->problem->slot_names[its.slot]);
    weft_answer_word(out, "category", weft_category_key(most));
    weft_answer_integer(out, "bytes", its.bytes[most]);
    weft_answer_word(out, "own_slot", plan->problem->slot_names[own.slot]);
    weft_answer_integer(out, "own_bytes", own.bytes[most]);
    weft_answer_integer(out, "micro_steps", its.n_micro);
    weft_answer_integer(out, "own_micro_steps", own.n_micro);
    weft_answer_close(out);
    weft_answer_say(out, NULL, "  its fullest slot %s holds %s of %s",
                    other->problem->slot_names[its.slot],
                    weft_units_show_bytes(its.bytes[most], bytes), weft_category_text(most));
    if (counts)
        weft_answer_say(out, NULL, " of %d micro-step%s", its.n_micro, its.n_micro == 1 ? "" : "s");
    weft_answer_say(out, NULL, "; the plan's, %s, holds %s", plan->problem->slot_names[own.slot],
                    weft_units_show_bytes(own.bytes[most], before));
    if (counts) weft_answer_say(out, NULL, " of %d", own.n_micro);
    weft_answer_say(out, NULL, "\n");
    return true;
}

/* "2.50 times as fast", "12.0 % slower", "as fast". */
static void say_comparison(int64_t step_ns, int64_t own_ns, struct weft_answer *out)
{
    static const double alike = 0.0005, times = 1.5;
    const bool slower = step_ns > own_ns;
    const double ratio =
        slower ? (double)step_ns / (double)own_ns : (double)own_ns / (double)step_ns;
    if (ratio - 1 < alike)
        weft_answer_say(out, NULL, "as fast");
    else if (ratio >= times)
        weft_answer_say(out, NULL, "%.2f times %s", ratio, slower ? "slower" : "faster");
    else
        weft_answer_say(out, NULL, "%.1f %% %s", 100 * (ratio - 1), slower ? "slower" : "faster");
}

static void say_need(const struct weft_plan *plan, const struct weft_other_choice *other,
                     struct weft_answer *out)
{
    char least[WEFT_UNITS_TEXT_BYTES], more[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    const int64_t limit_bytes = plan->problem->tiers[0].limit_bytes;
    const int64_t more_bytes = other->least_bytes - other->own_least_bytes;
    if (other->least_bytes == INT64_MAX) {
        weft_answer_say(out, NULL, "  no plan of it fits the limits of other tiers\n");
        return;
    }
    if (!other->fits)
        weft_answer_say(out, NULL, "  no plan of it fits %s: it needs %s more\n",
                        weft_units_show_bytes(limit_bytes, limit),
                        weft_units_show_bytes(other->least_bytes - limit_bytes, more));
    weft_answer_say(out, NULL, "  its least limit is %s without pages, ",
                    weft_units_show_bytes(other->least_bytes, least));
    if (more_bytes == 0)
        weft_answer_say(out, NULL, "as that of the plan's %s\n", kinds[other->kind].own);
    else
        weft_answer_say(out, NULL, "%s %s than that of the plan's %s\n",
                        weft_units_show_bytes(llabs(more_bytes), more),
                        more_bytes < 0 ? "less" : "more", kinds[other->kind].own);
}

static void say_step(const struct weft_plan *plan, const struct weft_other_choice *other,
                     struct weft_answer *out)
{
    char step[WEFT_UNITS_TEXT_BYTES], bound[WEFT_UNITS_TEXT_BYTES];
    if (other->plan == NULL) {
        weft_answer_say(out, NULL, "  no plan of it was found within --work-limit");
    } else {
        weft_answer_say(out, NULL, "  a step takes %s%s without pages, ",
                        weft_units_show_ns(other->plan->prediction.step_ns, step),
                        other->fits ? "" : " within its least limit");
        say_comparison(other->plan->prediction.step_ns, plan->prediction.step_ns, out);
    }
    /* Periods of the other order have both cadences. */
    const bool keeps = other->kind == WEFT_OTHER_UPDATES && plan->problem->period.n_micro > 1;
    if (other->fits && other->bound_ns > 0)
        weft_answer_say(out, NULL, "; no plan of it%s is faster than %s",
                        keeps ? " in the plan's cadence" : "",
                        weft_units_show_ns(other->bound_ns, bound));
    weft_answer_say(out, NULL, "\n");
}

static void put_facts(const struct weft_other_choice *other, struct weft_answer *out)
{
    const bool is_order = other->kind == WEFT_OTHER_ORDER;
    if (is_order)
        weft_answer_word(out, "order", other->layers > 0 ? "layer" : "step");
    else
        weft_answer_word(out, "update_in", other->layers > 0 ? "backward" : "forward");
    if (other->layers > 0 && (is_order || other->plan != NULL))
        weft_answer_integer(out, "layers", other->layers);
    weft_answer_word(out, "refused", other->refused);
    if (other->refused != NULL) return;
    if (other->price != NULL) weft_answer_word(out, "price", other->price);
    weft_answer_bool(out, "fits", other->fits);
    if (other->least_bytes < INT64_MAX) weft_answer_integer(out, "least_bytes", other->least_bytes);
    weft_answer_integer(out, "own_least_bytes", other->own_least_bytes);
    if (other->fits && other->bound_ns > 0) weft_answer_integer(out, "bound_ns", other->bound_ns);
    if (other->plan != NULL) weft_answer_integer(out, "step_ns", other->plan->prediction.step_ns);
}

void weft_explain_other(const struct weft_plan *plan, enum weft_other_kind kind,
                        const struct weft_other_choice *other, struct weft_answer *out)
{
    char choice[CHOICE_BYTES];
    if (other == NULL) {
        weft_answer_word(out, kinds[kind].member, NULL);
        return;
    }
    weft_answer_open(out, kinds[kind].member);
    put_facts(other, out);
    weft_answer_say(out, NULL, "%s: %s\n", kinds[kind].title, show_choice(other, choice));
    if (other->refused != NULL) {
        weft_answer_say(out, NULL, "  not possible here: %s\n", other->refused);
    } else {
        say_step(plan, other, out);
        say_need(plan, other, out);
        if (other->plan != NULL) {
            add_lane(plan, other->plan, out);
            if (!add_row(plan, other->plan, out)) out->failed = true;
        }
        if (other->price != NULL) weft_answer_say(out, NULL, "  price: %s\n", other->price);
    }
    weft_answer_close(out);
    weft_answer_say(out, NULL, "\n");
}
