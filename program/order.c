#include "program/order.h"

#include <stdlib.h>

void weft_order_finish(struct weft_order *order)
{
    free(order->positions);
    free(order->lanes);
    free(order->known);
    *order = (struct weft_order){0};
}

/* What is over before `before` starts, and `before` itself, is over before `known` starts. */
static void join(const struct weft_order *order, int32_t before, struct weft_known *known)
{
    for (int s = 0; s < WEFT_LANES; s++) {
        if (order->known[before].over[s] > known->over[s])
            known->over[s] = order->known[before].over[s];
    }
    int lane = order->lanes[before % order->n_instructions];
    int32_t over = weft_order_position(order, before) + 1;
    if (over > known->over[lane]) known->over[lane] = over;
}

static void find(struct weft_order *order, const struct weft_program *program)
{
    int32_t last[WEFT_LANES];
    for (int s = 0; s < WEFT_LANES; s++)
        last[s] = -1;
    for (int32_t i = 0; i < program->n_instructions; i++) {
        order->lanes[i] = weft_program_lane(program, i);
        order->positions[i] = order->on_lane[order->lanes[i]]++;
    }
    for (int32_t period = 0; period < WEFT_ORDER_PERIODS; period++) {
        int32_t base = period * program->n_instructions;
        for (int32_t i = 0; i < program->n_instructions; i++) {
            const struct weft_instruction *at = &program->instructions[i];
            struct weft_known known = {{0}};
            int32_t ahead = last[order->lanes[i]];
            if (ahead >= 0) join(order, ahead, &known);
            for (int32_t d = 0; d < at->n_dependencies; d++) {
                join(order, base + program->dependencies[at->first_dependency + d], &known);
            }
            order->known[base + i] = known;
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
        .known = calloc(WEFT_ORDER_PERIODS * n, sizeof *order->known),
    };
    if (order->positions == NULL || order->lanes == NULL || order->known == NULL) {
        weft_order_finish(order);
        return weft_fail_memory(err, "happens-before order");
    }
    find(order, program);
    return WEFT_OK;
}
