/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/chain.h"
#include "program/predict.h"
#include "scheduler/planners/table.h"
#include "tests/problem/by_policy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct chain_builder {
    struct weft_problem *problem;
    const struct chain *chain;
};

static void *array_chain(struct chain_builder *b, int32_t n, size_t size)
{
    void *made = weft_pool_array(&b->problem->pool, (size_t)n, size);
    cr_assert_not_null(made);
    return made;
}

/* Where state may be beside the device, which is no other place. */
static enum weft_location other_location(const struct chain *chain)
{
    for (int32_t u = 0; u < chain->n_layers; u++) {
        if (chain->disk_ns[u] > 0) return WEFT_LOCATION_DISK;
        if (chain->host_ns[u] > 0) return WEFT_LOCATION_HOST;
    }
    return WEFT_LOCATION_DEVICE;
}

/* Whether the host updates too. */
static bool updates_on_host(const struct chain *chain)
{
    int64_t ns = 0;
    for (int32_t u = 0; u < chain->n_layers; u++)
        ns += chain->update_ns[u];
    return ns > 0;
}

/* Slots before the first update. */
static int32_t opens(const struct chain *chain)
{
    return other_location(chain) != WEFT_LOCATION_DEVICE;
}

static void name(struct chain_builder *b, int32_t s, const char *text, int32_t index)
{
    b->problem->slot_names[s] = index < 0
                                    ? weft_pool_string(&b->problem->pool, text)
                                    : weft_pool_format(&b->problem->pool, "%s%d", text, index);
    cr_assert_not_null(b->problem->slot_names[s]);
}

static void add_slots_chain(struct chain_builder *b)
{
    struct weft_problem *problem = b->problem;
    int32_t n = b->chain->n_layers, open = opens(b->chain);
    if (open) problem->slots[0] = (struct weft_slot){.kind = WEFT_SLOT_OPEN, .index = -1};
    if (open) name(b, 0, "open", -1);
    for (int32_t s = 0; s < problem->n_slots - open; s++) {
        int32_t layer = s <= 2 * n ? s - n - 1 : 3 * n - s;
        if (s < n) {
            problem->slots[s + open] = (struct weft_slot){.kind = WEFT_SLOT_UPDATE, .index = s};
            name(b, s + open, "U", s);
        } else if (s == n || s > 3 * n) {
            problem->slots[s + open].kind = s == n           ? WEFT_SLOT_FILL
                                            : s == 3 * n + 1 ? WEFT_SLOT_DRAIN
                                                             : WEFT_SLOT_NORM;
            problem->slots[s + open].index = -1;
            name(b, s + open, s == n ? "fill" : s == 3 * n + 1 ? "drain" : "norm", -1);
        } else {
            bool forward = s <= 2 * n;
            int64_t ns = b->chain->forward_ns[layer] ? b->chain->forward_ns[layer] : 100;
            problem->slots[s + open] = (struct weft_slot){
                .kind = forward ? WEFT_SLOT_FORWARD : WEFT_SLOT_BACKWARD, .index = layer};
            problem->slot_ns[s + open] = forward ? ns : 2 * ns;
            name(b, s + open, forward ? "F" : "B", layer);
        }
    }
}

static void hold_chain(struct weft_problem_strategy *to, enum weft_category category, int32_t first,
                       int32_t last, int64_t bytes)
{
    to->holds[to->n_holds++] =
        (struct weft_hold){.category = category, .first = first, .last = last, .bytes = bytes};
}

static void add_strategy(struct chain_builder *b, int32_t u, enum weft_policy policy, int64_t bytes)
{
    int32_t n = b->chain->n_layers, end = b->problem->n_slots - 1, open = opens(b->chain);
    int32_t forward = open + n + 1 + u, backward = open + 3 * n - u, update = open + u;
    bool dp = policy == WEFT_POLICY_DP, whole = dp || policy == WEFT_POLICY_ZERO1;
    struct weft_problem_strategy *to =
        by_policy_add(b->problem, &b->problem->decisions[u], policy, dp ? 20 : 10, 8);
    hold_chain(to, WEFT_CATEGORY_OPTIMIZER_STATE, 0, end, dp ? 2 * bytes : bytes);
    hold_chain(to, whole ? WEFT_CATEGORY_GATHERED_PARAMETERS : WEFT_CATEGORY_SHARDED_PARAMETERS, 0,
               end, whole ? bytes : bytes / 2);
    hold_chain(to, WEFT_CATEGORY_FULL_GRADIENTS, backward, dp ? update : backward, bytes);
    if (!dp) hold_chain(to, WEFT_CATEGORY_SHARDED_GRADIENTS, backward + 1, update, bytes / 2);
    if (policy == WEFT_POLICY_SDP)
        hold_chain(to, WEFT_CATEGORY_GATHERED_PARAMETERS, forward, backward, bytes);
    if (policy == WEFT_POLICY_FSDP) {
        hold_chain(to, WEFT_CATEGORY_GATHERED_PARAMETERS, forward, forward, bytes);
        hold_chain(to, WEFT_CATEGORY_GATHERED_PARAMETERS, backward, backward, bytes);
    }
}

/* Adds the item for a unit's strategies with these policies, where it has any. */
static void item_chain(struct chain_builder *b, struct weft_item item_chain, uint32_t policies,
                       int64_t block_ns)
{
    item_chain.strategies =
        weft_decision_policies(&b->problem->decisions[item_chain.decision], policies);
    if (item_chain.strategies == 0) return;
    item_chain.acquires = item_chain.may_block = item_chain.kind == WEFT_ALL_GATHER;
    b->problem->items[b->problem->n_items++] = (struct weft_problem_item){
        .item = item_chain, .lane = WEFT_LANE_FIRST, .block_ns = block_ns, .after = -1};
    if (!updates_on_host(b->chain) || !item_chain.acquires || item_chain.gather > 0) return;
    /* What the host updates is gathered behind that. */
    item_chain.strategies <<= 2 * b->problem->decisions[item_chain.decision].n_strategies;
    item_chain.first = 0;
    b->problem->items[b->problem->n_items++] = (struct weft_problem_item){
        .item = item_chain, .lane = WEFT_LANE_FIRST, .block_ns = block_ns, .after = -1};
}

static void add_items(struct chain_builder *b, int32_t u)
{
    const uint32_t zero1 = 1u << WEFT_POLICY_ZERO1, dp = 1u << WEFT_POLICY_DP,
                   fsdp = 1u << WEFT_POLICY_FSDP, sdp_like = 1u << WEFT_POLICY_SDP | fsdp;
    int32_t n = b->chain->n_layers, open = opens(b->chain);
    int32_t forward = open + n + 1 + u, backward = open + 3 * n - u;
    int64_t ns = b->chain->gather_ns[u];
    struct weft_item gather = {.decision = u,
                               .kind = WEFT_ALL_GATHER,
                               .n_blocks = b->chain->n_blocks[u],
                               .first = open + u + 1,
                               .last = forward - 1,
                               .block_bytes = b->chain->block_bytes[u],
                               .stair_bytes = b->chain->block_bytes[u],
                               .stair_category = WEFT_CATEGORY_GATHERED_PARAMETERS};
    item_chain(b, gather, sdp_like, ns);
    struct weft_item resident = gather, again = gather, reduction = gather;
    resident.stair_bytes = 0;
    item_chain(b, resident, zero1, ns);
    again.gather = 1;
    again.first = forward + 1;
    again.last = backward - 1;
    if (u < n - 1) item_chain(b, again, fsdp, ns);
    reduction.kind = WEFT_REDUCE_SCATTER;
    reduction.first = backward + 1;
    reduction.last = open + 3 * n + 1;
    reduction.stair_category = WEFT_CATEGORY_FULL_GRADIENTS;
    item_chain(b, reduction, sdp_like | zero1, ns);
    reduction.kind = WEFT_ALL_REDUCE;
    reduction.stair_bytes = 0;
    item_chain(b, reduction, dp, 2 * ns);
}

/* Behind the network. A disk has the first alone. */
enum { DOWN_LANE = WEFT_LANE_FIRST + 1, UP_LANE, HOST_LANE, DISK_LANE = DOWN_LANE };

/* What moves state to the device, and back. */
static void item_state_chain(struct chain_builder *b, int32_t u, bool comes, int32_t n,
                             int64_t bytes)
{
    const struct weft_problem_decision *unit = &b->problem->decisions[u];
    const bool disk = other_location(b->chain) == WEFT_LOCATION_DISK;
    const int32_t update = unit->update_slot;
    const struct weft_item item = {.decision = u,
                                   .kind = disk ? (comes ? WEFT_STATE_READ : WEFT_STATE_WRITE)
                                                : (comes ? WEFT_STATE_UP : WEFT_STATE_DOWN),
                                   .acquires = comes,
                                   .may_block = comes,
                                   .strategies = ((UINT64_C(1) << n) - 1) << n,
                                   .n_blocks = 1,
                                   .first = comes ? 0 : update + 1,
                                   .last = comes ? update - 1 : b->problem->n_slots - 2,
                                   .block_bytes = bytes,
                                   .stair_bytes = bytes,
                                   .stair_category = WEFT_CATEGORY_OPTIMIZER_STATE};
    b->problem->items[b->problem->n_items++] =
        (struct weft_problem_item){.item = item,
                                   .lane = disk    ? DISK_LANE
                                           : comes ? UP_LANE
                                                   : DOWN_LANE,
                                   .block_ns = disk ? b->chain->disk_ns[u] : b->chain->host_ns[u],
                                   .after = -1};
}

/* The first item of a unit that the strategy has, of a kind. */
static int32_t find_item_chain(const struct chain_builder *b, int32_t u, int32_t kind,
                               int32_t strategy)
{
    int32_t i = 0;
    for (; i < b->problem->n_items; i++) {
        const struct weft_item *item = &b->problem->items[i].item;
        if (item->decision == u && item->kind == kind && (item->strategies >> strategy & 1) != 0)
            return i;
    }
    cr_assert_fail("unit %d has none of kind %d", u, kind);
    return i;
}

/* What updates on the host, of strategies from 2 * n on: down behind the reduction, and behind the
 * update up, before what is gathered. */
static void items_there_chain(struct chain_builder *b, int32_t u, int32_t n)
{
    struct weft_problem *problem = b->problem;
    const int32_t layers = b->chain->n_layers, first = problem->n_items;
    struct weft_item item = {.decision = u,
                             .kind = WEFT_GRADIENT_DOWN,
                             .strategies = ((UINT64_C(1) << n) - 1) << 2 * n,
                             .n_blocks = b->chain->n_blocks[u],
                             .first = 1 + 3 * layers - u + 1,
                             .last = 1 + 3 * layers + 1,
                             .block_bytes = b->chain->block_bytes[u] / 2,
                             .stair_bytes = b->chain->block_bytes[u] / 2,
                             .stair_category = WEFT_CATEGORY_SHARDED_GRADIENTS};
    problem->items[problem->n_items++] =
        (struct weft_problem_item){.item = item,
                                   .lane = DOWN_LANE,
                                   .block_ns = b->chain->host_ns[u],
                                   .after = find_item_chain(b, u, WEFT_REDUCE_SCATTER, 2 * n)};
    item.kind = WEFT_HOST_UPDATE;
    item.acquires = true;
    item.first = 0;
    item.last = 1 + layers + u;
    item.stair_bytes = 0;
    problem->items[problem->n_items++] = (struct weft_problem_item){
        .item = item, .lane = HOST_LANE, .block_ns = b->chain->update_ns[u], .after = -1};
    item.kind = WEFT_PARAMETERS_UP;
    problem->items[problem->n_items++] = (struct weft_problem_item){
        .item = item, .lane = UP_LANE, .block_ns = b->chain->host_ns[u], .after = first + 1};
    for (int32_t k = 2 * n; k < 3 * n; k++)
        problem->items[find_item_chain(b, u, WEFT_ALL_GATHER, k)].after = first + 2;
}

/* The holds of a strategy with state in the other location: on the device in its update, or never.
 */
static void hold_location(struct chain_builder *b, const struct weft_problem_strategy *from,
                          int32_t update, int64_t bytes, struct weft_problem_strategy *to)
{
    to->n_holds = 0;
    to->holds = array_chain(b, from->n_holds + 1, sizeof *to->holds);
    hold_chain(to, WEFT_CATEGORY_OPTIMIZER_STATE, 0, b->problem->n_slots - 1, bytes);
    to->holds[0].tier = 1;
    for (int32_t h = 0; h < from->n_holds; h++) {
        struct weft_hold hold = from->holds[h];
        const bool state = hold.category == WEFT_CATEGORY_OPTIMIZER_STATE;
        if (to->updates_on_host && (state || hold.category == WEFT_CATEGORY_SHARDED_GRADIENTS))
            continue;
        if (state) hold.first = hold.last = update;
        to->holds[to->n_holds++] = hold;
    }
}

/* The same strategies with state in the other location, and what moves it. */
static void add_location(struct chain_builder *b, int32_t u, int64_t bytes)
{
    struct weft_problem_decision *unit = &b->problem->decisions[u];
    const int32_t n = unit->n_strategies, ways = updates_on_host(b->chain) ? 3 : 2;
    struct weft_problem_strategy *all = array_chain(b, ways * n, sizeof *all);
    memcpy(all, unit->strategies, (size_t)n * sizeof *all);
    for (int32_t k = n; k < ways * n; k++) {
        struct weft_problem_strategy *to = &all[k];
        *to = all[k % n];
        to->location = other_location(b->chain);
        to->updates_on_host = k >= 2 * n;
        to->kind += k / n * WEFT_POLICY_COUNT;
        to->name = b->problem->kinds[to->kind];
        if (to->updates_on_host) to->n_times = 0;
        /* The host has the gradient too. */
        hold_location(b, &all[k % n], unit->update_slot,
                      to->updates_on_host ? 3 * bytes / 2 : bytes, to);
    }
    unit->strategies = all;
    unit->n_strategies = ways * n;
    item_state_chain(b, u, true, n, bytes);
    item_state_chain(b, u, false, n, bytes);
    if (updates_on_host(b->chain)) items_there_chain(b, u, n);
}

static void add_unit_chain(struct chain_builder *b, int32_t u)
{
    struct weft_problem_decision *unit = &b->problem->decisions[u];
    int64_t bytes = b->chain->n_blocks[u] * b->chain->block_bytes[u];
    uint32_t all = b->chain->policies ? b->chain->policies : 15;
    unit->name = weft_pool_format(&b->problem->pool, "unit%d", u);
    cr_assert_not_null(unit->name);
    if (u == b->chain->n_layers - 1) all &= ~(1u << WEFT_POLICY_FSDP);
    if (opens(b->chain)) all &= ~(1u << WEFT_POLICY_DP);
    unit->update_slot = opens(b->chain) + u;
    unit->elements = bytes / 4;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++)
        if (all >> p & 1u) add_strategy(b, u, (enum weft_policy)p, bytes);
    const int32_t first = b->problem->n_items;
    add_items(b, u);
    if (!opens(b->chain)) return;
    /* What strategies do but for their state does not depend on its location, but for the gathers
     * of what the host updates, which have none of the first strategies. */
    const int32_t n = unit->n_strategies;
    for (int32_t i = first; i < b->problem->n_items; i++) {
        struct weft_item *item = &b->problem->items[i].item;
        const uint64_t own = item->strategies & ((UINT64_C(1) << n) - 1);
        const bool all_locations = !item->acquires || item->gather > 0;
        item->strategies |= own << n;
        if (updates_on_host(b->chain) && all_locations) item->strategies |= own << 2 * n;
    }
    add_location(b, u, bytes);
}

static void add_level(struct chain_builder *b, int32_t layer, enum weft_recompute level,
                      int64_t bytes, int64_t ns)
{
    struct weft_problem_decision *decision = &b->problem->decisions[b->chain->n_layers + layer];
    const int32_t n = b->chain->n_layers, forward = n + 1 + layer, backward = 3 * n - layer;
    struct weft_problem_strategy *to = &decision->strategies[decision->n_strategies++];
    const struct weft_layer_choice choice = {WEFT_LOCATION_DEVICE, level, WEFT_LOCATION_DEVICE};
    *to = (struct weft_problem_strategy){.name = weft_layer_choice_name(choice),
                                         .kind = WEFT_POLICY_COUNT + (int32_t)level,
                                         .policy = WEFT_POLICY_COUNT,
                                         .recompute = level};
    to->holds = array_chain(b, 2, sizeof *to->holds);
    to->times = array_chain(b, 1, sizeof *to->times);
    hold_chain(to, WEFT_CATEGORY_ACTIVATIONS, backward, backward, b->chain->kept_bytes);
    if (bytes > 0) hold_chain(to, WEFT_CATEGORY_ACTIVATIONS, forward, backward - 1, bytes);
    if (ns > 0) to->times[to->n_times++] = (struct weft_slot_time){backward, ns};
}

/* Decisions of layers, without another location. */
static void add_layers_chain(struct chain_builder *b)
{
    struct weft_problem *problem = b->problem;
    const struct chain *chain = b->chain;
    const char **kinds = array_chain(b, WEFT_POLICY_COUNT + WEFT_RECOMPUTE_COUNT, sizeof *kinds);
    if (chain->kept_bytes == 0) return;
    memcpy(kinds, problem->kinds, WEFT_POLICY_COUNT * sizeof *kinds);
    for (int level = 0; level < WEFT_RECOMPUTE_COUNT; level++)
        kinds[problem->n_kinds++] = weft_layer_choice_name((struct weft_layer_choice){
            WEFT_LOCATION_DEVICE, (enum weft_recompute)level, WEFT_LOCATION_DEVICE});
    problem->kinds = kinds;
    for (int32_t l = 0; l < chain->n_layers; l++) {
        struct weft_problem_decision *decision = &problem->decisions[problem->n_decisions++];
        decision->name = weft_pool_format(&problem->pool, "saved:layer%d", l);
        decision->strategies = array_chain(b, WEFT_RECOMPUTE_COUNT, sizeof *decision->strategies);
        decision->update_slot = -1;
        decision->is_of_layer = true;
        decision->layer = l;
        add_level(b, l, WEFT_RECOMPUTE_NONE, chain->kept_bytes, 0);
        add_level(b, l, WEFT_RECOMPUTE_SELECTIVE, chain->selective_bytes, chain->selective_ns);
        add_level(b, l, WEFT_RECOMPUTE_WHOLE, 0, chain->whole_ns);
    }
}

static void open_lane(struct weft_problem *problem, const char *name, enum weft_lane_kind kind,
                      int32_t lane)
{
    cr_assert_eq(problem->n_lanes, lane);
    cr_assert_eq(weft_problem_add_lane(problem, name, kind, NULL), WEFT_OK);
}

static void open_location(struct weft_problem *problem, const struct chain *chain)
{
    const enum weft_location location = other_location(chain);
    const char *name = weft_location_names[location];
    const int32_t ways = updates_on_host(chain) ? 3 : 2;
    const char **kinds =
        weft_pool_array(&problem->pool, (size_t)(ways * WEFT_POLICY_COUNT), sizeof *kinds);
    cr_assert_not_null(kinds);
    for (int i = 0; i < ways * WEFT_POLICY_COUNT; i++) {
        const bool offloaded = i >= WEFT_POLICY_COUNT;
        kinds[i] = weft_pool_format(
            &problem->pool, "%s%s%s%s", problem->kinds[i % WEFT_POLICY_COUNT], offloaded ? "+" : "",
            offloaded ? name : "", i < 2 * WEFT_POLICY_COUNT ? "" : "-update");
    }
    problem->kinds = kinds;
    problem->n_kinds = ways * WEFT_POLICY_COUNT;
    problem->period.offloaded = true;
    problem->tiers[problem->n_tiers++] =
        (struct weft_problem_tier){name, location, INT64_C(1) << 40};
    if (location == WEFT_LOCATION_DISK) {
        open_lane(problem, "disk", WEFT_LANE_KIND_READ, DISK_LANE);
        return;
    }
    open_lane(problem, "down", WEFT_LANE_KIND_DOWN, DOWN_LANE);
    open_lane(problem, "up", WEFT_LANE_KIND_UP, UP_LANE);
    if (ways > 2) open_lane(problem, "host", WEFT_LANE_KIND_HOST, HOST_LANE);
}

struct weft_problem *chain_problem(const struct chain *chain)
{
    struct weft_problem *problem = calloc(1, sizeof *problem);
    cr_assert_not_null(problem);
    struct chain_builder b = {.problem = problem, .chain = chain};
    int32_t n = chain->n_layers;
    problem->ranks = 2;
    problem->profile_source = "by hand";
    problem->period = (struct weft_period_rule){.n_micro = 1, .group = 1};
    weft_problem_device_alone(problem, INT64_MAX);
    problem->agree_ns = chain->agree_ns;
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    cr_assert_eq(weft_problem_networks(problem, 1, full, NULL), WEFT_OK);
    problem->n_slots = 3 * n + 3 + opens(chain);
    problem->slots = array_chain(&b, problem->n_slots, sizeof *problem->slots);
    problem->slot_names = array_chain(&b, problem->n_slots, sizeof *problem->slot_names);
    problem->slot_ns = array_chain(&b, problem->n_slots, sizeof *problem->slot_ns);
    problem->n_decisions = n;
    problem->decisions = array_chain(&b, 2 * n, sizeof *problem->decisions);
    problem->items = array_chain(&b, 12 * n, sizeof *problem->items);
    problem->common = array_chain(&b, n, sizeof *problem->common);
    by_policy_kinds(problem);
    if (opens(chain)) open_location(problem, chain);
    add_slots_chain(&b);
    for (int32_t u = 0; u < n; u++) {
        add_unit_chain(&b, u);
        problem->common[problem->n_common++] =
            (struct weft_hold){.category = WEFT_CATEGORY_ACTIVATIONS,
                               .first = opens(chain) + n + 1 + u,
                               .last = opens(chain) + 3 * n - u,
                               .bytes = chain->activation_bytes};
    }
    add_layers_chain(&b);
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_link(problem, "chain", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_problem_check(problem, "chain", &err), WEFT_OK, "%s", err.text);
    return problem;
}

static void add_text(char *to, size_t size, const char *text)
{
    size_t length = strlen(to);
    snprintf(to + length, size - length, "%s%s", length ? " " : "", text);
}

static const char *name_move(const struct weft_item *item)
{
    if (item->kind == WEFT_GRADIENT_DOWN) return "d";
    if (item->kind == WEFT_HOST_UPDATE) return "h";
    if (item->kind == WEFT_PARAMETERS_UP) return "p";
    if (weft_item_moves_state(item)) return item->acquires ? "in" : "out";
    return item->acquires ? "g" : "r";
}

static void show_moves(const struct weft_problem *problem, const struct weft_candidate *candidate,
                       struct chain_plan *out)
{
    for (int32_t k = 0, n; k < candidate->n_moves; k += n) {
        struct weft_move move = candidate->moves[k];
        const struct weft_item *it = &problem->items[move.item].item;
        bool gathers = it->acquires;
        char count[16] = "", end[64] = "", text[128];
        for (n = 1; k + n < candidate->n_moves &&
                    memcmp(&candidate->moves[k + n], &move, sizeof move) == 0;)
            n++;
        if (n > 1) snprintf(count, sizeof count, "x%d", n);
        if (!gathers) snprintf(end, sizeof end, ">%s", problem->slot_names[move.slot]);
        const char *what = name_move(it);
        snprintf(text, sizeof text, "%s%d%s@%s%s", what, it->decision, count,
                 problem->slot_names[gathers ? move.slot : move.launch],
                 gathers && move.slot > it->last ? "!" : end);
        add_text(out->moves, sizeof out->moves, text);
    }
}

static void judge(const struct weft_problem *problem, const char *planner,
                  const struct weft_candidate *candidate, struct chain_plan *out)
{
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_create(problem, planner, candidate->strategies, candidate->moves,
                                  candidate->n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK, "%s", err.text);
    out->step_ns = plan->prediction.step_ns;
    out->peak_bytes = plan->prediction.peak_bytes;
    weft_plan_destroy(plan);
}

struct chain_plan chain_plan(const struct weft_problem *problem, const char *planner,
                             int64_t limit_bytes)
{
    int32_t strategies[2 * CHAIN_MOST_LAYERS];
    struct weft_move moves[512];
    struct weft_candidate candidate = {.strategies = strategies, .moves = moves};
    struct weft_schedule_options options = {.planner = planner};
    struct weft_outcome outcome = {0};
    struct chain_plan out = {0};
    const struct weft_planner *found = weft_planner_find(planner, &options.setting);
    cr_assert_not_null(found, "%s", planner);
    struct weft_problem limited = *problem;
    limited.tiers[0].limit_bytes = limit_bytes;
    out.status = weft_planner_decide(found, &limited, &options, &candidate, &outcome, &out.err);
    if (out.status != WEFT_OK) return out;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        add_text(out.policies, sizeof out.policies,
                 weft_problem_chosen(problem, strategies, u)->name);
    show_moves(problem, &candidate, &out);
    judge(problem, planner, &candidate, &out);
    cr_assert_leq(out.peak_bytes, limit_bytes);
    return out;
}
