#define _GNU_SOURCE /* memfd_create, fallocate, MAP_POPULATE */
#include "runtime/arena/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/units.h"

enum { STAT_BLOCK_BYTES = 512, LARGE_PAGE_BYTES = 2 << 20 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static int64_t page_bytes(void)
{
    return (int64_t)sysconf(_SC_PAGESIZE);
}

/* What large pages can be a part of begins with one. */
static int64_t alignment_bytes(int64_t mapped_bytes)
{
    return mapped_bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : page_bytes();
}

/* Above RLIMIT_FSIZE the kernel sends a signal that ends the process, so look first. */
static enum weft_status check_file_limit(int64_t bytes, struct weft_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        (uint64_t)bytes <= (uint64_t)limit.rlim_cur)
        return WEFT_OK;
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "an arena of %s is above the limit of file sizes, %s, which binds shared "
                     "memory too (RLIMIT_FSIZE): raise it (ulimit -f) or lower the memory limit",
                     weft_units_show_bytes(bytes, want),
                     weft_units_show_bytes((int64_t)limit.rlim_cur, most));
}

enum weft_status weft_arena_cpu_fail_map(int64_t bytes, struct weft_error *err)
{
    int reason = errno;
    char want[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    struct rlimit limit;
    weft_units_show_bytes(bytes, want);
    if (reason == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        return weft_fail(err, WEFT_E_SYSTEM,
                         "cannot map an arena of %s: the address space is limited to %s "
                         "(RLIMIT_AS), and every rank maps the arenas of all: raise it (ulimit -v)",
                         want, weft_units_show_bytes((int64_t)limit.rlim_cur, most));
    }
    return weft_fail(err, WEFT_E_SYSTEM, "cannot map an arena of %s: %s", want, strerror(reason));
}

static enum weft_status fail_size(int64_t bytes, int reason, struct weft_error *err)
{
    char want[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "cannot get %s of shared memory for the arena: %s. Lower the memory limit, "
                     "start fewer ranks, or give this job more memory (its memory cgroup, or the "
                     "size of /dev/shm if the memory lies there)",
                     weft_units_show_bytes(bytes, want), strerror(reason));
}

/* Takes the file's pages, which are zero: it was empty. */
static enum weft_status allocate_pages(const struct weft_arena_of_cpu *a, struct weft_error *err)
{
    while (fallocate(a->fd, 0, 0, a->mapped_bytes) != 0) {
        if (errno != EINTR) return fail_size(a->mapped_bytes, errno, err); /* a signal: again */
    }
    return WEFT_OK;
}

/* Asks for large pages, whatever the system does unasked: a step goes through all of the arena
 * several times, and every page has to be looked up each time. The system makes one out of pages
 * that are there and looked up already, of which one will do. What it refuses stays as it is. */
static void ask_for_large_pages(int fd, unsigned char *memory, int64_t bytes)
{
    for (int64_t at = 0; at + LARGE_PAGE_BYTES <= bytes; at += LARGE_PAGE_BYTES) {
        if (fallocate(fd, 0, at, page_bytes()) != 0) break;
        (void)*(volatile unsigned char *)(memory + at);
    }
    madvise(memory, (size_t)bytes, MADV_COLLAPSE);
    errno = 0;
}

/* The addresses that work is given, the memory behind them, and pages on both sides that nobody may
 * touch, wherever the memory has to begin. */
static enum weft_status reserve(struct weft_arena_of_cpu *a, unsigned char **at,
                                struct weft_error *err)
{
    const int64_t alignment = alignment_bytes(a->mapped_bytes);
    a->reservation_bytes = (size_t)(a->shift_bytes + a->mapped_bytes + page_bytes() + alignment);
    void *reservation = mmap(NULL, a->reservation_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reservation == MAP_FAILED) return weft_arena_cpu_fail_map(a->mapped_bytes, err);
    a->reservation = reservation;
    const uintptr_t first = (uintptr_t)reservation + (uintptr_t)(a->shift_bytes + page_bytes());
    const uintptr_t aligned = (first + (uintptr_t)alignment - 1) / (uintptr_t)alignment;
    *at = (unsigned char *)reservation + (aligned * (uintptr_t)alignment - (uintptr_t)reservation);
    return WEFT_OK;
}

static enum weft_status map_memory(struct weft_arena_of_cpu *a, struct weft_error *err)
{
    unsigned char *at = NULL;
    const size_t bytes = (size_t)a->mapped_bytes;
    WEFT_TRY(check_file_limit(a->mapped_bytes, err));
    if (ftruncate(a->fd, a->mapped_bytes) != 0) return fail_size(a->mapped_bytes, errno, err);
    WEFT_TRY(reserve(a, &at, err));
    void *memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->fd, 0);
    if (memory == MAP_FAILED) return weft_arena_cpu_fail_map(a->mapped_bytes, err);
    ask_for_large_pages(a->fd, memory, a->mapped_bytes);
    WEFT_TRY(allocate_pages(a, err));
    /* Populated, so that the first step does not pay for page faults. */
    memory =
        mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, a->fd, 0);
    if (memory == MAP_FAILED) return weft_arena_cpu_fail_map(a->mapped_bytes, err);
    a->memory = memory;
    return WEFT_OK;
}

void weft_arena_cpu_unmap(struct weft_arena *arena, bool give_back)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    weft_arena_cpu_open_all(a);
    if (a->reservation != NULL) munmap(a->reservation, a->reservation_bytes);
    /* The descriptor outlives the mapping. If this fails, the pages go with it. */
    if (give_back && a->mapped_bytes > 0 && ftruncate(a->fd, 0) != 0) errno = 0;
    a->reservation = NULL;
    a->memory = NULL;
    a->mapped_bytes = 0;
}

enum weft_status weft_arena_cpu_map(struct weft_arena *arena, int64_t bytes, struct weft_error *err)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    int64_t mapped_bytes;
    const int64_t most_bytes = a->shift_bytes > 0 ? a->shift_bytes - page_bytes()
                                                  : INT64_MAX - page_bytes() - LARGE_PAGE_BYTES;
    if (a->mapped_bytes > 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    if (bytes <= 0 || !weft_checked_round_up(bytes, page_bytes(), &mapped_bytes) ||
        mapped_bytes > most_bytes) {
        return weft_fail(err, WEFT_E_INTERNAL, "an arena of %lld bytes cannot be mapped",
                         (long long)bytes);
    }
    a->mapped_bytes = mapped_bytes;
    a->touched_bytes = 0;
    enum weft_status status = map_memory(a, err);
    if (status != WEFT_OK) weft_arena_cpu_unmap(arena, true);
    return status;
}

void *weft_arena_cpu_address(const struct weft_arena *arena)
{
    const struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    return a->memory == NULL ? NULL : a->memory - a->shift_bytes;
}

unsigned char *weft_arena_cpu_memory(const struct weft_arena *arena)
{
    return weft_arena_of_cpu(arena)->memory;
}

int64_t weft_arena_cpu_resident_bytes(const struct weft_arena *arena)
{
    const struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    struct stat status;
    if (a->memory == NULL || fstat(a->fd, &status) != 0) return 0;
    return (int64_t)status.st_blocks * STAT_BLOCK_BYTES;
}

void weft_arena_cpu_close(struct weft_arena *arena)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    weft_arena_cpu_unmap(arena, true);
    if (a->owns_fd && a->fd >= 0) close(a->fd);
    free(a);
}

enum weft_status weft_arena_cpu_open(const struct weft_arena_ops *ops, int64_t shift_bytes, int fd,
                                     struct weft_arena **out, struct weft_error *err)
{
    struct weft_arena_of_cpu *a = calloc(1, sizeof *a);
    if (a == NULL) return weft_fail_memory(err, "an arena");
    a->arena.ops = ops;
    a->shift_bytes = shift_bytes;
    a->owns_fd = fd < 0;
    a->fd = fd < 0 ? memfd_create("weft-arena", MFD_CLOEXEC) : fd;
    if (a->fd < 0) {
        weft_fail(err, WEFT_E_SYSTEM, "cannot make shared memory for the arena: %s",
                  strerror(errno));
        free(a);
        return WEFT_E_SYSTEM;
    }
    *out = &a->arena;
    return WEFT_OK;
}

static enum weft_status cpu_open(int fd, struct weft_arena **out, struct weft_error *err)
{
    return weft_arena_cpu_open(&weft_arena_cpu, 0, fd, out, err);
}

const struct weft_arena_ops weft_arena_cpu = {
    .name = "cpu",
    .open = cpu_open,
    WEFT_ARENA_CPU_FUNCTIONS,
};
