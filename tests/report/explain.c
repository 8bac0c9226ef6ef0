/* SPDX-License-Identifier: Apache-2.0 */
#include "report/explain.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "plan/placement.h"
#include "tests/program/random_model.h"
#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

enum { CASES = 60 };

/* Times of a plan, valid until the next call. */
static const struct weft_plan_times *times_of(const struct weft_plan *plan)
{
    enum { MOST = 4096 };
    static int64_t scratch[MOST], slot_start_ns[MOST], start_ns[MOST], end_ns[MOST];
    static struct weft_plan_times times = {slot_start_ns, start_ns, end_ns};
    cr_assert_leq(3 * plan->problem->n_slots + plan->n_placements, MOST);
    weft_simulate_plan_times(plan, scratch, &times);
    return &times;
}

static void expect_explain(int64_t limit_bytes, int32_t index, enum weft_hold_back by, int32_t slot,
                           int64_t missing_bytes)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = limit_bytes;
    struct weft_plan *plan = small_plan(&problem);
    int64_t rows[N_SMALL_SLOTS * WEFT_CATEGORY_COUNT];
    weft_plan_rows(plan, 0, rows);
    struct weft_hold_reason reason = weft_explain_placement(plan, rows, times_of(plan), index);
    cr_assert_eq(reason.by, by, "block %d: held by %d", (int)index, (int)reason.by);
    cr_assert_eq(reason.slot, slot, "block %d: slot %d", (int)index, (int)reason.slot);
    cr_assert_eq(reason.missing_bytes, missing_bytes);
    weft_plan_destroy(plan);
}

/* To the byte: one byte below the need, one byte is missing. */
Test(explain, memory_holds_by_what_is_missing)
{
    expect_explain(1199, 0, WEFT_HELD_BY_MEMORY, 1, 1);
    expect_explain(1200, 0, WEFT_HELD_BY_CHOICE, 1, 0);
    expect_explain(1250, 2, WEFT_HELD_BY_MEMORY, 2, 50);
    expect_explain(1299, 2, WEFT_HELD_BY_MEMORY, 2, 1);
    expect_explain(1300, 2, WEFT_HELD_BY_CHOICE, 2, 0);
    expect_explain(1499, 5, WEFT_HELD_BY_MEMORY, 7, 1);
    expect_explain(1500, 5, WEFT_HELD_BY_BUSY, 7, 0); /* the reduction before it is in progress */
}

Test(explain, order_holds_behind_and_ahead)
{
    expect_explain(1700, 1, WEFT_HELD_BY_ORDER, 1, 0);
    expect_explain(1700, 3, WEFT_HELD_BY_ORDER, 2, 0);
    expect_explain(1700, 4, WEFT_HELD_BY_ORDER, 7, 0);
    expect_explain(1199, 1, WEFT_HELD_BY_MEMORY, 1,
                   1); /* both room and order hold it: room comes first */
}

Test(explain, windows_hold_whatever_the_limit)
{
    expect_explain(1, 6, WEFT_HELD_BY_WINDOW, -1, 0);
    expect_explain(INT64_MAX, 7, WEFT_HELD_BY_WINDOW, -1, 0);
}

Test(explain, without_a_limit_memory_holds_nothing)
{
    for (int32_t i = 0; i < 6; i++) {
        bool first = i == 0 || i == 2;
        expect_explain(INT64_MAX, i,
                       first    ? WEFT_HELD_BY_CHOICE
                       : i == 5 ? WEFT_HELD_BY_BUSY
                                : WEFT_HELD_BY_ORDER,
                       i < 2   ? 1
                       : i < 4 ? 2
                               : 7,
                       0);
    }
}

/* Under dp the reduction's bytes are held for the whole step. Its row is over the limit in any
 * slot. */
Test(explain, memory_does_not_hold_what_holds_none)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 500;
    static const int32_t strategies[] = {IS_DP, IS_DP};
    static const struct weft_move moves[] = {
        {B_ALL_REDUCE, 6, 0}, {B_ALL_REDUCE, 6, 0}, {A_ALL_REDUCE, 7, 0}, {A_ALL_REDUCE, 7, 0}};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_create(&problem, "test", strategies, moves, 4, &plan, &err), WEFT_OK);
    int64_t rows[N_SMALL_SLOTS * WEFT_CATEGORY_COUNT];
    weft_plan_rows(plan, 0, rows);
    cr_assert_eq(weft_explain_placement(plan, rows, times_of(plan), 0).by, WEFT_HELD_BY_ORDER);
    cr_assert_eq(weft_explain_placement(plan, rows, times_of(plan), 1).by, WEFT_HELD_BY_BUSY);
    weft_plan_destroy(plan);
}

static int64_t row_total(const int64_t *rows, int32_t slot)
{
    int64_t total = 0;
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
        total += rows[slot * WEFT_CATEGORY_COUNT + c];
    return total;
}

/* Moves the block for real. The result may leave its window, exceed the limit, return by normal
 * form, or be valid. */
static struct weft_hold_reason move_it(struct weft_plan *plan, int32_t index, int64_t *rows,
                                       struct weft_placement *normal)
{
    struct weft_placement *at = &plan->placements[index], was = *at;
    const struct weft_item *item = &plan->problem->items[at->item].item;
    struct weft_hold_reason reason = {.by = WEFT_HELD_BY_CHOICE, .slot = -1};
    bool gathers = item->acquires;
    int32_t slot = gathers ? at->launch - 1 : at->deadline;
    if (slot < item->first || slot > item->last) {
        reason.by = WEFT_HELD_BY_WINDOW;
        return reason;
    }
    reason.slot = slot;
    if (gathers) {
        at->launch--;
    } else {
        at->deadline++;
    }
    weft_plan_rows(plan, 0, rows);
    int64_t over = row_total(rows, slot) - plan->problem->tiers[0].limit_bytes;
    memcpy(normal, plan->placements, (size_t)plan->n_placements * sizeof *normal);
    int32_t *scratch = calloc((size_t)plan->n_placements + 1, sizeof *scratch);
    weft_placements_normalise(plan->problem, normal, plan->n_placements, scratch);
    free(scratch);
    if (over > 0 && item->stair_bytes > 0) {
        reason.by = WEFT_HELD_BY_MEMORY;
        reason.missing_bytes = over;
    } else if (normal[index].launch != at->launch || normal[index].deadline != at->deadline) {
        reason.by = WEFT_HELD_BY_ORDER;
    }
    *at = was;
    return reason;
}

/* True if the neighbour on the channel is of the other kind and does not hold the block. */
static bool holder_is_further(const struct weft_plan *plan, int32_t index)
{
    const struct weft_placement *all = plan->placements;
    if (plan->problem->items[all[index].item].item.acquires)
        return all[index - 1].launch < all[index].launch;
    return all[index + 1].deadline > all[index].deadline;
}

/* For a block that neither window, memory nor order holds: moves it by one slot. If the reported
 * reason is a busy channel, it still starts right after the other block. Otherwise it starts with
 * its slot. */
static void check_busy(struct weft_plan *plan, int32_t index, const struct weft_hold_reason *said)
{
    struct weft_placement *at = &plan->placements[index], was = *at;
    int64_t start_ns = times_of(plan)->start_ns[index];
    if (said->by == WEFT_HELD_BY_CHOICE) {
        cr_assert_eq(said->holder, -1);
        cr_assert_eq(start_ns, times_of(plan)->slot_start_ns[at->launch]);
        return;
    }
    cr_assert_lt(said->holder, index);
    cr_assert_eq(times_of(plan)->end_ns[said->holder], start_ns);
    cr_assert_gt(start_ns, times_of(plan)->slot_start_ns[at->launch]);
    if (plan->problem->items[at->item].item.acquires) {
        at->launch--;
    } else {
        at->deadline++;
    }
    cr_assert_eq(times_of(plan)->start_ns[index], start_ns, "block %d", (int)index);
    *at = was;
}

static void compare_rows(struct weft_plan *plan, int32_t seen[WEFT_HELD_COUNT], int32_t *further)
{
    size_t n = (size_t)plan->problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n, sizeof *rows), *moved = calloc(n, sizeof *moved);
    struct weft_placement *normal = calloc((size_t)plan->n_placements + 1, sizeof *normal);
    cr_assert(rows && moved && normal);
    weft_plan_rows(plan, 0, rows);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        struct weft_hold_reason said = weft_explain_placement(plan, rows, times_of(plan), i);
        struct weft_hold_reason found = move_it(plan, i, moved, normal);
        if (found.by == WEFT_HELD_BY_CHOICE) {
            check_busy(plan, i, &said);
            found.by = said.by == WEFT_HELD_BY_BUSY ? said.by : found.by;
        }
        cr_assert_eq(said.by, found.by, "block %d: said %d, found %d", (int)i, (int)said.by,
                     (int)found.by);
        cr_assert_eq(said.slot, found.slot);
        cr_assert_eq(said.missing_bytes, found.missing_bytes);
        seen[said.by]++;
        if (said.by == WEFT_HELD_BY_ORDER && holder_is_further(plan, i)) ++*further;
    }
    free(normal);
    free(moved);
    free(rows);
}

Test(explain, reasons_are_what_moving_the_block_finds)
{
    int32_t seen[WEFT_HELD_COUNT] = {0}, further = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, seed);
        const int64_t peak_bytes = plan->prediction.peak_bytes;
        const int64_t limits[] = {INT64_MAX, peak_bytes, peak_bytes * 4 / 5, peak_bytes / 2};
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            random.stages.problem->tiers[0].limit_bytes = limits[i];
            compare_rows(plan, seen, &further);
        }
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    for (int i = 0; i < WEFT_HELD_COUNT; i++)
        cr_expect(seen[i] > 50, "reason %d was seen %d times", i, (int)seen[i]);
    cr_expect(further > 0, "no block was held across one of the other kind");
}

static void expect_text_explain(const struct weft_plan *plan, const char *text)
{
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain(plan, no_stairs, WEFT_EXPLAIN_ROWS, &answer));
    cr_assert(weft_text_ok(&out));
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
}

Test(explain, text_folds_equal_blocks)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1250;
    struct weft_plan *plan = small_plan(&problem);
    expect_text_explain(
        plan, "a block more or less, of 100 B at slot B:a; planned again without pages\n"
              "  memory        rows within        step  changes it by\n"
              "  a block less     1.56 KiB  none found              -\n"
              "  as planned       1.66 KiB  none found              -\n"
              "  a block more     1.76 KiB  none found              -\n"
              "\n"
              "the price of each strategy: bytes in slot B:a, time of compute and lanes without "
              "overlap\n"
              "  decision  strategy   frees      adds  a ms frees\n"
              "  a         dp        +400 B  -1.00 us           -\n"
              "            sdp *          -         -           -\n"
              "  b         dp        +100 B  -1.00 us           -\n"
              "            sdp *          -         -           -\n"
              "  next with less memory: a dp, which frees +400 B for -1.00 us\n"
              "\n"
              "what each unit costs a step\n"
              "  unit  policy  blocks     of  channel  update\n"
              "  a     sdp          2  100 B  2.40 us  200 ns\n"
              "  b     sdp          2  100 B  2.40 us  200 ns\n"
              "\n"
              "the channel, in order\n"
              "  unit  moves           blocks  launched  before  held there by\n"
              "  a     all_gather      0/2     fill      F:a     nothing\n"
              "  a     all_gather      1/2     fill      F:a     channel order: after the "
              "previous block\n"
              "  b     all_gather      0..1/2  F:a       F:b     memory: 50 B short in fill\n"
              "  b     reduce_scatter  0..1/2  B:a       drain   memory: 250 B short in drain\n"
              "  a     reduce_scatter  0..1/2  drain     norm    window\n"
              "  (nothing: its row has room; the block gains nothing there, or its pages would "
              "not be within the limit)\n");
    weft_plan_destroy(plan);
}

Test(explain, long_tables_end_in_how_many_more_there_are)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1250;
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text all, out;
    weft_text_init(&all);
    weft_text_init(&out);
    ADD_TEXT(&all, weft_explain(plan, no_stairs, 5, &answer));
    cr_assert_null(strstr(weft_text_chars(&all), "--all"), "five rows are no more than five");
    ADD_TEXT(&out, weft_explain(plan, no_stairs, 1, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\n  a     sdp          2  100 B  2.40 us  200 ns\n"
                                            "  1 more, --all\n\nthe channel"),
              "%s", weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out), "  4 more, --all\n"), "%s", weft_text_chars(&out));
    cr_assert_null(strstr(weft_text_chars(&out), "reduce_scatter"));
    weft_text_finish(&all);
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}

Test(explain, text_says_nothing_of_what_is_not_there)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1100;
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain(plan, no_stairs, WEFT_EXPLAIN_ROWS, &answer));
    cr_assert_null(strstr(weft_text_chars(&out), "nothing"));
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}

/* Only the blocks of the chosen policy count. A unit that moves no bytes has no blocks. */
Test(explain, units_show_what_their_policy_moves)
{
    struct weft_problem problem = small_problem();
    problem.items[A_ALL_REDUCE].item.block_bytes = 5000;
    problem.items[B_GATHER].item.block_bytes = 300;
    problem.items[A_GATHER].item.strategies = 0;
    problem.items[A_REDUCE].item.strategies = 0;
    static const int32_t strategies[] = {IS_SDP, IS_SDP};
    static const struct weft_move moves[] = {
        {B_GATHER, 2, 0}, {B_GATHER, 2, 0}, {B_REDUCE, 7, 0}, {B_REDUCE, 7, 0}};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_plan_create(&problem, "test", strategies, moves, 4, &plan, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain(plan, no_stairs, WEFT_EXPLAIN_ROWS, &answer));
    cr_assert(strstr(weft_text_chars(&out), "\n  a     sdp          0    0 B     0 ns  200 ns\n"));
    cr_assert(strstr(weft_text_chars(&out), "\n  b     sdp          2  300 B  2.40 us  200 ns\n"));
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}

Test(explain, long_names_stay_whole)
{
    static char name[1001];
    memset(name, 'n', sizeof name - 1);
    struct weft_problem problem = small_problem();
    const char *was = problem.decisions[0].name;
    problem.decisions[0].name = name;
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain(plan, no_stairs, WEFT_EXPLAIN_ROWS, &answer));
    size_t times = 0;
    for (const char *at = weft_text_chars(&out); (at = strstr(at, name)); at += sizeof name - 1)
        times++;
    cr_assert_eq(times, 6,
                 "twice with the prices, once in the units' table, three times in the "
                 "channel's");
    weft_text_finish(&out);
    weft_plan_destroy(plan);
    problem.decisions[0].name = was;
}

static void check_holder(const struct weft_json_value *holder, const char *unit, int64_t block)
{
    const char *name;
    int64_t number;
    cr_assert(weft_json_string(weft_json_member(holder, "unit"), &name));
    cr_assert_str_eq(name, unit);
    cr_assert(weft_json_string(weft_json_member(holder, "collective"), &name));
    cr_assert_str_eq(name, "all_gather");
    cr_assert(weft_json_integer(weft_json_member(holder, "block"), &number));
    cr_assert_eq(number, block);
}

/* Limits a block of 100 bytes below the peak, at it and above it. The first has no plan. */
static void check_stairs(const struct weft_json_value *root, int64_t peak_bytes)
{
    const struct weft_json_value *stair = weft_json_first(weft_json_member(root, "stairs"));
    int64_t number;
    for (int i = 0; i < WEFT_STAIRS; i++, stair = weft_json_next(stair)) {
        cr_assert(weft_json_integer(weft_json_member(stair, "rows_within_bytes"), &number));
        cr_assert_eq(number, peak_bytes + (i - 1) * 100);
        cr_assert_eq(weft_json_integer(weft_json_member(stair, "step_ns"), &number), i > 0);
        if (i > 0) cr_assert_eq(number, i == 1 ? 9000 : 8000);
    }
    cr_assert_null(stair);
}

Test(explain, json_has_an_object_a_block)
{
    struct weft_problem problem = small_problem();
    problem.tiers[0].limit_bytes = 1250;
    problem.decisions[0].name = "a \"\xC3\xA9\"\n";
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    struct weft_json *document = NULL;
    struct weft_error err = {0};
    weft_text_init(&out);
    static const int64_t step_ns[WEFT_STAIRS] = {-1, 9000, 8000};
    ADD_JSON(&out, 2, weft_explain(plan, step_ns, 1, &answer));
    enum weft_status status =
        weft_json_parse(weft_text_chars(&out), out.length, "explain", &document, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    const struct weft_json_value *root = weft_json_root(document);
    check_stairs(root, plan->prediction.peak_bytes);
    const struct weft_json_value *channel = weft_json_member(root, "channel");
    cr_assert_eq(weft_json_count(channel), 8);
    static const char *const held_by[] = {"nothing", "channel order", "memory", "memory",
                                          "memory",  "memory",        "window", "window"};
    const struct weft_json_value *block = weft_json_first(channel);
    for (int i = 0; i < 8; i++, block = weft_json_next(block)) {
        const char *unit, *by, *slot = NULL;
        int64_t missing_bytes = -1;
        cr_assert(weft_json_string(weft_json_member(block, "unit"), &unit));
        cr_assert(weft_json_string(weft_json_member(block, "held_by"), &by));
        cr_assert_str_eq(unit, problem.decisions[i >= 2 && i < 6].name);
        cr_assert_str_eq(by, held_by[i]);
        bool memory = i >= 2 && i < 6;
        cr_assert_eq(weft_json_string(weft_json_member(block, "full_slot"), &slot), memory);
        cr_assert_eq(weft_json_integer(weft_json_member(block, "missing_bytes"), &missing_bytes),
                     memory);
        const struct weft_json_value *holder = weft_json_member(block, "holder");
        cr_assert_eq(holder != NULL, strcmp(by, "channel order") == 0);
        if (holder) check_holder(holder, problem.decisions[0].name, i - 1);
        if (!memory) continue;
        cr_assert_str_eq(slot, i < 4 ? "fill" : "drain");
        cr_assert_eq(missing_bytes, i < 4 ? 50 : 250);
    }
    weft_json_destroy(document);
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}
