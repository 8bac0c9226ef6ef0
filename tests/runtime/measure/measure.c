/* A measured profile is whole, the same on all ranks, and good enough to plan with. Times are not
 * compared with anything: this machine may be busy. */
#include "runtime/measure/measure.h"
#include "problem/stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

RANKS_TEST(measure)
{
    counts_memory();
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
