/* SPDX-License-Identifier: Apache-2.0 */
/* When a collective ends: on the virtual clock, and on the wall clock with an emulated link;
 * exactly, on any machine. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/runtime/comm/site.h"

enum { ARENA_BYTES = 1 << 20, FULL = 0, SLICE = 1 << 19, ELEMENTS = 1024, SLICE_BYTES = 4096 };

static const int64_t ms = 1000000;

static const struct weft_comm_block block = {
    .full_offset = FULL, .slice_offset = SLICE, .slice_elements = ELEMENTS, .ns = 50};

/* Every rank comes at its own time; all leave at the latest one's plus the declared time, and not
 * before the collective ahead of it in the channel has ended. */
static int run_virtual(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    /* A virtual clock does not wait for the emulated link. */
    options.local.emulate = true;
    options.local.alpha_ns = INT64_C(3600) * 1000 * ms;
    options.local.bytes_per_s = 1;
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

/* The emulated link. A wait for it sleeps until a time that follows from the begin of calls. Here
 * the time is recorded and no thread sleeps. So calls stand back to back on the link, which is
 * slow enough for any machine to be early, and times are exact. */
enum { MOST_SLEEPS = 64 };
static int64_t sleeps_ns[MOST_SLEEPS];
static int n_sleeps;

void __wrap_weft_clock_sleep_until_ns(int64_t ns);
void __wrap_weft_clock_sleep_until_ns(int64_t ns)
{
    CHECK(n_sleeps < MOST_SLEEPS, "more sleeps than calls");
    sleeps_ns[n_sleeps++] = ns;
}

struct span {
    int64_t from_ns, to_ns;
};

static struct span repeat(struct site *s, int times, void (*call)(struct site *s))
{
    struct span span;
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_comm_exchange(s->comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    n_sleeps = 0;
    weft_stream_stamp(s->channel, &span.from_ns);
    for (int i = 0; i < times; i++)
        call(s);
    weft_stream_stamp(s->channel, &span.to_ns);
    site_synchronise(s);
    return span;
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

/* The link is taken once a call, for expected_ns: from the first call on, or from when it is free.
 */
static void check_link(struct site *s, void (*call)(struct site *s), int64_t *free_ns,
                       int64_t expected_ns, const char *what)
{
    enum { TIMES = 10 };
    struct span span = repeat(s, TIMES, call);
    CHECK(n_sleeps == TIMES, "%s: %d calls sleep %d times", what, TIMES, n_sleeps);
    int64_t start_ns = sleeps_ns[0] - expected_ns;
    if (*free_ns == 0) {
        CHECK(start_ns >= span.from_ns && start_ns <= span.to_ns,
              "%s: begins at %lld, not from %lld to %lld", what, (long long)start_ns,
              (long long)span.from_ns, (long long)span.to_ns);
    } else {
        CHECK(start_ns == *free_ns, "%s: begins %lld ns behind the one before", what,
              (long long)(start_ns - *free_ns));
    }
    for (int i = 1; i < TIMES; i++) {
        CHECK(sleeps_ns[i] - sleeps_ns[i - 1] == expected_ns, "%s: takes %lld ns, not %lld", what,
              (long long)(sleeps_ns[i] - sleeps_ns[i - 1]), (long long)expected_ns);
    }
    *free_ns = sleeps_ns[TIMES - 1];
}

static int run_emulated(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    const int64_t alpha_ns = INT64_C(3600) * 1000 * ms;
    struct weft_comm_options options = ranks_options(rank, ranks);
    options.local.emulate = true;
    options.local.alpha_ns = alpha_ns;
    options.local.bytes_per_s = SLICE_BYTES / 3600.0; /* a slice: as long as alpha */
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    CHECK(strcmp(weft_comm_describe(s.comm), "local, emulated link 60.0 min + 1.14 B/s") == 0, "%s",
          weft_comm_describe(s.comm));
    int64_t pass_ns = alpha_ns + (ranks->n - 1) * alpha_ns, free_ns = 0;
    check_link(&s, gather, &free_ns, pass_ns, "all_gather");
    check_link(&s, scatter, &free_ns, pass_ns, "reduce_scatter");
    check_link(&s, reduce, &free_ns, 2 * pass_ns, "all_reduce");
    check_link(&s, agree, &free_ns, 2 * alpha_ns, "agree");
    site_close(&s);
    return 0;
}

static int run_alone(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    options.local.emulate = true;
    options.local.alpha_ns = INT64_C(3600) * 1000 * ms;
    options.local.bytes_per_s = 1;
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    repeat(&s, 10, gather);
    CHECK(n_sleeps == 0, "a link to nobody costs time");
    repeat(&s, 10, agree);
    CHECK(n_sleeps == 0, "a link to nobody costs time");
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
