/* SPDX-License-Identifier: Apache-2.0 */
/* Rehearsals on a machine with known times, the device under the virtual clock: each time that is
 * read from its steps is the profile's. */
#include <stdlib.h>
#include <string.h>

#include "program/predict.h"
#include "runtime/measure/measure.h"
#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

enum { RANKS = 2, MOST_TURNS = 64, MOST_KEYS = 16, EXTRA_BYTES = 2 << 20 };

struct task {
    const struct job *job;
    int32_t turns; /* to make; 0: as many as rehearsals ask for */
    int32_t rounds;
    bool contention;
    bool lacks_threads;             /* in the rehearsal by layer */
    struct measure_rehearsal found; /* of rank 0 */
    struct measure_layer layers[MOST_KEYS * WEFT_RECOMPUTE_COUNT];
    struct measure_layer pass_first[MOST_KEYS * WEFT_RECOMPUTE_COUNT];
    struct measure_layer pass_later[MOST_KEYS * WEFT_RECOMPUTE_COUNT];
    int32_t first_rounds, last_rounds;
};

/* In turn t, rank r, streams lose this time, of 1000 ns of overlap on each rank. Single turns and
 * ranks are far from the median of sums, 100 + 300 and 200 + 400. */
static struct measure_slowing slowing_of(int32_t turn, int32_t rank)
{
    const int64_t far = turn % 5 == 0 ? 900 : turn % 5 == 1 ? -900 : 0;
    return (struct measure_slowing){
        .longer_ns = {[WEFT_STREAM_COMPUTE] = 100 + 200 * rank + far,
                      [WEFT_STREAM_CHANNEL] = 200 + 200 * rank - far},
        .beside_ns = {[WEFT_STREAM_COMPUTE] = 1000 + far, [WEFT_STREAM_CHANNEL] = 1000 - far},
    };
}

/* The linker gives rehearsals' calls of it to this test, since no machine contends as wanted. */
static struct {
    bool replaced;
    int32_t rank, turn;
} slowing;

void __real_weft_measure_add_times(const struct weft_program *program,
                                   const struct measure_times *alone,
                                   const struct measure_times *beside,
                                   struct measure_slowing *total);
void __wrap_weft_measure_add_times(const struct weft_program *program,
                                   const struct measure_times *alone,
                                   const struct measure_times *beside,
                                   struct measure_slowing *total);
void __wrap_weft_measure_add_times(const struct weft_program *program,
                                   const struct measure_times *alone,
                                   const struct measure_times *beside,
                                   struct measure_slowing *total)
{
    if (slowing.replaced) {
        *total = slowing_of(slowing.turn++, slowing.rank);
    } else {
        __real_weft_measure_add_times(program, alone, beside, total);
    }
}

/* Whether no thread starts any more, a failure that one rank may have alone. */
static bool lacks_threads;

enum weft_status __real_weft_exec_create(const struct weft_exec_options *options,
                                         struct weft_exec **out, struct weft_error *error);
enum weft_status __wrap_weft_exec_create(const struct weft_exec_options *options,
                                         struct weft_exec **out, struct weft_error *error);
enum weft_status __wrap_weft_exec_create(const struct weft_exec_options *options,
                                         struct weft_exec **out, struct weft_error *error)
{
    return lacks_threads ? weft_fail(error, WEFT_E_SYSTEM, "cannot start a thread")
                         : __real_weft_exec_create(options, out, error);
}

static int rehearse(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct task *task = argument;
    const struct weft_comm_options comm = ranks_options(rank, ranks);
    struct weft_measure_options options = {
        .config = task->job->config, .rounds = task->rounds, .contention = task->contention};
    struct measure_rehearsal found = {0};
    struct measure_layer layers[3][MOST_KEYS * WEFT_RECOMPUTE_COUNT] = {0};
    struct measure_rehearsals *both = NULL;
    struct weft_error why = {0};
    int32_t done = 0, rounds = 0;
    slowing.replaced = task->contention;
    slowing.rank = rank;
    OK(weft_device_open("cpu", WEFT_CLOCK_VIRTUAL, &options.device, &err));
    job_open_kernels(task->job, &options.nn);
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    OK(weft_measure_rehearsals_create(&options, task->job->profile, &both, &err));
    OK(weft_measure_rehearsals_rounds(both, &rounds, &err));
    const int32_t first = rounds, turns = task->turns > 0 ? task->turns : rounds;
    for (; done < turns; done++)
        OK(weft_measure_rehearsals_turn(both, &err));
    OK(weft_measure_rehearsals_rounds(both, &rounds, &err));
    if (done == MOST_TURNS)
        CHECK(weft_measure_rehearsals_turn(both, &why) == WEFT_E_USAGE, "turn %d", done + 1);
    found.layers = layers[0];
    found.pass_first = layers[1];
    found.pass_later = layers[2];
    lacks_threads = task->lacks_threads;
    const enum weft_status finished = weft_measure_rehearsals_finish(both, &found, &why);
    CHECK(finished == (lacks_threads ? WEFT_E_SYSTEM : WEFT_OK), "%d: %s", finished, why.text);
    if (rank == 0) {
        memcpy(task->layers, layers[0], sizeof layers[0]);
        memcpy(task->pass_first, layers[1], sizeof layers[1]);
        memcpy(task->pass_later, layers[2], sizeof layers[2]);
        task->found = found;
        task->first_rounds = first;
        task->last_rounds = rounds;
    }
    weft_measure_rehearsals_destroy(both);
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(options.device);
    return 0;
}

static const struct task *run_task(struct task as)
{
    struct task *task = job_shared(sizeof *task);
    *task = as;
    CHECK(as.job->profile->n_layers <= MOST_KEYS, "%d keys", as.job->profile->n_layers);
    CHECK(ranks_run(RANKS, rehearse, task) == 0, "a rehearsal failed");
    return task;
}

static const struct task *run(const struct job *job, int32_t turns, int32_t rounds, bool contention)
{
    return run_task(
        (struct task){.job = job, .turns = turns, .rounds = rounds, .contention = contention});
}

static void expect_ns(const char *path, const char *what, int64_t found_ns, int64_t known_ns)
{
    CHECK(found_ns == known_ns, "%s: %s takes %lld ns, known %lld", path, what, (long long)found_ns,
          (long long)known_ns);
}

/* Gives each point of a curve another time, so that no two kinds are mistaken for each other. */
static void tilt_curve(struct weft_pool *pool, struct weft_curve *curve, int64_t extra_ns)
{
    int64_t *ns = weft_pool_array(pool, (size_t)curve->n, sizeof *ns);
    CHECK(ns != NULL, "out of memory");
    for (int32_t i = 0; i < curve->n; i++)
        ns[i] = curve->ns[i] + extra_ns + i * 11;
    curve->ns = ns;
}

static void tilt_profile(struct weft_profile *profile)
{
    for (int32_t k = 0; k < profile->n_layers; k++) {
        profile->layers[k].forward_ns = 100003 + 7001 * k;
        profile->layers[k].backward_ns = 207001 + 9001 * k;
        profile->layers[k].levels[WEFT_RECOMPUTE_NONE].pass_first =
            (struct weft_pass_times){70001 + 5003 * k, 150001 + 7001 * k};
        profile->layers[k].levels[WEFT_RECOMPUTE_NONE].pass_later =
            (struct weft_pass_times){50021 + 3001 * k, 110017 + 5003 * k};
    }
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        tilt_curve(&profile->pool, &profile->collectives[kind], 10007 + 5003 * kind);
    tilt_curve(&profile->pool, &profile->update, 3001);
    tilt_curve(&profile->pool, &profile->norm, 40009);
    profile->agree_ns = 17011;
}

static void check_layers(const struct job *job, const struct task *task, const char *path)
{
    for (int32_t k = 0; k < job->profile->n_layers; k++) {
        const struct weft_layer_times *known = &job->profile->layers[k];
        const struct measure_layer *found = &task->layers[k];
        expect_ns(path, "a forward", found->forward_ns, known->forward_ns);
        expect_ns(path, "a backward", found->backward_ns, known->backward_ns);
        expect_ns(path, "a forward of the mean rank", found->mean_forward_ns, known->forward_ns);
        expect_ns(path, "a backward of the mean rank", found->mean_backward_ns, known->backward_ns);
    }
}

/* Times of passes are those of slots in the order by layer; none with one micro-step. */
static void check_passes(const struct job *job, const struct task *task, const char *path)
{
    const bool several = job->config->train.grad_accum > 1;
    for (int32_t k = 0; k < job->profile->n_layers; k++) {
        const struct weft_level_times *known = &job->profile->layers[k].levels[0];
        const struct weft_pass_times none = {0};
        const struct weft_pass_times first = several ? known->pass_first : none;
        const struct weft_pass_times later = several ? known->pass_later : none;
        expect_ns(path, "a pass's first forward", task->pass_first[k].forward_ns, first.forward_ns);
        expect_ns(path, "a pass's first backward", task->pass_first[k].backward_ns,
                  first.backward_ns);
        expect_ns(path, "a later forward", task->pass_later[k].forward_ns, later.forward_ns);
        expect_ns(path, "a later backward", task->pass_later[k].backward_ns, later.backward_ns);
        expect_ns(path, "a later forward of the mean rank", task->pass_later[k].mean_forward_ns,
                  later.forward_ns);
    }
}

/* Block times of a kind in the problem, summed over the plan's placements. */
static int64_t known_transfer_ns(const struct weft_plan *plan, int32_t kind)
{
    int64_t sum = 0;
    for (int32_t p = 0; p < plan->n_placements; p++) {
        const struct weft_problem_item *item = &plan->problem->items[plan->placements[p].item];
        if (item->item.kind == kind) sum += item->block_ns;
    }
    return sum;
}

static int64_t known_slots_ns(const struct weft_plan *plan, enum weft_slot_kind kind)
{
    int64_t sum = 0;
    for (int32_t s = 0; s < plan->problem->n_slots; s++)
        if (plan->problem->slots[s].kind == kind) sum += weft_plan_slot_ns(plan, s);
    return sum;
}

static void check_known(const char *path, const char *more, bool clips)
{
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", "plan.blocks=3", more,
                               NULL};
    struct weft_plan *plan;
    struct job job;
    job_open(&job, path, overrides);
    tilt_profile(job.profile);
    weft_stages_finish(&job.stages);
    OK(weft_stages_create(job.config, job.profile, &job.stages, &err));
    OK(weft_measure_rehearsal_plan(job.config, job.stages.problem, &plan, &err));
    OK(weft_plan_predict(plan, &err));
    const struct task *task = run(&job, 0, 3, false);
    const struct measure_rehearsal *found = &task->found;
    CHECK(task->first_rounds == 3 && task->last_rounds == 3, "%d, then %d rounds for 3",
          task->first_rounds, task->last_rounds);
    check_layers(&job, task, path);
    check_passes(&job, task, path);
    expect_ns(path, "the update", found->update_ns, known_slots_ns(plan, WEFT_SLOT_UPDATE));
    expect_ns(path, "the update by the curve", found->update_expected_ns, found->update_ns);
    const int64_t norm_ns = known_slots_ns(plan, WEFT_SLOT_NORM);
    expect_ns(path, "the norm", found->norm_ns, clips ? norm_ns : 0);
    if (clips) expect_ns(path, "the norm by the curve", found->norm_expected_ns, norm_ns);
    expect_ns(path, "the agreement", found->agree_ns, job.profile->agree_ns);
    expect_ns(path, "a step", found->step_ns, plan->prediction.step_ns);
    for (int32_t kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        const char *name = weft_collective_name((enum weft_collective)kind);
        const int64_t known_ns = known_transfer_ns(plan, kind);
        expect_ns(path, name, found->transfer_ns[kind], known_ns);
        expect_ns(path, name, found->transfer_expected_ns[kind], known_ns);
    }
    CHECK(found->rates.compute == 0 && found->rates.own == 0, "rates were not asked for");
    CHECK(found->base_bytes > EXTRA_BYTES, "base memory is %lld", (long long)found->base_bytes);
    weft_plan_destroy(plan);
    job_close(&job);
}

/* Serialised steps give the times of work alone. As many turns as there may be. */
static void rates_are_of_the_median_turn_of_all_ranks(const char *path)
{
    /* 1024 * (1 - 400 / 2000), 1024 * (1 - 600 / 2000) */
    const struct weft_rates known = {819, 717};
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", "plan.blocks=3", NULL};
    struct job job;
    job_open(&job, path, overrides);
    tilt_profile(job.profile);
    const struct task *task = run(&job, MOST_TURNS, MOST_TURNS, true);
    check_layers(&job, task, path);
    check_passes(&job, task, path);
    CHECK(task->found.rates.compute == known.compute && task->found.rates.own == known.own,
          "%s: rates %d and %d, known %d and %d", path, task->found.rates.compute,
          task->found.rates.own, known.compute, known.own);
    job_close(&job);
}

/* Without memory for the arena by layer, its times are left out. Other failures are no lack of
 * memory: one rank may have them alone. */
static void times_by_layer_are_left_out_without_memory_alone(const char *path)
{
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", "train.grad_accum=3",
                               "cluster.memory_limit=2MiB", NULL};
    for (int lacks = 0; lacks < 2; lacks++) {
        struct job job;
        if (lacks) overrides[3] = NULL;
        job_open(&job, path, overrides);
        const struct task *task =
            run_task((struct task){.job = &job, .rounds = 3, .lacks_threads = lacks});
        CHECK(task->found.step_ns > 0 && task->layers[0].forward_ns > 0, "no times by step");
        CHECK(task->pass_first[0].forward_ns == 0 && task->pass_later[0].forward_ns == 0,
              "times by layer");
        job_close(&job);
    }
}

RANKS_TEST(rehearsal)
{
    times_by_layer_are_left_out_without_memory_alone("configs/runs/mlp-tiny.json");
    check_known("configs/runs/mlp-tiny.json", "train.grad_accum=1", true);
    check_known("configs/runs/mlp-tiny.json", "train.grad_accum=3", true);
    check_known("configs/runs/gpt-tiny.json", "train.clip_norm=0", false);
    rates_are_of_the_median_turn_of_all_ranks("configs/runs/mlp-tiny.json");
    return 0;
}
