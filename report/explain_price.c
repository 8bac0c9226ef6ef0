#include <math.h>

#include "base/units.h"
#include "report/explain.h"

/* Of the leaves' prices those in which memory is cheapest: with one leaf the relaxation's. Leaves
 * of policies that cannot fit have prices out of all proportion. */
static const struct weft_prices *cheapest_prices(const struct weft_plan *plan)
{
    const struct weft_certificate *certificate = &plan->certificate;
    const struct weft_prices *best = NULL;
    double least = INFINITY;
    for (int32_t i = 0; i < certificate->n_prices; i++) {
        double sum = 0;
        for (int32_t s = 0; s < plan->problem->n_slots; s++)
            sum += (double)certificate->prices[i].mu[s];
        if (sum >= least) continue;
        least = sum;
        best = &certificate->prices[i];
    }
    return best;
}

void weft_explain_price(const struct weft_plan *plan, struct weft_text *out)
{
    const struct weft_prices *prices = cheapest_prices(plan);
    char ns[WEFT_UNITS_TEXT_BYTES];
    if (prices == NULL) return;
    double sum = 0;
    int32_t dearest = 0, n = 0;
    for (int32_t s = 0; s < plan->problem->n_slots; s++) {
        sum += (double)prices->mu[s];
        n += prices->mu[s] > 0;
        if (prices->mu[s] > prices->mu[dearest]) dearest = s;
    }
    double gib_ns = ldexp(sum, 30 - WEFT_PRICE_SHIFT);
    if (n == 0) {
        weft_text_add(out,
                      "the price of memory: none; in the relaxation more of it gains nothing\n\n");
        return;
    }
    weft_text_addf(out,
                   "the price of memory: in the relaxation a GiB more or less changes the step by "
                   "%s; %d slots are priced, %s most\n\n",
                   weft_units_show_ns((int64_t)fmin(gib_ns, 9e15), ns), n,
                   plan->problem->slot_names[dearest]);
}
