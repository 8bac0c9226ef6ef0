/* SPDX-License-Identifier: Apache-2.0 */
/* No certificate proves_soundly more than the best plan takes, whoever made it: trees drawn at
 * random with prices like a planner's, written as JSON, some of it damaged, read and checked,
 * against the best of all plans by enumeration. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "proof/certificate.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/tiny.h"

enum { ROUNDS = 150, SOUNDNESS_NODES = 63, MOST_PRICES = 8 };

struct draws {
    uint64_t seed, n;
};

static int64_t draw(struct draws *draws, int64_t below)
{
    return (int64_t)weft_rng_below(31, draws->seed, draws->n++, (uint64_t)below);
}

struct drawn {
    struct weft_pool pool;
    const struct weft_problem *problem;
    struct weft_certificate certificate;
    struct weft_group group;
    int32_t units[ENUMERATE_MOST_UNITS];
};

/* Some of the units, and some of the strategies. */
static void draw_group(struct drawn *drawn, struct draws *draws)
{
    struct weft_group *group = &drawn->group;
    group->decisions = drawn->units;
    group->n_decisions = 0;
    for (int32_t u = 0; u < drawn->problem->n_decisions; u++)
        if (draw(draws, 3) > 0) drawn->units[group->n_decisions++] = u;
    if (group->n_decisions == 0) drawn->units[group->n_decisions++] = 0;
    group->strategies = 1u + (uint64_t)draw(draws, 14);
    drawn->certificate.groups = group;
    drawn->certificate.n_groups = 1;
}

static int64_t *copy(struct drawn *drawn, const int64_t *values, size_t n)
{
    int64_t *out = weft_pool_array(&drawn->pool, n + 1, sizeof *out);
    cr_assert_not_null(out);
    for (size_t i = 0; i < n; i++)
        out[i] = values[i];
    return out;
}

/* A price as it is, most of the time. */
static void disturb(struct draws *draws, int64_t *price)
{
    int64_t kind = draw(draws, 40);
    if (kind == 0) *price = 0;
    if (kind == 1) *price /= 2;
    if (kind == 2) *price += *price / 4;
}

static uint8_t draw_strategy(const struct weft_problem *problem, struct draws *draws,
                             int32_t decision)
{
    return (uint8_t)draw(draws, problem->decisions[decision].n_strategies);
}

/* Up to two whole rows, in steps of what some block holds, which take over what a byte costs there.
 */
static void draw_whole(struct drawn *drawn, struct draws *draws, struct weft_prices *prices)
{
    const struct weft_problem *problem = drawn->problem;
    prices->n_whole = (int32_t)draw(draws, 3);
    prices->whole = weft_pool_array(&drawn->pool, 2, sizeof *prices->whole);
    cr_assert_not_null(prices->whole);
    for (int32_t k = 0; k < prices->n_whole; k++) {
        int64_t bytes = problem->items[draw(draws, problem->n_items)].item.stair_bytes;
        uint8_t *reference =
            weft_pool_array(&drawn->pool, (size_t)problem->n_decisions, sizeof *reference);
        uint8_t *relies = weft_pool_array(&drawn->pool, 1, sizeof *relies);
        cr_assert(reference && relies);
        relies[0] = draw(draws, 4) > 0;
        for (int32_t u = 0; u < problem->n_decisions; u++)
            reference[u] = draw_strategy(problem, draws, u);
        int32_t slot = (int32_t)draw(draws, problem->n_slots);
        for (int32_t n = 0; n < problem->n_slots && prices->mu[slot] == 0; n++)
            slot = slot + 1 == problem->n_slots ? 0 : slot + 1;
        prices->whole[k] =
            (struct weft_whole_price){.row = slot,
                                      .step_bytes = bytes > 0 ? bytes : 1 + draw(draws, 1000),
                                      .nu = prices->mu[slot],
                                      .reference = reference,
                                      .relies = relies};
        prices->mu[slot] = 0;
    }
}

static struct weft_prices draw_sound_prices(struct drawn *drawn, struct draws *draws,
                                            const struct weft_certificate *from)
{
    const struct weft_prices *of = &from->prices[draw(draws, from->n_prices)];
    size_t n_slots = (size_t)drawn->problem->n_slots;
    size_t n_lambda = n_slots * (size_t)weft_problem_n_moving(drawn->problem);
    struct weft_prices prices = *of;
    int64_t pi = (draw(draws, 3) - 1) * draw(draws, 100000);
    prices.lambda = copy(drawn, of->lambda, n_lambda);
    prices.mu = copy(drawn, of->mu, n_slots);
    prices.pi = copy(drawn, &pi, 1);
    for (size_t i = 0; i < n_lambda; i++)
        disturb(draws, &prices.lambda[i]);
    for (size_t s = 0; s < n_slots; s++)
        disturb(draws, &prices.mu[s]);
    draw_whole(drawn, draws, &prices);
    return prices;
}

/* A milestone of an item; false when it has none, as items of one slot may. */
static bool draw_milestone(const struct weft_problem *problem, struct draws *draws,
                           struct weft_milestone *out)
{
    out->item = (int32_t)draw(draws, problem->n_items);
    const struct weft_item *item = &problem->items[out->item].item;
    out->n_blocks = 1 + (int32_t)draw(draws, item->n_blocks);
    out->moment = (enum weft_moment)draw(draws, WEFT_MOMENT_COUNT);
    out->slot = item->first + (int32_t)draw(draws, item->last - item->first + 1);
    return weft_milestone_is_of(out, problem);
}

/* A node that divides; false when what was drawn does not. */
static bool draw_inner(struct drawn *drawn, struct draws *draws, struct weft_certificate_node *node)
{
    const struct weft_problem *problem = drawn->problem;
    *node = (struct weft_certificate_node){.kind = WEFT_NODE_MILESTONE};
    switch (draw(draws, 4)) {
    case 0:
        node->kind = WEFT_NODE_STRATEGIES;
        node->decision = (int32_t)draw(draws, problem->n_decisions);
        uint64_t all = weft_decision_all(&problem->decisions[node->decision]);
        node->strategies = all & (uint64_t)(1 + draw(draws, 14));
        return node->strategies != 0 && node->strategies != all;
    case 1:
        node->kind = WEFT_NODE_COUNT;
        node->count.n_decisions = 1 + (int32_t)draw(draws, drawn->group.n_decisions);
        return true;
    default:
        return draw_milestone(problem, draws, &node->milestone);
    }
}

/* A search for a step near the best plan's, mostly in enough steps. */
static void draw_search(struct draws *draws, int64_t best_ns, struct weft_certificate_node *leaf)
{
    const int64_t near = best_ns / 50 + 1;
    leaf->searched_ns = best_ns + draw(draws, 3 * near) - 2 * near;
    if (leaf->searched_ns < 1) leaf->searched_ns = 1;
    leaf->steps = 1 + draw(draws, 20000);
}

static void draw_tree(struct drawn *drawn, struct draws *draws, int64_t best_ns)
{
    struct weft_certificate *certificate = &drawn->certificate;
    certificate->nodes = weft_pool_array(&drawn->pool, SOUNDNESS_NODES, sizeof *certificate->nodes);
    cr_assert_not_null(certificate->nodes);
    /* Subtrees still to come, each of at least a leaf. */
    for (int32_t open = 1; open > 0; certificate->n_nodes++) {
        struct weft_certificate_node *node = &certificate->nodes[certificate->n_nodes];
        bool room = certificate->n_nodes + open + 2 <= SOUNDNESS_NODES;
        if (room && draw(draws, 7) < 4 && draw_inner(drawn, draws, node)) {
            open++;
            continue;
        }
        *node = (struct weft_certificate_node){
            .kind = WEFT_NODE_LEAF, .prices = (int32_t)draw(draws, certificate->n_prices)};
        if (draw(draws, 3) == 0) draw_search(draws, best_ns, node);
        open--;
    }
}

static void draw_certificate(struct drawn *drawn, struct draws *draws,
                             const struct weft_certificate *from, int64_t best_ns)
{
    struct weft_certificate *certificate = &drawn->certificate;
    certificate->problem = from->problem;
    certificate->n_prices = 1 + (int32_t)draw(draws, MOST_PRICES);
    certificate->prices = weft_pool_array(&drawn->pool, MOST_PRICES, sizeof *certificate->prices);
    cr_assert_not_null(certificate->prices);
    draw_group(drawn, draws);
    for (int32_t i = 0; i < certificate->n_prices; i++)
        certificate->prices[i] = draw_sound_prices(drawn, draws, from);
    draw_tree(drawn, draws, best_ns);
}

/* Writes another number over one of the text's. */
static void damage(struct draws *draws, struct weft_text *text)
{
    static const char *const numbers[] = {"0", "1", "2", "3", "7", "-1", "1152921504606846976"};
    struct weft_text out;
    size_t at = (size_t)draw(draws, (int64_t)text->length), end;
    while (at < text->length && !isdigit((unsigned char)text->data[at]))
        at++;
    for (end = at; end < text->length && isdigit((unsigned char)text->data[end]);)
        end++;
    if (at == text->length) return;
    while (at > 0 && (isdigit((unsigned char)text->data[at - 1]) || text->data[at - 1] == '-'))
        at--;
    weft_text_init(&out);
    weft_text_addf(&out, "%.*s%s%s", (int)at, text->data,
                   numbers[draw(draws, sizeof numbers / sizeof *numbers)], text->data + end);
    weft_text_finish(text);
    *text = out;
}

/* What the text proves_soundly, 0 when it is refused. */
static int64_t proves_soundly(const struct weft_text *text, const struct weft_problem *problem)
{
    struct weft_pool pool = {0};
    struct weft_json *document = NULL;
    struct weft_certificate certificate = {0};
    struct weft_error err = {0};
    int64_t proven_ns = 0;
    enum weft_status status = weft_json_parse(text->data, text->length, "drawn", &document, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    status = weft_certificate_read(weft_json_root(document), "drawn", problem, &pool, &certificate,
                                   &err);
    if (status == WEFT_OK)
        status = weft_certificate_check(&certificate, problem, 1, &proven_ns, &err);
    cr_assert(status == WEFT_OK || status == WEFT_E_DATA, "%s", err.text);
    weft_json_destroy(document);
    weft_pool_finish(&pool);
    return status == WEFT_OK ? proven_ns : 0;
}

static struct weft_plan *plan_of(const struct weft_problem *problem)
{
    struct weft_schedule_options options = {.planner = "ilp", .seed = 5, .gap = 0};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                 err.text);
    return plan;
}

Test(certificate_soundness, nothing_proves_more_than_the_best_plan_takes, .timeout = 900)
{
    int n_proofs = 0, n_refused = 0, n_close = 0, n = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        if (!test_draws(seed, 4, 20)) continue;
        struct weft_problem *problem = tiny_problem_of(seed, 2);
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        struct weft_plan *plan = plan_of(problem);
        n++;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            struct draws draws = {.seed = seed * ROUNDS + round};
            struct drawn drawn = {.problem = problem};
            struct weft_text text;
            struct weft_json_writer writer;
            draw_certificate(&drawn, &draws, &plan->certificate, best_ns);
            weft_text_init(&text);
            weft_json_writer_init(&writer, &text, 0);
            weft_certificate_write(&drawn.certificate, problem, &writer);
            for (uint64_t k = 0; k < round % 3; k++)
                damage(&draws, &text);
            int64_t proven_ns = proves_soundly(&text, problem);
            cr_assert_leq(proven_ns, best_ns, "problem %d, round %d: %lld ns of %lld", (int)seed,
                          (int)round, (long long)proven_ns, (long long)best_ns);
            n_proofs += proven_ns > 0;
            n_refused += proven_ns == 0;
            n_close += proven_ns > best_ns - best_ns / 100;
            weft_text_finish(&text);
            weft_pool_finish(&drawn.pool);
        }
        weft_plan_destroy(plan);
        weft_problem_destroy(problem);
    }
    cr_log_info("%d proofs, %d within 1 %% of the best; %d refused", n_proofs, n_close, n_refused);
    cr_assert_gt(n_close, n * ROUNDS / 10);
    cr_assert_gt(n_refused, n * ROUNDS / 20);
}
