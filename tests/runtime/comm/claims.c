/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of ranks is added up by machine and by container, and held against what is left there. */
#include "runtime/comm/claims.h"

#include <stdio.h>
#include <string.h>

#include "base/machine/cores.h"
#include "tests/runtime/comm/machines.h"
#include "tests/runtime/comm/ranks.h"

enum { PAGE = 4096, EACH_BYTES = 4 * PAGE };

/* Machines and containers of four ranks, and the refusal. */
struct scene {
    struct fake_machine at[MOST_RANKS];
    const char *refusal; /* NULL: all fit */
};

#define ROOM(n) ((int64_t)(n)*EACH_BYTES)
static const struct scene scenes[] = {
    /* Room for each of them is not room for all; the least that a rank sees counts. */
    {{{1, ROOM(4), 0, 0}, {1, ROOM(4), 0, 0}, {1, ROOM(4), 0, 0}, {1, ROOM(4), 0, 0}}, NULL},
    {{{1, ROOM(4), 0, 0}, {1, ROOM(4), 0, 0}, {1, ROOM(4), 0, 0}, {1, ROOM(4) - 1, 0, 0}},
     "4 local ranks need an arena of 16.0 KiB each, 64.0 KiB in all"},
    /* Two machines, the ranks of the second apart, with room for their own. */
    {{{1, ROOM(2), 0, 0}, {2, ROOM(2), 0, 0}, {1, ROOM(2), 0, 0}, {2, ROOM(2), 0, 0}}, NULL},
    {{{1, ROOM(2), 0, 0}, {2, ROOM(2), 0, 0}, {1, ROOM(9), 0, 0}, {2, ROOM(2) - 1, 0, 0}},
     "2 local ranks need an arena of 16.0 KiB each, 32.0 KiB in all"},
    {{{1, ROOM(3), 0, 0}, {1, ROOM(3), 0, 0}, {1, ROOM(3), 0, 0}, {2, ROOM(1) - 1, 0, 0}},
     "1 local rank needs an arena of 16.0 KiB each, 16.0 KiB in all"},
    /* Containers of one machine, with room for their own each. */
    {{{1, ROOM(4), 5, ROOM(3)},
      {1, ROOM(4), 6, ROOM(1)},
      {1, ROOM(4), 5, ROOM(3)},
      {1, ROOM(4), 5, ROOM(3)}},
     NULL},
    {{{1, ROOM(4), 5, ROOM(2)},
      {1, ROOM(4), 6, ROOM(1)},
      {1, ROOM(4), 5, ROOM(2)},
      {1, ROOM(4), 5, ROOM(2)}},
     "3 local ranks need an arena of 16.0 KiB each, 48.0 KiB in all, and there is only 32.0 KiB "
     "(memory.max of /group)"},
    {{{1, ROOM(3), 5, ROOM(2)},
      {1, ROOM(3), 6, ROOM(2)},
      {1, ROOM(3), 5, ROOM(2)},
      {1, ROOM(3), 6, ROOM(2)}},
     "4 local ranks need an arena of 16.0 KiB each, 64.0 KiB in all, and there is only 48.0 KiB "
     "(the machine)"},
    /* A container next to ranks in none; containers of one number on two machines. */
    {{{1, ROOM(4), 0, 0}, {1, ROOM(4), 0, 0}, {1, ROOM(4), 5, ROOM(2)}, {1, ROOM(4), 5, ROOM(2)}},
     NULL},
    {{{1, ROOM(9), 5, ROOM(2)},
      {1, ROOM(9), 5, ROOM(2)},
      {2, ROOM(9), 5, ROOM(2)},
      {2, ROOM(9), 5, ROOM(2)}},
     NULL},
};

static int map_in_scene(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct scene *scene = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    const struct weft_arena_shape whole = weft_arena_whole(EACH_BYTES);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    struct weft_arena *arena = NULL;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    fake_machine = scene->at[rank];
    const enum weft_status status = weft_comm_map_arena(comm, &whole, NULL, &arena, &err);
    if (scene->refusal == NULL)
        CHECK(status == WEFT_OK, "%s", err.text);
    else
        CHECK(status == WEFT_E_SYSTEM && strstr(err.text, scene->refusal) != NULL && arena == NULL,
              "%s, not %s", err.text, scene->refusal);
    weft_comm_close(comm);
    return 0;
}

/* Claims may differ, and more than can be counted is too much. */
static void check_sums(void)
{
    static struct weft_claim all[2];
    struct weft_excess excess;
    for (int r = 0; r < 2; r++) {
        fake_machine = (struct fake_machine){1, 13 << 20, 0, 0};
        weft_claim_memory(6 << 20, (struct weft_hash){1, 1}, &all[r]);
    }
    all[0].limits[0].left = 12 << 20;
    weft_claims_find_excess(all, 2, &excess);
    CHECK(excess.ranks == 0, "%d ranks", excess.ranks);
    all[1].amount++;
    weft_claims_find_excess(all, 2, &excess);
    CHECK(excess.ranks == 2 && excess.amount == (12 << 20) + 1 && excess.left == 12 << 20, "%lld",
          (long long)excess.amount);
    all[0].amount = all[1].amount = INT64_MAX;
    weft_claims_find_excess(all, 2, &excess);
    CHECK(excess.ranks == 2 && excess.amount == INT64_MAX, "%lld", (long long)excess.amount);
    all[0].n_limits = all[1].n_limits = 0; /* of such a system nothing is known */
    weft_claims_find_excess(all, 2, &excess);
    CHECK(excess.ranks == 0, "%d ranks", excess.ranks);
    fake_machine.machine = 0;
}

/* A set of 8 cores and a quota of 3 that two of its four ranks share; a rank with its own 2. */
static void check_shares(void)
{
    static const int64_t shares[] = {2, 1, 1, 2, 2};
    const struct weft_claim_limit set = {{1, 1}, 8}, quota = {{1, 2}, 3}, own = {{1, 3}, 2};
    const struct weft_claim free_rank = {.amount = 1, .n_limits = 1, .limits = {set}},
                            held = {.amount = 1, .n_limits = 2, .limits = {set, quota}},
                            apart = {.amount = 1, .n_limits = 1, .limits = {own}};
    const struct weft_claim all[] = {free_rank, held, held, free_rank, apart}, none = {.amount = 1};
    for (int32_t r = 0; r < 5; r++)
        CHECK(weft_claims_share(all, 5, r) == shares[r], "rank %d has %lld", (int)r,
              (long long)weft_claims_share(all, 5, r));
    CHECK(weft_claims_share(&none, 1, 0) == INT64_MAX, "nothing is known");
    struct weft_claim mine;
    weft_claim_cores((struct weft_hash){1, 1}, &mine);
    CHECK(mine.n_limits >= 1 && mine.limits[0].left >= weft_cores(), "%lld cores",
          (long long)mine.limits[0].left);
}

RANKS_TEST(claims)
{
    check_sums();
    check_shares();
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        struct scene scene = scenes[i];
        CHECK(ranks_run(MOST_RANKS, map_in_scene, &scene) == 0, "scene %zu", i);
    }
    return 0;
}
