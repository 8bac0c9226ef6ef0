/* SPDX-License-Identifier: Apache-2.0 */
/* The trainer as ranks see it: the same curve for every number of ranks, memory that is counted,
 * and every way in which a run ends early. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/train/train.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 50, GLOBAL_BATCH = 12 };

/* Another number of ranks adds up gradients in another order, which changes their last bits: about
 * 6e-8 of them in every step. A run of 50 steps was seen 8e-8 apart; a wrong mean, a lost rank or a
 * sample seen twice shows at the third digit in the second step. */
#define TOLERANCE 1e-5

struct shared {
    double losses[STEPS + 1];
    int64_t lines;
    enum weft_status status[MOST_RANKS];
    char text[MOST_RANKS][WEFT_ERROR_TEXT_BYTES];
    struct weft_train_result result[MOST_RANKS];
};

struct task {
    const struct job *job;
    struct shared *shared;
    int32_t other_plan_rank;      /* -1: none */
    const struct job *other;      /* its */
    int32_t stop_rank, stop_step; /* -1: none */
    bool fail_line;
};

struct rank_context {
    const struct task *task;
    int32_t rank;
    atomic_int stop;
};

static enum weft_status on_step(void *context, const struct weft_step_line *line,
                                const struct weft_trace *trace, struct weft_error *err)
{
    struct rank_context *c = context;
    if (c->rank == 0) {
        c->task->shared->losses[line->step] = line->loss;
        c->task->shared->lines = line->step;
    }
    CHECK(line->steps == c->task->job->config->train.steps && line->clip <= 1 && line->norm > 0,
          "step %lld: clip %g, norm %g", (long long)line->step, line->clip, line->norm);
    CHECK(line->tokens == GLOBAL_BATCH * 31, "%lld tokens", (long long)line->tokens);
    CHECK(line->step_ns > 0 && trace->n_instructions > 0, "an empty trace");
    if (c->rank == c->task->stop_rank && line->step == c->task->stop_step)
        atomic_store(&c->stop, 1);
    if (c->task->fail_line) return weft_fail(err, WEFT_E_IO, "the disk is full");
    return WEFT_OK;
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const struct job *job = rank == task->other_plan_rank ? task->other : task->job;
    struct weft_error why = {0};
    struct rank_context context = {.task = task, .rank = rank};
    struct weft_comm_options comm = ranks_options(rank, ranks);
    struct weft_train_options options = {
        .config = job->config,
        .plan = job->plan,
        .program = job->program,
        .shards = job->stages.shards,
        .on_step = on_step,
        .context = &context,
        .stop = &context.stop,
    };
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &options.device, &err));
    job_open_kernels(job, &options.nn);
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    task->shared->status[rank] = weft_train_run(&options, &task->shared->result[rank], &why);
    snprintf(task->shared->text[rank], WEFT_ERROR_TEXT_BYTES, "%s", why.text);
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(options.device);
    return 0;
}

static struct task task_of(const struct job *job, struct shared *shared)
{
    memset(shared, 0, sizeof *shared);
    return (struct task){.job = job, .shared = shared, .other_plan_rank = -1, .stop_rank = -1};
}

static void run(struct task *task)
{
    CHECK(ranks_run((int32_t)task->job->config->cluster.ranks, train, task) == 0, "a rank failed");
}

static void open_job(struct job *job, int32_t ranks, const char *setting)
{
    char set_ranks[64], set_batch[64];
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    snprintf(set_batch, sizeof set_batch, "train.micro_batch=%d", GLOBAL_BATCH / ranks);
    const char *overrides[] = {set_ranks,       set_batch, "cluster.emulate=false",
                               "plan.blocks=2", setting,   NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(job, WEFT_POLICY_FSDP, true);
}

static void all_ranks(const struct shared *shared, int32_t ranks, enum weft_status status,
                      const char *part)
{
    for (int32_t r = 0; r < ranks; r++) {
        CHECK(shared->status[r] == status, "rank %d: status %d, not %d: %s", r,
              (int)shared->status[r], (int)status, shared->text[r]);
        CHECK(strstr(shared->text[r], part) != NULL, "\"%s\" is not in: %s", part, shared->text[r]);
    }
}

static void curves(struct shared *shared)
{
    double reference[STEPS + 1], most = 0;
    for (int32_t ranks = 1; ranks <= 4; ranks *= 2) {
        struct job job;
        open_job(&job, ranks, NULL);
        struct task task = task_of(&job, shared);
        run(&task);
        all_ranks(shared, ranks, WEFT_OK, "");
        const struct weft_train_result *result = &shared->result[0];
        CHECK(shared->lines == STEPS && result->steps_done == STEPS && !result->stopped,
              "%lld lines", (long long)shared->lines);
        CHECK(result->first_loss == shared->losses[1] && result->last_loss == shared->losses[STEPS],
              "losses %g and %g", result->first_loss, result->last_loss);
        const struct weft_tier_use *use = &result->tiers[WEFT_LOCATION_DEVICE];
        CHECK(use->measured_bytes > job.program->arena_bytes &&
                  use->planned_bytes == job.program->arena_bytes + job.program->base_bytes,
              "%lld bytes measured", (long long)use->measured_bytes);
        for (int32_t r = 1; r < ranks; r++) {
            CHECK(weft_hash_equal(result->fingerprint, shared->result[r].fingerprint),
                  "rank %d has another fingerprint", r);
        }
        for (int s = 1; s <= STEPS; s++) {
            if (ranks == 1) reference[s] = shared->losses[s];
            double off = fabs(shared->losses[s] - reference[s]) / reference[s];
            if (off > most) most = off;
            CHECK(off < TOLERANCE, "step %d, %d ranks: loss %.9g, at 1 rank %.9g", s, ranks,
                  shared->losses[s], reference[s]);
        }
        job_close(&job);
    }
    CHECK(fabs(reference[1] - log(256)) < 0.1, "first loss %g", reference[1]);
    CHECK(reference[STEPS] < reference[1] - 1, "last loss %g", reference[STEPS]);
    printf("1, 2 and 4 ranks: loss %.4f to %.4f, at most %.1e apart\n", reference[1],
           reference[STEPS], most);
}

static void stops(struct shared *shared)
{
    struct job job;
    open_job(&job, 3, NULL);
    struct task task = task_of(&job, shared);
    task.stop_rank = 2;
    task.stop_step = 4;
    run(&task);
    all_ranks(shared, 3, WEFT_OK, "");
    for (int32_t r = 0; r < 3; r++) {
        CHECK(shared->result[r].stopped && shared->result[r].steps_done == 5,
              "rank %d did %lld steps", r, (long long)shared->result[r].steps_done);
    }
    job_close(&job);
}

static void disagrees(struct shared *shared)
{
    struct job job, other;
    open_job(&job, 3, NULL);
    open_job(&other, 3, NULL);
    job_plan_policy(&other, WEFT_POLICY_SDP, true);
    struct task task = task_of(&job, shared);
    task.other_plan_rank = 1;
    task.other = &other;
    run(&task);
    all_ranks(shared, 3, WEFT_E_DISAGREE, "rank 1: another plan than rank 0");
    job_close(&other);
    job_close(&job);
}

static void fails_numerically(struct shared *shared)
{
    struct job job;
    open_job(&job, 2, "train.optimizer.lr=1e6");
    struct task task = task_of(&job, shared);
    run(&task);
    all_ranks(shared, 2, WEFT_E_NUMERIC, "step ");
    all_ranks(shared, 2, WEFT_E_NUMERIC, "Lower train.optimizer.lr");
    CHECK(shared->lines >= 1, "not even a step");
    job_close(&job);
}

static void refuses(struct shared *shared)
{
    struct job job;
    open_job(&job, 1, NULL);
    struct task task = task_of(&job, shared);
    job.config->train.precision.reduce = WEFT_BF16;
    run(&task);
    all_ranks(shared, 1, WEFT_E_DATA, "train.precision.reduce is bf16");
    job.config->train.precision.reduce = WEFT_F32;
    const char *data = job.config->train.data;
    job.config->train.data = NULL;
    run(&task);
    all_ranks(shared, 1, WEFT_E_NO_INPUT, "train.data is not set");
    job.config->train.data = data;
    task.fail_line = true;
    run(&task);
    all_ranks(shared, 1, WEFT_E_IO, "the disk is full");
    job_close(&job);
}

static void open_tiered(struct job *job, const char *state)
{
    char path[64];
    snprintf(path, sizeof path, "cluster.disk.path=%s", job_disk());
    const char *overrides[] = {"cluster.ranks=1",
                               "train.micro_batch=12",
                               "train.steps=2",
                               "cluster.emulate=false",
                               "plan.offload.activations=[\"device\"]",
                               "cluster.host.memory_limit=1GB",
                               "cluster.host.down.bandwidth=1GB/s",
                               "cluster.host.up.bandwidth=1GB/s",
                               "cluster.host.update=1GB/s",
                               path,
                               "cluster.disk.limit=1GB",
                               "cluster.disk.read.bandwidth=1GB/s",
                               "cluster.disk.write.bandwidth=1GB/s",
                               state,
                               NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(job, WEFT_POLICY_ZERO1, true);
}

static void run_within(struct task *task, int32_t tier, int64_t limit_bytes,
                       enum weft_status status, const char *part)
{
    /* The job's own, made for this test alone. */
    struct weft_problem *problem = (struct weft_problem *)task->job->plan->problem;
    const int64_t before = problem->tiers[tier].limit_bytes;
    problem->tiers[tier].limit_bytes = limit_bytes;
    run(task);
    all_ranks(task->shared, 1, status, part);
    problem->tiers[tier].limit_bytes = before;
}

/* Bytes of a tier are known to the byte; those of a process are not, from one run to the next. */
static void holds_to_limits(struct shared *shared, const char *state, enum weft_location location)
{
    struct job job;
    open_tiered(&job, state);
    struct task task = task_of(&job, shared);
    run(&task);
    all_ranks(shared, 1, WEFT_OK, "");
    const struct weft_train_result first = shared->result[0];
    const int64_t held = first.tiers[WEFT_LOCATION_DEVICE].measured_bytes;
    run_within(&task, 0, held - held / 16, WEFT_E_INFEASIBLE, ": this rank holds ");
    for (int32_t t = 1; t < job.plan->problem->n_tiers; t++) {
        const struct weft_problem_tier *tier = &job.plan->problem->tiers[t];
        const struct weft_tier_use *use = &first.tiers[tier->kind];
        CHECK(use->planned_bytes == use->measured_bytes, "tier %s: %lld bytes, %lld planned",
              tier->name, (long long)use->measured_bytes, (long long)use->planned_bytes);
        if (use->measured_bytes == 0) continue;
        run_within(&task, t, use->measured_bytes, WEFT_OK, "");
        run_within(&task, t, use->measured_bytes - 1, WEFT_E_INFEASIBLE, tier->name);
    }
    CHECK(first.tiers[location].measured_bytes > 0, "nothing is in tier %d", (int)location);
    job_close(&job);
}

RANKS_TEST(train)
{
    struct shared *shared = job_shared(sizeof *shared);
    curves(shared);
    stops(shared);
    disagrees(shared);
    fails_numerically(shared);
    refuses(shared);
    holds_to_limits(shared, "plan.offload.state=[\"host\"]", WEFT_LOCATION_HOST);
    holds_to_limits(shared, "plan.offload.state=[\"disk\"]", WEFT_LOCATION_DISK);
    return 0;
}
