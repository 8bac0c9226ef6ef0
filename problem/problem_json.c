#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/decode.h"
#include "problem/problem.h"

enum { PLACE_BYTES = 256, MOST_SLOTS = 1 << 20 };

static const char *const blocks_names[] = {"least_bytes", "count", "efficiency_ppm", "fused", NULL};

/* Reading checks types and names here; weft_problem_check checks indices and sums. */

static const char *const hold_names[] = {"category", "first", "last", "bytes", "tier", NULL};
static const char *const slot_names[] = {"name", "kind", "index", "micro", "time_ns", NULL};
static const char *const period_names[] = {"micro_steps",    "reduce", "rotated", "update_ahead",
                                           "agreed_updates", "away",   NULL};
static const char *const decision_names[] = {"name",  "update_slot", "elements",
                                             "layer", "strategies",  NULL};
static const char *const strategy_names[] = {"name", "times", "holds", NULL};
static const char *const time_names[] = {"slot", "time_ns", NULL};
static const char *const lane_names[] = {"name", "kind", "compute_rate", "rate", NULL};
static const char *const item_names[] = {
    "decision", "kind",       "gather",   "strategies", "acquires", "may_block",
    "lane",     "after",      "blocks",   "first",      "last",     "block_bytes",
    "block_ns", "held_bytes", "category", "tier",       NULL};
static const char *const tier_names[] = {"name", "kind", "limit_bytes", NULL};
static const char *const problem_names[] = {
    "tiers",          "lanes",     "blocks",   "config_hash", "profile_hash",
    "profile_source", "ranks",     "agree_ns", "period",      "slots",
    "kinds",          "decisions", "common",   "items",       NULL};

struct reader {
    struct weft_problem *problem;
    struct weft_error *err;
    char place[PLACE_BYTES]; /* of the value being read */
};

static enum weft_status need_int32(struct reader *reader, const struct weft_json_value *object,
                                   const char *name, int32_t least, int32_t *out)
{
    int64_t value;
    WEFT_TRY(
        weft_json_need_integer(object, reader->place, name, least, INT32_MAX, &value, reader->err));
    *out = (int32_t)value;
    return WEFT_OK;
}

static enum weft_status need_size(struct reader *reader, const struct weft_json_value *object,
                                  const char *name, int64_t *out)
{
    return weft_json_need_integer(object, reader->place, name, 0, WEFT_PROBLEM_MOST, out,
                                  reader->err);
}

/* Copies a string into the problem's pool. */
static enum weft_status need_name(struct reader *reader, const struct weft_json_value *object,
                                  const char *name, const char **out)
{
    return weft_decode_text(object, reader->place, name, &reader->problem->pool, out, reader->err);
}

static enum weft_status known(struct reader *reader, const struct weft_json_value *object,
                              const char *const *names)
{
    return weft_decode_known(object, reader->place, names, reader->err);
}

static enum weft_status unknown(struct reader *reader, const char *what, const char *name)
{
    return weft_fail(reader->err, WEFT_E_DATA, "%s: there is no %s \"%.64s\"", reader->place, what,
                     name);
}

static enum weft_status need_category(struct reader *reader, const struct weft_json_value *object,
                                      enum weft_category *out)
{
    const char *key;
    WEFT_TRY(weft_json_need_string(object, reader->place, "category", &key, reader->err));
    return weft_category_read(key, out) ? WEFT_OK : unknown(reader, "category", key);
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
    return unknown(reader, "tier", name);
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
        WEFT_TRY(known(reader, it, hold_names));
        WEFT_TRY(need_category(reader, it, &hold->category));
        WEFT_TRY(need_int32(reader, it, "first", 0, &hold->first));
        WEFT_TRY(need_int32(reader, it, "last", 0, &hold->last));
        WEFT_TRY(need_size(reader, it, "bytes", &hold->bytes));
        WEFT_TRY(read_tier(reader, it, &hold->tier));
    }
    reader->place[length] = '\0';
    return WEFT_OK;
}

static enum weft_status read_slot_kind(struct reader *reader, const struct weft_json_value *object,
                                       enum weft_slot_kind *out)
{
    const char *name;
    WEFT_TRY(weft_json_need_string(object, reader->place, "kind", &name, reader->err));
    for (int32_t k = 0; k < WEFT_SLOT_KIND_COUNT; k++) {
        if (strcmp(name, weft_slot_kind_name((enum weft_slot_kind)k)) == 0) {
            *out = (enum weft_slot_kind)k;
            return WEFT_OK;
        }
    }
    return unknown(reader, "kind of slot", name);
}

static enum weft_status read_lane_kind(struct reader *reader, const struct weft_json_value *object,
                                       enum weft_lane_kind *out)
{
    const char *name;
    WEFT_TRY(weft_json_need_string(object, reader->place, "kind", &name, reader->err));
    for (int32_t k = 0; k < WEFT_LANE_KIND_COUNT; k++) {
        *out = (enum weft_lane_kind)k;
        if (strcmp(name, weft_lane_kind_name(*out)) == 0) return WEFT_OK;
    }
    return unknown(reader, "kind of lane", name);
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
        struct weft_lane *lane = &problem->lanes[i];
        snprintf(reader->place, sizeof reader->place, "%s.lanes[%d]", where, i);
        WEFT_TRY(known(reader, it, lane_names));
        WEFT_TRY(need_name(reader, it, "name", &lane->name));
        WEFT_TRY(read_lane_kind(reader, it, &lane->kind));
        WEFT_TRY(need_int32(reader, it, "compute_rate", 0, &lane->rates.compute));
        WEFT_TRY(need_int32(reader, it, "rate", 0, &lane->rates.own));
    }
    snprintf(reader->place, sizeof reader->place, "%s", where);
    return WEFT_OK;
}

static enum weft_status read_period(struct reader *reader, const struct weft_json_value *object,
                                    const char *where)
{
    struct weft_period_rule *period = &reader->problem->period;
    const struct weft_json_value *it;
    const char *cadence;
    WEFT_TRY(weft_json_need(object, reader->place, "period", WEFT_JSON_OBJECT, &it, reader->err));
    snprintf(reader->place, sizeof reader->place, "%s.period", where);
    WEFT_TRY(known(reader, it, period_names));
    WEFT_TRY(need_int32(reader, it, "micro_steps", 1, &period->n_micro));
    WEFT_TRY(weft_json_need_string(it, reader->place, "reduce", &cadence, reader->err));
    if (!weft_cadence_read(cadence, &period->cadence)) return unknown(reader, "cadence", cadence);
    if (!weft_json_bool(weft_json_member(it, "rotated"), &period->rotated))
        return weft_fail(reader->err, WEFT_E_DATA, "%s: rotated is not true or false",
                         reader->place);
    const struct weft_json_value *agreed = weft_json_member(it, "agreed_updates");
    if (agreed != NULL && !weft_json_bool(agreed, &period->agreed_updates))
        return weft_fail(reader->err, WEFT_E_DATA, "%s: agreed_updates is not true or false",
                         reader->place);
    const struct weft_json_value *away = weft_json_member(it, "away");
    if (away != NULL && !weft_json_bool(away, &period->away))
        return weft_fail(reader->err, WEFT_E_DATA, "%s: away is not true or false", reader->place);
    return need_int32(reader, it, "update_ahead", 0, &period->update_ahead);
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
        WEFT_TRY(known(reader, it, slot_names));
        WEFT_TRY(need_name(reader, it, "name", &problem->slot_names[s]));
        WEFT_TRY(read_slot_kind(reader, it, &problem->slots[s].kind));
        WEFT_TRY(need_int32(reader, it, "index", -1, &problem->slots[s].index));
        WEFT_TRY(need_int32(reader, it, "micro", 0, &problem->slots[s].micro));
        WEFT_TRY(need_size(reader, it, "time_ns", &problem->slot_ns[s]));
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
        enum weft_policy policy;
        enum weft_home home;
        if (!weft_json_string(it, &name) ||
            (!weft_strategy_policy(name, &policy) && !weft_strategy_saved_home(name, &home)))
            return unknown(reader, "kind of strategy", name);
        problem->kinds[i] = weft_pool_format(&problem->pool, "%s", name);
        if (problem->kinds[i] == NULL) return weft_fail_memory(reader->err, "a problem");
    }
    return WEFT_OK;
}

/* Reads the meaning of a strategy's name, for a unit or a layer. */
static bool read_strategy_name(const char *name, bool of_layer, struct weft_problem_strategy *to)
{
    if (of_layer) {
        to->policy = WEFT_POLICY_COUNT;
        return weft_strategy_saved_home(name, &to->home);
    }
    const enum weft_keep keep = weft_strategy_keep(name);
    to->home = weft_keep_home(keep);
    to->updates_there = keep == WEFT_KEEP_HOST_UPDATE;
    return weft_strategy_policy(name, &to->policy);
}

/* Reads times and holds of the strategy at reader->place; its name is that of a kind. */
static enum weft_status read_strategy(struct reader *reader, const struct weft_json_value *object,
                                      bool of_layer, struct weft_problem_strategy *to)
{
    const struct weft_problem *problem = reader->problem;
    const struct weft_json_value *it;
    const char *name;
    void *room;
    WEFT_TRY(known(reader, object, strategy_names));
    WEFT_TRY(weft_json_need_string(object, reader->place, "name", &name, reader->err));
    for (to->kind = 0; to->kind < problem->n_kinds; to->kind++)
        if (strcmp(problem->kinds[to->kind], name) == 0) break;
    if (to->kind == problem->n_kinds || !read_strategy_name(name, of_layer, to))
        return unknown(reader, "kind of strategy", name);
    to->name = problem->kinds[to->kind];
    WEFT_TRY(need_array(reader, object, "times", sizeof *to->times, &it, &room, &to->n_times));
    to->times = room;
    for (int32_t i = 0; it != NULL; it = weft_json_next(it), i++) {
        WEFT_TRY(known(reader, it, time_names));
        WEFT_TRY(need_int32(reader, it, "slot", 0, &to->times[i].slot));
        WEFT_TRY(need_size(reader, it, "time_ns", &to->times[i].ns));
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
        WEFT_TRY(known(reader, it, decision_names));
        WEFT_TRY(need_name(reader, it, "name", &to->name));
        WEFT_TRY(need_int32(reader, it, "update_slot", -1, &to->update_slot));
        WEFT_TRY(need_size(reader, it, "elements", &to->elements));
        to->is_of_layer = weft_json_member(it, "layer") != NULL;
        if (to->is_of_layer) WEFT_TRY(need_int32(reader, it, "layer", 0, &to->layer));
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

static enum weft_status read_item_kind(struct reader *reader, const struct weft_json_value *object,
                                       int32_t *out)
{
    const char *name;
    WEFT_TRY(weft_json_need_string(object, reader->place, "kind", &name, reader->err));
    for (int32_t k = 0; k < WEFT_ITEM_KIND_COUNT; k++) {
        if (strcmp(name, weft_item_kind_name(k)) == 0) {
            *out = k;
            return WEFT_OK;
        }
    }
    return unknown(reader, "kind of item", name);
}

static enum weft_status need_bool(struct reader *reader, const struct weft_json_value *object,
                                  const char *name, bool *out)
{
    if (weft_json_bool(weft_json_member(object, name), out)) return WEFT_OK;
    return weft_fail(reader->err, WEFT_E_DATA, "%s: %s is not true or false", reader->place, name);
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
        WEFT_TRY(known(reader, it, item_names));
        WEFT_TRY(need_int32(reader, it, "decision", 0, &item->decision));
        WEFT_TRY(read_item_kind(reader, it, &item->kind));
        WEFT_TRY(need_bool(reader, it, "acquires", &item->acquires));
        WEFT_TRY(need_bool(reader, it, "may_block", &item->may_block));
        WEFT_TRY(need_int32(reader, it, "lane", WEFT_LANE_FIRST, &problem->items[i].lane));
        WEFT_TRY(need_int32(reader, it, "after", -1, &problem->items[i].after));
        WEFT_TRY(need_int32(reader, it, "gather", 0, &item->gather));
        if (item->decision >= problem->n_decisions)
            return weft_fail(reader->err, WEFT_E_DATA, "%s: there is no decision %d", reader->place,
                             item->decision);
        WEFT_TRY(weft_strategies_read(&problem->decisions[item->decision], it, reader->place,
                                      &item->strategies, reader->err));
        WEFT_TRY(need_int32(reader, it, "blocks", 1, &item->n_blocks));
        WEFT_TRY(need_int32(reader, it, "first", 0, &item->first));
        WEFT_TRY(need_int32(reader, it, "last", 0, &item->last));
        WEFT_TRY(need_size(reader, it, "block_bytes", &item->block_bytes));
        WEFT_TRY(need_size(reader, it, "block_ns", &problem->items[i].block_ns));
        WEFT_TRY(need_size(reader, it, "held_bytes", &item->stair_bytes));
        WEFT_TRY(need_category(reader, it, &item->stair_category));
        WEFT_TRY(read_tier(reader, it, &item->stair_tier));
    }
    return WEFT_OK;
}

static enum weft_status read_limit(struct reader *reader, const struct weft_json_value *object,
                                   int64_t *out)
{
    const struct weft_json_value *limit = weft_json_member(object, "limit_bytes");
    *out = INT64_MAX;
    if (limit != NULL && weft_json_kind(limit) == WEFT_JSON_NULL) return WEFT_OK;
    return need_size(reader, object, "limit_bytes", out);
}

static enum weft_status read_home(struct reader *reader, const struct weft_json_value *object,
                                  enum weft_home *out)
{
    const char *name;
    WEFT_TRY(weft_json_need_string(object, reader->place, "kind", &name, reader->err));
    for (int k = 0; k < WEFT_HOME_COUNT; k++) {
        *out = (enum weft_home)k;
        if (strcmp(name, weft_home_names[k]) == 0) return WEFT_OK;
    }
    return unknown(reader, "kind of tier", name);
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
        WEFT_TRY(known(reader, it, tier_names));
        WEFT_TRY(need_name(reader, it, "name", &tier->name));
        WEFT_TRY(read_home(reader, it, &tier->kind));
        WEFT_TRY(read_limit(reader, it, &tier->limit_bytes));
    }
    snprintf(reader->place, sizeof reader->place, "%s", where);
    return WEFT_OK;
}

static enum weft_status read_blocks(struct reader *reader, const struct weft_json_value *object)
{
    struct weft_problem_blocks *blocks = &reader->problem->blocks;
    const struct weft_json_value *value = weft_json_member(object, "blocks");
    if (value == NULL) return WEFT_OK;
    WEFT_TRY(
        weft_json_need(object, reader->place, "blocks", WEFT_JSON_OBJECT, &value, reader->err));
    WEFT_TRY(known(reader, value, blocks_names));
    WEFT_TRY(need_size(reader, value, blocks_names[0], &blocks->least_bytes));
    WEFT_TRY(need_size(reader, value, blocks_names[1], &blocks->count));
    WEFT_TRY(need_size(reader, value, blocks_names[2], &blocks->efficiency_ppm));
    return need_size(reader, value, blocks_names[3], &blocks->fused);
}

static enum weft_status read_all(struct reader *reader, const struct weft_json_value *value,
                                 const char *where)
{
    struct weft_problem *problem = reader->problem;
    snprintf(reader->place, sizeof reader->place, "%s", where);
    WEFT_TRY(known(reader, value, problem_names));
    WEFT_TRY(
        weft_decode_hash(value, reader->place, "config_hash", &problem->config_hash, reader->err));
    WEFT_TRY(weft_decode_hash(value, reader->place, "profile_hash", &problem->profile_hash,
                              reader->err));
    WEFT_TRY(need_name(reader, value, "profile_source", &problem->profile_source));
    WEFT_TRY(need_size(reader, value, "ranks", &problem->ranks));
    WEFT_TRY(read_blocks(reader, value));
    WEFT_TRY(read_tiers(reader, value, where));
    WEFT_TRY(read_lanes(reader, value, where));
    WEFT_TRY(need_size(reader, value, "agree_ns", &problem->agree_ns));
    WEFT_TRY(read_period(reader, value, where));
    WEFT_TRY(read_slots(reader, value, where));
    WEFT_TRY(read_kinds(reader, value));
    WEFT_TRY(read_decisions(reader, value, where));
    WEFT_TRY(weft_problem_link(problem, where, reader->err));
    snprintf(reader->place, sizeof reader->place, "%s", where);
    WEFT_TRY(read_holds(reader, value, "common", &problem->common, &problem->n_common));
    WEFT_TRY(read_items(reader, value, where));
    return weft_problem_check(problem, where, reader->err);
}

enum weft_status weft_problem_read(const struct weft_json_value *value, const char *where,
                                   struct weft_problem **out, struct weft_error *err)
{
    struct reader reader = {.problem = calloc(1, sizeof *reader.problem), .err = err};
    if (reader.problem == NULL) return weft_fail_memory(err, "problem");
    enum weft_status status = read_all(&reader, value, where);
    if (status != WEFT_OK) {
        weft_problem_destroy(reader.problem);
        return status;
    }
    *out = reader.problem;
    return WEFT_OK;
}
