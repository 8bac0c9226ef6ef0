/* hsdp: 4 ranks of nodes of 2, and 6 of nodes of 2 and of 3, end in the bits of dp, with any plan.
 * Buffers are poisoned when they die, and times are the simulator's. */
#include <stdio.h>

#include "tests/effort.h"
#include "tests/runtime/exec/same_trace.h"

enum { STEPS = 4, PLANS = TEST_CASES(3, 1) };

struct task {
    const struct job *job;
    struct weft_hash *fingerprint; /* shared */
};

static int train_job(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct weft_hash fingerprint;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
    }
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_fingerprint(r.exec, &fingerprint, &err));
    if (rank == 0) *task->fingerprint = fingerprint;
    job_rank_close(&r);
    return 0;
}

static int32_t count_units(const struct job *job, enum weft_policy policy)
{
    int32_t n = 0;
    for (int32_t u = 0; u < job->program->n_units; u++)
        n += job->program->policies[u] == policy;
    return n;
}

static void check_bits(const char *path, const char *override, int32_t n, const char *per_node,
                       struct weft_hash *shared)
{
    char ranks[32], node[40];
    snprintf(ranks, sizeof ranks, "cluster.ranks=%d", n);
    snprintf(node, sizeof node, "cluster.ranks_per_node=%s", per_node);
    const char *overrides[] = {
        ranks,
        node,
        "cluster.link={\"intra\":{\"alpha\":\"5us\",\"bandwidth\":\"2GB/s\"},"
        "\"inter\":{\"alpha\":\"20us\",\"bandwidth\":\"200MB/s\"}}",
        "plan.blocks=2",
        "plan.policies=dp,zero1,fsdp,sdp,hsdp",
        "cluster.emulate=false",
        override,
        NULL};
    struct weft_hash first = {0};
    struct job job;
    job_open(&job, path, overrides);
    for (int plan = 0; plan < 3 + PLANS; plan++) {
        struct task task = {&job, shared};
        if (plan == 0) job_plan_policy(&job, WEFT_POLICY_ZERO1, true);
        if (plan == 1 || plan == 2) job_plan_policy(&job, WEFT_POLICY_HSDP, plan == 2);
        if (plan > 2) job_plan_random(&job, (uint64_t)plan);
        if (plan == 1 || plan == 2)
            CHECK(count_units(&job, WEFT_POLICY_HSDP) == job.program->n_units, "%s: units", path);
        CHECK(ranks_run(n, train_job, &task) == 0, "%s, plan %d", path, plan);
        if (plan == 0) first = *shared;
        CHECK(weft_hash_equal(first, *shared), "%s, %s, %d ranks: plan %d has other bits", path,
              override, n, plan);
        if (plan > 1) CHECK(ranks_run(n, same_trace, &job) == 0, "%s, plan %d: times", path, plan);
    }
    job_close(&job);
}

RANKS_TEST(hybrid)
{
    struct weft_hash *shared = job_shared(sizeof *shared);
    check_bits("configs/runs/gpt-odd.json", "train.clip_norm=0.5", 4, "2", shared);
    check_bits("configs/runs/gpt-odd.json",
               "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\"}", 6, "2", shared);
    check_bits("configs/runs/gpt-no-clip.json", "train.precision.compute=bf16", 6, "3", shared);
    check_bits("configs/runs/gpt-accumulate.json", "train.reduce=micro_step", 4, "2", shared);
    check_bits("configs/runs/gpt-odd.json", "train.optimizer.type=lamb", 4, "2", shared);
    check_bits("configs/runs/gpt-odd.json", "cluster.channels=2", 4, "2", shared);
    return 0;
}
