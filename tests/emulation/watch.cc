/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulation/watch.h"

#include <algorithm>
#include <map>
#include <string>

#include "tests/emulation/fiber.h"
#include "tests/emulation/order.h"
#include "tests/emulation/requests.h"
#include "tests/emulation/run.h"

/* The last use of a byte. */
struct use {
    uint32_t launch, block, barriers, warp_barriers; /* launch 0: none */
    uint32_t thread;
    bool atomic;
};

/* Keeps two readers, of different threads and if possible warps: a write may be unordered with
 * either. */
struct cell {
    struct use write, read, other_read;
    bool initialised;
};

struct operand {
    const char *name, *begin, *end;
    enum emu_mode mode;
    std::vector<struct cell> cells;
};

static std::map<uintptr_t, struct operand> operands; /* by start address */
static struct operand *last_operand;
static std::vector<struct cell> shared_cells;
static std::map<std::string, struct emu_traffic> all_traffic;
static struct emu_traffic of_launch;
static struct emu_watch_limits limits;

bool emu_watched(void)
{
    return true;
}

void emu_watch_limit(struct emu_watch_limits wanted)
{
    limits = wanted;
}

void emu_watch_operand(const char *name, const void *data, size_t bytes, enum emu_mode mode)
{
    const char *begin = (const char *)data;
    struct operand operand = {name, begin, begin + bytes, mode, {}};
    operand.cells.resize(bytes);
    for (struct cell &cell : operand.cells) {
        cell.initialised = mode == EMU_READ || mode == EMU_BOTH;
    }
    operands[(uintptr_t)begin] = operand;
    last_operand = NULL;
}

void emu_watch_release(const void *data)
{
    const auto found = operands.find((uintptr_t)data);
    if (found == operands.end()) return;
    const struct operand &operand = found->second;
    const size_t n = operand.cells.size();
    size_t i = 0;
    while (operand.mode == EMU_WRITE && i < n && operand.cells[i].initialised) {
        i++;
    }
    if (operand.mode == EMU_WRITE && i < n) {
        emu_find(EMU_UNWRITTEN, "byte %zu of the %zu of %s was not written", i, n, operand.name);
    }
    operands.erase(found);
    last_operand = NULL;
}

static struct operand *operand_at(const char *address)
{
    if (last_operand != NULL && address >= last_operand->begin && address < last_operand->end) {
        return last_operand;
    }
    auto next = operands.upper_bound((uintptr_t)address);
    if (next == operands.begin()) return NULL;
    struct operand *operand = &(--next)->second;
    if (address >= operand->end) return NULL;
    return last_operand = operand;
}

/* Races */

static const char *const race_texts[] = {
    "%s byte %zu of %s, which thread %u of this block %s with no barrier in between",
    "%s byte %zu of %s, which block %u of this launch %s",
    "%s byte %zu of %s, which launch %u, that nothing orders, %s",
};

struct access {
    const char *what; /* the operand's name */
    bool write, atomic;
    struct use use;
};

/* Reports if `now` and an earlier use of the same byte are not ordered. */
static void compare_uses(const struct access *now, const struct use *old, bool old_writes,
                         size_t byte)
{
    const struct use *use = &now->use;
    if (old->launch == 0 || (old->atomic && now->atomic)) return;
    const char *verb = now->write ? "writes" : "reads";
    const char *past = old_writes ? "wrote" : "read";
    if (old->launch != use->launch) {
        if (emu_order_is_behind(use->launch, old->launch)) return;
        emu_find(EMU_RACE_STREAMS, race_texts[2], verb, byte, now->what, old->launch, past);
    } else if (old->block != use->block) {
        emu_find(EMU_RACE_BLOCKS, race_texts[1], verb, byte, now->what, old->block, past);
    } else if (old->thread != use->thread && old->barriers == use->barriers) {
        const bool one_warp = old->thread / 32 == use->thread / 32;
        if (one_warp && old->warp_barriers < use->warp_barriers) return;
        emu_find(EMU_RACE_THREADS, race_texts[0], verb, byte, now->what, old->thread, past);
    }
}

static void keep_read(struct cell *cell, const struct use *use)
{
    const struct use *last = &cell->read;
    if (last->launch != use->launch || last->block != use->block || last->thread != use->thread) {
        cell->other_read = cell->read;
    }
    cell->read = *use;
}

static void use_cell(struct cell *cell, const struct access *access, size_t byte)
{
    if ((!access->write || access->atomic) && !cell->initialised) {
        emu_find(EMU_UNINITIALISED, "reads byte %zu of %s, which holds nothing yet", byte,
                 access->what);
    }
    compare_uses(access, &cell->write, true, byte);
    if (access->write) {
        compare_uses(access, &cell->read, false, byte);
        compare_uses(access, &cell->other_read, false, byte);
        of_launch.least_written += cell->write.launch != access->use.launch;
        cell->write = access->use;
        cell->initialised = true;
    } else {
        of_launch.least_read +=
            cell->read.launch != access->use.launch && cell->write.launch != access->use.launch;
        keep_read(cell, &access->use);
    }
}

static struct use use_now(bool atomic)
{
    return (struct use){emu_now.launch,        emu_now.block,  emu_now.barriers,
                        emu_now.warp_barriers, emu_now.thread, atomic};
}

static void watch_shared(size_t at, size_t bytes, bool write, bool atomic)
{
    const struct access access = {"shared memory", write, atomic, use_now(atomic)};
    const struct emu_traffic before = of_launch;
    for (size_t i = at; i < at + bytes; i++) {
        struct cell *cell = &shared_cells[i];
        /* Another block's values are gone. */
        const struct use *last = cell->write.launch != 0 ? &cell->write : &cell->read;
        if (last->launch != access.use.launch || last->block != access.use.block) *cell = {};
        use_cell(cell, &access, i);
    }
    of_launch = before;
}

static void watch_operand(struct operand *operand, const char *address, size_t bytes, bool write,
                          bool atomic)
{
    const struct access access = {operand->name, write, atomic, use_now(atomic)};
    const size_t at = (size_t)(address - operand->begin);
    if (write && operand->mode == EMU_READ) {
        emu_find(EMU_READ_ONLY, "writes byte %zu of %s, which is only to be read", at,
                 operand->name);
    }
    for (size_t i = at; i < at + bytes; i++) {
        use_cell(&operand->cells[i], &access, i);
    }
}

/* True for the fiber's stack, the launch's parameters and the program's constants. */
extern "C" char __executable_start, end;
static bool is_own(const char *address, bool write)
{
    return emu_fiber_owns(address) ||
           (address >= emu_now.parameters &&
            address < emu_now.parameters + emu_now.parameter_bytes) ||
           (!write && address >= &__executable_start && address < &end);
}

static void out_of_bounds(const char *address, size_t bytes, bool write)
{
    const struct operand *near = NULL;
    auto next = operands.upper_bound((uintptr_t)address);
    if (next != operands.begin()) near = &(--next)->second;
    if (near != NULL && address - near->end < 4096) {
        emu_stop(EMU_BOUNDS, "%s %zu bytes at %td of %s, which has %zu", write ? "writes" : "reads",
                 bytes, address - near->begin, near->name, near->cells.size());
    }
    const ptrdiff_t in_shared = address - emu_now.shared;
    if (in_shared >= 0 && in_shared < 1 << 20) {
        emu_stop(EMU_BOUNDS, "%s %zu bytes at %td of its shared memory, which has %zu",
                 write ? "writes" : "reads", bytes, in_shared, emu_now.shared_bytes);
    }
    emu_stop(EMU_BOUNDS, "%s %zu bytes at %p, which is in no operand", write ? "writes" : "reads",
             bytes, (const void *)address);
}

static void watch_access(const void *at, size_t bytes, bool write, bool atomic, const void *site,
                         uint32_t lane)
{
    const char *address = (const char *)at;
    if (emu_now.kernel == NULL) return;
    const ptrdiff_t in_shared = address - emu_now.shared;
    const bool shared =
        in_shared >= 0 && in_shared + (ptrdiff_t)bytes <= (ptrdiff_t)emu_now.shared_bytes;
    struct operand *operand = shared ? NULL : operand_at(address);
    if (!shared && (operand == NULL || address + bytes > operand->end)) {
        if (operand == NULL && is_own(address, write)) return;
        out_of_bounds(address, bytes, write);
    }
    if ((uintptr_t)at % bytes != 0) {
        emu_stop(EMU_ALIGNMENT, "%s %zu bytes at %td of %s, no multiple of that",
                 write ? "writes" : "reads", bytes, shared ? in_shared : address - operand->begin,
                 shared ? "shared memory" : operand->name);
    }
    if (!atomic) emu_requests_add(site, lane, at, bytes, write, shared);
    if (shared) {
        watch_shared((size_t)in_shared, bytes, write, atomic);
    } else {
        watch_operand(operand, address, bytes, write, atomic);
    }
}

static void watch_range(const void *at, size_t bytes, bool write, const void *site)
{
    const char *address = (const char *)at;
    for (size_t i = 0; i < bytes; i++) {
        watch_access(address + i, 1, write, false, site, emu_now.thread % 32);
    }
}

void emu_watch_host(const void *data, size_t bytes, bool write)
{
    const char *address = (const char *)data;
    struct operand *operand = operand_at(address);
    if (operand == NULL) return;
    for (size_t i = 0; i < bytes && address + i < operand->end; i++) {
        struct cell *cell = &operand->cells[(size_t)(address - operand->begin) + i];
        const struct use *uses[] = {&cell->write, &cell->read, &cell->other_read};
        for (int u = 0; u < (write ? 3 : 1); u++) {
            if (uses[u]->launch == 0 || emu_order_is_known(uses[u]->launch)) continue;
            emu_find(EMU_RACE_STREAMS,
                     "the host uses byte %zu of %s, which launch %u may still use", i,
                     operand->name, uses[u]->launch);
        }
        if (write) *cell = (struct cell){{}, {}, {}, true};
    }
}

/* Hooks */

static void launch_begins(cudaStream_t stream)
{
    emu_order_launch(stream, emu_now.launch);
    of_launch = {};
    shared_cells.resize(std::max(shared_cells.size(), emu_now.shared_bytes));
}

static void warp_ends(void)
{
    emu_requests_end(&of_launch);
}

static void add_traffic(const struct emu_traffic *x, struct emu_traffic *sum)
{
    sum->requests += x->requests;
    sum->sectors += x->sectors;
    sum->least_sectors += x->least_sectors;
    sum->shared_requests += x->shared_requests;
    sum->passes += x->passes;
    sum->least_passes += x->least_passes;
    sum->bytes_read += x->bytes_read;
    sum->bytes_written += x->bytes_written;
    sum->least_read += x->least_read;
    sum->least_written += x->least_written;
}

static void compare_limit(enum emu_check check, double limit, int64_t is, int64_t least,
                          const char *what)
{
    if (limit > 0 && (double)is > limit * (double)least) {
        emu_find(check, "%lld %s where %lld would do", (long long)is, what, (long long)least);
    }
}

static void launch_ends(void)
{
    struct emu_traffic *t = &of_launch;
    emu_requests_end(t);
    compare_limit(EMU_SECTORS, limits.sectors, t->sectors, t->least_sectors, "sectors");
    compare_limit(EMU_BANKS, limits.passes, t->passes, t->least_passes,
                  "passes over shared memory");
    compare_limit(EMU_TRAFFIC, limits.bytes, t->bytes_read + t->bytes_written,
                  t->least_read + t->least_written, "bytes moved");
    add_traffic(t, &all_traffic[emu_now.kernel]);
}

static void watch_atomic(const void *address, size_t bytes)
{
    watch_access(address, bytes, true, true, NULL, emu_now.thread % 32);
}

static void watch_hook(const void *address, size_t bytes, bool write, const void *site,
                       uint32_t lane)
{
    watch_access(address, bytes, write, false, site, lane);
}

static bool hooks_are_set = [] {
    emu_hooks = {launch_begins, launch_ends, warp_ends, watch_atomic, watch_hook};
    return true;
}();

struct emu_traffic emu_watch_traffic(const char *name)
{
    struct emu_traffic sum = {};
    if (!hooks_are_set) return sum;
    for (auto &entry : all_traffic) {
        if (entry.first.find(name) == std::string::npos) continue;
        add_traffic(&entry.second, &sum);
        entry.second = {};
    }
    return sum;
}

/* Functions that -fsanitize=thread calls. */

#define SITE __builtin_return_address(0)
#define ACCESSES(bytes)                                                                            \
    extern "C" void __tsan_read##bytes(const void *at)                                             \
    {                                                                                              \
        watch_access(at, bytes, false, false, SITE, emu_now.thread % 32);                          \
    }                                                                                              \
    extern "C" void __tsan_write##bytes(const void *at)                                            \
    {                                                                                              \
        watch_access(at, bytes, true, false, SITE, emu_now.thread % 32);                           \
    }                                                                                              \
    extern "C" void __tsan_unaligned_read##bytes(const void *at)                                   \
    {                                                                                              \
        watch_access(at, bytes, false, false, SITE, emu_now.thread % 32);                          \
    }                                                                                              \
    extern "C" void __tsan_unaligned_write##bytes(const void *at)                                  \
    {                                                                                              \
        watch_access(at, bytes, true, false, SITE, emu_now.thread % 32);                           \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_read_range(const void *at, size_t bytes)
{
    watch_range(at, bytes, false, SITE);
}
extern "C" void __tsan_write_range(const void *at, size_t bytes)
{
    watch_range(at, bytes, true, SITE);
}
extern "C" void __tsan_init(void)
{
}
extern "C" void __tsan_func_entry(const void *caller)
{
    (void)caller;
}
extern "C" void __tsan_func_exit(void)
{
}
