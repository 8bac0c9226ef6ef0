/* SPDX-License-Identifier: Apache-2.0 */
/* A search of orders proves that no plan takes less than a time. It tries every order of blocks on
 * the lanes, moment by moment, on the lanes of the simulator. Prices see sums of time alone. A
 * search also sees that a lane moves one block at a time, and that a slot waits.
 *
 * A moment is the start of a slot or the end of a block. Each plan begins its blocks at moments: a
 * block begins once its lane is free, its launch slot has begun and the block that it follows is
 * complete. So in each moment an idle lane begins a block whose window allows it, or rests. A rest
 * lasts until the next slot, or until a block is complete that some block of the lane follows,
 * because nothing else lets a plan's next block begin. After its compute a slot ends at once, or
 * with a later block that the next slot waits for: one that releases, or one that the next slot
 * uses.
 *
 * Bytes are the least of a plan's: a gather holds them from the slot in which its block begins, and
 * a reduction until the slot in which it is complete. Of two equal states the later one is no
 * better. Launches and deadlines have no other rule here, and targets that launch in order have
 * none. So the search tries all plans, and maybe more.
 *
 * A state is dropped if its least step is too long. Lower bounds of the starts of slots follow from
 * compute, from the blocks due by each slot on each lane, which begin one after another in their
 * windows, and from chains.
 *
 * RESULTS.md: planner-ideas/orders. */
#ifndef WEFT_PROOF_ORDERS_H
#define WEFT_PROOF_ORDERS_H

#include "proof/prices.h"

/* The most steps of all searches of a certificate, and the most units of their work. */
enum { WEFT_ORDERS_MOST_STEPS = 1 << 21 };
#define WEFT_ORDERS_MOST_UNITS (INT64_C(1) << 32)

enum weft_orders_end {
    WEFT_ORDERS_NONE,  /* no plan takes less */
    WEFT_ORDERS_FOUND, /* an order takes less */
    WEFT_ORDERS_SPENT  /* the steps ran out */
};

/* The move of one block. A block that acquires begins in `slot`, and `launch` is the same. One that
 * releases begins in `launch` and is complete in `slot`. */
struct weft_order_move {
    int32_t item, slot, launch;
};

/* The order found last, owned by the search. Moves are in the order of each lane. */
struct weft_order_found {
    int64_t step_ns;
    const int32_t *strategies; /* [n_decisions] */
    const struct weft_order_move *moves;
    int32_t n_moves;
};

struct weft_orders;

/* False if the problem has too many slots and blocks for a search, or too long chains. So it is
 * with averages over nodes in one step of several, where lanes slow compute: a step's time is then
 * not convex in those of blocks, and a search with shares of averages would prove nothing of the
 * mean. */
bool weft_orders_can(const struct weft_problem *problem);

/* Units of work of a step (base/work.h), and the steps of a certificate of the problem. */
int64_t weft_orders_step_units(const struct weft_problem *problem);
int64_t weft_orders_most_steps(const struct weft_problem *problem);

/* Makes a search of a problem for which weft_orders_can is true. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_orders_create(const struct weft_problem *problem,
                                                  struct weft_orders **out, struct weft_error *err);
void weft_orders_destroy(struct weft_orders *orders); /* accepts NULL */

/* Searches plans with these strategies for a step below `below_ns`. Takes its steps from *steps. */
enum weft_orders_end weft_orders_try(struct weft_orders *orders, const int32_t *strategies,
                                     int64_t below_ns, int64_t *steps);

/* Searches all plans of a box. Prices that were applied to the box rule out strategies with a bound
 * of `below_ns` (at least 1) or more; the search tries the others. */
enum weft_orders_end weft_orders_try_box(struct weft_orders *orders, const struct weft_box *box,
                                         const struct weft_priced *priced, int64_t below_ns,
                                         int64_t *steps);

const struct weft_order_found *weft_orders_found(const struct weft_orders *orders);

#endif
