/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/measure/matchings.h"

int32_t weft_matching_rounds(int32_t nodes)
{
    return nodes % 2 == 0 ? nodes - 1 : nodes;
}

int32_t weft_matching_partner(int32_t nodes, int32_t round, int32_t node)
{
    const int32_t turning = weft_matching_rounds(nodes); /* odd; the node of this number stays */
    if (node == turning) return round;
    const int32_t partner = (int32_t)((2 * (int64_t)round - node + turning) % turning);
    if (partner != node) return partner;
    return turning < nodes ? turning : -1;
}

int32_t weft_matching_measured(int32_t nodes)
{
    const int32_t rounds = weft_matching_rounds(nodes), most = WEFT_MATCHING_MOST_NODES - 1;
    return nodes > WEFT_MATCHING_MOST_NODES ? most : rounds;
}

int32_t weft_matching_round(int32_t nodes, int32_t i)
{
    return (int32_t)((int64_t)i * weft_matching_rounds(nodes) / weft_matching_measured(nodes));
}
