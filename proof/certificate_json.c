/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_keys.h"
#include "problem/early.h"
#include "proof/certificate.h"
#include "proof/orders.h"

enum { PLACE_BYTES = 256 };

static size_t n_lambda(const struct weft_problem *problem)
{
    return weft_problem_lane_at(problem, problem->n_lanes);
}

static size_t n_mu(const struct weft_problem *problem)
{
    return (size_t)weft_problem_n_rows(problem);
}

/* The writer's context. */
struct written {
    const struct weft_certificate *certificate;
    const struct weft_problem *problem;
};

static void put_array(struct weft_json_writer *writer, const char *name, const int64_t *values,
                      size_t n)
{
    weft_json_key(writer, name);
    weft_json_begin_array(writer);
    weft_json_flat(writer);
    for (size_t i = 0; i < n; i++)
        weft_json_add_integer(writer, values[i]);
    weft_json_end_array(writer);
}

/* Ranges of most values depend on the problem, so their readers have them. */

static void put_strategies(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_problem *problem = ((const struct written *)context)->problem;
    const struct weft_group *group = source;
    weft_strategies_write(&problem->decisions[group->decisions[0]], group->strategies, writer);
}

static const struct weft_key_table group_table =
    WEFT_KEY_TABLE("Decisions that are counted.",
                   WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_TEXT, "strategies", NULL, put_strategies,
                                "each decision has one of them, or none"),
                   WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_INT32, "decisions", weft_group,
                                  decisions, n_decisions, NULL, "increasing"));

static void put_row(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_problem *problem = ((const struct written *)context)->problem;
    const struct weft_whole_price *whole = source;
    weft_json_put_integer(writer, "slot", whole->row % problem->n_slots);
    if (whole->row >= problem->n_slots)
        weft_json_put_integer(writer, "tier", whole->row / problem->n_slots);
}

static void put_bytes(struct weft_json_writer *writer, const char *name, const uint8_t *bytes,
                      int32_t n)
{
    weft_json_key(writer, name);
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < n; i++)
        weft_json_add_integer(writer, bytes != NULL ? bytes[i] : 0);
    weft_json_end_array(writer);
}

static void put_reference(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct written *written = context;
    const struct weft_whole_price *whole = source;
    put_bytes(writer, "reference", whole->reference, written->problem->n_decisions);
}

static void put_relies(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct written *written = context;
    const struct weft_whole_price *whole = source;
    put_bytes(writer, "relies", whole->relies, written->certificate->n_groups);
}

static const struct weft_key_table whole_table = WEFT_KEY_TABLE(
    "A whole row.",
    WEFT_KEY_PUT(WEFT_KEY_NEEDED, WEFT_KEY_INT32, "slot", NULL, put_row, "of the row"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_INT32, "tier", NULL,
                     "of the row; left out: the first"),
    WEFT_KEY_RANGE(weft_whole_price, step_bytes, 1, WEFT_KEY_MOST, "unit in which the row counts"),
    WEFT_KEY_COUNT(weft_whole_price, nu, "price of a byte, 2^-40 ns"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_INT64, "reference", NULL, put_reference,
                 "strategy of each decision"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_INT64, "relies", NULL, put_relies, "1 or 0 by group"));

/* The certificate's check refuses negative prices and other lanes, because it names the slot. */
static const struct weft_key_table wait_table = WEFT_KEY_TABLE(
    "The price of a slot's wait for blocks on a lane.",
    WEFT_KEY_RANGE(weft_wait_price, slot, 0, INT32_MAX, "that several lanes may block"),
    WEFT_KEY_RANGE(weft_wait_price, lane, 0, INT32_MAX, "one of them"),
    WEFT_KEY_RANGE(weft_wait_price, kappa, -WEFT_KEY_MOST, WEFT_KEY_MOST, "2^-40, from 0 to 1"));

static const struct weft_key_table chain_table = WEFT_KEY_TABLE(
    "The price of a chain of items.",
    WEFT_KEY_RANGE(weft_chain_price, item, 0, INT32_MAX, "the last of the chain"),
    WEFT_KEY_RANGE(weft_chain_price, rho, -WEFT_KEY_MOST, WEFT_KEY_MOST, "2^-40, from 0 to 1"));

static void put_lambda(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_prices *prices = source;
    put_array(writer, "lambda", prices->lambda,
              n_lambda(((const struct written *)context)->problem));
}

static void put_mu(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_prices *prices = source;
    put_array(writer, "mu", prices->mu, n_mu(((const struct written *)context)->problem));
}

static void put_pi(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_certificate *certificate = ((const struct written *)context)->certificate;
    const struct weft_prices *prices = source;
    put_array(writer, "pi", prices->pi, (size_t)certificate->n_groups);
}

static const struct weft_key_table prices_table = WEFT_KEY_TABLE(
    "Prices of a leaf.",
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_INT64, "lambda", NULL, put_lambda,
                 "by lane except compute, and slot, 2^-40"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "waits", weft_prices, waits,
                   n_waits, &wait_table, "by slot, then lane; others are 0"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_OPTIONAL, WEFT_KEY_OBJECT, "chains", weft_prices,
                   chains, n_chains, &chain_table, "by item; others are 0"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_INT64, "mu", NULL, put_mu,
                 "of a byte by tier and slot, 2^-40 ns"),
    WEFT_KEY_PUT_RANGE(WEFT_KEY_LIST, WEFT_KEY_INT64, "pi", -WEFT_KEY_MOST, WEFT_KEY_MOST, put_pi,
                       "by group, ns"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "whole", weft_prices, whole,
                   n_whole, &whole_table, "prices of whole rows"));

static const char *const moment_names[WEFT_MOMENT_COUNT + 1] = {"placed", "begun", "ended", NULL};

static void write_node(const struct weft_certificate_node *node, const struct weft_problem *problem,
                       struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    switch (node->kind) {
    case WEFT_NODE_LEAF:
        weft_json_put_integer(writer, "prices", node->prices);
        if (node->searched_ns > 0) {
            weft_json_put_integer(writer, "searched_ns", node->searched_ns);
            weft_json_put_integer(writer, "steps", node->steps);
        }
        break;
    case WEFT_NODE_STRATEGIES:
        weft_json_put_integer(writer, "decision", node->decision);
        weft_strategies_write(&problem->decisions[node->decision], node->strategies, writer);
        break;
    case WEFT_NODE_MILESTONE:
        weft_json_put_integer(writer, "item", node->milestone.item);
        weft_json_put_integer(writer, "blocks", node->milestone.n_blocks);
        weft_json_put_integer(writer, "slot", node->milestone.slot);
        if (node->milestone.moment != WEFT_PLACED)
            weft_json_put_string(writer, "moment", moment_names[node->milestone.moment]);
        break;
    case WEFT_NODE_COUNT:
        weft_json_put_integer(writer, "group", node->count.group);
        weft_json_put_integer(writer, "decisions", node->count.n_decisions);
        break;
    }
    weft_json_end_object(writer);
}

static const struct weft_key_table leaf_table = WEFT_KEY_TABLE(
    "A leaf.", WEFT_KEY_PART(WEFT_KEY_INT32, "prices", NULL, "its prices"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT64, "searched_ns", WEFT_KEY_OPTIONAL, 1, WEFT_KEY_MOST, NULL,
                        "no order of its plans takes less, by a search"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT64, "steps", WEFT_KEY_OPTIONAL, 1, WEFT_ORDERS_MOST_STEPS, NULL,
                        "of that search at most"));

static const struct weft_key_table strategies_table = WEFT_KEY_TABLE(
    "Divides plans by the strategy of a decision.",
    WEFT_KEY_PART(WEFT_KEY_INT32, "decision", NULL, "it has one of `strategies`"),
    WEFT_KEY_PART_AS(WEFT_KEY_LIST, WEFT_KEY_TEXT, "strategies", NULL, "of that decision"));

static const struct weft_key_table milestone_table = WEFT_KEY_TABLE(
    "Divides plans by the progress of an item.",
    WEFT_KEY_PART(WEFT_KEY_INT32, "item", NULL, "`blocks` of it reach `moment` by `slot`"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT32, "blocks", WEFT_KEY_NEEDED, 1, WEFT_KEY_MOST, NULL,
                        "at least as many"),
    WEFT_KEY_PART(WEFT_KEY_INT32, "slot", NULL, "by its end"),
    WEFT_KEY_PART_AS(WEFT_KEY_OPTIONAL, WEFT_KEY_ONE_OF, "moment", moment_names,
                     "left out: placed"));

static const struct weft_key_table count_table = WEFT_KEY_TABLE(
    "Divides plans by the decisions that are counted.",
    WEFT_KEY_PART(WEFT_KEY_INT32, "group", NULL, "`decisions` of it have one of its strategies"),
    WEFT_KEY_PART_RANGE(WEFT_KEY_INT32, "decisions", WEFT_KEY_NEEDED, 1, WEFT_KEY_MOST, NULL,
                        "at least as many"));

static const struct weft_key_table *const node_tables[] = {&leaf_table, &strategies_table,
                                                           &milestone_table, &count_table, NULL};

static void put_tree(const void *context, const void *source, struct weft_json_writer *writer)
{
    const struct weft_certificate *certificate = source;
    weft_json_key(writer, "tree");
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < certificate->n_nodes; i++)
        write_node(&certificate->nodes[i], ((const struct written *)context)->problem, writer);
    weft_json_end_array(writer);
}

const struct weft_key_table weft_certificate_keys = WEFT_KEY_TABLE(
    "Proof of a bound; null if that is 0.",
    WEFT_KEY_VALUE(WEFT_KEY_HASH, weft_certificate, problem, "its problem"),
    WEFT_KEY_ARRAY(WEFT_KEY_FLAT | WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "groups", weft_certificate,
                   groups, n_groups, &group_table, "nodes and whole rows name them"),
    WEFT_KEY_ARRAY(WEFT_KEY_UNREAD, WEFT_KEY_OBJECT, "prices", weft_certificate, prices, n_prices,
                   &prices_table, "leaves name them"),
    WEFT_KEY_PUT(WEFT_KEY_LIST, WEFT_KEY_VARIANT, "tree", node_tables, put_tree, "in preorder"));

void weft_certificate_write(const struct weft_certificate *certificate,
                            const struct weft_problem *problem, struct weft_json_writer *writer)
{
    const struct written written = {certificate, problem};
    if (certificate->n_nodes == 0) {
        weft_json_add_null(writer);
        return;
    }
    weft_json_begin_object(writer);
    weft_keys_write(&weft_certificate_keys, &written, certificate, writer);
    weft_json_end_object(writer);
}

struct reader {
    const struct weft_problem *problem;
    struct weft_pool *pool;
    const char *where;
    struct weft_error *err;
};

/* Reads an array of `n` integers of at least `least`. */
static enum weft_status read_array(struct reader *reader, const struct weft_json_value *object,
                                   const char *where, const char *name, size_t n, int64_t least,
                                   int64_t **out)
{
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(object, where, name, WEFT_JSON_ARRAY, &array, reader->err));
    if (weft_json_count(array) != n)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: %s has %zu numbers; expected %zu", where,
                         name, weft_json_count(array), n);
    int64_t *values = weft_pool_array(reader->pool, n, sizeof *values);
    if (values == NULL) return weft_fail_memory(reader->err, "certificate");
    size_t i = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), i++) {
        if (weft_json_integer(it, &values[i]) && values[i] >= least) continue;
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: %s[%zu] is no whole number from %s to 2^53 - 1", where, name, i,
                         least < 0 ? "1 - 2^53" : "0");
    }
    *out = values;
    return WEFT_OK;
}

/* Reads an array of `n` integers from 0 to `most`; `what` names them in errors. */
static enum weft_status read_bytes(struct reader *reader, const struct weft_json_value *object,
                                   const char *where, const char *name, size_t n, int64_t most,
                                   const char *what, const uint8_t **out)
{
    int64_t *numbers = NULL;
    WEFT_TRY(read_array(reader, object, where, name, n, 0, &numbers));
    uint8_t *bytes = weft_pool_array(reader->pool, n, sizeof *bytes);
    if (bytes == NULL) return weft_fail_memory(reader->err, "certificate");
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] > most)
            return weft_fail(reader->err, WEFT_E_DATA, "%s: %s[%zu] is no %s", where, name, i,
                             what);
        bytes[i] = (uint8_t)numbers[i];
    }
    *out = bytes;
    return WEFT_OK;
}

static enum weft_status read_whole(struct reader *reader, const struct weft_json_value *object,
                                   const char *where, int32_t n_groups, struct weft_prices *out)
{
    const struct weft_json_value *array;
    char place[PLACE_BYTES + 32];
    WEFT_TRY(weft_json_need(object, where, "whole", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n > INT32_MAX) return weft_fail(reader->err, WEFT_E_DATA, "%s: too many whole rows", where);
    out->whole = weft_pool_array(reader->pool, n, sizeof *out->whole);
    if (out->whole == NULL) return weft_fail_memory(reader->err, "certificate");
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it)) {
        int64_t slot, tier = 0;
        struct weft_whole_price *whole = &out->whole[out->n_whole];
        snprintf(place, sizeof place, "%s: whole[%d]", where, out->n_whole);
        *whole = (struct weft_whole_price){0};
        WEFT_TRY(weft_keys_read(&whole_table, it, place, reader->pool, whole, reader->err));
        WEFT_TRY(weft_json_need_integer(it, place, "slot", 0, (int64_t)reader->problem->n_slots - 1,
                                        &slot, reader->err));
        if (weft_json_member(it, "tier") != NULL)
            WEFT_TRY(weft_json_need_integer(
                it, place, "tier", 1, (int64_t)reader->problem->n_tiers - 1, &tier, reader->err));
        whole->row = weft_problem_tier_at(reader->problem, (int32_t)tier) + (int32_t)slot;
        out->n_whole++;
        WEFT_TRY(read_bytes(reader, it, place, "reference", (size_t)reader->problem->n_decisions,
                            WEFT_MOST_STRATEGIES - 1, "strategy", &whole->reference));
        WEFT_TRY(read_bytes(reader, it, place, "relies", (size_t)n_groups, 1, "yes or no (1 or 0)",
                            &whole->relies));
    }
    return WEFT_OK;
}

static enum weft_status read_group(struct reader *reader, const struct weft_json_value *object,
                                   const char *where, struct weft_group *out)
{
    const struct weft_json_value *array;
    int64_t *decisions;
    WEFT_TRY(weft_keys_read(&group_table, object, where, reader->pool, NULL, reader->err));
    WEFT_TRY(weft_json_need(object, where, "decisions", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n == 0 || n > (size_t)reader->problem->n_decisions)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: %zu decisions of %d", where, n,
                         reader->problem->n_decisions);
    WEFT_TRY(read_array(reader, object, where, "decisions", n, 0, &decisions));
    int32_t *members = weft_pool_array(reader->pool, n, sizeof *members);
    if (members == NULL) return weft_fail_memory(reader->err, "certificate");
    for (size_t k = 0; k < n; k++) {
        if (decisions[k] >= reader->problem->n_decisions)
            return weft_fail(reader->err, WEFT_E_DATA, "%s: decisions[%zu] is no decision", where,
                             k);
        members[k] = (int32_t)decisions[k];
    }
    *out = (struct weft_group){0, (int32_t)n, members};
    return weft_strategies_read(&reader->problem->decisions[members[0]], object, where,
                                &out->strategies, reader->err);
}

static enum weft_status read_groups(struct reader *reader, const struct weft_json_value *object,
                                    struct weft_certificate *out)
{
    const struct weft_json_value *array;
    char where[PLACE_BYTES];
    WEFT_TRY(weft_json_need(object, reader->where, "groups", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n > INT32_MAX)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: too many groups", reader->where);
    struct weft_group *groups = weft_pool_array(reader->pool, n, sizeof *groups);
    if (groups == NULL) return weft_fail_memory(reader->err, "certificate");
    out->groups = groups;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it)) {
        snprintf(where, sizeof where, "%s: groups[%d]", reader->where, out->n_groups);
        WEFT_TRY(read_group(reader, it, where, &groups[out->n_groups++]));
    }
    return WEFT_OK;
}

static enum weft_status read_prices(struct reader *reader, const struct weft_json_value *object,
                                    struct weft_certificate *out)
{
    const struct weft_json_value *array;
    char where[PLACE_BYTES];
    WEFT_TRY(weft_json_need(object, reader->where, "prices", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n > INT32_MAX)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: too many prices", reader->where);
    out->prices = weft_pool_array(reader->pool, n, sizeof *out->prices);
    if (out->prices == NULL) return weft_fail_memory(reader->err, "certificate");
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it)) {
        struct weft_prices *prices = &out->prices[out->n_prices];
        snprintf(where, sizeof where, "%s: prices[%d]", reader->where, out->n_prices++);
        WEFT_TRY(weft_keys_read(&prices_table, it, where, reader->pool, prices, reader->err));
        WEFT_TRY(
            read_array(reader, it, where, "lambda", n_lambda(reader->problem), 0, &prices->lambda));
        WEFT_TRY(read_array(reader, it, where, "mu", n_mu(reader->problem), 0, &prices->mu));
        WEFT_TRY(read_array(reader, it, where, "pi", (size_t)out->n_groups, -WEFT_PROBLEM_MOST,
                            &prices->pi));
        WEFT_TRY(read_whole(reader, it, where, out->n_groups, prices));
    }
    return WEFT_OK;
}

static enum weft_status read_strategies(struct reader *reader, const struct weft_json_value *value,
                                        const char *where, struct weft_certificate_node *out)
{
    int64_t decision;
    WEFT_TRY(weft_keys_read(&strategies_table, value, where, reader->pool, NULL, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "decision", 0,
                                    (int64_t)reader->problem->n_decisions - 1, &decision,
                                    reader->err));
    *out =
        (struct weft_certificate_node){.kind = WEFT_NODE_STRATEGIES, .decision = (int32_t)decision};
    return weft_strategies_read(&reader->problem->decisions[decision], value, where,
                                &out->strategies, reader->err);
}

/* Reads the moment; without one, "placed". */
static enum weft_status read_moment(struct reader *reader, const struct weft_json_value *value,
                                    const char *where, enum weft_moment *out)
{
    const char *name;
    *out = WEFT_PLACED;
    if (weft_json_member(value, "moment") == NULL) return WEFT_OK;
    WEFT_TRY(weft_json_need_string(value, where, "moment", &name, reader->err));
    for (int m = 0; m < WEFT_MOMENT_COUNT; m++) {
        if (strcmp(name, moment_names[m]) != 0) continue;
        *out = (enum weft_moment)m;
        return WEFT_OK;
    }
    return weft_fail(reader->err, WEFT_E_DATA,
                     "%s: moment is \"%.40s\"; expected placed, begun or ended", where, name);
}

static enum weft_status read_milestone(struct reader *reader, const struct weft_json_value *value,
                                       const char *where, struct weft_certificate_node *out)
{
    int64_t item, n_blocks, slot;
    WEFT_TRY(weft_keys_read(&milestone_table, value, where, reader->pool, NULL, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "item", 0, (int64_t)reader->problem->n_items - 1,
                                    &item, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "blocks", 1, INT32_MAX, &n_blocks, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "slot", 0, (int64_t)reader->problem->n_slots - 1,
                                    &slot, reader->err));
    *out = (struct weft_certificate_node){
        .kind = WEFT_NODE_MILESTONE,
        .milestone = {.item = (int32_t)item, .n_blocks = (int32_t)n_blocks, .slot = (int32_t)slot}};
    WEFT_TRY(read_moment(reader, value, where, &out->milestone.moment));
    if (weft_milestone_is_of(&out->milestone, reader->problem)) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA,
                     "%s: %d blocks by slot %d: not of the blocks and the window of item %d", where,
                     out->milestone.n_blocks, out->milestone.slot, out->milestone.item);
}

static enum weft_status read_count(struct reader *reader, const struct weft_json_value *value,
                                   const char *where, const struct weft_certificate *certificate,
                                   struct weft_certificate_node *out)
{
    int64_t group, n_decisions;
    WEFT_TRY(weft_keys_read(&count_table, value, where, reader->pool, NULL, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "group", 0, (int64_t)certificate->n_groups - 1,
                                    &group, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "decisions", 1,
                                    certificate->groups[group].n_decisions, &n_decisions,
                                    reader->err));
    *out = (struct weft_certificate_node){
        .kind = WEFT_NODE_COUNT,
        .count = {.group = (int32_t)group, .n_decisions = (int32_t)n_decisions}};
    return WEFT_OK;
}

static enum weft_status read_leaf(struct reader *reader, const struct weft_json_value *value,
                                  const char *where, const struct weft_certificate *certificate,
                                  struct weft_certificate_node *out)
{
    int64_t prices, searched_ns = 0, steps = 0;
    const bool searches = weft_json_member(value, "searched_ns") != NULL;
    WEFT_TRY(weft_keys_read(&leaf_table, value, where, reader->pool, NULL, reader->err));
    WEFT_TRY(weft_json_need_integer(value, where, "prices", 0, (int64_t)certificate->n_prices - 1,
                                    &prices, reader->err));
    if (searches != (weft_json_member(value, "steps") != NULL))
        return weft_fail(reader->err, WEFT_E_DATA,
                         "%s: it has one of searched_ns and steps, not both", where);
    if (searches)
        WEFT_TRY(weft_json_need_integer(value, where, "searched_ns", 1, WEFT_PROBLEM_MOST,
                                        &searched_ns, reader->err));
    if (searches)
        WEFT_TRY(weft_json_need_integer(value, where, "steps", 1, WEFT_ORDERS_MOST_STEPS, &steps,
                                        reader->err));
    *out = (struct weft_certificate_node){.kind = WEFT_NODE_LEAF,
                                          .prices = (int32_t)prices,
                                          .searched_ns = searched_ns,
                                          .steps = steps};
    return WEFT_OK;
}

static enum weft_status read_node(struct reader *reader, const struct weft_json_value *value,
                                  const struct weft_certificate *certificate,
                                  struct weft_certificate_node *out)
{
    char where[PLACE_BYTES];
    snprintf(where, sizeof where, "%s: tree[%d]", reader->where, certificate->n_nodes);
    if (weft_json_member(value, "decision") != NULL)
        return read_strategies(reader, value, where, out);
    if (weft_json_member(value, "item") != NULL) return read_milestone(reader, value, where, out);
    if (weft_json_member(value, "group") != NULL)
        return read_count(reader, value, where, certificate, out);
    return read_leaf(reader, value, where, certificate, out);
}

static enum weft_status read_tree(struct reader *reader, const struct weft_json_value *object,
                                  struct weft_certificate *out)
{
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(object, reader->where, "tree", WEFT_JSON_ARRAY, &array, reader->err));
    size_t n = weft_json_count(array);
    if (n == 0 || n > INT32_MAX)
        return weft_fail(reader->err, WEFT_E_DATA, "%s: a tree of %zu nodes", reader->where, n);
    out->nodes = weft_pool_array(reader->pool, n, sizeof *out->nodes);
    if (out->nodes == NULL) return weft_fail_memory(reader->err, "certificate");
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), out->n_nodes++) {
        WEFT_TRY(read_node(reader, it, out, &out->nodes[out->n_nodes]));
    }
    return WEFT_OK;
}

enum weft_status weft_certificate_read(const struct weft_json_value *value, const char *where,
                                       const struct weft_problem *problem, struct weft_pool *pool,
                                       struct weft_certificate *out, struct weft_error *err)
{
    struct reader reader = {.problem = problem, .pool = pool, .where = where, .err = err};
    struct weft_certificate read = {0};
    if (value != NULL && weft_json_kind(value) == WEFT_JSON_NULL) {
        *out = read;
        return WEFT_OK;
    }
    struct weft_problem *early = NULL;
    WEFT_TRY(weft_keys_read(&weft_certificate_keys, value, where, pool, &read, err));
    if (weft_problem_is_early(problem)) WEFT_TRY(weft_problem_early(problem, &early, err));
    if (early != NULL) reader.problem = early; /* milestones are in its windows */
    enum weft_status status = read_groups(&reader, value, &read);
    if (status == WEFT_OK) status = read_prices(&reader, value, &read);
    if (status == WEFT_OK) status = read_tree(&reader, value, &read);
    weft_problem_destroy(early);
    if (status == WEFT_OK) *out = read;
    return status;
}

static void *copy_array(struct weft_pool *pool, const void *from, size_t n, size_t bytes)
{
    void *to = weft_pool_array(pool, n, bytes);
    if (to != NULL && n > 0) memcpy(to, from, n * bytes);
    return to;
}

enum weft_status weft_certificate_copy(const struct weft_certificate *from,
                                       const struct weft_problem *problem, struct weft_pool *pool,
                                       struct weft_certificate *to, struct weft_error *err)
{
    struct weft_certificate copy = *from;
    copy.prices = weft_pool_array(pool, (size_t)from->n_prices, sizeof *copy.prices);
    copy.nodes = weft_pool_array(pool, (size_t)from->n_nodes, sizeof *copy.nodes);
    struct weft_group *groups = weft_pool_array(pool, (size_t)from->n_groups, sizeof *groups);
    if (copy.prices == NULL || copy.nodes == NULL || groups == NULL)
        return weft_fail_memory(err, "certificate");
    for (int32_t g = 0; g < from->n_groups; g++) {
        groups[g] = from->groups[g];
        groups[g].decisions =
            copy_array(pool, from->groups[g].decisions, (size_t)from->groups[g].n_decisions,
                       sizeof *groups[g].decisions);
        if (groups[g].decisions == NULL) return weft_fail_memory(err, "certificate");
    }
    copy.groups = groups;
    for (int32_t i = 0; i < from->n_prices; i++) {
        copy.prices[i].lambda = copy_array(pool, from->prices[i].lambda, n_lambda(problem),
                                           sizeof *copy.prices[i].lambda);
        copy.prices[i].n_waits = from->prices[i].n_waits;
        copy.prices[i].waits =
            copy_array(pool, from->prices[i].waits, (size_t)from->prices[i].n_waits,
                       sizeof *copy.prices[i].waits);
        copy.prices[i].n_chains = from->prices[i].n_chains;
        copy.prices[i].chains =
            copy_array(pool, from->prices[i].chains, (size_t)from->prices[i].n_chains,
                       sizeof *copy.prices[i].chains);
        copy.prices[i].mu =
            copy_array(pool, from->prices[i].mu, n_mu(problem), sizeof *copy.prices[i].mu);
        copy.prices[i].pi =
            copy_array(pool, from->prices[i].pi, (size_t)from->n_groups, sizeof *copy.prices[i].pi);
        size_t n_whole = (size_t)from->prices[i].n_whole;
        copy.prices[i].n_whole = from->prices[i].n_whole;
        copy.prices[i].whole = weft_pool_array(pool, n_whole, sizeof *copy.prices[i].whole);
        if (copy.prices[i].lambda == NULL || copy.prices[i].waits == NULL ||
            copy.prices[i].chains == NULL || copy.prices[i].mu == NULL ||
            copy.prices[i].pi == NULL || copy.prices[i].whole == NULL)
            return weft_fail_memory(err, "certificate");
        for (size_t k = 0; k < n_whole; k++) {
            struct weft_whole_price *whole = &copy.prices[i].whole[k];
            *whole = from->prices[i].whole[k];
            whole->reference = copy_array(pool, whole->reference, (size_t)problem->n_decisions,
                                          sizeof *whole->reference);
            if (whole->reference == NULL) return weft_fail_memory(err, "certificate");
            if (whole->relies == NULL) continue;
            whole->relies =
                copy_array(pool, whole->relies, (size_t)from->n_groups, sizeof *whole->relies);
            if (whole->relies == NULL) return weft_fail_memory(err, "certificate");
        }
    }
    for (int32_t i = 0; i < from->n_nodes; i++)
        copy.nodes[i] = from->nodes[i];
    *to = copy;
    return WEFT_OK;
}
