/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void weft_pipe_close_end(int *end)
{
    if (*end >= 0) close(*end);
    *end = -1;
}

void weft_pipes_close(int (*pipes)[2], int n)
{
    for (int i = 0; i < n; i++) {
        weft_pipe_close_end(&pipes[i][0]);
        weft_pipe_close_end(&pipes[i][1]);
    }
}

bool weft_pipes_open(int (*pipes)[2], int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++)
        pipes[i][0] = pipes[i][1] = -1;
    for (int i = 0; i < n && ok; i++) {
        ok = pipe(pipes[i]) == 0;
        for (int end = 0; ok && end < 2; end++)
            ok = fcntl(pipes[i][end], F_SETFD, FD_CLOEXEC) == 0;
    }
    int reason = errno;
    if (!ok) weft_pipes_close(pipes, n);
    errno = reason;
    return ok;
}
