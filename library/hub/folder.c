/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* nftw */
#include "library/hub/folder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/sink.h"

enum weft_status weft_folder_check(const char *to, struct weft_error *err)
{
    struct stat about;
    if (lstat(to, &about) != 0 && errno == ENOENT) return WEFT_OK;
    return weft_fail(err, WEFT_E_CREATE, "%s: is there already: give a new name", to);
}

/* Makes the folders above the path. */
static enum weft_status make_parents(const char *path, struct weft_error *err)
{
    struct weft_text parent;
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path) return WEFT_OK;
    weft_text_init(&parent);
    weft_text_append(&parent, path, (size_t)(slash - path));
    const enum weft_status status = weft_text_ok(&parent)
                                        ? weft_file_make_directory(weft_text_chars(&parent), err)
                                        : weft_fail_memory(err, "a path");
    weft_text_finish(&parent);
    return status;
}

enum weft_status weft_folder_begin(const char *to, struct weft_folder *out, struct weft_error *err)
{
    *out = (struct weft_folder){0};
    weft_text_init(&out->path);
    weft_text_init(&out->to);
    weft_text_append(&out->to, to, weft_checkpoint_path_length(to));
    weft_text_addf(&out->path, "%s.tmp-%ld", weft_text_chars(&out->to), (long)getpid());
    enum weft_status status = weft_text_ok(&out->to) && weft_text_ok(&out->path)
                                  ? WEFT_OK
                                  : weft_fail_memory(err, "a path");
    const char *path = weft_text_chars(&out->path);
    if (status == WEFT_OK) status = weft_folder_check(weft_text_chars(&out->to), err);
    if (status == WEFT_OK) status = make_parents(path, err);
    if (status == WEFT_OK && mkdir(path, 0777) != 0)
        status = weft_fail(err, WEFT_E_CREATE, "%s: cannot be created: %s", path, strerror(errno));
    if (status == WEFT_OK) return WEFT_OK;
    weft_text_finish(&out->path);
    weft_text_finish(&out->to);
    return status;
}

const char *weft_folder_path(const struct weft_folder *folder)
{
    return weft_text_chars(&folder->path);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    if (remove(path) != 0)
        weft_log(WEFT_LOG_WARNING, "%s: cannot be removed: %s", path, strerror(errno));
    return 0;
}

static int sync_entry(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)place;
    const struct weft_sink *sink = &weft_sink_system;
    const int error = kind == FTW_DP ? sink->sync_directory(sink->context, path) : 0;
    return error != 0 && error != EINTR ? error : 0;
}

/* Syncs all folders and gives the name. The files in them are synced. */
static enum weft_status settle_folder(const struct weft_folder *folder, struct weft_error *err)
{
    enum { MOST_OPEN = 16 };
    const char *path = weft_text_chars(&folder->path), *to = weft_text_chars(&folder->to);
    WEFT_TRY(weft_folder_check(to, err));
    const int error = nftw(path, sync_entry, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
    if (error != 0)
        return weft_fail(err, WEFT_E_IO, "%s: cannot be synced: %s", path,
                         strerror(error < 0 ? errno : error));
    if (rename(path, to) != 0)
        return weft_fail(err, WEFT_E_CREATE, "%s: cannot be renamed to %s: %s", path, to,
                         strerror(errno));
    return WEFT_OK;
}

enum weft_status weft_folder_end(struct weft_folder *folder, enum weft_status status,
                                 struct weft_error *err)
{
    enum { MOST_OPEN = 16 };
    if (status == WEFT_OK) status = settle_folder(folder, err);
    if (status != WEFT_OK)
        (void)nftw(weft_text_chars(&folder->path), remove_entry, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
    weft_text_finish(&folder->path);
    weft_text_finish(&folder->to);
    return status;
}
