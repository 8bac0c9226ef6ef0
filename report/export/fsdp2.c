/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/fsdp2.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/target.h"
#include "problem/unit_layers.h"
#include "spec/names.h"

/* Snippets quote names of units, so their characters are those of layers, "+" and "&". */
enum { SENTENCE_BYTES = 512, MOST_NAME = 200 };
static const char unit_characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-+&";

struct maker {
    struct weft_fsdp2 *out;
    const struct weft_plan *plan;
    const struct weft_problem *problem;
    const char *source;
    int32_t drain;      /* slot */
    bool gathers_first; /* the first unit's gather is read */
    struct weft_error *err;
};

/* A member of an array of items of a plan. */
static const struct weft_item *item_at(const struct maker *maker, int32_t placement)
{
    return &maker->problem->items[maker->plan->placements[placement].item].item;
}

static const char *slot_name(const struct maker *maker, int32_t slot)
{
    return maker->problem->slot_names[slot];
}

WEFT_PRINTF(2, 3)
static enum weft_status add_sentence(struct maker *maker, const char *format, ...)
{
    struct weft_fsdp2 *out = maker->out;
    char text[SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (int32_t i = 0; i < out->n_sentences; i++)
        if (strcmp(out->sentences[i], text) == 0) return WEFT_OK;
    const char **grown = weft_pool_array(&out->pool, (size_t)out->n_sentences + 1, sizeof *grown);
    if (!grown) return weft_fail_memory(maker->err, "an export");
    for (int32_t i = 0; i < out->n_sentences; i++)
        grown[i] = out->sentences[i];
    out->sentences = grown;
    grown[out->n_sentences] = weft_pool_string(&out->pool, text);
    if (!grown[out->n_sentences]) return weft_fail_memory(maker->err, "an export");
    out->n_sentences++;
    return WEFT_OK;
}

/* Layers by their forward slots of the first micro-step, "F:h.3" or "F1:h.3". */
static enum weft_status find_layers(struct maker *maker)
{
    struct weft_fsdp2 *out = maker->out;
    out->layers = weft_pool_array(&out->pool, (size_t)maker->problem->n_slots, sizeof *out->layers);
    if (!out->layers) return weft_fail_memory(maker->err, "an export");
    for (int32_t s = 0; s < maker->problem->n_slots; s++) {
        const struct weft_slot *slot = &maker->problem->slots[s];
        const char *colon = strchr(slot_name(maker, s), ':');
        if (slot->kind == WEFT_SLOT_DRAIN) maker->drain = s;
        if (slot->kind != WEFT_SLOT_FORWARD || slot->micro != 0 || !colon) continue;
        if (!weft_name_is_good(colon + 1, MOST_NAME))
            return weft_fail(maker->err, WEFT_E_DATA, "%s: slot %d: \"%.80s\" names no layer",
                             maker->source, s, slot_name(maker, s));
        out->layers[slot->index] = weft_pool_string(&out->pool, colon + 1);
        if (!out->layers[slot->index]) return weft_fail_memory(maker->err, "an export");
        if (slot->index >= out->n_layers) out->n_layers = slot->index + 1;
    }
    return WEFT_OK;
}

/* Whether another unit has the layer too: each has a part of it. */
static bool is_parted(const struct weft_problem *problem, int32_t unit, int32_t layer)
{
    for (int32_t u = 0; u < weft_problem_n_units(problem); u++) {
        const struct weft_unit_layers *of = weft_problem_unit_layers(problem, u);
        if (u == unit) continue;
        if (of->n_tied == 0 && of->first <= layer && layer <= of->last) return true;
        for (int32_t i = 0; i < of->n_tied; i++)
            if (of->tied[i] == layer) return true;
    }
    return false;
}

/* Lists the layers of a unit. FSDP2 shards whole modules. */
static enum weft_status find_modules(struct maker *maker, int32_t u, struct weft_fsdp2_unit *unit)
{
    const struct weft_unit_layers *of = weft_problem_unit_layers(maker->problem, u);
    const size_t n = (size_t)maker->out->n_layers;
    if (of == NULL)
        return weft_fail(maker->err, WEFT_E_DATA,
                         "%s: its units do not name their layers: plan again with this version",
                         maker->source);
    if (of->last >= maker->out->n_layers || unit->name[strspn(unit->name, unit_characters)] != '\0')
        return weft_fail(maker->err, WEFT_E_DATA, "%s: unit %.80s has layers that there are not",
                         maker->source, unit->name);
    unit->layers = weft_pool_array(&maker->out->pool, n, sizeof *unit->layers);
    unit->checkpoints = weft_pool_array(&maker->out->pool, n, sizeof *unit->checkpoints);
    if (!unit->layers || !unit->checkpoints) return weft_fail_memory(maker->err, "an export");
    for (int32_t l = of->first; l <= of->last && of->n_tied == 0; l++)
        unit->layers[unit->n_layers++] = l;
    for (int32_t i = 0; i < of->n_tied; i++)
        unit->layers[unit->n_layers++] = of->tied[i];
    for (int32_t i = 0; i < unit->n_layers; i++)
        if (is_parted(maker->problem, u, unit->layers[i]))
            return weft_fail(maker->err, WEFT_E_DATA,
                             "%s: unit %s is a part of its layers, and FSDP2 shards whole modules: "
                             "plan with --for fsdp2, or without the tie",
                             maker->source, unit->name);
    return WEFT_OK;
}

/* The layer at the unit's hooks: the first one in forward, the last one in backward. */
static int32_t hook_layer(const struct weft_fsdp2_unit *unit, enum weft_slot_kind kind)
{
    return unit->layers[kind == WEFT_SLOT_FORWARD ? 0 : unit->n_layers - 1];
}

static bool slot_in(const struct weft_hold *hold, int32_t slot)
{
    const bool after = slot >= hold->first, before = slot <= hold->last;
    return hold->first <= hold->last ? after && before : after || before;
}

/* Whether the unit is released after its forward: the gathered parameters that its last layer reads
 * are held up to a forward slot. That is so for an embedding under every policy that shards. */
static bool releases_forward(const struct maker *maker, const struct weft_fsdp2_unit *unit,
                             const struct weft_problem_strategy *chosen)
{
    for (int32_t s = 0; s < maker->problem->n_slots; s++) {
        const struct weft_slot *slot = &maker->problem->slots[s];
        if (slot->kind != WEFT_SLOT_FORWARD || slot->micro != 0 ||
            slot->index != unit->layers[unit->n_layers - 1])
            continue;
        for (int32_t h = 0; h < chosen->n_holds; h++) {
            const struct weft_hold *hold = &chosen->holds[h];
            if (hold->category == WEFT_CATEGORY_GATHERED_PARAMETERS && slot_in(hold, s) &&
                maker->problem->slots[hold->last].kind == WEFT_SLOT_FORWARD)
                return true;
        }
    }
    return false;
}

static enum weft_status make_units(struct maker *maker)
{
    struct weft_fsdp2 *out = maker->out;
    const int32_t n = weft_problem_n_units(maker->problem);
    bool trains = false; /* a unit before */
    out->n_units = n;
    out->units = weft_pool_array(&out->pool, (size_t)n, sizeof *out->units);
    out->root_forward.units = weft_pool_array(&out->pool, (size_t)n, sizeof(int32_t));
    if (!out->units || !out->root_forward.units) return weft_fail_memory(maker->err, "an export");
    for (int32_t u = 0; u < n; u++) {
        struct weft_fsdp2_unit *unit = &out->units[u];
        const struct weft_problem_strategy *chosen = weft_plan_chosen(maker->plan, u);
        unit->name = weft_pool_string(&out->pool, maker->problem->decisions[u].name);
        unit->policy = chosen->policy;
        unit->forward.units = weft_pool_array(&out->pool, (size_t)n, sizeof(int32_t));
        unit->backward.units = weft_pool_array(&out->pool, (size_t)n, sizeof(int32_t));
        if (!unit->name || !unit->forward.units || !unit->backward.units)
            return weft_fail_memory(maker->err, "an export");
        WEFT_TRY(find_modules(maker, u, unit));
        unit->reshards = releases_forward(maker, unit, chosen);
        unit->drains = maker->problem->decisions[u].update_slot >= 0 && !trains;
        trains |= unit->drains;
        unit->unshards = !unit->reshards;
        if (chosen->policy == WEFT_POLICY_ZERO1)
            WEFT_TRY(add_sentence(maker, "FSDP2 has no zero1: %s shards its gradients too.",
                                  unit->name));
        if (chosen->policy == WEFT_POLICY_HSDP || chosen->policy == WEFT_POLICY_NODES)
            WEFT_TRY(add_sentence(maker,
                                  "FSDP2 gets one mesh of all ranks: %s shares no parameters "
                                  "within a node alone.",
                                  unit->name));
        if (chosen->policy == WEFT_POLICY_CENTRAL)
            WEFT_TRY(add_sentence(maker, "FSDP2 has no owner: all ranks share %s.", unit->name));
        if (weft_strategy_way(chosen).keep != WEFT_KEEP_DEVICE)
            WEFT_TRY(add_sentence(maker, "FSDP2 keeps the state of %s on the device.", unit->name));
    }
    return WEFT_OK;
}

/* Lists the layers that recompute: a checkpoint of PyTorch is around each. */
static void find_checkpoints(struct maker *maker)
{
    for (int32_t d = maker->out->n_units; d < maker->problem->n_decisions; d++) {
        const int32_t layer = maker->problem->decisions[d].layer;
        if (weft_plan_chosen(maker->plan, d)->recompute == WEFT_RECOMPUTE_NONE) continue;
        for (int32_t u = 0; u < maker->out->n_units; u++) {
            struct weft_fsdp2_unit *unit = &maker->out->units[u];
            for (int32_t i = 0; i < unit->n_layers; i++)
                if (unit->layers[i] == layer) unit->checkpoints[unit->n_checkpoints++] = layer;
        }
    }
}

static bool is_of_step(const struct weft_slot *slot)
{
    return slot->kind == WEFT_SLOT_FORWARD || slot->kind == WEFT_SLOT_BACKWARD;
}

/* The unit with a hook in the slot: -1: none, or the root's in slots before the first layer. */
static int32_t hooked_unit(const struct maker *maker, int32_t slot)
{
    const struct weft_slot *at = &maker->problem->slots[slot];
    for (int32_t u = 0; u < maker->out->n_units; u++) {
        const struct weft_fsdp2_unit *unit = &maker->out->units[u];
        if (is_of_step(at) && hook_layer(unit, at->kind) == at->index) return u;
    }
    return -1;
}

/* Whether the root launches its list in the slot: at the begin of a forward. In the first one that
 * is ahead of its first slot. */
static bool root_hooks(const struct maker *maker, int32_t slot)
{
    const struct weft_slot *at = &maker->problem->slots[slot];
    return !is_of_step(at) || (at->kind == WEFT_SLOT_FORWARD && at->index == 0 && at->micro > 0 &&
                               hooked_unit(maker, slot) < 0);
}

static bool list_has(const struct weft_fsdp2_list *list, int32_t unit)
{
    for (int32_t i = 0; i < list->n; i++)
        if (list->units[i] == unit) return true;
    return false;
}

/* The list whose hook launches what the plan launches in `slot`, or the nearest before it. */
static struct weft_fsdp2_list *find_list(struct maker *maker, int32_t slot, int32_t *hook)
{
    while (slot >= 0 && !root_hooks(maker, slot) && (*hook = hooked_unit(maker, slot)) < 0)
        slot--;
    if (slot < 0 || root_hooks(maker, slot)) {
        *hook = -1;
        return &maker->out->root_forward;
    }
    return maker->problem->slots[slot].kind == WEFT_SLOT_FORWARD
               ? &maker->out->units[*hook].forward
               : &maker->out->units[*hook].backward;
}

/* Puts a gather into the list of its launch. A unit that gathers itself is in no list. */
static enum weft_status list_gather(struct maker *maker, int32_t index)
{
    const struct weft_placement *at = &maker->plan->placements[index];
    const struct weft_item *item = item_at(maker, index);
    const struct weft_slot *use = &maker->problem->slots[at->deadline % maker->problem->n_slots];
    const struct weft_slot *launch = &maker->problem->slots[at->launch];
    struct weft_fsdp2_unit *unit = &maker->out->units[item->decision];
    int32_t hook = -1;
    if (use->kind == WEFT_SLOT_BACKWARD) unit->unshards = true;
    if (item->decision == 0) maker->gathers_first = true;
    if (at->launch == at->deadline) return WEFT_OK;
    struct weft_fsdp2_list *list = find_list(maker, at->launch, &hook);
    /* Ahead of the first unit's own gather only the root has a hook. */
    if (hook == 0 && list == &maker->out->units[0].forward && !maker->gathers_first)
        list = &maker->out->root_forward;
    if (!root_hooks(maker, at->launch) && (hook < 0 || hook != hooked_unit(maker, at->launch)))
        WEFT_TRY(add_sentence(maker,
                              "The gather of %s is launched in %s, where FSDP2 has no hook: it is "
                              "launched in the hook before.",
                              unit->name, slot_name(maker, at->launch)));
    if (is_of_step(launch) && launch->micro != use->micro)
        return add_sentence(maker,
                            "The gather of %s is launched in %s for the next micro-step: FSDP2 "
                            "launches it there.",
                            unit->name, slot_name(maker, at->launch));
    if (use->micro == 0) {
        if (!list_has(list, item->decision)) list->units[list->n++] = item->decision;
    } else if (!list_has(list, item->decision) &&
               !weft_problem_target(maker->problem)->is_foreign) {
        return add_sentence(maker,
                            "FSDP2 has one list for all micro-steps: %s is gathered in the "
                            "others as in the first.",
                            unit->name);
    }
    return WEFT_OK;
}

/* Finds whether a reduction is at its unit's backward or at the end. */
static enum weft_status place_reduction(struct maker *maker, int32_t index)
{
    const struct weft_placement *at = &maker->plan->placements[index];
    const struct weft_item *item = item_at(maker, index);
    struct weft_fsdp2_unit *unit = &maker->out->units[item->decision];
    const int32_t launch = at->launch < item->first ? item->first : at->launch;
    if (unit->drains) return WEFT_OK;
    if (launch == maker->drain) {
        unit->ends_late = true;
    } else if (launch != item->first) {
        return add_sentence(maker,
                            "The reduction of %s is launched in %s: FSDP2 launches it after the "
                            "unit's backward.",
                            unit->name, slot_name(maker, launch));
    }
    return WEFT_OK;
}

static enum weft_status read_placements(struct maker *maker)
{
    for (int32_t i = 0; i < maker->plan->n_placements; i++) {
        const struct weft_item *item = item_at(maker, i);
        const char *name = maker->problem->decisions[item->decision].name;
        if (!weft_item_is_collective(item)) {
            if (maker->plan->placements[i].block == 0)
                WEFT_TRY(
                    add_sentence(maker, "FSDP2 does not move %s between device and host.", name));
            continue;
        }
        if (item->n_blocks > 1)
            WEFT_TRY(add_sentence(maker, "FSDP2 moves whole units: the %d blocks of %s go as one.",
                                  item->n_blocks, name));
        if (maker->plan->placements[i].block > 0) continue;
        WEFT_TRY(item->acquires ? list_gather(maker, i) : place_reduction(maker, i));
    }
    /* A unit of the first layer gathers itself in the same place, unless another comes before it.
     */
    struct weft_fsdp2_list *list = &maker->out->root_forward;
    if (list->n == 1 && maker->out->units[list->units[0]].layers[0] == 0) list->n = 0;
    return WEFT_OK;
}

static void add_event(struct weft_fsdp2 *out, bool *gathered, int32_t unit, bool gathers)
{
    if (gathers && (gathered[unit] || out->units[unit].policy == WEFT_POLICY_DP)) return;
    if (gathers) gathered[unit] = true;
    out->events[out->n_events++] = (struct weft_fsdp2_event){unit, gathers};
}

static void add_list(struct weft_fsdp2 *out, bool *gathered, const struct weft_fsdp2_list *list)
{
    for (int32_t i = 0; i < list->n; i++)
        add_event(out, gathered, list->units[i], true);
}

/* Trainable units have an update. */
static bool is_trained(const struct weft_fsdp2 *out, int32_t unit)
{
    return out->plan->problem->decisions[unit].update_slot >= 0;
}

/* Most events of a unit: two gathers of its own, two by lists, and a reduction. */
enum { MOST_EVENTS = 5 };

/* Adds the collectives of hooks at a layer's backward. */
static void add_backward(struct weft_fsdp2 *out, bool *gathered, int32_t layer)
{
    for (int32_t u = 0; u < out->n_units; u++) {
        if (hook_layer(&out->units[u], WEFT_SLOT_BACKWARD) != layer) continue;
        if (out->units[u].unshards) add_event(out, gathered, u, true);
        add_list(out, gathered, &out->units[u].backward);
    }
    for (int32_t u = 0; u < out->n_units; u++) {
        const struct weft_fsdp2_unit *unit = &out->units[u];
        if (hook_layer(unit, WEFT_SLOT_FORWARD) != layer) continue;
        gathered[u] = false;
        if (is_trained(out, u) && !unit->ends_late && !unit->drains)
            add_event(out, gathered, u, false);
    }
}

/* Writes the collectives of a step as FSDP2's hooks issue them. At the end it reduces in reverse
 * order of the modules. */
static enum weft_status list_events(struct maker *maker)
{
    struct weft_fsdp2 *out = maker->out;
    const int32_t n = out->n_units;
    bool *gathered = weft_pool_array(&out->pool, (size_t)n, sizeof *gathered);
    out->events = weft_pool_array(&out->pool, (size_t)n * MOST_EVENTS, sizeof *out->events);
    if (!gathered || !out->events) return weft_fail_memory(maker->err, "an export");
    add_list(out, gathered, &out->root_forward);
    for (int32_t u = 0; u < n; u++) {
        add_event(out, gathered, u, true);
        add_list(out, gathered, &out->units[u].forward);
        if (out->units[u].reshards) gathered[u] = false;
    }
    for (int32_t l = out->n_layers - 1; l >= 0; l--)
        add_backward(out, gathered, l);
    for (int32_t u = n - 1; u >= 0; u--)
        if (is_trained(out, u) && (out->units[u].ends_late || out->units[u].drains))
            add_event(out, gathered, u, false);
    return WEFT_OK;
}

/* Compares the plan's order with FSDP2's, of gathers, of reductions, or of both on one lane. */
static enum weft_status compare_order(struct maker *maker, bool gathers, bool reductions)
{
    const struct weft_fsdp2 *out = maker->out;
    int32_t e = 0;
    for (int32_t i = 0; i < maker->plan->n_placements; i++) {
        const struct weft_item *item = item_at(maker, i);
        if (!weft_item_is_collective(item) || maker->plan->placements[i].block > 0) continue;
        if (item->acquires ? !gathers : !reductions) continue;
        while (e < out->n_events && (out->events[e].gathers ? !gathers : !reductions))
            e++;
        const struct weft_fsdp2_event *event = &out->events[e];
        if (e < out->n_events && event->unit == item->decision && event->gathers == item->acquires)
            e++;
        else
            return add_sentence(maker,
                                "The order of collectives differs: the plan has the %s of %s "
                                "where FSDP2 has %s%s.",
                                item->acquires ? "gather" : "reduction",
                                maker->problem->decisions[item->decision].name,
                                e >= out->n_events ? "nothing"
                                : event->gathers   ? "the gather of "
                                                   : "the reduction of ",
                                e < out->n_events ? out->units[event->unit].name : "");
    }
    return WEFT_OK;
}

static enum weft_status check_step(struct maker *maker)
{
    const struct weft_period_rule *rule = &maker->problem->period;
    const int32_t n_networks = weft_problem_agree_lane(maker->problem);
    for (int32_t d = maker->out->n_units; d < maker->problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(maker->plan, d);
        if (chosen->location != WEFT_LOCATION_DEVICE ||
            (chosen->recompute != WEFT_RECOMPUTE_NONE &&
             !weft_problem_target(maker->problem)->is_foreign))
            WEFT_TRY(add_sentence(maker, "FSDP2 keeps the saved activations of %s.",
                                  maker->problem->decisions[d].name));
    }
    if (rule->delayed)
        WEFT_TRY(add_sentence(maker, "The plan updates with the gradient of the step before, as "
                                     "train.delay says; PyTorch uses the step's own."));
    else if (rule->rotated)
        WEFT_TRY(add_sentence(maker,
                              "The plan updates each unit when its gradient is reduced; PyTorch "
                              "updates all after backward, as with train.clip_norm."));
    /* Its problem has FSDP2's own order, and lists are those of the first micro-step. */
    if (rule->n_micro > 1 && weft_problem_target(maker->problem)->is_foreign) return WEFT_OK;
    if (rule->n_micro > 1)
        return add_sentence(maker,
                            "The plan has %d micro-steps: FSDP2 gathers in each of them, and the "
                            "training loop says in which gradients are reduced.",
                            rule->n_micro);
    if (rule->rotated) return WEFT_OK;
    if (n_networks == WEFT_LANE_FIRST) return compare_order(maker, true, true);
    WEFT_TRY(compare_order(maker, true, false));
    return compare_order(maker, false, true);
}

/* Inputs of reductions that the plan holds at once. Late ones are held as gradients. */
static void count_inputs(struct maker *maker)
{
    maker->out->most_inputs = 1 + maker->problem->period.more_inputs;
    if (weft_problem_target(maker->problem)->is_foreign) return;
    for (int32_t i = 0; i < maker->plan->n_placements; i++) {
        const struct weft_placement *at = &maker->plan->placements[i];
        int32_t held = 0;
        if (item_at(maker, i)->acquires || at->block > 0) continue;
        for (int32_t j = 0; j < maker->plan->n_placements; j++) {
            const struct weft_placement *other = &maker->plan->placements[j];
            const struct weft_item *item = item_at(maker, j);
            held += weft_item_is_collective(item) && !item->acquires && other->block == 0 &&
                    !maker->out->units[item->decision].ends_late && other->launch <= at->launch &&
                    at->launch < other->deadline;
        }
        if (held > maker->out->most_inputs) maker->out->most_inputs = held;
    }
}

/* Bytes of an element, by the messages of the first unit. */
static void find_types(struct maker *maker)
{
    for (int32_t i = maker->problem->n_items - 1; i >= 0; i--) {
        const struct weft_item *item = &maker->problem->items[i].item;
        if (!weft_item_is_collective(item)) continue;
        int32_t *bytes =
            item->acquires ? &maker->out->parameter_bytes : &maker->out->gradient_bytes;
        const struct weft_problem_decision *decision = &maker->problem->decisions[item->decision];
        const int64_t elements =
            decision->elements - (item->acquires ? 0 : decision->frozen_elements);
        const double size = (double)item->block_bytes * item->n_blocks / (double)elements;
        *bytes = elements > 0 && size <= sizeof(double) ? (int32_t)size : 0;
    }
}

/* FSDP2 runs a training loop's micro-steps, one after the other. */
static enum weft_status check_turns(const struct maker *maker)
{
    if (maker->problem->period.layers == 0) return WEFT_OK;
    return weft_fail(maker->err, WEFT_E_DATA,
                     "%s: its micro-steps take turns by layers, and the other runtime runs one "
                     "micro-step after the other: plan with plan.micro_step_order \"step\"",
                     maker->source);
}

static enum weft_status make_all(struct maker *maker)
{
    WEFT_TRY(check_turns(maker));
    WEFT_TRY(find_layers(maker));
    WEFT_TRY(make_units(maker));
    if (weft_problem_target(maker->problem)->is_foreign) find_checkpoints(maker);
    WEFT_TRY(read_placements(maker));
    count_inputs(maker);
    find_types(maker);
    WEFT_TRY(list_events(maker));
    return check_step(maker);
}

enum weft_status weft_fsdp2_create(const struct weft_plan *plan, const char *source,
                                   struct weft_fsdp2 **out, struct weft_error *err)
{
    struct weft_fsdp2 *made = calloc(1, sizeof *made);
    if (!made) return weft_fail_memory(err, "an export");
    made->plan = plan;
    struct maker maker = {
        .out = made, .plan = plan, .problem = plan->problem, .source = source, .err = err};
    enum weft_status status = make_all(&maker);
    if (status == WEFT_OK)
        *out = made;
    else
        weft_fsdp2_destroy(made);
    return status;
}

void weft_fsdp2_destroy(struct weft_fsdp2 *fsdp2)
{
    if (!fsdp2) return;
    weft_pool_finish(&fsdp2->pool);
    free(fsdp2);
}

bool weft_fsdp2_recomputes(const struct weft_fsdp2 *fsdp2)
{
    for (int32_t u = 0; u < fsdp2->n_units; u++)
        if (fsdp2->units[u].n_checkpoints > 0) return true;
    return false;
}

bool weft_fsdp2_finishes(const struct weft_fsdp2 *fsdp2)
{
    for (int32_t u = 0; u < fsdp2->n_units; u++)
        if (fsdp2->units[u].ends_late) return true;
    return false;
}

/* Modules of a layer: in the model of Hugging Face, otherwise the layer's name. */
static const char *modules_of(const struct weft_fsdp2 *fsdp2, int32_t layer)
{
    const struct weft_problem *problem = fsdp2->plan->problem;
    return layer < problem->names.n_modules ? problem->names.modules[layer] : fsdp2->layers[layer];
}

bool weft_fsdp2_next_module(const struct weft_fsdp2 *fsdp2, const struct weft_fsdp2_unit *unit,
                            struct weft_fsdp2_module *module)
{
    const char *rest = module->name == NULL ? "" : module->name + module->length;
    const int32_t *layers = module->checkpoints ? unit->checkpoints : unit->layers;
    const int32_t n_layers = module->checkpoints ? unit->n_checkpoints : unit->n_layers;
    if (*rest == ',') {
        module->name = rest + 1;
    } else {
        if (module->layer == n_layers) return false;
        module->name = modules_of(fsdp2, layers[module->layer++]);
    }
    module->length = strcspn(module->name, ",");
    return true;
}
