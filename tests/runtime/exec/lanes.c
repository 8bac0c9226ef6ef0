/* SPDX-License-Identifier: Apache-2.0 */
/* Two lanes of the network: gathers on one and reductions on the other, at once. The bits are those
 * of one lane, times are the simulator's, and a dead rank is named on either. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/effort.h"
#include "tests/runtime/exec/same_trace.h"

enum { STEPS = 4, RANKS = 3, PLANS = TEST_CASES(2, 1), DEAD_RANK = 1, DEATH_STEP = 3 };

struct task {
    const struct job *job;
    enum weft_clock clock;
    struct weft_hash *fingerprint; /* shared */
};

static int train_job(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, task->clock, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
    }
    const struct weft_hash fingerprint = job_rank_end(&r);
    if (rank == 0) *task->fingerprint = fingerprint;
    return 0;
}

static int32_t lanes_of_network(const struct weft_program *program)
{
    int32_t n = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < program->n_lanes; lane++)
        n += program->lanes[lane].kind == WEFT_LANE_KIND_NETWORK;
    return n;
}

/* Plans with two lanes against a plan with one. */
static void check_bits(const char *path, const char *override, struct weft_hash *shared)
{
    struct weft_hash first = {0};
    for (int channels = 1; channels <= 2; channels++) {
        const char *overrides[] = {"cluster.ranks=3",
                                   "plan.blocks=2",
                                   "cluster.emulate=false",
                                   channels == 1 ? "cluster.channels=1" : "cluster.channels=2",
                                   override,
                                   NULL};
        struct job job;
        job_open(&job, path, overrides);
        for (int plan = 0; plan < (channels == 1 ? 1 : WEFT_POLICY_COUNT + PLANS); plan++) {
            if (plan < WEFT_POLICY_COUNT)
                job_plan_policy(&job, (enum weft_policy)plan, plan % 2 == 0);
            else
                job_plan_random(&job, (uint64_t)plan);
            CHECK(lanes_of_network(job.program) == channels, "%s: lanes", path);
            struct task task = {&job, plan % 2 == 0 ? WEFT_CLOCK_VIRTUAL : WEFT_CLOCK_WALL, shared};
            CHECK(ranks_run(RANKS, train_job, &task) == 0, "%s, plan %d", path, plan);
            if (channels == 1) first = *shared;
            CHECK(weft_hash_equal(first, *shared), "%s, %s: plan %d has other bits on two lanes",
                  path, override, plan);
            if (plan >= WEFT_POLICY_COUNT)
                CHECK(ranks_run(RANKS, same_trace, &job) == 0, "%s, plan %d: times", path, plan);
        }
        job_close(&job);
    }
}

struct death {
    const struct job *job;
    char (*texts)[WEFT_ERROR_TEXT_BYTES]; /* [RANKS], shared */
};

static int run_until_death(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct death *death = argument;
    const struct job *job = death->job;
    struct job_rank r;
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_WALL, false);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct weft_step_result result;
        struct weft_error why = {0};
        const struct weft_step_inputs inputs = {
            .input = r.input, .targets = r.targets, .step = step};
        if (rank == DEAD_RANK && step == DEATH_STEP) _exit(0);
        const int64_t samples = job->config->train.micro_batch;
        OK(weft_data_fill(r.data, step, rank * samples, samples, r.input, r.targets, &err));
        const enum weft_status status = weft_exec_step(r.exec, &inputs, &result, NULL, &why);
        CHECK((status == WEFT_OK) == (step < DEATH_STEP), "step %lld: %s", (long long)step,
              why.text);
        if (status == WEFT_OK) continue;
        CHECK(status == WEFT_E_LOST, "%s", why.text);
        snprintf(death->texts[rank], WEFT_ERROR_TEXT_BYTES, "%s", why.text);
        break;
    }
    job_rank_close(&r);
    return 0;
}

/* A rank that notices the death cancels its other lane, so the next one may hear of it first. */
static void check_death(void)
{
    const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", "cluster.channels=2",
                               NULL};
    struct job job;
    struct death death = {&job, job_shared(RANKS * sizeof *death.texts)};
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_FSDP, false);
    CHECK(ranks_run(RANKS, run_until_death, &death) == 0, "a rank did not fail in order");
    const bool named = strstr(death.texts[0], "rank 1 (process ") != NULL ||
                       strstr(death.texts[2], "rank 1 (process ") != NULL;
    CHECK(named, "%s, and %s", death.texts[0], death.texts[2]);
    job_close(&job);
}

RANKS_TEST(lanes)
{
    struct weft_hash *shared = job_shared(sizeof *shared);
    check_bits("configs/runs/gpt-odd.json", "train.clip_norm=0.5", shared);
    check_bits("configs/runs/gpt-no-clip.json", "train.precision.compute=bf16", shared);
    check_bits("configs/runs/gpt-accumulate.json",
               "train.precision={\"compute\":\"bf16\",\"reduce\":\"f32\"}", shared);
    check_bits("configs/runs/gpt-odd.json", "train.optimizer.type=lamb", shared);
    check_bits("configs/runs/gpt-odd.json", "cluster.contention.compute=0.23", shared);
    check_death();
    return 0;
}
