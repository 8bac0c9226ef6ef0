/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/log.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/save_parts.h"

int64_t weft_save_bytes(const struct weft_layout *layout)
{
    int64_t bytes = 0;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        bytes += layout->files[f].bytes;
    return bytes;
}

bool weft_save_read_back(const struct weft_saver *saver, int64_t step)
{
    struct weft_text path;
    struct weft_checkpoint *written = NULL;
    weft_text_init(&path);
    weft_checkpoint_path(saver->options.directory, step, &path);
    enum weft_status status = weft_text_ok(&path)
                                  ? weft_checkpoint_open(weft_text_chars(&path), &written, NULL)
                                  : WEFT_E_SYSTEM;
    if (status == WEFT_OK) status = weft_checkpoint_verify(written, 0, 1, NULL);
    weft_checkpoint_close(written);
    weft_text_finish(&path);
    return status == WEFT_OK;
}

/* Bytes of whole blocks. */
static int64_t on_disk(int64_t bytes, int64_t block_bytes)
{
    int64_t rounded = bytes;
    (void)weft_checked_round_up(bytes, block_bytes, &rounded); /* otherwise near INT64_MAX */
    return rounded;
}

/* Bytes on the disk that removal of a checkpoint's file frees: 0 for a missing file, a link, or a
 * file with other names. */
static int64_t bytes_freed_by(const char *checkpoint, const char *name, int64_t block_bytes)
{
    struct weft_text path;
    struct stat about;
    weft_text_init(&path);
    weft_text_addf(&path, "%s/%s", checkpoint, name);
    bool frees = weft_text_ok(&path) && lstat(weft_text_chars(&path), &about) == 0 &&
                 S_ISREG(about.st_mode) && about.st_nlink == 1;
    weft_text_finish(&path);
    return frees ? on_disk(about.st_size, block_bytes) : 0;
}

/* The same of a checkpoint; it may have another layout. */
static int64_t bytes_of_step(const struct weft_saver *saver, int64_t step, int64_t block_bytes)
{
    int64_t bytes = 0;
    struct weft_text path;
    struct stat about;
    weft_text_init(&path);
    weft_checkpoint_path(saver->options.directory, step, &path);
    const char *at = weft_text_chars(&path);
    if (weft_text_ok(&path) && lstat(at, &about) == 0 && S_ISDIR(about.st_mode)) {
        for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
            bytes += bytes_freed_by(at, saver->options.layout->files[f].name, block_bytes);
        bytes += bytes_freed_by(at, WEFT_MANIFEST_NAME, block_bytes);
    }
    weft_text_finish(&path);
    return bytes;
}

/* Bytes on the disk that the checkpoint under way takes; -1 without memory for its manifest. The
 * CRCs are not known yet. */
static int64_t bytes_needed(const struct weft_saver *saver, int64_t block_bytes)
{
    enum { MORE_DIGITS = 9, SPARE_BLOCKS = 4 }; /* of a CRC than of 0; the directory and its like */
    int64_t bytes = SPARE_BLOCKS * block_bytes, digits = MORE_DIGITS;
    struct weft_text manifest;
    weft_text_init(&manifest);
    weft_save_add_manifest(saver, &manifest);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *file = &saver->options.layout->files[f];
        bytes += on_disk(file->bytes, block_bytes);
        digits += MORE_DIGITS * file->n_chunks;
    }
    bytes = weft_text_ok(&manifest)
                ? bytes + on_disk((int64_t)manifest.length + digits, block_bytes)
                : -1;
    weft_text_finish(&manifest);
    return bytes;
}

static void warn_once(struct weft_saver *saver, int64_t step)
{
    if (saver->made_room) return;
    saver->made_room = true;
    weft_log(WEFT_LOG_WARNING,
             "%s: has no room for one checkpoint (%" PRId64 " bytes) next to those that stay "
             "(train.checkpoint.keep %" PRId64 "). The oldest one, now step-%" PRId64
             ", goes before a new one is written, and the newest one stays",
             saver->options.directory, weft_save_bytes(saver->options.layout), saver->options.keep,
             step);
}

/* Reads the newest checkpoint back before an older one goes. Counts bytes of files, because a file
 * system may free space later than it removes names. */
int64_t weft_save_make_room(struct weft_saver *saver, int64_t bytes, int64_t block_bytes)
{
    const struct weft_saver_options *o = &saver->options;
    int64_t *steps = NULL, freed = 0;
    int32_t n = 0;
    if (o->sink->is_memory) return 0;
    if (weft_checkpoint_scan(o->directory, &steps, &n, NULL) != WEFT_OK) return 0;
    int64_t most = 0;
    const struct weft_retention for_good = {0, -1, o->keep_multiple};
    for (int32_t i = 0; i + 1 < n; i++)
        if (!weft_checkpoint_stays(&for_good, steps[i]))
            most += bytes_of_step(saver, steps[i], block_bytes);
    bool may_go = most >= bytes && n > 1 && weft_save_read_back(saver, steps[n - 1]);
    if (may_go && saver->precious != steps[n - 1]) saver->precious = -1;
    for (int32_t i = 0; may_go && i + 1 < n && freed < bytes; i++) {
        int64_t step_bytes = bytes_of_step(saver, steps[i], block_bytes);
        if (step_bytes == 0 || weft_checkpoint_stays(&for_good, steps[i])) continue;
        warn_once(saver, steps[i]);
        if (weft_checkpoint_retire(o->sink, o->directory, steps[i])) freed += step_bytes;
    }
    free(steps);
    return freed;
}

enum weft_status weft_save_check_room(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_saver_options *o = &saver->options;
    int64_t free_bytes = 0, block_bytes = 1;
    int error = o->sink->free_bytes(o->sink->context, o->directory, &free_bytes, &block_bytes);
    if (error != 0 || block_bytes <= 0) return WEFT_OK; /* unknown: the write fails later */
    const int64_t needed = bytes_needed(saver, block_bytes);
    if (needed < 0) return weft_fail_memory(err, "a checkpoint's manifest");
    if (free_bytes >= needed) return WEFT_OK;
    const int64_t missing = needed - free_bytes;
    if (weft_save_make_room(saver, missing, block_bytes) >= missing) return WEFT_OK;
    return weft_fail(err, WEFT_E_IO,
                     "%s: a checkpoint takes %" PRId64 " bytes, and the disk has %" PRId64
                     " left: make room",
                     o->directory, needed, free_bytes);
}
