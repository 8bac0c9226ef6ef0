/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint/directory.h"
#include "runtime/checkpoint/function.h"
#include "runtime/checkpoint/save_parts.h"

static enum weft_status write_manifest(struct weft_saver *saver, const struct weft_text *text,
                                       struct weft_error *err)
{
    static const char temporary[] = WEFT_MANIFEST_NAME ".tmp";
    const struct weft_sink *sink = saver->options.sink;
    struct weft_text from, to;
    enum weft_status status = WEFT_OK;
    int fd = -1, error;
    weft_save_name_file(saver, temporary, &from);
    weft_save_name_file(saver, WEFT_MANIFEST_NAME, &to);
    error = weft_text_ok(&from) && weft_text_ok(&to)
                ? weft_save_create_file(saver, weft_text_chars(&from), &fd)
                : ENOMEM;
    if (error == 0) error = weft_sink_write(sink, fd, text->data, text->length, 0);
    if (error != 0) status = weft_save_fail(saver, "write", temporary, error, err);
    if (status == WEFT_OK) status = weft_save_sync_file(saver, fd, temporary, err);
    if (fd >= 0) error = sink->close(sink->context, fd);
    if (status == WEFT_OK && error == 0)
        error = weft_sink_rename(sink, weft_text_chars(&from), weft_text_chars(&to));
    if (status == WEFT_OK && error != 0)
        status = weft_save_fail(saver, "rename", temporary, error, err);
    weft_text_finish(&to);
    weft_text_finish(&from);
    return status;
}

static enum weft_status sync_directory(struct weft_saver *saver, const char *path,
                                       struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    int error;
    do {
        error = sink->sync_directory(sink->context, path);
    } while (error == EINTR);
    if (error == 0) return WEFT_OK;
    saver->sync_failed = true;
    return weft_fail(err, WEFT_E_IO, "cannot sync the directory %s: %s", path, strerror(error));
}

static enum weft_status publish_step(struct weft_saver *saver, int64_t step, struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    const char *temporary = weft_text_chars(&saver->path);
    struct weft_text path;
    weft_text_init(&path);
    weft_checkpoint_path(saver->options.directory, step, &path);
    int error =
        weft_text_ok(&path) ? weft_sink_rename(sink, temporary, weft_text_chars(&path)) : ENOMEM;
    enum weft_status status = WEFT_OK;
    if (error != 0) {
        status = weft_fail(err, WEFT_E_IO, "cannot rename %s to step-%" PRId64 ": %s", temporary,
                           step, strerror(error));
    } else {
        status = sync_directory(saver, saver->options.directory, err);
        /* Either name may last on the disk, so the temporary one comes back: it is no
         * checkpoint's. */
        if (status != WEFT_OK) (void)weft_sink_rename(sink, weft_text_chars(&path), temporary);
    }
    weft_text_finish(&path);
    return status;
}

/* The manifest that this one follows in a chain of hashes: the latest one before it. */
static void find_previous(const struct weft_saver *saver, struct weft_manifest_link *out)
{
    int64_t *steps = NULL;
    int32_t n = 0;
    if (saver->options.sink->is_memory) return;
    if (weft_checkpoint_scan(saver->options.directory, &steps, &n, NULL) != WEFT_OK) return;
    while (n > 0 && steps[n - 1] >= saver->progress.step)
        n--;
    if (n > 0) weft_checkpoint_link(saver->options.directory, steps[n - 1], out);
    free(steps);
}

void weft_save_add_manifest(const struct weft_saver *saver, struct weft_text *out)
{
    const struct weft_layout *layout = saver->options.layout;
    struct weft_text function;
    weft_text_init(&function);
    weft_function_write(layout->model, &function);
    struct weft_manifest manifest = {
        .progress = saver->progress,
        .function = weft_text_chars(&function),
        .model = weft_hash_bytes(weft_text_chars(&function), function.length),
        .split = saver->options.split,
        .settings = saver->options.settings,
        .device = saver->options.device,
        .kernels = saver->options.kernels,
        .products = saver->options.products,
        .bits = saver->options.bits,
        .n_files = WEFT_CHECKPOINT_FILES,
    };
    if (saver->options.origin != NULL) manifest.origin = *saver->options.origin;
    find_previous(saver, &manifest.previous);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const struct weft_layout_file *file = &layout->files[f];
        manifest.files[f] = (struct weft_manifest_file){
            file->name, file->bytes, layout->chunk_bytes, file->n_chunks, saver->crcs[f]};
    }
    if (weft_text_ok(&function))
        weft_manifest_write(&manifest, out);
    else
        out->failed = true;
    weft_text_finish(&function);
}

enum weft_status weft_save_commit(struct weft_saver *saver, struct weft_error *err)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_save_add_manifest(saver, &text);
    const char *path = weft_text_chars(&saver->path);
    enum weft_status status =
        weft_text_ok(&text) ? WEFT_OK : weft_fail_memory(err, "a checkpoint's manifest");
    if (status == WEFT_OK) status = sync_directory(saver, path, err);
    if (status == WEFT_OK) status = write_manifest(saver, &text, err);
    if (status == WEFT_OK) status = sync_directory(saver, path, err);
    if (status == WEFT_OK) status = publish_step(saver, saver->progress.step, err);
    weft_text_finish(&text);
    return status;
}

/* The checkpoint of a resume may go only after a newer one was read back with all CRCs. */
void weft_save_retain(struct weft_saver *saver, int64_t step)
{
    const struct weft_saver_options *o = &saver->options;
    if (o->sink->is_memory) return; /* a later save empties the older one */
    if (saver->precious >= 0 && weft_save_read_back(saver, step)) saver->precious = -1;
    const struct weft_retention retention = {o->keep, saver->precious, o->keep_multiple};
    weft_checkpoint_retain(o->sink, o->directory, &retention);
}
