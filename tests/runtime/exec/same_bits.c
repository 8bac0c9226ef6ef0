/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/runtime/exec/same_bits.h"

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
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
    }
    const struct weft_hash fingerprint = job_rank_end(&r);
    if (rank == 0) *task->fingerprint = fingerprint;
    return 0;
}

/* Trainable units of other policies. */
static int32_t count_others(const struct job *job, enum weft_policy policy)
{
    int32_t n = 0;
    for (int32_t u = 0; u < job->program->n_units; u++)
        n += job->stages.shards->units[u].trainable && job->program->ways[u].policy != policy;
    return n;
}

void check_same_bits(const char *path, const char *override, int32_t ranks, int32_t per_node,
                     const char *policies, enum weft_policy policy)
{
    static struct weft_hash *shared;
    char all[32], node[40];
    snprintf(all, sizeof all, "cluster.ranks=%d", ranks);
    snprintf(node, sizeof node, "cluster.ranks_per_node=%d", per_node);
    const char *overrides[] = {
        override,
        all,
        node,
        "cluster.link={\"intra\":{\"alpha\":\"5us\",\"bandwidth\":\"2GB/s\"},"
        "\"inter\":{\"alpha\":\"20us\",\"bandwidth\":\"200MB/s\"}}",
        "plan.blocks=2",
        policies,
        "cluster.emulate=false",
        NULL};
    struct weft_hash first = {0};
    struct job job;
    if (shared == NULL) shared = job_shared(sizeof *shared);
    job_open(&job, path, overrides);
    for (int plan = 0; plan < 3 + PLANS; plan++) {
        struct task task = {&job, shared};
        if (plan == 0) job_plan_policy(&job, WEFT_POLICY_DP, true);
        if (plan == 1 || plan == 2) job_plan_policy(&job, policy, plan == 2);
        if (plan > 2) job_plan_random(&job, (uint64_t)plan);
        if (plan == 1 || plan == 2) CHECK(count_others(&job, policy) == 0, "%s: units", path);
        CHECK(ranks_run(ranks, train_job, &task) == 0, "%s, plan %d", path, plan);
        if (plan == 0) first = *shared;
        CHECK(weft_hash_equal(first, *shared), "%s, %s, %d ranks: plan %d has other bits", path,
              override, ranks, plan);
        if (plan > 1)
            CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s, plan %d: times", path, plan);
    }
    job_close(&job);
}
