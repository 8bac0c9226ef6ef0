/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/way_shares.h"

#include <string.h>

/* The bytes that a layer saves. Under any strategy it holds them in its forward. */
static int64_t saved_bytes(const struct weft_problem *problem,
                           const struct weft_problem_decision *decision)
{
    int64_t most = 0;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const int64_t held = weft_strategy_held(&decision->strategies[0], 0, s);
        if (held > most) most = held;
    }
    return most;
}

static void scale_shares(double *shares, int n, double whole)
{
    for (int i = 0; i < n && whole > 0; i++)
        shares[i] /= whole;
}

struct weft_way_shares weft_way_shares_of(const struct weft_plan *plan)
{
    const struct weft_problem *problem = plan->problem;
    struct weft_way_shares out = {0};
    double elements = 0, bytes = 0;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_decision *decision = &problem->decisions[d];
        const struct weft_problem_strategy *of = weft_problem_chosen(problem, plan->strategies, d);
        if (decision->is_of_layer) {
            const double own = (double)saved_bytes(problem, decision);
            const struct weft_layer_choice choice = {of->location, of->recompute,
                                                     WEFT_LOCATION_DEVICE};
            out.saved[weft_layer_choice_number(choice)] += own;
            bytes += own;
        } else {
            out.policies[of->policy] += (double)decision->elements;
            out.keeps[weft_strategy_way(of).keep] += (double)decision->elements;
            elements += (double)decision->elements;
        }
    }
    scale_shares(out.policies, WEFT_POLICY_COUNT, elements);
    scale_shares(out.keeps, WEFT_KEEP_COUNT, elements);
    scale_shares(out.saved, WEFT_SAVED_CHOICES, bytes);
    return out;
}

struct weft_way_share weft_way_share_at(const struct weft_way_shares *shares, int number)
{
    struct weft_layer_choice choice;
    if (number < WEFT_POLICY_COUNT)
        return (struct weft_way_share){"units", weft_policy_name((enum weft_policy)number),
                                       shares->policies[number]};
    number -= WEFT_POLICY_COUNT;
    if (number < WEFT_KEEP_COUNT)
        return (struct weft_way_share){"state", weft_keep_names[number], shares->keeps[number]};
    number -= WEFT_KEEP_COUNT;
    if (!weft_layer_choice_at(number, &choice)) return (struct weft_way_share){.group = "saved"};
    return (struct weft_way_share){"saved", weft_layer_choice_name(choice), shares->saved[number]};
}
