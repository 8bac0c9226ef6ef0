/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values are functions of seed, name and element, and the fingerprint sees each of them
 * once: the same for every number of ranks, policy and block count, and another when a bit of a
 * parameter changes, but not when padding does. */
#include <stdio.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

struct task {
    const struct job *job;
    int32_t unit; /* its parameters are changed */
    struct weft_hash *whole, *changed, *padded;
};

/* A unit's parameters on this rank, and how many bytes there are with padding. */
static unsigned char *parameters(const struct job_rank *r, int32_t unit, int64_t *bytes)
{
    const struct weft_program *program = r->job->program;
    int32_t buffer = weft_program_buffer(program, WEFT_BUFFER_SHARD, unit, 0);
    if (buffer < 0) buffer = weft_program_buffer(program, WEFT_BUFFER_FULL, unit, 0);
    *bytes = program->buffers[buffer].bytes;
    return job_rank_buffer(r, buffer);
}

static int fingerprint(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct weft_hash whole, changed, padded;
    int64_t bytes;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, false);
    OK(weft_exec_fingerprint(r.exec, &whole, &err));
    unsigned char *values = parameters(&r, task->unit, &bytes);
    if (rank == 0) values[0] ^= 1;
    OK(weft_exec_fingerprint(r.exec, &changed, &err));
    if (rank == 0) values[0] ^= 1;
    /* The end of the buffer. */
    values[bytes - 1] ^= 1;
    OK(weft_exec_fingerprint(r.exec, &padded, &err));
    if (rank == 0) {
        *task->whole = whole;
        *task->changed = changed;
        *task->padded = padded;
    }
    job_rank_close(&r);
    return 0;
}

/* The first unit without a master: its values are its parameters. */
static int32_t unit_to_change(const struct job *job)
{
    const struct weft_shards *shards = job->stages.shards;
    int32_t u = 0;
    while (job->config->train.precision.compute != WEFT_F32 && shards->units[u].trainable)
        u++;
    return u;
}

static void check_run(const char *path, const char *precision, struct weft_hash *shared)
{
    struct weft_hash first = {0};
    bool have_first = false;
    int32_t padded = 0;
    for (int32_t ranks = 1; ranks <= 4; ranks++) {
        if (!TEST_CASES(true, ranks % 2 == 1)) continue;
        char set_ranks[64], set_blocks[64];
        snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
        snprintf(set_blocks, sizeof set_blocks, "plan.blocks=%d", 5 - ranks);
        const char *overrides[] = {set_ranks, set_blocks, "cluster.emulate=false", precision, NULL};
        struct job job;
        job_open(&job, path, overrides);
        const int32_t changed = unit_to_change(&job);
        const struct weft_unit *unit = &job.stages.shards->units[changed];
        int32_t last = unit->n_tensors - 1;
        int64_t end =
            unit->offsets[last] + job.config->model->tensors[unit->tensors[last]].elements;
        for (int32_t p = 0; p < WEFT_POLICY_COUNT; p++) {
            job_plan_policy(&job, (enum weft_policy)p, true);
            struct task task = {&job, changed, &shared[0], &shared[1], &shared[2]};
            CHECK(ranks_run(ranks, fingerprint, &task) == 0, "%d ranks, %s", ranks,
                  weft_policy_name((enum weft_policy)p));
            if (!have_first) first = shared[0];
            have_first = true;
            CHECK(weft_hash_equal(shared[0], first), "%d ranks, %s: other initial values", ranks,
                  weft_policy_name((enum weft_policy)p));
            CHECK(!weft_hash_equal(shared[1], first), "%d ranks, %s: a changed bit does not show",
                  ranks, weft_policy_name((enum weft_policy)p));
            enum weft_policy policy = job.program->ways[changed].policy;
            bool resident = policy == WEFT_POLICY_DP || policy == WEFT_POLICY_ZERO1;
            if (resident && end < unit->padded_elements) {
                padded++;
                CHECK(weft_hash_equal(shared[2], first), "%d ranks, %s: padding shows", ranks,
                      weft_policy_name((enum weft_policy)p));
            }
        }
        job_close(&job);
    }
    CHECK(padded > 0 || precision != NULL, "no unit ended in padding");
}

RANKS_TEST(fingerprint)
{
    struct weft_hash *shared = job_shared(3 * sizeof *shared);
    check_run("configs/runs/gpt-odd.json", NULL, shared);
    check_run("configs/runs/gpt-frozen.json", "train.precision.compute=bf16", shared);
    check_run("configs/runs/gpt-frozen.json", "train.precision.compute=f16", shared);
    return 0;
}
