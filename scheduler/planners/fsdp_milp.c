/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's fsdp_milp decides which layers are units of their own. The others belong to the root.
 * It minimises the exposed time of a schedule that prefetches one unit, with max_m + 2 max_p within
 * the limit. Placement follows FSDP2. Instead of calling a solver, this rule lists choices from the
 * first layer to the last. It drops a choice if another with the same last two units beats it in
 * time and in both sizes of the root. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/planners.h"

enum { MOST_LABELS = 1 << 14 };

/* The rule's figures of a layer that may be a unit. */
struct layer {
    int32_t unit;
    int64_t parameters_bytes, gradient_bytes;
    double forward_ns, backward_ns, gather_ns, reduce_ns;
};

struct label {
    double exposed_ns;
    int64_t parameters_bytes, gradient_bytes; /* of the root */
    int32_t before, last;                     /* the last two units; -1 = none */
    int32_t parent;                           /* its index among the labels of the layer before */
    bool wraps;                               /* this layer is a unit */
};

/* The part of a label that stays once the next layer has its own. */
struct step {
    int32_t parent;
    bool wraps;
};

struct run {
    struct weft_draft *draft;
    struct layer *layers;
    int32_t n_layers;
    struct weft_draft_line gather, reduce;
    int64_t limit_bytes;
    int64_t layer_bytes, largest_bytes; /* max_m without the root; the largest layer */
    struct label *labels, *other;       /* of the layer, and scratch */
    size_t n_labels;
    struct step *steps; /* of all layers, one after another */
    size_t n_steps, room;
    size_t *first; /* [n_layers]: the layer's first step */
    bool exact;
};

static double time_of(struct weft_draft_line line, int64_t bytes)
{
    return line.fixed_ns + line.ns_per_byte * (double)bytes;
}

static int64_t need_bytes(const struct run *run, const struct label *label)
{
    int64_t largest =
        label->parameters_bytes > run->largest_bytes ? label->parameters_bytes : run->largest_bytes;
    return run->layer_bytes + label->parameters_bytes + label->gradient_bytes + 2 * largest;
}

/* The exposed time of a complete choice. The root's own gather and reduction are exposed. */
static double total_ns(const struct run *run, const struct label *label)
{
    double ns = label->exposed_ns + time_of(run->gather, label->parameters_bytes) +
                time_of(run->reduce, label->gradient_bytes);
    if (label->last < 0) return ns;
    double gather_ns = label->before < 0 ? 0 : run->layers[label->before].gather_ns;
    double late_ns = gather_ns - run->layers[label->last].backward_ns;
    return late_ns > 0 ? ns + late_ns : ns;
}

/* The bytes of a unit's first gather or first reduction under policies that shard its
 * parameters. */
static int64_t moved_bytes(const struct weft_draft *draft, int32_t unit, bool gathers)
{
    const uint32_t sharded = 1u << WEFT_POLICY_SDP | 1u << WEFT_POLICY_FSDP;
    const struct weft_problem_decision *it = &draft->problem->decisions[unit];
    for (int32_t i = 0; i < draft->problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (item->decision == unit && item->acquires == gathers &&
            (item->strategies & weft_decision_policies(it, sharded)) != 0)
            return item->n_blocks * item->block_bytes;
    }
    return 0;
}

static struct layer layer_of(const struct run *run, int32_t unit)
{
    const struct weft_problem *problem = run->draft->problem;
    const struct weft_problem_decision *it = &problem->decisions[unit];
    struct layer layer = {.unit = unit,
                          .parameters_bytes = moved_bytes(run->draft, unit, true),
                          .gradient_bytes = moved_bytes(run->draft, unit, false)};
    layer.gather_ns = time_of(run->gather, layer.parameters_bytes);
    layer.reduce_ns = layer.gradient_bytes ? time_of(run->reduce, layer.gradient_bytes) : 0;
    int32_t released = weft_decision_of_policy(it, WEFT_POLICY_FSDP);
    for (int32_t i = 0; released >= 0 && i < it->strategies[released].n_holds; i++) {
        const struct weft_hold *hold = &it->strategies[released].holds[i];
        if (hold->category != WEFT_CATEGORY_GATHERED_PARAMETERS) continue;
        for (int32_t s = hold->first; s <= hold->last; s++) {
            if (run->draft->micro[s] != run->draft->micro[hold->first]) continue;
            bool forward = problem->slots[s].kind == WEFT_SLOT_FORWARD;
            if (problem->slots[s].kind == WEFT_SLOT_BACKWARD || forward)
                *(forward ? &layer.forward_ns : &layer.backward_ns) += (double)problem->slot_ns[s];
        }
    }
    return layer;
}

/* Makes a layer a unit. It is gathered and reduced while the unit before it computes. */
static struct label wrap_layer(const struct run *run, const struct label *from, int32_t index)
{
    const struct layer *layer = &run->layers[index];
    struct label label = *from;
    label.wraps = true;
    label.before = from->last;
    label.last = index;
    if (from->last < 0) {
        label.exposed_ns += layer->gather_ns + layer->reduce_ns;
        return label;
    }
    const struct layer *last = &run->layers[from->last];
    double gather_ns = from->before < 0 ? 0 : run->layers[from->before].gather_ns;
    double forward_ns = layer->gather_ns - last->forward_ns;
    double backward_ns = gather_ns + layer->reduce_ns - last->backward_ns;
    if (forward_ns > 0) label.exposed_ns += forward_ns;
    if (backward_ns > 0) label.exposed_ns += backward_ns;
    return label;
}

/* Orders labels by their last two units, then by time, then by sizes. */
static int compare_labels(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    if (x->last != y->last) return x->last < y->last ? -1 : 1;
    if (x->before != y->before) return x->before < y->before ? -1 : 1;
    if (x->exposed_ns != y->exposed_ns) return x->exposed_ns < y->exposed_ns ? -1 : 1;
    if (x->parameters_bytes != y->parameters_bytes)
        return x->parameters_bytes < y->parameters_bytes ? -1 : 1;
    if (x->gradient_bytes != y->gradient_bytes)
        return x->gradient_bytes < y->gradient_bytes ? -1 : 1;
    return x->parent < y->parent ? -1 : x->parent > y->parent;
}

static void prune_labels(struct run *run)
{
    size_t kept = 0;
    qsort(run->labels, run->n_labels, sizeof *run->labels, compare_labels);
    int64_t parameters = 0, gradient = 0;
    for (size_t i = 0; i < run->n_labels; i++) {
        const struct label *at = &run->labels[i];
        bool same = kept > 0 && run->labels[kept - 1].last == at->last &&
                    run->labels[kept - 1].before == at->before;
        if (same && at->parameters_bytes >= parameters && at->gradient_bytes >= gradient) continue;
        parameters = at->parameters_bytes;
        gradient = at->gradient_bytes;
        run->labels[kept++] = *at;
    }
    run->n_labels = kept;
    while (run->n_labels > MOST_LABELS) {
        run->exact = false;
        kept = 0;
        for (size_t i = 0; i < run->n_labels; i++)
            if (i % 2 == 0 || i + 1 == run->n_labels) run->labels[kept++] = run->labels[i];
        run->n_labels = kept;
    }
}

/* Replaces the labels by those of the next layer. */
static void extend_labels(struct run *run, int32_t index, double enough_ns)
{
    struct label *from = run->labels;
    const size_t n = run->n_labels;
    run->labels = run->other;
    run->other = from;
    run->n_labels = 0;
    for (size_t i = 0; i < n; i++) {
        struct label labels[2] = {from[i], wrap_layer(run, &from[i], index)};
        labels[0].wraps = false;
        labels[0].parameters_bytes += run->layers[index].parameters_bytes;
        labels[0].gradient_bytes += run->layers[index].gradient_bytes;
        for (int k = 0; k < 2; k++) {
            double least_ns = labels[k].exposed_ns +
                              time_of(run->gather, labels[k].parameters_bytes) +
                              time_of(run->reduce, labels[k].gradient_bytes);
            if (need_bytes(run, &labels[k]) > run->limit_bytes || least_ns > enough_ns) continue;
            labels[k].parent = (int32_t)i;
            run->labels[run->n_labels++] = labels[k];
        }
    }
    prune_labels(run);
}

/* Notes the labels' steps. */
static enum weft_status note_steps(struct run *run, struct weft_error *err)
{
    const size_t most = run->n_steps + run->n_labels;
    if (most > run->room) {
        struct step *steps = realloc(run->steps, 2 * most * sizeof *steps);
        if (!steps) return weft_fail_memory(err, "a choice of units");
        run->steps = steps;
        run->room = 2 * most;
    }
    for (size_t i = 0; i < run->n_labels; i++)
        run->steps[run->n_steps++] = (struct step){run->labels[i].parent, run->labels[i].wraps};
    return WEFT_OK;
}

/* Marks the layers that the best choice leaves to the root. The choice with all layers as units
 * needs the least memory, and its time is the one to beat. */
static enum weft_status solve_layers(struct run *run, struct weft_error *err)
{
    struct label all = run->labels[0];
    for (int32_t i = 0; i < run->n_layers; i++)
        all = wrap_layer(run, &all, i);
    double enough_ns = total_ns(run, &all) * (1 + 1e-12);
    for (int32_t i = 0; i < run->n_layers; i++) {
        run->first[i] = run->n_steps;
        extend_labels(run, i, enough_ns);
        if (run->n_labels == 0) { /* thinning removed all choices that fit */
            run->exact = false;
            return WEFT_OK;
        }
        WEFT_TRY(note_steps(run, err));
    }
    size_t best = 0;
    for (size_t i = 0; i < run->n_labels; i++)
        if (total_ns(run, &run->labels[i]) < total_ns(run, &run->labels[best])) best = i;
    for (int32_t i = run->n_layers - 1; i >= 0; i--) {
        const struct step *step = &run->steps[run->first[i] + best];
        if (!step->wraps) run->draft->root[run->layers[i].unit] = true;
        best = (size_t)step->parent;
    }
    return WEFT_OK;
}

/* max_m without the root's parameters and gradients: the most bytes that fsdp holds in a slot. */
static int64_t most_held(const struct run *run)
{
    struct weft_draft *draft = run->draft;
    const struct weft_problem *problem = draft->problem;
    int64_t most = 0;
    draft->n_moves = 0;
    weft_draft_peak(draft, NULL);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of =
            weft_problem_chosen(problem, draft->out->strategies, u);
        for (int32_t i = 0; draft->root[u] && i < of->n_holds; i++) {
            const struct weft_hold *hold = &of->holds[i];
            bool whole = hold->category == WEFT_CATEGORY_GATHERED_PARAMETERS ||
                         hold->category == WEFT_CATEGORY_FULL_GRADIENTS;
            for (int32_t s = hold->first; whole && hold->tier == 0 && s <= hold->last; s++)
                draft->rows[s] -= hold->bytes;
        }
    }
    for (int32_t s = 0; s < problem->n_slots; s++)
        if (draft->rows[s] > most) most = draft->rows[s];
    return most;
}

static enum weft_status prepare_layers(struct run *run, struct weft_error *err)
{
    struct weft_draft *draft = run->draft;
    const struct weft_problem *problem = draft->problem;
    struct label none = {.before = -1, .last = -1, .parent = -1};
    run->gather = weft_draft_line_of(problem, WEFT_ALL_GATHER);
    run->reduce = weft_draft_line_of(problem, WEFT_REDUCE_SCATTER);
    run->layers = weft_pool_array(&draft->pool, (size_t)problem->n_decisions, sizeof *run->layers);
    const size_t n_units = (size_t)problem->n_decisions + 1;
    run->first = weft_pool_array(&draft->pool, n_units, sizeof *run->first);
    run->labels = malloc((2 * MOST_LABELS + 1) * sizeof *run->labels);
    run->other = malloc((2 * MOST_LABELS + 1) * sizeof *run->other);
    if (!run->layers || !run->first || !run->labels || !run->other)
        return weft_fail_memory(err, "a choice of units");
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        struct layer layer = layer_of(run, u);
        if (weft_draft_policy(draft, u) == WEFT_POLICY_FSDP) {
            run->layers[run->n_layers++] = layer;
            if (layer.parameters_bytes > run->largest_bytes)
                run->largest_bytes = layer.parameters_bytes;
        } else {
            none.parameters_bytes += layer.parameters_bytes;
            none.gradient_bytes += layer.gradient_bytes;
            draft->root[u] = true;
        }
    }
    run->layer_bytes = most_held(run);
    run->labels[run->n_labels++] = none;
    int64_t need = need_bytes(run, &none);
    if (need <= run->limit_bytes) return WEFT_OK;
    char said[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner fsdp-milp: with every layer a unit max_m + 2 max_p is %s (%lld "
                     "bytes), above the limit of %lld bytes",
                     weft_units_show_bytes(need, said), (long long)need,
                     (long long)run->limit_bytes);
}

enum weft_status weft_rule_fsdp_milp(struct weft_draft *draft, const int64_t *values,
                                     struct weft_error *err)
{
    struct run run = {
        .draft = draft, .limit_bytes = draft->problem->tiers[0].limit_bytes, .exact = true};
    (void)values;
    WEFT_TRY(weft_ahead_choose(draft, err));
    enum weft_status status = prepare_layers(&run, err);
    if (status == WEFT_OK) status = solve_layers(&run, err);
    free(run.labels);
    free(run.other);
    free(run.steps);
    if (status != WEFT_OK) return status;
    if (!run.exact) weft_log(WEFT_LOG_INFO, "planner fsdp-milp: its choice was thinned out");
    WEFT_TRY(weft_ahead_choose(draft, err));
    weft_ahead_place(draft, 1);
    return WEFT_OK;
}
