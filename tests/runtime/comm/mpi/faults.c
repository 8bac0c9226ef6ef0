/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks over MPI that give up, hang, or make another call than the others. Blocks of several chunks
 * that do not divide anything. The bits are tested by comm-collectives-mpi. */
#define _GNU_SOURCE /* setenv */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/comm/branch.h"
#include "runtime/comm/mpi/rounds.h"
#include "tests/runtime/comm/mpi/double.h"
#include "tests/runtime/comm/site.h"

enum { ARENA_BYTES = 1 << 20, FAULTY = 1, SMALL_MESSAGE_BYTES = 60 << 10 };

static const int64_t ms = 1000000;
static const struct weft_comm_block block = {
    .full_offset = 0, .slice_offset = 1 << 19, .slice_elements = 1024};

/* The call fails with `status` and `text`, and the next one at once. */
static void check_error(struct site *s, enum weft_status expected, const char *text)
{
    for (int again = 0; again < 2; again++) {
        struct weft_error err = {.status = WEFT_OK};
        weft_comm_all_gather(s->comm, s->channel, &block);
        const int64_t start_ns = weft_clock_now_ns();
        const enum weft_status status = again ? weft_comm_exchange(s->comm, NULL, 0, NULL, &err)
                                              : weft_stream_synchronise(s->channel, &err);
        CHECK(status == expected, "status %d: %s", (int)status, err.text);
        CHECK(strstr(err.text, text) != NULL, "\"%s\" is not in: %s", text, err.text);
        CHECK(!again || weft_clock_now_ns() - start_ns < 100 * ms, "the second failure waited");
    }
}

static void open_ready(struct site *s, int32_t rank, const struct ranks *ranks, int64_t timeout_ns)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    if (timeout_ns > 0) options.timeout_ns = timeout_ns;
    site_open(s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    for (int i = 0; i < 3; i++)
        weft_comm_reduce_scatter(s->comm, s->channel, &block);
    site_synchronise(s);
}

static int run_given_up(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    (void)argument;
    open_ready(&s, rank, ranks, 0);
    if (rank == FAULTY)
        weft_comm_cancel(s.comm);
    else
        check_error(&s, WEFT_E_LOST, "rank 1 (host ");
    site_close(&s);
    return 0;
}

static int run_hung(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    (void)argument;
    open_ready(&s, rank, ranks, rank == FAULTY ? 0 : 300 * ms);
    if (rank == FAULTY)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 1500 * ms);
    else
        check_error(&s, WEFT_E_HANG, ". They may wait for other ranks themselves. If they are");
    site_close(&s);
    return 0;
}

/* The first rank that waits too long tells the others, which would wait for 10 minutes, for whom.
 * The late rank hears of it too. Another call of a rank that has given up has the cause's code. */
static int run_missed(int32_t rank, const struct ranks *ranks, void *argument)
{
    static const char told[] = "gave up its wait for ranks that did not come: rank 1 (host ";
    struct site s;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *branch = NULL;
    (void)argument;
    open_ready(&s, rank, ranks, rank == 0 ? 300 * ms : 0);
    CHECK(weft_comm_branch(s.comm, "other", WEFT_GROUP_ALL, &branch, &err) == WEFT_OK, "%s",
          err.text);
    if (rank == FAULTY) weft_clock_sleep_until_ns(weft_clock_now_ns() + 1000 * ms);
    if (rank == FAULTY) { /* the others' parts of the first call are there */
        weft_comm_all_gather(s.comm, s.channel, &block);
        site_synchronise(&s);
        CHECK(weft_comm_exchange(s.comm, NULL, 0, NULL, &err) == WEFT_E_HANG, "%s", err.text);
        CHECK(strstr(err.text, told) != NULL, "%s", err.text);
        CHECK(strstr(err.text, ". They may wait for other ranks themselves. If") != NULL, "%s",
              err.text);
    } else if (rank != 0) {
        check_error(&s, WEFT_E_HANG, told);
    } else {
        check_error(&s, WEFT_E_HANG, "was last heard in call");
        weft_comm_cancel(s.comm);
        CHECK(weft_comm_exchange(branch, NULL, 0, NULL, &err) == WEFT_E_HANG, "%s", err.text);
        CHECK(strstr(err.text, told) != NULL, "%s", err.text);
    }
    site_close(&s);
    return 0;
}

/* Longer than the timeout, which then holds for exchanges only. */
static int run_expected(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    struct weft_error err = {.status = WEFT_OK};
    (void)argument;
    open_ready(&s, rank, ranks, rank == FAULTY ? 0 : 200 * ms);
    weft_comm_expect(s.comm, 1);
    if (rank == FAULTY) weft_clock_sleep_until_ns(weft_clock_now_ns() + 500 * ms);
    weft_comm_reduce_scatter(s.comm, s.channel, &block);
    site_synchronise(&s);
    if (rank == FAULTY)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 1000 * ms);
    else
        CHECK(weft_comm_exchange(s.comm, NULL, 0, NULL, &err) == WEFT_E_HANG, "%s", err.text);
    site_close(&s);
    return 0;
}

/* All ranks find out, whether sizes, addresses or kinds differ. */
static int run_otherwise(int32_t rank, const struct ranks *ranks, void *argument)
{
    const int *way = argument;
    struct site s;
    struct weft_comm_block other = block;
    struct weft_error err = {.status = WEFT_OK};
    open_ready(&s, rank, ranks, 0);
    if (*way == 0) other.slice_elements = 512;
    if (*way == 1) other.slice_offset += 64;
    if (rank != FAULTY)
        weft_comm_reduce_scatter(s.comm, s.channel, &block);
    else if (*way == 2)
        weft_comm_all_gather(s.comm, s.channel, &block);
    else
        weft_comm_reduce_scatter(s.comm, s.channel, &other);
    const enum weft_status status = weft_stream_synchronise(s.channel, &err);
    CHECK(status == WEFT_E_DISAGREE, "way %d, status %d: %s", *way, (int)status, err.text);
    CHECK(strstr(err.text, "reduce_scatter of 1024 from 0 to 524288") != NULL, "%s", err.text);
    site_close(&s);
    return 0;
}

static void test_chunks(int64_t message_bytes)
{
    for (int32_t ranks = 2; ranks < 20000; ranks = ranks * 3 / 2 + 1) {
        const int64_t bytes = weft_mpi_staged_chunk_bytes(ranks, message_bytes);
        CHECK(bytes >= 8 && bytes % 8 == 0 && bytes <= message_bytes, "%d ranks", (int)ranks);
        CHECK(2 * bytes * (ranks - 1) <= WEFT_MPI_STAGING_BYTES, "%d ranks", (int)ranks);
    }
}

/* Blocks of several chunks, sums that no chunk divides. */
static int run_large(int32_t rank, const struct ranks *ranks, void *argument)
{
    const int64_t n = 3 * WEFT_MPI_MESSAGE_BYTES / 4 + 4123;
    const int64_t bytes = n * (int64_t)sizeof(float), full_bytes = bytes * ranks->n;
    const struct weft_comm_options options = ranks_options(rank, ranks);
    struct site s;
    (void)argument;
    site_open(&s, &options, WEFT_CLOCK_WALL, full_bytes + bytes);
    const struct weft_comm_block large = {
        .full_offset = 0, .slice_offset = full_bytes, .slice_elements = n};
    for (int64_t i = 0; i < n * ranks->n; i++)
        site_floats(&s, 0)[i] = (float)((i + rank) % 1024);
    weft_comm_reduce_scatter(s.comm, s.channel, &large);
    site_synchronise(&s);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int32_t r = 0; r < ranks->n; r++)
            sum += (float)((n * rank + i + r) % 1024);
        CHECK(site_floats(&s, full_bytes)[i] == sum, "element %lld", (long long)i);
    }
    for (int64_t i = 0; i < n; i++)
        site_floats(&s, full_bytes)[i] = (float)(rank * 7 + i % 5);
    weft_comm_all_gather(s.comm, s.channel, &large);
    site_synchronise(&s);
    for (int64_t i = 0; i < n * ranks->n; i++)
        CHECK(site_floats(&s, 0)[i] == (float)(i / n * 7 + i % n % 5), "element %lld",
              (long long)i);
    site_close(&s);
    return 0;
}

RANKS_TEST(mpi_faults)
{
    setenv("WEFT_TEST_COMM", "mpi", 1);
    test_chunks(WEFT_MPI_MESSAGE_BYTES);
    test_chunks(SMALL_MESSAGE_BYTES);
    CHECK(ranks_run(3, run_given_up, NULL) == 0, "given up");
    CHECK(ranks_run(3, run_hung, NULL) == 0, "hung");
    for (int32_t n = 3; n <= MOST_RANKS; n++)
        CHECK(ranks_run(n, run_missed, NULL) == 0, "missed, %d ranks", n);
    CHECK(ranks_run(3, run_expected, NULL) == 0, "expected");
    for (int way = 0; way < 3; way++)
        CHECK(ranks_run(3, run_otherwise, &way) == 0, "otherwise, %d", way);
    for (int32_t n = 1; n <= MOST_RANKS; n++)
        CHECK(ranks_run(n, run_large, NULL) == 0, "large, %d ranks", n);
    mpi_double_calls.round_bytes = SMALL_MESSAGE_BYTES;
    for (int32_t n = 2; n <= MOST_RANKS; n++)
        CHECK(ranks_run(n, run_large, NULL) == 0, "large, small messages, %d ranks", n);
    return 0;
}
