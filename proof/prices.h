/* Prices prove a bound: what a share of the lanes' time and what a byte costs in every slot. At
 * any prices the least total of a plan's time and of what it uses, less what there is, cannot
 * exceed the least step time (weak duality), so whoever found the prices is not trusted.
 *
 * They bound the plans of a box, in which blocks, being whole, have narrower windows (proof/box.h).
 * At prices lambda[lane][slot] >= 0 (of lane time; over lanes at most 1 in sum),
 * mu[tier][slot] >= 0 (ns a byte) and nu[row] >= 0 (of whole rows, below) the bound is
 *
 *     sum over slots s but updates of f_s(T_s)  +  agree
 *   - sum over tiers and slots of mu (limit - common), of the tier in the slot
 *   + sum over decisions of the least, over the strategies that the box allows, of
 *         f_s(time that it adds to slot s)  +  sum over holds of bytes x its tier's mu over its
 *         slots
 *       + sum over blocks of its items of the least of
 *             over slots s of its window: lambda_s block_ns + stair_bytes x mu of the tier that
 *             holds it, over the slots held
 *             for a gather also, being waited for: block_ns (lambda of its lane + (1 - L) / n)
 *             where milestones leave it that, and where they say that a block is held in a slot,
 *             it is paid for wherever the block moves
 *
 * and where it is known how many decisions of a group have some strategies, pi[group] whole ns of
 * such a strategy: as much for each decision beyond the most that there are (pi > 0), or for each
 * that there are fewer than the least (pi < 0). Without such knowledge, pi is 0.
 *
 * where L is the sum of lambda over lanes, n how many lanes have items that may block in the slot,
 * and, with c and r the rates of compute and of a lane while both run,
 *
 *     f(T) = T min(1, least over lanes k of (1 - sum over lanes j with c_j >= c_k of r_j lambda_j)
 *                                           / c_k)
 *
 * That any schedule pays this follows from cutting it at the starts of its slots. While the slot
 * computes beside some busy lanes, compute goes at the least of their rates, c_k, and none with a
 * lower one is busy: for each ns of compute 1 / c_k pass, in which lane j moves r_j / c_k at most.
 * While it waits, I ns, a lane moves I at most, and I is at least what blocks it on any one lane,
 * so also the mean of that over the n lanes: what blocks need not be paid by the slot's time, and
 * I (1 - L) + sum of lambda_j (what blocks on j) is no less than what blocks pay above.
 *
 * A whole row is a memory row that knows that blocks and strategies are held whole or not at all.
 * A slot of a tier has so many bytes for blocks where every decision has its strategy of reference,
 *
 *     room = limit - common_s - sum over decisions of what the reference holds there
 *          = k step + rest,   k whole, 0 <= rest < step
 *
 * only k whole steps are of use to blocks that are as large as a step: b = j step + t bytes that
 * are held together, j whole, 0 <= t < step, count j (step - rest) + max(0, t - rest), and all that
 * is held counts at most k (step - rest) (mixed-integer rounding; Nemhauser and Wolsey, 1990). So
 * nu_row prices the count of each block in the slot, and of what each strategy holds there more
 * than its decision's reference, which may be less than nothing; k (step - rest) is what there is.
 * The row holds for all plans, and is best near its reference.
 *
 * A row may rely on groups. Where it is known how many decisions of such a group have its
 * strategies, and the references have as many, some and not all, a decision is not compared with
 * its own reference: of those in the group's strategies, and of those in others, let `usual` be the
 * least that any decision's reference holds. The group then holds what that makes, in sum over
 * decisions of what is usual for their strategies, whoever has which, and each decision counts what
 * it holds more than that. So alike decisions may change places. Of groups that share decisions the
 * first counts.
 *
 * RESULTS.md: planner-ideas/whole-rows. */
#ifndef WEFT_PROOF_PRICES_H
#define WEFT_PROOF_PRICES_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/status.h"
#include "proof/box.h"

/* Prices are integers: multiples of 2^-40. */
enum { WEFT_PRICE_SHIFT = 40 };
#define WEFT_PRICE_ONE (INT64_C(1) << WEFT_PRICE_SHIFT)
/* The sum of a vector's mu and nu is at most this, so that no sum of products leaves 128 bits. */
#define WEFT_PRICE_MOST_SUM (INT64_C(1) << 60)
/* And |pi| at most this, 18 minutes. */
#define WEFT_PRICE_MOST_PI (INT64_C(1) << 40)

/* A memory row in whole steps and its price. */
struct weft_whole_price {
    int32_t row;              /* of all tiers: weft_problem_tier_at + slot */
    int64_t step_bytes;       /* >= 1 */
    int64_t nu;               /* a byte of its count */
    const uint8_t *reference; /* [n_decisions]: a strategy that the decision may have */
    const uint8_t *relies;    /* [n_groups]: 1: on the count of the group; NULL: on none */
};

struct weft_prices {
    int64_t *lambda; /* [n_moving][n_slots] */
    int64_t *mu;     /* [n_tiers][n_slots] */
    int64_t *pi;     /* [n_groups]: whole ns, see above */
    int32_t n_whole;
    struct weft_whole_price *whole; /* in any order, a row as often as wanted */
};

/* What a decision is compared with in a whole row: by whether it has one of the strategies. */
struct weft_usual {
    uint64_t strategies; /* 0: of its own reference, either way */
    int64_t in_bytes, out_bytes;
};

static inline int64_t weft_usual_bytes(const struct weft_usual *usual, int32_t strategy)
{
    return usual->strategies >> strategy & 1u ? usual->in_bytes : usual->out_bytes;
}

/* Compares the decisions of a group, of which `n_known` have its strategies (-1: not known), with
 * what is usual in it, where references have them as often; usual [n_decisions] has what each
 * decision's reference holds, or what is usual in groups before. False when it stays as it is. */
bool weft_usual_of_group(const struct weft_group *group, const uint8_t *reference, int32_t n_known,
                         struct weft_usual *usual);

/* What decisions hold together that hold what is usual for their references. */
int64_t weft_usual_sum(const struct weft_usual *usual, const uint8_t *reference,
                       int32_t n_decisions);

/* A whole row as it counts. */
struct weft_whole_row {
    int32_t row;
    int64_t step_bytes, rest_bytes;
    int64_t room_bytes; /* that all counts together have */
};

/* The whole row of a memory row with `room_bytes`, which may be negative. */
struct weft_whole_row weft_whole_row(int32_t row, int64_t step_bytes, int64_t room_bytes);

/* What bytes that are held together, or are no longer, count in the row. */
static inline int64_t weft_whole_count(const struct weft_whole_row *row, int64_t bytes)
{
    int64_t steps = bytes / row->step_bytes, rest = bytes % row->step_bytes;
    if (rest < 0) {
        rest += row->step_bytes;
        steps--;
    }
    int64_t above = rest - row->rest_bytes;
    return steps * (row->step_bytes - row->rest_bytes) + (above > 0 ? above : 0);
}

/* What prices make of a box: `rest` is paid whatever the strategies, `cost` by strategy of
 * decision, in 2^-40 ns, rounded down. The cost of a strategy that is not in the box is
 * WEFT_PRICED_OUT. */
#define WEFT_PRICED_OUT ((weft_int128)1 << 126)
struct weft_priced {
    weft_int128 rest;
    weft_int128 *cost; /* [n_strategies] */
};

/* Fills *out (its array is the caller's); prices->pi is of the box's groups, of which there may be
 * none. WEFT_E_DATA when prices are out of range; WEFT_E_SYSTEM.
 */
WEFT_MUST_USE enum weft_status weft_prices_apply(const struct weft_box *box,
                                                 const struct weft_prices *prices,
                                                 struct weft_priced *out, struct weft_error *err);

/* The bound in ns of the plans whose decisions have strategies within `allowed` [n_decisions],
 * which is the box's or less, rounded up to a whole number, as step times are; from 0 to
 * WEFT_PROBLEM_MOST, which says that there is none. */
int64_t weft_priced_bound_ns(const struct weft_problem *problem, const struct weft_priced *priced,
                             const uint64_t *allowed);

#endif
