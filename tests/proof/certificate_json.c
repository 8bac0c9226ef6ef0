/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/certificate.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/problem/small_problem.h"

static void write(const struct weft_certificate *certificate, const struct weft_problem *problem,
                  struct weft_text *out)
{
    struct weft_json_writer writer;
    weft_text_init(out);
    weft_json_writer_init(&writer, out, 0);
    weft_certificate_write(certificate, problem, &writer);
}

static enum weft_status read(const char *text, const struct weft_problem *problem,
                             struct weft_pool *pool, struct weft_certificate *out,
                             struct weft_error *err)
{
    struct weft_json *document = NULL;
    *err = (struct weft_error){0};
    cr_assert_eq(weft_json_parse(text, strlen(text), "c", &document, err), WEFT_OK, "%s",
                 err->text);
    enum weft_status status =
        weft_certificate_read(weft_json_root(document), "c", problem, pool, out, err);
    weft_json_destroy(document);
    return status;
}

static void make(const struct weft_problem *problem, struct weft_pool *pool,
                 struct weft_certificate *out)
{
    static const uint8_t reference[2] = {IS_DP, IS_SDP};
    static const uint8_t relies[1] = {1};
    static const int32_t units[2] = {0, 1};
    static const struct weft_group group = {SDP, 2, units};
    *out = (struct weft_certificate){.n_prices = 2, .n_nodes = 7};
    out->prices = weft_pool_array(pool, 2, sizeof *out->prices);
    out->nodes = weft_pool_array(pool, 7, sizeof *out->nodes);
    cr_assert(out->prices && out->nodes);
    out->groups = &group;
    out->n_groups = 1;
    for (int i = 0; i < 2; i++) {
        out->prices[i].lambda = weft_pool_array(pool, N_SMALL_SLOTS, sizeof(int64_t));
        out->prices[i].mu = weft_pool_array(pool, N_SMALL_SLOTS, sizeof(int64_t));
        cr_assert(out->prices[i].lambda && out->prices[i].mu);
        for (int s = 0; s < N_SMALL_SLOTS; s++) {
            out->prices[i].lambda[s] = WEFT_PRICE_ONE / (s + 1 + i);
            out->prices[i].mu[s] = WEFT_PROBLEM_MOST / (s + 1) * i;
        }
        out->prices[i].pi = weft_pool_array(pool, 1, sizeof(int64_t));
        cr_assert_not_null(out->prices[i].pi);
        out->prices[i].pi[0] = i ? -WEFT_PRICE_MOST_PI : 12345;
        out->prices[i].n_waits = 2 * i;
        out->prices[i].waits = weft_pool_array(pool, 2, sizeof *out->prices[i].waits);
        cr_assert_not_null(out->prices[i].waits);
        out->prices[i].waits[0] = (struct weft_wait_price){3, 1, 67890};
        out->prices[i].waits[1] = (struct weft_wait_price){4, 1, WEFT_PRICE_ONE};
        out->prices[i].n_chains = i;
        out->prices[i].chains = weft_pool_array(pool, 1, sizeof *out->prices[i].chains);
        cr_assert_not_null(out->prices[i].chains);
        out->prices[i].chains[0] = (struct weft_chain_price){B_REDUCE, 24680};
        out->prices[i].n_whole = i;
        out->prices[i].whole = weft_pool_array(pool, 1, sizeof *out->prices[i].whole);
        cr_assert(out->prices[i].whole);
        out->prices[i].whole[0] =
            (struct weft_whole_price){3, 1000, WEFT_PROBLEM_MOST, reference, relies};
    }
    out->nodes[0] = (struct weft_certificate_node){
        .kind = WEFT_NODE_STRATEGIES, .decision = 1, .strategies = DP};
    out->nodes[1] = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF, .prices = 1};
    out->nodes[2] = (struct weft_certificate_node){
        .kind = WEFT_NODE_MILESTONE,
        .milestone = {.item = A_GATHER, .n_blocks = 2, .slot = 1, .moment = WEFT_ENDED}};
    out->nodes[3] = (struct weft_certificate_node){
        .kind = WEFT_NODE_LEAF, .prices = 0, .searched_ns = 4000, .steps = 5000};
    out->nodes[4] = (struct weft_certificate_node){.kind = WEFT_NODE_COUNT,
                                                   .count = {.group = 0, .n_decisions = 2}};
    out->nodes[5] = out->nodes[6] = out->nodes[1];
    out->problem = weft_problem_hash(problem);
}

Test(certificate_json, round_trip)
{
    struct weft_pool pool = {0};
    struct weft_problem problem = small_problem();
    struct weft_certificate made, copy, back;
    struct weft_error err = {0};
    struct weft_text text, again;
    make(&problem, &pool, &made);
    cr_assert_eq(weft_certificate_copy(&made, &problem, &pool, &copy, &err), WEFT_OK);
    write(&copy, &problem, &text);
    cr_assert_eq(read(weft_text_chars(&text), &problem, &pool, &back, &err), WEFT_OK, "%s",
                 err.text);
    write(&back, &problem, &again);
    cr_assert_str_eq(weft_text_chars(&text), weft_text_chars(&again));
    cr_assert_eq(back.n_prices, 2);
    cr_assert_eq(back.n_nodes, 7);
    for (int i = 0; i < 7; i++) {
        cr_assert_eq(back.nodes[i].kind, made.nodes[i].kind);
        cr_assert_eq(back.nodes[i].milestone.item, made.nodes[i].milestone.item);
        cr_assert_eq(back.nodes[i].milestone.n_blocks, made.nodes[i].milestone.n_blocks);
        cr_assert_eq(back.nodes[i].milestone.slot, made.nodes[i].milestone.slot);
        cr_assert_eq(back.nodes[i].count.group, made.nodes[i].count.group);
        cr_assert_eq(back.nodes[i].count.n_decisions, made.nodes[i].count.n_decisions);
        cr_assert_eq(back.nodes[i].decision, made.nodes[i].decision);
        cr_assert_eq(back.nodes[i].strategies, made.nodes[i].strategies);
        cr_assert_eq(back.nodes[i].prices, made.nodes[i].prices);
        cr_assert_eq(back.nodes[i].searched_ns, made.nodes[i].searched_ns);
        cr_assert_eq(back.nodes[i].steps, made.nodes[i].steps);
    }
    for (int s = 0; s < N_SMALL_SLOTS; s++)
        cr_assert_eq(back.prices[1].mu[s], made.prices[1].mu[s]);
    cr_assert_eq(back.n_groups, 1);
    cr_assert_eq(back.groups[0].strategies, made.groups[0].strategies);
    cr_assert_eq(back.groups[0].n_decisions, 2);
    cr_assert_arr_eq(back.groups[0].decisions, made.groups[0].decisions, 2 * sizeof(int32_t));
    cr_assert_eq(back.prices[0].pi[0], 12345);
    cr_assert_eq(back.prices[1].pi[0], -WEFT_PRICE_MOST_PI);
    cr_assert_eq(back.prices[0].n_waits, 0);
    cr_assert_eq(back.prices[1].n_waits, 2);
    cr_assert_eq(back.prices[1].waits[0].slot, 3);
    cr_assert_eq(back.prices[1].waits[0].lane, 1);
    cr_assert_eq(back.prices[1].waits[0].kappa, 67890);
    cr_assert_eq(back.prices[1].waits[1].slot, 4);
    cr_assert_eq(back.prices[1].waits[1].kappa, WEFT_PRICE_ONE);
    cr_assert_eq(back.prices[0].n_chains, 0);
    cr_assert_eq(back.prices[1].n_chains, 1);
    cr_assert_eq(back.prices[1].chains[0].item, B_REDUCE);
    cr_assert_eq(back.prices[1].chains[0].rho, 24680);
    cr_assert_eq(back.prices[0].n_whole, 0);
    cr_assert_eq(back.prices[1].n_whole, 1);
    cr_assert_eq(back.prices[1].whole[0].row, 3);
    cr_assert_eq(back.prices[1].whole[0].step_bytes, 1000);
    cr_assert_eq(back.prices[1].whole[0].nu, WEFT_PROBLEM_MOST);
    cr_assert_arr_eq(back.prices[1].whole[0].reference, made.prices[1].whole[0].reference, 2);
    cr_assert_eq(back.prices[1].whole[0].relies[0], 1);
    weft_text_finish(&text);
    weft_text_finish(&again);
    cr_assert_eq(read("null", &problem, &pool, &back, &err), WEFT_OK);
    cr_assert_eq(back.n_nodes, 0);
    weft_pool_finish(&pool);
}

/* Each case replaces the first occurrence of a text and names the words of the refusal. */
Test(certificate_json, hostile_ones_are_refused)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"\"problem\": \"", "\"problem\": \"x", "hexadecimal"},
        {"\"lambda\": [1099511627776, ", "\"lambda\": [", "has 8 numbers; expected 9"},
        {"\"lambda\": [1099511627776, ", "\"lambda\": [-1, ", "lambda[0] is no whole number"},
        {"\"lambda\": [1099511627776, ", "\"lambda\": [0.5, ", "lambda[0] is no whole number"},
        {"\"lane\": 1", "\"lane\": -1", "waits[0]"},
        {"\"lane\": 1", "\"lane\": 1.5", "waits[0]"},
        {"\"kappa\": 67890", "\"kappa\": \"1\"", "waits[0]"},
        {"\"kappa\": 67890", "\"kappa\": 0.5", "waits[0]"},
        {"\"waits\": [{\"slot\": 3", "\"waits\": [{\"slot\": -3", "waits[0]"},
        {"\"waits\":", "\"wait\":", "wait"},
        {"\"rho\": 24680", "\"rho\": 0.5", "chains[0]"},
        {"\"chains\": [{\"item\": ", "\"chains\": [{\"item\": -", "chains[0]"},
        {"\"chains\":", "\"chain\":", "chain"},
        {"\"mu\":", "\"my\":", "my"},
        {"\"whole\": [{\"slot\": 3", "\"whole\": [{\"slot\": 9", "whole[0]"},
        {"\"step_bytes\": 1000", "\"step_bytes\": 0", "step_bytes"},
        {"\"nu\": 9", "\"nu\": -9", "nu"},
        {"\"reference\": [0, 1]", "\"reference\": [0, 64]", "reference[1] is no strategy"},
        {"\"reference\": [0, 1]", "\"reference\": [0]", "reference has 1"},
        {"\"relies\": [1]", "\"relies\": [2]", "relies[0] is no yes or no (1 or 0)"},
        {"\"relies\": [1]", "\"relies\": []", "relies has 0"},
        {"\"whole\":", "\"holes\":", "holes"},
        {"\"decision\": 1", "\"decision\": 2", "tree[0]"},
        {"\"strategies\": [\"dp\"]", "\"strategies\": []", "strategies names none of b"},
        {"\"strategies\": [\"dp\"]", "\"strategies\": [\"fsdp\"]", "\"fsdp\" is no strategy of b"},
        {"\"prices\": 1}", "\"prices\": 2}", "tree[1]"},
        {"\"prices\": 1}", "\"prices\": -1}", "tree[1]"},
        {"\"blocks\": 2", "\"blocks\": 3", "tree[2]: 3 blocks by slot 1"},
        {"\"steps\": 5000", "\"steps\": 0", "steps"},
        {"\"steps\": 5000", "\"steps\": 2097153", "steps"},
        {"\"steps\": 5000", "\"steps\": 0.5", "steps"},
        {", \"steps\": 5000", "", "it has one of searched_ns and steps, not both"},
        {"\"searched_ns\": 4000, ", "", "it has one of searched_ns and steps, not both"},
        {"\"searched_ns\": 4000", "\"searched_ns\": 0", "searched_ns"},
        {"\"searched_ns\": 4000", "\"searched_ns\": \"1\"", "searched_ns"},
        {"\"blocks\": 2", "\"blocks\": 0", "tree[2]"},
        {"\"blocks\": 2, \"slot\": 1", "\"blocks\": 2, \"slot\": 3", "tree[2]"},
        {"\"item\": 0, ", "\"item\": 990, ", "tree[2]"},
        {"\"item\": 0, ", "\"reached\": 1, \"item\": 0, ", "reached"},
        {"\"pi\": [12345]", "\"pi\": []", "pi has 0"},
        {"\"pi\": [12345]", "\"pi\": [0.5]", "pi[0] is no whole number"},
        {"\"decisions\": [0, 1]", "\"decisions\": [0, 2]",
         "groups[0]: decisions[1] is no decision"},
        {"\"decisions\": [0, 1]", "\"decisions\": [0, 1, 1]", "groups[0]: 3 decisions of 2"},
        {"{\"strategies\": [\"sdp\"], ", "{\"strategies\": [4], ", "groups[0]"},
        {"\"decisions\": [0, 1]", "\"decisions\": []", "groups[0]"},
        {"\"group\": 0", "\"group\": 1", "tree[4]"},
        {"\"decisions\": 2}", "\"decisions\": 3}", "tree[4]"},
        {"\"decisions\": 2}", "\"decisions\": 0}", "tree[4]"},
        {"\"groups\":", "\"group\":", "group"},
        {"\"tree\":", "\"trees\":", "trees"},
    };
    struct weft_pool pool = {0};
    struct weft_problem problem = small_problem();
    struct weft_certificate made, back;
    struct weft_error err;
    struct weft_text text;
    make(&problem, &pool, &made);
    write(&made, &problem, &text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char changed[4096];
        const char *all = weft_text_chars(&text), *at = strstr(all, cases[i].from);
        cr_assert_not_null(at, "%s", cases[i].from);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - all), all, cases[i].to,
                 at + strlen(cases[i].from));
        cr_assert_eq(read(changed, &problem, &pool, &back, &err), WEFT_E_DATA, "%s", cases[i].to);
        cr_assert_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].to, err.text);
    }
    weft_text_finish(&text);
    weft_pool_finish(&pool);
}
