/* Poison works: when a buffer is said to die before its last reader, training shows it, with NaN,
 * or, in a build with AddressSanitizer, by dying of it. Without poison the same goes unnoticed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/runtime/exec/job.h"

#if defined(__SANITIZE_ADDRESS__)
enum { FOUND_BY_SANITIZER = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { FOUND_BY_SANITIZER = 1 };
#else
enum { FOUND_BY_SANITIZER = 0 };
#endif
#else
enum { FOUND_BY_SANITIZER = 0 };
#endif

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

/* What a block saves for its backward dies with its forward. */
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
    *finite = true;
    int failed = ranks_run(1, step, &task);
    CHECK(FOUND_BY_SANITIZER ? failed == 1 : failed == 0 && !*finite,
          "a read of dead bytes went unnoticed");
    job_close(&job);
    return 0;
}
