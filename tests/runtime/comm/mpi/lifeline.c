/* SPDX-License-Identifier: Apache-2.0 */
/* Lifelines: ranks that end in order, that are killed, and strangers on rank 0's port. */
#include "runtime/comm/mpi/lifeline.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/runtime/comm/ranks.h"

enum { RANKS = 4, FLOOD = 200, HELLO_BYTES = WEFT_LIFELINE_TOKEN_BYTES + 4 };

static const int64_t ms = 1000000;
static const int64_t patience_ns = INT64_C(10000) * 1000000;

static struct weft_lifeline *open_rank_0(struct weft_lifeline_invitation *invitation)
{
    struct weft_error err = {.status = WEFT_OK};
    struct weft_lifeline *line = NULL;
    CHECK(weft_lifeline_open(RANKS, &line, invitation, &err) == WEFT_OK, "%s", err.text);
    return line;
}

static struct weft_lifeline *join_rank(const struct weft_lifeline_invitation *invitation,
                                       int32_t rank)
{
    struct weft_error err = {.status = WEFT_OK};
    struct weft_lifeline *line = NULL;
    CHECK(weft_lifeline_join(invitation, rank, true, patience_ns, &line, &err) == WEFT_OK, "%s",
          err.text);
    return line;
}

static int32_t await_lost(const struct weft_lifeline *line)
{
    const int64_t end_ns = weft_clock_now_ns() + patience_ns;
    while (weft_lifeline_lost(line) < 0 && weft_clock_now_ns() < end_ns)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + ms);
    return weft_lifeline_lost(line);
}

/* Fails if the system ends a connection of `line` within a moment. */
static void check_nothing_is_lost(const struct weft_lifeline *line)
{
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 20 * ms);
    CHECK(weft_lifeline_lost(line) == -1, "rank %d", (int)weft_lifeline_lost(line));
}

static void await_joined(const struct weft_lifeline *line, int32_t ranks)
{
    const int64_t end_ns = weft_clock_now_ns() + patience_ns;
    while (weft_lifeline_joined(line) < ranks && weft_clock_now_ns() < end_ns)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + ms);
    CHECK(weft_lifeline_joined(line) == ranks, "%d joined", (int)weft_lifeline_joined(line));
}

static void test_ranks_that_leave_are_not_lost(void)
{
    struct weft_lifeline_invitation invitation;
    struct weft_lifeline *lines[RANKS] = {open_rank_0(&invitation)};
    for (int32_t rank = 1; rank < RANKS; rank++)
        lines[rank] = join_rank(&invitation, rank);
    await_joined(lines[0], RANKS);
    weft_lifeline_leave(lines[2]);
    check_nothing_is_lost(lines[0]);
    weft_lifeline_leave(lines[0]);
    check_nothing_is_lost(lines[1]);
    check_nothing_is_lost(lines[3]);
    weft_lifeline_leave(lines[1]);
    weft_lifeline_leave(lines[3]);
    weft_lifeline_leave(NULL);
    CHECK(weft_lifeline_lost(NULL) == -1, "no lifeline");
}

/* A process that joins as `rank` and waits for its end. */
static pid_t start_process(const struct weft_lifeline_invitation *invitation, int32_t rank)
{
    const pid_t pid = fork();
    if (pid != 0) return pid;
    (void)join_rank(invitation, rank);
    for (;;)
        pause();
}

static void kill_process(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_all_ranks_learn_which_one_was_killed(void)
{
    struct weft_lifeline_invitation invitation;
    struct weft_lifeline *line_0 = open_rank_0(&invitation);
    const pid_t second = start_process(&invitation, 2), third = start_process(&invitation, 3);
    await_joined(line_0, 3);
    kill_process(second);
    const int64_t killed_ns = weft_clock_now_ns();
    CHECK(await_lost(line_0) == 2, "rank %d", (int)weft_lifeline_lost(line_0));
    CHECK(weft_clock_now_ns() - killed_ns < 1000 * ms, "it took long");
    struct weft_lifeline *line_1 = join_rank(&invitation, 1); /* it learns what came before it */
    CHECK(await_lost(line_1) == 2, "rank %d", (int)weft_lifeline_lost(line_1));
    kill_process(third);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 20 * ms);
    CHECK(weft_lifeline_lost(line_0) == 2, "the first one stays");
    weft_lifeline_leave(line_1);
    weft_lifeline_leave(line_0);
}

static void count_look(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

static void test_a_rank_looks_around_after_a_loss_alone(void)
{
    struct weft_lifeline_invitation invitation;
    atomic_int looks = 0;
    struct weft_lifeline *line = open_rank_0(&invitation);
    weft_lifeline_look(NULL, count_look, &looks);
    weft_lifeline_look(line, count_look, &looks);
    const pid_t pid = start_process(&invitation, 1);
    await_joined(line, 2);
    CHECK(atomic_load(&looks) == 0, "%d looks without a loss", atomic_load(&looks));
    kill_process(pid);
    const int64_t end_ns = weft_clock_now_ns() + patience_ns;
    while (atomic_load(&looks) < 2 && weft_clock_now_ns() < end_ns)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + ms);
    CHECK(atomic_load(&looks) >= 2, "%d looks after a loss", atomic_load(&looks));
    weft_lifeline_leave(line);
}

static void test_rank_0_is_lost(void)
{
    int pipes[2];
    struct weft_lifeline_invitation invitation;
    CHECK(pipe(pipes) == 0, "pipe");
    const pid_t pid = fork();
    if (pid == 0) {
        (void)open_rank_0(&invitation);
        CHECK(write(pipes[1], &invitation, sizeof invitation) == sizeof invitation, "write");
        for (;;)
            pause();
    }
    CHECK(read(pipes[0], &invitation, sizeof invitation) == sizeof invitation, "read");
    struct weft_lifeline *line = join_rank(&invitation, 1);
    check_nothing_is_lost(line);
    kill_process(pid);
    CHECK(await_lost(line) == 0, "rank %d", (int)weft_lifeline_lost(line));
    weft_lifeline_leave(line);
    close(pipes[0]);
    close(pipes[1]);
}

static int connect_stranger(const struct weft_lifeline_invitation *invitation)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)invitation->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0,
          "connect");
    return fd;
}

/* Sends a hello of a rank, with the token's byte `wrong` changed (-1: none). */
static void send_hello(int fd, const struct weft_lifeline_invitation *invitation, int32_t rank,
                       int wrong)
{
    unsigned char hello[HELLO_BYTES];
    const uint32_t number = htonl((uint32_t)rank);
    memcpy(hello, invitation->token, sizeof invitation->token);
    memcpy(hello + sizeof invitation->token, &number, sizeof number);
    if (wrong >= 0) hello[wrong] ^= 1;
    CHECK(send(fd, hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello, "send");
}

static void check_refused(int fd)
{
    unsigned char answer[WEFT_LIFELINE_TOKEN_BYTES];
    CHECK(recv(fd, answer, sizeof answer, 0) <= 0, "a stranger got an answer");
    close(fd);
}

static void test_strangers_have_no_effect(void)
{
    static const int32_t impossible[] = {0, RANKS, -1, INT32_MAX, INT32_MIN};
    int idle[FLOOD];
    struct weft_lifeline_invitation invitation;
    struct weft_lifeline *lines[RANKS] = {open_rank_0(&invitation)};
    lines[1] = join_rank(&invitation, 1);
    for (int i = 0; i < WEFT_LIFELINE_TOKEN_BYTES; i++) {
        const int fd = connect_stranger(&invitation);
        send_hello(fd, &invitation, 2, i);
        check_refused(fd);
    }
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        const int fd = connect_stranger(&invitation);
        send_hello(fd, &invitation, impossible[i], -1);
        check_refused(fd);
    }
    const int twice = connect_stranger(&invitation);
    send_hello(twice, &invitation, 1, -1);
    check_refused(twice);
    for (int i = 0; i < FLOOD; i++) { /* they say nothing, or a part */
        idle[i] = connect_stranger(&invitation);
        if (i % 2 == 0) CHECK(send(idle[i], "x", 1, MSG_NOSIGNAL) == 1, "send");
    }
    for (int32_t rank = 2; rank < RANKS; rank++)
        lines[rank] = join_rank(&invitation, rank);
    for (int i = 0; i < FLOOD; i++)
        close(idle[i]);
    check_nothing_is_lost(lines[0]);
    check_nothing_is_lost(lines[1]);
    CHECK(weft_lifeline_joined(lines[0]) == RANKS, "all have joined");
    for (int32_t rank = 0; rank < RANKS; rank++)
        weft_lifeline_leave(lines[rank]);
}

/* Waits until the other side has closed the connection. */
static void await_end(int fd)
{
    char byte;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    CHECK(poll(&polled, 1, (int)(patience_ns / ms)) == 1 && recv(fd, &byte, 1, 0) <= 0,
          "the connection stays");
    close(fd);
}

/* Rank 0 hears 16 strangers at once. Each further one ends the oldest, and no other. */
static void test_a_further_stranger_ends_the_oldest(void)
{
    enum { PLACES = 16, ALL = PLACES + 3 };
    int fds[ALL];
    struct weft_lifeline_invitation invitation;
    struct weft_lifeline *line = open_rank_0(&invitation);
    for (int i = 0; i < ALL; i++) {
        fds[i] = connect_stranger(&invitation);
        if (i >= PLACES) await_end(fds[i - PLACES]);
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 10 * ms); /* it is taken */
    }
    for (int i = ALL - PLACES; i < ALL; i++) {
        struct pollfd polled = {.fd = fds[i], .events = POLLIN};
        CHECK(poll(&polled, 1, 0) == 0, "stranger %d has ended", i);
        close(fds[i]);
    }
    weft_lifeline_leave(line);
}

static bool is_open(const struct weft_lifeline_invitation *invitation)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)invitation->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const bool is = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    return is;
}

/* The last rank closes the port. Ranks that leave do not open it again. */
static void test_the_port_closes_when_all_have_joined(void)
{
    struct weft_lifeline_invitation invitation;
    struct weft_lifeline *lines[RANKS] = {open_rank_0(&invitation)};
    for (int32_t rank = RANKS - 1; rank > 0; rank--) {
        CHECK(is_open(&invitation), "it is closed before rank %d", (int)rank);
        lines[rank] = join_rank(&invitation, rank);
    }
    const int64_t end_ns = weft_clock_now_ns() + patience_ns;
    while (is_open(&invitation)) {
        CHECK(weft_clock_now_ns() < end_ns, "the port stays open");
        weft_clock_sleep_until_ns(weft_clock_now_ns() + ms);
    }
    weft_lifeline_leave(lines[1]);
    check_nothing_is_lost(lines[0]);
    CHECK(!is_open(&invitation), "it is open again");
    for (int32_t rank = 0; rank < RANKS; rank++)
        if (rank != 1) weft_lifeline_leave(lines[rank]);
}

static void test_a_rank_that_reaches_nobody(void)
{
    struct weft_lifeline_invitation invitation;
    struct weft_lifeline *line = open_rank_0(&invitation), *none = NULL;
    struct weft_error err = {.status = WEFT_OK}, other = {.status = WEFT_OK};
    struct weft_lifeline_invitation wrong = invitation;
    wrong.answer[3] ^= 1; /* another service on rank 0's port */
    CHECK(weft_lifeline_join(&wrong, 1, true, 10 * ms, &none, &err) == WEFT_E_LOST, "joined");
    CHECK(strstr(err.text, "of 127.0.0.1") != NULL, "%s", err.text);
    weft_lifeline_leave(line);
    CHECK(weft_lifeline_join(&invitation, 1, true, 10 * ms, &none, &other) == WEFT_E_LOST && !none,
          "joined");
}

RANKS_TEST(mpi_lifeline)
{
    test_ranks_that_leave_are_not_lost();
    test_all_ranks_learn_which_one_was_killed();
    test_a_rank_looks_around_after_a_loss_alone();
    test_rank_0_is_lost();
    test_strangers_have_no_effect();
    test_a_further_stranger_ends_the_oldest();
    test_the_port_closes_when_all_have_joined();
    test_a_rank_that_reaches_nobody();
    return 0;
}
