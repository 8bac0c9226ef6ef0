/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/problem.h"
#include "problem/target.h"
#include "problem/terms.h"
#include "problem/unit_layers.h"

/* Arrays have one element a line. */

static void write_hash(struct weft_json_writer *writer, const char *name, struct weft_hash hash)
{
    char text[WEFT_HASH_TEXT_BYTES];
    weft_json_put_string(writer, name, weft_hash_show(hash, text));
}

/* Writes no tier for the device. */
static void write_tier(struct weft_json_writer *writer, const struct weft_problem *problem,
                       int32_t tier)
{
    if (tier > 0) weft_json_put_string(writer, "tier", problem->tiers[tier].name);
}

static void write_times(struct weft_json_writer *writer, const struct weft_problem_strategy *of)
{
    weft_json_key(writer, "times");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < of->n_times; i++) {
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_integer(writer, "slot", of->times[i].slot);
        weft_json_put_integer(writer, "time_ns", of->times[i].ns);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_holds(struct weft_json_writer *writer, const struct weft_problem *problem,
                        const char *name, const struct weft_hold *holds, int32_t n_holds)
{
    weft_json_key(writer, name);
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < n_holds; i++) {
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_string(writer, "category", weft_category_key(holds[i].category));
        weft_json_put_integer(writer, "first", holds[i].first);
        weft_json_put_integer(writer, "last", holds[i].last);
        weft_json_put_integer(writer, "bytes", holds[i].bytes);
        write_tier(writer, problem, holds[i].tier);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_lanes(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_key(writer, "lanes");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < problem->n_lanes; i++) {
        const struct weft_lane *lane = &problem->lanes[i];
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_string(writer, "name", lane->name);
        weft_json_put_string(writer, "kind", weft_lane_kind_name(lane->kind));
        weft_json_put_integer(writer, "compute_rate", lane->rates.compute);
        weft_json_put_integer(writer, "rate", lane->rates.own);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_tiers(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_key(writer, "tiers");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < problem->n_tiers; i++) {
        const struct weft_problem_tier *tier = &problem->tiers[i];
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_string(writer, "name", tier->name);
        weft_json_put_string(writer, "kind", weft_location_names[tier->kind]);
        weft_json_key(writer, "limit_bytes");
        if (tier->limit_bytes == INT64_MAX) {
            weft_json_add_null(writer);
        } else {
            weft_json_add_integer(writer, tier->limit_bytes);
        }
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_period(const struct weft_period_rule *period, struct weft_json_writer *writer)
{
    weft_json_key(writer, "period");
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_integer(writer, "micro_steps", period->n_micro);
    weft_json_put_string(writer, "reduce", weft_cadence_name(weft_period_cadence(period)));
    if (period->group > 1 && period->group < period->n_micro)
        weft_json_put_integer(writer, "group", period->group);
    if (period->layers > 0) weft_json_put_integer(writer, "layers", period->layers);
    if (period->idle > 0) weft_json_put_integer(writer, "idle_ranks", period->idle);
    weft_json_put_bool(writer, "rotated", period->rotated);
    weft_json_put_integer(writer, "update_ahead", period->update_ahead);
    if (period->agreed_updates) weft_json_put_bool(writer, "agreed_updates", true);
    if (period->offloaded) weft_json_put_bool(writer, "away", true);
    if (period->whole_copies) weft_json_put_bool(writer, "whole_copies", true);
    if (period->drains) weft_json_put_bool(writer, "drains", true);
    if (period->delayed) weft_json_put_bool(writer, "delayed", true);
    if (period->every > 0) weft_json_put_integer(writer, "every", period->every);
    if (period->late) weft_json_put_bool(writer, "late", true);
    if (period->more_inputs > 0) weft_json_put_integer(writer, "more_inputs", period->more_inputs);
    weft_json_end_object(writer);
}

static void write_slots(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_key(writer, "slots");
    weft_json_begin_array(writer);
    for (int32_t s = 0; s < problem->n_slots; s++) {
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_string(writer, "name", problem->slot_names[s]);
        weft_json_put_string(writer, "kind", weft_slot_kind_name(problem->slots[s].kind));
        weft_json_put_integer(writer, "index", problem->slots[s].index);
        weft_json_put_integer(writer, "micro", problem->slots[s].micro);
        weft_json_put_integer(writer, "time_ns", problem->slot_ns[s]);
        if (problem->slots[s].syncs) weft_json_put_bool(writer, "syncs", true);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_kinds(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_key(writer, "kinds");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < problem->n_kinds; i++)
        weft_json_add_string(writer, problem->kinds[i]);
    weft_json_end_array(writer);
}

static void write_decisions(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_key(writer, "decisions");
    weft_json_begin_array(writer);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_decision *decision = &problem->decisions[u];
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "name", decision->name);
        weft_json_put_integer(writer, "update_slot", decision->update_slot);
        weft_json_put_integer(writer, "elements", decision->elements);
        if (decision->frozen_elements > 0)
            weft_json_put_integer(writer, "frozen_elements", decision->frozen_elements);
        if (decision->is_of_layer) weft_json_put_integer(writer, "layer", decision->layer);
        weft_unit_layers_write(problem, u, writer);
        weft_json_key(writer, "strategies");
        weft_json_begin_array(writer);
        for (int32_t k = 0; k < decision->n_strategies; k++) {
            const struct weft_problem_strategy *strategy = &decision->strategies[k];
            weft_json_begin_object(writer);
            weft_json_put_string(writer, "name", strategy->name);
            write_times(writer, strategy);
            if (strategy->average_ns > 0) {
                weft_json_put_integer(writer, "average_ns", strategy->average_ns);
                weft_json_put_integer(writer, "average_bytes", strategy->average_bytes);
            }
            write_holds(writer, problem, "holds", strategy->holds, strategy->n_holds);
            weft_json_end_object(writer);
        }
        weft_json_end_array(writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_items(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_key(writer, "items");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_json_put_integer(writer, "decision", item->decision);
        weft_json_put_string(writer, "kind", weft_item_kind_of(item)->name);
        weft_json_put_integer(writer, "gather", item->gather);
        weft_strategies_write(&problem->decisions[item->decision], item->strategies, writer);
        weft_json_put_bool(writer, "acquires", item->acquires);
        weft_json_put_bool(writer, "may_block", item->may_block);
        weft_json_put_integer(writer, "lane", problem->items[i].lane);
        weft_json_put_integer(writer, "after", problem->items[i].after);
        weft_json_put_integer(writer, "blocks", item->n_blocks);
        weft_json_put_integer(writer, "first", item->first);
        weft_json_put_integer(writer, "last", item->last);
        weft_json_put_integer(writer, "block_bytes", item->block_bytes);
        weft_json_put_integer(writer, "block_ns", problem->items[i].block_ns);
        weft_json_put_integer(writer, "held_bytes", item->stair_bytes);
        weft_json_put_string(writer, "category", weft_category_key(item->stair_category));
        write_tier(writer, problem, item->stair_tier);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void write_blocks(const struct weft_problem_blocks *blocks, struct weft_json_writer *writer)
{
    if (blocks->least_bytes == 0 && blocks->count == 0) return;
    weft_json_key(writer, "blocks");
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_integer(writer, "least_bytes", blocks->least_bytes);
    weft_json_put_integer(writer, "count", blocks->count);
    weft_json_put_integer(writer, "efficiency_ppm", blocks->efficiency_ppm);
    weft_json_put_integer(writer, "fused", blocks->fused);
    if (blocks->scale != 0) weft_json_put_integer(writer, "scale", blocks->scale);
    weft_json_end_object(writer);
}

/* Writes the split, if it was chosen, and the blocks. */
static void write_split(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    if (problem->micro_batch > 0)
        weft_json_put_integer(writer, "micro_batch", problem->micro_batch);
    write_blocks(&problem->blocks, writer);
}

void weft_problem_write_terms(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    write_split(problem, writer);
    write_period(&problem->period, writer);
    weft_json_end_object(writer);
}

void weft_problem_write(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    write_hash(writer, "config_hash", problem->config_hash);
    write_hash(writer, "profile_hash", problem->profile_hash);
    weft_json_put_string(writer, "profile_source", problem->profile_source);
    if (problem->target != WEFT_FOR_WEFT)
        weft_json_put_string(writer, "for", weft_problem_target(problem)->name);
    weft_json_put_integer(writer, "ranks", problem->ranks);
    if (problem->ranks_per_node > 0)
        weft_json_put_integer(writer, "ranks_per_node", problem->ranks_per_node);
    write_split(problem, writer);
    write_tiers(problem, writer);
    write_lanes(problem, writer);
    weft_json_put_integer(writer, "agree_ns", problem->agree_ns);
    write_period(&problem->period, writer);
    write_slots(problem, writer);
    write_kinds(problem, writer);
    weft_problem_write_modules(problem, writer);
    write_decisions(problem, writer);
    write_holds(writer, problem, "common", problem->common, problem->n_common);
    write_items(problem, writer);
    weft_json_end_object(writer);
}
