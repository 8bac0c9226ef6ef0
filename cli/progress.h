/* SPDX-License-Identifier: Apache-2.0 */
/* Progress goes to stderr after half a second of work. On a terminal it is one line, redrawn at
 * most ten times a second. In CI, on a dumb terminal and in files it is plain lines, one per 10 s
 * or 10 %. */
#ifndef WEFT_CLI_PROGRESS_H
#define WEFT_CLI_PROGRESS_H

#include <stdbool.h>

#include "base/watch.h"
#include "cli/command.h"

struct weft_cli_progress {
    struct weft_watch watch;        /* must be the first member; cli->watch points to it */
    enum weft_progress_choice mode; /* AUTO: one redrawn line */
    int fd;                         /* output, stderr */
    bool is_drawn;                  /* a line without a newline is on the terminal */
    bool is_elsewhere;              /* another process draws the line on the same terminal */
    int64_t begun_ns;               /* start of the present work */
    int64_t shown_ns;               /* time of the last line; 0: none yet */
    double shown_share;
};

/* Opens progress as the command line and stderr ask, and sets cli->watch. */
void weft_cli_progress_open(struct weft_cli_progress *progress, struct weft_cli *cli);

/* Erases a drawn line. Call it before other output to the terminal. */
void weft_cli_progress_clear(const struct weft_cli *cli);

/* Marks this process as a rank: its launcher draws the line. */
void weft_cli_progress_leave(const struct weft_cli *cli);

/* Returns the prefix of a rank's output to the terminal at `fd`: it erases the line. Write both at
 * once, so the line is not drawn between them. "" if there is no line. */
const char *weft_cli_progress_eraser(const struct weft_cli *cli, int fd);

/* True if progress is one redrawn line. */
bool weft_cli_progress_is_redrawn(const struct weft_watch *watch);

/* Returns the --progress flag for ranks. */
const char *weft_cli_progress_flag(const struct weft_watch *watch);

#endif
