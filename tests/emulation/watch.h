/* SPDX-License-Identifier: Apache-2.0 */
/* Watched runs check every access of a kernel. Kernels are compiled with -fsanitize=thread, and its
 * calls of __tsan_readN and __tsan_writeN come to our functions. An operand is memory that a kernel
 * may touch, by the byte. Memory next to it is out of bounds, even if it belongs to the program.
 *
 * Two uses of memory are ordered by a barrier in between, by launches in order in one stream, or by
 * an event. Each stream and the host have a vector clock, so unordered uses are found in any
 * timing.
 *
 * Without watched kernels these functions do nothing. */
#ifndef WEFT_TESTS_EMULATION_WATCH_H
#define WEFT_TESTS_EMULATION_WATCH_H

#include "tests/emulation/emulator.h"

/* False if this program's kernels are not watched. */
bool emu_watched(void);

enum emu_mode {
    EMU_READ,   /* initialised and read-only */
    EMU_WRITE,  /* a result: starts without values, and the kernel must write all of it */
    EMU_BOTH,   /* initialised and writable */
    EMU_SCRATCH /* starts without values */
};
/* `name` must outlive the operand. */
void emu_watch_operand(const char *name, const void *data, size_t bytes, enum emu_mode mode);
/* Finds unwritten parts (EMU_UNWRITTEN), and forgets the operand that begins there. */
void emu_watch_release(const void *data);

/* Order. An event covers all earlier work of its stream. */
int emu_watch_record(cudaStream_t stream);
void emu_watch_wait(cudaStream_t stream, int event);
void emu_watch_synchronise(cudaStream_t stream);
/* The host reads or writes part of an operand. */
void emu_watch_host(const void *data, size_t bytes, bool write);

/* Accesses of one kernel's launches, by warp. A request is one instruction's accesses. */
struct emu_traffic {
    int64_t requests, sectors, least_sectors; /* of global memory, 32 bytes each */
    int64_t shared_requests, passes,
        least_passes;                  /* of shared memory; 1 if no bank has two words */
    int64_t bytes_read, bytes_written; /* sectors times 32 */
    int64_t least_read, least_written; /* bytes touched at all */
};
/* Returns the traffic of kernels with `name` in their names, since the last call. */
struct emu_traffic emu_watch_traffic(const char *name);

/* Sets limits, as multiples of the least, above which a launch finds EMU_SECTORS, EMU_BANKS or
 * EMU_TRAFFIC; 0: none. */
struct emu_watch_limits {
    double sectors, passes, bytes;
};
void emu_watch_limit(struct emu_watch_limits limits);

#endif
