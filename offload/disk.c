/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_TMPFILE */
#include "offload/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"

enum { PATH_BYTES = 4096, MOST_NAMES = 100 };

enum file_system_kind { KIND_LOCAL, KIND_NETWORK, KIND_MEMORY, KIND_COPIES };

static const struct file_system {
    uint64_t number; /* from linux/magic.h, which lacks some in old versions */
    const char *name;
    enum file_system_kind kind;
} file_systems[] = {
    {0xEF53, "ext4", KIND_LOCAL},          {0x58465342, "xfs", KIND_LOCAL},
    {0xF2F52010, "f2fs", KIND_LOCAL},      {0x794C7630, "overlay", KIND_LOCAL},
    {0x9123683E, "btrfs", KIND_COPIES},    {0x2FC12FC1, "zfs", KIND_COPIES},
    {0xCA451A4E, "bcachefs", KIND_COPIES}, {0x01021994, "tmpfs", KIND_MEMORY},
    {0x858458F6, "ramfs", KIND_MEMORY},    {0x958458F6, "hugetlbfs", KIND_MEMORY},
    {0x6969, "nfs", KIND_NETWORK},         {0xFF534D42, "cifs", KIND_NETWORK},
    {0xFE534D42, "smb2", KIND_NETWORK},    {0x00C36400, "ceph", KIND_NETWORK},
    {0x0BD00BD0, "lustre", KIND_NETWORK},  {0x47504653, "gpfs", KIND_NETWORK},
    {0x01021997, "9p", KIND_NETWORK},      {0x5346414F, "afs", KIND_NETWORK},
    {0x65735546, "fuse", KIND_NETWORK},
};
enum { FILE_SYSTEMS = sizeof file_systems / sizeof file_systems[0] };

static const uint64_t btrfs_number = 0x9123683E;

/* Turns a refusal of the system into a status and advice. */
static enum weft_status fail_open(const char *directory, int reason, struct weft_error *err)
{
    struct rlimit limit;
    switch (reason) {
    case ENOENT:
        return weft_fail(err, WEFT_E_DATA,
                         "%s: there is no such directory: make it, or name one that there is",
                         directory);
    case ENOTDIR:
        return weft_fail(err, WEFT_E_DATA, "%s is not a directory: name one on a local disk",
                         directory);
    case EACCES:
    case EPERM:
        return weft_fail(err, WEFT_E_DATA,
                         "%s: no permission to make a file there: name a directory that you may "
                         "write to",
                         directory);
    case EMFILE:
        limit.rlim_cur = 0;
        if (getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 0;
        return weft_fail(err, WEFT_E_SYSTEM,
                         "%s: cannot open a file: this process may have %lld open (RLIMIT_NOFILE): "
                         "raise it (ulimit -n)",
                         directory, (long long)limit.rlim_cur);
    case ENFILE:
        return weft_fail(err, WEFT_E_SYSTEM,
                         "%s: cannot open a file: the machine has as many open as it may "
                         "(fs.file-max)",
                         directory);
    case ENOMEM:
        return weft_fail(err, WEFT_E_SYSTEM, "%s: out of memory for a file: free some", directory);
    case ENOSPC:
    case EDQUOT:
    case EIO:
        return weft_fail(err, WEFT_E_IO, "%s: cannot make a file: %s", directory, strerror(reason));
    default:
        return weft_fail(err, WEFT_E_CREATE, "%s: cannot make a file: %s", directory,
                         strerror(reason));
    }
}

/* For file systems without O_TMPFILE: makes a file and removes its name at once. Returns the
 * descriptor, or -1. */
static int open_and_unlink(const struct weft_disk_calls *calls, const char *directory,
                           struct weft_error *err)
{
    char path[PATH_BYTES];
    int fd = -1;
    for (int i = 0; i < MOST_NAMES && fd < 0; i++) {
        const int length = snprintf(path, sizeof path, "%s/.weft-disk-%ld-%" PRIx64, directory,
                                    (long)getpid(), (uint64_t)weft_clock_now_ns() + (uint64_t)i);
        if (length < 0 || length >= PATH_BYTES) {
            fail_open(directory, ENAMETOOLONG, err);
            return -1;
        }
        fd = calls->open(calls->context, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         0600);
        if (fd < 0 && errno != EEXIST && errno != EINTR) break;
    }
    if (fd < 0) {
        fail_open(directory, errno, err);
        return -1;
    }
    int failed = 0;
    do {
        failed = calls->unlink(calls->context, path);
    } while (failed != 0 && errno == EINTR);
    if (failed == 0) return fd;
    weft_fail(err, WEFT_E_IO, "cannot remove %s, which was just made: %s", path, strerror(errno));
    calls->close(calls->context, fd);
    return -1;
}

/* Returns the descriptor, or -1. */
static int open_unnamed(const struct weft_disk_calls *calls, const char *directory,
                        struct weft_error *err)
{
    int fd;
    do {
        fd = calls->open(calls->context, directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EINTR);
    /* EISDIR is from a kernel, and EOPNOTSUPP from a file system, without O_TMPFILE. Some network
     * file systems return EINVAL. */
    if (fd < 0 && (errno == EISDIR || errno == EOPNOTSUPP || errno == EINVAL))
        return open_and_unlink(calls, directory, err);
    if (fd < 0) fail_open(directory, errno, err);
    return fd;
}

static enum weft_status find_file_system(struct weft_disk *disk, struct weft_error *err)
{
    const struct weft_disk_calls *calls = disk->calls;
    struct weft_disk_facts *facts = &disk->facts;
    uint64_t number = 0;
    int failed = 0;
    do {
        failed = calls->file_system(calls->context, disk->fd, &number, &facts->free_bytes);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0)
        return weft_fail(err, WEFT_E_IO, "%s: cannot ask what file system this is: %s",
                         disk->directory, strerror(errno));
    snprintf(facts->file_system, sizeof facts->file_system, "0x%" PRIx64, number);
    for (int i = 0; i < FILE_SYSTEMS; i++) {
        if (file_systems[i].number != number) continue;
        snprintf(facts->file_system, sizeof facts->file_system, "%s", file_systems[i].name);
        facts->network = file_systems[i].kind == KIND_NETWORK;
        facts->memory = file_systems[i].kind == KIND_MEMORY;
        facts->copies = file_systems[i].kind == KIND_COPIES;
    }
    if (facts->memory)
        return weft_fail(err, WEFT_E_DATA,
                         "%s is on %s, which keeps everything in memory: name a directory on a "
                         "disk",
                         disk->directory, facts->file_system);
    if (number == btrfs_number && calls->set_no_copy(calls->context, disk->fd) == 0)
        facts->copies = false;
    return WEFT_OK;
}

static int64_t round_up_to(int64_t bytes, int64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void give_reason(struct weft_disk_facts *facts, const char *what, const char *why)
{
    snprintf(facts->reason, sizeof facts->reason, "%s%s%s", what, why[0] ? ": " : "", why);
}

/* Finds the alignment. Bypasses the page cache if that is asked for and possible. */
static void make_direct(struct weft_disk *disk, bool direct)
{
    const struct weft_disk_calls *calls = disk->calls;
    struct weft_disk_facts *facts = &disk->facts;
    int64_t bytes = -1;
    facts->step_bytes = 1;
    facts->alignment_bytes = WEFT_DISK_ALIGNMENT_BYTES;
    if (calls->alignment(calls->context, disk->fd, &bytes) != 0) bytes = -1;
    if (!direct) {
        give_reason(facts, "it was not asked for", "");
    } else if (bytes == 0) {
        give_reason(facts, "the file system has no direct input and output (O_DIRECT) here", "");
    } else if (calls->set_direct(calls->context, disk->fd) != 0) {
        give_reason(facts, "the file system refuses O_DIRECT", strerror(errno));
    } else {
        facts->direct = true;
        facts->step_bytes = bytes < 0 ? WEFT_DISK_ALIGNMENT_BYTES : bytes;
        facts->alignment_bytes = round_up_to(facts->step_bytes, WEFT_DISK_ALIGNMENT_BYTES);
    }
}

enum weft_status weft_disk_open(const struct weft_disk_calls *calls, const char *directory,
                                bool direct, struct weft_disk *out, struct weft_error *err)
{
    struct weft_disk disk = {.calls = calls, .directory = directory};
    struct weft_error why = {.status = WEFT_OK};
    disk.fd = open_unnamed(calls, directory, &why);
    if (disk.fd < 0) return weft_fail_again(err, &why, "%s", why.text);
    enum weft_status status = find_file_system(&disk, err);
    if (status != WEFT_OK) {
        weft_disk_close(&disk);
        return status;
    }
    make_direct(&disk, direct);
    *out = disk;
    return WEFT_OK;
}

static enum weft_status check_file_size(const struct weft_disk *disk, int64_t bytes,
                                        struct weft_error *err)
{
    const int64_t most_bytes = weft_file_most_bytes();
    if (bytes <= most_bytes) return WEFT_OK;
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "%s: a file of %s is above the limit of file sizes, %s (RLIMIT_FSIZE): raise "
                     "it (ulimit -f)",
                     disk->directory, weft_units_show_bytes(bytes, want),
                     weft_units_show_bytes(most_bytes, most));
}

static enum weft_status fail_reserve(const struct weft_disk *disk, int64_t bytes, int reason,
                                     struct weft_error *err)
{
    const struct weft_disk_calls *calls = disk->calls;
    char want[WEFT_UNITS_TEXT_BYTES], left[WEFT_UNITS_TEXT_BYTES];
    uint64_t number;
    int64_t free_bytes = disk->facts.free_bytes;
    weft_units_show_bytes(bytes, want);
    if (reason == EOPNOTSUPP || reason == ENOSYS)
        return weft_fail(err, WEFT_E_IO,
                         "%s: %s cannot reserve a file of %s (fallocate is not supported), and "
                         "would lack space in the middle of a run: name a directory on ext4, xfs "
                         "or btrfs",
                         disk->directory, disk->facts.file_system, want);
    if (calls->file_system(calls->context, disk->fd, &number, &free_bytes) != 0)
        free_bytes = disk->facts.free_bytes;
    return weft_fail(err, WEFT_E_IO, "%s: cannot reserve a file of %s: %s; %s are free there",
                     disk->directory, want, strerror(reason),
                     weft_units_show_bytes(free_bytes, left));
}

enum weft_status weft_disk_reserve(const struct weft_disk *disk, int64_t bytes,
                                   struct weft_error *err)
{
    WEFT_TRY(check_file_size(disk, bytes, err));
    while (disk->calls->reserve(disk->calls->context, disk->fd, bytes) != 0) {
        if (errno != EINTR) return fail_reserve(disk, bytes, errno, err); /* EINTR: try again */
    }
    return WEFT_OK;
}

void weft_disk_close(struct weft_disk *disk)
{
    if (disk->fd >= 0) disk->calls->close(disk->calls->context, disk->fd);
    disk->fd = -1;
}

void weft_disk_describe(const struct weft_disk_facts *facts, char *out, size_t bytes)
{
    char aligned[WEFT_UNITS_TEXT_BYTES], left[WEFT_UNITS_TEXT_BYTES];
    snprintf(out, bytes, "%s%s, %s%s%s%s, aligned to %s, %s free", facts->file_system,
             facts->network ? " (a network file system)" : "",
             facts->direct ? "direct (O_DIRECT)" : "through the page cache (",
             facts->direct ? "" : facts->reason, facts->direct ? "" : ")",
             facts->copies ? ", copies on write" : "",
             weft_units_show_bytes(facts->alignment_bytes, aligned),
             weft_units_show_bytes(facts->free_bytes, left));
}
