/* SPDX-License-Identifier: Apache-2.0 */
/* Launches run a grid's blocks one after the other. A block's threads are fibers that wait for one
 * another. */
#include "tests/emulation/run.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <map>
#include <set>

#include "tests/emulation/emu.h"
#include "tests/emulation/fiber.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)
#endif

enum { MOST_THREADS = 1024, MOST_WARPS = MOST_THREADS / EMU_WARP };
enum thread_state { READY, AT_BARRIER, IN_MEETING, ENDED };

struct thread {
    struct emu_fiber fiber;
    enum thread_state state;
    const char *what, *file; /* place of the wait */
    int line;
};

/* Threads of a warp that wait for the others of `mask`. */
struct meeting {
    unsigned mask, arrived;
    const char *what, *file;
    int line;
    void *brought[EMU_WARP];
};

struct warp {
    struct meeting meetings[EMU_WARP];
    int n_meetings;
    uint32_t barriers;
};

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
struct emu_place emu_now;
struct emu_hooks emu_hooks;

static struct thread threads[MOST_THREADS];
static struct warp warps[MOST_WARPS];
static struct emu_fiber scheduler;
static struct emu_kernel running;
static bool abandoned;
static const struct emu_target *target = &emu_targets[0];
static enum emu_order order;
static uint64_t order_state = 1;
static struct emu_counts counts;
static std::map<const void *, struct emu_launched> *launched;
static std::map<const void *, int> *shared_allowed;

uint32_t emu_run_launches(void)
{
    return (uint32_t)counts.launches;
}

struct emu_counts emu_counted(void)
{
    return counts;
}

void emu_set_target(const struct emu_target *wanted)
{
    target = wanted;
    if (shared_allowed != NULL) shared_allowed->clear();
}

void emu_set_order(enum emu_order wanted, uint64_t seed)
{
    order = wanted;
    order_state = seed * 2 + 1;
}

std::vector<struct emu_launched> emu_kernels_launched(void)
{
    std::vector<struct emu_launched> all;
    if (launched == NULL) return all;
    for (const auto &entry : *launched) {
        all.push_back(entry.second);
    }
    return all;
}

static struct emu_launched *launched_kernel(const void *code)
{
    if (launched == NULL) launched = new std::map<const void *, struct emu_launched>();
    struct emu_launched *kernel = &(*launched)[code];
    if (kernel->name.empty()) {
        Dl_info info;
        const bool found = dladdr(code, &info) != 0 && info.dli_sname != NULL;
        kernel->name = found ? info.dli_sname : "a kernel";
        char *readable = abi::__cxa_demangle(kernel->name.c_str(), NULL, NULL, NULL);
        if (readable != NULL) kernel->name = readable;
        free(readable);
    }
    return kernel;
}

/* xorshift64 (Marsaglia 2003) */
static uint32_t random_below(uint32_t below)
{
    order_state ^= order_state << 13;
    order_state ^= order_state >> 7;
    order_state ^= order_state << 17;
    return (uint32_t)((order_state >> 33) % below);
}

/* Fills the numbers below n in the order of their run. */
static void order_numbers(uint32_t n, std::vector<uint32_t> &numbers)
{
    numbers.resize(n);
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = order == EMU_BACKWARD ? n - 1 - i : i;
    }
    for (uint32_t i = n; order == EMU_SHUFFLED && i > 1; i--) {
        std::swap(numbers[i - 1], numbers[random_below(i)]);
    }
}

/* Threads */

void emu_run_abandon(void)
{
    if (emu_now.kernel == NULL) return;
    abandoned = true;
    emu_fiber_switch(&threads[emu_now.thread].fiber, &scheduler, true);
}

static void thread_waits(enum thread_state state, const char *what, const char *file, int line)
{
    struct thread *thread = &threads[emu_now.thread];
    thread->state = state;
    thread->what = what;
    thread->file = file;
    thread->line = line;
    emu_fiber_switch(&thread->fiber, &scheduler, false);
}

static void run_thread(void)
{
    running.call(running.code, running.parameters);
    threads[emu_now.thread].state = ENDED;
    emu_fiber_switch(&threads[emu_now.thread].fiber, &scheduler, true);
}

static uint3 index_of(uint32_t number, dim3 size)
{
    return uint3{number % size.x, number / size.x % size.y, number / size.x / size.y};
}

static void go_on(uint32_t number)
{
    emu_now.thread = number;
    emu_now.warp = number / EMU_WARP;
    emu_now.warp_barriers = warps[emu_now.warp].barriers;
    threadIdx = index_of(number, blockDim);
    emu_fiber_switch(&scheduler, &threads[number].fiber, false);
}

/* Runs the warp until no thread can go on by itself. */
static void run_warp(uint32_t warp, std::vector<uint32_t> &lanes)
{
    bool ran = true;
    while (ran && !abandoned) {
        ran = false;
        for (uint32_t i = 0; i < lanes.size() && !abandoned; i++) {
            const uint32_t number = warp * EMU_WARP + lanes[i];
            if (number >= emu_now.threads || threads[number].state != READY) continue;
            go_on(number);
            ran = true;
        }
    }
    if (!abandoned && emu_hooks.warp_ends != NULL) emu_hooks.warp_ends();
}

/* Barriers */

void __syncthreads(const char *file, int line)
{
    thread_waits(AT_BARRIER, "__syncthreads", file, line);
}

static int count_threads(enum thread_state state)
{
    int n = 0;
    for (uint32_t i = 0; i < emu_now.threads; i++) {
        n += threads[i].state == state;
    }
    return n;
}

static uint32_t first_thread(enum thread_state state)
{
    uint32_t i = 0;
    while (threads[i].state != state) {
        i++;
    }
    return i;
}

/* Reports the waiting threads if none can go on. False: all wait at one barrier. */
static bool is_stuck(void)
{
    const int meeting = count_threads(IN_MEETING), ended = count_threads(ENDED);
    if (meeting > 0) {
        const uint32_t i = first_thread(IN_MEETING);
        const struct thread *t = &threads[i];
        emu_now.thread = i;
        emu_find(EMU_MEETING, "waits in %s (%s:%d) for threads of its warp that do not come",
                 t->what, t->file, t->line);
        return true;
    }
    const uint32_t first = first_thread(AT_BARRIER);
    const struct thread *a = &threads[first];
    emu_now.thread = first;
    if (ended > 0) {
        emu_find(EMU_BARRIER, "waits at the barrier of %s:%d for %d threads that have ended",
                 a->file, a->line, ended);
        return emu_enabled(EMU_BARRIER);
    }
    for (uint32_t i = first + 1; i < emu_now.threads; i++) {
        const struct thread *b = &threads[i];
        if (a->line == b->line && strcmp(a->file, b->file) == 0) continue;
        emu_find(EMU_BARRIER, "waits at the barrier of %s:%d, and thread %u at that of %s:%d",
                 a->file, a->line, i, b->file, b->line);
        return emu_enabled(EMU_BARRIER);
    }
    return false;
}

static void pass_barrier(void)
{
    for (uint32_t i = 0; i < emu_now.threads; i++) {
        if (threads[i].state == AT_BARRIER) threads[i].state = READY;
    }
    emu_now.barriers++;
}

/* Meetings of a warp */

int emu_lane(void)
{
    return (int)(emu_now.thread % EMU_WARP);
}

static struct meeting *meeting_of(struct warp *warp, const char *what, unsigned mask,
                                  const char *file, int line)
{
    for (int i = 0; i < warp->n_meetings; i++) {
        struct meeting *m = &warp->meetings[i];
        if ((m->mask & mask) == 0) continue;
        const bool same = m->mask == mask && m->line == line && strcmp(m->what, what) == 0 &&
                          strcmp(m->file, file) == 0;
        if (same) return m;
        emu_stop(EMU_MEETING, "is in %s (%s:%d, mask %08x), others of its warp in %s (%s:%d, %08x)",
                 what, file, line, mask, m->what, m->file, m->line, m->mask);
    }
    struct meeting *m = &warp->meetings[warp->n_meetings++];
    *m = meeting{mask, 0, what, file, line, {}};
    return m;
}

void emu_meet(const char *what, unsigned mask, void *brought, emu_work *work, const char *file,
              int line)
{
    struct warp *warp = &warps[emu_now.warp];
    const int lane = emu_lane();
    const uint32_t of_warp = emu_now.threads - emu_now.warp * EMU_WARP;
    const unsigned all = of_warp >= EMU_WARP ? ~0u : (1u << of_warp) - 1;
    if ((mask >> lane & 1) == 0 || (mask & ~all) != 0) {
        emu_stop(EMU_MEETING, "has lane %d and calls %s (%s:%d) with mask %08x, of %u threads",
                 lane, what, file, line, mask, of_warp);
    }
    struct meeting *m = meeting_of(warp, what, mask, file, line);
    m->brought[lane] = brought;
    m->arrived |= 1u << lane;
    if (m->arrived != mask) {
        thread_waits(IN_MEETING, what, file, line);
        return;
    }
    const struct meeting complete = *m;
    *m = warp->meetings[--warp->n_meetings];
    if (work != NULL) work(complete.brought, mask);
    /* __syncwarp is the only function here that orders memory. */
    if (work == NULL && mask == all) emu_now.warp_barriers = ++warp->barriers;
    for (int i = 0; i < EMU_WARP; i++) {
        if (i != lane && (mask >> i & 1) != 0) threads[emu_now.warp * EMU_WARP + i].state = READY;
    }
}

/* Blocks */

static void run_block(uint32_t number)
{
    std::vector<uint32_t> order_of_warps, order_of_lanes;
    const uint32_t n_warps = (emu_now.threads + EMU_WARP - 1) / EMU_WARP;
    blockIdx = index_of(number, gridDim);
    emu_now.block = number;
    emu_now.barriers = 0;
    /* All bits set is a NaN of every type. */
    memset(emu_now.shared, 0xff, emu_now.shared_bytes);
    emu_copies_forget();
    for (uint32_t i = 0; i < n_warps; i++) {
        warps[i].n_meetings = 0;
        warps[i].barriers = 0;
    }
    for (uint32_t i = 0; i < emu_now.threads; i++) {
        threads[i].state = READY;
        emu_fiber_begin(&threads[i].fiber, (int)i, run_thread);
    }
    for (;;) {
        order_numbers(n_warps, order_of_warps);
        for (uint32_t i = 0; i < n_warps && !abandoned; i++) {
            order_numbers(EMU_WARP, order_of_lanes);
            run_warp(order_of_warps[i], order_of_lanes);
        }
        if (abandoned || count_threads(ENDED) == (int)emu_now.threads) return;
        if (is_stuck()) {
            abandoned = true;
            return;
        }
        pass_barrier();
    }
}

bool emu_run_refuses(const void *code, dim3 grid, dim3 block, size_t shared_bytes)
{
    const uint64_t n_threads = (uint64_t)block.x * block.y * block.z;
    const uint64_t n_blocks = (uint64_t)grid.x * grid.y * grid.z;
    const bool raised = shared_allowed != NULL && shared_allowed->count(code) > 0;
    const size_t allowed = raised ? (size_t)shared_allowed->at(code) : 48 << 10;
    const char *why = NULL;
    if (n_threads == 0 || n_blocks == 0) why = "has no threads";
    if (n_threads > MOST_THREADS || block.x > 1024 || block.y > 1024 || block.z > 64) {
        why = "has more threads a block than 1024";
    }
    if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) why = "has too large a grid";
    if (shared_bytes > (size_t)target->shared_bytes_of_block) {
        why = "has more shared memory than a block can have";
    } else if (shared_bytes > allowed) {
        why = "has more shared memory than was asked for by cudaFuncSetAttribute";
    }
    if (why == NULL) return false;
    emu_find(EMU_LIMITS, "%s: a launch of grid %u x %u x %u, block %u x %u x %u, %zu bytes %s (%s)",
             launched_kernel(code)->name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z,
             shared_bytes, why, target->name);
    return true;
}

static char *shared_of_launch(size_t bytes)
{
    const size_t align = 1024, whole = (bytes / align + 1) * align;
    char *memory = (char *)aligned_alloc(align, whole);
    if (memory == NULL) abort();
    ASAN_POISON_MEMORY_REGION(memory + bytes, whole - bytes);
    return memory;
}

cudaError_t emu_launch(const struct emu_kernel *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                       cudaStream_t stream)
{
    counts.launches++;
    if (emu_run_refuses(kernel->code, grid, block, shared_bytes)) return cudaErrorInvalidValue;
    emu_now = emu_place();
    struct emu_launched *entry = launched_kernel(kernel->code);
    entry->threads = std::max(entry->threads, block.x * block.y * block.z);
    entry->shared_bytes = std::max(entry->shared_bytes, shared_bytes);
    emu_now.kernel = entry->name.c_str();
    emu_now.launch = (uint32_t)counts.launches;
    emu_now.threads = block.x * block.y * block.z;
    emu_now.blocks = grid.x * grid.y * grid.z;
    emu_now.shared = shared_of_launch(shared_bytes);
    emu_now.shared_bytes = shared_bytes;
    emu_now.parameters = (const char *)kernel->parameters;
    emu_now.parameter_bytes = kernel->parameter_bytes;
    running = *kernel;
    blockDim = block;
    gridDim = grid;
    abandoned = false;
    if (emu_hooks.launch_begins != NULL) emu_hooks.launch_begins(stream);
    std::vector<uint32_t> blocks;
    order_numbers(emu_now.blocks, blocks);
    for (size_t i = 0; i < blocks.size() && !abandoned; i++) {
        run_block(blocks[i]);
        counts.blocks++;
        counts.threads += emu_now.threads;
    }
    if (emu_hooks.launch_ends != NULL) emu_hooks.launch_ends();
    free(emu_now.shared);
    emu_now.kernel = NULL;
    return abandoned ? cudaErrorLaunchFailure : cudaSuccess;
}

extern "C" cudaError_t cudaFuncSetAttribute(const void *code, enum cudaFuncAttribute attribute,
                                            int value)
{
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaErrorInvalidValue;
    if (emu_hooks.code_of != NULL) code = emu_hooks.code_of(code);
    if (value < 0 || value > target->shared_bytes_of_block) {
        emu_find(EMU_LIMITS, "%s: asks for %d bytes of shared memory a block, and %s has %d",
                 launched_kernel(code)->name.c_str(), value, target->name,
                 target->shared_bytes_of_block);
        return cudaErrorInvalidValue;
    }
    if (shared_allowed == NULL) shared_allowed = new std::map<const void *, int>();
    (*shared_allowed)[code] = value;
    return cudaSuccess;
}

/* Filled before main, in an unknown order. */
static std::vector<const struct emu_signature *> &signatures(void)
{
    static std::vector<const struct emu_signature *> all;
    return all;
}

bool emu_signature_add(const struct emu_signature *signature)
{
    signatures().push_back(signature);
    return true;
}

const std::vector<const struct emu_signature *> &emu_run_signatures(void)
{
    return signatures();
}

void *emu_shared_memory(void)
{
    return emu_now.shared;
}
