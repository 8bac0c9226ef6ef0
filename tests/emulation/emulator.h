/* The emulation as those who drive it see it: which GPU it stands for, in which order blocks and
 * threads run, and what was found. Kernels run when they are launched, block by block, on the
 * calling thread; a block's threads are fibers. One thread of the system at a time may launch. */
#ifndef WEFT_TESTS_EMULATION_EMULATOR_H
#define WEFT_TESTS_EMULATION_EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

/* What can be wrong. Those from BOUNDS on are found in watched runs (watch.h). */
enum emu_check {
    EMU_LIMITS,    /* a launch that this GPU would refuse */
    EMU_BARRIER,   /* threads of a block wait at different barriers, or for one that has ended */
    EMU_MEETING,   /* the same of threads of a warp */
    EMU_BOUNDS,    /* an access outside of all operands and of the shared memory */
    EMU_READ_ONLY, /* a write to what is only to be read */
    EMU_ALIGNMENT, /* an address that is no multiple of the access */
    EMU_UNINITIALISED, /* a read of what nobody has written */
    EMU_UNWRITTEN,     /* a result of which a part was not written */
    EMU_RACE_THREADS,  /* two threads of a block, no barrier between them */
    EMU_RACE_BLOCKS,   /* two blocks of a launch */
    EMU_RACE_STREAMS,  /* two launches, or a launch and the host, that nothing orders */
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
/* Since they were last taken; the first of each check and launch, and how many more. */
std::vector<struct emu_finding> emu_take_findings(void);
/* Only checks whose bit is set are looked at; all, to begin with. */
void emu_enable(uint32_t checks);
bool emu_enabled(enum emu_check check);
/* Says what was found, once a launch and check. */
void emu_find(enum emu_check check, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As emu_find, and ends the launch: from a kernel it does not return. */
void emu_stop(enum emu_check check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Compute capabilities with their limits (CUDA C++ Programming Guide, table of technical
 * specifications per compute capability). */
struct emu_target {
    const char *name;
    int shared_bytes_of_block; /* with cudaFuncAttributeMaxDynamicSharedMemorySize; 48 KiB without
                                */
    int shared_bytes_of_sm;    /* of which a block takes 1 KiB more than it asks for */
    int threads_of_sm, blocks_of_sm;
    int registers_of_sm;
};
extern const struct emu_target emu_targets[];
extern const int emu_target_count;
const struct emu_target *emu_target_named(const char *name); /* NULL: there is none */
void emu_set_target(const struct emu_target *target);        /* sm_80 to begin with */

/* The order of blocks, and of the threads of a block when several could go on. */
enum emu_order { EMU_FORWARD, EMU_BACKWARD, EMU_SHUFFLED };
void emu_set_order(enum emu_order order, uint64_t seed);

/* Counts of all launches so far. */
struct emu_counts {
    int64_t launches, blocks, threads;
};
struct emu_counts emu_counted(void);
/* All kernels that were launched: their names, demangled, and the most threads and bytes of shared
 * memory a block. */
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
    uint32_t barriers;      /* that the block has passed */
    uint32_t warp_barriers; /* that its warp has passed */
    uint32_t launch;        /* counts from 1 */
    char *shared;
    size_t shared_bytes;
    const char *parameters; /* the launch's, which threads copy */
    size_t parameter_bytes;
};
extern struct emu_place emu_now;

/* Called at these moments, when not NULL: how watch.cc sees what happens. */
struct emu_hooks {
    void (*launch_begins)(cudaStream_t stream);
    void (*launch_ends)(void);
    void (*warp_ends)(void); /* the warp's threads have come to a barrier, or have ended */
    void (*atomic)(const void *address, size_t bytes);
    /* What a function like ldmatrix does for lane `lane` of the running warp. `site` tells calls
     * apart. */
    void (*access)(const void *address, size_t bytes, bool write, const void *site, uint32_t lane);
    /* The emulated kernel that another program's name of it stands for. */
    const void *(*code_of)(const void *code);
};
extern struct emu_hooks emu_hooks;

#endif
