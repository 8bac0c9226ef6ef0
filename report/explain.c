#include "report/explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "report/table.h"

static int64_t row_sum(const int64_t *rows, int32_t slot)
{
    int64_t sum = 0;
    for (int i = 0; i < WEFT_CATEGORY_COUNT; i++)
        sum += rows[(size_t)slot * WEFT_CATEGORY_COUNT + (size_t)i];
    return sum;
}

static bool is_gather(const struct weft_plan *plan, int32_t index)
{
    return plan->problem->items[plan->placements[index].item].item.kind == WEFT_ALL_GATHER;
}

/* The slot that one step further would add to the placement's life, or -1 at the window's end. */
static int32_t next_slot(const struct weft_plan *plan, int32_t index)
{
    const struct weft_placement *placement = &plan->placements[index];
    const struct weft_item *item = &plan->problem->items[placement->item].item;
    if (is_gather(plan, index)) return placement->launch > item->first ? placement->launch - 1 : -1;
    return placement->deadline <= item->last ? placement->deadline : -1;
}

/* The channel is in order: a gather cannot be launched before anything that stands ahead of it, nor
 * a reduction be due after anything that stands behind it. Normal form makes the nearest of its
 * kind speak for all beyond; those of the other kind in between keep their own ends. */
static bool held_by_order(const struct weft_plan *plan, int32_t index)
{
    const struct weft_placement *all = plan->placements;
    bool gathers = is_gather(plan, index);
    int32_t step = gathers ? -1 : 1;
    const struct weft_problem_item *items = plan->problem->items;
    for (int32_t i = index + step; i >= 0 && i < plan->n_placements; i += step) {
        if (items[all[i].item].channel != items[all[index].item].channel) continue;
        /* What is ahead of a blocking gather is due with it, a slot later than its deadline. */
        int32_t complete = all[i].deadline + (all[i].launch == all[i].deadline ? 1 : 0);
        if (gathers ? all[i].launch >= all[index].launch : complete <= all[index].deadline)
            return true;
        if (is_gather(plan, i) == gathers) return false;
    }
    return false;
}

struct weft_hold_reason weft_explain_placement(const struct weft_plan *plan, const int64_t *rows,
                                               int32_t index)
{
    int32_t slot = next_slot(plan, index);
    if (slot < 0) return (struct weft_hold_reason){.by = WEFT_HELD_BY_WINDOW, .slot = -1};
    const struct weft_item *item = &plan->problem->items[plan->placements[index].item].item;
    /* A block that holds nothing is at home in any row, also in one that is over the limit. */
    int64_t over = row_sum(rows, slot) + item->stair_bytes - plan->problem->memory_limit_bytes;
    if (item->stair_bytes > 0 && over > 0)
        return (struct weft_hold_reason){WEFT_HELD_BY_MEMORY, slot, over};
    if (held_by_order(plan, index))
        return (struct weft_hold_reason){.by = WEFT_HELD_BY_ORDER, .slot = slot};
    return (struct weft_hold_reason){.by = WEFT_HELD_BY_CHOICE, .slot = slot};
}

static const char *const reason_texts[WEFT_HELD_COUNT] = {"window", "memory", "channel order",
                                                          "nothing"};

static void add_reason(const struct weft_plan *plan, const struct weft_hold_reason *reason,
                       struct weft_table *table)
{
    char bytes[WEFT_UNITS_TEXT_BYTES];
    if (reason->by == WEFT_HELD_BY_MEMORY)
        weft_table_cell(table, "memory: %s short in %s",
                        weft_units_show_bytes(reason->missing_bytes, bytes),
                        plan->problem->slot_names[reason->slot]);
    else
        weft_table_cell(table, "%s", reason_texts[reason->by]);
}

static bool same_row(const struct weft_plan *plan, const int64_t *rows, int32_t a, int32_t b)
{
    const struct weft_placement *x = &plan->placements[a], *y = &plan->placements[b];
    struct weft_hold_reason p = weft_explain_placement(plan, rows, a);
    struct weft_hold_reason q = weft_explain_placement(plan, rows, b);
    return x->item == y->item && x->launch == y->launch && x->deadline == y->deadline &&
           p.by == q.by && p.slot == q.slot && p.missing_bytes == q.missing_bytes;
}

static void explain_channel(const struct weft_plan *plan, const int64_t *rows,
                            struct weft_text *out)
{
    static const char *const head[] = {"unit",        "moves",      "blocks",
                                       "launched at", "due before", "held there by"};
    char blocks[48];
    bool any_free = false;
    struct weft_table table;
    weft_table_init(&table, "llllll");
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        weft_table_cell(&table, "%s", head[i]);
    for (int32_t first = 0; first < plan->n_placements;) {
        int32_t last = first;
        while (last + 1 < plan->n_placements && same_row(plan, rows, first, last + 1))
            last++;
        const struct weft_placement *placement = &plan->placements[first];
        const struct weft_item *item = &plan->problem->items[placement->item].item;
        struct weft_hold_reason reason = weft_explain_placement(plan, rows, first);
        weft_table_cell(&table, "%s", plan->problem->units[item->unit].name);
        weft_table_cell(&table, "%s", weft_collective_name((enum weft_collective)item->kind));
        if (last > first)
            snprintf(blocks, sizeof blocks, "%d..%d of %d", placement->block,
                     plan->placements[last].block, item->n_blocks);
        else
            snprintf(blocks, sizeof blocks, "%d of %d", placement->block, item->n_blocks);
        weft_table_cell(&table, "%s", blocks);
        weft_table_cell(&table, "%s", plan->problem->slot_names[placement->launch]);
        weft_table_cell(&table, "%s", plan->problem->slot_names[placement->deadline]);
        add_reason(plan, &reason, &table);
        any_free |= reason.by == WEFT_HELD_BY_CHOICE;
        first = last + 1;
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    /* The planner holds the whole layout to the limit, not the rows: a plan cannot say which. */
    if (any_free)
        weft_text_add(out, "  (nothing: its row has room; the block gains nothing there, or the "
                           "arena had no layout\n  of it within the limit)\n");
}

/* What the items of a unit under its policy come to. */
struct unit_traffic {
    int32_t n_blocks;    /* of each item; 0 when nothing of the unit moves */
    int64_t block_bytes; /* of the item with the largest */
    int64_t channel_ns;
};

static struct unit_traffic sum_traffic(const struct weft_plan *plan, int32_t unit)
{
    struct unit_traffic sum = {0};
    for (int32_t i = 0; i < plan->problem->n_items; i++) {
        const struct weft_problem_item *of = &plan->problem->items[i];
        if (of->item.unit != unit || !weft_problem_needs(plan->problem, plan->policies, i))
            continue;
        sum.n_blocks = of->item.n_blocks;
        if (of->item.block_bytes > sum.block_bytes) sum.block_bytes = of->item.block_bytes;
        sum.channel_ns += of->block_ns * of->item.n_blocks;
    }
    return sum;
}

static void explain_units(const struct weft_plan *plan, struct weft_text *out)
{
    static const char *const head[] = {"unit", "policy", "blocks", "of", "channel", "update"};
    char a[WEFT_UNITS_TEXT_BYTES];
    struct weft_table table;
    weft_table_init(&table, "llrrrr");
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        weft_table_cell(&table, "%s", head[i]);
    for (int32_t u = 0; u < plan->problem->n_units; u++) {
        const struct weft_problem_unit *unit = &plan->problem->units[u];
        struct unit_traffic traffic = sum_traffic(plan, u);
        weft_table_cell(&table, "%s", unit->name);
        weft_table_cell(&table, "%s", weft_policy_name(plan->policies[u]));
        weft_table_cell(&table, "%d", traffic.n_blocks);
        weft_table_cell(&table, "%s", weft_units_show_bytes(traffic.block_bytes, a));
        weft_table_cell(&table, "%s", weft_units_show_ns(traffic.channel_ns, a));
        weft_table_cell(&table, "%s", weft_units_show_ns(unit->update_ns[plan->policies[u]], a));
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
}

static int64_t *make_rows(const struct weft_plan *plan)
{
    int64_t *rows = calloc((size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    if (rows) weft_plan_rows(plan, rows);
    return rows;
}

void weft_explain(const struct weft_plan *plan, struct weft_text *out)
{
    int64_t *rows = make_rows(plan);
    if (!rows) {
        out->failed = true;
        return;
    }
    weft_explain_blocks(plan, out);
    weft_explain_price(plan, out);
    weft_text_add(out, "what each unit costs a step\n");
    explain_units(plan, out);
    weft_text_add(out, "\nthe channel, in order\n");
    explain_channel(plan, rows, out);
    free(rows);
}

void weft_explain_json(const struct weft_plan *plan, struct weft_json_writer *writer)
{
    int64_t *rows = make_rows(plan);
    if (!rows) {
        writer->text->failed = true;
        return;
    }
    weft_json_begin_array(writer);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *placement = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[placement->item].item;
        struct weft_hold_reason reason = weft_explain_placement(plan, rows, i);
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "unit", plan->problem->units[item->unit].name);
        weft_json_put_string(writer, "collective",
                             weft_collective_name((enum weft_collective)item->kind));
        weft_json_put_integer(writer, "block", placement->block);
        weft_json_put_string(writer, "launch", plan->problem->slot_names[placement->launch]);
        weft_json_put_string(writer, "deadline", plan->problem->slot_names[placement->deadline]);
        weft_json_put_string(writer, "held_by", reason_texts[reason.by]);
        if (reason.by == WEFT_HELD_BY_MEMORY) {
            weft_json_put_string(writer, "full_slot", plan->problem->slot_names[reason.slot]);
            weft_json_put_integer(writer, "missing_bytes", reason.missing_bytes);
        }
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
    free(rows);
}
