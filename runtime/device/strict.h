/* The strict device is the CPU made as unlike one as can be, for tests of whoever issues work. Work
 * begins only when somebody synchronises, or a stream is full: who issues cannot count on any of it
 * before. Addresses that work is given lie in a range that nobody may touch, so far below the
 * memory behind them: who reads or writes the arena but by work dies of it at once. */
#ifndef WEFT_RUNTIME_DEVICE_STRICT_H
#define WEFT_RUNTIME_DEVICE_STRICT_H

#include "runtime/device/backend.h"

/* From an address to its memory: the most that an arena may have. */
#define WEFT_STRICT_SHIFT_BYTES (INT64_C(1) << 36)

#endif
