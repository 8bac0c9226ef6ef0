/* The planning problem as an integer program, in the slot form of the lanes: which strategy each
 * decision has, and how many blocks have been placed by every slot.
 *
 *     z[u,p]   decision u has strategy p; binary, sum over p = 1
 *     A[c,s]   blocks of class c placed in slots <= s; integer, does not decrease
 *     M[c,s]   blocks that are launched (gathers: at least A) or complete (reductions: at most A)
 *              by slot s, whole: what memory is held for. Of items with a class of their own
 *     q[c,s]   blocks of a class of gathers that block in slot s + 1: they hold nothing and cost
 *              their lane time
 *     w[s]     time that the compute stream waits at the end of slot s
 *     x[c,s]   time in which slot s computes at rate c, beside lanes that leave it that
 *     H[t,s]   bytes that the strategies hold of tier t in slot s, chained so that rows stay sparse
 *
 * A class is a set of items whose blocks are interchangeable: alone in it every item has counts of
 * its own; items with equal blocks share counts and go in order of deadline; items whose blocks
 * hold about the same bytes a nanosecond share lane time, where that saves most columns for the
 * bytes that are no longer seen. Every coarser model is a relaxation of the finer one (its rows are
 * sums of theirs), so its LP bound is as valid, and much faster.
 *
 * Times are in units of 2^time_shift ns and sizes in units of 2^bytes_shift bytes: every
 * coefficient is the problem's integer exactly, or rounded to the side that keeps the bound
 * valid. */
#ifndef WEFT_SCHEDULER_RELAX_ILP_H
#define WEFT_SCHEDULER_RELAX_ILP_H

#include "scheduler/digest/digest.h"
#include "scheduler/relax/dual.h"
#include "scheduler/solver/mip.h"

/* Prefix sums of a class's work by first (released) or last (due) slot of its items. */
struct weft_ilp_prefix {
    int32_t n;
    int32_t *slots;    /* [n], increasing */
    int32_t *columns;  /* [n]; -1: one item, written by its strategies' columns */
    int32_t *blocking; /* [n]; of q, by which the column is less than what is due; -1: none */
};

struct weft_ilp_class {
    int32_t n_items;
    int32_t *items;      /* in the problem; gathers by last, reductions by first slot */
    bool gathers;        /* else reductions */
    int32_t lane;        /* of all its items */
    bool counts;         /* A counts blocks; else lane time */
    int32_t tier;        /* that holds all their blocks */
    bool may_block;      /* it has q: only where memory may be short is it of use */
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
    int64_t limit_bytes;             /* the problem's, or what no plan exceeds */
    int time_shift, bytes_shift;
    int32_t *z; /* [n_strategies]; -1: not a choice */
    int32_t n_classes;
    struct weft_ilp_class *classes;
    int32_t *n_blocking; /* [n_slots]: lanes on which items may block it */
    int32_t *wait;       /* [n_slots]; -1: nothing can be on a lane */
    int32_t n_rates;     /* of compute beside lanes, least first; 0 without contention */
    int32_t rates[WEFT_MOST_LANES];
    int32_t *beside;                /* [n_rates][n_slots] of x; -1 as wait */
    int32_t *hold;                  /* [n_tiers][n_slots]; -1 when every plan fits */
    int32_t *load_row, *memory_row; /* [n_moving][n_slots], [n_tiers][n_slots]; -1: none */
    /* Whole rows (proof/prices.h), the last of the program, and their references. */
    int32_t n_whole, most_whole;
    struct weft_whole_row *whole;
    const uint8_t **references;
    const uint8_t **uses;            /* [n_groups] of each: on whose counts it relies */
    int32_t n_groups, group_row;     /* of the first; the others follow */
    const struct weft_group *groups; /* borrowed */
    int32_t fixed;   /* column that is 1: its cost is the time that no choice changes */
    bool all_counts; /* every class counts blocks: solutions say where blocks go */
    struct weft_mip mip;
};

/* With classes as fine as `most_columns` columns of A allow (one class a kind at the coarsest), or
 * a third more where that spares items that are not alike from sharing one. WEFT_E_SYSTEM only;
 * WEFT_E_INTERNAL when the limit is below every plan's. */
WEFT_MUST_USE enum weft_status weft_ilp_create(const struct weft_digest *table,
                                               int32_t most_columns, struct weft_ilp **out,
                                               struct weft_error *err);
void weft_ilp_destroy(struct weft_ilp *ilp); /* accepts NULL */

/* Adds a row for every group, before there are whole rows: how many decisions have its strategies,
 * which have no other strategy left out for them than their own. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_ilp_set_groups(struct weft_ilp *ilp,
                                                   const struct weft_group *groups,
                                                   int32_t n_groups, struct weft_error *err);

/* The program's point x [n_columns] of strategies and moves. False when one of the strategies was
 * left out of the program (see weft_ilp_dominated). */
bool weft_ilp_point(const struct weft_ilp *ilp, const int32_t *strategies,
                    const struct weft_move *moves, int32_t n_moves, double *x);

/* Adds the whole rows that a point x of the relaxation exceeds, at most one a memory row and
 * reference: that of the step which it exceeds most, of all sizes of blocks and of strategies in
 * it. References are the leanest strategies, and x's own of each decision's share. *n_added is how
 * many there were to add; 0 also when every plan fits. */
WEFT_MUST_USE enum weft_status weft_ilp_add_whole(struct weft_ilp *ilp,
                                                  const struct weft_dual *dual, const double *x,
                                                  int32_t *n_added, struct weft_error *err);

/* The prices that multipliers of the rows are: of lane time, those of its rows; of bytes, those
 * of the memory rows and of the holds' upper bounds; of whole rows, theirs. */
WEFT_MUST_USE enum weft_status weft_ilp_prices(const struct weft_ilp *ilp, const double *row_duals,
                                               struct weft_dual *dual, struct weft_error *err);

/* Leaves to every decision only the strategies of a box, to the blocks of items with a class of
 * their own only their spans, and of the whole rows those that rely on what is known of groups;
 * which the dual is told. */
void weft_ilp_restrict(struct weft_ilp *ilp, const struct weft_box *box, struct weft_dual *dual);

/* Takes a part of the time that slots compute from the lanes, whose rows then have less room; 0
 * gives it back. Where compute contends, or strategies choose its time, all is left to them. */
void weft_ilp_press(struct weft_ilp *ilp, double part);

/* The time of which a lane is taken a part in the slot. */
int64_t weft_ilp_pressed_ns(const struct weft_ilp *ilp, int32_t lane, int32_t slot);

/* The count that a point x of the relaxation is most undecided about; false when it is of none. */
bool weft_ilp_count(const struct weft_ilp *ilp, const struct weft_dual *dual, const double *x,
                    struct weft_count *out);

/* The milestone that a point x of the relaxation is most undecided about. Returns what it takes of
 * memory in part, at the dual's prices in ns, and times `worth` [n_items]; 0 when it takes none. */
double weft_ilp_milestone(const struct weft_ilp *ilp, const struct weft_dual *dual,
                          const double *worth, const double *x, struct weft_milestone *out);

/* A milestone that a point is undecided about, and what deciding is worth, in ns. */
struct weft_doubt {
    struct weft_milestone milestone;
    struct weft_milestone next; /* to be asked where it is reached; n_blocks 0: nothing */
    double value;
};

/* What a point gains by interrupting blocks. */
enum weft_ilp_gain {
    WEFT_ILP_DEARER_TIME, /* of two slots the one whose time is dearer has more of it */
    /* Time that would be nobody's: gathers go through reductions, or reductions through gathers.
     * Among their own kind all orders that windows allow are as good. */
    WEFT_ILP_SPARE_TIME
};

/* Where a point of the relaxation within a box takes most for granted that a lane may interrupt
 * a block, or move two at once: milestones of blocks that have begun or ended, of which the box
 * does not know, at most one a slot and `most`, the most valuable first. Their value is what that
 * gains at the dual's prices, times `worth` [n_slots] of its slot, and more than 1. Returns how
 * many there are. Only items with a class of their own are looked at. */
int32_t weft_ilp_order(const struct weft_ilp *ilp, const struct weft_dual *dual,
                       const struct weft_box *box, enum weft_ilp_gain gain, const double *worth,
                       const double *x, int32_t most, struct weft_doubt *out);

/* The strategies of a point: for every decision the one with the greatest z. */
void weft_ilp_strategies(const struct weft_ilp *ilp, const double *x, int32_t *strategies);

/* Orders of the blocks placed in one slot. */
enum weft_ilp_order {
    WEFT_ILP_REDUCE_FIRST,
    WEFT_ILP_DUE_FIRST, /* gathers due in the next slot, reductions, other gathers */
    WEFT_ILP_GATHER_FIRST,
    WEFT_ILP_ORDER_COUNT
};
/* The moves of a point with all_counts. False when its counts, rounded, are no placement. */
bool weft_ilp_moves(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                    enum weft_ilp_order order, struct weft_move *moves, int32_t *n_moves);

/* What a point of the relaxation says of when to launch, for list scheduling of the strategies (see
 * weft_list_rule): launch [n_blocks], a gather's block not before `part` (in 0 to 1) of it is;
 * order [n_blocks], reductions by the slot in which that part of them has moved; and late_bytes
 * [n_slots], what reductions released before the slot hold in it. first_block is
 * weft_list_first_blocks. */
void weft_ilp_guide(const struct weft_ilp *ilp, const double *x, const int32_t *strategies,
                    double part, const int32_t *first_block, int32_t *launch, int32_t *order,
                    int64_t *late_bytes);

#endif
