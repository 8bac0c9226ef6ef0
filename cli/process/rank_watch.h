/* SPDX-License-Identifier: Apache-2.0 */
/* Rank 0 sends its progress over a pipe, and the launching process shows it. So the terminal's line
 * is redrawn during a long step, and removed even if a rank dies. */
#ifndef WEFT_CLI_PROCESS_RANK_WATCH_H
#define WEFT_CLI_PROCESS_RANK_WATCH_H

#include "base/status.h"
#include "base/watch.h"

#define WEFT_RANK_WATCH_NAME "WEFT_WATCH_FD" /* variable with the pipe's number, for ranks */

enum { WEFT_RANK_WATCH_NOUN_BYTES = 16, WEFT_RANK_WATCH_WHAT_BYTES = 32 };

/* One record is one write, so it arrives whole. */
struct weft_rank_watch_record {
    char what[WEFT_RANK_WATCH_WHAT_BYTES]; /* the work, as "train" */
    char noun[WEFT_RANK_WATCH_NOUN_BYTES]; /* "": there is no counter */
    int64_t begun_ns, counted_ns;          /* as in struct weft_watch, by the machine's clock */
    int64_t from, done, of;
};

/* The launching process's side. */
struct weft_watched_ranks {
    struct weft_watch *watch; /* NULL: there is no pipe */
    int ends[2];              /* of the pipe; the second is the ranks' */
    struct weft_rank_watch_record record;
};

/* Opens the pipe. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_watched_ranks_open(struct weft_watch *watch,
                                                       struct weft_watched_ranks *out,
                                                       struct weft_error *err);
/* Reads the latest record; a `look` function for weft_launch. */
void weft_watched_ranks_look(void *watched_ranks);
void weft_watched_ranks_close(struct weft_watched_ranks *ranks);

/* The rank's side. */
struct weft_rank_watch {
    struct weft_watch watch; /* must be the first member */
    int fd;
};

/* Initialises the watch; `fd` is the pipe, or -1: nothing is sent. */
void weft_rank_watch_init(struct weft_rank_watch *watch, int fd);

#endif
