/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */
#include "tests/runtime/comm/ranks.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/comm/mpi/double.h"

void check_failed(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%d: %s: ", file, line, condition);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

static void open_sockets(struct ranks *ranks)
{
    const char *comm = getenv("WEFT_TEST_COMM");
    ranks->over_mpi = comm != NULL && strcmp(comm, "mpi") == 0;
    for (int32_t i = 0; i < ranks->n * ranks->n; i++) {
        const int32_t a = i / ranks->n, b = i % ranks->n;
        int pair[2] = {-1, -1};
        ranks->sockets[a][b] = a < b ? -1 : ranks->sockets[a][b];
        if (!ranks->over_mpi || a >= b) continue;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
        ranks->sockets[a][b] = pair[0];
        ranks->sockets[b][a] = pair[1];
    }
}

void ranks_open(struct ranks *ranks, int32_t n)
{
    ranks->n = n;
    open_sockets(ranks);
    ranks->control_fd = memfd_create("control", MFD_CLOEXEC);
    CHECK(ranks->control_fd >= 0, "memfd_create");
    CHECK(ftruncate(ranks->control_fd, (off_t)weft_comm_control_bytes(n)) == 0, "ftruncate");
    for (int32_t i = 0; i < n; i++) {
        ranks->arena_fds[i] = memfd_create("arena", MFD_CLOEXEC);
        CHECK(ranks->arena_fds[i] >= 0, "memfd_create");
    }
}

void ranks_close(struct ranks *ranks)
{
    for (int32_t i = 0; i < ranks->n; i++)
        close(ranks->arena_fds[i]);
    close(ranks->control_fd);
    for (int32_t i = 0; ranks->over_mpi && i < ranks->n * ranks->n; i++) {
        const int32_t a = i / ranks->n, b = i % ranks->n;
        if (a != b) close(ranks->sockets[a][b]);
    }
}

/* A rank keeps its own ends, so that its peers see its end. */
static void keep_own_sockets(const struct ranks *ranks, int32_t rank)
{
    for (int32_t i = 0; ranks->over_mpi && i < ranks->n * ranks->n; i++) {
        const int32_t a = i / ranks->n, b = i % ranks->n;
        if (a != b && a != rank) close(ranks->sockets[a][b]);
    }
}

void ranks_start(struct ranks *ranks, int32_t n, rank_fn *function, void *argument)
{
    ranks_open(ranks, n);
    fflush(NULL);
    for (int32_t i = 0; i < n; i++) {
        ranks->pids[i] = fork();
        CHECK(ranks->pids[i] >= 0, "fork");
        if (ranks->pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            keep_own_sockets(ranks, i);
            int code = function(i, ranks, argument);
            fflush(NULL);
            _exit(code);
        }
    }
}

int ranks_wait(struct ranks *ranks)
{
    int failed = 0;
    for (int32_t i = 0; i < ranks->n; i++) {
        CHECK(waitpid(ranks->pids[i], &ranks->outcomes[i], 0) == ranks->pids[i], "waitpid");
        if (!WIFEXITED(ranks->outcomes[i]) || WEXITSTATUS(ranks->outcomes[i]) != 0) failed++;
    }
    ranks_close(ranks);
    return failed;
}

int ranks_run(int32_t n, rank_fn *function, void *argument)
{
    struct ranks ranks;
    ranks_start(&ranks, n, function, argument);
    return ranks_wait(&ranks);
}

struct weft_comm_options ranks_options(int32_t rank, const struct ranks *ranks)
{
    return (struct weft_comm_options){
        .rank = rank,
        .ranks = ranks->n,
        .local = {.control_fd = ranks->control_fd, .arena_fds = ranks->arena_fds},
        .timeout_ns = INT64_C(20) * 1000000000,
        .mpi = ranks->over_mpi ? mpi_double_start(rank, ranks->n, ranks->sockets[rank]) : NULL,
    };
}
