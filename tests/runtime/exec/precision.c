/* SPDX-License-Identifier: Apache-2.0 */
/* Training in 16 bits: close to f32, with a loss scale that leaves no trace of failed attempts,
 * and refused if unsupported. */
#include "runtime/exec/precision.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/runtime/exec/job.h"

enum { STEPS = 30, RANKS = 2 };

struct outcome {
    double first_loss, last_loss;
    struct weft_hash fingerprint;
    struct weft_loss_scale scale;
    int32_t skipped; /* attempts */
};

struct task {
    const struct job *job;
    struct outcome *outcome;
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const struct weft_train *settings = &task->job->config->train;
    struct job_rank r;
    struct outcome outcome = {0};
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    double scale = weft_exec_loss_scale(r.exec).scale;
    for (int64_t step = 1; step <= STEPS; step++) {
        struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g, norm %g", (long long)step, result.loss,
              result.norm);
        if (settings->precision.compute != WEFT_F16) {
            CHECK(result.loss_scale == 1, "a loss scale of %g", result.loss_scale);
        }
        /* Halved once for each attempt that was skipped. */
        for (; result.loss_scale < scale; scale /= 2)
            outcome.skipped++;
        scale = weft_exec_loss_scale(r.exec).scale;
        if (step == 1) outcome.first_loss = result.loss;
        outcome.last_loss = result.loss;
    }
    outcome.scale = weft_exec_loss_scale(r.exec);
    outcome.fingerprint = job_rank_end(&r);
    if (rank == 0) *task->outcome = outcome;
    return 0;
}

static struct outcome run(const char *path, const char *precision, const char *more,
                          struct outcome *shared)
{
    struct job job;
    const char *overrides[] = {"cluster.emulate=false", precision, more, NULL};
    job_open(&job, path, overrides);
    job_plan_random(&job, 5);
    struct task task = {&job, shared};
    CHECK(ranks_run(RANKS, train, &task) == 0, "a rank failed");
    job_close(&job);
    return *shared;
}

static void check_losses(const char *path, double most, struct outcome *shared)
{
    static const char *const precisions[] = {
        "train.precision.compute=bf16",
        "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\"}",
        "train.precision.compute=f16",
        "train.precision={\"compute\":\"f16\",\"reduce\":\"f16\",\"accumulate\":\"f16\"}",
    };
    struct outcome exact = run(path, "train.precision.compute=f32", NULL, shared);
    CHECK(exact.last_loss < exact.first_loss, "%s: the loss went from %g to %g", path,
          exact.first_loss, exact.last_loss);
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        struct outcome narrow = run(path, precisions[i], NULL, shared);
        CHECK(fabs(narrow.first_loss - exact.first_loss) < most &&
                  fabs(narrow.last_loss - exact.last_loss) < most,
              "%s, %s: losses %g to %g, in f32 %g to %g", path, precisions[i], narrow.first_loss,
              narrow.last_loss, exact.first_loss, exact.last_loss);
        CHECK(!weft_hash_equal(narrow.fingerprint, exact.fingerprint), "%s, %s: the bits of f32",
              path, precisions[i]);
        printf("%s, %s: loss %.5f to %.5f, in f32 %.5f to %.5f\n", path, precisions[i],
               narrow.first_loss, narrow.last_loss, exact.first_loss, exact.last_loss);
    }
}

/* A step of sgd is as long as its gradient: a scale that were left in it would show at once. */
static void check_scale_is_taken_out(struct outcome *shared)
{
    static const char path[] = "configs/runs/mlp-tiny.json",
                      sgd[] = "train.optimizer={\"type\":\"sgd\",\"lr\":0.02}";
    struct outcome exact = run(path, "train.precision.compute=f32", sgd, shared);
    struct outcome scaled = run(path, "train.precision.compute=f16", sgd, shared);
    CHECK(exact.last_loss < exact.first_loss && fabs(scaled.last_loss - exact.last_loss) < 0.05,
          "loss %g to %g, in f32 %g to %g", scaled.first_loss, scaled.last_loss, exact.first_loss,
          exact.last_loss);
}

/* A rank's values before its first step, and their norm. */
struct start {
    int64_t n_rounded;
    double norm;
};

struct start_task {
    const struct job *job;
    struct start *start; /* of rank 0 */
};

/* Parameters are their masters, rounded. */
static int64_t check_rounded(const struct job_rank *r)
{
    const struct weft_program *program = r->job->program;
    int64_t n = 0;
    for (int32_t u = 0; u < program->n_units; u++) {
        int32_t from = weft_program_buffer(program, WEFT_BUFFER_MASTER, u, 0);
        int32_t to = weft_program_buffer(program, WEFT_BUFFER_FULL, u, 0);
        if (from < 0 || program->ways[u].policy != WEFT_POLICY_DP) continue;
        const float *master = (const void *)job_rank_buffer(r, from);
        const uint16_t *rounded = (const void *)job_rank_buffer(r, to);
        int64_t elements = r->job->stages.shards->units[u].padded_elements;
        for (int64_t i = 0; i < elements; i++)
            CHECK(rounded[i] == weft_bf16_narrow(master[i]), "unit %d, element %lld: %04x of %a", u,
                  (long long)i, rounded[i], (double)master[i]);
        n += elements;
    }
    return n;
}

static int start_once(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct start_task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, false);
    struct start start = {.n_rounded = check_rounded(&r)};
    start.norm = job_rank_step(&r, 1).norm;
    if (rank == 0) *task->start = start;
    job_rank_close(&r);
    return 0;
}

static struct start start_of(const char *precision, const char *blocks, enum weft_policy policy,
                             struct start *shared)
{
    struct job job;
    const char *overrides[] = {"cluster.emulate=false", precision, blocks, NULL};
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, policy, true);
    struct start_task task = {&job, shared};
    CHECK(ranks_run(RANKS, start_once, &task) == 0, "%s, %s", precision, blocks);
    job_close(&job);
    return *shared;
}

/* A norm is of all elements, however many stand in a row. */
static void check_starts(void)
{
    static const char precision[] =
        "train.precision={\"compute\":\"bf16\",\"reduce\":\"bf16\",\"accumulate\":\"bf16\"}";
    struct start *shared = job_shared(sizeof *shared);
    struct start whole = start_of(precision, "plan.blocks=1", WEFT_POLICY_FSDP, shared);
    struct start cut = start_of(precision, "plan.blocks=7", WEFT_POLICY_FSDP, shared);
    CHECK(whole.norm == cut.norm, "norm %.17g, and in seven blocks %.17g", whole.norm, cut.norm);
    struct start replicated = start_of(precision, "plan.blocks=1", WEFT_POLICY_DP, shared);
    CHECK(replicated.n_rounded > 20000, "%lld elements", (long long)replicated.n_rounded);
}

/* Compares a run that overflows at first with one that begins at the resulting scale. */
static void check_skips(struct outcome *shared)
{
    static const char path[] = "configs/runs/gpt-odd.json";
    char settled[96];
    struct outcome high =
        run(path, "train.precision={\"compute\":\"f16\",\"reduce\":\"f16\"}",
            "train.loss_scale={\"initial\":16777216,\"growth_steps\":1000}", shared);
    CHECK(high.skipped > 0, "nothing overflowed with a scale of 2^24");
    CHECK(high.scale.good_steps <= STEPS, "%lld good steps", (long long)high.scale.good_steps);
    snprintf(settled, sizeof settled, "train.loss_scale={\"initial\":%.0f,\"growth_steps\":1000}",
             high.scale.scale);
    struct outcome low =
        run(path, "train.precision={\"compute\":\"f16\",\"reduce\":\"f16\"}", settled, shared);
    CHECK(low.skipped == 0, "%d attempts were skipped at a scale of %g", low.skipped,
          high.scale.scale);
    if (high.scale.good_steps < STEPS) return; /* it overflowed after the first step: two scales */
    CHECK(weft_hash_equal(high.fingerprint, low.fingerprint) && high.last_loss == low.last_loss,
          "skipped attempts left a trace: loss %.17g, without them %.17g", high.last_loss,
          low.last_loss);
    printf("%d attempts skipped, to a scale of %g, and no trace of them\n", high.skipped,
           high.scale.scale);
}

static void check_scale(void)
{
    const struct weft_train f16 = {.precision = {.compute = WEFT_F16},
                                   .loss_scale = {.initial = 4, .growth_steps = 2}};
    const struct weft_train f32 = {.loss_scale = {.initial = 4, .growth_steps = 2}};
    struct weft_loss_scale scale = weft_loss_scale_first(&f16);
    CHECK(scale.scale == 4 && scale.good_steps == 0, "begins at %g", scale.scale);
    CHECK(weft_loss_scale_next(&scale, &f16, true) && scale.scale == 4, "one good step");
    CHECK(weft_loss_scale_next(&scale, &f16, true) && scale.scale == 8, "two good steps");
    CHECK(weft_loss_scale_next(&scale, &f16, true) && scale.good_steps == 1, "a third");
    CHECK(weft_loss_scale_next(&scale, &f16, false) && scale.scale == 4 && scale.good_steps == 0,
          "an overflow: %g", scale.scale);
    CHECK(weft_loss_scale_next(&scale, &f16, false) && weft_loss_scale_next(&scale, &f16, false) &&
              scale.scale == 1,
          "down to %g", scale.scale);
    CHECK(!weft_loss_scale_next(&scale, &f16, false), "1 is not the scale's fault");
    scale = weft_loss_scale_first(&f32);
    CHECK(scale.scale == 1 && weft_loss_scale_next(&scale, &f32, true) && scale.scale == 1,
          "f32 has no scale");
    CHECK(!weft_loss_scale_next(&scale, &f32, false), "f32 has nothing to skip");
}

static void check_refused(const char *path, const char *precision, const char *more,
                          const char *why)
{
    struct weft_config *config;
    struct weft_error error = {0};
    const char *overrides[] = {precision, more};
    OK(weft_config_read(path, overrides, more == NULL ? 1 : 2, &config, &err));
    CHECK(weft_precision_check(config, &error) == WEFT_E_DATA, "%s was not refused", precision);
    CHECK(strstr(error.text, why) != NULL, "%s: %s", precision, error.text);
    weft_config_destroy(config);
}

/* It can be planned there. */
static void check_refused_on_gpu(void)
{
    struct weft_config *config;
    struct weft_error error = {0};
    const char *overrides[] = {"train.optimizer.type=adam_mini", "cluster.device.type=cuda",
                               "cluster.emulate=false"};
    OK(weft_config_read("configs/runs/gpt-odd.json", overrides, 3, &config, &err));
    CHECK(weft_precision_check(config, &error) == WEFT_E_DATA &&
              strstr(error.text, "which GPUs only plan so far") != NULL,
          "%s", error.text);
    weft_config_destroy(config);
}

RANKS_TEST(precision)
{
    struct outcome *shared = job_shared(sizeof *shared);
    check_scale();
    check_refused("configs/runs/gpt-odd.json", "train.precision.reduce=bf16", NULL,
                  "train.precision.reduce is bf16");
    check_refused("configs/runs/gpt-odd.json",
                  "train.precision={\"compute\":\"bf16\",\"reduce\":\"f16\"}", NULL,
                  "Set it to \"f32\" or \"bf16\"");
    check_refused("configs/runs/gpt-odd.json", "train.precision.accumulate=f16", NULL,
                  "train.precision.accumulate is f16");
    check_refused("configs/runs/gpt-odd.json", "train.precision.compute=f16", "train.clip_norm=0",
                  "clip_norm");
    check_refused_on_gpu();
    check_losses("configs/runs/gpt-odd.json", 0.05, shared);
    check_losses("configs/runs/mlp-tiny.json", 0.05, shared);
    check_losses("configs/runs/gpt-frozen.json", 0.05, shared);
    check_skips(shared);
    check_scale_is_taken_out(shared);
    check_starts();
    return 0;
}
