/* SPDX-License-Identifier: Apache-2.0 */
/* The strict device is a CPU for tests of the code that issues work. Its work begins only when a
 * caller synchronises or a stream is full. Its addresses lie in a range that no process may touch,
 * WEFT_STRICT_SHIFT_BYTES below their memory: a read or write of the arena outside of work ends the
 * process.
 *
 * A program that links strict_*.c with strict_link_args (meson.build) opens it by the name
 * "strict": the linker gives calls of weft_device_open, weft_arena_open and weft_nn_open to these
 * files. */
#ifndef WEFT_TESTS_RUNTIME_PARTS_STRICT_H
#define WEFT_TESTS_RUNTIME_PARTS_STRICT_H

#include <stdint.h>

/* From an address to its memory. An arena may have at most as many bytes. */
#define WEFT_STRICT_SHIFT_BYTES (INT64_C(1) << 36)

#endif
