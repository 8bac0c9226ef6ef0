/* SPDX-License-Identifier: Apache-2.0 */
/* An update with the gradient of the step before. Its bits are the same under every policy,
 * placement, block count, with and without clipping that never clips, and with a settle between
 * steps. Live bytes equal the plan's, and the time equals the simulated one. Losses equal those of
 * plain steps on the same samples with the same learning rates, in the order that delay means. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 5, SAMPLES = 6, POLICIES = WEFT_POLICY_COUNT - 1, PLANS = POLICIES + 2 };

struct outcome {
    struct weft_hash fingerprint;
    double losses[STEPS + 1];
};

struct task {
    const struct job *job;
    struct outcome *outcome;
    const char *what;
    int64_t settled_at; /* a step after which the run settles, and goes on; 0: none */
    int n_steps;
    int steps[STEPS];    /* numbers of the steps, and so their samples */
    double rates[STEPS]; /* 0: the config's */
};

static void check_trace(const struct task *task, const struct job_rank *r, bool whole)
{
    const struct weft_problem *problem = task->job->stages.problem;
    size_t n_rows = (size_t)problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n_rows, sizeof *rows);
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(task->job->plan, 0, rows);
    for (size_t i = 0; i < n_rows; i++)
        CHECK(r->trace->live_bytes[i] == rows[i], "%s: slot %s counts %lld bytes, planned are %lld",
              task->what, problem->slot_names[i / WEFT_CATEGORY_COUNT],
              (long long)r->trace->live_bytes[i], (long long)rows[i]);
    free(rows);
    struct weft_trace_summary summary;
    weft_trace_summarise(task->job->program, r->trace, &summary);
    CHECK(!whole || summary.step_ns == task->job->plan->prediction.step_ns,
          "%s: %lld ns, simulated %lld", task->what, (long long)summary.step_ns,
          (long long)task->job->plan->prediction.step_ns);
}

static struct weft_step_result do_step(struct job_rank *r, int64_t step, double rate)
{
    const struct weft_train *train = &r->job->config->train;
    const int64_t samples = train->micro_batch * train->grad_accum;
    struct weft_step_inputs inputs = {
        .input = r->input, .targets = r->targets, .step = step, .lr = rate};
    struct weft_step_result result;
    OK(weft_data_fill(r->data, step, r->rank * samples, samples, r->input, r->targets, &err));
    OK(weft_exec_step(r->exec, &inputs, &result, r->trace, &err));
    return result;
}

static int train_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome outcome = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int i = 0; i < task->n_steps; i++) {
        const int64_t step = task->steps[i];
        struct weft_step_result result = do_step(&r, step, task->rates[i]);
        CHECK(result.finite, "%s, step %lld: loss %g", task->what, (long long)step, result.loss);
        outcome.losses[i + 1] = result.loss;
        /* The second step has a step before it. The first has no update either. */
        const bool whole = i > 0 && (task->settled_at == 0 || step - 1 != task->settled_at);
        if (rank == 0) check_trace(task, &r, whole);
        if (step == task->settled_at) OK(weft_exec_settle(r.exec, &err));
    }
    outcome.fingerprint = job_rank_end(&r);
    if (rank == 0) *task->outcome = outcome;
    return 0;
}

static struct outcome run_task(const struct task *task)
{
    CHECK(ranks_run((int32_t)task->job->config->cluster.ranks, train_rank, (void *)task) == 0,
          "%s: a rank failed", task->what);
    return *task->outcome;
}

static void open_job(struct job *job, int ranks, int micro_steps, int delay, const char *clip_norm,
                     const char *optimizer, int blocks)
{
    char text[6][160];
    snprintf(text[0], sizeof text[0], "cluster.ranks=%d", ranks);
    snprintf(text[1], sizeof text[1], "train.grad_accum=%d", micro_steps);
    snprintf(text[2], sizeof text[2], "train.micro_batch=%d", SAMPLES / micro_steps);
    snprintf(text[3], sizeof text[3], "train.delay=%d", delay);
    snprintf(text[4], sizeof text[4], "train.clip_norm=%s", clip_norm);
    snprintf(text[5], sizeof text[5], "plan.blocks=%d", blocks);
    const char *overrides[] = {text[0],
                               text[1],
                               text[2],
                               text[3],
                               text[4],
                               text[5],
                               optimizer,
                               "train.reduce=step",
                               "cluster.emulate=false",
                               NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

static const char use_adamw[] = "train.optimizer.type=adamw";
static const char use_sgd[] =
    "train.optimizer={\"type\":\"sgd\",\"momentum\":0,\"weight_decay\":0}";

static void check_same(const struct outcome *a, const struct outcome *b, const char *what)
{
    char x[WEFT_HASH_TEXT_BYTES], y[WEFT_HASH_TEXT_BYTES];
    CHECK(weft_hash_equal(a->fingerprint, b->fingerprint), "%s: parameters %s, not %s", what,
          weft_hash_show(b->fingerprint, y), weft_hash_show(a->fingerprint, x));
    for (int s = 1; s <= STEPS; s++)
        CHECK(a->losses[s] == b->losses[s], "%s, step %d: loss %.17g, not %.17g", what, s,
              b->losses[s], a->losses[s]);
}

/* All plans of a number of ranks and micro-steps end in the same bits. */
static void check_bits(int ranks, int micro_steps, struct outcome *shared)
{
    static const enum weft_policy policies[POLICIES] = {WEFT_POLICY_ZERO1, WEFT_POLICY_SDP,
                                                        WEFT_POLICY_FSDP};
    static const char *const clip_norms[] = {"1e9", "0"};
    struct outcome first = {0};
    for (int at = 0; at < 2 * PLANS; at++) {
        const int plan = at % PLANS;
        struct job job;
        char what[96];
        open_job(&job, ranks, micro_steps, 1, clip_norms[at / PLANS], use_adamw, 2 + at / PLANS);
        CHECK(job.stages.period->rule.delayed, "another period");
        if (plan < POLICIES)
            job_plan_policy(&job, policies[plan], plan % 2 == 0);
        else
            job_plan_random(&job, (uint64_t)(100 * ranks + 10 * micro_steps + at));
        snprintf(what, sizeof what, "%d ranks, %d micro-steps, clip_norm %s, plan %d", ranks,
                 micro_steps, clip_norms[at / PLANS], plan);
        struct task task = {&job, shared, what, plan == 1 ? 3 : 0, STEPS, {1, 2, 3, 4, 5}, {0}};
        for (int i = 0; i < STEPS; i++)
            task.rates[i] = 0.01 / (i + 1);
        struct outcome outcome = run_task(&task);
        if (at == 0) first = outcome;
        check_same(&first, &outcome, what);
        job_close(&job);
    }
}

/* One sequence of steps under a delay, with learning rates of their own. */
static struct outcome follow_steps(int delay, const char *clip_norm, const char *optimizer,
                                   int n_steps, const int *steps, const double *rates,
                                   struct outcome *shared)
{
    struct job job;
    open_job(&job, 3, 2, delay, clip_norm, optimizer, 2);
    job_plan_policy(&job, WEFT_POLICY_FSDP, true);
    struct task task = {&job, shared, delay > 0 ? "delayed" : "plain", 0, n_steps, {0}, {0}};
    for (int i = 0; i < n_steps; i++) {
        task.steps[i] = steps[i];
        task.rates[i] = rates[i];
    }
    struct outcome outcome = run_task(&task);
    job_close(&job);
    return outcome;
}

/* By plain steps: the update after step k applies the gradient of step k - 1. */
static void check_meaning(struct outcome *shared)
{
    static const int in_order[] = {1, 2, 3, 4, 5}, odd[] = {1, 3, 5}, even[] = {2, 4};
    static const double all = 0.05;
    /* Rates of 0 stop the updates after steps 3 and 5. So steps 1 and 3 alone change parameters:
     * step 3 at those after step 1, as plain steps 1, 3 and 5 do. */
    const double early[] = {all, all, 0, all, 0}, plain[] = {all, all, 0};
    struct outcome a = follow_steps(1, "0", use_sgd, 5, in_order, early, shared);
    struct outcome b = follow_steps(0, "0", use_sgd, 3, odd, plain, shared);
    CHECK(a.losses[1] == b.losses[1] && a.losses[3] == b.losses[2] && a.losses[5] == b.losses[3],
          "losses %.17g, %.17g, %.17g; plain %.17g, %.17g, %.17g", a.losses[1], a.losses[3],
          a.losses[5], b.losses[1], b.losses[2], b.losses[3]);
    CHECK(weft_hash_equal(a.fingerprint, b.fingerprint), "other parameters after steps 1 and 3");
    /* Step 2's gradient is of the initial parameters, since step 1 has no update. */
    const double late[] = {all, 0, all, 0, 0}, second[] = {all, 0};
    a = follow_steps(1, "0", use_sgd, 4, in_order, late, shared);
    b = follow_steps(0, "0", use_sgd, 2, even, second, shared);
    CHECK(a.losses[2] == b.losses[1] && a.losses[4] == b.losses[2], "losses of steps 2 and 4");
    CHECK(weft_hash_equal(a.fingerprint, b.fingerprint), "other parameters after step 2");
    /* With moments and clipping the first update is AdamW's first too. */
    a = follow_steps(1, "0.1", use_adamw, 2, in_order, early, shared);
    b = follow_steps(0, "0.1", use_adamw, 1, in_order, early, shared);
    CHECK(weft_hash_equal(a.fingerprint, b.fingerprint), "another first update");
}

RANKS_TEST(delay)
{
    struct outcome *shared = job_shared(sizeof *shared);
    check_bits(1, 1, shared);
    check_bits(3, 1, shared);
    check_bits(2, 3, shared);
    check_meaning(shared);
    return 0;
}
