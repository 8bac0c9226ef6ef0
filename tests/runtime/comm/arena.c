/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: its memory, its cost, and the message if there is too little. */
#define _GNU_SOURCE /* RLIMIT_AS */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/machine/memory.h"
#include "runtime/comm/local.h"
#include "tests/effort.h"
#include "tests/runtime/comm/ranks.h"

enum { PAGE = 4096, LARGE_PAGE = 2 << 20, DEAD = 3 };

static struct weft_comm *open_comm(int32_t rank, const struct ranks *ranks)
{
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    return comm;
}

static enum weft_status map_whole(struct weft_comm *comm, int64_t bytes, struct weft_arena **out,
                                  struct weft_error *err)
{
    const struct weft_arena_shape whole = weft_arena_whole(bytes);
    return weft_comm_map_arena(comm, &whole, NULL, out, err);
}

/* A system call that reads the byte says whether it can be read, without a signal. */
static bool can_read(const unsigned char *byte)
{
    int ends[2];
    CHECK(pipe(ends) == 0, "pipe");
    bool can = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

static int run_mapping(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = open_comm(rank, ranks);
    for (int64_t bytes = 1; bytes < 20000000; bytes = bytes * 7 + 5000) {
        struct weft_arena *mine, *other;
        CHECK(map_whole(comm, bytes, &mine, &err) == WEFT_OK, "%s", err.text);
        unsigned char *arena = weft_arena_memory(mine);
        CHECK(weft_arena_address(mine) == arena, "work goes elsewhere");
        int64_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
        CHECK((uintptr_t)arena % (bytes < LARGE_PAGE ? PAGE : LARGE_PAGE) == 0, "alignment");
        for (int64_t i = 0; i < bytes; i++)
            CHECK(arena[i] == 0, "byte %lld of %lld is not zero", (long long)i, (long long)bytes);
        CHECK(weft_arena_resident_bytes(mine) == mapped, "%lld of %lld bytes are resident",
              (long long)weft_arena_resident_bytes(mine), (long long)mapped);
        CHECK(!can_read(arena - 1) && !can_read(arena + mapped), "no guard pages");
        CHECK(can_read(arena) && can_read(arena + mapped - 1), "not mapped");
        CHECK(map_whole(comm, bytes, &other, &err) == WEFT_E_INTERNAL, "a second one");
        err.status = WEFT_OK;
        memset(arena, 0xff, (size_t)bytes); /* the next one must be zero again */
        weft_comm_unmap_arena(comm);
        CHECK(weft_arena_resident_bytes(mine) == 0, "after");
    }
    weft_comm_close(comm);
    return 0;
}

static int run_refused(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_comm *comm = open_comm(rank, ranks);
    struct weft_arena *base = NULL;
    for (int64_t bytes = 0; bytes >= -1; bytes--) {
        struct weft_error err = {.status = WEFT_OK};
        CHECK(map_whole(comm, bytes, &base, &err) == WEFT_E_INTERNAL, "%s", err.text);
    }
    struct weft_error err = {.status = WEFT_OK};
    CHECK(map_whole(comm, INT64_MAX, &base, &err) == WEFT_E_INTERNAL, "%s", err.text);

    /* More than the machine has: refused before anything is taken. */
    err.status = WEFT_OK;
    CHECK(map_whole(comm, INT64_C(1) << 50, &base, &err) == WEFT_E_SYSTEM, "%s", err.text);
    CHECK(strstr(err.text, "need an arena of 1024.00 TiB each, 2048.00 TiB in all, and there is "
                           "only ") != NULL ||
              strstr(err.text, "1.00 PiB each") != NULL,
          "%s", err.text);
    CHECK(strstr(err.text, "lower the memory limit, start fewer ranks") != NULL, "%s", err.text);

    err.status = WEFT_OK;
    CHECK(map_whole(comm, PAGE * (rank + 1), &base, &err) == WEFT_E_DISAGREE, "%s", err.text);
    CHECK(base == NULL, "an output was touched");

    /* The communicator is as good as before. */
    err.status = WEFT_OK;
    CHECK(map_whole(comm, PAGE, &base, &err) == WEFT_OK, "%s", err.text);
    weft_comm_close(comm);
    return 0;
}

/* A rank that dies while it maps. */
static bool dies_in_mmap;

void *__real_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset);
void *__wrap_mmap64(void *address, size_t bytes, int access, int flags, int fd, off_t offset)
{
    if (dies_in_mmap && fd >= 0) _exit(DEAD);
    return __real_mmap64(address, bytes, access, flags, fd, offset);
}

static void limit(int resource, rlim_t most)
{
    const struct rlimit value = {.rlim_cur = most, .rlim_max = most};
    CHECK(setrlimit(resource, &value) == 0, "setrlimit");
}

/* One rank cannot; all of them say so, and name it. */
static int run_limited(int32_t rank, const struct ranks *ranks, void *argument)
{
    const int *resource = argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = open_comm(rank, ranks);
    struct weft_arena *base = NULL;
    if (rank == 1) limit(*resource, 1 << 20);
    CHECK(map_whole(comm, 4 << 20, &base, &err) == WEFT_E_SYSTEM, "%s", err.text);
    const char *named = *resource == RLIMIT_AS ? "RLIMIT_AS" : "RLIMIT_FSIZE";
    CHECK(strstr(err.text, named) != NULL && strncmp(err.text, "rank 1: ", 8) == 0, "%s", err.text);
    CHECK(base == NULL, "an output was touched");
    if (rank != 1) { /* nothing is broken but the limit */
        CHECK(weft_comm_exchange(comm, NULL, 0, NULL, &err) == WEFT_OK, "%s", err.text);
    } else {
        CHECK(weft_comm_exchange(comm, NULL, 0, NULL, NULL) == WEFT_OK, "exchange");
    }
    weft_comm_close(comm);
    return 0;
}

/* Peers may read every second page. They reach only these, at the same offsets, and no other page
 * is reduced or gathered. */
static int run_reads(int32_t rank, const struct ranks *ranks, void *argument)
{
    enum { N = 16, PAGES = 8 };
    (void)argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = open_comm(rank, ranks);
    struct weft_device *device;
    struct weft_stream *channel;
    struct weft_arena *arena;
    CHECK(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err) == WEFT_OK, "%s", err.text);
    CHECK(weft_stream_create(device, "channel", 0, &channel, &err) == WEFT_OK, "%s", err.text);
    struct weft_range ranges[] = {{10, 20}, {30, 40}, {2 * PAGE, 2 * PAGE + N * 4}};
    const struct weft_arena_mapping mappings[] = {{0, 4, 1}, {PAGE, 3, 4}, {6 * PAGE, 3, 1}};
    const struct weft_arena_shape shape = {PAGES * PAGE, PAGE, PAGES, mappings, 3};
    const struct weft_ranges reads = {ranges, 3};
    CHECK(weft_comm_map_arena(comm, &shape, &reads, &arena, &err) == WEFT_OK, "%s", err.text);
    memset(ranges, 0, sizeof ranges); /* they were copied */
    for (int32_t i = 0; i < ranks->n; i++) {
        const unsigned char *at = weft_local_comm_of(comm)->arenas[i];
        for (int32_t page = 0; page < PAGES && i != rank; page++)
            CHECK(can_read(at + page * PAGE) == (page == 0 || page == 2), "page %d", page);
    }
    float *slice = (float *)(void *)(weft_arena_memory(arena) + 2 * PAGE);
    const float *full = (const float *)(const void *)(weft_arena_memory(arena) + 3 * PAGE);
    slice[N - 1] = (float)rank;
    struct weft_comm_block block = {
        .full_offset = 3 * PAGE, .slice_offset = 2 * PAGE, .slice_elements = N};
    weft_comm_all_gather(comm, channel, &block);
    CHECK(weft_stream_synchronise(channel, &err) == WEFT_OK, "%s", err.text);
    for (int32_t i = 0; i < ranks->n; i++)
        CHECK(full[i * N + N - 1] == (float)i, "gathered");
    block.slice_elements++;
    weft_comm_all_gather(comm, channel, &block);
    CHECK(weft_stream_synchronise(channel, &err) == WEFT_E_INTERNAL, "a byte more was read");
    CHECK(strstr(err.text, "reads a part of a peer's arena that is not mapped for reading") != NULL,
          "%s", err.text);
    weft_stream_destroy(channel);
    weft_device_close(device);
    weft_comm_close(comm);
    return 0;
}

/* Ranks with equal memory in different layouts do not run the same plan. */
static int run_otherwise(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = open_comm(rank, ranks);
    struct weft_arena *arena = NULL;
    const struct weft_arena_mapping mapping = {rank * PAGE, 0, 1};
    const struct weft_arena_shape shape = {4 * PAGE, PAGE, 2, &mapping, 1};
    CHECK(weft_comm_map_arena(comm, &shape, NULL, &arena, &err) == WEFT_E_DISAGREE, "%s", err.text);
    CHECK(strstr(err.text, "must run the same plan") != NULL && arena == NULL, "%s", err.text);
    weft_comm_close(comm);
    return 0;
}

/* The last rank is gone when the others have mapped theirs: none of them has an arena. */
static int run_dying(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = open_comm(rank, ranks);
    struct weft_arena *arena = NULL;
    dies_in_mmap = rank == ranks->n - 1;
    CHECK(map_whole(comm, 4 << 20, &arena, &err) == WEFT_E_LOST, "%s", err.text);
    CHECK(strstr(err.text, "rank 2") != NULL && arena == NULL, "%s", err.text);
    weft_comm_close(comm);
    return 0;
}

static int run_alone(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)ranks;
    (void)argument;
    const struct weft_comm_options options = {
        .rank = rank, .ranks = 1, .local = {.control_fd = -1}};
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    struct weft_arena *arena;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_OK, "%s", err.text);
    CHECK(map_whole(comm, 12345, &arena, &err) == WEFT_OK, "%s", err.text);
    memset(weft_arena_memory(arena), 1, 12345);
    weft_comm_close(comm); /* unmaps by itself */
    return 0;
}

static void test_options(void)
{
    struct weft_comm *comm = NULL;
    struct weft_comm_options options = {.rank = 0, .ranks = 2, .local = {.control_fd = -1}};
    struct weft_error err = {.status = WEFT_OK};
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_E_INTERNAL, "%s", err.text);
    CHECK(strstr(err.text, "need shared memory that their launcher made") != NULL, "%s", err.text);
    err.status = WEFT_OK;
    options.rank = 2;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_E_INTERNAL, "%s", err.text);
    err.status = WEFT_OK;
    options = (struct weft_comm_options){.ranks = 1, .local = {.control_fd = -1, .emulate = true}};
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_E_USAGE, "%s", err.text);
    err.status = WEFT_OK;
    options.local.emulate = false;
    CHECK(weft_comm_open("pigeon", &options, &comm, &err) == WEFT_E_ENVIRONMENT, "%s", err.text);
    CHECK(strcmp(err.text, "no communicator \"pigeon\" in this build: it has \"local\", \"mpi\"") ==
              0,
          "%s", err.text);
    err.status = WEFT_OK;
    options.local.control_fd = STDIN_FILENO;
    CHECK(weft_comm_open("local", &options, &comm, &err) == WEFT_E_INTERNAL, "%s", err.text);
    CHECK(comm == NULL, "an output was touched");
    weft_comm_close(NULL);
}

static void test_available(void)
{
    char name[512] = "";
    int64_t bytes = weft_memory_available(name, sizeof name);
    CHECK(bytes > 0 && bytes < INT64_C(1) << 50, "%lld bytes (%s)", (long long)bytes, name);
    CHECK(strlen(name) > 0, "no name");
}

RANKS_TEST(arena)
{
    test_options();
    test_available();
    for (int32_t n = 1; n <= MOST_RANKS; n++)
        CHECK(ranks_run(n, run_mapping, NULL) == 0, "mapping, %d ranks", n);
    CHECK(ranks_run(1, run_alone, NULL) == 0, "alone");
    CHECK(ranks_run(2, run_refused, NULL) == 0, "refused");
    CHECK(ranks_run(3, run_reads, NULL) == 0, "reads");
    CHECK(ranks_run(2, run_otherwise, NULL) == 0, "otherwise");
    CHECK(ranks_run(3, run_dying, NULL) == 1, "one dies");
    /* A sanitizer's own memory is refused by RLIMIT_AS too, and it ends the process then. */
    int resources[] = {RLIMIT_FSIZE, RLIMIT_AS};
    for (int i = 0; i < (TEST_SANITIZED ? 1 : 2); i++)
        CHECK(ranks_run(2, run_limited, &resources[i]) == 0, "limit %d", i);
    return 0;
}
