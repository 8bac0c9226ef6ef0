/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/relax/ilp_build.h"
#include "scheduler/relax/ilp_keeper.h"

/* Whole rows beyond one a memory row. */
enum { MORE_ROWS = 256 };

/* Exponent that brings `value` into [2^(bits-1), 2^bits). */
static int shift_to(int64_t value, int bits)
{
    int exponent = 0;
    (void)frexp(value > 0 ? (double)value : 1.0, &exponent);
    return exponent - bits;
}

/* A prefix of several items is a column, defined by the column before it. Due blocks of gathers
 * that may block have a column too: it excludes the blocks that do. */
static void chain_prefix(struct weft_ilp_build *build, struct weft_ilp_class *of,
                         struct weft_ilp_prefix *prefix)
{
    for (int32_t k = 0; k < prefix->n; k++) {
        bool may_block = of->may_block && prefix == &of->due;
        prefix->columns[k] = prefix->blocking[k] = -1;
        if (of->n_items == 1 && !may_block) continue;
        int32_t column = weft_ilp_add_column(build, 0, 0, of->most);
        weft_ilp_add_entry(build, column, 1);
        if (may_block) {
            bool shared = weft_waits_at(&build->ilp->waits, prefix->slots[k] + 1, of->lane) >= 0;
            double cost = shared ? 0 : of->unit_time;
            prefix->blocking[k] = weft_ilp_add_column(build, cost, 0, of->most);
            weft_ilp_add_entry(build, prefix->blocking[k], 1);
        }
        if (k > 0) weft_ilp_add_entry(build, prefix->columns[k - 1], -1);
        for (int32_t i = 0; i < of->n_items; i++) {
            const struct weft_item *item = &build->ilp->table->problem->items[of->items[i]].item;
            if ((prefix == &of->due ? item->last : item->first) == prefix->slots[k])
                weft_ilp_add_item(build, of, of->items[i], -1);
        }
        weft_ilp_end_row(build, 0, 0);
        prefix->columns[k] = column;
    }
}

/* Gathers are launched before they are placed, reductions are placed before they are complete. */
static void build_held(struct weft_ilp_build *build, struct weft_ilp_class *of)
{
    of->held = of->column;
    if (of->n_items > 1 || of->unit_bytes == 0 ||
        !weft_digest_is_short(build->ilp->table, of->tier))
        return;
    for (int32_t s = of->first; s < of->last; s++) {
        int32_t column = weft_ilp_add_column(build, 0, 0, of->most);
        if (s == of->first) of->held = column;
        weft_ilp_add_entry(build, column, 1);
        weft_ilp_add_entry(build, of->column + s - of->first, -1);
        weft_ilp_end_row(build, of->gathers ? 0 : -INFINITY, of->gathers ? INFINITY : 0);
    }
}

/* Blocks are released before they are placed and placed before they are due; none is taken back. */
static void build_class(struct weft_ilp_build *build, struct weft_ilp_class *of)
{
    chain_prefix(build, of, &of->released);
    chain_prefix(build, of, &of->due);
    for (int32_t s = of->first; s < of->last; s++) {
        int32_t column = weft_ilp_add_column(build, 0, 0, of->most);
        if (s == of->first) of->column = column;
    }
    build_held(build, of);
    for (int32_t s = of->first + 1; s <= of->last; s++) {
        weft_ilp_add_placed(build, of, s, 1);
        weft_ilp_add_placed(build, of, s - 1, -1);
        weft_ilp_end_row(build, 0, INFINITY);
    }
    for (int32_t k = 0; k + 1 < of->released.n; k++) {
        /* Blocks placed before the next release were released earlier. */
        int32_t s = of->released.slots[k + 1] - 1;
        if (s >= of->last) break;
        weft_ilp_add_placed(build, of, s, 1);
        weft_ilp_add_prefix(build, of, &of->released, s, -1);
        weft_ilp_end_row(build, -INFINITY, 0);
    }
    for (int32_t k = 0; k + 1 < of->due.n; k++) {
        weft_ilp_add_placed(build, of, of->due.slots[k], 1);
        weft_ilp_add_prefix(build, of, &of->due, of->due.slots[k], -1);
        weft_ilp_end_row(build, 0, INFINITY);
    }
}

static void build_strategies(struct weft_ilp_build *build)
{
    struct weft_ilp *ilp = build->ilp;
    const struct weft_digest *table = ilp->table;
    for (int32_t u = 0; u < table->n_decisions; u++) {
        const struct weft_problem_decision *decision = &table->problem->decisions[u];
        int32_t *own = &ilp->z[weft_digest_at(table, u, 0)], n = 0;
        for (int32_t p = 0; p < decision->n_strategies; p++) {
            int32_t *z = &own[p];
            *z = -1;
            if (ilp->chosen ? ilp->chosen[u] != p : !weft_ilp_worth_a_column(table, u, p)) continue;
            const struct weft_problem_strategy *strategy = &decision->strategies[p];
            double cost = 0;
            for (int32_t i = 0; i < strategy->n_times; i++)
                cost += weft_ilp_time_units(ilp, strategy->times[i].ns);
            bool fits = ilp->chosen || weft_ilp_full_row(table, u, p) < 0;
            *z = weft_ilp_add_column(build, cost, 0, fits ? 1 : 0);
            n++;
        }
        for (int32_t p = 0; p < decision->n_strategies; p++) {
            if (own[p] < 0) continue;
            weft_ilp_add_entry(build, own[p], 1);
            if (n == 1 && !build->failed) {
                ilp->lp.lower[own[p]] = 1;
                ilp->lp.upper[own[p]] = 1;
            }
        }
        weft_ilp_end_row(build, 1, 1);
    }
}

/* Adds -factor * (compute time of the slot) as far as strategies choose it; returns the rest. */
static double add_compute(struct weft_ilp_build *build, int32_t slot, double factor)
{
    const struct weft_ilp *ilp = build->ilp;
    const struct weft_problem *problem = ilp->table->problem;
    for (int32_t k = ilp->first_timed[slot]; k < ilp->first_timed[slot + 1]; k++) {
        const int32_t u = ilp->timed[k];
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            int32_t z = ilp->z[weft_digest_at(ilp->table, u, p)];
            int64_t ns = weft_strategy_ns(&problem->decisions[u].strategies[p], slot);
            if (z >= 0) weft_ilp_add_entry(build, z, -factor * weft_ilp_time_units(ilp, ns));
        }
    }
    return factor * weft_ilp_time_units(ilp, problem->slot_ns[slot]);
}

/* Adds the times next to lanes. In each the slot computes at its rate, and all together compute no
 * more than the slot has. Their cost is the compute time that contention loses. */
static void build_beside(struct weft_ilp_build *build, int32_t slot, double most)
{
    struct weft_ilp *ilp = build->ilp;
    int32_t n_slots = ilp->table->n_slots;
    if (ilp->n_rates == 0) return;
    for (int32_t k = 0; k < ilp->n_rates; k++) {
        double rate = (double)ilp->rates[k] / WEFT_RATE_ONE;
        ilp->beside[k * n_slots + slot] = weft_ilp_add_column(build, 1 - rate, 0, most);
    }
    for (int32_t k = 0; k < ilp->n_rates; k++)
        weft_ilp_add_entry(build, ilp->beside[k * n_slots + slot],
                           (double)ilp->rates[k] / WEFT_RATE_ONE);
    weft_ilp_end_row(build, -INFINITY, add_compute(build, slot, 1));
}

/* Adds factor * (time of the class's blocks that block the slot) to the open row. False if it has
 * none. */
static bool add_blocking(struct weft_ilp_build *build, const struct weft_ilp_class *of,
                         int32_t slot, double factor)
{
    for (int32_t k = 0; of->may_block && k < of->due.n; k++) {
        if (of->due.slots[k] + 1 != slot) continue;
        weft_ilp_add_entry(build, of->due.blocking[k], factor * of->unit_time);
        return true;
    }
    return false;
}

/* Adds to a lane's row the blocks that block the slot. Blocks of the lane itself are more to move.
 * Time that the slot waits for another lane's blocks is free for this lane. If several lanes may
 * block the slot, its wait has that time. */
static void add_waits(struct weft_ilp_build *build, const struct weft_ilp_class *of, int32_t slot,
                      int32_t lane)
{
    bool shared = weft_waits_at(&build->ilp->waits, slot, of->lane) >= 0;
    if (shared && of->lane == lane) (void)add_blocking(build, of, slot, 1);
    if (!shared && of->lane != lane) (void)add_blocking(build, of, slot, -1);
}

/* A slot waits at least for the blocks of each lane that block it. */
static void build_waits(struct weft_ilp_build *build, int32_t slot)
{
    struct weft_ilp *ilp = build->ilp;
    for (int32_t k = ilp->waits.first[slot]; k < ilp->waits.first[slot + 1]; k++) {
        bool any = false;
        for (int32_t c = 0; c < ilp->n_classes; c++)
            if (ilp->classes[c].lane == ilp->waits.lanes[k])
                any |= add_blocking(build, &ilp->classes[c], slot, 1);
        ilp->wait_row[k] = any ? build->n_rows : -1;
        if (!any) continue;
        weft_ilp_add_entry(build, ilp->wait[slot], -1);
        weft_ilp_end_row(build, -INFINITY, 0);
    }
}

/* True if some class moves blocks in the slot, or has blocks that share its wait. */
static bool may_wait(const struct weft_ilp *ilp, int32_t slot, bool used[WEFT_MOST_LANES])
{
    bool any = false;
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *of = &ilp->classes[c];
        if (slot >= of->first && slot <= of->last) used[of->lane] = any = true;
        any |= of->may_block && slot == of->last + 1 &&
               weft_waits_at(&ilp->waits, slot, of->lane) >= 0;
    }
    return any;
}

/* A lane's work in a slot fits into the lane's time. That is the slot's wait, its wait for blocks
 * that block it, and the time next to compute. Next to compute the lane runs at its own rate, where
 * compute is no faster than the lane leaves it. */
static void build_load(struct weft_ilp_build *build, int32_t slot, int32_t lane)
{
    struct weft_ilp *ilp = build->ilp;
    const struct weft_problem *problem = ilp->table->problem;
    struct weft_rates rates = problem->lanes[lane].rates;
    double room = 0;
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *of = &ilp->classes[c];
        add_waits(build, of, slot, lane);
        if (of->lane != lane || slot < of->first || slot > of->last) continue;
        weft_ilp_add_placed(build, of, slot, of->unit_time);
        weft_ilp_add_placed(build, of, slot - 1, -of->unit_time);
    }
    weft_ilp_add_entry(build, ilp->wait[slot], -1);
    if (ilp->n_rates == 0) room = add_compute(build, slot, 1);
    for (int32_t k = 0; k < ilp->n_rates && ilp->rates[k] <= rates.compute; k++)
        weft_ilp_add_entry(build, ilp->beside[k * problem->n_slots + slot],
                           -(double)rates.own / WEFT_RATE_ONE);
    weft_ilp_end_row(build, -INFINITY, room);
}

/* The most time that the chain takes beyond the least compute of its slots under any strategies. */
static int64_t most_missing_ns(const struct weft_problem *problem, const struct weft_chain *chain)
{
    int64_t ns = chain->ns;
    for (int32_t s = chain->first; s <= chain->last; s++) {
        int32_t u = problem->slot_decisions[s];
        int64_t least_ns = u < 0 ? 0 : INT64_MAX;
        for (int32_t p = 0; u >= 0 && p < problem->decisions[u].n_strategies; p++) {
            int64_t chosen_ns = weft_strategy_ns(&problem->decisions[u].strategies[p], s);
            if (chosen_ns < least_ns) least_ns = chosen_ns;
        }
        ns -= problem->slot_ns[s] + least_ns;
    }
    return ns;
}

/* True if the item ends a chain that may take longer than its slots compute. */
static bool may_last(const struct weft_ilp *ilp, int32_t item, struct weft_chain *chain)
{
    *chain = weft_problem_chain(ilp->table->problem, item);
    return ilp->table->problem->items[item].after >= 0 && weft_ilp_strategy_mask(ilp, item) != 0 &&
           most_missing_ns(ilp->table->problem, chain) > 0;
}

/* Adds factor * (time that the slot waits). */
static void add_waiting(struct weft_ilp_build *build, int32_t slot, double factor)
{
    const struct weft_ilp *ilp = build->ilp;
    for (int32_t c = 0; c < ilp->n_classes; c++)
        if (weft_waits_at(&ilp->waits, slot, ilp->classes[c].lane) < 0)
            (void)add_blocking(build, &ilp->classes[c], slot, factor);
    if (ilp->wait[slot] >= 0) weft_ilp_add_entry(build, ilp->wait[slot], factor);
}

/* Adds the time of slots up to this one, without their compute that no strategy changes. */
static void build_lasted(struct weft_ilp_build *build, int32_t slot)
{
    struct weft_ilp *ilp = build->ilp;
    ilp->lasted[slot] = weft_ilp_add_column(build, 0, 0, INFINITY);
    weft_ilp_add_entry(build, ilp->lasted[slot], 1);
    if (slot > 0 && ilp->lasted[slot - 1] >= 0)
        weft_ilp_add_entry(build, ilp->lasted[slot - 1], -1);
    add_waiting(build, slot, -1);
    for (int32_t k = 0; k < ilp->n_rates && ilp->wait[slot] >= 0; k++)
        weft_ilp_add_entry(build, ilp->beside[k * ilp->table->n_slots + slot],
                           (double)ilp->rates[k] / WEFT_RATE_ONE - 1);
    (void)add_compute(build, slot, 1);
    weft_ilp_end_row(build, 0, 0);
}

/* Adds a row: a chain's slots last at least as long as the chain takes. */
static void build_chain(struct weft_ilp_build *build, int32_t item, const struct weft_chain *chain)
{
    struct weft_ilp *ilp = build->ilp;
    int32_t decision = ilp->table->problem->items[item].item.decision;
    uint64_t mask = weft_ilp_strategy_mask(ilp, item);
    int64_t compute_ns = 0;
    for (int32_t s = chain->first; s <= chain->last; s++)
        compute_ns += ilp->table->problem->slot_ns[s];
    weft_ilp_add_entry(build, ilp->lasted[chain->last], 1);
    if (chain->first > 0 && ilp->lasted[chain->first - 1] >= 0)
        weft_ilp_add_entry(build, ilp->lasted[chain->first - 1], -1);
    if (chain->may_block) add_waiting(build, chain->last + 1, 1);
    for (int32_t p = 0; p < weft_digest_count(ilp->table, decision); p++)
        if (mask >> p & 1u)
            weft_ilp_add_entry(build, ilp->z[weft_digest_at(ilp->table, decision, p)],
                               -weft_ilp_time_units(ilp, chain->ns));
    ilp->chain_row[item] = build->n_rows;
    weft_ilp_end_row(build, -weft_ilp_time_units(ilp, compute_ns), INFINITY);
}

static void build_chains(struct weft_ilp_build *build)
{
    struct weft_ilp *ilp = build->ilp;
    int32_t first = INT32_MAX, last = -1;
    struct weft_chain chain;
    for (int32_t i = 0; i < ilp->table->n_items; i++) {
        ilp->chain_row[i] = -1;
        if (!may_last(ilp, i, &chain)) continue;
        if (chain.first < first) first = chain.first;
        if (chain.last > last) last = chain.last;
    }
    for (int32_t s = 0; s < ilp->table->n_slots; s++)
        ilp->lasted[s] = -1;
    for (int32_t s = first; s <= last; s++)
        build_lasted(build, s);
    for (int32_t i = 0; i < ilp->table->n_items; i++)
        if (may_last(ilp, i, &chain)) build_chain(build, i, &chain);
}

/* Finds the rates of compute next to busy lanes, the least first. */
static void find_rates(struct weft_ilp *ilp)
{
    const struct weft_problem *problem = ilp->table->problem;
    if (!weft_problem_contends(problem)) return;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        int32_t rate = problem->lanes[lane].rates.compute, at = ilp->n_rates;
        while (at > 0 && ilp->rates[at - 1] >= rate)
            at--;
        if (at < ilp->n_rates && ilp->rates[at] == rate) continue;
        for (int32_t k = ilp->n_rates++; k > at; k--)
            ilp->rates[k] = ilp->rates[k - 1];
        ilp->rates[at] = rate;
    }
}

/* The most that a slot may compute next to lanes: while one is busy, at its rate. */
static double most_beside(const struct weft_ilp *ilp, double most_wait)
{
    const struct weft_problem *problem = ilp->table->problem;
    int32_t least = WEFT_RATE_ONE;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++)
        if (problem->lanes[lane].rates.own < least) least = problem->lanes[lane].rates.own;
    return most_wait * WEFT_RATE_ONE / least * (1 + 1e-9);
}

static void build_loads(struct weft_ilp_build *build)
{
    struct weft_ilp *ilp = build->ilp;
    const struct weft_problem *problem = ilp->table->problem;
    int32_t n_moving = weft_problem_n_moving(problem), n_slots = problem->n_slots;
    /* The compute stream waits for a lane, which is busy meanwhile. */
    double most_wait = weft_ilp_time_units(ilp, ilp->table->most_lane_ns);
    find_rates(ilp);
    for (int32_t i = 0; i < n_moving * n_slots; i++)
        ilp->load_row[i] = ilp->beside[i] = -1;
    for (int32_t s = 0; s < n_slots; s++) {
        bool used[WEFT_MOST_LANES] = {false};
        ilp->wait[s] = -1;
        if (!may_wait(ilp, s, used)) continue;
        ilp->wait[s] = weft_ilp_add_column(build, 1, 0, most_wait);
        build_beside(build, s, most_beside(ilp, most_wait));
        for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
            if (!used[lane]) continue;
            ilp->load_row[weft_problem_lane_at(problem, lane) + (size_t)s] = build->n_rows;
            build_load(build, s, lane);
        }
        build_waits(build, s);
    }
    build_chains(build);
}

/* Adds the column of the bytes that strategies hold in a memory row, bounded by a room. */
static void build_hold(struct weft_ilp_build *build, int32_t row, double room)
{
    struct weft_ilp *ilp = build->ilp;
    const struct weft_digest *table = ilp->table;
    bool first = row % table->n_slots == 0;
    ilp->hold[row] = weft_ilp_add_column(build, 0, 0, room);
    weft_ilp_add_entry(build, ilp->hold[row], 1);
    if (!first) weft_ilp_add_entry(build, ilp->hold[row - 1], -1);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            int32_t z = ilp->z[weft_digest_at(ilp->table, u, p)];
            int64_t change = weft_digest_fixed(table, u, p, row);
            if (!first) change -= weft_digest_fixed(table, u, p, row - 1);
            if (z >= 0 && change != 0)
                weft_ilp_add_entry(build, z, -weft_ilp_bytes_units(ilp, change));
        }
    }
    weft_ilp_end_row(build, 0, 0);
}

/* Adds the row of a tier's slot: the bytes that strategies and blocks hold together. */
static void build_row(struct weft_ilp_build *build, int32_t tier, int32_t s, double room)
{
    struct weft_ilp *ilp = build->ilp;
    int32_t row = weft_problem_tier_at(ilp->table->problem, tier) + s;
    bool any = false;
    for (int32_t c = 0; c < ilp->n_classes; c++) {
        const struct weft_ilp_class *of = &ilp->classes[c];
        if (s < of->first || s > of->last || of->unit_bytes == 0 || of->tier != tier) continue;
        any = true;
        if (of->gathers) {
            weft_ilp_add_held(build, of, s, of->unit_bytes);
            weft_ilp_add_prefix(build, of, &of->due, s - 1, -of->unit_bytes);
        } else {
            weft_ilp_add_prefix(build, of, &of->released, s, of->unit_bytes);
            weft_ilp_add_held(build, of, s - 1, -of->unit_bytes);
        }
    }
    if (!any) return;
    weft_ilp_add_entry(build, ilp->hold[row], 1);
    ilp->memory_row[row] = build->n_rows;
    weft_ilp_end_row(build, -INFINITY, room);
}

static void build_memory(struct weft_ilp_build *build)
{
    struct weft_ilp *ilp = build->ilp;
    const struct weft_digest *table = ilp->table;
    for (int32_t tier = 0, row = 0; tier < table->problem->n_tiers; tier++) {
        for (int32_t s = 0; s < table->n_slots; s++, row++) {
            ilp->hold[row] = ilp->memory_row[row] = -1;
            if (!weft_digest_is_short(table, tier)) continue;
            double room = weft_ilp_bytes_units(ilp, ilp->limit_bytes - table->common[row]);
            build_hold(build, row, room);
            build_row(build, tier, s, room);
        }
    }
}

static void choose_units(struct weft_ilp *ilp)
{
    const struct weft_problem *problem = ilp->table->problem;
    int64_t total_ns = ilp->table->most_lane_ns + weft_problem_agreements_ns(problem);
    for (int32_t s = 0; s < problem->n_slots; s++)
        total_ns += problem->slot_ns[s];
    ilp->time_shift = shift_to(total_ns, 14);
    ilp->bytes_shift = shift_to(ilp->limit_bytes, 11);
}

/* The class of an item that has one of its own; NULL: none. */
static const struct weft_ilp_class *own_class(const struct weft_ilp *ilp, int32_t item)
{
    for (int32_t c = 0; c < ilp->n_classes; c++)
        if (ilp->classes[c].n_items == 1 && ilp->classes[c].items[0] == item)
            return &ilp->classes[c];
    return NULL;
}

/* Blocks of an item move no earlier than those of the item before it in its chain. */
static void build_orders(struct weft_ilp_build *build)
{
    const struct weft_problem *problem = build->ilp->table->problem;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_ilp_class *of = own_class(build->ilp, i), *before;
        if (!of || !of->counts || problem->items[i].after < 0) continue;
        before = own_class(build->ilp, problem->items[i].after);
        if (!before || !before->counts) continue;
        for (int32_t s = of->first; s < of->last && s < before->last; s++) {
            weft_ilp_add_placed(build, before, s, 1);
            weft_ilp_add_placed(build, of, s, -1);
            weft_ilp_end_row(build, 0, INFINITY);
        }
    }
}

static enum weft_status build_all(struct weft_ilp *ilp, int32_t most_columns,
                                  struct weft_error *err)
{
    struct weft_ilp_build build = {.ilp = ilp};
    const struct weft_problem *problem = ilp->table->problem;
    enum weft_status status = WEFT_OK;
    int64_t fixed_ns = weft_problem_agreements_ns(problem);
    for (int32_t s = 0; s < problem->n_slots; s++)
        fixed_ns += problem->slot_ns[s];
    ilp->fixed = weft_ilp_add_column(&build, weft_ilp_time_units(ilp, fixed_ns), 1, 1);
    build_strategies(&build);
    if (!build.failed) status = weft_ilp_classify(ilp, most_columns, err);
    for (int32_t c = 0; status == WEFT_OK && c < ilp->n_classes; c++)
        build_class(&build, &ilp->classes[c]);
    if (status == WEFT_OK) {
        build_loads(&build);
        build_memory(&build);
        if (ilp->chosen) build_orders(&build);
    }
    ilp->lp.n_columns = build.n_columns;
    ilp->lp.n_rows = build.n_rows;
    ilp->lp.n_entries = build.n_entries;
    free(build.row);
    free(build.touched);
    free(build.in_row);
    if (status == WEFT_OK && build.failed) status = weft_fail_memory(err, "an integer program");
    return status;
}

/* Counts a decision once in each slot that one of its strategies adds time to. With `timed`, lists
 * it there; next [n_slots] is where. seen [n_slots] has the last decision that was counted. */
static void list_timed(const struct weft_problem *problem, int32_t *seen, int32_t *next,
                       int32_t *timed)
{
    for (int32_t s = 0; s < problem->n_slots; s++)
        seen[s] = -1;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        for (int32_t p = 0; p < problem->decisions[u].n_strategies; p++) {
            const struct weft_problem_strategy *of = &problem->decisions[u].strategies[p];
            for (int32_t i = 0; i < of->n_times; i++) {
                const int32_t s = of->times[i].slot;
                if (seen[s] == u) continue;
                seen[s] = u;
                if (timed) timed[next[s]] = u;
                next[s]++;
            }
        }
    }
}

static enum weft_status find_timed(struct weft_ilp *ilp, struct weft_error *err)
{
    const struct weft_problem *problem = ilp->table->problem;
    const size_t n_slots = (size_t)problem->n_slots;
    int32_t *seen = calloc(2 * n_slots, sizeof *seen), n = 0;
    ilp->first_timed = weft_pool_array(&ilp->pool, n_slots + 1, sizeof *ilp->first_timed);
    if (seen && ilp->first_timed) {
        int32_t *next = seen + n_slots;
        list_timed(problem, seen, next, NULL);
        for (size_t s = 0; s < n_slots; s++) {
            ilp->first_timed[s] = n;
            n += next[s];
            next[s] = ilp->first_timed[s];
        }
        ilp->first_timed[n_slots] = n;
        ilp->timed = weft_pool_array(&ilp->pool, (size_t)n + 1, sizeof *ilp->timed);
        if (ilp->timed) list_timed(problem, seen, next, ilp->timed);
    }
    free(seen);
    return ilp->timed ? WEFT_OK : weft_fail_memory(err, "an integer program");
}

static enum weft_status find_waits(struct weft_ilp *ilp, struct weft_error *err)
{
    WEFT_TRY(weft_problem_waits(ilp->table->problem, &ilp->pool, &ilp->waits, err));
    size_t n_waits = (size_t)ilp->waits.n;
    ilp->wait_row = weft_pool_array(&ilp->pool, n_waits, sizeof *ilp->wait_row);
    ilp->chain_row =
        weft_pool_array(&ilp->pool, (size_t)ilp->table->n_items, sizeof *ilp->chain_row);
    ilp->lasted = weft_pool_array(&ilp->pool, (size_t)ilp->table->n_slots, sizeof *ilp->lasted);
    if (!ilp->wait_row || !ilp->chain_row || !ilp->lasted)
        return weft_fail_memory(err, "an integer program");
    for (size_t k = 0; k < n_waits; k++)
        ilp->wait_row[k] = -1;
    return WEFT_OK;
}

static enum weft_status create_ilp(const struct weft_digest *table, const int32_t *strategies,
                                   int32_t most_columns, struct weft_ilp **out,
                                   struct weft_error *err)
{
    int64_t limit_bytes = weft_digest_limit_bytes(table);
    if (limit_bytes > table->most_bytes) limit_bytes = table->most_bytes;
    for (int32_t r = 0; r < table->n_rows; r++) {
        if (table->common[r] > limit_bytes)
            return weft_fail(err, WEFT_E_INTERNAL,
                             "an integer program for a limit that no plan "
                             "meets: ask for the least limit first");
    }
    struct weft_ilp *ilp = calloc(1, sizeof *ilp);
    if (!ilp) return weft_fail_memory(err, "an integer program");
    ilp->table = table;
    ilp->limit_bytes = limit_bytes;
    ilp->chosen = strategies;
    choose_units(ilp);
    size_t n_slots = (size_t)table->n_slots, n_rows = (size_t)table->n_rows;
    ilp->z = weft_pool_array(&ilp->pool, (size_t)table->problem->n_strategies, sizeof *ilp->z);
    ilp->wait = weft_pool_array(&ilp->pool, n_slots, sizeof *ilp->wait);
    size_t n_loads = weft_problem_lane_at(table->problem, table->problem->n_lanes);
    ilp->beside = weft_pool_array(&ilp->pool, n_loads, sizeof *ilp->beside);
    ilp->hold = weft_pool_array(&ilp->pool, n_rows, sizeof *ilp->hold);
    ilp->load_row = weft_pool_array(&ilp->pool, n_loads, sizeof *ilp->load_row);
    ilp->memory_row = weft_pool_array(&ilp->pool, n_rows, sizeof *ilp->memory_row);
    ilp->most_whole = table->n_rows + MORE_ROWS;
    ilp->whole = weft_pool_array(&ilp->pool, (size_t)ilp->most_whole, sizeof *ilp->whole);
    ilp->references = weft_pool_array(&ilp->pool, (size_t)ilp->most_whole, sizeof *ilp->references);
    ilp->uses = weft_pool_array(&ilp->pool, (size_t)ilp->most_whole, sizeof *ilp->uses);
    enum weft_status status = WEFT_OK;
    if (!ilp->z || !ilp->wait || !ilp->beside || !ilp->hold || !ilp->load_row || !ilp->memory_row ||
        !ilp->whole || !ilp->references || !ilp->uses)
        status = weft_fail_memory(err, "an integer program");
    if (status == WEFT_OK) status = find_waits(ilp, err);
    if (status == WEFT_OK) status = find_timed(ilp, err);
    if (status == WEFT_OK) status = build_all(ilp, most_columns, err);
    if (status != WEFT_OK) {
        weft_ilp_destroy(ilp);
        return status;
    }
    *out = ilp;
    return WEFT_OK;
}

enum weft_status weft_ilp_create(const struct weft_digest *table, int32_t most_columns,
                                 struct weft_ilp **out, struct weft_error *err)
{
    return create_ilp(table, NULL, most_columns, out, err);
}

enum weft_status weft_ilp_create_for(const struct weft_digest *table, const int32_t *strategies,
                                     int32_t most_columns, struct weft_ilp **out,
                                     struct weft_error *err)
{
    return create_ilp(table, strategies, most_columns, out, err);
}

void weft_ilp_keep_free(struct weft_ilp *ilp, int64_t bytes)
{
    for (int32_t r = 0; r < ilp->table->n_rows; r++) {
        double room = weft_ilp_bytes_units(ilp, ilp->limit_bytes - bytes - ilp->table->common[r]);
        if (ilp->hold[r] >= 0) ilp->lp.upper[ilp->hold[r]] = room;
        if (ilp->memory_row[r] >= 0) ilp->lp.row_upper[ilp->memory_row[r]] = room;
    }
}

void weft_ilp_destroy(struct weft_ilp *ilp)
{
    if (!ilp) return;
    struct weft_lp *lp = &ilp->lp;
    free(lp->cost);
    free(lp->lower);
    free(lp->upper);
    free(lp->row_lower);
    free(lp->row_upper);
    free(lp->row_start);
    free(lp->column);
    free(lp->value);
    weft_pool_finish(&ilp->pool);
    free(ilp);
}
