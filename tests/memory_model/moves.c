/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of all ways against the groups of their policies. Ranks in nodes carry out the collectives
 * of a step: a slice is a set of ranks with a part in its sum, or it is new parameters. */
#include "memory_model/moves.h"

#include <criterion/criterion.h>
#include <string.h>

enum { PER_NODE = 2, NODES = 3, RANKS = PER_NODE * NODES, ALL_PARTS = (1 << RANKS) - 1 };

/* By rank and slice. A node's slice of a place is NODES slices, back to back. */
struct buffers {
    int of[WEFT_BUFFER_KIND_COUNT][RANKS][RANKS];
};

static bool share_group(enum weft_rank_group group, int a, int b)
{
    if (group == WEFT_GROUP_NODE) return a / PER_NODE == b / PER_NODE;
    return group != WEFT_GROUP_ACROSS || a % PER_NODE == b % PER_NODE;
}

/* Whether a rank keeps a slice that the ranks of a group share. */
static bool keeps_slice(enum weft_rank_group group, int rank, int slice)
{
    switch (group) {
    case WEFT_GROUP_ALL:
        return slice == rank % PER_NODE * NODES + rank / PER_NODE;
    case WEFT_GROUP_NODE:
        return slice / NODES == rank % PER_NODE;
    case WEFT_GROUP_OWNER:
        return rank == 0;
    case WEFT_GROUP_ACROSS: /* of a node's slice */
        return slice % NODES == rank / PER_NODE;
    case WEFT_GROUP_NONE:
        break;
    }
    return true;
}

/* Each rank receives the union over its group of the slices that it keeps after the move. */
static void carry_out(const struct weft_unit_move *move, struct buffers *at)
{
    const bool scatters = weft_item_kind_collective(move->kind) == WEFT_REDUCE_SCATTER;
    struct buffers before = *at;
    if (move->from != move->to) memset(at->of[move->to], 0, sizeof at->of[move->to]);
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++) {
            int all = 0;
            for (int from = 0; from < RANKS; from++)
                if (share_group(move->group, r, from)) all |= before.of[move->from][from][s];
            if (!scatters || keeps_slice(move->group, r, s)) at->of[move->to][r][s] = all;
        }
}

static bool gathers_parts(const struct weft_unit_move *move)
{
    return weft_item_kind_collective(move->kind) == WEFT_ALL_GATHER;
}

/* Partial sums are of the node, for the slice that the node's ranks share. */
static void check_partial(const struct buffers *at)
{
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++) {
            const int node = ((1 << PER_NODE) - 1) << r / PER_NODE * PER_NODE;
            const bool kept = keeps_slice(WEFT_GROUP_NODE, r, s);
            cr_assert_eq(at->of[WEFT_BUFFER_PARTIAL][r][s], kept ? node : 0, "%d, %d", r, s);
        }
}

/* Sums end where the state is, complete. */
static void check_reduction(const struct weft_moves *moves, enum weft_rank_group state)
{
    struct buffers at = {0};
    enum weft_buffer_kind end = WEFT_BUFFER_GRADIENT;
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            at.of[end][r][s] = 1 << r;
    for (int i = 0; i < moves->n; i++) {
        const struct weft_unit_move *move = &moves->moves[i];
        if (move->group == WEFT_GROUP_NONE || gathers_parts(move)) continue;
        cr_assert_eq(move->from, end);
        carry_out(move, &at);
        end = move->to;
        if (end == WEFT_BUFFER_PARTIAL) check_partial(&at);
        cr_assert_eq(move->count == WEFT_ITEM_ONCE, move->from == move->to);
    }
    const bool whole = state == WEFT_GROUP_NONE || state == WEFT_GROUP_OWNER;
    cr_assert_eq(end, whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED);
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            if (keeps_slice(state, r, s)) cr_assert_eq(at.of[end][r][s], ALL_PARTS, "%d, %d", r, s);
}

/* Each rank has all new parameters before a use. */
static void check_gather(const struct weft_moves *moves, const struct weft_policy_groups *groups)
{
    const bool resident = groups->parameters == WEFT_GROUP_NONE;
    struct buffers at = {0};
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            at.of[resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD][r][s] =
                keeps_slice(groups->state, r, s);
    /* Parameters that fewer ranks share than their state come across nodes first. */
    const struct weft_unit_move *crossing = weft_moves_find(moves, WEFT_ACROSS_GATHER);
    cr_assert_eq(crossing == NULL, resident || groups->parameters == groups->state);
    if (crossing != NULL) {
        cr_assert(crossing->group == WEFT_GROUP_ACROSS && crossing->count == WEFT_ITEM_ONCE);
        carry_out(crossing, &at);
    }
    const struct weft_unit_move *move = weft_moves_find(moves, WEFT_ALL_GATHER);
    cr_assert_eq(move == NULL, groups->state == WEFT_GROUP_NONE);
    if (move != NULL) {
        cr_assert_eq(move->group, resident ? groups->state : groups->parameters);
        cr_assert_eq(move->count, resident ? WEFT_ITEM_ONCE : WEFT_ITEM_A_USE);
        carry_out(move, &at);
    }
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            cr_assert_eq(at.of[WEFT_BUFFER_FULL][r][s], 1, "%d, %d", r, s);
}

/* Kinds are not repeated, and a chain has no circle and ends in the way. Returns its length. */
static int follow_chain(const struct weft_moves *moves, const struct weft_unit_move *move)
{
    int length = 0;
    for (; move->after >= 0; length++) {
        move = weft_moves_find(moves, move->after);
        cr_assert_not_null(move);
        cr_assert_lt(length, moves->n);
    }
    return length;
}

Test(moves, sums_end_at_the_state_and_parameters_come_from_it)
{
    for (int number = 0; number < WEFT_WAYS; number++) {
        const struct weft_way way = weft_way_at(number);
        if (!weft_way_allowed(way)) continue;
        const struct weft_moves moves = weft_moves_of(way);
        const struct weft_policy_groups *groups = &weft_policy_groups[way.policy];
        cr_assert_leq(moves.n, WEFT_MOST_MOVES);
        check_reduction(&moves, groups->state);
        check_gather(&moves, groups);
        for (int i = 0; i < moves.n; i++) {
            const struct weft_unit_move *move = &moves.moves[i];
            cr_assert_eq(weft_moves_find(&moves, move->kind), move);
            cr_assert_eq(move->group == WEFT_GROUP_NONE,
                         weft_item_kinds[move->kind].family != WEFT_ITEM_COLLECTIVE);
            cr_assert_eq(weft_moves_group(way, move->kind), move->group);
            (void)follow_chain(&moves, move);
            for (int32_t g = 0; g < 2; g++)
                cr_assert_lt(weft_moves_order(&moves, move, g), WEFT_MOST_ORDERS);
        }
    }
}

/* Gathers wait for all that brings their shard: none, 1 or 2 moves. Sums across nodes wait for
 * their nodes'. */
Test(moves, chains_are_of_the_blocks_that_a_move_needs)
{
    for (int number = 0; number < WEFT_WAYS; number++) {
        const struct weft_way way = weft_way_at(number);
        if (!weft_way_allowed(way)) continue;
        const struct weft_moves moves = weft_moves_of(way);
        const struct weft_unit_move *gathered = weft_moves_find(&moves, WEFT_ALL_GATHER);
        const bool comes_up = way.keep == WEFT_KEEP_HOST_UPDATE || way.parameters == WEFT_HOME_HOST;
        if (gathered != NULL)
            cr_assert_eq(follow_chain(&moves, gathered),
                         comes_up ? 2 : weft_policy_crosses(way.policy), "%s", weft_way_name(way));
        for (int i = 0; i < moves.n; i++) {
            const struct weft_unit_move *move = &moves.moves[i];
            if (move->from == WEFT_BUFFER_PARTIAL || move->kind == WEFT_GRADIENT_DOWN)
                cr_assert_eq(move->after, WEFT_REDUCE_SCATTER);
        }
    }
}
