/* SPDX-License-Identifier: Apache-2.0 */
/* Planned memory is the real memory: every small shipped run, at 1 to 4 ranks, under every policy,
 * with gathers and reductions as early and as late as possible. Dead ranges are poisoned: their
 * use gives NaN, or a report of AddressSanitizer. The arena has guard pages, and all its pages are
 * touched. */
#include <stdio.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 2 };

static const struct {
    const char *path, *override;
} runs[] = {
    {"configs/runs/gpt-tiny.json", NULL},
    {"configs/runs/gpt-tiny-4.json", NULL},
    {"configs/runs/gpt-odd.json", NULL},
    {"configs/runs/gpt-frozen.json", NULL},
    {"configs/runs/gpt-frozen.json", "train.precision.compute=f16"},
    {"configs/runs/gpt-classifier.json", NULL},
    {"configs/runs/mlp-tiny.json", NULL},
    {"configs/runs/gpt-accumulate.json", NULL},
    {"configs/runs/gpt-no-clip.json", NULL},
    {"configs/runs/gpt-odd.json", "train.optimizer.type=adam_mini"},
};
enum { RUNS = sizeof runs / sizeof runs[0] };

/* Trains by the job's plan from the start. */
static void check_plan(struct job_rank *r, const char *what)
{
    const struct job *job = r->job;
    for (int64_t step = 1; step <= STEPS; step++) {
        struct weft_step_result result = job_rank_step(r, step);
        CHECK(result.finite, "%s: loss %g, norm %g", what, result.loss, result.norm);
    }
    OK(weft_exec_settle(r->exec, &err));
    int64_t touched_bytes;
    OK(weft_exec_touched_bytes(r->exec, &touched_bytes, &err));
    job_check_touched(job, touched_bytes, what);
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct job *job = argument;
    struct job_rank r;
    job_plan_random(job, (uint64_t)ranks->n);
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    check_plan(&r, "a random plan");
    for (int plan = 0; plan < 2 * WEFT_POLICY_COUNT; plan++) {
        enum weft_policy policy = (enum weft_policy)(plan / 2);
        job_rank_unload(&r);
        job_plan_policy(job, policy, plan % 2 != 0);
        job_rank_load(&r);
        check_plan(&r, weft_policy_name(policy));
    }
    job_rank_close(&r);
    job_close(job);
    return 0;
}

RANKS_TEST(memory)
{
    for (int i = 0; i < RUNS; i++) {
        for (int32_t ranks = 1; ranks <= TEST_CASES(MOST_RANKS, 2); ranks++) {
            char set_ranks[64];
            struct job job;
            snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
            const char *overrides[] = {set_ranks, "cluster.emulate=false", runs[i].override, NULL};
            job_open(&job, runs[i].path, overrides);
            CHECK(ranks_run(ranks, train, &job) == 0, "%s at %d ranks", runs[i].path, ranks);
            job_close(&job);
        }
    }
    return 0;
}
