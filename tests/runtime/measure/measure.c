/* SPDX-License-Identifier: Apache-2.0 */
/* A measured profile is whole, the same on all ranks, and good enough to plan with. Times are not
 * compared with anything: this machine may be busy. */
#include "runtime/measure/measure.h"
#include "problem/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/watch.h"
#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

enum { RANKS = 2, ROUNDS = 3 };

struct shared {
    struct weft_hash hash[RANKS], contended[RANKS];
};

struct task {
    const struct job *job;
    struct shared *shared;
};

static void check_curve(const struct weft_curve *curve, int64_t most, const char *what)
{
    CHECK(curve->n >= 4, "%s: %d points", what, curve->n);
    for (int32_t i = 0; i < curve->n; i++) {
        CHECK(curve->ns[i] > 0, "%s: point %d is %lld ns", what, i, (long long)curve->ns[i]);
        CHECK(i == 0 || curve->x[i] > curve->x[i - 1], "%s: point %d does not rise", what, i);
    }
    CHECK(curve->x[curve->n - 1] >= most, "%s ends at %lld", what,
          (long long)curve->x[curve->n - 1]);
}

/* Times of each level that the layer can have, also for a config without recomputation. */
static void check_levels(const struct weft_layer *layer, const struct weft_batch *batch,
                         const struct weft_layer_times *times)
{
    struct weft_layer_work work;
    OK(weft_layer_work(layer, batch, &work, &err));
    for (int level = WEFT_RECOMPUTE_FIRST; level < WEFT_RECOMPUTE_COUNT; level++) {
        const struct weft_level_times *at = weft_layer_times_at(times, (enum weft_recompute)level);
        CHECK((at != NULL) == work.splits[level].possible, "%s: %s", layer->name,
              weft_recompute_names[level]);
        CHECK(at == NULL || (at->forward_ns > 1 && at->backward_ns > 1), "%s: %s takes no time",
              layer->name, weft_recompute_names[level]);
    }
}

static void check_profile(const struct weft_config *config, const struct weft_profile *profile)
{
    struct weft_batch batch = weft_config_batch(config);
    struct weft_pool pool = {0};
    CHECK(strcmp(profile->source, "measured") == 0, "source is %s", profile->source);
    CHECK(profile->ranks == RANKS, "%lld ranks", (long long)profile->ranks);
    for (int32_t l = 0; l < config->model->n_layers; l++) {
        const char *key = weft_layer_key(&pool, &config->model->layers[l], &batch);
        const struct weft_layer_times *times = weft_profile_layer(profile, key);
        CHECK(times != NULL && times->forward_ns > 0 && times->backward_ns > 0, "no times of %s",
              key);
        const struct weft_level_times *at = &times->levels[WEFT_RECOMPUTE_NONE];
        const bool several = config->train.grad_accum > 1;
        CHECK((at->pass_first.forward_ns > 0) == several &&
                  (at->pass_later.backward_ns > 0) == several,
              "times of passes of %s with %lld micro-steps", key,
              (long long)config->train.grad_accum);
        check_levels(&config->model->layers[l], &batch, times);
    }
    weft_pool_finish(&pool);
    /* All parameters of these small models may be one unit. */
    int64_t elements = config->model->parameters;
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++) {
        check_curve(&profile->collectives[kind], elements * 4,
                    weft_collective_name((enum weft_collective)kind));
    }
    check_curve(&profile->update, elements, "update");
    check_curve(&profile->norm, elements, "norm");
    CHECK(profile->agree_ns > 0, "agree takes %lld ns", (long long)profile->agree_ns);
    CHECK(profile->base_bytes > 1 << 20 && profile->base_bytes < INT64_C(1) << 31,
          "base memory is %lld bytes", (long long)profile->base_bytes);
}

static int measure(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct weft_comm_options comm = ranks_options(rank, ranks);
    struct weft_nn_options nn = {.threads = 1, .gemm = "auto"};
    struct weft_measure_options options = {.config = task->job->config, .rounds = ROUNDS};
    struct weft_profile *profile = NULL;
    struct weft_device *device, *virtual_device;
    struct weft_stages stages;
    struct weft_error why = {0};
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err));
    OK(weft_device_open("cpu", WEFT_CLOCK_VIRTUAL, &virtual_device, &err));
    OK(weft_nn_open("cpu", &nn, &options.nn, &err));
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    int64_t most[] = {10 * rank, 7 - rank}, mean[] = {10 * rank, 7 - 3 * rank};
    OK(weft_measure_most(options.comm, most, 2, &err));
    OK(weft_measure_mean(options.comm, mean, 2, &err));
    CHECK(most[0] == 10 && most[1] == 7, "the most of two ranks: %lld, %lld", (long long)most[0],
          (long long)most[1]);
    CHECK(mean[0] == 5 && mean[1] == 5, "the mean of two ranks: %lld, %lld", (long long)mean[0],
          (long long)mean[1]);
    options.device = virtual_device;
    CHECK(weft_measure(&options, &profile, &why) == WEFT_E_USAGE &&
              strstr(why.text, "virtual clock") != NULL,
          "%s", why.text);
    options.device = device;
    OK(weft_measure(&options, &profile, &err));
    check_profile(options.config, profile);
    task->shared->hash[rank] = profile->hash;
    CHECK(profile->rates.compute == 0, "rates were not asked for");
    OK(weft_stages_create(options.config, profile, &stages, &err));
    weft_stages_finish(&stages);
    weft_profile_destroy(profile);
    options.contention = true;
    OK(weft_measure(&options, &profile, &err));
    check_profile(options.config, profile);
    task->shared->contended[rank] = profile->hash;
    OK(weft_stages_create(options.config, profile, &stages, &err)); /* which checks the rates */
    struct weft_rates rates = stages.problem->lanes[WEFT_LANE_FIRST].rates;
    CHECK(rates.compute == profile->rates.compute && rates.own == profile->rates.own &&
              profile->rates.compute > 0,
          "rates of the problem");
    weft_stages_finish(&stages);
    weft_profile_destroy(profile);
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(virtual_device);
    weft_device_close(device);
    return 0;
}

/* Anonymous memory grows by the touched pages, without shared memory. */
static void counts_memory(void)
{
    enum { MIB = 1 << 20, ALLOCATED = 32 * MIB };
    int64_t before = weft_measure_resident_bytes();
    unsigned char *private = malloc(ALLOCATED), *shared = job_shared(ALLOCATED);
    CHECK(private != NULL, "out of memory");
    memset(private, 1, ALLOCATED);
    memset(shared, 1, ALLOCATED);
    int64_t grown = weft_measure_resident_bytes() - before;
    CHECK(grown > ALLOCATED - MIB && grown < ALLOCATED + MIB, "%d bytes touched, %lld counted",
          ALLOCATED, (long long)grown);
    free(private);
}

/* Benches and rehearsals with known results: the linker gives a profile's calls of them to this
 * test. Each call is counted, and one of them may fail. */
/* A profile of another micro-batch; NULL: none. */
static const struct weft_profile *other_split;

enum stage { STAGE_BENCHES, STAGE_CREATE, STAGE_ROUNDS, STAGE_TURN, STAGE_FINISH, STAGE_COUNT };
enum { POINTS = 4, FIRST_ROUNDS = 2, ALL_ROUNDS = 5, NO_FAILURE = -1 };

static struct {
    bool replaced;
    int fails_at; /* enum stage */
    int calls[STAGE_COUNT], destroyed;
    struct measure_rehearsal found; /* without layers */
} known;

static enum weft_status pass_stage(enum stage stage, struct weft_error *err)
{
    known.calls[stage]++;
    return (int)stage == known.fails_at ? weft_fail(err, WEFT_E_IO, "stage %d", (int)stage)
                                        : WEFT_OK;
}

/* Point i is of 1024 << i, and takes (i + 1) * ns. */
static struct measure_curve known_curve(int64_t ns)
{
    struct measure_curve curve = {.n = POINTS};
    for (int i = 0; i < POINTS; i++) {
        curve.x[i] = INT64_C(1024) << i;
        curve.ns[i] = (i + 1) * ns;
    }
    return curve;
}

enum weft_status __real_weft_measure_run_benches(const struct weft_measure_options *options,
                                                 struct measure_benches *out,
                                                 struct weft_error *err);
enum weft_status __wrap_weft_measure_run_benches(const struct weft_measure_options *options,
                                                 struct measure_benches *out,
                                                 struct weft_error *err);
enum weft_status __wrap_weft_measure_run_benches(const struct weft_measure_options *options,
                                                 struct measure_benches *out,
                                                 struct weft_error *err)
{
    if (!known.replaced) return __real_weft_measure_run_benches(options, out, err);
    WEFT_TRY(pass_stage(STAGE_BENCHES, err));
    for (int kind = 0; kind < WEFT_COLLECTIVE_COUNT; kind++)
        out->collectives[kind] = known_curve(1000 * (kind + 1));
    out->update = known_curve(5000);
    out->norm = known_curve(7000);
    return WEFT_OK;
}

enum weft_status __real_weft_measure_rehearsals_create(const struct weft_measure_options *options,
                                                       const struct weft_profile *profile,
                                                       struct measure_rehearsals **out,
                                                       struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_create(const struct weft_measure_options *options,
                                                       const struct weft_profile *profile,
                                                       struct measure_rehearsals **out,
                                                       struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_create(const struct weft_measure_options *options,
                                                       const struct weft_profile *profile,
                                                       struct measure_rehearsals **out,
                                                       struct weft_error *err)
{
    if (!known.replaced) return __real_weft_measure_rehearsals_create(options, profile, out, err);
    WEFT_TRY(pass_stage(STAGE_CREATE, err));
    CHECK(profile->update.n == POINTS &&
              profile->update.ns[1] == (other_split != NULL ? 15000 : 10000),
          "planned with benches");
    *out = (struct measure_rehearsals *)&known;
    return WEFT_OK;
}

void __real_weft_measure_rehearsals_destroy(struct measure_rehearsals *both);
void __wrap_weft_measure_rehearsals_destroy(struct measure_rehearsals *both);
void __wrap_weft_measure_rehearsals_destroy(struct measure_rehearsals *both)
{
    if (!known.replaced) {
        __real_weft_measure_rehearsals_destroy(both);
    } else if (both != NULL) {
        known.destroyed++;
    }
}

enum weft_status __real_weft_measure_rehearsals_rounds(const struct measure_rehearsals *both,
                                                       int32_t *rounds, struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_rounds(const struct measure_rehearsals *both,
                                                       int32_t *rounds, struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_rounds(const struct measure_rehearsals *both,
                                                       int32_t *rounds, struct weft_error *err)
{
    if (!known.replaced) return __real_weft_measure_rehearsals_rounds(both, rounds, err);
    WEFT_TRY(pass_stage(STAGE_ROUNDS, err));
    *rounds = known.calls[STAGE_TURN] == 0 ? FIRST_ROUNDS : ALL_ROUNDS;
    return WEFT_OK;
}

enum weft_status __real_weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                                     struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                                     struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_turn(struct measure_rehearsals *both,
                                                     struct weft_error *err)
{
    if (!known.replaced) return __real_weft_measure_rehearsals_turn(both, err);
    return pass_stage(STAGE_TURN, err);
}

enum weft_status __real_weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                       struct measure_rehearsal *out,
                                                       struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                       struct measure_rehearsal *out,
                                                       struct weft_error *err);
enum weft_status __wrap_weft_measure_rehearsals_finish(struct measure_rehearsals *both,
                                                       struct measure_rehearsal *out,
                                                       struct weft_error *err)
{
    if (!known.replaced) return __real_weft_measure_rehearsals_finish(both, out, err);
    WEFT_TRY(pass_stage(STAGE_FINISH, err));
    struct measure_layer *layers = out->layers;
    *out = known.found;
    out->layers = layers;
    for (int32_t k = 0; k < 2; k++)
        layers[k] = (struct measure_layer){100000 + k, 200000 + k, 100000 + k, 200000 + k};
    return WEFT_OK;
}

static void expect_curve(const struct weft_curve *curve, int64_t ns, const char *what)
{
    CHECK(curve->n == POINTS, "%s has %d points", what, curve->n);
    for (int i = 0; i < POINTS; i++)
        CHECK(curve->x[i] == INT64_C(1024) << i && curve->ns[i] == (i + 1) * ns,
              "%s: point %d takes %lld", what, i, (long long)curve->ns[i]);
}

static void look_at_nothing(struct weft_watch *watch)
{
    (void)watch;
}

/* Opens one rank and measures with known results. */
static enum weft_status measure_known(const struct weft_config *config, const struct ranks *ranks,
                                      int fails_at, struct weft_profile **out,
                                      struct weft_error *error)
{
    const struct weft_comm_options comm = ranks_options(0, ranks);
    const struct weft_nn_options nn = {.threads = 1, .gemm = "auto"};
    struct weft_watch watch = {.look = look_at_nothing, .now_ns = weft_clock_now_ns};
    struct weft_measure_options options = {
        .config = config, .threads = 3, .watch = &watch, .known = other_split};
    const struct measure_rehearsal found = known.found;
    memset(&known, 0, sizeof known);
    known.found = found;
    known.replaced = true;
    known.fails_at = fails_at;
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &options.device, &err));
    OK(weft_nn_open("cpu", &nn, &options.nn, &err));
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    const enum weft_status status = weft_measure(&options, out, error);
    CHECK(watch.what == NULL, "the watch still shows %s", watch.what);
    if (status == WEFT_OK) {
        CHECK(strstr((*out)->machine, weft_comm_describe(options.comm)) == (*out)->machine &&
                  strstr((*out)->machine, weft_nn_describe(options.nn)) != NULL,
              "machine is %s", (*out)->machine);
        CHECK(strcmp((*out)->kernels, weft_nn_gemm_name(options.nn)) == 0 &&
                  strcmp((*out)->updates, weft_config_updates(config)) == 0,
              "kernels %s, updates %s", (*out)->kernels, (*out)->updates);
    }
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(options.device);
    known.replaced = false;
    return status;
}

/* Curves keep their form and have the speed that was seen. */
static int scales_to_what_was_seen(int32_t rank, const struct ranks *ranks, void *config)
{
    struct weft_profile *profile, *again;
    (void)rank;
    known.found = (struct measure_rehearsal){
        .step_ns = INT64_C(1) << 40,
        .update_ns = 300,
        .update_expected_ns = 200,
        .norm_ns = 0, /* not seen */
        .norm_expected_ns = 50,
        .agree_ns = 1234,
        .base_bytes = 5678901,
        .transfer_ns = {[WEFT_ALL_GATHER] = 900, [WEFT_REDUCE_SCATTER] = 100},
        .transfer_expected_ns = {[WEFT_ALL_GATHER] = 300, [WEFT_REDUCE_SCATTER] = 200},
    };
    OK(measure_known(config, ranks, NO_FAILURE, &profile, &err));
    expect_curve(&profile->update, 7500, "update");
    expect_curve(&profile->norm, 7000, "norm");
    expect_curve(&profile->collectives[WEFT_ALL_GATHER], 3000, "all_gather");
    expect_curve(&profile->collectives[WEFT_REDUCE_SCATTER], 1000, "reduce_scatter");
    expect_curve(&profile->collectives[WEFT_ALL_REDUCE], 6000, "all_reduce, as both"); /* 2 times */
    CHECK(profile->agree_ns == 1234 && profile->base_bytes == 5678901, "agree %lld, base %lld",
          (long long)profile->agree_ns, (long long)profile->base_bytes);
    CHECK(profile->layers[0].forward_ns == 100000 && profile->layers[1].backward_ns == 200001,
          "layers");
    CHECK(profile->origin.threads == 3 && profile->ranks == 1 && profile->device == NULL, "origin");
    CHECK(known.calls[STAGE_TURN] == ALL_ROUNDS && known.calls[STAGE_ROUNDS] == 3 &&
              known.destroyed == 1,
          "%d turns, asked %d times", known.calls[STAGE_TURN], known.calls[STAGE_ROUNDS]);
    weft_profile_destroy(profile);
    known.found.transfer_ns[WEFT_ALL_REDUCE] = 50;
    known.found.transfer_expected_ns[WEFT_ALL_REDUCE] = 100;
    OK(measure_known(config, ranks, NO_FAILURE, &profile, &err));
    expect_curve(&profile->collectives[WEFT_ALL_REDUCE], 1500, "all_reduce, seen");
    /* Curves of another micro-batch stay as they are, and cost no benches. */
    other_split = profile;
    OK(measure_known(config, ranks, NO_FAILURE, &again, &err));
    CHECK(known.calls[STAGE_BENCHES] == 0, "benches ran");
    expect_curve(&again->update, 7500, "update, known");
    expect_curve(&again->collectives[WEFT_ALL_GATHER], 3000, "all_gather, known");
    CHECK(again->base_bytes == 5678901 && again->layers[0].forward_ns == 100000, "measured");
    other_split = NULL;
    weft_profile_destroy(again);
    weft_profile_destroy(profile);
    return 0;
}

/* A failure of any stage is the profile's, and what was made before is destroyed. */
static int fails_as_its_stages(int32_t rank, const struct ranks *ranks, void *config)
{
    (void)rank;
    for (int stage = 0; stage < STAGE_COUNT; stage++) {
        struct weft_profile *profile = NULL;
        struct weft_error error = {0};
        char text[16];
        snprintf(text, sizeof text, "stage %d", stage);
        CHECK(measure_known(config, ranks, stage, &profile, &error) == WEFT_E_IO &&
                  strcmp(error.text, text) == 0 && profile == NULL,
              "stage %d: %s", stage, error.text);
        CHECK(known.destroyed == (stage > STAGE_CREATE), "stage %d: %d destroyed", stage,
              known.destroyed);
        for (int later = stage + 1; later < STAGE_COUNT; later++)
            CHECK(known.calls[later] == 0, "stage %d goes on with %d", stage, later);
    }
    return 0;
}

/* Started as one rank, for a config of two. */
static int refuses_other_ranks(int32_t rank, const struct ranks *ranks, void *config)
{
    struct weft_profile *profile = NULL;
    struct weft_error error = {0};
    (void)rank;
    CHECK(measure_known(config, ranks, NO_FAILURE, &profile, &error) == WEFT_E_DATA &&
              strstr(error.text, "for 2 ranks and 1 were started") != NULL,
          "%s", error.text);
    CHECK(known.calls[STAGE_BENCHES] == 0, "it was measured");
    return 0;
}

static void is_made_of_known_parts(void)
{
    struct job job;
    job_open(&job, "configs/runs/mlp-tiny.json",
             (const char *[]){"cluster.emulate=false", "cluster.ranks=1", NULL});
    CHECK(ranks_run(1, scales_to_what_was_seen, job.config) == 0, "known parts");
    CHECK(ranks_run(1, fails_as_its_stages, job.config) == 0, "failures");
    job_close(&job);
    job_open(&job, "configs/runs/mlp-tiny.json",
             (const char *[]){"cluster.emulate=false", "cluster.ranks=2", NULL});
    CHECK(ranks_run(1, refuses_other_ranks, job.config) == 0, "ranks");
    job_close(&job);
}

RANKS_TEST(measure)
{
    counts_memory();
    is_made_of_known_parts();
    struct shared *shared = job_shared(sizeof *shared);
    const char *const configs[] = {"configs/runs/gpt-tiny.json", "configs/runs/mlp-tiny.json"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        const char *overrides[] = {"cluster.emulate=false", NULL};
        struct job job;
        job_open(&job, configs[i], overrides);
        struct task task = {&job, shared};
        CHECK(ranks_run(RANKS, measure, &task) == 0, "%s", configs[i]);
        CHECK(weft_hash_equal(shared->contended[0], shared->contended[1]),
              "%s: ranks have two profiles with contention", configs[i]);
        CHECK(weft_hash_equal(shared->hash[0], shared->hash[1]), "%s: ranks have two profiles",
              configs[i]);
        job_close(&job);
    }
    return 0;
}
