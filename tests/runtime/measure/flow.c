/* SPDX-License-Identifier: Apache-2.0 */
/* Flows: blocks in order through seats in turn, no seat taken before its block has ended, and a
 * failure that is passed on. Stations replace devices, so each call is known. */
#include "runtime/measure/flow.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/runtime/exec/job.h"

enum { MOST_FLOWS = 3, CASES = 400, FIRST_TICKET = 1000, TICKET_STEP = 7, NEVER = 1 << 30 };

/* A device. Blocks end in order: one at every `pace`-th question, and those that are waited for. */
struct station {
    int64_t submitted, ended, asked, waited;
    int32_t seats, pace;
    int64_t fails_at_submit, fails_at_wait; /* of these calls, from 0 */
    int64_t in_seat[MEASURE_SEATS];         /* latest block; -1: none */
    int64_t wait_ns;                        /* each wait takes at least this */
    const struct station *other;            /* checked for turns, or NULL */
    int64_t most_ahead;                     /* of `other` when a block is submitted */
};

static enum weft_status submit_to_station(void *context, int64_t number, int32_t seat,
                                          int64_t *ticket, struct weft_error *err)
{
    struct station *s = context;
    if (s->submitted == s->fails_at_submit) return weft_fail(err, WEFT_E_IO, "no submit");
    CHECK(number == s->submitted, "block %lld is number %lld", (long long)s->submitted,
          (long long)number);
    CHECK(seat == number % s->seats, "block %lld has seat %d of %d", (long long)number, seat,
          s->seats);
    CHECK(s->in_seat[seat] < s->ended, "seat %d is taken while block %lld is there", seat,
          (long long)s->in_seat[seat]);
    s->in_seat[seat] = s->submitted++;
    *ticket = FIRST_TICKET + TICKET_STEP * number;
    if (s->other != NULL && s->submitted - s->other->submitted > s->most_ahead)
        s->most_ahead = s->submitted - s->other->submitted;
    return WEFT_OK;
}

static int64_t block_of(const struct station *s, int64_t ticket)
{
    const int64_t block = (ticket - FIRST_TICKET) / TICKET_STEP;
    CHECK(ticket == FIRST_TICKET + TICKET_STEP * block && block >= 0 && block < s->submitted,
          "%lld is no ticket", (long long)ticket);
    return block;
}

static bool station_is_done(void *context, int64_t ticket)
{
    struct station *s = context;
    const int64_t block = block_of(s, ticket);
    if (++s->asked % s->pace == 0 && s->ended < s->submitted) s->ended++;
    return block < s->ended;
}

static enum weft_status wait_at_station(void *context, int64_t ticket, struct weft_error *err)
{
    struct station *s = context;
    const int64_t block = block_of(s, ticket), until_ns = weft_clock_now_ns() + s->wait_ns;
    if (s->waited == s->fails_at_wait) return weft_fail(err, WEFT_E_HANG, "no wait");
    CHECK(block == s->waited, "block %lld is waited for in place of %lld", (long long)block,
          (long long)s->waited);
    s->waited++;
    if (s->ended <= block) s->ended = block + 1;
    while (weft_clock_now_ns() < until_ns)
        continue;
    return WEFT_OK;
}

static struct measure_flow open_station(struct station *s, int32_t seats, int32_t pace,
                                        int64_t least)
{
    *s = (struct station){
        .seats = seats, .pace = pace, .fails_at_submit = NEVER, .fails_at_wait = NEVER};
    for (int i = 0; i < MEASURE_SEATS; i++)
        s->in_seat[i] = -1;
    return (struct measure_flow){.context = s,
                                 .submit = submit_to_station,
                                 .is_done = station_is_done,
                                 .wait = wait_at_station,
                                 .seats = seats,
                                 .least = least,
                                 .blocks = 99}; /* of a run before */
}

/* Flows of random seats and paces: each block is submitted and waited for once, in order. */
static void every_block_is_moved_and_waited_for_once(void)
{
    struct station stations[MOST_FLOWS];
    struct measure_flow flows[MOST_FLOWS], *list[MOST_FLOWS];
    for (uint64_t seed = 0; seed < CASES; seed++) {
        const int32_t n = 1 + (int32_t)(seed % MOST_FLOWS);
        for (int32_t i = 0; i < n; i++) {
            const uint64_t at = 3 * (uint64_t)i;
            flows[i] = open_station(&stations[i], 1 + (int32_t)weft_rng_below(seed, 1, at, 5),
                                    1 + (int32_t)weft_rng_below(seed, 1, at + 1, 4),
                                    (int64_t)weft_rng_below(seed, 1, at + 2, 20));
            list[i] = &flows[i];
        }
        OK(weft_measure_flows(list, n, 0, &err));
        for (int32_t i = 0; i < n; i++) {
            const struct station *s = &stations[i];
            CHECK(flows[i].blocks >= flows[i].least && s->submitted == flows[i].blocks &&
                      s->waited == flows[i].blocks,
                  "%lld blocks of at least %lld, %lld submitted, %lld waited for",
                  (long long)flows[i].blocks, (long long)flows[i].least, (long long)s->submitted,
                  (long long)s->waited);
        }
    }
}

/* The flow that has enough goes on, so that the others never run alone. */
static void flows_take_turns_until_all_have_enough(void)
{
    struct station stations[2];
    struct measure_flow flows[2], *list[2] = {&flows[0], &flows[1]};
    for (int later = 0; later < 2; later++) {
        for (int i = 0; i < 2; i++)
            flows[i] = open_station(&stations[i], 2, 1, i == later ? 20 : 1);
        stations[0].other = &stations[1];
        stations[1].other = &stations[0];
        OK(weft_measure_flows(list, 2, 0, &err));
        CHECK(flows[later].blocks == 20 && flows[1 - later].blocks >= 19, "%lld and %lld blocks",
              (long long)flows[0].blocks, (long long)flows[1].blocks);
        CHECK(stations[0].most_ahead <= 1 && stations[1].most_ahead <= 1, "one is ahead");
    }
}

/* A flow whose seats are taken does not stop one with a free seat. */
static void a_free_seat_is_used_while_others_are_taken(void)
{
    struct station slow, quick;
    struct measure_flow flows[] = {open_station(&slow, 1, 10, 3), open_station(&quick, 1, 1, 1)};
    struct measure_flow *list[] = {&flows[0], &flows[1]};
    OK(weft_measure_flows(list, 2, 0, &err));
    CHECK(flows[0].blocks == 3 && flows[1].blocks >= 15, "%lld slow, %lld quick",
          (long long)flows[0].blocks, (long long)flows[1].blocks);
}

static void the_time_has_the_window_and_the_last_blocks(void)
{
    enum { SEATS = 4 };
    const int64_t ms = 1000000;
    struct station s;
    struct measure_flow flow = open_station(&s, SEATS, 1, 1), *one = &flow;
    OK(weft_measure_flows(&one, 1, 3 * ms, &err));
    CHECK(flow.took_ns >= 3 * ms, "%lld ns of a window of 3 ms", (long long)flow.took_ns);
    flow = open_station(&s, SEATS, 1, SEATS);
    s.wait_ns = ms;
    OK(weft_measure_flows(&one, 1, 0, &err));
    CHECK(flow.took_ns >= SEATS * ms, "%lld ns without the last blocks", (long long)flow.took_ns);
}

static void a_block_takes_its_part_of_the_time(void)
{
    struct measure_flow flow = {.blocks = 3, .took_ns = 11};
    CHECK(weft_measure_block_ns(&flow) == 3, "%lld", (long long)weft_measure_block_ns(&flow));
    flow.took_ns = 2;
    CHECK(weft_measure_block_ns(&flow) == 1, "a block takes time");
    flow = (struct measure_flow){.blocks = 0, .took_ns = 50};
    CHECK(weft_measure_block_ns(&flow) == 50, "of no block");
}

/* Fails a run of two flows at a call of the second one. */
static enum weft_status run_that_fails(int64_t submit, int64_t wait, struct weft_error *err)
{
    struct station stations[2];
    struct measure_flow flows[] = {open_station(&stations[0], 2, 1, 9),
                                   open_station(&stations[1], 2, 1, 9)};
    struct measure_flow *list[] = {&flows[0], &flows[1]};
    stations[1].fails_at_submit = submit;
    stations[1].fails_at_wait = wait;
    return weft_measure_flows(list, 2, 0, err);
}

static void a_failure_ends_the_run(void)
{
    struct weft_error err = {0};
    for (int64_t at = 0; at < 9; at++) {
        err.status = WEFT_OK;
        CHECK(run_that_fails(at, NEVER, &err) == WEFT_E_IO, "submit %lld", (long long)at);
        err.status = WEFT_OK;
        CHECK(run_that_fails(NEVER, at, &err) == WEFT_E_HANG, "wait %lld", (long long)at);
        CHECK(strcmp(err.text, "no wait") == 0, "%s", err.text);
    }
}

RANKS_TEST(flow)
{
    every_block_is_moved_and_waited_for_once();
    flows_take_turns_until_all_have_enough();
    a_free_seat_is_used_while_others_are_taken();
    the_time_has_the_window_and_the_last_blocks();
    a_block_takes_its_part_of_the_time();
    a_failure_ends_the_run();
    return 0;
}
