/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that dies in the middle of a run is an error on every other one, soon, and no hang. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 1000, DEAD_RANK = 1, DEATH_STEP = 3, DEATH_CODE = 7 };
#define MOST_NS (INT64_C(2) * 1000000000)

struct shared {
    int64_t died_ns;
    int64_t noticed_ns[MOST_RANKS];
    enum weft_status status[MOST_RANKS];
    char text[MOST_RANKS][WEFT_ERROR_TEXT_BYTES];
};

struct task {
    const struct job *job;
    struct shared *shared;
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct shared *shared = task->shared;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, false);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct weft_step_result result;
        struct weft_error why = {0};
        struct weft_step_inputs inputs = {.input = r.input, .targets = r.targets, .step = step};
        if (rank == DEAD_RANK && step == DEATH_STEP) {
            shared->died_ns = weft_clock_now_ns();
            _exit(DEATH_CODE);
        }
        int64_t samples = task->job->config->train.micro_batch;
        OK(weft_data_fill(r.data, step, rank * samples, samples, r.input, r.targets, &err));
        shared->status[rank] = weft_exec_step(r.exec, &inputs, &result, NULL, &why);
        shared->noticed_ns[rank] = weft_clock_now_ns();
        snprintf(shared->text[rank], WEFT_ERROR_TEXT_BYTES, "%s", why.text);
        if (shared->status[rank] != WEFT_OK) break;
    }
    job_rank_close(&r);
    return 0;
}

/* The plan is for three ranks, and another number was started. */
static int refuse(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    struct weft_comm_options options = ranks_options(rank, ranks);
    struct weft_error why = {0};
    struct weft_exec *none = NULL;
    struct job_rank r = {.job = job};
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &r.device, &err));
    job_open_kernels(job, &r.nn);
    OK(weft_comm_open("local", &options, &r.comm, &err));
    OK(weft_exec_map_arena(r.comm, job->program, false, &r.arena, &err));
    struct weft_exec_options exec = {.config = job->config,
                                     .shards = job->stages.shards,
                                     .plan = job->plan,
                                     .program = job->program,
                                     .device = r.device,
                                     .comm = r.comm,
                                     .nn = r.nn,
                                     .arena = r.arena};
    CHECK(weft_exec_create(&exec, &none, &why) == WEFT_E_DATA && none == NULL, "%d ranks: %s",
          ranks->n, why.text);
    CHECK(strstr(why.text, "the plan is for 3 ranks and ") != NULL, "%s", why.text);
    weft_comm_close(r.comm);
    weft_nn_close(r.nn);
    weft_device_close(r.device);
    return 0;
}

RANKS_TEST(fault)
{
    struct shared *shared = job_shared(sizeof *shared);
    const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", "plan.blocks=2", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_random(&job, 11);
    CHECK(ranks_run(2, refuse, &job) == 0 && ranks_run(4, refuse, &job) == 0, "other ranks");
    struct task task = {&job, shared};
    CHECK(ranks_run(3, train, &task) == 1, "exactly one rank fails");
    for (int32_t r = 0; r < 3; r++) {
        if (r == DEAD_RANK) continue;
        CHECK(shared->status[r] == WEFT_E_LOST, "rank %d: status %d: %s", r, (int)shared->status[r],
              shared->text[r]);
        CHECK(strstr(shared->text[r], "rank 1") != NULL, "rank %d: %s", r, shared->text[r]);
        CHECK(shared->noticed_ns[r] - shared->died_ns < MOST_NS, "rank %d noticed after %lld ns", r,
              (long long)(shared->noticed_ns[r] - shared->died_ns));
    }
    job_close(&job);
    return 0;
}
