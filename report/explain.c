/* SPDX-License-Identifier: Apache-2.0 */
#include "report/explain.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "problem/names.h"
#include "report/offloaded.h"

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

enum {
    UNIT,
    MOVES,
    BLOCK,
    LAUNCH,
    DEADLINE,
    HELD,
    FULL,
    MISSING,
    HOLDER, /* with its block in the next two columns */
    CHANNEL_COLUMNS = HOLDER + 3
};

static const char *const reason_texts[WEFT_HELD_COUNT] = {"window", "memory", "channel order",
                                                          "channel busy", "nothing"};

/* Whether the holder is a neighbour of the same item. Rows that say so can be folded. */
static bool is_neighbour(const struct weft_plan *plan, int32_t index, int32_t holder)
{
    return plan->placements[index].item == plan->placements[holder].item;
}

static void show_holder(const struct weft_plan *plan, int32_t index,
                        const struct weft_hold_reason *reason, struct weft_rows *rows)
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
        weft_rows_show(rows, HELD, WEFT_PAINT_NONE, "%s the %s block", where,
                       reason->holder < index ? "previous" : "next");
    else if (item->n_blocks == 1)
        weft_rows_show(rows, HELD, WEFT_PAINT_NONE, "%s %s of %s", where, name, unit);
    else
        weft_rows_show(rows, HELD, WEFT_PAINT_NONE, "%s %s of %s, block %d", where, name, unit,
                       holder->block);
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

/* Adds the three columns of a block, from `column` on. */
static void put_block(const struct weft_plan *plan, int32_t index, int32_t column,
                      struct weft_rows *rows)
{
    const struct weft_placement *placement = &plan->placements[index];
    const struct weft_item *item = &plan->problem->items[placement->item].item;
    weft_rows_word(rows, column, plan->problem->decisions[item->decision].name);
    weft_rows_word(rows, column + 1, weft_item_kind_of(item)->name);
    weft_rows_integer(rows, column + 2, placement->block);
}

static void put_placement(const struct weft_plan *plan, int32_t index,
                          const struct weft_hold_reason *reason, struct weft_rows *rows)
{
    const struct weft_placement *placement = &plan->placements[index];
    const char *const *slots = plan->problem->slot_names;
    weft_rows_begin(rows, NULL);
    put_block(plan, index, UNIT, rows);
    weft_rows_word(rows, LAUNCH, slots[placement->launch]);
    weft_rows_word(rows, DEADLINE, slots[placement->deadline]);
    weft_rows_word(rows, HELD, reason_texts[reason->by]);
    if (reason->by == WEFT_HELD_BY_MEMORY) {
        weft_rows_word(rows, FULL, slots[reason->slot]);
        weft_rows_integer(rows, MISSING, reason->missing_bytes);
    }
    if (reason->holder >= 0) put_block(plan, reason->holder, HOLDER, rows);
}

/* Sets the text of the last row, which stands for the equal blocks from `first` to `last`. */
static void show_row(const struct weft_plan *plan, int32_t first, int32_t last,
                     const struct weft_hold_reason *reason, struct weft_rows *rows)
{
    const struct weft_placement *placement = &plan->placements[first];
    const struct weft_item *item = &plan->problem->items[placement->item].item;
    char blocks[32] = "", name[WEFT_NAMES_BYTES], bytes[WEFT_UNITS_TEXT_BYTES];
    if (last > first) snprintf(blocks, sizeof blocks, "..%d", plan->placements[last].block);
    weft_rows_show(rows, UNIT, WEFT_PAINT_NONE, "%s",
                   weft_problem_show_name(plan->problem, item->decision, name));
    weft_rows_show(rows, BLOCK, WEFT_PAINT_NONE, "%d%s/%d", placement->block, blocks,
                   item->n_blocks);
    if (reason->by == WEFT_HELD_BY_MEMORY)
        weft_rows_show(rows, HELD, WEFT_PAINT_NONE, "memory: %s short in %s",
                       weft_units_show_bytes(reason->missing_bytes, bytes),
                       plan->problem->slot_names[reason->slot]);
    else if (reason->holder >= 0)
        show_holder(plan, first, reason, rows);
}

/* Data has all blocks. Text has a row for equal neighbours. */
static void explain_channel(const struct weft_plan *plan, const struct facts *facts,
                            int32_t most_rows, struct weft_answer *out)
{
    static const struct weft_column columns[CHANNEL_COLUMNS] = {
        [UNIT] = {"unit", "unit", 'l', WEFT_FIGURE_WORD, 0},
        [MOVES] = {"collective", "moves", 'l', WEFT_FIGURE_WORD, 0},
        [BLOCK] = {"block", "blocks", 'l', WEFT_FIGURE_INTEGER, 0},
        [LAUNCH] = {"launch", "launched", 'l', WEFT_FIGURE_WORD, 0},
        [DEADLINE] = {"deadline", "before", 'l', WEFT_FIGURE_WORD, 0},
        [HELD] = {"held_by", "held there by", 'w', WEFT_FIGURE_WORD, 0},
        [FULL] = {"full_slot", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [MISSING] = {"missing_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
        [HOLDER] = {"holder.unit", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [HOLDER + 1] = {"holder.collective", NULL, 'l', WEFT_FIGURE_WORD, 0},
        [HOLDER + 2] = {"holder.block", NULL, 'l', WEFT_FIGURE_INTEGER, 0},
    };
    struct weft_rows *rows = weft_answer_table(out, "channel", columns, CHANNEL_COLUMNS);
    int32_t n_rows = 0;
    bool any_free = false;
    weft_rows_title(rows, "the channel, in order");
    for (int32_t first = 0, last; first < plan->n_placements; first = last + 1, n_rows++) {
        last = first;
        while (last + 1 < plan->n_placements && same_row(plan, facts, first, last + 1))
            last++;
        for (int32_t i = first; i <= last; i++) {
            const struct weft_hold_reason reason =
                weft_explain_placement(plan, facts->rows, &facts->times, i);
            put_placement(plan, i, &reason, rows);
            if (i > first || n_rows >= most_rows) {
                weft_rows_hide(rows);
                continue;
            }
            show_row(plan, first, last, &reason, rows);
            any_free |= reason.by == WEFT_HELD_BY_CHOICE;
        }
    }
    weft_rows_more(rows, n_rows - most_rows);
    /* The limit applies to whole pages, not to rows, so the plan does not tell which reason
     * holds. */
    if (any_free)
        weft_rows_note(rows, "  (nothing: its row has room; the block gains nothing there, or its "
                             "pages would not be within the limit)");
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

static void explain_units(const struct weft_plan *plan, int32_t most_rows, struct weft_answer *out)
{
    enum { NAME, POLICY, BLOCKS, OF, CHANNEL, UPDATE, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [NAME] = {NULL, "unit", 'l', WEFT_FIGURE_WORD, 0},
        [POLICY] = {NULL, "policy", 'l', WEFT_FIGURE_WORD, 0},
        [BLOCKS] = {NULL, "blocks", 'r', WEFT_FIGURE_INTEGER, 0},
        [OF] = {NULL, "of", 'r', WEFT_FIGURE_BYTES, 0},
        [CHANNEL] = {NULL, "channel", 'r', WEFT_FIGURE_NS, 0},
        [UPDATE] = {NULL, "update", 'r', WEFT_FIGURE_NS, 0}};
    struct weft_rows *rows = weft_answer_table(out, NULL, columns, N_COLUMNS);
    const int32_t n_units = weft_problem_n_units(plan->problem);
    weft_rows_title(rows, "what each unit costs a step");
    for (int32_t u = 0; u < n_units && u < most_rows; u++) {
        const struct weft_problem_decision *unit = &plan->problem->decisions[u];
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, u);
        const struct unit_traffic traffic = sum_traffic(plan, u);
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, NAME, unit->name);
        weft_rows_word(rows, POLICY, of->name);
        weft_rows_integer(rows, BLOCKS, traffic.n_blocks);
        weft_rows_integer(rows, OF, traffic.block_bytes);
        weft_rows_integer(rows, CHANNEL, traffic.channel_ns);
        weft_rows_integer(rows, UPDATE, weft_strategy_ns(of, unit->update_slot));
    }
    weft_rows_more(rows, n_units - most_rows);
    weft_answer_say(out, NULL, "\n");
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

void weft_explain(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                  int32_t most_rows, struct weft_answer *out)
{
    struct facts facts;
    if (find_facts(plan, &facts)) {
        weft_explain_price(plan, step_ns, out);
        weft_explain_ways(plan, most_rows, out);
        explain_units(plan, most_rows, out);
        weft_explain_offloaded(plan, most_rows, out);
        explain_channel(plan, &facts, most_rows, out);
    } else {
        out->failed = true;
    }
    free_facts(&facts);
}
