/* A published rule says, going through the step, what is launched when, and what waits for what. A
 * draft is that put into slots: policies first, then every block of every item that they need, in
 * any order; the channel order is by launch, in one slot reductions before gathers, else as placed.
 * Nothing is substituted: what does not fit is refused.
 *
 * A product frees a gradient when its reduction happens to be complete. Here that is a deadline: of
 * a reduction that its rule does not wait for the slot in which it is complete, and later where
 * that raises no peak; where memory is less than that needs, the latest that it allows.
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
    /* Items that the policies need (weft_draft_take): AllGathers by the slot of their use, then
     * unit; reductions as gradients get ready: by first slot, then unit from the last. */
    int32_t *gathers, *reductions;
    int32_t n_gathers, n_reductions;
    int32_t *uses; /* slots in which a use of some unit begins, increasing */
    int32_t n_uses;
    bool streams;       /* what moves state is placed by the rule */
    bool updates_there; /* updates on the host, and copies of parameters up, are */
    bool *root; /* by unit: the model's first or last layer with parameters reads it; in FSDP these
                   belong to the root module, not to one of the layers that are wrapped */
    int32_t *micro; /* by slot: turns from backward to forward before it */
    int64_t *rows;  /* [n_tiers][n_slots]: scratch */
    struct weft_draft_move *moves;
    int32_t n_moves;
};

/* The caller finishes it, also after a failure. */
WEFT_MUST_USE enum weft_status weft_draft_init(struct weft_draft *draft, const char *planner,
                                               const struct weft_problem *problem,
                                               struct weft_candidate *out, struct weft_error *err);
void weft_draft_finish(struct weft_draft *draft);

/* The strategy with the first of these policies that the unit may have; the list ends with
 * WEFT_POLICY_COUNT. A layer gets its first strategy, so that what it saved stays if it may.
 * WEFT_E_INFEASIBLE when it may have none, with the reason. */
WEFT_MUST_USE enum weft_status weft_rule_policy(const struct weft_problem *problem,
                                                const char *planner, int32_t unit,
                                                const enum weft_policy *policies, int32_t *out,
                                                struct weft_error *err);
/* Gives it to the unit. */
WEFT_MUST_USE enum weft_status weft_draft_choose(struct weft_draft *draft, int32_t unit,
                                                 const enum weft_policy *policies,
                                                 struct weft_error *err);
/* The same for all units. */
WEFT_MUST_USE enum weft_status weft_draft_choose_all(struct weft_draft *draft,
                                                     const enum weft_policy *policies,
                                                     struct weft_error *err);
/* zero1; a frozen unit has no state to shard and is dp, or sdp. */
WEFT_MUST_USE enum weft_status weft_draft_choose_resident(struct weft_draft *draft, int32_t unit,
                                                          struct weft_error *err);
/* fsdp, or sdp for a unit that fsdp would never release. */
extern const enum weft_policy weft_draft_sharded[];

/* The policy that the draft gives a unit. */
static inline enum weft_policy weft_draft_policy(const struct weft_draft *draft, int32_t unit)
{
    return weft_problem_chosen(draft->problem, draft->out->strategies, unit)->policy;
}

/* Lists the items that the policies need and forgets the moves. */
void weft_draft_take(struct weft_draft *draft);

/* Places the next `n_blocks` of an item, clamped to its window: a gather at `slot` (the slot of its
 * use: blocking), a reduction launched at `launch` and complete by the end of `slot`, or when
 * memory has it, at the latest at the end of its backward. */
enum { WEFT_DRAFT_NOT_WAITED_FOR = -1 };
void weft_draft_gather(struct weft_draft *draft, int32_t item, int32_t slot, int32_t n_blocks);
void weft_draft_reduce(struct weft_draft *draft, int32_t item, int32_t launch, int32_t slot,
                       int32_t n_blocks);
/* Whole items. */
void weft_draft_gather_all(struct weft_draft *draft, int32_t item, int32_t slot);
void weft_draft_reduce_all(struct weft_draft *draft, int32_t item, int32_t launch, int32_t slot);

/* Every reduction when its gradient is ready, not waited for. */
void weft_draft_reduce_at_once(struct weft_draft *draft);
/* Gathers of units with one of these policies (bit p) behind the last update of such a unit, none
 * used before all are complete. They gather once a step. */
void weft_draft_gather_after_updates(struct weft_draft *draft, uint32_t policies);

const struct weft_item *weft_draft_item(const struct weft_draft *draft, int32_t item);
/* The `depth`-th use before the one in this slot, or the first of its forward or backward when
 * there are not so many; in backward none is before the first backward slot. -1 when it is the
 * first. */
int32_t weft_draft_use_before(const struct weft_draft *draft, int32_t slot, int32_t depth);
/* The last slot that reads what this gather brings. */
int32_t weft_draft_release(const struct weft_draft *draft, const struct weft_item *item);

/* The item that copies up what a gather gathers, where the host has updated it; -1: none does. */
int32_t weft_draft_copy_up(const struct weft_draft *draft, int32_t gather);

/* Elements of one block. */
int64_t weft_draft_block_elements(const struct weft_draft *draft, int32_t item);

/* Fills draft->rows for policies and moves as placed, what is not waited for complete at once. The
 * largest of the device; its slot when `peak_slot` is not NULL. */
int64_t weft_draft_peak(struct weft_draft *draft, int32_t *peak_slot);
/* The same of one unit alone, into rows [n_tiers][n_slots]. */
void weft_draft_unit_rows(const struct weft_draft *draft, int32_t unit, int64_t *rows);

/* WEFT_E_INFEASIBLE when one of the rows [n_tiers][n_slots] exceeds its tier's limit. */
WEFT_MUST_USE enum weft_status weft_rule_check_rows(const struct weft_problem *problem,
                                                    const char *planner, const int64_t *rows,
                                                    struct weft_error *err);

/* Writes the moves in channel order; WEFT_E_INFEASIBLE when a row exceeds the problem's limit. */
WEFT_MUST_USE enum weft_status weft_draft_end(struct weft_draft *draft, struct weft_error *err);

/* The line a + b * bytes through the block times of a kind of collective; a is the time of the
 * smallest collective there is, the sum at the end of the step, or less. */
struct weft_draft_line {
    double fixed_ns, ns_per_byte;
};
struct weft_draft_line weft_draft_line_of(const struct weft_problem *problem,
                                          enum weft_collective kind);

/* The values of the wanted setting; without one, of the first; NULL if there are no settings. */
const int64_t *weft_draft_values(const struct weft_schedule_options *options,
                                 const struct weft_setting *settings);

#endif
