/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters on the host change no bit: a run ends with the same parameters as with all in the
 * arena, for every location of state and of saved activations, also of nodes that cache theirs. The
 * arena is poisoned, so a gather of a slice that is late gives NaN. */
#include <stdio.h>
#include <string.h>

#include "runtime/exec/host.h"
#include "runtime/exec/parts.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"
#include "tests/runtime/exec/same_trace.h"

enum { STEPS = 4 };

struct outcome {
    struct weft_hash fingerprint;
    double last_loss, first_evaluated, evaluated;
    int64_t host_bytes;
};

struct task {
    const struct job *job;
    bool evaluates_first; /* the initial parameters */
    struct outcome *outcome;
};

static int train_steps(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome own = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    if (task->evaluates_first)
        OK(weft_exec_evaluate(r.exec, r.input, r.targets, &own.first_evaluated, &err));
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
        own.last_loss = result.loss;
    }
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_fingerprint(r.exec, &own.fingerprint, &err));
    OK(weft_exec_evaluate(r.exec, r.input, r.targets, &own.evaluated, &err));
    own.host_bytes = weft_exec_host_bytes(r.exec->host);
    if (rank == 0) *task->outcome = own;
    job_rank_close(&r);
    return 0;
}

/* A run of `ranks` ranks, `per_node` of a node; 0: all. */
struct shape {
    int32_t ranks, per_node;
    const char *clip, *reduce;
};

static void open_job(struct job *job, const struct shape *shape, const char *parameters,
                     const char *others, const char *policy)
{
    char set_ranks[64], set_nodes[64], set_parameters[64], activations[64], state[64];
    const int32_t per_node = shape->per_node > 0 ? shape->per_node : shape->ranks;
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", shape->ranks);
    snprintf(set_nodes, sizeof set_nodes, "cluster.ranks_per_node=%d", per_node);
    snprintf(set_parameters, sizeof set_parameters, "plan.offload.parameters=[%s]", parameters);
    snprintf(activations, sizeof activations, "plan.offload.activations=[%s]", others);
    snprintf(state, sizeof state, "plan.offload.state=[%s]", others);
    const char *overrides[] = {set_ranks,
                               set_nodes,
                               "cluster.link={\"intra\":{\"alpha\":\"5us\",\"bandwidth\":"
                               "\"2GB/s\"},\"inter\":{\"alpha\":\"20us\",\"bandwidth\":"
                               "\"200MB/s\"}}",
                               "plan.blocks=2",
                               "cluster.emulate=false",
                               "cluster.host.memory_limit=1GB",
                               "cluster.host.down.bandwidth=1GB/s",
                               "cluster.host.up.bandwidth=2GB/s",
                               "cluster.host.update=1GB/s",
                               "train.precision.compute=bf16",
                               "train.grad_accum=2",
                               set_parameters,
                               activations,
                               state,
                               shape->clip,
                               shape->reduce,
                               policy,
                               NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

static int64_t host_peak(const struct weft_plan *plan)
{
    int64_t bytes = 0;
    for (int32_t t = 1; t < plan->problem->n_tiers; t++)
        bytes += weft_plan_peak(plan, t, NULL);
    return bytes;
}

static int32_t count_fetched(const struct weft_program *program)
{
    int32_t n = 0;
    for (int32_t u = 0; u < program->n_units; u++)
        n += weft_program_fetches(program, u);
    return n;
}

/* All on the device, then random plans. Returns the number of units with a shard on the host. */
static int32_t check_plans(const struct shape *shape, struct outcome *shared)
{
    const int32_t ranks = shape->ranks;
    static const char *const others[] = {"\"device\"", "\"device\"", "\"host\"",
                                         "\"device\",\"host\""};
    static const char *const policies[][4] = {
        {"plan.policies=fsdp", "plan.policies=fsdp", "plan.policies=sdp,fsdp",
         "plan.policies=dp,zero1,sdp,fsdp"},
        {"plan.policies=nodes", "plan.policies=nodes", "plan.policies=hsdp,nodes",
         "plan.policies=dp,zero1,sdp,fsdp,hsdp,nodes"}};
    struct outcome first = {0};
    int32_t n_fetched = 0;
    char what[128];
    for (int i = 0; i < 4; i++) {
        struct job job;
        struct task task = {&job, i < 2, shared};
        snprintf(what, sizeof what, "%d ranks, %d a node, %s, %s, plan %d", ranks, shape->per_node,
                 shape->clip, shape->reduce, i);
        open_job(&job, shape, i == 0 ? "\"device\"" : "\"device\",\"host\"", others[i],
                 policies[shape->per_node > 0][i]);
        job_plan_random(&job, (uint64_t)(ranks * 4 + i));
        const int32_t n = count_fetched(job.program);
        CHECK(i > 0 || n == 0, "%s: a shard is on the host", what);
        n_fetched += n;
        CHECK(ranks_run(ranks, train_steps, &task) == 0, "%s: a rank failed", what);
        if (i == 0) first = *shared;
        CHECK(weft_hash_equal(first.fingerprint, shared->fingerprint), "%s: other parameters",
              what);
        CHECK(first.last_loss == shared->last_loss, "%s: another loss", what);
        CHECK(first.evaluated == shared->evaluated, "%s: another loss in evaluation", what);
        CHECK(i > 1 || first.first_evaluated == shared->first_evaluated,
              "%s: another loss at first", what);
        CHECK(shared->host_bytes == host_peak(job.plan), "%s: the host has %lld bytes, not %lld",
              what, (long long)shared->host_bytes, (long long)host_peak(job.plan));
        if (i == 1) CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s: simulator and clock", what);
        job_close(&job);
    }
    return n_fetched;
}

RANKS_TEST(fetched)
{
    static const char *const clips[] = {"train.clip_norm=0", "train.clip_norm=0.5"};
    static const char *const cadences[] = {"train.reduce=step", "train.reduce=micro_step"};
    struct outcome *shared = job_shared(sizeof *shared);
    for (int32_t ranks = 1; ranks <= 4; ranks++)
        for (int i = 0; i < 4; i++) {
            if (!TEST_CASES_OF(true, i == ranks - 1, i == ranks - 1)) continue;
            const struct shape shape = {ranks, 0, clips[i % 2], cadences[i / 2]};
            const int32_t n = check_plans(&shape, shared);
            CHECK(n > 2, "%d ranks: %d units have their parameters on the host", ranks, n);
        }
    for (int i = 0; i < 4; i++) {
        const struct shape shape = {i % 2 > 0 ? 6 : 4, i == 3 ? 3 : 2, clips[i % 2],
                                    cadences[i / 2]};
        if (i != 1 && !test_draws((uint64_t)i, 1, 3)) continue;
        const int32_t n = check_plans(&shape, shared);
        CHECK(n > 2, "%d ranks in nodes: %d units are cached", shape.ranks, n);
    }
    return 0;
}
