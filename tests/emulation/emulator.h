/* SPDX-License-Identifier: Apache-2.0 */
/* Controls the emulation: the GPU, the order of blocks and threads, and the findings. Kernels run
 * at their launch, block by block, on the calling thread; a block's threads are fibers. Only one
 * system thread at a time may launch. */
#ifndef WEFT_TESTS_EMULATION_EMULATOR_H
#define WEFT_TESTS_EMULATION_EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

/* Checks. Those from EMU_BOUNDS on need watched runs (watch.h). */
enum emu_check {
    EMU_LIMITS,        /* a launch that this GPU would refuse */
    EMU_BARRIER,       /* threads of a block wait at different barriers, or for an ended thread */
    EMU_MEETING,       /* the same for threads of a warp */
    EMU_BOUNDS,        /* an access outside of all operands and shared memory */
    EMU_READ_ONLY,     /* a write to a read-only operand */
    EMU_ALIGNMENT,     /* an address that is no multiple of the access's size */
    EMU_UNINITIALISED, /* a read of memory that was never written */
    EMU_UNWRITTEN,     /* a result with an unwritten part */
    EMU_RACE_THREADS,  /* two threads of a block without a barrier in between */
    EMU_RACE_BLOCKS,   /* two blocks of a launch */
    EMU_RACE_STREAMS,  /* two unordered launches, or a launch and the host */
    EMU_SECTORS,       /* more sectors of memory than the bytes of a warp's request need */
    EMU_BANKS,         /* more passes over shared memory than its bytes need */
    EMU_TRAFFIC,       /* more bytes moved than the operands have */
    EMU_CHECK_COUNT
};
const char *emu_check_name(enum emu_check check);

struct emu_finding {
    enum emu_check check;
    std::string text;
};
/* Returns the findings since the last call: the first of each check and launch, with the number of
 * further ones. */
std::vector<struct emu_finding> emu_take_findings(void);
/* Enables only the checks with a set bit. All are enabled at first. */
void emu_enable(uint32_t checks);
bool emu_enabled(enum emu_check check);
/* Records a finding, once per launch and check. */
void emu_find(enum emu_check check, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* emu_find, and ends the launch: does not return from a kernel. */
void emu_stop(enum emu_check check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Compute capabilities with their limits (CUDA C++ Programming Guide, table of technical
 * specifications per compute capability). */
struct emu_target {
    const char *name;
    int shared_bytes_of_block; /* with cudaFuncAttributeMaxDynamicSharedMemorySize; otherwise 48
                                * KiB */
    int shared_bytes_of_sm;    /* a block uses 1 KiB more than it requests */
    int threads_of_sm, blocks_of_sm;
    int registers_of_sm;
};
extern const struct emu_target emu_targets[];
extern const int emu_target_count;
const struct emu_target *emu_target_named(const char *name); /* NULL: there is none */
void emu_set_target(const struct emu_target *target);        /* sm_80 at first */

/* The order of blocks, and of a block's threads if several can run. */
enum emu_order { EMU_FORWARD, EMU_BACKWARD, EMU_SHUFFLED };
void emu_set_order(enum emu_order order, uint64_t seed);

/* Counts of all launches so far. */
struct emu_counts {
    int64_t launches, blocks, threads;
};
struct emu_counts emu_counted(void);
/* All launched kernels: demangled names, and the most threads and shared bytes per block. */
struct emu_launched {
    std::string name;
    uint32_t threads;
    size_t shared_bytes;
};
std::vector<struct emu_launched> emu_kernels_launched(void);

/* The running thread of the running kernel. */
struct emu_place {
    const char *kernel; /* NULL: none runs */
    uint32_t block;     /* its index, x fastest */
    uint32_t thread, warp;
    uint32_t threads;       /* of the block */
    uint32_t blocks;        /* of the grid */
    uint32_t barriers;      /* passed by the block */
    uint32_t warp_barriers; /* passed by the warp */
    uint32_t launch;        /* counts from 1 */
    char *shared;
    size_t shared_bytes;
    const char *parameters; /* the launch's; threads copy them */
    size_t parameter_bytes;
};
extern struct emu_place emu_now;

/* Callbacks for watch.cc; each may be NULL. */
struct emu_hooks {
    void (*launch_begins)(cudaStream_t stream);
    void (*launch_ends)(void);
    void (*warp_ends)(void); /* the warp's threads reached a barrier or ended */
    void (*atomic)(const void *address, size_t bytes);
    /* An access of lane `lane` of the running warp by a function such as ldmatrix. `site`
     * identifies the call. */
    void (*access)(const void *address, size_t bytes, bool write, const void *site, uint32_t lane);
    /* Returns the emulated kernel for another program's address of it. */
    const void *(*code_of)(const void *code);
};
extern struct emu_hooks emu_hooks;

#endif
