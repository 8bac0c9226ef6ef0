/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/proof.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/tiny.h"

static void init_proof(struct proof_rig *f, const struct tiny_shape *shape, uint64_t seed,
                       double share)
{
    f->problem = tiny_problem(shape, seed);
    tiny_set_limit(f->problem, share);
    proof_rig_begin(f, 9);
}

static void draw_prices_proof(struct proof_rig *f, uint64_t seed, uint64_t trial)
{
    double size = pow(10, (double)(trial % 9) - 7), limit = (double)(trial % 4) / 3;
    for (int32_t i = 0; i < f->dual->n_moving * f->dual->n_slots; i++) {
        double draw = weft_rng_uniform(seed, 2 * trial, (uint64_t)i);
        f->dual->lambda[i] = draw < limit ? 1 : draw * (double)(trial % 2);
    }
    for (int32_t i = f->dual->n_slots; i < f->dual->n_moving * f->dual->n_slots; i++) {
        double room = 1 - f->dual->lambda[i - f->dual->n_slots]; /* at most 1 in sum */
        if (f->dual->lambda[i] > room) f->dual->lambda[i] = room;
    }
    for (int32_t s = 0; s < f->dual->n_slots; s++) {
        double draw = weft_rng_uniform(seed, 2 * trial + 1, (uint64_t)s);
        f->dual->mu[s] = draw < 0.7 ? 0 : size * draw * 1e3;
    }
    /* Whole rows of steps from small to large, a slot as often as it comes; half of them free. */
    for (uint64_t k = 0; k < 3; k++) {
        int32_t slot = (int32_t)weft_rng_below(seed + k, trial, 3, (uint64_t)f->dual->n_slots);
        int64_t step = 1 + (int64_t)weft_rng_below(seed + k, trial, 4, UINT64_C(256) << trial % 8);
        if (trial % 3 == 0) step = f->problem->items[0].item.stair_bytes;
        uint8_t reference[ENUMERATE_MOST_UNITS] = {0};
        for (int32_t u = 0; u < f->problem->n_decisions; u++) {
            uint64_t drawn = weft_rng_below(seed + k, trial, 6 + (uint64_t)u, WEFT_POLICY_COUNT);
            bool may = drawn < (uint64_t)f->problem->decisions[u].n_strategies;
            reference[u] = may ? (uint8_t)drawn : (uint8_t)f->table->leanest[u];
        }
        int32_t row = weft_dual_add_row(f->dual, slot, step, reference, NULL);
        double draw = weft_rng_uniform(seed + k, trial, 5);
        if (row >= 0) f->dual->nu[row] = draw < 0.5 ? 0 : size * draw * 1e3;
    }
}

/* The bound of any prices is below the best plan of all, in every box of strategies below the best
 * of that box; and the value in doubles is the exact one. */
Test(proof, no_prices_prove_too_much, .timeout = 900)
{
    double best_ratio = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        if (!test_draws(seed, 2, 8)) continue;
        struct tiny_shape shape = {.n_units = 2,
                                   .most_blocks = 1 + (int32_t)(seed % 2),
                                   .policies = 15,
                                   .load = 0.2 * (double)(seed % 9),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct proof_rig f;
        init_proof(&f, &shape, seed, 0.05 * (double)(seed % 9));
        int32_t best[ENUMERATE_MOST_UNITS];
        int64_t best_ns = enumerate_best(f.problem, f.problem->tiers[0].limit_bytes, best);
        uint64_t box[2] = {UINT64_C(1) << best[0], UINT64_C(1) << best[1]};
        cr_assert_geq(best_ns, 0);
        for (uint64_t trial = 0; trial < 200; trial++) {
            struct weft_proof *proof = NULL;
            cr_assert_eq(weft_proof_create(f.problem, 1, &proof, NULL), WEFT_OK);
            draw_prices_proof(&f, seed, trial);
            cr_assert_eq(weft_proof_offer(proof, 0, f.dual, NULL), WEFT_OK);
            int64_t whole_ns = weft_proof_bound_ns(proof);
            weft_box_restrict(proof->box, &(struct weft_facts){.allowed = box});
            cr_assert_eq(weft_prices_apply(proof->box, &proof->prices[0], &proof->priced[0], NULL),
                         WEFT_OK);
            int64_t box_ns = weft_priced_bound_ns(f.problem, &proof->priced[0], box);
            cr_assert_leq(whole_ns, box_ns);
            cr_assert_leq(box_ns, best_ns, "seed %d trial %d", (int)seed, (int)trial);
            weft_dual_evaluate(f.dual, proof->box);
            double error = f.dual->value_ns - (double)box_ns;
            cr_assert(box_ns == 0 || fabs(error) < 1 + 1e-6 * (double)best_ns,
                      "seed %d trial %d: %g, exactly %lld", (int)seed, (int)trial, f.dual->value_ns,
                      (long long)box_ns);
            double ratio = (double)box_ns / (double)best_ns;
            if (ratio > best_ratio) best_ratio = ratio;
            weft_proof_destroy(proof);
        }
        proof_rig_end(&f);
    }
    cr_assert_gt(best_ratio, TEST_CASES(0.9, 0), "%g",
                 best_ratio); /* a sanitizer has five problems */
}

/* Ascent leaves a bound that is never below the trivial ones and never above the best plan. */
Test(proof, ascent_climbs_and_stays_below_the_best_plan, .timeout = 900)
{
    double sum = 0;
    int n = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        if (!test_draws(seed, 3, 10)) continue;
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 2),
                                   .most_blocks = 1,
                                   .policies = seed % 2 ? 12 : 15,
                                   .load = 0.1 * (double)(seed % 20)};
        struct proof_rig f;
        const char *by = NULL;
        init_proof(&f, &shape, seed, 0.05 * (double)(seed % 9));
        int64_t best_ns = enumerate_best(f.problem, f.problem->tiers[0].limit_bytes, NULL);
        cr_assert_eq(weft_proof_offer_trivial(f.proof, f.dual, &by, NULL), WEFT_OK);
        int64_t trivial_ns = weft_proof_bound_ns(f.proof);
        weft_proof_enter(f.proof, 0);
        weft_dual_take(f.dual, &f.proof->prices[f.proof->nodes[0].prices]);
        weft_dual_ascend(f.dual, f.proof->box, (double)best_ns, (double)best_ns, 500);
        cr_assert_eq(weft_proof_offer(f.proof, 0, f.dual, NULL), WEFT_OK);
        cr_assert_geq(weft_proof_bound_ns(f.proof), trivial_ns);
        cr_assert_leq(weft_proof_bound_ns(f.proof), best_ns);
        sum += (double)weft_proof_bound_ns(f.proof) / (double)best_ns;
        n++;
        proof_rig_end(&f);
    }
    cr_assert_gt(sum / n, 0.95, "bound by optimum on average %g", sum / n);
}

/* A tree of leaves becomes a certificate that its checker accepts, and proves the weakest. */
Test(proof, a_tree_becomes_a_certificate)
{
    struct tiny_shape shape = {.n_units = 3, .most_blocks = 1, .policies = 15, .load = 1};
    struct proof_rig f;
    struct weft_pool pool = {0};
    struct weft_certificate certificate;
    struct weft_error err = {0};
    int64_t proven_ns = 0;
    init_proof(&f, &shape, 5, 0.2);
    weft_dual_reset(f.dual, WEFT_LANE_COMPUTE);
    cr_assert_eq(weft_proof_offer(f.proof, 0, f.dual, NULL), WEFT_OK);
    cr_assert(!weft_proof_branch(f.proof, 0, 1, 15), "the other part would have no policy");
    cr_assert(weft_proof_branch(f.proof, 0, 1, 1));
    cr_assert(weft_proof_branch(f.proof, 2, 0, 3));
    cr_assert_eq(weft_proof_weakest(f.proof) > 0, 1);
    for (int32_t node = 0; node < f.proof->n_nodes; node++) {
        if (f.proof->nodes[node].children != 0) continue;
        weft_proof_enter(f.proof, node);
        cr_assert(!f.proof->box->empty);
        weft_dual_reset(f.dual, WEFT_LANE_COMPUTE);
        weft_dual_ascend(f.dual, f.proof->box, 2 * (double)f.proof->nodes[node].bound_ns, INFINITY,
                         100 * node);
        cr_assert_eq(weft_proof_offer(f.proof, node, f.dual, NULL), WEFT_OK);
    }
    int64_t bound_ns = weft_proof_bound_ns(f.proof);
    cr_assert_eq(f.proof->nodes[weft_proof_weakest(f.proof)].bound_ns, bound_ns);
    cr_assert_eq(weft_proof_certificate(f.proof, &pool, &certificate, NULL), WEFT_OK);
    cr_assert_eq(certificate.n_nodes, 5);
    cr_assert_eq(weft_certificate_check(&certificate, f.problem, bound_ns, &proven_ns, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(proven_ns, bound_ns);
    cr_assert_eq(weft_certificate_check(&certificate, f.problem, bound_ns + 1, NULL, &err),
                 WEFT_E_DATA);
    certificate.n_nodes--;
    cr_assert_eq(weft_certificate_check(&certificate, f.problem, 1, NULL, &err), WEFT_E_DATA);
    weft_pool_finish(&pool);
    proof_rig_end(&f);
}

/* Prices made for one side of a branch are offered to the other: whatever they are, they prove no
 * less than before, no more than there is, and the certificate proves what the proof says. */
Test(proof, offers_prices_of_other_nodes, .timeout = 900)
{
    int n_better = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct tiny_shape shape = {.n_units = 3,
                                   .most_blocks = 2,
                                   .policies = 15,
                                   .load = 0.3 + 0.1 * (double)(seed % 12)};
        struct proof_rig f;
        init_proof(&f, &shape, seed, 0.05 * (double)(seed % 6));
        struct weft_proof *proof = f.proof;
        struct weft_search *search = f.search;
        struct weft_certificate certificate = {0};
        int64_t proven_ns;
        bool better;
        weft_search_greedy(search);
        double step_ns = (double)search->step_ns;
        draw_prices_proof(&f, seed, 40);
        cr_assert_eq(weft_proof_offer(proof, 0, f.dual, NULL), WEFT_OK);
        cr_assert(weft_proof_branch(proof, 0, 0, weft_decision_all(&f.problem->decisions[0]) & 5));
        cr_assert(weft_proof_branch(proof, 1, 1, weft_decision_all(&f.problem->decisions[1]) & 6));
        weft_proof_enter(proof, 2);
        if (!proof->box->empty) weft_dual_ascend(f.dual, proof->box, step_ns, INFINITY, 100);
        cr_assert_eq(weft_proof_offer(proof, 2, f.dual, NULL), WEFT_OK);
        for (int32_t leaf = 3; leaf <= 4; leaf++) {
            int64_t before_ns = proof->nodes[leaf].bound_ns;
            cr_assert_eq(weft_proof_offer_known(proof, leaf, &better, NULL), WEFT_OK);
            cr_assert_eq(better, proof->nodes[leaf].bound_ns > before_ns);
            n_better += better;
            before_ns = proof->nodes[leaf].bound_ns;
            cr_assert_eq(weft_proof_offer_known(proof, leaf, &better, NULL), WEFT_OK);
            cr_assert(!better, "once is enough");
            cr_assert_eq(proof->nodes[leaf].bound_ns, before_ns);
        }
        /* A branch below prices that were made elsewhere. */
        if (weft_proof_branch(proof, 3, 2, weft_decision_all(&f.problem->decisions[2]) & 9)) {
            cr_assert_geq(proof->nodes[5].bound_ns, proof->nodes[3].bound_ns);
            cr_assert_geq(proof->nodes[6].bound_ns, proof->nodes[3].bound_ns);
        }
        cr_assert_leq(weft_proof_bound_ns(proof), search->step_ns);
        struct weft_pool pool = {0};
        cr_assert_eq(weft_proof_certificate(proof, &pool, &certificate, NULL), WEFT_OK);
        cr_assert_eq(weft_certificate_check(&certificate, f.problem, weft_proof_bound_ns(proof),
                                            &proven_ns, NULL),
                     WEFT_OK);
        weft_pool_finish(&pool);
        proof_rig_end(&f);
    }
    cr_assert_gt(n_better, 10);
}

/* No plan holds less than its strategies' lean rows, and blocking gathers hold no more. */
static int64_t least_by_policies(const struct proof_rig *f)
{
    int32_t strategies[ENUMERATE_MOST_UNITS] = {0};
    int64_t rows[ENUMERATE_MOST_SLOTS], least = INT64_MAX;
    int32_t n_choices = 1, n_units = f->problem->n_decisions;
    for (int32_t u = 0; u < n_units; u++)
        n_choices *= WEFT_POLICY_COUNT;
    for (int32_t choice = 0; choice < n_choices; choice++) {
        bool may = true;
        for (int32_t u = 0, left = choice; u < n_units; u++, left /= WEFT_POLICY_COUNT) {
            strategies[u] = left % WEFT_POLICY_COUNT;
            may = may && strategies[u] < f->problem->decisions[u].n_strategies;
        }
        int64_t peak = may ? weft_digest_lean_rows(f->table, strategies, rows, NULL) : INT64_MAX;
        if (peak < least) least = peak;
    }
    return least;
}

/* The least limit is the least of all strategies, and one byte below it weft_prove proves that
 * nothing fits, by a certificate that its checker accepts. The last three seeds are the rare ones
 * of 7,000 where it takes a tree, or where changing two units at a time does not lead to the least.
 */
Test(proof, refuses_one_byte_below_the_least, .timeout = 900)
{
    static const uint64_t rare[] = {2531, 6131, 7055};
    int32_t most_nodes = 0;
    for (uint64_t i = 1; i <= 1500 + sizeof rare / sizeof rare[0]; i++) {
        uint64_t seed = i <= 1500 ? i : rare[i - 1501];
        struct tiny_shape shape = {.n_units = 1 + (int32_t)(seed % 4),
                                   .most_blocks = 1 + (int32_t)(seed % 3),
                                   .policies = (uint32_t)(seed / 7 % 15 + 1) | (seed % 2 ? 4u : 1u),
                                   .load = 0.3 * (double)(seed % 7),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct proof_rig f;
        init_proof(&f, &shape, seed, 0);
        int64_t least = f.table->least_bytes;
        cr_assert_eq(least, least_by_policies(&f), "seed %d", (int)seed);
        cr_assert_eq(least, f.table->least_proven_bytes, "seed %d", (int)seed);
        for (int below = 0; below <= 1; below++) {
            struct weft_pool pool = {0};
            struct weft_outcome outcome = {0};
            struct weft_error err = {0};
            int64_t proven_ns = 0;
            f.problem->tiers[0].limit_bytes = least - below;
            cr_assert_eq(weft_prove(f.problem, NULL, &pool, &outcome, NULL), WEFT_OK);
            cr_assert_eq(weft_certificate_check(&outcome.certificate, f.problem, outcome.bound_ns,
                                                &proven_ns, &err),
                         WEFT_OK, "seed %d: %s", (int)seed, err.text);
            cr_assert_eq(proven_ns == WEFT_PROBLEM_MOST, below == 1, "seed %d, %d below: %lld",
                         (int)seed, below, (long long)proven_ns);
            if (outcome.certificate.n_nodes > most_nodes) most_nodes = outcome.certificate.n_nodes;
            weft_pool_finish(&pool);
        }
        proof_rig_end(&f);
    }
    cr_assert_gt(most_nodes, 1, "the rare ones take a tree");
}

/* Without rows it proves less, and what it proves holds. */
Test(proof, a_quick_proof_rules_out_nothing_by_rows)
{
    int n_less = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct tiny_shape shape = {
            .n_units = 3, .most_blocks = 2, .policies = 15, .load = 0.2 * (double)(seed % 7)};
        struct proof_rig f;
        struct weft_pool pool = {0};
        struct weft_outcome outcomes[2] = {{0}, {0}};
        init_proof(&f, &shape, seed, 0.1 * (double)(seed % 4));
        for (int quick = 0; quick < 2; quick++) {
            struct weft_outcome *outcome = &outcomes[quick];
            cr_assert_eq(weft_proof_trivial(f.table, quick > 0, &pool, outcome, NULL), WEFT_OK);
            cr_assert_eq(weft_certificate_check(&outcome->certificate, f.problem, outcome->bound_ns,
                                                NULL, NULL),
                         WEFT_OK);
        }
        cr_assert_leq(outcomes[1].bound_ns, outcomes[0].bound_ns);
        n_less += outcomes[1].bound_ns < outcomes[0].bound_ns;
        weft_pool_finish(&pool);
        proof_rig_end(&f);
    }
    cr_assert_gt(n_less, 0);
}

/* Ascent towards a step that no plan needs to have proves no less, and its certificate holds. */
Test(proof, ascent_raises_a_bound_that_its_certificate_proves)
{
    int n_more = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct tiny_shape shape = {.n_units = 3,
                                   .most_blocks = 2,
                                   .policies = 15,
                                   .load = 0.2 * (double)(seed % 7),
                                   .two_networks = seed % 4 == 1};
        struct proof_rig f;
        struct weft_pool pool = {0};
        struct weft_outcome trivial = {0}, raised = {0};
        struct weft_work work = {0};
        init_proof(&f, &shape, seed, 0.1 * (double)(seed % 4));
        cr_assert_eq(weft_prove(f.problem, NULL, &pool, &trivial, NULL), WEFT_OK);
        const struct weft_ascent ascent = {
            .target_ns = 2 * trivial.bound_ns, .units = 1000000, .work = &work};
        cr_assert_eq(weft_proof_ascended(f.table, &ascent, &pool, &raised, NULL), WEFT_OK);
        cr_assert_eq(
            weft_certificate_check(&raised.certificate, f.problem, raised.bound_ns, NULL, NULL),
            WEFT_OK);
        cr_assert_geq(raised.bound_ns, trivial.bound_ns);
        cr_assert_gt(work.spent, 0);
        n_more += raised.bound_ns > trivial.bound_ns;
        weft_pool_finish(&pool);
        proof_rig_end(&f);
    }
    cr_assert_gt(n_more, 0);
}
