/* SPDX-License-Identifier: Apache-2.0 */
/* The executor under ThreadSanitizer: ranks as threads with their streams. The model's buffers
 * take turns on the same memory, with state on the device, on the host and on a disk. Accesses
 * that no event, lane or collective orders are a race here. The library of products is invisible
 * to the sanitizer. Without the sanitizer the test still checks that all plans give the same
 * bits. */
#include <stdio.h>

#include "tests/effort.h"
#include "tests/runtime/comm/threads.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 3 };

struct task {
    const struct job *job;
    struct weft_hash fingerprint[MOST_RANKS];
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, false);
    for (int64_t step = 1; step <= STEPS; step++)
        CHECK(job_rank_step(&r, step).finite, "step %lld", (long long)step);
    task->fingerprint[rank] = job_rank_end(&r);
    return 0;
}

static void check_ranks(int32_t ranks)
{
    char set_ranks[64], path[64];
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    snprintf(path, sizeof path, "cluster.disk.path=%s", job_disk());
    const char *overrides[] = {set_ranks,
                               path,
                               "plan.blocks=2",
                               ranks == 2 ? "cluster.channels=1" : "cluster.channels=2",
                               "cluster.emulate=false",
                               "plan.offload.activations=[\"host\"]",
                               "cluster.host.memory_limit=1GB",
                               "cluster.host.down.bandwidth=1GB/s",
                               "cluster.host.up.bandwidth=1GB/s",
                               "cluster.host.update=1GB/s",
                               "cluster.disk.limit=1GB",
                               "cluster.disk.read.bandwidth=1GB/s",
                               "cluster.disk.write.bandwidth=1GB/s",
                               ranks == 2 ? "cluster.disk.duplex=half" : "cluster.disk.duplex=full",
                               NULL};
    struct job job;
    struct weft_hash first = {0};
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    const int64_t random_plans = TEST_CASES(4, 1);
    for (int32_t plan = 0; plan < WEFT_POLICY_COUNT + random_plans; plan++) {
        struct task task = {.job = &job};
        if (plan < WEFT_POLICY_COUNT) {
            job_plan_policy(&job, (enum weft_policy)plan, plan % 2 == 0);
        } else {
            job_plan_random(&job, (uint64_t)plan);
        }
        job_page_in_line(&job);
        CHECK(threads_run(ranks, train, &task) == 0, "plan %d", plan);
        if (plan == 0) first = task.fingerprint[0];
        for (int32_t r = 0; r < ranks; r++)
            CHECK(weft_hash_equal(task.fingerprint[r], first), "plan %d, rank %d", plan, r);
    }
    job_close(&job);
}

int main(void)
{
    check_ranks(2);
    check_ranks(3);
    return 0;
}
