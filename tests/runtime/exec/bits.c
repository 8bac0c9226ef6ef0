/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule never changes a result: the same number of ranks gives the same bits for all
 * policies, placements and blocks. The arena is poisoned, so a read of dead bytes gives NaN. */
#include <math.h>
#include <stdio.h>

#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

#define STEPS        TEST_CASES_OF(24, 12, 12)
#define FEW_STEPS    TEST_CASES_OF(8, 4, 4)
#define RANDOM_PLANS (int32_t) TEST_CASES_OF(5, 2, 1)

struct outcome {
    struct weft_hash fingerprint;
    double first_loss, last_loss;
    int32_t clipped_steps;
    int64_t touched_bytes;
};

struct task {
    const struct job *job;
    int64_t steps;
    struct outcome *outcome;
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    struct outcome outcome = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= task->steps; step++) {
        struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g, norm %g", (long long)step, result.loss,
              result.norm);
        if (step == 1) outcome.first_loss = result.loss;
        outcome.last_loss = result.loss;
        outcome.clipped_steps += result.clip < 1;
    }
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_fingerprint(r.exec, &outcome.fingerprint, &err));
    OK(weft_exec_touched_bytes(r.exec, &outcome.touched_bytes, &err));
    if (rank == 0) *task->outcome = outcome;
    job_rank_close(&r);
    return 0;
}

static struct outcome run(const struct job *job, int64_t steps, struct outcome *shared)
{
    struct task task = {job, steps, shared};
    CHECK(ranks_run((int32_t)job->config->cluster.ranks, train, &task) == 0, "a rank failed");
    job_check_touched(job, shared->touched_bytes, "a run");
    return *shared;
}

static void same(const struct outcome *a, const struct outcome *b, const char *what)
{
    char x[WEFT_HASH_TEXT_BYTES], y[WEFT_HASH_TEXT_BYTES];
    CHECK(weft_hash_equal(a->fingerprint, b->fingerprint), "%s: parameters %s, not %s", what,
          weft_hash_show(b->fingerprint, y), weft_hash_show(a->fingerprint, x));
    CHECK(a->last_loss == b->last_loss, "%s: loss %.17g, not %.17g", what, b->last_loss,
          a->last_loss);
}

/* All plans of one number of ranks and blocks against the first of all. */
static void check_blocks(int32_t ranks, int32_t blocks, struct outcome *shared,
                         struct outcome *first, bool *have_first)
{
    char set_ranks[64], set_blocks[64], what[64];
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    snprintf(set_blocks, sizeof set_blocks, "plan.blocks=%d", blocks);
    const char *overrides[] = {set_ranks, set_blocks, "train.clip_norm=0.5",
                               "cluster.emulate=false", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    CHECK(job.stages.shards->n_units >= 5, "%d units leave nothing to mix",
          job.stages.shards->n_units);
    for (int32_t plan = 0; plan < WEFT_POLICY_COUNT + RANDOM_PLANS; plan++) {
        /* Blocks change nothing about dp but its AllReduces; every other policy sees all counts. */
        if (plan < WEFT_POLICY_COUNT) {
            job_plan_policy(&job, (enum weft_policy)plan, plan % 2 == 0);
            snprintf(what, sizeof what, "%d ranks, %d blocks, all %s", ranks, blocks,
                     weft_policy_name((enum weft_policy)plan));
        } else {
            job_plan_random(&job, (uint64_t)(1000 * blocks + plan));
            snprintf(what, sizeof what, "%d ranks, %d blocks, random plan %d", ranks, blocks,
                     plan - WEFT_POLICY_COUNT);
        }
        struct outcome outcome = run(&job, STEPS, shared);
        if (!*have_first) {
            *first = outcome;
            *have_first = true;
            CHECK(fabs(outcome.first_loss - log(256)) < 0.1, "first loss %g, ln(256) is %g",
                  outcome.first_loss, log(256));
            CHECK(outcome.last_loss < outcome.first_loss - 0.5, "loss went from %g to %g",
                  outcome.first_loss, outcome.last_loss);
            CHECK(outcome.clipped_steps > STEPS / 2, "only %d steps were clipped",
                  outcome.clipped_steps);
        }
        same(first, &outcome, what);
    }
    job_close(&job);
}

/* Tied and frozen parameters, layers without any, other losses: each unit by itself. Usually every
 * second call has its turn. */
static void check_ranks(const char *path, int32_t ranks, const char *override,
                        struct outcome *shared)
{
    static uint64_t n_called;
    char set_ranks[64];
    if (!test_draws(n_called++, 3, 3)) return;
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    const char *overrides[] = {set_ranks, "plan.blocks=2", "cluster.emulate=false", override, NULL};
    struct job job;
    struct outcome first = {0};
    job_open(&job, path, overrides);
    for (int32_t plan = 0; plan < WEFT_POLICY_COUNT + 2; plan++) {
        if (plan < WEFT_POLICY_COUNT) {
            job_plan_policy(&job, (enum weft_policy)plan, false);
        } else {
            job_plan_random(&job, (uint64_t)plan);
        }
        struct outcome outcome = run(&job, FEW_STEPS, shared);
        if (plan == 0) first = outcome;
        same(&first, &outcome, path);
    }
    job_close(&job);
}

static void check_config(const char *path, const char *override, struct outcome *shared)
{
    check_ranks(path, 3, override, shared);
}

RANKS_TEST(bits)
{
    struct outcome *shared = job_shared(sizeof *shared);
    static const int32_t blocks[] = {1, 2, 7};
    struct weft_hash fingerprints[5];
    for (int32_t ranks = 2; ranks <= 4; ranks++) {
        struct outcome first;
        bool have_first = false;
        int n_blocks = 0;
        for (int i = 0; i < 3; i++) {
            /* In part: every number of ranks has one of the other numbers of blocks at most. */
            if (i > 0 && !TEST_CASES_OF(true, i == ranks - 2, i == ranks - 2)) continue;
            check_blocks(ranks, blocks[i], shared, &first, &have_first);
            n_blocks++;
        }
        fingerprints[ranks] = first.fingerprint;
        printf("%d ranks: loss %.6f to %.6f, %d of %d steps clipped, same bits under %d plans\n",
               ranks, first.first_loss, first.last_loss, first.clipped_steps, STEPS,
               n_blocks * (WEFT_POLICY_COUNT + RANDOM_PLANS));
    }
    check_config("configs/runs/gpt-frozen.json", NULL, shared);
    check_config("configs/runs/gpt-tiny.json", NULL, shared);
    check_config("configs/runs/gpt-classifier.json", NULL, shared);
    check_config("configs/runs/mlp-tiny.json", NULL, shared);
    check_config("configs/runs/gpt-odd.json", "train.optimizer.type=sgd", shared);
    check_config("configs/runs/gpt-odd.json",
                 "train.optimizer={\"type\":\"sgd\",\"momentum\":0,\"lr\":0.01}", shared);
    /* Lengths of whole tensors: exempt ones, frozen, tied, with masters and without clipping. */
    check_config("configs/runs/gpt-odd.json", "train.optimizer.type=lamb", shared);
    check_config("configs/runs/gpt-odd.json", "train.optimizer.type=lion", shared);
    /* Means of squares over whole tensors: frozen, tied, with masters and without clipping. */
    check_config("configs/runs/gpt-odd.json", "train.optimizer.type=adam_mini", shared);
    check_config("configs/runs/gpt-frozen.json",
                 "train={\"steps\":8,\"micro_batch\":2,\"seq_len\":24,\"grad_accum\":2,"
                 "\"data\":\"/usr/share/common-licenses/GPL-3\","
                 "\"clip_norm\":0,\"precision\":{\"compute\":\"f16\"},"
                 "\"optimizer\":{\"type\":\"adam_mini\"}}",
                 shared);
    check_config("configs/runs/gpt-frozen.json", "train.optimizer.type=lamb", shared);
    check_config("configs/runs/gpt-tiny.json",
                 "train.optimizer={\"type\":\"lamb\",\"exempt_vectors\":false}", shared);
    check_config("configs/runs/gpt-odd.json",
                 "train={\"steps\":8,\"micro_batch\":2,\"seq_len\":24,\"grad_accum\":2,"
                 "\"data\":\"/usr/share/common-licenses/GPL-3\","
                 "\"clip_norm\":0,\"precision\":{\"compute\":\"bf16\"},"
                 "\"optimizer\":{\"type\":\"lamb\"}}",
                 shared);
    for (int32_t ranks = 1; ranks <= 4; ranks++) {
        check_ranks("configs/runs/gpt-odd.json", ranks,
                    "train={\"steps\":8,\"micro_batch\":2,\"seq_len\":24,\"clip_norm\":0,"
                    "\"data\":\"/usr/share/common-licenses/GPL-3\",\"optimizer\":{\"type\":"
                    "\"lamb\"}}",
                    shared);
        check_ranks("configs/runs/gpt-odd.json", ranks,
                    "train={\"steps\":8,\"micro_batch\":2,\"seq_len\":24,\"grad_accum\":2,"
                    "\"data\":\"/usr/share/common-licenses/GPL-3\",\"precision\":{\"compute\":"
                    "\"f16\"},\"loss_scale\":{\"initial\":16777216},\"optimizer\":{\"type\":"
                    "\"lamb\"}}",
                    shared);
    }
    check_config("configs/runs/gpt-odd.json", "train.precision.compute=bf16", shared);
    check_config("configs/runs/gpt-odd.json",
                 "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\"}", shared);
    check_config("configs/runs/gpt-tiny.json",
                 "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\",\"accumulate\":"
                 "\"bf16\"}",
                 shared);
    check_config("configs/runs/gpt-odd.json", "train.precision.compute=f16", shared);
    static const char *const precisions[] = {"f32", "bf16", "f16"};
    for (int32_t i = 0; i < 3; i++) {
        char train[200];
        snprintf(train, sizeof train,
                 "train={\"steps\":4,\"micro_batch\":2,\"seq_len\":24,\"precision\":{\"compute\":"
                 "\"%s\"},\"data\":\"/usr/share/common-licenses/GPL-3\"}",
                 precisions[i]);
        check_ranks("configs/runs/llama-tiny.json", i == 1 ? 4 : 3 - i, train, shared);
    }
    /* Frozen units of 16 bits have parameters without a master. */
    for (int32_t ranks = 1; ranks <= 3; ranks++) {
        check_ranks("configs/runs/gpt-frozen.json", ranks, "train.precision.compute=bf16", shared);
        check_ranks("configs/runs/gpt-frozen.json", ranks,
                    "train.precision={\"compute\":\"f16\",\"reduce\":\"f16\"}", shared);
    }
    check_config("configs/runs/mlp-tiny.json",
                 "train.precision={\"compute\":\"f16\",\"reduce\":\"f16\"}", shared);
    /* The comparison itself can fail: other ranks train on other data. */
    CHECK(!weft_hash_equal(fingerprints[2], fingerprints[3]), "fingerprints cannot tell");
    return 0;
}
