/* SPDX-License-Identifier: Apache-2.0 */
/* On a machine that truly contends, the device under the virtual clock with known rates, the rates
 * are found from two traces of the executor: overlapped, and serialised. */
#include <stdlib.h>
#include <string.h>

#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

enum { RANKS = 2, STEPS = 2 };

struct task {
    const struct job *job;
    struct measure_times *times; /* in shared memory */
    int64_t *together_ns;        /* of compute and channel, while both worked */
};

static int execute(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const struct weft_program *program = task->job->program;
    int32_t n = program->n_instructions;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, false);
    int64_t *ready_ns = calloc((size_t)n, sizeof *ready_ns);
    int64_t *over_ns = calloc((size_t)n, sizeof *over_ns);
    CHECK(ready_ns != NULL && over_ns != NULL, "out of memory");
    for (int64_t step = 1; step <= STEPS; step++)
        job_rank_step(&r, step);
    if (rank == 0) {
        /* Under the virtual clock ranks are equal, and each ready one works. */
        weft_measure_read_channel(program, r.trace, ready_ns, over_ns);
        weft_measure_read_times(program, r.trace, ready_ns, over_ns, task->times);
        for (int32_t i = 0; i < n; i++) {
            struct weft_record record = r.trace->records[i];
            CHECK(program->instructions[i].op == WEFT_OP_MARK ||
                      (task->times->from_ns[i] == r.trace->zero_ns + record.start_ns &&
                       task->times->to_ns[i] == r.trace->zero_ns + record.end_ns),
                  "step %d: instruction %d is not where it was", STEPS, i);
        }
        for (int32_t i = 0; i < n; i++)
            *task->together_ns += task->times->beside_ns[i];
    }
    OK(weft_exec_settle(r.exec, &err));
    free(over_ns);
    free(ready_ns);
    job_rank_close(&r);
    return 0;
}

static struct measure_times run(const struct job *job, int64_t *together_ns)
{
    size_t bytes = (size_t)job->program->n_instructions * sizeof(int64_t);
    struct measure_times times = {job_shared(bytes), job_shared(bytes), job_shared(bytes)};
    struct task task = {job, &times, job_shared(sizeof(int64_t))};
    CHECK(ranks_run(RANKS, execute, &task) == 0, "a run failed");
    *together_ns = *task.together_ns;
    return times;
}

static void near(const char *what, const char *path, int32_t found, int32_t known)
{
    CHECK(abs(found - known) <= WEFT_RATE_ONE / 100, "%s: %s rate %d, known %d", path, what, found,
          known);
}

static void check_rates(const char *path, const char *compute, const char *channel)
{
    const char *overrides[] = {
        "cluster.ranks=2", "cluster.emulate=false", "plan.blocks=3", compute, channel, NULL};
    struct measure_slowing total = {0};
    int64_t together_ns;
    struct job job;
    job_open(&job, path, overrides);
    /* Like the rehearsal: all possible work overlaps. */
    job_plan_policy(&job, WEFT_POLICY_FSDP, false);
    struct weft_rates known = job.program->lanes[WEFT_LANE_FIRST].rates;
    struct measure_times beside = run(&job, &together_ns);
    CHECK(together_ns > 0, "%s: nothing overlaps", path);
    OK(weft_measure_serialise(job.program, &err));
    struct measure_times alone = run(&job, &together_ns);
    CHECK(together_ns == 0, "%s: serialised, %lld ns overlap", path, (long long)together_ns);
    weft_measure_add_times(job.program, &alone, &beside, &total);
    struct weft_rates found = weft_measure_rates(&total);
    near("compute", path, found.compute, known.compute);
    near("channel", path, found.own, known.own);
    job_close(&job);
}

static struct weft_rates rates(int64_t compute_longer, int64_t channel_longer, int64_t beside)
{
    struct measure_slowing total = {
        .longer_ns =
            {[WEFT_STREAM_COMPUTE] = compute_longer, [WEFT_STREAM_CHANNEL] = channel_longer},
        .beside_ns = {[WEFT_STREAM_COMPUTE] = beside, [WEFT_STREAM_CHANNEL] = beside},
    };
    return weft_measure_rates(&total);
}

/* A problem accepts every measured value. */
static void check_range(void)
{
    struct weft_rates none = rates(0, 0, 0), faster = rates(-50, -1, 100);
    CHECK(none.compute == WEFT_RATE_ONE && none.own == WEFT_RATE_ONE, "nothing overlapped");
    CHECK(faster.compute == WEFT_RATE_ONE && faster.own == WEFT_RATE_ONE, "noise");
    struct weft_rates some = rates(25, 50, 100);
    CHECK(some.compute == 768 && some.own == 512, "%d %d", some.compute, some.own);
    for (int64_t a = -10; a <= 210; a += 3) {
        for (int64_t b = -10; b <= 210; b += 3) {
            struct weft_rates found = rates(a, b, 100);
            CHECK(found.compute >= WEFT_RATE_LEAST && found.compute <= WEFT_RATE_ONE &&
                      found.own >= WEFT_RATE_LEAST && found.own <= WEFT_RATE_ONE &&
                      found.compute + found.own >= WEFT_RATE_ONE,
                  "%lld and %lld of 100 longer: %d and %d", (long long)a, (long long)b,
                  found.compute, found.own);
            CHECK((a <= b) == (found.compute >= found.own) || found.compute == found.own,
                  "%lld and %lld: %d and %d", (long long)a, (long long)b, found.compute, found.own);
        }
    }
}

RANKS_TEST(contention)
{
    check_range();
    const char *const configs[] = {"configs/runs/gpt-tiny.json", "configs/runs/mlp-tiny.json"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        check_rates(configs[i], "cluster.contention.compute=0.23",
                    "cluster.contention.channel=0.4");
        check_rates(configs[i], "cluster.contention.compute=0", "cluster.contention.channel=0.5");
        check_rates(configs[i], "cluster.contention.compute=0.6", "cluster.contention.channel=0");
        check_rates(configs[i], "cluster.contention.compute=0", "cluster.contention.channel=0");
    }
    return 0;
}
