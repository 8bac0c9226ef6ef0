/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/fixing.h"

#include <criterion/criterion.h>
#include <math.h>

#include "base/rng.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/tiny.h"

enum { FIXING_MOST_NODES = 401 };

struct fixing_fixture {
    struct proof_rig rig;
    uint8_t keeper[ENUMERATE_MOST_UNITS * WEFT_POLICY_COUNT];
};

/* A limit of all that helps where `share` is 1. */
static void init_fixing(struct fixing_fixture *f, const struct tiny_shape *shape, uint64_t seed,
                        double share)
{
    f->rig.problem = tiny_problem(shape, seed);
    tiny_set_limit(f->rig.problem, share);
    if (share >= 1) f->rig.problem->tiers[0].limit_bytes *= 10;
    proof_rig_begin(&f->rig, FIXING_MOST_NODES);
    const struct weft_problem *problem = f->rig.problem;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        for (int32_t p = 0; p < problem->decisions[u].n_strategies; p++)
            f->keeper[weft_strategy_at(problem, u, p)] = (uint8_t)p;
}

static int32_t divide_fixing(struct fixing_fixture *f, int64_t enough_ns)
{
    int32_t rest = -1;
    struct weft_error err = {0};
    cr_assert_eq(weft_fixing_divide(f->rig.proof, f->rig.dual, f->rig.search, f->keeper, 0,
                                    enough_ns, FIXING_MOST_NODES / 2, &rest, &err),
                 WEFT_OK, "%s", err.text);
    return rest;
}

/* Good prices for a leaf. */
static void climb_fixing(struct fixing_fixture *f, int32_t node, int64_t target_ns)
{
    weft_proof_enter(f->rig.proof, node);
    if (f->rig.proof->box->empty) return;
    weft_dual_take(f->rig.dual, &f->rig.proof->prices[f->rig.proof->nodes[node].prices]);
    weft_dual_ascend(f->rig.dual, f->rig.proof->box, (double)target_ns, INFINITY, 300);
    cr_assert_eq(weft_proof_offer(f->rig.proof, node, f->rig.dual, NULL), WEFT_OK);
}

/* It always runs: it has facts, and a rest with a higher bound. */
static const uint64_t SEED_OF_FACTS = 51;

/* What is split off has the bound that was asked for; where that is above the best plan, the plan
 * is in the rest, whatever prices are found for it; and the certificate proves what the proof says,
 * which is never above the best plan. */
Test(fixing, never_cuts_off_the_best_plan, .timeout = 900)
{
    int n_facts = 0, n_narrow = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        if (seed != SEED_OF_FACTS && !test_draws(seed, 3, 12)) continue;
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 2),
                                   .most_blocks = seed % 2 ? 1 : 2,
                                   .policies = seed % 4 < 2 ? 12 : 15,
                                   .load = 0.2 + 0.1 * (double)(seed % 15),
                                   .contends = seed % 5 == 1,
                                   .two_networks = seed % 7 == 1};
        int64_t best_ns = -1;
        for (int over = -1; over <= 1; over++) {
            struct fixing_fixture f;
            const char *by = NULL;
            init_fixing(&f, &shape, seed, 0.08 * (double)(seed % 9));
            if (best_ns < 0)
                best_ns = enumerate_best(f.rig.problem, f.rig.problem->tiers[0].limit_bytes, NULL);
            cr_assert_geq(best_ns, 0);
            cr_assert_eq(weft_proof_offer_trivial(f.rig.proof, f.rig.dual, &by, NULL), WEFT_OK);
            climb_fixing(&f, 0, best_ns);
            int64_t root_ns = f.rig.proof->nodes[0].bound_ns;
            int64_t enough_ns = over > 0 ? best_ns + 1 : best_ns + over * (best_ns - root_ns) / 2;
            int32_t rest = divide_fixing(&f, enough_ns);
            climb_fixing(&f, rest, best_ns + 1);
            for (int32_t node = 1; node < f.rig.proof->n_nodes; node++) {
                if (node == rest || f.rig.proof->nodes[node].children != 0) continue;
                cr_assert_geq(f.rig.proof->nodes[node].bound_ns, enough_ns, "seed %d, node %d",
                              (int)seed, node);
                n_facts++;
            }
            if (over > 0)
                cr_assert_leq(f.rig.proof->nodes[rest].bound_ns, best_ns, "seed %d: it is cut off",
                              (int)seed);
            n_narrow += f.rig.proof->nodes[rest].bound_ns > root_ns;
            int64_t bound_ns = weft_proof_bound_ns(f.rig.proof), proven_ns = 0;
            cr_assert_leq(bound_ns, best_ns, "seed %d", (int)seed);
            struct weft_pool pool = {0};
            struct weft_certificate certificate = {0};
            struct weft_error err = {0};
            cr_assert_eq(weft_proof_certificate(f.rig.proof, &pool, &certificate, NULL), WEFT_OK);
            cr_assert_eq(
                weft_certificate_check(&certificate, f.rig.problem, bound_ns, &proven_ns, &err),
                WEFT_OK, "seed %d: %s", (int)seed, err.text);
            cr_assert_eq(proven_ns, bound_ns);
            weft_pool_finish(&pool);
            proof_rig_end(&f.rig);
        }
    }
    cr_assert_gt(n_facts, TEST_CASES_OF(300, 8, 8), "%d", n_facts);
    cr_assert_gt(n_narrow, TEST_CASES_OF(30, 2, 2), "%d", n_narrow);
}

static void draw_prices_fixing(struct fixing_fixture *f, uint64_t seed)
{
    double size = pow(10, (double)(seed % 5) - 4);
    weft_dual_reset(f->rig.dual, WEFT_LANE_COMPUTE);
    for (int32_t s = 0; s < f->rig.dual->n_slots; s++) {
        double room = 1;
        for (int32_t c = 0; c < f->rig.dual->n_moving; c++) {
            double draw = weft_rng_uniform(seed, (uint64_t)s, (uint64_t)c);
            f->rig.dual->lambda[c * f->rig.dual->n_slots + s] = room * draw;
            room -= room * draw;
        }
        double draw = weft_rng_uniform(seed, (uint64_t)s, 9);
        f->rig.dual->mu[s] = draw < 0.6 ? 0 : size * draw;
    }
}

/* True when the rest already knows that the side of a milestone has no plans in it. */
static bool is_known(struct fixing_fixture *f, int32_t rest, const struct weft_milestone *milestone)
{
    const struct weft_item *item = &f->rig.problem->items[milestone->item].item;
    struct weft_box *box = f->rig.proof->box;
    weft_proof_enter(f->rig.proof, rest);
    struct weft_told told = weft_box_tell(box, milestone);
    weft_box_make(box, f->rig.proof->allowed);
    weft_box_take_back(&told);
    return box->empty || (milestone->reached && !(box->allowed[item->decision] & item->strategies));
}

/* Without a limit nothing follows for others from what is known of one item, so that the exact
 * bound of one side of a milestone says whether fixing should have found it. */
Test(fixing, finds_all_that_one_item_shows, .timeout = 900)
{
    int n_found = 0, n_open = 0;
    for (uint64_t seed = 1; seed <= 800; seed++) {
        struct tiny_shape shape = {.n_units = 2,
                                   .most_blocks = 3,
                                   .policies = seed % 2 ? 12 : 15,
                                   .load = 0.5 + 0.1 * (double)(seed % 10),
                                   .two_networks = seed % 3 == 1};
        struct fixing_fixture f, asked;
        init_fixing(&f, &shape, seed, 1);
        init_fixing(&asked, &shape, seed, 1);
        draw_prices_fixing(&f, seed);
        draw_prices_fixing(&asked, seed);
        cr_assert_eq(weft_proof_offer(f.rig.proof, 0, f.rig.dual, NULL), WEFT_OK);
        cr_assert_eq(weft_proof_offer(asked.rig.proof, 0, asked.rig.dual, NULL), WEFT_OK);
        int64_t enough_ns = f.rig.proof->nodes[0].bound_ns + 20 + (int64_t)(seed % 7) * 100;
        int32_t rest = divide_fixing(&f, enough_ns);
        for (int32_t i = 0; i < f.rig.problem->n_items; i++) {
            const struct weft_item *item = &f.rig.problem->items[i].item;
            for (int32_t k = 0; k < 2 * item->n_blocks * (item->last - item->first + 1); k++) {
                struct weft_milestone at = {.item = i,
                                            .n_blocks = 1 + k / 2 % item->n_blocks,
                                            .slot = item->first + k / 2 / item->n_blocks,
                                            .reached = k % 2 == 0};
                if (!weft_milestone_is_of(&at, f.rig.problem)) continue;
                int32_t node = asked.rig.proof->n_nodes;
                cr_assert(weft_proof_branch_at(asked.rig.proof, 0, &at));
                node += at.reached ? 0 : 1;
                cr_assert_eq(weft_proof_reprice(asked.rig.proof, node, NULL), WEFT_OK);
                int64_t ns = asked.rig.proof->nodes[node].bound_ns;
                asked.rig.proof->nodes[0].children = 0; /* and asks for the next */
                asked.rig.proof->n_nodes = 1;
                bool known = is_known(&f, rest, &at);
                if (ns >= enough_ns + 2)
                    cr_assert(known, "seed %d item %d: %d by %d, %d: %lld of %lld", (int)seed, i,
                              at.n_blocks, at.slot, at.reached, (long long)ns,
                              (long long)enough_ns);
                if (ns < enough_ns - 2) cr_assert(!known, "seed %d item %d", (int)seed, i);
                n_found += known;
                n_open += !known;
            }
        }
        proof_rig_end(&asked.rig);
        proof_rig_end(&f.rig);
    }
    cr_assert_gt(n_found, 1000, "%d", n_found);
    cr_assert_gt(n_open, 1000, "%d", n_open);
}
