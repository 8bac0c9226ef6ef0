#define _GNU_SOURCE /* memfd_create */
#include "tests/runtime/comm/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_SHARED = MOST_RANKS + 1, MAPPED_BYTES = 1 << 28 };

/* What is mapped once for all; an arena stays where it is when a rank unmaps it. */
static struct {
    pthread_mutex_t lock;
    int n;
    int fds[MOST_SHARED];
    void *addresses[MOST_SHARED];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

/* A file is mapped once, with room behind its end, so that each of its bytes has one address. */
void *__wrap_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset)
{
    pthread_mutex_lock(&shared.lock);
    int i = fd < 0 ? -1 : find_fd(fd);
    if (i < 0) {
        pthread_mutex_unlock(&shared.lock);
        return __real_mmap64(address, bytes, access, flags, fd, offset);
    }
    if (shared.addresses[i] == NULL) {
        void *mapped = __real_mmap64(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK(mapped != MAP_FAILED, "mmap of descriptor %d", fd);
        shared.addresses[i] = mapped;
    }
    CHECK((size_t)offset + bytes <= MAPPED_BYTES, "descriptor %d is too large", fd);
    pthread_mutex_unlock(&shared.lock);
    return (unsigned char *)shared.addresses[i] + offset;
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
    shared.fds[shared.n] = fd;
    shared.addresses[shared.n++] = NULL;
}

static void unshare_all(void)
{
    for (int i = 0; i < shared.n; i++) {
        if (shared.addresses[i] != NULL) __real_munmap(shared.addresses[i], MAPPED_BYTES);
    }
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
    struct thread threads[MOST_RANKS];
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
