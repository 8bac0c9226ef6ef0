/* SPDX-License-Identifier: Apache-2.0 */
/* The last uses of each byte, and whether they are ordered. */
#include "tests/emulation/doubles/double.h"

#include <map>
#include <string>
#include <unordered_map>

/* Kernels access byte by byte, so the last lookup is cached. */
enum { PAGE_BYTES = 4096, READERS = 3 };

struct cell {
    uint32_t writer, readers[READERS]; /* operations; 0: none */
};
/* One cell serves the whole page while all of its bytes are used together. */
struct page {
    struct cell all;
    std::unique_ptr<struct cell[]> cells; /* [PAGE_BYTES], or NULL */
};
struct ordered {
    uint32_t stream, number;
    double_clock clock;
    std::string what;
};
struct piece {
    size_t bytes;
    enum double_memory kind;
};

/* Never freed: threads may use it at the program's end. */
struct uses {
    std::mutex lock;
    std::vector<struct ordered> operations{1};
    std::unordered_map<uintptr_t, struct page *> pages;
    std::map<uintptr_t, struct piece> pieces;
    uint32_t watched = 0;
    int64_t cell_bytes = 0;
};

static struct uses *uses(void)
{
    static struct uses *const all = new struct uses();
    return all;
}

uint32_t double_order_add(uint32_t stream, const double_clock &clock, const char *what)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    all->operations.push_back({stream, clock[stream], clock, what});
    return (uint32_t)all->operations.size() - 1;
}

void double_order_acquire(uint32_t id, const double_clock &clock)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    double_clock &known = all->operations[id].clock;
    if (known.size() < clock.size()) known.resize(clock.size());
    for (size_t i = 0; i < clock.size(); i++) {
        known[i] = known[i] < clock[i] ? clock[i] : known[i];
    }
}

static bool is_behind(const struct uses *all, uint32_t later, uint32_t earlier)
{
    const struct ordered &a = all->operations[earlier], &b = all->operations[later];
    return a.stream < b.clock.size() && b.clock[a.stream] >= a.number;
}

static void compare_uses(const struct uses *all, uint32_t id, uint32_t earlier, uintptr_t at,
                         bool write)
{
    if (earlier == 0 || is_behind(all, id, earlier)) return;
    const struct ordered &a = all->operations[earlier], &b = all->operations[id];
    weft_double_find(DOUBLE_ORDER,
                     "%s, operation %u of stream %u, %s byte %#zx, which %s, operation %u of "
                     "stream %u, uses, and nothing orders them",
                     b.what.c_str(), b.number, b.stream, write ? "writes" : "reads", (size_t)at,
                     a.what.c_str(), a.number, a.stream);
}

/* Keeps a reader. It replaces one that is ordered before it. Of unordered readers as many are kept
 * as fit. */
static void keep_reader(const struct uses *all, struct cell *cell, uint32_t id)
{
    for (uint32_t &reader : cell->readers) {
        if (reader == 0 || is_behind(all, id, reader)) {
            reader = id;
            return;
        }
    }
}

static void use_cell(const struct uses *all, struct cell *cell, uint32_t id, uintptr_t at,
                     bool write)
{
    compare_uses(all, id, cell->writer, at, write);
    if (!write) {
        keep_reader(all, cell, id);
        return;
    }
    for (uint32_t &reader : cell->readers) {
        compare_uses(all, id, reader, at, true);
        reader = 0;
    }
    cell->writer = id;
}

static struct page *page_of(struct uses *all, uintptr_t at)
{
    struct page *&page = all->pages[at / PAGE_BYTES];
    if (page == NULL) page = new struct page();
    return page;
}

static void split_page(struct page *page)
{
    page->cells.reset(new struct cell[PAGE_BYTES]);
    for (int i = 0; i < PAGE_BYTES; i++) {
        page->cells[i] = page->all;
    }
}

/* Uses bytes of one page. */
static void use_part(struct uses *all, uint32_t id, uintptr_t at, size_t bytes, bool write)
{
    struct page *page = page_of(all, at);
    if (page->cells == NULL) {
        if (bytes == PAGE_BYTES) {
            use_cell(all, &page->all, id, at, write);
            return;
        }
        split_page(page);
    }
    for (size_t i = 0; i < bytes; i++) {
        use_cell(all, &page->cells[(at + i) % PAGE_BYTES], id, at + i, write);
    }
    if (bytes < PAGE_BYTES || !write) return;
    page->all = page->cells[0];
    page->cells.reset();
}

static void use_bytes(struct uses *all, uint32_t id, uintptr_t at, size_t bytes, bool write)
{
    while (bytes > 0) {
        const size_t left = PAGE_BYTES - at % PAGE_BYTES, part = bytes < left ? bytes : left;
        use_part(all, id, at, part, write);
        at += part;
        bytes -= part;
    }
}

void double_use(uint32_t id, const void *at, size_t bytes, bool write)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    use_bytes(all, id, (uintptr_t)at, bytes, write);
}

void double_watch(uint32_t id)
{
    uses()->watched = id;
}

/* Memory */

static const std::pair<const uintptr_t, struct piece> *piece_at(const struct uses *all,
                                                                const void *at, size_t bytes)
{
    auto next = all->pieces.upper_bound((uintptr_t)at);
    if (next == all->pieces.begin()) return NULL;
    --next;
    const size_t before = (uintptr_t)at - next->first;
    return before + bytes <= next->second.bytes ? &*next : NULL;
}

void double_memory_add(const void *at, size_t bytes, enum double_memory kind)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    all->pieces[(uintptr_t)at] = {bytes, kind};
}

/* New memory at this place has no history. */
static void forget_pages(struct uses *all, uintptr_t at, size_t bytes)
{
    for (uintptr_t i = at / PAGE_BYTES; i <= (at + bytes - 1) / PAGE_BYTES; i++) {
        const auto found = all->pages.find(i);
        if (found == all->pages.end()) continue;
        delete found->second;
        all->pages.erase(found);
    }
}

bool double_memory_remove(const void *at, enum double_memory kind)
{
    struct uses *all = uses();
    const bool known = double_host_knows_all();
    const std::lock_guard<std::mutex> guard(all->lock);
    const auto found = all->pieces.find((uintptr_t)at);
    if (found == all->pieces.end() || found->second.kind != kind) {
        weft_double_find(DOUBLE_FREED_TWICE, "%p is freed, and nothing begins there", at);
        return false;
    }
    if (!known) {
        weft_double_find(DOUBLE_FREED_EARLY,
                         "%p is freed while a stream has work that the host has not seen done", at);
    }
    forget_pages(all, found->first, found->second.bytes);
    all->pieces.erase(found);
    return true;
}

bool double_memory_has(const void *at, size_t bytes, enum double_memory kind)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    const auto *found = piece_at(all, at, bytes);
    return found != NULL && found->second.kind == kind;
}

/* Adjacent mapped pieces are one memory. */
bool double_memory_is_device(const void *at, size_t bytes)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    for (size_t seen = 0; seen < bytes;) {
        const auto *found = piece_at(all, (const char *)at + seen, 1);
        if (found == NULL || found->second.kind == DOUBLE_PINNED ||
            found->second.kind == DOUBLE_REGISTERED)
            return false;
        seen = found->first + found->second.bytes - (uintptr_t)at;
    }
    return true;
}

bool double_memory_touches(const void *at, size_t bytes)
{
    struct uses *all = uses();
    const std::lock_guard<std::mutex> guard(all->lock);
    auto next = all->pieces.lower_bound((uintptr_t)at + bytes);
    if (next == all->pieces.begin()) return false;
    --next;
    return next->first + next->second.bytes > (uintptr_t)at;
}

size_t double_memory_count(void)
{
    const std::lock_guard<std::mutex> guard(uses()->lock);
    return uses()->pieces.size();
}

size_t double_memory_device_bytes(void)
{
    const std::lock_guard<std::mutex> guard(uses()->lock);
    size_t sum = (size_t)uses()->cell_bytes;
    for (const auto &entry : uses()->pieces) {
        if (entry.second.kind == DOUBLE_OF_DEVICE) sum += entry.second.bytes;
    }
    return sum;
}

void double_memory_add_cell(int64_t bytes)
{
    const std::lock_guard<std::mutex> guard(uses()->lock);
    uses()->cell_bytes += bytes;
}

#ifdef WEFT_DOUBLE_WATCHES

/* Functions that -fsanitize=thread calls in watched kernels, and the emulator's part of them. */
#include "tests/emulation/emulator.h"

static void watch_access(const void *at, size_t bytes, bool write)
{
    struct uses *all = uses();
    if (all->watched == 0 || emu_now.kernel == NULL) return;
    const std::lock_guard<std::mutex> guard(all->lock);
    if (piece_at(all, at, 1) == NULL)
        return; /* the kernel's own: shared memory, stack,
                 * parameters */
    use_bytes(all, all->watched, (uintptr_t)at, bytes, write);
}

#define ACCESSES(bytes)                                                                            \
    extern "C" void __tsan_read##bytes(const void *at)                                             \
    {                                                                                              \
        watch_access(at, bytes, false);                                                            \
    }                                                                                              \
    extern "C" void __tsan_write##bytes(const void *at)                                            \
    {                                                                                              \
        watch_access(at, bytes, true);                                                             \
    }                                                                                              \
    extern "C" void __tsan_unaligned_read##bytes(const void *at)                                   \
    {                                                                                              \
        watch_access(at, bytes, false);                                                            \
    }                                                                                              \
    extern "C" void __tsan_unaligned_write##bytes(const void *at)                                  \
    {                                                                                              \
        watch_access(at, bytes, true);                                                             \
    }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_read_range(const void *at, size_t bytes)
{
    watch_access(at, bytes, false);
}
extern "C" void __tsan_write_range(const void *at, size_t bytes)
{
    watch_access(at, bytes, true);
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

static void watch_atomic(const void *address, size_t bytes)
{
    watch_access(address, bytes, true);
}

static void watch_hook(const void *address, size_t bytes, bool write, const void *site,
                       uint32_t lane)
{
    (void)site;
    (void)lane;
    watch_access(address, bytes, write);
}

static const bool hooks_are_set = [] {
    emu_hooks.atomic = watch_atomic;
    emu_hooks.access = watch_hook;
    return true;
}();

extern "C" bool weft_double_watches(void)
{
    return hooks_are_set;
}

#else

extern "C" bool weft_double_watches(void)
{
    return false;
}

#endif
