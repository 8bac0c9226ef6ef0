/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/coarse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Runs of the first coarse problem, and columns of counts of each. Where a price changes, the next
 * one has so many runs for one. */
enum { MOST_RUNS = 100, MOST_COLUMNS = 500, SHORTER = 5 };

/* A coarse problem under construction. */
struct merger {
    struct weft_coarse *coarse;
    const struct weft_problem *from;
    struct weft_problem *to;
    double *rows;    /* [rows of `to`], scratch: average bytes */
    int32_t *leader; /* [decisions of `to`]: the first of `from` that it stands for */
};

static bool stands_alone(enum weft_slot_kind kind)
{
    return kind == WEFT_SLOT_FILL || kind == WEFT_SLOT_DRAIN || kind == WEFT_SLOT_NORM ||
           kind == WEFT_SLOT_OPEN;
}

/* True if memory has a price in the run, or a lane's price changes there. */
static bool price_changes(const struct weft_coarse *of, int32_t run)
{
    const struct weft_dual *dual = of->dual;
    const int32_t n = of->problem->n_slots;
    for (int32_t tier = 0; tier < of->problem->n_tiers; tier++)
        if (dual->mu[weft_problem_tier_at(of->problem, tier) + run] > 0) return true;
    for (int32_t k = 0; k < dual->n_moving; k++) {
        const double *lambda = &dual->lambda[k * n + run];
        if (run > 0 && fabs(lambda[0] - lambda[-1]) > 1e-3) return true;
        if (run + 1 < n && fabs(lambda[0] - lambda[1]) > 1e-3) return true;
    }
    return false;
}

/* The most slots of a run that begins at the slot. */
static int32_t most_length(const struct merger *m, const struct weft_coarse *before, int32_t slot)
{
    if (!before) return (m->from->n_slots + MOST_RUNS - 1) / MOST_RUNS;
    const int32_t run = before->run_of[slot], length = before->length[run];
    if (!price_changes(before, run)) return length;
    return (length + SHORTER - 1) / SHORTER;
}

/* Cuts the period into runs of slots of one kind, which are within those of `before`. */
static bool cut_runs(struct merger *m, const struct weft_coarse *before)
{
    struct weft_coarse *coarse = m->coarse;
    struct weft_problem *to = m->to;
    const size_t n = (size_t)m->from->n_slots;
    coarse->run_of = weft_pool_array(&coarse->pool, n, sizeof *coarse->run_of);
    coarse->length = weft_pool_array(&coarse->pool, n, sizeof *coarse->length);
    to->slots = weft_pool_array(&to->pool, n, sizeof *to->slots);
    to->slot_ns = weft_pool_array(&to->pool, n, sizeof *to->slot_ns);
    to->slot_decisions = weft_pool_array(&to->pool, n, sizeof *to->slot_decisions);
    if (!coarse->run_of || !coarse->length || !to->slots || !to->slot_ns || !to->slot_decisions)
        return false;
    int32_t run = -1;
    for (int32_t s = 0; s < m->from->n_slots; s++) {
        const struct weft_slot *slot = &m->from->slots[s];
        const bool joins = s > 0 && slot->kind == to->slots[run].kind &&
                           !stands_alone(slot->kind) &&
                           coarse->length[run] < most_length(m, before, s) &&
                           (!before || before->run_of[s] == before->run_of[s - 1]);
        if (!joins) {
            to->slots[++run] = *slot;
            to->slot_decisions[run] = -1;
        }
        coarse->run_of[s] = run;
        coarse->length[run]++;
        to->slot_ns[run] += m->from->slot_ns[s];
    }
    to->n_slots = run + 1;
    return true;
}

/* True if the items differ in sizes alone, once windows are in runs. */
static bool same_item(const struct merger *m, int32_t one, int32_t other)
{
    const struct weft_problem_item *a = &m->from->items[one], *b = &m->from->items[other];
    const int32_t *run_of = m->coarse->run_of;
    return a->item.kind == b->item.kind && a->item.gather == b->item.gather && a->lane == b->lane &&
           a->item.strategies == b->item.strategies && a->item.acquires == b->item.acquires &&
           a->item.may_block == b->item.may_block && a->item.stair_tier == b->item.stair_tier &&
           (a->item.stair_bytes > 0) == (b->item.stair_bytes > 0) &&
           run_of[a->item.first] == run_of[b->item.first] &&
           run_of[a->item.last] == run_of[b->item.last];
}

/* True if two decisions have the same strategies and items. */
static bool may_merge(const struct merger *m, int32_t a, int32_t b)
{
    const struct weft_problem_decision *one = &m->from->decisions[a];
    const struct weft_problem_decision *other = &m->from->decisions[b];
    const int32_t *first = m->coarse->fine->first_item, n = first[a + 1] - first[a];
    bool same = one->n_strategies == other->n_strategies && n == first[b + 1] - first[b];
    for (int32_t p = 0; same && p < one->n_strategies; p++)
        same = one->strategies[p].kind == other->strategies[p].kind;
    for (int32_t i = 0; same && i < n; i++)
        same = same_item(m, first[a] + i, first[b] + i);
    return same;
}

static bool merge_decisions(struct merger *m)
{
    struct weft_coarse *coarse = m->coarse;
    const size_t n = (size_t)m->from->n_decisions;
    coarse->decision_of = weft_pool_array(&coarse->pool, n, sizeof *coarse->decision_of);
    m->leader = weft_pool_array(&coarse->pool, n, sizeof *m->leader);
    if (!coarse->decision_of || !m->leader) return false;
    for (int32_t u = 0; u < m->from->n_decisions; u++) {
        int32_t d = m->to->n_decisions - 1;
        while (d >= 0 && !may_merge(m, m->leader[d], u))
            d--;
        if (d < 0) {
            d = m->to->n_decisions++;
            m->leader[d] = u;
        }
        coarse->decision_of[u] = d;
    }
    return true;
}

/* Adds bytes that are held in the slots first to last to the averages of their runs. */
static void add_average(const struct merger *m, int32_t tier, int32_t first, int32_t last,
                        int64_t bytes)
{
    const struct weft_coarse *coarse = m->coarse;
    double *rows = m->rows + weft_problem_tier_at(m->to, tier);
    for (int32_t s = first; s <= last;) {
        const int32_t run = coarse->run_of[s], from = s;
        if ((s == 0 || coarse->run_of[s - 1] != run) && s + coarse->length[run] - 1 <= last)
            s += coarse->length[run];
        while (s == from || (s <= last && coarse->run_of[s] == run))
            s++;
        rows[run] += (double)bytes * (s - from) / coarse->length[run];
    }
}

static void add_hold(const struct merger *m, const struct weft_hold *hold)
{
    const bool wraps = hold->first > hold->last;
    if (wraps) add_average(m, hold->tier, 0, hold->last, hold->bytes);
    add_average(m, hold->tier, hold->first, wraps ? m->from->n_slots - 1 : hold->last, hold->bytes);
}

/* Turns the averages into holds and clears them. NULL without memory. */
static struct weft_hold *take_holds(const struct merger *m, int32_t *n_out)
{
    const int32_t n_slots = m->to->n_slots, n_rows = weft_problem_n_rows(m->to);
    struct weft_hold *holds = weft_pool_array(&m->to->pool, (size_t)n_rows + 1, sizeof *holds);
    int32_t n = 0;
    for (int32_t r = 0; holds && r < n_rows; r++) {
        const int32_t tier = r / n_slots, s = r % n_slots;
        const int64_t bytes = (int64_t)m->rows[r];
        m->rows[r] = 0;
        struct weft_hold *last = n > 0 ? &holds[n - 1] : NULL;
        if (last && last->bytes == bytes && last->tier == tier && last->last == s - 1)
            last->last = s;
        else if (bytes > 0)
            holds[n++] = (struct weft_hold){WEFT_CATEGORY_ACTIVATIONS, s, s, bytes, tier};
    }
    *n_out = n;
    return holds;
}

/* Sums the holds and times of a coarse decision under a strategy. ns [slots of `to`] is 0, before
 * and after. */
static bool sum_strategy(const struct merger *m, int32_t decision, int32_t p, int64_t *ns,
                         struct weft_problem_strategy *to)
{
    const struct weft_coarse *coarse = m->coarse;
    *to = m->from->decisions[m->leader[decision]].strategies[p];
    for (int32_t u = m->leader[decision]; u < m->from->n_decisions; u++) {
        const struct weft_problem_strategy *of = &m->from->decisions[u].strategies[p];
        if (coarse->decision_of[u] != decision) continue;
        for (int32_t i = 0; i < of->n_holds; i++)
            add_hold(m, &of->holds[i]);
        for (int32_t i = 0; i < of->n_times; i++)
            ns[coarse->run_of[of->times[i].slot]] += of->times[i].ns;
    }
    to->holds = take_holds(m, &to->n_holds);
    to->times = weft_pool_array(&m->to->pool, (size_t)m->to->n_slots, sizeof *to->times);
    to->n_times = 0;
    for (int32_t s = 0; to->times && s < m->to->n_slots; s++) {
        if (ns[s] > 0) to->times[to->n_times++] = (struct weft_slot_time){s, ns[s]};
        ns[s] = 0;
    }
    return to->holds && to->times;
}

static bool sum_decision(struct merger *m, int32_t decision)
{
    struct weft_problem *to = m->to;
    struct weft_problem_decision *it = &to->decisions[decision];
    *it = m->from->decisions[m->leader[decision]];
    it->first_strategy = to->n_strategies;
    to->n_strategies += it->n_strategies;
    if (it->update_slot >= 0) it->update_slot = m->coarse->run_of[it->update_slot];
    const size_t n = (size_t)it->n_strategies;
    it->strategies = weft_pool_array(&to->pool, n, sizeof *it->strategies);
    int64_t *ns = calloc((size_t)to->n_slots, sizeof *ns);
    bool ok = it->strategies && ns;
    for (size_t p = 0; ok && p < n; p++)
        ok = sum_strategy(m, decision, (int32_t)p, ns, &it->strategies[p]);
    free(ns);
    return ok;
}

static bool sum_decisions(struct merger *m)
{
    struct weft_problem *to = m->to;
    const size_t n_rows = (size_t)weft_problem_n_rows(to);
    to->decisions = weft_pool_array(&to->pool, (size_t)to->n_decisions, sizeof *to->decisions);
    m->rows = weft_pool_array(&m->coarse->pool, n_rows + 1, sizeof *m->rows);
    bool ok = to->decisions && m->rows;
    for (int32_t d = 0; ok && d < to->n_decisions; d++)
        ok = sum_decision(m, d);
    for (int32_t i = 0; ok && i < m->from->n_common; i++)
        add_hold(m, &m->from->common[i]);
    if (ok) to->common = take_holds(m, &to->n_common);
    return ok && to->common;
}

/* Sums the items with one place among those of a coarse decision's decisions. Chains are left out.
 * The window of a gather ends in the run before its use. */
static void sum_item(const struct merger *m, int32_t decision, int32_t place,
                     struct weft_problem_item *to)
{
    const struct weft_coarse *coarse = m->coarse;
    const int32_t *first = coarse->fine->first_item, *run_of = coarse->run_of;
    int64_t ns = 0, bytes = 0;
    *to = m->from->items[first[m->leader[decision]] + place];
    const bool is_used = to->item.acquires && to->item.last + 1 < m->from->n_slots;
    const int32_t last = is_used ? run_of[to->item.last + 1] - 1 : run_of[to->item.last];
    to->item.first = run_of[to->item.first];
    to->item.last = last > to->item.first ? last : to->item.first;
    to->item.decision = decision;
    to->item.n_blocks = 0;
    to->after = -1;
    for (int32_t u = m->leader[decision]; u < m->from->n_decisions; u++) {
        if (coarse->decision_of[u] != decision) continue;
        const struct weft_problem_item *of = &m->from->items[first[u] + place];
        ns += of->item.n_blocks * of->block_ns;
        bytes += of->item.n_blocks * of->item.stair_bytes;
        to->item.n_blocks += of->item.n_blocks;
    }
    to->item.stair_bytes = bytes / to->item.n_blocks;
    to->block_ns = ns / to->item.n_blocks;
}

static bool sum_items(struct merger *m)
{
    const int32_t *first = m->coarse->fine->first_item;
    struct weft_problem *to = m->to;
    to->items = weft_pool_array(&to->pool, (size_t)m->from->n_items, sizeof *to->items);
    for (int32_t d = 0; to->items && d < to->n_decisions; d++)
        for (int32_t i = 0; i < first[m->leader[d] + 1] - first[m->leader[d]]; i++)
            sum_item(m, d, i, &to->items[to->n_items++]);
    return to->items != NULL;
}

static enum weft_status make_problem(struct weft_coarse *coarse, const struct weft_coarse *before,
                                     struct weft_error *err)
{
    struct merger m = {.coarse = coarse, .from = coarse->fine->problem, .to = coarse->problem};
    *m.to = *m.from;
    m.to->pool = (struct weft_pool){0};
    m.to->n_decisions = m.to->n_items = m.to->n_strategies = 0;
    if (!cut_runs(&m, before) || !merge_decisions(&m) || !sum_decisions(&m) || !sum_items(&m))
        return weft_fail_memory(err, "a coarse problem");
    return WEFT_OK;
}

enum weft_status weft_coarse_create(const struct weft_digest *fine,
                                    const struct weft_coarse *before, struct weft_coarse **out,
                                    struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_coarse *coarse = calloc(1, sizeof *coarse);
    if (coarse) coarse->problem = calloc(1, sizeof *coarse->problem);
    if (!coarse || !coarse->problem) {
        status = weft_fail_memory(err, "a coarse problem");
        goto fail;
    }
    coarse->fine = fine;
    WEFT_TRY_GOTO(fail, make_problem(coarse, before, err));
    WEFT_TRY_GOTO(fail, weft_digest_create(coarse->problem, &coarse->table, err));
    /* Rounded windows may hold more than any plan. */
    if (coarse->table->least_bytes > coarse->problem->tiers[0].limit_bytes)
        coarse->problem->tiers[0].limit_bytes = coarse->table->least_bytes;
    WEFT_TRY_GOTO(fail, weft_dual_create(coarse->table, &coarse->dual, err));
    WEFT_TRY_GOTO(fail, weft_ilp_create(coarse->table, MOST_COLUMNS, &coarse->ilp, err));
    *out = coarse;
    return WEFT_OK;
fail:
    weft_coarse_destroy(coarse);
    return status;
}

void weft_coarse_destroy(struct weft_coarse *coarse)
{
    if (!coarse) return;
    weft_ilp_destroy(coarse->ilp);
    weft_dual_destroy(coarse->dual);
    weft_digest_destroy(coarse->table);
    weft_problem_destroy(coarse->problem);
    weft_pool_finish(&coarse->pool);
    free(coarse);
}

static bool ends_run(const struct weft_coarse *coarse, int32_t slot)
{
    return slot + 1 == coarse->fine->n_slots || coarse->run_of[slot + 1] != coarse->run_of[slot];
}

enum weft_status weft_coarse_spread(struct weft_coarse *coarse, const struct weft_lp_result *result,
                                    struct weft_dual *dual, double *share, struct weft_error *err)
{
    const struct weft_digest *fine = coarse->fine;
    const int32_t n_runs = coarse->problem->n_slots;
    WEFT_TRY(weft_ilp_prices(coarse->ilp, result->duals, coarse->dual, err));
    weft_dual_reset(dual, WEFT_LANE_COMPUTE);
    for (int32_t s = 0; s < fine->n_slots; s++) {
        const int32_t run = coarse->run_of[s];
        for (int32_t k = 0; k < dual->n_moving; k++)
            dual->lambda[k * fine->n_slots + s] = coarse->dual->lambda[k * n_runs + run];
        /* A gather pays for the bytes of its run wherever it is launched in it. */
        for (int32_t tier = 0; tier < fine->problem->n_tiers && ends_run(coarse, s); tier++)
            dual->mu[tier * fine->n_slots + s] = coarse->dual->mu[tier * n_runs + run];
    }
    for (int32_t u = 0; u < fine->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(fine, u); p++) {
            const size_t at = weft_digest_at(coarse->table, coarse->decision_of[u], p);
            const int32_t z = coarse->ilp->z[at];
            share[weft_digest_at(fine, u, p)] = z < 0 ? 0 : result->x[z];
        }
    }
    return WEFT_OK;
}
