/* SPDX-License-Identifier: Apache-2.0 */
/* Offloading state changes no bit: with moments and masters offloaded, a run has the same
 * parameters and state as with all in the arena. The arena is poisoned, so a read of offloaded or
 * late state gives NaN. */
#include "runtime/exec/offloaded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/exec/host.h"
#include "runtime/exec/parts.h"
#include "runtime/exec/state.h"
#include "tests/runtime/exec/job.h"
#include "tests/runtime/exec/same_trace.h"

enum {
    AT_RANDOM = WEFT_POLICY_COUNT,
    STEPS = 4,
    MOST_STATE = 1 << 18,
    CHUNK = 1000,
    MOST_UNITS = 64
};

struct outcome {
    struct weft_hash fingerprint;
    uint8_t policies[MOST_UNITS]; /* by unit */
    double last_loss;
    int64_t offloaded_bytes; /* of all states */
    int64_t host_bytes, copied_bytes[WEFT_COPY_DIRECTIONS];
    int64_t n_state; /* elements of each rank's, in order */
    float state[MOST_RANKS][MOST_STATE];
};

struct task {
    const struct job *job;
    const struct outcome *from; /* state that the run goes on from, or NULL */
    struct outcome *outcome;
};

/* All that the rank holds, through buffers that cut pieces anywhere. */
static int64_t read_state(const struct job_rank *r, float *out, int64_t *offloaded_bytes)
{
    struct weft_state_access *access;
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    int64_t n = 0;
    *offloaded_bytes = 0;
    OK(weft_exec_state_open(r->exec, &access, &err));
    while (weft_exec_state_next(r->exec, &cursor, &piece)) {
        CHECK(n + piece.count <= MOST_STATE, "more state than there is room for");
        for (int64_t from = 0; from < piece.count; from += CHUNK) {
            const int64_t left = piece.count - from, count = left < CHUNK ? left : CHUNK;
            OK(weft_exec_state_read(access, &piece, from, count, out + n + from, &err));
        }
        n += piece.count;
        if (piece.offloaded) *offloaded_bytes += piece.count * (int64_t)sizeof *out;
    }
    weft_exec_state_close(access);
    return n;
}

static void write_state(const struct job_rank *r, const float *values)
{
    struct weft_state_access *access;
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    OK(weft_exec_state_clear(r->exec, &err));
    OK(weft_exec_state_open(r->exec, &access, &err));
    while (weft_exec_state_next(r->exec, &cursor, &piece)) {
        for (int64_t from = 0; from < piece.count; from += CHUNK) {
            const int64_t left = piece.count - from, count = left < CHUNK ? left : CHUNK;
            OK(weft_exec_state_write(access, &piece, from, count, values + from, &err));
        }
        values += piece.count;
    }
    weft_exec_state_close(access);
    OK(weft_exec_state_filled(r->exec, &err));
}

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    int64_t offloaded_bytes, touched_bytes;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    if (task->from != NULL) write_state(&r, task->from->state[rank]);
    const int64_t before = task->from != NULL ? STEPS : 0;
    for (int64_t step = before + 1; step <= before + STEPS; step++) {
        const struct weft_step_result result = job_rank_step(&r, step);
        CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
        if (rank == 0) task->outcome->last_loss = result.loss;
    }
    OK(weft_exec_compare_replicas(r.exec, before + STEPS, &err));
    OK(weft_exec_settle(r.exec, &err));
    struct weft_hash fingerprint;
    OK(weft_exec_fingerprint(r.exec, &fingerprint, &err));
    OK(weft_exec_touched_bytes(r.exec, &touched_bytes, &err));
    job_check_touched(task->job, touched_bytes, "a run");
    const int64_t n = read_state(&r, task->outcome->state[rank], &offloaded_bytes);
    if (rank == 0) {
        const struct weft_program *program = task->job->program;
        task->outcome->fingerprint = fingerprint;
        for (int32_t u = 0; u < program->n_units; u++)
            task->outcome->policies[u % MOST_UNITS] = (uint8_t)program->ways[u].policy;
        task->outcome->n_state = n;
        task->outcome->offloaded_bytes = offloaded_bytes;
        task->outcome->host_bytes = weft_exec_host_bytes(r.exec->host);
        for (int d = 0; d < WEFT_COPY_DIRECTIONS; d++)
            task->outcome->copied_bytes[d] =
                weft_exec_host_copied(r.exec->host, (enum weft_copy_direction)d);
    }
    job_rank_close(&r);
    return 0;
}

static void run(const struct job *job, const struct outcome *from, struct outcome *out)
{
    struct task task = {job, from, out};
    memset(out, 0, sizeof *out);
    CHECK(ranks_run((int32_t)job->config->cluster.ranks, train, &task) == 0, "a rank failed");
}

/* State is the same in whole if the policies are: under dp a rank has all of it, which nothing that
 * is updated on the host has. */
static void same(const struct outcome *a, const struct outcome *b, const char *what)
{
    char x[WEFT_HASH_TEXT_BYTES], y[WEFT_HASH_TEXT_BYTES];
    CHECK(weft_hash_equal(a->fingerprint, b->fingerprint), "%s: parameters %s, not %s", what,
          weft_hash_show(b->fingerprint, y), weft_hash_show(a->fingerprint, x));
    CHECK(a->last_loss == b->last_loss, "%s: loss %.17g, not %.17g", what, b->last_loss,
          a->last_loss);
    CHECK(memcmp(a->policies, b->policies, sizeof a->policies) != 0 ||
              (a->n_state == b->n_state && memcmp(a->state, b->state, sizeof a->state) == 0),
          "%s: the state differs", what);
}

/* Bytes of state in the arena of a program, if all of it were held at once. */
static int64_t state_bytes(const struct weft_program *program, bool offloaded)
{
    int64_t bytes = 0;
    for (int32_t b = 0; b < program->n_buffers; b++) {
        const struct weft_buffer *buffer = &program->buffers[b];
        if (weft_buffer_is_state(buffer->kind) &&
            weft_program_is_offloaded(program, buffer->index) == offloaded)
            bytes += buffer->used_bytes;
    }
    return bytes;
}

static int32_t count_op(const struct weft_program *program, enum weft_op op)
{
    int32_t n = 0;
    for (int32_t i = 0; i < program->n_instructions; i++)
        n += program->instructions[i].op == op;
    return n;
}

static int32_t count_offloaded(const struct weft_program *program)
{
    int32_t n = 0;
    for (int32_t u = 0; u < program->n_units; u++)
        n += weft_program_is_offloaded(program, u);
    return n;
}

static int32_t count_there(const struct weft_program *program)
{
    int32_t n = 0;
    for (int32_t u = 0; u < program->n_units; u++)
        n += weft_program_updates_on_host(program, u);
    return n;
}

/* Units or layers that an operation moves, in any number of blocks. */
static int32_t count_moved(const struct weft_program *program, enum weft_op op)
{
    int32_t n = 0;
    for (int32_t i = 0; i < program->n_instructions; i++)
        n += program->instructions[i].op == op && program->instructions[i].block == 0;
    return n;
}

/* Some of its state is here, and some is kept in each way in which it may be kept elsewhere. */
static bool is_mixed(const struct weft_program *program)
{
    return count_op(program, WEFT_OP_READ) > 0 && count_op(program, WEFT_OP_COPY_UP) > 0 &&
           count_op(program, WEFT_OP_HOST_UPDATE) > 0 && state_bytes(program, false) > 0;
}

/* A seed of a random plan that is mixed. */
static uint64_t find_seed(struct job *job)
{
    enum { MOST_SEEDS = 200 };
    uint64_t seed = 1;
    for (job_plan_random(job, seed); !is_mixed(job->program); job_plan_random(job, seed))
        CHECK(++seed < MOST_SEEDS, "no random plan is mixed");
    return seed;
}

static void make_plan(struct job *job, int kind, uint64_t seed)
{
    if (kind != AT_RANDOM)
        job_plan_policy(job, (enum weft_policy)kind, kind % 2 == 0);
    else
        job_plan_random(job, seed);
    const int32_t n = count_offloaded(job->program) - count_there(job->program);
    const int32_t n_come =
        count_moved(job->program, WEFT_OP_READ) + count_moved(job->program, WEFT_OP_COPY_UP);
    const int32_t n_go =
        count_moved(job->program, WEFT_OP_WRITE) + count_moved(job->program, WEFT_OP_COPY_DOWN);
    CHECK(n_come == n && n_go == n, "%d units are offloaded, and are not moved once each", n);
}

/* Bytes that a plan moves in a step by items of a kind. */
static int64_t planned_bytes(const struct weft_plan *plan, int32_t kind)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < plan->problem->n_items; i++) {
        const struct weft_item *item = &plan->problem->items[i].item;
        if (item->kind == kind && weft_problem_needs(plan->problem, plan->strategies, i))
            bytes += item->n_blocks * item->block_bytes;
    }
    return bytes;
}

/* Checks that the tier's bytes equal the plan's row, and that each lane copies the plan's blocks
 * in a step. State comes up once more when the run settles. An update's result is copied only once
 * there is an update. */
static void check_bytes(const struct job *job, const struct outcome *outcome, const char *what)
{
    const struct weft_plan *plan = job->plan;
    const int64_t planned[WEFT_COPY_DIRECTIONS] = {
        [WEFT_COPY_DOWN] =
            planned_bytes(plan, WEFT_STATE_DOWN) + planned_bytes(plan, WEFT_GRADIENT_DOWN),
        [WEFT_COPY_UP] =
            planned_bytes(plan, WEFT_STATE_UP) + planned_bytes(plan, WEFT_PARAMETERS_UP)};
    const int64_t once_more[WEFT_COPY_DIRECTIONS] = {[WEFT_COPY_UP] =
                                                         planned_bytes(plan, WEFT_STATE_UP)};
    /* The ring of a disk is in the host's memory too, where that is a tier. */
    const int64_t ring_bytes =
        job->program->staging_bytes > 0 ? 0 : weft_ring_bytes(&job->program->ring);
    for (int32_t t = 1; t < plan->problem->n_tiers; t++)
        CHECK(plan->problem->tiers[t].kind != WEFT_LOCATION_HOST ||
                  weft_plan_peak(plan, t, NULL) == outcome->host_bytes + ring_bytes,
              "%s: the host has %lld bytes", what, (long long)outcome->host_bytes);
    CHECK((outcome->host_bytes > 0) ==
              (count_op(job->program, WEFT_OP_COPY_UP) + count_there(job->program) > 0),
          "%s", what);
    for (int d = 0; d < WEFT_COPY_DIRECTIONS; d++)
        CHECK(outcome->copied_bytes[d] == STEPS * planned[d] + once_more[d] &&
                  (planned[d] > 0) == (outcome->host_bytes > 0),
              "%s: %lld bytes were copied, not %lld a step", what,
              (long long)outcome->copied_bytes[d], (long long)planned[d]);
}

/* Locations of state; UPDATED_THERE is on the host and updated there. */
enum locations { ON_DEVICE, ON_DISK, ON_HOST, UPDATED_THERE, ON_ALL, HOMES };

static void open_job(struct job *job, enum locations locations, int32_t ranks, const char *first,
                     const char *second)
{
    static const char *const allowed[HOMES] = {
        "plan.offload.state=[\"device\"]", "plan.offload.state=[\"disk\"]",
        "plan.offload.state=[\"host\"]", "plan.offload.state=[\"host\"]",
        "plan.offload.state=[\"device\",\"host\","
        "\"disk\"]"};
    static const char *const updates[HOMES] = {
        "plan.offload.update=[\"device\"]", "plan.offload.update=[\"device\"]",
        "plan.offload.update=[\"device\"]", "plan.offload.update=[\"host\"]",
        "plan.offload.update=[\"device\",\"host\"]"};
    char set_ranks[64], path[64];
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    snprintf(path, sizeof path, "cluster.disk.path=%s", job_disk());
    const char *overrides[] = {
        set_ranks,
        "plan.blocks=2",
        "cluster.emulate=false",
        "plan.offload.activations=[\"device\"]",
        path,
        "cluster.host.memory_limit=1GB",
        "cluster.host.down.bandwidth=1GB/s",
        "cluster.host.up.bandwidth=2GB/s",
        "cluster.host.update=1GB/s",
        locations == ON_ALL ? "cluster.host.threads=1" : "cluster.host.threads=3",
        "cluster.disk.limit=1GB",
        "cluster.disk.read.bandwidth=1GB/s",
        "cluster.disk.write.bandwidth=1GB/s",
        ranks == 1 ? "plan.update_ahead=0" : "plan.update_ahead=1",
        locations == ON_ALL ? "cluster.disk.duplex=full" : "cluster.disk.duplex=half",
        locations == ON_ALL ? "cluster.contention.compute=0.23" : "cluster.contention.compute=0",
        allowed[locations],
        updates[locations],
        first,
        second,
        NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

/* Runs plans of one config with state on the device, offloaded, and mixed over device, host and
 * disk. A checkpoint of one set of locations resumes with another. */
static void check_locations(int32_t ranks, const char *first, const char *second,
                            struct outcome *outcomes)
{
    static const int kinds[] = {WEFT_POLICY_DP, WEFT_POLICY_ZERO1, AT_RANDOM};
    struct job jobs[HOMES];
    for (int locations = 0; locations < HOMES; locations++)
        open_job(&jobs[locations], (enum locations)locations, ranks, first, second);
    const uint64_t seed = find_seed(&jobs[ON_ALL]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char what[128];
        snprintf(what, sizeof what, "%d ranks, %s, %s, plan %d", ranks, first,
                 second != NULL ? second : "", kinds[i]);
        for (int locations = 0; locations < HOMES; locations++) {
            struct job *job = &jobs[locations];
            make_plan(job, kinds[i], seed);
            run(job, NULL, &outcomes[locations]);
            same(&outcomes[ON_DEVICE], &outcomes[locations], what);
            check_bytes(job, &outcomes[locations], what);
            CHECK((outcomes[locations].offloaded_bytes > 0) == (count_offloaded(job->program) > 0),
                  "%s: %lld bytes are offloaded", what,
                  (long long)outcomes[locations].offloaded_bytes);
        }
        CHECK(count_offloaded(jobs[ON_DEVICE].program) == 0 &&
                  state_bytes(jobs[ON_DISK].program, false) == 0 &&
                  state_bytes(jobs[ON_HOST].program, false) == 0 &&
                  state_bytes(jobs[UPDATED_THERE].program, true) == 0 &&
                  count_there(jobs[UPDATED_THERE].program) ==
                      count_offloaded(jobs[UPDATED_THERE].program),
              "%s: locations are not those of the config", what);
        if (kinds[i] != AT_RANDOM) continue;
        for (int locations = ON_DISK; locations < HOMES; locations++)
            CHECK(ranks_run(ranks, same_trace, &jobs[locations]) == 0, "%s: locations %d", what,
                  locations);
        CHECK(is_mixed(jobs[ON_ALL].program), "%s: locations are not mixed", what);
        run(&jobs[ON_ALL], &outcomes[ON_DISK], &outcomes[HOMES]);
        run(&jobs[ON_DEVICE], &outcomes[ON_DEVICE], &outcomes[HOMES + 1]);
        same(&outcomes[HOMES + 1], &outcomes[HOMES], what);
    }
    for (int locations = 0; locations < HOMES; locations++)
        job_close(&jobs[locations]);
}

/* The loss on data of step 1, by parameters as they are. */
static double loss_of(struct job_rank *r)
{
    const int64_t samples = r->job->config->train.micro_batch;
    double loss = 0;
    OK(weft_data_fill(r->data, 1, r->rank * samples, samples, r->input, r->targets, &err));
    OK(weft_exec_evaluate(r->exec, r->input, r->targets, &loss, &err));
    return loss;
}

/* Gradients of the first step are not finite, so no unit is updated. The state that comes from the
 * host equals the arena's before it. */
static int train_bad(int32_t rank, const struct ranks *ranks, void *argument)
{
    struct weft_error why = {0};
    struct job_rank r;
    job_rank_open(&r, argument, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    const double before = loss_of(&r);
    job_rank_step(&r, 1);
    CHECK(weft_exec_settle(r.exec, &why) == WEFT_E_NUMERIC, "the step is good: %s", why.text);
    const double after = loss_of(&r);
    CHECK(after == before, "rank %d: loss %.17g, not %.17g", rank, after, before);
    job_rank_close(&r);
    return 0;
}

static void check_bad(enum weft_policy policy)
{
    struct job job;
    open_job(&job, UPDATED_THERE, 2, "train.clip_norm=0", "train.precision.compute=\"bf16\"");
    job_plan_policy(&job, policy, false);
    CHECK(count_there(job.program) > 0, "nothing is updated on the host");
    OK(weft_failpoint_parse("backward:rank=1:step=2:do=nan", &job.failpoint, &err));
    CHECK(ranks_run(2, train_bad, &job) == 0, "a rank failed");
    job_close(&job);
}

static void check_refusals(void)
{
    struct weft_error why = {0};
    struct job job;
    open_job(&job, ON_DISK, 1, "train.clip_norm=0.5", NULL);
    make_plan(&job, WEFT_POLICY_FSDP, 0);
    job.config->cluster.disk.given = false;
    struct weft_exec exec = {.options = {.config = job.config, .program = job.program}};
    struct exec_offloaded *none = NULL;
    struct exec_host *no_host = NULL;
    CHECK(weft_exec_offloaded_create(&exec, &none, &why) == WEFT_E_DATA && none == NULL &&
              strstr(why.text, "cluster.disk") != NULL,
          "%s", why.text);
    job_close(&job);
    open_job(&job, ON_HOST, 1, "train.clip_norm=0.5", NULL);
    make_plan(&job, WEFT_POLICY_FSDP, 0);
    job.config->cluster.host.given = false;
    exec.options.config = job.config;
    exec.options.program = job.program;
    why = (struct weft_error){0};
    CHECK(weft_exec_host_create(&exec, &no_host, &why) == WEFT_E_DATA && no_host == NULL &&
              strstr(why.text, "cluster.host") != NULL,
          "%s", why.text);
    job_close(&job);
}

RANKS_TEST(offloaded)
{
    struct outcome *outcomes = job_shared((HOMES + 2) * sizeof *outcomes);
    check_refusals();
    check_bad(WEFT_POLICY_FSDP);
    check_bad(WEFT_POLICY_ZERO1);
    check_locations(1, "train.clip_norm=0.5", NULL, outcomes);
    check_locations(2, "train.clip_norm=0.5", "train.precision.compute=\"bf16\"", outcomes);
    check_locations(2, "train.clip_norm=0", "train.grad_accum=3", outcomes);
    check_locations(2, "train.optimizer.type=adam_mini", "train.precision.compute=\"bf16\"",
                    outcomes);
    return 0;
}
