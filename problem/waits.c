/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/waits.h"

struct weft_chain weft_problem_chain(const struct weft_problem *problem, int32_t item)
{
    const struct weft_item *end = &problem->items[item].item;
    struct weft_chain chain = {.last = end->last, .may_block = end->may_block};
    int64_t slowest_ns = 0;
    for (int32_t i = item; i >= 0; i = problem->items[i].after) {
        chain.first = problem->items[i].item.first;
        chain.ns += problem->items[i].block_ns;
        if (problem->items[i].block_ns > slowest_ns) slowest_ns = problem->items[i].block_ns;
    }
    chain.ns += (end->n_blocks - 1) * slowest_ns;
    return chain;
}

enum weft_status weft_problem_waits(const struct weft_problem *problem, struct weft_pool *pool,
                                    struct weft_waits *out, struct weft_error *err)
{
    const size_t n_slots = (size_t)problem->n_slots;
    struct weft_waits waits = {.first = weft_pool_array(pool, n_slots + 1, sizeof *waits.first)};
    uint32_t *blocking = weft_pool_array(pool, n_slots, sizeof *blocking); /* a bit for each lane */
    if (waits.first == NULL || blocking == NULL) return weft_fail_memory(err, "problem");
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *of = &problem->items[i];
        if (of->item.may_block && of->block_ns > 0)
            blocking[of->item.last + 1] |= UINT32_C(1) << of->lane;
    }
    for (size_t s = 0; s < n_slots; s++) {
        bool several = (blocking[s] & (blocking[s] - 1)) != 0;
        for (uint32_t left = several ? blocking[s] : 0; left != 0; left &= left - 1)
            waits.n++;
        waits.first[s + 1] = waits.n;
    }
    waits.lanes = weft_pool_array(pool, (size_t)waits.n, sizeof *waits.lanes);
    if (waits.lanes == NULL) return weft_fail_memory(err, "problem");
    for (size_t s = 0; s < n_slots; s++)
        for (int32_t k = waits.first[s], lane = 0; k < waits.first[s + 1]; lane++)
            if (blocking[s] >> lane & 1u) waits.lanes[k++] = lane;
    *out = waits;
    return WEFT_OK;
}
