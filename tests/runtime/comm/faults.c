/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die, leave, hang, stop or call another operation than the others. */
#define _GNU_SOURCE /* SIGCONT and other signals, next to fork */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/comm/backend.h"
#include "tests/runtime/comm/site.h"

enum { ARENA_BYTES = 1 << 20, FAULTY = 1 };

static const int64_t ms = 1000000;

static const struct weft_comm_block block = {
    .full_offset = 0, .slice_offset = 1 << 19, .slice_elements = 1024};

/* All ranks but the faulty one call all_gather and must fail with `status` and `text` in time. */
struct expected {
    enum weft_status status;
    const char *text[3];
    int64_t within_ns;
};

static void check_error(struct site *s, const struct expected *expected)
{
    for (int again = 0; again < 2; again++) { /* the second time at once */
        struct weft_error err = {.status = WEFT_OK};
        int64_t start_ns = weft_clock_now_ns();
        enum weft_status status;
        if (again) {
            status = weft_comm_exchange(s->comm, NULL, 0, NULL, &err);
        } else {
            weft_comm_all_gather(s->comm, s->channel, &block);
            status = weft_stream_synchronise(s->channel, &err);
        }
        int64_t ns = weft_clock_now_ns() - start_ns;
        CHECK(status == expected->status, "status %d: %s", (int)status, err.text);
        for (int i = 0; i < 3 && expected->text[i] != NULL; i++)
            CHECK(strstr(err.text, expected->text[i]) != NULL, "\"%s\" is not in: %s",
                  expected->text[i], err.text);
        CHECK(ns < (again ? 50 * ms : expected->within_ns), "%lld ns", (long long)ns);
    }
}

static void warm_up(struct site *s)
{
    for (int i = 0; i < 5; i++)
        weft_comm_reduce_scatter(s->comm, s->channel, &block);
    site_synchronise(s);
}

static int run_killed(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    static const struct expected lost = {WEFT_E_LOST,
                                         {"rank 1 (process ", "has ended while rank",
                                          "in all_gather, call 9; its last calls were "
                                          "reduce_scatter, reduce_scatter, reduce_scatter, "
                                          "reduce_scatter, call 8"},
                                         2000 * INT64_C(1000000)};
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    warm_up(&s);
    if (rank == FAULTY) raise(SIGKILL);
    check_error(&s, &lost);
    site_close(&s);
    return 0;
}

static void test_killed(void)
{
    struct ranks ranks;
    ranks_start(&ranks, 4, run_killed, NULL);
    CHECK(ranks_wait(&ranks) == 1, "only the killed one fails");
    CHECK(WIFSIGNALED(ranks.outcomes[FAULTY]), "the killed one");
}

static int run_leaving(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    static const struct expected lost = {
        WEFT_E_LOST, {"rank 1 (process ", "has left while rank"}, 2000 * INT64_C(1000000)};
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    warm_up(&s);
    if (rank != FAULTY) check_error(&s, &lost);
    site_close(&s);
    /* Leaves, but does not end until the others have heard of it. */
    if (rank == FAULTY) weft_clock_sleep_until_ns(weft_clock_now_ns() + 500 * ms);
    return 0;
}

static int run_hanging(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    static const struct expected hang = {
        WEFT_E_HANG,
        {"waited 300 ms in all_gather, call 9", "rank 1 (process ",
         "is alive, its last calls were reduce_scatter, reduce_scatter, reduce_scatter, "
         "reduce_scatter, call 8. If they are only slow"},
        1000 * INT64_C(1000000)};
    struct weft_comm_options options = ranks_options(rank, ranks);
    options.timeout_ns = 300 * ms;
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    warm_up(&s);
    if (rank == FAULTY) {
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 1500 * ms);
    } else {
        int64_t start_ns = weft_clock_now_ns();
        check_error(&s, &hang);
        CHECK(weft_clock_now_ns() - start_ns >= 300 * ms, "gave up early");
    }
    site_close(&s);
    return 0;
}

/* Longer than the timeout, which then holds for exchanges only. */
static int run_expected(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    options.timeout_ns = 200 * ms;
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    weft_comm_expect(s.comm, 1);
    if (rank == FAULTY) weft_clock_sleep_until_ns(weft_clock_now_ns() + 500 * ms);
    warm_up(&s);
    if (rank == FAULTY) weft_clock_sleep_until_ns(weft_clock_now_ns() + 500 * ms);
    if (rank != FAULTY) {
        CHECK(weft_comm_exchange(s.comm, NULL, 0, NULL, &err) == WEFT_E_HANG, "%s", err.text);
        CHECK(strstr(err.text, "waited 200 ms in exchange") != NULL, "%s", err.text);
    }
    site_close(&s);
    return 0;
}

static void test_patience(void)
{
    const int64_t s = 1000 * ms, given = 600 * s;
    const struct {
        int64_t longest_ns, wanted_ns;
    } cases[] = {{0, given},     {1, 10 * s},        {s / 2, 10 * s},
                 {s, 20 * s},    {60 * s, 1200 * s}, {INT64_MAX, INT64_MAX / 2},
                 {-5 * s, given}};
    struct weft_comm trunk = {.trunk = NULL}, branch = {.trunk = &trunk};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_comm_expect(&trunk, cases[i].longest_ns);
        CHECK(weft_comm_patience_ns(&branch, true, given) == cases[i].wanted_ns, "case %zu", i);
        CHECK(weft_comm_patience_ns(&branch, false, given) == given, "case %zu, an exchange", i);
    }
    weft_comm_wait_longer(&trunk, 7 * s);
    CHECK(weft_comm_patience_ns(&trunk, false, given) == 607 * s, "a longer exchange");
    CHECK(weft_comm_patience_ns(&trunk, true, given) == given, "a collective");
    CHECK(weft_comm_patience_ns(&branch, false, given) == given, "an exchange of a branch");
}

static int run_never_started(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_error err = {.status = WEFT_OK};
    options.timeout_ns = 200 * ms;
    if (rank == FAULTY) return 0;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_E_HANG, "%s", err.text);
    CHECK(strstr(err.text, "rank 1 never started") != NULL, "%s", err.text);
    CHECK(comm == NULL, "an output was touched");
    return 0;
}

/* Stopped and continued in time: nothing happened. */
static int run_stopped(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    site_floats(&s, block.slice_offset)[0] = (float)rank;
    if (rank == FAULTY) raise(SIGSTOP);
    weft_comm_all_gather(s.comm, s.channel, &block);
    site_synchronise(&s);
    CHECK(site_floats(&s, 0)[FAULTY * 1024] == 1.0F, "the stopped rank's slice");
    site_close(&s);
    return 0;
}

static void test_stopped(void)
{
    struct ranks ranks;
    int outcome;
    ranks_start(&ranks, 3, run_stopped, NULL);
    CHECK(waitpid(ranks.pids[FAULTY], &outcome, WUNTRACED) == ranks.pids[FAULTY], "waitpid");
    CHECK(WIFSTOPPED(outcome), "did not stop");
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 400 * ms);
    kill(ranks.pids[FAULTY], SIGCONT);
    CHECK(ranks_wait(&ranks) == 0, "a stopped rank");
}

static int run_different(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    if (rank == FAULTY) {
        weft_comm_reduce_scatter(s.comm, s.channel, &block);
    } else {
        weft_comm_all_gather(s.comm, s.channel, &block);
    }
    CHECK(weft_stream_synchronise(s.channel, &err) == WEFT_E_DISAGREE, "%s", err.text);
    CHECK(strstr(err.text, "all_gather of 1024 from 524288 to 0") != NULL, "%s", err.text);
    CHECK(strstr(err.text, "reduce_scatter of 1024 from 0 to 524288") != NULL, "%s", err.text);
    site_close(&s);
    return 0;
}

/* The same call with as many elements at another place. */
static int run_elsewhere(int32_t rank, const struct ranks *ranks, void *argument)
{
    const bool *gathers = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm_block other = block;
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    if (rank == FAULTY) other.full_offset += 64;
    if (*gathers)
        weft_comm_all_gather(s.comm, s.channel, &other);
    else
        weft_comm_reduce_scatter(s.comm, s.channel, &other);
    CHECK(weft_stream_synchronise(s.channel, &err) == WEFT_E_DISAGREE, "%s", err.text);
    CHECK(strstr(err.text, *gathers ? "from 524288 to 64" : "from 64 to 524288") != NULL, "%s",
          err.text);
    site_close(&s);
    return 0;
}

static enum weft_status cancel_later(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_comm *comm;
    memcpy(&comm, argument, sizeof comm);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 100 * ms);
    weft_comm_cancel(comm);
    return WEFT_OK;
}

/* A rank that waits for one that comes late gives up, from another thread. */
static int run_cancelled(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    static const struct expected given_up = {
        WEFT_E_LOST, {"rank 1 has given up in all_gather, call 9"}, 400 * INT64_C(1000000)};
    static const struct expected left = {WEFT_E_LOST,
                                         {"rank 1 (process ", "has given up while rank 0 waited"},
                                         400 * INT64_C(1000000)};
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_stream *other = NULL;
    struct weft_error err = {.status = WEFT_OK};
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    warm_up(&s);
    CHECK(weft_stream_create(s.device, "other", 0, &other, &err) == WEFT_OK, "%s", err.text);
    if (rank == FAULTY) weft_stream_push(other, cancel_later, &s.comm, sizeof s.comm);
    if (rank == 2) weft_clock_sleep_until_ns(weft_clock_now_ns() + 800 * ms);
    if (rank != 2) check_error(&s, rank == FAULTY ? &given_up : &left);
    weft_stream_destroy(other);
    site_close(&s);
    return 0;
}

static int run_other_link(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_comm *comm = NULL;
    struct weft_error err = {.status = WEFT_OK};
    options.local.emulate = true;
    options.local.alpha_ns = rank == FAULTY ? 1 : 2;
    options.local.bytes_per_s = 1e9;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_E_DISAGREE, "%s", err.text);
    return 0;
}

/* Blocks that no plan may contain. */
static int run_wrong_blocks(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct weft_comm_block wrong[] = {
        {.full_offset = 0, .slice_offset = 1 << 19, .slice_elements = INT64_MAX / 4},
        {.full_offset = 0, .slice_offset = ARENA_BYTES - 8, .slice_elements = 4},
        {.full_offset = ARENA_BYTES - 4, .slice_offset = -1, .slice_elements = 1},
        {.full_offset = -4, .slice_offset = 1 << 19, .slice_elements = 1},
        {.full_offset = 0, .slice_offset = 1 << 19, .slice_elements = -1},
        {.full_offset = 0, .slice_offset = 4, .slice_elements = 128},
        {.full_offset = 0, .slice_offset = 1020, .slice_elements = 128},
        {.full_offset = 2, .slice_offset = -1, .slice_elements = 128},
    };
    size_t *at = argument, n = sizeof wrong / sizeof wrong[0];
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct site s;
    if (*at >= n) return 77;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    weft_comm_all_gather(s.comm, s.channel, &wrong[*at]);
    CHECK(weft_stream_synchronise(s.channel, &err) == WEFT_E_INTERNAL, "block %zu: %s", *at,
          err.text);
    site_close(&s);
    return 0;
}

static int run_wrong_agree(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct site s;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    weft_comm_agree(s.comm, s.channel, 0, 64, 9, 0);
    CHECK(weft_stream_synchronise(s.channel, &err) == WEFT_E_INTERNAL, "%s", err.text);
    CHECK(strstr(err.text, "overlaps itself") != NULL, "%s", err.text);
    site_close(&s);
    return 0;
}

RANKS_TEST(faults)
{
    test_killed();
    CHECK(ranks_run(3, run_leaving, NULL) == 0, "leaving");
    CHECK(ranks_run(3, run_hanging, NULL) == 0, "hanging");
    CHECK(ranks_run(3, run_expected, NULL) == 0, "expected");
    test_patience();
    CHECK(ranks_run(3, run_never_started, NULL) == 0, "never started");
    test_stopped();
    CHECK(ranks_run(3, run_different, NULL) == 0, "different calls");
    for (int gathers = 0; gathers < 2; gathers++)
        CHECK(ranks_run(3, run_elsewhere, &(bool){gathers}) == 0, "other addresses");
    CHECK(ranks_run(2, run_other_link, NULL) == 0, "different links");
    CHECK(ranks_run(3, run_cancelled, NULL) == 0, "a rank that gives up");
    for (size_t i = 0; i < 8; i++)
        CHECK(ranks_run(2, run_wrong_blocks, &i) == 0, "wrong block %zu", i);
    CHECK(ranks_run(2, run_wrong_agree, NULL) == 0, "agree that overlaps");
    return 0;
}
