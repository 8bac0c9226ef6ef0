/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pipe2 */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Functions of the child: system calls only */

static const char *path_of(const struct weft_process *process)
{
    return process->path != NULL ? process->path : "/proc/self/exe";
}

/* Ignored signals stay ignored. */
static void drop_handlers(void)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0) continue;
        if (action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL) signal(number, SIG_DFL);
    }
}

static void connect_streams(const struct weft_process *process)
{
    int nothing = process->in < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
    int in = process->in < 0 ? nothing : process->in;
    if (in > 0) dup2(in, STDIN_FILENO);
    if (process->out >= 0) dup2(process->out, STDOUT_FILENO);
    if (process->note >= 0) dup2(process->note, STDERR_FILENO);
}

_Noreturn static void become(const struct weft_process *process, pid_t parent,
                             const sigset_t *signals, int report_fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127); /* the parent died before prctl */
    if (process->prepare != NULL) process->prepare(process->context);
    connect_streams(process);
    drop_handlers();
    sigprocmask(SIG_SETMASK, signals, NULL);
    execve(path_of(process), process->argv,
           process->environment != NULL ? process->environment : environ);
    int reason = errno;
    ssize_t written = write(report_fd, &reason, sizeof reason);
    _exit(written == (ssize_t)sizeof reason ? 127 : 126);
}

/* Functions of the parent */

/* Reads the child's errno. A successful exec closes the pipe. */
static int read_report(int fd)
{
    int reason = 0;
    ssize_t n;
    do {
        n = read(fd, &reason, sizeof reason);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof reason ? reason : 0;
}

static enum weft_status fail_exec(const struct weft_process *process, pid_t child, int reason,
                                  struct weft_error *err)
{
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    enum weft_status status = reason == ENOENT   ? WEFT_E_NO_INPUT
                              : reason == EACCES ? WEFT_E_PERMISSION
                                                 : WEFT_E_SYSTEM;
    return weft_fail(err, status, "%s: %s", process->path != NULL ? process->path : "this program",
                     strerror(reason));
}

enum weft_status weft_process_start(const struct weft_process *process, pid_t *pid,
                                    struct weft_error *err)
{
    int report[2];
    pid_t parent = getpid();
    sigset_t all, before;
    if (pipe2(report, O_CLOEXEC) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "no pipe: %s. Raise the limit (ulimit -n)",
                         strerror(errno));
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0)
        become(process, parent, process->signals != NULL ? process->signals : &before, report[1]);
    int reason = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        return weft_fail(
            err, WEFT_E_SYSTEM,
            "no process: %s. Raise the limit (ulimit -u, or pids.max of the cgroup) or start fewer",
            strerror(reason));
    }
    reason = read_report(report[0]);
    close(report[0]);
    if (reason != 0) return fail_exec(process, child, reason, err);
    *pid = child;
    return WEFT_OK;
}

const char *weft_process_find(const char *name, char *out, size_t capacity)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        if (length > 0 && length < capacity &&
            snprintf(out, capacity, "%.*s/%s", (int)length, path, name) < (int)capacity &&
            access(out, X_OK) == 0)
            return out;
        path += length + (path[length] == ':');
    }
    return NULL;
}
