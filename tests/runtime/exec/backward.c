/* SPDX-License-Identifier: Apache-2.0 */
/* Updates in backward end in the bits of updates before the next use: for every policy, order of
 * micro-steps, cadence, location of state and level of recomputation, and with evaluations that
 * settle a step. Bytes and times are the planned ones. A gradient that is not finite ends the run:
 * if it is the first of backward, no unit was updated. */
#include <stdio.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/program/dice.h"
#include "tests/runtime/exec/job.h"
#include "tests/runtime/exec/same_trace.h"

enum { STEPS = 4, RUNS = 4, RANKS = 3 };

struct outcome {
    struct weft_hash fingerprint;
    double losses[STEPS + 1], held_out;
    int64_t offloaded_bytes;
};

struct task {
    const struct job *job;
    struct outcome *outcome;
    int64_t settled_at; /* a step; 0: the last alone */
};

/* Settings as text. */
struct settings {
    char text[32][112];
    int n;
};

static int train_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct outcome outcome = {0};
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
        outcome.losses[step] = result.loss;
        if (step == task->settled_at) OK(weft_exec_settle(r.exec, &err));
    }
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_evaluate(r.exec, r.input, r.targets, &outcome.held_out, &err));
    OK(weft_exec_compare_replicas(r.exec, STEPS, &err));
    OK(weft_exec_fingerprint(r.exec, &outcome.fingerprint, &err));
    outcome.offloaded_bytes = weft_exec_tier_bytes(r.exec, WEFT_LOCATION_DISK) +
                              weft_exec_tier_bytes(r.exec, WEFT_LOCATION_HOST);
    if (rank == 0) *task->outcome = outcome;
    job_rank_close(&r);
    return 0;
}

static void add_text(struct settings *settings, const char *key, const char *value)
{
    snprintf(settings->text[settings->n++], sizeof *settings->text, "%s=%s", key, value);
}

static void add_integer(struct settings *settings, const char *key, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    add_text(settings, key, text);
}

static const char *pick_name(struct dice *dice, const char *const *names, int n)
{
    return names[roll(dice, 0, n - 1)];
}

/* Settings that bits depend on. */
static void roll_common(struct dice *dice, int32_t ranks, struct settings *out)
{
    static const char *const types[] = {"adamw", "sgd"};
    *out = (struct settings){0};
    add_integer(out, "cluster.ranks", ranks);
    add_integer(out, "train.grad_accum", roll(dice, 1, 3));
    add_integer(out, "train.micro_batch", roll(dice, 1, 2));
    add_text(out, "train.reduce", chance(dice, 50) ? "step" : "auto");
    add_text(out, "train.clip_norm", "0");
    add_text(out, "train.optimizer.type", pick_name(dice, types, 2));
    add_text(out, "cluster.emulate", "false");
    if (chance(dice, 40)) add_text(out, "train.precision.compute", "bf16");
}

/* Settings that change no bit. */
static void roll_schedule(struct dice *dice, int64_t n_micro, bool by_step, struct settings *out)
{
    static const char *const levels[] = {"none", "whole", "selective", "auto"};
    static const char *const states[] = {"[\"device\"]", "[\"host\"]", "[\"disk\"]",
                                         "[\"device\",\"host\",\"disk\"]"};
    static const char *const updates[] = {"[\"device\"]", "[\"host\"]", "[\"device\",\"host\"]"};
    static const char *const activations[] = {"[\"device\"]", "[\"host\"]",
                                              "[\"device\",\"host\"]"};
    add_integer(out, "plan.blocks", roll(dice, 1, 3));
    add_integer(out, "plan.update_ahead", roll(dice, 1, 3));
    add_text(out, "plan.recompute", pick_name(dice, levels, 4));
    if (by_step && n_micro > 1)
        add_text(out, "plan.micro_step_order", chance(dice, 50) ? "layer" : "2");
    if (chance(dice, 25)) return;
    add_text(out, "cluster.host.memory_limit", "1GB");
    add_text(out, "cluster.host.down.bandwidth", "1GB/s");
    add_text(out, "cluster.host.up.bandwidth", "2GB/s");
    add_text(out, "cluster.host.update", "1GB/s");
    add_text(out, "cluster.disk.path", job_disk());
    add_text(out, "cluster.disk.limit", "1GB");
    add_text(out, "cluster.disk.read.bandwidth", "1GB/s");
    add_text(out, "cluster.disk.write.bandwidth", "1GB/s");
    add_text(out, "cluster.disk.duplex", chance(dice, 50) ? "half" : "full");
    const char *state = pick_name(dice, states, 4), *inputs = pick_name(dice, activations, 3);
    const char *update = strstr(state, "host") != NULL ? pick_name(dice, updates, 3) : updates[0];
    add_text(out, "plan.offload.state", state);
    add_text(out, "plan.offload.update", update);
    add_text(out, "plan.offload.activations", pick_name(dice, activations, 3));
    add_text(out, "plan.offload.inputs", inputs);
}

static void open_settings(struct job *job, const char *path, const struct settings *settings,
                          const char *update_in)
{
    enum { MOST = sizeof settings->text / sizeof *settings->text };
    char text[64];
    const char *overrides[MOST + 2] = {text};
    snprintf(text, sizeof text, "plan.update_in=%s", update_in);
    for (int i = 0; i < settings->n; i++)
        overrides[i + 1] = settings->text[i];
    job_open(job, path, overrides);
}

static void make_plan(struct job *job, struct dice *dice)
{
    if (chance(dice, 60))
        job_plan_random(job, (uint64_t)roll(dice, 1, 1 << 20));
    else
        job_plan_policy(job, (enum weft_policy)roll(dice, 0, WEFT_POLICY_COUNT - 1),
                        chance(dice, 50));
}

/* CHECKs one run against the first one of its case. */
static void check_run(const struct outcome *first, const struct outcome *now, const char *what)
{
    char x[WEFT_HASH_TEXT_BYTES], y[WEFT_HASH_TEXT_BYTES];
    CHECK(weft_hash_equal(first->fingerprint, now->fingerprint), "%s: parameters %s, not %s", what,
          weft_hash_show(now->fingerprint, y), weft_hash_show(first->fingerprint, x));
    CHECK(first->held_out == now->held_out, "%s: an evaluation has %.17g, not %.17g", what,
          now->held_out, first->held_out);
    for (int s = 1; s <= STEPS; s++)
        CHECK(first->losses[s] == now->losses[s], "%s, step %d: loss %.17g, not %.17g", what, s,
              now->losses[s], first->losses[s]);
}

/* Updates before the next use, and then in backward after so many layers, each with another
 * schedule. Returns the number of runs with offloaded state. */
static int check_case(uint64_t seed, struct outcome *shared)
{
    static const char *const places[RUNS] = {"forward", "backward", "1", "3"};
    struct dice dice = dice_of(seed, "backward");
    const int32_t ranks = (int32_t)(1 + seed % 4);
    struct settings common;
    struct outcome first = {0};
    int offloaded = 0;
    roll_common(&dice, ranks, &common);
    const bool by_step = strcmp(common.text[3], "train.reduce=step") == 0 && chance(&dice, 50);
    for (int i = 0; i < RUNS; i++) {
        struct settings settings = common;
        struct job job;
        char what[2048] = "";
        roll_schedule(&dice, common.text[1][strlen("train.grad_accum=")] - '0', by_step, &settings);
        for (int k = 0; k < settings.n; k++)
            snprintf(what + strlen(what), sizeof what - strlen(what), "%s ", settings.text[k]);
        snprintf(what + strlen(what), sizeof what - strlen(what), "%s, seed %llu", places[i],
                 (unsigned long long)seed);
        open_settings(&job, "configs/runs/gpt-odd.json", &settings, places[i]);
        CHECK((job.stages.period->rule.update_after > 0) == (i > 0), "%s: another period", what);
        make_plan(&job, &dice);
        struct task task = {&job, shared, chance(&dice, 50) ? roll(&dice, 1, STEPS - 1) : 0};
        CHECK(ranks_run(ranks, train_rank, &task) == 0, "%s: a rank failed", what);
        if (i == 0) first = *shared;
        check_run(&first, shared, what);
        offloaded += i > 0 && shared->offloaded_bytes > 0;
        if (i > 0) CHECK(ranks_run(ranks, same_trace, &job) == 0, "%s: simulator and clock", what);
        job_close(&job);
    }
    return offloaded;
}

/* A run that ends with a gradient that is not finite, of one rank's layer. */
struct bad {
    const struct job *job;
    struct weft_hash *fingerprints; /* before the step and after it */
};

static int train_bad(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct bad *bad = argument;
    struct job_rank r;
    struct weft_error why = {0};
    struct weft_hash before = {0}, after = {0};
    job_rank_open(&r, bad->job, rank, ranks, WEFT_CLOCK_WALL, true);
    CHECK(job_rank_step(&r, 1).finite, "a good step");
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_fingerprint(r.exec, &before, &err));
    CHECK(job_rank_step(&r, 2).finite, "its loss is finite");
    CHECK(weft_exec_settle(r.exec, &why) == WEFT_E_NUMERIC, "the step is good");
    const bool tells = strstr(why.text, "Other units may be updated") != NULL;
    CHECK(tells && strstr(why.text, "Nothing was updated") == NULL, "%s", why.text);
    OK(weft_exec_fingerprint(r.exec, &after, &err));
    if (rank == 0) bad->fingerprints[0] = before;
    if (rank == 0) bad->fingerprints[1] = after;
    job_rank_close(&r);
    return 0;
}

/* All ranks fail. The step before is whole if the last layer's gradient is bad. Later ones may come
 * after updates. */
static void check_bad(struct weft_hash *fingerprints)
{
    static const char *const points[] = {"backward:rank=1:step=3:at=5:do=nan",
                                         "backward:rank=1:step=3:at=0:do=nan"};
    for (int late = 0; late < 2; late++) {
        const char *overrides[] = {"cluster.ranks=3",
                                   "cluster.emulate=false",
                                   "train.clip_norm=0",
                                   "plan.update_in=1",
                                   "plan.policies=zero1",
                                   "plan.fuse=false",
                                   NULL};
        struct job job;
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        job_plan_policy(&job, WEFT_POLICY_ZERO1, true);
        OK(weft_failpoint_parse(points[late], &job.failpoint, &err));
        struct bad bad = {&job, fingerprints};
        CHECK(ranks_run(RANKS, train_bad, &bad) == 0, "%s", points[late]);
        const bool same = weft_hash_equal(fingerprints[0], fingerprints[1]);
        CHECK(late == 1 || same, "a unit is updated after the first gradient was bad");
        CHECK(late == 0 || !same, "no unit is updated before the last gradient");
        job_close(&job);
    }
}

RANKS_TEST(backward)
{
    struct outcome *shared = job_shared(sizeof *shared);
    struct weft_hash *fingerprints = job_shared(2 * sizeof *fingerprints);
    int offloaded = 0, n = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        if (!test_draws(seed, 10, 40)) continue;
        offloaded += check_case(seed, shared);
        n++;
    }
    CHECK(offloaded > n / 2, "%d runs of %d cases offload", offloaded, n);
    check_bad(fingerprints);
    return 0;
}
