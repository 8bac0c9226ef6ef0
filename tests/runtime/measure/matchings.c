/* SPDX-License-Identifier: Apache-2.0 */
/* Every round is a matching, and a tournament has each pair once. */
#include "runtime/measure/matchings.h"

#include <string.h>

#include "tests/runtime/comm/ranks.h"

enum { MOST = 257 };

static uint8_t met[MOST][MOST];

/* Plays a round and returns the number of nodes without a partner. */
static int32_t play_round(int32_t nodes, int32_t round)
{
    int32_t byes = 0;
    for (int32_t node = 0; node < nodes; node++) {
        const int32_t partner = weft_matching_partner(nodes, round, node);
        byes += partner < 0;
        if (partner < 0) continue;
        CHECK(partner < nodes && partner != node, "%d of %d meets %d", node, nodes, partner);
        CHECK(weft_matching_partner(nodes, round, partner) == node, "%d and %d of %d in round %d",
              node, partner, nodes, round);
        met[node][partner]++;
    }
    return byes;
}

static void check_tournament(int32_t nodes)
{
    const int32_t rounds = weft_matching_rounds(nodes);
    CHECK(rounds == nodes - 1 + nodes % 2, "%d rounds of %d nodes", rounds, nodes);
    memset(met, 0, sizeof met);
    for (int32_t round = 0; round < rounds; round++) {
        const int32_t byes = play_round(nodes, round);
        CHECK(byes == nodes % 2, "%d byes in round %d of %d nodes", byes, round, nodes);
    }
    for (int32_t a = 0; a < nodes; a++)
        for (int32_t b = 0; b < nodes; b++)
            CHECK(met[a][b] == (a != b), "%d met %d %d times of %d nodes", a, b, met[a][b], nodes);
}

/* The measured rounds differ, so no pair comes twice. */
static void check_measured(int32_t nodes)
{
    const int32_t measured = weft_matching_measured(nodes);
    CHECK(measured <= 63, "%d rounds of %d nodes", measured, nodes);
    memset(met, 0, sizeof met);
    for (int32_t i = 0; i < measured; i++)
        play_round(nodes, weft_matching_round(nodes, i));
    for (int32_t a = 0; a < nodes; a++) {
        int32_t partners = 0;
        for (int32_t b = 0; b < nodes; b++) {
            CHECK(met[a][b] <= 1, "%d met %d %d times of %d nodes", a, b, met[a][b], nodes);
            partners += met[a][b];
        }
        const int32_t least = nodes > 64 ? 62 : nodes - 1;
        CHECK(partners >= least, "%d of %d nodes met %d", a, nodes, partners);
    }
}

/* By hand, of four nodes: 3 stays, and 0, 1, 2 turn. */
static void check_four(void)
{
    static const int32_t partners[3][4] = {{3, 2, 1, 0}, {2, 3, 0, 1}, {1, 0, 3, 2}};
    for (int32_t round = 0; round < 3; round++)
        for (int32_t node = 0; node < 4; node++)
            CHECK(weft_matching_partner(4, round, node) == partners[round][node],
                  "round %d, node %d", round, node);
}

RANKS_TEST(matchings)
{
    check_four();
    CHECK(weft_matching_partner(1, 0, 0) == -1, "a single node has no partner");
    for (int32_t nodes = 1; nodes <= 65; nodes++)
        check_tournament(nodes);
    for (int32_t nodes = 2; nodes <= MOST; nodes++)
        check_measured(nodes);
    return 0;
}
