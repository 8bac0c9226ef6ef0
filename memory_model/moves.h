/* SPDX-License-Identifier: Apache-2.0 */
/* A policy moves a unit's elements by a short list of collectives. Each goes between the ranks of a
 * group. */
#ifndef WEFT_MEMORY_MODEL_MOVES_H
#define WEFT_MEMORY_MODEL_MOVES_H

#include <stdint.h>

#include "base/rank_group.h"
#include "memory_model/item_kind.h"
#include "shard/shard.h"

/* One collective of a policy. */
struct weft_unit_move {
    int32_t kind; /* of its items */
    enum weft_rank_group group;
};

enum { WEFT_MOST_MOVES = 3 };
struct weft_moves {
    int n;
    struct weft_unit_move moves[WEFT_MOST_MOVES];
};
extern const struct weft_moves weft_moves[WEFT_POLICY_COUNT];

/* The policy's move of that kind; NULL: none. */
const struct weft_unit_move *weft_moves_find(enum weft_policy policy, int32_t kind);

/* The group of a unit's item; WEFT_GROUP_NONE for a copy. */
static inline enum weft_rank_group weft_moves_group(enum weft_policy policy, int32_t kind)
{
    const struct weft_unit_move *move = weft_moves_find(policy, kind);
    return move == NULL ? WEFT_GROUP_NONE : move->group;
}

#endif
