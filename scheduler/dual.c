#include "scheduler/dual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_gather(const struct weft_item *item)
{
    return item->kind == WEFT_ALL_GATHER;
}

static double *lambda_of(const struct weft_dual *dual, int32_t item)
{
    return dual->lambda + dual->table->problem->items[item].channel * dual->n_slots;
}

static double bytes_per_ns(const struct weft_problem *problem)
{
    double bytes = 0, ns = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *of = &problem->items[i];
        if (of->item.stair_bytes == 0) continue;
        bytes += (double)of->item.n_blocks * (double)of->item.stair_bytes;
        ns += (double)of->item.n_blocks * (double)of->block_ns;
    }
    return bytes > 0 && ns > 0 ? bytes / ns : 1;
}

enum weft_status weft_dual_create(const struct weft_digest *table, int64_t limit_bytes,
                                  struct weft_dual **out, struct weft_error *err)
{
    struct weft_dual *dual = calloc(1, sizeof *dual);
    if (!dual) return weft_fail_memory(err, "a dual function");
    size_t n_slots = (size_t)table->n_slots, n_units = (size_t)table->n_units;
    size_t n_items = (size_t)table->n_items;
    struct weft_pool *pool = &dual->pool;
    dual->table = table;
    dual->limit_bytes = limit_bytes;
    dual->n_slots = table->n_slots;
    dual->n_channels = table->problem->n_channels;
    dual->bytes_per_ns = bytes_per_ns(table->problem);
    size_t n_lambda = (size_t)dual->n_channels * n_slots;
    /* mu follows lambda, and excess follows load, so that either pair is one vector. */
    dual->lambda = weft_pool_array(pool, n_lambda + n_slots, sizeof *dual->lambda);
    dual->load = weft_pool_array(pool, n_lambda + n_slots, sizeof *dual->load);
    dual->cost = weft_pool_array(pool, n_units * WEFT_POLICY_COUNT, sizeof *dual->cost);
    dual->share = weft_pool_array(pool, n_units * WEFT_POLICY_COUNT, sizeof *dual->share);
    dual->policies = weft_pool_array(pool, n_units, sizeof *dual->policies);
    dual->choice = weft_pool_array(pool, weft_box_most_spans(table->problem), sizeof *dual->choice);
    dual->item_cost = weft_pool_array(pool, n_items, sizeof *dual->item_cost);
    dual->before = weft_pool_array(pool, n_slots + 1, sizeof *dual->before);
    dual->total = weft_pool_array(pool, n_slots, sizeof *dual->total);
    if (!dual->lambda || !dual->load || !dual->cost || !dual->share || !dual->policies ||
        !dual->choice || !dual->item_cost || !dual->before || !dual->total) {
        weft_dual_destroy(dual);
        return weft_fail_memory(err, "a dual function");
    }
    dual->mu = dual->lambda + n_lambda;
    dual->excess = dual->load + n_lambda;
    *out = dual;
    return WEFT_OK;
}

void weft_dual_destroy(struct weft_dual *dual)
{
    if (!dual) return;
    weft_pool_finish(&dual->pool);
    free(dual);
}

/* f(T, L) of plan/certificate.h; *slope is what a unit more of L changes. */
static double compute_cost(const struct weft_problem *problem, int64_t ns, double total,
                           double *slope)
{
    double compute = (double)problem->compute_rate / WEFT_RATE_ONE;
    double channel = (double)problem->channel_rate / WEFT_RATE_ONE;
    double gain = 1 - compute - channel * total;
    *slope = 0;
    if (gain > 0) return (double)ns;
    *slope = -(double)ns * channel / compute;
    return (double)ns * (1 + gain / compute);
}

static double hold_mu(const struct weft_dual *dual, const struct weft_hold *hold)
{
    const double *before = dual->before;
    if (hold->first <= hold->last) return before[hold->last + 1] - before[hold->first];
    return before[dual->n_slots] - before[hold->first] + before[hold->last + 1];
}

/* What a block pays in a slot, but for what all slots of the item have in common. */
static double slot_cost(const struct weft_dual *dual, const struct weft_problem_item *of,
                        const double *lambda, int32_t s)
{
    const struct weft_item *item = &of->item;
    double held = is_gather(item) ? dual->before[item->last + 1] - dual->before[s]
                                  : dual->before[s + 1] - dual->before[item->first];
    return lambda[s] * (double)of->block_ns + held * (double)item->stair_bytes;
}

static void price_item(struct weft_dual *dual, const struct weft_box *box, int32_t i)
{
    const struct weft_problem_item *of = &dual->table->problem->items[i];
    const struct weft_item *item = &of->item;
    const double *lambda = lambda_of(dual, i);
    bool gathers = is_gather(item);
    int32_t at = gathers ? item->last : item->first, step = gathers ? -1 : 1, choice = at;
    double least = INFINITY;
    if (gathers) {
        choice = item->last + 1;
        least = (1 - (dual->total[choice] - lambda[choice])) * (double)of->block_ns;
    }
    dual->item_cost[i] = 0;
    for (int32_t k = box->span_start[i]; k < box->span_start[i] + box->n_spans[i]; k++) {
        const struct weft_span *span = &box->spans[k];
        for (; at >= span->first && at <= span->last; at += step) {
            double cost = slot_cost(dual, of, lambda, at);
            if (cost < least) least = cost, choice = at;
        }
        dual->item_cost[i] += least * span->n_blocks;
        dual->choice[k] = choice;
    }
}

static void price_units(struct weft_dual *dual, const struct weft_box *box)
{
    const struct weft_problem *problem = dual->table->problem;
    double slope;
    for (int32_t u = 0; u < problem->n_units; u++) {
        const struct weft_problem_unit *unit = &problem->units[u];
        double *cost = dual->cost + u * WEFT_POLICY_COUNT;
        for (int p = 0; p < WEFT_POLICY_COUNT; p++) {
            cost[p] = 0;
            if (!(unit->policies >> p & 1u)) continue;
            for (int32_t i = 0; i < unit->n_holds[p]; i++)
                cost[p] += hold_mu(dual, &unit->holds[p][i]) * (double)unit->holds[p][i].bytes;
            if (unit->update_slot >= 0)
                cost[p] += compute_cost(problem, unit->update_ns[p], dual->total[unit->update_slot],
                                        &slope);
        }
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        price_item(dual, box, i);
        for (int p = 0; p < WEFT_POLICY_COUNT; p++)
            if (item->policies >> p & 1u)
                dual->cost[item->unit * WEFT_POLICY_COUNT + p] += dual->item_cost[i];
    }
}

/* Adds to the differences of `excess`, which are summed up at the end. */
static void add_bytes(struct weft_dual *dual, int32_t first, int32_t last, double bytes)
{
    dual->excess[first] += bytes;
    if (last + 1 < dual->n_slots) dual->excess[last + 1] -= bytes;
    if (first > last) dual->excess[0] += bytes;
}

static void add_compute(struct weft_dual *dual, int32_t slot, int64_t ns)
{
    double slope;
    compute_cost(dual->table->problem, ns, dual->total[slot], &slope);
    for (int32_t c = 0; c < dual->n_channels; c++)
        dual->load[c * dual->n_slots + slot] += slope;
}

static void add_blocks(struct weft_dual *dual, int32_t i, int32_t n_blocks, int32_t s)
{
    const struct weft_problem_item *of = &dual->table->problem->items[i];
    const struct weft_item *item = &of->item;
    int32_t channel = of->channel;
    double ns = (double)of->block_ns * n_blocks;
    double bytes = (double)item->stair_bytes * n_blocks;
    if (is_gather(item) && s > item->last) {
        for (int32_t c = 0; c < dual->n_channels; c++)
            if (c != channel) dual->load[c * dual->n_slots + s] -= ns;
        return;
    }
    dual->load[channel * dual->n_slots + s] += ns;
    if (bytes == 0) return;
    if (is_gather(item)) {
        add_bytes(dual, s, item->last, bytes);
    } else {
        add_bytes(dual, item->first, s, bytes);
    }
}

static void choose(struct weft_dual *dual, const struct weft_box *box)
{
    const struct weft_problem *problem = dual->table->problem;
    for (int32_t u = 0; u < problem->n_units; u++) {
        const struct weft_problem_unit *unit = &problem->units[u];
        const double *cost = dual->cost + u * WEFT_POLICY_COUNT;
        int best = -1;
        for (int p = 0; p < WEFT_POLICY_COUNT; p++)
            if (box->allowed[u] >> p & 1u && (best < 0 || cost[p] < cost[best])) best = p;
        dual->policies[u] = (enum weft_policy)best;
        dual->value_ns += cost[best];
        for (int32_t i = 0; i < unit->n_holds[best]; i++)
            add_bytes(dual, unit->holds[best][i].first, unit->holds[best][i].last,
                      (double)unit->holds[best][i].bytes);
        if (unit->update_slot >= 0) add_compute(dual, unit->update_slot, unit->update_ns[best]);
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        if (!weft_item_active(&problem->items[i].item, dual->policies)) continue;
        for (int32_t k = box->span_start[i]; k < box->span_start[i] + box->n_spans[i]; k++)
            add_blocks(dual, i, box->spans[k].n_blocks, dual->choice[k]);
    }
}

void weft_dual_evaluate(struct weft_dual *dual, const struct weft_box *box)
{
    const struct weft_problem *problem = dual->table->problem;
    double slope;
    dual->before[0] = 0;
    dual->value_ns = (double)weft_problem_agreements_ns(problem);
    memset(dual->load, 0,
           (size_t)(dual->n_channels + 1) * (size_t)dual->n_slots * sizeof *dual->load);
    for (int32_t s = 0; s < dual->n_slots; s++) {
        dual->before[s + 1] = dual->before[s] + dual->mu[s];
        dual->total[s] = 0;
        for (int32_t c = 0; c < dual->n_channels; c++)
            dual->total[s] += dual->lambda[c * dual->n_slots + s];
        if (problem->slots[s].kind == WEFT_SLOT_UPDATE) continue;
        dual->value_ns += compute_cost(problem, problem->slot_ns[s], dual->total[s], &slope);
        add_compute(dual, s, problem->slot_ns[s]);
    }
    price_units(dual, box);
    choose(dual, box);
    double held = 0;
    for (int32_t s = 0; s < dual->n_slots; s++) {
        held += dual->excess[s];
        dual->excess[s] = held + (double)(dual->table->common[s] - dual->limit_bytes);
        dual->value_ns += dual->mu[s] * (double)(dual->table->common[s] - dual->limit_bytes);
    }
}

void weft_dual_reset(struct weft_dual *dual, int32_t channel)
{
    memset(dual->lambda, 0,
           (size_t)(dual->n_channels + 1) * (size_t)dual->n_slots * sizeof *dual->lambda);
    for (int32_t s = 0; channel >= 0 && s < dual->n_slots; s++)
        dual->lambda[channel * dual->n_slots + s] = 1;
}

static int64_t to_price(double value, double most)
{
    if (!(value > 0)) return 0;
    double scaled = ldexp(value < most ? value : most, WEFT_PRICE_SHIFT);
    return (int64_t)scaled;
}

void weft_dual_round(const struct weft_dual *dual, struct weft_prices *prices)
{
    /* So that the sum of all mu stays below the most that a certificate may have. */
    double most_mu = ldexp((double)WEFT_PRICE_MOST_SUM, -WEFT_PRICE_SHIFT) / dual->n_slots;
    double most_json = ldexp((double)WEFT_PROBLEM_MOST, -WEFT_PRICE_SHIFT);
    for (int32_t s = 0; s < dual->n_slots; s++) {
        int64_t room = WEFT_PRICE_ONE;
        for (int32_t c = 0; c < dual->n_channels; c++) {
            int32_t at = c * dual->n_slots + s;
            int64_t lambda = to_price(dual->lambda[at], 1);
            prices->lambda[at] = lambda < room ? lambda : room;
            room -= prices->lambda[at];
        }
        prices->mu[s] = to_price(dual->mu[s], most_mu < most_json ? most_mu : most_json);
    }
}

void weft_dual_take(struct weft_dual *dual, const struct weft_prices *prices)
{
    for (int32_t i = 0; i < dual->n_channels * dual->n_slots; i++)
        dual->lambda[i] = ldexp((double)prices->lambda[i], -WEFT_PRICE_SHIFT);
    for (int32_t s = 0; s < dual->n_slots; s++)
        dual->mu[s] = ldexp((double)prices->mu[s], -WEFT_PRICE_SHIFT);
}
