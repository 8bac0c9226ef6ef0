/* SPDX-License-Identifier: Apache-2.0 */
/* Fast-LLM's breadth-first gradient accumulation with ZeRO 3. Stages are groups of layers, and two
 * buffers hold the gathered parameters of two stages. A stage is gathered when the stage before it
 * begins. Its gradient has the sum of all micro-steps, and two buffers hold full gradients too. */
#include "scheduler/planners/planners.h"
#include "scheduler/planners/turns/passes.h"

const struct weft_setting weft_breadth_first_settings[] = {
    {"order", {0}}, {"1", {1}},   {"2", {2}},   {"3", {3}},   {"4", {4}},   {"6", {6}},
    {"8", {8}},     {"12", {12}}, {"16", {16}}, {"24", {24}}, {"32", {32}}, {NULL, {0}},
};

enum weft_status weft_rule_breadth_first(struct weft_draft *draft, const int64_t *values,
                                         struct weft_error *err)
{
    struct weft_passes passes;
    (void)values; /* the period has groups of so many layers */
    WEFT_TRY(weft_passes_list(draft, &passes, err));
    WEFT_TRY(weft_passes_choose(draft, &passes, err));
    weft_draft_take(draft);
    weft_passes_gather(draft, &passes);
    weft_passes_reduce(draft, &passes);
    return WEFT_OK;
}
