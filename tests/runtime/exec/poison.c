/* SPDX-License-Identifier: Apache-2.0 */
/* Poison works: if a buffer is declared dead before its last reader, that reader fails. Without
 * poison the same goes unnoticed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/runtime/exec/job.h"

struct task {
    const struct job *job;
    bool poison;
    bool *finite;
};

static int step(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, task->poison);
    *task->finite = job_rank_step(&r, 1).finite;
    job_rank_close(&r);
    return 0;
}

/* Ends the life of a block's saved activations with its forward. */
static void shorten(struct job *job, struct weft_life *life)
{
    int32_t buffer = weft_program_buffer(job->program, WEFT_BUFFER_SAVED, 1, 0);
    CHECK(buffer >= 0, "layer 1 saves nothing");
    int32_t forward = job->stages.period->forward[1];
    *life = (struct weft_life){forward, forward};
    job->program->buffers[buffer].lives = life;
}

RANKS_TEST(poison)
{
    const char *overrides[] = {"cluster.ranks=1", "plan.blocks=1", "cluster.emulate=false", NULL};
    bool *finite = job_shared(sizeof *finite);
    struct weft_life life;
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_FSDP, true);
    struct task task = {&job, true, finite};
    CHECK(ranks_run(1, step, &task) == 0 && *finite, "a right program is poisoned by nothing");
    shorten(&job, &life);
    task.poison = false;
    CHECK(ranks_run(1, step, &task) == 0 && *finite, "nothing overwrites it without poison");
    task.poison = true;
    CHECK(ranks_run(1, step, &task) == 1, "a read of dead bytes went unnoticed");
    job_close(&job);
    return 0;
}
