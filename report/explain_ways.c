/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of strategies: the device bytes that another strategy of a decision frees in the dearest
 * slot, and the time of compute and lanes that it adds to a step. Bytes are those of just-in-time
 * gathers, and nothing overlaps. */
#include <string.h>

#include "base/units.h"
#include "problem/names.h"
#include "report/explain.h"

struct price {
    int64_t freed_bytes, added_ns; /* next to the plan's strategy; may be negative */
};

/* The best exchange in one direction: bytes freed per added time, or time saved per byte. */
struct exchange {
    int32_t decision, strategy; /* decision -1: none */
    struct price price;
};

/* Time of compute and of all lanes under a strategy. */
static int64_t time_of(const struct weft_problem *problem, int32_t decision, int32_t strategy)
{
    const struct weft_problem_strategy *of = &problem->decisions[decision].strategies[strategy];
    int64_t ns = 0;
    for (int32_t i = 0; i < of->n_times; i++)
        ns += of->times[i].ns;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        if (item->item.decision == decision && (item->item.strategies >> strategy & 1) != 0)
            ns += item->item.n_blocks * item->block_ns;
    }
    return ns;
}

static struct price price_strategy(const struct weft_plan *plan, int32_t slot, int32_t decision,
                                   int32_t strategy)
{
    const struct weft_problem *problem = plan->problem;
    const int32_t chosen = plan->strategies[decision];
    const struct weft_problem_strategy *of = problem->decisions[decision].strategies;
    return (struct price){
        weft_strategy_held(&of[chosen], 0, slot) - weft_strategy_held(&of[strategy], 0, slot),
        time_of(problem, decision, strategy) - time_of(problem, decision, chosen),
    };
}

/* True if two decisions have the same strategies at the same prices. */
static bool same_prices(const struct weft_plan *plan, int32_t slot, int32_t a, int32_t b)
{
    const struct weft_problem_decision *x = &plan->problem->decisions[a];
    const struct weft_problem_decision *y = &plan->problem->decisions[b];
    if (x->is_of_layer != y->is_of_layer || x->n_strategies != y->n_strategies ||
        plan->strategies[a] != plan->strategies[b])
        return false;
    for (int32_t k = 0; k < x->n_strategies; k++) {
        const struct price p = price_strategy(plan, slot, a, k);
        const struct price q = price_strategy(plan, slot, b, k);
        if (strcmp(x->strategies[k].name, y->strategies[k].name) != 0 ||
            p.freed_bytes != q.freed_bytes || p.added_ns != q.added_ns)
            return false;
    }
    return true;
}

/* Whether `price` is a better exchange for less memory, or for more. */
static bool is_better(const struct price *price, const struct exchange *than, bool less)
{
    if (less ? price->freed_bytes <= 0 : price->freed_bytes >= 0 || price->added_ns >= 0)
        return false;
    if (than->decision < 0) return true;
    const double bytes = (double)price->freed_bytes, ns = (double)price->added_ns;
    const double its_bytes = (double)than->price.freed_bytes, its_ns = (double)than->price.added_ns;
    /* Bytes for no time, or for less than none, come first. */
    if (less && (ns <= 0 || its_ns <= 0)) return ns <= 0 && (its_ns > 0 || bytes > its_bytes);
    return less ? bytes * its_ns > its_bytes * ns : ns * its_bytes > its_ns * bytes;
}

static struct exchange find_next(const struct weft_plan *plan, int32_t slot, bool less)
{
    struct exchange best = {.decision = -1};
    for (int32_t d = 0; d < plan->problem->n_decisions; d++) {
        for (int32_t k = 0; k < plan->problem->decisions[d].n_strategies; k++) {
            const struct price price = price_strategy(plan, slot, d, k);
            if (is_better(&price, &best, less)) best = (struct exchange){d, k, price};
        }
    }
    return best;
}

/* "-1.20 ms": weft_units_show_ns has no sign. */
static const char *show_change(int64_t change, bool is_time, char out[WEFT_UNITS_TEXT_BYTES + 1])
{
    out[0] = change < 0 ? '-' : '+';
    if (is_time)
        weft_units_show_ns(change < 0 ? -change : change, out + 1);
    else
        weft_units_show_bytes(change < 0 ? -change : change, out + 1);
    return change == 0 ? "0" : out;
}

enum { DECISION, STRATEGY, CHOSEN, FREED, ADDED, RATE, N_COLUMNS };

/* Adds a row for each strategy of a decision. Text has `names` for the decision; NULL: text has
 * none of the rows. */
static void add_strategies(const struct weft_plan *plan, int32_t slot, int32_t d, const char *names,
                           struct weft_rows *rows)
{
    const struct weft_problem_decision *decision = &plan->problem->decisions[d];
    for (int32_t k = 0; k < decision->n_strategies; k++) {
        const struct price price = price_strategy(plan, slot, d, k);
        const bool chosen = k == plan->strategies[d];
        char text[WEFT_UNITS_TEXT_BYTES + 1];
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, DECISION, decision->name);
        weft_rows_word(rows, STRATEGY, decision->strategies[k].name);
        weft_rows_integer(rows, CHOSEN, chosen);
        weft_rows_integer(rows, FREED, price.freed_bytes);
        weft_rows_integer(rows, ADDED, price.added_ns);
        if (names == NULL) {
            weft_rows_hide(rows);
            continue;
        }
        weft_rows_show(rows, DECISION, WEFT_PAINT_NONE, "%s", k == 0 ? names : "");
        weft_rows_show(rows, STRATEGY, WEFT_PAINT_NONE, "%s%s", decision->strategies[k].name,
                       chosen ? " *" : "");
        weft_rows_show(rows, FREED, WEFT_PAINT_NONE, "%s",
                       chosen ? "-" : show_change(price.freed_bytes, false, text));
        weft_rows_show(rows, ADDED, WEFT_PAINT_NONE, "%s",
                       chosen ? "-" : show_change(price.added_ns, true, text));
        if (price.freed_bytes > 0 && price.added_ns > 0)
            weft_rows_integer(rows, RATE,
                              (int64_t)((double)price.freed_bytes * 1e6 / (double)price.added_ns));
    }
}

static void say_next(const struct weft_plan *plan, int32_t slot, bool less, struct weft_answer *out)
{
    const struct exchange next = find_next(plan, slot, less);
    char name[WEFT_NAMES_BYTES], bytes[WEFT_UNITS_TEXT_BYTES + 1], ns[WEFT_UNITS_TEXT_BYTES + 1];
    if (next.decision < 0) return;
    weft_answer_say(out, NULL, "  next with %s memory: %s %s, which frees %s for %s\n",
                    less ? "less" : "more",
                    weft_problem_show_name(plan->problem, next.decision, name),
                    plan->problem->decisions[next.decision].strategies[next.strategy].name,
                    show_change(next.price.freed_bytes, false, bytes),
                    show_change(next.price.added_ns, true, ns));
}

void weft_explain_ways(const struct weft_plan *plan, int32_t most_rows, struct weft_answer *out)
{
    static const struct weft_column columns[N_COLUMNS] = {
        [DECISION] = {"decision", "decision", 'l', WEFT_FIGURE_WORD, 0},
        [STRATEGY] = {"strategy", "strategy", 'l', WEFT_FIGURE_WORD, 0},
        [CHOSEN] = {"chosen", NULL, 'l', WEFT_FIGURE_BOOL, 0},
        [FREED] = {"freed_bytes", "frees", 'r', WEFT_FIGURE_BYTES, 0},
        [ADDED] = {"added_ns", "adds", 'r', WEFT_FIGURE_NS, 0},
        [RATE] = {NULL, "a ms frees", 'r', WEFT_FIGURE_BYTES, 0}};
    const struct weft_problem *problem = plan->problem;
    const int32_t slot = weft_explain_dearest(plan), n = problem->n_decisions;
    struct weft_rows *rows = weft_answer_table(out, "strategies", columns, N_COLUMNS);
    int32_t n_rows = 0, n_hidden = 0;
    if (rows != NULL) rows->is_flat = true;
    weft_rows_title(rows,
                    "the price of each strategy: bytes in slot %s, time of compute and lanes "
                    "without overlap",
                    problem->slot_names[slot]);
    for (int32_t first = 0, last; first < n; first = last + 1) {
        const int32_t n_strategies = problem->decisions[first].n_strategies;
        struct weft_text names;
        last = first;
        while (last + 1 < n && same_prices(plan, slot, first, last + 1))
            last++;
        if (n_strategies < 2) continue;
        const bool hidden = n_rows + n_strategies > most_rows && n_rows > 0;
        weft_text_init(&names);
        if (problem->decisions[first].is_of_layer) weft_text_add(&names, WEFT_SAVED_PREFIX);
        weft_problem_show_names(problem, first, last, &names);
        for (int32_t d = first; d <= last; d++)
            add_strategies(plan, slot, d, d > first || hidden ? NULL : weft_text_chars(&names),
                           rows);
        weft_text_finish(&names);
        n_hidden += hidden ? n_strategies : 0;
        n_rows += n_strategies;
    }
    weft_rows_more(rows, n_hidden);
    if (n_rows == 0) return;
    say_next(plan, slot, true, out);
    say_next(plan, slot, false, out);
    weft_answer_say(out, NULL, "\n");
}
