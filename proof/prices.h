/* SPDX-License-Identifier: Apache-2.0 */
/* Prices prove a bound. They are the cost of a share of a lane's time and of a byte, in every slot.
 * Take the least total of a plan's time and of the price of its resources, less the price of the
 * available resources. By weak duality it does not exceed the least step time, at any prices. So
 * any prices prove something.
 *
 * They bound the plans of a box, with narrower windows because blocks are whole (proof/box.h).
 * There are lambda[lane][slot] >= 0 of lane time; kappa[lane][slot] >= 0 of time that the slot
 * waits for blocks on the lane; rho[chain] >= 0 of the time in which a chain of items is under way;
 * mu[tier][slot] >= 0 in ns a byte; and nu[row] >= 0 of whole rows, below. In a slot these add up
 * to at most 1: lambda and kappa of all lanes, R, and rho of the chains that may block it. R is the
 * sum of rho over the chains (struct weft_chain) with the slot among first to last. The bound is
 *
 *     sum over slots s but updates of f_s(T_s)  +  agree
 *   - sum over tiers and slots of mu (limit - common), of the tier in the slot
 *   + sum over decisions of the least, over the strategies that the box allows, of
 *         f_s(time that it adds to slot s)  +  sum over holds of bytes x its tier's mu over its
 *         slots
 *       + sum over its chains of rho ns
 *       + sum over blocks of its items of the least of
 *             over slots s of its window: lambda_s block_ns + stair_bytes x mu of the tier that
 *             holds it, over the slots held
 *             for a gather also, if it blocks: block_ns (lambda + kappa of its lane)
 *
 * Prices state kappa only of slots that several lanes may block (struct weft_waits). A lane that
 * alone may block a slot has all that lambda and rho leave there. A gather may block only if
 * milestones allow it. If milestones state that a block is held in a slot, it pays for that slot
 * wherever it moves.
 *
 * If the box knows how many decisions of a group have some strategies, pi[group], in whole ns of
 * such a strategy, is added. For pi > 0 it is paid for each decision above the most, for pi < 0 for
 * each one below the least. Otherwise pi is 0. With c and r the rates of compute and of a lane
 * while both run,
 *
 *     f(T) = T min(1 - R, least over lanes k of (1 - R - sum over lanes j with c_j >= c_k of
 *                                                r_j lambda_j) / c_k)
 *
 * Every schedule pays at least this. Cut it at the starts of its slots. While the slot computes and
 * some lanes are busy, compute goes at the least of their rates, c_k. No lane with a lower rate is
 * busy. So each ns of compute takes 1 / c_k, and lane j moves r_j / c_k at most. While the slot
 * waits for I ns, a lane moves I at most, so I pays for the sum of lambda_j (time that j moves).
 * Blocks that block the slot are launched at its start and are complete before it computes. So I is
 * at least the blocking time B_j of each lane. The part of I that lambda leaves pays for the sum of
 * kappa_j B_j. A chain is under way in its slots, and while the slot that it blocks waits, for its
 * ns at least. So it takes rho of each of its slots, computing and waiting, and of that wait.
 *
 * A whole row is a memory row that knows that blocks and strategies are held whole or not at all.
 * If every decision has its strategy of reference, a slot of a tier has this room for blocks:
 *
 *     room = limit - common_s - sum over decisions of the reference's bytes there
 *          = k step + rest,   k whole, 0 <= rest < step
 *
 * Blocks of a whole step use only k steps of it. So bytes that are held together, j step + t with j
 * whole and 0 <= t < step, count j (step - rest) + max(0, t - rest). All counts together are at
 * most k (step - rest) (mixed-integer rounding; Nemhauser and Wolsey, 1990). nu_row prices the
 * count of each block in the slot, and of each strategy's bytes above its decision's reference,
 * which may be negative. The row holds for all plans, and is tightest near its reference.
 *
 * A row may rely on groups. It can if the box knows how many decisions of the group have its
 * strategies, and as many references have them, some and not all. Then a decision is not compared
 * with its own reference. `usual` is the least that any reference in the group's strategies holds,
 * and likewise for the others. The group's total is the sum of these usual amounts, for any
 * assignment of members, and each decision counts its bytes above the usual amount. So identical
 * decisions may change places. Of groups that share decisions the first counts.
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
/* The most that a vector's mu and nu add up to, so that sums of products fit into 128 bits. */
#define WEFT_PRICE_MOST_SUM (INT64_C(1) << 60)
/* The largest |pi|: 18 minutes. */
#define WEFT_PRICE_MOST_PI (INT64_C(1) << 40)

/* A memory row in whole steps, with its price. */
struct weft_whole_price {
    int32_t row;              /* index in rows of all tiers: weft_problem_tier_at + slot */
    int64_t step_bytes;       /* >= 1 */
    int64_t nu;               /* price of a byte of its count */
    const uint8_t *reference; /* [n_decisions]: a strategy that the decision may have */
    const uint8_t *relies;    /* [n_groups]: 1: relies on the group's count; NULL: relies on none */
};

/* The price of a slot's wait for blocks on a lane, if several lanes may block the slot. */
struct weft_wait_price {
    int32_t slot, lane;
    int64_t kappa;
};

/* The price of the chain that ends with an item. */
struct weft_chain_price {
    int32_t item;
    int64_t rho;
};

struct weft_prices {
    int64_t *lambda; /* [n_moving][n_slots] */
    int32_t n_waits;
    struct weft_wait_price *waits; /* by slot, then lane; others are 0 */
    int32_t n_chains;
    struct weft_chain_price *chains; /* by item; others are 0 */
    int64_t *mu;                     /* [n_tiers][n_slots] */
    int64_t *pi;                     /* [n_groups]: whole ns */
    int32_t n_whole;
    struct weft_whole_price *whole; /* in any order; a row may come several times */
};

/* The bytes that a decision is compared with in a whole row, by whether it has one of the
 * strategies. */
struct weft_usual {
    uint64_t strategies; /* 0: compared with its own reference either way */
    int64_t in_bytes, out_bytes;
};

static inline int64_t weft_usual_bytes(const struct weft_usual *usual, int32_t strategy)
{
    return usual->strategies >> strategy & 1u ? usual->in_bytes : usual->out_bytes;
}

/* Compares the decisions of a group with the usual bytes of its references, if as many references
 * as `n_known` have the group's strategies (-1: not known). usual [n_decisions] starts with the
 * bytes of each decision's reference, or the usual bytes of earlier groups. False if it stays
 * unchanged. */
bool weft_usual_of_group(const struct weft_group *group, const uint8_t *reference, int32_t n_known,
                         struct weft_usual *usual);

/* The bytes of all decisions together, each with the usual bytes of its reference. */
int64_t weft_usual_sum(const struct weft_usual *usual, const uint8_t *reference,
                       int32_t n_decisions);

/* A whole row, prepared for counting. */
struct weft_whole_row {
    int32_t row;
    int64_t step_bytes, rest_bytes;
    int64_t room_bytes; /* room for all counts together */
};

/* The whole row of a memory row with `room_bytes`, which may be negative. */
struct weft_whole_row weft_whole_row(int32_t row, int64_t step_bytes, int64_t room_bytes);

/* The count of bytes that are held together; negative bytes are released. */
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

/* The prices of a box in 2^-40 ns, rounded down: `rest` for any strategies, and `cost` by strategy
 * of decision. A strategy outside the box costs WEFT_PRICED_OUT. */
#define WEFT_PRICED_OUT ((weft_int128)1 << 126)
struct weft_priced {
    weft_int128 rest;
    weft_int128 *cost; /* [n_strategies] */
};

/* Fills *out, with the caller's array. prices->pi is of the box's groups, which may be none.
 * WEFT_E_DATA when prices are out of range; WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_prices_apply(const struct weft_box *box,
                                                 const struct weft_prices *prices,
                                                 struct weft_priced *out, struct weft_error *err);

/* The bound in ns of the plans with strategies within `allowed` [n_decisions], the box's or fewer,
 * rounded up because step times are whole. From 0 to WEFT_PROBLEM_MOST; the latter means that there
 * is no such plan. */
int64_t weft_priced_bound_ns(const struct weft_problem *problem, const struct weft_priced *priced,
                             const uint64_t *allowed);

#endif
