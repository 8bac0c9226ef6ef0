/* Progress is shown on stderr: once work has taken half a second, on a terminal one line
 * that is drawn again at most ten times a second; elsewhere, in CI and on a dumb terminal plain
 * lines, one every 10 s or 10 %. */
#ifndef WEFT_CLI_PROGRESS_H
#define WEFT_CLI_PROGRESS_H

#include <stdbool.h>

#include "base/watch.h"
#include "cli/command.h"

struct weft_cli_progress {
    struct weft_watch watch;        /* first: what cli->watch points to */
    enum weft_progress_choice mode; /* AUTO: redrawn */
    int fd;                         /* where to; stderr */
    bool is_drawn;                  /* a line stands on the terminal that nothing has ended yet */
    bool is_elsewhere;              /* another process draws it, on the same terminal */
    int64_t begun_ns;               /* of the work whose lines these are: */
    int64_t shown_ns;               /* when one was shown last; 0 = not yet */
    double shown_share;
};

/* Makes `progress` what cli->watch points to, shown as the command line and stderr want it. */
void weft_cli_progress_open(struct weft_cli_progress *progress, struct weft_cli *cli);

/* Takes the line away, if it is there, before something else is written to the terminal. */
void weft_cli_progress_clear(const struct weft_cli *cli);

/* This process is a rank: the one that launched it draws the line. */
void weft_cli_progress_leave(const struct weft_cli *cli);

/* What a rank writes to the terminal at `fd` begins with this, in one write with the rest, so that
 * the line is not drawn between the two; "" where there is no line. */
const char *weft_cli_progress_eraser(const struct weft_cli *cli, int fd);

/* True where one line is drawn again and again. */
bool weft_cli_progress_is_redrawn(const struct weft_watch *watch);

/* The flag that tells a rank what is shown here. */
const char *weft_cli_progress_flag(const struct weft_watch *watch);

#endif
