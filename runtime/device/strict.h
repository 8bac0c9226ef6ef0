/* The strict device wraps the CPU device and differs from it as much as possible, for tests of code
 * that issues work. Work begins only at a synchronise or when a stream is full, so an issuer cannot
 * rely on earlier effects. Arena addresses lie in an inaccessible range, at a fixed distance from
 * the memory. A direct access to the arena, outside of work, ends the process at once. */
#ifndef WEFT_RUNTIME_DEVICE_STRICT_H
#define WEFT_RUNTIME_DEVICE_STRICT_H

#include "runtime/device/backend.h"

/* Distance from an address to its memory: the largest possible arena. */
#define WEFT_STRICT_SHIFT_BYTES (INT64_C(1) << 36)

#endif
