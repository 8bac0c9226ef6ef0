/* SPDX-License-Identifier: Apache-2.0 */
/* The end of GPU ranks that are out of step, over the doubles of CUDA and NCCL. Each rank ends
 * with the right status and names the first rank and operation that differ. The only waits are
 * those of the ranks. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, setenv */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/comm/local.h"
#include "tests/runtime/comm/site.h"

enum { RANKS = 3, ODD = 1, N = 64, FROM = 1024, TO = 4096, ARENA_BYTES = 1 << 16 };
static const int64_t second_ns = INT64_C(1000000000);

/* State that the ranks of a test share. */
struct shared {
    _Atomic int32_t ended; /* ranks that have learned of it */
    enum weft_status status[RANKS];
    char text[RANKS][1024];
};

static struct shared *share(void)
{
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "mmap");
    return shared;
}

static const struct weft_comm_block block = {
    .full_offset = TO, .slice_offset = FROM, .slice_elements = N};

static void open_site(struct site *s, int32_t rank, const struct ranks *ranks)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    options.timeout_ns = second_ns;
    site_open(s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    weft_comm_all_gather(s->comm, s->channel, &block);
    weft_comm_reduce_scatter(s->comm, s->channel, &block);
    site_synchronise(s);
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_comm_exchange(s->comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
}

/* Ends the rank like one with a failed step. */
static void end_site(struct site *s, struct shared *shared)
{
    struct weft_error err = {.status = WEFT_OK};
    shared->status[s->rank] = weft_stream_synchronise(s->channel, &err);
    snprintf(shared->text[s->rank], sizeof shared->text[0], "%.1000s", err.text);
    atomic_fetch_add(&shared->ended, 1);
    site_close(s);
}

static void check_told(const struct shared *shared, int32_t rank, enum weft_status status,
                       const char *text)
{
    CHECK(shared->status[rank] == status, "rank %d: status %d, not %d: %s", rank,
          (int)shared->status[rank], (int)status, shared->text[rank]);
    CHECK(strstr(shared->text[rank], text) != NULL, "rank %d says: %s", rank, shared->text[rank]);
}

/* The first that finds it says that it is overdue; the others may hear of that one first. */
static int32_t find_status(const struct shared *shared, enum weft_status status)
{
    for (int32_t rank = 0; rank < RANKS; rank++) {
        if (shared->status[rank] == status) return rank;
    }
    CHECK(false, "no rank ended with %d: %s; %s; %s", (int)status, shared->text[0], shared->text[1],
          shared->text[2]);
}

static int late_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct shared *shared = argument;
    struct site s;
    open_site(&s, rank, ranks);
    while (rank == ODD && atomic_load(&shared->ended) < RANKS - 1)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + second_ns / 100);
    const int64_t since_ns = weft_clock_now_ns();
    weft_comm_all_gather(s.comm, s.channel, &block);
    end_site(&s, shared);
    CHECK(weft_clock_now_ns() - since_ns < 20 * second_ns, "nobody hangs");
    return 0;
}

RANKS_TEST(a_late_rank_is_named_after_the_time)
{
    struct shared *shared = share();
    CHECK(ranks_run(RANKS, late_rank, shared) == 0, "a rank failed");
    const int32_t first = find_status(shared, WEFT_E_HANG);
    CHECK(first != ODD, "the late one waits for nobody");
    check_told(shared, first, WEFT_E_HANG,
               "rank 1 has not issued operation 3, which on rank 0 is all_gather of 768 bytes "
               "from offset 1024 to 4096");
    check_told(shared, first, WEFT_E_HANG, "cluster.timeout");
    check_told(shared, 0, WEFT_E_HANG, "rank 1 has not issued operation 3");
    check_told(shared, 2, WEFT_E_HANG, "rank 1 has not issued operation 3");
    /* It comes to ranks that are gone, does not wait for them, and hears why. */
    check_told(shared, ODD, WEFT_E_HANG, "rank 1 has not issued operation 3");
    return 0;
}

static int killed_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    open_site(&s, rank, ranks);
    if (rank == ODD) raise(SIGKILL);
    weft_comm_all_gather(s.comm, s.channel, &block);
    end_site(&s, argument);
    return 0;
}

RANKS_TEST(a_killed_rank_is_named_at_once)
{
    struct shared *shared = share();
    struct ranks ranks;
    ranks_start(&ranks, RANKS, killed_rank, shared);
    CHECK(ranks_wait(&ranks) == 1 && WIFSIGNALED(ranks.outcomes[ODD]), "the others end well");
    for (int32_t rank = 0; rank < RANKS; rank += 2)
        check_told(shared, rank, WEFT_E_LOST, "rank 1 has not issued operation 3");
    CHECK(strstr(shared->text[0], "rank 1 has ended") ||
              strstr(shared->text[2], "rank 1 has ended"),
          "%s; %s", shared->text[0], shared->text[2]);
    return 0;
}

static void *cancel(void *comm)
{
    weft_comm_cancel(comm);
    return NULL;
}

/* Another thread cancels, like the executor does when compute fails. */
static int cancelling_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    pthread_t thread;
    open_site(&s, rank, ranks);
    if (rank == ODD) {
        CHECK(pthread_create(&thread, NULL, cancel, s.comm) == 0, "a thread");
        pthread_join(thread, NULL);
    }
    weft_comm_reduce_scatter(s.comm, s.channel, &block);
    end_site(&s, argument);
    return 0;
}

RANKS_TEST(a_rank_that_gives_up_ends_all)
{
    struct shared *shared = share();
    CHECK(ranks_run(RANKS, cancelling_rank, shared) == 0, "a rank failed");
    for (int32_t rank = 0; rank < RANKS; rank++)
        check_told(shared, rank, WEFT_E_LOST, "has given up");
    return 0;
}

static int other_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    struct weft_comm_block other = block;
    open_site(&s, rank, ranks);
    if (rank == ODD) other.slice_elements = N / 2;
    weft_comm_all_gather(s.comm, s.channel, &other);
    end_site(&s, argument);
    return 0;
}

RANKS_TEST(collectives_that_differ_are_named)
{
    struct shared *shared = share();
    unsetenv("WEFT_DOUBLE_STOP"); /* the double finds them too */
    CHECK(ranks_run(RANKS, other_rank, shared) == 0, "a rank failed");
    const int32_t first = find_status(shared, WEFT_E_DISAGREE);
    check_told(shared, first, WEFT_E_DISAGREE,
               "operation 3 differs: rank 1 issued all_gather of 384 bytes from offset 1024 to "
               "4096 and rank 0 all_gather of 768 bytes");
    return 0;
}

/* NCCL says so of one group, on every rank. */
static int failing_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    open_site(&s, rank, ranks);
    weft_comm_all_gather(s.comm, s.channel, &block);
    end_site(&s, argument);
    return 0;
}

RANKS_TEST(an_error_of_nccl_ends_all)
{
    struct shared *shared = share();
    setenv("WEFT_DOUBLE_NCCL_ASYNC", "3:2", 1); /* ncclSystemError */
    CHECK(ranks_run(RANKS, failing_rank, shared) == 0, "a rank failed");
    check_told(shared, find_status(shared, WEFT_E_ENVIRONMENT), WEFT_E_ENVIRONMENT, "NCCL");
    return 0;
}

/* One rank ends early without a failure of its work, as for a file that it cannot write. */
static int leaving_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct site s;
    open_site(&s, rank, ranks);
    if (rank != ODD) weft_comm_all_gather(s.comm, s.channel, &block);
    end_site(&s, argument);
    return 0;
}

RANKS_TEST(a_rank_that_leaves_is_named)
{
    struct shared *shared = share();
    CHECK(ranks_run(RANKS, leaving_rank, shared) == 0, "a rank failed");
    check_told(shared, ODD, WEFT_OK, "");
    for (int32_t rank = 0; rank < RANKS; rank += 2)
        CHECK(shared->status[rank] == WEFT_E_LOST || shared->status[rank] == WEFT_E_HANG, "%s",
              shared->text[rank]);
    CHECK(strstr(shared->text[0], "rank 1") || strstr(shared->text[2], "rank 1"), "%s; %s",
          shared->text[0], shared->text[2]);
    return 0;
}

/* Ranks 0 and 2 wait in an exchange of hosts, for rank 1. Their watchdogs see no wait of streams.
 */
static int host_waits(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct weft_comm_options options = ranks_options(rank, ranks);
    const int64_t look_ns = 2 * second_ns / 1000, looks_ns = second_ns / 2;
    struct weft_error err = {.status = WEFT_OK};
    struct site s;
    (void)argument;
    site_open(&s, &options, WEFT_CLOCK_WALL, ARENA_BYTES);
    if (rank == ODD) {
        struct weft_local_comm seen = {.comm = {.ranks = RANKS, .rank = ODD}};
        seen.mapped =
            mmap(NULL, weft_comm_control_bytes(RANKS), PROT_READ, MAP_SHARED, ranks->control_fd, 0);
        CHECK(seen.mapped != MAP_FAILED, "mmap");
        while (weft_local_cause(&seen.comm, 0) != ODD)
            weft_clock_sleep_until_ns(weft_clock_now_ns() + look_ns);
        for (int64_t end_ns = weft_clock_now_ns() + looks_ns; weft_clock_now_ns() < end_ns;) {
            CHECK(weft_local_cause(&seen.comm, 0) == ODD, "rank 0 tells no wait");
            weft_clock_sleep_until_ns(weft_clock_now_ns() + look_ns);
        }
    }
    CHECK(weft_comm_exchange(s.comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    site_close(&s);
    return 0;
}

RANKS_TEST(a_wait_of_the_host_is_told_all_the_time)
{
    CHECK(ranks_run(RANKS, host_waits, NULL) == 0, "a rank failed");
    return 0;
}
