/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create */
#include "runtime/checkpoint/vault/vault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/manifest.h"

enum { BLOCK_BYTES = 512 }; /* of st_blocks */

/* The files */

static void clear_files(struct weft_vault *kept)
{
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        for (int f = 0; f < WEFT_VAULT_FILES; f++)
            kept->fds[g][f] = -1;
}

/* A signal interrupts it with nothing taken. */
static int take_bytes(int fd, int64_t bytes)
{
    int error;
    do
        error = posix_fallocate(fd, 0, (off_t)bytes);
    while (error == EINTR);
    return error;
}

static enum weft_status create_file(int64_t bytes, int *fd, struct weft_error *err)
{
    *fd = memfd_create("weft-checkpoint", MFD_CLOEXEC);
    int error = *fd < 0 ? errno : 0;
    if (error == 0 && bytes > 0) error = take_bytes(*fd, bytes);
    if (error == 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_SYSTEM,
                     "train.checkpoint.host: %" PRId64
                     " bytes of host memory for a checkpoint's file cannot be had: %s. Set it to "
                     "0, or give this job more memory",
                     bytes, strerror(error));
}

enum weft_status weft_vault_create(const struct weft_layout *layout, int64_t manifest_bytes,
                                   struct weft_vault *out, struct weft_error *err)
{
    struct weft_vault kept = {.manifest_bytes = manifest_bytes};
    enum weft_status status = WEFT_OK;
    clear_files(&kept);
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        for (int f = 0; f < WEFT_VAULT_FILES && status == WEFT_OK; f++)
            status = create_file(f == WEFT_VAULT_MANIFEST ? 0 : layout->files[f].bytes,
                                 &kept.fds[g][f], err);
    if (status == WEFT_OK)
        *out = kept;
    else
        weft_vault_close(&kept);
    return status;
}

void weft_vault_close(struct weft_vault *kept)
{
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        for (int f = 0; f < WEFT_VAULT_FILES; f++)
            if (kept->fds[g][f] >= 0) close(kept->fds[g][f]);
    clear_files(kept);
}

void weft_vault_write(const struct weft_vault *kept, struct weft_text *out)
{
    weft_text_addf(out, "%" PRId64, kept->manifest_bytes);
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        for (int f = 0; f < WEFT_VAULT_FILES; f++)
            weft_text_addf(out, ",%d", kept->fds[g][f]);
}

bool weft_vault_read(const char *text, struct weft_vault *out)
{
    struct weft_vault kept;
    char *end = NULL;
    kept.manifest_bytes = strtoll(text, &end, 10);
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++) {
        for (int f = 0; f < WEFT_VAULT_FILES; f++) {
            if (*end != ',') return false;
            kept.fds[g][f] = (int)strtol(end + 1, &end, 10);
        }
    }
    if (*end != '\0') return false;
    *out = kept;
    return true;
}

int64_t weft_vault_bytes(const struct weft_vault *kept)
{
    int64_t bytes = 0;
    struct stat about;
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        for (int f = 0; f < WEFT_VAULT_FILES; f++)
            if (fstat(kept->fds[g][f], &about) == 0)
                bytes += (int64_t)about.st_blocks * BLOCK_BYTES;
    return bytes;
}

/* Generations */

static bool is_empty(const struct weft_vault *kept, int generation)
{
    struct stat about;
    return fstat(kept->fds[generation][WEFT_VAULT_MANIFEST], &about) != 0 || about.st_size == 0;
}

static int empty_generation(const struct weft_vault *kept, int generation)
{
    return ftruncate(kept->fds[generation][WEFT_VAULT_MANIFEST], 0) == 0 ? 0 : errno;
}

/* Step by a generation's manifest; -1: it has no whole one. */
static int64_t step_of(const struct weft_vault *kept, int generation)
{
    struct weft_manifest *manifest = NULL;
    char path[64], *bytes = NULL;
    size_t length = 0;
    int64_t step = -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", kept->fds[generation][WEFT_VAULT_MANIFEST]);
    if (is_empty(kept, generation)) return -1;
    if (weft_file_read(path, kept->manifest_bytes, &bytes, &length, NULL) == WEFT_OK &&
        weft_manifest_parse(bytes, length, path, &manifest, NULL) == WEFT_OK)
        step = manifest->progress.step;
    weft_manifest_destroy(manifest);
    free(bytes);
    return step;
}

/* Opens a generation and checks all its bytes. */
static enum weft_status verify_generation(const struct weft_vault *kept, int generation,
                                          int64_t step, char **path, struct weft_error *err)
{
    struct weft_checkpoint *checkpoint = NULL;
    struct weft_text text;
    weft_text_init(&text);
    weft_checkpoint_memory_path(kept->fds[generation], WEFT_VAULT_FILES, step, &text);
    enum weft_status status = weft_text_ok(&text)
                                  ? weft_checkpoint_open(weft_text_chars(&text), &checkpoint, err)
                                  : weft_fail_memory(err, "a path");
    if (status == WEFT_OK) status = weft_checkpoint_verify(checkpoint, 0, 1, err);
    weft_checkpoint_close(checkpoint);
    if (status == WEFT_OK) *path = strdup(weft_text_chars(&text));
    if (status == WEFT_OK && *path == NULL) status = weft_fail_memory(err, "a path");
    weft_text_finish(&text);
    return status;
}

enum weft_status weft_vault_latest(const struct weft_vault *kept, int64_t *step, char **path,
                                   struct weft_error *err)
{
    *step = -1;
    *path = NULL;
    for (int i = 0; i < WEFT_VAULT_GENERATIONS && *path == NULL; i++) {
        const int64_t steps[] = {step_of(kept, 0), step_of(kept, 1)};
        const int newer = steps[1] > steps[0];
        struct weft_error why = {0};
        if (steps[newer] < 0) break;
        const enum weft_status status = verify_generation(kept, newer, steps[newer], path, &why);
        if (status == WEFT_E_SYSTEM) return weft_fail(err, status, "%s", why.text);
        if (status == WEFT_OK) {
            *step = steps[newer];
        } else {
            weft_log(WEFT_LOG_WARNING, "%s. It is left out", why.text);
            (void)empty_generation(kept, newer);
        }
    }
    /* A save that was cut off may have left a part of a manifest. */
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        if (step_of(kept, g) < 0) (void)empty_generation(kept, g);
    return WEFT_OK;
}

/* The sink */

static int fail_at(const struct weft_vault_sink *sink, const char *place)
{
    switch (weft_failpoint_at(sink->failpoint, place, sink->rank, sink->step)) {
    case WEFT_FAILURE_KILL:
        raise(SIGKILL);
        break;
    case WEFT_FAILURE_STOP:
        raise(SIGSTOP);
        break;
    case WEFT_FAILURE_ERROR:
        return EIO;
    case WEFT_FAILURE_NONE:
    case WEFT_FAILURE_NAN:
    case WEFT_FAILURE_FLIP:
    case WEFT_FAILURE_OVERRUN:
    case WEFT_FAILURE_STALE:
    case WEFT_FAILURE_COUNT:
        break;
    }
    return 0;
}

/* The generation that a save writes: the first empty one. -1: all are full. */
static int find_empty(const struct weft_vault *kept)
{
    for (int g = 0; g < WEFT_VAULT_GENERATIONS; g++)
        if (is_empty(kept, g)) return g;
    return -1;
}

/* Rank 0 begins a save. */
static int take_generation(void *context, const char *path)
{
    struct weft_vault_sink *sink = context;
    (void)path;
    sink->taken = find_empty(sink->kept);
    if (sink->taken < 0) {
        sink->taken = step_of(sink->kept, 1) < step_of(sink->kept, 0);
        const int error = empty_generation(sink->kept, sink->taken);
        if (error != 0) return error;
    }
    return fail_at(sink, "keep_begin");
}

static int open_copy(int fd, int *out)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return errno;
    *out = copy;
    return 0;
}

/* Opens the file with the last name of `path`. */
static int open_kept(void *context, const char *path, int *fd)
{
    static const char optimizer[] = "optimizer", manifest[] = "manifest";
    struct weft_vault_sink *sink = context;
    const char *name = strrchr(path, '/') + 1;
    const int generation = sink->taken >= 0 ? sink->taken : find_empty(sink->kept);
    int file = strncmp(name, optimizer, sizeof optimizer - 1) == 0;
    if (generation < 0) return ENOENT;
    if (strncmp(name, manifest, sizeof manifest - 1) == 0) file = WEFT_VAULT_MANIFEST;
    const int error = open_copy(sink->kept->fds[generation][file], fd);
    if (error == 0 && file == WEFT_VAULT_MANIFEST) sink->manifest_fd = *fd;
    return error;
}

/* All memory was taken when the files were made. */
static int reserve_kept(void *context, int fd, int64_t bytes)
{
    struct stat about;
    (void)context;
    return fstat(fd, &about) != 0 ? errno : about.st_size == bytes ? 0 : EINVAL;
}

static int write_bytes(int fd, const void *bytes, size_t length, int64_t offset, size_t *written)
{
    const ssize_t n = pwrite(fd, bytes, length, (off_t)offset);
    if (n < 0) return errno;
    *written = (size_t)n;
    return 0;
}

static int write_manifest(struct weft_vault_sink *sink, int fd, const void *bytes, size_t length,
                          int64_t offset, size_t *written)
{
    if (offset + (int64_t)length > sink->kept->manifest_bytes) return ENOSPC;
    if (sink->failpoint != NULL && length > 1 && offset == 0) {
        const int error = write_bytes(fd, bytes, length / 2, 0, written);
        return error != 0 ? error : fail_at(sink, "keep_manifest");
    }
    return write_bytes(fd, bytes, length, offset, written);
}

static int write_kept(void *context, int fd, const void *bytes, size_t length, int64_t offset,
                      size_t *written)
{
    struct weft_vault_sink *sink = context;
    if (fd == sink->manifest_fd) return write_manifest(sink, fd, bytes, length, offset, written);
    const int error = sink->has_written ? 0 : fail_at(sink, "keep_write");
    sink->has_written = true;
    return error != 0 ? error : write_bytes(fd, bytes, length, offset, written);
}

/* Memory needs no sync. */
static int sync_kept(void *context, int fd)
{
    (void)context;
    (void)fd;
    return 0;
}

static int sync_names(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 0;
}

static int close_kept(void *context, int fd)
{
    struct weft_vault_sink *sink = context;
    if (fd == sink->manifest_fd) sink->manifest_fd = -1;
    return close(fd) == 0 || errno == EINTR ? 0 : errno;
}

/* The manifest's name comes first, then that of the whole checkpoint, which commits. */
static int commit_generation(void *context, const char *from, const char *to)
{
    struct weft_vault_sink *sink = context;
    int64_t step;
    (void)from;
    if (!weft_checkpoint_step_of(to, &step)) return 0;
    const int error = fail_at(sink, "keep_commit");
    if (error == 0) sink->taken = -1;
    return error;
}

static int remove_nothing(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 0;
}

/* A failed save leaves its generation empty. */
static int drop_generation(void *context, const char *path)
{
    struct weft_vault_sink *sink = context;
    const int taken = sink->taken;
    (void)path;
    sink->taken = -1;
    return taken < 0 ? 0 : empty_generation(sink->kept, taken);
}

/* The plan counted the bytes. */
static int free_kept(void *context, const char *path, int64_t *bytes, int64_t *block_bytes)
{
    (void)context;
    (void)path;
    (void)bytes;
    (void)block_bytes;
    return ENOSYS;
}

void weft_vault_sink_init(struct weft_vault_sink *sink, const struct weft_vault *kept,
                          const struct weft_failpoint *failpoint, int32_t rank)
{
    *sink = (struct weft_vault_sink){
        .sink =
            {
                .context = sink,
                .is_memory = true,
                .make_directory = take_generation,
                .create = open_kept,
                .open = open_kept,
                .reserve = reserve_kept,
                .write = write_kept,
                .sync = sync_kept,
                .close = close_kept,
                .rename = commit_generation,
                .sync_directory = sync_names,
                .remove = remove_nothing,
                .remove_directory = drop_generation,
                .free_bytes = free_kept,
            },
        .kept = kept,
        .failpoint = failpoint,
        .rank = rank,
        .taken = -1,
        .manifest_fd = -1,
    };
}

void weft_vault_sink_begin(struct weft_vault_sink *sink, int64_t step)
{
    sink->step = step;
    sink->has_written = false;
}
