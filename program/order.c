/* SPDX-License-Identifier: Apache-2.0 */
#include "program/order.h"

#include <stdlib.h>

void weft_order_finish(struct weft_order *order)
{
    free(order->positions);
    free(order->lanes);
    free(order->over);
    *order = (struct weft_order){0};
}

/* Adds `before`, and everything complete before it, to `over`. */
static void join_order(const struct weft_order *order, int32_t before, int32_t *over)
{
    const int32_t *earlier = weft_order_over(order, before);
    for (int32_t lane = 0; lane < order->n_lanes; lane++)
        if (earlier[lane] > over[lane]) over[lane] = earlier[lane];
    int32_t lane = order->lanes[before % order->n_instructions];
    int32_t position = weft_order_position(order, before) + 1;
    if (position > over[lane]) over[lane] = position;
}

static void find_order(struct weft_order *order, const struct weft_program *program)
{
    int32_t last[WEFT_MOST_LANES];
    for (int32_t lane = 0; lane < order->n_lanes; lane++)
        last[lane] = -1;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        order->lanes[i] = program->instructions[i].lane;
        order->positions[i] = order->on_lane[order->lanes[i]]++;
    }
    for (int32_t period = 0; period < WEFT_ORDER_PERIODS; period++) {
        int32_t base = period * program->n_instructions;
        for (int32_t i = 0; i < program->n_instructions; i++) {
            const struct weft_instruction *at = &program->instructions[i];
            int32_t *over = weft_order_over(order, base + i), ahead = last[order->lanes[i]];
            if (ahead >= 0) join_order(order, ahead, over);
            for (int32_t d = 0; d < at->n_dependencies; d++)
                join_order(order, base + program->dependencies[at->first_dependency + d], over);
            last[order->lanes[i]] = base + i;
        }
    }
}

enum weft_status weft_order_init(struct weft_order *order, const struct weft_program *program,
                                 struct weft_error *err)
{
    size_t n = (size_t)program->n_instructions + 1;
    *order = (struct weft_order){
        .n_instructions = program->n_instructions,
        .positions = calloc(n, sizeof *order->positions),
        .lanes = calloc(n, sizeof *order->lanes),
        .n_lanes = program->n_lanes,
        .over = calloc(WEFT_ORDER_PERIODS * n * (size_t)program->n_lanes, sizeof *order->over),
    };
    if (order->positions == NULL || order->lanes == NULL || order->over == NULL) {
        weft_order_finish(order);
        return weft_fail_memory(err, "happens-before order");
    }
    find_order(order, program);
    return WEFT_OK;
}
