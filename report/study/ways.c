#include "report/study/ways.h"

#include <string.h>

#include "base/units.h"
#include "problem/names.h"
#include "report/table.h"
#include "spec/kind.h"

/* Figures of a strategy. A unit always holds the rest bytes. A layer holds them between its forward
 * and its backward. Bytes of tiers are the most of any slot, the device's first. */
struct figures {
    int64_t rest_bytes;
    int64_t tier_bytes[WEFT_MOST_TIERS];
    /* In a step; a layer's compute is the time above that of keeping all. */
    int64_t compute_ns, network_ns, others_ns;
};

/* Identical decisions, which follow one another. */
struct group {
    int32_t first, last;
};

static bool is_own_slot(const struct weft_problem *problem,
                        const struct weft_problem_decision *decision, int32_t s)
{
    const struct weft_slot *slot = &problem->slots[s];
    return (slot->kind == WEFT_SLOT_FORWARD || slot->kind == WEFT_SLOT_BACKWARD) &&
           slot->index == decision->layer;
}

static int64_t compute_ns(const struct weft_problem_strategy *strategy)
{
    int64_t ns = 0;
    for (int32_t i = 0; i < strategy->n_times; i++)
        ns += strategy->times[i].ns;
    return ns;
}

static void add_bytes(const struct weft_problem *problem,
                      const struct weft_problem_decision *decision,
                      const struct weft_problem_strategy *strategy, struct figures *out)
{
    int64_t least = INT64_MAX, between = 0;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        for (int32_t t = 0; t < problem->n_tiers; t++) {
            const int64_t held = weft_strategy_held(strategy, t, s);
            if (held > out->tier_bytes[t]) out->tier_bytes[t] = held;
            if (t > 0) continue;
            if (held < least) least = held;
            if (held > between && !is_own_slot(problem, decision, s)) between = held;
        }
    }
    out->rest_bytes = decision->is_of_layer ? between : least;
}

static struct figures figures_of(const struct weft_problem *problem, int32_t d, int32_t k)
{
    const struct weft_problem_decision *decision = &problem->decisions[d];
    const struct weft_problem_strategy *strategy = &decision->strategies[k];
    const int32_t all = weft_decision_of_level(decision, WEFT_RECOMPUTE_NONE);
    struct figures out = {.compute_ns = compute_ns(strategy)};
    if (all >= 0) out.compute_ns -= compute_ns(&decision->strategies[all]);
    add_bytes(problem, decision, strategy, &out);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        if (item->item.decision != d || (item->item.strategies >> k & 1u) == 0) continue;
        const enum weft_lane_kind kind = problem->lanes[item->lane].kind;
        const bool moves = kind == WEFT_LANE_KIND_NETWORK || kind == WEFT_LANE_KIND_ACROSS;
        *(moves ? &out.network_ns : &out.others_ns) += item->item.n_blocks * item->block_ns;
    }
    return out;
}

static const char *kept_tensors(const struct weft_model *model,
                                const struct weft_problem_decision *decision, int32_t k)
{
    if (!decision->is_of_layer) return NULL;
    return model->layers[decision->layer].kind->keeps[decision->strategies[k].recompute];
}

static bool are_identical(const struct weft_problem *problem, const struct weft_model *model,
                          int32_t a, int32_t b)
{
    const struct weft_problem_decision *x = &problem->decisions[a], *y = &problem->decisions[b];
    if (x->is_of_layer != y->is_of_layer || x->n_strategies != y->n_strategies) return false;
    for (int32_t k = 0; k < x->n_strategies; k++) {
        const struct figures p = figures_of(problem, a, k), q = figures_of(problem, b, k);
        if (x->strategies[k].kind != y->strategies[k].kind ||
            kept_tensors(model, x, k) != kept_tensors(model, y, k) || memcmp(&p, &q, sizeof p) != 0)
            return false;
    }
    return true;
}

/* Moves to the next group. Begins with {0, -1}; false after the last. */
static bool next_group(const struct weft_problem *problem, const struct weft_model *model,
                       struct group *group)
{
    group->first = group->last + 1;
    if (group->first >= problem->n_decisions) return false;
    for (group->last = group->first; group->last + 1 < problem->n_decisions; group->last++)
        if (!are_identical(problem, model, group->first, group->last + 1)) return true;
    return true;
}

static const char *show_names(const struct weft_problem *problem, struct group group,
                              struct weft_text *names)
{
    weft_text_init(names);
    weft_problem_show_names(problem, group.first, group.last, names);
    return weft_text_chars(names);
}

/* The group whose decisions hold the most bytes under their first strategies. *n counts decisions
 * of that kind with a choice. */
static bool find_largest(const struct weft_problem *problem, const struct weft_model *model,
                         bool of_layers, struct group *out, int32_t *n)
{
    double most = -1;
    *n = 0;
    for (struct group group = {0, -1}; next_group(problem, model, &group);) {
        const struct weft_problem_decision *decision = &problem->decisions[group.first];
        if (decision->is_of_layer != of_layers || decision->n_strategies < 2) continue;
        const int32_t members = group.last - group.first + 1;
        const double bytes =
            (double)members * (double)figures_of(problem, group.first, 0).tier_bytes[0];
        *n += members;
        if (bytes <= most) continue;
        most = bytes;
        *out = group;
    }
    return *n > 0;
}

static void add_time(struct weft_table *table, bool timed, int64_t ns)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    if (timed)
        weft_table_cell(table, "%s%s", ns < 0 ? "-" : "",
                        weft_units_show_ns(ns < 0 ? -ns : ns, text));
    else
        weft_table_cell(table, "-");
}

static void add_head(const struct weft_problem *problem, bool of_layers, struct weft_table *table)
{
    weft_table_cell(table, "strategy");
    weft_table_cell(table, of_layers ? "kept" : "at rest");
    weft_table_cell(table, "at most");
    for (int32_t t = 1; t < problem->n_tiers; t++)
        weft_table_cell(table, "%s", problem->tiers[t].name);
    weft_table_cell(table, of_layers ? "adds" : "update");
    if (!of_layers) weft_table_cell(table, "network");
    if (problem->n_tiers > 1) weft_table_cell(table, "copies");
    if (of_layers) weft_table_cell(table, "keeps");
}

static void add_rows(const struct weft_problem *problem, const struct weft_model *model, int32_t d,
                     bool timed, struct weft_table *table)
{
    const struct weft_problem_decision *decision = &problem->decisions[d];
    const char *before = "";
    char text[WEFT_UNITS_TEXT_BYTES];
    for (int32_t k = 0; k < decision->n_strategies; k++) {
        const struct figures figures = figures_of(problem, d, k);
        weft_table_cell(table, "%s", decision->strategies[k].name);
        weft_table_cell(table, "%s", weft_units_show_bytes(figures.rest_bytes, text));
        for (int32_t t = 0; t < problem->n_tiers; t++)
            weft_table_cell(table, "%s", weft_units_show_bytes(figures.tier_bytes[t], text));
        add_time(table, timed, figures.compute_ns);
        if (!decision->is_of_layer) add_time(table, timed, figures.network_ns);
        if (problem->n_tiers > 1) add_time(table, timed, figures.others_ns);
        if (!decision->is_of_layer) continue;
        const char *keeps = kept_tensors(model, decision, k);
        weft_table_cell(table, "%s", keeps == NULL ? "-" : keeps == before ? "the same" : keeps);
        before = keeps;
    }
}

static void say_largest(const struct weft_problem *problem, const struct weft_model *model,
                        bool of_layers, bool timed, struct weft_text *out)
{
    enum { FIXED = 5 };
    char align[FIXED + WEFT_MOST_TIERS + 2];
    struct weft_table table;
    struct weft_text names;
    struct group group;
    int32_t n;
    if (!find_largest(problem, model, of_layers, &group, &n)) return;
    const int32_t others = n - (group.last - group.first + 1);
    memset(align, 'r', sizeof align);
    align[0] = 'l';
    const int32_t columns = 4 + problem->n_tiers + (problem->n_tiers > 1);
    align[columns] = '\0';
    if (of_layers) align[columns - 1] = 'w';
    weft_text_addf(out, "\n%s %s", of_layers ? "saved activations of layer" : "unit",
                   show_names(problem, group, &names));
    if (group.last > group.first) weft_text_addf(out, ", each of %d", group.last - group.first + 1);
    if (others > 0) weft_text_addf(out, " (%d other%s: --json)", others, others > 1 ? "s" : "");
    weft_text_add(out, "\n");
    weft_table_init(&table, align);
    add_head(problem, of_layers, &table);
    add_rows(problem, model, group.first, timed, &table);
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    weft_text_finish(&names);
}

void weft_report_ways(const struct weft_problem *problem, const struct weft_model *model,
                      bool timed, struct weft_text *out)
{
    say_largest(problem, model, false, timed, out);
    say_largest(problem, model, true, timed, out);
    weft_text_add(out, "at rest, kept  bytes on the device in every slot; of a layer from forward "
                       "to backward\n"
                       "update, adds   compute of a step; of a layer above that of keeping all\n");
}

static void put_time(struct weft_json_writer *writer, const char *key, bool timed, int64_t ns)
{
    weft_json_key(writer, key);
    if (timed)
        weft_json_add_integer(writer, ns);
    else
        weft_json_add_null(writer);
}

static void put_strategy(const struct weft_problem *problem, const struct weft_model *model,
                         struct group group, int32_t k, bool timed, struct weft_json_writer *writer)
{
    const struct weft_problem_decision *decision = &problem->decisions[group.first];
    const struct figures figures = figures_of(problem, group.first, k);
    const char *keeps = kept_tensors(model, decision, k);
    struct weft_text names;
    weft_json_begin_object(writer);
    weft_json_flat(writer);
    weft_json_put_string(writer, "of", decision->is_of_layer ? "layer" : "unit");
    weft_json_put_string(writer, "names", show_names(problem, group, &names));
    weft_json_put_integer(writer, "alike", group.last - group.first + 1);
    weft_json_put_string(writer, "strategy", decision->strategies[k].name);
    weft_json_put_integer(writer, "rest_bytes", figures.rest_bytes);
    for (int32_t t = 0; t < problem->n_tiers; t++) {
        static const char *const keys[WEFT_HOME_COUNT] = {"device_bytes", "host_bytes",
                                                          "disk_bytes"};
        weft_json_put_integer(writer, keys[problem->tiers[t].kind], figures.tier_bytes[t]);
    }
    put_time(writer, "compute_ns", timed, figures.compute_ns);
    put_time(writer, "network_ns", timed, figures.network_ns);
    put_time(writer, "copies_ns", timed, figures.others_ns);
    if (keeps != NULL) weft_json_put_string(writer, "keeps", keeps);
    weft_json_end_object(writer);
    weft_text_finish(&names);
}

void weft_report_ways_json(const struct weft_problem *problem, const struct weft_model *model,
                           bool timed, struct weft_json_writer *writer)
{
    weft_json_key(writer, "strategies");
    weft_json_begin_array(writer);
    for (struct group group = {0, -1}; next_group(problem, model, &group);)
        for (int32_t k = 0; k < problem->decisions[group.first].n_strategies; k++)
            put_strategy(problem, model, group, k, timed, writer);
    weft_json_end_array(writer);
}
