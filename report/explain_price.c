/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/units.h"
#include "report/explain.h"

/* The price of a device byte in a slot: by parts, and by whole steps. The latter is the highest
 * cost of the bytes of a full step. */
static double price_of(const struct weft_prices *prices, int32_t slot)
{
    double price = (double)prices->mu[slot];
    for (int32_t k = 0; k < prices->n_whole; k++)
        if (prices->whole[k].row == slot) price += (double)prices->whole[k].nu;
    return price;
}

/* The prices of the leaf with the cheapest memory; with one leaf, the relaxation's. Leaves with
 * policies that cannot fit have excessive prices. */
static const struct weft_prices *cheapest_prices(const struct weft_plan *plan)
{
    const struct weft_certificate *certificate = &plan->certificate;
    const struct weft_prices *best = NULL;
    double least = INFINITY;
    for (int32_t i = 0; i < certificate->n_prices; i++) {
        double sum = 0;
        for (int32_t s = 0; s < plan->problem->n_slots; s++)
            sum += price_of(&certificate->prices[i], s);
        if (sum >= least) continue;
        least = sum;
        best = &certificate->prices[i];
    }
    return best;
}

static double gib_ns(double price)
{
    return ldexp(price, 30 - WEFT_PRICE_SHIFT);
}

static void say_price(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_prices *prices = cheapest_prices(plan);
    char ns[WEFT_UNITS_TEXT_BYTES];
    if (prices == NULL) return;
    double sum = 0;
    int32_t dearest = 0, n = 0;
    for (int32_t s = 0; s < plan->problem->n_slots; s++) {
        double price = price_of(prices, s);
        sum += price;
        n += price > 0;
        if (price > price_of(prices, dearest)) dearest = s;
    }
    double sum_ns = gib_ns(sum);
    if (n == 0) {
        weft_answer_say(
            out, NULL, "the price of memory: none; in the relaxation more of it gains nothing\n\n");
        return;
    }
    weft_answer_say(out, NULL,
                    "the price of memory: in the relaxation a GiB more or less changes the step by "
                    "%s; %d slots are priced, %s most\n\n",
                    weft_units_show_ns((int64_t)fmin(sum_ns, 9e15), ns), n,
                    plan->problem->slot_names[dearest]);
}

int32_t weft_explain_dearest(const struct weft_plan *plan)
{
    const struct weft_prices *prices = cheapest_prices(plan);
    int32_t dearest = plan->prediction.peak_slot;
    for (int32_t s = 0; prices != NULL && s < plan->problem->n_slots; s++)
        if (price_of(prices, s) > price_of(prices, dearest)) dearest = s;
    return dearest;
}

int64_t weft_explain_stair_bytes(const struct weft_plan *plan, int32_t slot)
{
    int64_t here = 0, anywhere = 0;
    for (int32_t i = 0; i < plan->problem->n_items; i++) {
        const struct weft_item *item = &plan->problem->items[i].item;
        if (!weft_problem_needs(plan->problem, plan->strategies, i)) continue;
        if (item->stair_bytes > anywhere) anywhere = item->stair_bytes;
        if (item->first <= slot && slot <= item->last && item->stair_bytes > here)
            here = item->stair_bytes;
    }
    return here > 0 ? here : anywhere;
}

/* Adds the steps of plans with other memory. */
static void add_stairs(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                       struct weft_answer *out)
{
    static const char *const names[WEFT_STAIRS] = {"a block less", "as planned", "a block more"};
    enum { NAME, WITHIN, STEP, CHANGE, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [NAME] = {NULL, "memory", 'l', WEFT_FIGURE_WORD, 0},
        [WITHIN] = {"rows_within_bytes", "rows within", 'r', WEFT_FIGURE_BYTES, 0},
        [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
        [CHANGE] = {NULL, "changes it by", 'r', WEFT_FIGURE_WORD, 0}};
    const int32_t slot = weft_explain_dearest(plan);
    const int64_t block_bytes = weft_explain_stair_bytes(plan, slot);
    char a[WEFT_UNITS_TEXT_BYTES];
    struct weft_rows *rows = weft_answer_table(out, "stairs", columns, N_COLUMNS);
    if (block_bytes == 0) return;
    weft_rows_title(rows, "a block more or less, of %s at slot %s; planned again without pages",
                    weft_units_show_bytes(block_bytes, a), plan->problem->slot_names[slot]);
    for (int i = 0; i < WEFT_STAIRS; i++) {
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, NAME, names[i]);
        weft_rows_integer(rows, WITHIN, plan->prediction.peak_bytes + (i - 1) * block_bytes);
        if (step_ns[i] >= 0)
            weft_rows_integer(rows, STEP, step_ns[i]);
        else
            weft_rows_show(rows, STEP, WEFT_PAINT_NONE, "none found");
        if (i != 1 && step_ns[i] >= 0 && step_ns[1] >= 0)
            weft_rows_show(rows, CHANGE, WEFT_PAINT_NONE, "%+.3f %%",
                           100.0 * (double)(step_ns[i] - step_ns[1]) / (double)step_ns[1]);
    }
    weft_answer_say(out, NULL, "\n");
}

static void put_prices(const struct weft_plan *plan, struct weft_answer *out)
{
    const struct weft_prices *prices = cheapest_prices(plan);
    double sum_ns = 0;
    if (prices == NULL) {
        weft_answer_word(out, "price", NULL);
        return;
    }
    weft_answer_open(out, "price");
    weft_answer_open_list(out, "slots");
    for (int32_t s = 0; s < plan->problem->n_slots; s++) {
        const double price = price_of(prices, s);
        if (price <= 0) continue;
        sum_ns += gib_ns(price);
        weft_answer_open(out, NULL);
        weft_answer_word(out, "slot", plan->problem->slot_names[s]);
        weft_answer_real(out, "ns_per_gib", gib_ns(price));
        weft_answer_close(out);
    }
    weft_answer_close_list(out);
    weft_answer_real(out, "ns_per_gib", sum_ns);
    weft_answer_close(out);
}

void weft_explain_price(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                        struct weft_answer *out)
{
    put_prices(plan, out);
    add_stairs(plan, step_ns, out);
    weft_explain_blocks(plan, out);
    say_price(plan, out);
}
