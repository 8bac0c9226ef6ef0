/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's own arithmetic. The clipping coefficient is min(1, clip_norm / (norm + 1e-6)),
 * and the epsilon matters. Parts of a gradient outside all tensors are zero. */
#include <stdio.h>

#include "runtime/exec/parts.h"
#include "runtime/exec/units.h"
#include "tests/runtime/exec/job.h"

enum { RANKS = 2 };

struct task {
    const struct job *job;
    struct weft_step_result *result; /* shared: of the first step, on all ranks alike */
};

static int step_once(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, false);
    task->result[rank] = job_rank_step(&r, 1);
    job_rank_close(&r);
    return 0;
}

/* The first step with a limit of the norm. */
static struct weft_step_result first_step(double clip_norm, struct weft_step_result *results)
{
    char clip[64];
    snprintf(clip, sizeof clip, "train.clip_norm=%.17g", clip_norm);
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", clip, NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_FSDP, false);
    struct task task = {&job, results};
    CHECK(ranks_run(RANKS, step_once, &task) == 0, "%s", clip);
    CHECK(results[0].norm == results[1].norm && results[0].clip == results[1].clip,
          "the ranks' norms or coefficients differ");
    job_close(&job);
    return results[0];
}

/* The arena was full of NaN before the step. */
static int look_at_padding(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    int64_t n = 0;
    struct job_rank r;
    job_rank_open(&r, job, rank, ranks, WEFT_CLOCK_WALL, true);
    job_rank_step(&r, 1);
    for (int32_t u = 0; u < job->program->n_units; u++) {
        const struct weft_unit *unit = &job->stages.shards->units[u];
        int64_t at = 0;
        for (int32_t t = 0; t <= unit->n_tensors; t++) {
            int64_t next = t < unit->n_tensors ? unit->offsets[t] : unit->padded_elements;
            const unsigned char *at_unit = r.exec->units[u].nn.gradient;
            const float *gradient =
                (const void *)(weft_arena_memory(r.arena) + (at_unit - r.exec->base));
            for (n += next - at; at < next; at++)
                CHECK(gradient[at] == 0, "%s: element %lld is %g", unit->name, (long long)at,
                      (double)gradient[at]);
            if (t < unit->n_tensors) at += job->config->model->tensors[unit->tensors[t]].elements;
        }
    }
    CHECK(n > 0, "there is no padding");
    job_rank_close(&r);
    return 0;
}

static void check_padding(void)
{
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", "plan.blocks=7", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-odd.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_DP, false);
    CHECK(ranks_run(RANKS, look_at_padding, &job) == 0, "padding is not zero");
    job_close(&job);
}

RANKS_TEST(work)
{
    struct weft_step_result *results = job_shared(RANKS * sizeof *results);
    struct weft_step_result free = first_step(1e9, results);
    double norm = free.norm;
    CHECK(norm > 0 && free.clip == 1, "norm %g, coefficient %g", norm, free.clip);
    const double limits[] = {1e-3, norm / 2, norm, norm + 5e-7, norm + 2e-6};
    for (int i = 0; i < 5; i++) {
        struct weft_step_result clipped = first_step(limits[i], results);
        double wanted = limits[i] / (norm + 1e-6);
        CHECK(clipped.norm == norm, "norm %.17g, not %.17g", clipped.norm, norm);
        CHECK(clipped.clip == (wanted < 1 ? wanted : 1),
              "limit %.17g: coefficient %.17g, not %.17g", limits[i], clipped.clip, wanted);
        CHECK((clipped.clip < 1) == (i < 4), "limit %d clips", i);
    }
    check_padding();
    return 0;
}
