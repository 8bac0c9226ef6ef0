/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives under ThreadSanitizer, with 2 to 4 ranks as threads. They write their inputs right
 * before each collective and read its results right after it. Only the collective orders these
 * accesses against the peers. Without the sanitizer it still checks the results. */
#include <stdio.h>

#include "runtime/comm/branch.h"
#include "tests/runtime/comm/site.h"
#include "tests/runtime/comm/threads.h"

enum { ROUNDS = 1000, COUNT = 96, FULL = 0, SLICE = 4096, WORDS = 8192, SUMS = 8448, N_WORDS = 32 };
enum { ARENA_BYTES = 1 << 14 };

static const struct weft_comm_block block = {
    .full_offset = FULL, .slice_offset = SLICE, .slice_elements = COUNT};

static float value_of(int32_t rank, int32_t round, int64_t element)
{
    return (float)(rank * 64 + round % 64) + (float)element;
}

static void gather(struct site *s, int32_t round)
{
    for (int64_t i = 0; i < COUNT; i++)
        site_floats(s, SLICE)[i] = value_of(s->rank, round, i);
    weft_comm_all_gather(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < s->ranks * COUNT; i++) {
        float expected = value_of((int32_t)(i / COUNT), round, i % COUNT);
        CHECK(site_floats(s, FULL)[i] == expected, "gather, round %d", round);
    }
}

static void fill_full(struct site *s, int32_t round)
{
    for (int64_t i = 0; i < s->ranks * COUNT; i++)
        site_floats(s, FULL)[i] = value_of(s->rank, round, i);
}

static float sum_of(int32_t ranks, int32_t round, int64_t element)
{
    float sum = 0;
    for (int32_t rank = 0; rank < ranks; rank++)
        sum += value_of(rank, round, element);
    return sum;
}

static void reduce_scatter(struct site *s, int32_t round)
{
    fill_full(s, round);
    weft_comm_reduce_scatter(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < COUNT; i++) {
        CHECK(site_floats(s, SLICE)[i] == sum_of(s->ranks, round, s->rank * COUNT + i),
              "reduce_scatter, round %d", round);
    }
}

static void all_reduce(struct site *s, int32_t round)
{
    fill_full(s, round);
    weft_comm_all_reduce(s->comm, s->channel, &block);
    site_synchronise(s);
    for (int64_t i = 0; i < s->ranks * COUNT; i++) {
        CHECK(site_floats(s, FULL)[i] == sum_of(s->ranks, round, i), "all_reduce, round %d", round);
    }
}

static void agree(struct site *s, int32_t round)
{
    uint64_t *from = (uint64_t *)(void *)(s->arena + WORDS);
    const uint64_t *to = (const uint64_t *)(const void *)(s->arena + SUMS);
    for (int i = 0; i < N_WORDS; i++)
        from[i] = (uint64_t)(s->rank + round + i);
    weft_comm_agree(s->comm, s->channel, WORDS, SUMS, N_WORDS, 0);
    site_synchronise(s);
    for (int i = 0; i < N_WORDS; i++) {
        uint64_t ranks = (uint64_t)s->ranks;
        uint64_t expected = ranks * (uint64_t)(round + i) + ranks * (ranks - 1) / 2;
        CHECK(to[i] == expected, "agree, round %d", round);
    }
}

static void exchange(struct site *s, int32_t round)
{
    int32_t mine = s->rank * 1000 + round, all[MOST_RANKS];
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_comm_exchange(s->comm, &mine, sizeof mine, all, &err) == WEFT_OK, "%s", err.text);
    for (int32_t rank = 0; rank < s->ranks; rank++)
        CHECK(all[rank] == rank * 1000 + round, "exchange, round %d", round);
}

typedef void step_fn(struct site *s, int32_t round);
static step_fn *const steps[] = {gather, reduce_scatter, all_reduce, agree, exchange};
enum { N_STEPS = sizeof steps / sizeof steps[0] };

static int work(int32_t rank, const struct ranks *ranks, void *argument)
{
    const enum weft_clock *clock = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct site s;
    site_open(&s, &options, *clock, ARENA_BYTES);
    for (int32_t round = 0; round < ROUNDS; round++) {
        step_fn *step = steps[round % N_STEPS];
        step(&s, round);
        step(&s, round + 1); /* writes the first one's source again at once */
    }
    site_close(&s);
    return 0;
}

/* Sums of two levels on two lanes: within nodes of two ranks, then across them. */
static int work_on_lanes(int32_t rank, const struct ranks *ranks, void *argument)
{
    enum { PER_NODE = 2, NODES = 2 };
    const struct weft_comm_block across = {.full_offset = SLICE, .slice_elements = COUNT / NODES};
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *node = NULL, *between = NULL;
    struct weft_stream *stream = NULL;
    struct weft_event *summed = NULL, *done = NULL;
    struct site s;
    (void)argument;
    options.ranks_per_node = PER_NODE;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    CHECK(weft_comm_branch(s.comm, "network", WEFT_GROUP_NODE, &node, &err) == WEFT_OK &&
              weft_comm_branch(s.comm, "across", WEFT_GROUP_ACROSS, &between, &err) == WEFT_OK &&
              weft_stream_create(s.device, "across", 0, &stream, &err) == WEFT_OK &&
              weft_event_create(s.device, &summed, &err) == WEFT_OK &&
              weft_event_create(s.device, &done, &err) == WEFT_OK,
          "%s", err.text);
    for (int32_t round = 0; round < ROUNDS / 2; round++) {
        fill_full(&s, round);
        weft_comm_reduce_scatter(node, s.channel, &block);
        weft_stream_record(s.channel, summed);
        weft_comm_agree(node, s.channel, WORDS, SUMS, N_WORDS, 0); /* next to the other lane's */
        weft_stream_wait(stream, summed);
        weft_comm_all_reduce(between, stream, &across);
        weft_stream_record(stream, done);
        weft_stream_wait(s.channel, done);
        site_synchronise(&s);
        for (int64_t i = 0; i < COUNT; i++)
            CHECK(site_floats(&s, SLICE)[i] == sum_of(s.ranks, round, rank % PER_NODE * COUNT + i),
                  "two levels, round %d", round);
    }
    weft_event_destroy(summed);
    weft_event_destroy(done);
    weft_stream_destroy(stream);
    site_close(&s);
    return 0;
}

int main(void)
{
    enum weft_clock wall = WEFT_CLOCK_WALL, virtual = WEFT_CLOCK_VIRTUAL;
    CHECK(threads_run(2, work, &wall) == 0, "2 ranks");
    CHECK(threads_run(3, work, &wall) == 0, "3 ranks");
    CHECK(threads_run(3, work, &virtual) == 0, "3 ranks, virtual clock");
    CHECK(threads_run(4, work_on_lanes, NULL) == 0, "2 nodes of 2 ranks");
    return 0;
}
