/* Watched runs look at every access of a kernel that was compiled with -fsanitize=thread: the
 * compiler calls __tsan_readN and __tsan_writeN, which are ours. An operand is memory that a kernel
 * may touch, by the byte: what lies beside it is out of bounds even if it belongs to the program.
 *
 * A use of memory is ordered behind another by a barrier in between, by being launched behind it in
 * one stream, or by an event. Each stream and the host have a vector clock, so what nothing orders
 * is found whatever the timing was.
 *
 * Where kernels are not watched these functions do nothing. */
#ifndef WEFT_TESTS_EMULATION_WATCH_H
#define WEFT_TESTS_EMULATION_WATCH_H

#include "tests/emulation/emulator.h"

/* False: this program's kernels are not watched. */
bool emu_watched(void);

enum emu_mode {
    EMU_READ,   /* is initialised, and not to be written */
    EMU_WRITE,  /* a result: holds nothing yet, and all of it is to be written */
    EMU_BOTH,   /* is initialised, and may be written */
    EMU_SCRATCH /* holds nothing yet */
};
/* `name` outlives the operand. */
void emu_watch_operand(const char *name, const void *data, size_t bytes, enum emu_mode mode);
/* Finds what has not been written (EMU_UNWRITTEN), then forgets the operand that begins there. */
void emu_watch_release(const void *data);

/* Order. An event stands for all that its stream was given before. */
int emu_watch_record(cudaStream_t stream);
void emu_watch_wait(cudaStream_t stream, int event);
void emu_watch_synchronise(cudaStream_t stream);
/* The host reads or writes part of an operand. */
void emu_watch_host(const void *data, size_t bytes, bool write);

/* Accesses of one kernel's launches, by warp: a request is what one instruction asks for. */
struct emu_traffic {
    int64_t requests, sectors, least_sectors; /* of global memory, 32 bytes each */
    int64_t shared_requests, passes,
        least_passes;                  /* of shared memory: 1 where no bank has two words */
    int64_t bytes_read, bytes_written; /* sectors times 32 */
    int64_t least_read, least_written; /* bytes that were touched at all */
};
/* Traffic of all launches of the kernels whose names contain `name` since it was last asked. */
struct emu_traffic emu_watch_traffic(const char *name);

/* From now on a launch with more than so many times the least finds EMU_SECTORS, EMU_BANKS or
 * EMU_TRAFFIC; 0: no limit. */
struct emu_watch_limits {
    double sectors, passes, bytes;
};
void emu_watch_limit(struct emu_watch_limits limits);

#endif
