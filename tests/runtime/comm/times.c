/* When a collective ends: exactly, on the virtual clock; not before the link allows it, on the wall
 * clock with an emulated link. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/runtime/comm/site.h"

enum { ARENA_BYTES = 1 << 20, FULL = 0, SLICE = 1 << 19, ELEMENTS = 1024 };

static const int64_t us = 1000, ms = 1000000;

static const struct weft_comm_block block = {
    .full_offset = FULL, .slice_offset = SLICE, .slice_elements = ELEMENTS, .ns = 50};

/* Every rank comes at its own time; all leave at the latest one's plus the declared time, and not
 * before the collective ahead of it in the channel has ended. */
static int run_virtual(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    /* A virtual clock does not wait for the emulated link. */
    options.emulate = true;
    options.alpha_ns = INT64_C(3600) * 1000 * ms;
    options.bytes_per_s = 1;
    struct site s;
    int64_t stamps[5];
    site_open(&s, &options, WEFT_CLOCK_VIRTUAL, ARENA_BYTES);
    weft_stream_advance(s.channel, 100 * rank);
    weft_comm_all_gather(s.comm, s.channel, &block);
    weft_stream_stamp(s.channel, &stamps[0]);
    weft_comm_reduce_scatter(s.comm, s.channel, &block);
    weft_stream_stamp(s.channel, &stamps[1]);
    if (rank == 0) weft_stream_advance(s.channel, 1000); /* now rank 0 is the last */
    weft_comm_all_reduce(s.comm, s.channel, &block);
    weft_stream_stamp(s.channel, &stamps[2]);
    weft_comm_agree(s.comm, s.channel, 0, 4096, 16, 7);
    weft_stream_stamp(s.channel, &stamps[3]);
    weft_comm_agree(s.comm, s.channel, 0, 4096, 16, 0);
    weft_stream_stamp(s.channel, &stamps[4]);
    site_synchronise(&s);
    int64_t last = 100 * (ranks->n - 1);
    const int64_t expected[5] = {last + 50, last + 100, last + 1150, last + 1157, last + 1157};
    for (int i = 0; i < 5; i++)
        CHECK(stamps[i] == expected[i], "%d: %lld", i, (long long)stamps[i]);

    /* A stream that is early finds the one link still taken. */
    struct weft_stream *early = NULL;
    CHECK(weft_stream_create(s.device, "early", 0, &early, NULL) == WEFT_OK, "stream");
    weft_comm_all_gather(s.comm, early, &block);
    weft_stream_stamp(early, &stamps[0]);
    CHECK(weft_stream_synchronise(early, NULL) == WEFT_OK, "all_gather");
    CHECK(stamps[0] == last + 1157 + 50, "%lld", (long long)stamps[0]);
    weft_stream_destroy(early);
    site_close(&s);
    return 0;
}

/* Back to back, so that the second waits for the link and not for its ranks. */
static int64_t time_of(struct site *s, int times, void (*call)(struct site *s))
{
    int64_t from, to;
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_comm_exchange(s->comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    weft_stream_stamp(s->channel, &from);
    for (int i = 0; i < times; i++)
        call(s);
    weft_stream_stamp(s->channel, &to);
    site_synchronise(s);
    return to - from;
}

static void gather(struct site *s)
{
    weft_comm_all_gather(s->comm, s->channel, &block);
}

static void scatter(struct site *s)
{
    weft_comm_reduce_scatter(s->comm, s->channel, &block);
}

static void reduce(struct site *s)
{
    weft_comm_all_reduce(s->comm, s->channel, &block);
}

static void agree(struct site *s)
{
    weft_comm_agree(s->comm, s->channel, 0, 4096, 16, 0);
}

/* Never early. How late depends on who else uses this machine, so there is only a wide limit, which
 * still tells 2 ms from twice that. */
static void check_time(int64_t got_ns, int64_t expected_ns, const char *what)
{
    CHECK(got_ns >= expected_ns, "%s: %lld ns is early, %lld expected", what, (long long)got_ns,
          (long long)expected_ns);
    CHECK(got_ns < expected_ns * 2, "%s: %lld ns is late, %lld expected", what, (long long)got_ns,
          (long long)expected_ns);
}

static int run_emulated(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    enum { TIMES = 10 };
    struct weft_comm_options options = ranks_options(rank, ranks);
    options.emulate = true;
    options.alpha_ns = 2 * ms;
    options.bytes_per_s = 4.096e6; /* a slice of 4096 bytes: 1 ms */
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    CHECK(strcmp(weft_comm_describe(s.comm), "local, emulated link 2.00 ms + 4.10 MB/s") == 0, "%s",
          weft_comm_describe(s.comm));
    int64_t pass_ns = 2 * ms + (ranks->n - 1) * ms;
    /* The arrival of a peer may lie before this rank's first stamp by what the barrier costs. */
    int64_t slack_ns = 500 * us;
    check_time(time_of(&s, TIMES, gather) + slack_ns, TIMES * pass_ns, "all_gather");
    check_time(time_of(&s, TIMES, scatter) + slack_ns, TIMES * pass_ns, "reduce_scatter");
    check_time(time_of(&s, TIMES, reduce) + slack_ns, TIMES * 2 * pass_ns, "all_reduce");
    check_time(time_of(&s, TIMES, agree) + slack_ns, TIMES * 4 * ms, "agree");
    site_close(&s);
    return 0;
}

static int run_alone(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    options.emulate = true;
    options.alpha_ns = INT64_C(3600) * 1000 * ms;
    options.bytes_per_s = 1;
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    CHECK(time_of(&s, 10, gather) < 1000 * ms, "a link to nobody costs time");
    CHECK(time_of(&s, 10, agree) < 1000 * ms, "a link to nobody costs time");
    site_close(&s);
    return 0;
}

int main(void)
{
    for (int32_t ranks = 1; ranks <= MOST_RANKS; ranks++)
        CHECK(ranks_run(ranks, run_virtual, NULL) == 0, "virtual clock, %d ranks", ranks);
    CHECK(ranks_run(1, run_alone, NULL) == 0, "one rank");
    CHECK(ranks_run(2, run_emulated, NULL) == 0, "emulated link, 2 ranks");
    CHECK(ranks_run(3, run_emulated, NULL) == 0, "emulated link, 3 ranks");
    return 0;
}
