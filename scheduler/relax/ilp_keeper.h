/* Which strategies of a decision the integer program has columns for: those that some other does
 * not dominate. */
#ifndef WEFT_SCHEDULER_RELAX_ILP_KEEPER_H
#define WEFT_SCHEDULER_RELAX_ILP_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/digest/digest.h"

/* The memory row in which the strategy exceeds the limit most even with every other decision at its
 * least there: such a z is 0 in every plan, and the relaxation should know. -1 when there is none.
 */
int32_t weft_ilp_full_row(const struct weft_digest *table, int32_t decision, int32_t strategy);

/* False for a strategy that is nowhere better than another; of two equal ones the first is kept. */
bool weft_ilp_worth_a_column(const struct weft_digest *table, int32_t decision, int32_t strategy);

/* The strategy itself, or one that dominates it and has a column in its place. */
int32_t weft_ilp_keeper(const struct weft_digest *table, int32_t decision, int32_t strategy);

/* True when `strategy` of the decision is nowhere better than `other`: same collectives in windows
 * that are no wider, updates no faster, and no less held in any slot wherever the blocks go. */
bool weft_ilp_dominated(const struct weft_digest *table, int32_t decision, int32_t strategy,
                        int32_t other);

#endif
