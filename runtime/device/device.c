/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/device.h"

#include <string.h>

#include "runtime/device/backend.h"
#include "runtime/device/module.h"

#define ROW(name) &weft_device_##name,
static const struct weft_device_ops *const backends[] = {WEFT_DEVICES(ROW)};
#undef ROW
enum { BACKENDS = sizeof backends / sizeof backends[0] };

enum weft_status weft_device_open(const char *name, enum weft_clock clock, struct weft_device **out,
                                  struct weft_error *err)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i]->open(clock, out, err);
    }
    if (weft_module_has(name)) {
        const void *ops = NULL;
        WEFT_TRY(weft_module_find("device", name, &ops, err));
        return ((const struct weft_device_ops *)ops)->open(clock, out, err);
    }
    struct weft_text known;
    weft_text_init(&known);
    weft_module_add_names(&known);
    weft_fail(err, WEFT_E_ENVIRONMENT, "no device \"%s\" in this build: it has %s", name,
              weft_text_chars(&known));
    weft_text_finish(&known);
    return WEFT_E_ENVIRONMENT;
}

void weft_device_close(struct weft_device *device)
{
    if (device != NULL) device->ops->close(device);
}

void weft_device_describe(const struct weft_device *device, struct weft_text *out)
{
    if (device->ops->describe != NULL) device->ops->describe(device, out);
}

const char *weft_device_hardware(const struct weft_device *device)
{
    return device->ops->hardware != NULL ? device->ops->hardware(device) : NULL;
}

bool weft_device_memory(const struct weft_device *device, int64_t *bytes, bool *exact)
{
    return device->ops->memory != NULL && device->ops->memory(device, bytes, exact);
}

enum weft_clock weft_device_clock(const struct weft_device *device)
{
    return device->clock;
}

enum weft_clock weft_stream_clock(const struct weft_stream *stream)
{
    return stream->device->clock;
}

typedef enum weft_status create_fn(struct weft_device *device, const char *name, int32_t queue,
                                   struct weft_stream **out, struct weft_error *err);

static enum weft_status create_stream(struct weft_device *device, create_fn *create,
                                      const char *name, int32_t queue, struct weft_stream **out,
                                      struct weft_error *err)
{
    if (queue < 0 || queue > WEFT_STREAM_MOST_QUEUE) {
        return weft_fail(err, WEFT_E_INTERNAL, "stream \"%s\": a queue of %d items; at most %d",
                         name, queue, WEFT_STREAM_MOST_QUEUE);
    }
    return create(device, name, queue > 0 ? queue : WEFT_STREAM_QUEUE, out, err);
}

enum weft_status weft_stream_create(struct weft_device *device, const char *name, int32_t queue,
                                    struct weft_stream **out, struct weft_error *err)
{
    return create_stream(device, device->ops->stream_create, name, queue, out, err);
}

enum weft_status weft_stream_create_on_host(struct weft_device *device, const char *name,
                                            int32_t queue, struct weft_stream **out,
                                            struct weft_error *err)
{
    const struct weft_device_ops *ops = device->ops;
    create_fn *create =
        ops->stream_create_on_host != NULL ? ops->stream_create_on_host : ops->stream_create;
    return create_stream(device, create, name, queue, out, err);
}

void weft_stream_destroy(struct weft_stream *stream)
{
    if (stream != NULL) stream->device->ops->stream_destroy(stream);
}

enum weft_status weft_event_create(struct weft_device *device, struct weft_event **out,
                                   struct weft_error *err)
{
    return device->ops->event_create(device, out, err);
}

void weft_event_destroy(struct weft_event *event)
{
    if (event != NULL) event->device->ops->event_destroy(event);
}

static enum weft_status refuse_large(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    size_t bytes;
    memcpy(&bytes, argument, sizeof bytes);
    return weft_fail(err, WEFT_E_INTERNAL,
                     "a task's argument has %zu bytes, and at most %d are copied: pass a pointer",
                     bytes, WEFT_TASK_BYTES);
}

void weft_stream_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                      size_t bytes)
{
    const struct weft_device_ops *ops = stream->device->ops;
    if (bytes > WEFT_TASK_BYTES) {
        /* push returns no status, so a task of the stream reports the error at synchronise. */
        ops->push(stream, refuse_large, &bytes, sizeof bytes);
        return;
    }
    ops->push(stream, task, argument, bytes);
}

void weft_stream_on_failure(struct weft_stream *stream, weft_failure_fn *function, void *context)
{
    stream->device->ops->on_failure(stream, function, context);
}

void weft_stream_stop(struct weft_stream *stream)
{
    stream->device->ops->stop(stream);
}

void weft_stream_record(struct weft_stream *stream, struct weft_event *event)
{
    stream->device->ops->record(stream, event);
}

void weft_stream_wait(struct weft_stream *stream, struct weft_event *event)
{
    stream->device->ops->wait(stream, event);
}

void weft_stream_stamp(struct weft_stream *stream, int64_t *ns)
{
    stream->device->ops->stamp(stream, ns);
}

void weft_stream_advance(struct weft_stream *stream, int64_t ns)
{
    stream->device->ops->advance(stream, ns);
}

enum weft_status weft_stream_contend(struct weft_stream *stream, int lane, struct weft_rates rates,
                                     struct weft_error *err)
{
    if (stream->device->clock != WEFT_CLOCK_VIRTUAL) return WEFT_OK;
    return stream->device->ops->contend(stream, lane, rates, err);
}

void weft_stream_run(struct weft_stream *stream, int64_t start_ns, int64_t ns)
{
    stream->device->ops->run(stream, start_ns, ns);
}

enum weft_status weft_stream_synchronise(struct weft_stream *stream, struct weft_error *err)
{
    return stream->device->ops->synchronise(stream, err);
}

bool weft_stream_is_here(const struct weft_stream *stream)
{
    const struct weft_device_ops *ops = stream->device->ops;
    return ops->is_here != NULL && ops->is_here(stream);
}

int64_t weft_stream_now(const struct weft_stream *stream)
{
    return stream->device->ops->now(stream);
}
