/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of groups on two lanes at once, against serial sums. Kinds, sizes, dtypes and places
 * are random. The lanes share no memory, so one that disturbs the other shows in its results. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "runtime/comm/branch.h"
#include "tests/runtime/comm/site.h"

enum {
    LANES = 2,
    ROUNDS = 60,
    MOST_ELEMENTS = 2176,
    LANE_BYTES = 1 << 17,
    SLICE_AT = 1 << 16,
    FLAG = LANES * LANE_BYTES,
    ARENA_BYTES = FLAG + 4096,
    KINDS = 4
};

static const int64_t ms = 1000000;

/* Streams of random numbers. */
enum { OF_VALUE = 1, OF_POWER, OF_CHOICE };

struct shape {
    int32_t ranks, per_node;
};

/* A collective, the same on all ranks of its group. */
struct call {
    int kind;
    enum weft_rank_group group;
    enum weft_dtype dtype, slice_dtype;
    bool in_place, adds;
    int64_t n;
    uint64_t number; /* of its lane and round: values are a function of it */
};

static uint64_t choose_number(uint64_t number, uint64_t what, uint64_t below)
{
    return weft_rng_below(OF_CHOICE, number, what, below);
}

static struct call call_of(int lane, int round)
{
    static const enum weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};
    const uint64_t number = (uint64_t)(round * LANES + lane);
    struct call call = {.number = number, .kind = (int)choose_number(number, 0, KINDS)};
    const enum weft_rank_group own = lane == 0 ? WEFT_GROUP_NODE : WEFT_GROUP_ACROSS;
    call.group = choose_number(number, 1, 4) == 0 ? WEFT_GROUP_ALL : own;
    call.dtype = dtypes[choose_number(number, 2, 3)];
    call.in_place = choose_number(number, 3, 2) == 0;
    call.n = 2 * (1 + (int64_t)choose_number(number, 4, MOST_ELEMENTS / 2));
    call.adds = !call.in_place && call.dtype == WEFT_F32 && choose_number(number, 5, 2) == 0;
    const bool widens = !call.in_place && choose_number(number, 6, 2) == 0;
    call.slice_dtype = widens ? WEFT_F32 : call.dtype;
    return call;
}

static float value_of(const struct call *call, int32_t rank, int64_t element)
{
    const uint64_t at = (uint64_t)element * ROOM_RANKS + (uint64_t)rank;
    const double x = weft_rng_uniform(OF_VALUE, call->number, at) - 0.5;
    return (float)(x * (double)(UINT64_C(1) << weft_rng_below(OF_POWER, call->number, at, 12)));
}

static float round_value(enum weft_dtype dtype, float x)
{
    if (dtype == WEFT_BF16) return weft_bf16_widen(weft_bf16_narrow(x));
    return dtype == WEFT_F16 ? weft_f16_widen(weft_f16_narrow(x)) : x;
}

static void put_value(unsigned char *at, enum weft_dtype dtype, int64_t i, float x)
{
    const uint16_t narrow = dtype == WEFT_BF16 ? weft_bf16_narrow(x) : weft_f16_narrow(x);
    if (dtype == WEFT_F32)
        memcpy(at + i * 4, &x, sizeof x);
    else
        memcpy(at + i * 2, &narrow, sizeof narrow);
}

static float get_value(const unsigned char *at, enum weft_dtype dtype, int64_t i)
{
    uint16_t narrow;
    float x;
    if (dtype == WEFT_F32) {
        memcpy(&x, at + i * 4, sizeof x);
        return x;
    }
    memcpy(&narrow, at + i * 2, sizeof narrow);
    return dtype == WEFT_BF16 ? weft_bf16_widen(narrow) : weft_f16_widen(narrow);
}

/* The group of a rank: its members in order, the rank's place among them, and the members of a node
 * that are summed first. */
struct group {
    int32_t n, self, per_node, members[ROOM_RANKS];
};

static struct group group_of(const struct shape *shape, enum weft_rank_group kind, int32_t rank)
{
    struct group group = {0};
    for (int32_t r = 0; r < shape->ranks; r++) {
        const bool node = r / shape->per_node == rank / shape->per_node;
        const bool place = r % shape->per_node == rank % shape->per_node;
        if (kind == WEFT_GROUP_NODE ? !node : kind == WEFT_GROUP_ACROSS && !place) continue;
        if (r == rank) group.self = group.n;
        group.members[group.n++] = r;
    }
    group.per_node = kind == WEFT_GROUP_ALL ? shape->per_node : group.n;
    return group;
}

/* The sum over the group in its order, rounded once. The members of a single node are added one
 * after the other to the sum before. */
static float sum_of(const struct call *call, const struct group *group, int64_t element,
                    float before)
{
    const int32_t at_once = group->per_node < group->n ? group->per_node : 1;
    float sum = before, of_node = 0;
    for (int32_t i = 0; i < group->n; i++) {
        const float x = round_value(call->dtype, value_of(call, group->members[i], element));
        of_node = i % at_once == 0 ? x : of_node + x;
        if ((i + 1) % at_once == 0) sum += of_node;
    }
    return round_value(call->dtype, sum);
}

struct lane {
    struct weft_comm *comms[WEFT_GROUP_COUNT];
    struct weft_stream *stream;
    int64_t at;
    struct call call;
    struct group group;
};

static const float old_value = 0.3F; /* in the slice that a sum is added to */

static void push_call(struct site *s, struct lane *lane)
{
    const struct call *call = &lane->call;
    struct weft_comm *comm = lane->comms[call->group];
    unsigned char *full = s->arena + lane->at, *slice = full + SLICE_AT;
    const int64_t n = call->n, all = n * lane->group.n;
    const struct weft_comm_block block = {
        .full_offset = lane->at,
        .slice_offset = call->in_place ? -1 : lane->at + SLICE_AT,
        .slice_elements = n,
        .dtype = call->dtype,
        .slice_dtype = call->kind == 0 ? call->dtype : call->slice_dtype,
        .adds = call->adds,
    };
    switch (call->kind) {
    case 0:
        for (int64_t i = 0; i < n; i++)
            put_value(call->in_place ? full : slice, call->dtype,
                      i + (call->in_place ? lane->group.self * n : 0), value_of(call, s->rank, i));
        weft_comm_all_gather(comm, lane->stream, &block);
        break;
    case 1:
    case 2:
        for (int64_t i = 0; i < all; i++)
            put_value(full, call->dtype, i, value_of(call, s->rank, i));
        for (int64_t i = 0; i < n; i++)
            put_value(slice, call->slice_dtype, i, old_value);
        if (call->kind == 1)
            weft_comm_reduce_scatter(comm, lane->stream, &block);
        else
            weft_comm_all_reduce(comm, lane->stream, &block);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)full)[i] =
                weft_rng_u64(OF_VALUE, call->number, (uint64_t)(i * ROOM_RANKS + s->rank));
        weft_comm_agree(comm, lane->stream, lane->at, lane->at + SLICE_AT, n, 0);
    }
}

static void check_value(const struct call *call, int64_t i, float got, float expected)
{
    CHECK(memcmp(&got, &expected, sizeof got) == 0,
          "call %llu, kind %d, group %s, %s: element %lld is %a, not %a",
          (unsigned long long)call->number, call->kind, weft_comm_group_name(call->group),
          weft_dtype_name(call->dtype), (long long)i, (double)got, (double)expected);
}

static void check_call(struct site *s, const struct lane *lane)
{
    const struct call *call = &lane->call;
    const struct group *group = &lane->group;
    const unsigned char *full = s->arena + lane->at, *slice = full + SLICE_AT;
    const int64_t n = call->n, all = n * group->n;
    for (int64_t i = 0; call->kind == 0 && i < all; i++)
        check_value(call, i, get_value(full, call->dtype, i),
                    round_value(call->dtype, value_of(call, group->members[i / n], i % n)));
    for (int64_t i = 0; call->kind == 1 && i < n; i++) {
        const float before = call->adds ? old_value : -0.0F;
        const float sum = sum_of(call, group, group->self * n + i, before);
        const float got = call->in_place ? get_value(full, call->dtype, group->self * n + i)
                                         : get_value(slice, call->slice_dtype, i);
        check_value(call, i, got, sum);
    }
    for (int64_t i = 0; call->kind == 2 && i < all; i++)
        check_value(call, i, get_value(full, call->dtype, i), sum_of(call, group, i, -0.0F));
    for (int64_t i = 0; call->kind == 3 && i < n; i++) {
        uint64_t sum = 0;
        for (int32_t m = 0; m < group->n; m++)
            sum += weft_rng_u64(OF_VALUE, call->number,
                                (uint64_t)(i * ROOM_RANKS + group->members[m]));
        CHECK(((const uint64_t *)(const void *)slice)[i] == sum, "agree: word %lld", (long long)i);
    }
}

static struct weft_comm *open_branch(struct site *s, const char *lane, enum weft_rank_group group)
{
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *branch = NULL, *again = NULL;
    CHECK(weft_comm_branch(s->comm, lane, group, &branch, &err) == WEFT_OK, "%s", err.text);
    CHECK(weft_comm_branch(s->comm, lane, group, &again, &err) == WEFT_OK, "%s", err.text);
    CHECK(branch == again && branch != s->comm, "a branch is opened once");
    return branch;
}

static void open_lanes(struct site *s, struct lane lanes[LANES])
{
    struct weft_error err = {.status = WEFT_OK};
    memset(lanes, 0, LANES * sizeof *lanes);
    lanes[0].stream = s->channel;
    lanes[0].comms[WEFT_GROUP_ALL] = s->comm;
    lanes[0].comms[WEFT_GROUP_NODE] = open_branch(s, "network", WEFT_GROUP_NODE);
    lanes[1].at = LANE_BYTES;
    CHECK(weft_stream_create(s->device, "across", 0, &lanes[1].stream, &err) == WEFT_OK, "%s",
          err.text);
    lanes[1].comms[WEFT_GROUP_ALL] = open_branch(s, "across", WEFT_GROUP_ALL);
    lanes[1].comms[WEFT_GROUP_ACROSS] = open_branch(s, "across", WEFT_GROUP_ACROSS);
}

static void synchronise_lanes(struct lane lanes[LANES])
{
    struct weft_error err = {.status = WEFT_OK};
    for (int l = 0; l < LANES; l++)
        CHECK(weft_stream_synchronise(lanes[l].stream, &err) == WEFT_OK, "%s", err.text);
}

/* A flag that a rank raises goes to the ranks of its group, and by both groups to all. */
static void test_flag(struct site *s, const struct shape *shape, struct lane lanes[LANES])
{
    struct weft_error err = {.status = WEFT_OK};
    _Atomic uint32_t *flag = (_Atomic uint32_t *)(void *)(s->arena + FLAG);
    const int32_t raising = shape->ranks - 1;
    atomic_store(flag, 0);
    weft_comm_carry(s->comm, FLAG);
    CHECK(weft_comm_exchange(s->comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    if (s->rank == raising) atomic_store(flag, 1);
    weft_comm_agree(lanes[0].comms[WEFT_GROUP_NODE], lanes[0].stream, 0, 4096, 1, 0);
    synchronise_lanes(lanes);
    CHECK((atomic_load(flag) != 0) == (s->rank / shape->per_node == raising / shape->per_node),
          "the node, and no other");
    weft_comm_agree(lanes[1].comms[WEFT_GROUP_ACROSS], lanes[1].stream, 0, 4096, 1, 0);
    synchronise_lanes(lanes);
    CHECK(atomic_load(flag) == 1, "both groups together are all ranks");
    weft_comm_carry(s->comm, -1);
}

static int run_groups(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct shape *shape = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct lane lanes[LANES];
    struct site s;
    options.ranks_per_node = shape->per_node;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    open_lanes(&s, lanes);
    CHECK(weft_comm_all_staging_bytes(s.comm) == 4 * weft_comm_staging_bytes(s.comm),
          "staging of the communicator and its three branches");
    for (int round = 0; round < ROUNDS; round++) {
        for (int l = 0; l < LANES; l++) {
            lanes[l].call = call_of(l, round);
            lanes[l].group = group_of(shape, lanes[l].call.group, rank);
            const struct weft_comm *comm = lanes[l].comms[lanes[l].call.group];
            CHECK(weft_comm_ranks(comm) == lanes[l].group.n, "ranks of the group");
            CHECK(weft_comm_rank(comm) == lanes[l].group.self, "rank in the group");
            push_call(&s, &lanes[l]);
        }
        synchronise_lanes(lanes);
        for (int l = 0; l < LANES; l++)
            check_call(&s, &lanes[l]);
    }
    test_flag(&s, shape, lanes);
    weft_stream_destroy(lanes[1].stream);
    site_close(&s);
    return 0;
}

/* Ranks over NCCL tell it in other words. */
static bool is_on_gpus(void)
{
    const char *comm = getenv("WEFT_TEST_COMM");
    return comm != NULL && strcmp(comm, "cuda") == 0;
}

/* A rank that leaves the node's collective out: its node names the lane and the rank, and after a
 * cancel no branch waits any more. */
static int run_missing(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct shape *shape = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct lane lanes[LANES];
    struct site s;
    options.ranks_per_node = shape->per_node;
    options.timeout_ns = 300 * ms;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    open_lanes(&s, lanes);
    if (rank == shape->ranks - 1) {
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 900 * ms);
    } else if (rank == shape->ranks - 2) {
        weft_comm_agree(lanes[0].comms[WEFT_GROUP_NODE], lanes[0].stream, 0, 4096, 1, 0);
        CHECK(weft_stream_synchronise(lanes[0].stream, &err) == WEFT_E_HANG, "%s", err.text);
        char late[32];
        snprintf(late, sizeof late, "rank %d", shape->ranks - 1);
        CHECK(strstr(err.text, is_on_gpus() ? " (lane network, group node)"
                                            : "in agree (lane network, group node), call ") != NULL,
              "%s", err.text);
        CHECK(strstr(err.text, late) != NULL, "%s is not in: %s", late, err.text);
        weft_comm_cancel(lanes[0].comms[WEFT_GROUP_NODE]);
        weft_comm_agree(lanes[1].comms[WEFT_GROUP_ALL], lanes[1].stream, 0, 4096, 1, 0);
        /* Ranks of a launcher end with the cause's code on each branch. */
        const enum weft_status given_up = ranks->over_mpi ? WEFT_E_HANG : WEFT_E_LOST;
        CHECK(weft_stream_synchronise(lanes[1].stream, &err) == given_up, "%s", err.text);
        CHECK(weft_comm_exchange(s.comm, NULL, 0, NULL, &err) == given_up, "%s", err.text);
    }
    weft_stream_destroy(lanes[1].stream);
    site_close(&s);
    return 0;
}

/* Ranks of two nodes of 2. Rank 2 is the first that has waited too long, across nodes for rank 0.
 * Rank 0 does not come, because it waits in its node for rank 1. */
static int run_held_up(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct lane lanes[LANES];
    struct site s;
    (void)argument;
    options.ranks_per_node = 2;
    options.timeout_ns = 800 * ms;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    open_lanes(&s, lanes);
    if (rank == 2) {
        weft_comm_agree(lanes[1].comms[WEFT_GROUP_ACROSS], lanes[1].stream, 0, 4096, 1, 0);
        CHECK(weft_stream_synchronise(lanes[1].stream, &err) == WEFT_E_HANG, "%s", err.text);
        CHECK(strstr(err.text, is_on_gpus() ? "rank 1 is late, and rank 0 waits for it: rank 0 has"
                                            : "; rank 0 waits for rank 1") != NULL,
              "%s", err.text);
        CHECK(is_on_gpus() || strstr(err.text, "did not come: rank 1 (process ") != NULL, "%s",
              err.text);
    } else if (rank == 0) {
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 200 * ms);
        weft_comm_agree(lanes[0].comms[WEFT_GROUP_NODE], lanes[0].stream, 0, 4096, 1, 0);
        CHECK(weft_stream_synchronise(lanes[0].stream, &err) != WEFT_OK, "rank 1 came");
    } else {
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 2000 * ms);
    }
    weft_stream_destroy(lanes[1].stream);
    site_close(&s);
    return 0;
}

/* Fills the node that each node meets in a round, itself if none. */
static void list_partners(int32_t nodes, int32_t round, int32_t *partners)
{
    for (int32_t node = 0; node < nodes; node++)
        partners[node] = node;
    for (int32_t node = round; node + 1 < nodes; node += 2) {
        partners[node] = node + 1;
        partners[node + 1] = node;
    }
    if (round == 0 || nodes % 2 != 0) return;
    partners[0] = nodes - 1;
    partners[nodes - 1] = 0;
}

/* All pairs of nodes sum at once, in both rounds by turns. */
static int run_pairs(int32_t rank, const struct ranks *ranks, void *argument)
{
    enum { TURNS = 40, MOST_RANKS_HERE = 16 };
    const struct shape *shape = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *pairs[2];
    struct site s;
    options.ranks_per_node = shape->per_node;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    for (int32_t round = 0; round < 2; round++)
        CHECK(weft_comm_pair(s.comm, "across", round, &pairs[round], &err) == WEFT_OK, "%s",
              err.text);
    uint64_t *words = (uint64_t *)(void *)s.arena;
    for (int32_t turn = 0; turn < TURNS; turn++) {
        int32_t partners[MOST_RANKS_HERE];
        const int32_t node = rank / shape->per_node, round = turn % 2;
        list_partners(shape->ranks / shape->per_node, round, partners);
        const int32_t other = partners[node];
        const uint64_t peer = (uint64_t)(other * shape->per_node + rank % shape->per_node);
        CHECK(weft_comm_ranks(pairs[round]) == (other == node ? 1 : 2), "ranks of the pair");
        CHECK(weft_comm_rank(pairs[round]) == (other < node), "rank in the pair");
        words[round] = (uint64_t)(turn * 100 + rank);
        weft_comm_agree(pairs[round], s.channel, round * 8, 4096, 1, 0);
        site_synchronise(&s);
        const uint64_t sum = (uint64_t)(turn * 100) + peer;
        CHECK(words[512] == words[round] + (other == node ? 0 : sum), "turn %d, rank %d", turn,
              rank);
    }
    site_close(&s);
    return 0;
}

RANKS_TEST(groups)
{
    static const struct shape shapes[] = {{1, 1}, {2, 1}, {3, 3}, {4, 2}, {4, 1}, {6, 2}, {6, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct shape shape = shapes[i];
        if (is_on_gpus() && shape.ranks == 1) continue; /* it has no lanes */
        CHECK(ranks_run(shape.ranks, run_groups, &shape) == 0, "%d ranks, %d a node", shape.ranks,
              shape.per_node);
    }
    static const struct shape of_pairs[] = {{2, 1}, {3, 1}, {4, 1}, {4, 2}, {5, 1}, {6, 2}, {6, 1}};
    for (size_t i = 0; i < sizeof of_pairs / sizeof of_pairs[0]; i++) {
        struct shape shape = of_pairs[i];
        if (is_on_gpus() && i % 2 == 0) continue; /* links take long to open */
        CHECK(ranks_run(shape.ranks, run_pairs, &shape) == 0, "pairs of %d ranks, %d a node",
              shape.ranks, shape.per_node);
    }
    struct shape two = {4, 2};
    CHECK(ranks_run(two.ranks, run_missing, &two) == 0, "a rank that does not come");
    /* Ranks over messages do not learn for whom others wait. */
    const char *comm = getenv("WEFT_TEST_COMM");
    if (comm == NULL || strcmp(comm, "mpi") != 0)
        CHECK(ranks_run(two.ranks, run_held_up, NULL) == 0, "a rank that another holds up");
    return 0;
}
