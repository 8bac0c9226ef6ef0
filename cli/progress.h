/* What is shown of progress, on stderr: once work has taken half a second, on a terminal one line
 * that is drawn again at most ten times a second; elsewhere, in CI and on a dumb terminal plain
 * lines, one every 10 s or 10 %. */
#ifndef WEFT_CLI_PROGRESS_H
#define WEFT_CLI_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/watch.h"
#include "cli/command.h"

struct weft_cli_progress {
    struct weft_watch watch;        /* first: what cli->watch points to */
    enum weft_progress_choice mode; /* AUTO: redrawn */
    atomic_bool is_drawn;           /* a line stands on the terminal that nothing has ended yet */
    int64_t begun_ns;               /* of the work whose lines these are: */
    int64_t shown_ns;               /* when one was shown last; 0 = not yet */
    double shown_share;
};

/* Makes `progress` what cli->watch points to, shown as the command line and stderr want it. */
void weft_cli_progress_open(struct weft_cli_progress *progress, struct weft_cli *cli);

/* Takes the line away, if it is there, before something else is written to the terminal. */
void weft_cli_progress_clear(const struct weft_cli *cli);

/* True where one line is drawn again and again. */
bool weft_cli_progress_is_redrawn(const struct weft_watch *watch);

/* The flag with which a rank shows it in the same way. */
const char *weft_cli_progress_flag(const struct weft_watch *watch);

#endif
