/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/search.h"

#include <stdlib.h>
#include <string.h>

#include "program/trace.h"

struct weft_search_choice {
    int32_t decision;
    int32_t strategy;
    double value;
};

enum weft_status weft_search_create(const struct weft_digest *table, struct weft_search **out,
                                    struct weft_error *err)
{
    struct weft_search *search = calloc(1, sizeof *search);
    if (!search) return weft_fail_memory(err, "a search");
    size_t n_decisions = (size_t)table->n_decisions + 1, n_blocks = (size_t)table->n_blocks + 1;
    size_t n_slots = (size_t)table->n_slots;
    search->table = table;
    search->step_ns = -1;
    search->strategies = calloc(3 * n_decisions, sizeof *search->strategies);
    search->moves = calloc(2 * n_blocks, sizeof *search->moves);
    search->rows = calloc((size_t)table->n_rows, sizeof *search->rows);
    search->simulation = calloc(weft_simulate_words(table->problem), sizeof *search->simulation);
    search->choices = calloc((size_t)table->problem->n_strategies + 1, sizeof *search->choices);
    search->owed = calloc((size_t)table->problem->n_kinds + 1, sizeof *search->owed);
    search->launch = calloc(2 * n_blocks, sizeof *search->launch);
    search->clear = calloc(n_slots, sizeof *search->clear);
    search->late_bytes = calloc(n_slots, sizeof *search->late_bytes);
    enum weft_status status = WEFT_OK;
    if (!search->strategies || !search->moves || !search->rows || !search->simulation ||
        !search->choices || !search->owed || !search->launch || !search->clear ||
        !search->late_bytes)
        status = weft_fail_memory(err, "a search");
    if (status == WEFT_OK) status = weft_list_create(table, &search->list, err);
    if (status == WEFT_OK) status = weft_repair_create(table, &search->repair, err);
    if (status != WEFT_OK) {
        weft_search_destroy(search);
        return status;
    }
    search->trial = search->strategies + n_decisions;
    search->other = search->trial + n_decisions;
    search->trial_moves = search->moves + n_blocks;
    search->order = search->launch + n_blocks;
    *out = search;
    return WEFT_OK;
}

void weft_search_destroy(struct weft_search *search)
{
    if (!search) return;
    weft_list_destroy(search->list);
    weft_repair_destroy(search->repair);
    free(search->strategies);
    free(search->moves);
    free(search->rows);
    free(search->simulation);
    free(search->choices);
    free(search->owed);
    free(search->launch);
    free(search->clear);
    free(search->late_bytes);
    free(search);
}

void weft_search_begin(struct weft_search *search, struct weft_budget budget)
{
    search->budget = budget;
    search->begun = budget.work ? budget.work->spent : 0;
    search->whole = weft_budget_left(budget);
    weft_list_count(search->list, budget.work);
}

bool weft_search_is_spent(const struct weft_search *search)
{
    return weft_budget_is_over(search->budget);
}

static void spend_work(const struct weft_search *search, int64_t units)
{
    weft_work_spend(search->budget.work, units);
}

bool weft_search_fits(struct weft_search *search, const int32_t *strategies)
{
    spend_work(search,
               100 + 3 * (int64_t)search->table->n_rows + 5 * (int64_t)search->table->n_decisions);
    return weft_digest_lean_rows(search->table, strategies, search->rows, NULL) <=
           weft_digest_limit_bytes(search->table);
}

static int64_t peak_of_moves(struct weft_search *search, const int32_t *strategies,
                             const struct weft_move *moves, int32_t n_moves)
{
    int64_t peak = INT64_MIN;
    spend_work(search, 3 * (int64_t)search->table->n_rows + 5 * (int64_t)n_moves);
    weft_digest_move_rows(search->table, strategies, moves, n_moves, search->rows);
    for (int32_t r = 0; r < search->table->n_rows; r++)
        if (search->rows[r] > peak) peak = search->rows[r];
    return peak;
}

static bool offer_plan(struct weft_search *search, const int32_t *strategies,
                       const struct weft_move *moves, int32_t n_moves, int64_t step_ns)
{
    int64_t peak = peak_of_moves(search, strategies, moves, n_moves);
    if (peak > weft_digest_limit_bytes(search->table)) return false;
    if (search->step_ns >= 0 &&
        (step_ns > search->step_ns || (step_ns == search->step_ns && peak >= search->peak_bytes)))
        return false;
    if (search->step_ns < 0 && search->budget.work)
        search->first_work = search->budget.work->spent - search->begun;
    memmove(search->strategies, strategies,
            (size_t)search->table->n_decisions * sizeof *strategies);
    memmove(search->moves, moves, (size_t)n_moves * sizeof *moves);
    search->n_moves = n_moves;
    search->step_ns = step_ns;
    search->peak_bytes = peak;
    search->has_rule = false;
    if (search->is_shown) weft_work_show_best(search->budget.work, step_ns);
    return true;
}

/* The best takes the arrays of the repaired rule. */
static void keep_rule(struct weft_search *search)
{
    const struct weft_digest *table = search->table;
    size_t n_slots = (size_t)table->n_slots;
    search->rule = weft_repair_rule(search->repair);
    memcpy(search->launch, search->rule.launch, (size_t)table->n_blocks * sizeof *search->launch);
    memcpy(search->order, search->rule.order, (size_t)table->n_blocks * sizeof *search->order);
    memcpy(search->clear, search->rule.clear, n_slots * sizeof *search->clear);
    memcpy(search->late_bytes, search->rule.late_bytes, n_slots * sizeof *search->late_bytes);
    search->rule.launch = search->launch;
    search->rule.order = search->order;
    search->rule.clear = search->clear;
    search->rule.late_bytes = search->late_bytes;
    search->has_rule = true;
}

/* Most placements that repair one choice of strategies; fewer for larger problems. */
static int32_t repair_tries(const struct weft_search *search)
{
    int32_t n = 20000 / (search->table->n_slots + search->table->n_blocks + 1);
    return n < 4 ? 4 : n > 32 ? 32 : n;
}

int64_t weft_search_try_rule(struct weft_search *search, const int32_t *strategies,
                             struct weft_list_rule rule)
{
    int32_t n_moves = 0;
    int64_t ns = weft_repair_place(search->repair, search->list, strategies, rule,
                                   repair_tries(search), search->trial_moves, &n_moves);
    if (ns >= 0 && (search->step_ns < 0 || ns <= search->step_ns) &&
        offer_plan(search, strategies, search->trial_moves, n_moves, ns))
        keep_rule(search);
    return ns;
}

int64_t weft_search_try(struct weft_search *search, const int32_t *strategies)
{
    int64_t best_ns = -1;
    int32_t best_rule = 0;
    search->n_tried++;
    for (int32_t i = 0; i < WEFT_LIST_RULES; i++) {
        int32_t n_moves = 0;
        /* If all fit, gathers need no bytes kept free. */
        if (!weft_list_rules[i].stages &&
            weft_digest_limit_bytes(search->table) >= search->table->most_bytes)
            break;
        if (best_ns >= 0 && weft_search_is_spent(search)) break;
        int64_t ns = weft_list_place(search->list, strategies, weft_list_rules[i],
                                     search->trial_moves, &n_moves);
        if (ns < 0) return -1;
        if (search->step_ns < 0 || ns <= search->step_ns)
            offer_plan(search, strategies, search->trial_moves, n_moves, ns);
        if (best_ns < 0 || ns < best_ns) {
            best_ns = ns;
            best_rule = i;
        }
    }
    if (weft_budget_has_rung(search->budget)) return best_ns;
    if (best_ns < 0 || (double)best_ns > 1.1 * (double)search->step_ns) return best_ns;
    struct weft_list_rule rule = weft_list_rules[best_rule];
    if (search->has_rule) {
        int64_t ns = weft_list_place(search->list, strategies, search->rule, NULL, NULL);
        if (ns >= 0 && ns < best_ns) rule = search->rule;
    }
    return weft_search_try_rule(search, strategies, rule);
}

enum weft_status weft_search_try_moves(struct weft_search *search, const int32_t *strategies,
                                       const struct weft_move *moves, int32_t n_moves,
                                       struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_prediction prediction = {0};
    if (peak_of_moves(search, strategies, moves, n_moves) > weft_digest_limit_bytes(search->table))
        return WEFT_OK;
    spend_work(search, 40 * (int64_t)search->table->n_slots + 25 * (int64_t)n_moves);
    struct weft_error why = {0};
    enum weft_status status =
        weft_plan_create(search->table->problem, "ilp", strategies, moves, n_moves, &plan, &why);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", why.text);
    weft_simulate_plan(plan, search->simulation, &prediction);
    weft_plan_destroy(plan);
    search->n_tried++;
    offer_plan(search, strategies, moves, n_moves, prediction.step_ns);
    return WEFT_OK;
}

/* The move of a placement. */
static struct weft_move move_of(const struct weft_problem *problem, const struct weft_placement *at)
{
    bool gathers = problem->items[at->item].item.acquires;
    return (struct weft_move){
        .item = at->item, .slot = gathers ? at->launch : at->deadline - 1, .launch = at->launch};
}

static bool same_decisions(const struct weft_problem *a, const struct weft_problem *b)
{
    if (a->n_decisions != b->n_decisions) return false;
    for (int32_t u = 0; u < a->n_decisions; u++) {
        const struct weft_problem_decision *x = &a->decisions[u], *y = &b->decisions[u];
        if (x->n_strategies != y->n_strategies) return false;
        for (int32_t p = 0; p < x->n_strategies; p++)
            if (strcmp(x->strategies[p].name, y->strategies[p].name) != 0) return false;
    }
    return true;
}

/* Finds a given plan's strategies by name. False if the problem lacks one. */
static bool take_strategies(const struct weft_problem *problem, const struct weft_plan *plan,
                            int32_t *strategies)
{
    if (plan->problem->n_decisions != problem->n_decisions) return false;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const char *name = weft_problem_chosen(plan->problem, plan->strategies, u)->name;
        strategies[u] = weft_decision_of_name(&problem->decisions[u], name);
        if (strategies[u] < 0) return false;
    }
    return true;
}

bool weft_search_moves_of(const struct weft_problem *problem, const struct weft_plan *plan,
                          struct weft_move *moves)
{
    if (!same_decisions(problem, plan->problem) || plan->problem->n_slots != problem->n_slots ||
        plan->problem->n_items != problem->n_items)
        return false;
    int64_t n_blocks = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *a = &problem->items[i].item, *b = &plan->problem->items[i].item;
        if (a->n_blocks != b->n_blocks || a->first != b->first || a->last != b->last ||
            a->kind != b->kind || a->acquires != b->acquires || a->may_block != b->may_block ||
            plan->problem->items[i].lane != problem->items[i].lane ||
            plan->problem->items[i].after != problem->items[i].after ||
            a->decision != b->decision || a->strategies != b->strategies)
            return false;
        if (weft_item_active(a, plan->strategies)) n_blocks += a->n_blocks;
    }
    if (n_blocks != plan->n_placements) return false;
    for (int32_t k = 0; k < plan->n_placements; k++)
        moves[k] = move_of(problem, &plan->placements[k]);
    return true;
}

static int32_t kind_of(const struct weft_search *search, int32_t decision, int32_t strategy)
{
    return search->table->problem->decisions[decision].strategies[strategy].kind;
}

/* The decision's strategy of a kind; -1: none. */
static int32_t of_kind(const struct weft_search *search, int32_t decision, int32_t kind)
{
    return weft_decision_of_kind(&search->table->problem->decisions[decision], kind);
}

static void copy_strategies(const struct weft_search *search, int32_t *to, const int32_t *from)
{
    memcpy(to, from, (size_t)search->table->n_decisions * sizeof *to);
}

/* Largest value first; equal ones in order of decision, then strategy. */
static int compare_choices(const void *a, const void *b)
{
    const struct weft_search_choice *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    if (x->decision != y->decision) return x->decision < y->decision ? -1 : 1;
    return x->strategy < y->strategy ? -1 : x->strategy > y->strategy;
}

/* Work units of one pass of greedy changes. */
enum { PASS_WORK = 30000000, MOST_BULK_TRIES = 200 };

/* Decisions per timed decision, so that a pass stays within its work. Timing of all changes takes
 * about an eighth of a pass that tries each. */
static int32_t greedy_stride(const struct weft_search *search)
{
    const struct weft_digest *table = search->table;
    int64_t cost = (int64_t)table->n_slots + table->n_blocks + 1, n = table->problem->n_strategies;
    int64_t stride = n * (1 + WEFT_LIST_RULES) * cost / PASS_WORK + 1;
    return stride < table->n_decisions ? (int32_t)stride : table->n_decisions;
}

/* Lists the gain of each single change from `other` of every stride-th decision, sorted. The
 * decisions up to the next timed one get the same gain. Returns the number of changes. */
static int32_t list_gains(struct weft_search *search, int32_t stride, int64_t now_ns)
{
    const struct weft_digest *table = search->table;
    int32_t n = 0;
    for (int32_t u = 0; u < table->n_decisions; u += stride) {
        int32_t before = search->other[u];
        for (int32_t p = 0; p < weft_digest_count(search->table, u); p++) {
            if (p == before) continue;
            if (weft_search_is_spent(search)) break;
            search->other[u] = p;
            int64_t ns =
                weft_list_place(search->list, search->other, weft_list_rules[0], NULL, NULL);
            if (ns < 0 || ns > now_ns) continue;
            for (int32_t v = u; v < table->n_decisions && v < u + stride; v++) {
                int32_t alike = of_kind(search, v, kind_of(search, u, p));
                if (alike < 0) continue;
                search->choices[n++] = (struct weft_search_choice){
                    .decision = v, .strategy = alike, .value = (double)(now_ns - ns)};
            }
        }
        search->other[u] = before;
    }
    qsort(search->choices, (size_t)n, sizeof *search->choices, compare_choices);
    return n;
}

/* Makes changes first .. first + n - 1 of the list together, and stores the old strategies in the
 * list. It goes backwards, so the better of two changes of one decision stays. */
static int32_t swap_choices(struct weft_search *search, int32_t first, int32_t n)
{
    int32_t n_changed = 0;
    for (int32_t k = first + n - 1; k >= first; k--) {
        struct weft_search_choice *choice = &search->choices[k];
        int32_t was = search->other[choice->decision];
        n_changed += was != choice->strategy;
        search->other[choice->decision] = choice->strategy;
        choice->strategy = was;
    }
    return n_changed;
}

/* Undoes swap_choices. */
static void swap_back(struct weft_search *search, int32_t first, int32_t n)
{
    for (int32_t k = first; k < first + n; k++) {
        struct weft_search_choice *choice = &search->choices[k];
        int32_t was = search->other[choice->decision];
        search->other[choice->decision] = choice->strategy;
        choice->strategy = was;
    }
}

/* Tries the listed changes `most` at a time and keeps changes that fit and help. It halves the
 * number after a failure and doubles it after a success. True if any was kept. */
static bool take_gains(struct weft_search *search, int32_t n, int32_t most, int64_t *now_ns)
{
    bool changed = false;
    int32_t size = most, tries = 0;
    for (int32_t k = 0; k < n && !weft_search_is_spent(search);) {
        if (size > n - k) size = n - k;
        int64_t ns = -1;
        bool any = swap_choices(search, k, size) > 0;
        if (any && weft_search_fits(search, search->other))
            ns = weft_search_try(search, search->other);
        if (ns >= 0 && ns < *now_ns) {
            *now_ns = ns;
            changed = true;
            k += size;
            if (size < most) size *= 2;
            continue;
        }
        swap_back(search, k, size);
        if (size == 1 || !any) k += size;
        if (size > 1) size /= 2;
        if (most > 1 && ++tries > MOST_BULK_TRIES) break;
    }
    return changed;
}

void weft_search_greedy(struct weft_search *search)
{
    enum { MOST_PASSES = 4 };
    copy_strategies(search, search->other, search->table->leanest);
    int64_t now_ns = weft_search_try(search, search->other);
    if (now_ns < 0) return;
    int32_t stride = greedy_stride(search);
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        int32_t n = list_gains(search, stride, now_ns);
        if (!take_gains(search, n, stride > 1 ? search->table->n_decisions : 1, &now_ns)) return;
    }
}

enum pattern { PATTERN_FIRST, PATTERN_LAST, PATTERN_EVEN, PATTERN_COUNT };

/* The i-th of n decisions is one of the k of the pattern. */
static bool in_pattern(enum pattern pattern, int32_t i, int32_t k, int32_t n)
{
    switch (pattern) {
    case PATTERN_FIRST:
        return i < k;
    case PATTERN_LAST:
        return i >= n - k;
    case PATTERN_EVEN:
        return (int64_t)(i + 1) * k / n > (int64_t)i * k / n;
    case PATTERN_COUNT:
        break;
    }
    return false;
}

static void make_pattern(struct weft_search *search, enum pattern pattern, int32_t kind, int32_t k,
                         int32_t n)
{
    int32_t i = 0;
    copy_strategies(search, search->trial, search->table->leanest);
    for (int32_t u = 0; u < search->table->n_decisions; u++) {
        int32_t strategy = of_kind(search, u, kind);
        if (strategy < 0 || search->table->leanest[u] == strategy) continue;
        if (in_pattern(pattern, i++, k, n)) search->trial[u] = strategy;
    }
}

/* The most decisions of n that fit at the pattern's kind of strategy. It tries all numbers, or
 * halves if they are many. */
static int32_t most_that_fit(struct weft_search *search, enum pattern pattern, int32_t kind,
                             int32_t n)
{
    enum { MOST_STEPS = 256 };
    int32_t fits = 0, fails = n + 1;
    while (fails - fits > 1) {
        int32_t k = fails - 1;
        if (n > MOST_STEPS && fails <= n) k = fits + (fails - fits) / 2;
        make_pattern(search, pattern, kind, k, n);
        if (weft_search_fits(search, search->trial))
            fits = k;
        else
            fails = k;
    }
    return fits;
}

void weft_search_patterns(struct weft_search *search)
{
    const struct weft_digest *table = search->table;
    weft_search_try(search, table->leanest);
    for (int32_t kind = 0; kind < table->problem->n_kinds; kind++) {
        int32_t n = 0;
        for (int32_t u = 0; u < table->n_decisions; u++) {
            int32_t p = of_kind(search, u, kind);
            n += p >= 0 && p != table->leanest[u];
        }
        for (int pattern = 0; pattern < PATTERN_COUNT && n > 0; pattern++) {
            /* First the most that fits, then fewer at growing distances. */
            int32_t most = most_that_fit(search, (enum pattern)pattern, kind, n);
            for (int32_t less = 0; less < most; less = less < 4 ? less + 1 : 2 * less) {
                if (weft_search_is_spent(search)) return;
                make_pattern(search, (enum pattern)pattern, kind, most - less, n);
                weft_search_try(search, search->trial);
            }
        }
    }
}

/* Makes `trial` the leanest strategies, but those of `other` for k of the n decisions that differ.
 */
static void keep_some(struct weft_search *search, enum pattern pattern, int32_t k, int32_t n)
{
    int32_t i = 0;
    copy_strategies(search, search->trial, search->table->leanest);
    for (int32_t u = 0; u < search->table->n_decisions; u++)
        if (search->other[u] != search->trial[u] && in_pattern(pattern, i++, k, n))
            search->trial[u] = search->other[u];
}

/* Tries most strategies of `trial`, which do not fit: those of the most decisions that fit in each
 * pattern, and the leanest of all others. */
static void try_shrunk(struct weft_search *search)
{
    int32_t n = 0;
    copy_strategies(search, search->other, search->trial);
    for (int32_t u = 0; u < search->table->n_decisions; u++)
        n += search->other[u] != search->table->leanest[u];
    for (int pattern = 0; pattern < PATTERN_COUNT; pattern++) {
        int32_t fits = 0, fails = n;
        while (fails - fits > 1) {
            int32_t k = fits + (fails - fits) / 2;
            if (weft_search_is_spent(search)) return;
            keep_some(search, (enum pattern)pattern, k, n);
            *(weft_search_fits(search, search->trial) ? &fits : &fails) = k;
        }
        keep_some(search, (enum pattern)pattern, fits, n);
        weft_search_try(search, search->trial);
    }
}

enum weft_status weft_search_start(struct weft_search *search, const struct weft_plan *plan,
                                   struct weft_error *err)
{
    const struct weft_problem *problem = search->table->problem;
    if (!take_strategies(problem, plan, search->trial)) return WEFT_OK;
    if (!weft_search_fits(search, search->trial)) {
        try_shrunk(search);
        return WEFT_OK;
    }
    weft_search_try(search, search->trial);
    if (!weft_search_moves_of(problem, plan, search->trial_moves)) return WEFT_OK;
    return weft_search_try_moves(search, plan->strategies, search->trial_moves, plan->n_placements,
                                 err);
}

/* Makes `trial` fit: decisions with the least share go back to their leanest strategy. */
static void retreat_to_lean(struct weft_search *search, const double *share)
{
    const struct weft_digest *table = search->table;
    while (!weft_search_is_spent(search) && !weft_search_fits(search, search->trial)) {
        int32_t worst = -1;
        double least = 2;
        for (int32_t u = 0; u < table->n_decisions; u++) {
            double value = share[weft_digest_at(table, u, search->trial[u])];
            if (search->trial[u] == table->leanest[u] || value >= least) continue;
            least = value;
            worst = u;
        }
        if (worst < 0) return;
        search->trial[worst] = table->leanest[worst];
    }
}

/* Takes for each decision in turn the strategy with the largest rounding debt so far. */
static void diffuse_shares(struct weft_search *search, const double *share, bool backwards)
{
    const struct weft_digest *table = search->table;
    double *owed = search->owed; /* [n_kinds] */
    memset(owed, 0, (size_t)table->problem->n_kinds * sizeof *owed);
    for (int32_t i = 0; i < table->n_decisions; i++) {
        int32_t u = backwards ? table->n_decisions - 1 - i : i;
        int32_t best = -1;
        double most = 0;
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            double own = share[weft_digest_at(table, u, p)];
            double now = owed[kind_of(search, u, p)] += own;
            if (own <= 1e-6 || (best >= 0 && now <= most)) continue;
            best = p;
            most = now;
        }
        if (best < 0) best = table->leanest[u];
        owed[kind_of(search, u, best)] -= 1;
        search->trial[u] = best;
    }
}

void weft_search_round(struct weft_search *search, const double *share)
{
    const struct weft_digest *table = search->table;
    for (int32_t u = 0; u < table->n_decisions; u++) {
        const double *own = &share[weft_digest_at(table, u, 0)];
        int32_t best = table->leanest[u];
        for (int32_t p = 0; p < weft_digest_count(table, u); p++)
            if (own[p] > own[best]) best = p;
        search->trial[u] = best;
    }
    retreat_to_lean(search, share);
    weft_search_try(search, search->trial);
    for (int backwards = 0; backwards < 2 && !weft_search_is_spent(search); backwards++) {
        diffuse_shares(search, share, backwards != 0);
        retreat_to_lean(search, share);
        weft_search_try(search, search->trial);
    }
    int32_t n = 0;
    for (int32_t u = 0; u < table->n_decisions; u++) {
        const double *own = &share[weft_digest_at(table, u, 0)];
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            if (p == table->leanest[u] || own[p] < 1e-6) continue;
            search->choices[n++] =
                (struct weft_search_choice){.decision = u, .strategy = p, .value = own[p]};
        }
    }
    qsort(search->choices, (size_t)n, sizeof *search->choices, compare_choices);
    copy_strategies(search, search->trial, table->leanest);
    for (int32_t k = 0; k < n && !weft_search_is_spent(search); k++) {
        int32_t u = search->choices[k].decision;
        int32_t before = search->trial[u];
        if (before != table->leanest[u]) continue;
        search->trial[u] = search->choices[k].strategy;
        if (!weft_search_fits(search, search->trial)) search->trial[u] = before;
    }
    weft_search_try(search, search->trial);
}

/* Tries `trial`, different from the best. True if it became the best by time. */
static bool improves_best(struct weft_search *search)
{
    int64_t before = search->step_ns;
    if (!weft_search_fits(search, search->trial)) return false;
    weft_search_try(search, search->trial);
    return search->step_ns < before;
}

static bool improve_by_change(struct weft_search *search, int64_t most_tries)
{
    for (int32_t u = 0; u < search->table->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(search->table, u); p++) {
            if (p == search->strategies[u]) continue;
            if (search->n_tried >= most_tries || weft_search_is_spent(search)) return false;
            copy_strategies(search, search->trial, search->strategies);
            search->trial[u] = p;
            if (improves_best(search)) return true;
        }
    }
    return false;
}

/* Neighbours first. */
static bool improve_by_exchange(struct weft_search *search, int64_t most_tries)
{
    int32_t n = search->table->n_decisions;
    for (int32_t distance = 1; distance < n; distance++) {
        for (int32_t u = 0; u + distance < n; u++) {
            int32_t v = u + distance;
            int32_t kind_u = kind_of(search, u, search->strategies[u]);
            int32_t kind_v = kind_of(search, v, search->strategies[v]);
            int32_t for_u = of_kind(search, u, kind_v), for_v = of_kind(search, v, kind_u);
            if (kind_u == kind_v || for_u < 0 || for_v < 0) continue;
            if (search->n_tried >= most_tries || weft_search_is_spent(search)) return false;
            copy_strategies(search, search->trial, search->strategies);
            search->trial[u] = for_u;
            search->trial[v] = for_v;
            if (improves_best(search)) return true;
        }
    }
    return false;
}

void weft_search_improve(struct weft_search *search, int64_t most_tries, int64_t enough_ns)
{
    most_tries += search->n_tried;
    while (search->step_ns > enough_ns && search->n_tried < most_tries) {
        if (!improve_by_change(search, most_tries) && !improve_by_exchange(search, most_tries))
            return;
    }
}

/* Whether the best recomputes a layer that could keep its saved activations on the device. Then
 * neither strategy has items. */
static bool may_keep(const struct weft_search *search, int32_t decision)
{
    const struct weft_problem *problem = search->table->problem;
    const struct weft_problem_strategy *chosen =
        weft_problem_chosen(problem, search->strategies, decision);
    const struct weft_problem_strategy *kept = &problem->decisions[decision].strategies[0];
    return chosen->recompute != WEFT_RECOMPUTE_NONE && chosen->location == WEFT_LOCATION_DEVICE &&
           kept->recompute == WEFT_RECOMPUTE_NONE && kept->location == WEFT_LOCATION_DEVICE;
}

/* Takes the strategies in `trial` with the best's moves, if they fit and are as fast. */
static enum weft_status take_as_fast(struct weft_search *search, bool *taken,
                                     struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_prediction prediction = {0};
    const size_t bytes = (size_t)search->table->n_decisions * sizeof *search->trial;
    const int64_t peak = peak_of_moves(search, search->trial, search->moves, search->n_moves);
    *taken = false;
    if (peak > weft_digest_limit_bytes(search->table)) return WEFT_OK;
    spend_work(search, 40 * (int64_t)search->table->n_slots + 25 * (int64_t)search->n_moves);
    WEFT_TRY(weft_plan_create(search->table->problem, "ilp", search->trial, search->moves,
                              search->n_moves, &plan, err));
    weft_simulate_plan(plan, search->simulation, &prediction);
    weft_plan_destroy(plan);
    *taken = prediction.step_ns <= search->step_ns;
    if (!*taken) return WEFT_OK;
    memcpy(search->strategies, search->trial, bytes);
    search->step_ns = prediction.step_ns;
    search->peak_bytes = peak;
    return WEFT_OK;
}

enum weft_status weft_search_keep_saved(struct weft_search *search, struct weft_error *err)
{
    const int32_t n = search->table->n_decisions;
    int32_t n_restored = 0;
    bool taken = false;
    memcpy(search->trial, search->strategies, (size_t)n * sizeof *search->trial);
    for (int32_t d = 0; d < n; d++) {
        if (!may_keep(search, d)) continue;
        search->trial[d] = 0;
        n_restored++;
    }
    if (n_restored > 0) WEFT_TRY(take_as_fast(search, &taken, err));
    for (int32_t d = n - 1; d >= 0 && !taken && n_restored > 1; d--) {
        bool one = false;
        if (!may_keep(search, d)) continue;
        memcpy(search->trial, search->strategies, (size_t)n * sizeof *search->trial);
        search->trial[d] = 0;
        WEFT_TRY(take_as_fast(search, &one, err));
    }
    return WEFT_OK;
}

void weft_search_result(const struct weft_search *search, struct weft_candidate *out)
{
    copy_strategies(search, out->strategies, search->strategies);
    memcpy(out->moves, search->moves, (size_t)search->n_moves * sizeof *out->moves);
    out->n_moves = search->n_moves;
}
