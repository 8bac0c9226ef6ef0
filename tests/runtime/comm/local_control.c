/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that arrives and then ends between two looks of a waiting rank has done its part, so no
 * rank is lost. The interposed look makes it end at that moment under any load. */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/runtime/comm/ranks.h"

enum { RANKS = 2, LATE = 1, PATIENCE_MS = 20000, SKIPPED = 77 };

static int starts[2]; /* a pipe: the late rank begins when it reads from it */
static bool looked;   /* of the waiting rank: it has seen that the late one is missing */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

/* The waiting rank asks whether the late one, which it has just missed, has ended. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    if (!looked) {
        looked = true;
        CHECK(write(starts[1], "", 1) == 1, "the pipe is full");
        timeout_ms = PATIENCE_MS;
    }
    return __real_poll(fds, n, timeout_ms);
}

static int meet(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    int32_t all[RANKS] = {0};
    char byte;
    (void)argument;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    looked = rank == LATE;
    if (rank == LATE) CHECK(read(starts[0], &byte, 1) == 1, "nobody waits");
    enum weft_status status = weft_comm_exchange(comm, &rank, sizeof rank, all, &err);
    if (rank == LATE) return status == WEFT_OK ? 0 : 1; /* without closing */
    CHECK(looked, "it has not looked for the late rank");
    CHECK(status == WEFT_OK, "%s", err.text);
    CHECK(all[LATE] == LATE, "it has not got what the late rank gave");
    weft_comm_close(comm);
    return 0;
}

int main(void)
{
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0) {
        printf("no process can be watched here: pidfd_open is missing\n");
        return SKIPPED;
    }
    close((int)fd);
    CHECK(pipe(starts) == 0, "no pipe");
    CHECK(ranks_run(RANKS, meet, NULL) == 0, "a rank failed");
    return 0;
}
