/* SPDX-License-Identifier: Apache-2.0 */
/* The times of progress lines, by the test's clock. */
#include "cli/progress.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

static int64_t shown_now_ns;

static int64_t read_shown_clock(void)
{
    return shown_now_ns;
}

struct shown {
    struct weft_cli_progress progress;
    struct weft_cli cli;
    int ends[2];
    char text[65536];
};

static void open_shown(struct shown *shown, enum weft_progress_choice mode)
{
    memset(shown, 0, sizeof *shown);
    weft_cli_progress_open(&shown->progress, &shown->cli);
    cr_assert_eq(pipe(shown->ends), 0);
    shown->progress.mode = mode;
    shown->progress.fd = shown->ends[1];
    shown->progress.watch.now_ns = read_shown_clock;
    shown_now_ns = INT64_C(5000000000);
}

/* Returns the output since the last call. */
static const char *take_shown(struct shown *shown)
{
    static const char nothing[] = "";
    cr_assert_eq(write(shown->ends[1], "", 1), 1);
    ssize_t n = read(shown->ends[0], shown->text, sizeof shown->text);
    cr_assert(n > 0 && shown->text[n - 1] == '\0');
    return n > 1 ? shown->text : nothing;
}

static void pass_ms(struct shown *shown, int64_t ms)
{
    shown_now_ns += ms * 1000000;
    weft_watch_look(shown->cli.watch);
}

static void close_shown(struct shown *shown)
{
    close(shown->ends[0]);
    close(shown->ends[1]);
}

static int count_shown(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

Test(cli_progress, nothing_is_shown_of_what_takes_less_than_half_a_second)
{
    struct shown *shown = malloc(sizeof *shown);
    open_shown(shown, WEFT_PROGRESS_AUTO);
    weft_watch_begin(shown->cli.watch, "train");
    pass_ms(shown, 499);
    weft_watch_end(shown->cli.watch);
    cr_assert_str_eq(take_shown(shown), "");
    weft_watch_begin(shown->cli.watch, "train");
    pass_ms(shown, 500);
    cr_assert_str_eq(take_shown(shown), "\rweft: train: 0.5 s so far\033[K");
    close_shown(shown);
    free(shown);
}

Test(cli_progress, at_most_ten_times_a_second)
{
    struct shown *shown = malloc(sizeof *shown);
    open_shown(shown, WEFT_PROGRESS_AUTO);
    weft_watch_begin(shown->cli.watch, "train");
    for (int ms = 0; ms < 3500; ms++) {
        weft_watch_count(shown->cli.watch, "step", ms, 3500);
        pass_ms(shown, 1);
    }
    const char *text = take_shown(shown);
    cr_assert_eq(count_shown(text, "\rweft: train: step "), 31, "%s", text);
    cr_assert_eq(count_shown(text, "\n"), 0);
    close_shown(shown);
    free(shown);
}

Test(cli_progress, the_line_is_taken_offloaded_once)
{
    struct shown *shown = malloc(sizeof *shown);
    open_shown(shown, WEFT_PROGRESS_AUTO);
    weft_watch_begin(shown->cli.watch, "train");
    pass_ms(shown, 700);
    take_shown(shown);
    weft_cli_progress_clear(&shown->cli);
    cr_assert_str_eq(take_shown(shown), "\r\033[K");
    weft_cli_progress_clear(&shown->cli);
    cr_assert_str_eq(take_shown(shown), "", "it is not there any more");
    pass_ms(shown, 100);
    cr_assert_str_eq(take_shown(shown), "\rweft: train: 0.8 s so far\033[K", "and comes back");
    weft_watch_end(shown->cli.watch);
    cr_assert_str_eq(take_shown(shown), "\r\033[K", "until the work is done");
    close_shown(shown);
    free(shown);
}

/* One line per ten seconds or tenth of the work, at least a second apart. */
Test(cli_progress, plain_lines_are_few)
{
    struct shown *shown = malloc(sizeof *shown);
    open_shown(shown, WEFT_PROGRESS_PLAIN);
    weft_watch_begin(shown->cli.watch, "train");
    for (int s = 0; s < 100; s++) {
        weft_watch_count(shown->cli.watch, "step", s, 1000);
        pass_ms(shown, 1000);
    }
    const char *text = take_shown(shown);
    cr_assert_eq(count_shown(text, "weft: train: step "), 10, "%s", text);
    cr_assert_eq(count_shown(text, " left\n") + count_shown(text, " so far\n"), 10, "%s", text);
    cr_assert_eq(count_shown(text, "\r") + count_shown(text, "\033"), 0);
    for (int step = 100; step <= 1000; step++) {
        weft_watch_count(shown->cli.watch, "step", step, 1000);
        pass_ms(shown, 20);
    }
    text = take_shown(shown);
    cr_assert_eq(count_shown(text, "\n"), 9, "%s", text);
    close_shown(shown);
    free(shown);
}

Test(cli_progress, none_is_none)
{
    struct shown *shown = malloc(sizeof *shown);
    open_shown(shown, WEFT_PROGRESS_NONE);
    weft_watch_begin(shown->cli.watch, "train");
    pass_ms(shown, 60000);
    weft_watch_end(shown->cli.watch);
    cr_assert_str_eq(take_shown(shown), "");
    close_shown(shown);
    free(shown);
}
