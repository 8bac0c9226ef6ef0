/* Numbers that are not finite: without clipping a rank learns of another's before it updates
 * anything, so that every unit is as it was before the step, whatever its own gradient is. */
#include <stdio.h>

#include "tests/runtime/exec/job.h"

enum { STEPS = 3, RANKS = 3, BAD_RANK = 1, PLANS = 4 };

struct outcome {
    bool finite, earlier;
    enum weft_status settled;
    struct weft_hash fingerprint;
};

struct task {
    const struct job *job;
    int64_t steps; /* all but the last must be good */
    bool settles;
    struct outcome *outcomes; /* [RANKS] */
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome *outcome = &task->outcomes[rank];
    struct weft_error why = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, true);
    *outcome = (struct outcome){.settled = WEFT_STATUS_COUNT};
    for (int64_t step = 1; step <= task->steps; step++) {
        struct weft_step_result result = job_rank_step(&r, step);
        outcome->finite = result.finite;
        outcome->earlier = result.earlier;
        CHECK(result.finite || step == task->steps, "step %lld is not finite", (long long)step);
    }
    if (task->settles) outcome->settled = weft_exec_settle(r.exec, &why);
    OK(weft_exec_fingerprint(r.exec, &outcome->fingerprint, &err));
    job_rank_close(&r);
    return 0;
}

static void run(struct job *job, int64_t steps, bool settles, const char *failpoint,
                struct outcome *outcomes)
{
    struct task task = {job, steps, settles, outcomes};
    OK(weft_failpoint_parse(failpoint, &job->failpoint, &err));
    CHECK(ranks_run(RANKS, train, &task) == 0, "a rank failed");
}

static void same(const struct outcome *before, const struct outcome *after, const char *what)
{
    char a[WEFT_HASH_TEXT_BYTES], b[WEFT_HASH_TEXT_BYTES];
    CHECK(weft_hash_equal(before->fingerprint, after->fingerprint),
          "%s: parameters are %s and were %s before the step", what,
          weft_hash_show(after->fingerprint, a), weft_hash_show(before->fingerprint, b));
}

/* Behind the last micro-step's backward of the layer; what follows it may have been reduced. */
static void check_layer(struct job *job, int32_t layer, const struct outcome *before,
                        struct outcome *outcomes)
{
    char failpoint[64], what[64];
    snprintf(failpoint, sizeof failpoint, "backward:rank=%d:step=%d:at=%d:do=nan", BAD_RANK,
             STEPS + 1, layer);
    for (int settles = 0; settles < 2; settles++) {
        run(job, STEPS + 1 - settles, settles, failpoint, outcomes);
        for (int32_t r = 0; r < RANKS; r++) {
            snprintf(what, sizeof what, "layer %d, rank %d, settle %d", layer, r, settles);
            CHECK(outcomes[r].finite == settles && outcomes[r].earlier == !settles, "%s: finite %d",
                  what, outcomes[r].finite);
            CHECK(!settles || outcomes[r].settled == WEFT_E_NUMERIC, "%s: settled with %d", what,
                  (int)outcomes[r].settled);
            same(before, &outcomes[r], what);
        }
    }
}

static void check_plan(struct job *job, struct outcome *outcomes)
{
    run(job, STEPS - 1, true, NULL, outcomes);
    struct outcome before = outcomes[0];
    CHECK(before.settled == WEFT_OK, "a good step does not settle");
    for (int32_t layer = 0; layer < job->config->model->n_layers; layer += 2)
        check_layer(job, layer, &before, outcomes);
    run(job, STEPS, true, NULL, outcomes);
    CHECK(!weft_hash_equal(before.fingerprint, outcomes[0].fingerprint), "a step changes nothing");
}

static void check_rotated(const char *accumulate, struct outcome *outcomes)
{
    const char *overrides[] = {
        "cluster.ranks=3", "plan.blocks=2",     "cluster.emulate=false",   "train.micro_batch=1",
        accumulate,        "train.clip_norm=0", "train.reduce=micro_step", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    CHECK(job.stages.period->rule.rotated, "the period is not rotated");
    for (int32_t plan = 0; plan < PLANS; plan++) {
        if (plan == 0) job_plan_policy(&job, WEFT_POLICY_DP, false);
        if (plan == 1) job_plan_policy(&job, WEFT_POLICY_FSDP, false);
        if (plan > 1) job_plan_random(&job, (uint64_t)plan);
        check_plan(&job, outcomes);
    }
    job_close(&job);
}

RANKS_TEST(culprit)
{
    struct outcome *outcomes = job_shared(RANKS * sizeof *outcomes);
    check_rotated("train.grad_accum=1", outcomes);
    check_rotated("train.grad_accum=2", outcomes);
    return 0;
}
