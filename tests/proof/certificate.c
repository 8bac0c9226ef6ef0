/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/certificate.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/proof/small_prices.h"

static enum weft_status check(struct fixture *f, int64_t bound_ns, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_certificate_check(&f->certificate, &f->problem, bound_ns, NULL, err);
}

Test(certificate, a_tree_proves_the_least_of_its_leaves)
{
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns = 0;
    init(&f);
    f.nodes[0] = (struct weft_certificate_node){
        .kind = WEFT_NODE_STRATEGIES, .decision = 0, .strategies = DP};
    f.nodes[1] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF};
    f.nodes[2] = (struct weft_certificate_node){
        .kind = WEFT_NODE_STRATEGIES, .decision = 1, .strategies = SDP};
    f.nodes[3] = f.nodes[4] = f.nodes[1];
    f.certificate.n_nodes = 5;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 6550, &proven_ns, &err),
                 WEFT_OK);
    cr_assert_eq(proven_ns, 6550);
    cr_assert_eq(check(&f, 6551, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "proves 6550 ns (leaf 3)"), "%s", err.text);
    f.certificate.n_nodes = 4;
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "a leaf is missing"), "%s", err.text);
    f.certificate.n_nodes = 6;
    f.nodes[5] = f.nodes[1];
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "after its last leaf"), "%s", err.text);
    f.certificate.n_nodes = 5;
    f.nodes[2].decision = 0;
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "does not divide"), "%s", err.text);
}

Test(certificate, what_is_wrong_is_refused)
{
    struct fixture f;
    struct weft_error err;
    init(&f);
    cr_assert_eq(check(&f, 6550, &err), WEFT_OK, "%s", err.text);
    f.lambda[3] = WEFT_PRICE_ONE + 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "lambda of slot 3 is above 1"), "%s", err.text);
    f.lambda[3] = -1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.lambda[3] = 0;
    f.mu[8] = -1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.mu[8] = WEFT_PRICE_MOST_SUM;
    cr_assert_eq(check(&f, 0, &err), WEFT_OK, "%s", err.text);
    f.mu[7] = 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "above 2^60"), "%s", err.text);
    init(&f);
    f.prices.n_whole = 1;
    price_whole(&f, 0, 2, 100, 1);
    cr_assert_eq(check(&f, 0, &err), WEFT_OK, "%s", err.text);
    f.whole[0].row = N_SMALL_SLOTS;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "no slot"), "%s", err.text);
    price_whole(&f, 0, 2, 0, 1);
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "step of slot 2"), "%s", err.text);
    price_whole(&f, 0, 2, 1, 1);
    f.reference[1] = N_SMALL_STRATEGIES;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "that decision 1 may not have"), "%s", err.text);
    f.reference[1] = IS_DP;
    price_whole(&f, 0, 2, 1, -1);
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.whole[0].nu = WEFT_PRICE_MOST_SUM;
    f.mu[0] = 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "nu of slot 2 is too much"), "%s", err.text);
    init(&f);
    f.nodes[0].prices = 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.nodes[0].prices = 0;
    f.problem.slot_ns[3] += 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "was changed"), "%s", err.text);
    f.problem.slot_ns[3] -= 1;
    f.certificate.n_nodes = 0;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_eq(check(&f, 0, &err), WEFT_OK);
}

/* The plans that launch a block of a's gather in slot 1 and their complement are all plans. */
Test(certificate, a_tree_divides_at_milestones)
{
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns = 0;
    init(&f);
    f.nodes[0] = (struct weft_certificate_node){
        .kind = WEFT_NODE_MILESTONE, .milestone = {.item = A_GATHER, .n_blocks = 1, .slot = 1}};
    f.nodes[1] = f.nodes[2] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF};
    f.certificate.n_nodes = 3;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 6550, &proven_ns, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(proven_ns, 6550, "without prices both prove compute");
    f.certificate.n_nodes = 2;
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "a leaf is missing"), "%s", err.text);
    f.certificate.n_nodes = 3;
    f.nodes[0].milestone.n_blocks = 3;
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "asks for 3 blocks of item 0 by slot 1"), "%s", err.text);
}

/* The facts of a branch end with it: under either policy of a, b may have both again. */
Test(certificate, a_branch_is_left_as_it_was_found)
{
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns = 0;
    init(&f);
    f.nodes[0] = (struct weft_certificate_node){
        .kind = WEFT_NODE_STRATEGIES, .decision = 0, .strategies = DP};
    f.nodes[1] = f.nodes[4] = (struct weft_certificate_node){
        .kind = WEFT_NODE_STRATEGIES, .decision = 1, .strategies = SDP};
    f.nodes[2] = f.nodes[3] = f.nodes[5] = f.nodes[6] =
        (struct weft_certificate_node){.kind = WEFT_NODE_LEAF};
    f.certificate.n_nodes = 7;
    cr_assert_eq(check(&f, 6550, &err), WEFT_OK, "%s", err.text);
    /* With a price of bytes in slot 2 the last leaf proves 6050 ns of all plans in which no block
     * of b's reduction is complete by slot 6, and would prove 1000 more of those in which a's
     * gather is not launched by slot 2, which is told of another leaf alone. */
    init(&f);
    struct weft_prices both[2] = {f.prices, f.prices};
    int64_t none[N_SMALL_SLOTS] = {0};
    both[1].mu = none;
    f.problem.tiers[0].limit_bytes = 1700;
    /* a has sdp alone: dp would hold nothing, and take as much. */
    struct weft_problem_decision decisions[2] = {f.problem.decisions[0], f.problem.decisions[1]};
    decisions[0].strategies += IS_SDP;
    decisions[0].n_strategies = 1;
    f.problem.decisions = decisions;
    for (int i = A_GATHER; i <= A_ALL_REDUCE; i++)
        f.problem.items[i].item.strategies >>= IS_SDP;
    f.mu[2] = WEFT_PRICE_ONE;
    f.nodes[0] = (struct weft_certificate_node){
        .kind = WEFT_NODE_MILESTONE, .milestone = {.item = B_REDUCE, .n_blocks = 1, .slot = 6}};
    f.nodes[1] = (struct weft_certificate_node){
        .kind = WEFT_NODE_MILESTONE, .milestone = {.item = A_GATHER, .n_blocks = 1, .slot = 2}};
    f.nodes[2] = f.nodes[3] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 1};
    f.nodes[4] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 0};
    f.certificate = (struct weft_certificate){.n_prices = 2,
                                              .prices = both,
                                              .n_nodes = 5,
                                              .nodes = f.nodes,
                                              .problem = weft_problem_hash(&f.problem)};
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 0, &proven_ns, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_eq(proven_ns, 6550 - 700 + 200, "%lld", (long long)proven_ns);
}

/* Layers and modules are for other runtimes. */
Test(certificate, names_change_no_hash)
{
    static struct weft_unit_layers layers[2] = {{.last = 1}, {.first = 1, .last = 1}};
    static const char *modules[] = {"model.layers.0"};
    struct weft_problem problem = small_problem();
    const struct weft_hash before = weft_problem_hash(&problem);
    problem.names = (struct weft_problem_names){layers, 1, modules};
    cr_assert(weft_hash_equal(before, weft_problem_hash(&problem)));
    problem.ranks++;
    cr_assert(!weft_hash_equal(before, weft_problem_hash(&problem)));
}

/* Every dp costs 200 more: of plans with at least one, a price of 200 a dp proves that, whichever
 * unit has it. */
Test(certificate, a_tree_divides_by_counts)
{
    struct fixture f;
    struct weft_error err;
    const int32_t units[2] = {0, 1}, twice[2] = {1, 1};
    struct weft_group group = {DP, 2, units};
    int64_t pi = -200, proven_ns = 0;
    init(&f);
    struct weft_prices with = f.prices, prices[2] = {f.prices, f.prices};
    int64_t none = 0;
    with.pi = &pi;
    prices[0].pi = &none;
    prices[1] = with;
    f.nodes[0] = (struct weft_certificate_node){.kind = WEFT_NODE_COUNT,
                                                .count = {.group = 0, .n_decisions = 1}};
    f.nodes[1] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 1};
    f.nodes[2] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 0};
    f.certificate = (struct weft_certificate){.n_groups = 1,
                                              .groups = &group,
                                              .n_prices = 2,
                                              .prices = prices,
                                              .n_nodes = 3,
                                              .nodes = f.nodes,
                                              .problem = weft_problem_hash(&f.problem)};
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 6550, &proven_ns, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(proven_ns, 6550, "without dp");
    /* The second subtree has fewer than one. Another split leaves exactly one. */
    f.nodes[0].count.n_decisions = 2;
    f.nodes[1].prices = 0;
    f.nodes[2] = (struct weft_certificate_node){.kind = WEFT_NODE_COUNT,
                                                .count = {.group = 0, .n_decisions = 1}};
    f.nodes[3] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 1};
    f.nodes[4] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 1};
    f.certificate.n_nodes = 5;
    cr_assert_eq(check(&f, 6550, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(check(&f, 6551, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "(leaf 4)"), "%s", err.text);
    f.nodes[0].count.n_decisions = 3;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "asks for 3 decisions of group 0"), "%s", err.text);
    f.nodes[0].count = (struct weft_count){.group = 1, .n_decisions = 1};
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.nodes[0].count.group = 0;
    group.decisions = twice;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "increasing order"), "%s", err.text);
    group.decisions = units;
    pi = WEFT_PRICE_MOST_PI + 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "pi of group 0"), "%s", err.text);
}

/* Every node of a long chain knows as much as all above it. With work by depth at every leaf this
 * would take minutes. */
Test(certificate, a_long_chain_is_walked_in_time, .timeout = 900)
{
    enum { LENGTH = 200000 };
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns = 0;
    init(&f);
    struct weft_certificate_node *nodes = calloc(2 * LENGTH + 1, sizeof *nodes);
    cr_assert_not_null(nodes);
    for (int32_t k = 0; k < LENGTH; k++)
        nodes[2 * k] = (struct weft_certificate_node){
            .kind = WEFT_NODE_MILESTONE,
            .milestone = {.item = A_GATHER, .n_blocks = 1 + k % 2, .slot = 1 + k / 2 % 2}};
    f.certificate.nodes = nodes;
    f.certificate.n_nodes = 2 * LENGTH + 1;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 6550, &proven_ns, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(proven_ns, 6550);
    free(nodes);
}
