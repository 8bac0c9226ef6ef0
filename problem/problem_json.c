/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_keys.h"
#include "problem/problem.h"
#include "problem/target.h"
#include "problem/terms.h"
#include "problem/unit_layers.h"
#include "spec/block_scale.h"
#include "spec/target.h"

enum { PLACE_BYTES = 256, MOST_SLOTS = 1 << 20 };

/* Tables check types and ranges; weft_problem_check checks indices and sums. */

static const struct weft_key_table blocks_table = WEFT_KEY_TABLE(
    "How units were cut, for people.",
    WEFT_KEY_COUNT(weft_problem_blocks, least_bytes,
                   "smaller neighbours are fused, larger units split"),
    WEFT_KEY_COUNT(weft_problem_blocks, count, "blocks of every unit; 0: least_bytes decides"),
    WEFT_KEY_COUNT(weft_problem_blocks, efficiency_ppm,
                   "share of the best bandwidth that least_bytes reaches"),
    WEFT_KEY_COUNT(weft_problem_blocks, fused, "1: small neighbours share a unit"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL, "scale", weft_problem_blocks, scale, 0,
                      WEFT_BLOCKS_AUTO - 1, "of the usual size: 1 half, 2 twice, 3 whole units"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_OPTIONAL, "doublings", weft_problem_blocks, doublings, 0, 62,
                      "of the size by efficiency, so that all blocks can be numbered"));

static const struct weft_key_table tier_table = WEFT_KEY_TABLE(
    "A memory.", WEFT_KEY_VALUE(WEFT_KEY_SHOWN, weft_problem_tier, name, "name in holds and items"),
    WEFT_KEY_NAMED(WEFT_KEY_NEEDED, "kind", weft_problem_tier, kind, weft_location_names,
                   "location"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OR_NULL, "limit_bytes", weft_problem_tier, limit_bytes,
                      "limit of every row; null: none"));

static const char *lane_kind_name(int32_t kind)
{
    return weft_lane_kind_name((enum weft_lane_kind)kind);
}
static const struct weft_key_names lane_kinds = {"kind of lane", WEFT_LANE_KIND_COUNT,
                                                 lane_kind_name};

static const struct weft_key_table lane_table = WEFT_KEY_TABLE(
    "A server of one block at a time.",
    WEFT_KEY_VALUE(WEFT_KEY_SHOWN, weft_lane, name, "for people"),
    WEFT_KEY_NAME_AS("kind", weft_lane, kind, &lane_kinds, "compute, network ..."),
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "compute_rate", weft_lane, rates.compute, WEFT_RATE_LEAST,
                      WEFT_RATE_ONE, "rate of compute while the lane is busy"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "rate", weft_lane, rates.own, WEFT_RATE_LEAST, WEFT_RATE_ONE,
                      "rate of the lane while compute is busy"));

static void put_cadence(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_period_rule *period = source;
    (void)context;
    weft_json_put_string(writer, "reduce", weft_cadence_name(weft_period_cadence(period)));
}

static void put_group(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_period_rule *period = source;
    (void)context;
    if (period->group > 1 && period->group < period->n_micro)
        weft_json_put_integer(writer, "group", period->group);
}

static const struct weft_key_table period_table = WEFT_KEY_TABLE(
    "The order of slots.",
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "micro_steps", weft_period_rule, n_micro, 1, WEFT_KEY_MOST,
                      "micro-steps of a step"),
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_TEXT, "reduce", NULL, put_cadence,
                 "when gradients are reduced: every micro-step or step"),
    WEFT_KEY_COUNT_PUT("group", weft_period_rule, group, put_group,
                       "micro-steps of a round, if neither one nor all"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "layers", weft_period_rule, layers,
                      "of a group that all micro-steps run through before the next group"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "idle_ranks", weft_period_rule, idle,
                      "ranks without a group of micro-batches in the last round"),
    WEFT_KEY_VALUE(WEFT_KEY_BOOL, weft_period_rule, rotated,
                   "the period begins after the last forward"),
    WEFT_KEY_COUNT(weft_period_rule, update_ahead, "layers from an update to its first use"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "update_after", weft_period_rule, update_after,
                      "layers of backward from a unit's last one to its update in backward"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "agreed_updates", WEFT_KEY_BOOL, weft_period_rule,
                      agreed_updates, "ranks agree in every update"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "away", WEFT_KEY_BOOL, weft_period_rule, offloaded,
                      "state may be offloaded"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "whole_copies", WEFT_KEY_BOOL, weft_period_rule,
                      whole_copies, "copies to the host and back go in one block each"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "drains", WEFT_KEY_BOOL, weft_period_rule, drains,
                      "each micro-step waits for its reductions"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "delayed", WEFT_KEY_BOOL, weft_period_rule, delayed,
                      "updates apply the gradient of the step before the last"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "every", weft_period_rule, every,
                      "steps between averages over nodes, which step on their own"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "gossip", WEFT_KEY_BOOL, weft_period_rule, gossip,
                      "an average is of a node and one neighbour"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "means", WEFT_KEY_BOOL, weft_period_rule, means,
                      "the optimizer has one second moment a tensor (adam_mini)"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "late", WEFT_KEY_BOOL, weft_period_rule, late,
                      "all reductions are launched at the end of backward"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "more_inputs", weft_period_rule, more_inputs,
                      "inputs of reductions held at once, beyond the first"));

/* The members of a slot lie in three arrays. */
struct slot_row {
    const char *name;
    enum weft_slot_kind kind;
    int32_t index, micro;
    int64_t ns;
    bool syncs;
};

static const char *slot_kind_name(int32_t kind)
{
    return weft_slot_kind_name((enum weft_slot_kind)kind);
}
static const struct weft_key_names slot_kinds = {"kind of slot", WEFT_SLOT_KIND_COUNT,
                                                 slot_kind_name};

static const struct weft_key_table slot_table = WEFT_KEY_TABLE(
    "A part of the period.", WEFT_KEY_VALUE(WEFT_KEY_SHOWN, slot_row, name, "for people"),
    WEFT_KEY_NAME_AS("kind", slot_row, kind, &slot_kinds,
                     "update, fill, forward, backward, drain, norm, open"),
    WEFT_KEY_RANGE(slot_row, index, -1, WEFT_KEY_MOST, "of its decision or layer"),
    WEFT_KEY_COUNT(slot_row, micro, "micro-step"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "time_ns", slot_row, ns,
                      "time of compute under every strategy"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_OPTIONAL, "syncs", WEFT_KEY_BOOL, slot_row, syncs,
                      "the host, which runs ahead, waits for it; in backward if its layer "
                      "recomputes"));

static const struct weft_key_table time_table = WEFT_KEY_TABLE(
    "Time that a strategy adds to a slot.",
    WEFT_KEY_COUNT(weft_slot_time, slot, "slot that takes longer"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "time_ns", weft_slot_time, ns, "by this time"));

/* No tier is the first one. `context` is the problem, here and below. */
static void put_tier(const struct weft_problem *problem, int32_t tier,
                     struct weft_json_writer *writer)
{
    if (tier > 0) weft_json_put_string(writer, "tier", problem->tiers[tier].name);
}

static const char *category_name(int32_t category)
{
    return weft_category_key((enum weft_category)category);
}
static const struct weft_key_names categories = {"category", WEFT_CATEGORY_COUNT, category_name};

static void put_hold_tier(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_hold *hold = source;
    put_tier(context, hold->tier, writer);
}

static const struct weft_key_table hold_table =
    WEFT_KEY_TABLE("Bytes that live in slots.",
                   WEFT_KEY_NAME_AS("category", weft_hold, category, &categories, "of memory"),
                   WEFT_KEY_COUNT(weft_hold, first, "slot"),
                   WEFT_KEY_COUNT(weft_hold, last, "slot; before `first`: round the period's end"),
                   WEFT_KEY_COUNT(weft_hold, bytes, "in each of these slots"),
                   WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_TEXT, "tier", NULL, put_hold_tier,
                                "left out: the first"));

static const struct weft_key_table strategy_table = WEFT_KEY_TABLE(
    "One alternative of a decision.",
    WEFT_KEY_VALUE_AS(WEFT_KEY_UNREAD, "name", WEFT_KEY_TEXT, weft_problem_strategy, name,
                      "one of the kinds"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "times", weft_problem_strategy,
                   times, n_times, &time_table, "by slot"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "holds", weft_problem_strategy,
                   holds, n_holds, &hold_table, "bytes wherever its blocks move"));

static void put_unit_layers(const void *context, const void *source,
                            struct weft_json_writer *writer)
{
    const struct weft_problem *problem = context;
    const struct weft_problem_decision *decision = source;
    weft_unit_layers_write(problem, (int32_t)(decision - problem->decisions), writer);
}

static const struct weft_key_table decision_table = WEFT_KEY_TABLE(
    "One choice of the planner.",
    WEFT_KEY_VALUE(WEFT_KEY_SHOWN, weft_problem_decision, name,
                   "of its unit, or of a layer's saved activations"),
    WEFT_KEY_RANGE(weft_problem_decision, update_slot, -1, WEFT_KEY_MOST, "-1: it has none"),
    WEFT_KEY_COUNT(weft_problem_decision, elements, "of its parameters, padded"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "frozen_elements", weft_problem_decision, frozen_elements,
                      "elements of a trainable unit without a gradient; left out: 0"),
    WEFT_KEY_COUNT_IF("layer", weft_problem_decision, layer, is_of_layer, is_of_layer,
                      "layer of the saved activations; left out: a unit's decision"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL | WEFT_KEY_LIST, WEFT_KEY_INT32, "layers", NULL, put_unit_layers,
                 "first and last layer of the unit"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL | WEFT_KEY_LIST, WEFT_KEY_INT32, "tied_layers", NULL,
                     "layers that read the unit, if they share a tensor"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "strategies", weft_problem_decision,
                   strategies, n_strategies, &strategy_table, "a plan has one of them"));

static const char *item_kind_name(int32_t kind)
{
    return weft_item_kinds[kind].name;
}
static const struct weft_key_names item_kinds = {"kind of item", WEFT_ITEM_KIND_COUNT,
                                                 item_kind_name};

static void put_item_strategies(const void *context, const void *source,
                                struct weft_json_writer *writer)
{
    const struct weft_problem *problem = context;
    const struct weft_item *item = &((const struct weft_problem_item *)source)->item;
    weft_strategies_write(&problem->decisions[item->decision], item->strategies, writer);
}

static void put_item_tier(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_problem_item *item = source;
    put_tier(context, item->item.stair_tier, writer);
}

static const struct weft_key_table item_table = WEFT_KEY_TABLE(
    "Equal blocks that move.",
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "decision", weft_problem_item, item.decision,
                      "its decision"),
    WEFT_KEY_NAME_AS(
        "kind", weft_problem_item, item.kind, &item_kinds,
        "a collective; read, write, state_up, state_down; gradient_down, host_update, "
        "parameters_up; saved_down, saved_up; input_down, input_up; average, average_gather"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "gather", weft_problem_item, item.gather,
                      "number among its kind in a step"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_TEXT, "strategies", NULL, put_item_strategies,
                 "strategies under which it exists"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_NEEDED, "acquires", WEFT_KEY_BOOL, weft_problem_item, item.acquires,
                      "false: it releases"),
    WEFT_KEY_VALUE_AS(WEFT_KEY_NEEDED, "may_block", WEFT_KEY_BOOL, weft_problem_item,
                      item.may_block, "the slot that uses it may wait for it"),
    WEFT_KEY_RANGE(weft_problem_item, lane, WEFT_LANE_FIRST, WEFT_KEY_MOST, "on which it moves"),
    WEFT_KEY_RANGE(weft_problem_item, after, -1, WEFT_KEY_MOST,
                   "item that it comes after, block by block; -1: none"),
    WEFT_KEY_RANGE_AS(WEFT_KEY_NEEDED, "blocks", weft_problem_item, item.n_blocks, 1, WEFT_KEY_MOST,
                      "number of equal blocks"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "first", weft_problem_item, item.first,
                      "slot of its window"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "last", weft_problem_item, item.last, "slot of its window"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "block_bytes", weft_problem_item, item.block_bytes,
                      "that a block moves"),
    WEFT_KEY_COUNT(weft_problem_item, block_ns,
                   "time of a block on the lane; of an average its share of a step"),
    WEFT_KEY_COUNT_IF("average_ns", weft_problem_item, average_ns, average_ns, average_ns,
                      "of an average: the same in the steps in which it works"),
    WEFT_KEY_COUNT_IF("phase", weft_problem_item, phase, phase, phase,
                      "number of these steps modulo period.every"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_NEEDED, "held_bytes", weft_problem_item, item.stair_bytes,
                      "of a block while it is held"),
    WEFT_KEY_NAME_AS("category", weft_problem_item, item.stair_category, &categories, "of memory"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_TEXT, "tier", NULL, put_item_tier,
                 "left out: the first"));

static void put_target(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_problem *problem = source;
    (void)context;
    if (problem->target != WEFT_FOR_WEFT)
        weft_json_put_string(writer, "for", weft_problem_target(problem)->name);
}

/* One slot a line. */
static void put_slots(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_problem *problem = source;
    weft_json_key(writer, "slots");
    weft_json_begin_array(writer);
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot *slot = &problem->slots[s];
        const struct slot_row row = {problem->slot_names[s], slot->kind, slot->index, slot->micro,
                                     problem->slot_ns[s],    slot->syncs};
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_keys_write(&slot_table, context, &row, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void put_tiers(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_problem *problem = source;
    weft_json_key(writer, "tiers");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < problem->n_tiers; i++) {
        weft_json_begin_object(writer);
        weft_json_flat(writer);
        weft_keys_write(&tier_table, context, &problem->tiers[i], writer);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}

static void put_modules(const void *context, const void *source, struct weft_json_writer *writer)
{
    (void)context;
    weft_problem_write_modules(source, writer);
}

#define BLOCKS                                                                                     \
    WEFT_KEY_INSIDE_BY(WEFT_KEY_FLAT, "blocks", weft_problem, blocks, blocks.least_bytes,          \
                       blocks.count, &blocks_table, "if it is known")
#define PERIOD(text)                                                                               \
    WEFT_KEY_INSIDE(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, "period", weft_problem, period,               \
                    &period_table, text)
const struct weft_key_table weft_problem_keys = WEFT_KEY_TABLE(
    "All that a planner knows.",
    WEFT_KEY_VALUE(WEFT_KEY_HASH, weft_problem, config_hash, "of the config"),
    WEFT_KEY_VALUE(WEFT_KEY_HASH, weft_problem, profile_hash, "of the profile"),
    WEFT_KEY_VALUE(WEFT_KEY_SHOWN, weft_problem, profile_source, "measured or analytic"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL, WEFT_KEY_TEXT, "for", NULL, put_target,
                 "runtime that runs the plan, such as fsdp2; left out: weft"),
    WEFT_KEY_COUNT(weft_problem, ranks, "that train together"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "ranks_per_node", weft_problem, ranks_per_node,
                      "if units may have hsdp, or nodes step on their own"),
    WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "micro_batch", weft_problem, micro_batch,
                      "samples of a rank and micro-step, if the planner chose them"),
    BLOCKS,
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "tiers", &tier_table, put_tiers,
                 "the device's memory first"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "lanes", weft_problem, lanes,
                   n_lanes, &lane_table, "compute first"),
    WEFT_KEY_COUNT(weft_problem, agree_ns, "of one agreement of all ranks"), PERIOD("of the slots"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_OBJECT, "slots", &slot_table, put_slots, "of one period"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_TEXT, "kinds", weft_problem, kinds, n_kinds, NULL,
                   "names of strategies"),
    WEFT_KEY_PUT(WEFT_KEY_OPTIONAL | WEFT_KEY_LIST, WEFT_KEY_TEXT, "modules", NULL, put_modules,
                 "by layer: modules of a model of Hugging Face, with \",\" between"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "decisions", weft_problem, decisions,
                   n_decisions, &decision_table, "in order of first use"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "common", weft_problem, common,
                   n_common, &hold_table, "bytes under every strategy"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "items", weft_problem, items,
                   n_items, &item_table, "in order of decision"));

const struct weft_key_table weft_problem_terms_keys =
    WEFT_KEY_TABLE("The terms of a problem that its config makes again.",
                   WEFT_KEY_COUNT_AS(WEFT_KEY_OPTIONAL, "micro_batch", weft_problem, micro_batch,
                                     "samples of a rank and micro-step, if the planner chose them"),
                   BLOCKS, PERIOD("of its slots"));

void weft_problem_write_terms(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_keys_write(&weft_problem_terms_keys, problem, problem, writer);
    weft_json_end_object(writer);
}

void weft_problem_write(const struct weft_problem *problem, struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_keys_write(&weft_problem_keys, problem, problem, writer);
    weft_json_end_object(writer);
}

struct reader {
    struct weft_problem *problem;
    struct weft_error *err;
    char place[PLACE_BYTES]; /* of the value being read */
};

static enum weft_status read_keys(struct reader *reader, const struct weft_key_table *table,
                                  const struct weft_json_value *object, void *target)
{
    return weft_keys_read(table, object, reader->place, &reader->problem->pool, target,
                          reader->err);
}

static enum weft_status fail_unknown(struct reader *reader, const char *what, const char *name)
{
    return weft_fail(reader->err, WEFT_E_DATA, "%s: there is no %s \"%.64s\"", reader->place, what,
                     name);
}

/* Reads the named tier; without a name, the first. */
static enum weft_status read_tier(struct reader *reader, const struct weft_json_value *object,
                                  int32_t *out)
{
    const char *name;
    *out = 0;
    if (weft_json_member(object, "tier") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need_string(object, reader->place, "tier", &name, reader->err));
    for (; *out < reader->problem->n_tiers; ++*out)
        if (strcmp(reader->problem->tiers[*out].name, name) == 0) return WEFT_OK;
    return fail_unknown(reader, "tier", name);
}

/* Finds an array of objects and allocates as many structs of `size` bytes. The allocation is never
 * much larger than the text. */
static enum weft_status need_array(struct reader *reader, const struct weft_json_value *object,
                                   const char *name, size_t size,
                                   const struct weft_json_value **first, void **room,
                                   int32_t *count)
{
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(object, reader->place, name, WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n > MOST_SLOTS) {
        return weft_fail(reader->err, WEFT_E_DATA, "%s: %s has %zu elements; at most %d are read",
                         reader->place, name, n, MOST_SLOTS);
    }
    *room = weft_pool_array(&reader->problem->pool, n, size);
    if (*room == NULL) return weft_fail_memory(reader->err, "problem");
    *first = weft_json_first(array);
    *count = (int32_t)n;
    return WEFT_OK;
}

/* Reads the holds at reader->place and restores the place. */
static enum weft_status read_holds(struct reader *reader, const struct weft_json_value *object,
                                   const char *name, struct weft_hold **out, int32_t *count)
{
    const struct weft_json_value *it;
    void *room;
    WEFT_TRY(need_array(reader, object, name, sizeof **out, &it, &room, count));
    *out = room;
    size_t length = strlen(reader->place);
    for (int32_t i = 0; it != NULL; it = weft_json_next(it), i++) {
        struct weft_hold *hold = &(*out)[i];
        snprintf(reader->place + length, sizeof reader->place - length, ".%s[%d]", name, i);
        WEFT_TRY(read_keys(reader, &hold_table, it, hold));
        WEFT_TRY(read_tier(reader, it, &hold->tier));
    }
    reader->place[length] = '\0';
    return WEFT_OK;
}

static enum weft_status read_lanes(struct reader *reader, const struct weft_json_value *object,
                                   const char *where)
{
    struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it;
    void *room;
    WEFT_TRY(
        need_array(reader, object, "lanes", sizeof *problem->lanes, &it, &room, &problem->n_lanes));
    problem->lanes = room;
    for (int32_t i = 0; it != NULL; it = weft_json_next(it), i++) {
        snprintf(reader->place, sizeof reader->place, "%s.lanes[%d]", where, i);
        WEFT_TRY(read_keys(reader, &lane_table, it, &problem->lanes[i]));
    }
    snprintf(reader->place, sizeof reader->place, "%s", where);
    return WEFT_OK;
}

static enum weft_status read_period(struct reader *reader, const struct weft_json_value *object,
                                    const char *where)
{
    struct weft_period_rule *period = &reader->problem->period;
    const struct weft_json_value *it;
    const char *name;
    enum weft_cadence cadence;
    WEFT_TRY(weft_json_need(object, reader->place, "period", WEFT_JSON_OBJECT, &it, reader->err));
    snprintf(reader->place, sizeof reader->place, "%s.period", where);
    WEFT_TRY(read_keys(reader, &period_table, it, period));
    WEFT_TRY(weft_json_need_string(it, reader->place, "reduce", &name, reader->err));
    if (!weft_cadence_read(name, &cadence) || cadence == WEFT_CADENCE_AUTO)
        return fail_unknown(reader, "cadence", name);
    if (period->group == 0) period->group = cadence == WEFT_CADENCE_STEP ? period->n_micro : 1;
    return WEFT_OK;
}

static enum weft_status read_slots(struct reader *reader, const struct weft_json_value *object,
                                   const char *where)
{
    struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it;
    void *room;
    WEFT_TRY(
        need_array(reader, object, "slots", sizeof *problem->slots, &it, &room, &problem->n_slots));
    size_t n = (size_t)problem->n_slots;
    problem->slots = room;
    problem->slot_names = weft_pool_array(&problem->pool, n, sizeof *problem->slot_names);
    problem->slot_ns = weft_pool_array(&problem->pool, n, sizeof *problem->slot_ns);
    if (problem->slot_names == NULL || problem->slot_ns == NULL) {
        return weft_fail_memory(reader->err, "problem");
    }
    for (int32_t s = 0; it != NULL; it = weft_json_next(it), s++) {
        snprintf(reader->place, sizeof reader->place, "%s.slots[%d]", where, s);
        struct slot_row row = {0};
        WEFT_TRY(read_keys(reader, &slot_table, it, &row));
        problem->slot_names[s] = row.name;
        problem->slot_ns[s] = row.ns;
        problem->slots[s] = (struct weft_slot){
            .kind = row.kind, .index = row.index, .micro = row.micro, .syncs = row.syncs};
    }
    return WEFT_OK;
}

static enum weft_status read_kinds(struct reader *reader, const struct weft_json_value *object)
{
    struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it;
    void *room;
    WEFT_TRY(
        need_array(reader, object, "kinds", sizeof *problem->kinds, &it, &room, &problem->n_kinds));
    problem->kinds = room;
    for (int32_t i = 0; it != NULL; it = weft_json_next(it), i++) {
        const char *name = "";
        struct weft_way way;
        struct weft_layer_choice choice;
        if (!weft_json_string(it, &name) ||
            (!weft_way_read(name, &way) && !weft_layer_choice_read(name, &choice)))
            return fail_unknown(reader, "kind of strategy", name);
        problem->kinds[i] = weft_pool_format(&problem->pool, "%s", name);
        if (problem->kinds[i] == NULL) return weft_fail_memory(reader->err, "a problem");
    }
    return WEFT_OK;
}

/* Reads the meaning of a strategy's name, for a unit or a layer. */
static bool read_strategy_name(const char *name, bool of_layer, struct weft_problem_strategy *to)
{
    if (of_layer) {
        struct weft_layer_choice choice;
        if (!weft_layer_choice_read(name, &choice)) return false;
        to->policy = WEFT_POLICY_COUNT;
        to->location = choice.saved_location;
        to->recompute = choice.recompute;
        to->input = choice.input_location;
        return true;
    }
    struct weft_way way;
    if (!weft_way_read(name, &way)) return false;
    weft_strategy_take_way(to, way);
    return true;
}

/* Reads times and holds of the strategy at reader->place; its name is that of a kind. */
static enum weft_status read_strategy(struct reader *reader, const struct weft_json_value *object,
                                      bool of_layer, struct weft_problem_strategy *to)
{
    const struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it;
    const char *name;
    void *room;
    WEFT_TRY(read_keys(reader, &strategy_table, object, to));
    WEFT_TRY(weft_json_need_string(object, reader->place, "name", &name, reader->err));
    for (to->kind = 0; to->kind < problem->n_kinds; to->kind++)
        if (strcmp(problem->kinds[to->kind], name) == 0) break;
    if (to->kind == problem->n_kinds || !read_strategy_name(name, of_layer, to))
        return fail_unknown(reader, "kind of strategy", name);
    to->name = problem->kinds[to->kind];
    WEFT_TRY(need_array(reader, object, "times", sizeof *to->times, &it, &room, &to->n_times));
    to->times = room;
    for (int32_t i = 0; it != NULL; it = weft_json_next(it), i++) {
        WEFT_TRY(read_keys(reader, &time_table, it, &to->times[i]));
    }
    return read_holds(reader, object, "holds", &to->holds, &to->n_holds);
}

static enum weft_status read_decisions(struct reader *reader, const struct weft_json_value *object,
                                       const char *where)
{
    struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it, *strategy;
    void *room;
    WEFT_TRY(need_array(reader, object, "decisions", sizeof *problem->decisions, &it, &room,
                        &problem->n_decisions));
    problem->decisions = room;
    for (int32_t u = 0; it != NULL; it = weft_json_next(it), u++) {
        struct weft_problem_decision *to = &problem->decisions[u];
        snprintf(reader->place, sizeof reader->place, "%s.decisions[%d]", where, u);
        WEFT_TRY(read_keys(reader, &decision_table, it, to));
        WEFT_TRY(weft_unit_layers_read(problem, u, it, reader->place, reader->err));
        WEFT_TRY(need_array(reader, it, "strategies", sizeof *to->strategies, &strategy, &room,
                            &to->n_strategies));
        to->strategies = room;
        for (int32_t k = 0; strategy != NULL; strategy = weft_json_next(strategy), k++) {
            snprintf(reader->place, sizeof reader->place, "%s.decisions[%d].strategies[%d]", where,
                     u, k);
            WEFT_TRY(read_strategy(reader, strategy, to->is_of_layer, &to->strategies[k]));
        }
    }
    return WEFT_OK;
}

static enum weft_status read_items(struct reader *reader, const struct weft_json_value *object,
                                   const char *where)
{
    struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it;
    void *room;
    WEFT_TRY(
        need_array(reader, object, "items", sizeof *problem->items, &it, &room, &problem->n_items));
    problem->items = room;
    for (int32_t i = 0; it != NULL; it = weft_json_next(it), i++) {
        struct weft_item *item = &problem->items[i].item;
        snprintf(reader->place, sizeof reader->place, "%s.items[%d]", where, i);
        WEFT_TRY(read_keys(reader, &item_table, it, &problem->items[i]));
        if (item->decision >= problem->n_decisions)
            return weft_fail(reader->err, WEFT_E_DATA, "%s: there is no decision %d", reader->place,
                             item->decision);
        WEFT_TRY(weft_strategies_read(&problem->decisions[item->decision], it, reader->place,
                                      &item->strategies, reader->err));
        WEFT_TRY(read_tier(reader, it, &item->stair_tier));
    }
    return WEFT_OK;
}

static enum weft_status read_tiers(struct reader *reader, const struct weft_json_value *object,
                                   const char *where)
{
    struct weft_problem *problem = reader->problem;
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(object, reader->place, "tiers", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n < 1 || n > WEFT_MOST_TIERS)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: there are %zu tiers; expected 1 to %d",
                         reader->place, n, WEFT_MOST_TIERS);
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it)) {
        struct weft_problem_tier *tier = &problem->tiers[problem->n_tiers];
        snprintf(reader->place, sizeof reader->place, "%s.tiers[%d]", where, problem->n_tiers++);
        tier->limit_bytes = INT64_MAX;
        WEFT_TRY(read_keys(reader, &tier_table, it, tier));
    }
    snprintf(reader->place, sizeof reader->place, "%s", where);
    return WEFT_OK;
}

static enum weft_status read_target(struct reader *reader, const struct weft_json_value *object)
{
    const char *name = NULL;
    if (weft_json_member(object, "for") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need_string(object, reader->place, "for", &name, reader->err));
    for (int t = 0; t < WEFT_TARGET_COUNT; t++) {
        reader->problem->target = t;
        if (strcmp(name, weft_target_names[t]) == 0) return WEFT_OK;
    }
    return fail_unknown(reader, "runtime", name);
}

static enum weft_status read_all(struct reader *reader, const struct weft_json_value *value,
                                 const char *where)
{
    struct weft_problem *problem = reader->problem;
    snprintf(reader->place, sizeof reader->place, "%s", where);
    WEFT_TRY(read_keys(reader, &weft_problem_keys, value, problem));
    WEFT_TRY(read_target(reader, value));
    WEFT_TRY(read_tiers(reader, value, where));
    WEFT_TRY(read_lanes(reader, value, where));
    WEFT_TRY(read_period(reader, value, where));
    WEFT_TRY(read_slots(reader, value, where));
    WEFT_TRY(read_kinds(reader, value));
    WEFT_TRY(weft_problem_read_modules(problem, value, where, reader->err));
    WEFT_TRY(read_decisions(reader, value, where));
    WEFT_TRY(weft_problem_link(problem, where, reader->err));
    snprintf(reader->place, sizeof reader->place, "%s", where);
    WEFT_TRY(read_holds(reader, value, "common", &problem->common, &problem->n_common));
    WEFT_TRY(read_items(reader, value, where));
    return weft_problem_check(problem, where, reader->err);
}

static enum weft_status read_terms(struct reader *reader, const struct weft_json_value *value,
                                   const char *where)
{
    snprintf(reader->place, sizeof reader->place, "%s", where);
    WEFT_TRY(read_keys(reader, &weft_problem_terms_keys, value, reader->problem));
    WEFT_TRY(read_period(reader, value, where));
    if (weft_period_is_rule(&reader->problem->period)) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA, "%s: no period has these keys together",
                     reader->place);
}

static enum weft_status read_part(const struct weft_json_value *value, const char *where,
                                  bool terms_only, struct weft_problem **out,
                                  struct weft_error *err)
{
    struct reader reader = {.problem = calloc(1, sizeof *reader.problem), .err = err};
    if (reader.problem == NULL) return weft_fail_memory(err, "problem");
    enum weft_status status =
        terms_only ? read_terms(&reader, value, where) : read_all(&reader, value, where);
    if (status != WEFT_OK) {
        weft_problem_destroy(reader.problem);
        return status;
    }
    *out = reader.problem;
    return WEFT_OK;
}

enum weft_status weft_problem_read(const struct weft_json_value *value, const char *where,
                                   struct weft_problem **out, struct weft_error *err)
{
    return read_part(value, where, false, out, err);
}

enum weft_status weft_problem_read_terms(const struct weft_json_value *value, const char *where,
                                         struct weft_problem **out, struct weft_error *err)
{
    return read_part(value, where, true, out, err);
}
