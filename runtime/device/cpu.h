/* The CPU device: a stream is a worker thread that calls functions from a ring, one after another.
 */
#ifndef WEFT_RUNTIME_DEVICE_CPU_H
#define WEFT_RUNTIME_DEVICE_CPU_H

#include "runtime/device/backend.h"

extern const struct weft_device_ops weft_device_cpu;

#endif
