/* SPDX-License-Identifier: Apache-2.0 */
#include "report/export/fsdp2_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "problem/target.h"
#include "program/predict.h"

struct runner {
    const struct weft_fsdp2 *fsdp2;
    const struct weft_problem *problem;
    const char *source;
    int32_t slot;
    int32_t *of;         /* by unit of the export: its decision in the problem */
    int32_t *strategies; /* by decision */
    bool *gathered;      /* by unit of the export */
    struct weft_move *moves;
    int32_t n_moves;
    struct weft_error *err;
};

/* The policy by which a unit's gathers and releases are those of FSDP2's flags. A unit that is not
 * gathered in backward has one such policy. */
static enum weft_policy policy_of(const struct weft_fsdp2_unit *unit)
{
    return unit->reshards && unit->unshards ? WEFT_POLICY_FSDP : WEFT_POLICY_SDP;
}

static enum weft_status choose_strategy(struct runner *r, int32_t u)
{
    const struct weft_fsdp2_unit *unit = &r->fsdp2->units[u];
    const int32_t n = weft_problem_n_units(r->problem);
    int32_t d = 0;
    while (d < n && strcmp(r->problem->decisions[d].name, unit->name) != 0)
        d++;
    if (d == n)
        return weft_fail(r->err, WEFT_E_DATA,
                         "%s: unit %s is none that %s would have for this config: plan with --for "
                         "fsdp2",
                         r->source, unit->name, weft_problem_target(r->problem)->title);
    const struct weft_problem_decision *decision = &r->problem->decisions[d];
    int32_t k = weft_decision_of_policy(decision, policy_of(unit));
    /* A unit whose uses are neighbours is never released between them. */
    if (k < 0 && policy_of(unit) == WEFT_POLICY_FSDP)
        k = weft_decision_of_policy(decision, WEFT_POLICY_SDP);
    if (k < 0 || unit->policy == WEFT_POLICY_DP)
        return weft_fail(r->err, WEFT_E_DATA,
                         "%s: unit %s has policy %s, and its memory under FSDP2 is not known: plan "
                         "with --for fsdp2, or with plan.policies \"sdp,fsdp\"",
                         r->source, unit->name, weft_policy_name(unit->policy));
    r->of[u] = d;
    r->strategies[d] = k;
    return WEFT_OK;
}

/* The next gather of a unit that is used in the present slot or later; -1: none. */
static int32_t next_gather(const struct runner *r, int32_t decision)
{
    for (int32_t i = 0; i < r->problem->n_items; i++) {
        const struct weft_item *item = &r->problem->items[i].item;
        if (item->decision == decision && item->acquires &&
            weft_problem_needs(r->problem, r->strategies, i) && item->last + 1 >= r->slot)
            return i;
    }
    return -1;
}

/* A gather by a hook: the unit's own (`own`), which its slot waits for, or by a list. */
static enum weft_status gather_unit(struct runner *r, int32_t u, bool own)
{
    if (r->gathered[u]) return WEFT_OK;
    const int32_t i = next_gather(r, r->of[u]);
    const struct weft_item *item = i < 0 ? NULL : &r->problem->items[i].item;
    const bool fits = item && (own ? item->last + 1 == r->slot
                                   : item->first <= r->slot && r->slot <= item->last &&
                                         !weft_problem_must_block(r->problem, item));
    if (!fits)
        return weft_fail(r->err, WEFT_E_DATA,
                         "%s: FSDP2 would gather %s in vain in slot %s: plan with --for fsdp2",
                         r->source, r->fsdp2->units[u].name, r->problem->slot_names[r->slot]);
    r->moves[r->n_moves++] = (struct weft_move){.item = i, .slot = r->slot, .launch = r->slot};
    r->gathered[u] = true;
    return WEFT_OK;
}

static enum weft_status gather_list(struct runner *r, const struct weft_fsdp2_list *list)
{
    for (int32_t i = 0; i < list->n; i++)
        WEFT_TRY(gather_unit(r, list->units[i], false));
    return WEFT_OK;
}

/* Reductions with a window that begins in the slot, in reverse order of the modules. */
static enum weft_status reduce_units(struct runner *r)
{
    const bool drains = r->problem->slots[r->slot].kind == WEFT_SLOT_DRAIN;
    for (int32_t i = r->problem->n_items - 1; i >= 0; i--) {
        const struct weft_item *item = &r->problem->items[i].item;
        if (item->acquires || item->first != r->slot ||
            !weft_problem_needs(r->problem, r->strategies, i))
            continue;
        for (int32_t u = 0; u < r->fsdp2->n_units; u++) {
            const struct weft_fsdp2_unit *unit = &r->fsdp2->units[u];
            if (r->of[u] == item->decision && drains != (unit->ends_late || unit->drains))
                return weft_fail(r->err, WEFT_E_DATA,
                                 "%s: the reduction of %s is %s the end of backward, and not so "
                                 "in the problem: plan with --for fsdp2",
                                 r->source, unit->name, drains ? "before" : "at");
        }
        r->moves[r->n_moves++] =
            (struct weft_move){.item = i, .slot = item->last, .launch = item->first};
    }
    return WEFT_OK;
}

static enum weft_status run_forward(struct runner *r, int32_t layer)
{
    /* In later micro-steps the root's list comes in the first slot, after the gather of a unit that
     * begins there. */
    const bool repeats = layer == 0 && r->problem->slots[r->slot].micro > 0;
    for (int32_t u = 0; u < r->fsdp2->n_units && repeats; u++)
        if (r->fsdp2->units[u].layers[0] == 0) WEFT_TRY(gather_unit(r, u, true));
    if (repeats) WEFT_TRY(gather_list(r, &r->fsdp2->root_forward));
    for (int32_t u = 0; u < r->fsdp2->n_units; u++) {
        const struct weft_fsdp2_unit *unit = &r->fsdp2->units[u];
        if (unit->layers[0] == layer) {
            WEFT_TRY(gather_unit(r, u, true));
            WEFT_TRY(gather_list(r, &unit->forward));
        }
        if (unit->layers[unit->n_layers - 1] == layer && unit->reshards) r->gathered[u] = false;
    }
    return WEFT_OK;
}

static enum weft_status run_backward(struct runner *r, int32_t layer)
{
    for (int32_t u = 0; u < r->fsdp2->n_units; u++) {
        const struct weft_fsdp2_unit *unit = &r->fsdp2->units[u];
        if (unit->layers[unit->n_layers - 1] == layer) {
            if (unit->unshards) WEFT_TRY(gather_unit(r, u, true));
            WEFT_TRY(gather_list(r, &unit->backward));
        }
        if (unit->layers[0] == layer) r->gathered[u] = false;
    }
    return WEFT_OK;
}

static enum weft_status run_slots(struct runner *r)
{
    for (r->slot = 0; r->slot < r->problem->n_slots; r->slot++) {
        const struct weft_slot *slot = &r->problem->slots[r->slot];
        WEFT_TRY(reduce_units(r));
        if (slot->kind == WEFT_SLOT_FILL) WEFT_TRY(gather_list(r, &r->fsdp2->root_forward));
        if (slot->kind == WEFT_SLOT_FORWARD) WEFT_TRY(run_forward(r, slot->index));
        if (slot->kind == WEFT_SLOT_BACKWARD) WEFT_TRY(run_backward(r, slot->index));
    }
    return WEFT_OK;
}

static enum weft_status make_run(struct runner *r, struct weft_plan **out)
{
    if (r->fsdp2->n_units != weft_problem_n_units(r->problem))
        return weft_fail(r->err, WEFT_E_DATA,
                         "%s: has %d units, and %s would have %d for this config: plan with --for "
                         "fsdp2",
                         r->source, r->fsdp2->n_units, weft_problem_target(r->problem)->title,
                         weft_problem_n_units(r->problem));
    for (int32_t u = 0; u < r->fsdp2->n_units; u++)
        WEFT_TRY(choose_strategy(r, u));
    /* A plan for FSDP2 has these decisions, and recomputes layers. Other plans do not. */
    const struct weft_plan *plan = r->fsdp2->plan;
    for (int32_t d = r->fsdp2->n_units; d < r->problem->n_decisions; d++)
        if (weft_problem_target(plan->problem)->is_foreign &&
            r->problem->n_decisions == plan->problem->n_decisions)
            r->strategies[d] = plan->strategies[d];
    WEFT_TRY(run_slots(r));
    WEFT_TRY(weft_plan_create(r->problem, r->fsdp2->plan->planner, r->strategies, r->moves,
                              r->n_moves, out, r->err));
    WEFT_TRY(weft_plan_predict(*out, r->err));
    (*out)->prediction.total_bytes = (*out)->prediction.peak_bytes;
    return WEFT_OK;
}

enum weft_status weft_fsdp2_run(const struct weft_fsdp2 *fsdp2, const char *source,
                                const struct weft_problem *problem, struct weft_plan **out,
                                struct weft_error *err)
{
    const size_t n_units = (size_t)fsdp2->n_units + 1;
    struct weft_plan *plan = NULL;
    struct runner r = {.fsdp2 = fsdp2, .problem = problem, .source = source, .err = err};
    r.of = calloc(n_units, sizeof *r.of);
    r.gathered = calloc(n_units, sizeof *r.gathered);
    r.strategies = calloc((size_t)problem->n_decisions + 1, sizeof *r.strategies);
    r.moves = calloc((size_t)problem->n_items + 1, sizeof *r.moves);
    enum weft_status status = r.of && r.gathered && r.strategies && r.moves
                                  ? make_run(&r, &plan)
                                  : weft_fail_memory(err, "an export");
    free(r.of);
    free(r.gathered);
    free(r.strategies);
    free(r.moves);
    if (status == WEFT_OK)
        *out = plan;
    else
        weft_plan_destroy(plan);
    return status;
}
