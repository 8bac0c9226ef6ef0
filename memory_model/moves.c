/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/moves.h"

#include <stddef.h>

#define ON_HOST WEFT_BUFFER_KIND_COUNT
#define ROW(k, g, f, t, c, a, order)                                                               \
    {                                                                                              \
        WEFT_##k, WEFT_GROUP_##g, f, t, WEFT_ITEM_##c, a, order                                    \
    }
#define GRADIENT WEFT_BUFFER_GRADIENT
#define REDUCED  WEFT_BUFFER_REDUCED
#define PARTIAL  WEFT_BUFFER_PARTIAL
#define FULL     WEFT_BUFFER_FULL
#define SHARD    WEFT_BUFFER_SHARD
#define MASTER   WEFT_BUFFER_MASTER

/* clang-format off */
/* Collectives of policies, the reductions first. */
static const struct weft_moves policies[WEFT_POLICY_COUNT] = {
    [WEFT_POLICY_DP] = {.n = 1, .moves = {
        ROW(ALL_REDUCE, ALL, GRADIENT, GRADIENT, ONCE, -1, 0)}},
    [WEFT_POLICY_ZERO1] = {.n = 2, .moves = {
        ROW(REDUCE_SCATTER, ALL, GRADIENT, REDUCED, A_REDUCTION, -1, 0),
        ROW(ALL_GATHER, ALL, FULL, FULL, ONCE, -1, 1)}},
    [WEFT_POLICY_SDP] = {.n = 2, .moves = {
        ROW(REDUCE_SCATTER, ALL, GRADIENT, REDUCED, A_REDUCTION, -1, 0),
        ROW(ALL_GATHER, ALL, SHARD, FULL, A_USE, -1, 0)}},
    [WEFT_POLICY_FSDP] = {.n = 2, .moves = {
        ROW(REDUCE_SCATTER, ALL, GRADIENT, REDUCED, A_REDUCTION, -1, 0),
        ROW(ALL_GATHER, ALL, SHARD, FULL, A_USE, -1, 0)}},
    [WEFT_POLICY_HSDP] = {.n = 3, .moves = {
        ROW(REDUCE_SCATTER, NODE, GRADIENT, PARTIAL, A_REDUCTION, -1, 6),
        ROW(ACROSS_REDUCE, ACROSS, PARTIAL, REDUCED, A_REDUCTION, WEFT_REDUCE_SCATTER, 6),
        ROW(ALL_GATHER, NODE, SHARD, FULL, A_USE, -1, 6)}},
    [WEFT_POLICY_CENTRAL] = {.n = 2, .moves = {
        ROW(REDUCE_SCATTER, OWNER, GRADIENT, GRADIENT, ONCE, -1, 8),
        ROW(ALL_GATHER, OWNER, FULL, FULL, ONCE, -1, 8)}},
    [WEFT_POLICY_NODES] = {.n = 4, .moves = {
        ROW(REDUCE_SCATTER, NODE, GRADIENT, PARTIAL, A_REDUCTION, -1, 7),
        ROW(ACROSS_SCATTER, ACROSS, PARTIAL, REDUCED, A_REDUCTION, WEFT_REDUCE_SCATTER, 7),
        ROW(ACROSS_GATHER, ACROSS, SHARD, SHARD, ONCE, -1, 7),
        ROW(ALL_GATHER, NODE, SHARD, FULL, A_USE, WEFT_ACROSS_GATHER, 7)}},
};

/* Copies of state, and updates on the host. Their rows end before a gather, which is kind 0. */
enum { MOST_OF_KEEP = 4, MOST_FETCHED = 3 };
static const struct weft_unit_move keeps[WEFT_KEEP_COUNT][MOST_OF_KEEP] = {
    [WEFT_KEEP_HOST] = {
        ROW(STATE_UP, NONE, ON_HOST, MASTER, ONCE, -1, 0),
        ROW(STATE_DOWN, NONE, MASTER, ON_HOST, ONCE, -1, 0)},
    [WEFT_KEEP_DISK] = {
        ROW(STATE_READ, NONE, ON_HOST, MASTER, ONCE, -1, 0),
        ROW(STATE_WRITE, NONE, MASTER, ON_HOST, ONCE, -1, 0)},
    [WEFT_KEEP_HOST_UPDATE] = {
        ROW(GRADIENT_DOWN, NONE, REDUCED, ON_HOST, ONCE, WEFT_REDUCE_SCATTER, 0),
        ROW(HOST_UPDATE, NONE, ON_HOST, ON_HOST, ONCE, -1, 0),
        ROW(PARAMETERS_UP, NONE, ON_HOST, SHARD, ONCE, WEFT_HOST_UPDATE, 0)},
};
static const struct weft_unit_move fetched[MOST_FETCHED] = {
    ROW(PARAMETERS_DOWN, NONE, SHARD, ON_HOST, ONCE, -1, 0),
    ROW(PARAMETERS_FETCH, NONE, ON_HOST, SHARD, A_USE, WEFT_PARAMETERS_DOWN, 0)};

/* An average over nodes, of which the ranks of a node gather dp's parts. */
enum { MOST_OF_AVERAGE = 3 };
static const struct weft_unit_move averages[2][MOST_OF_AVERAGE] = {
    {ROW(AVERAGE, ACROSS, MASTER, MASTER, ONCE, -1, 0)},
    {ROW(AVERAGE, ACROSS, MASTER, MASTER, ONCE, -1, 0),
     ROW(AVERAGE_GATHER, ALL, MASTER, MASTER, ONCE, WEFT_AVERAGE, 0)}};
/* clang-format on */

/* Adds moves of a location. Gathers follow the last one of those that bring parameters. If a unit
 * crosses nodes, its gradient goes down after the sum over nodes. Updated parameters come up before
 * the gather across nodes, and others go down after it. */
static void add_moves(struct weft_moves *to, const struct weft_unit_move *rows)
{
    const bool resident = weft_policy_groups[to->policy].parameters == WEFT_GROUP_NONE;
    const bool crosses = weft_policy_crosses(to->policy);
    for (const struct weft_unit_move *row = rows; row->kind != WEFT_ALL_GATHER; row++) {
        struct weft_unit_move *move = &to->moves[to->n++];
        *move = *row;
        if (row->kind == WEFT_PARAMETERS_DOWN && crosses) move->after = WEFT_ACROSS_GATHER;
        if (row->kind == WEFT_GRADIENT_DOWN && crosses) move->after = WEFT_ACROSS_SCATTER;
        if (row->to != SHARD) continue;
        if (resident) move->to = FULL;
        const bool before_crossing = crosses && row->kind == WEFT_PARAMETERS_UP;
        const int32_t next = before_crossing ? WEFT_ACROSS_GATHER : WEFT_ALL_GATHER;
        for (int i = 0; i < to->n; i++)
            if (to->moves[i].kind == next) to->moves[i].after = row->kind;
    }
}

/* Adds an average, after which a unit's parameters are gathered. */
static void add_average(struct weft_moves *to)
{
    const bool whole = weft_policy_groups[to->policy].state == WEFT_GROUP_NONE;
    for (int i = 0; i < to->n; i++)
        if (to->moves[i].kind == WEFT_ALL_GATHER) to->moves[i].after = WEFT_AVERAGE;
    add_moves(to, averages[whole]);
}

struct weft_moves weft_moves_of(struct weft_way way, bool averages_nodes)
{
    struct weft_moves moves = policies[way.policy];
    moves.policy = way.policy;
    add_moves(&moves, keeps[way.keep]);
    if (way.parameters == WEFT_LOCATION_HOST) add_moves(&moves, fetched);
    if (averages_nodes) add_average(&moves);
    return moves;
}

const struct weft_unit_move *weft_moves_find(const struct weft_moves *moves, int32_t kind)
{
    for (int i = 0; i < moves->n; i++)
        if (moves->moves[i].kind == kind) return &moves->moves[i];
    return NULL;
}

bool weft_moves_acquire(const struct weft_moves *moves, int32_t kind)
{
    const struct weft_unit_move *down = weft_moves_find(moves, WEFT_PARAMETERS_DOWN);
    return weft_item_kinds[kind].acquires && (down == NULL || down->after != kind);
}

int weft_moves_order(const struct weft_moves *moves, const struct weft_unit_move *move,
                     int32_t gather)
{
    enum { UPDATED_THERE = 2, FETCHED = 4 };
    const enum weft_item_family family = weft_item_kinds[move->kind].family;
    if (family == WEFT_ITEM_STATE)
        return weft_policy_groups[moves->policy].state == WEFT_GROUP_NONE;
    if (family == WEFT_ITEM_PARAMETERS) return weft_policy_crosses(moves->policy);
    if (move->kind == WEFT_GRADIENT_DOWN) return weft_policy_crosses(moves->policy);
    if (family != WEFT_ITEM_COLLECTIVE) return 0;
    const bool cached =
        move->kind == WEFT_ACROSS_GATHER && !weft_moves_acquire(moves, WEFT_ACROSS_GATHER);
    if (move->after == WEFT_PARAMETERS_FETCH || cached) return move->order + FETCHED;
    const bool updated = gather == 0 && weft_item_kind_collective(move->kind) == WEFT_ALL_GATHER &&
                         weft_moves_find(moves, WEFT_PARAMETERS_UP) != NULL;
    return move->order + (updated ? UPDATED_THERE : 0);
}

enum weft_rank_group weft_moves_group(struct weft_way way, bool averages_nodes, int32_t kind)
{
    const struct weft_moves moves = weft_moves_of(way, averages_nodes);
    const struct weft_unit_move *move = weft_moves_find(&moves, kind);
    return move == NULL ? WEFT_GROUP_NONE : move->group;
}
