/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/first_line.h"

#include "base/units.h"
#include "spec/kind.h"

/* Names the policies of units, most frequent first. */
static void add_policies(const struct weft_plan *plan, struct weft_text *out)
{
    const int32_t n_units = weft_problem_n_units(plan->problem);
    int32_t units[WEFT_POLICY_COUNT + 1] = {0}, n = 0, named = 0;
    for (int32_t u = 0; u < n_units; u++)
        n += units[weft_plan_chosen(plan, u)->policy]++ == 0;
    for (; named < n; named++) {
        int most = 0;
        for (int p = 1; p < WEFT_POLICY_COUNT; p++)
            if (units[p] > units[most]) most = p;
        weft_text_addf(out, "%s%s",
                       named == 0      ? ""
                       : named + 1 < n ? ", "
                                       : " and ",
                       weft_policy_name((enum weft_policy)most));
        units[most] = 0;
    }
    if (n > 1) weft_text_add(out, " by layer");
}

static void add_number(int32_t n, const char *one, const char *several, const char *after,
                       struct weft_text *out)
{
    if (n > 0) weft_text_addf(out, ", %d %s %s", n, n == 1 ? one : several, after);
}

void weft_answer_ways(const struct weft_plan *plan, struct weft_text *out)
{
    int32_t recomputed = 0, saved = 0, states = 0, inputs = 0;
    add_policies(plan, out);
    for (int32_t d = 0; d < plan->problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(plan, d);
        const bool is_moved = chosen->location != WEFT_LOCATION_DEVICE;
        recomputed += chosen->recompute != WEFT_RECOMPUTE_NONE;
        inputs += chosen->input != WEFT_LOCATION_DEVICE;
        saved += plan->problem->decisions[d].is_of_layer && is_moved;
        states += !plan->problem->decisions[d].is_of_layer && is_moved;
    }
    add_number(recomputed, "layer", "layers", "recomputed", out);
    add_number(saved, "layer's activations", "layers' activations", "offloaded", out);
    add_number(inputs, "layer's input", "layers' inputs", "offloaded", out);
    add_number(states, "unit's state", "units' state", "offloaded", out);
}

void weft_answer_step(int64_t step_ns, double tokens_per_s, int64_t bytes, struct weft_text *out)
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    weft_text_add(out, weft_units_show_ns(step_ns, shown));
    if (tokens_per_s > 0)
        weft_text_addf(out, ", %s tokens/s", weft_answer_count(tokens_per_s, shown));
    weft_text_addf(out, ", %s", weft_units_show_bytes(bytes, shown));
}

void weft_answer_bound(int64_t step_ns, struct weft_plan_claim claim, struct weft_text *out)
{
    char page[WEFT_UNITS_TEXT_BYTES];
    if (claim.bound_ns <= 0) return;
    const double percent = 100.0 * ((double)step_ns / (double)claim.bound_ns - 1);
    if (claim.page_bytes > 0)
        weft_text_addf(out, "in pages of %s ", weft_units_show_bytes(claim.page_bytes, page));
    if (percent < 0.005)
        weft_text_add(out, "no plan is faster");
    else
        weft_text_addf(out, "no plan is more than %.2f %% faster", percent);
}

void weft_answer_plan(const struct weft_plan *plan, double tokens_per_s, struct weft_answer *out)
{
    const struct weft_prediction *prediction = &plan->prediction;
    const int64_t bytes =
        prediction->total_bytes > 0 ? prediction->total_bytes : prediction->peak_bytes;
    const struct weft_plan_claim claim = weft_plan_claim_of(plan);
    struct weft_text line;
    weft_text_init(&line);
    weft_answer_ways(plan, &line);
    weft_text_add(&line, ": ");
    weft_answer_step(prediction->step_ns, tokens_per_s, bytes, &line);
    if (claim.bound_ns > 0) weft_text_add(&line, "; ");
    weft_answer_bound(prediction->step_ns, claim, &line);
    weft_answer_say(out, NULL, "%s\n", weft_text_chars(&line));
    weft_text_finish(&line);
}
