/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of files that several hosts write. A host may write whole pages back, with old bytes around
 * the new ones. So rank 0 alone writes pages that a rank fills only in part: the others keep these
 * parts and send them to it after their own writes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint/save_parts.h"

/* A part of a page; `length` bytes follow. */
struct part {
    int64_t offset;
    int32_t file, length;
};

enum { ROUND_BYTES = WEFT_COMM_EXCHANGE_BYTES, MOST_PART_BYTES = WEFT_SAVE_PAGE_BYTES / 2 };

/* A message of one exchange: whole parts. */
struct round {
    int32_t bytes, left; /* in this message, and whether more come */
    unsigned char parts[ROUND_BYTES - 8];
};

static bool sends_parts(const struct weft_saver *saver)
{
    return saver->options.page_bytes > 0 && saver->rank != 0;
}

static int keep_part(struct save_pages *pages, int32_t file, int64_t offset,
                     const unsigned char *bytes, int64_t length)
{
    const struct part part = {.offset = offset, .file = file, .length = (int32_t)length};
    if (pages->n + sizeof part + (size_t)length > pages->room) {
        const size_t room = 2 * pages->room + 16 * WEFT_SAVE_PAGE_BYTES;
        unsigned char *larger = realloc(pages->parts, room);
        if (larger == NULL) return ENOMEM;
        pages->parts = larger;
        pages->room = room;
    }
    memcpy(pages->parts + pages->n, &part, sizeof part);
    memcpy(pages->parts + pages->n + sizeof part, bytes, (size_t)length);
    pages->n += sizeof part + (size_t)length;
    return 0;
}

int weft_save_end_page(struct weft_saver *saver)
{
    struct save_pages *pages = &saver->pages;
    const int64_t page_bytes = saver->options.page_bytes;
    const int64_t length = pages->to - pages->from;
    if (length == 0) return 0; /* with one host too */
    const int64_t end = saver->options.layout->files[pages->file].bytes;
    const bool is_whole =
        pages->from % page_bytes == 0 && (length == page_bytes || pages->to == end);
    int error = 0;
    if (is_whole) {
        error = weft_sink_write(saver->options.sink, saver->fds[pages->file], pages->open,
                                (size_t)length, pages->from);
    } else {
        for (int64_t at = 0; at < length && error == 0; at += MOST_PART_BYTES) {
            const int64_t left = length - at;
            error = keep_part(pages, pages->file, pages->from + at, pages->open + at,
                              left < MOST_PART_BYTES ? left : MOST_PART_BYTES);
        }
    }
    pages->from = pages->to;
    return error;
}

int weft_save_put(struct weft_saver *saver, int f, const void *bytes, int64_t length,
                  int64_t offset)
{
    const struct weft_sink *sink = saver->options.sink;
    struct save_pages *pages = &saver->pages;
    const int64_t page_bytes = saver->options.page_bytes;
    const unsigned char *at = bytes;
    if (!sends_parts(saver))
        return weft_sink_write(sink, saver->fds[f], bytes, (size_t)length, offset);
    while (length > 0) {
        const bool goes_on = pages->from < pages->to && pages->file == f && pages->to == offset;
        const int64_t inside = offset % page_bytes;
        int64_t n = length < page_bytes - inside ? length : page_bytes - inside;
        int error = 0;
        if (!goes_on) error = weft_save_end_page(saver);
        if (error == 0 && !goes_on && inside == 0 && length >= page_bytes) {
            n = length - length % page_bytes;
            error = weft_sink_write(sink, saver->fds[f], at, (size_t)n, offset);
        } else if (error == 0) {
            if (!goes_on) pages->from = pages->to = offset;
            pages->file = f;
            memcpy(pages->open + (pages->to - pages->from), at, (size_t)n);
            pages->to += n;
            if (pages->to % page_bytes == 0) error = weft_save_end_page(saver);
        }
        if (error != 0) return error;
        at += n;
        offset += n;
        length -= n;
    }
    return 0;
}

/* Takes the next parts that fit. */
static void fill_round(const struct save_pages *pages, size_t *sent, struct round *out)
{
    out->bytes = 0;
    while (*sent < pages->n) {
        struct part part;
        memcpy(&part, pages->parts + *sent, sizeof part);
        const size_t bytes = sizeof part + (size_t)part.length;
        if ((size_t)out->bytes + bytes > sizeof out->parts) break;
        memcpy(out->parts + out->bytes, pages->parts + *sent, bytes);
        out->bytes += (int32_t)bytes;
        *sent += bytes;
    }
    out->left = *sent < pages->n;
}

static enum weft_status write_round(struct weft_saver *saver, const struct round *round,
                                    struct weft_error *err)
{
    for (int32_t at = 0; at < round->bytes;) {
        struct part part;
        memcpy(&part, round->parts + at, sizeof part);
        at += (int32_t)sizeof part;
        const int error = weft_sink_write(saver->options.sink, saver->fds[part.file],
                                          round->parts + at, (size_t)part.length, part.offset);
        if (error != 0)
            return weft_save_fail(saver, "write", saver->options.layout->files[part.file].name,
                                  error, err);
        at += part.length;
    }
    return WEFT_OK;
}

/* Collective. The rounds go on after a failure of rank 0, which saver->status keeps. */
enum weft_status weft_save_share_pages(struct weft_saver *saver, struct weft_error *err)
{
    struct round *all = saver->all;
    struct round mine;
    size_t sent = 0;
    bool left = true;
    _Static_assert(sizeof mine == ROUND_BYTES, "a round is one exchange");
    if (saver->options.page_bytes == 0) return WEFT_OK;
    if (saver->rank == 0) saver->status = weft_save_open_files(saver, &saver->own);
    while (left) {
        fill_round(&saver->pages, &sent, &mine);
        WEFT_TRY(weft_comm_exchange(saver->options.comm, &mine, sizeof mine, all, err));
        left = false;
        for (int32_t r = 0; r < saver->ranks; r++) {
            left = left || all[r].left != 0;
            if (saver->rank == 0 && saver->status == WEFT_OK)
                saver->status = write_round(saver, &all[r], &saver->own);
        }
    }
    saver->pages.n = 0;
    if (saver->rank == 0 && saver->status == WEFT_OK)
        saver->status = weft_save_finish_files(saver, &saver->own);
    return WEFT_OK;
}
