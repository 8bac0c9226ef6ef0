/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "problem/decision.h"

int64_t weft_strategy_held(const struct weft_problem_strategy *strategy, int32_t tier, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < strategy->n_holds; i++) {
        const struct weft_hold *hold = &strategy->holds[i];
        const bool within = hold->last < hold->first ? slot >= hold->first || slot <= hold->last
                                                     : slot >= hold->first && slot <= hold->last;
        if (hold->tier == tier && within) bytes += hold->bytes;
    }
    return bytes;
}

int32_t weft_decision_of_kind(const struct weft_problem_decision *decision, int32_t kind)
{
    for (int32_t k = 0; k < decision->n_strategies; k++)
        if (decision->strategies[k].kind == kind) return k;
    return -1;
}

int32_t weft_decision_of_policy(const struct weft_problem_decision *decision,
                                enum weft_policy policy)
{
    for (int32_t k = 0; k < decision->n_strategies; k++)
        if (decision->strategies[k].policy == policy) return k;
    return -1;
}

int32_t weft_decision_of_name(const struct weft_problem_decision *decision, const char *name)
{
    for (int32_t k = 0; k < decision->n_strategies; k++)
        if (strcmp(decision->strategies[k].name, name) == 0) return k;
    return -1;
}

int32_t weft_decision_of_level(const struct weft_problem_decision *decision,
                               enum weft_recompute level)
{
    const struct weft_problem_strategy *of = decision->strategies;
    for (int32_t k = 0; k < decision->n_strategies && decision->is_of_layer; k++)
        if (of[k].recompute == level && of[k].input == of[0].input &&
            (of[k].location == of[0].location || level == WEFT_RECOMPUTE_WHOLE))
            return k;
    return -1;
}

int32_t weft_decision_deepest(const struct weft_problem_decision *decision)
{
    for (int level = WEFT_RECOMPUTE_COUNT - 1; level > 0; level--) {
        const int32_t found = weft_decision_of_level(decision, (enum weft_recompute)level);
        if (found >= 0) return found;
    }
    return 0;
}

uint64_t weft_decision_policies(const struct weft_problem_decision *decision, uint32_t policies)
{
    uint64_t strategies = 0;
    for (int32_t k = 0; k < decision->n_strategies; k++)
        strategies |= (uint64_t)(policies >> decision->strategies[k].policy & 1u) << k;
    return strategies;
}

void weft_strategies_write(const struct weft_problem_decision *decision, uint64_t strategies,
                           struct weft_json_writer *writer)
{
    weft_json_key(writer, "strategies");
    weft_json_begin_array(writer);
    for (int32_t k = 0; k < decision->n_strategies; k++)
        if (strategies >> k & 1u) weft_json_add_string(writer, decision->strategies[k].name);
    weft_json_end_array(writer);
}

enum weft_status weft_strategies_read(const struct weft_problem_decision *decision,
                                      const struct weft_json_value *object, const char *where,
                                      uint64_t *out, struct weft_error *err)
{
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(object, where, "strategies", WEFT_JSON_ARRAY, &array, err));
    uint64_t strategies = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it)) {
        const char *name = "";
        int32_t k = weft_json_string(it, &name) ? weft_decision_of_name(decision, name) : -1;
        if (k < 0)
            return weft_fail(err, WEFT_E_DATA, "%s: \"%.64s\" is no strategy of %s", where, name,
                             decision->name);
        strategies |= UINT64_C(1) << k;
    }
    if (strategies == 0)
        return weft_fail(err, WEFT_E_DATA, "%s: strategies names none of %s", where,
                         decision->name);
    *out = strategies;
    return WEFT_OK;
}
