/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "problem/problem.h"

/* The problem's source, and the sums so far. */
struct checker {
    const struct weft_problem *problem;
    const char *where;
    struct weft_error *err;
    int64_t bytes, ns, blocks;
};

static bool add_within(int64_t *sum, int64_t value)
{
    return weft_checked_add(*sum, value, sum) && *sum <= WEFT_PROBLEM_MOST;
}

static const char *lane_fault(const struct weft_problem *problem, int32_t lane)
{
    const struct weft_lane *at = &problem->lanes[lane];
    if (at->kind < 0 || at->kind >= WEFT_LANE_KIND_COUNT) return "its kind is out of range";
    if ((lane == WEFT_LANE_COMPUTE) != (at->kind == WEFT_LANE_KIND_COMPUTE))
        return "the first lane computes, and no other";
    for (int32_t i = 0; i < lane; i++)
        if (strcmp(problem->lanes[i].name, at->name) == 0) return "another has its name";
    if (lane == WEFT_LANE_COMPUTE) return NULL;
    const int32_t rates[] = {at->rates.compute, at->rates.own};
    for (int i = 0; i < 2; i++)
        if (rates[i] < WEFT_RATE_LEAST || rates[i] > WEFT_RATE_ONE)
            return "a rate of it is not in 64 to 1024";
    if (rates[0] + rates[1] < WEFT_RATE_ONE)
        return "its two rates add up to less than 1024: one after the other would be faster";
    return NULL;
}

static enum weft_status check_lanes(const struct checker *checker)
{
    const struct weft_problem *problem = checker->problem;
    bool agrees = false;
    if (problem->n_lanes < 2 || problem->n_lanes > WEFT_MOST_LANES)
        return weft_fail(checker->err, WEFT_E_DATA, "%s: there are %d lanes; expected 2 to %d",
                         checker->where, problem->n_lanes, WEFT_MOST_LANES);
    for (int32_t lane = 0; lane < problem->n_lanes; lane++) {
        const char *fault = lane_fault(problem, lane);
        agrees = agrees || problem->lanes[lane].kind == WEFT_LANE_KIND_NETWORK;
        if (fault != NULL)
            return weft_fail(checker->err, WEFT_E_DATA, "%s: lanes[%d] (%.64s): %s", checker->where,
                             lane, problem->lanes[lane].name, fault);
    }
    if (agrees) return WEFT_OK;
    return weft_fail(checker->err, WEFT_E_DATA, "%s: no lane is of kind network: ranks agree on it",
                     checker->where);
}

static enum weft_status check_tiers(const struct checker *checker)
{
    const struct weft_problem *problem = checker->problem;
    if (problem->n_tiers < 1 || problem->n_tiers > WEFT_MOST_TIERS)
        return weft_fail(checker->err, WEFT_E_DATA, "%s: there are %d tiers; expected 1 to %d",
                         checker->where, problem->n_tiers, WEFT_MOST_TIERS);
    for (int32_t i = 0; i < problem->n_tiers; i++) {
        const struct weft_problem_tier *at = &problem->tiers[i];
        const char *fault = NULL;
        if ((unsigned)at->kind >= WEFT_LOCATION_COUNT) fault = "its kind is out of range";
        if ((i == 0) != (at->kind == WEFT_LOCATION_DEVICE))
            fault = "the first tier is the device's memory, and no other";
        if (at->limit_bytes < (i == 0) ||
            (at->limit_bytes > WEFT_PROBLEM_MOST && at->limit_bytes != INT64_MAX))
            fault = i == 0 ? "its limit_bytes is not in 1 to 2^53 - 1, or none"
                           : "its limit_bytes is not in 0 to 2^53 - 1, or none";
        for (int32_t k = 0; k < i; k++)
            if (strcmp(problem->tiers[k].name, at->name) == 0) fault = "another has its name";
        if (fault != NULL)
            return weft_fail(checker->err, WEFT_E_DATA, "%s: tiers[%d] (%.64s): %s", checker->where,
                             i, at->name, fault);
    }
    return WEFT_OK;
}

static enum weft_status check_scalars(struct checker *checker)
{
    const struct weft_problem *problem = checker->problem;
    if (problem->ranks < 1 || problem->ranks > INT32_MAX) {
        return weft_fail(checker->err, WEFT_E_DATA, "%s: ranks is %" PRId64 "; expected 1 to %d",
                         checker->where, problem->ranks, INT32_MAX);
    }
    if (problem->ranks_per_node < 0 ||
        (problem->ranks_per_node > 0 && problem->ranks % problem->ranks_per_node != 0))
        return weft_fail(checker->err, WEFT_E_DATA,
                         "%s: ranks_per_node is %" PRId64 ", which does not divide %" PRId64
                         " ranks",
                         checker->where, problem->ranks_per_node, problem->ranks);
    int64_t agreements_ns;
    bool fits =
        weft_checked_mul(problem->agree_ns, (int64_t)problem->n_decisions + 1, &agreements_ns);
    if (!fits || !add_within(&checker->ns, agreements_ns)) {
        return weft_fail(checker->err, WEFT_E_DATA, "%s: agree_ns is %" PRId64 "; out of range",
                         checker->where, problem->agree_ns);
    }
    return WEFT_OK;
}

static enum weft_status check_period(const struct checker *checker)
{
    const struct weft_period_rule *period = &checker->problem->period;
    if (period->idle >= checker->problem->ranks)
        return weft_fail(checker->err, WEFT_E_DATA,
                         "%s: %d idle ranks of %" PRId64 " leave the last round without a gradient",
                         checker->where, period->idle, (int64_t)checker->problem->ranks);
    if (weft_period_is_rule(period)) return WEFT_OK;
    return weft_fail(
        checker->err, WEFT_E_DATA,
        "%s: no period has %d micro-steps, reduces every %d of them and updates %d layers "
        "ahead and %d after%s%s%s%s%s%s",
        checker->where, period->n_micro, period->group, period->update_ahead, period->update_after,
        period->layers != 0 ? ", with turns by layers" : "",
        period->idle != 0 ? ", with idle ranks" : "", period->rotated ? ", rotated" : "",
        period->delayed ? ", delayed" : "", period->agreed_updates ? ", updates agreed on" : "",
        period->offloaded ? ", with state that may be offloaded" : "");
}

static enum weft_status slot_fault(const struct checker *checker, int32_t s,
                                   struct weft_slot expected)
{
    struct weft_slot slot = checker->problem->slots[s];
    return weft_fail(checker->err, WEFT_E_DATA,
                     "%s: slots[%d] is %s %d of micro-step %d; expected %s %d of micro-step %d, or "
                     "where updates may stand a decision that has this update slot",
                     checker->where, s, weft_slot_kind_name(slot.kind), slot.index, slot.micro,
                     weft_slot_kind_name(expected.kind), expected.index, expected.micro);
}

/* `at` counts the slots of the frame: all slots but updates. */
static enum weft_status check_slot(const struct checker *checker, int32_t s, int32_t n_layers,
                                   int32_t *at)
{
    const struct weft_problem *problem = checker->problem;
    struct weft_slot slot = problem->slots[s];
    struct weft_slot expected = {WEFT_SLOT_UPDATE, -1, 0, false};
    bool inside = *at < weft_period_frame(&problem->period, n_layers);
    if (inside) expected = weft_period_form(&problem->period, n_layers, *at);
    if (slot.kind == WEFT_SLOT_UPDATE) {
        bool fits = inside && weft_period_takes_update(&problem->period, n_layers, *at) &&
                    slot.index >= 0 && slot.index < weft_problem_n_units(problem) &&
                    slot.micro == 0 && problem->decisions[slot.index].update_slot == s;
        return fits ? WEFT_OK : slot_fault(checker, s, expected);
    }
    ++*at;
    bool fits = inside && slot.kind == expected.kind && slot.index == expected.index &&
                slot.micro == expected.micro;
    return fits ? WEFT_OK : slot_fault(checker, s, expected);
}

static enum weft_status check_slots(struct checker *checker)
{
    const struct weft_problem *problem = checker->problem;
    int64_t computing = problem->n_slots;
    int64_t each = 2 * (int64_t)problem->period.n_micro; /* slots of a layer */
    for (int32_t s = 0; s < problem->n_slots; s++)
        computing -= problem->slots[s].kind == WEFT_SLOT_UPDATE;
    computing -= weft_period_frame(&problem->period, 0);
    if (computing < each || computing % each != 0) {
        return weft_fail(checker->err, WEFT_E_DATA,
                         "%s: %d slots do not make a period of %d micro-steps; expected updates, "
                         "fill, in each micro-step forwards and as many backwards, drain, norm",
                         checker->where, problem->n_slots, problem->period.n_micro);
    }
    if (problem->period.layers >= computing / each)
        return weft_fail(checker->err, WEFT_E_DATA,
                         "%s: micro-steps take turns by %d layers, and there are %" PRId64,
                         checker->where, problem->period.layers, computing / each);
    int32_t at = 0;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        WEFT_TRY(check_slot(checker, s, (int32_t)(computing / each), &at));
        if (!add_within(&checker->ns, problem->slot_ns[s])) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: slots[%d]: ns is %" PRId64
                             " or the sum of all times is above 2^53 - 1",
                             checker->where, s, problem->slot_ns[s]);
        }
    }
    return WEFT_OK;
}

static enum weft_status check_holds(struct checker *checker, const struct weft_hold *holds,
                                    int32_t n_holds, const char *owner, int32_t index)
{
    int32_t n_slots = checker->problem->n_slots;
    for (int32_t i = 0; i < n_holds; i++) {
        const struct weft_hold *hold = &holds[i];
        bool slots =
            hold->first >= 0 && hold->first < n_slots && hold->last >= 0 && hold->last < n_slots;
        bool tier = hold->tier >= 0 && hold->tier < checker->problem->n_tiers;
        if (!slots || !tier || (unsigned)hold->category >= WEFT_CATEGORY_COUNT) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: %s[%d]: hold %d is in slots %d to %d, category %d, tier %d; the "
                             "period has slots 0 to %d, there are %d categories and %d tiers",
                             checker->where, owner, index, i, hold->first, hold->last,
                             (int)hold->category, hold->tier, n_slots - 1, WEFT_CATEGORY_COUNT,
                             checker->problem->n_tiers);
        }
        if (!add_within(&checker->bytes, hold->bytes)) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: %s[%d]: bytes of hold %d are %" PRId64
                             " or the sum of all bytes is above 2^53 - 1",
                             checker->where, owner, index, i, hold->bytes);
        }
    }
    return WEFT_OK;
}

static enum weft_status check_strategy(struct checker *checker, int32_t d, int32_t k)
{
    const struct weft_problem *problem = checker->problem;
    const struct weft_problem_decision *decision = &problem->decisions[d];
    const struct weft_problem_strategy *strategy = &decision->strategies[k];
    bool known = strategy->kind >= 0 && strategy->kind < problem->n_kinds &&
                 ((unsigned)strategy->policy < WEFT_POLICY_COUNT) == !decision->is_of_layer;
    if (!known || weft_decision_of_kind(decision, strategy->kind) != k) {
        return weft_fail(checker->err, WEFT_E_DATA, "%s: decisions[%d] (%s): strategy %d is %s",
                         checker->where, d, decision->name, k,
                         known ? "there already" : "of no kind that there is");
    }
    for (int32_t i = 0; i < strategy->n_times; i++) {
        if (!add_within(&checker->ns, strategy->times[i].ns)) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: decisions[%d] (%s): time of slot %d is %" PRId64
                             " ns or the sum of all times is above 2^53 - 1",
                             checker->where, d, decision->name, strategy->times[i].slot,
                             strategy->times[i].ns);
        }
    }
    return check_holds(checker, strategy->holds, strategy->n_holds, "decisions", d);
}

/* Decisions of layers follow those of units, each layer once, by number. */
static const char *layer_fault(const struct weft_problem *problem, int32_t d)
{
    const struct weft_problem_decision *of = &problem->decisions[d], *before = of - (d > 0);
    if (!of->is_of_layer) {
        if (d > 0 && before->is_of_layer) return "units stand before layers";
        return of->layer == 0 ? NULL : "a unit is no layer";
    }
    int32_t n_layers = 0;
    for (int32_t s = 0; s < problem->n_slots; s++)
        n_layers += problem->slots[s].kind == WEFT_SLOT_FORWARD && problem->slots[s].micro == 0;
    if (of->layer < 0 || of->layer >= n_layers) return "there is no such layer";
    if (of->update_slot != -1 || of->elements != 0) return "a layer has no parameters of its own";
    if (d > 0 && before->is_of_layer && before->layer >= of->layer)
        return "layers are not in order, each once";
    return NULL;
}

static enum weft_status check_decisions(struct checker *checker)
{
    const struct weft_problem *problem = checker->problem;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const char *fault = layer_fault(problem, d);
        if (fault != NULL)
            return weft_fail(checker->err, WEFT_E_DATA, "%s: decisions[%d] (%s): layer %d: %s",
                             checker->where, d, problem->decisions[d].name,
                             problem->decisions[d].layer, fault);
        const struct weft_problem_decision *decision = &problem->decisions[d];
        int32_t slot = decision->update_slot;
        bool updated = slot >= 0 && slot < problem->n_slots &&
                       problem->slots[slot].kind == WEFT_SLOT_UPDATE &&
                       problem->slots[slot].index == d;
        if (slot != -1 && !updated) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: decisions[%d] (%s): update_slot %d is not an update of its unit",
                             checker->where, d, decision->name, slot);
        }
        if (decision->elements < 0 || decision->elements > WEFT_PROBLEM_MOST) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: decisions[%d] (%s): elements is %" PRId64 "; out of range",
                             checker->where, d, decision->name, decision->elements);
        }
        if (decision->frozen_elements < 0 || decision->frozen_elements > decision->elements) {
            return weft_fail(
                checker->err, WEFT_E_DATA,
                "%s: decisions[%d] (%s): frozen_elements is %" PRId64 "; the unit has %" PRId64,
                checker->where, d, decision->name, decision->frozen_elements, decision->elements);
        }
        for (int32_t k = 0; k < decision->n_strategies; k++)
            WEFT_TRY(check_strategy(checker, d, k));
    }
    return WEFT_OK;
}

/* Negative, 0 or positive if `a` comes before, with or after `b` in order of decision, kind,
 * gather. */
static int64_t compare_items(const struct weft_item *a, const struct weft_item *b)
{
    if (a->decision != b->decision) return (int64_t)a->decision - b->decision;
    if (a->kind != b->kind) return (int64_t)a->kind - b->kind;
    return (int64_t)a->gather - b->gather;
}

/* State arrives before its unit's update. The windows of copies back begin after the update. */
static const char *state_fault(const struct weft_problem *problem, const struct weft_item *item)
{
    const bool comes = weft_item_kind_of(item)->acquires;
    int32_t update = problem->decisions[item->decision].update_slot;
    if (comes != item->acquires)
        return "a copy to the device acquires state, a copy away releases it";
    if (update < 0) return "a frozen unit has no state";
    if (problem->period.agreed_updates) return "its update is in two parts, which ranks agree on";
    if (comes && item->last + 1 != update)
        return "no update of its unit is in the slot after its window";
    if (!comes && item->first <= update)
        return "its window begins before the unit's update has ended";
    return NULL;
}

/* A gradient goes down for its unit's update on the host. The update and the copies of parameters
 * end before the unit's first use. In a rotated period the update begins where the device's would.
 */
static const char *host_update_fault(const struct weft_problem *problem,
                                     const struct weft_item *item)
{
    const bool down = item->kind == WEFT_GRADIENT_DOWN;
    const int32_t update = problem->decisions[item->decision].update_slot;
    if (down == item->acquires) return "a gradient that goes down is released, others are acquired";
    if (update < 0) return "a frozen unit is not updated";
    if (problem->period.agreed_updates) return "its update is in two parts, which ranks agree on";
    if (!problem->period.rotated) {
        if (down && item->first <= update) return "it goes down before the update of its period";
    } else if (down ? item->last >= update : item->first < update) {
        return "its window is not on its side of the unit's update";
    }
    if (down) return NULL;
    return problem->slots[item->last + 1].kind == WEFT_SLOT_FORWARD
               ? NULL
               : "no forward runs in the slot after its window";
}

/* A layer's activations go down after their forward, before any backward that follows it. They come
 * up for their first reader in backward after all forwards before it: the layer itself, or for an
 * input the layer before it. */
static const char *saved_fault(const struct weft_problem *problem, const struct weft_item *item)
{
    const struct weft_problem_decision *decision = &problem->decisions[item->decision];
    const bool up = weft_item_kind_of(item)->acquires;
    const bool of_input = weft_item_kind_is_of_input(item->kind);
    if (!decision->is_of_layer) return "a unit saves nothing for its backward";
    if (of_input && decision->layer == 0) return "the first layer's input is a batch, which stays";
    if (up != item->acquires) return "a copy up acquires activations, a copy down releases them";
    if (item->first == 0 && !up) return "no layer runs in the slot before its window";
    const struct weft_slot *next = &problem->slots[up ? item->last + 1 : item->first - 1];
    const bool is_own =
        next->index == decision->layer || (up && of_input && next->index == decision->layer - 1);
    if (next->kind != (up ? WEFT_SLOT_BACKWARD : WEFT_SLOT_FORWARD) || !is_own ||
        next->micro != item->gather)
        return "it is not next to its layer's forward or backward";
    for (int32_t s = item->first; s <= item->last; s++)
        if (problem->slots[s].kind == (up ? WEFT_SLOT_FORWARD : WEFT_SLOT_BACKWARD))
            return "its window is on both sides of its micro-step's turning point";
    return NULL;
}

/* True for a gather of parameters that the host updated and copied up, or that crossed nodes after
 * that. The copies' windows are as wide, so after_fault checks it. */
static bool follows_host_update(const struct weft_problem *problem, int32_t i)
{
    const int32_t after = problem->items[i].after;
    if (after < 0 || after >= problem->n_items) return false;
    const struct weft_problem_item *before = &problem->items[after];
    if (before->item.kind != WEFT_ACROSS_GATHER) return before->item.kind == WEFT_PARAMETERS_UP;
    return before->after >= 0 && before->after < problem->n_items &&
           problem->items[before->after].item.kind == WEFT_PARAMETERS_UP;
}

/* Updated parameters go down after their unit's update, before its first use. Copies up have the
 * rules of the gathers that follow them. */
static const char *parameters_fault(const struct weft_problem *problem,
                                    const struct weft_item *item)
{
    const bool down = item->kind == WEFT_PARAMETERS_DOWN;
    const int32_t update = problem->decisions[item->decision].update_slot;
    if (down == item->acquires) return "parameters that go down are released, others are acquired";
    if (update < 0) return "a frozen unit has no updated parameters";
    if (problem->period.agreed_updates) return "its update is in two parts, which ranks agree on";
    const bool early = item->first <= update;
    if (down && early) return "it goes down before the unit's update has ended";
    return NULL;
}

/* In a rotated period the last step's gathers for backward and its reductions come before the
 * updates. */
static const char *window_fault(const struct weft_problem *problem, int32_t i)
{
    const struct weft_item *item = &problem->items[i].item;
    bool gathers = item->acquires;
    int32_t update = problem->decisions[item->decision].update_slot;
    /* Every window has a slot after it, because the norm slot waits for everything. */
    if (item->first < 0 || item->last < item->first || item->last >= problem->n_slots - 1) {
        return "its window is not within the period";
    }
    switch (weft_item_kind_of(item)->family) {
    case WEFT_ITEM_COLLECTIVE:
        break;
    case WEFT_ITEM_STATE:
        return state_fault(problem, item);
    case WEFT_ITEM_HOST_UPDATE:
        return host_update_fault(problem, item);
    case WEFT_ITEM_SAVED:
        return saved_fault(problem, item);
    case WEFT_ITEM_AVERAGE:
        if (!item->acquires || item->may_block) return "an average is complete before its use";
        break;
    case WEFT_ITEM_PARAMETERS: {
        const char *fault = parameters_fault(problem, item);
        if (fault != NULL || item->kind == WEFT_PARAMETERS_DOWN) return fault;
        break;
    }
    }
    if (problem->decisions[item->decision].is_of_layer)
        return "a layer has no parameters to gather or reduce";
    if ((!gathers || weft_item_averages(item)) && update < 0)
        return "a frozen unit has nothing to reduce";
    /* Compute waits for a blocking gather, so its slot must compute. */
    enum weft_slot_kind use = problem->slots[item->last + 1].kind;
    if (gathers && use != WEFT_SLOT_FORWARD && use != WEFT_SLOT_BACKWARD) {
        return "no layer runs in the slot after its window";
    }
    bool before = problem->period.rotated && item->last < update;
    if (problem->period.delayed && !gathers && before)
        return "a delayed update frees the slice for it, and its window is before that update";
    if (item->first <= update && !before && !follows_host_update(problem, i))
        return "its window begins before the unit's update has ended";
    if (problem->period.agreed_updates && problem->slots[item->first].kind == WEFT_SLOT_UPDATE)
        return "its window begins before the last update, and that agreement would wait for it";
    return NULL;
}

/* The most repetitions of an item in a step. Lowering checks those by use. */
static int32_t most_repeats(const struct weft_problem *problem, const struct weft_item *item)
{
    switch (weft_item_kind_of(item)->count) {
    case WEFT_ITEM_ONCE:
        break;
    case WEFT_ITEM_A_USE:
        return INT32_MAX;
    case WEFT_ITEM_A_REDUCTION:
        return weft_period_reductions(&problem->period);
    case WEFT_ITEM_A_MICRO_STEP:
        return problem->period.n_micro;
    }
    return 1;
}

static const char *item_fault(const struct weft_problem *problem, int32_t i)
{
    const struct weft_item *item = &problem->items[i].item;
    if (item->decision < 0 || item->decision >= problem->n_decisions)
        return "decision is out of range";
    if (item->kind < 0 || item->kind >= WEFT_ITEM_KIND_COUNT) return "kind is out of range";
    if (item->may_block && !item->acquires) return "an item that releases cannot block";
    if (item->gather < 0 || item->gather >= most_repeats(problem, item))
        return "gather is out of range";
    uint64_t all = weft_decision_all(&problem->decisions[item->decision]);
    if (item->strategies == 0 || (item->strategies & ~all) != 0) return "it has no strategies";
    if (item->n_blocks < 1) return "n_blocks is below 1";
    if ((unsigned)item->stair_category >= WEFT_CATEGORY_COUNT) return "category is out of range";
    if (item->stair_tier < 0 || item->stair_tier >= problem->n_tiers)
        return "it holds blocks in no tier that there is";
    return window_fault(problem, i);
}

/* Planners count an average with its share of a step. */
static const char *average_fault(const struct weft_problem *problem, int32_t i)
{
    const struct weft_problem_item *at = &problem->items[i];
    const int64_t every = problem->period.every;
    if (!weft_item_averages(&at->item))
        return at->average_ns == 0 && at->phase == 0 ? NULL : "it is no average, and has its time";
    if (every == 0) return "nodes do not step on their own, so nothing is averaged";
    if (at->phase < 0 || at->phase >= every) return "its phase is not below period.every";
    if (at->average_ns < 0 || at->block_ns != at->average_ns / every)
        return "its block_ns is not its share of a step";
    return NULL;
}

/* An item's blocks must always be able to follow those of its predecessor in time: if the
 * predecessor is as late as allowed, its own blocks can still be on time. */
static const char *after_fault(const struct weft_problem *problem, int32_t i)
{
    const struct weft_item *item = &problem->items[i].item, *before;
    int32_t after = problem->items[i].after, at = after;
    if (after == -1) return NULL;
    if (after < 0 || after >= problem->n_items) return "there is no item that it comes after";
    for (int32_t steps = 0; at >= 0 && at < problem->n_items; at = problem->items[at].after)
        if (at == i || ++steps > problem->n_items) return "it comes after itself, round a circle";
    before = &problem->items[after].item;
    if (before->decision != item->decision || (item->strategies & ~before->strategies) != 0)
        return "its predecessor is not there under all of its strategies";
    if (before->n_blocks != item->n_blocks) return "its predecessor has another number of blocks";
    if (before->acquires && !item->acquires && item->first <= before->last)
        return "it releases before the use of its predecessor";
    if (before->first > item->first ||
        (before->acquires || !item->acquires ? before->last > item->last
                                             : before->last >= item->last))
        return "its window begins or ends before that of its predecessor";
    if (before->may_block && item->acquires && !item->may_block && before->last == item->last)
        return "it cannot wait for an item that may block";
    return NULL;
}

static enum weft_status check_items(struct checker *checker)
{
    const struct weft_problem *problem = checker->problem;
    uint64_t taken = 0; /* strategies of the equal items so far */
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        const char *fault = item_fault(problem, i);
        int32_t lane = problem->items[i].lane;
        if (fault == NULL && (lane < WEFT_LANE_FIRST || lane >= problem->n_lanes))
            fault = "it is on no lane that moves anything";
        if (fault == NULL) fault = after_fault(problem, i);
        if (fault == NULL) fault = average_fault(problem, i);
        if (fault != NULL) {
            return weft_fail(checker->err, WEFT_E_DATA, "%s: items[%d]: %s", checker->where, i,
                             fault);
        }
        /* A strategy has at most one of adjacent equal items. */
        int64_t order = i == 0 ? -1 : compare_items(&problem->items[i - 1].item, item);
        taken = order == 0 ? taken : 0;
        if (order > 0 || (taken & item->strategies) != 0) {
            return weft_fail(
                checker->err, WEFT_E_DATA,
                "%s: items[%d] does not follow items[%d] in order of decision, kind, gather",
                checker->where, i, i - 1);
        }
        taken |= item->strategies;
        checker->blocks += item->n_blocks;
        if (checker->blocks > WEFT_PROBLEM_MOST_BLOCKS) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: items[%d]: with its %d blocks there are more than %d; make "
                             "blocks larger (plan.block_size) or fewer (plan.blocks)",
                             checker->where, i, item->n_blocks, WEFT_PROBLEM_MOST_BLOCKS);
        }
        int64_t bytes, ns, moved, average_ns;
        bool fits = weft_checked_mul(item->n_blocks, item->stair_bytes, &bytes) &&
                    weft_checked_mul(item->n_blocks, problem->items[i].block_ns, &ns) &&
                    weft_checked_mul(item->n_blocks, item->block_bytes, &moved) &&
                    moved <= WEFT_PROBLEM_MOST && add_within(&checker->bytes, bytes) &&
                    weft_checked_mul(item->n_blocks, problem->items[i].average_ns, &average_ns) &&
                    add_within(&checker->ns, average_ns > ns ? average_ns : ns);
        if (!fits) {
            return weft_fail(checker->err, WEFT_E_DATA,
                             "%s: items[%d]: %d blocks of %" PRId64 " bytes, held %" PRId64
                             " bytes, %" PRId64 " ns: negative, or a sum is out of range",
                             checker->where, i, item->n_blocks, item->block_bytes,
                             item->stair_bytes, problem->items[i].block_ns);
        }
    }
    return WEFT_OK;
}

enum weft_status weft_problem_check(const struct weft_problem *problem, const char *where,
                                    struct weft_error *err)
{
    struct checker checker = {.problem = problem, .where = where, .err = err};
    WEFT_TRY(check_tiers(&checker));
    WEFT_TRY(check_lanes(&checker));
    WEFT_TRY(check_scalars(&checker));
    WEFT_TRY(check_period(&checker));
    WEFT_TRY(check_slots(&checker));
    WEFT_TRY(check_decisions(&checker));
    WEFT_TRY(check_holds(&checker, problem->common, problem->n_common, "common", 0));
    return check_items(&checker);
}
