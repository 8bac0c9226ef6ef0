/* SPDX-License-Identifier: Apache-2.0 */
/* Replicated buffers are compared in full: a flipped bit in any buffer of one rank is found, and
 * the rank is named. */
#include <stdio.h>
#include <string.h>

#include "runtime/exec/host.h"
#include "runtime/exec/parts.h"
#include "tests/runtime/exec/job.h"

enum { RANKS = 3, BAD_RANK = 1, STEPS = 2, NODES = 3, NODE = 2 };

static const enum weft_buffer_kind kinds[] = {WEFT_BUFFER_FULL, WEFT_BUFFER_SHARD,
                                              WEFT_BUFFER_MASTER, WEFT_BUFFER_MOMENT1,
                                              WEFT_BUFFER_MOMENT2};
enum { KINDS = sizeof kinds / sizeof *kinds };

#define LINKS                                                                                      \
    "cluster.link={\"intra\":{\"alpha\":\"5us\",\"bandwidth\":\"2GB/s\"},"                         \
    "\"inter\":{\"alpha\":\"20us\",\"bandwidth\":\"200MB/s\"}}"

struct task {
    const struct job *job;
    int32_t *found; /* [KINDS], shared: buffers in which a flipped bit was found */
};

static void compare(struct job_rank *r, const char *unit, const char *kind)
{
    struct weft_error err = {0};
    enum weft_status status = weft_exec_compare_replicas(r->exec, STEPS, &err);
    if (unit == NULL) {
        CHECK(status == WEFT_OK, "rank %d: %s", r->rank, err.text);
        return;
    }
    char text[128];
    snprintf(text, sizeof text, "unit %s differ: rank %d holds other bits", unit, BAD_RANK);
    CHECK(status == WEFT_E_NUMERIC, "%s of %s: status %d", kind, unit, (int)status);
    CHECK(strstr(err.text, text) != NULL, "%s of %s: %s", kind, unit, err.text);
}

static void flip(const struct job_rank *r, const struct weft_buffer *buffer)
{
    const int32_t b = (int32_t)(buffer - r->job->program->buffers);
    if (r->rank == BAD_RANK) job_rank_buffer(r, b)[0] ^= 1;
}

/* Full parameters are gathered under hsdp and nodes. State of nodes has no copies. */
static bool has_copies(enum weft_policy policy, enum weft_buffer_kind kind)
{
    if (weft_policy_groups[policy].parameters != WEFT_GROUP_NODE) return true;
    return kind == WEFT_BUFFER_SHARD || (kind != WEFT_BUFFER_FULL && policy == WEFT_POLICY_HSDP);
}

static int flip_each(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const struct weft_program *program = task->job->program;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, false);
    for (int64_t step = 1; step <= STEPS; step++)
        job_rank_step(&r, step);
    /* A shard of nodes has the other nodes' updates with the next step. */
    if (!weft_policy_crosses(program->ways[0].policy)) OK(weft_exec_settle(r.exec, &err));
    compare(&r, NULL, NULL);
    for (int32_t u = 0; u < program->n_units; u++) {
        for (int k = 0; k < KINDS; k++) {
            if (!has_copies(program->ways[u].policy, kinds[k])) continue;
            int32_t at = weft_program_buffer(program, kinds[k], u, 0);
            if (at < 0) continue;
            flip(&r, &program->buffers[at]);
            compare(&r, task->job->stages.shards->units[u].name, weft_buffer_kind_name(kinds[k]));
            flip(&r, &program->buffers[at]);
            if (rank == 0) task->found[k]++;
        }
    }
    compare(&r, NULL, NULL);
    job_rank_close(&r);
    return 0;
}

/* With each node's parameters on the host, a flipped bit of a rank's copy there is found. */
static int flip_on_the_host(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    struct job_rank r;
    int32_t n = 0;
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_WALL, true);
    for (int64_t step = 1; step <= STEPS; step++)
        job_rank_step(&r, step);
    for (int32_t u = 0; u < job->program->n_units; u++) {
        if (!weft_program_fetches(job->program, u)) continue;
        unsigned char *shard = weft_exec_host_part(r.exec->host, u, EXEC_HOST_PARAMETERS).at;
        compare(&r, NULL, NULL);
        shard[u] ^= rank == BAD_RANK;
        compare(&r, job->stages.shards->units[u].name, "host");
        shard[u] ^= rank == BAD_RANK;
        n++;
    }
    OK(weft_exec_settle(r.exec, &err));
    compare(&r, NULL, NULL);
    CHECK(n > 0, "no shard is on the host");
    job_rank_close(&r);
    return 0;
}

static void check_host(void)
{
    const char *overrides[] = {"cluster.ranks=6",
                               "cluster.ranks_per_node=2",
                               LINKS,
                               "plan.policies=nodes",
                               "cluster.emulate=false",
                               "train.precision.compute=bf16",
                               "cluster.host={\"memory_limit\":\"1GB\",\"down\":{\"bandwidth\":"
                               "\"1GB/s\"},\"up\":{\"bandwidth\":\"1GB/s\"}}",
                               "plan.offload={\"state\":[\"device\"],"
                               "\"parameters\":[\"device\",\"host\"]}",
                               NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    CHECK(job_plan_planner(&job, "fcdp"), "no plan");
    CHECK(ranks_run(NODES * NODE, flip_on_the_host, &job) == 0, "three nodes with caches");
    job_close(&job);
}

/* A job with two copies of each replica, and the ranks that differ after a flip. */
struct pair {
    struct job job;
    enum weft_buffer_kind kind;
    const char *who;
};

/* Nobody can say which of two that differ is wrong. */
static int flip_of_two(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct pair *pair = argument;
    const struct weft_program *program = pair->job.program;
    struct weft_error err = {0};
    struct job_rank r;
    char text[128];
    job_rank_open(&r, &pair->job, rank, ranks, WEFT_CLOCK_WALL, false);
    flip(&r, &program->buffers[weft_program_buffer(program, pair->kind, 0, 0)]);
    enum weft_status status = weft_exec_compare_replicas(r.exec, STEPS, &err);
    snprintf(text, sizeof text, "rank %s (which of them is wrong cannot be told)", pair->who);
    CHECK(status == WEFT_E_NUMERIC && strstr(err.text, text) != NULL, "%s", err.text);
    job_rank_close(&r);
    return 0;
}

static void check_two(void)
{
    const char *two[] = {"cluster.ranks=2", "cluster.emulate=false", NULL};
    const char *nodes[] = {"cluster.ranks=4",    "cluster.ranks_per_node=2", LINKS,
                           "plan.policies=hsdp", "cluster.emulate=false",    NULL};
    struct pair pair = {.kind = WEFT_BUFFER_FULL, .who = "0, 1"};
    job_open(&pair.job, "configs/runs/gpt-odd.json", two);
    job_plan_policy(&pair.job, WEFT_POLICY_DP, false);
    CHECK(ranks_run(2, flip_of_two, &pair) == 0, "two ranks");
    job_close(&pair.job);
    pair = (struct pair){.kind = WEFT_BUFFER_SHARD, .who = "1, 3"};
    job_open(&pair.job, "configs/runs/gpt-odd.json", nodes);
    job_plan_policy(&pair.job, WEFT_POLICY_HSDP, false);
    CHECK(ranks_run(4, flip_of_two, &pair) == 0, "two nodes");
    job_close(&pair.job);
}

/* Three copies of each shard, in three nodes. */
static void check_nodes(enum weft_policy policy, int32_t *found)
{
    const char *overrides[] = {
        "cluster.ranks=6",       "cluster.ranks_per_node=2",     LINKS, "plan.policies=hsdp,nodes",
        "cluster.emulate=false", "train.precision.compute=bf16", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, policy, false);
    struct task task = {&job, found};
    CHECK(ranks_run(NODES * NODE, flip_each, &task) == 0, "three nodes");
    job_close(&job);
}

RANKS_TEST(replicas)
{
    int32_t *found = job_shared(KINDS * sizeof *found);
    static const char *const precisions[] = {"train.precision.compute=f32",
                                             "train.precision.compute=bf16"};
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", precisions[p], NULL};
        struct job job;
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        job_plan_policy(&job, WEFT_POLICY_DP, false);
        struct task task = {&job, found};
        CHECK(ranks_run(RANKS, flip_each, &task) == 0, "%s", precisions[p]);
        job_close(&job);
    }
    check_nodes(WEFT_POLICY_HSDP, found);
    check_nodes(WEFT_POLICY_NODES, found);
    check_two();
    check_host();
    for (int k = 0; k < KINDS; k++)
        CHECK(found[k] > 0, "no %s was compared", weft_buffer_kind_name(kinds[k]));
    return 0;
}
