/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/trim.h"

#include <criterion/criterion.h>
#include <math.h>

#include "base/rng.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/tiny.h"

enum { TRIM_MOST_NODES = 61 };

struct trim_fixture {
    struct proof_rig rig;
    int32_t units[4];
    struct weft_group group; /* of all units; n_decisions 0: none */
};

static void init_trim(struct trim_fixture *f, uint64_t seed)
{
    struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 2),
                               .most_blocks = seed % 2 ? 1 : 2,
                               .policies = seed % 4 < 2 ? 12 : 15,
                               .load = 0.2 + 0.1 * (double)(seed % 15),
                               .contends = seed % 5 == 1,
                               .two_networks = seed % 7 == 1};
    f->rig.problem = tiny_problem(&shape, seed);
    tiny_set_limit(f->rig.problem, 0.08 * (double)(seed % 9));
    proof_rig_begin(&f->rig, TRIM_MOST_NODES);
    weft_search_greedy(f->rig.search);
    f->group = (struct weft_group){.strategies = UINT64_C(1) << (seed % WEFT_POLICY_COUNT),
                                   .decisions = f->units};
    if (seed % 3 != 0) return;
    for (int32_t u = 0; u < f->rig.problem->n_decisions; u++)
        f->units[f->group.n_decisions++] = u;
    cr_assert_eq(weft_proof_set_groups(f->rig.proof, &f->group, 1, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_set_groups(f->rig.dual, &f->group, 1, NULL), WEFT_OK);
}

static void climb_trim(struct trim_fixture *f, int32_t node)
{
    weft_proof_enter(f->rig.proof, node);
    if (!f->rig.proof->box->empty) {
        weft_dual_take(f->rig.dual, &f->rig.proof->prices[f->rig.proof->nodes[node].prices]);
        weft_dual_ascend(f->rig.dual, f->rig.proof->box, (double)f->rig.search->step_ns, INFINITY,
                         60);
    }
    cr_assert_eq(weft_proof_offer(f->rig.proof, node, f->rig.dual, NULL), WEFT_OK);
}

/* Divides a leaf at some milestone, some unit's strategies or some count; false when what was drawn
 * does not. */
static bool divide_trim(struct trim_fixture *f, int32_t node, uint64_t seed, uint64_t turn)
{
    struct weft_milestone at = {.reached = true};
    const struct weft_problem *problem = f->rig.problem;
    int32_t unit = (int32_t)weft_rng_below(seed, turn, 1, (uint64_t)problem->n_decisions);
    uint64_t strategies = 1 + weft_rng_below(seed, turn, 2, 14);
    if (turn % 3 == 1 && f->group.n_decisions > 0) {
        struct weft_count count = {.reached = true};
        count.n_decisions =
            1 + (int32_t)weft_rng_below(seed, turn, 7, (uint64_t)f->group.n_decisions);
        return weft_proof_branch_count(f->rig.proof, node, &count);
    }
    if (turn % 3 == 0) return weft_proof_branch(f->rig.proof, node, unit, strategies);
    at.item = (int32_t)weft_rng_below(seed, turn, 3, (uint64_t)problem->n_items);
    const struct weft_item *item = &problem->items[at.item].item;
    uint64_t width = (uint64_t)(item->last - item->first + 1);
    at.n_blocks = 1 + (int32_t)weft_rng_below(seed, turn, 4, (uint64_t)item->n_blocks);
    at.slot = item->first + (int32_t)weft_rng_below(seed, turn, 5, width);
    at.moment = (enum weft_moment)weft_rng_below(seed, turn, 6, WEFT_MOMENT_COUNT);
    return weft_milestone_is_of(&at, problem) && weft_proof_branch_at(f->rig.proof, node, &at);
}

/* Only one child of every second division gets prices of its own, so that there are chains. */
static void grow_trim(struct trim_fixture *f, uint64_t seed)
{
    const char *by;
    cr_assert_eq(weft_proof_offer_trivial(f->rig.proof, f->rig.dual, &by, NULL), WEFT_OK);
    climb_trim(f, 0);
    for (uint64_t turn = 0; turn < 60; turn++) {
        int32_t node = weft_proof_weakest(f->rig.proof);
        if (turn % 4 == 1)
            node = (int32_t)weft_rng_below(seed, turn, 0, (uint64_t)f->rig.proof->n_nodes);
        if (f->rig.proof->nodes[node].children != 0 || !divide_trim(f, node, seed, turn)) continue;
        int32_t first = f->rig.proof->nodes[node].children;
        if (turn % 2 == 0) climb_trim(f, first);
        climb_trim(f, first + 1);
    }
}

static int64_t proves_trim(const struct trim_fixture *f, int32_t *n_nodes)
{
    struct weft_pool pool = {0};
    struct weft_certificate certificate = {0};
    struct weft_error err = {0};
    int64_t proven_ns = 0;
    cr_assert_eq(weft_proof_certificate(f->rig.proof, &pool, &certificate, NULL), WEFT_OK);
    cr_assert_eq(weft_certificate_check(&certificate, f->rig.problem,
                                        weft_proof_bound_ns(f->rig.proof), &proven_ns, &err),
                 WEFT_OK, "%s", err.text);
    *n_nodes = certificate.n_nodes;
    weft_pool_finish(&pool);
    return proven_ns;
}

/* However soon it has to end, the tree is whole and proves_trim what it did and nothing false; the
 * longer it may take, the smaller the tree. */
Test(trim, leaves_a_smaller_tree_that_proves_no_less, .timeout = 900)
{
    int64_t n_before = 0, n_after = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        if (!test_draws(seed, 3, 10)) continue;
        int64_t best_ns = -1;
        for (int64_t boxes = 0; boxes <= 1000000; boxes = boxes * 3 + 1) {
            struct trim_fixture f;
            int32_t before, after;
            init_trim(&f, seed);
            if (best_ns < 0)
                best_ns = enumerate_best(f.rig.problem, f.rig.problem->tiers[0].limit_bytes, NULL);
            grow_trim(&f, seed);
            int64_t bound_ns = weft_proof_bound_ns(f.rig.proof),
                    proven_ns = proves_trim(&f, &before);
            cr_assert_eq(weft_trim(f.rig.proof, f.rig.search, boxes, NULL), WEFT_OK);
            cr_assert_geq(weft_proof_bound_ns(f.rig.proof), bound_ns);
            int64_t trimmed_ns = proves_trim(&f, &after);
            cr_assert_leq(trimmed_ns, best_ns, "seed %d, %lld boxes", (int)seed, (long long)boxes);
            cr_assert_leq(after, before);
            if (boxes < 100000) {
                proof_rig_end(&f.rig);
                continue;
            }
            cr_assert_eq(weft_proof_bound_ns(f.rig.proof), proven_ns, "seed %d", (int)seed);
            n_before += before;
            n_after += after;
            proof_rig_end(&f.rig);
        }
    }
    cr_assert_lt(n_after, n_before / 2, "%lld of %lld", (long long)n_after, (long long)n_before);
}

/* Late it still looks at a few boxes, one of which is often enough: what it leaves is smaller, and
 * proves_trim what the tree did. */
Test(trim, is_worth_some_boxes_when_late, .timeout = 900)
{
    int64_t n_before = 0, n_after = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(60, 12); seed++) {
        struct trim_fixture f;
        int32_t before, after;
        init_trim(&f, seed);
        grow_trim(&f, seed);
        int64_t bound_ns = weft_proof_bound_ns(f.rig.proof);
        proves_trim(&f, &before);
        struct weft_work work = {.spent = 1};
        f.rig.search->budget = (struct weft_budget){&work, 1};
        cr_assert(weft_search_is_spent(f.rig.search));
        cr_assert_eq(weft_trim(f.rig.proof, f.rig.search, INT64_MAX, NULL), WEFT_OK);
        cr_assert_eq(weft_proof_bound_ns(f.rig.proof), bound_ns, "seed %d", (int)seed);
        cr_assert_geq(proves_trim(&f, &after), bound_ns);
        n_before += before;
        n_after += after;
        proof_rig_end(&f.rig);
    }
    cr_assert_lt(n_after, n_before, "%lld of %lld", (long long)n_after, (long long)n_before);
}

/* With all the time that it wants: of what is left no split can be taken away alone. */
Test(trim, what_is_left_is_needed, .timeout = 900)
{
    int n_splits = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(400, 90); seed++) {
        struct trim_fixture f;
        init_trim(&f, seed);
        grow_trim(&f, seed);
        cr_assert_eq(weft_trim(f.rig.proof, f.rig.search, INT64_MAX, NULL), WEFT_OK);
        int64_t bound_ns = weft_proof_bound_ns(f.rig.proof);
        for (int32_t i = 1; i < f.rig.proof->n_nodes; i++) {
            struct weft_proof_node *node = &f.rig.proof->nodes[i];
            int32_t first = f.rig.proof->nodes[node->parent].children;
            if (node->bound_ns == INT64_MAX || node->whole || f.rig.proof->nodes[first].whole ||
                f.rig.proof->nodes[first + 1].whole || node->children != 0)
                continue;
            int64_t own_ns;
            node->whole = true;
            cr_assert_eq(weft_proof_measure(f.rig.proof, i, &own_ns, NULL), WEFT_OK);
            cr_assert_lt(own_ns, bound_ns, "seed %d node %d", (int)seed, i);
            node->whole = false;
            n_splits++;
        }
        proof_rig_end(&f.rig);
    }
    cr_assert_gt(n_splits, TEST_CASES(30, 5), "%d", n_splits);
}
