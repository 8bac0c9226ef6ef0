/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_model/moves.h"

#include <stddef.h>

const struct weft_moves weft_moves[WEFT_POLICY_COUNT] = {
    [WEFT_POLICY_DP] = {1, {{WEFT_ALL_REDUCE, WEFT_GROUP_ALL}}},
    [WEFT_POLICY_ZERO1] = {2,
                           {{WEFT_REDUCE_SCATTER, WEFT_GROUP_ALL},
                            {WEFT_ALL_GATHER, WEFT_GROUP_ALL}}},
    [WEFT_POLICY_SDP] = {2,
                         {{WEFT_REDUCE_SCATTER, WEFT_GROUP_ALL},
                          {WEFT_ALL_GATHER, WEFT_GROUP_ALL}}},
    [WEFT_POLICY_FSDP] = {2,
                          {{WEFT_REDUCE_SCATTER, WEFT_GROUP_ALL},
                           {WEFT_ALL_GATHER, WEFT_GROUP_ALL}}},
    [WEFT_POLICY_HSDP] = {3,
                          {{WEFT_REDUCE_SCATTER, WEFT_GROUP_NODE},
                           {WEFT_ACROSS_REDUCE, WEFT_GROUP_ACROSS},
                           {WEFT_ALL_GATHER, WEFT_GROUP_NODE}}},
    [WEFT_POLICY_CENTRAL] = {2,
                             {{WEFT_REDUCE_SCATTER, WEFT_GROUP_OWNER},
                              {WEFT_ALL_GATHER, WEFT_GROUP_OWNER}}},
};

const struct weft_unit_move *weft_moves_find(enum weft_policy policy, int32_t kind)
{
    const struct weft_moves *of = &weft_moves[policy];
    for (int i = 0; i < of->n; i++)
        if (of->moves[i].kind == kind) return &of->moves[i];
    return NULL;
}
