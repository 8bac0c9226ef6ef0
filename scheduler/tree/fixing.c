/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/fixing.h"

#include <math.h>
#include <stdlib.h>

#include "scheduler/tree/groups.h"

/* A set of plans that need no more work at the prices. A decision has one of `strategies`, or the
 * plan is on one side of `milestone`. */
struct fact {
    enum weft_node_kind kind;
    int32_t decision;
    uint64_t strategies;
    struct weft_milestone milestone;
};

struct fixing {
    const struct weft_dual *dual; /* evaluated in `box` */
    const struct weft_box *box;
    const uint8_t *keeper;
    double enough_ns;
    /* [n_slots] each. The least payment of a span's block that moves by a slot, and of one that
     * moves after it. `more`: their sum over blocks, less the blocks' present payment. `least`:
     * scratch. */
    double *by, *behind, *more, *least;
    struct fact *facts;
    int32_t n_facts, most_facts;
};

static void add_fact(struct fixing *f, struct fact fact)
{
    if (f->n_facts < f->most_facts) f->facts[f->n_facts++] = fact;
}

/* The least that a decision pays with one of these strategies; infinite when it may have none. */
static double least_cost(const struct fixing *f, int32_t decision, uint64_t strategies)
{
    const double *cost = f->dual->cost + weft_strategy_at(f->box->problem, decision, 0);
    double least = INFINITY;
    for (int32_t p = 0; p < f->box->problem->decisions[decision].n_strategies; p++)
        if (strategies & f->box->allowed[decision] & UINT64_C(1) << p && cost[p] < least)
            least = cost[p];
    return least;
}

/* The further payment at which plans with these strategies of the decision need no more work. */
static double slack_of(const struct fixing *f, int32_t decision, uint64_t strategies)
{
    double now = least_cost(f, decision, UINT64_MAX);
    return f->enough_ns - (f->dual->value_ns - now + least_cost(f, decision, strategies));
}

static void find_strategies(struct fixing *f, int32_t decision)
{
    for (int32_t p = 0; p < f->box->problem->decisions[decision].n_strategies; p++) {
        uint64_t side = weft_kept_by(&f->keeper[weft_strategy_at(f->box->problem, decision, 0)],
                                     f->box->allowed[decision], p);
        if (side == 0 || side == f->box->allowed[decision] || slack_of(f, decision, side) > 0)
            continue;
        add_fact(f, (struct fact){
                        .kind = WEFT_NODE_STRATEGIES, .decision = decision, .strategies = side});
    }
}

/* Prices a gather's block that is launched by each slot of its window, and one that is launched
 * after it. Returns the price without either condition. */
static double price_gather(struct fixing *f, const struct weft_problem_item *of,
                           const struct weft_span *span, const double *lambda, const double *held)
{
    int32_t first = of->item.first, last = of->item.last;
    double ns = (double)of->block_ns, cheapest = INFINITY, later = INFINITY, upto = INFINITY;
    if (span->hold > last) later = weft_dual_blocking(f->dual, of->lane, last + 1) * ns;
    for (int32_t s = last; s >= first; s--) {
        f->behind[s] = s < span->hold ? later : INFINITY;
        f->by[s] = held[last + 1] - held[s] + ns * cheapest; /* held from s on, moved after it */
        if (s < span->first || s > span->last) continue;
        int32_t at = s < span->hold ? s : span->hold;
        double cost = ns * lambda[s] + held[last + 1] - held[at];
        if (cost < later) later = cost;
        if (lambda[s] < cheapest) cheapest = lambda[s];
    }
    for (int32_t s = first; s <= last; s++) {
        double cost = ns * lambda[s] + held[last + 1] - held[s];
        if (s >= span->first && s <= span->last && cost < upto) upto = cost;
        if (s < span->first)
            f->by[s] = INFINITY;
        else if (s >= span->hold)
            f->by[s] = later;
        else if (upto < f->by[s])
            f->by[s] = upto;
    }
    return later;
}

/* The same for a reduction's block, which completes by the end of a slot, or after it. */
static double price_reduction(struct fixing *f, const struct weft_problem_item *of,
                              const struct weft_span *span, const double *lambda,
                              const double *held)
{
    int32_t first = of->item.first, last = of->item.last;
    double ns = (double)of->block_ns, upto = INFINITY, later = INFINITY, cheapest = INFINITY;
    for (int32_t s = first; s <= last; s++) {
        int32_t at = s > span->hold ? s : span->hold;
        double cost = ns * lambda[s] + held[at + 1] - held[first];
        bool may = s >= span->first && s <= span->last;
        if (may && cost < upto) upto = cost;
        if (may && lambda[s] < cheapest) cheapest = lambda[s];
        f->by[s] = s < span->hold ? INFINITY : upto;
        f->least[s] = cheapest;
        f->behind[s] = INFINITY;
    }
    for (int32_t s = span->last - 1; s >= first; s--) {
        int32_t at = s + 1 > span->hold ? s + 1 : span->hold;
        double cost = ns * lambda[s + 1] + held[at + 1] - held[first];
        double sooner = ns * f->least[s] + held[at + 1] - held[first]; /* but held through s + 1 */
        if (s + 1 >= span->first && cost < later) later = cost;
        f->behind[s] = sooner < later ? sooner : later;
    }
    return upto;
}

static double price_span(struct fixing *f, int32_t i, const struct weft_span *span)
{
    const struct weft_problem_item *of = &f->dual->table->problem->items[i];
    const double *lambda = weft_dual_lambda(f->dual, i), *held = weft_dual_held(f->dual, i);
    bool gathers = of->item.acquires;
    return gathers ? price_gather(f, of, span, lambda, held)
                   : price_reduction(f, of, span, lambda, held);
}

/* Finds, from k = 1 on, the last slot by which k blocks of an item cannot have moved. They would
 * pay at least `needed` more. A slot no later than for fewer blocks is no new fact. */
static void find_not_by(struct fixing *f, int32_t i, double needed)
{
    const struct weft_item *item = &f->dual->table->problem->items[i].item;
    bool gathers = item->acquires;
    int32_t n_spans = f->box->n_spans[i], last = gathers ? item->last : item->last - 1;
    int32_t found = -1, k = 1;
    for (int32_t s = item->first; s <= last; s++)
        f->more[s] = 0;
    for (int32_t j = 0; j < n_spans; j++) {
        const struct weft_span *spans = f->box->spans + f->box->span_start[i];
        const struct weft_span *span = &spans[gathers ? n_spans - 1 - j : j];
        double now = price_span(f, i, span);
        for (int32_t b = 0; b < span->n_blocks; b++, k++) {
            int32_t slot = -1;
            for (int32_t s = item->first; s <= last; s++) {
                f->more[s] += f->by[s] - now;
                if (f->more[s] >= needed) slot = s;
            }
            if (slot <= found || isinf(f->by[slot])) continue;
            found = slot;
            add_fact(f, (struct fact){.kind = WEFT_NODE_MILESTONE,
                                      .milestone = {i, k, slot, true, WEFT_PLACED}});
        }
    }
}

/* Finds, from the item's last k on, the first slot by which k blocks must have moved. */
static void find_by(struct fixing *f, int32_t i, double needed)
{
    const struct weft_item *item = &f->dual->table->problem->items[i].item;
    bool gathers = item->acquires;
    int32_t n_spans = f->box->n_spans[i], last = gathers ? item->last : item->last - 1;
    int32_t found = last + 1, k = item->n_blocks;
    for (int32_t s = item->first; s <= last; s++)
        f->more[s] = 0;
    for (int32_t j = 0; j < n_spans; j++) {
        const struct weft_span *spans = f->box->spans + f->box->span_start[i];
        const struct weft_span *span = &spans[gathers ? j : n_spans - 1 - j];
        double now = price_span(f, i, span);
        for (int32_t b = 0; b < span->n_blocks; b++, k--) {
            int32_t slot = last + 1;
            for (int32_t s = last; s >= item->first; s--) {
                f->more[s] += f->behind[s] - now;
                if (f->more[s] >= needed) slot = s;
            }
            if (slot >= found || isinf(f->behind[slot])) continue;
            found = slot;
            add_fact(f, (struct fact){.kind = WEFT_NODE_MILESTONE,
                                      .milestone = {i, k, slot, false, WEFT_PLACED}});
        }
    }
}

static void find_milestones(struct fixing *f, int32_t i)
{
    enum { MARGIN_NS = 1 }; /* the certificate rounds prices down */
    const struct weft_item *item = &f->dual->table->problem->items[i].item;
    double needed = slack_of(f, item->decision, item->strategies);
    if (!(needed > 0) || isinf(needed)) return; /* no strategy with it is left, or can help */
    find_not_by(f, i, needed + MARGIN_NS);
    if (slack_of(f, item->decision, ~item->strategies) <= 0) find_by(f, i, needed + MARGIN_NS);
}

static enum weft_status find_facts(struct fixing *f, struct weft_pool *pool, struct weft_error *err)
{
    const struct weft_digest *table = f->dual->table;
    size_t n_slots = (size_t)table->n_slots;
    f->by = weft_pool_array(pool, 4 * n_slots, sizeof *f->by);
    f->facts = weft_pool_array(pool, (size_t)f->most_facts, sizeof *f->facts);
    if (!f->by || !f->facts) return weft_fail_memory(err, "facts");
    f->behind = f->by + n_slots;
    f->more = f->behind + n_slots;
    f->least = f->more + n_slots;
    for (int32_t u = 0; u < table->n_decisions; u++)
        find_strategies(f, u);
    for (int32_t i = 0; i < table->n_items; i++)
        find_milestones(f, i);
    return WEFT_OK;
}

enum weft_status weft_fixing_divide(struct weft_proof *proof, struct weft_dual *dual,
                                    const struct weft_search *search, const uint8_t *keeper,
                                    int32_t node, int64_t enough_ns, int32_t most_facts,
                                    int32_t *rest, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct fixing f = {.dual = dual, .box = proof->box, .keeper = keeper};
    int32_t most = proof->problem->n_strategies + 2 * dual->table->n_blocks;
    enum weft_status status = WEFT_OK;
    *rest = node;
    f.enough_ns = (double)enough_ns;
    f.most_facts = most_facts < most ? most_facts : most;
    weft_proof_enter(proof, node);
    if (f.most_facts <= 0 || proof->box->empty) return WEFT_OK;
    weft_dual_take(dual, &proof->prices[proof->nodes[node].prices]);
    weft_dual_evaluate(dual, proof->box);
    WEFT_TRY_GOTO(done, find_facts(&f, &pool, err));
    for (int32_t k = 0; k < f.n_facts && !weft_search_is_spent(search); k++) {
        const struct fact *fact = &f.facts[k];
        bool milestone = fact->kind == WEFT_NODE_MILESTONE;
        if (milestone ? !weft_proof_branch_at(proof, *rest, &fact->milestone)
                      : !weft_proof_branch(proof, *rest, fact->decision, fact->strategies))
            continue;
        int32_t first = proof->nodes[*rest].children;
        bool second = milestone && !fact->milestone.reached;
        WEFT_TRY_GOTO(done, weft_proof_reprice(proof, second ? first + 1 : first, err));
        *rest = second ? first : first + 1;
    }
    if (*rest != node) status = weft_proof_reprice(proof, *rest, err);
done:
    weft_pool_finish(&pool);
    return status;
}
