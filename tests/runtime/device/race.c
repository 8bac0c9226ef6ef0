/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events under load, for ThreadSanitizer. Work on different streams shares plain
 * memory, and only events order it. Without the sanitizer it still checks the results. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/device/device.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "race.c:%d: %s\n", __LINE__, #condition);                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { STREAMS = 3, ROUNDS = 3000 };

struct shared {
    int64_t value; /* plain: ordered by events alone */
};

struct step {
    struct shared *shared;
    int64_t expected;
};

static enum weft_status add_one(struct weft_stream *stream, const void *argument,
                                struct weft_error *err)
{
    (void)stream;
    const struct step *step = argument;
    if (step->shared->value != step->expected) {
        return weft_fail(err, WEFT_E_INTERNAL, "found %lld, expected %lld",
                         (long long)step->shared->value, (long long)step->expected);
    }
    step->shared->value++;
    return WEFT_OK;
}

static enum weft_status fail(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)stream;
    (void)argument;
    return weft_fail(err, WEFT_E_NUMERIC, "on purpose");
}

struct machine {
    struct weft_device *device;
    struct weft_stream *streams[STREAMS];
    struct weft_event *events[STREAMS];
};

static void open_machine(struct machine *m, enum weft_clock clock)
{
    CHECK(weft_device_open("cpu", clock, &m->device, NULL) == WEFT_OK);
    for (int i = 0; i < STREAMS; i++) {
        CHECK(weft_stream_create(m->device, "race", 0, &m->streams[i], NULL) == WEFT_OK);
        CHECK(weft_event_create(m->device, &m->events[i], NULL) == WEFT_OK);
    }
}

static void close_machine(struct machine *m)
{
    /* Events first: their destruction waits for the work that refers to them. */
    for (int i = 0; i < STREAMS; i++)
        weft_event_destroy(m->events[i]);
    for (int i = 0; i < STREAMS; i++)
        weft_stream_destroy(m->streams[i]);
    weft_device_close(m->device);
}

/* Hands one counter round the streams: every step waits for the one before it. */
static void pass_round(struct machine *m, struct shared *shared, int64_t *expected)
{
    for (int round = 0; round < ROUNDS; round++) {
        int i = round % STREAMS, before = (round + STREAMS - 1) % STREAMS;
        struct step step = {.shared = shared, .expected = (*expected)++};
        weft_stream_wait(m->streams[i], m->events[before]);
        weft_stream_push(m->streams[i], add_one, &step, sizeof step);
        weft_stream_advance(m->streams[i], 3);
        weft_stream_record(m->streams[i], m->events[i]);
    }
}

/* One after the other, so that even streams that contend take the time of each. */
static void test_passing(enum weft_clock clock, bool contend)
{
    struct machine m;
    struct shared shared = {0};
    int64_t expected = 0, stamp = -1;
    open_machine(&m, clock);
    for (int i = 0; contend && i < STREAMS; i++) {
        const struct weft_rates rates = {WEFT_RATE_ONE / 2, WEFT_RATE_ONE / 2};
        CHECK(weft_stream_contend(m.streams[i], i, rates, NULL) == WEFT_OK);
    }
    for (int pass = 0; pass < 3; pass++) {
        pass_round(&m, &shared, &expected);
        weft_stream_stamp(m.streams[(ROUNDS - 1) % STREAMS], &stamp);
        for (int i = 0; i < STREAMS; i++)
            CHECK(weft_stream_synchronise(m.streams[i], NULL) == WEFT_OK);
        CHECK(shared.value == expected);
        if (clock == WEFT_CLOCK_VIRTUAL) CHECK(stamp == 3 * expected);
    }
    close_machine(&m);
}

/* Closing while work is under way, and errors read by the issuing thread. */
static void test_closing(void)
{
    for (int round = 0; round < 100; round++) {
        struct machine m;
        struct shared shared = {0};
        struct weft_error err = {.status = WEFT_OK};
        int64_t expected = 0;
        open_machine(&m, WEFT_CLOCK_WALL);
        weft_stream_push(m.streams[0], fail, NULL, 0);
        for (int i = 0; i < 20; i++) {
            struct step step = {.shared = &shared, .expected = expected++};
            weft_stream_push(m.streams[1], add_one, &step, sizeof step);
            weft_stream_record(m.streams[1], m.events[1]);
            weft_stream_wait(m.streams[2], m.events[1]);
        }
        if (round % 2 == 0) {
            CHECK(weft_stream_synchronise(m.streams[0], &err) == WEFT_E_NUMERIC);
            CHECK(err.text[0] == 'o');
        }
        close_machine(&m);
        CHECK(shared.value == expected);
    }
}

int main(void)
{
    test_passing(WEFT_CLOCK_WALL, false);
    test_passing(WEFT_CLOCK_VIRTUAL, false);
    test_passing(WEFT_CLOCK_VIRTUAL, true);
    test_closing();
    return 0;
}
