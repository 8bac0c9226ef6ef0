/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/guide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/pool.h"
#include "scheduler/search/near.h"

/* Relaxations near the bound: NEAR_WORK divided by the size of one, at most MOST_NEAR. MET entries
 * remember choices of strategies. */
enum { NEAR_WORK = 140000, MOST_NEAR = 100, MET = 1 << 10 };
/* Relaxations of one dive. */
enum { MOST_RELAXATIONS = 200 };

/* Placements tried for a relaxation. A gather's block is launched when one of PARTS of it has moved
 * in the relaxation, less EARLIER slots. Reductions may hold the bytes of the relaxation, a block
 * more, or any. */
static const double PARTS[] = {0.01, 0.5, 0.99};
static const int32_t EARLIER[] = {0, 1, 2, 4};
enum slack { SLACK_NONE, SLACK_BLOCK, SLACK_ANY, SLACK_COUNT };
enum { N_PARTS = sizeof PARTS / sizeof *PARTS, N_EARLIER = sizeof EARLIER / sizeof *EARLIER };

struct weft_guide {
    struct weft_pool pool;
    struct weft_branch *branch;      /* borrowed */
    const struct weft_digest *table; /* borrowed */
    bool idle;                       /* there is nothing to try */
    int32_t *strategies;             /* [n_decisions] */
    uint64_t *allowed, *before;      /* [n_decisions]; `before` the last decisions of a dive */
    struct weft_box *box;            /* of `allowed`; NULL if idle */
    int32_t *order;                  /* [n_blocks] */
    int32_t *launch, *earlier; /* [n_blocks]: of the relaxation, and of the placement to try */
    int64_t *late_bytes, *most_bytes; /* [n_slots], the same */
    struct weft_hash *met;            /* [MET] */
    int32_t in_vain_left;             /* choices near the bound that may still fail */
};

enum weft_status weft_guide_create(struct weft_branch *branch, struct weft_guide **out,
                                   struct weft_error *err)
{
    const struct weft_digest *table = branch->table;
    size_t n_decisions = (size_t)table->n_decisions + 1, n_blocks = (size_t)table->n_blocks + 1;
    size_t n_slots = (size_t)table->n_slots;
    struct weft_guide *guide = calloc(1, sizeof *guide);
    if (!guide) return weft_fail_memory(err, "a guide");
    struct weft_pool *pool = &guide->pool;
    guide->branch = branch;
    guide->table = table;
    guide->idle =
        !branch->ilp || weft_digest_limit_bytes(branch->search->table) >= table->most_bytes;
    guide->strategies = weft_pool_array(pool, n_decisions, sizeof *guide->strategies);
    guide->allowed = weft_pool_array(pool, n_decisions, sizeof *guide->allowed);
    guide->before = weft_pool_array(pool, n_decisions, sizeof *guide->before);
    guide->launch = weft_pool_array(pool, n_blocks, sizeof *guide->launch);
    guide->order = weft_pool_array(pool, n_blocks, sizeof *guide->order);
    guide->earlier = weft_pool_array(pool, n_blocks, sizeof *guide->earlier);
    guide->late_bytes = weft_pool_array(pool, n_slots, sizeof *guide->late_bytes);
    guide->most_bytes = weft_pool_array(pool, n_slots, sizeof *guide->most_bytes);
    guide->met = weft_pool_array(pool, MET, sizeof *guide->met);
    if (!guide->strategies || !guide->allowed || !guide->before || !guide->launch ||
        !guide->order || !guide->earlier || !guide->late_bytes || !guide->most_bytes ||
        !guide->met) {
        weft_guide_destroy(guide);
        return weft_fail_memory(err, "a guide");
    }
    enum weft_status status = WEFT_OK;
    if (!guide->idle) status = weft_box_create(table->problem, &guide->box, err);
    if (!guide->idle && status == WEFT_OK)
        status = weft_box_set_groups(guide->box, branch->groups, branch->n_groups, err);
    if (status != WEFT_OK) {
        weft_guide_destroy(guide);
        return status;
    }
    *out = guide;
    return WEFT_OK;
}

void weft_guide_destroy(struct weft_guide *guide)
{
    if (!guide) return;
    weft_box_destroy(guide->box);
    weft_pool_finish(&guide->pool);
    free(guide);
}

static bool is_over(const struct weft_guide *guide)
{
    return guide->idle || guide->branch->failure[0] || weft_branch_is_over(guide->branch);
}

/* Bytes of the largest block under the strategies. */
static int64_t largest_block(const struct weft_guide *guide)
{
    const struct weft_problem *problem = guide->table->problem;
    int64_t most = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (weft_item_active(item, guide->strategies) && item->stair_bytes > most)
            most = item->stair_bytes;
    }
    return most;
}

/* Places the strategies as in the relaxation, `slots` earlier, with that slack for reductions. */
static void place_strategies(struct weft_guide *guide, int32_t slots, enum slack slack,
                             int64_t block_bytes)
{
    struct weft_list_rule rule = weft_list_rules[0];
    for (int32_t b = 0; b < guide->table->n_blocks; b++)
        guide->earlier[b] = guide->launch[b] - slots;
    for (int32_t s = 0; s < guide->table->n_slots; s++)
        guide->most_bytes[s] = guide->late_bytes[s] + (slack == SLACK_BLOCK ? block_bytes : 0);
    rule.launch = guide->earlier;
    rule.order = guide->order;
    rule.late_bytes = slack == SLACK_ANY ? NULL : guide->most_bytes;
    weft_search_try_rule(guide->branch->search, guide->strategies, rule);
}

static void place_all(struct weft_guide *guide, const double *x)
{
    struct weft_search *search = guide->branch->search;
    int64_t block_bytes = largest_block(guide);
    for (int part = 0; part < N_PARTS; part++) {
        weft_ilp_guide(guide->branch->ilp, x, guide->strategies, PARTS[part],
                       weft_list_first_blocks(search->list), guide->launch, guide->order,
                       guide->late_bytes);
        for (int k = 0; k < N_EARLIER; k++)
            for (int slack = 0; slack < SLACK_COUNT && !is_over(guide); slack++)
                place_strategies(guide, EARLIER[k], (enum slack)slack, block_bytes);
    }
}

/* Returns the relaxation's solution with the strategies in `allowed`. NULL if there is none, or its
 * value is not below the search's best. */
static const double *relax_allowed(struct weft_guide *guide, struct weft_pool *pool)
{
    struct weft_branch *branch = guide->branch;
    struct weft_lp_result result = {0};
    weft_box_restrict(guide->box, &(struct weft_facts){.allowed = guide->allowed});
    if (guide->box->empty || !weft_branch_relax(branch, guide->box, 0, pool, &result)) return NULL;
    double most = ldexp((double)branch->search->step_ns, -branch->ilp->time_shift);
    return result.value < most ? result.x : NULL;
}

/* Takes the keeper of each strategy, which has a column. False if they do not fit or were met
 * before. */
static bool take_keepers(struct weft_guide *guide, const int32_t *strategies)
{
    size_t n_decisions = (size_t)guide->table->n_decisions;
    for (int32_t u = 0; u < guide->table->n_decisions; u++) {
        int32_t strategy =
            guide->branch->keeper[weft_digest_at(guide->branch->table, u, strategies[u])];
        guide->strategies[u] = strategy;
        guide->allowed[u] = UINT64_C(1) << strategy;
    }
    struct weft_hash hash =
        weft_hash_bytes(guide->strategies, n_decisions * sizeof *guide->strategies);
    struct weft_hash *met = &guide->met[hash.low % MET];
    if (weft_hash_equal(*met, hash)) return false;
    *met = hash;
    return weft_search_fits(guide->branch->search, guide->strategies);
}

bool weft_guide_try(struct weft_guide *guide, const int32_t *strategies)
{
    struct weft_pool pool = {0};
    if (is_over(guide) || !take_keepers(guide, strategies)) return false;
    const double *x = relax_allowed(guide, &pool);
    if (x) place_all(guide, x);
    weft_pool_finish(&pool);
    return true;
}

/* Allows every strategy of the root that has a column. */
static void allow_all(struct weft_guide *guide)
{
    struct weft_proof *proof = guide->branch->proof;
    weft_proof_enter(proof, 0);
    for (int32_t u = 0; u < guide->table->n_decisions; u++) {
        guide->allowed[u] = 0;
        for (int32_t p = 0; p < weft_digest_count(guide->branch->table, u); p++) {
            bool has_column =
                guide->branch->ilp->z[weft_digest_at(guide->branch->table, u, p)] >= 0;
            if (!(proof->box->allowed[u] >> p & 1u) || !has_column) continue;
            guide->allowed[u] |= UINT64_C(1) << p;
        }
    }
}

static bool is_decided(const struct weft_guide *guide, int32_t decision)
{
    return (guide->allowed[decision] & (guide->allowed[decision] - 1)) == 0;
}

/* Returns the undecided decision with the greatest share of one strategy, and that strategy; -1 if
 * all are decided. */
static int32_t surest_decision(const struct weft_guide *guide, const double *x, int *strategy,
                               double *share)
{
    int32_t decision = -1;
    *share = -1;
    for (int32_t u = 0; u < guide->table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(guide->branch->table, u) && !is_decided(guide, u);
             p++) {
            int32_t z = guide->branch->ilp->z[weft_digest_at(guide->branch->table, u, p)];
            if (!(guide->allowed[u] >> p & 1u) || x[z] <= *share) continue;
            *share = x[z];
            *strategy = p;
            decision = u;
        }
    }
    return decision;
}

static int32_t count_undecided(const struct weft_guide *guide)
{
    int32_t n = 0;
    for (int32_t u = 0; u < guide->table->n_decisions; u++)
        n += !is_decided(guide, u);
    return n;
}

/* Decides the `most` surest decisions, and each other one with nearly all its share on one strategy
 * if `all_sure`. */
static void decide_some(struct weft_guide *guide, const double *x, int32_t most, bool all_sure)
{
    double share;
    int32_t strategy = 0;
    int32_t decision;
    while ((decision = surest_decision(guide, x, &strategy, &share)) >= 0) {
        if (most-- <= 0 && !(all_sure && share >= 0.99)) return;
        guide->allowed[decision] = UINT64_C(1) << strategy;
    }
}

/* Undoes the last decisions. If it was one, rules its strategy out. *n: their number. False if
 * nothing is left to try. */
static bool undo_decisions(struct weft_guide *guide, int32_t *n)
{
    int32_t last = -1;
    *n = 0;
    for (int32_t u = 0; u < guide->table->n_decisions; u++) {
        if (guide->allowed[u] == guide->before[u]) continue;
        last = u;
        ++*n;
    }
    if (*n == 1) guide->before[last] &= ~guide->allowed[last];
    memcpy(guide->allowed, guide->before,
           (size_t)guide->table->n_decisions * sizeof *guide->allowed);
    return *n > 0 && guide->allowed[last] != 0;
}

/* The only strategy left of each decision. */
static void take_decided(struct weft_guide *guide)
{
    for (int32_t u = 0; u < guide->table->n_decisions; u++)
        for (int32_t p = 0; p < weft_digest_count(guide->branch->table, u); p++)
            if (guide->allowed[u] >> p & 1u) guide->strategies[u] = p;
}

/* Decides until all are decided and the relaxation has a solution. It decides a quarter at a time,
 * and fewer after each failure. False if it failed or became too expensive. */
static bool decide_all(struct weft_guide *guide, int32_t most_relaxations)
{
    int32_t most = guide->table->n_decisions, undone;
    bool failed = false;
    memcpy(guide->before, guide->allowed,
           (size_t)guide->table->n_decisions * sizeof *guide->allowed);
    for (; most_relaxations > 0 && !is_over(guide); most_relaxations--) {
        struct weft_pool pool = {0};
        const double *x = relax_allowed(guide, &pool);
        int32_t left = count_undecided(guide);
        if (x && left == 0) {
            take_decided(guide);
            bool fits = weft_search_fits(guide->branch->search, guide->strategies);
            if (fits) place_all(guide, x);
            weft_pool_finish(&pool);
            return fits;
        }
        if (x) {
            memcpy(guide->before, guide->allowed,
                   (size_t)guide->table->n_decisions * sizeof *guide->allowed);
            int32_t quarter = (left + 3) / 4;
            decide_some(guide, x, most < quarter ? most : quarter, !failed);
        }
        weft_pool_finish(&pool);
        if (x) continue;
        failed = true;
        if (!undo_decisions(guide, &undone)) return false;
        most = undone > 1 ? undone / 2 : 1;
    }
    return false;
}

const int32_t *weft_guide_dive(struct weft_guide *guide, int64_t free_bytes)
{
    if (is_over(guide)) return NULL;
    allow_all(guide);
    weft_ilp_keep_free(guide->branch->ilp, free_bytes);
    bool decided = decide_all(guide, MOST_RELAXATIONS);
    weft_ilp_keep_free(guide->branch->ilp, 0);
    return decided ? guide->strategies : NULL;
}

/* Stops at the first better plan, and after some tries without one: other work then gains more. */
static enum weft_near_answer try_near(void *context, const int32_t *strategies)
{
    struct weft_guide *guide = context;
    int64_t before_ns = guide->branch->search->step_ns;
    if (!weft_guide_try(guide, strategies)) return WEFT_NEAR_SKIPPED;
    bool brings = guide->branch->search->step_ns < before_ns;
    return brings || --guide->in_vain_left == 0 ? WEFT_NEAR_STOP : WEFT_NEAR_TRIED;
}

enum weft_status weft_guide_try_near(struct weft_guide *guide, int32_t node, int32_t most_in_vain,
                                     struct weft_error *err)
{
    struct weft_branch *branch = guide->branch;
    if (is_over(guide)) return WEFT_OK;
    int32_t tries = NEAR_WORK / (branch->ilp->lp.n_rows + branch->ilp->lp.n_columns) + 1;
    if (tries > MOST_NEAR) tries = MOST_NEAR;
    guide->in_vain_left = most_in_vain;
    weft_proof_enter(branch->proof, node);
    if (branch->proof->box->empty) return WEFT_OK;
    weft_dual_take(branch->dual, &branch->proof->prices[branch->proof->nodes[node].prices]);
    weft_dual_evaluate(branch->dual, branch->proof->box);
    return weft_near_each(branch->search, branch->dual, branch->proof->box->allowed,
                          weft_branch_enough_ns(branch), tries, try_near, guide, err);
}
