/* SPDX-License-Identifier: Apache-2.0 */
/* realpath is XSI. */
#define _XOPEN_SOURCE 700

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { REASON_BYTES = 128, FIRST_READ_BYTES = 65536, MOST_TEMPORARY_NAMES = 1000 };

/* The system's message for an errno. */
static const char *error_reason(int error, char out[REASON_BYTES])
{
    if (strerror_r(error, out, REASON_BYTES) != 0) snprintf(out, REASON_BYTES, "error %d", error);
    return out;
}

static bool is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

static enum weft_status fail_read(const char *path, int error, struct weft_error *err)
{
    char why[REASON_BYTES];
    enum weft_status status = WEFT_E_IO;
    if (error == ENOENT || error == ENOTDIR) status = WEFT_E_NO_INPUT;
    if (error == EACCES || error == EPERM) status = WEFT_E_PERMISSION;
    return weft_fail(err, status, "cannot read %s: %s", path, error_reason(error, why));
}

static ssize_t read_some(int descriptor, char *bytes, size_t length)
{
    ssize_t count;
    do {
        count = read(descriptor, bytes, length);
    } while (count < 0 && errno == EINTR);
    return count;
}

/* Reads to the end and ignores the size from fstat: pipes have none, and files in /proc report 0.
 */
static enum weft_status read_all(int descriptor, const char *path, int64_t most_bytes, char **bytes,
                                 size_t *length, struct weft_error *err)
{
    char *buffer = NULL;
    size_t used = 0, capacity = FIRST_READ_BYTES;
    struct stat about;
    if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode)) {
        /* A long file fails before any read. One extra byte of room shows the end. */
        if (about.st_size > most_bytes) used = (size_t)most_bytes + 1;
        if (about.st_size <= most_bytes) capacity = (size_t)about.st_size + 2;
    }
    while (used <= (size_t)most_bytes) {
        if (buffer == NULL || capacity - used < 2) {
            if (buffer != NULL) capacity *= 2;
            char *larger = realloc(buffer, capacity);
            if (larger == NULL) {
                free(buffer);
                return weft_fail_memory(err, path);
            }
            buffer = larger;
        }
        ssize_t count = read_some(descriptor, buffer + used, capacity - used - 1);
        if (count < 0) {
            int error = errno;
            free(buffer);
            return fail_read(path, error, err);
        }
        if (count == 0) {
            buffer[used] = '\0';
            *bytes = buffer;
            *length = used;
            return WEFT_OK;
        }
        used += (size_t)count;
    }
    free(buffer);
    return weft_fail(err, WEFT_E_DATA, "%s is longer than %lld bytes, the most that is read", path,
                     (long long)most_bytes);
}

enum weft_status weft_file_read(const char *path, int64_t most_bytes, char **bytes, size_t *length,
                                struct weft_error *err)
{
    if (most_bytes < 0) most_bytes = 0;
    if (is_dash(path)) {
        return read_all(STDIN_FILENO, "standard input", most_bytes, bytes, length, err);
    }
    int descriptor;
    do {
        descriptor = open(path, O_RDONLY | O_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0) return fail_read(path, errno, err);
    enum weft_status status = read_all(descriptor, path, most_bytes, bytes, length, err);
    close(descriptor);
    return status;
}

enum weft_status weft_file_read_open(int descriptor, const char *title, struct weft_text *out,
                                     struct weft_error *err)
{
    char bytes[FIRST_READ_BYTES];
    for (off_t at = 0;;) {
        const ssize_t count = pread(descriptor, bytes, sizeof bytes, at);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return fail_read(title, errno, err);
        if (count == 0) break;
        weft_text_append(out, bytes, (size_t)count);
        at += count;
    }
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, title);
}

/* Returns 0 or an errno. */
static int write_all(int descriptor, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t count = write(descriptor, bytes, length);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        bytes += count;
        length -= (size_t)count;
    }
    return 0;
}

static enum weft_status fail_write(const char *path, int error, struct weft_error *err)
{
    char why[REASON_BYTES];
    return weft_fail(err, WEFT_E_IO, "cannot write %s: %s", path, error_reason(error, why));
}

static enum weft_status fail_create(const char *path, int error, struct weft_error *err)
{
    char why[REASON_BYTES];
    const char *hint = error == ENOENT ? " (its directory is missing)" : "";
    return weft_fail(err, WEFT_E_CREATE, "cannot create %s: %s%s", path, error_reason(error, why),
                     hint);
}

/* Bytes of the directory part of `path`, with its slash; 0: none. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* Opens a new file next to `path` and puts its name into `name`. Negative with errno on failure.
 * mkstemp would make files that nobody else may read, under any umask. */
static int open_temporary(const char *path, struct weft_text *name)
{
    for (int i = 0; i < MOST_TEMPORARY_NAMES; i++) {
        weft_text_finish(name);
        weft_text_append(name, path, directory_length(path));
        weft_text_addf(name, ".weft-%ld-%d.tmp", (long)getpid(), i);
        if (!weft_text_ok(name)) {
            errno = ENOMEM;
            return -1;
        }
        int descriptor = open(weft_text_chars(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || (errno != EEXIST && errno != EINTR)) return descriptor;
    }
    errno = EEXIST;
    return -1;
}

/* The process id in a name from open_temporary; 0 for other names. */
static pid_t writer_of(const char *name)
{
    long pid = 0;
    int number = 0, end = 0;
    if (sscanf(name, ".weft-%9ld-%3d.tmp%n", &pid, &number, &end) != 2 || end == 0 ||
        name[end] != '\0' || pid <= 0 || number < 0)
        return 0;
    return (pid_t)pid;
}

void weft_file_clear(const char *directory)
{
    DIR *listing = opendir(directory);
    const struct dirent *entry;
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        pid_t pid = writer_of(entry->d_name);
        bool over = pid == getpid() || (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH);
        if (over) unlinkat(dirfd(listing), entry->d_name, 0);
    }
    if (listing != NULL) closedir(listing);
}

/* Returns 0 or an errno. */
static int sync_file(int descriptor)
{
    while (fsync(descriptor) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}

/* Makes the rename durable. Returns 0 or an errno. A directory that cannot be opened or synced
 * (some network file systems) is no failure, because the file itself is complete. */
static int sync_directory(const char *path)
{
    struct weft_text name;
    weft_text_init(&name);
    size_t length = directory_length(path);
    weft_text_append(&name, length == 0 ? "." : path, length == 0 ? 1 : length);
    int error = 0;
    if (weft_text_ok(&name)) {
        int descriptor = open(weft_text_chars(&name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor >= 0) {
            if (sync_file(descriptor) == EIO) error = EIO;
            close(descriptor);
        }
    }
    weft_text_finish(&name);
    return error;
}

/* `about` describes the replaced file; NULL: there is none. */
static enum weft_status replace_file(const char *path, const struct stat *about, const char *bytes,
                                     size_t length, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_text name;
    weft_text_init(&name);
    int descriptor = open_temporary(path, &name);
    if (descriptor < 0) {
        status = fail_create(path, errno, err);
        goto done;
    }
    if (about != NULL) (void)fchmod(descriptor, about->st_mode & 07777);
    int error = write_all(descriptor, bytes, length);
    if (error == 0) error = sync_file(descriptor);
    if (close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    if (error != 0) {
        status = fail_write(path, error, err);
    } else if (rename(weft_text_chars(&name), path) != 0) {
        status = fail_create(path, errno, err);
    }
    if (status != WEFT_OK) {
        unlink(weft_text_chars(&name));
        goto done;
    }
    error = sync_directory(path);
    if (error != 0) status = fail_write(path, error, err);
done:
    weft_text_finish(&name);
    return status;
}

/* Writes to pipes and devices (/dev/null, /dev/stdout), which are never replaced. */
static enum weft_status write_special(const char *path, const char *bytes, size_t length,
                                      struct weft_error *err)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return fail_create(path, errno, err);
    int error = write_all(descriptor, bytes, length);
    if (close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    return error == 0 ? WEFT_OK : fail_write(path, error, err);
}

enum weft_status weft_file_write(const char *path, const char *bytes, size_t length,
                                 struct weft_error *err)
{
    if (is_dash(path)) {
        /* Earlier output of the program comes first. */
        int error = fflush(stdout) == 0 ? 0 : errno;
        if (error == 0) error = write_all(STDOUT_FILENO, bytes, length);
        return error == 0 ? WEFT_OK : fail_write("standard output", error, err);
    }
    struct stat about;
    bool exists = stat(path, &about) == 0;
    if (exists && S_ISDIR(about.st_mode)) return fail_create(path, EISDIR, err);
    if (exists && !S_ISREG(about.st_mode)) return write_special(path, bytes, length, err);
    /* A symbolic link stays, and its target is replaced. */
    struct stat link;
    bool is_link = exists && lstat(path, &link) == 0 && S_ISLNK(link.st_mode);
    char *real = is_link ? realpath(path, NULL) : NULL;
    if (is_link && real == NULL) return fail_create(path, errno, err);
    enum weft_status status =
        replace_file(real != NULL ? real : path, exists ? &about : NULL, bytes, length, err);
    free(real);
    return status;
}

/* Returns 0 or an errno. */
static int make_one_directory(const char *path)
{
    if (mkdir(path, 0777) == 0) return 0;
    int error = errno;
    struct stat about;
    /* Some systems return EROFS or EACCES even for an existing directory. */
    if (stat(path, &about) != 0) return error;
    return S_ISDIR(about.st_mode) ? 0 : ENOTDIR;
}

enum weft_status weft_file_make_directory(const char *path, struct weft_error *err)
{
    enum weft_status status = WEFT_OK;
    struct weft_text part;
    weft_text_init(&part);
    const char *at = path;
    while (*at != '\0' && status == WEFT_OK) {
        size_t length = strspn(at, "/");
        length += strcspn(at + length, "/");
        weft_text_append(&part, at, length);
        at += length;
        if (!weft_text_ok(&part)) {
            status = weft_fail_memory(err, path);
        } else {
            int error = make_one_directory(weft_text_chars(&part));
            bool whole = *at == '\0';
            if (error != 0)
                status = weft_fail(err, WEFT_E_CREATE, "cannot create %s: %s%s%s", path,
                                   whole ? "" : weft_text_chars(&part), whole ? "" : ": ",
                                   strerror(error));
        }
    }
    if (*path == '\0') status = fail_create("a directory without a name", EINVAL, err);
    weft_text_finish(&part);
    return status;
}

int64_t weft_file_most_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur > INT64_MAX) return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}
