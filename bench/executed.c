/* SPDX-License-Identifier: Apache-2.0 */
/* Executes and predicts plans in turns: executed [--contention] [--rounds N] [--set KEY=VALUE]...
 * CONFIG PLAN...
 *
 * A machine's speed drifts, so a profile made now says little about a step a minute later.
 * Therefore all plans are open at once, each with its own arena and communicator. A round is one
 * step of the profile's rehearsal and one step of each plan. The profile of all rounds then
 * predicts the plans: strategies and placements stay, times are new.
 *
 * Prints one line of JSON per plan, and one for the rounds. The config must fix the block size, or
 * the plans would belong to other problems. */
#define _GNU_SOURCE /* for memfd_create */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "library/session.h"
#include "problem/stages.h"
#include "program/predict.h"
#include "program/trace.h"
#include "runtime/exec/exec.h"
#include "runtime/launch/bind.h"
#include "runtime/measure/measure.h"
#include "runtime/train/data.h"

enum { MOST_PLANS = 16, MOST_SETS = 16, MOST_RANKS = 4, MOST_ROUNDS = 64, WARM_STEPS = 3 };

/* The shared memory of one communicator. */
struct shared {
    int control_fd, arena_fds[MOST_RANKS];
};

/* A plan and its rank's state. */
struct subject {
    const char *path;
    struct weft_session session;
    struct shared shared;
    struct weft_comm *comm;
    struct weft_arena *arena;
    struct weft_exec *exec;
    struct weft_trace *trace;
    int64_t step_ns[MOST_ROUNDS], exposed_ns[MOST_ROUNDS];
};

struct bench {
    const char *path, *sets[MOST_SETS];
    int32_t n_sets, n_plans, rounds;
    bool contention;
    struct subject subjects[MOST_PLANS];
    struct shared shared; /* of the rehearsal */
    const struct weft_config *config;
    int32_t rank, ranks;
    struct weft_device *device;
    struct weft_nn *nn;
    struct weft_comm *comm;
    struct weft_data *data;
    void *input;
    int32_t *targets;
    int64_t steps;
};

static enum weft_status read_arguments(int argc, char **argv, struct bench *b,
                                       struct weft_error *err)
{
    b->rounds = 20;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--contention") == 0)
            b->contention = true;
        else if (strcmp(argv[i], "--rounds") == 0 && more)
            b->rounds = atoi(argv[++i]);
        else if (strcmp(argv[i], "--set") == 0 && more && b->n_sets < MOST_SETS)
            b->sets[b->n_sets++] = argv[++i];
        else if (argv[i][0] != '-' && !b->path)
            b->path = argv[i];
        else if (argv[i][0] != '-' && b->n_plans < MOST_PLANS)
            b->subjects[b->n_plans++].path = argv[i];
        else
            return weft_fail(err, WEFT_E_USAGE, "unknown argument %s", argv[i]);
    }
    if (b->n_plans > 0 && b->rounds >= 1 && b->rounds <= MOST_ROUNDS) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "usage: executed [--contention] [--rounds 1..%d] [--set KEY=VALUE]... CONFIG "
                     "PLAN...",
                     MOST_ROUNDS);
}

static enum weft_status share(int32_t ranks, struct shared *out, struct weft_error *err)
{
    out->control_fd = memfd_create("control", MFD_CLOEXEC);
    if (out->control_fd < 0 ||
        ftruncate(out->control_fd, (off_t)weft_comm_control_bytes(ranks)) != 0)
        return weft_fail(err, WEFT_E_SYSTEM, "no shared memory for a communicator");
    for (int32_t r = 0; r < ranks; r++) {
        out->arena_fds[r] = memfd_create("arena", MFD_CLOEXEC);
        if (out->arena_fds[r] < 0) return weft_fail(err, WEFT_E_SYSTEM, "no shared memory");
    }
    return WEFT_OK;
}

/* Runs in the process that forks, so it starts no thread and computes nothing. */
static enum weft_status prepare(struct bench *b, struct weft_error *err)
{
    for (int32_t p = 0; p < b->n_plans; p++) {
        struct subject *at = &b->subjects[p];
        WEFT_TRY(weft_config_read(b->path, b->sets, b->n_sets, &at->session.config, err));
        WEFT_TRY(weft_session_stage(&at->session, NULL, err));
        WEFT_TRY(weft_session_load(&at->session, at->path, err));
    }
    b->config = b->subjects[0].session.config;
    b->ranks = (int32_t)b->config->cluster.ranks;
    if (b->ranks > MOST_RANKS) return weft_fail(err, WEFT_E_USAGE, "at most %d ranks", MOST_RANKS);
    for (int32_t p = 0; p < b->n_plans; p++)
        WEFT_TRY(share(b->ranks, &b->subjects[p].shared, err));
    return share(b->ranks, &b->shared, err);
}

static enum weft_status open_comm(const struct bench *b, const struct shared *shared,
                                  struct weft_comm **out, struct weft_error *err)
{
    const struct weft_cluster *cluster = &b->config->cluster;
    const struct weft_comm_options options = {
        .rank = b->rank,
        .ranks = b->ranks,
        .local = {.control_fd = shared->control_fd,
                  .arena_fds = shared->arena_fds,
                  .emulate = cluster->emulate_link,
                  .alpha_ns = cluster->link.intra.alpha_ns,
                  .bytes_per_s = cluster->link.intra.bytes_per_s,
                  .own_cores = cluster->bind},
        .timeout_ns = INT64_C(60) * 1000000000,
    };
    return weft_comm_open("local", &options, out, err);
}

static enum weft_status open_subject(struct bench *b, struct subject *at, struct weft_error *err)
{
    const struct weft_session *session = &at->session;
    WEFT_TRY(open_comm(b, &at->shared, &at->comm, err));
    WEFT_TRY(weft_exec_map_arena(at->comm, session->program, false, &at->arena, err));
    const struct weft_exec_options options = {
        .config = session->config,
        .shards = session->stages.shards,
        .plan = session->plan,
        .program = session->program,
        .device = b->device,
        .comm = at->comm,
        .nn = b->nn,
        .arena = at->arena,
    };
    WEFT_TRY(weft_exec_create(&options, &at->exec, err));
    WEFT_TRY(weft_trace_create(session->program, "wall clock", &at->trace, err));
    return weft_exec_initialise(at->exec, 1, err);
}

static enum weft_status open_rank(struct bench *b, struct weft_error *err)
{
    const struct weft_train *train = &b->config->train;
    struct weft_batch batch = weft_config_batch(b->config);
    const struct weft_nn_options nn = {.threads = (int32_t)b->config->cluster.threads,
                                       .compute = (enum weft_dtype)train->precision.compute,
                                       .gemm = "auto"};
    struct weft_binding binding; /* lasts as long as the process */
    if (b->config->cluster.bind)
        WEFT_TRY(weft_bind(b->rank, b->ranks, b->config->cluster.threads, &binding, err));
    WEFT_TRY(weft_device_open("cpu", WEFT_CLOCK_WALL, &b->device, err));
    WEFT_TRY(weft_nn_open("cpu", &nn, &b->nn, err));
    WEFT_TRY(open_comm(b, &b->shared, &b->comm, err));
    WEFT_TRY(weft_data_open(b->config, WEFT_DATA_TRAINING, &b->data, err));
    size_t n_micro = (size_t)train->grad_accum;
    b->input = calloc(n_micro, (size_t)weft_model_host_input_bytes(b->config->model, &batch));
    b->targets = calloc(n_micro, (size_t)weft_model_target_bytes(b->config->model, &batch));
    if (!b->input || !b->targets) return weft_fail_memory(err, "a batch");
    for (int32_t p = 0; p < b->n_plans; p++)
        WEFT_TRY(open_subject(b, &b->subjects[p], err));
    return WEFT_OK;
}

static enum weft_status step(struct bench *b, struct subject *at, int32_t round,
                             struct weft_error *err)
{
    const struct weft_train *train = &b->config->train;
    int64_t samples = train->micro_batch * train->grad_accum;
    struct weft_step_result result;
    struct weft_trace_summary summary;
    struct weft_step_inputs inputs = {
        .input = b->input, .targets = b->targets, .step = ++b->steps, .lr = 1e-6};
    WEFT_TRY(
        weft_data_fill(b->data, b->steps, b->rank * samples, samples, b->input, b->targets, err));
    WEFT_TRY(weft_exec_step(at->exec, &inputs, &result, at->trace, err));
    if (!result.finite) return weft_fail(err, WEFT_E_NUMERIC, "%s: not finite", at->path);
    weft_trace_summarise(at->session.program, at->trace, &summary);
    at->step_ns[round] = summary.step_ns;
    at->exposed_ns[round] = summary.exposed_ns;
    return WEFT_OK;
}

static enum weft_status run_rounds(struct bench *b, struct weft_profile **profile,
                                   struct weft_error *err)
{
    const struct weft_measure_options options = {.config = b->config,
                                                 .device = b->device,
                                                 .comm = b->comm,
                                                 .nn = b->nn,
                                                 .contention = b->contention};
    struct weft_measuring *measuring;
    WEFT_TRY(weft_measuring_create(&options, &measuring, err));
    enum weft_status status = WEFT_OK;
    for (int32_t p = 0; p < b->n_plans; p++)
        for (int i = 0; i < WARM_STEPS && status == WEFT_OK; i++)
            status = step(b, &b->subjects[p], 0, err);
    for (int32_t round = 0; round < b->rounds && status == WEFT_OK; round++) {
        status = weft_measuring_turn(measuring, err);
        for (int32_t p = 0; p < b->n_plans && status == WEFT_OK; p++)
            status = step(b, &b->subjects[p], round, err);
    }
    if (status == WEFT_OK) status = weft_measuring_finish(measuring, profile, err);
    weft_measuring_destroy(measuring);
    return status;
}

/* Predicts the plan's strategies and placements with the times of another profile. */
static enum weft_status predict(const struct subject *at, const struct weft_profile *profile,
                                struct weft_prediction *out, struct weft_error *err)
{
    const struct weft_plan *planned = at->session.plan;
    struct weft_stages stages = {0};
    struct weft_plan *plan = NULL;
    struct weft_move *moves = calloc((size_t)planned->n_placements + 1, sizeof *moves);
    if (!moves) return weft_fail_memory(err, "moves");
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_stages_create_variant(at->session.config, profile,
                                                   &at->session.stages.variant, &stages, err));
    for (int32_t i = 0; i < planned->n_placements; i++) {
        const struct weft_placement *from = &planned->placements[i];
        bool gathers = planned->problem->items[from->item].item.kind == WEFT_ALL_GATHER;
        moves[i] = (struct weft_move){.item = from->item,
                                      .slot = gathers ? from->launch : from->deadline - 1,
                                      .launch = from->launch};
    }
    WEFT_TRY_GOTO(done, weft_plan_create(stages.problem, planned->planner, planned->strategies,
                                         moves, planned->n_placements, &plan, err));
    WEFT_TRY_GOTO(done, weft_plan_predict(plan, err));
    *out = plan->prediction;
done:
    weft_plan_destroy(plan);
    weft_stages_finish(&stages);
    free(moves);
    return status;
}

static enum weft_status print(struct bench *b, const struct weft_profile *profile,
                              struct weft_error *err)
{
    for (int32_t p = 0; p < b->n_plans; p++) {
        struct subject *at = &b->subjects[p];
        struct weft_prediction predicted = {0};
        WEFT_TRY(predict(at, profile, &predicted, err));
        int64_t measured_ns = weft_measure_median(at->step_ns, b->rounds);
        int64_t quarter_ns = at->step_ns[b->rounds / 4];
        int64_t three_ns = at->step_ns[b->rounds - 1 - b->rounds / 4];
        printf("{\"planner\": \"%s\", \"predicted_ns\": %lld, \"measured_ns\": %lld, "
               "\"quarter_ns\": %lld, \"three_quarters_ns\": %lld, "
               "\"predicted_exposed_ns\": %lld, \"measured_exposed_ns\": %lld}\n",
               at->session.plan->planner, (long long)predicted.step_ns, (long long)measured_ns,
               (long long)quarter_ns, (long long)three_ns, (long long)predicted.exposed_ns,
               (long long)weft_measure_median(at->exposed_ns, b->rounds));
    }
    printf("{\"rounds\": %d, \"compute_rate\": %d, \"channel_rate\": %d}\n", b->rounds,
           profile->rates.compute, profile->rates.own);
    return WEFT_OK;
}

static void close_rank(struct bench *b)
{
    for (int32_t p = 0; p < b->n_plans; p++) {
        struct subject *at = &b->subjects[p];
        weft_exec_destroy(at->exec);
        weft_trace_destroy(at->trace);
        if (at->arena) weft_comm_unmap_arena(at->comm);
        if (at->comm) weft_comm_close(at->comm);
    }
    weft_data_close(b->data);
    free(b->input);
    free(b->targets);
    if (b->comm) weft_comm_close(b->comm);
    if (b->nn) weft_nn_close(b->nn);
    weft_device_close(b->device);
}

static int run_rank(struct bench *b)
{
    struct weft_error err = {0};
    struct weft_profile *profile = NULL;
    enum weft_status status = open_rank(b, &err);
    if (status == WEFT_OK) status = run_rounds(b, &profile, &err);
    if (status == WEFT_OK && b->rank == 0) status = print(b, profile, &err);
    if (status != WEFT_OK) fprintf(stderr, "executed: rank %d: %s\n", b->rank, err.text);
    weft_profile_destroy(profile);
    close_rank(b);
    fflush(NULL);
    return weft_status_exit_code(status);
}

static enum weft_status run_ranks(struct bench *b, struct weft_error *err)
{
    pid_t pids[MOST_RANKS];
    enum weft_status status = WEFT_OK;
    for (b->rank = 0; b->rank < b->ranks; b->rank++) {
        pids[b->rank] = fork();
        if (pids[b->rank] < 0) return weft_fail(err, WEFT_E_SYSTEM, "fork failed");
        if (pids[b->rank] > 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(run_rank(b));
    }
    for (int32_t r = 0; r < b->ranks; r++) {
        int outcome = 0;
        if (waitpid(pids[r], &outcome, 0) != pids[r] || outcome != 0)
            status = weft_fail(err, WEFT_E_LOST, "rank %d failed", r);
    }
    return status;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    static struct weft_error err;
    enum weft_status status = read_arguments(argc, argv, &bench, &err);
    if (status == WEFT_OK) status = prepare(&bench, &err);
    if (status == WEFT_OK) status = run_ranks(&bench, &err);
    if (status != WEFT_OK) fprintf(stderr, "executed: %s\n", err.text);
    for (int32_t p = 0; p < bench.n_plans; p++)
        weft_session_close(&bench.subjects[p].session);
    return weft_status_exit_code(status);
}
