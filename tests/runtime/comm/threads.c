/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_NORESERVE */
#include "tests/runtime/comm/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MOST_SHARED = ROOM_RANKS + 1,
    MAPPED_BYTES = 1 << 28,
    PAGE_BYTES = 4096,
    MAPPED_PAGES = MAPPED_BYTES / PAGE_BYTES,
    ALIGNMENT = 1 << 21
};

/* Memory with one address for all ranks. It keeps its address when a rank unmaps it. */
static struct {
    pthread_mutex_t lock;
    int n;
    int fds[MOST_SHARED];
    unsigned char *addresses[MOST_SHARED];
    /* The file's page that lies at each page of the addresses, counted from 1; 0: none. */
    int32_t pages[MOST_SHARED][MAPPED_PAGES];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Address at which the view that this thread maps would have its first byte. */
static _Thread_local unsigned char *view_at;

void *__real_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset);
int __real_munmap(void *address, size_t bytes);
void *__wrap_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t bytes);

static int find_fd(int fd)
{
    int i = 0;
    while (i < shared.n && shared.fds[i] != fd)
        i++;
    return i < shared.n ? i : -1;
}

/* Reserves a view's addresses. A view begins at a large page after its first page, so exactly
 * there. */
static void *reserve(size_t bytes, int flags)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = bytes + ALIGNMENT;
    unsigned char *first = __real_mmap64(NULL, room, PROT_NONE, flags, -1, 0);
    if (first == MAP_FAILED) return first;
    view_at = first + (ALIGNMENT - ((uintptr_t)first + page) % ALIGNMENT) % ALIGNMENT + page;
    unsigned char *address = view_at - page, *end = address + bytes;
    if (address > first) __real_munmap(first, (size_t)(address - first));
    if (end < first + room) __real_munmap(end, (size_t)(first + room - end));
    return address;
}

/* Whether another rank has mapped these bytes there; they are taken for mapped from now on. A
 * second mapping is a write to the sanitizer. */
static bool is_mapped(int i, size_t place, size_t bytes, off_t offset)
{
    bool mapped = true;
    for (size_t done = 0; done < bytes; done += PAGE_BYTES) {
        int32_t *page = &shared.pages[i][(place + done) / PAGE_BYTES];
        const int32_t ours = 1 + (int32_t)(((size_t)offset + done) / PAGE_BYTES);
        mapped = mapped && *page == ours;
        *page = ours;
    }
    return mapped;
}

/* Maps pages at the addresses that all ranks have for the file, in the view's order. A map without
 * an address begins at the file's first byte. */
void *__wrap_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset)
{
    if (fd < 0 && (flags & MAP_NORESERVE) != 0) return reserve(bytes, flags);
    pthread_mutex_lock(&shared.lock);
    const int i = fd < 0 ? -1 : find_fd(fd);
    void *at = NULL;
    if (i >= 0) {
        const bool in_view = (flags & MAP_FIXED) != 0;
        const size_t place =
            in_view ? (size_t)((unsigned char *)address - view_at) : (size_t)offset;
        CHECK(place + bytes <= MAPPED_BYTES, "descriptor %d is too large", fd);
        at = shared.addresses[i] + place;
        if (!is_mapped(i, place, bytes, offset))
            at = __real_mmap64(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                               offset);
    }
    pthread_mutex_unlock(&shared.lock);
    return i >= 0 ? at : __real_mmap64(address, bytes, access, flags, fd, offset);
}

int __wrap_munmap(void *address, size_t bytes)
{
    pthread_mutex_lock(&shared.lock);
    bool kept = false;
    for (int i = 0; i < shared.n; i++)
        kept = kept || shared.addresses[i] == address;
    pthread_mutex_unlock(&shared.lock);
    return kept ? 0 : __real_munmap(address, bytes);
}

static void share(int fd)
{
    CHECK(shared.n < MOST_SHARED, "too many descriptors");
    void *base = __real_mmap64(NULL, MAPPED_BYTES, PROT_NONE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(base != MAP_FAILED, "addresses of descriptor %d", fd);
    memset(shared.pages[shared.n], 0, sizeof shared.pages[shared.n]);
    shared.fds[shared.n] = fd;
    shared.addresses[shared.n++] = base;
}

static void unshare_all(void)
{
    for (int i = 0; i < shared.n; i++)
        __real_munmap(shared.addresses[i], MAPPED_BYTES);
    shared.n = 0;
}

struct thread {
    pthread_t id;
    int32_t rank;
    const struct ranks *ranks;
    rank_fn *function;
    void *argument;
    int outcome;
};

static void *start(void *argument)
{
    struct thread *thread = argument;
    thread->outcome = thread->function(thread->rank, thread->ranks, thread->argument);
    return NULL;
}

int threads_run(int32_t n, rank_fn *function, void *argument)
{
    struct ranks ranks;
    struct thread threads[ROOM_RANKS];
    int failed = 0;
    ranks_open(&ranks, n);
    share(ranks.control_fd);
    for (int32_t i = 0; i < n; i++)
        share(ranks.arena_fds[i]);
    for (int32_t i = 0; i < n; i++) {
        threads[i] =
            (struct thread){.rank = i, .ranks = &ranks, .function = function, .argument = argument};
        CHECK(pthread_create(&threads[i].id, NULL, start, &threads[i]) == 0, "pthread_create");
    }
    for (int32_t i = 0; i < n; i++) {
        CHECK(pthread_join(threads[i].id, NULL) == 0, "pthread_join");
        failed += threads[i].outcome != 0;
    }
    unshare_all();
    ranks_close(&ranks);
    return failed;
}
