#define _GNU_SOURCE /* fallocate, MAP_POPULATE */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/units.h"
#include "runtime/comm/local.h"

enum { LIMIT_BYTES = 512, REASON_BYTES = 1024, STAT_BLOCK_BYTES = 512, LARGE_PAGE_BYTES = 2 << 20 };

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* What ranks tell each other before any of them takes memory, and after all have tried. */
struct offer {
    int64_t available_bytes;
    int64_t bytes;
    char limit[LIMIT_BYTES];
};

struct outcome {
    int32_t status;
    char reason[REASON_BYTES];
};

_Static_assert(sizeof(struct offer) <= WEFT_LOCAL_POST_BYTES, "an offer is one exchange");
_Static_assert(sizeof(struct outcome) <= WEFT_LOCAL_POST_BYTES, "an outcome is one exchange");

static int64_t page_bytes(void)
{
    return (int64_t)sysconf(_SC_PAGESIZE);
}

/* What large pages can be a part of begins with one. */
static int64_t alignment_bytes(int64_t mapped_bytes)
{
    return mapped_bytes >= LARGE_PAGE_BYTES ? LARGE_PAGE_BYTES : page_bytes();
}

/* The mapping with pages on both sides that nobody may touch, wherever it has to begin. */
static size_t reservation_bytes(const struct weft_local_comm *c)
{
    return (size_t)(c->mapped_bytes + page_bytes() + alignment_bytes(c->mapped_bytes));
}

static void unmap_all(struct weft_local_comm *c)
{
    int32_t rank = c->comm.rank;
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        if (i != rank && c->arenas[i] != NULL) munmap(c->arenas[i], (size_t)c->mapped_bytes);
        c->arenas[i] = NULL;
    }
    if (c->reservation != NULL) munmap(c->reservation, reservation_bytes(c));
    c->reservation = NULL;
    /* Gives the pages back: the descriptor outlives the mapping. If it fails they go with it, and
     * so they do after a failure, when a peer may still be reading them: it would die of it and be
     * taken for the cause. */
    bool give_back = c->mapped_bytes > 0 && c->broken.status == WEFT_OK;
    if (give_back && ftruncate(c->arena_fds[rank], 0) != 0) errno = 0;
    c->mapped_bytes = 0;
    c->arena_bytes = 0;
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

static enum weft_status fail_map(int64_t bytes, struct weft_error *err)
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

/* Takes the pages of this rank's memory, which are zero: it was empty. */
static enum weft_status allocate(struct weft_local_comm *c, struct weft_error *err)
{
    while (fallocate(c->arena_fds[c->comm.rank], 0, 0, c->mapped_bytes) != 0) {
        if (errno != EINTR) return fail_size(c->mapped_bytes, errno, err); /* a signal: again */
    }
    return WEFT_OK;
}

/* Asks for large pages, whatever the system does unasked: a step goes through all of the arena
 * several times, and every page has to be looked up each time. The system makes one out of pages
 * that are there and looked up already, of which one will do. What it refuses stays as it is. */
static void ask_for_large_pages(int fd, unsigned char *own, int64_t bytes)
{
    for (int64_t at = 0; at + LARGE_PAGE_BYTES <= bytes; at += LARGE_PAGE_BYTES) {
        if (fallocate(fd, 0, at, page_bytes()) != 0) break;
        (void)*(volatile unsigned char *)(own + at);
    }
    madvise(own, (size_t)bytes, MADV_COLLAPSE);
    errno = 0;
}

/* Sizes this rank's memory and maps it to write, between pages that nobody may touch. */
static enum weft_status map_own(struct weft_local_comm *c, struct weft_error *err)
{
    const int fd = c->arena_fds[c->comm.rank];
    WEFT_TRY(check_file_limit(c->mapped_bytes, err));
    if (ftruncate(fd, c->mapped_bytes) != 0) return fail_size(c->mapped_bytes, errno, err);
    void *reservation = mmap(NULL, reservation_bytes(c), PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reservation == MAP_FAILED) return fail_map(c->mapped_bytes, err);
    c->reservation = reservation;
    const uintptr_t alignment = (uintptr_t)alignment_bytes(c->mapped_bytes);
    const uintptr_t first = (uintptr_t)reservation + (uintptr_t)page_bytes();
    void *at = (unsigned char *)reservation +
               ((first + alignment - 1) / alignment * alignment - (uintptr_t)reservation);
    void *own =
        mmap(at, (size_t)c->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (own == MAP_FAILED) return fail_map(c->mapped_bytes, err);
    ask_for_large_pages(fd, own, c->mapped_bytes);
    WEFT_TRY(allocate(c, err));
    /* Populated, so that the first step does not pay for page faults. */
    own = mmap(at, (size_t)c->mapped_bytes, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
    if (own == MAP_FAILED) return fail_map(c->mapped_bytes, err);
    c->arenas[c->comm.rank] = own;
    return WEFT_OK;
}

/* The peers', to read only: no rank can damage another's memory. */
static enum weft_status map_peers(struct weft_local_comm *c, struct weft_error *err)
{
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        if (i == c->comm.rank) continue;
        void *theirs =
            mmap(NULL, (size_t)c->mapped_bytes, PROT_READ, MAP_SHARED, c->arena_fds[i], 0);
        if (theirs == MAP_FAILED) return fail_map(c->mapped_bytes, err);
        c->arenas[i] = theirs;
    }
    return WEFT_OK;
}

/* Whether all arenas together fit what every rank saw available before any took memory. Without
 * this the system would end a process of its own choice instead of refusing. */
static enum weft_status check_offers(struct weft_local_comm *c, int64_t bytes,
                                     struct weft_error *err)
{
    int64_t all_bytes;
    struct offer least = {.available_bytes = INT64_MAX};
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        struct offer offer;
        memcpy(&offer, weft_local_posted(c, i)->bytes, sizeof offer);
        if (offer.bytes != bytes) {
            return weft_fail(err, WEFT_E_DISAGREE,
                             "rank %d asks for an arena of %lld bytes and rank %d for %lld: all "
                             "ranks must run the same plan",
                             c->comm.rank, (long long)bytes, i, (long long)offer.bytes);
        }
        if (offer.available_bytes < least.available_bytes) least = offer;
    }
    if (!weft_checked_mul(bytes, c->comm.ranks, &all_bytes)) all_bytes = INT64_MAX;
    if (all_bytes <= least.available_bytes) return WEFT_OK;
    char each[WEFT_UNITS_TEXT_BYTES], all[WEFT_UNITS_TEXT_BYTES], most[WEFT_UNITS_TEXT_BYTES];
    return weft_fail(err, WEFT_E_SYSTEM,
                     "%d local rank%s need%s an arena of %s each, %s in all, and there is only %s "
                     "(%s): lower the memory limit, start fewer ranks or free some memory",
                     c->comm.ranks, c->comm.ranks > 1 ? "s" : "", c->comm.ranks > 1 ? "" : "s",
                     weft_units_show_bytes(bytes, each), weft_units_show_bytes(all_bytes, all),
                     weft_units_show_bytes(least.available_bytes, most), least.limit);
}

/* Tells all ranks how it went here; the first rank's failure is everybody's. */
static enum weft_status share_outcome(struct weft_local_comm *c, enum weft_status status,
                                      struct weft_error *own, struct weft_error *err)
{
    struct outcome outcome = {.status = (int32_t)status};
    snprintf(outcome.reason, sizeof outcome.reason, "%.*s", REASON_BYTES - 1, own->text);
    const struct weft_local_call call = {.kind = WEFT_LOCAL_CALL_EXCHANGE, .count = sizeof outcome};
    int64_t latest_ns;
    WEFT_TRY(weft_local_enter(c, &call, 0, &outcome, sizeof outcome, &latest_ns, err));
    for (int32_t i = 0; i < c->comm.ranks; i++) {
        memcpy(&outcome, weft_local_posted(c, i)->bytes, sizeof outcome);
        if (outcome.status == WEFT_OK) continue;
        return weft_fail(err, (enum weft_status)outcome.status, "rank %d: %.*s", i,
                         REASON_BYTES - 1, outcome.reason);
    }
    return WEFT_OK;
}

static enum weft_status take(struct weft_local_comm *c, struct weft_error *err)
{
    WEFT_TRY(map_own(c, err));
    return map_peers(c, err);
}

enum weft_status weft_local_map_arena(struct weft_comm *comm, int64_t bytes, void **base,
                                      struct weft_error *err)
{
    struct weft_local_comm *c = weft_local_comm_of(comm);
    int64_t mapped_bytes;
    if (c->arena_bytes > 0)
        return weft_fail(err, WEFT_E_INTERNAL, "an arena is mapped already: unmap it first");
    if (bytes <= 0 || !weft_checked_round_up(bytes, page_bytes(), &mapped_bytes) ||
        mapped_bytes > INT64_MAX - page_bytes() - LARGE_PAGE_BYTES) {
        return weft_fail(err, WEFT_E_INTERNAL, "an arena of %lld bytes cannot be mapped",
                         (long long)bytes);
    }
    struct offer offer = {.bytes = bytes};
    offer.available_bytes = weft_local_memory_available(offer.limit, sizeof offer.limit);
    const struct weft_local_call call = {.kind = WEFT_LOCAL_CALL_EXCHANGE, .count = sizeof offer};
    int64_t latest_ns;
    WEFT_TRY(weft_local_enter(c, &call, 0, &offer, sizeof offer, &latest_ns, err));
    WEFT_TRY(check_offers(c, bytes, err));

    c->mapped_bytes = mapped_bytes;
    struct weft_error own = {.status = WEFT_OK};
    enum weft_status status = share_outcome(c, take(c, &own), &own, err);
    if (status != WEFT_OK) {
        unmap_all(c);
        return status;
    }
    c->arena_bytes = bytes;
    *base = c->arenas[comm->rank];
    return WEFT_OK;
}

void weft_local_unmap_arena(struct weft_comm *comm)
{
    unmap_all(weft_local_comm_of(comm));
}

int64_t weft_local_arena_resident_bytes(const struct weft_comm *comm)
{
    const struct weft_local_comm *c = weft_local_comm_of(comm);
    struct stat status;
    if (c->arena_bytes == 0 || fstat(c->arena_fds[comm->rank], &status) != 0) return 0;
    return (int64_t)status.st_blocks * STAT_BLOCK_BYTES;
}
