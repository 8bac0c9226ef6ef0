/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that choose recomputation, and leave the rest to FSDP2. RESULTS.md: rivals/recompute. */
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/recompute/levels.h"

/* Shards as FSDP2 does: values[0] units ahead; values[1]: all units stay gathered. */
static enum weft_status place_fsdp2(struct weft_draft *draft, const int64_t *values,
                                    struct weft_error *err)
{
    WEFT_TRY(values[1] ? weft_ahead_keep(draft, err) : weft_ahead_choose(draft, err));
    weft_ahead_place(draft, (int32_t)values[0]);
    return WEFT_OK;
}

enum weft_status weft_rule_recompute_all(struct weft_draft *draft, const int64_t *values,
                                         struct weft_error *err)
{
    WEFT_TRY(weft_levels_all(draft, WEFT_RECOMPUTE_WHOLE, err));
    return place_fsdp2(draft, values, err);
}

enum weft_status weft_rule_recompute_selective(struct weft_draft *draft, const int64_t *values,
                                               struct weft_error *err)
{
    WEFT_TRY(weft_levels_all(draft, WEFT_RECOMPUTE_SELECTIVE, err));
    return place_fsdp2(draft, values, err);
}

/* Checkmate chooses for compute alone, with the memory of every moment. */
enum weft_status weft_rule_checkmate_budget(struct weft_draft *draft, const int64_t *values,
                                            struct weft_error *err)
{
    static const int64_t published[] = {1, 0};
    const struct weft_levels_rule rule = {place_fsdp2, published,
                                          draft->problem->tiers[0].limit_bytes, false};
    (void)values;
    return weft_levels_choose(draft, &rule, err);
}

enum weft_status weft_rule_auto_perf_maxing(struct weft_draft *draft, const int64_t *values,
                                            struct weft_error *err)
{
    const struct weft_levels_rule rule = {place_fsdp2, values, draft->problem->tiers[0].limit_bytes,
                                          true};
    return weft_levels_choose(draft, &rule, err);
}

/* All layers are units; their gathers are counted apart. */
static enum weft_status place_nothing(struct weft_draft *draft, const int64_t *values,
                                      struct weft_error *err)
{
    (void)values;
    WEFT_TRY(weft_ahead_choose(draft, err));
    weft_draft_take(draft);
    return WEFT_OK;
}

/* Bytes of the largest unit's parameters. */
static int64_t largest_unit(const struct weft_problem *problem)
{
    int64_t most = 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        const int64_t bytes = item->n_blocks * item->block_bytes;
        if (item->kind == (int32_t)WEFT_ALL_GATHER && bytes > most) most = bytes;
    }
    return most;
}

/* PyTorch's sac_ilp chooses levels with two units gathered at a time, and fsdp_milp then chooses
 * the units. fsdp_milp counts the root's gradients in every slot. If its count exceeds the limit,
 * the levels get a smaller budget, in steps of a 32nd. */
enum weft_status weft_rule_sac_ilp(struct weft_draft *draft, const int64_t *values,
                                   struct weft_error *err)
{
    const int64_t limit_bytes = draft->problem->tiers[0].limit_bytes;
    struct weft_levels_rule rule = {place_nothing, values,
                                    limit_bytes - 2 * largest_unit(draft->problem), false};
    enum weft_status status = WEFT_E_INFEASIBLE;
    for (int step = 0; step < 32 && status == WEFT_E_INFEASIBLE; step++) {
        WEFT_TRY(weft_levels_choose(draft, &rule, err));
        status = weft_rule_fsdp_milp(draft, values, err);
        rule.limit_bytes -= limit_bytes / 32;
    }
    return status;
}
