/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "runtime/checkpoint/finite.h"
#include "runtime/checkpoint/save_parts.h"

#define NS_PER_S INT64_C(1000000000)

enum weft_status weft_save_fail(struct weft_saver *saver, const char *what, const char *name,
                                int error, struct weft_error *err)
{
    saver->no_space = saver->no_space || error == ENOSPC || error == EDQUOT;
    return weft_fail(err, WEFT_E_IO, "cannot %s %s%s%s: %s", what, weft_text_chars(&saver->path),
                     name == NULL ? "" : "/", name == NULL ? "" : name, strerror(error));
}

void weft_save_name_file(const struct weft_saver *saver, const char *name, struct weft_text *out)
{
    weft_text_init(out);
    weft_text_addf(out, "%s/%s", weft_text_chars(&saver->path), name);
}

void weft_save_close_files(struct weft_saver *saver)
{
    const struct weft_sink *sink = saver->options.sink;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        if (saver->fds[f] >= 0) sink->close(sink->context, saver->fds[f]);
        saver->fds[f] = -1;
    }
}

static const char *name_of(const struct weft_saver *saver, int f)
{
    return saver->options.layout->files[f].name;
}

int weft_save_create_file(const struct weft_saver *saver, const char *path, int *fd)
{
    enum { MOST_TRIES = 5 };
    const struct weft_sink *sink = saver->options.sink;
    int error = sink->create(sink->context, path, fd);
    for (int i = 1; error == EEXIST && saver->options.page_bytes > 0 && i < MOST_TRIES; i++) {
        (void)sink->remove(sink->context, path);
        error = sink->create(sink->context, path, fd);
    }
    return error;
}

/* Opens rank 0's file, whose name another host may see only when its cache expires. After a loss
 * rank 0 has removed it. */
static int open_late(const struct weft_saver *saver, const char *path, int *fd)
{
    const struct weft_sink *sink = saver->options.sink;
    int64_t waited_ns = 0;
    for (int64_t pause_ns = 1000000;; pause_ns = pause_ns < NS_PER_S ? 2 * pause_ns : NS_PER_S) {
        const int error = sink->open(sink->context, path, fd);
        const bool may_appear =
            (error == ENOENT || error == ESTALE) && weft_comm_lost(saver->options.comm) < 0;
        if (!may_appear || saver->options.page_bytes == 0 || waited_ns > WEFT_SINK_PATIENCE_NS)
            return error;
        weft_sink_pause(sink, pause_ns);
        waited_ns += pause_ns;
    }
}

static enum weft_status open_file(struct weft_saver *saver, int f, bool create,
                                  struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    const struct weft_layout_file *file = &saver->options.layout->files[f];
    struct weft_text path;
    weft_save_name_file(saver, file->name, &path);
    int error = !weft_text_ok(&path) ? ENOMEM
                : create ? weft_save_create_file(saver, weft_text_chars(&path), &saver->fds[f])
                         : open_late(saver, weft_text_chars(&path), &saver->fds[f]);
    weft_text_finish(&path);
    if (error != 0)
        return weft_save_fail(saver, create ? "create" : "open", file->name, error, err);
    if (create) error = sink->reserve(sink->context, saver->fds[f], file->bytes);
    return error == 0 ? WEFT_OK : weft_save_fail(saver, "make room for", file->name, error, err);
}

enum weft_status weft_save_open_files(struct weft_saver *saver, struct weft_error *err)
{
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++)
        if (saver->fds[f] < 0) WEFT_TRY(open_file(saver, f, false, err));
    return WEFT_OK;
}

/* The disk writes earlier bytes while the CPU computes CRCs of the next ones. */
static void begin_sync(struct weft_saver *saver, int fd, int64_t bytes)
{
    const struct weft_sink *sink = saver->options.sink;
    saver->waiting_bytes += bytes;
    if (sink->begin_sync == NULL || saver->waiting_bytes < saver->options.layout->chunk_bytes)
        return;
    saver->waiting_bytes = 0;
    sink->begin_sync(sink->context, fd);
}

/* Writes bytes of one file, and adds their share to the CRC of every chunk that they touch. */
static enum weft_status write_run(struct weft_saver *saver, int f, const void *bytes,
                                  int64_t length, int64_t offset, struct weft_error *err)
{
    const struct weft_layout_file *file = &saver->options.layout->files[f];
    int64_t chunk_bytes = saver->options.layout->chunk_bytes;
    const char *at = bytes;
    while (length > 0) {
        int64_t chunk = offset / chunk_bytes;
        int64_t inside = offset - chunk * chunk_bytes;
        int64_t room = weft_checkpoint_chunk_length(file->bytes, chunk_bytes, chunk) - inside;
        int64_t n = length < room ? length : room;
        saver->crcs[f][chunk] ^= weft_crc32c_share(at, (size_t)n, room - n);
        const int error = weft_save_put(saver, f, at, n, offset);
        if (error != 0) return weft_save_fail(saver, "write", file->name, error, err);
        saver->bytes += n;
        begin_sync(saver, saver->fds[f], n);
        at += n;
        offset += n;
        length -= n;
    }
    return WEFT_OK;
}

static enum weft_status write_header(struct weft_saver *saver, int f, struct weft_error *err)
{
    struct weft_text header;
    weft_text_init(&header);
    weft_layout_header(saver->options.layout, f, &header);
    enum weft_status status = weft_text_ok(&header)
                                  ? write_run(saver, f, header.data, (int64_t)header.length, 0, err)
                                  : weft_fail_memory(err, "a checkpoint's header");
    weft_text_finish(&header);
    return status;
}

enum weft_status weft_save_prepare(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    WEFT_TRY(weft_save_check_room(saver, err));
    const char *path = weft_text_chars(&saver->path);
    int error = sink->make_directory(sink->context, path);
    /* No other run has this name, so it is there because a reply was lost. */
    if (error == EEXIST && saver->options.page_bytes > 0) error = 0;
    if (error != 0) return weft_save_fail(saver, "create", NULL, error, err);
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        WEFT_TRY(open_file(saver, f, true, err));
        WEFT_TRY(write_header(saver, f, err));
        /* A reservation may have filled pages of this host that others write. */
        if (saver->options.page_bytes > 0)
            WEFT_TRY(weft_save_sync_file(saver, saver->fds[f], name_of(saver, f), err));
    }
    return WEFT_OK;
}

/* Writes a piece through the saver's buffer. */
static enum weft_status write_piece(struct weft_saver *saver, const struct weft_save_piece *piece,
                                    int f, int64_t offset, struct weft_error *err)
{
    const struct weft_save_source *source = &saver->source;
    for (int64_t from = 0; from < piece->count; from += SAVE_BUFFER_ELEMENTS) {
        int64_t left = piece->count - from;
        int64_t n = left < SAVE_BUFFER_ELEMENTS ? left : SAVE_BUFFER_ELEMENTS;
        WEFT_TRY(source->read(source->context, from, n, saver->buffer, err));
        WEFT_TRY(
            weft_finite_check(saver->options.layout->model, piece, from, n, saver->buffer, err));
        WEFT_TRY(write_run(saver, f, saver->buffer, n * (int64_t)sizeof(float),
                           offset + from * (int64_t)sizeof(float), err));
    }
    return WEFT_OK;
}

static enum weft_status write_pieces(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_save_source *source = &saver->source;
    struct weft_save_piece piece;
    source->rewind(source->context);
    while (source->next(source->context, &piece)) {
        int32_t f = 0;
        const struct weft_layout_entry *entry =
            weft_layout_find(saver->options.layout, piece.tensor, piece.state, &f);
        int64_t begin = piece.first * (int64_t)sizeof(float);
        int64_t bytes = piece.count * (int64_t)sizeof(float);
        if (entry == NULL || begin < 0 || bytes < 0 || begin + bytes > entry->bytes)
            return weft_fail(err, WEFT_E_INTERNAL, "a piece that is not in the layout");
        WEFT_TRY(write_piece(saver, &piece, f, entry->begin + begin, err));
    }
    return WEFT_OK;
}

enum weft_status weft_save_sync_file(struct weft_saver *saver, int fd, const char *name,
                                     struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    int error;
    do {
        error = sink->sync(sink->context, fd);
    } while (error == EINTR);
    if (error == 0) return WEFT_OK;
    saver->sync_failed = true;
    return weft_save_fail(saver, "sync", name, error, err);
}

enum weft_status weft_save_write_own(struct weft_saver *saver, struct weft_error *err)
{
    WEFT_TRY(weft_save_open_files(saver, err));
    saver->pages.n = 0;
    saver->pages.from = saver->pages.to = 0;
    WEFT_TRY(write_pieces(saver, err));
    const int error = weft_save_end_page(saver);
    if (error != 0)
        return weft_save_fail(saver, "write", name_of(saver, saver->pages.file), error, err);
    return weft_save_finish_files(saver, err);
}

enum weft_status weft_save_finish_files(struct weft_saver *saver, struct weft_error *err)
{
    const struct weft_sink *sink = saver->options.sink;
    for (int f = 0; f < WEFT_CHECKPOINT_FILES; f++) {
        const char *name = name_of(saver, f);
        WEFT_TRY(weft_save_sync_file(saver, saver->fds[f], name, err));
        int error = sink->close(sink->context, saver->fds[f]);
        saver->fds[f] = -1;
        if (error != 0) return weft_save_fail(saver, "close", name, error, err);
    }
    return WEFT_OK;
}
