#include <math.h>

#include "base/units.h"
#include "report/explain.h"
#include "report/table.h"

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

void weft_explain_price(const struct weft_plan *plan, struct weft_text *out)
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
        weft_text_add(out,
                      "the price of memory: none; in the relaxation more of it gains nothing\n\n");
        return;
    }
    weft_text_addf(out,
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

void weft_explain_stairs(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                         struct weft_text *out)
{
    static const char *const names[WEFT_STAIRS] = {"a block less", "as planned", "a block more"};
    int32_t slot = weft_explain_dearest(plan);
    int64_t block_bytes = weft_explain_stair_bytes(plan, slot);
    char a[WEFT_UNITS_TEXT_BYTES];
    struct weft_table table;
    if (block_bytes == 0) return;
    weft_text_addf(out, "a block more or less, of %s at slot %s; planned again without pages\n",
                   weft_units_show_bytes(block_bytes, a), plan->problem->slot_names[slot]);
    weft_table_init(&table, "lrrr");
    weft_table_cell(&table, "memory");
    weft_table_cell(&table, "rows within");
    weft_table_cell(&table, "step");
    weft_table_cell(&table, "changes it by");
    for (int i = 0; i < WEFT_STAIRS; i++) {
        int64_t rows_bytes = plan->prediction.peak_bytes + (i - 1) * block_bytes;
        weft_table_cell(&table, "%s", names[i]);
        weft_table_cell(&table, "%s", weft_units_show_bytes(rows_bytes, a));
        if (step_ns[i] < 0)
            weft_table_cell(&table, "none found");
        else
            weft_table_cell(&table, "%s", weft_units_show_ns(step_ns[i], a));
        if (i == 1 || step_ns[i] < 0 || step_ns[1] < 0)
            weft_table_cell(&table, "-");
        else
            weft_table_cell(&table, "%+.3f %%",
                            100.0 * (double)(step_ns[i] - step_ns[1]) / (double)step_ns[1]);
    }
    weft_table_render(&table, 2, out);
    weft_table_finish(&table);
    weft_text_add(out, "\n");
}

static void put_prices(const struct weft_plan *plan, struct weft_json_writer *writer)
{
    const struct weft_prices *prices = cheapest_prices(plan);
    double sum_ns = 0;
    weft_json_key(writer, "price");
    if (prices == NULL) {
        weft_json_add_null(writer);
        return;
    }
    weft_json_begin_object(writer);
    weft_json_key(writer, "slots");
    weft_json_begin_array(writer);
    for (int32_t s = 0; s < plan->problem->n_slots; s++) {
        double price = price_of(prices, s);
        if (price <= 0) continue;
        sum_ns += gib_ns(price);
        weft_json_begin_object(writer);
        weft_json_put_string(writer, "slot", plan->problem->slot_names[s]);
        weft_json_put_number(writer, "ns_per_gib", gib_ns(price));
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
    weft_json_put_number(writer, "ns_per_gib", sum_ns);
    weft_json_end_object(writer);
}

void weft_explain_price_json(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                             struct weft_json_writer *writer)
{
    int64_t block_bytes = weft_explain_stair_bytes(plan, weft_explain_dearest(plan));
    put_prices(plan, writer);
    weft_json_key(writer, "stairs");
    weft_json_begin_array(writer);
    for (int i = 0; i < WEFT_STAIRS && block_bytes > 0; i++) {
        weft_json_begin_object(writer);
        weft_json_put_integer(writer, "rows_within_bytes",
                              plan->prediction.peak_bytes + (i - 1) * block_bytes);
        weft_json_key(writer, "step_ns");
        if (step_ns[i] < 0)
            weft_json_add_null(writer);
        else
            weft_json_add_integer(writer, step_ns[i]);
        weft_json_end_object(writer);
    }
    weft_json_end_array(writer);
}
