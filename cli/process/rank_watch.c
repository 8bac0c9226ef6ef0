/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/rank_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/process/pipes.h"

enum weft_status weft_watched_ranks_open(struct weft_watch *watch, struct weft_watched_ranks *out,
                                         struct weft_error *err)
{
    *out = (struct weft_watched_ranks){.watch = watch, .ends = {-1, -1}};
    if (!watch) return WEFT_OK;
    bool ok = weft_pipes_open(&out->ends, 1);
    for (int end = 0; ok && end < 2; end++)
        ok = fcntl(out->ends[end], F_SETFL, O_NONBLOCK) == 0;
    if (ok) return WEFT_OK;
    int reason = errno;
    weft_watched_ranks_close(out);
    return weft_fail(err, WEFT_E_SYSTEM, "a pipe from the ranks cannot be made: %s",
                     strerror(reason));
}

void weft_watched_ranks_look(void *watched_ranks)
{
    struct weft_watched_ranks *ranks = watched_ranks;
    struct weft_rank_watch_record record;
    bool told = false;
    while (read(ranks->ends[0], &record, sizeof record) == (ssize_t)sizeof record) {
        ranks->record = record;
        told = true;
    }
    if (!told) {
        weft_watch_look(ranks->watch);
        return;
    }
    ranks->record.noun[WEFT_RANK_WATCH_NOUN_BYTES - 1] = '\0';
    ranks->record.what[WEFT_RANK_WATCH_WHAT_BYTES - 1] = '\0';
    const struct weft_watch other = {.what = ranks->record.what,
                                     .noun = ranks->record.noun[0] ? ranks->record.noun : NULL,
                                     .begun_ns = ranks->record.begun_ns,
                                     .counted_ns = ranks->record.counted_ns,
                                     .from = ranks->record.from,
                                     .done = ranks->record.done,
                                     .of = ranks->record.of};
    weft_watch_follow(ranks->watch, &other);
}

void weft_watched_ranks_close(struct weft_watched_ranks *ranks)
{
    weft_pipes_close(&ranks->ends, 1);
}

/* Writes a record. If the pipe is full, the launcher has enough news. */
static void tell_watch(struct weft_watch *watch)
{
    int fd = ((struct weft_rank_watch *)watch)->fd;
    struct weft_rank_watch_record record = {.begun_ns = watch->begun_ns,
                                            .counted_ns = watch->counted_ns,
                                            .from = watch->from,
                                            .done = watch->done,
                                            .of = watch->of};
    if (fd < 0 || !watch->what) return;
    snprintf(record.what, sizeof record.what, "%s", watch->what);
    if (watch->noun) snprintf(record.noun, sizeof record.noun, "%s", watch->noun);
    ssize_t written = write(fd, &record, sizeof record);
    (void)written;
}

void weft_rank_watch_init(struct weft_rank_watch *watch, int fd)
{
    *watch = (struct weft_rank_watch){
        .watch = {.look = tell_watch, .now_ns = weft_clock_now_ns, .share = -1}, .fd = fd};
}
