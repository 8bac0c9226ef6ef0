/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/terminal.h"
#include "report/progress.h"

#define FIRST_NS  INT64_C(500000000)
#define DRAWN_NS  INT64_C(100000000)
#define PLAIN_NS  INT64_C(10000000000)
#define SOONER_NS INT64_C(1000000000) /* least time between two plain lines */
static const double plain_share = 0.1;

static const char eraser[] = "\r\033[K";

/* A failed write is ignored: progress lines have no reader to tell. */
static void write_line(const struct weft_cli_progress *shown, const char *bytes, size_t length)
{
    ssize_t written = write(shown->fd, bytes, length);
    (void)written;
}

static void erase_line(struct weft_cli_progress *shown)
{
    if (shown->is_drawn) write_line(shown, eraser, sizeof eraser - 1);
    shown->is_drawn = false;
}

static void show_line(struct weft_cli_progress *shown)
{
    static const char name[] = "weft: ";
    bool redrawn = shown->mode == WEFT_PROGRESS_AUTO;
    int32_t columns = redrawn ? weft_terminal_columns(shown->fd) : 0;
    if (columns > (int32_t)sizeof name)
        columns -= (int32_t)sizeof name; /* less one, the last
                                          * column */
    struct weft_text line;
    weft_text_init(&line);
    weft_text_addf(&line, "%s%s", redrawn ? "\r" : "", name);
    weft_report_progress(&shown->watch, columns, &line);
    weft_text_add(&line, redrawn ? "\033[K" : "\n");
    if (weft_text_ok(&line)) write_line(shown, weft_text_chars(&line), line.length);
    weft_text_finish(&line);
    shown->is_drawn = redrawn;
}

static bool is_due(const struct weft_cli_progress *shown, int64_t now_ns, double share)
{
    int64_t since_ns = now_ns - shown->shown_ns;
    if (now_ns - shown->watch.begun_ns < FIRST_NS) return false;
    if (shown->shown_ns == 0) return true;
    if (shown->mode == WEFT_PROGRESS_AUTO) return since_ns >= DRAWN_NS;
    bool far = share - shown->shown_share >= plain_share;
    return since_ns >= PLAIN_NS || (far && since_ns >= SOONER_NS);
}

static void look_at_watch(struct weft_watch *watch)
{
    struct weft_cli_progress *shown = (struct weft_cli_progress *)watch;
    if (shown->mode == WEFT_PROGRESS_NONE) return;
    if (watch->what == NULL) {
        erase_line(shown);
        return;
    }
    int64_t now_ns = watch->now_ns();
    double share = weft_watch_share(watch);
    if (shown->begun_ns != watch->begun_ns) { /* new work, perhaps on the same line */
        if (shown->mode == WEFT_PROGRESS_PLAIN) shown->shown_ns = 0;
        shown->begun_ns = watch->begun_ns;
        shown->shown_share = 0;
    }
    if (!is_due(shown, now_ns, share)) return;
    show_line(shown);
    shown->shown_ns = now_ns;
    shown->shown_share = share;
}

static bool is_redrawn_there(void)
{
    const char *term = getenv("TERM"), *ci = getenv("CI");
    if (ci && ci[0]) return false;
    return isatty(STDERR_FILENO) && term && term[0] && strcmp(term, "dumb") != 0;
}

void weft_cli_progress_open(struct weft_cli_progress *progress, struct weft_cli *cli)
{
    *progress = (struct weft_cli_progress){
        .watch = {.look = look_at_watch, .now_ns = weft_clock_now_ns, .share = -1},
        .mode = cli->progress_choice,
        .fd = STDERR_FILENO,
    };
    if (progress->mode == WEFT_PROGRESS_AUTO && !is_redrawn_there())
        progress->mode = WEFT_PROGRESS_PLAIN;
    if (cli->quiet && !cli->progress_given) progress->mode = WEFT_PROGRESS_NONE;
    cli->watch = &progress->watch;
}

void weft_cli_progress_clear(const struct weft_cli *cli)
{
    if (cli->watch) erase_line((struct weft_cli_progress *)cli->watch);
}

void weft_cli_progress_leave(const struct weft_cli *cli)
{
    ((struct weft_cli_progress *)cli->watch)->is_elsewhere = true;
}

const char *weft_cli_progress_eraser(const struct weft_cli *cli, int fd)
{
    const struct weft_cli_progress *shown = (const struct weft_cli_progress *)cli->watch;
    bool may_stand = shown && shown->is_elsewhere && shown->mode == WEFT_PROGRESS_AUTO;
    return may_stand && isatty(fd) ? eraser : "";
}

bool weft_cli_progress_is_redrawn(const struct weft_watch *watch)
{
    return ((const struct weft_cli_progress *)watch)->mode == WEFT_PROGRESS_AUTO;
}

const char *weft_cli_progress_flag(const struct weft_watch *watch)
{
    static const char *const flags[] = {
        [WEFT_PROGRESS_AUTO] = "--progress=auto",
        [WEFT_PROGRESS_PLAIN] = "--progress=plain",
        [WEFT_PROGRESS_NONE] = "--progress=none",
    };
    if (watch == NULL) return flags[WEFT_PROGRESS_NONE];
    return flags[((const struct weft_cli_progress *)watch)->mode];
}
