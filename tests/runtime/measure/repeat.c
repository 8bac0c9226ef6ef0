/* SPDX-License-Identifier: Apache-2.0 */
/* Turns are repeated while the times of steps differ, and a bound ends them. The linker gives a
 * profile's own calls of weft_measure_spread to this test, since no machine is busy on demand. */
#include <string.h>

#include "base/clock.h"
#include "base/watch.h"
#include "runtime/measure/measure.h"
#include "runtime/measure/parts.h"
#include "tests/runtime/exec/job.h"

enum { STEADY = 0, VARIED = 5000, AS_MEASURED = -1 };
static int64_t spread_of_steps = AS_MEASURED;

int64_t __real_weft_measure_spread(int64_t *values, int64_t n);
int64_t __wrap_weft_measure_spread(int64_t *values, int64_t n);
int64_t __wrap_weft_measure_spread(int64_t *values, int64_t n)
{
    return spread_of_steps == AS_MEASURED ? __real_weft_measure_spread(values, n) : spread_of_steps;
}

static void the_spread_is_of_the_middle_half(void)
{
    int64_t steady[] = {100, 101, 99, 100, 102, 98, 100, 9000, 100};
    int64_t varied[] = {100, 300, 100, 300, 100, 300, 200, 100, 300};
    int64_t one[] = {70}, idle[] = {0, 0, 0};
    CHECK(weft_measure_spread(steady, 9) == 10, "one slow step is no spread");
    CHECK(weft_measure_spread(varied, 9) == 1000, "%lld",
          (long long)weft_measure_spread(varied, 9));
    CHECK(weft_measure_spread(one, 1) == 0, "of one");
    CHECK(weft_measure_spread(idle, 3) == 0, "of no time");
    CHECK(weft_measure_spread(NULL, 0) == 0, "of none");
}

static void varied_turns_are_repeated_up_to_the_bound(void)
{
    CHECK(weft_measure_more_rounds(9, 36, 100) == 9, "steady");
    CHECK(weft_measure_more_rounds(9, 36, 101) == 18, "varied");
    CHECK(weft_measure_more_rounds(18, 36, 101) == 36, "varied still");
    CHECK(weft_measure_more_rounds(36, 36, 5000) == 36, "the bound");
    CHECK(weft_measure_more_rounds(9, 11, 5000) == 11, "a bound between");
    CHECK(weft_measure_more_rounds(9, 9, 5000) == 9, "as many as were asked for");
    CHECK(weft_measure_more_rounds(9, 3, 5000) == 9, "never fewer");
}

/* Turns that a profile announces. */
struct turns {
    struct weft_watch watch; /* first */
    int64_t first, last;
};

static void count_turns(struct weft_watch *watch)
{
    struct turns *turns = (struct turns *)watch;
    if (watch->noun == NULL || strcmp(watch->noun, "step") != 0) return;
    if (turns->first == 0) turns->first = watch->of;
    turns->last = watch->of;
}

static struct turns measure_with(const struct ranks *ranks, const struct weft_config *config,
                                 int64_t spread)
{
    const struct weft_comm_options comm = ranks_options(0, ranks);
    const struct weft_nn_options nn = {.threads = 1, .gemm = "auto"};
    struct turns turns = {.watch = {.look = count_turns, .now_ns = weft_clock_now_ns}};
    struct weft_measure_options options = {.config = config, .watch = &turns.watch};
    struct weft_profile *profile = NULL;
    OK(weft_device_open("cpu", WEFT_CLOCK_WALL, &options.device, &err));
    OK(weft_nn_open("cpu", &nn, &options.nn, &err));
    OK(weft_comm_open("local", &comm, &options.comm, &err));
    spread_of_steps = spread;
    OK(weft_measure(&options, &profile, &err));
    spread_of_steps = AS_MEASURED;
    weft_profile_destroy(profile);
    weft_comm_close(options.comm);
    weft_nn_close(options.nn);
    weft_device_close(options.device);
    return turns;
}

static int measure_steady(int32_t rank, const struct ranks *ranks, void *config)
{
    const struct turns turns = measure_with(ranks, config, STEADY);
    CHECK(turns.first > 0 && turns.last == turns.first, "rank %d: %lld turns, then %lld", rank,
          (long long)turns.first, (long long)turns.last);
    return 0;
}

static int measure_varied(int32_t rank, const struct ranks *ranks, void *config)
{
    const struct turns turns = measure_with(ranks, config, VARIED);
    CHECK(turns.last > turns.first, "rank %d: %lld turns, then %lld", rank, (long long)turns.first,
          (long long)turns.last);
    return 0;
}

static void a_profile_repeats_varied_turns(void)
{
    const char *overrides[] = {"cluster.emulate=false", "cluster.ranks=1", NULL};
    struct job job;
    job_open(&job, "configs/runs/mlp-tiny.json", overrides);
    CHECK(ranks_run(1, measure_steady, job.config) == 0, "steady");
    CHECK(ranks_run(1, measure_varied, job.config) == 0, "varied");
    job_close(&job);
}

RANKS_TEST(repeat)
{
    a_profile_repeats_varied_turns();
    the_spread_is_of_the_middle_half();
    varied_turns_are_repeated_up_to_the_bound();
    return 0;
}
