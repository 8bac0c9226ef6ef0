/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are not finite. Without clipping a rank learns of another's before any update, so
 * each unit keeps its values of before the step, even with finite gradients. With clipping the
 * step runs again to find the first rank. */
#include <stdio.h>
#include <string.h>

#include "runtime/exec/state.h"
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

/* After the last micro-step's backward of the layer; later gradients may have been reduced. */
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

/* A word that was raised in a run is not heard in the next. */
static int train_again(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    struct job_rank r;
    struct weft_error why = {0};
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_WALL, true);
    job_rank_step(&r, 1);
    CHECK(weft_exec_settle(r.exec, &why) == WEFT_E_NUMERIC, "the step is good: %s", why.text);
    job_rank_unload(&r);
    job_rank_load(&r);
    CHECK(job_rank_step(&r, 3).finite, "a good step");
    OK(weft_exec_settle(r.exec, &err));
    job_rank_close(&r);
    return 0;
}

static void check_again(void)
{
    const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", "train.clip_norm=0",
                               NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_FSDP, false);
    OK(weft_failpoint_parse("backward:rank=1:step=2:do=nan", &job.failpoint, &err));
    CHECK(ranks_run(RANKS, train_again, &job) == 0, "a second run");
    job_close(&job);
}

/* The place of a written NaN, and the rank that is blamed. */
struct place {
    const char *failpoint;
    int32_t rank, n_ranks, layer;
    bool backward;
};

struct search {
    const struct job *job;
    const struct place *place;
};

static int find(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct search *search = argument;
    const struct place *place = search->place;
    struct weft_culprit found = {0};
    struct job_rank r;
    job_rank_open(&r, search->job, rank, ranks, WEFT_CLOCK_WALL, true);
    CHECK(!job_rank_step(&r, 1).finite, "%s: finite", place->failpoint);
    struct weft_step_inputs inputs = {
        .input = r.input, .targets = r.targets, .step = 1, .lr = 1e-3};
    OK(weft_exec_find_culprit(r.exec, &inputs, &found, &err));
    CHECK(found.known && !found.recovered && found.rank == place->rank &&
              found.n_ranks == place->n_ranks && found.layer == place->layer &&
              found.backward == place->backward,
          "%s: rank %d of %d, layer %d, backward %d", place->failpoint, found.rank, found.n_ranks,
          found.layer, found.backward);
    job_rank_close(&r);
    return 0;
}

static void check_found(void)
{
    static const struct place places[] = {
        {"forward:rank=1:step=1:at=2:do=nan", 1, 1, 2, false},
        {"forward:step=1:at=2:do=nan", 0, RANKS, 2, false},
        {"forward:rank=2:step=1:at=5:do=nan", 2, 1, 5, false}, /* the loss */
        {"backward:rank=2:step=1:at=3:do=nan", 2, 1, 3, true},
        {"backward:step=1:at=0:do=nan", 0, RANKS, 0, true},
    };
    const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", NULL};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct job job;
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        CHECK(job.config->model->n_layers == 6, "%d layers", job.config->model->n_layers);
        job_plan_random(&job, i);
        OK(weft_failpoint_parse(places[i].failpoint, &job.failpoint, &err));
        struct search search = {&job, &places[i]};
        CHECK(ranks_run(RANKS, find, &search) == 0, "%s", places[i].failpoint);
        job_close(&job);
    }
}

/* Gradients of fc2's bias that are about 2e38 on every rank, by weights of head and fc3: all that
 * is computed before is 0 and surely of class 0. */
static float large_value(const char *tensor, int64_t element)
{
    bool first = element < 29; /* of a class */
    if (strcmp(tensor, "fc3.weight") == 0) return 6.8e18f;
    if (strcmp(tensor, "head.weight") == 0 && first) return 6.8e18f;
    return strcmp(tensor, "head.bias") == 0 && element == 0 ? 50 : 0;
}

static void make_large(struct job_rank *r)
{
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    struct weft_state_access *access;
    OK(weft_exec_state_clear(r->exec, &err));
    OK(weft_exec_state_open(r->exec, &access, &err));
    while (weft_exec_state_next(r->exec, &cursor, &piece)) {
        const char *name = r->job->config->model->tensors[piece.tensor].name;
        for (int64_t i = 0; piece.state == WEFT_STATE_PARAMETER && i < piece.count; i++) {
            float value = large_value(name, piece.first + i);
            OK(weft_exec_state_write(access, &piece, i, 1, &value, &err));
        }
    }
    weft_exec_state_close(access);
    OK(weft_exec_state_filled(r->exec, &err));
}

static int overflow(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    struct weft_culprit found = {0};
    struct job_rank r;
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_WALL, false);
    make_large(&r);
    struct weft_step_result result = job_rank_step(&r, 1);
    CHECK(!result.finite && result.loss < 100, "loss %g, norm %g", result.loss, result.norm);
    CHECK(result.suspect >= 0 && strcmp(job->stages.shards->units[result.suspect].name, "fc2") == 0,
          "unit %d", result.suspect);
    struct weft_step_inputs inputs = {
        .input = r.input, .targets = r.targets, .step = 1, .lr = 1e-3};
    OK(weft_exec_find_culprit(r.exec, &inputs, &found, &err));
    CHECK(!found.known && !found.recovered, "layer %d of rank %d", found.layer, found.rank);
    job_rank_close(&r);
    return 0;
}

/* Every rank's own numbers are finite, and their sum is not: nobody is to blame, nor any machine.
 */
static void check_overflow(void)
{
    const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", "plan.blocks=2", NULL};
    struct job job;
    job_open(&job, "configs/runs/mlp-tiny.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_FSDP, false);
    CHECK(ranks_run(RANKS, overflow, &job) == 0, "a sum that overflows");
    job_close(&job);
}

/* The same without clipping, where it must be seen before there is a sum. */
static int overflow_rotated(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct outcome before = {0}, after = {0};
    struct weft_error why = {0};
    struct job_rank r;
    job_rank_open(&r, argument, rank, ranks, WEFT_CLOCK_WALL, false);
    make_large(&r);
    OK(weft_exec_fingerprint(r.exec, &before.fingerprint, &err));
    job_rank_step(&r, 1);
    after.settled = weft_exec_settle(r.exec, &why);
    CHECK(after.settled == WEFT_E_NUMERIC, "settled with %d", (int)after.settled);
    OK(weft_exec_fingerprint(r.exec, &after.fingerprint, &err));
    same(&before, &after, "a sum that overflows");
    job_rank_close(&r);
    return 0;
}

static void check_overflow_rotated(void)
{
    const char *overrides[] = {"cluster.ranks=3", "cluster.emulate=false", "plan.blocks=2",
                               "train.clip_norm=0", NULL};
    struct job job;
    job_open(&job, "configs/runs/mlp-tiny.json", overrides);
    CHECK(job.stages.period->rule.rotated, "the period is not rotated");
    job_plan_policy(&job, WEFT_POLICY_FSDP, false);
    CHECK(ranks_run(RANKS, overflow_rotated, &job) == 0, "a sum that overflows without clipping");
    job_close(&job);
}

RANKS_TEST(culprit)
{
    struct outcome *outcomes = job_shared(RANKS * sizeof *outcomes);
    check_found();
    check_overflow();
    check_overflow_rotated();
    check_again();
    check_rotated("train.grad_accum=1", outcomes);
    check_rotated("train.grad_accum=2", outcomes);
    return 0;
}
