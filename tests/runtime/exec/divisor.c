/* SPDX-License-Identifier: Apache-2.0 */
/* The divisor of the loss is a scalar of each step. Half of the rows double loss and gradient,
 * which plain SGD shows as half of the rate, bit for bit. A rotated period runs the last backward
 * of a step in the next one, with the divisor of its own step. */
#include <stdio.h>
#include <string.h>

#include "tests/runtime/exec/job.h"

enum { STEPS = 3 };

struct outcome {
    struct weft_hash parameters;
    double losses[STEPS];
};

struct task {
    const struct job *job;
    const int64_t *rows;
    struct outcome *out;
};

static int train_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct outcome out;
    struct job_rank r;
    memset(&out, 0, sizeof out);
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        r.rows = task->rows[step - 1];
        out.losses[step - 1] = job_rank_step(&r, step).loss;
    }
    out.parameters = job_rank_end(&r);
    if (rank == 0) *task->out = out;
    return 0;
}

/* Trains with SGD of that rate; `clip` 0: the period is rotated. */
static struct outcome run_with(const char *clip, const char *rate, const int64_t rows[STEPS])
{
    enum { RANKS = 2 };
    char optimizer[128];
    struct outcome *shared = job_shared(sizeof *shared);
    struct job job;
    snprintf(optimizer, sizeof optimizer,
             "train.optimizer={\"type\":\"sgd\",\"momentum\":0,\"weight_decay\":0,\"lr\":%s}",
             rate);
    const char *overrides[] = {"cluster.emulate=false",
                               "train.grad_accum=2",
                               "train.micro_batch=1",
                               "train.lr_schedule={}",
                               clip,
                               optimizer,
                               NULL};
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_FSDP, true);
    const struct task task = {&job, rows, shared};
    CHECK(ranks_run(RANKS, train_rank, (void *)&task) == 0, "a rank failed");
    job_close(&job);
    return *shared;
}

RANKS_TEST(divisor)
{
    enum { ALL = 2 * 2 * 31 };
    const int64_t none[STEPS] = {0}, all[STEPS] = {ALL, ALL, ALL};
    const int64_t halves[STEPS] = {ALL / 2, ALL / 2, ALL / 2},
                  mixed[STEPS] = {ALL / 2, ALL, ALL / 4};
    const char *const clip = "train.clip_norm=1e12", *const rotated = "train.clip_norm=0";
    const struct outcome usual = run_with(clip, "0.25", none), given = run_with(clip, "0.25", all);
    const struct outcome slow = run_with(clip, "0.125", halves);
    CHECK(memcmp(&usual, &given, sizeof usual) == 0, "all rows are not the usual number");
    CHECK(weft_hash_equal(usual.parameters, slow.parameters), "half of the rows, half of the rate");
    for (int i = 0; i < STEPS; i++)
        CHECK(slow.losses[i] == 2 * usual.losses[i], "step %d: %g", i + 1, slow.losses[i]);
    const struct outcome one = run_with(clip, "0.125", mixed),
                         other = run_with(rotated, "0.125", mixed);
    CHECK(memcmp(&one, &other, sizeof one) == 0, "a rotated period takes another step's divisor");
    CHECK(!weft_hash_equal(one.parameters, slow.parameters), "rows change nothing");
    return 0;
}
