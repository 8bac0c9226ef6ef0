#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

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

/* Bytes of a checkpoint's files, even if they have another layout. A missing file counts 0. */
static int64_t bytes_of_step(const struct weft_saver *saver, int64_t step)
{
    int64_t bytes = 0;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        struct weft_text path;
        struct stat about;
        weft_text_init(&path);
        weft_checkpoint_path(saver->options.directory, step, &path);
        weft_text_addf(&path, "/%s", saver->options.layout->files[f].name);
        if (weft_text_ok(&path) && stat(weft_text_chars(&path), &about) == 0)
            bytes += about.st_size;
        weft_text_finish(&path);
    }
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

/* Removes nothing if that would not suffice. Reads the newest checkpoint back before an older one
 * goes. Counts bytes of files, because a file system may free space later than it removes names. */
int64_t weft_save_make_room(struct weft_saver *saver, int64_t bytes)
{
    const struct weft_saver_options *o = &saver->options;
    int64_t *steps = NULL, freed = 0;
    int32_t n = 0;
    if (weft_checkpoint_scan(o->directory, &steps, &n, NULL) != WEFT_OK) return 0;
    int64_t most = 0;
    for (int32_t i = 0; i + 1 < n; i++)
        most += bytes_of_step(saver, steps[i]);
    bool may_go = most >= bytes && n > 1 && weft_save_read_back(saver, steps[n - 1]);
    if (may_go && saver->precious != steps[n - 1]) saver->precious = -1;
    for (int32_t i = 0; may_go && i + 1 < n && freed < bytes; i++) {
        int64_t step_bytes = bytes_of_step(saver, steps[i]);
        warn_once(saver, steps[i]);
        if (weft_checkpoint_retire(o->sink, o->directory, steps[i])) freed += step_bytes;
    }
    free(steps);
    return freed;
}

enum weft_status weft_save_check_room(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_saver_options *o = &saver->options;
    int64_t free_bytes = 0, needed = weft_save_bytes(o->layout);
    int error = o->sink->free_bytes(o->sink->context, o->directory, &free_bytes);
    if (error != 0 || free_bytes >= needed) return WEFT_OK; /* if unknown, the write fails later */
    if (weft_save_make_room(saver, needed - free_bytes) >= needed - free_bytes) return WEFT_OK;
    return weft_fail(err, WEFT_E_IO,
                     "%s: a checkpoint takes %" PRId64 " bytes, and the disk has %" PRId64
                     " left: make room",
                     o->directory, needed, free_bytes);
}
