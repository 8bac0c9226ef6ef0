/* SPDX-License-Identifier: Apache-2.0 */
/* A device back end is a const table of functions. Its device, streams and events begin with the
 * structs below. Only back ends and device.c include this file. device.h states the contract of
 * each function. */
#ifndef WEFT_RUNTIME_DEVICE_BACKEND_H
#define WEFT_RUNTIME_DEVICE_BACKEND_H

#include "base/text.h"
#include "runtime/device/backends.h"
#include "runtime/device/task.h"
#include "runtime/device/timeline.h"

struct weft_device_ops {
    const char *name;
    enum weft_status (*open)(enum weft_clock clock, struct weft_device **out,
                             struct weft_error *err);
    void (*close)(struct weft_device *device);
    void (*describe)(const struct weft_device *device, struct weft_text *out);     /* or NULL */
    const char *(*hardware)(const struct weft_device *device);                     /* or NULL */
    bool (*memory)(const struct weft_device *device, int64_t *bytes, bool *exact); /* or NULL */
    enum weft_status (*stream_create)(struct weft_device *device, const char *name, int32_t queue,
                                      struct weft_stream **out, struct weft_error *err);
    /* NULL: streams are threads of the host anyway. */
    enum weft_status (*stream_create_on_host)(struct weft_device *device, const char *name,
                                              int32_t queue, struct weft_stream **out,
                                              struct weft_error *err);
    void (*stream_destroy)(struct weft_stream *stream);
    enum weft_status (*event_create)(struct weft_device *device, struct weft_event **out,
                                     struct weft_error *err);
    void (*event_destroy)(struct weft_event *event);
    /* `bytes` is at most WEFT_TASK_BYTES. */
    void (*push)(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                 size_t bytes);
    void (*on_failure)(struct weft_stream *stream, weft_failure_fn *function, void *context);
    void (*stop)(struct weft_stream *stream);
    void (*record)(struct weft_stream *stream, struct weft_event *event);
    void (*wait)(struct weft_stream *stream, struct weft_event *event);
    void (*stamp)(struct weft_stream *stream, int64_t *ns);
    void (*advance)(struct weft_stream *stream, int64_t ns);
    enum weft_status (*contend)(struct weft_stream *stream, int lane, struct weft_rates rates,
                                struct weft_error *err);
    enum weft_status (*synchronise)(struct weft_stream *stream, struct weft_error *err);
    int64_t (*now)(const struct weft_stream *stream);
    void (*run)(struct weft_stream *stream, int64_t start_ns, int64_t ns);
    bool (*is_here)(const struct weft_stream *stream); /* NULL: streams have no thread */
};

#define WEFT_DEVICE_DECLARE(name) extern const struct weft_device_ops weft_device_##name;
WEFT_DEVICES(WEFT_DEVICE_DECLARE)
#undef WEFT_DEVICE_DECLARE

struct weft_device {
    const struct weft_device_ops *ops;
    enum weft_clock clock;
    struct weft_timeline *timeline; /* virtual clock with contention; otherwise NULL */
};

struct weft_stream {
    struct weft_device *device;
};

struct weft_event {
    struct weft_device *device;
};

#endif
