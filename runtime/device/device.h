/* A device executes work: streams are in-order queues of it, events order work between streams.
 * A back end is a const table of functions found by name; "cpu" is always built: a stream is a
 * worker thread, work is a function call.
 *
 * Under the virtual clock work is really done, but time is as the program predicts: a stream's
 * clock advances by the declared nanoseconds, events carry the time at which they were recorded,
 * and a wait takes the later of the two. Streams that contend slow one another as base/lanes.h
 * says. A trace is then exact on any machine. */
#ifndef WEFT_RUNTIME_DEVICE_DEVICE_H
#define WEFT_RUNTIME_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lanes.h"
#include "base/status.h"
#include "base/text.h"

enum weft_clock { WEFT_CLOCK_WALL, WEFT_CLOCK_VIRTUAL, WEFT_CLOCK_COUNT };

struct weft_device;
struct weft_stream;
struct weft_event;

/* `name` of runtime/device/backends.h: "cpu", "strict", "cuda". WEFT_E_ENVIRONMENT when there is no
 * such device, naming those that there are, or when what it needs is not there. WEFT_E_USAGE when
 * it has no such clock. */
WEFT_MUST_USE enum weft_status weft_device_open(const char *name, enum weft_clock clock,
                                                struct weft_device **out, struct weft_error *err);
/* All streams and events must be destroyed before. Accepts NULL. */
void weft_device_close(struct weft_device *device);
/* Adds what there is to say of the device and its libraries: nothing of a CPU. */
void weft_device_describe(const struct weft_device *device, struct weft_text *out);
/* Bytes of the device's own memory that this process holds, its arenas and all that libraries took
 * included. *exact false: others' may be among them, for the system does not tell them apart.
 * False: the device has no memory of its own, as a CPU. */
bool weft_device_memory(const struct weft_device *device, int64_t *bytes, bool *exact);
enum weft_clock weft_device_clock(const struct weft_device *device);
enum weft_clock weft_stream_clock(const struct weft_stream *stream);

/* `queue` is the number of items (tasks, records, waits, stamps) that may be pushed and not yet
 * done; 0 = WEFT_STREAM_QUEUE. One more blocks the issuing thread, and with it every other stream
 * that it feeds, so whoever issues two streams in turn gives each room for all that it pushes
 * ahead. */
enum { WEFT_STREAM_QUEUE = 256, WEFT_STREAM_MOST_QUEUE = 1 << 20 };
WEFT_MUST_USE enum weft_status weft_stream_create(struct weft_device *device, const char *name,
                                                  int32_t queue, struct weft_stream **out,
                                                  struct weft_error *err);
void weft_stream_destroy(struct weft_stream *stream); /* waits until it is idle */
WEFT_MUST_USE enum weft_status weft_event_create(struct weft_device *device,
                                                 struct weft_event **out, struct weft_error *err);
void weft_event_destroy(struct weft_event *event);

/* Work. A task gets a copy of its argument (at most WEFT_TASK_BYTES) and the stream; its status, if
 * not WEFT_OK, makes the stream fail: later tasks are dropped, events still fire, so that nothing
 * hangs, and synchronise returns the first error. Called from one issuing thread. */
enum { WEFT_TASK_BYTES = 512 };
typedef enum weft_status weft_task_fn(struct weft_stream *stream, const void *argument,
                                      struct weft_error *err);
void weft_stream_push(struct weft_stream *stream, weft_task_fn *task, const void *argument,
                      size_t bytes);

/* `function` is called once, by the stream itself, when a task of it fails, before any event behind
 * that task fires. Set it before work is pushed. */
typedef void weft_failure_fn(void *context);
void weft_stream_on_failure(struct weft_stream *stream, weft_failure_fn *function, void *context);
/* From any thread: tasks that have not begun are dropped, as after a failure, but synchronise does
 * not speak of one. For work that has lost its purpose because another stream failed. */
void weft_stream_stop(struct weft_stream *stream);

/* As in CUDA: record marks the work pushed so far; wait makes later work of `stream` wait for the
 * latest record made before this call (nothing, when there was none). */
void weft_stream_record(struct weft_stream *stream, struct weft_event *event);
void weft_stream_wait(struct weft_stream *stream, struct weft_event *event);

/* Writes the stream's time (wall: monotonic ns; virtual: its clock) to *ns when it gets there. */
void weft_stream_stamp(struct weft_stream *stream, int64_t *ns);
/* Virtual clock: adds ns, in order. Nothing under the wall clock. */
void weft_stream_advance(struct weft_stream *stream, int64_t ns);

/* Virtual clock: the stream is one of the device's lanes, which slow one another by the
 * rates of each (compute's own are not looked at): all streams that wait for one another, or none.
 * Before anything is pushed on it. Then all that one step does must be pushed before any of it is
 * synchronised. Nothing under the wall clock. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_stream_contend(struct weft_stream *stream, int lane,
                                                   struct weft_rates rates, struct weft_error *err);

/* Blocks until all work pushed so far is done; the first error of any of its tasks, if any. */
WEFT_MUST_USE enum weft_status weft_stream_synchronise(struct weft_stream *stream,
                                                       struct weft_error *err);

/* For tasks, inside their stream: the stream's time; setting it (virtual clock); work of ns from
 * start_ns on (virtual clock; a collective that begins when the last rank arrives). */
int64_t weft_stream_now(const struct weft_stream *stream);
/* Whether the thread that asks is the one that does the stream's work. For signal handlers too. */
bool weft_stream_is_here(const struct weft_stream *stream);
void weft_stream_set_now(struct weft_stream *stream, int64_t ns);
void weft_stream_run(struct weft_stream *stream, int64_t start_ns, int64_t ns);

#endif
