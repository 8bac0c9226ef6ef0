#define _GNU_SOURCE /* close_range, pipe2, sched_getaffinity */
#include "runtime/launch/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/signals.h"
#include "base/text.h"

extern char **environ;

enum { SETTINGS = 8 };

int32_t weft_spawn_threads(int64_t asked, int32_t ranks)
{
    if (asked > 0) return asked < INT32_MAX ? (int32_t)asked : INT32_MAX;
    cpu_set_t set;
    int cores = 0;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
    int32_t threads = ranks > 0 ? cores / ranks : 1;
    return threads > 0 ? threads : 1;
}

/* Environment */

static bool has_name(const char *setting, const char *other)
{
    size_t length = strcspn(other, "=");
    return strncmp(setting, other, length) == 0 && setting[length] == '=';
}

static bool is_replaced(const char *setting, const char *const *by, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (has_name(setting, by[i])) return true;
    }
    return false;
}

static const char *show_fds(const struct weft_spawn *spawn, struct weft_pool *pool)
{
    struct weft_text text;
    weft_text_init(&text);
    for (int32_t i = 0; i < spawn->options->ranks; i++)
        weft_text_addf(&text, "%s%d", i > 0 ? "," : "", spawn->arena_fds[i]);
    const char *shown = weft_text_ok(&text) ? weft_pool_format(pool, WEFT_ARENA_FDS_NAME "=%s",
                                                               weft_text_chars(&text))
                                            : NULL;
    weft_text_finish(&text);
    return shown;
}

/* What the launcher tells a rank. Waiting OpenMP threads must sleep: beside them there is a
 * communication thread that needs the core. */
static bool make_settings(const struct weft_spawn *spawn, int32_t rank, struct weft_pool *pool,
                          const char *settings[SETTINGS])
{
    int32_t ranks = spawn->options->ranks;
    const char *made[SETTINGS] = {
        weft_pool_format(pool, WEFT_RANK_NAME "=%d", rank),
        weft_pool_format(pool, WEFT_WORLD_SIZE_NAME "=%d", ranks),
        weft_pool_format(pool, WEFT_LOCAL_RANK_NAME "=%d", rank),
        weft_pool_format(pool, WEFT_CONTROL_FD_NAME "=%d", spawn->control_fd),
        show_fds(spawn, pool),
        weft_pool_format(pool, "OMP_NUM_THREADS=%d", spawn->threads),
        weft_pool_format(pool, "OPENBLAS_NUM_THREADS=%d", spawn->threads),
        "OMP_WAIT_POLICY=passive",
    };
    for (int i = 0; i < SETTINGS; i++) {
        if (made[i] == NULL) return false;
        settings[i] = made[i];
    }
    return true;
}

/* This process's environment, then the caller's settings, then the launcher's; later ones replace
 * earlier ones of the same name. NULL without memory. */
static char **make_environment(const struct weft_spawn *spawn, int32_t rank, struct weft_pool *pool)
{
    const struct weft_launch_options *options = spawn->options;
    const char *settings[SETTINGS];
    size_t n = 0, inherited = 0;
    while (environ != NULL && environ[inherited] != NULL)
        inherited++;
    size_t most = inherited + (size_t)options->n_environment + SETTINGS + 1;
    const char **all = weft_pool_array(pool, most, sizeof *all);
    if (all == NULL || !make_settings(spawn, rank, pool, settings)) return NULL;
    for (size_t i = 0; i < inherited; i++) {
        if (!is_replaced(environ[i], options->environment, options->n_environment) &&
            !is_replaced(environ[i], settings, SETTINGS))
            all[n++] = environ[i];
    }
    for (int32_t i = 0; i < options->n_environment; i++) {
        if (!is_replaced(options->environment[i], settings, SETTINGS))
            all[n++] = options->environment[i];
    }
    for (int i = 0; i < SETTINGS; i++)
        all[n++] = settings[i];
    all[n] = NULL;
    return (char **)(void *)all;
}

/* In the child: nothing but system calls from here on */

static void keep_open(const struct weft_spawn *spawn)
{
    /* Whatever else this process holds open is not for ranks. */
    close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    fcntl(spawn->control_fd, F_SETFD, 0);
    for (int32_t i = 0; i < spawn->options->ranks; i++)
        fcntl(spawn->arena_fds[i], F_SETFD, 0);
    for (int32_t i = 0; i < spawn->options->n_fds; i++)
        fcntl(spawn->options->fds[i], F_SETFD, 0);
}

_Noreturn static void become_rank(const struct weft_spawn *spawn, char *const *environment,
                                  pid_t launcher, int report_fd)
{
    const struct weft_launch_options *options = spawn->options;
    /* A session of its own: a terminal's Ctrl-C reaches ranks once, through the launcher. */
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(weft_status_exit_code(WEFT_E_LOST)); /* it died before prctl */
    int null_fd = open("/dev/null", O_RDONLY);
    if (null_fd > 0) dup2(null_fd, STDIN_FILENO);
    keep_open(spawn);
    signal(SIGCHLD, SIG_DFL);
    weft_signals_drop_handlers();
    sigprocmask(SIG_SETMASK, spawn->signals, NULL);
    const char *path = options->path != NULL ? options->path : "/proc/self/exe";
    execve(path, options->argv, environment);
    int reason = errno;
    ssize_t written = write(report_fd, &reason, sizeof reason);
    _exit(written == (ssize_t)sizeof reason ? 1 : 2);
}

/* In the launcher again */

static enum weft_status fail_exec(const struct weft_spawn *spawn, int32_t rank, int reason,
                                  struct weft_error *err)
{
    const char *path = spawn->options->path != NULL ? spawn->options->path : "this program";
    enum weft_status status = reason == ENOENT   ? WEFT_E_NO_INPUT
                              : reason == EACCES ? WEFT_E_PERMISSION
                                                 : WEFT_E_SYSTEM;
    return weft_fail(err, status, "cannot start rank %d: %s: %s", rank, path, strerror(reason));
}

/* The pipe closes by itself when exec succeeds. */
static int read_report(int fd)
{
    int reason = 0;
    ssize_t n;
    do {
        n = read(fd, &reason, sizeof reason);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof reason ? reason : 0;
}

static enum weft_status start(const struct weft_spawn *spawn, int32_t rank,
                              char *const *environment, pid_t *pid, struct weft_error *err)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        return weft_fail(err, WEFT_E_SYSTEM, "cannot start rank %d: no pipe: %s (ulimit -n)", rank,
                         strerror(errno));
    }
    pid_t launcher = getpid();
    sigset_t all, mask;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    pid_t child = fork();
    if (child == 0) become_rank(spawn, environment, launcher, report[1]);
    int reason = errno;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        return weft_fail(err, WEFT_E_SYSTEM,
                         "cannot start rank %d: no process: %s. Raise the limit (ulimit -u, or "
                         "pids.max of the cgroup) or start fewer ranks",
                         rank, strerror(reason));
    }
    reason = read_report(report[0]);
    close(report[0]);
    *pid = child;
    return reason == 0 ? WEFT_OK : fail_exec(spawn, rank, reason, err);
}

enum weft_status weft_spawn_rank(const struct weft_spawn *spawn, int32_t rank, pid_t *pid,
                                 struct weft_error *err)
{
    struct weft_pool pool;
    weft_pool_init(&pool);
    char **environment = make_environment(spawn, rank, &pool);
    enum weft_status status = environment != NULL ? start(spawn, rank, environment, pid, err)
                                                  : weft_fail_memory(err, "a rank's environment");
    weft_pool_finish(&pool);
    return status;
}
