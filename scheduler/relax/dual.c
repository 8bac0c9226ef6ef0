/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/dual.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whole rows beyond one a memory row. */
enum { MORE_ROWS = 256 };

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

static void fill_sizes(struct weft_dual *dual)
{
    for (int32_t i = 0; i < dual->table->n_items; i++) {
        const struct weft_item *item = &dual->table->problem->items[i].item;
        int32_t k = 0;
        while (k < dual->n_sizes &&
               (dual->sizes[k] != item->stair_bytes || dual->size_tiers[k] != item->stair_tier))
            k++;
        if (k == dual->n_sizes) {
            dual->sizes[dual->n_sizes] = item->stair_bytes;
            dual->size_tiers[dual->n_sizes++] = item->stair_tier;
        }
        dual->size_of[i] = k;
    }
}

static enum weft_status make_rows(struct weft_dual *dual, struct weft_error *err)
{
    size_t n_slots = (size_t)dual->n_slots, most = (size_t)dual->most_rows;
    size_t n_memory = (size_t)dual->n_memory;
    size_t n_items = (size_t)dual->table->n_items;
    struct weft_pool *pool = &dual->pool;
    dual->rows = weft_pool_array(pool, most, sizeof *dual->rows);
    dual->next_row = weft_pool_array(pool, most, sizeof *dual->next_row);
    dual->counts = weft_pool_array(pool, most, sizeof *dual->counts);
    dual->first_row = weft_pool_array(pool, n_memory, sizeof *dual->first_row);
    dual->references = weft_pool_array(pool, most, sizeof *dual->references);
    dual->uses = weft_pool_array(pool, most, sizeof *dual->uses);
    dual->size_of = weft_pool_array(pool, n_items, sizeof *dual->size_of);
    dual->sizes = weft_pool_array(pool, n_items, sizeof *dual->sizes);
    dual->size_tiers = weft_pool_array(pool, n_items, sizeof *dual->size_tiers);
    bool ok = dual->rows && dual->next_row && dual->counts && dual->first_row && dual->references &&
              dual->uses && dual->size_of && dual->sizes && dual->size_tiers;
    if (!ok) return weft_fail_memory(err, "a dual function");
    for (size_t r = 0; r < n_memory; r++)
        dual->first_row[r] = -1;
    fill_sizes(dual);
    dual->held_cost =
        weft_pool_array(pool, (size_t)dual->n_sizes * (n_slots + 1) + 1, sizeof *dual->held_cost);
    return dual->held_cost ? WEFT_OK : weft_fail_memory(err, "a dual function");
}

static void forget_chains(struct weft_dual *dual)
{
    memset(dual->rho, 0, (size_t)dual->table->n_items * sizeof *dual->rho);
    for (int32_t s = 0; s < dual->n_slots; s++) {
        dual->covered[s] = 0;
        dual->room[s] = 1;
    }
}

void weft_dual_set_rho(struct weft_dual *dual, int32_t item, double rho)
{
    const struct weft_chain *chain = &dual->chains[item];
    const int32_t last = chain->may_block ? chain->last + 1 : chain->last;
    for (int32_t s = chain->first; s <= last; s++)
        if (rho > dual->room[s]) rho = dual->room[s];
    if (rho <= 0) return;
    dual->rho[item] += rho;
    for (int32_t s = chain->first; s <= last; s++) {
        dual->room[s] -= rho;
        if (s <= chain->last) dual->covered[s] += rho;
    }
}

int32_t weft_dual_count_chains(const struct weft_dual *dual)
{
    int32_t n = 0;
    for (int32_t i = 0; i < dual->table->n_items; i++)
        n += dual->rho[i] > 0;
    return n;
}

enum weft_status weft_dual_create(const struct weft_digest *table, struct weft_dual **out,
                                  struct weft_error *err)
{
    struct weft_dual *dual = calloc(1, sizeof *dual);
    if (!dual) return weft_fail_memory(err, "a dual function");
    size_t n_slots = (size_t)table->n_slots, n_decisions = (size_t)table->n_decisions;
    size_t n_items = (size_t)table->n_items, n_memory = (size_t)table->n_rows;
    struct weft_pool *pool = &dual->pool;
    dual->table = table;
    dual->n_slots = table->n_slots;
    dual->n_memory = table->n_rows;
    dual->n_moving = weft_problem_n_moving(table->problem);
    dual->bytes_per_ns = bytes_per_ns(table->problem);
    size_t n_lambda = (size_t)dual->n_moving * n_slots;
    dual->most_rows = table->n_rows + MORE_ROWS;
    enum weft_status status = weft_problem_waits(table->problem, pool, &dual->waits, err);
    if (status != WEFT_OK) {
        weft_dual_destroy(dual);
        return status;
    }
    const size_t n_waits = (size_t)dual->waits.n;
    /* lambda, wait_share, mu and nu are one vector, and so are load, waited, excess and over. */
    size_t n_vector = n_lambda + n_waits + n_memory + (size_t)dual->most_rows;
    dual->lambda = weft_pool_array(pool, n_vector, sizeof *dual->lambda);
    dual->load = weft_pool_array(pool, n_vector, sizeof *dual->load);
    dual->cost =
        weft_pool_array(pool, (size_t)dual->table->problem->n_strategies, sizeof *dual->cost);
    dual->share =
        weft_pool_array(pool, (size_t)dual->table->problem->n_strategies, sizeof *dual->share);
    dual->strategies = weft_pool_array(pool, n_decisions, sizeof *dual->strategies);
    dual->usual = weft_pool_array(pool, n_decisions, sizeof *dual->usual);
    dual->taken = weft_pool_array(pool, n_decisions, sizeof *dual->taken);
    dual->choice = weft_pool_array(pool, weft_box_most_spans(table->problem), sizeof *dual->choice);
    dual->item_cost = weft_pool_array(pool, n_items, sizeof *dual->item_cost);
    dual->before = weft_pool_array(pool, n_memory + 1, sizeof *dual->before);
    dual->total = weft_pool_array(pool, 4 * n_slots, sizeof *dual->total);
    dual->rho = weft_pool_array(pool, n_items, sizeof *dual->rho);
    dual->chains = weft_pool_array(pool, n_items, sizeof *dual->chains);
    dual->left = weft_pool_array(pool, n_slots, sizeof *dual->left);
    dual->slowest = weft_pool_array(pool, n_slots, sizeof *dual->slowest);
    if (!dual->lambda || !dual->load || !dual->cost || !dual->share || !dual->strategies ||
        !dual->usual || !dual->taken || !dual->choice || !dual->item_cost || !dual->before ||
        !dual->total || !dual->rho || !dual->chains || !dual->left || !dual->slowest) {
        weft_dual_destroy(dual);
        return weft_fail_memory(err, "a dual function");
    }
    dual->factor = dual->total + n_slots;
    dual->covered = dual->factor + n_slots;
    dual->room = dual->covered + n_slots;
    for (int32_t i = 0; i < table->n_items; i++)
        dual->chains[i] = weft_problem_chain(table->problem, i);
    forget_chains(dual);
    dual->wait_share = dual->lambda + n_lambda;
    dual->mu = dual->wait_share + n_waits;
    dual->nu = dual->mu + n_memory;
    dual->waited = dual->load + n_lambda;
    dual->excess = dual->waited + n_waits;
    dual->over = dual->excess + n_memory;
    for (int32_t s = 0; s < dual->n_slots; s++)
        weft_dual_share_wait(dual, s);
    status = make_rows(dual, err);
    if (status != WEFT_OK) {
        weft_dual_destroy(dual);
        return status;
    }
    *out = dual;
    return WEFT_OK;
}

void weft_dual_destroy(struct weft_dual *dual)
{
    if (!dual) return;
    weft_pool_finish(&dual->pool);
    free(dual);
}

enum weft_status weft_dual_set_groups(struct weft_dual *dual, const struct weft_group *groups,
                                      int32_t n_groups, struct weft_error *err)
{
    dual->pi = weft_pool_array(&dual->pool, (size_t)n_groups + 1, sizeof *dual->pi);
    dual->known = weft_pool_array(&dual->pool, 2 * (size_t)n_groups + 1, sizeof *dual->known);
    if (!dual->pi || !dual->known) return weft_fail_memory(err, "a dual function");
    for (int32_t g = 0; g < n_groups; g++)
        dual->known[g] = -1;
    dual->relies = dual->known + n_groups;
    dual->groups = groups;
    dual->n_groups = n_groups;
    return WEFT_OK;
}

static double rate_of(int32_t rate)
{
    return (double)rate / WEFT_RATE_ONE;
}

/* Price per time of the slot's lanes that leave compute at least this rate, while they run with
 * compute. */
static double worth_beside(const struct weft_dual *dual, int32_t compute_rate, int32_t slot)
{
    const struct weft_problem *problem = dual->table->problem;
    double worth = 0, alike = 0; /* sum over lanes of one rate, multiplied once */
    int32_t own = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        struct weft_rates rates = problem->lanes[lane].rates;
        if (rates.compute < compute_rate) continue;
        if (rates.own != own) {
            worth += rate_of(own) * alike;
            alike = 0;
            own = rates.own;
        }
        alike += dual->lambda[weft_problem_lane_at(problem, lane) + (size_t)slot];
    }
    return worth + rate_of(own) * alike;
}

/* Fills factor and slowest of a slot. */
static void price_compute(struct weft_dual *dual, int32_t slot)
{
    const struct weft_problem *problem = dual->table->problem;
    const double part = 1 - dual->covered[slot];
    dual->factor[slot] = part;
    dual->slowest[slot] = WEFT_LANE_COMPUTE;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        int32_t compute_rate = problem->lanes[lane].rates.compute;
        double compute = rate_of(compute_rate);
        double gain = (1 - compute) * part - worth_beside(dual, compute_rate, slot);
        if (gain > 0) continue;
        double factor = part + gain / compute;
        if (dual->slowest[slot] != WEFT_LANE_COMPUTE && factor >= dual->factor[slot]) continue;
        dual->factor[slot] = factor;
        dual->slowest[slot] = lane;
    }
}

/* f(T) of proof/prices.h. */
static double compute_cost(const struct weft_dual *dual, int64_t ns, int32_t slot)
{
    return (double)ns * dual->factor[slot];
}

static double hold_mu(const struct weft_dual *dual, const struct weft_hold *hold)
{
    const double *before = dual->before + weft_problem_tier_at(dual->table->problem, hold->tier);
    if (hold->first <= hold->last) return before[hold->last + 1] - before[hold->first];
    return before[dual->n_slots] - before[hold->first] + before[hold->last + 1] - before[0];
}

/* Fills held_cost: for each size of block, the price of its bytes over all slots before a slot. */
static void price_sizes(struct weft_dual *dual)
{
    for (int32_t z = 0; z < dual->n_sizes; z++) {
        double *cost = dual->held_cost + (size_t)z * ((size_t)dual->n_slots + 1);
        double bytes = (double)dual->sizes[z];
        int32_t at = weft_problem_tier_at(dual->table->problem, dual->size_tiers[z]);
        cost[0] = 0;
        for (int32_t s = 0; s < dual->n_slots; s++) {
            cost[s + 1] = cost[s] + dual->mu[at + s] * bytes;
            for (int32_t k = dual->first_row[at + s]; k >= 0; k = dual->next_row[k])
                cost[s + 1] += dual->nu[k] * dual->counts[k][z];
        }
    }
}

/* For a gather that moves in slot s, the first slot that holds it. For a reduction, the last. */
static int32_t held_at(const struct weft_item *item, const struct weft_span *span, int32_t s)
{
    bool inside = item->acquires ? s > span->hold : s < span->hold;
    return inside ? span->hold : s;
}

/* Price of a block that moves in slot s, with the memory that the span implies. `held` belongs to
 * its size. */
static double slot_cost(const struct weft_problem_item *of, const struct weft_span *span,
                        const double *lambda, const double *held, int32_t s)
{
    const struct weft_item *item = &of->item;
    int32_t at = held_at(item, span, s);
    return lambda[s] * (double)of->block_ns +
           (item->acquires ? held[item->last + 1] - held[at] : held[at + 1] - held[item->first]);
}

double weft_dual_blocking(const struct weft_dual *dual, int32_t lane, int32_t slot)
{
    const double *lambda = dual->lambda + weft_problem_lane_at(dual->table->problem, lane);
    int32_t shared = weft_waits_at(&dual->waits, slot, lane);
    if (shared < 0) return dual->room[slot] - (dual->total[slot] - lambda[slot]);
    return lambda[slot] + dual->wait_share[shared] * (dual->room[slot] - dual->total[slot]);
}

static void price_item(struct weft_dual *dual, const struct weft_box *box, int32_t i)
{
    const struct weft_problem_item *of = &dual->table->problem->items[i];
    const struct weft_item *item = &of->item;
    const double *lambda = weft_dual_lambda(dual, i), *held = weft_dual_held(dual, i);
    bool gathers = item->acquires;
    int32_t at = 0, step = gathers ? -1 : 1, choice = 0;
    double least = INFINITY;
    dual->item_cost[i] = 0;
    for (int32_t k = box->span_start[i]; k < box->span_start[i] + box->n_spans[i]; k++) {
        const struct weft_span *span = &box->spans[k];
        if (k == box->span_start[i] || span->hold != span[-1].hold ||
            (gathers ? span->last != span[-1].last : span->first != span[-1].first)) {
            at = gathers ? span->last : span->first;
            least = INFINITY;
            choice = item->last + 1;
            if (gathers && span->hold == choice)
                least = weft_dual_blocking(dual, of->lane, choice) * (double)of->block_ns;
        }
        for (; at >= span->first && at <= span->last; at += step) {
            double cost = slot_cost(of, span, lambda, held, at);
            if (cost < least) least = cost, choice = at;
        }
        dual->item_cost[i] += least * span->n_blocks;
        dual->choice[k] = choice;
    }
}

static void price_groups(struct weft_dual *dual, const struct weft_box *box)
{
    for (int32_t g = 0; g < dual->n_groups; g++) {
        const struct weft_group *group = &dual->groups[g];
        double pi = dual->pi[g];
        int32_t count = pi > 0 ? box->most_count[g] : box->least_count[g];
        if (pi == 0 || count == (pi > 0 ? group->n_decisions : 0)) continue;
        dual->value_ns -= pi * count;
        for (int32_t k = 0; k < group->n_decisions; k++)
            for (int32_t p = 0; p < weft_digest_count(dual->table, group->decisions[k]); p++)
                if (group->strategies >> p & 1u)
                    dual->cost[weft_digest_at(dual->table, group->decisions[k], p)] += pi;
    }
}

static void price_decisions(struct weft_dual *dual, const struct weft_box *box)
{
    const struct weft_problem *problem = dual->table->problem;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *decision = &problem->decisions[u];
        double *cost = dual->cost + weft_digest_at(dual->table, u, 0);
        for (int32_t p = 0; p < decision->n_strategies; p++) {
            const struct weft_problem_strategy *of = &decision->strategies[p];
            cost[p] = 0;
            for (int32_t i = 0; i < of->n_holds; i++)
                cost[p] += hold_mu(dual, &of->holds[i]) * (double)of->holds[i].bytes;
            for (int32_t i = 0; i < of->n_times; i++)
                cost[p] += compute_cost(dual, of->times[i].ns, of->times[i].slot);
        }
    }
    for (int32_t k = 0; k < dual->n_rows; k++) {
        const double *counts = dual->counts[k] + dual->n_sizes;
        if (dual->nu[k] == 0) continue;
        for (int32_t n = 0; n < problem->n_strategies; n++)
            dual->cost[n] += dual->nu[k] * counts[n];
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        price_item(dual, box, i);
        dual->item_cost[i] += dual->rho[i] * (double)dual->chains[i].ns;
        for (int32_t p = 0; p < weft_digest_count(dual->table, item->decision); p++)
            if (item->strategies >> p & 1u)
                dual->cost[weft_digest_at(dual->table, item->decision, p)] += dual->item_cost[i];
    }
}

/* Adds to the differences of a tier's `excess`, which are summed up at the end. */
static void add_bytes(struct weft_dual *dual, int32_t tier, int32_t first, int32_t last,
                      double bytes)
{
    double *excess = dual->excess + weft_problem_tier_at(dual->table->problem, tier);
    excess[first] += bytes;
    if (last + 1 < dual->n_slots) excess[last + 1] -= bytes;
    if (first > last) excess[0] += bytes;
}

static void add_compute(struct weft_dual *dual, int32_t slot, int64_t ns)
{
    const struct weft_problem *problem = dual->table->problem;
    int32_t slowest = dual->slowest[slot];
    if (slowest == WEFT_LANE_COMPUTE) return;
    int32_t compute_rate = problem->lanes[slowest].rates.compute;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        struct weft_rates rates = problem->lanes[lane].rates;
        if (rates.compute < compute_rate) continue;
        dual->load[weft_problem_lane_at(problem, lane) + (size_t)slot] +=
            -(double)ns * rate_of(rates.own) / rate_of(compute_rate);
    }
}

static void add_blocks(struct weft_dual *dual, int32_t i, const struct weft_span *span, int32_t s)
{
    const struct weft_problem_item *of = &dual->table->problem->items[i];
    const struct weft_item *item = &of->item;
    double *load = dual->load + weft_problem_lane_at(dual->table->problem, of->lane);
    double ns = (double)of->block_ns * span->n_blocks;
    double bytes = (double)item->stair_bytes * span->n_blocks;
    if (item->acquires && s > item->last) {
        int32_t shared = weft_waits_at(&dual->waits, s, of->lane);
        if (shared >= 0) {
            dual->waited[shared] += ns;
            load[s] += ns;
            return;
        }
        for (int32_t k = 0; k < dual->n_moving; k++) {
            double *other = dual->load + k * dual->n_slots;
            if (other != load) other[s] -= ns;
        }
        return;
    }
    load[s] += ns;
    if (bytes == 0) return;
    int32_t at = held_at(item, span, s);
    int32_t from = item->acquires ? at : item->first, to = item->acquires ? item->last : at;
    add_bytes(dual, item->stair_tier, from, to, bytes);
    int32_t rows = weft_problem_stair_at(dual->table->problem, item);
    for (int32_t r = rows + from; r <= rows + to && dual->n_rows > 0; r++)
        for (int32_t k = dual->first_row[r]; k >= 0; k = dual->next_row[k])
            dual->over[k] += dual->counts[k][dual->size_of[i]] * span->n_blocks;
}

static void choose_strategies(struct weft_dual *dual, const struct weft_box *box)
{
    const struct weft_problem *problem = dual->table->problem;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *decision = &problem->decisions[u];
        const double *cost = dual->cost + weft_digest_at(dual->table, u, 0);
        int32_t best = -1;
        for (int32_t p = 0; p < weft_digest_count(dual->table, u); p++)
            if (box->allowed[u] >> p & 1u && (best < 0 || cost[p] < cost[best])) best = p;
        dual->strategies[u] = best;
        dual->value_ns += cost[best];
        const struct weft_problem_strategy *of = &decision->strategies[best];
        for (int32_t i = 0; i < of->n_holds; i++)
            add_bytes(dual, of->holds[i].tier, of->holds[i].first, of->holds[i].last,
                      (double)of->holds[i].bytes);
        for (int32_t i = 0; i < of->n_times; i++)
            add_compute(dual, of->times[i].slot, of->times[i].ns);
        for (int32_t k = 0; k < dual->n_rows; k++)
            dual->over[k] += dual->counts[k][dual->n_sizes + weft_digest_at(dual->table, u, best)];
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        if (!weft_item_active(&problem->items[i].item, dual->strategies)) continue;
        for (int32_t k = box->span_start[i]; k < box->span_start[i] + box->n_spans[i]; k++)
            add_blocks(dual, i, &box->spans[k], dual->choice[k]);
    }
}

/* Turns the time of blocks that block a slot into the slopes of its shares. Every lambda of the
 * slot leaves less of its wait for them. */
static void slope_of_shares(struct weft_dual *dual, int32_t slot)
{
    double paid = 0;
    int32_t first = dual->waits.first[slot], end = dual->waits.first[slot + 1];
    for (int32_t k = first; k < end; k++)
        paid += dual->wait_share[k] * dual->waited[k];
    for (int32_t k = first; k < end; k++)
        dual->waited[k] = (dual->room[slot] - dual->total[slot]) * (dual->waited[k] - paid);
    for (int32_t k = 0; k < dual->n_moving && paid != 0; k++)
        dual->load[k * dual->n_slots + slot] -= paid;
}

/* Work units of an evaluation and of one step of ascent. */
static int64_t evaluation_units(const struct weft_dual *dual)
{
    const struct weft_digest *table = dual->table;
    return 100 * (int64_t)table->n_items + (40 + 2 * (int64_t)dual->n_sizes) * dual->n_slots +
           2 * (int64_t)dual->n_rows * table->n_decisions;
}

/* Coordinates of lane time, waits and memory. */
static size_t n_times_and_bytes(const struct weft_dual *dual)
{
    return (size_t)(dual->mu - dual->lambda) + (size_t)dual->n_memory;
}

void weft_dual_evaluate(struct weft_dual *dual, const struct weft_box *box)
{
    weft_work_spend(dual->work, evaluation_units(dual));
    weft_dual_know(dual, box);
    const struct weft_problem *problem = dual->table->problem;
    dual->before[0] = 0;
    dual->value_ns = (double)weft_problem_agreements_ns(problem);
    memset(dual->load, 0, n_times_and_bytes(dual) * sizeof *dual->load);
    for (int32_t k = 0; k < dual->n_rows; k++) {
        dual->over[k] = -(double)dual->rows[k].room_bytes;
        dual->value_ns -= dual->nu[k] * (double)dual->rows[k].room_bytes;
    }
    for (int32_t s = 0; s < dual->n_slots; s++) {
        dual->total[s] = 0;
        for (int32_t k = 0; k < dual->n_moving; k++)
            dual->total[s] += dual->lambda[k * dual->n_slots + s];
        price_compute(dual, s);
        dual->value_ns += compute_cost(dual, problem->slot_ns[s], s);
        add_compute(dual, s, problem->slot_ns[s]);
    }
    for (int32_t r = 0; r < dual->n_memory; r++)
        dual->before[r + 1] = dual->before[r] + dual->mu[r];
    price_sizes(dual);
    price_decisions(dual, box);
    price_groups(dual, box);
    choose_strategies(dual, box);
    for (int32_t s = 0; s < dual->n_slots && dual->waits.n > 0; s++)
        slope_of_shares(dual, s);
    const int64_t limit_bytes = weft_digest_limit_bytes(dual->table);
    for (int32_t tier = 0, r = 0; tier < problem->n_tiers; tier++) {
        double held = 0;
        for (int32_t s = 0; s < dual->n_slots; s++, r++) {
            held += dual->excess[r];
            dual->excess[r] = held + (double)(dual->table->common[r] - limit_bytes);
            dual->value_ns += dual->mu[r] * (double)(dual->table->common[r] - limit_bytes);
        }
    }
}

void weft_dual_share_wait(struct weft_dual *dual, int32_t slot)
{
    double total = 0;
    int32_t first = dual->waits.first[slot], end = dual->waits.first[slot + 1];
    for (int32_t k = first; k < end; k++)
        total += dual->wait_share[k];
    for (int32_t k = first; k < end; k++)
        dual->wait_share[k] = total > 0 ? dual->wait_share[k] / total : 1.0 / (end - first);
}

void weft_dual_reset(struct weft_dual *dual, int32_t lane)
{
    memset(dual->lambda, 0, n_times_and_bytes(dual) * sizeof *dual->lambda);
    for (int32_t s = 0; s < dual->n_slots; s++)
        weft_dual_share_wait(dual, s);
    forget_chains(dual);
    memset(dual->nu, 0, (size_t)dual->n_rows * sizeof *dual->nu);
    for (int32_t g = 0; g < dual->n_groups; g++)
        dual->pi[g] = 0;
    for (int32_t s = 0; lane != WEFT_LANE_COMPUTE && s < dual->n_slots; s++)
        dual->lambda[weft_problem_lane_at(dual->table->problem, lane) + (size_t)s] = 1;
}

static int64_t to_price(double value, double most)
{
    if (!(value > 0)) return 0;
    double scaled = ldexp(value < most ? value : most, WEFT_PRICE_SHIFT);
    return (int64_t)scaled;
}

/* Rounds rho, and fills `left`. */
static void round_chains(const struct weft_dual *dual, struct weft_prices *prices)
{
    prices->n_chains = 0;
    for (int32_t s = 0; s < dual->n_slots; s++)
        dual->left[s] = WEFT_PRICE_ONE;
    for (int32_t i = 0; i < dual->table->n_items; i++) {
        const struct weft_chain *chain = &dual->chains[i];
        const int64_t rho = to_price(dual->rho[i], 1);
        if (rho == 0) continue;
        prices->chains[prices->n_chains++] = (struct weft_chain_price){.item = i, .rho = rho};
        for (int32_t s = chain->first; s <= chain->last + chain->may_block; s++)
            dual->left[s] -= rho;
    }
}

/* Rounds a slot's prices of lane time and of waits, within the room that chains leave there. */
static void round_slot(const struct weft_dual *dual, int32_t slot, struct weft_prices *prices)
{
    int64_t room = dual->left[slot];
    for (int32_t k = 0; k < dual->n_moving; k++) {
        int32_t at = k * dual->n_slots + slot;
        int64_t lambda = to_price(dual->lambda[at], 1);
        prices->lambda[at] = lambda < room ? lambda : room;
        room -= prices->lambda[at];
    }
    double left = ldexp((double)room, -WEFT_PRICE_SHIFT);
    for (int32_t k = dual->waits.first[slot]; k < dual->waits.first[slot + 1]; k++) {
        int64_t kappa = to_price(dual->wait_share[k] * left, 1);
        if (kappa > room) kappa = room;
        room -= kappa;
        if (kappa == 0) continue;
        prices->waits[prices->n_waits++] =
            (struct weft_wait_price){.slot = slot, .lane = dual->waits.lanes[k], .kappa = kappa};
    }
}

void weft_dual_round(const struct weft_dual *dual, struct weft_prices *prices)
{
    /* Clamp mu and nu so that their sum stays below the certificate's limit. */
    double most = ldexp((double)WEFT_PRICE_MOST_SUM, -WEFT_PRICE_SHIFT) /
                  ((double)dual->n_memory + dual->n_rows);
    double most_json = ldexp((double)WEFT_PROBLEM_MOST, -WEFT_PRICE_SHIFT);
    if (most > most_json) most = most_json;
    prices->n_waits = 0;
    round_chains(dual, prices);
    for (int32_t s = 0; s < dual->n_slots; s++)
        round_slot(dual, s, prices);
    for (int32_t r = 0; r < dual->n_memory; r++)
        prices->mu[r] = to_price(dual->mu[r], most);
    for (int32_t g = 0; g < dual->n_groups; g++) {
        double pi = dual->pi[g], most_pi = (double)WEFT_PRICE_MOST_PI;
        prices->pi[g] = (int64_t)(pi > most_pi ? most_pi : pi < -most_pi ? -most_pi : pi);
    }
    prices->n_whole = 0;
    for (int32_t k = 0; k < dual->n_rows; k++) {
        int64_t nu = to_price(dual->nu[k], most);
        if (nu == 0) continue;
        prices->whole[prices->n_whole++] =
            (struct weft_whole_price){.row = dual->rows[k].row,
                                      .step_bytes = dual->rows[k].step_bytes,
                                      .nu = nu,
                                      .reference = dual->references[k],
                                      .relies = dual->uses[k]};
    }
}

void weft_dual_take(struct weft_dual *dual, const struct weft_prices *prices)
{
    for (int32_t i = 0; i < dual->n_moving * dual->n_slots; i++)
        dual->lambda[i] = ldexp((double)prices->lambda[i], -WEFT_PRICE_SHIFT);
    memset(dual->wait_share, 0, (size_t)dual->waits.n * sizeof *dual->wait_share);
    for (int32_t i = 0; i < prices->n_waits; i++) {
        const struct weft_wait_price *wait = &prices->waits[i];
        int32_t at = weft_waits_at(&dual->waits, wait->slot, wait->lane);
        dual->wait_share[at] = ldexp((double)wait->kappa, -WEFT_PRICE_SHIFT);
    }
    for (int32_t s = 0; s < dual->n_slots; s++)
        weft_dual_share_wait(dual, s);
    forget_chains(dual);
    for (int32_t k = 0; k < prices->n_chains; k++)
        weft_dual_set_rho(dual, prices->chains[k].item,
                          ldexp((double)prices->chains[k].rho, -WEFT_PRICE_SHIFT));
    for (int32_t r = 0; r < dual->n_memory; r++)
        dual->mu[r] = ldexp((double)prices->mu[r], -WEFT_PRICE_SHIFT);
    for (int32_t g = 0; g < dual->n_groups; g++)
        dual->pi[g] = (double)prices->pi[g];
    memset(dual->nu, 0, (size_t)dual->n_rows * sizeof *dual->nu);
    for (int32_t k = 0; k < prices->n_whole; k++) {
        const struct weft_whole_price *whole = &prices->whole[k];
        int32_t row =
            weft_dual_add_row(dual, whole->row, whole->step_bytes, whole->reference, whole->relies);
        if (row >= 0) dual->nu[row] = ldexp((double)prices->whole[k].nu, -WEFT_PRICE_SHIFT);
    }
}
