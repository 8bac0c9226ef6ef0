/* To explain a plan is to say, for each unit, what it holds and moves, and for each of its blocks
 * what keeps it from standing elsewhere. */
#ifndef WEFT_REPORT_EXPLAIN_H
#define WEFT_REPORT_EXPLAIN_H

#include "base/json/json.h"
#include "base/text.h"
#include "plan/plan.h"
#include "program/trace.h"

/* What keeps a gather from being launched one slot earlier, or a reduction from being due one slot
 * later. */
enum weft_hold_back {
    WEFT_HELD_BY_WINDOW, /* the window ends there: update or release before it, use or norm after */
    WEFT_HELD_BY_MEMORY, /* one slot further a row would exceed the limit */
    WEFT_HELD_BY_ORDER,  /* a block ahead is launched no earlier, or one behind is due no later */
    WEFT_HELD_BY_BUSY, /* when it is launched the channel moves another: it would not run before */
    WEFT_HELD_BY_CHOICE, /* none of these: it gains nothing there, or its pages did not fit */
    WEFT_HELD_COUNT
};

struct weft_hold_reason {
    enum weft_hold_back by;
    int32_t slot;          /* that the step would add to its flight; -1 for WINDOW */
    int64_t missing_bytes; /* MEMORY: by how much that slot's row would exceed the limit; else 0 */
    int32_t holder;        /* ORDER, BUSY: the other block's placement; else -1 */
};

/* Explains placement `index` of a plan in normal form; `rows` are weft_plan_rows, `times`
 * simulated. The first of the enum that applies: a block that neither its window nor memory holds
 * may still be held by the order. */
struct weft_hold_reason weft_explain_placement(const struct weft_plan *plan, const int64_t *rows,
                                               const struct weft_plan_times *times, int32_t index);

/* How units were cut: where the size of a block comes from, how many units were fused from small
 * neighbours, how many split. Nothing when the problem does not say. */
void weft_explain_blocks(const struct weft_plan *plan, struct weft_text *out);

/* The price of a byte in the prices of the plan's certificate: what the bound loses with a GiB
 * more, and the slot in which bytes are dearest. Nothing without a certificate. */
void weft_explain_price(const struct weft_plan *plan, struct weft_text *out);

/* The slot in which the certificate's bytes are dearest; without prices the one that holds most. */
int32_t weft_explain_dearest(const struct weft_plan *plan);

/* The largest block of the plan whose flight may cross the slot: what a stair is wide there; of all
 * blocks when none may, 0 when none holds bytes. */
int64_t weft_explain_stair_bytes(const struct weft_plan *plan, int32_t slot);

/* What the plan was made to again, without pages, with rows of a block less than its largest, as
 * many, and a block more: the price of memory at this plan, not in the relaxation. A step of -1:
 * none was found. Nothing when no block holds bytes. */
enum { WEFT_STAIRS = 3 };
void weft_explain_stairs(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                         struct weft_text *out);

/* How units were cut, the price of memory, and tables: what each unit costs a step, what is away
 * (away.h), and the channel in order, equal neighbours folded. Tables of more rows than `most_rows`
 * end in how many more there are. */
enum { WEFT_EXPLAIN_ROWS = 20 };
void weft_explain(const struct weft_plan *plan, int32_t most_rows, struct weft_text *out);
/* One JSON object. "price": of memory in the relaxation, with the slots that have one, and
 * "stairs", as weft_explain_price and weft_explain_stairs say them. "channel": an object a block;
 * one that memory holds has "full_slot" and "missing_bytes", one that another holds that one as
 * "holder". */
void weft_explain_json(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                       struct weft_json_writer *writer);
/* The members "price" and "stairs" of an open object. */
void weft_explain_price_json(const struct weft_plan *plan, const int64_t step_ns[WEFT_STAIRS],
                             struct weft_json_writer *writer);

#endif
