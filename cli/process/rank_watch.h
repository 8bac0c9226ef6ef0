/* How far a job is: rank 0 tells it over a pipe, and the launching process shows it. So the line on
 * the terminal is drawn again while a step takes long, and taken away whatever becomes of a rank.
 */
#ifndef WEFT_CLI_PROCESS_RANK_WATCH_H
#define WEFT_CLI_PROCESS_RANK_WATCH_H

#include "base/status.h"
#include "base/watch.h"

#define WEFT_RANK_WATCH_NAME "WEFT_WATCH_FD" /* the pipe's, in the environment of ranks */

enum { WEFT_RANK_WATCH_NOUN_BYTES = 16 };

/* One record is one write, so nothing of it is lost or torn. */
struct weft_rank_watch_record {
    char noun[WEFT_RANK_WATCH_NOUN_BYTES]; /* "": nothing is counted */
    int64_t begun_ns, counted_ns;          /* as in struct weft_watch; the clock is the machine's */
    int64_t from, done, of;
};

/* The launching process's side. */
struct weft_watched_ranks {
    struct weft_watch *watch; /* NULL: nobody watches, and there is no pipe */
    int ends[2];              /* of the pipe; the second one is for the ranks */
    struct weft_rank_watch_record record;
};

/* WEFT_E_SYSTEM without a pipe. */
WEFT_MUST_USE enum weft_status weft_watched_ranks_open(struct weft_watch *watch,
                                                       struct weft_watched_ranks *out,
                                                       struct weft_error *err);
/* Takes what was told last; of weft_launch. */
void weft_watched_ranks_look(void *watched_ranks);
void weft_watched_ranks_close(struct weft_watched_ranks *ranks);

/* The rank's side. */
struct weft_rank_watch {
    struct weft_watch watch; /* first */
    int fd;
};

/* `fd` is the pipe's, or -1: another rank tells, or nobody watches. */
void weft_rank_watch_init(struct weft_rank_watch *watch, int fd);

#endif
