/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/tiny.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/rng.h"
#include "scheduler/digest/digest.h"
#include "tests/problem/by_policy.h"

struct tiny_builder {
    struct weft_problem *problem;
    const struct tiny_shape *shape;
    uint64_t seed, counter;
};

static int64_t draw(struct tiny_builder *b, int64_t least, int64_t most)
{
    return least + (int64_t)weft_rng_below(b->seed, 7, b->counter++, (uint64_t)(most - least + 1));
}

static void *array_tiny(struct tiny_builder *b, int64_t n, size_t size)
{
    void *made = weft_pool_array(&b->problem->pool, (size_t)n, size);
    cr_assert_not_null(made);
    return made;
}

static void hold_tiny(struct weft_problem_strategy *to, enum weft_category category, int32_t first,
                      int32_t last, int64_t bytes)
{
    to->holds[to->n_holds++] =
        (struct weft_hold){.category = category, .first = first, .last = last, .bytes = bytes};
}

/* Adds the item for a unit's strategies with these policies, where it has any. */
static void item_tiny(struct tiny_builder *b, struct weft_item item_tiny, uint32_t policies,
                      int64_t block_ns)
{
    item_tiny.strategies =
        weft_decision_policies(&b->problem->decisions[item_tiny.decision], policies);
    if (item_tiny.strategies == 0) return;
    item_tiny.acquires = item_tiny.may_block = item_tiny.kind == WEFT_ALL_GATHER;
    b->problem->items[b->problem->n_items++] = (struct weft_problem_item){
        .item = item_tiny,
        .lane = item_tiny.acquires ? WEFT_LANE_FIRST : b->problem->n_lanes - 1,
        .block_ns = block_ns,
        .after = -1};
}

enum { SDP_LIKE = 1 << WEFT_POLICY_SDP | 1 << WEFT_POLICY_FSDP };

static void add_unit_tiny(struct tiny_builder *b, int32_t u)
{
    struct weft_problem *problem = b->problem;
    int32_t n = b->shape->n_units, forward = n + 1 + u, backward = 3 * n - u, drain = 3 * n + 1;
    struct weft_problem_decision *unit = &problem->decisions[u];
    int32_t n_blocks = (int32_t)draw(b, 1, b->shape->most_blocks);
    int64_t block_bytes = 256 * draw(b, 2, 40), bytes = n_blocks * block_bytes;
    int64_t slice = bytes / 2;
    int64_t gather_ns =
        (int64_t)(b->shape->load * (double)draw(b, 300, 1700)) / n_blocks + draw(b, 1, 9);
    uint32_t every = b->shape->policies;
    unit->name = weft_pool_format(&problem->pool, "unit%d", u);
    if (u == n - 1) every &= ~(1u << WEFT_POLICY_FSDP);
    unit->update_slot = u;
    unit->elements = bytes / 4;
    for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
        if (!(every >> p & 1u)) continue;
        struct weft_problem_strategy *to =
            by_policy_add(problem, unit, (enum weft_policy)p, p == WEFT_POLICY_DP ? 80 : 40, 8);
        bool whole = p == WEFT_POLICY_DP || p == WEFT_POLICY_ZERO1;
        hold_tiny(to, WEFT_CATEGORY_OPTIMIZER_STATE, 0, problem->n_slots - 1,
                  p == WEFT_POLICY_DP ? 2 * bytes : 2 * slice);
        hold_tiny(to, whole ? WEFT_CATEGORY_GATHERED_PARAMETERS : WEFT_CATEGORY_SHARDED_PARAMETERS,
                  0, problem->n_slots - 1, whole ? bytes : slice);
        hold_tiny(to, WEFT_CATEGORY_FULL_GRADIENTS, backward, p == WEFT_POLICY_DP ? u : backward,
                  bytes); /* dp: around the end to the update */
        if (p != WEFT_POLICY_DP)
            hold_tiny(to, WEFT_CATEGORY_SHARDED_GRADIENTS, backward + 1, u, slice);
        if (p == WEFT_POLICY_SDP)
            hold_tiny(to, WEFT_CATEGORY_GATHERED_PARAMETERS, forward, backward, bytes);
        if (p == WEFT_POLICY_FSDP) {
            hold_tiny(to, WEFT_CATEGORY_GATHERED_PARAMETERS, forward, forward, bytes);
            hold_tiny(to, WEFT_CATEGORY_GATHERED_PARAMETERS, backward, backward, bytes);
        }
    }
    struct weft_item gather = {.decision = u,
                               .kind = WEFT_ALL_GATHER,
                               .n_blocks = n_blocks,
                               .first = u + 1,
                               .last = forward - 1,
                               .block_bytes = block_bytes,
                               .stair_bytes = block_bytes,
                               .stair_category = WEFT_CATEGORY_GATHERED_PARAMETERS};
    struct weft_item again = gather;
    item_tiny(b, gather, SDP_LIKE, gather_ns);
    gather.stair_bytes = 0;
    item_tiny(b, gather, 1u << WEFT_POLICY_ZERO1, gather_ns);
    if (u < n - 1) {
        again.gather = 1;
        again.first = forward + 1;
        again.last = backward - 1;
        item_tiny(b, again, 1u << WEFT_POLICY_FSDP, gather_ns);
    }
    struct weft_item reduction = gather;
    reduction.kind = WEFT_REDUCE_SCATTER;
    reduction.gather = 0;
    reduction.first = backward + 1;
    reduction.last = drain;
    reduction.stair_bytes = block_bytes;
    reduction.stair_category = WEFT_CATEGORY_FULL_GRADIENTS;
    item_tiny(b, reduction, SDP_LIKE | 1u << WEFT_POLICY_ZERO1, gather_ns + draw(b, 0, 20));
    reduction.kind = WEFT_ALL_REDUCE;
    reduction.stair_bytes = 0;
    item_tiny(b, reduction, 1u << WEFT_POLICY_DP, 2 * gather_ns);
}

static void add_slots_tiny(struct tiny_builder *b)
{
    struct weft_problem *problem = b->problem;
    int32_t n = b->shape->n_units;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        struct weft_slot *slot = &problem->slots[s];
        if (s < n) {
            *slot = (struct weft_slot){WEFT_SLOT_UPDATE, s, 0, false};
        } else if (s == n) {
            *slot = (struct weft_slot){WEFT_SLOT_FILL, -1, 0, false};
        } else if (s <= 2 * n) {
            *slot = (struct weft_slot){WEFT_SLOT_FORWARD, s - n - 1, 0, false};
            problem->slot_ns[s] = draw(b, 500, 1500);
        } else if (s <= 3 * n) {
            *slot = (struct weft_slot){WEFT_SLOT_BACKWARD, 3 * n - s, 0, false};
            problem->slot_ns[s] = draw(b, 1000, 3000);
        } else if (s == 3 * n + 1) {
            *slot = (struct weft_slot){WEFT_SLOT_DRAIN, -1, 0, false};
        } else {
            *slot = (struct weft_slot){WEFT_SLOT_NORM, -1, 0, false};
            problem->slot_ns[s] = 25;
        }
        problem->slot_names[s] = weft_pool_format(&problem->pool, "slot%d", s);
        cr_assert_not_null(problem->slot_names[s]);
    }
}

struct weft_problem *tiny_problem(const struct tiny_shape *shape, uint64_t seed)
{
    struct weft_problem *problem = calloc(1, sizeof *problem);
    cr_assert_not_null(problem);
    struct tiny_builder b = {.problem = problem, .shape = shape, .seed = seed};
    problem->ranks = 2;
    problem->period = (struct weft_period_rule){.n_micro = 1, .group = 1};
    problem->profile_source = "analytic";
    problem->n_slots = 3 * shape->n_units + 3;
    problem->n_decisions = shape->n_units;
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    cr_assert_eq(weft_problem_networks(problem, shape->two_networks ? 2 : 1, full, NULL), WEFT_OK);
    for (int32_t lane = WEFT_LANE_FIRST; shape->contends && lane < problem->n_lanes; lane++) {
        problem->lanes[lane].rates.compute = (int32_t)draw(&b, WEFT_RATE_ONE / 2, WEFT_RATE_ONE);
        problem->lanes[lane].rates.own = (int32_t)draw(&b, WEFT_RATE_ONE / 2, WEFT_RATE_ONE);
    }
    problem->agree_ns = 11;
    weft_problem_device_alone(problem, INT64_MAX);
    problem->slots = array_tiny(&b, problem->n_slots, sizeof *problem->slots);
    problem->slot_names = array_tiny(&b, problem->n_slots, sizeof *problem->slot_names);
    problem->slot_ns = array_tiny(&b, problem->n_slots, sizeof *problem->slot_ns);
    problem->decisions = array_tiny(&b, problem->n_decisions, sizeof *problem->decisions);
    problem->items = array_tiny(&b, 5 * problem->n_decisions, sizeof *problem->items);
    problem->common = array_tiny(&b, problem->n_decisions + 1, sizeof *problem->common);
    by_policy_kinds(problem);
    add_slots_tiny(&b);
    for (int32_t u = 0; u < shape->n_units; u++) {
        add_unit_tiny(&b, u);
        /* Activations, saved from forward to backward. */
        problem->common[problem->n_common++] =
            (struct weft_hold){.category = WEFT_CATEGORY_ACTIVATIONS,
                               .first = shape->n_units + 1 + u,
                               .last = 3 * shape->n_units - u,
                               .bytes = 256 * draw(&b, 0, 30)};
    }
    problem->common[problem->n_common++] =
        (struct weft_hold){WEFT_CATEGORY_BASE, 0, problem->n_slots - 1, 1000, 0};
    cr_assert_eq(weft_problem_link(problem, "tiny", NULL), WEFT_OK);
    return problem;
}

void tiny_set_limit(struct weft_problem *problem, double share)
{
    struct weft_digest *table = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    problem->tiers[0].limit_bytes =
        table->least_bytes + (int64_t)(share * (double)(table->most_bytes - table->least_bytes));
    weft_digest_destroy(table);
}

struct weft_problem *tiny_problem_of(uint64_t seed, int32_t most_blocks)
{
    bool three = seed % 3 == 0;
    struct tiny_shape shape = {.n_units = three ? 3 : 2,
                               .most_blocks = three ? 1 : most_blocks,
                               .policies = three ? 12 : 15,
                               .load = 0.1 * (double)(seed % 25),
                               .contends = seed % 7 == 1,
                               .two_networks = seed % 5 == 1};
    struct weft_problem *problem = tiny_problem(&shape, seed);
    tiny_set_limit(problem, 0.04 * (double)(seed % 13));
    return problem;
}

void tiny_draw_strategies(const struct weft_problem *problem, unsigned seed, int32_t *strategies)
{
    srand(seed);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        do {
            int policy = rand() % WEFT_POLICY_COUNT;
            strategies[u] =
                weft_decision_of_policy(&problem->decisions[u], (enum weft_policy)policy);
        } while (strategies[u] < 0);
    }
}
