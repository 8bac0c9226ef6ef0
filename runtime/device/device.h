/* SPDX-License-Identifier: Apache-2.0 */
/* A device executes work. Streams are in-order queues of work, and events order work between
 * streams. A back end is a const table of functions, found by name. "cpu" is always built: a stream
 * is a worker thread, and work is a function call.
 *
 * Under the virtual clock work is done for real, and time is as the program predicts. A stream's
 * clock advances by the declared nanoseconds. Events carry the time of their record, and a wait
 * takes the later of the two. Contending streams slow one another (base/lanes.h). Traces are exact
 * on any machine. */
#ifndef WEFT_RUNTIME_DEVICE_DEVICE_H
#define WEFT_RUNTIME_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lanes.h"
#include "base/status.h"
#include "base/text.h"
#include "runtime/device/task.h"

/* Opens the device `name` of runtime/device/backends.h: "cpu", "strict" or "cuda".
 * WEFT_E_ENVIRONMENT if there is no such device (the message lists all), or if something that it
 * needs is missing. WEFT_E_USAGE if it lacks the clock. Free with weft_device_close. */
WEFT_MUST_USE enum weft_status weft_device_open(const char *name, enum weft_clock clock,
                                                struct weft_device **out, struct weft_error *err);
/* Destroy all streams and events first. Accepts NULL. */
void weft_device_close(struct weft_device *device);
/* Appends facts about the device and its libraries. A CPU adds nothing. */
void weft_device_describe(const struct weft_device *device, struct weft_text *out);
/* The name of the hardware that decides times, as "NVIDIA H100 80GB HBM3"; equal in all processes
 * and at all times. NULL: it has no name here, as a CPU. The device owns it. */
const char *weft_device_hardware(const struct weft_device *device);
/* Bytes of device memory held by this process, with its arenas and its libraries. *exact is false
 * if other processes' bytes may be included. Returns false if the device has no memory of its own,
 * as a CPU. */
bool weft_device_memory(const struct weft_device *device, int64_t *bytes, bool *exact);
enum weft_clock weft_device_clock(const struct weft_device *device);
enum weft_clock weft_stream_clock(const struct weft_stream *stream);

/* Creates a stream. `queue` is the number of items (tasks, records, waits, stamps) that may be
 * pushed and not yet done; 0 means WEFT_STREAM_QUEUE. Another push blocks the issuing thread, and
 * with it all streams that it feeds. An issuer of several streams therefore gives each room for all
 * that it pushes ahead. */
enum { WEFT_STREAM_QUEUE = 256, WEFT_STREAM_MOST_QUEUE = 1 << 20 };
WEFT_MUST_USE enum weft_status weft_stream_create(struct weft_device *device, const char *name,
                                                  int32_t queue, struct weft_stream **out,
                                                  struct weft_error *err);
/* The same for a stream whose tasks wait for a disk, or compute for long: a thread of the host does
 * its work. On a GPU the functions of a stream must be short, because CUDA may call one at a time.
 * Such a stream takes tasks, copies and fills, and no kernels or collectives. */
WEFT_MUST_USE enum weft_status weft_stream_create_on_host(struct weft_device *device,
                                                          const char *name, int32_t queue,
                                                          struct weft_stream **out,
                                                          struct weft_error *err);
void weft_stream_destroy(struct weft_stream *stream); /* waits until it is idle */
WEFT_MUST_USE enum weft_status weft_event_create(struct weft_device *device,
                                                 struct weft_event **out, struct weft_error *err);
void weft_event_destroy(struct weft_event *event);

/* Pushes work. A task gets a copy of its argument (at most WEFT_TASK_BYTES) and the stream. A
 * status other than WEFT_OK fails the stream: later tasks are dropped, events still fire, so
 * nothing hangs, and synchronise returns the first error. Call it from one issuing thread. */
enum { WEFT_TASK_BYTES = 512 };
void weft_stream_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                      size_t bytes);

/* Sets a function that the stream calls once, when its first task fails. The call comes before
 * later events fire. Set it before any push. */
void weft_stream_on_failure(struct weft_stream *stream, weft_failure_fn *function, void *context);
/* Drops tasks that have not begun, as after a failure, but synchronise reports none. Any thread may
 * call it. Use it for work that is useless because another stream failed. */
void weft_stream_stop(struct weft_stream *stream);

/* Both work as in CUDA. `record` marks the work pushed so far. `wait` makes later work of `stream`
 * wait for the latest record before this call, if there is one. */
void weft_stream_record(struct weft_stream *stream, struct weft_event *event);
void weft_stream_wait(struct weft_stream *stream, struct weft_event *event);

/* Writes the stream's time to *ns when the stream reaches this item. The wall clock is
 * monotonic. */
void weft_stream_stamp(struct weft_stream *stream, int64_t *ns);
/* Adds ns to the virtual clock, in order. Under the wall clock it does nothing. */
void weft_stream_advance(struct weft_stream *stream, int64_t ns);

/* Makes the stream a lane of the device, under the virtual clock. Lanes slow one another by their
 * rates; the rates of compute are ignored. Attach either all streams that wait for one another, or
 * none. Call it before any push. Then push all work of a step before any synchronise. Under the
 * wall clock it does nothing. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_stream_contend(struct weft_stream *stream, int lane,
                                                   struct weft_rates rates, struct weft_error *err);

/* Blocks until all work pushed so far is done. Returns the first error of its tasks. */
WEFT_MUST_USE enum weft_status weft_stream_synchronise(struct weft_stream *stream,
                                                       struct weft_error *err);

/* The stream's time, for tasks inside their stream. */
int64_t weft_stream_now(const struct weft_stream *stream);
/* True in the thread that does the stream's work. Signal handlers may call it. */
bool weft_stream_is_here(const struct weft_stream *stream);
/* For tasks, under the virtual clock: works for ns from start_ns on. A collective begins when the
 * last rank arrives. */
void weft_stream_run(struct weft_stream *stream, int64_t start_ns, int64_t ns);

#endif
