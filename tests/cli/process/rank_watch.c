/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/rank_watch.h"

#include <criterion/criterion.h>
#include <string.h>

static struct weft_error rank_watch_error;

static void look_offloaded(struct weft_watch *watch)
{
    (void)watch;
}

static int64_t read_stopped_clock(void)
{
    return 1;
}

Test(rank_watch, what_a_rank_tells_last_is_what_the_launcher_has)
{
    struct weft_watch watch = {.look = look_offloaded, .now_ns = read_stopped_clock, .share = -1};
    struct weft_watched_ranks ranks;
    struct weft_rank_watch rank, other;
    cr_assert_eq(weft_watched_ranks_open(&watch, &ranks, &rank_watch_error), WEFT_OK);
    weft_rank_watch_init(&rank, ranks.ends[1]);
    weft_rank_watch_init(&other, -1);
    weft_watch_begin(&watch, "train");
    weft_watched_ranks_look(&ranks);
    cr_assert_null(watch.noun, "nothing was told");
    weft_watch_begin(&rank.watch, "train");
    weft_watch_begin(&other.watch, "train");
    weft_watch_count(&rank.watch, "step", 100, 110);
    weft_watch_count(&rank.watch, "step", 105, 110);
    weft_watch_count(&other.watch, "token", 1, 2);
    weft_watched_ranks_look(&ranks);
    cr_assert_str_eq(watch.noun, "step");
    cr_assert(watch.from == 100 && watch.done == 105 && watch.of == 110);
    cr_assert(watch.begun_ns == rank.watch.begun_ns && watch.counted_ns == rank.watch.counted_ns);
    weft_watch_begin(&rank.watch, "start: initial values");
    weft_watched_ranks_look(&ranks);
    cr_assert_null(watch.noun, "it begins again");
    cr_assert_str_eq(watch.what, "start: initial values");
    weft_watched_ranks_close(&ranks);
}

/* A stopped launcher does not block the ranks. */
Test(rank_watch, nobody_waits_for_who_does_not_look)
{
    struct weft_watch watch = {.look = look_offloaded, .now_ns = read_stopped_clock, .share = -1};
    struct weft_watched_ranks ranks;
    struct weft_rank_watch rank;
    cr_assert_eq(weft_watched_ranks_open(&watch, &ranks, &rank_watch_error), WEFT_OK);
    weft_rank_watch_init(&rank, ranks.ends[1]);
    weft_watch_begin(&watch, "train");
    weft_watch_begin(&rank.watch, "train");
    for (int64_t step = 0; step <= 100000; step++)
        weft_watch_count(&rank.watch, "step", step, 100000);
    weft_watched_ranks_look(&ranks);
    cr_assert(watch.done > 0 && watch.done < 100000, "the pipe was full");
    weft_watch_count(&rank.watch, "step", 100000, 100000);
    weft_watched_ranks_look(&ranks);
    cr_assert_eq(watch.done, 100000);
    weft_watched_ranks_close(&ranks);
}

Test(rank_watch, without_a_watcher_there_is_no_pipe)
{
    struct weft_watched_ranks ranks;
    cr_assert_eq(weft_watched_ranks_open(NULL, &ranks, &rank_watch_error), WEFT_OK);
    cr_assert(ranks.ends[0] == -1 && ranks.ends[1] == -1);
    weft_watched_ranks_close(&ranks);
}
