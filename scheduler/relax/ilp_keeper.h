/* SPDX-License-Identifier: Apache-2.0 */
/* Keepers: the integer program has columns only for strategies of a decision that no other strategy
 * dominates. */
#ifndef WEFT_SCHEDULER_RELAX_ILP_KEEPER_H
#define WEFT_SCHEDULER_RELAX_ILP_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/digest/digest.h"

/* The memory row in which the strategy exceeds the limit most, with every other decision at its
 * least there; -1 if there is none. Such a z is 0 in every plan, so the relaxation fixes it. */
int32_t weft_ilp_full_row(const struct weft_digest *table, int32_t decision, int32_t strategy);

/* False if the strategy is nowhere better than another one. Of two equal ones the first is kept. */
bool weft_ilp_worth_a_column(const struct weft_digest *table, int32_t decision, int32_t strategy);

/* The strategy itself, or one that dominates it and has a column in its place. */
int32_t weft_ilp_keeper(const struct weft_digest *table, int32_t decision, int32_t strategy);

/* True if `strategy` of the decision is nowhere better than `other`. It has the same collectives in
 * windows no wider, and updates no faster. It holds no less in any slot, for any placement of the
 * blocks. */
bool weft_ilp_dominated(const struct weft_digest *table, int32_t decision, int32_t strategy,
                        int32_t other);

#endif
