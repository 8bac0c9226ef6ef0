/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a plan: the bytes and moves of each unit, and for each block the reason for its
 * place. */
#ifndef WEFT_REPORT_EXPLAIN_H
#define WEFT_REPORT_EXPLAIN_H

#include "plan/plan.h"
#include "program/trace.h"
#include "report/answer.h"

/* The reason that a gather is not launched one slot earlier, or a reduction not due one slot
 * later. */
enum weft_hold_back {
    WEFT_HELD_BY_WINDOW, /* its window ends there, at an update, release, use or norm */
    WEFT_HELD_BY_MEMORY, /* one slot further, a row would exceed the limit */
    WEFT_HELD_BY_ORDER,  /* an earlier block has this launch, or a later one this deadline */
    WEFT_HELD_BY_BUSY,   /* the channel still moves another block when it is launched */
    WEFT_HELD_BY_CHOICE, /* no other reason: it gains nothing, or its pages did not fit */
    WEFT_HELD_COUNT
};

struct weft_hold_reason {
    enum weft_hold_back by;
    int32_t slot;          /* that one more slot would add; -1 for WINDOW */
    int64_t missing_bytes; /* MEMORY: excess of that slot's row over the limit; otherwise 0 */
    int32_t holder;        /* ORDER, BUSY: the other block's placement; otherwise -1 */
};

/* Explains placement `index` of a plan in normal form. `rows` are weft_plan_rows, `times`
 * simulated. Returns the first reason of the enum that applies. */
struct weft_hold_reason weft_explain_placement(const struct weft_plan *plan, const int64_t *rows,
                                               const struct weft_plan_times *times, int32_t index);

/* Tells how units were cut: the source of the block size, and how many units were fused from small
 * neighbours or split. Nothing if the problem does not tell. */
void weft_explain_blocks(const struct weft_plan *plan, struct weft_answer *out);

/* The slot with the dearest bytes in the certificate; without prices the fullest slot. */
int32_t weft_explain_dearest(const struct weft_plan *plan);

/* Bytes of the largest block with a flight that may cross the slot, which is the width of a stair
 * there. Without such a block, those of the largest of all; 0 if no block holds bytes. */
int64_t weft_explain_stair_bytes(const struct weft_plan *plan, int32_t slot);

/* Adds "price", the slots with a price in the plan's certificate: the change of the bound per GiB;
 * null without a certificate. "stairs" are the step times of plans without pages, with rows one
 * block smaller, equal, and one block larger. That is the price of memory at this plan, not in the
 * relaxation. A step of -1: no plan was found. Tells how units were cut. */
enum { WEFT_STAIRS = 3 };
void weft_explain_price(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                        struct weft_answer *out);

/* Adds "strategies": for each strategy of each decision the bytes that it frees in the dearest slot
 * and the time that it adds, next to the plan's (marked). Then it names the best exchanges for less
 * and for more memory. In text neighbours with equal prices share rows. */
void weft_explain_ways(const struct weft_plan *plan, int32_t most_rows, struct weft_answer *out);

/* Adds prices of memory and strategies, then tables of each unit's cost per step, of offloaded
 * bytes (offloaded.h), and of the channel in order. "channel" has a row per block: with "full_slot"
 * and "missing_bytes" if memory holds it, with "holder" if another block does. In text equal
 * neighbours are folded, and a table of more than `most_rows` ends with the number of further rows.
 */
enum { WEFT_EXPLAIN_ROWS = 20 };
void weft_explain(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                  int32_t most_rows, struct weft_answer *out);

#endif
