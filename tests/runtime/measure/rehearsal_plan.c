/* SPDX-License-Identifier: Apache-2.0 */
/* The rehearsal's plan: the leanest strategies, and all communication next to compute. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "program/predict.h"
#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

static const char *const configs[] = {"configs/runs/gpt-tiny.json", "configs/runs/mlp-tiny.json"};
enum { CONFIGS = sizeof configs / sizeof *configs };

/* The policy that shards most of those that a decision has. */
static enum weft_policy leanest_policy(const struct weft_problem_decision *unit)
{
    enum weft_policy most = WEFT_POLICY_DP;
    for (int32_t k = 0; k < unit->n_strategies; k++)
        if (unit->strategies[k].policy > most) most = unit->strategies[k].policy;
    return most;
}

/* One slot before the use of a gather and one after a gradient is done, within the window. */
static void check_placement(const struct weft_item *item, const struct weft_placement *at,
                            const char *path)
{
    if (item->acquires) {
        const int32_t wanted = item->last > item->first ? item->last - 1 : item->first;
        CHECK(at->launch == wanted && at->deadline == item->last + 1,
              "%s: a gather of slots %d to %d is launched in %d and due in %d", path, item->first,
              item->last, at->launch, at->deadline);
    } else {
        const int32_t wanted = item->last > item->first ? item->first + 1 : item->first;
        CHECK(at->launch == item->first && at->deadline == wanted + 1,
              "%s: a reduction of slots %d to %d is launched in %d and due in %d", path,
              item->first, item->last, at->launch, at->deadline);
    }
}

static void check_plan(const struct weft_problem *problem, const struct weft_plan *plan,
                       const char *path)
{
    int32_t before = 0, *found = calloc((size_t)problem->n_items, sizeof *found);
    CHECK(found != NULL, "out of memory");
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const enum weft_policy policy = weft_plan_chosen(plan, d)->policy;
        CHECK(policy == leanest_policy(&problem->decisions[d]), "%s: decision %d has policy %d",
              path, d, (int)policy);
    }
    for (int32_t p = 0; p < plan->n_placements; p++) {
        const struct weft_item *item = &problem->items[plan->placements[p].item].item;
        const int32_t at = item->acquires ? item->last : item->first;
        check_placement(item, &plan->placements[p], path);
        CHECK(at >= before, "%s: placement %d of slot %d follows slot %d", path, p, at, before);
        before = at;
        found[plan->placements[p].item]++;
    }
    for (int32_t i = 0; i < problem->n_items; i++) {
        const bool needs = weft_problem_needs(problem, plan->strategies, i);
        CHECK(found[i] == (needs ? problem->items[i].item.n_blocks : 0),
              "%s: item %d has %d placements", path, i, found[i]);
    }
    free(found);
}

static void communication_is_next_to_compute(void)
{
    for (int c = 0; c < CONFIGS; c++) {
        const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", "plan.blocks=3",
                                   NULL};
        struct weft_plan *plan;
        int64_t step_ns = 0;
        struct job job;
        job_open(&job, configs[c], overrides);
        OK(weft_measure_rehearsal_plan(job.config, job.stages.problem, &plan, &err));
        check_plan(job.stages.problem, plan, configs[c]);
        OK(weft_plan_predict(plan, &err));
        OK(weft_measure_rehearsed_step(job.config, job.profile, &step_ns, &err));
        CHECK(step_ns == plan->prediction.step_ns && step_ns > 0, "%s: steps of %lld and %lld ns",
              configs[c], (long long)step_ns, (long long)plan->prediction.step_ns);
        weft_plan_destroy(plan);
        job_close(&job);
    }
}

/* Copies of slices next to compute would make a GPU's layers slower. A CPU's base memory is
 * measured with them. */
static void a_single_rank_shards_nothing_on_a_gpu(void)
{
    for (int c = 0; c < 2 * CONFIGS; c++) {
        const bool on_gpu = c % 2 == 1;
        const char *overrides[] = {"cluster.ranks=1", "cluster.emulate=false", NULL};
        struct weft_plan *plan;
        struct job job;
        job_open(&job, configs[c / 2], overrides);
        job.config->cluster.device.type = on_gpu ? WEFT_DEVICE_CUDA : WEFT_DEVICE_CPU;
        OK(weft_measure_rehearsal_plan(job.config, job.stages.problem, &plan, &err));
        for (int32_t d = 0; d < job.stages.problem->n_decisions; d++)
            CHECK((weft_plan_chosen(plan, d)->policy == WEFT_POLICY_DP) == on_gpu,
                  "%s: decision %d is %s", configs[c / 2], d, weft_plan_chosen(plan, d)->name);
        weft_plan_destroy(plan);
        job_close(&job);
    }
}

/* A unit that may not be sharded fully takes the next leaner policy. */
static void the_leanest_allowed_policy_is_taken(void)
{
    static const char *const allowed[] = {"plan.policies=dp", "plan.policies=dp,zero1",
                                          "plan.policies=dp,zero1,sdp"};
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", allowed[i], NULL};
        struct weft_plan *plan;
        struct job job;
        job_open(&job, configs[1], overrides);
        OK(weft_measure_rehearsal_plan(job.config, job.stages.problem, &plan, &err));
        check_plan(job.stages.problem, plan, allowed[i]);
        CHECK(weft_plan_chosen(plan, 0)->policy == (enum weft_policy)(WEFT_POLICY_DP + (int)i),
              "%s: %s", allowed[i], weft_plan_chosen(plan, 0)->name);
        weft_plan_destroy(plan);
        job_close(&job);
    }
}

/* A profile that lacks a layer gives no step. */
static void a_profile_of_other_layers_is_refused(void)
{
    const char *overrides[] = {"cluster.emulate=false", NULL};
    struct weft_error error = {0};
    int64_t step_ns = -7;
    struct job gpt, mlp;
    job_open(&gpt, configs[0], overrides);
    job_open(&mlp, configs[1], overrides);
    CHECK(weft_measure_rehearsed_step(gpt.config, mlp.profile, &step_ns, &error) != WEFT_OK,
          "times of other layers");
    CHECK(step_ns == -7 && error.text[0] != '\0', "%lld: %s", (long long)step_ns, error.text);
    job_close(&mlp);
    job_close(&gpt);
}

RANKS_TEST(rehearsal_plan)
{
    communication_is_next_to_compute();
    the_leanest_allowed_policy_is_taken();
    a_single_rank_shards_nothing_on_a_gpu();
    a_profile_of_other_layers_is_refused();
    return 0;
}
