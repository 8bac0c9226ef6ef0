/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/target.h"

const struct weft_target *weft_problem_target(const struct weft_problem *problem)
{
    return &weft_targets[problem->target];
}

void weft_problem_hooks(const struct weft_problem *problem, bool *hooks)
{
    const bool in_order = weft_problem_target(problem)->in_order;
    for (int32_t s = 0; s < problem->n_slots; s++)
        hooks[s] = !in_order || problem->slots[s].kind == WEFT_SLOT_FILL;
    for (int32_t i = 0; i < problem->n_items && in_order; i++)
        if (problem->items[i].item.acquires) hooks[problem->items[i].item.last + 1] = true;
    /* A unit that ends forward keeps its parameters, and no item of it is used in backward. */
    for (int32_t s = 1; s < problem->n_slots && in_order; s++)
        if (problem->slots[s].kind == WEFT_SLOT_BACKWARD &&
            problem->slots[s - 1].kind == WEFT_SLOT_FORWARD && hooks[s - 1])
            hooks[s] = true;
    /* The root's list, which FILL has for the first micro-step. */
    for (int32_t s = 0; s < problem->n_slots && in_order; s++)
        hooks[s] |= problem->slots[s].kind == WEFT_SLOT_FORWARD && problem->slots[s].index == 0 &&
                    problem->slots[s].micro > 0;
}

bool weft_problem_must_block(const struct weft_problem *problem, const struct weft_item *item)
{
    if (!item->acquires || !weft_problem_target(problem)->in_order) return false;
    const struct weft_slot launch = problem->slots[item->last],
                           use = problem->slots[item->last + 1];
    return launch.micro < use.micro ||
           (launch.kind == WEFT_SLOT_FORWARD && use.kind == WEFT_SLOT_BACKWARD);
}
