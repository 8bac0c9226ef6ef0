/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/backend.h"
#include "runtime/device/device.h"
#include "tests/runtime/parts/strict.h"

enum command_kind { COMMAND_TASK, COMMAND_RECORD, COMMAND_WAIT, COMMAND_STAMP, COMMAND_ADVANCE };

/* A command that waits for its release to a stream of the CPU. */
struct command {
    enum command_kind kind;
    struct weft_stream *on;
    union {
        weft_task_fn *task;
        struct weft_event *event;
        int64_t *stamp;
        int64_t ns;
    } u;
    size_t bytes;
    unsigned char argument[WEFT_TASK_BYTES];
};

/* Commands of all streams, in the order in which they came: several threads may issue. */
struct strict_device {
    struct weft_device device; /* first */
    struct weft_device *cpu;
    pthread_mutex_t lock;
    struct command *commands; /* [n_most] */
    int32_t n_commands, n_most;
    int32_t generation; /* counts releases */
};

struct strict_stream {
    struct weft_stream stream; /* first */
    struct weft_stream *cpu;
    int32_t queue;
    int32_t waiting; /* commands held back in this generation */
    int32_t generation;
};

struct strict_event {
    struct weft_event event; /* first */
    struct weft_event *cpu;
};

static const struct weft_device_ops strict_ops;

static struct strict_device *device_of(const struct weft_device *device)
{
    return (struct strict_device *)device;
}

static struct strict_stream *stream_of(const struct weft_stream *stream)
{
    return (struct strict_stream *)stream;
}

/* Gives all commands to the CPU. The caller holds the lock. */
static void release_all(struct strict_device *d)
{
    for (int32_t i = 0; i < d->n_commands; i++) {
        const struct command *c = &d->commands[i];
        switch (c->kind) {
        case COMMAND_TASK:
            weft_stream_push(c->on, c->u.task, c->argument, c->bytes);
            break;
        case COMMAND_RECORD:
            weft_stream_record(c->on, c->u.event);
            break;
        case COMMAND_WAIT:
            weft_stream_wait(c->on, c->u.event);
            break;
        case COMMAND_STAMP:
            weft_stream_stamp(c->on, c->u.stamp);
            break;
        case COMMAND_ADVANCE:
            weft_stream_advance(c->on, c->u.ns);
            break;
        }
    }
    d->n_commands = 0;
    d->generation++;
}

static void flush_device(struct strict_device *d)
{
    pthread_mutex_lock(&d->lock);
    release_all(d);
    pthread_mutex_unlock(&d->lock);
}

static void hold_back(struct weft_stream *stream, const struct command *command,
                      const void *argument)
{
    struct strict_stream *s = stream_of(stream);
    struct strict_device *d = device_of(stream->device);
    pthread_mutex_lock(&d->lock);
    if (s->generation != d->generation) s->waiting = 0;
    if (s->waiting == s->queue) {
        release_all(d);
        s->waiting = 0;
    }
    s->generation = d->generation;
    s->waiting++;
    struct command *to = &d->commands[d->n_commands++];
    *to = *command;
    to->on = s->cpu;
    if (argument != NULL) memcpy(to->argument, argument, command->bytes);
    pthread_mutex_unlock(&d->lock);
}

static void strict_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                        size_t bytes)
{
    const struct command command = {.kind = COMMAND_TASK, .u.task = task, .bytes = bytes};
    hold_back(stream, &command, argument);
}

static void strict_record(struct weft_stream *stream, struct weft_event *event)
{
    const struct command command = {.kind = COMMAND_RECORD,
                                    .u.event = ((struct strict_event *)event)->cpu};
    hold_back(stream, &command, NULL);
}

static void strict_wait(struct weft_stream *stream, struct weft_event *event)
{
    const struct command command = {.kind = COMMAND_WAIT,
                                    .u.event = ((struct strict_event *)event)->cpu};
    hold_back(stream, &command, NULL);
}

static void strict_stamp(struct weft_stream *stream, int64_t *ns)
{
    const struct command command = {.kind = COMMAND_STAMP, .u.stamp = ns};
    hold_back(stream, &command, NULL);
}

static void strict_advance(struct weft_stream *stream, int64_t ns)
{
    const struct command command = {.kind = COMMAND_ADVANCE, .u.ns = ns};
    hold_back(stream, &command, NULL);
}

static enum weft_status strict_synchronise(struct weft_stream *stream, struct weft_error *err)
{
    flush_device(device_of(stream->device));
    return weft_stream_synchronise(stream_of(stream)->cpu, err);
}

static void strict_on_failure(struct weft_stream *stream, weft_failure_fn *function, void *context)
{
    weft_stream_on_failure(stream_of(stream)->cpu, function, context);
}

static void strict_stop(struct weft_stream *stream)
{
    weft_stream_stop(stream_of(stream)->cpu);
}

static enum weft_status strict_contend(struct weft_stream *stream, int lane,
                                       struct weft_rates rates, struct weft_error *err)
{
    return weft_stream_contend(stream_of(stream)->cpu, lane, rates, err);
}

static bool strict_is_here(const struct weft_stream *stream)
{
    return weft_stream_is_here(stream_of(stream)->cpu);
}

/* Tasks get the CPU's stream, so callers ask these functions about an idle stream only. */
static int64_t strict_now(const struct weft_stream *stream)
{
    return weft_stream_now(stream_of(stream)->cpu);
}

static void strict_run(struct weft_stream *stream, int64_t start_ns, int64_t ns)
{
    weft_stream_run(stream_of(stream)->cpu, start_ns, ns);
}

static void strict_close(struct weft_device *device)
{
    struct strict_device *d = device_of(device);
    weft_device_close(d->cpu);
    pthread_mutex_destroy(&d->lock);
    free(d->commands);
    free(d);
}

static enum weft_status strict_open(enum weft_clock clock, struct weft_device **out,
                                    struct weft_error *err)
{
    struct strict_device *d = calloc(1, sizeof *d);
    if (d == NULL) return weft_fail_memory(err, "a device");
    d->device.ops = &strict_ops;
    d->device.clock = clock;
    pthread_mutex_init(&d->lock, NULL);
    enum weft_status status = weft_device_cpu.open(clock, &d->cpu, err);
    if (status != WEFT_OK) {
        strict_close(&d->device);
        return status;
    }
    *out = &d->device;
    return WEFT_OK;
}

/* Makes room for `queue` more commands. */
static enum weft_status make_room(struct strict_device *d, int32_t queue, struct weft_error *err)
{
    pthread_mutex_lock(&d->lock);
    size_t n = (size_t)d->n_most + (size_t)queue;
    struct command *commands = realloc(d->commands, n * sizeof *commands);
    if (commands != NULL) {
        d->commands = commands;
        d->n_most = (int32_t)n;
    }
    pthread_mutex_unlock(&d->lock);
    return commands != NULL ? WEFT_OK : weft_fail_memory(err, "a stream");
}

static enum weft_status strict_stream_create(struct weft_device *device, const char *name,
                                             int32_t queue, struct weft_stream **out,
                                             struct weft_error *err)
{
    struct strict_stream *s = calloc(1, sizeof *s);
    if (s == NULL) return weft_fail_memory(err, "a stream");
    s->stream.device = device;
    s->queue = queue;
    enum weft_status status = make_room(device_of(device), queue, err);
    if (status == WEFT_OK)
        status = weft_stream_create(device_of(device)->cpu, name, queue, &s->cpu, err);
    if (status != WEFT_OK) {
        free(s);
        return status;
    }
    *out = &s->stream;
    return WEFT_OK;
}

static void strict_stream_destroy(struct weft_stream *stream)
{
    flush_device(device_of(stream->device));
    weft_stream_destroy(stream_of(stream)->cpu);
    free(stream);
}

static enum weft_status strict_event_create(struct weft_device *device, struct weft_event **out,
                                            struct weft_error *err)
{
    struct strict_event *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(err, "an event");
    e->event.device = device;
    enum weft_status status = weft_event_create(device_of(device)->cpu, &e->cpu, err);
    if (status != WEFT_OK) {
        free(e);
        return status;
    }
    *out = &e->event;
    return WEFT_OK;
}

static void strict_event_destroy(struct weft_event *event)
{
    flush_device(device_of(event->device));
    weft_event_destroy(((struct strict_event *)event)->cpu);
    free(event);
}

static const struct weft_device_ops strict_ops = {
    .name = "strict",
    .open = strict_open,
    .close = strict_close,
    .stream_create = strict_stream_create,
    .stream_destroy = strict_stream_destroy,
    .event_create = strict_event_create,
    .event_destroy = strict_event_destroy,
    .push = strict_push,
    .on_failure = strict_on_failure,
    .stop = strict_stop,
    .record = strict_record,
    .wait = strict_wait,
    .stamp = strict_stamp,
    .advance = strict_advance,
    .synchronise = strict_synchronise,
    .now = strict_now,
    .run = strict_run,
    .contend = strict_contend,
    .is_here = strict_is_here,
};

enum weft_status __real_weft_device_open(const char *name, enum weft_clock clock,
                                         struct weft_device **out, struct weft_error *err);
enum weft_status __wrap_weft_device_open(const char *name, enum weft_clock clock,
                                         struct weft_device **out, struct weft_error *err);
enum weft_status __wrap_weft_device_open(const char *name, enum weft_clock clock,
                                         struct weft_device **out, struct weft_error *err)
{
    if (strcmp(name, "strict") == 0) return strict_open(clock, out, err);
    return __real_weft_device_open(name, clock, out, err);
}
