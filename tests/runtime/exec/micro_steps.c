/* SPDX-License-Identifier: Apache-2.0 */
/* Within one cadence, bits are the same under every policy, placement and block count, and in
 * either period. A step in several micro-steps has the losses of a step in one, up to rounding.
 * Live bytes of every slot equal the plan's, and the time equals the simulated one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 5, SAMPLES = 6, PLANS = WEFT_POLICY_COUNT + TEST_CASES(2, 1) };
#define TOLERANCE 2e-6

struct outcome {
    struct weft_hash fingerprint;
    double losses[STEPS + 1];
};

struct task {
    const struct job *job;
    struct outcome *outcome;
    const char *what;
    int64_t settled_at; /* a step after which the run settles, and goes on; 0 = none */
};

/* From the second step on, which has a step before it. */
static void check_trace(const struct task *task, const struct job_rank *r, int64_t step)
{
    const struct weft_problem *problem = task->job->stages.problem;
    size_t n_rows = (size_t)problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n_rows, sizeof *rows);
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(task->job->plan, 0, rows);
    for (size_t i = 0; i < n_rows; i++) {
        CHECK(r->trace->live_bytes[i] == rows[i],
              "%s, step %lld: slot %s counts %lld bytes, planned are %lld", task->what,
              (long long)step, problem->slot_names[i / WEFT_CATEGORY_COUNT],
              (long long)r->trace->live_bytes[i], (long long)rows[i]);
    }
    free(rows);
    struct weft_trace_summary summary;
    weft_trace_summarise(task->job->program, r->trace, &summary);
    bool whole = step > 1 && step - 1 != task->settled_at;
    CHECK(!whole || summary.step_ns == task->job->plan->prediction.step_ns,
          "%s, step %lld: %lld ns, simulated %lld", task->what, (long long)step,
          (long long)summary.step_ns, (long long)task->job->plan->prediction.step_ns);
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome outcome = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "%s, step %lld: loss %g", task->what, (long long)step, result.loss);
        outcome.losses[step] = result.loss;
        if (rank == 0) check_trace(task, &r, step);
        if (step == task->settled_at) OK(weft_exec_settle(r.exec, &err));
    }
    outcome.fingerprint = job_rank_end(&r);
    if (rank == 0) *task->outcome = outcome;
    return 0;
}

static struct outcome run(const struct job *job, const char *what, int64_t settled_at,
                          struct outcome *shared)
{
    struct task task = {job, shared, what, settled_at};
    CHECK(ranks_run((int32_t)job->config->cluster.ranks, train, &task) == 0, "%s: a rank failed",
          what);
    return *shared;
}

static void same(const struct outcome *a, const struct outcome *b, const char *what)
{
    char x[WEFT_HASH_TEXT_BYTES], y[WEFT_HASH_TEXT_BYTES];
    CHECK(weft_hash_equal(a->fingerprint, b->fingerprint), "%s: parameters %s, not %s", what,
          weft_hash_show(b->fingerprint, y), weft_hash_show(a->fingerprint, x));
    for (int s = 1; s <= STEPS; s++)
        CHECK(a->losses[s] == b->losses[s], "%s, step %d: loss %.17g, not %.17g", what, s,
              b->losses[s], a->losses[s]);
}

static void open_job(struct job *job, int32_t ranks, int micro_steps, const char *reduce,
                     const char *clip_norm, int blocks)
{
    char text[6][64];
    snprintf(text[0], sizeof text[0], "cluster.ranks=%d", ranks);
    snprintf(text[1], sizeof text[1], "train.grad_accum=%d", micro_steps);
    snprintf(text[2], sizeof text[2], "train.micro_batch=%d", SAMPLES / micro_steps);
    snprintf(text[3], sizeof text[3], "train.reduce=%s", reduce);
    snprintf(text[4], sizeof text[4], "train.clip_norm=%s", clip_norm);
    snprintf(text[5], sizeof text[5], "plan.blocks=%d", blocks);
    const char *overrides[] = {text[0],
                               text[1],
                               text[2],
                               text[3],
                               text[4],
                               text[5],
                               "plan.update_ahead=1",
                               "cluster.emulate=false",
                               NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

/* All plans of one cadence, in both periods: with clipping that never clips, and without. */
static struct outcome check_cadence(int32_t ranks, int micro_steps, const char *reduce,
                                    struct outcome *shared)
{
    static const char *const clip_norms[] = {"1e9", "0"};
    struct outcome first;
    bool have_first = false;
    for (int c = 0; c < 2; c++) {
        struct job job;
        open_job(&job, ranks, micro_steps, reduce, clip_norms[c], c == 0 ? 2 : 3);
        CHECK(job.stages.period->rule.rotated == (c == 1), "another period");
        for (int plan = 0; plan < PLANS; plan++) {
            char what[96];
            if (plan < WEFT_POLICY_COUNT) {
                job_plan_policy(&job, (enum weft_policy)plan, plan % 2 == 0);
            } else {
                job_plan_random(&job, (uint64_t)(10 * ranks + plan));
            }
            snprintf(what, sizeof what,
                     "%d ranks, %d micro-steps, reduce %s, clip_norm %s, plan %d", ranks,
                     micro_steps, reduce, clip_norms[c], plan);
            struct outcome outcome = run(&job, what, plan == 1 ? 3 : 0, shared);
            if (!have_first) first = outcome;
            have_first = true;
            same(&first, &outcome, what);
        }
        job_close(&job);
    }
    return first;
}

RANKS_TEST(micro_steps)
{
    struct outcome *shared = job_shared(sizeof *shared);
    for (int32_t ranks = 2; ranks <= TEST_CASES_OF(4, 3, 3); ranks++) {
        struct outcome one = check_cadence(ranks, 1, "auto", shared);
        double most = 0;
        for (int micro_steps = 2; micro_steps <= 3; micro_steps++) {
            struct outcome outcomes[] = {check_cadence(ranks, micro_steps, "micro_step", shared),
                                         check_cadence(ranks, micro_steps, "step", shared)};
            for (int c = 0; c < 2; c++) {
                for (int s = 1; s <= STEPS; s++) {
                    double off = fabs(outcomes[c].losses[s] - one.losses[s]) / one.losses[s];
                    most = off > most ? off : most;
                    CHECK(off < TOLERANCE, "%d ranks, %d micro-steps, step %d: loss %.9g, not %.9g",
                          ranks, micro_steps, s, outcomes[c].losses[s], one.losses[s]);
                }
            }
            /* The comparison of bits can fail: cadences round differently over several ranks. */
            bool equal = weft_hash_equal(outcomes[0].fingerprint, outcomes[1].fingerprint);
            CHECK(!equal, "fingerprints cannot tell");
        }
        printf("%d ranks: loss %.6f to %.6f in 1, 2 and 3 micro-steps, at most %.1e apart\n", ranks,
               one.losses[1], one.losses[STEPS], most);
    }
    return 0;
}
