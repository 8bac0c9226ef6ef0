/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on several GPUs, over the doubles of CUDA and NCCL: how they begin. */
#define _GNU_SOURCE /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/comm/site.h"

/* Each rank's communicator, opened with its GPU as the device. */
static enum weft_status open_rank(int32_t rank, const struct ranks *ranks, struct weft_comm **comm,
                                  struct weft_error *err)
{
    const struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_device *device;
    char text[16];
    snprintf(text, sizeof text, "%d", rank);
    setenv("LOCAL_RANK", text, 1);
    CHECK(weft_device_open("cuda", WEFT_CLOCK_WALL, &device, err) == WEFT_OK, "%s", err->text);
    const enum weft_status status = weft_comm_open("cuda", &options, comm, err);
    weft_device_close(device);
    return status;
}

struct refused {
    enum weft_status status;
    const char *text;
};

static int refused_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct refused *refused = argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    /* The last rank has another kind of GPU, where there are kinds. */
    if (rank == ranks->n - 1 && getenv("TEST_GPU") != NULL)
        setenv("WEFT_DOUBLE_GPU", getenv("TEST_GPU"), 1);
    const enum weft_status status = open_rank(rank, ranks, &comm, &err);
    CHECK(status == refused->status, "status %d: %s", (int)status, err.text);
    CHECK(strstr(err.text, refused->text) != NULL, "%s", err.text);
    CHECK(comm == NULL, "refused");
    return 0;
}

RANKS_TEST(two_ranks_on_one_gpu_are_refused)
{
    struct refused refused = {WEFT_E_ENVIRONMENT, "ranks 0 and 1 have one GPU"};
    setenv("WEFT_DOUBLE_GPUS", "1", 1);
    return ranks_run(3, refused_rank, &refused);
}

RANKS_TEST(gpus_of_two_kinds_are_refused)
{
    struct refused refused = {WEFT_E_DISAGREE, "rank 0 has a GPU of another kind, a double of "
                                               "sm_80, compute capability 8.0, than rank 2"};
    setenv("WEFT_DOUBLE_GPUS", "3", 1);
    setenv("TEST_GPU", "sm_90", 1);
    return ranks_run(3, refused_rank, &refused);
}

RANKS_TEST(what_fails_on_one_rank_before_they_meet_fails_on_all)
{
    struct refused refused = {WEFT_E_SYSTEM, "take memory for sums over ranks"};
    setenv("WEFT_DOUBLE_GPUS", "2", 1);
    setenv("WEFT_NCCL_SCRATCH_BYTES", "100000000000000000", 1);
    return ranks_run(2, refused_rank, &refused);
}

static int other_shape_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    (void)argument;
    struct weft_error err = {.status = WEFT_OK};
    struct weft_comm *comm = NULL;
    struct weft_arena *arena;
    CHECK(open_rank(rank, ranks, &comm, &err) == WEFT_OK, "%s", err.text);
    const struct weft_arena_shape shape = weft_arena_whole(rank == 1 ? 1 << 20 : 1 << 21);
    CHECK(weft_comm_map_arena(comm, &shape, NULL, &arena, &err) == WEFT_E_DISAGREE, "%s", err.text);
    CHECK(strstr(err.text, "all ranks must run the same plan") != NULL, "%s", err.text);
    weft_comm_close(comm);
    return 0;
}

RANKS_TEST(arenas_of_two_shapes_are_refused)
{
    setenv("WEFT_DOUBLE_GPUS", "2", 1);
    return ranks_run(2, other_shape_rank, NULL);
}
