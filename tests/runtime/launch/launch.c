/* SPDX-License-Identifier: Apache-2.0 */
/* The launcher and the fate of its ranks. This program is its own rank: `launch rank NAME` acts as
 * the behaviour NAME. Each test names the behaviours and expects a result. */
#define _GNU_SOURCE
#include "runtime/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/comm/comm.h"
#include "tests/signals.h"

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) check_failed(__LINE__, #condition, __VA_ARGS__);                         \
    } while (0)

static const int64_t ms = 1000000;

_Noreturn static void check_failed(int line, const char *condition, const char *format, ...)
    WEFT_PRINTF(3, 4);
static void check_failed(int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "launch.c:%d: %s: ", line, condition);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(99);
}

/* Behaviours of a rank; each returns its exit code */

static struct weft_comm *open_comm(const struct weft_rendezvous *me)
{
    const struct weft_comm_options options = {
        .rank = me->rank,
        .ranks = me->ranks,
        .local = {.control_fd = me->control_fd, .arena_fds = me->arena_fds},
    };
    struct weft_comm *comm = NULL;
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    return comm;
}

static enum weft_status meet(struct weft_comm *comm)
{
    return weft_comm_exchange(comm, NULL, 0, NULL, NULL);
}

static int count_open_fds(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL, "/proc/self/fd");
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count - 3; /* ".", "..", and the directory itself */
}

static int works(const struct weft_rendezvous *me)
{
    char byte;
    /* 0, 1, 2, the control memory, the arenas, and the one that the caller handed over. */
    CHECK(count_open_fds() == 3 + 1 + me->ranks + 1, "%d descriptors are open", count_open_fds());
    CHECK(fcntl(me->control_fd, F_GETFD) == FD_CLOEXEC, "would be inherited once more");
    CHECK(read(STDIN_FILENO, &byte, 1) == 0, "stdin is not empty");
    CHECK(getsid(0) == getpid(), "no session of its own");
    CHECK(strcmp(getenv("OMP_NUM_THREADS"), "3") == 0, "OMP_NUM_THREADS");
    CHECK(strcmp(getenv("WEFT_TEST_SETTING"), "a=b") == 0, "the caller's setting");
    CHECK(atoi(getenv("LOCAL_RANK")) == me->rank, "LOCAL_RANK");
    CHECK(write(atoi(getenv("WEFT_TEST_FD")), "x", 1) == 1, "the caller's descriptor");
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGINT), "signals are blocked");
    struct weft_comm *comm = open_comm(me);
    CHECK(weft_comm_rank(comm) == me->rank && weft_comm_ranks(comm) == me->ranks, "rank");
    CHECK(meet(comm) == WEFT_OK, "exchange");
    weft_comm_close(comm);
    return 0;
}

static int exits_with_the_status(const struct weft_rendezvous *me)
{
    struct weft_comm *comm = open_comm(me);
    enum weft_status status = WEFT_E_NUMERIC;
    if (me->rank != 1) status = meet(comm); /* rank 1 does not come */
    weft_comm_close(comm);
    /* The peers hear of rank 1's leaving and are out before it: it still is the cause. */
    if (me->rank == 1) weft_clock_sleep_until_ns(weft_clock_now_ns() + 100 * ms);
    return weft_status_exit_code(status);
}

static int dies(const struct weft_rendezvous *me)
{
    struct weft_comm *comm = open_comm(me);
    if (me->rank == 1) raise(SIGKILL);
    enum weft_status status = meet(comm);
    weft_comm_close(comm);
    return weft_status_exit_code(status);
}

static int is_asked_early(const struct weft_rendezvous *me)
{
    struct weft_comm *comm = open_comm(me);
    if (me->rank == 1) raise(SIGTERM);
    enum weft_status status = meet(comm);
    weft_comm_close(comm);
    return weft_status_exit_code(status);
}

_Noreturn static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static int is_stubborn(const struct weft_rendezvous *me)
{
    signal(SIGTERM, SIG_IGN);
    struct weft_comm *comm = open_comm(me);
    CHECK(meet(comm) == WEFT_OK, "exchange");
    weft_comm_close(comm);
    if (me->rank == 1) return 65;
    wait_for_ever();
}

static void say_ready(void)
{
    CHECK(write(atoi(getenv("WEFT_TEST_FD")), "r", 1) == 1, "the caller's descriptor");
}

static int waits(const struct weft_rendezvous *me)
{
    (void)me;
    say_ready();
    wait_for_ever();
}

static volatile sig_atomic_t stop;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop = 1;
}

static int saves_and_stops(const struct weft_rendezvous *me)
{
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++)
        signal(weft_stop_signals[i], request_stop);
    say_ready();
    while (!stop)
        weft_clock_sleep_until_ns(weft_clock_now_ns() + ms);
    /* Saving takes longer than the failed are given, and differs between ranks. */
    weft_clock_sleep_until_ns(weft_clock_now_ns() + me->rank * 1800 * ms);
    CHECK(write(atoi(getenv("WEFT_TEST_FD")), "s", 1) == 1, "the caller's descriptor");
    return weft_status_exit_code(WEFT_E_STOPPED);
}

/* When all are ready. */
static int asks_itself(const struct weft_rendezvous *me)
{
    if (me->rank == 0 && signal(SIGALRM, request_stop) != SIG_ERR) alarm(1);
    return saves_and_stops(me);
}

static int ignores_signals(const struct weft_rendezvous *me)
{
    (void)me;
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    say_ready();
    wait_for_ever();
}

/* Rank 0 has done its part: nobody is left to miss the others. */
static int stops(const struct weft_rendezvous *me)
{
    if (me->rank == 0 && me->ranks > 1) return 0;
    raise(SIGSTOP);
    return 0;
}

static int is_continued(const struct weft_rendezvous *me)
{
    (void)me;
    for (int i = 0; i < 3; i++) {
        pid_t helper = fork();
        CHECK(helper >= 0, "fork");
        if (helper == 0) {
            weft_clock_sleep_until_ns(weft_clock_now_ns() + 200 * ms);
            kill(getppid(), SIGCONT);
            _exit(0);
        }
        raise(SIGSTOP);
        CHECK(waitpid(helper, NULL, 0) == helper, "waitpid");
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 50 * ms);
    }
    return 0;
}

enum { PAUSE_MS = 3600 };

static int pauses_itself(const struct weft_rendezvous *me)
{
    const pid_t self = getpid(), helper = fork();
    (void)me;
    if (helper == 0) {
        weft_clock_sleep_until_ns(weft_clock_now_ns() + PAUSE_MS * ms);
        kill(self, SIGCONT);
        _exit(0);
    }
    say_ready();
    raise(SIGSTOP);
    CHECK(waitpid(helper, NULL, 0) == helper, "waitpid");
    return 0;
}

static const struct {
    const char *name;
    int (*function)(const struct weft_rendezvous *me);
} behaviours[] = {
    {"works", works},           {"exits", exits_with_the_status}, {"dies", dies},
    {"asked", is_asked_early},  {"stubborn", is_stubborn},        {"waits", waits},
    {"saves", saves_and_stops}, {"asks itself", asks_itself},     {"ignores", ignores_signals},
    {"stops", stops},           {"continued", is_continued},      {"pauses", pauses_itself},
};

static int run_rank(const char *name)
{
    struct weft_rendezvous me = {0};
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_rendezvous_from_environment(&me, &err) == WEFT_OK, "%s", err.text);
    for (size_t i = 0; i < sizeof behaviours / sizeof behaviours[0]; i++) {
        if (strcmp(behaviours[i].name, name) != 0) continue;
        int code = behaviours[i].function(&me);
        weft_rendezvous_finish(&me);
        return code;
    }
    return 98;
}

/* The launching side */

static int64_t launch_hang_ns = 500 * INT64_C(1000000);

struct result {
    enum weft_status status;
    struct weft_launch_outcome outcome;
    struct weft_error err;
    int64_t ns;
};

static void launch(const char *behaviour, int32_t ranks, int fd, struct result *result)
{
    char program[] = "launch", verb[] = "rank", name[32], setting[64];
    snprintf(name, sizeof name, "%s", behaviour);
    snprintf(setting, sizeof setting, "WEFT_TEST_FD=%d", fd);
    char *const argv[] = {program, verb, name, NULL};
    const char *const environment[] = {"WEFT_TEST_SETTING=a=b", setting, "RANK=9"};
    const struct weft_launch_options options = {
        .ranks = ranks,
        .argv = argv,
        .control_bytes = weft_comm_control_bytes(ranks),
        .fds = &fd,
        .n_fds = 1,
        .environment = environment,
        .n_environment = 3,
        .threads = 3,
        .stop_grace_ns = 300 * ms,
        .hang_ns = launch_hang_ns,
    };
    *result = (struct result){.status = WEFT_OK};
    int64_t start_ns = weft_clock_now_ns();
    result->status = weft_launch(&options, &result->outcome, &result->err);
    result->ns = weft_clock_now_ns() - start_ns;
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "%s left a child", behaviour);
}

static void make_pipe(int ends[2])
{
    CHECK(pipe2(ends, O_CLOEXEC) == 0, "pipe");
}

static int count_bytes(int fd, char byte)
{
    char bytes[64];
    int count = 0;
    ssize_t n = read(fd, bytes, sizeof bytes);
    for (ssize_t i = 0; i < n; i++)
        count += bytes[i] == byte;
    return count;
}

static void test_that_ranks_work(void)
{
    int ends[2], leak = open("/dev/null", O_RDONLY); /* not close-on-exec, and not for ranks */
    for (int32_t ranks = 1; ranks <= 4; ranks++) {
        struct result result;
        make_pipe(ends);
        launch("works", ranks, ends[1], &result);
        CHECK(result.status == WEFT_OK, "%d ranks: %s", ranks, result.err.text);
        CHECK(result.outcome.rank == -1, "rank %d", result.outcome.rank);
        CHECK(count_bytes(ends[0], 'x') == ranks, "not all ranks wrote");
        close(ends[0]);
        close(ends[1]);
    }
    close(leak);
}

static void test_first_failure(int fd)
{
    struct result result;
    launch("exits", 3, fd, &result);
    CHECK(result.status == WEFT_E_NUMERIC, "%s", result.err.text);
    CHECK(result.outcome.rank == 1 && result.outcome.exit_code == 79, "%s", result.err.text);
    CHECK(strstr(result.err.text, "rank 1 failed first, with exit code 79 (numeric failure)"), "%s",
          result.err.text);
    CHECK(result.ns < 6000 * ms, "%lld ns", (long long)result.ns);
}

static void test_killed_rank(int fd)
{
    struct result result;
    launch("dies", 4, fd, &result);
    CHECK(result.status == WEFT_E_LOST, "%s", result.err.text);
    CHECK(result.outcome.rank == 1 && result.outcome.signal_number == SIGKILL, "%s",
          result.err.text);
    CHECK(strstr(result.err.text, "was killed by signal 9 (Killed): if nobody sent it"), "%s",
          result.err.text);
    CHECK(result.ns < 6000 * ms, "%lld ns", (long long)result.ns);
}

/* Before it has a handler, as while it starts. */
static void test_rank_asked_early(int fd)
{
    struct result result;
    launch("asked", 3, fd, &result);
    CHECK(result.status == WEFT_E_STOPPED, "%s", result.err.text);
    CHECK(strstr(result.err.text, "rank 1 (process ") && strstr(result.err.text, "asked to stop"),
          "%s", result.err.text);
    CHECK(result.ns < 6000 * ms, "%lld ns", (long long)result.ns);
}

static void test_stubborn_ranks(int fd)
{
    struct result result;
    launch("stubborn", 3, fd, &result);
    CHECK(result.status == WEFT_E_DATA && result.outcome.rank == 1, "%s", result.err.text);
    CHECK(result.ns > 1000 * ms && result.ns < 6000 * ms, "%lld ns", (long long)result.ns);
}

static void test_stopped_ranks(int fd)
{
    struct result result;
    for (int32_t ranks = 1; ranks <= 3; ranks++) {
        int32_t named = ranks > 1 ? 1 : 0;
        launch("stops", ranks, fd, &result);
        CHECK(result.status == WEFT_E_HANG && result.outcome.rank == named, "%d: %s",
              result.outcome.rank, result.err.text);
        CHECK(result.outcome.exit_code == 80 && result.outcome.signal_number == 0, "%d",
              result.outcome.exit_code);
        CHECK(strstr(result.err.text, "was stopped by a signal"), "%s", result.err.text);
        CHECK(result.ns > 500 * ms && result.ns < 6000 * ms, "%lld ns", (long long)result.ns);
    }
    launch("continued", 1, fd, &result);
    CHECK(result.status == WEFT_OK && result.ns > 600 * ms, "%s", result.err.text);
}

static void test_that_nothing_starts(int fd)
{
    struct result result;
    char program[] = "none";
    char *const argv[] = {program, NULL};
    struct weft_launch_options options = {
        .ranks = 2, .path = "/no/such/program", .argv = argv, .control_bytes = 4096};
    (void)fd;
    result.err = (struct weft_error){.status = WEFT_OK};
    CHECK(weft_launch(&options, NULL, &result.err) == WEFT_E_NO_INPUT, "%s", result.err.text);
    CHECK(strcmp(result.err.text,
                 "cannot start rank 0: /no/such/program: No such file or directory") == 0,
          "%s", result.err.text);
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child is left");
    options.ranks = 0;
    result.err = (struct weft_error){.status = WEFT_OK};
    CHECK(weft_launch(&options, NULL, &result.err) == WEFT_E_USAGE, "%s", result.err.text);
}

/* Tests that send signals to the launcher. It runs as a process and exits with its status's code.
 * The pipe's `ranks_end` closes when the last rank is gone. */

struct launcher {
    pid_t pid;
    int ranks_end;
};

static struct launcher start_launcher(const char *behaviour, int32_t ranks)
{
    int ends[2];
    make_pipe(ends);
    pid_t pid = fork();
    CHECK(pid >= 0, "fork");
    if (pid == 0) {
        struct result result;
        close(ends[0]);
        launch(behaviour, ranks, ends[1], &result);
        _exit(weft_status_exit_code(result.status));
    }
    close(ends[1]);
    char byte;
    for (int32_t i = 0; i < ranks; i++)
        CHECK(read(ends[0], &byte, 1) == 1 && byte == 'r', "rank did not start");
    return (struct launcher){.pid = pid, .ranks_end = ends[0]};
}

/* Reads to the pipe's end, which comes when no rank is left; returns how many wrote `byte`. */
static int wait_for_ranks(const struct launcher *launcher, char byte, int64_t most_ns)
{
    int count = 0;
    int64_t end_ns = weft_clock_now_ns() + most_ns;
    for (;;) {
        char got;
        struct pollfd poll_fd = {.fd = launcher->ranks_end, .events = POLLIN};
        int64_t left_ns = end_ns - weft_clock_now_ns();
        CHECK(left_ns > 0 && poll(&poll_fd, 1, (int)(left_ns / ms) + 1) == 1, "ranks still run");
        if (read(launcher->ranks_end, &got, 1) != 1) break;
        count += got == byte;
    }
    close(launcher->ranks_end);
    return count;
}

static void check_exit(const struct launcher *launcher, enum weft_status status)
{
    int outcome;
    CHECK(waitpid(launcher->pid, &outcome, 0) == launcher->pid, "waitpid");
    CHECK(WIFEXITED(outcome) && WEXITSTATUS(outcome) == weft_status_exit_code(status),
          "the launcher's outcome is %x", (unsigned)outcome);
}

static void test_killed_launcher(void)
{
    struct launcher launcher = start_launcher("ignores", 3);
    kill(launcher.pid, SIGKILL);
    wait_for_ranks(&launcher, 'r', 2000 * ms);
    CHECK(waitpid(launcher.pid, NULL, 0) == launcher.pid, "waitpid");
}

/* A suspended job: the launcher is stopped longer than a hang, and its rank a moment longer. */
static void test_stopped_launcher(void)
{
    const int64_t usual_ns = launch_hang_ns;
    launch_hang_ns = (PAUSE_MS - 600) * ms;
    struct launcher launcher = start_launcher("pauses", 1);
    launch_hang_ns = usual_ns;
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 50 * ms);
    kill(launcher.pid, SIGSTOP);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + (PAUSE_MS - 350) * ms);
    kill(launcher.pid, SIGCONT);
    wait_for_ranks(&launcher, 'r', 2000 * ms);
    check_exit(&launcher, WEFT_OK);
}

static void test_interrupt(int signal_number)
{
    struct launcher launcher = start_launcher("waits", 3);
    kill(launcher.pid, signal_number);
    wait_for_ranks(&launcher, 'r', 2000 * ms);
    check_exit(&launcher, WEFT_E_STOPPED);
}

static void test_orderly_stop(int signal_number)
{
    struct launcher launcher = start_launcher("saves", 2);
    kill(launcher.pid, signal_number);
    CHECK(wait_for_ranks(&launcher, 's', 5000 * ms) == 2, "a rank was not left the time to save");
    check_exit(&launcher, WEFT_E_STOPPED);
}

/* Saving takes six grace periods here. Neither they nor requests during the first one end it. */
static void test_request_that_is_repeated(void)
{
    struct launcher launcher = start_launcher("saves", 2);
    kill(launcher.pid, SIGTERM);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 50 * ms);
    for (int i = 0; i < WEFT_STOP_SIGNALS; i++)
        kill(launcher.pid, weft_stop_signals[i]);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 600 * ms);
    kill(launcher.pid, SIGHUP);
    CHECK(wait_for_ranks(&launcher, 's', 5000 * ms) == 2, "a rank was not left the time to save");
    check_exit(&launcher, WEFT_E_STOPPED);
}

/* The others are asked too, once, and have their time. */
static void test_rank_that_stops_alone(void)
{
    struct launcher launcher = start_launcher("asks itself", 3);
    CHECK(wait_for_ranks(&launcher, 's', 8000 * ms) == 3,
          "a rank was not asked, or not waited for");
    check_exit(&launcher, WEFT_E_STOPPED);
}

static void test_second_request(void)
{
    struct launcher launcher = start_launcher("ignores", 2);
    kill(launcher.pid, SIGINT);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 50 * ms);
    kill(launcher.pid, SIGINT);
    weft_clock_sleep_until_ns(weft_clock_now_ns() + 500 * ms);
    CHECK(waitpid(launcher.pid, NULL, WNOHANG) == 0, "the same request ended the ranks");
    kill(launcher.pid, SIGINT);
    wait_for_ranks(&launcher, 'r', 2000 * ms);
    check_exit(&launcher, WEFT_E_STOPPED);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "rank") == 0) return run_rank(argv[2]);
    test_default_signals();
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(null_fd > 2, "/dev/null");
    test_that_ranks_work();
    test_first_failure(null_fd);
    test_killed_rank(null_fd);
    test_rank_asked_early(null_fd);
    test_stubborn_ranks(null_fd);
    test_stopped_ranks(null_fd);
    test_that_nothing_starts(null_fd);
    test_killed_launcher();
    test_stopped_launcher();
    test_interrupt(SIGINT);
    test_interrupt(SIGTERM);
    test_orderly_stop(SIGUSR1);
    test_orderly_stop(SIGXCPU);
    test_request_that_is_repeated();
    test_rank_that_stops_alone();
    test_second_request();
    return 0;
}
