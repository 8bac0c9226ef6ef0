/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* close_range */
#include "runtime/launch/spawn.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/process.h"
#include "base/text.h"
#include "runtime/launch/rendezvous.h"

extern char **environ;

enum { SETTINGS = 9 };

/* Ranks get the first one with the value "false", and the others not at all. */
const char *const weft_binding_variables[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                              "KMP_AFFINITY", NULL};

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

/* OMP_THREAD_LIMIT could give a rank fewer threads than OMP_NUM_THREADS. */
static bool is_dropped(const char *setting)
{
    if (has_name(setting, "OMP_THREAD_LIMIT")) return true;
    for (const char *const *name = weft_binding_variables; *name != NULL; name++)
        if (has_name(setting, *name)) return true;
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

/* Settings of a rank by the launcher. Waiting OpenMP threads must sleep, because a communication
 * thread needs the core. The number of threads is fixed, because sums depend on it. */
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
        "OMP_WAIT_POLICY=passive",
        "OMP_PROC_BIND=false",
        "OMP_DYNAMIC=false",
    };
    for (int i = 0; i < SETTINGS; i++) {
        if (made[i] == NULL) return false;
        settings[i] = made[i];
    }
    return true;
}

/* Joins this process's environment, the caller's settings, and the launcher's. Later ones replace
 * earlier ones of the same name. Returns NULL if memory runs out. */
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
            !is_replaced(environ[i], settings, SETTINGS) && !is_dropped(environ[i]))
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

/* In the child: only system calls from here on */

static void keep_open(const struct weft_spawn *spawn)
{
    /* Ranks inherit only the descriptors that are named here. */
    close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    fcntl(spawn->control_fd, F_SETFD, 0);
    for (int32_t i = 0; i < spawn->options->ranks; i++)
        fcntl(spawn->arena_fds[i], F_SETFD, 0);
    for (int32_t i = 0; i < spawn->options->n_fds; i++)
        fcntl(spawn->options->fds[i], F_SETFD, 0);
}

static void prepare_child(const void *context)
{
    /* In a session of its own a rank gets a terminal's Ctrl-C only through the launcher, once. */
    setsid();
    keep_open(context);
}

/* In the launcher */

static enum weft_status start_rank(const struct weft_spawn *spawn, int32_t rank,
                                   char *const *environment, pid_t *pid, struct weft_error *err)
{
    const struct weft_process process = {.path = spawn->options->path,
                                         .argv = spawn->options->argv,
                                         .environment = environment,
                                         .signals = spawn->signals,
                                         .in = -1,
                                         .out = -1,
                                         .note = -1,
                                         .prepare = prepare_child,
                                         .context = spawn};
    if (process.path == NULL) WEFT_TRY(weft_rendezvous_need_proc(err));
    struct weft_error failure = {0};
    enum weft_status status = weft_process_start(&process, pid, &failure);
    if (status == WEFT_OK) return WEFT_OK;
    return weft_fail(err, status, "cannot start rank %d: %s", rank, failure.text);
}

enum weft_status weft_spawn_rank(const struct weft_spawn *spawn, int32_t rank, pid_t *pid,
                                 struct weft_error *err)
{
    struct weft_pool pool;
    weft_pool_init(&pool);
    char **environment = make_environment(spawn, rank, &pool);
    enum weft_status status = environment != NULL ? start_rank(spawn, rank, environment, pid, err)
                                                  : weft_fail_memory(err, "a rank's environment");
    weft_pool_finish(&pool);
    return status;
}
