/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of all ways against the groups of their policies. Ranks in nodes carry out the collectives
 * of a step: a slice is a set of ranks with a part in its sum, or it is new parameters. Each wrong
 * field of each row is found. */
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
static bool is_partial(const struct buffers *at)
{
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++) {
            const int node = ((1 << PER_NODE) - 1) << r / PER_NODE * PER_NODE;
            const bool kept = keeps_slice(WEFT_GROUP_NODE, r, s);
            if (at->of[WEFT_BUFFER_PARTIAL][r][s] != (kept ? node : 0)) return false;
        }
    return true;
}

/* Sums end where the state is, complete. Returns the fault; NULL: none. */
static const char *reduction_fault(const struct weft_moves *moves, enum weft_rank_group state)
{
    struct buffers at = {0};
    enum weft_buffer_kind end = WEFT_BUFFER_GRADIENT;
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            at.of[end][r][s] = 1 << r;
    for (int i = 0; i < moves->n; i++) {
        const struct weft_unit_move *move = &moves->moves[i];
        if (weft_item_kinds[move->kind].family != WEFT_ITEM_COLLECTIVE || gathers_parts(move))
            continue;
        if (move->from != end) return "path of a sum";
        if (end == WEFT_BUFFER_PARTIAL && move->group != WEFT_GROUP_ACROSS) return "ranks of a sum";
        carry_out(move, &at);
        end = move->to;
        if (end == WEFT_BUFFER_PARTIAL && !is_partial(&at)) return "partial sums";
        if ((move->count == WEFT_ITEM_ONCE) != (move->from == move->to) ||
            (move->count != WEFT_ITEM_ONCE && move->count != WEFT_ITEM_A_REDUCTION))
            return "count of sums";
    }
    const bool whole = state == WEFT_GROUP_NONE || state == WEFT_GROUP_OWNER;
    if (end != (whole ? WEFT_BUFFER_GRADIENT : WEFT_BUFFER_REDUCED)) return "end of the sums";
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++) {
            if (keeps_slice(state, r, s) && at.of[end][r][s] != ALL_PARTS) return "parts of a sum";
            if (!whole && !keeps_slice(state, r, s) && at.of[end][r][s] != 0) return "other slices";
        }
    return NULL;
}

/* Each rank has all new parameters before a use. */
static const char *gather_fault(const struct weft_moves *moves,
                                const struct weft_policy_groups *groups)
{
    const bool resident = groups->parameters == WEFT_GROUP_NONE;
    const enum weft_buffer_kind shard = resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD;
    struct buffers at = {0};
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            at.of[shard][r][s] = keeps_slice(groups->state, r, s);
    /* Parameters that fewer ranks share than their state come across nodes first. */
    const struct weft_unit_move *crossing = weft_moves_find(moves, WEFT_ACROSS_GATHER);
    if ((crossing == NULL) != (resident || groups->parameters == groups->state))
        return "a gather across nodes";
    if (crossing != NULL) {
        if (crossing->group != WEFT_GROUP_ACROSS || crossing->count != WEFT_ITEM_ONCE ||
            crossing->from != shard || crossing->to != shard)
            return "the gather across nodes";
        carry_out(crossing, &at);
    }
    const struct weft_unit_move *move = weft_moves_find(moves, WEFT_ALL_GATHER);
    if ((move == NULL) != (groups->state == WEFT_GROUP_NONE)) return "a gather";
    if (move != NULL) {
        if (move->group != (resident ? groups->state : groups->parameters) ||
            move->count != (resident ? WEFT_ITEM_ONCE : WEFT_ITEM_A_USE) || move->from != shard ||
            move->to != WEFT_BUFFER_FULL)
            return "the gather";
        carry_out(move, &at);
    }
    for (int r = 0; r < RANKS; r++)
        for (int s = 0; s < RANKS; s++)
            if (at.of[WEFT_BUFFER_FULL][r][s] != 1) return "parameters";
    return NULL;
}

enum { ON_HOST = WEFT_BUFFER_KIND_COUNT };

/* Kinds in the order of a block's way from its gradient to its use. An update is at `UPDATE`: no
 * chain passes it. */
enum { UPDATE = -2 };
static const int32_t order_of_a_block[] = {
    WEFT_REDUCE_SCATTER,   WEFT_ALL_REDUCE,    WEFT_ACROSS_REDUCE, WEFT_ACROSS_SCATTER,
    WEFT_GRADIENT_DOWN,    WEFT_STATE_READ,    WEFT_STATE_UP,      UPDATE,
    WEFT_HOST_UPDATE,      WEFT_PARAMETERS_UP, WEFT_ACROSS_GATHER, WEFT_PARAMETERS_DOWN,
    WEFT_PARAMETERS_FETCH, WEFT_ALL_GATHER,    WEFT_STATE_DOWN,    WEFT_STATE_WRITE};
enum { N_KINDS = sizeof order_of_a_block / sizeof *order_of_a_block };

/* The move that last wrote the bytes that this one reads, since the update. -1: none. */
static int32_t writer_of(const struct weft_moves *moves, const struct weft_unit_move *move)
{
    int32_t writer = -1;
    for (int k = 0; k < N_KINDS && order_of_a_block[k] != move->kind; k++) {
        const struct weft_unit_move *before =
            order_of_a_block[k] == UPDATE ? NULL : weft_moves_find(moves, order_of_a_block[k]);
        if (order_of_a_block[k] == UPDATE) writer = -1;
        if (before != NULL && before->to == move->from) writer = before->kind;
    }
    return writer;
}

/* Ends of copies and of updates on the host. */
static const char *copy_fault(const struct weft_unit_move *move, bool resident)
{
    const enum weft_item_family family = weft_item_kinds[move->kind].family;
    const bool fetches = move->kind == WEFT_PARAMETERS_FETCH;
    const bool comes = weft_item_kinds[move->kind].acquires;
    enum weft_buffer_kind here = WEFT_BUFFER_MASTER;
    if (family == WEFT_ITEM_COLLECTIVE) return NULL;
    if (move->group != WEFT_GROUP_NONE) return "a copy's group";
    if (move->count != (fetches ? WEFT_ITEM_A_USE : WEFT_ITEM_ONCE)) return "a copy's count";
    if (move->kind == WEFT_GRADIENT_DOWN) here = WEFT_BUFFER_REDUCED;
    if (move->kind == WEFT_PARAMETERS_UP || family == WEFT_ITEM_PARAMETERS)
        here = resident ? WEFT_BUFFER_FULL : WEFT_BUFFER_SHARD;
    if (move->kind == WEFT_HOST_UPDATE) here = (enum weft_buffer_kind)ON_HOST;
    if ((int)move->from != (comes ? ON_HOST : (int)here)) return "where a copy begins";
    return (int)move->to == (comes ? (int)here : ON_HOST) ? NULL : "where a copy ends";
}

static const char *fault_of(const struct weft_moves *moves, struct weft_way way)
{
    const struct weft_policy_groups *groups = &weft_policy_groups[way.policy];
    const bool resident = groups->parameters == WEFT_GROUP_NONE;
    for (int i = 0; i < moves->n; i++) {
        const struct weft_unit_move *move = &moves->moves[i];
        const bool collective = weft_item_kinds[move->kind].family == WEFT_ITEM_COLLECTIVE;
        if (weft_moves_find(moves, move->kind) != move) return "a kind is there twice";
        if (collective && (move->group == WEFT_GROUP_NONE || (int)move->from == ON_HOST ||
                           (int)move->to == ON_HOST))
            return "a collective's ends";
        const bool owned = groups->state == WEFT_GROUP_OWNER;
        if (collective && (move->group == WEFT_GROUP_OWNER) != owned) return "an owner";
        const char *fault = copy_fault(move, resident);
        if (fault != NULL) return fault;
        if (move->after != writer_of(moves, move)) return "the move before";
    }
    const char *fault = reduction_fault(moves, groups->state);
    return fault != NULL ? fault : gather_fault(moves, groups);
}

Test(moves, sums_end_at_the_state_and_parameters_come_from_it)
{
    for (int number = 0; number < WEFT_WAYS; number++) {
        const struct weft_way way = weft_way_at(number);
        if (!weft_way_allowed(way)) continue;
        const struct weft_moves moves = weft_moves_of(way, false);
        const char *fault = fault_of(&moves, way);
        cr_assert_leq(moves.n, WEFT_MOST_MOVES);
        cr_assert_null(fault, "%s: %s", weft_way_name(way), fault);
        for (int i = 0; i < moves.n; i++) {
            cr_assert_eq(weft_moves_group(way, false, moves.moves[i].kind), moves.moves[i].group);
            for (int32_t g = 0; g < 2; g++)
                cr_assert_lt(weft_moves_order(&moves, &moves.moves[i], g), WEFT_MOST_ORDERS);
        }
    }
}

/* Sets one field of a move to the value of that number. False: there is no such value. */
static bool change_field(struct weft_unit_move *move, int field, int value)
{
    switch (field) {
    case 0:
        move->group = (enum weft_rank_group)value;
        return value <= WEFT_GROUP_NONE;
    case 1:
        move->from = (enum weft_buffer_kind)value;
        return value <= ON_HOST;
    case 2:
        move->to = (enum weft_buffer_kind)value;
        return value <= ON_HOST;
    case 3:
        move->count = (enum weft_item_count)value;
        return value <= WEFT_ITEM_A_MICRO_STEP;
    default:
        move->after = value - 1;
        return value <= WEFT_ITEM_KIND_COUNT;
    }
}

static bool same_move(const struct weft_unit_move *a, const struct weft_unit_move *b)
{
    return a->group == b->group && a->from == b->from && a->to == b->to && a->count == b->count &&
           a->after == b->after;
}

/* Every other value of every field of every move of every way is found, and every missing move. */
Test(moves, no_wrong_row_of_the_table_is_accepted)
{
    enum { FIELDS = 5 };
    int n = 0;
    for (int number = 0; number < WEFT_WAYS; number++) {
        const struct weft_way way = weft_way_at(number);
        if (!weft_way_allowed(way)) continue;
        const struct weft_moves moves = weft_moves_of(way, false);
        for (int i = 0; i < moves.n; i++) {
            const char *name = weft_item_kinds[moves.moves[i].kind].name;
            for (int field = 0; field < FIELDS; field++)
                for (int value = 0;; value++) {
                    struct weft_moves wrong = moves;
                    if (!change_field(&wrong.moves[i], field, value)) break;
                    if (same_move(&wrong.moves[i], &moves.moves[i])) continue;
                    cr_assert_not_null(fault_of(&wrong, way), "%s, %s: field %d, value %d",
                                       weft_way_name(way), name, field, value);
                    n++;
                }
        }
    }
    cr_assert_gt(n, 1000);
}

/* Whether a move of two ways may be one item: of the same ranks, times, slices and chain. */
static bool same_item(struct weft_way a, struct weft_way b, int32_t kind)
{
    const struct weft_moves of_a = weft_moves_of(a, false), of_b = weft_moves_of(b, false);
    const struct weft_unit_move *x = weft_moves_find(&of_a, kind);
    const struct weft_unit_move *y = weft_moves_find(&of_b, kind);
    const struct weft_policy_groups *of_x = &weft_policy_groups[a.policy];
    const struct weft_policy_groups *of_y = &weft_policy_groups[b.policy];
    const bool of_parameters =
        gathers_parts(x) || weft_item_kinds[kind].family == WEFT_ITEM_PARAMETERS;
    return x->group == y->group && x->count == y->count && x->after == y->after &&
           weft_moves_acquire(&of_a, kind) == weft_moves_acquire(&of_b, kind) &&
           of_x->state == of_y->state &&
           (!of_parameters || (same_move(x, y) && of_x->parameters == of_y->parameters));
}

/* Strategies share an item by kind and order, so only equal moves of equal slices have one order.
 */
Test(moves, ways_that_share_an_item_move_the_same)
{
    int n_shared = 0;
    for (int a = 0; a < WEFT_WAYS * WEFT_WAYS; a++) {
        const struct weft_way way = weft_way_at(a / WEFT_WAYS), other = weft_way_at(a % WEFT_WAYS);
        if (!weft_way_allowed(way) || !weft_way_allowed(other)) continue;
        const struct weft_moves moves = weft_moves_of(way, false),
                                others = weft_moves_of(other, false);
        for (int i = 0; i < moves.n; i++) {
            const struct weft_unit_move *to = weft_moves_find(&others, moves.moves[i].kind);
            if (to == NULL ||
                weft_moves_order(&moves, &moves.moves[i], 0) != weft_moves_order(&others, to, 0))
                continue;
            cr_assert(same_item(way, other, to->kind), "%s and %s share %s", weft_way_name(way),
                      weft_way_name(other), weft_item_kinds[to->kind].name);
            n_shared += a / WEFT_WAYS < a % WEFT_WAYS;
        }
    }
    cr_assert_gt(n_shared, 20);
}

/* A block that crosses nodes on its way to the host is released there. */
Test(moves, parameters_of_a_node_on_the_host_cross_nodes_before_they_go_down)
{
    const struct weft_way cached = {WEFT_POLICY_NODES, WEFT_KEEP_DEVICE, WEFT_LOCATION_HOST};
    const struct weft_way kept = {WEFT_POLICY_NODES, WEFT_KEEP_DEVICE, WEFT_LOCATION_DEVICE};
    const struct weft_moves moves = weft_moves_of(cached, false),
                            others = weft_moves_of(kept, false);
    cr_assert_eq(weft_moves_find(&moves, WEFT_PARAMETERS_DOWN)->after, WEFT_ACROSS_GATHER);
    cr_assert_not(weft_moves_acquire(&moves, WEFT_ACROSS_GATHER));
    cr_assert(weft_moves_acquire(&others, WEFT_ACROSS_GATHER));
    cr_assert(weft_moves_acquire(&moves, WEFT_PARAMETERS_FETCH));
    cr_assert_not(weft_moves_acquire(&moves, WEFT_PARAMETERS_DOWN));
}
