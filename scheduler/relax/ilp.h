/* SPDX-License-Identifier: Apache-2.0 */
/* The planning problem as an integer program, in the slot form of the lanes: the strategy of each
 * decision, and the number of blocks placed by each slot. Only its relaxation is solved, without
 * the integrality that is noted here.
 *
 *     z[u,p]   decision u has strategy p; binary, sum over p = 1
 *     A[c,s]   blocks of class c placed in slots <= s; integer, does not decrease
 *     M[c,s]   blocks that hold memory by slot s: launched ones of gathers (at least A), complete
 *              ones of reductions (at most A). Only for items with a class of their own
 *     q[c,s]   blocks of a class of gathers that block in slot s + 1: they hold nothing and cost
 *              their lane time
 *     w[s]     time that the compute stream waits at the end of slot s. Waits for blocks that block
 *              the slot are in it if several lanes may block it, and added to it otherwise
 *     x[c,s]   time in which slot s computes at rate c, next to the lanes that cause it
 *     t[s]     time of slots up to s, without the compute that no strategy changes. Only if chains
 * of items may take longer than their slots compute H[t,s]   bytes that the strategies hold of tier
 * t in slot s, chained so that rows stay sparse
 *
 * A class is a set of items with interchangeable blocks. An item alone in its class has counts of
 * its own. Items with equal blocks share counts and go in order of deadline. Items with about the
 * same bytes a nanosecond in their blocks share lane time, if that saves most columns for the bytes
 * that are lost. The rows of a coarser model are sums of the finer one's rows. So it is a
 * relaxation of the finer one, its LP bound is as valid, and it is much faster.
 *
 * Times are in units of 2^time_shift ns and sizes in units of 2^bytes_shift bytes: every
 * coefficient is the problem's integer exactly, or rounded to the side that keeps the bound
 * valid. */
#ifndef WEFT_SCHEDULER_RELAX_ILP_H
#define WEFT_SCHEDULER_RELAX_ILP_H

#include "problem/waits.h"
#include "scheduler/digest/digest.h"
#include "scheduler/relax/dual.h"
#include "scheduler/solver/lp.h"

/* Prefix sums of a class's work by first (released) or last (due) slot of its items. */
struct weft_ilp_prefix {
    int32_t n;
    int32_t *slots;    /* [n], increasing */
    int32_t *columns;  /* [n]; -1: one item, written by its strategies' columns */
    int32_t *blocking; /* [n]; of q, which the column leaves out of the due blocks; -1: none */
};

struct weft_ilp_class {
    int32_t n_items;
    int32_t *items;      /* in the problem; gathers by last, reductions by first slot */
    bool gathers;        /* false: reductions */
    int32_t lane;        /* of all its items */
    bool counts;         /* A counts blocks; false: lane time */
    int32_t tier;        /* that holds all their blocks */
    bool may_block;      /* it has q, which is of use only if memory may be short */
    int32_t first, last; /* A exists for slots first .. last - 1; at last it is the total */
    int32_t column;      /* of A[first] */
    int32_t held;        /* of M[first]; that of A where M is A */
    double unit_time;    /* lane time of one unit of A */
    double unit_bytes;   /* held by one unit of A */
    double most;         /* no plan has more */
    struct weft_ilp_prefix released, due;
};

struct weft_ilp {
    struct weft_pool pool;
    const struct weft_digest *table; /* borrowed */
    const int32_t *chosen;           /* [n_decisions], borrowed: the only strategies; NULL: all */
    int64_t limit_bytes;             /* the problem's, or the most that a plan takes */
    int time_shift, bytes_shift;
    int32_t *z; /* [n_strategies]; -1: not a choice */
    int32_t n_classes;
    struct weft_ilp_class *classes;
    int32_t *wait;     /* [n_slots]; -1: nothing can be on a lane, or block it */
    int32_t *wait_row; /* [waits.n]: the slot waits for blocks that block it; -1: none */
    struct weft_waits waits;
    int32_t *chain_row;   /* [n_items]: slots last as long as the chain that ends so; -1: none */
    int32_t *lasted;      /* [n_slots] of t; -1: no chain covers it */
    int32_t *first_timed; /* [n_slots + 1]: index in `timed` */
    int32_t *timed;       /* decisions that add time to each slot; one, but in a coarse problem */
    int32_t n_rates;      /* of compute next to busy lanes, least first; 0 without contention */
    int32_t rates[WEFT_MOST_LANES];
    int32_t *beside;                /* [n_rates][n_slots] of x; -1: the same */
    int32_t *hold;                  /* [n_tiers][n_slots]; -1: every plan fits */
    int32_t *load_row, *memory_row; /* [n_moving][n_slots], [n_tiers][n_slots]; -1: none */
    /* Whole rows (proof/prices.h), the last of the program, and their references. */
    int32_t n_whole, most_whole;
    struct weft_whole_row *whole;
    const uint8_t **references;
    const uint8_t **uses;            /* [n_groups] of each: groups with a count that it relies on */
    int32_t n_groups, group_row;     /* of the first; the others follow */
    const struct weft_group *groups; /* borrowed */
    int32_t fixed; /* column that is 1: its cost is the time that no choice changes */
    struct weft_lp lp;
};

/* Makes classes as fine as `most_columns` columns of A allow, at the coarsest one for each kind. A
 * third more columns are allowed if this keeps unlike items from sharing a class. WEFT_E_SYSTEM, or
 * WEFT_E_INTERNAL if no plan meets the limit. */
WEFT_MUST_USE enum weft_status weft_ilp_create(const struct weft_digest *table,
                                               int32_t most_columns, struct weft_ilp **out,
                                               struct weft_error *err);
/* The same with these strategies alone, [n_decisions], which it borrows. Blocks of a chain keep
 * their order, where their items have classes of their own. */
WEFT_MUST_USE enum weft_status weft_ilp_create_for(const struct weft_digest *table,
                                                   const int32_t *strategies, int32_t most_columns,
                                                   struct weft_ilp **out, struct weft_error *err);
void weft_ilp_destroy(struct weft_ilp *ilp); /* accepts NULL */

/* Keeps this many bytes of each tier's limit free; 0 restores the limits. */
void weft_ilp_keep_free(struct weft_ilp *ilp, int64_t bytes);

/* Adds a row for each group, which counts the decisions with its strategies. Call it before whole
 * rows are added. A group's strategies include all that its keeper stands for. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_ilp_set_groups(struct weft_ilp *ilp,
                                                   const struct weft_group *groups,
                                                   int32_t n_groups, struct weft_error *err);

/* Adds the whole rows that a point x of the relaxation exceeds: for each memory row and reference
 * the step, of all sizes of blocks and strategies, that x exceeds most. References are the leanest
 * strategies and the greatest shares of x. *n_added: their number; 0 also if every plan fits. */
WEFT_MUST_USE enum weft_status weft_ilp_add_whole(struct weft_ilp *ilp,
                                                  const struct weft_dual *dual, const double *x,
                                                  int32_t *n_added, struct weft_error *err);

/* Turns multipliers of the rows into prices. Lane time gets those of its rows, bytes those of
 * memory rows and of the holds' upper bounds, whole rows their own. */
WEFT_MUST_USE enum weft_status weft_ilp_prices(const struct weft_ilp *ilp, const double *row_duals,
                                               struct weft_dual *dual, struct weft_error *err);

/* Restricts the program to a box: strategies of decisions, spans of items with a class of their
 * own, and whole rows that rely on known counts alone. The dual learns the box too. */
void weft_ilp_restrict(struct weft_ilp *ilp, const struct weft_box *box, struct weft_dual *dual);

/* Takes this part of the slots' compute time from the rows of lanes; 0 restores it. Slots that
 * contend, or with a time that strategies choose, keep all of it. */
void weft_ilp_press(struct weft_ilp *ilp, double part);

/* The compute time of the slot that pressure can take from the lane. */
int64_t weft_ilp_pressed_ns(const struct weft_ilp *ilp, int32_t lane, int32_t slot);

/* The count that a point x of the relaxation is most undecided about; false: none. */
bool weft_ilp_count(const struct weft_ilp *ilp, const struct weft_dual *dual, const double *x,
                    struct weft_count *out);

/* The milestone that a point x of the relaxation is most undecided about. Returns the price in ns
 * of the memory that partial blocks take there, times `worth` [n_items]; 0: none is taken. */
double weft_ilp_milestone(const struct weft_ilp *ilp, const struct weft_dual *dual,
                          const double *worth, const double *x, struct weft_milestone *out);

/* A milestone that a point is undecided about. */
struct weft_doubt {
    struct weft_milestone milestone;
    struct weft_milestone next; /* to divide by if that one is reached; n_blocks 0: none */
    double value;               /* of deciding it, in ns */
};

/* The gain of a point that interrupts blocks. */
enum weft_ilp_gain {
    WEFT_ILP_DEARER_TIME, /* more time in the slot with the dearer time */
    /* Time that would be idle: gathers interrupt reductions, or reductions gathers. Among items of
     * one kind every order within the windows is as good. */
    WEFT_ILP_SPARE_TIME
};

/* Finds blocks that a point of the relaxation interrupts, or moves two at once, which no lane does.
 * Each gives a milestone, begun or ended, that the box does not decide: at most one for each slot
 * and `most` in all, the most valuable first. The value is the gain at the dual's prices times
 * `worth` [n_slots], and above 1. Returns their number. Items that share a class are left out. */
int32_t weft_ilp_order(const struct weft_ilp *ilp, const struct weft_dual *dual,
                       const struct weft_box *box, enum weft_ilp_gain gain, const double *worth,
                       const double *x, int32_t most, struct weft_doubt *out);

/* The strategies of a point: the one with the greatest z for each decision. */
void weft_ilp_strategies(const struct weft_ilp *ilp, const double *x, int32_t *strategies);

/* A block that a point of the relaxation moves, with moments in slots: 2.5 is the middle of slot 2.
 */
struct weft_ilp_moved {
    double begin, middle, end;
    int32_t item, nth;
    int32_t due; /* the last slot of its window */
};

/* Rounds a point of the relaxation to moves in lane order (plan/plan.h). Blocks of a lane go in
 * the order of the middles of their movement, and no block goes before its predecessor in a chain.
 * A gather is launched when its movement begins, and a reduction is complete when it ends. Rows may
 * exceed the limit, since blocks are whole. `moved` is scratch, [n_blocks], and `first`, [n_items].
 * Returns the number of moves; -1 if a chain delays a block beyond its window. */
int32_t weft_ilp_round(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                       struct weft_ilp_moved *moved, int32_t *first, struct weft_move *moves);

/* Reads launches from a point of the relaxation, for list scheduling of the strategies (see
 * weft_list_rule). first_block is weft_list_first_blocks.
 *
 *  launch [n_blocks]      slot of a gather's block by which `part` (0 to 1) of it has moved
 *  order [n_blocks]       the same slot of a reduction's block
 *  late_bytes [n_slots]   bytes in the slot of reductions released before it */
void weft_ilp_guide(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                    double part, const int32_t *first_block, int32_t *launch, int32_t *order,
                    int64_t *late_bytes);

#endif
