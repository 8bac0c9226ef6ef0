#include "report/explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "problem/names.h"
#include "report/away.h"
#include "report/table.h"

static int64_t row_sum(const int64_t *rows, int32_t slot)
{
    int64_t sum = 0;
    for (int i = 0; i < WEFT_CATEGORY_COUNT; i++)
        sum += rows[(size_t)slot * WEFT_CATEGORY_COUNT + (size_t)i];
    return sum;
}

/* The slot that one step further would add to the placement's life; -1 at the window's end. */
static int32_t next_slot(const struct weft_plan *plan, int32_t index)
{
    const struct weft_placement *placement = &plan->placements[index];
    const struct weft_item *item = &plan->problem->items[placement->item].item;
    if (plan->problem->items[plan->placements[index].item].item.acquires)
        return placement->launch > item->first ? placement->launch - 1 : -1;
    return placement->deadline <= item->last ? placement->deadline : -1;
}

/* Finds the block that holds this one by the order of its lane; -1: none. A gather cannot be
 * launched before an earlier block, and a reduction cannot be due after a later one. In normal form
 * the nearest block of the same kind stands for all beyond it. Blocks of the other kind in between
 * count by themselves. */
static int32_t find_holder_in_order(const struct weft_plan *plan, int32_t index)
{
    const struct weft_placement *all = plan->placements;
    bool gathers = plan->problem->items[plan->placements[index].item].item.acquires;
    int32_t step = gathers ? -1 : 1;
    const struct weft_problem_item *items = plan->problem->items;
    for (int32_t i = index + step; i >= 0 && i < plan->n_placements; i += step) {
        if (items[all[i].item].lane != items[all[index].item].lane) continue;
        /* A reduction before a blocking gather is due with it, one slot after its deadline. */
        int32_t complete = all[i].deadline + (all[i].launch == all[i].deadline ? 1 : 0);
        if (gathers ? all[i].launch >= all[index].launch : complete <= all[index].deadline)
            return i;
        if (plan->problem->items[plan->placements[i].item].item.acquires == gathers) return -1;
    }
    return -1;
}

/* The block that the lane still moves when this one is launched; -1: none. */
static int32_t find_holder_in_time(const struct weft_plan *plan,
                                   const struct weft_plan_times *times, int32_t index)
{
    const struct weft_placement *all = plan->placements;
    const struct weft_problem_item *items = plan->problem->items;
    if (times->start_ns[index] <= times->slot_start_ns[all[index].launch]) return -1;
    int32_t i = index - 1;
    while (i >= 0 && items[all[i].item].lane != items[all[index].item].lane)
        i--;
    return i;
}

struct weft_hold_reason weft_explain_placement(const struct weft_plan *plan, const int64_t *rows,
                                               const struct weft_plan_times *times, int32_t index)
{
    struct weft_hold_reason reason = {
        .by = WEFT_HELD_BY_WINDOW, .slot = next_slot(plan, index), .holder = -1};
    if (reason.slot < 0) return reason;
    const struct weft_item *item = &plan->problem->items[plan->placements[index].item].item;
    /* A block that holds no bytes fits any row, even one over the limit. */
    int64_t over =
        row_sum(rows, reason.slot) + item->stair_bytes - plan->problem->tiers[0].limit_bytes;
    if (item->stair_bytes > 0 && over > 0) {
        reason.by = WEFT_HELD_BY_MEMORY;
        reason.missing_bytes = over;
        return reason;
    }
    reason.by = WEFT_HELD_BY_ORDER;
    reason.holder = find_holder_in_order(plan, index);
    if (reason.holder >= 0) return reason;
    reason.holder = find_holder_in_time(plan, times, index);
    reason.by = reason.holder >= 0 ? WEFT_HELD_BY_BUSY : WEFT_HELD_BY_CHOICE;
    return reason;
}

static const char *const reason_texts[WEFT_HELD_COUNT] = {"window", "memory", "channel order",
                                                          "channel busy", "nothing"};

/* Whether the holder is a neighbour of the same item. Rows that say so can be folded. */
static bool is_neighbour(const struct weft_plan *plan, int32_t index, int32_t holder)
{
    return plan->placements[index].item == plan->placements[holder].item;
}

static void add_holder(const struct weft_plan *plan, int32_t index,
                       const struct weft_hold_reason *reason, struct weft_table *table)
{
    const struct weft_placement *holder = &plan->placements[reason->holder];
    const struct weft_item *item = &plan->problem->items[holder->item].item;
    const char *where = reason->by == WEFT_HELD_BY_BUSY ? "the channel is busy with"
                        : reason->holder < index        ? "channel order: after"
                                                        : "channel order: before";
    const char *name = weft_item_kind_of(item)->name;
    char name_text[WEFT_NAMES_BYTES];
    const char *unit = weft_problem_show_name(plan->problem, item->decision, name_text);
    if (is_neighbour(plan, index, reason->holder))
        weft_table_cell(table, "%s the %s block", where,
                        reason->holder < index ? "previous" : "next");
    else if (item->n_blocks == 1)
        weft_table_cell(table, "%s %s of %s", where, name, unit);
    else
        weft_table_cell(table, "%s %s of %s, block %d", where, name, unit, holder->block);
}

static void add_reason(const struct weft_plan *plan, int32_t index,
                       const struct weft_hold_reason *reason, struct weft_table *table)
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    if (reason->by == WEFT_HELD_BY_MEMORY)
        weft_table_cell(table, "memory: %s short in %s",
                        weft_units_show_bytes(reason->missing_bytes, bytes),
                        plan->problem->slot_names[reason->slot]);
    else if (reason->holder >= 0)
        add_holder(plan, index, reason, table);
    else
        weft_table_cell(table, "%s", reason_texts[reason->by]);
}

/* Inputs of the reasons. */
struct facts {
    int64_t *rows, *scratch;
    struct weft_plan_times times;
};

static bool same_row(const struct weft_plan *plan, const struct facts *facts, int32_t a, int32_t b)
{
    const struct weft_placement *x = &plan->placements[a], *y = &plan->placements[b];
    struct weft_hold_reason p = weft_explain_placement(plan, facts->rows, &facts->times, a);
    struct weft_hold_reason q = weft_explain_placement(plan, facts->rows, &facts->times, b);
    bool same_holder = p.holder == q.holder;
    if (p.holder >= 0 && q.holder >= 0 && !same_holder)
        same_holder = is_neighbour(plan, a, p.holder) && is_neighbour(plan, b, q.holder);
    return x->item == y->item && x->launch == y->launch && x->deadline == y->deadline &&
           p.by == q.by && p.slot == q.slot && p.missing_bytes == q.missing_bytes && same_holder;
}

static void add_row(const struct weft_plan *plan, int32_t first, int32_t last,
                    const struct weft_hold_reason *reason, struct weft_table *table)
{
    const struct weft_placement *placement = &plan->placements[first];
    const struct weft_item *item = &plan->problem->items[placement->item].item;
    char blocks[48], name[WEFT_NAMES_BYTES];
    weft_table_cell(table, "%s", weft_problem_show_name(plan->problem, item->decision, name));
    weft_table_cell(table, "%s", weft_item_kind_of(item)->name);
    if (last > first)
        snprintf(blocks, sizeof blocks, "%d..%d/%d", placement->block, plan->placements[last].block,
                 item->n_blocks);
    else
        snprintf(blocks, sizeof blocks, "%d/%d", placement->block, item->n_blocks);
    weft_table_cell(table, "%s", blocks);
    weft_table_cell(table, "%s", plan->problem->slot_names[placement->launch]);
    weft_table_cell(table, "%s", plan->problem->slot_names[placement->deadline]);
    add_reason(plan, first, reason, table);
}

static void say_more(int32_t n_rows, int32_t most_rows, struct weft_text *out)
{
    if (n_rows > most_rows) weft_text_addf(out, "  %d more, --all\n", n_rows - most_rows);
}

static void explain_channel(const struct weft_plan *plan, const struct facts *facts,
                            int32_t most_rows, struct weft_text *out)
{
    static const char *const head[] = {"unit",     "moves",  "blocks",
                                       "launched", "before", "held there by"};
    int32_t n_rows = 0;
    bool any_free = false;
    struct weft_table table;
    weft_table_init(&table, "lllllw");
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        weft_table_cell(&table, "%s", head[i]);
    for (int32_t first = 0, last; first < plan->n_placements; first = last + 1, n_rows++) {
        last = first;
        while (last + 1 < plan->n_placements && same_row(plan, facts, first, last + 1))
            last++;
        if (n_rows >= most_rows) continue;
        struct weft_hold_reason reason =
            weft_explain_placement(plan, facts->rows, &facts->times, first);
        add_row(plan, first, last, &reason, &table);
        any_free |= reason.by == WEFT_HELD_BY_CHOICE;
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    say_more(n_rows, most_rows, out);
    /* The limit applies to whole pages, not to rows, so the plan does not tell which reason
     * holds. */
    if (any_free)
        weft_text_add(out, "  (nothing: its row has room; the block gains nothing there, or its "
                           "pages would not be within the limit)\n");
}

/* Sums of a unit's collectives under its policy. */
struct unit_traffic {
    int32_t n_blocks;    /* per item; 0: nothing moves */
    int64_t block_bytes; /* of the item with the largest blocks */
    int64_t channel_ns;
};

static struct unit_traffic sum_traffic(const struct weft_plan *plan, int32_t unit)
{
    struct unit_traffic sum = {0};
    for (int32_t i = 0; i < plan->problem->n_items; i++) {
        const struct weft_problem_item *of = &plan->problem->items[i];
        if (of->item.decision != unit || !weft_item_is_collective(&of->item) ||
            !weft_problem_needs(plan->problem, plan->strategies, i))
            continue;
        sum.n_blocks = of->item.n_blocks;
        if (of->item.block_bytes > sum.block_bytes) sum.block_bytes = of->item.block_bytes;
        sum.channel_ns += of->block_ns * of->item.n_blocks;
    }
    return sum;
}

static void explain_units(const struct weft_plan *plan, int32_t most_rows, struct weft_text *out)
{
    static const char *const head[] = {"unit", "policy", "blocks", "of", "channel", "update"};
    char a[WEFT_UNITS_TEXT_BYTES];
    struct weft_table table;
    weft_table_init(&table, "llrrrr");
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        weft_table_cell(&table, "%s", head[i]);
    const int32_t n_units = weft_problem_n_units(plan->problem);
    for (int32_t u = 0; u < n_units && u < most_rows; u++) {
        const struct weft_problem_decision *unit = &plan->problem->decisions[u];
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, u);
        struct unit_traffic traffic = sum_traffic(plan, u);
        weft_table_cell(&table, "%s", unit->name);
        weft_table_cell(&table, "%s", of->name);
        weft_table_cell(&table, "%d", traffic.n_blocks);
        weft_table_cell(&table, "%s", weft_units_show_bytes(traffic.block_bytes, a));
        weft_table_cell(&table, "%s", weft_units_show_ns(traffic.channel_ns, a));
        weft_table_cell(&table, "%s",
                        weft_units_show_ns(weft_strategy_ns(of, unit->update_slot), a));
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    say_more(n_units, most_rows, out);
}

static void free_facts(struct facts *facts)
{
    free(facts->rows);
    free(facts->scratch);
    free(facts->times.slot_start_ns);
    free(facts->times.start_ns);
    free(facts->times.end_ns);
}

/* False if memory is short. Free the facts in any case. */
static bool find_facts(const struct weft_plan *plan, struct facts *facts)
{
    size_t n_slots = (size_t)plan->problem->n_slots, n = (size_t)plan->n_placements;
    *facts = (struct facts){
        .rows = calloc(n_slots * WEFT_CATEGORY_COUNT, sizeof(int64_t)),
        .scratch = calloc(weft_simulate_words(plan->problem), sizeof(int64_t)),
        .times = {.slot_start_ns = calloc(n_slots, sizeof(int64_t)),
                  .start_ns = calloc(n + 1, sizeof(int64_t)),
                  .end_ns = calloc(n + 1, sizeof(int64_t))},
    };
    if (!facts->rows || !facts->scratch || !facts->times.slot_start_ns || !facts->times.start_ns ||
        !facts->times.end_ns)
        return false;
    weft_plan_rows(plan, 0, facts->rows);
    weft_simulate_plan_times(plan, facts->scratch, &facts->times);
    return true;
}

void weft_explain(const struct weft_plan *plan, int32_t most_rows, struct weft_text *out)
{
    struct facts facts;
    if (find_facts(plan, &facts)) {
        weft_explain_blocks(plan, out);
        weft_explain_price(plan, out);
        weft_explain_ways(plan, most_rows, out);
        weft_text_add(out, "what each unit costs a step\n");
        explain_units(plan, most_rows, out);
        weft_text_add(out, "\n");
        weft_explain_away(plan, most_rows, out);
        weft_text_add(out, "the channel, in order\n");
        explain_channel(plan, &facts, most_rows, out);
    } else {
        out->failed = true;
    }
    free_facts(&facts);
}

static void put_block(const struct weft_plan *plan, int32_t index, struct weft_json_writer *writer)
{
    const struct weft_placement *placement = &plan->placements[index];
    const struct weft_item *item = &plan->problem->items[placement->item].item;
    weft_json_put_string(writer, "unit", plan->problem->decisions[item->decision].name);
    weft_json_put_string(writer, "collective", weft_item_kind_of(item)->name);
    weft_json_put_integer(writer, "block", placement->block);
}

static void put_placement(const struct weft_plan *plan, const struct facts *facts, int32_t index,
                          struct weft_json_writer *writer)
{
    const struct weft_placement *placement = &plan->placements[index];
    struct weft_hold_reason reason =
        weft_explain_placement(plan, facts->rows, &facts->times, index);
    weft_json_begin_object(writer);
    put_block(plan, index, writer);
    weft_json_put_string(writer, "launch", plan->problem->slot_names[placement->launch]);
    weft_json_put_string(writer, "deadline", plan->problem->slot_names[placement->deadline]);
    weft_json_put_string(writer, "held_by", reason_texts[reason.by]);
    if (reason.by == WEFT_HELD_BY_MEMORY) {
        weft_json_put_string(writer, "full_slot", plan->problem->slot_names[reason.slot]);
        weft_json_put_integer(writer, "missing_bytes", reason.missing_bytes);
    }
    if (reason.holder >= 0) {
        weft_json_key(writer, "holder");
        weft_json_begin_object(writer);
        put_block(plan, reason.holder, writer);
        weft_json_end_object(writer);
    }
    weft_json_end_object(writer);
}

void weft_explain_json(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                       struct weft_json_writer *writer)
{
    struct facts facts;
    if (find_facts(plan, &facts)) {
        weft_json_begin_object(writer);
        weft_explain_price_json(plan, step_ns, writer);
        weft_explain_ways_json(plan, writer);
        weft_json_key(writer, "channel");
        weft_json_begin_array(writer);
        for (int32_t i = 0; i < plan->n_placements; i++)
            put_placement(plan, &facts, i, writer);
        weft_json_end_array(writer);
        weft_json_end_object(writer);
    } else {
        writer->text->failed = true;
    }
    free_facts(&facts);
}
