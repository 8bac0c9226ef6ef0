/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/ways.h"

#include <string.h>

#include "base/units.h"
#include "problem/names.h"
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

/* Appends the names of saved activations that a layer's strategy keeps. */
static void name_kept(const struct weft_model *model, const struct weft_batch *batch,
                      const struct weft_problem_decision *decision, int32_t k,
                      struct weft_text *out)
{
    const enum weft_recompute level = decision->strategies[k].recompute;
    weft_text_init(out);
    if (!decision->is_of_layer) return;
    const struct weft_layer *layer = &model->layers[decision->layer];
    const char *fixed = layer->kind->keeps[level];
    if (layer->kind->name_kept != NULL && (fixed == NULL || layer->frozen))
        layer->kind->name_kept(layer, batch, level, out);
    else if (fixed != NULL)
        weft_text_add(out, fixed);
}

/* Layers of one kind and of equal figures keep values of equal names. */
static bool are_of_kind(const struct weft_model *model, const struct weft_problem_decision *x,
                        const struct weft_problem_decision *y)
{
    return !x->is_of_layer || model->layers[x->layer].kind == model->layers[y->layer].kind;
}

static bool are_identical(const struct weft_problem *problem, const struct weft_model *model,
                          int32_t a, int32_t b)
{
    const struct weft_problem_decision *x = &problem->decisions[a], *y = &problem->decisions[b];
    if (x->is_of_layer != y->is_of_layer || x->n_strategies != y->n_strategies ||
        !are_of_kind(model, x, y))
        return false;
    for (int32_t k = 0; k < x->n_strategies; k++) {
        const struct figures p = figures_of(problem, a, k), q = figures_of(problem, b, k);
        if (x->strategies[k].kind != y->strategies[k].kind || memcmp(&p, &q, sizeof p) != 0)
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

enum { OF, NAMES, ALIKE, STRATEGY, REST, TIER, N_TIERS = WEFT_LOCATION_COUNT };
enum { COMPUTE = TIER + N_TIERS, NETWORK, COPIES, KEEPS, N_COLUMNS };

/* Columns of data. A table of text has heads for some. */
static const struct weft_column columns[N_COLUMNS] = {
    [OF] = {"of", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [NAMES] = {"names", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [ALIKE] = {"alike", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
    [STRATEGY] = {"strategy", NULL, 'l', WEFT_FIGURE_WORD, 0},
    [REST] = {"rest_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [TIER + WEFT_LOCATION_DEVICE] = {"device_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [TIER + WEFT_LOCATION_HOST] = {"host_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [TIER + WEFT_LOCATION_DISK] = {"disk_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [COMPUTE] = {"compute_ns", NULL, 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
    [NETWORK] = {"network_ns", NULL, 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
    [COPIES] = {"copies_ns", NULL, 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
    [KEEPS] = {"keeps", NULL, 'w', WEFT_FIGURE_WORD, 0},
};

static void put_time(struct weft_rows *rows, int32_t column, int64_t ns)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    weft_rows_integer(rows, column, ns);
    if (ns < 0) weft_rows_show(rows, column, WEFT_PAINT_NONE, "-%s", weft_units_show_ns(-ns, text));
}

/* Adds a row for each strategy of a group. */
static void add_group(const struct weft_problem *problem, const struct weft_model *model,
                      const struct weft_batch *batch, struct group group, bool timed,
                      struct weft_rows *rows)
{
    const struct weft_problem_decision *decision = &problem->decisions[group.first];
    struct weft_text names, keeps, before;
    weft_text_init(&before);
    show_names(problem, group, &names);
    for (int32_t k = 0; k < decision->n_strategies; k++) {
        const struct figures figures = figures_of(problem, group.first, k);
        name_kept(model, batch, decision, k, &keeps);
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, OF, decision->is_of_layer ? "layer" : "unit");
        weft_rows_word(rows, NAMES, weft_text_chars(&names));
        weft_rows_integer(rows, ALIKE, group.last - group.first + 1);
        weft_rows_word(rows, STRATEGY, decision->strategies[k].name);
        weft_rows_integer(rows, REST, figures.rest_bytes);
        for (int32_t t = 0; t < problem->n_tiers; t++)
            weft_rows_integer(rows, TIER + (int32_t)problem->tiers[t].kind, figures.tier_bytes[t]);
        if (timed) put_time(rows, COMPUTE, figures.compute_ns);
        if (timed) put_time(rows, NETWORK, figures.network_ns);
        if (timed) put_time(rows, COPIES, figures.others_ns);
        if (keeps.length > 0) weft_rows_word(rows, KEEPS, weft_text_chars(&keeps));
        if (keeps.length > 0 && strcmp(weft_text_chars(&keeps), weft_text_chars(&before)) == 0)
            weft_rows_show(rows, KEEPS, WEFT_PAINT_NONE, "the same");
        weft_text_finish(&before);
        before = keeps;
    }
    weft_text_finish(&before);
    weft_text_finish(&names);
}

/* Adds a table of text for the largest group of units or of layers. */
static void say_largest(const struct weft_problem *problem, const struct weft_model *model,
                        const struct weft_batch *batch, bool of_layers, bool timed,
                        struct weft_answer *answer)
{
    struct weft_text names;
    struct group group;
    int32_t n;
    if (!find_largest(problem, model, of_layers, &group, &n)) return;
    const int32_t members = group.last - group.first + 1, others = n - members;
    weft_answer_say(answer, NULL, "\n%s %s", of_layers ? "saved activations of layer" : "unit",
                    show_names(problem, group, &names));
    weft_text_finish(&names);
    if (members > 1) weft_answer_say(answer, NULL, ", each of %d", members);
    if (others > 0)
        weft_answer_say(answer, NULL, " (%d other%s: --json)", others, others > 1 ? "s" : "");
    weft_answer_say(answer, NULL, "\n");
    struct weft_rows *rows = weft_answer_table(answer, NULL, columns, N_COLUMNS);
    weft_rows_head(rows, STRATEGY, "strategy");
    weft_rows_head(rows, REST, of_layers ? "kept" : "at rest");
    weft_rows_head(rows, TIER + WEFT_LOCATION_DEVICE, "at most");
    for (int32_t t = 1; t < problem->n_tiers; t++)
        weft_rows_head(rows, TIER + (int32_t)problem->tiers[t].kind, "%s", problem->tiers[t].name);
    weft_rows_head(rows, COMPUTE, of_layers ? "adds" : "update");
    if (!of_layers) weft_rows_head(rows, NETWORK, "network");
    if (problem->n_tiers > 1) weft_rows_head(rows, COPIES, "copies");
    if (of_layers) weft_rows_head(rows, KEEPS, "keeps");
    if (rows != NULL) rows->indent = 2;
    add_group(problem, model, batch, group, timed, rows);
}

void weft_report_ways(const struct weft_problem *problem, const struct weft_model *model,
                      const struct weft_batch *batch, bool timed, struct weft_answer *answer)
{
    say_largest(problem, model, batch, false, timed, answer);
    say_largest(problem, model, batch, true, timed, answer);
    weft_answer_say(answer, NULL,
                    "at rest, kept  bytes on the device in every slot; of a layer from forward to "
                    "backward\n"
                    "update, adds   compute of a step; of a layer above that of keeping all\n");
    struct weft_rows *rows = weft_answer_table(answer, "strategies", columns, N_COLUMNS);
    if (rows != NULL) rows->is_flat = true;
    for (struct group group = {0, -1}; next_group(problem, model, &group);)
        add_group(problem, model, batch, group, timed, rows);
}
