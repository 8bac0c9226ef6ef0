/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/prices.h"

#include <string.h>

#include "problem/waits.h"

/* Scalars of the problem and sums of the prices, while they are applied. */
struct pricing {
    const struct weft_box *box;
    const struct weft_problem *problem;
    const struct weft_prices *prices;
    int32_t n_slots, n_rows;
    struct weft_pool pool;
    int64_t *total;   /* [n_slots]: lambda and rho in sum */
    int64_t *covered; /* [n_slots]: rho of chains that compute pays for too */
    int64_t *before;  /* [n_rows + 1]: sum of mu of earlier rows */
    struct weft_waits waits;
    int64_t *kappa; /* [waits.n] */
    weft_int128
        *stair; /* [n_slots]: of a block held between a slot and the far end of its window */
    /* Whole rows; NULL if none has a price. */
    struct weft_whole_row *rows; /* [n_whole] */
    int32_t *first_row;          /* [n_rows]; -1: none */
    int32_t *next_row;           /* [n_whole]: next whole row of the same memory row */
    int64_t *held;               /* by strategy of one decision, then row */
    struct weft_usual *usual;    /* [n_whole][n_decisions] */
};

static enum weft_status fail_price(const char *name, int32_t slot, const char *why,
                                   struct weft_error *err)
{
    return weft_fail(err, WEFT_E_DATA, "certificate: %s of slot %d is %s", name, slot, why);
}

static const int64_t *lambda_of(const struct pricing *p, int32_t lane)
{
    return p->prices->lambda + weft_problem_lane_at(p->problem, lane);
}

static enum weft_status add_rho(struct pricing *p, int32_t slot, int64_t rho,
                                struct weft_error *err)
{
    if (rho > WEFT_PRICE_ONE - p->total[slot])
        return fail_price("rho", slot, "above 1 in sum over chains", err);
    p->total[slot] += rho;
    return WEFT_OK;
}

/* Adds the prices of chains to their slots. */
static enum weft_status take_chains(struct pricing *p, struct weft_error *err)
{
    for (int32_t k = 0; k < p->prices->n_chains; k++) {
        const struct weft_chain_price *price = &p->prices->chains[k];
        if (price->item < 0 || price->item >= p->problem->n_items ||
            (k > 0 && price->item <= price[-1].item))
            return weft_fail(err, WEFT_E_DATA,
                             "certificate: chains do not name items in increasing order");
        const struct weft_chain chain = weft_problem_chain(p->problem, price->item);
        if (price->rho < 0) return fail_price("rho", chain.last, "negative", err);
        for (int32_t s = chain.first; s <= chain.last; s++) {
            WEFT_TRY(add_rho(p, s, price->rho, err));
            p->covered[s] += price->rho;
        }
        if (chain.may_block) WEFT_TRY(add_rho(p, chain.last + 1, price->rho, err));
    }
    return WEFT_OK;
}

/* Checks the prices of time of a slot, and adds up lambda. */
static enum weft_status sum_slot(struct pricing *p, int32_t s, struct weft_error *err)
{
    for (int32_t lane = WEFT_LANE_FIRST; lane < p->problem->n_lanes; lane++) {
        int64_t lambda = lambda_of(p, lane)[s];
        if (lambda < 0) return fail_price("lambda", s, "negative", err);
        if (lambda > WEFT_PRICE_ONE - p->total[s])
            return fail_price("lambda", s, "above 1 in sum over lanes and with rho", err);
        p->total[s] += lambda;
    }
    int64_t left = WEFT_PRICE_ONE - p->total[s];
    for (int32_t k = p->waits.first[s]; k < p->waits.first[s + 1]; k++) {
        if (p->kappa[k] < 0) return fail_price("kappa", s, "negative", err);
        if (p->kappa[k] > left)
            return fail_price("kappa", s, "above 1 in sum with lambda and rho", err);
        left -= p->kappa[k];
    }
    return WEFT_OK;
}

/* Fills kappa. */
static enum weft_status take_waits(struct pricing *p, struct weft_error *err)
{
    WEFT_TRY(weft_problem_waits(p->problem, &p->pool, &p->waits, err));
    p->kappa = weft_pool_array(&p->pool, (size_t)p->waits.n, sizeof *p->kappa);
    if (p->kappa == NULL) return weft_fail_memory(err, "prices");
    for (int32_t i = 0, least = 0; i < p->prices->n_waits; i++) {
        const struct weft_wait_price *wait = &p->prices->waits[i];
        if (wait->slot < 0 || wait->slot >= p->n_slots)
            return fail_price("kappa", wait->slot, "of no slot that there is", err);
        int32_t at = weft_waits_at(&p->waits, wait->slot, wait->lane);
        if (at < 0)
            return weft_fail(err, WEFT_E_DATA,
                             "certificate: kappa of slot %d is of lane %d, which does not share "
                             "the slot's wait with another lane",
                             wait->slot, wait->lane);
        if (at < least)
            return fail_price("kappa", wait->slot, "not in order of slot and lane", err);
        p->kappa[at] = wait->kappa;
        least = at + 1;
    }
    return WEFT_OK;
}

static enum weft_status sum_prices(struct pricing *p, struct weft_error *err)
{
    int64_t room = WEFT_PRICE_MOST_SUM;
    for (int32_t s = 0; s < p->n_slots; s++)
        WEFT_TRY(sum_slot(p, s, err));
    for (int32_t r = 0; r < p->n_rows; r++) {
        int64_t mu = p->prices->mu[r];
        if (mu < 0) return fail_price("mu", r % p->n_slots, "negative", err);
        if (mu > room)
            return fail_price("mu", r % p->n_slots, "too much: the sum is above 2^60", err);
        room -= mu;
        p->before[r + 1] = p->before[r] + mu;
    }
    for (int32_t g = 0; g < p->box->n_groups; g++)
        if (p->prices->pi[g] > WEFT_PRICE_MOST_PI || p->prices->pi[g] < -WEFT_PRICE_MOST_PI)
            return weft_fail(err, WEFT_E_DATA, "certificate: pi of group %d is above 2^40 ns", g);
    for (int32_t k = 0; k < p->prices->n_whole; k++) {
        const struct weft_whole_price *whole = &p->prices->whole[k];
        int32_t slot = whole->row % p->n_slots;
        if (whole->row < 0 || whole->row >= p->n_rows)
            return fail_price("whole row", slot, "of no slot that there is", err);
        if (whole->step_bytes < 1 || whole->step_bytes > WEFT_PROBLEM_MOST)
            return fail_price("step", slot, "not in 1 to 2^53 - 1 bytes", err);
        if (whole->nu < 0) return fail_price("nu", slot, "negative", err);
        if (whole->nu > room) return fail_price("nu", slot, "too much: the sum is above 2^60", err);
        room -= whole->nu;
    }
    return WEFT_OK;
}

/* Fills `held` with the bytes of every strategy of a decision in every row. */
static void hold_decision(const struct pricing *p, const struct weft_problem_decision *decision)
{
    size_t n_rows = (size_t)p->n_rows;
    memset(p->held, 0, (size_t)decision->n_strategies * n_rows * sizeof *p->held);
    for (int32_t q = 0; q < decision->n_strategies; q++) {
        const struct weft_problem_strategy *strategy = &decision->strategies[q];
        for (int32_t i = 0; i < strategy->n_holds; i++)
            weft_hold_add(&strategy->holds[i], p->n_slots, &p->held[(size_t)q * n_rows]);
    }
}

static int64_t held_in(const struct pricing *p, int32_t strategy, int32_t row)
{
    return p->held[(size_t)strategy * (size_t)p->n_rows + (size_t)row];
}

static struct weft_usual *usual_of(const struct pricing *p, int32_t row)
{
    return p->usual + (size_t)row * (size_t)p->problem->n_decisions;
}

/* Takes the bytes of every decision's reference in every whole row. */
static enum weft_status take_references(struct pricing *p, struct weft_error *err)
{
    for (int32_t u = 0; u < p->problem->n_decisions; u++) {
        const struct weft_problem_decision *decision = &p->problem->decisions[u];
        hold_decision(p, decision);
        for (int32_t k = 0; k < p->prices->n_whole; k++) {
            const struct weft_whole_price *whole = &p->prices->whole[k];
            int32_t strategy = whole->reference[u];
            if (strategy >= decision->n_strategies)
                return weft_fail(
                    err, WEFT_E_DATA,
                    "certificate: a whole row of slot %d refers to a strategy that decision "
                    "%d may not have",
                    whole->row % p->n_slots, u);
            int64_t bytes = held_in(p, strategy, whole->row);
            usual_of(p, k)[u] = (struct weft_usual){0, bytes, bytes};
        }
    }
    return WEFT_OK;
}

bool weft_usual_of_group(const struct weft_group *group, const uint8_t *reference, int32_t n_known,
                         struct weft_usual *usual)
{
    struct weft_usual of = {group->strategies, INT64_MAX, INT64_MAX};
    int32_t n = 0;
    for (int32_t k = 0; k < group->n_decisions; k++) {
        const struct weft_usual *own = &usual[group->decisions[k]];
        bool in = group->strategies >> reference[group->decisions[k]] & 1u;
        int64_t *least = in ? &of.in_bytes : &of.out_bytes;
        if (own->strategies != 0) return false;
        if (own->in_bytes < *least) *least = own->in_bytes;
        n += in;
    }
    if (n == 0 || n == group->n_decisions || n != n_known) return false;
    for (int32_t k = 0; k < group->n_decisions; k++)
        usual[group->decisions[k]] = of;
    return true;
}

int64_t weft_usual_sum(const struct weft_usual *usual, const uint8_t *reference,
                       int32_t n_decisions)
{
    int64_t bytes = 0;
    for (int32_t u = 0; u < n_decisions; u++)
        bytes += weft_usual_bytes(&usual[u], reference[u]);
    return bytes;
}

static enum weft_status make_rows(struct pricing *p, struct weft_error *err)
{
    size_t n_rows = (size_t)p->n_rows, n_whole = (size_t)p->prices->n_whole;
    if (n_whole == 0) return WEFT_OK;
    p->rows = weft_pool_array(&p->pool, n_whole, sizeof *p->rows);
    p->next_row = weft_pool_array(&p->pool, n_whole, sizeof *p->next_row);
    p->first_row = weft_pool_array(&p->pool, n_rows, sizeof *p->first_row);
    p->held = weft_pool_array(&p->pool, (size_t)weft_problem_most_strategies(p->problem) * n_rows,
                              sizeof *p->held);
    int64_t *common = weft_pool_array(&p->pool, n_rows, sizeof *common);
    p->usual =
        weft_pool_array(&p->pool, n_whole * (size_t)p->problem->n_decisions + 1, sizeof *p->usual);
    if (!p->rows || !p->next_row || !p->first_row || !p->held || !common || !p->usual)
        return weft_fail_memory(err, "prices");
    for (int32_t i = 0; i < p->problem->n_common; i++)
        weft_hold_add(&p->problem->common[i], p->n_slots, common);
    for (size_t r = 0; r < n_rows; r++)
        p->first_row[r] = -1;
    WEFT_TRY(take_references(p, err));
    for (int32_t k = 0; k < p->prices->n_whole; k++) {
        const struct weft_whole_price *whole = &p->prices->whole[k];
        int32_t tier = whole->row / p->n_slots;
        int64_t room_bytes = p->problem->tiers[tier].limit_bytes - common[whole->row];
        struct weft_usual *usual = usual_of(p, k);
        for (int32_t g = 0; g < p->box->n_groups && whole->relies != NULL; g++)
            if (whole->relies[g])
                (void)weft_usual_of_group(&p->box->groups[g], whole->reference,
                                          weft_box_count(p->box, g), usual);
        room_bytes -= weft_usual_sum(usual, whole->reference, p->problem->n_decisions);
        p->rows[k] = weft_whole_row(whole->row, whole->step_bytes, room_bytes);
        p->next_row[k] = p->first_row[whole->row];
        p->first_row[whole->row] = k;
    }
    return WEFT_OK;
}

struct weft_whole_row weft_whole_row(int32_t row, int64_t step_bytes, int64_t room_bytes)
{
    int64_t steps = room_bytes / step_bytes, rest = room_bytes % step_bytes;
    if (rest < 0) {
        rest += step_bytes;
        steps--;
    }
    return (struct weft_whole_row){row, step_bytes, rest, steps * (step_bytes - rest)};
}

/* The cost of a held block in the whole rows of a memory row. */
static weft_int128 whole_cost(const struct pricing *p, int32_t row, int64_t bytes)
{
    weft_int128 cost = 0;
    if (!p->rows || bytes == 0) return 0;
    for (int32_t k = p->first_row[row]; k >= 0; k = p->next_row[k])
        cost += (weft_int128)p->prices->whole[k].nu * weft_whole_count(&p->rows[k], bytes);
    return cost;
}

/* The cost of a strategy of the decision in `held`, in a whole row. */
static weft_int128 strategy_cost(const struct pricing *p, int32_t row, int32_t decision,
                                 int32_t strategy)
{
    const struct weft_whole_price *whole = &p->prices->whole[row];
    const struct weft_usual *usual = &usual_of(p, row)[decision];
    int64_t more = held_in(p, strategy, whole->row) - weft_usual_bytes(usual, strategy);
    return (weft_int128)whole->nu * weft_whole_count(&p->rows[row], more);
}

/* f(T) of prices.h in 2^-40 ns, rounded down. */
static weft_int128 compute_cost(const struct pricing *p, int64_t ns, int32_t slot)
{
    const int64_t part = WEFT_PRICE_ONE - p->covered[slot];
    weft_int128 whole = (weft_int128)ns * part, paid = whole;
    for (int32_t k = WEFT_LANE_FIRST; k < p->problem->n_lanes; k++) {
        int32_t rate = p->problem->lanes[k].rates.compute;
        weft_int128 gain = (weft_int128)(WEFT_RATE_ONE - rate) * part;
        for (int32_t j = WEFT_LANE_FIRST; j < p->problem->n_lanes; j++)
            if (p->problem->lanes[j].rates.compute >= rate)
                gain -= (weft_int128)p->problem->lanes[j].rates.own * lambda_of(p, j)[slot];
        if (gain >= 0) continue;
        weft_int128 cost = whole - (-gain * ns + rate - 1) / rate;
        if (cost < paid) paid = cost;
    }
    return paid;
}

/* Sum of mu over the slots of a hold. */
static int64_t hold_mu(const struct pricing *p, const struct weft_hold *hold)
{
    const int64_t *before = p->before + weft_problem_tier_at(p->problem, hold->tier);
    if (hold->first <= hold->last) return before[hold->last + 1] - before[hold->first];
    return before[p->n_slots] - before[hold->first] + before[hold->last + 1] - before[0];
}

/* Fills `stair` with the cost of holding a block of an item: for a gather from a slot to the last
 * of its window, for a reduction from the first to the slot. */
static void price_stair(const struct pricing *p, const struct weft_item *item)
{
    bool gathers = item->acquires;
    int32_t at = gathers ? item->last : item->first, step = gathers ? -1 : 1;
    int32_t rows = weft_problem_stair_at(p->problem, item);
    weft_int128 sum = 0;
    for (; at >= item->first && at <= item->last; at += step) {
        sum += (weft_int128)p->prices->mu[rows + at] * item->stair_bytes;
        sum += whole_cost(p, rows + at, item->stair_bytes);
        p->stair[at] = sum;
    }
}

/* The cost of a block of a gather that blocks. */
static weft_int128 blocking_cost(const struct pricing *p, const struct weft_problem_item *of)
{
    int32_t use = of->item.last + 1;
    int32_t shared = weft_waits_at(&p->waits, use, of->lane);
    int64_t kappa = shared < 0 ? WEFT_PRICE_ONE - p->total[use] : p->kappa[shared];
    return (weft_int128)(lambda_of(p, of->lane)[use] + kappa) * of->block_ns;
}

/* The least cost of all blocks of an item. Spans with equal holding widen away from a common end,
 * and share a walk. */
static weft_int128 item_cost(const struct pricing *p, int32_t i)
{
    const struct weft_problem_item *of = &p->problem->items[i];
    const struct weft_item *item = &of->item;
    const int64_t *lambda = lambda_of(p, of->lane);
    const struct weft_span *spans = p->box->spans + p->box->span_start[i];
    bool gathers = item->acquires;
    int32_t at = 0, step = gathers ? -1 : 1;
    weft_int128 least = 0, sum = 0;
    price_stair(p, item);
    for (int32_t k = 0; k < p->box->n_spans[i]; k++) {
        const struct weft_span *span = &spans[k];
        if (k == 0 || span->hold != span[-1].hold ||
            (gathers ? span->last != span[-1].last : span->first != span[-1].first)) {
            at = gathers ? span->last : span->first;
            least = gathers && span->hold > item->last ? blocking_cost(p, of) : WEFT_PRICED_OUT;
        }
        for (; at >= span->first && at <= span->last; at += step) {
            bool inside = gathers ? at > span->hold : at < span->hold;
            weft_int128 cost =
                (weft_int128)lambda[at] * of->block_ns + p->stair[inside ? span->hold : at];
            if (cost < least) least = cost;
        }
        sum += least * span->n_blocks;
    }
    return sum;
}

/* Adds the prices of chains to the strategies that have them. */
static void price_chains(const struct pricing *p, struct weft_priced *out)
{
    for (int32_t k = 0; k < p->prices->n_chains; k++) {
        const struct weft_chain_price *price = &p->prices->chains[k];
        const struct weft_item *end = &p->problem->items[price->item].item;
        weft_int128 cost = (weft_int128)price->rho * weft_problem_chain(p->problem, price->item).ns;
        weft_int128 *costs = out->cost + weft_strategy_at(p->problem, end->decision, 0);
        for (int32_t q = 0; q < p->problem->decisions[end->decision].n_strategies; q++)
            if (end->strategies >> q & 1u && costs[q] != WEFT_PRICED_OUT) costs[q] += cost;
    }
}

/* Prices the count of a group: `pi` for each decision above the most, or below the least. */
static void price_group(const struct pricing *p, int32_t g, struct weft_priced *out)
{
    const struct weft_group *group = &p->box->groups[g];
    weft_int128 pi = (weft_int128)p->prices->pi[g] * WEFT_PRICE_ONE;
    int32_t count = pi > 0 ? p->box->most_count[g] : p->box->least_count[g];
    if (pi == 0 || count == (pi > 0 ? group->n_decisions : 0)) return;
    out->rest -= pi * count;
    for (int32_t k = 0; k < group->n_decisions; k++) {
        weft_int128 *cost = out->cost + weft_strategy_at(p->problem, group->decisions[k], 0);
        for (int32_t q = 0; q < p->problem->decisions[group->decisions[k]].n_strategies; q++)
            if (group->strategies >> q & 1u && cost[q] != WEFT_PRICED_OUT) cost[q] += pi;
    }
}

static void apply_prices(const struct pricing *p, struct weft_priced *out)
{
    const struct weft_problem *problem = p->problem;
    out->rest = (weft_int128)weft_problem_agreements_ns(problem) << WEFT_PRICE_SHIFT;
    for (int32_t tier = 0; tier < problem->n_tiers; tier++) {
        const int64_t *before = p->before + weft_problem_tier_at(problem, tier);
        out->rest -=
            (weft_int128)(before[p->n_slots] - before[0]) * problem->tiers[tier].limit_bytes;
    }
    for (int32_t s = 0; s < p->n_slots; s++)
        out->rest += compute_cost(p, problem->slot_ns[s], s);
    for (int32_t k = 0; k < p->prices->n_whole; k++)
        out->rest -= (weft_int128)p->prices->whole[k].nu * p->rows[k].room_bytes;
    for (int32_t i = 0; i < problem->n_common; i++)
        out->rest += (weft_int128)hold_mu(p, &problem->common[i]) * problem->common[i].bytes;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *decision = &problem->decisions[u];
        weft_int128 *cost = out->cost + weft_strategy_at(p->problem, u, 0);
        if (p->rows) hold_decision(p, decision);
        for (int32_t q = 0; q < decision->n_strategies; q++) {
            const struct weft_problem_strategy *strategy = &decision->strategies[q];
            cost[q] = WEFT_PRICED_OUT;
            if (!(p->box->allowed[u] >> q & 1u)) continue;
            cost[q] = 0;
            for (int32_t i = 0; i < strategy->n_holds; i++)
                cost[q] += (weft_int128)hold_mu(p, &strategy->holds[i]) * strategy->holds[i].bytes;
            for (int32_t k = 0; k < p->prices->n_whole; k++)
                cost[q] += strategy_cost(p, k, u, q);
            for (int32_t i = 0; i < strategy->n_times; i++)
                cost[q] += compute_cost(p, strategy->times[i].ns, strategy->times[i].slot);
        }
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        uint64_t strategies = item->strategies & p->box->allowed[item->decision];
        if (strategies == 0) continue;
        weft_int128 cost = item_cost(p, i);
        for (int32_t q = 0; q < p->problem->decisions[item->decision].n_strategies; q++)
            if (strategies >> q & 1u)
                out->cost[weft_strategy_at(p->problem, item->decision, q)] += cost;
    }
    price_chains(p, out);
    for (int32_t g = 0; g < p->box->n_groups; g++)
        price_group(p, g, out);
}

enum weft_status weft_prices_apply(const struct weft_box *box, const struct weft_prices *prices,
                                   struct weft_priced *out, struct weft_error *err)
{
    const struct weft_problem *problem = box->problem;
    struct pricing p = {
        .box = box, .problem = problem, .prices = prices, .n_slots = problem->n_slots};
    p.n_rows = weft_problem_n_rows(problem);
    p.total = weft_pool_array(&p.pool, 2 * (size_t)problem->n_slots + (size_t)p.n_rows + 1,
                              sizeof *p.total);
    p.stair = weft_pool_array(&p.pool, (size_t)problem->n_slots, sizeof *p.stair);
    if (p.total == NULL || p.stair == NULL) {
        weft_pool_finish(&p.pool);
        return weft_fail_memory(err, "prices");
    }
    p.covered = p.total + problem->n_slots;
    p.before = p.covered + problem->n_slots;
    enum weft_status status = take_waits(&p, err);
    if (status == WEFT_OK) status = take_chains(&p, err);
    if (status == WEFT_OK) status = sum_prices(&p, err);
    if (status == WEFT_OK) status = make_rows(&p, err);
    if (status == WEFT_OK) apply_prices(&p, out);
    weft_pool_finish(&p.pool);
    return status;
}

int64_t weft_priced_bound_ns(const struct weft_problem *problem, const struct weft_priced *priced,
                             const uint64_t *allowed)
{
    weft_int128 sum = priced->rest;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const weft_int128 *cost = priced->cost + weft_strategy_at(problem, u, 0);
        int least = -1;
        for (int32_t q = 0; q < problem->decisions[u].n_strategies; q++)
            if (allowed[u] >> q & 1u && cost[q] != WEFT_PRICED_OUT &&
                (least < 0 || cost[q] < cost[least]))
                least = q;
        if (least < 0) return WEFT_PROBLEM_MOST;
        sum += cost[least];
    }
    if (sum <= 0) return 0;
    weft_int128 ns = (sum + WEFT_PRICE_ONE - 1) >> WEFT_PRICE_SHIFT;
    return ns > WEFT_PROBLEM_MOST ? WEFT_PROBLEM_MOST : (int64_t)ns;
}
