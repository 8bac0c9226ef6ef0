/* SPDX-License-Identifier: Apache-2.0 */
/* A way is a short list of moves: the collectives of its policy, and the copies and host work of
 * its locations. Weighing, stages, lowering and binding read moves; verification reads the groups
 * of the policy instead (shard/shard.h). */
#ifndef WEFT_MEMORY_MODEL_MOVES_H
#define WEFT_MEMORY_MODEL_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rank_group.h"
#include "memory_model/buffer_kind.h"
#include "memory_model/item_kind.h"
#include "shard/way.h"

/* Blocks of a unit that go once, for each use, or for each reduction. A move without a group is a
 * copy or work on the host; its end in the host's memory is WEFT_BUFFER_KIND_COUNT.
 *
 * Parameters of a node that are on the host are cached there: a block crosses nodes once, then goes
 * down. A copy up and a gather in the node follow for each use.
 *
 * Averages are in place, in the master or in fp32 parameters, once in several steps. */
struct weft_unit_move {
    int32_t kind; /* of its items; a way has at most one move of a kind */
    enum weft_rank_group group;
    enum weft_buffer_kind from, to; /* equal: in place */
    enum weft_item_count count;
    /* Kind of the move that each block follows; -1: none. Of moves with equal counts, equal numbers
     * follow. A move that goes once follows the last of a repeated one. Of a repeated move only the
     * first follows one that goes once. */
    int32_t after;
    int order; /* of a collective among those of its kind under other policies */
};

enum { WEFT_MOST_MOVES = 8, WEFT_MOST_ORDERS = 12 };
struct weft_moves {
    enum weft_policy policy;
    int n;
    struct weft_unit_move moves[WEFT_MOST_MOVES];
};

/* `averages`: nodes step on their own, and average the unit's master in some steps. */
struct weft_moves weft_moves_of(struct weft_way way, bool averages);

/* Whether items of that kind hold their bytes from launch to use. A block that crosses nodes on its
 * way down is released by the copy down. */
bool weft_moves_acquire(const struct weft_moves *moves, int32_t kind);

/* The move of that kind; NULL: none. */
const struct weft_unit_move *weft_moves_find(const struct weft_moves *moves, int32_t kind);

/* Place of a move's item number `gather` among items of its kind. Strategies with equal places
 * share an item. */
int weft_moves_order(const struct weft_moves *moves, const struct weft_unit_move *move,
                     int32_t gather);

/* The group of a unit's item; WEFT_GROUP_NONE for a copy. */
enum weft_rank_group weft_moves_group(struct weft_way way, bool averages, int32_t kind);

#endif
