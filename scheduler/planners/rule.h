/* SPDX-License-Identifier: Apache-2.0 */
/* A published rule decides, going through the step, when each block is launched and which slot
 * waits for it. A draft puts such a rule into slots. It chooses policies, and then places every
 * block of every item that they need, in any order. The channel order is by launch slot, in one
 * slot reductions before gathers, and otherwise as placed. Nothing is substituted: a draft that
 * does not fit is refused.
 *
 * A product frees a gradient when its reduction happens to be complete. Here that is a deadline. A
 * reduction that its rule does not wait for is due in the slot in which it is complete, and later
 * if that raises no peak. If memory is too small for that, it is due as late as the limit allows.
 *
 * RESULTS.md: rivals/grid. */
#ifndef WEFT_SCHEDULER_PLANNERS_RULE_H
#define WEFT_SCHEDULER_PLANNERS_RULE_H

#include "scheduler/digest/planner.h"

struct weft_draft_move;

struct weft_draft {
    const char *planner;
    const struct weft_problem *problem; /* borrowed */
    struct weft_candidate *out;         /* borrowed: its strategies, and its moves at the end */
    struct weft_pool pool;
    /* Items that the policies need (weft_draft_take). AllGathers are sorted by the slot of their
     * use, then by unit. Reductions are sorted as gradients get ready: by first slot, then from the
     * last unit to the first. */
    int32_t *gathers, *reductions;
    int32_t n_gathers, n_reductions;
    int32_t *uses; /* slots in which a use of some unit begins, increasing */
    int32_t n_uses;
    bool streams;         /* the rule has placed the items that move state */
    bool fetches;         /* it has placed copies of parameters up for gathers */
    bool updates_on_host; /* it has placed updates on the host, and copies of parameters up */
    bool is_filled;       /* weft_draft_fill has placed the rest */
    bool *root; /* by unit: the model's first or last layer with parameters reads it. FSDP leaves
                   such units to the root module and does not wrap them */
    int32_t *levels; /* by decision: the strategy that a layer gets, its first if no rule sets it */
    bool recomputes; /* the rule chooses levels of layers */
    int32_t *micro;  /* by slot: the number of turns from backward to forward before it */
    int64_t *rows;   /* [n_tiers][n_slots]: scratch */
    struct weft_draft_move *moves;
    int32_t n_moves;
};

/* Makes a draft without moves. The caller finishes it, even after a failure. WEFT_E_SYSTEM without
 * memory. */
WEFT_MUST_USE enum weft_status weft_draft_init(struct weft_draft *draft, const char *planner,
                                               const struct weft_problem *problem,
                                               struct weft_candidate *out, struct weft_error *err);
void weft_draft_finish(struct weft_draft *draft);

/* Finds the strategy with the first of these policies that the unit may have. The list ends with
 * WEFT_POLICY_COUNT. A layer has its first strategy here, so that its saved activations stay if
 * they may. WEFT_E_INFEASIBLE, with the reason, if the unit may have none. */
WEFT_MUST_USE enum weft_status weft_rule_policy(const struct weft_problem *problem,
                                                const char *planner, int32_t unit,
                                                const enum weft_policy *policies, int32_t *out,
                                                struct weft_error *err);
/* Gives that strategy to the unit, or its strategy in `levels` to the layer. */
WEFT_MUST_USE enum weft_status weft_draft_choose(struct weft_draft *draft, int32_t unit,
                                                 const enum weft_policy *policies,
                                                 struct weft_error *err);
/* The same for all units. */
WEFT_MUST_USE enum weft_status weft_draft_choose_all(struct weft_draft *draft,
                                                     const enum weft_policy *policies,
                                                     struct weft_error *err);
/* Gives the unit zero1. A frozen unit has no state to shard: it gets dp, or sdp if it may not have
 * dp. */
WEFT_MUST_USE enum weft_status weft_draft_choose_resident(struct weft_draft *draft, int32_t unit,
                                                          struct weft_error *err);
/* fsdp, or sdp for a unit that fsdp would never release. */
extern const enum weft_policy weft_draft_sharded[];

/* The policy that the draft gives a unit. */
static inline enum weft_policy weft_draft_policy(const struct weft_draft *draft, int32_t unit)
{
    return weft_problem_chosen(draft->problem, draft->out->strategies, unit)->policy;
}

/* Lists the items that the policies need, and removes all moves. */
void weft_draft_take(struct weft_draft *draft);

/* Places the next `n_blocks` of an item, clamped to its window. A gather is launched in `slot`; in
 * the slot of its use it blocks. A reduction is launched in `launch` and is complete by the end of
 * `slot`. If nothing waits for it, it is due as described above, at the latest at the end of its
 * window. */
enum { WEFT_DRAFT_NOT_WAITED_FOR = -1 };
void weft_draft_gather(struct weft_draft *draft, int32_t item, int32_t slot, int32_t n_blocks);
void weft_draft_reduce(struct weft_draft *draft, int32_t item, int32_t launch, int32_t slot,
                       int32_t n_blocks);
/* The same for all blocks of an item. */
void weft_draft_gather_all(struct weft_draft *draft, int32_t item, int32_t slot);
void weft_draft_reduce_all(struct weft_draft *draft, int32_t item, int32_t launch, int32_t slot);

/* Places every reduction in the slot in which its gradient is ready. Nothing waits for them. */
void weft_draft_reduce_at_once(struct weft_draft *draft);
/* Places the gathers of units with one of these policies (bit p) after the last update of such a
 * unit. Their first use waits for all of them. Such units gather once a step. */
void weft_draft_gather_after_updates(struct weft_draft *draft, uint32_t policies);

const struct weft_item *weft_draft_item(const struct weft_draft *draft, int32_t item);
/* The slot of the `depth`-th use before the use in `slot`, but not before its forward or backward
 * begins. -1 if that is not before `slot`. */
int32_t weft_draft_use_before(const struct weft_draft *draft, int32_t slot, int32_t depth);
/* The first slot of the forward or backward that this slot is in. */
int32_t weft_draft_begin(const struct weft_draft *draft, int32_t slot);
/* The last slot that holds the parameters of this gather; the period's last one if none releases
 * them. */
int32_t weft_draft_release(const struct weft_draft *draft, const struct weft_item *item);

/* The item that copies the gather's parameters up after an update on the host; -1: none. */
int32_t weft_draft_copy_up(const struct weft_draft *draft, int32_t gather);

/* Elements of one block. */
int64_t weft_draft_block_elements(const struct weft_draft *draft, int32_t item);

/* Fills draft->rows for the policies and moves as placed. Reductions that nothing waits for count
 * as complete in their launch slot. Returns the device's largest row, and sets *peak_slot, if not
 * NULL, to its slot. */
int64_t weft_draft_peak(struct weft_draft *draft, int32_t *peak_slot);
/* The same for one unit alone: fills rows [n_tiers][n_slots]. */
void weft_draft_unit_rows(const struct weft_draft *draft, int32_t unit, int64_t *rows);

/* WEFT_E_INFEASIBLE if one of the rows [n_tiers][n_slots] exceeds its tier's limit. */
WEFT_MUST_USE enum weft_status weft_rule_check_rows(const struct weft_problem *problem,
                                                    const char *planner, const int64_t *rows,
                                                    struct weft_error *err);

/* Places the items that the rule leaves out, once after each weft_draft_take. Rows of the draft are
 * complete afterwards. */
void weft_draft_fill(struct weft_draft *draft);

/* Does the same, and writes the moves in channel order.
 * WEFT_E_INFEASIBLE if a row exceeds the problem's limit. */
WEFT_MUST_USE enum weft_status weft_draft_end(struct weft_draft *draft, struct weft_error *err);

/* The line a + b * bytes through the block times of a kind of collective. a is the time of the
 * step's agreement, the smallest collective, or of the kind's fastest block if that is less. */
struct weft_draft_line {
    double fixed_ns, ns_per_byte;
};
struct weft_draft_line weft_draft_line_of(const struct weft_problem *problem,
                                          enum weft_collective kind);

/* The values of the wanted setting; without one, of the first; NULL if there are no settings. */
const int64_t *weft_draft_values(const struct weft_schedule_options *options,
                                 const struct weft_setting *settings);

#endif
