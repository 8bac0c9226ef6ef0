/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "spec/target.h"

void weft_problem_destroy(struct weft_problem *problem)
{
    if (problem == NULL) return;
    weft_pool_finish(&problem->pool);
    free(problem);
}

bool weft_problem_emulates(const struct weft_problem *problem)
{
    return strstr(problem->profile_source, "emulated link") != NULL;
}

static enum weft_status link_times(struct weft_problem *problem, int32_t decision,
                                   const char *where, struct weft_error *err)
{
    const struct weft_problem_decision *it = &problem->decisions[decision];
    for (int32_t k = 0; k < it->n_strategies; k++) {
        for (int32_t i = 0; i < it->strategies[k].n_times; i++) {
            int32_t slot = it->strategies[k].times[i].slot;
            bool inside = slot >= 0 && slot < problem->n_slots;
            bool follows = i == 0 || slot > it->strategies[k].times[i - 1].slot;
            int32_t *of = inside ? &problem->slot_decisions[slot] : NULL;
            if (!inside || !follows || (*of >= 0 && *of != decision))
                return weft_fail(err, WEFT_E_DATA,
                                 "%s: decisions[%d] (%s): %s: a time of slot %d, which %s", where,
                                 decision, it->name, it->strategies[k].name, slot,
                                 !inside    ? "is not in the period"
                                 : !follows ? "does not follow the one before it"
                                            : "another decision adds to");
            *of = decision;
        }
    }
    return WEFT_OK;
}

enum weft_status weft_problem_link(struct weft_problem *problem, const char *where,
                                   struct weft_error *err)
{
    size_t n_slots = (size_t)problem->n_slots;
    problem->slot_decisions =
        weft_pool_array(&problem->pool, n_slots, sizeof *problem->slot_decisions);
    if (problem->slot_decisions == NULL) return weft_fail_memory(err, "problem");
    for (int32_t s = 0; s < problem->n_slots; s++)
        problem->slot_decisions[s] = -1;
    problem->n_strategies = 0;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        struct weft_problem_decision *it = &problem->decisions[d];
        if (it->n_strategies < 1 || it->n_strategies > WEFT_MOST_STRATEGIES)
            return weft_fail(err, WEFT_E_DATA,
                             "%s: decisions[%d] (%s) has %d strategies; there are 1 to %d: leave "
                             "some out of plan.policies",
                             where, d, it->name, it->n_strategies, WEFT_MOST_STRATEGIES);
        it->first_strategy = problem->n_strategies;
        problem->n_strategies += it->n_strategies;
        WEFT_TRY(link_times(problem, d, where, err));
    }
    return WEFT_OK;
}

int32_t weft_problem_most_strategies(const struct weft_problem *problem)
{
    int32_t most = 0;
    for (int32_t d = 0; d < problem->n_decisions; d++)
        if (problem->decisions[d].n_strategies > most) most = problem->decisions[d].n_strategies;
    return most;
}

int32_t weft_problem_fullest_row(const struct weft_problem *problem, const int64_t *rows)
{
    int32_t fullest = 0, r = 0;
    int64_t most = INT64_MIN;
    for (int32_t tier = 0; tier < problem->n_tiers; tier++) {
        for (int32_t s = 0; s < problem->n_slots; s++, r++) {
            int64_t excess = rows[r] - problem->tiers[tier].limit_bytes;
            if (excess <= most) continue;
            most = excess;
            fullest = r;
        }
    }
    return fullest;
}

void weft_problem_device_alone(struct weft_problem *problem, int64_t limit_bytes)
{
    problem->n_tiers = 1;
    problem->tiers[0] = (struct weft_problem_tier){weft_location_names[WEFT_LOCATION_DEVICE],
                                                   WEFT_LOCATION_DEVICE, limit_bytes};
}

enum weft_status weft_problem_networks(struct weft_problem *problem, int32_t n,
                                       struct weft_rates rates, struct weft_error *err)
{
    static const char *const names[] = {"compute", "network", "network 2"};
    problem->n_lanes = WEFT_LANE_FIRST + n;
    problem->lanes =
        weft_pool_array(&problem->pool, (size_t)problem->n_lanes, sizeof *problem->lanes);
    if (problem->lanes == NULL) return weft_fail_memory(err, "problem");
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        problem->lanes[lane] = (struct weft_lane){names[lane], WEFT_LANE_KIND_NETWORK, rates};
    problem->lanes[WEFT_LANE_COMPUTE].kind = WEFT_LANE_KIND_COMPUTE;
    problem->lanes[WEFT_LANE_COMPUTE].rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_ONE};
    return WEFT_OK;
}

enum weft_status weft_problem_add_lane(struct weft_problem *problem, const char *name,
                                       enum weft_lane_kind kind, struct weft_error *err)
{
    const size_t n = (size_t)problem->n_lanes;
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    struct weft_lane *lanes = weft_pool_array(&problem->pool, n + 1, sizeof *lanes);
    if (lanes == NULL) return weft_fail_memory(err, "problem");
    memcpy(lanes, problem->lanes, n * sizeof *lanes);
    lanes[n] = (struct weft_lane){name, kind, full};
    problem->lanes = lanes;
    problem->n_lanes++;
    return WEFT_OK;
}

int32_t weft_problem_agree_lane(const struct weft_problem *problem)
{
    int32_t lane = problem->n_lanes - 1;
    while (problem->lanes[lane].kind != WEFT_LANE_KIND_NETWORK)
        lane--;
    return lane;
}

int32_t weft_problem_n_units(const struct weft_problem *problem)
{
    int32_t n = problem->n_decisions;
    while (n > 0 && problem->decisions[n - 1].is_of_layer)
        n--;
    return n;
}

int32_t weft_problem_count_blocks(const struct weft_problem *problem)
{
    int32_t n_blocks = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        n_blocks += problem->items[i].item.n_blocks;
    return n_blocks;
}

bool weft_problem_chains(const struct weft_problem *problem)
{
    bool any = false;
    for (int32_t i = 0; i < problem->n_items; i++)
        any = any || problem->items[i].after >= 0;
    return any;
}

int32_t weft_problem_depth(const struct weft_problem *problem, int32_t item)
{
    int32_t depth = 0;
    while ((item = problem->items[item].after) >= 0)
        depth++;
    return depth;
}

bool weft_problem_contends(const struct weft_problem *problem)
{
    bool contends = false;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++)
        contends = contends || weft_rates_contend(problem->lanes[lane].rates);
    return contends;
}

static bool moves_lane(enum weft_lane_kind kind)
{
    return kind != WEFT_LANE_KIND_COMPUTE && kind != WEFT_LANE_KIND_NETWORK &&
           kind != WEFT_LANE_KIND_ACROSS;
}

static bool holds_elsewhere(const struct weft_hold *holds, int32_t n)
{
    bool elsewhere = false;
    for (int32_t i = 0; i < n; i++)
        elsewhere |= holds[i].tier > 0 && holds[i].category != WEFT_CATEGORY_CHECKPOINTS;
    return elsewhere;
}

bool weft_problem_moves(const struct weft_problem *problem)
{
    bool moves = holds_elsewhere(problem->common, problem->n_common);
    for (int32_t lane = 0; lane < problem->n_lanes; lane++)
        moves |= moves_lane(problem->lanes[lane].kind);
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_decision *of = &problem->decisions[d];
        for (int32_t k = 0; k < of->n_strategies; k++)
            moves |= holds_elsewhere(of->strategies[k].holds, of->strategies[k].n_holds);
    }
    return moves;
}

const struct weft_hold *weft_problem_ring(const struct weft_problem *problem)
{
    bool has_disk = false;
    for (int32_t t = 1; t < problem->n_tiers; t++)
        has_disk |= problem->tiers[t].kind == WEFT_LOCATION_DISK;
    for (int32_t i = 0; has_disk && i < problem->n_common; i++)
        if (problem->common[i].category == WEFT_CATEGORY_STAGING) return &problem->common[i];
    return NULL;
}

int64_t weft_problem_agreements_ns(const struct weft_problem *problem)
{
    int64_t n = 1;
    for (int32_t u = 0; problem->period.agreed_updates && u < problem->n_decisions; u++)
        n += problem->decisions[u].update_slot >= 0;
    return n * problem->agree_ns;
}

enum { MOST_DIFFERENCES = 5 };

struct comparison {
    struct weft_text *out;
    int count;
};

static bool is_full(const struct comparison *comparison)
{
    return comparison->count >= MOST_DIFFERENCES;
}

/* Adds one line "what: a, b" if the two differ. */
static void compare_integer(struct comparison *comparison, const char *what, const char *name,
                            int64_t a, int64_t b)
{
    if (a == b || is_full(comparison)) return;
    comparison->count++;
    weft_text_addf(comparison->out, "%s%s%s: %" PRId64 ", %" PRId64 "\n", what,
                   name[0] == '\0' ? "" : " ", name, a, b);
}

static void compare_string(struct comparison *comparison, const char *what, const char *a,
                           const char *b)
{
    if (strcmp(a, b) == 0 || is_full(comparison)) return;
    comparison->count++;
    weft_text_addf(comparison->out, "%s: %s, %s\n", what, a, b);
}

/* Shows numbers with their units, or as plain integers if that would look equal. */
typedef const char *show_fn(int64_t number, char out[WEFT_UNITS_TEXT_BYTES]);

static void compare_shown(struct comparison *comparison, show_fn *show, const char *what,
                          const char *name, int64_t a, int64_t b)
{
    char a_text[WEFT_UNITS_TEXT_BYTES], b_text[WEFT_UNITS_TEXT_BYTES];
    if (a == b || is_full(comparison)) return;
    if (strcmp(show(a, a_text), show(b, b_text)) == 0) {
        snprintf(a_text, sizeof a_text, "%" PRId64, a);
        snprintf(b_text, sizeof b_text, "%" PRId64, b);
    }
    comparison->count++;
    weft_text_addf(comparison->out, "%s%s%s: %s, %s\n", what, name[0] == '\0' ? "" : " ", name,
                   a_text, b_text);
}

static void compare_bytes(struct comparison *comparison, const char *what, const char *name,
                          int64_t a, int64_t b)
{
    compare_shown(comparison, weft_units_show_bytes, what, name, a, b);
}

static void compare_ns(struct comparison *comparison, const char *what, const char *name, int64_t a,
                       int64_t b)
{
    compare_shown(comparison, weft_units_show_ns, what, name, a, b);
}

/* Only if no other line tells the two apart, because a hash explains nothing. */
static void compare_hash(struct comparison *comparison, const char *what, struct weft_hash a,
                         struct weft_hash b)
{
    char a_text[WEFT_HASH_TEXT_BYTES], b_text[WEFT_HASH_TEXT_BYTES];
    if (comparison->count > 0) return;
    compare_string(comparison, what, weft_hash_show(a, a_text), weft_hash_show(b, b_text));
}

static void compare_holds(struct comparison *comparison, const char *what,
                          const struct weft_hold *a, int32_t n_a, const struct weft_hold *b,
                          int32_t n_b)
{
    compare_integer(comparison, what, "holds", n_a, n_b);
    for (int32_t i = 0; i < n_a && i < n_b && !is_full(comparison); i++) {
        const char *category = weft_category_key(a[i].category);
        compare_string(comparison, what, category, weft_category_key(b[i].category));
        compare_bytes(comparison, what, category, a[i].bytes, b[i].bytes);
        compare_integer(comparison, what, "tier", a[i].tier, b[i].tier);
        compare_integer(comparison, what, "first slot", a[i].first, b[i].first);
        compare_integer(comparison, what, "last slot", a[i].last, b[i].last);
    }
}

static void compare_lanes(struct comparison *comparison, const struct weft_problem *a,
                          const struct weft_problem *b)
{
    compare_integer(comparison, "lanes", "", a->n_lanes, b->n_lanes);
    for (int32_t i = 0; i < a->n_lanes && i < b->n_lanes; i++) {
        const struct weft_lane *x = &a->lanes[i], *y = &b->lanes[i];
        compare_string(comparison, "lane", x->name, y->name);
        compare_string(comparison, x->name, weft_lane_kind_name(x->kind),
                       weft_lane_kind_name(y->kind));
        compare_integer(comparison, x->name, "rate of compute", x->rates.compute, y->rates.compute);
        compare_integer(comparison, x->name, "rate", x->rates.own, y->rates.own);
    }
}

static void compare_tiers(struct comparison *comparison, const struct weft_problem *a,
                          const struct weft_problem *b)
{
    compare_integer(comparison, "tiers", "", a->n_tiers, b->n_tiers);
    for (int32_t i = 0; i < a->n_tiers && i < b->n_tiers; i++) {
        const struct weft_problem_tier *x = &a->tiers[i], *y = &b->tiers[i];
        compare_string(comparison, "tier", x->name, y->name);
        compare_string(comparison, x->name, weft_location_names[x->kind],
                       weft_location_names[y->kind]);
        compare_bytes(comparison, i == 0 ? "memory limit" : "memory limit of",
                      i == 0 ? "" : x->name, x->limit_bytes, y->limit_bytes);
    }
}

static void compare_slots(struct comparison *comparison, const struct weft_problem *a,
                          const struct weft_problem *b)
{
    compare_integer(comparison, "slots", "", a->n_slots, b->n_slots);
    for (int32_t s = 0; s < a->n_slots && s < b->n_slots && !is_full(comparison); s++) {
        compare_string(comparison, "slot", a->slot_names[s], b->slot_names[s]);
        compare_integer(comparison, a->slot_names[s], "kind", a->slots[s].kind, b->slots[s].kind);
        compare_integer(comparison, a->slot_names[s], "index", a->slots[s].index,
                        b->slots[s].index);
        compare_integer(comparison, a->slot_names[s], "micro-step", a->slots[s].micro,
                        b->slots[s].micro);
        compare_integer(comparison, a->slot_names[s], "host's wait", a->slots[s].syncs,
                        b->slots[s].syncs);
        compare_ns(comparison, a->slot_names[s], "takes", a->slot_ns[s], b->slot_ns[s]);
    }
}

static void compare_times(struct comparison *comparison, const char *what,
                          const struct weft_problem_strategy *x,
                          const struct weft_problem_strategy *y)
{
    compare_integer(comparison, what, "times", x->n_times, y->n_times);
    for (int32_t i = 0; i < x->n_times && i < y->n_times && !is_full(comparison); i++) {
        compare_integer(comparison, what, "slot", x->times[i].slot, y->times[i].slot);
        compare_ns(comparison, what, "takes", x->times[i].ns, y->times[i].ns);
    }
}

static void compare_decisions(struct comparison *comparison, const struct weft_problem *a,
                              const struct weft_problem *b)
{
    compare_integer(comparison, "decisions", "", a->n_decisions, b->n_decisions);
    for (int32_t u = 0; u < a->n_decisions && u < b->n_decisions && !is_full(comparison); u++) {
        const struct weft_problem_decision *x = &a->decisions[u], *y = &b->decisions[u];
        compare_string(comparison, "decision", x->name, y->name);
        compare_integer(comparison, x->name, "strategies", x->n_strategies, y->n_strategies);
        compare_integer(comparison, x->name, "update slot", x->update_slot, y->update_slot);
        compare_integer(comparison, x->name, "elements", x->elements, y->elements);
        compare_integer(comparison, x->name, "frozen elements", x->frozen_elements,
                        y->frozen_elements);
        compare_integer(comparison, x->name, "decision of a layer", x->is_of_layer, y->is_of_layer);
        compare_integer(comparison, x->name, "layer", x->layer, y->layer);
        for (int32_t k = 0; k < x->n_strategies && k < y->n_strategies; k++) {
            const struct weft_problem_strategy *of = &x->strategies[k], *to = &y->strategies[k];
            compare_string(comparison, "strategy", of->name, to->name);
            compare_times(comparison, x->name, of, to);
            compare_holds(comparison, x->name, of->holds, of->n_holds, to->holds, to->n_holds);
        }
    }
}

static void compare_items(struct comparison *comparison, const struct weft_problem *a,
                          const struct weft_problem *b)
{
    compare_integer(comparison, "items", "", a->n_items, b->n_items);
    for (int32_t i = 0; i < a->n_items && i < b->n_items && !is_full(comparison); i++) {
        const struct weft_item *x = &a->items[i].item, *y = &b->items[i].item;
        char what[64];
        snprintf(what, sizeof what, "items[%d]", i);
        compare_integer(comparison, what, "decision", x->decision, y->decision);
        compare_integer(comparison, what, "kind", x->kind, y->kind);
        compare_integer(comparison, what, "gather", x->gather, y->gather);
        compare_integer(comparison, what, "strategies", (int64_t)x->strategies,
                        (int64_t)y->strategies);
        compare_integer(comparison, what, "acquires", x->acquires, y->acquires);
        compare_integer(comparison, what, "may block", x->may_block, y->may_block);
        compare_integer(comparison, what, "after", a->items[i].after, b->items[i].after);
        compare_integer(comparison, what, "lane", a->items[i].lane, b->items[i].lane);
        compare_integer(comparison, what, "blocks", x->n_blocks, y->n_blocks);
        compare_integer(comparison, what, "first slot", x->first, y->first);
        compare_integer(comparison, what, "last slot", x->last, y->last);
        compare_bytes(comparison, what, "block", x->block_bytes, y->block_bytes);
        compare_bytes(comparison, what, "held", x->stair_bytes, y->stair_bytes);
        compare_integer(comparison, what, "category", x->stair_category, y->stair_category);
        compare_integer(comparison, what, "tier", x->stair_tier, y->stair_tier);
        compare_ns(comparison, what, "block time", a->items[i].block_ns, b->items[i].block_ns);
        compare_ns(comparison, what, "time in an average", a->items[i].average_ns,
                   b->items[i].average_ns);
        compare_integer(comparison, what, "phase", a->items[i].phase, b->items[i].phase);
    }
}

void weft_problem_compare(const struct weft_problem *a, const struct weft_problem *b,
                          struct weft_text *out)
{
    struct comparison comparison = {.out = out};
    compare_string(&comparison, "profile source", a->profile_source, b->profile_source);
    compare_string(&comparison, "for", weft_target_names[a->target], weft_target_names[b->target]);
    compare_integer(&comparison, "ranks", "", a->ranks, b->ranks);
    compare_integer(&comparison, "ranks of a node", "", a->ranks_per_node, b->ranks_per_node);
    compare_tiers(&comparison, a, b);
    compare_integer(&comparison, "micro-batch", "", a->micro_batch, b->micro_batch);
    compare_bytes(&comparison, "least block", "", a->blocks.least_bytes, b->blocks.least_bytes);
    compare_integer(&comparison, "blocks a unit", "", a->blocks.count, b->blocks.count);
    compare_integer(&comparison, "block efficiency", "", a->blocks.efficiency_ppm,
                    b->blocks.efficiency_ppm);
    compare_integer(&comparison, "fused units", "", a->blocks.fused, b->blocks.fused);
    compare_integer(&comparison, "scale of blocks", "", a->blocks.scale, b->blocks.scale);
    compare_integer(&comparison, "doublings of blocks", "", a->blocks.doublings,
                    b->blocks.doublings);
    compare_lanes(&comparison, a, b);
    compare_ns(&comparison, "agreement", "", a->agree_ns, b->agree_ns);
    compare_integer(&comparison, "micro-steps", "", a->period.n_micro, b->period.n_micro);
    compare_integer(&comparison, "micro-steps a round", "", a->period.group, b->period.group);
    compare_integer(&comparison, "layers of a group for all micro-steps", "", a->period.layers,
                    b->period.layers);
    compare_integer(&comparison, "idle ranks of the last round", "", a->period.idle,
                    b->period.idle);
    compare_integer(&comparison, "update ahead", "", a->period.update_ahead,
                    b->period.update_ahead);
    compare_integer(&comparison, "update after", "", a->period.update_after,
                    b->period.update_after);
    compare_integer(&comparison, "rotated", "", a->period.rotated, b->period.rotated);
    compare_integer(&comparison, "agreed updates", "", a->period.agreed_updates,
                    b->period.agreed_updates);
    compare_integer(&comparison, "averages with a neighbour", "", a->period.gossip,
                    b->period.gossip);
    compare_integer(&comparison, "second moments of whole tensors", "", a->period.means,
                    b->period.means);
    compare_integer(&comparison, "delayed updates", "", a->period.delayed, b->period.delayed);
    compare_integer(&comparison, "steps between averages over nodes", "", a->period.every,
                    b->period.every);
    compare_integer(&comparison, "offloaded state", "", a->period.offloaded, b->period.offloaded);
    compare_integer(&comparison, "whole copies", "", a->period.whole_copies,
                    b->period.whole_copies);
    compare_integer(&comparison, "late reductions", "", a->period.late, b->period.late);
    compare_integer(&comparison, "further inputs of reductions", "", a->period.more_inputs,
                    b->period.more_inputs);
    compare_slots(&comparison, a, b);
    compare_decisions(&comparison, a, b);
    compare_holds(&comparison, "common", a->common, a->n_common, b->common, b->n_common);
    compare_items(&comparison, a, b);
    compare_hash(&comparison, "config, in what no figure shows; hash", a->config_hash,
                 b->config_hash);
    compare_hash(&comparison, "profile, in what no figure shows; hash", a->profile_hash,
                 b->profile_hash);
}
