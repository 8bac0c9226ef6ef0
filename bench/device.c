/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of one instruction on a stream of the CPU device. An instruction is an empty
 * task between two stamps, an event that it waits for and one that it records, as the executor
 * issues them. Prints one line of JSON per figure. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "runtime/device/device.h"

enum { INSTRUCTIONS = 20000, REPEATS = 9, ARGUMENT_BYTES = 64, EVENTS = 512 };

static enum weft_status nothing(struct weft_stream *stream, const void *argument,
                                struct weft_error *err)
{
    (void)stream;
    (void)argument;
    (void)err;
    return WEFT_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double values[REPEATS])
{
    qsort(values, REPEATS, sizeof *values, compare);
    return values[REPEATS / 2];
}

struct machine {
    struct weft_device *device;
    struct weft_stream *streams[2];
    struct weft_event *events[EVENTS];
};

static enum weft_status issue_alone(struct machine *m, int64_t stamps[2])
{
    unsigned char argument[ARGUMENT_BYTES] = {0};
    for (int i = 0; i < INSTRUCTIONS; i++) {
        weft_stream_stamp(m->streams[0], &stamps[0]);
        weft_stream_push(m->streams[0], nothing, argument, sizeof argument);
        weft_stream_stamp(m->streams[0], &stamps[1]);
        weft_stream_record(m->streams[0], m->events[i % EVENTS]);
    }
    return weft_stream_synchronise(m->streams[0], NULL);
}

/* Each instruction waits for one on the other stream, the worst case of a program. */
static enum weft_status issue_alternating(struct machine *m, int64_t stamps[2])
{
    unsigned char argument[ARGUMENT_BYTES] = {0};
    for (int i = 0; i < INSTRUCTIONS; i++) {
        struct weft_stream *stream = m->streams[i % 2];
        weft_stream_wait(stream, m->events[(i + EVENTS - 1) % EVENTS]);
        weft_stream_stamp(stream, &stamps[0]);
        weft_stream_push(stream, nothing, argument, sizeof argument);
        weft_stream_stamp(stream, &stamps[1]);
        weft_stream_record(stream, m->events[i % EVENTS]);
    }
    WEFT_TRY(weft_stream_synchronise(m->streams[0], NULL));
    return weft_stream_synchronise(m->streams[1], NULL);
}

static enum weft_status measure(struct machine *m, const char *name,
                                enum weft_status (*issue)(struct machine *m, int64_t stamps[2]))
{
    double us[REPEATS];
    int64_t stamps[2];
    for (int i = 0; i < REPEATS; i++) {
        int64_t start_ns = weft_clock_now_ns();
        WEFT_TRY(issue(m, stamps));
        us[i] = (double)(weft_clock_now_ns() - start_ns) / INSTRUCTIONS / 1e3;
    }
    double middle = median(us); /* `median` sorts the values */
    printf("{\"figure\": \"%s\", \"us_an_instruction\": %.3f, \"least_us\": %.3f}\n", name, middle,
           us[0]);
    return WEFT_OK;
}

int main(void)
{
    struct machine m;
    if (weft_device_open("cpu", WEFT_CLOCK_WALL, &m.device, NULL) != WEFT_OK) return 1;
    for (int i = 0; i < 2; i++) {
        if (weft_stream_create(m.device, "bench", 0, &m.streams[i], NULL) != WEFT_OK) return 1;
    }
    for (int i = 0; i < EVENTS; i++) {
        if (weft_event_create(m.device, &m.events[i], NULL) != WEFT_OK) return 1;
    }
    if (measure(&m, "one stream", issue_alone) != WEFT_OK ||
        measure(&m, "alternating streams", issue_alternating) != WEFT_OK)
        return 1;
    for (int i = 0; i < EVENTS; i++)
        weft_event_destroy(m.events[i]);
    for (int i = 0; i < 2; i++)
        weft_stream_destroy(m.streams[i]);
    weft_device_close(m.device);
    return 0;
}
