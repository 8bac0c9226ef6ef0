/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/period.h"

#include <stdlib.h>

const char *weft_slot_kind_name(enum weft_slot_kind kind)
{
    static const char *const names[WEFT_SLOT_KIND_COUNT] = {
        [WEFT_SLOT_UPDATE] = "update",   [WEFT_SLOT_FILL] = "fill",
        [WEFT_SLOT_FORWARD] = "forward", [WEFT_SLOT_BACKWARD] = "backward",
        [WEFT_SLOT_DRAIN] = "drain",     [WEFT_SLOT_NORM] = "norm",
        [WEFT_SLOT_OPEN] = "open",
    };
    return names[kind];
}

/* The arrays of a period while they are filled. */
struct draft {
    struct weft_pool *pool;
    const struct weft_period_rule *rule;
    const struct weft_shards *shards;
    int32_t n_slots, n_layers;
    struct weft_slot *slots;
    int32_t *update, *first_gradient, *last_gradient, *n_uses;
    const int32_t **uses;
    int32_t *forward, *backward;
    int32_t fill, drain, norm;
};

int64_t weft_period_frame(const struct weft_period_rule *rule, int32_t n_layers)
{
    return 2 * (int64_t)rule->n_micro * n_layers + 3 + weft_period_opens(rule) +
           (rule->drains ? rule->n_micro - 1 : 0); /* fill, drain, norm */
}

int32_t weft_period_layers(const struct weft_period_rule *rule, int32_t n_layers)
{
    return rule->layers > 0 && rule->layers < n_layers ? rule->layers : n_layers;
}

int32_t weft_period_turn(const struct weft_period_rule *rule, int32_t n_layers)
{
    const int32_t each = weft_period_layers(rule, n_layers);
    return each == 0 ? 0 : (n_layers - 1) / each * each;
}

/* The group of a slot's layer. */
static int32_t group_of(const struct weft_period *period, int32_t slot)
{
    return period->slots[slot].index / weft_period_layers(&period->rule, period->n_layers);
}

bool weft_period_in_one_pass(const struct weft_period *period, int32_t slot, int32_t other)
{
    const int32_t group = group_of(period, slot);
    const bool turns =
        period->slots[slot].index >= weft_period_turn(&period->rule, period->n_layers);
    return period->rule.layers > 0 && group == group_of(period, other) &&
           (turns || period->slots[slot].kind == period->slots[other].kind);
}

/* Slot `at` of a pass in which each micro-step runs forward through the layers from `first` to
 * `last` - 1 and then backward through them, and then possibly drains. */
static struct weft_slot of_turn(const struct weft_period_rule *rule, int32_t first, int32_t last,
                                int32_t at)
{
    const int32_t n = last - first, each = 2 * n + rule->drains;
    const int32_t micro = at / each, within = at % each;
    if (within == 2 * n) return (struct weft_slot){WEFT_SLOT_DRAIN, -1, micro, false};
    if (within < n) return (struct weft_slot){WEFT_SLOT_FORWARD, first + within, micro, false};
    return (struct weft_slot){WEFT_SLOT_BACKWARD, last - 1 - (within - n), micro, false};
}

/* Slot `at` of a step's forwards and backwards, in order of time. */
static struct weft_slot of_micro_steps(const struct weft_period_rule *rule, int32_t n_layers,
                                       int32_t at)
{
    const int32_t each = weft_period_layers(rule, n_layers), n_micro = rule->n_micro;
    const int32_t turn = weft_period_turn(rule, n_layers), before = turn * n_micro;
    const int32_t turning = (2 * (n_layers - turn) + rule->drains) * n_micro - rule->drains;
    const int32_t left = at - before - turning; /* negative before the backwards of other groups */
    const int32_t pass = left < 0 ? at / (each * n_micro) : left / (each * n_micro);
    const int32_t within = (left < 0 ? at : left) % (each * n_micro);
    if (at >= before && left < 0) return of_turn(rule, turn, n_layers, at - before);
    if (left < 0)
        return (struct weft_slot){WEFT_SLOT_FORWARD, pass * each + within % each, within / each,
                                  false};
    return (struct weft_slot){WEFT_SLOT_BACKWARD, turn - pass * each - 1 - within % each,
                              within / each, false};
}

/* Forwards of a step before the first one of a layer. */
static int32_t forwards_before(const struct weft_period_rule *rule, int32_t n_layers, int32_t layer)
{
    const int32_t each = weft_period_layers(rule, n_layers), group = layer / each;
    return group * each * rule->n_micro + layer % each;
}

/* Backwards at the end of a step, after its last forward, up to the last one of a layer. */
static int32_t backwards_until(const struct weft_period_rule *rule, int32_t n_layers, int32_t layer)
{
    const int32_t each = weft_period_layers(rule, n_layers), n_micro = rule->n_micro;
    const int32_t turn = weft_period_turn(rule, n_layers);
    if (layer >= turn) return n_layers - layer;
    const int32_t group = layer / each, later = turn / each - 1 - group;
    return n_layers - turn + (later * n_micro + n_micro - 1) * each + (group + 1) * each - layer;
}

struct weft_slot weft_period_form(const struct weft_period_rule *rule, int32_t n_layers, int32_t at)
{
    const struct weft_slot fill = {WEFT_SLOT_FILL, -1, 0, false},
                           drain = {WEFT_SLOT_DRAIN, -1, 0, false};
    const struct weft_slot norm = {WEFT_SLOT_NORM, -1, 0, false};
    int32_t computing = 2 * rule->n_micro * n_layers + (rule->drains ? rule->n_micro - 1 : 0);
    if (weft_period_opens(rule) && at-- == 0)
        return (struct weft_slot){WEFT_SLOT_OPEN, -1, 0, false};
    if (at == computing + 2) return norm;
    if (!rule->rotated) {
        if (at == 0) return fill;
        return at == computing + 1 ? drain : of_micro_steps(rule, n_layers, at - 1);
    }
    const int32_t begun = backwards_until(rule, n_layers, 0);
    if (at < begun) return of_micro_steps(rule, n_layers, computing - begun + at);
    if (at == begun) return drain;
    return at == begun + 1 ? fill : of_micro_steps(rule, n_layers, at - begun - 2);
}

bool weft_period_takes_update(const struct weft_period_rule *rule, int32_t n_layers, int32_t at)
{
    const int32_t begun = rule->rotated ? backwards_until(rule, n_layers, 0) : 0;
    const int32_t first = rule->rotated ? begun + 1 : weft_period_opens(rule);
    const int32_t most = 1 + forwards_before(rule, n_layers, n_layers - 1);
    if (rule->delayed) return at >= 1 && at <= begun;
    if (rule->update_after > 0 && at >= 1 && at <= begun) return true;
    return at >= first && at <= (rule->update_ahead > 0 ? first + most : first);
}

static int32_t append_slot(struct draft *draft, struct weft_slot slot)
{
    draft->slots[draft->n_slots] = slot;
    return draft->n_slots++;
}

/* Whether a unit's update is in the backward that begins the period. */
static bool updates_in_backward(const struct draft *draft, const struct weft_unit *unit)
{
    const struct weft_period_rule *rule = draft->rule;
    return rule->delayed || (rule->update_after > 0 && unit->layers[0] >= rule->update_after);
}

/* The slot of the frame directly after a unit's update. */
static int32_t update_before(const struct draft *draft, const struct weft_unit *unit)
{
    const struct weft_period_rule *rule = draft->rule;
    const int32_t fill =
        rule->rotated ? backwards_until(rule, draft->n_layers, 0) + 1 : weft_period_opens(rule);
    const int32_t layer = unit->layers[0] - rule->update_ahead;
    if (updates_in_backward(draft, unit))
        return backwards_until(rule, draft->n_layers,
                               unit->layers[0] - (rule->delayed ? 0 : rule->update_after));
    return rule->update_ahead == 0 || layer <= 0
               ? fill
               : fill + 1 + forwards_before(rule, draft->n_layers, layer);
}

static void append_all(struct draft *draft)
{
    const struct weft_shards *shards = draft->shards;
    int32_t frame = (int32_t)weft_period_frame(draft->rule, draft->n_layers), n = 0, first = 0;
    while (first < shards->n_units && !updates_in_backward(draft, &shards->units[first]))
        first++;
    const int32_t n_backward = shards->n_units - first;
    for (int32_t at = 0; at < frame; at++) {
        for (; n < shards->n_units; n++) {
            /* Backward ends with the unit that is used first, and forward begins with it. */
            const int32_t u = n < n_backward ? shards->n_units - 1 - n : n - n_backward;
            bool trainable = shards->units[u].trainable;
            if (trainable && update_before(draft, &shards->units[u]) > at) break;
            draft->update[u] =
                trainable ? append_slot(draft, (struct weft_slot){WEFT_SLOT_UPDATE, u, 0, false})
                          : -1;
        }
        struct weft_slot slot = weft_period_form(draft->rule, draft->n_layers, at);
        int32_t s = append_slot(draft, slot);
        if (slot.kind == WEFT_SLOT_FILL) draft->fill = s;
        if (slot.kind == WEFT_SLOT_DRAIN) draft->drain = s;
        if (slot.kind == WEFT_SLOT_NORM) draft->norm = s;
        int32_t of = slot.micro * draft->n_layers + slot.index;
        if (slot.kind == WEFT_SLOT_FORWARD) draft->forward[of] = s;
        if (slot.kind == WEFT_SLOT_BACKWARD) draft->backward[of] = s;
    }
}

/* Appends a unit's uses in the passes of a group, those of its layers from `from` to `to` - 1. The
 * passes of the last group are one. */
static int32_t list_pass(const struct draft *draft, const struct weft_unit *unit, int32_t from,
                         int32_t to, bool forwards, bool backwards, int32_t *uses)
{
    int32_t n = 0;
    for (int32_t micro = 0; micro < draft->rule->n_micro; micro++) {
        const int32_t *forward = draft->forward + micro * draft->n_layers;
        const int32_t *backward = draft->backward + micro * draft->n_layers;
        for (int32_t i = from; i < to && forwards; i++)
            uses[n++] = forward[unit->layers[i]];
        for (int32_t i = to - 1; i >= from && backwards; i--)
            if (unit->reads_in_backward[i]) uses[n++] = backward[unit->layers[i]];
    }
    return n;
}

static enum weft_status list_uses(struct draft *draft, int32_t u, struct weft_error *err)
{
    const struct weft_unit *unit = &draft->shards->units[u];
    const int32_t each = weft_period_layers(draft->rule, draft->n_layers);
    const int32_t last = weft_period_turn(draft->rule, draft->n_layers) / each;
    int32_t n_micro = draft->rule->n_micro, n = 0, from = 0, to = 0;
    int32_t *uses =
        weft_pool_array(draft->pool, 2 * (size_t)unit->n_layers * (size_t)n_micro, sizeof *uses);
    if (uses == NULL) return weft_fail_memory(err, "the period");
    for (; from < unit->n_layers; from = to) {
        const int32_t group = unit->layers[from] / each;
        for (to = from; to < unit->n_layers && unit->layers[to] / each == group;)
            to++;
        n += list_pass(draft, unit, from, to, true, group == last, uses + n);
    }
    for (to = unit->n_layers; to > 0; to = from) {
        const int32_t group = unit->layers[to - 1] / each;
        for (from = to; from > 0 && unit->layers[from - 1] / each == group;)
            from--;
        if (group != last) n += list_pass(draft, unit, from, to, false, true, uses + n);
    }
    for (int32_t micro = 0; micro < n_micro; micro++) {
        const int32_t *backward = draft->backward + micro * draft->n_layers;
        /* Gradients come in reverse: the last layer's backward adds first. */
        int32_t at = micro * draft->shards->n_units + u;
        draft->first_gradient[at] =
            unit->trainable ? backward[unit->layers[unit->n_layers - 1]] : -1;
        draft->last_gradient[at] = unit->trainable ? backward[unit->layers[0]] : -1;
    }
    draft->uses[u] = uses;
    draft->n_uses[u] = n;
    return WEFT_OK;
}

static enum weft_status fill_period(struct weft_period *period, const struct weft_shards *shards,
                                    size_t most_slots, struct weft_error *err)
{
    size_t n_units = (size_t)shards->n_units, n_micro = (size_t)period->rule.n_micro;
    size_t n_layers = (size_t)period->n_layers;
    struct draft draft = {.pool = &period->pool,
                          .rule = &period->rule,
                          .shards = shards,
                          .n_layers = period->n_layers};
    draft.slots = weft_pool_array(draft.pool, most_slots, sizeof *draft.slots);
    draft.update = weft_pool_array(draft.pool, n_units, sizeof *draft.update);
    draft.first_gradient = weft_pool_array(draft.pool, n_micro * n_units, sizeof(int32_t));
    draft.last_gradient = weft_pool_array(draft.pool, n_micro * n_units, sizeof(int32_t));
    draft.n_uses = weft_pool_array(draft.pool, n_units, sizeof *draft.n_uses);
    draft.uses = weft_pool_array(draft.pool, n_units, sizeof *draft.uses);
    draft.forward = weft_pool_array(draft.pool, n_micro * n_layers, sizeof *draft.forward);
    draft.backward = weft_pool_array(draft.pool, n_micro * n_layers, sizeof *draft.backward);
    if (draft.slots == NULL || draft.update == NULL || draft.first_gradient == NULL ||
        draft.last_gradient == NULL || draft.n_uses == NULL || draft.uses == NULL ||
        draft.forward == NULL || draft.backward == NULL) {
        return weft_fail_memory(err, "the period");
    }
    append_all(&draft);
    for (int32_t u = 0; u < shards->n_units; u++)
        WEFT_TRY(list_uses(&draft, u, err));
    period->n_slots = draft.n_slots;
    period->slots = draft.slots;
    period->n_units = shards->n_units;
    period->update = draft.update;
    period->n_uses = draft.n_uses;
    period->uses = draft.uses;
    period->first_gradient = draft.first_gradient;
    period->last_gradient = draft.last_gradient;
    period->forward = draft.forward;
    period->backward = draft.backward;
    period->fill = draft.fill;
    period->drain = draft.drain;
    period->norm = draft.norm;
    return WEFT_OK;
}

bool weft_period_rule_same(const struct weft_period_rule *a, const struct weft_period_rule *b)
{
    return a->n_micro == b->n_micro && a->group == b->group && a->layers == b->layers &&
           a->idle == b->idle && a->rotated == b->rotated && a->update_ahead == b->update_ahead &&
           a->update_after == b->update_after && a->agreed_updates == b->agreed_updates &&
           a->offloaded == b->offloaded && a->whole_copies == b->whole_copies &&
           a->drains == b->drains && a->late == b->late && a->more_inputs == b->more_inputs &&
           a->delayed == b->delayed && a->every == b->every && a->gossip == b->gossip &&
           a->means == b->means;
}

bool weft_period_is_rule(const struct weft_period_rule *rule)
{
    const bool rounds = rule->group >= 1 && rule->n_micro % rule->group == 0;
    const bool one = rule->group == rule->n_micro;
    const bool ahead =
        rule->rotated ? rule->update_ahead >= 1
                      : rule->update_ahead == 0 || (rule->update_ahead >= 1 && rule->offloaded);
    const bool turns =
        rule->layers == 0 || (rule->layers > 0 && rule->n_micro > 1 && one && !rule->drains &&
                              !rule->late && rule->more_inputs == 0);
    return rule->n_micro >= 1 && rule->every >= (rule->gossip ? 1 : 0) && rounds && ahead &&
           turns && rule->idle >= 0 && (rule->idle == 0 || !one) &&
           rule->rotated + rule->agreed_updates <= 1 &&
           !(rule->offloaded && rule->agreed_updates) && rule->rotated + rule->drains <= 1 &&
           rule->more_inputs >= 0 && (!rule->late || one) &&
           (rule->update_after == 0 || (rule->update_after > 0 && rule->rotated && !rule->delayed &&
                                        !rule->late && rule->every == 0)) &&
           (!rule->delayed || (rule->rotated && one && !rule->offloaded && !rule->late));
}

enum weft_status weft_period_create(const struct weft_model *model,
                                    const struct weft_shards *shards,
                                    const struct weft_period_rule *rule, struct weft_period **out,
                                    struct weft_error *err)
{
    if (!weft_period_is_rule(rule)) {
        return weft_fail(
            err, WEFT_E_INTERNAL,
            "a period of %d micro-steps, %d a round, by %d layers, updated %d layers ahead, %d "
            "after%s%s%s",
            rule->n_micro, rule->group, rule->layers, rule->update_ahead, rule->update_after,
            rule->agreed_updates ? ", updates agreed on" : "", rule->delayed ? ", delayed" : "",
            rule->offloaded ? ", with state that may be offloaded" : "");
    }
    if (rule->layers >= model->n_layers)
        return weft_fail(err, WEFT_E_INTERNAL, "a period by %d layers of a model of %d",
                         rule->layers, (int)model->n_layers);
    int64_t most_slots = weft_period_frame(rule, model->n_layers) + shards->n_units;
    if (most_slots > INT32_MAX) {
        return weft_fail(err, WEFT_E_DATA,
                         "%d layers in %d micro-steps: too many to number the slots",
                         (int)model->n_layers, rule->n_micro);
    }
    struct weft_period *period = calloc(1, sizeof *period);
    if (period == NULL) return weft_fail_memory(err, "the period");
    period->rule = *rule;
    period->n_layers = model->n_layers;
    enum weft_status status = fill_period(period, shards, (size_t)most_slots, err);
    if (status != WEFT_OK) {
        weft_period_destroy(period);
        return status;
    }
    *out = period;
    return WEFT_OK;
}

void weft_period_destroy(struct weft_period *period)
{
    if (period == NULL) return;
    weft_pool_finish(&period->pool);
    free(period);
}
