/* SPDX-License-Identifier: Apache-2.0 */
/* Happens-before of a program's instructions over three periods. Few lanes run, each in order. So
 * one number per lane tells which of its instructions are complete before another starts. That
 * makes the order exact and linear to compute. Private to program/. */
#ifndef WEFT_PROGRAM_ORDER_H
#define WEFT_PROGRAM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "program/program.h"

enum { WEFT_ORDER_PERIODS = 3 };

/* An instruction of any period is index + period * n_instructions. */
struct weft_order {
    int32_t n_instructions; /* of one period */
    int32_t n_lanes;
    int32_t on_lane[WEFT_MOST_LANES]; /* of one period */
    int32_t *positions;               /* by instruction of one period: place on its lane */
    int32_t *lanes;                   /* by instruction of one period */
    int32_t *over; /* by instruction of all periods, [n_lanes]: instructions of each lane complete
                      before it */
};

/* Dependencies must be on earlier instructions. The caller frees the order with
 * weft_order_finish. */
WEFT_MUST_USE enum weft_status weft_order_init(struct weft_order *order,
                                               const struct weft_program *program,
                                               struct weft_error *err);
void weft_order_finish(struct weft_order *order); /* accepts {0} */

/* [n_lanes]: number of instructions of each lane complete before an instruction of any period. */
static inline int32_t *weft_order_over(const struct weft_order *order, int32_t at)
{
    return order->over + (size_t)at * (size_t)order->n_lanes;
}

/* Place of an instruction of any period on its lane. */
static inline int32_t weft_order_position(const struct weft_order *order, int32_t at)
{
    int32_t period = at / order->n_instructions, i = at % order->n_instructions;
    return order->positions[i] + period * order->on_lane[order->lanes[i]];
}

/* Whether `a` is complete before `b` starts, in any timing. */
static inline bool weft_order_before(const struct weft_order *order, int32_t a, int32_t b)
{
    int32_t lane = order->lanes[a % order->n_instructions];
    return weft_order_position(order, a) < weft_order_over(order, b)[lane];
}

#endif
