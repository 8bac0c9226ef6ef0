/* SPDX-License-Identifier: Apache-2.0 */
/* Offloading saved activations, or inputs of layers, changes no bit: a run ends with the same
 * parameters as with all in the arena, for every location of state, in one block or several. The
 * arena is poisoned, so a backward that reads offloaded or late activations gives NaN. */
#include <stdio.h>
#include <string.h>

#include "program/inputs.h"
#include "runtime/exec/host.h"
#include "runtime/exec/parts.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"
#include "tests/runtime/exec/same_trace.h"

enum { STEPS = 4 };

struct outcome {
    struct weft_hash fingerprint;
    double last_loss;
    int64_t host_bytes, copied_bytes[WEFT_COPY_DIRECTIONS];
};

struct task {
    const struct job *job;
    struct outcome *outcome;
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
        if (rank == 0) task->outcome->last_loss = result.loss;
    }
    OK(weft_exec_compare_replicas(r.exec, STEPS, &err));
    OK(weft_exec_settle(r.exec, &err));
    struct weft_hash fingerprint;
    OK(weft_exec_fingerprint(r.exec, &fingerprint, &err));
    if (rank == 0) {
        task->outcome->fingerprint = fingerprint;
        task->outcome->host_bytes = weft_exec_host_bytes(r.exec->host);
        for (int d = 0; d < WEFT_COPY_DIRECTIONS; d++)
            task->outcome->copied_bytes[d] =
                weft_exec_host_copied(r.exec->host, (enum weft_copy_direction)d);
    }
    job_rank_close(&r);
    return 0;
}

/* Checks that lanes copy the plan's blocks; the last block of saved activations may copy less, by
 * the arena's alignment. State comes up once more when the run settles, and
 * goes down only once there is an update. The host's bytes equal the plan's row. */
static void check_bytes(const struct job *job, const struct outcome *outcome, const char *what)
{
    const struct weft_problem *problem = job->plan->problem;
    int64_t planned[WEFT_COPY_DIRECTIONS] = {0}, slack[WEFT_COPY_DIRECTIONS] = {0};
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        const int32_t steps = STEPS + (item->kind == WEFT_STATE_UP);
        if (!weft_problem_needs(problem, job->plan->strategies, i)) continue;
        if (weft_item_is_collective(item) ||
            weft_item_kind_of(item)->other_tier != WEFT_LOCATION_HOST ||
            item->kind == WEFT_HOST_UPDATE)
            continue;
        const int direction = item->acquires ? WEFT_COPY_UP : WEFT_COPY_DOWN;
        planned[direction] += (int64_t)steps * item->n_blocks * item->block_bytes;
        if (weft_item_moves_saved(item) && item->n_blocks > 1)
            slack[direction] += steps * (WEFT_ARENA_ALIGN_BYTES - 1);
    }
    /* The ring of a disk is in the host's memory too, where that is a tier. */
    int64_t peak_bytes =
        job->program->staging_bytes > 0 ? 0 : -weft_ring_bytes(&job->program->ring);
    for (int32_t t = 1; t < problem->n_tiers; t++)
        if (problem->tiers[t].kind == WEFT_LOCATION_HOST)
            peak_bytes += weft_plan_peak(job->plan, t, NULL);
    CHECK(outcome->host_bytes == peak_bytes, "%s: the host has %lld bytes, not %lld", what,
          (long long)outcome->host_bytes, (long long)peak_bytes);
    for (int d = 0; d < WEFT_COPY_DIRECTIONS; d++)
        CHECK(outcome->copied_bytes[d] <= planned[d] &&
                  outcome->copied_bytes[d] >= planned[d] - slack[d],
              "%s: %lld bytes were copied, not %lld", what, (long long)outcome->copied_bytes[d],
              (long long)planned[d]);
}

static int32_t count_offloaded(const struct weft_program *program)
{
    int32_t n = 0;
    for (int32_t l = 0; l < program->n_layers; l++)
        n += weft_program_saves_offloaded(program, l);
    return n;
}

/* Whether copies of state, and of saved activations, go in several blocks. */
static void check_blocks(const struct job *job, bool several, const char *what)
{
    const struct weft_problem *problem = job->plan->problem;
    bool found[2] = {false, false};
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->n_blocks > 1 && weft_item_moves_saved(item)) found[0] = true;
        if (item->n_blocks > 1 && weft_item_moves_state(item)) found[1] = true;
    }
    CHECK(found[0] == several, "%s: saved activations go in one block or several", what);
    CHECK(several || !found[1], "%s: state goes in several blocks", what);
}

static void open_job(struct job *job, int32_t ranks, const char *locations, const char *state,
                     const char *size, const char *first, const char *second, const char *third,
                     const char *fourth)
{
    char set_ranks[64], path[64], activations[64], set_state[64], set_size[64];
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    snprintf(path, sizeof path, "cluster.disk.path=%s", job_disk());
    snprintf(activations, sizeof activations, "plan.offload.activations=[%s]", locations);
    snprintf(set_state, sizeof set_state, "plan.offload.state=[%s]", state);
    snprintf(set_size, sizeof set_size, "plan.offload.block_size=%s", size);
    const char *overrides[] = {set_ranks,
                               "plan.blocks=2",
                               "cluster.emulate=false",
                               path,
                               "cluster.host.memory_limit=1GB",
                               "cluster.host.down.bandwidth=1GB/s",
                               "cluster.host.up.bandwidth=2GB/s",
                               "cluster.host.update=1GB/s",
                               "cluster.disk.limit=1GB",
                               "cluster.disk.read.bandwidth=1GB/s",
                               "cluster.disk.write.bandwidth=1GB/s",
                               activations,
                               set_state,
                               set_size,
                               first,
                               second,
                               third,
                               fourth,
                               NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

static struct outcome run(struct job *job, struct outcome *shared)
{
    struct task task = {job, shared};
    memset(shared, 0, sizeof *shared);
    CHECK(ranks_run((int32_t)job->config->cluster.ranks, train, &task) == 0, "a rank failed");
    return *shared;
}

/* All stays; all that may go is away, with its state in one place; both at random. */
static void check_locations(int32_t ranks, const char *state, const char *size, const char *first,
                            const char *second, struct outcome *shared)
{
    static const char *const locations[] = {"\"device\"", "\"host\"", "\"device\",\"host\""};
    struct outcome outcomes[3];
    char what[160];
    for (int i = 0; i < 3; i++) {
        struct job job;
        snprintf(what, sizeof what, "%d ranks, state %s, %s, %s, saved %s", ranks, state, first,
                 second != NULL ? second : "", locations[i]);
        open_job(&job, ranks, locations[i], i == 0 ? "\"device\"" : state, size, first, second,
                 NULL, NULL);
        if (i < 2)
            job_plan_policy(&job, WEFT_POLICY_FSDP, i > 0);
        else
            job_plan_random(&job, (uint64_t)ranks + 7);
        if (i > 0) check_blocks(&job, strcmp(size, "1KiB") == 0, what);
        const int32_t n = count_offloaded(job.program);
        CHECK(i == 0 ? n == 0 : n > 0, "%s: %d layers are offloaded", what, n);
        CHECK(i != 1 || n == job.program->n_layers - 1 ||
                  n == job.plan->problem->n_decisions - job.program->n_units,
              "%s: %d layers are offloaded", what, n);
        outcomes[i] = run(&job, shared);
        CHECK(weft_hash_equal(outcomes[0].fingerprint, outcomes[i].fingerprint),
              "%s: other parameters", what);
        CHECK(outcomes[0].last_loss == outcomes[i].last_loss, "%s: another loss", what);
        check_bytes(&job, &outcomes[i], what);
        if (i == 2) CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s: simulator and clock", what);
        job_close(&job);
    }
}

static int32_t count_recomputed(const struct weft_program *program, enum weft_recompute level)
{
    int32_t n = 0;
    for (int32_t l = 0; l < program->n_layers; l++)
        n += weft_program_recompute(program, l) == level;
    return n;
}

/* Every level, alone and mixed at random with offloading, ends with the bits of keeping all. */
static void check_levels(int32_t ranks, const char *first, const char *second,
                         struct outcome *shared)
{
    static const char *const levels[] = {"plan.recompute=none", "plan.recompute=selective",
                                         "plan.recompute=whole", "plan.recompute=auto"};
    static const enum weft_recompute alone[] = {WEFT_RECOMPUTE_NONE, WEFT_RECOMPUTE_SELECTIVE,
                                                WEFT_RECOMPUTE_WHOLE};
    struct outcome outcomes[4];
    char what[160];
    for (int i = 0; i < 4; i++) {
        struct job job;
        snprintf(what, sizeof what, "%d ranks, %s, %s, %s", ranks, first, second, levels[i]);
        open_job(&job, ranks, i < 3 ? "\"device\"" : "\"device\",\"host\"", "\"device\"", "1KiB",
                 first, second, levels[i], NULL);
        if (i < 3)
            job_plan_policy(&job, WEFT_POLICY_FSDP, false);
        else
            job_plan_random(&job, (uint64_t)ranks + 5);
        CHECK(i > 2 || count_recomputed(job.program, alone[i]) > 1, "%s: no layer", what);
        outcomes[i] = run(&job, shared);
        CHECK(weft_hash_equal(outcomes[0].fingerprint, outcomes[i].fingerprint),
              "%s: other parameters", what);
        CHECK(outcomes[0].last_loss == outcomes[i].last_loss, "%s: another loss", what);
        if (i == 3) {
            check_bytes(&job, &outcomes[i], what);
            CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s: simulator and clock", what);
        }
        job_close(&job);
    }
}

/* One policy at one level, or both at random, against keeping all. Returns whether the random plan
 * recomputes. */
static bool check_mixed(int32_t ranks, const char *clip, const char *reduce, struct outcome *shared)
{
    char set_ranks[32], level[48], what[128];
    struct outcome kept = {0};
    bool mixed = false;
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    for (int i = 0; i < 2 + WEFT_POLICY_COUNT; i++) {
        const char *const levels[] = {"none", "auto", "whole", "selective"};
        snprintf(level, sizeof level, "plan.recompute=%s", levels[i < 2 ? i : 2 + (i + ranks) % 2]);
        const char *overrides[] = {set_ranks, "plan.blocks=2", "cluster.emulate=false", clip,
                                   reduce,    level,           "train.grad_accum=2",    NULL};
        struct job job;
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        if (i < 2)
            job_plan_random(&job, (uint64_t)ranks + 11);
        else
            job_plan_policy(&job, (enum weft_policy)(i - 2), i % 2 == 0);
        const int32_t n_kept = count_recomputed(job.program, WEFT_RECOMPUTE_NONE);
        snprintf(what, sizeof what, "%d ranks, %s, %s, %s, plan %d", ranks, clip, reduce, level, i);
        const bool recomputes = n_kept < job.program->n_layers;
        if (i == 1) mixed = recomputes;
        CHECK(i == 1 || recomputes == (i > 0), "%s: %d layers keep all", what, n_kept);
        const struct outcome outcome = run(&job, shared);
        if (i == 0) kept = outcome;
        CHECK(weft_hash_equal(kept.fingerprint, outcome.fingerprint), "%s: other parameters", what);
        CHECK(kept.last_loss == outcome.last_loss, "%s: another loss", what);
        job_close(&job);
    }
    return mixed;
}

static int32_t count_inputs_offloaded(const struct weft_program *program)
{
    int32_t n = 0;
    for (int32_t l = 0; l < program->n_layers; l++)
        n += weft_program_moves_input(program, l);
    return n;
}

/* All inputs that may go are on the host, next to one level of recomputation and state in one
 * place; then inputs, saved activations and state are anywhere. Both end with the bits of `kept`,
 * which has all on the device and is filled by the first call. */
static void check_inputs(int32_t ranks, const char *level, const char *state, struct outcome *kept,
                         struct outcome *shared)
{
    static const char *const inputs[] = {"plan.offload.inputs=[\"device\"]",
                                         "plan.offload.inputs=[\"host\"]",
                                         "plan.offload.inputs=[\"device\",\"host\"]"};
    const char *clip = ranks % 2 == 0 ? "train.clip_norm=0.5" : "train.clip_norm=0";
    char what[128];
    for (int i = kept->host_bytes < 0 ? 0 : 1; i < 3; i++) {
        struct job job;
        snprintf(what, sizeof what, "%d ranks, state %s, %s, %s", ranks, state, level, inputs[i]);
        open_job(&job, ranks, i < 2 ? "\"device\"" : "\"device\",\"host\"",
                 i == 0 ? "\"device\"" : state, i == 1 ? "1GiB" : "1KiB", clip,
                 "train.grad_accum=2", level, inputs[i]);
        if (i < 2)
            job_plan_policy(&job, WEFT_POLICY_FSDP, i > 0);
        else
            job_plan_random(&job, (uint64_t)ranks + 3);
        const int32_t n = count_inputs_offloaded(job.program);
        /* All but the first, which has the batch, and the last. */
        CHECK(i == 2 ? n > 0 : n == (i == 0 ? 0 : job.program->n_layers - 2),
              "%s: inputs of %d of %d layers are offloaded", what, n, job.program->n_layers);
        const struct outcome outcome = run(&job, shared);
        check_bytes(&job, &outcome, what);
        if (i == 0) *kept = outcome;
        CHECK(weft_hash_equal(kept->fingerprint, outcome.fingerprint), "%s: other parameters",
              what);
        CHECK(kept->last_loss == outcome.last_loss, "%s: another loss", what);
        if (i == 2) CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s: simulator and clock", what);
        job_close(&job);
    }
}

/* Ranks x levels x locations of state, in part. */
static void check_all_inputs(struct outcome *shared)
{
    static const char *const levels[] = {"plan.recompute=none", "plan.recompute=whole",
                                         "plan.recompute=auto"};
    static const char *const states[] = {"\"host\"", "\"disk\"", "\"device\",\"host\",\"disk\""};
    uint64_t number = 0;
    for (int32_t ranks = 1; ranks <= 3; ranks++) {
        struct outcome kept = {.host_bytes = -1};
        for (size_t level = 0; level < 3; level++)
            for (size_t state = 0; state < 3; state++)
                if (test_draws(number++, 3, 9))
                    check_inputs(ranks, levels[level], states[state], &kept, shared);
    }
}

RANKS_TEST(saved)
{
    static const char *const clips[] = {"train.clip_norm=0", "train.clip_norm=0.5"};
    static const char *const cadences[] = {"train.reduce=step", "train.reduce=micro_step"};
    int32_t n_mixed = 0, n = 0;
    struct outcome *shared = job_shared(sizeof *shared);
    check_locations(1, "\"device\"", "1GiB", "train.clip_norm=0.5", NULL, shared);
    check_locations(2, "\"host\"", "1KiB", "train.clip_norm=0.5", "train.grad_accum=3", shared);
    check_locations(2, "\"disk\"", "1KiB", "train.clip_norm=0", "train.grad_accum=3", shared);
    check_locations(4, "\"device\",\"host\",\"disk\"", "1KiB", "train.clip_norm=0",
                    "train.precision.compute=\"bf16\"", shared);
    check_levels(2, "train.clip_norm=0.5", "train.grad_accum=2", shared);
    check_levels(3, "train.clip_norm=0", "train.grad_accum=2", shared);
    /* In part: each number of ranks has two of the four pairs of clipping and cadence, or one. */
    for (int32_t ranks = 2; ranks <= 4; ranks++)
        for (int i = 0; i < 4; i++) {
            const bool chosen = (i == 0 || i == 3) == (ranks % 2 == 0);
            if (!TEST_CASES_OF(true, chosen, i == ranks % 4)) continue;
            n_mixed += check_mixed(ranks, clips[i % 2], cadences[i / 2], shared);
            n++;
        }
    CHECK(n_mixed >= n / 2, "%d of %d random plans recompute", n_mixed, n);
    check_all_inputs(shared);
    return 0;
}
