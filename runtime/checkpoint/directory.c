/* SPDX-License-Identifier: Apache-2.0 */
/* For flock, which is neither C nor POSIX. */
#define _DEFAULT_SOURCE

#include "runtime/checkpoint/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/shown.h"
#include "runtime/comm/host.h"

static const char prefix[] = "step-";
static const char temporary_mark[] = ".tmp-";

/* Reads the digits of "step-N...", without sign or leading zero; *end is their end. */
static bool read_step(const char *name, int64_t *step, const char **end)
{
    size_t length = sizeof prefix - 1;
    if (strncmp(name, prefix, length) != 0) return false;
    const char *at = name + length;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (value > (INT64_MAX - 9) / 10 || (value == 0 && at > name + length)) return false;
        value = value * 10 + (*at - '0');
    }
    if (at == name + length) return false;
    *step = value;
    *end = at;
    return true;
}

bool weft_checkpoint_step_of(const char *path, int64_t *step)
{
    const char *slash = strrchr(path, '/'), *end = NULL;
    int64_t value = 0;
    if (!read_step(slash == NULL ? path : slash + 1, &value, &end) || *end != '\0') return false;
    *step = value;
    return true;
}

void weft_checkpoint_memory_path(const int *fds, int n, int64_t step, struct weft_text *out)
{
    weft_text_add(out, WEFT_CHECKPOINT_MEMORY);
    for (int f = 0; f < n; f++)
        weft_text_addf(out, "%c%d", f == 0 ? ' ' : ',', fds[f]);
    weft_text_addf(out, "/%s%" PRId64, prefix, step);
}

bool weft_checkpoint_memory_file(const char *path, int file, int *fd)
{
    static const char head[] = WEFT_CHECKPOINT_MEMORY " ";
    if (strncmp(path, head, sizeof head - 1) != 0) return false;
    const char *at = path + sizeof head - 1;
    for (int f = 0;; f++) {
        char *end;
        const long number = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '/')) return false;
        if (f == file) *fd = (int)number;
        if (f == file || *end == '/') return f == file;
        at = end + 1;
    }
}

size_t weft_checkpoint_path_length(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

static bool is_temporary(const char *name)
{
    int64_t step = 0;
    const char *end = NULL;
    return read_step(name, &step, &end) &&
           strncmp(end, temporary_mark, sizeof temporary_mark - 1) == 0;
}

void weft_checkpoint_path(const char *directory, int64_t step, struct weft_text *out)
{
    weft_text_addf(out, "%s/%s%" PRId64, directory, prefix, step);
}

void weft_checkpoint_temporary(const char *directory, int64_t step, int64_t attempt,
                               struct weft_text *out)
{
    weft_text_addf(out, "%s/%s%" PRId64 "%s%" PRId64, directory, prefix, step, temporary_mark,
                   attempt);
}

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum weft_status append_step(int64_t **steps, int32_t *n, int64_t step,
                                    struct weft_error *err)
{
    if ((*n & (*n - 1)) == 0) { /* full: room doubles at powers of two */
        size_t room = *n == 0 ? 1 : 2 * (size_t)*n;
        int64_t *larger = realloc(*steps, room * sizeof **steps);
        if (larger == NULL) return weft_fail_memory(err, "a list of checkpoints");
        *steps = larger;
    }
    (*steps)[(*n)++] = step;
    return WEFT_OK;
}

enum weft_status weft_checkpoint_scan(const char *directory, int64_t **steps, int32_t *n_steps,
                                      struct weft_error *err)
{
    int64_t *found = NULL, step = 0;
    int32_t n = 0;
    enum weft_status status = WEFT_OK;
    DIR *listing = opendir(directory);
    if (listing == NULL && errno != ENOENT && errno != ENOTDIR)
        return weft_fail(err, errno == EACCES ? WEFT_E_PERMISSION : WEFT_E_IO,
                         "%s: cannot be listed: %s", directory, strerror(errno));
    while (listing != NULL && status == WEFT_OK) {
        errno = 0;
        const struct dirent *entry = readdir(listing);
        if (entry == NULL) {
            if (errno != 0)
                status = weft_fail(err, WEFT_E_IO, "%s: cannot be listed: %s", directory,
                                   strerror(errno));
            break;
        }
        if (weft_checkpoint_step_of(entry->d_name, &step))
            status = append_step(&found, &n, step, err);
    }
    if (listing != NULL) closedir(listing);
    if (status != WEFT_OK) {
        free(found);
        return status;
    }
    if (n > 1) qsort(found, (size_t)n, sizeof *found, compare_steps);
    *steps = found;
    *n_steps = n;
    return WEFT_OK;
}

/* Calls `visit` with the path of each entry of a directory that `wanted` accepts. */
static void for_each(const char *directory, bool (*wanted)(const char *name),
                     void (*visit)(const struct weft_sink *sink, const char *path),
                     const struct weft_sink *sink)
{
    DIR *listing = opendir(directory);
    if (listing == NULL) return;
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL) {
        struct weft_text path;
        if (!wanted(entry->d_name)) continue;
        weft_text_init(&path);
        weft_text_addf(&path, "%s/%s", directory, entry->d_name);
        if (weft_text_ok(&path)) visit(sink, weft_text_chars(&path));
        weft_text_finish(&path);
    }
    closedir(listing);
}

static bool is_entry(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void remove_file(const struct weft_sink *sink, const char *path)
{
    sink->remove(sink->context, path);
}

/* Do not delete a link's target: the user put it there. */
void weft_checkpoint_remove(const struct weft_sink *sink, const char *path)
{
    struct stat about;
    bool is_directory = lstat(path, &about) != 0 || S_ISDIR(about.st_mode);
    if (is_directory) for_each(path, is_entry, remove_file, sink);
    int error = is_directory ? sink->remove_directory(sink->context, path)
                             : sink->remove(sink->context, path);
    if (error != 0 && error != ENOENT)
        weft_log(WEFT_LOG_WARNING, "%s: cannot be removed: %s", path, strerror(error));
}

/* A temporary name may be the newer of two names, and the older one a checkpoint's. So this settles
 * the name on the disk before a removal under it. */
static bool settle_names(const struct weft_sink *sink, const char *directory)
{
    int error;
    do {
        error = sink->sync_directory(sink->context, directory);
    } while (error == EINTR);
    if (error != 0 && error != ENOENT)
        weft_log(WEFT_LOG_WARNING, "%s: what a save left there stays, for it cannot be synced: %s",
                 directory, strerror(error));
    return error == 0;
}

void weft_checkpoint_discard(const struct weft_sink *sink, const char *directory, const char *path)
{
    if (settle_names(sink, directory)) weft_checkpoint_remove(sink, path);
}

void weft_checkpoint_clear(const struct weft_sink *sink, const char *directory)
{
    if (settle_names(sink, directory))
        for_each(directory, is_temporary, weft_checkpoint_remove, sink);
}

bool weft_checkpoint_retire(const struct weft_sink *sink, const char *directory, int64_t step)
{
    bool renamed = false;
    struct weft_text from, to;
    weft_text_init(&from);
    weft_text_init(&to);
    weft_checkpoint_path(directory, step, &from);
    weft_checkpoint_temporary(directory, step, 0, &to);
    if (weft_text_ok(&from) && weft_text_ok(&to)) {
        int error = weft_sink_rename(sink, weft_text_chars(&from), weft_text_chars(&to));
        renamed = error == 0;
        if (renamed) {
            weft_checkpoint_discard(sink, directory, weft_text_chars(&to));
        } else {
            weft_log(WEFT_LOG_WARNING, "%s: an old checkpoint cannot be removed: %s",
                     weft_text_chars(&from), strerror(error));
        }
    }
    weft_text_finish(&to);
    weft_text_finish(&from);
    return renamed;
}

bool weft_checkpoint_stays(const struct weft_retention *retention, int64_t step)
{
    return step == retention->precious ||
           (retention->multiple > 0 && step % retention->multiple == 0);
}

void weft_checkpoint_retain(const struct weft_sink *sink, const char *directory,
                            const struct weft_retention *retention)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    const int64_t keep = retention->keep < 2 ? 2 : retention->keep;
    if (weft_checkpoint_scan(directory, &steps, &n, NULL) != WEFT_OK) return;
    for (int32_t i = 0; i + keep < n; i++) {
        if (!weft_checkpoint_stays(retention, steps[i]))
            weft_checkpoint_retire(sink, directory, steps[i]);
    }
    free(steps);
}

enum { HOLDER_BYTES = 200 };

/* Leaves host, process and the batch system's job in the lock, for the message of another run. */
static void sign_lock(int lock)
{
    static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
    char host[WEFT_HOST_NAME_BYTES], text[HOLDER_BYTES];
    const char *job = NULL;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs && job == NULL; i++)
        job = getenv(jobs[i]);
    const int n = snprintf(text, sizeof text, "host %s, process %ld%s%.60s", weft_host_name(host),
                           (long)getpid(), job != NULL ? ", job " : "", job != NULL ? job : "");
    if (ftruncate(lock, 0) == 0) (void)!pwrite(lock, text, (size_t)n, 0);
}

/* Appends " (host a, process 7)"; nothing if the holder has not signed. */
static void add_holder(int lock, struct weft_text *out)
{
    char text[HOLDER_BYTES], shown[WEFT_SHOWN_BYTES];
    const ssize_t n = pread(lock, text, sizeof text - 1, 0);
    if (n <= 0) return;
    text[n] = '\0';
    weft_text_addf(out, " (%s)", weft_shown(text, shown));
}

static enum weft_status fail_locked(int lock, const char *run_directory, struct weft_error *err)
{
    struct weft_text holder;
    weft_text_init(&holder);
    add_holder(lock, &holder);
    weft_fail(err, WEFT_E_CREATE,
              "%s: another run is writing to this directory%s: wait until it has ended, or give "
              "another with --run",
              run_directory, weft_text_chars(&holder));
    weft_text_finish(&holder);
    return WEFT_E_CREATE;
}

enum weft_status weft_checkpoint_lock(const char *run_directory, int *fd, struct weft_error *err)
{
    static const int64_t patience_ns = INT64_C(3000000000), pause_ns = INT64_C(50000000);
    int64_t until_ns = weft_clock_now_ns() + patience_ns;
    struct weft_text path;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/lock", run_directory);
    enum weft_status status = weft_text_ok(&path) ? WEFT_OK : weft_fail_memory(err, "a path");
    int lock = -1;
    if (status == WEFT_OK) {
        lock = open(weft_text_chars(&path), O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
        if (lock < 0)
            status = weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s",
                               weft_text_chars(&path), strerror(errno));
    }
    while (status == WEFT_OK && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) {
            status = weft_fail(err, WEFT_E_IO, "%s: cannot be locked: %s", weft_text_chars(&path),
                               strerror(errno));
        } else if (weft_clock_now_ns() >= until_ns) {
            status = fail_locked(lock, run_directory, err);
        } else {
            weft_clock_sleep_until_ns(weft_clock_now_ns() + pause_ns);
        }
    }
    weft_text_finish(&path);
    if (status != WEFT_OK) {
        if (lock >= 0) close(lock);
        return status;
    }
    sign_lock(lock);
    *fd = lock;
    return WEFT_OK;
}

bool weft_checkpoint_is_locked(const char *run_directory, struct weft_text *holder)
{
    struct weft_text path;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/lock", run_directory);
    int lock = weft_text_ok(&path) ? open(weft_text_chars(&path), O_RDONLY | O_NOFOLLOW) : -1;
    bool locked = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (locked) add_holder(lock, holder);
    if (lock >= 0) close(lock);
    weft_text_finish(&path);
    return locked;
}
