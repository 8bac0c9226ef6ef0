/* SPDX-License-Identifier: Apache-2.0 */
#include "library/run_mark.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "runtime/checkpoint/checkpoint.h"

static const char mark_name[] = "weft-run";
static const char mark_text[] =
    "weft run 1\n"
    "`weft train` keeps a run in this directory, and writes over its files. Without this file\n"
    "it refuses to.\n";
enum { SIGNATURE_BYTES = sizeof "weft run " - 1, MOST_MARK_BYTES = 4096 };

/* All names that a run writes there, except its mark and its lock, which stays empty. */
static const char *const run_names[] = {
    "config.json", "plan.json",   "profile.json", "metrics.jsonl",
    "result.json", "checkpoints", "hub"};

static enum weft_status join_path(const char *directory, const char *name, struct weft_text *out,
                                  struct weft_error *err)
{
    weft_text_init(out);
    weft_text_addf(out, "%s/%s", directory, name);
    return weft_text_ok(out) ? WEFT_OK : weft_fail_memory(err, "a path");
}

/* Also true for a dangling link, since writing would follow it. WEFT_E_CREATE if the system does
 * not tell. */
static enum weft_status is_there(const char *directory, const char *name, bool *there,
                                 struct weft_error *err)
{
    struct weft_text path;
    struct stat about;
    enum weft_status status = join_path(directory, name, &path, err);
    if (status == WEFT_OK) {
        *there = lstat(weft_text_chars(&path), &about) == 0;
        if (!*there && errno != ENOENT && errno != ENOTDIR)
            status = weft_fail(err, WEFT_E_CREATE, "%s: cannot be looked at: %s",
                               weft_text_chars(&path), strerror(errno));
    }
    weft_text_finish(&path);
    return status;
}

/* Other files are never read: a FIFO would wait for a writer. */
static bool is_regular(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Whether the file begins like a mark; a user's file may have the same name. */
static enum weft_status has_mark(const char *directory, bool *marked, struct weft_error *err)
{
    struct weft_text path;
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(is_there(directory, mark_name, marked, err));
    if (!*marked) return WEFT_OK;
    enum weft_status status = join_path(directory, mark_name, &path, err);
    if (status == WEFT_OK)
        *marked = is_regular(weft_text_chars(&path)) &&
                  weft_file_read(weft_text_chars(&path), MOST_MARK_BYTES, &bytes, &length, NULL) ==
                      WEFT_OK &&
                  length >= SIGNATURE_BYTES && memcmp(bytes, mark_text, SIGNATURE_BYTES) == 0;
    if (status == WEFT_OK && !*marked)
        status = weft_fail(err, WEFT_E_CREATE,
                           "%s: is no mark of a run, and a run would write over it: give another "
                           "directory with --run, or move it away",
                           weft_text_chars(&path));
    free(bytes);
    weft_text_finish(&path);
    return status;
}

/* A version without marks left this, or a copy of its checkpoints. Opening it shows whether it is
 * complete. */
static enum weft_status has_checkpoint(const char *directory, bool *found, struct weft_error *err)
{
    struct weft_text checkpoints;
    char *latest = NULL;
    *found = false;
    enum weft_status status = join_path(directory, "checkpoints", &checkpoints, err);
    if (status == WEFT_OK)
        status = weft_checkpoint_latest(weft_text_chars(&checkpoints), &latest, err);
    if (latest != NULL) status = is_there(latest, WEFT_MANIFEST_NAME, found, err);
    free(latest);
    weft_text_finish(&checkpoints);
    return status;
}

enum weft_status weft_run_mark_look(const char *directory, bool *marked, struct weft_error *err)
{
    bool there = false;
    WEFT_TRY(has_mark(directory, marked, err));
    if (!*marked) WEFT_TRY(has_checkpoint(directory, marked, err));
    for (size_t i = 0; !*marked && i < sizeof run_names / sizeof *run_names; i++) {
        WEFT_TRY(is_there(directory, run_names[i], &there, err));
        /* A run that begins at this moment may have written both since. */
        if (there) WEFT_TRY(has_mark(directory, marked, err));
        if (there && !*marked)
            return weft_fail(err, WEFT_E_CREATE,
                             "%s/%s: is not of a run (the directory has no file %s), and a run "
                             "would write over it: give another directory with --run, or move it "
                             "away",
                             directory, run_names[i], mark_name);
    }
    return WEFT_OK;
}

enum weft_status weft_run_mark_write(const char *directory, struct weft_error *err)
{
    struct weft_text path;
    bool marked = false;
    WEFT_TRY(has_mark(directory, &marked, err));
    if (marked) return WEFT_OK;
    enum weft_status status = join_path(directory, mark_name, &path, err);
    if (status == WEFT_OK)
        status = weft_file_write(weft_text_chars(&path), mark_text, sizeof mark_text - 1, err);
    weft_text_finish(&path);
    return status;
}
