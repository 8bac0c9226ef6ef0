/* SPDX-License-Identifier: Apache-2.0 */
/* Types that a device and its back ends share. */
#ifndef WEFT_RUNTIME_DEVICE_TASK_H
#define WEFT_RUNTIME_DEVICE_TASK_H

#include "base/status.h"

enum weft_clock { WEFT_CLOCK_WALL, WEFT_CLOCK_VIRTUAL, WEFT_CLOCK_COUNT };

struct weft_device;
struct weft_event;
struct weft_stream;

/* Work of a stream. */
typedef enum weft_status weft_task_fn(struct weft_stream *stream, const void *argument,
                                      struct weft_error *err);
/* Called when a stream's first task fails. */
typedef void weft_failure_fn(void *context);

#endif
