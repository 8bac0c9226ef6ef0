/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/rule.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "problem/target.h"
#include "program/trace.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/runs.h"

struct weft_draft_move {
    int32_t launch, acquires, index;
    bool waited_for;
    struct weft_move move;
};

const enum weft_policy weft_draft_sharded[] = {WEFT_POLICY_FSDP, WEFT_POLICY_SDP,
                                               WEFT_POLICY_COUNT};

const struct weft_item *weft_draft_item(const struct weft_draft *draft, int32_t item)
{
    return &draft->problem->items[item].item;
}

static bool gathers_parameters(const struct weft_item *item)
{
    return item->acquires && weft_item_is_collective(item);
}

static int compare_integers(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A use begins in the slot after the window of some strategy's gather, for any chosen policies. If
 * plan.policies leaves fsdp out, no strategy gathers for backward, so uses in backward are
 * unknown. */
static void list_uses(struct weft_draft *draft)
{
    int32_t n = 0;
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (gathers_parameters(item)) draft->uses[n++] = item->last + 1;
    }
    qsort(draft->uses, (size_t)n, sizeof *draft->uses, compare_integers);
    draft->n_uses = 0;
    for (int32_t i = 0; i < n; i++)
        if (i == 0 || draft->uses[i] != draft->uses[i - 1])
            draft->uses[draft->n_uses++] = draft->uses[i];
}

static void find_root(struct weft_draft *draft)
{
    const struct weft_problem *problem = draft->problem;
    int32_t first = -1, last = -1;
    if (weft_problem_target(problem)->gathers_all) return; /* the root has no parameters */
    for (int32_t i = 0; i < draft->n_uses; i++) {
        struct weft_slot slot = problem->slots[draft->uses[i]];
        if (slot.kind != WEFT_SLOT_FORWARD) continue;
        if (first < 0 || slot.index < first) first = slot.index;
        if (slot.index > last) last = slot.index;
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!gathers_parameters(item)) continue;
        struct weft_slot slot = problem->slots[item->last + 1];
        if (slot.kind == WEFT_SLOT_FORWARD && (slot.index == first || slot.index == last))
            draft->root[item->decision] = true;
    }
}

static void count_micro_steps(struct weft_draft *draft)
{
    bool backward = false;
    int32_t micro = 0;
    for (int32_t s = 0; s < draft->problem->n_slots; s++) {
        enum weft_slot_kind kind = draft->problem->slots[s].kind;
        if (kind == WEFT_SLOT_FORWARD && backward) {
            micro++;
            backward = false;
        }
        if (kind == WEFT_SLOT_BACKWARD) backward = true;
        draft->micro[s] = micro;
    }
}

enum weft_status weft_draft_init(struct weft_draft *draft, const char *planner,
                                 const struct weft_problem *problem, struct weft_candidate *out,
                                 struct weft_error *err)
{
    size_t n_items = (size_t)problem->n_items, n_slots = (size_t)problem->n_slots;
    size_t n_blocks = (size_t)weft_problem_count_blocks(problem);
    *draft = (struct weft_draft){.planner = planner, .problem = problem, .out = out};
    draft->gathers = weft_pool_array(&draft->pool, n_items, sizeof *draft->gathers);
    draft->reductions = weft_pool_array(&draft->pool, n_items, sizeof *draft->reductions);
    draft->uses = weft_pool_array(&draft->pool, n_items, sizeof *draft->uses);
    draft->root = weft_pool_array(&draft->pool, (size_t)problem->n_decisions, sizeof *draft->root);
    draft->levels =
        weft_pool_array(&draft->pool, (size_t)problem->n_decisions, sizeof *draft->levels);
    draft->micro = weft_pool_array(&draft->pool, n_slots, sizeof *draft->micro);
    draft->rows =
        weft_pool_array(&draft->pool, (size_t)weft_problem_n_rows(problem), sizeof *draft->rows);
    draft->moves = weft_pool_array(&draft->pool, n_blocks, sizeof *draft->moves);
    if (!draft->gathers || !draft->reductions || !draft->uses || !draft->root || !draft->levels ||
        !draft->micro || !draft->rows || !draft->moves)
        return weft_fail_memory(err, "a rule's draft");
    list_uses(draft);
    find_root(draft);
    count_micro_steps(draft);
    return WEFT_OK;
}

void weft_draft_finish(struct weft_draft *draft)
{
    weft_pool_finish(&draft->pool);
}

/* The reason why a unit may not have a policy: the period's, or the config's. */
static const char *refused_by(const struct weft_problem *problem, enum weft_policy policy)
{
    const struct weft_period_rule *period = &problem->period;
    const bool every = weft_period_reductions(period) > 1;
    return every && policy == WEFT_POLICY_DP
               ? "gradients are reduced several times a step, and dp reduces them once: set "
                 "train.reduce to \"step\", and leave out train.group"
               : "plan.policies leaves it out";
}

enum weft_status weft_rule_policy(const struct weft_problem *problem, const char *planner,
                                  int32_t unit, const enum weft_policy *policies, int32_t *out,
                                  struct weft_error *err)
{
    const struct weft_problem_decision *it = &problem->decisions[unit];
    if (it->is_of_layer) {
        *out = 0;
        return WEFT_OK;
    }
    for (const enum weft_policy *p = policies; *p != WEFT_POLICY_COUNT; p++) {
        int32_t strategy = weft_decision_of_policy(it, *p);
        if (strategy < 0) continue;
        *out = strategy;
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its rule gives unit %s the policy %s, which it may not have: %s. "
                     "Allow it, or use another planner",
                     planner, it->name, weft_policy_name(policies[0]),
                     refused_by(problem, policies[0]));
}

enum weft_status weft_draft_choose(struct weft_draft *draft, int32_t unit,
                                   const enum weft_policy *policies, struct weft_error *err)
{
    if (draft->problem->decisions[unit].is_of_layer) {
        draft->out->strategies[unit] = draft->levels[unit];
        return WEFT_OK;
    }
    return weft_rule_policy(draft->problem, draft->planner, unit, policies,
                            &draft->out->strategies[unit], err);
}

enum weft_status weft_draft_choose_all(struct weft_draft *draft, const enum weft_policy *policies,
                                       struct weft_error *err)
{
    for (int32_t u = 0; u < draft->problem->n_decisions; u++)
        WEFT_TRY(weft_draft_choose(draft, u, policies, err));
    return WEFT_OK;
}

enum weft_status weft_draft_choose_resident(struct weft_draft *draft, int32_t unit,
                                            struct weft_error *err)
{
    static const enum weft_policy trained[] = {WEFT_POLICY_ZERO1, WEFT_POLICY_COUNT};
    static const enum weft_policy frozen[] = {WEFT_POLICY_DP, WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    bool is_frozen = draft->problem->decisions[unit].update_slot < 0;
    return weft_draft_choose(draft, unit, is_frozen ? frozen : trained, err);
}

/* Inserts an item in order. Insertion sort suffices, because a few hundred items are nearly in
 * order. */
static void insert_item(const struct weft_draft *draft, int32_t *items, int32_t n, int32_t item)
{
    const struct weft_item *it = weft_draft_item(draft, item);
    while (n > 0) {
        const struct weft_item *before = weft_draft_item(draft, items[n - 1]);
        bool behind = gathers_parameters(it) ? before->last > it->last : before->first >= it->first;
        if (!behind) break;
        items[n] = items[n - 1];
        n--;
    }
    items[n] = item;
}

void weft_draft_take(struct weft_draft *draft)
{
    draft->n_gathers = draft->n_reductions = draft->n_moves = 0;
    draft->streams = draft->fetches = draft->updates_on_host = draft->is_filled = false;
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!weft_item_active(item, draft->out->strategies) || !weft_item_is_collective(item))
            continue;
        if (gathers_parameters(item)) {
            insert_item(draft, draft->gathers, draft->n_gathers++, i);
        } else {
            insert_item(draft, draft->reductions, draft->n_reductions++, i);
        }
    }
}

static int32_t clamp_value(int32_t value, int32_t least, int32_t most)
{
    return value < least ? least : value > most ? most : value;
}

static void put_moves(struct weft_draft *draft, int32_t launch, struct weft_move move,
                      bool waited_for, int32_t n_blocks)
{
    for (int32_t b = 0; b < n_blocks; b++) {
        draft->moves[draft->n_moves] =
            (struct weft_draft_move){.launch = launch,
                                     .acquires = weft_draft_item(draft, move.item)->acquires,
                                     .index = draft->n_moves,
                                     .waited_for = waited_for,
                                     .move = move};
        draft->n_moves++;
    }
}

void weft_draft_gather(struct weft_draft *draft, int32_t item, int32_t slot, int32_t n_blocks)
{
    const struct weft_item *it = weft_draft_item(draft, item);
    slot = clamp_value(slot, it->first, it->last + 1);
    put_moves(draft, slot, (struct weft_move){.item = item, .slot = slot}, true, n_blocks);
}

void weft_draft_reduce(struct weft_draft *draft, int32_t item, int32_t launch, int32_t slot,
                       int32_t n_blocks)
{
    const struct weft_item *it = weft_draft_item(draft, item);
    bool waited_for = slot != WEFT_DRAFT_NOT_WAITED_FOR;
    launch = clamp_value(launch, it->first,
                         waited_for ? clamp_value(slot, it->first, it->last) : it->last);
    slot = clamp_value(slot, launch, it->last);
    put_moves(draft, launch, (struct weft_move){.item = item, .slot = slot, .launch = launch},
              waited_for, n_blocks);
}

void weft_draft_gather_all(struct weft_draft *draft, int32_t item, int32_t slot)
{
    weft_draft_gather(draft, item, slot, weft_draft_item(draft, item)->n_blocks);
}

void weft_draft_reduce_all(struct weft_draft *draft, int32_t item, int32_t launch, int32_t slot)
{
    weft_draft_reduce(draft, item, launch, slot, weft_draft_item(draft, item)->n_blocks);
}

void weft_draft_reduce_at_once(struct weft_draft *draft)
{
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        weft_draft_reduce_all(draft, draft->reductions[i], item->first, WEFT_DRAFT_NOT_WAITED_FOR);
    }
}

static bool is_of(const struct weft_draft *draft, const struct weft_item *item, uint32_t policies)
{
    return (policies >> weft_draft_policy(draft, item->decision) & 1u) != 0;
}

int32_t weft_draft_copy_up(const struct weft_draft *draft, int32_t gather)
{
    const int32_t after = draft->problem->items[gather].after;
    return after >= 0 && weft_draft_item(draft, after)->kind == WEFT_PARAMETERS_UP ? after : -1;
}

/* The slot after a gather's update. After an update on the host it is the fill, in which forward
 * begins, unless the period is rotated. */
static int32_t behind_update(const struct weft_draft *draft, int32_t gather)
{
    const struct weft_problem *problem = draft->problem;
    int32_t slot = weft_draft_item(draft, gather)->first;
    if (weft_draft_copy_up(draft, gather) < 0 || problem->period.rotated) return slot;
    while (problem->slots[slot].kind != WEFT_SLOT_FILL)
        slot++;
    return slot;
}

void weft_draft_gather_after_updates(struct weft_draft *draft, uint32_t policies)
{
    int32_t updated = 0;
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        const int32_t behind = behind_update(draft, draft->gathers[i]);
        if (is_of(draft, item, policies) && behind > updated) updated = behind;
    }
    /* The channel is in order. Parameters used first come last, so that their use waits for all.
     * Gathers after updates on the host do not wait for updates on the device. */
    for (int32_t i = draft->n_gathers - 1; i >= 0; i--) {
        const int32_t gather = draft->gathers[i];
        const bool on_host =
            weft_draft_copy_up(draft, gather) >= 0 && !draft->problem->period.rotated;
        if (!is_of(draft, weft_draft_item(draft, gather), policies)) continue;
        weft_draft_gather_all(draft, gather, on_host ? behind_update(draft, gather) : updated);
    }
}

int32_t weft_draft_release(const struct weft_draft *draft, const struct weft_item *item)
{
    const struct weft_problem_strategy *of =
        weft_problem_chosen(draft->problem, draft->out->strategies, item->decision);
    for (int32_t i = 0; i < of->n_holds; i++) {
        const struct weft_hold *hold = &of->holds[i];
        bool holds = hold->first <= item->last + 1 && item->last + 1 <= hold->last;
        if (hold->category == WEFT_CATEGORY_GATHERED_PARAMETERS && holds) return hold->last;
    }
    return draft->problem->n_slots - 1;
}

int32_t weft_draft_begin(const struct weft_draft *draft, int32_t slot)
{
    const struct weft_slot *slots = draft->problem->slots;
    int32_t begin = slot;
    for (int32_t s = slot; s >= 0 && draft->micro[s] == draft->micro[slot]; s--)
        if (slots[s].kind == slots[slot].kind) begin = s;
    return begin;
}

int32_t weft_draft_use_before(const struct weft_draft *draft, int32_t slot, int32_t depth)
{
    int32_t i = 0, begin = weft_draft_begin(draft, slot);
    while (i < draft->n_uses && draft->uses[i] < slot)
        i++;
    i = i > depth ? i - depth : 0;
    int32_t use = draft->uses[i] > begin ? draft->uses[i] : begin;
    return use < slot ? use : -1;
}

int64_t weft_draft_block_elements(const struct weft_draft *draft, int32_t item)
{
    const struct weft_item *it = weft_draft_item(draft, item);
    return draft->problem->decisions[it->decision].elements / it->n_blocks;
}

static void add_move(const struct weft_draft *draft, struct weft_move move, int64_t *rows)
{
    const struct weft_item *item = weft_draft_item(draft, move.item);
    int32_t first = item->acquires ? move.slot : item->first;
    int32_t last = item->acquires ? item->last : move.slot;
    int32_t at = weft_problem_stair_at(draft->problem, item);
    for (int32_t s = first; s <= last; s++)
        rows[at + s] += item->stair_bytes;
}

static void add_holds(const struct weft_draft *draft, int32_t unit, int64_t *rows)
{
    const struct weft_problem_strategy *of =
        weft_problem_chosen(draft->problem, draft->out->strategies, unit);
    for (int32_t i = 0; i < of->n_holds; i++)
        weft_hold_add(&of->holds[i], draft->problem->n_slots, rows);
}

void weft_draft_unit_rows(const struct weft_draft *draft, int32_t unit, int64_t *rows)
{
    memset(rows, 0, (size_t)weft_problem_n_rows(draft->problem) * sizeof *rows);
    add_holds(draft, unit, rows);
    for (int32_t k = 0; k < draft->n_moves; k++)
        if (weft_draft_item(draft, draft->moves[k].move.item)->decision == unit)
            add_move(draft, draft->moves[k].move, rows);
}

int64_t weft_draft_peak(struct weft_draft *draft, int32_t *peak_slot)
{
    const struct weft_problem *problem = draft->problem;
    int32_t peak = 0;
    memset(draft->rows, 0, (size_t)weft_problem_n_rows(problem) * sizeof *draft->rows);
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], problem->n_slots, draft->rows);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        add_holds(draft, u, draft->rows);
    for (int32_t k = 0; k < draft->n_moves; k++)
        add_move(draft, draft->moves[k].move, draft->rows);
    for (int32_t s = 1; s < problem->n_slots; s++)
        if (draft->rows[s] > draft->rows[peak]) peak = s;
    if (peak_slot) *peak_slot = peak;
    return draft->rows[peak];
}

/* True if the reduction may be due a slot later. The drain that ends its backward waits for it. */
static bool may_wait(const struct weft_draft *draft, const struct weft_draft_move *at)
{
    return !at->waited_for && at->move.slot < weft_draft_item(draft, at->move.item)->last &&
           draft->problem->slots[at->move.slot].kind != WEFT_SLOT_DRAIN;
}

/* The limit of an item's tier if the device's is `limit_bytes`. INT64_MAX: no tier has a limit. */
static int64_t limit_of(const struct weft_draft *draft, const struct weft_item *item,
                        int64_t limit_bytes)
{
    if (item->stair_tier == 0 || limit_bytes == INT64_MAX) return limit_bytes;
    return draft->problem->tiers[item->stair_tier].limit_bytes;
}

/* Makes reductions that nothing waits for due a slot later, as often as memory allows. Each round
 * begins at the channel's end, so that none is due after a later one. */
static void defer_reductions(struct weft_draft *draft, int64_t limit_bytes)
{
    bool deferred = true;
    while (deferred) {
        int32_t due = draft->problem->n_slots;
        deferred = false;
        for (int32_t k = draft->n_moves - 1; k >= 0; k--) {
            struct weft_draft_move *at = &draft->moves[k];
            if (at->acquires) continue;
            const struct weft_item *item = weft_draft_item(draft, at->move.item);
            int64_t *rows = draft->rows + weft_problem_stair_at(draft->problem, item);
            if (may_wait(draft, at) && at->move.slot < due &&
                rows[at->move.slot + 1] + item->stair_bytes <= limit_of(draft, item, limit_bytes)) {
                rows[++at->move.slot] += item->stair_bytes;
                deferred = true;
            }
            if (at->move.slot < due) due = at->move.slot;
        }
    }
}

static void write_moves(struct weft_draft *draft)
{
    for (int32_t k = 0; k < draft->n_moves; k++)
        draft->out->moves[k] = draft->moves[k].move;
    draft->out->n_moves = draft->n_moves;
}

/* The slot in which a reduction happens to be complete, at the earliest its launch slot. */
static int32_t completion_slot(const struct weft_draft *draft, const struct weft_draft_move *at,
                               const int64_t *slot_start_ns, int64_t end_ns)
{
    int32_t first = weft_draft_item(draft, at->move.item)->first;
    int32_t slot = at->move.launch > first ? at->move.launch : first;
    while (slot < at->move.slot && slot_start_ns[slot + 1] < end_ns)
        slot++;
    return slot;
}

/* Makes reductions that nothing waits for due in the slot in which they are complete without any
 * wait. So none of these deadlines makes a slot wait, and memory is the product's. */
static enum weft_status end_when_complete(struct weft_draft *draft, struct weft_error *err)
{
    const struct weft_problem *problem = draft->problem;
    size_t n_slots = (size_t)problem->n_slots, n_moves = (size_t)draft->n_moves;
    struct weft_plan *plan = NULL;
    size_t n_words = weft_simulate_words(draft->problem);
    int64_t *scratch =
        weft_pool_array(&draft->pool, n_words + n_slots + 2 * n_moves, sizeof *scratch);
    if (!scratch) return weft_fail_memory(err, "a rule's draft");
    int64_t *own = scratch + n_words;
    struct weft_plan_times times = {own, own + n_slots, own + n_slots + n_moves};
    defer_reductions(draft, INT64_MAX);
    write_moves(draft);
    WEFT_TRY(weft_plan_create(problem, draft->planner, draft->out->strategies, draft->out->moves,
                              draft->out->n_moves, &plan, err));
    weft_simulate_plan_times(plan, scratch, &times);
    weft_plan_destroy(plan);
    for (int32_t k = 0; k < draft->n_moves; k++) {
        struct weft_draft_move *at = &draft->moves[k];
        if (at->acquires || at->waited_for) continue;
        at->move.slot = completion_slot(draft, at, times.slot_start_ns, times.end_ns[k]);
    }
    return WEFT_OK;
}

/* If the memory that a product holds fits, reductions are due later only if the highest row stays
 * the same. Otherwise they are due as late as the limit allows. */
static enum weft_status defer_within(struct weft_draft *draft, int64_t limit_bytes,
                                     struct weft_error *err)
{
    int32_t *at_once = weft_pool_array(&draft->pool, (size_t)draft->n_moves, sizeof *at_once);
    if (!at_once) return weft_fail_memory(err, "a rule's draft");
    for (int32_t k = 0; k < draft->n_moves; k++)
        at_once[k] = draft->moves[k].move.slot;
    WEFT_TRY(end_when_complete(draft, err));
    int64_t most = weft_draft_peak(draft, NULL);
    if (most <= limit_bytes) {
        limit_bytes = most;
    } else {
        for (int32_t k = 0; k < draft->n_moves; k++)
            draft->moves[k].move.slot = at_once[k];
        (void)weft_draft_peak(draft, NULL);
    }
    defer_reductions(draft, limit_bytes);
    return WEFT_OK;
}

static enum weft_status sort_moves(struct weft_draft *draft, struct weft_error *err)
{
    struct weft_move_run *runs = calloc((size_t)draft->n_moves + 1, sizeof *runs);
    struct weft_draft_move *sorted = malloc(((size_t)draft->n_moves + 1) * sizeof *sorted);
    int32_t n_runs = 0, n = 0;
    for (int32_t k = 0; runs && sorted && k < draft->n_moves; k++) {
        const struct weft_draft_move *move = &draft->moves[k];
        weft_move_runs_add(runs, &n_runs,
                           (struct weft_move_run){.launch = move->launch,
                                                  .kind = move->acquires,
                                                  .index = move->index,
                                                  .begin = k,
                                                  .n = 1});
    }
    weft_move_runs_sort(runs, n_runs);
    for (int32_t r = 0; r < n_runs; n += runs[r++].n)
        memcpy(sorted + n, draft->moves + runs[r].begin, (size_t)runs[r].n * sizeof *sorted);
    if (n == draft->n_moves) memcpy(draft->moves, sorted, (size_t)n * sizeof *sorted);
    free(sorted);
    free(runs);
    return n == draft->n_moves ? WEFT_OK : weft_fail_memory(err, "a rule's moves");
}

/* Makes no reduction due later than the next moves on its lane allow, as in the plan
 * (plan/placement.h). */
static void clamp_reductions(struct weft_draft *draft)
{
    int32_t due[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < draft->problem->n_lanes; lane++)
        due[lane] = draft->problem->n_slots;
    for (int32_t k = draft->n_moves - 1; k >= 0; k--) {
        struct weft_move *move = &draft->moves[k].move;
        int32_t *behind = &due[draft->problem->items[move->item].lane];
        int32_t last = weft_draft_item(draft, move->item)->last, complete;
        if (draft->moves[k].acquires) {
            complete = last + (move->slot > last ? 2 : 1);
        } else {
            if (move->slot + 1 > *behind) move->slot = *behind - 1;
            complete = move->slot + 1;
        }
        if (complete < *behind) *behind = complete;
    }
}

enum weft_status weft_rule_check_rows(const struct weft_problem *problem, const char *planner,
                                      const int64_t *rows, struct weft_error *err)
{
    char held[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    int32_t row = weft_problem_fullest_row(problem, rows), tier = row / problem->n_slots;
    int64_t limit_bytes = problem->tiers[tier].limit_bytes;
    if (rows[row] <= limit_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its plan holds %s (%lld bytes) in slot %s%s%s, above the limit "
                     "of %s (%lld bytes)",
                     planner, weft_units_show_bytes(rows[row], held), (long long)rows[row],
                     problem->slot_names[row % problem->n_slots], tier > 0 ? " of tier " : "",
                     tier > 0 ? problem->tiers[tier].name : "",
                     weft_units_show_bytes(limit_bytes, limit), (long long)limit_bytes);
}

/* The item that copies the reduction's gradient down after it; -1: none. */
static int32_t find_down(const struct weft_draft *draft, int32_t reduction)
{
    const struct weft_problem *problem = draft->problem;
    const int32_t decision = problem->items[reduction].item.decision;
    for (int32_t i = reduction + 1; i < problem->n_items; i++) {
        const struct weft_problem_item *it = &problem->items[i];
        if (it->item.decision != decision) break;
        if (it->after == reduction && it->item.kind == WEFT_GRADIENT_DOWN &&
            weft_item_active(&it->item, draft->out->strategies))
            return i;
    }
    return -1;
}

/* Copies gradients down block by block, each launched with its reduction, so that both lanes have
 * the same order. */
static void move_gradients(struct weft_draft *draft)
{
    const int32_t n_moves = draft->n_moves;
    for (int32_t k = 0; k < n_moves; k++) {
        const struct weft_draft_move *at = &draft->moves[k];
        const int32_t down = at->acquires ? -1 : find_down(draft, at->move.item);
        if (down >= 0) weft_draft_reduce(draft, down, at->launch, WEFT_DRAFT_NOT_WAITED_FOR, 1);
    }
}

/* True if the item is already placed. */
static bool is_placed(const struct weft_draft *draft, const struct weft_item *item)
{
    return weft_item_is_collective(item) || item->kind == WEFT_GRADIENT_DOWN ||
           (draft->streams && weft_item_moves_state(item)) ||
           (draft->fetches && item->kind == WEFT_PARAMETERS_FETCH) ||
           (draft->updates_on_host && weft_item_updates_on_host(item));
}

/* Places items of other tiers, which most rules do not know. State on a disk is read in the slot
 * before its update, and is written when memory needs its room. Saved activations that may not stay
 * are moved likewise. Updates on the host and copies of their parameters hold nothing, nor do
 * averages over nodes, so they begin as early as they may. */
void weft_draft_fill(struct weft_draft *draft)
{
    if (draft->is_filled) return;
    draft->is_filled = true;
    move_gradients(draft);
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!weft_item_active(item, draft->out->strategies) || is_placed(draft, item)) continue;
        if (item->acquires) {
            const bool early = weft_item_updates_on_host(item) || weft_item_averages(item);
            weft_draft_gather_all(draft, i, early ? item->first : item->last);
        } else {
            weft_draft_reduce_all(draft, i, item->first, WEFT_DRAFT_NOT_WAITED_FOR);
        }
    }
}

enum weft_status weft_draft_end(struct weft_draft *draft, struct weft_error *err)
{
    weft_draft_fill(draft);
    WEFT_TRY(sort_moves(draft, err));
    clamp_reductions(draft);
    (void)weft_draft_peak(draft, NULL);
    WEFT_TRY(weft_rule_check_rows(draft->problem, draft->planner, draft->rows, err));
    WEFT_TRY(defer_within(draft, draft->problem->tiers[0].limit_bytes, err));
    write_moves(draft);
    return WEFT_OK;
}

struct weft_draft_line weft_draft_line_of(const struct weft_problem *problem,
                                          enum weft_collective kind)
{
    double fixed_ns = (double)problem->agree_ns, ns = 0, bytes = 0, blocks = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        if (item->item.kind != (int32_t)kind) continue;
        if ((double)item->block_ns < fixed_ns) fixed_ns = (double)item->block_ns;
        ns += (double)item->item.n_blocks * (double)item->block_ns;
        bytes += (double)item->item.n_blocks * (double)item->item.block_bytes;
        blocks += item->item.n_blocks;
    }
    return (struct weft_draft_line){fixed_ns, bytes > 0 ? (ns - blocks * fixed_ns) / bytes : 0};
}

const int64_t *weft_draft_values(const struct weft_schedule_options *options,
                                 const struct weft_setting *settings)
{
    if (options->setting) return options->setting->values;
    return settings ? settings->values : NULL;
}
