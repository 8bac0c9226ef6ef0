/* SPDX-License-Identifier: Apache-2.0 */
/* Links between processes, over the doubles of CUDA and NCCL. Checks the results, and that the
 * double finds planted mistakes. A rank is a process that was forked before its first CUDA call. */
#define _GNU_SOURCE /* for usleep and MAP_ANONYMOUS */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/comm/nccl/library.h"
#include "tests/emulation/doubles/findings.h"

enum { RANKS = 3, N = 40, ARENA_BYTES = 1 << 16, FULL = 4096, SLICE = 1024, WORDS = 2 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, err.text);          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

struct rank {
    int32_t rank;
    const struct weft_nccl_id *id;
    struct weft_nccl_link *link;
    struct weft_nccl_memory memory;
    cudaStream_t stream;
    float *host; /* pinned, as large as the arena */
};
static struct weft_error err;

static void await_stream(const struct rank *r)
{
    while (cudaStreamQuery(r->stream) == cudaErrorNotReady)
        usleep(50);
    CHECK(cudaStreamQuery(r->stream) == cudaSuccess);
}

static void begin(struct rank *r)
{
    const struct weft_nccl_link_options options = {
        .rank = r->rank, .ranks = RANKS, .timeout_ns = INT64_C(20) * 1000000000};
    CHECK(cudaSetDevice(r->rank) == cudaSuccess);
    CHECK(cudaMalloc((void **)&r->memory.arena, ARENA_BYTES) == cudaSuccess);
    CHECK(cudaMalloc((void **)&r->memory.scratch, ARENA_BYTES) == cudaSuccess);
    CHECK(cudaHostAlloc((void **)&r->host, ARENA_BYTES, 0) == cudaSuccess);
    CHECK(cudaStreamCreateWithPriority(&r->stream, cudaStreamNonBlocking, 0) == cudaSuccess);
    CHECK(weft_nccl_link_open(&options, r->id, &r->link, &err) == WEFT_OK);
    for (int i = 0; i < ARENA_BYTES / 4; i++)
        r->host[i] = (float)(1000 * r->rank + i);
    CHECK(cudaMemcpyAsync(r->memory.arena, r->host, ARENA_BYTES, cudaMemcpyHostToDevice,
                          r->stream) == cudaSuccess);
}

static void end(struct rank *r)
{
    await_stream(r);
    CHECK(cudaStreamDestroy(r->stream) == cudaSuccess);
    CHECK(cudaFree(r->memory.arena) == cudaSuccess && cudaFree(r->memory.scratch) == cudaSuccess);
    CHECK(cudaFreeHost(r->host) == cudaSuccess);
}

static void read_back(struct rank *r, const unsigned char *from)
{
    CHECK(cudaMemcpyAsync(r->host, from, ARENA_BYTES, cudaMemcpyDeviceToHost, r->stream) ==
          cudaSuccess);
    await_stream(r);
}

/* Returns the initial float at this byte of a rank's arena. */
static float first_value(int32_t rank, int64_t offset)
{
    return (float)(1000 * rank + offset / 4);
}

static void check_exchange(struct rank *r, const struct weft_nccl_step *step)
{
    read_back(r, r->memory.scratch);
    for (int m = 0; m < RANKS; m++) {
        if (m == r->rank) continue;
        for (int64_t i = 0; i < step->elements; i++)
            CHECK(r->host[m * step->elements + i] ==
                  first_value(m, FULL + r->rank * step->from.stride + 4 * i));
    }
}

static void moves_what_it_should(struct rank *r)
{
    const struct weft_nccl_shape shape = {r->rank, RANKS, RANKS};
    const struct weft_comm_block block = {
        .full_offset = FULL, .slice_offset = SLICE, .slice_elements = N};
    struct weft_nccl_steps steps;
    /* Issues an AlltoAll, and then messages of a part of each slice. */
    for (int64_t count = N; count >= N / 2; count -= N / 2) {
        weft_nccl_reduce_steps(&shape, &block, 0, count, &steps);
        CHECK(weft_nccl_is_dense(&steps.steps[0]) == (count == N));
        CHECK(weft_nccl_issue(r->link, &steps.steps[0], &r->memory, r->stream, &err) == WEFT_OK);
        check_exchange(r, &steps.steps[0]);
    }
    const struct weft_nccl_step gather = weft_nccl_gather_step(&shape, &block);
    CHECK(weft_nccl_issue(r->link, &gather, &r->memory, r->stream, &err) == WEFT_OK);
    const struct weft_nccl_agreement agreement = {0, 512, WORDS};
    CHECK(weft_nccl_agree(r->link, &agreement, &r->memory, r->stream, &err) == WEFT_OK);
    read_back(r, r->memory.arena);
    for (int m = 0; m < RANKS; m++)
        for (int i = 0; i < N; i++)
            CHECK(r->host[FULL / 4 + m * N + i] == first_value(m, SLICE + 4 * i));
    uint64_t words[WORDS], expected[WORDS] = {0};
    memcpy(words, r->host + 512 / 4, sizeof words);
    for (int m = 0; m < RANKS; m++) {
        for (int w = 0; w < WORDS; w++) {
            const float halves[2] = {first_value(m, 8 * w), first_value(m, 8 * w + 4)};
            uint64_t word;
            memcpy(&word, halves, sizeof word);
            expected[w] += word;
        }
    }
    CHECK(memcmp(words, expected, sizeof words) == 0);
    CHECK(weft_nccl_link_close(r->link, &err) == WEFT_OK);
}

/* The mistakes are in direct calls of NCCL, since library.c does not make them. */
static ncclComm_t open_comm(const struct rank *r)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclUniqueId id;
    ncclComm_t comm;
    ncclResult_t state = ncclInProgress;
    memcpy(id.internal, r->id[1].bytes, sizeof id.internal);
    CHECK(ncclCommInitRankConfig(&comm, RANKS, id, r->rank, &config) == ncclInProgress);
    while (state == ncclInProgress)
        (void)ncclCommGetAsyncError(comm, &state);
    CHECK(state == ncclSuccess);
    return comm;
}

static ncclResult_t await_comm(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
        (void)ncclCommGetAsyncError(comm, &state);
    return state;
}

static int taken(enum double_check check)
{
    char text[512];
    return weft_double_take(check, text, sizeof text);
}

static void puts_work_before_a_group_is_there(struct rank *r)
{
    ncclComm_t comm = open_comm(r);
    for (int mistake = 0; mistake < 2; mistake++) {
        CHECK(ncclAllGather(r->memory.arena, r->memory.scratch, N, ncclFloat32, comm, r->stream) ==
              ncclInProgress);
        if (mistake == 0) CHECK(await_comm(comm) == ncclSuccess);
        CHECK(cudaMemsetAsync(r->memory.arena + SLICE, 0, 4, r->stream) == cudaSuccess);
        CHECK(await_comm(comm) == ncclSuccess);
        await_stream(r);
        CHECK((taken(DOUBLE_BEHIND) > 0) == (mistake == 1));
    }
    CHECK(ncclCommAbort(comm) == ncclSuccess);
}

static void calls_something_else_than_its_peers(struct rank *r)
{
    ncclComm_t comm = open_comm(r);
    for (int mistake = 0; mistake < 2; mistake++) {
        const size_t n = mistake == 1 && r->rank == 1 ? N / 2 : N;
        CHECK(ncclAllGather(r->memory.arena, r->memory.scratch, n, ncclFloat32, comm, r->stream) ==
              ncclInProgress);
        CHECK(await_comm(comm) == (ncclResult_t)ncclSuccess || mistake == 1);
        await_stream(r);
        CHECK((taken(DOUBLE_COLLECTIVE) > 0) == (mistake == 1));
    }
    CHECK(ncclCommAbort(comm) == ncclSuccess);
}

/* Another stream may read this rank's piece meanwhile, as a save does. The mistake reads a peer's.
 */
static void reads_during_a_gather_in_place(struct rank *r)
{
    const unsigned char *own = r->memory.arena + (size_t)r->rank * N * sizeof(float);
    const unsigned char *peers =
        r->memory.arena + (size_t)((r->rank + 1) % RANKS) * N * sizeof(float);
    ncclComm_t comm = open_comm(r);
    cudaStream_t other;
    CHECK(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0) == cudaSuccess);
    await_stream(r);
    for (int mistake = 0; mistake < 2; mistake++) {
        CHECK(ncclAllGather(own, r->memory.arena, N, ncclFloat32, comm, r->stream) ==
              ncclInProgress);
        CHECK(cudaMemcpyAsync(r->host, mistake == 0 ? own : peers, N * sizeof(float),
                              cudaMemcpyDeviceToHost, other) == cudaSuccess);
        CHECK(await_comm(comm) == ncclSuccess);
        await_stream(r);
        while (cudaStreamQuery(other) == cudaErrorNotReady)
            usleep(50);
        CHECK((taken(DOUBLE_ORDER) > 0) == (mistake == 1));
        for (int i = 0; i < N && mistake == 0; i++)
            CHECK(r->host[i] == (float)(1000 * r->rank + r->rank * N + i));
    }
    CHECK(cudaStreamDestroy(other) == cudaSuccess);
    CHECK(ncclCommAbort(comm) == ncclSuccess);
}

static void destroys_what_is_not_finalized(struct rank *r)
{
    for (int mistake = 0; mistake < 2; mistake++) {
        struct rank of_this = *r;
        of_this.id += mistake;
        ncclComm_t comm = open_comm(&of_this);
        if (mistake == 0) {
            CHECK(ncclCommFinalize(comm) == ncclInProgress);
            CHECK(await_comm(comm) == ncclSuccess);
        }
        CHECK(ncclCommDestroy(comm) == ncclSuccess);
        CHECK((taken(DOUBLE_DESTROYED) > 0) == (mistake == 1));
    }
}

static void *abort_comm(void *comm)
{
    CHECK(ncclCommAbort(comm) == ncclSuccess);
    return NULL;
}

static void calls_from_another_thread(struct rank *r)
{
    ncclComm_t comm = open_comm(r);
    pthread_t thread;
    CHECK(taken(DOUBLE_OTHER_THREAD) == 0);
    CHECK(pthread_create(&thread, NULL, abort_comm, comm) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(taken(DOUBLE_OTHER_THREAD) > 0);
}

/* The second group of every rank fails. */
static void gives_an_error_that_comes_late(struct rank *r)
{
    const struct weft_nccl_shape shape = {r->rank, RANKS, RANKS};
    const struct weft_comm_block block = {
        .full_offset = FULL, .slice_offset = SLICE, .slice_elements = N};
    const struct weft_nccl_step gather = weft_nccl_gather_step(&shape, &block);
    CHECK(weft_nccl_issue(r->link, &gather, &r->memory, r->stream, &err) == WEFT_OK);
    await_stream(r);
    CHECK(weft_nccl_issue(r->link, &gather, &r->memory, r->stream, &err) == WEFT_E_LOST);
    CHECK(weft_nccl_link_close(r->link, &err) == WEFT_E_LOST);
}

static const struct {
    const char *name;
    void (*run)(struct rank *r);
    bool has_link;
    uint32_t seeds;
} tests[] = {
    {"moves_what_it_should", moves_what_it_should, true, 20},
    {"puts_work_before_a_group_is_there", puts_work_before_a_group_is_there, false, 1},
    {"calls_something_else_than_its_peers", calls_something_else_than_its_peers, false, 1},
    {"reads_during_a_gather_in_place", reads_during_a_gather_in_place, false, 1},
    {"destroys_what_is_not_finalized", destroys_what_is_not_finalized, false, 1},
    {"calls_from_another_thread", calls_from_another_thread, false, 1},
    {"gives_an_error_that_comes_late", gives_an_error_that_comes_late, true, 1},
};
enum { TESTS = sizeof tests / sizeof tests[0], IDS = 3 };

static int run_rank(int test, int32_t rank, const struct weft_nccl_id *ids)
{
    struct rank r = {.rank = rank, .id = ids};
    begin(&r);
    if (!tests[test].has_link) CHECK(weft_nccl_link_close(r.link, &err) == WEFT_OK);
    tests[test].run(&r);
    end(&r);
    char text[512] = "";
    for (int c = 0; c < DOUBLE_CHECK_COUNT; c++) {
        if (weft_double_take((enum double_check)c, text, sizeof text) == 0) continue;
        fprintf(stderr, "%s: %s\n", weft_double_check_name((enum double_check)c), text);
        return 1;
    }
    return 0;
}

/* True if all ranks succeeded. Another process makes the ids, which contain its name. */
static bool run_ranks(int test, struct weft_nccl_id *ids)
{
    pid_t pids[RANKS];
    int failed = 0, outcome;
    const pid_t maker = fork();
    if (maker == 0) {
        for (int i = 0; i < IDS; i++)
            CHECK(weft_nccl_make_id(&ids[i], &err) == WEFT_OK);
        _exit(0);
    }
    failed += waitpid(maker, &outcome, 0) != maker || outcome != 0;
    for (int32_t r = 0; r < RANKS; r++) {
        pids[r] = fork();
        if (pids[r] == 0) _exit(run_rank(test, r, ids));
    }
    for (int r = 0; r < RANKS; r++)
        failed += waitpid(pids[r], &outcome, 0) != pids[r] || outcome != 0;
    for (int i = 0; i < IDS; i++)
        (void)shm_unlink(ids[i].bytes);
    return failed == 0;
}

int main(void)
{
    struct weft_nccl_id *ids =
        mmap(NULL, IDS * sizeof *ids, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0;
    if (ids == MAP_FAILED) return 1;
    setenv("WEFT_DOUBLE_GPUS", "3", 1); /* RANKS */
    printf("1..%d\n", TESTS);
    for (int t = 0; t < TESTS; t++) {
        bool is_well = true;
        for (uint32_t seed = 1; seed <= tests[t].seeds; seed++) {
            char text[16];
            snprintf(text, sizeof text, "%u", seed);
            setenv("WEFT_DOUBLE_SEED", text, 1);
            setenv("WEFT_DOUBLE_NCCL_ASYNC", t == TESTS - 1 ? "2:6" : "0:0", 1);
            is_well = run_ranks(t, ids) && is_well;
        }
        printf("%sok %d %s, %u seeds\n", is_well ? "" : "not ", t + 1, tests[t].name,
               tests[t].seeds);
        failed += !is_well;
    }
    return failed > 0;
}
