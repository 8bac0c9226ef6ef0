/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that step on their own and average their parameters every few steps. Parameters, moments
 * and losses have the bits of a serial oracle: it runs each node alone, as a job of its ranks, and
 * averages by a loop. That holds under every policy and plan, and for every step that settles. An
 * average takes the time that the simulator predicts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/exec/state.h"
#include "spec/config_batch.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"
#include "tests/runtime/exec/same_trace.h"

enum { STEPS = 5, MOST_NODES = 3, RANDOM_PLANS = TEST_CASES(2, 1), RANDOM_JOBS = TEST_CASES(3, 1) };

/* The whole state of a run, in memory that all processes share: [node][state][element]. */
struct whole {
    float *values;
    int64_t elements, *first; /* of all tensors; of each tensor */
    double losses[MOST_NODES][STEPS + 1];
};

struct task {
    const struct job *job;
    struct whole *whole;
    int32_t per_node, nodes, node;   /* of the oracle: this node alone */
    int64_t every, from, to;         /* steps (from, to] */
    unsigned settles;                /* bit k: after step k */
    const struct weft_config *outer; /* with the outer optimizer's settings */
};

static float *values_of(const struct whole *whole, int32_t node, const struct weft_state_piece *at)
{
    const int64_t state = node * WEFT_STATE_COUNT + at->state;
    return whole->values + state * whole->elements + whole->first[at->tensor] + at->first;
}

static void store_state(const struct job_rank *r, const struct whole *whole, int32_t node)
{
    struct weft_state_cursor cursor = {.held = false};
    struct weft_state_access *access;
    struct weft_state_piece piece;
    OK(weft_exec_state_open(r->exec, &access, &err));
    while (weft_exec_state_next(r->exec, &cursor, &piece))
        OK(weft_exec_state_read(access, &piece, 0, piece.count, values_of(whole, node, &piece),
                                &err));
    weft_exec_state_close(access);
}

static void load_state(const struct job_rank *r, const struct whole *whole, int32_t node)
{
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_access *access;
    struct weft_state_piece piece;
    OK(weft_exec_state_clear(r->exec, &err));
    OK(weft_exec_state_open(r->exec, &access, &err));
    while (weft_exec_state_next(r->exec, &cursor, &piece))
        OK(weft_exec_state_write(access, &piece, 0, piece.count, values_of(whole, node, &piece),
                                 &err));
    weft_exec_state_close(access);
    OK(weft_exec_state_filled(r->exec, &err));
}

static struct weft_step_result do_step(struct job_rank *r, int64_t step, int64_t rank)
{
    const struct weft_train *train = &r->job->config->train;
    const int64_t samples = train->micro_batch * train->grad_accum;
    struct weft_step_inputs inputs = {.input = r->input,
                                      .targets = r->targets,
                                      .step = step,
                                      .lr = 0.02 / (double)step,
                                      .meets = weft_config_averages_after(r->job->config, step)};
    struct weft_step_result result;
    OK(weft_data_fill(r->data, step, rank * samples, samples, r->input, r->targets, &err));
    OK(weft_exec_step(r->exec, &inputs, &result, r->trace, &err));
    CHECK(result.finite, "step %lld: loss %g", (long long)step, result.loss);
    return result;
}

/* The oracle: ranks of one node, which knows of no other. */
static int step_alone(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, false);
    if (task->from > 0) load_state(&r, task->whole, task->node);
    for (int64_t step = task->from + 1; step <= task->to; step++) {
        const int64_t place = task->node * task->per_node + rank;
        const struct weft_step_result result = do_step(&r, step, place);
        if (rank == 0) task->whole->losses[task->node][step] = result.loss;
    }
    OK(weft_exec_settle(r.exec, &err));
    store_state(&r, task->whole, task->node);
    job_rank_close(&r);
    return 0;
}

/* The outer optimizer's step of one element: the anchor a, the mean x. */
static float step_element(const struct weft_train *train, float *anchor, float *momentum, float x)
{
    const float mu = (float)train->across_momentum, lr = (float)train->across_lr;
    const float change = *anchor - x, grown = mu * *momentum;
    *momentum = grown + change;
    const float ahead = mu * *momentum;
    const float step = lr * (change + ahead);
    *anchor -= step;
    return *anchor;
}

/* Averages an element over nodes, or over a pair of them, in node order, and makes the step of an
 * outer optimizer. `apart`: elements from one node's values to the next. */
static void average_element(const struct task *task, const int32_t *nodes, int32_t n, float *first)
{
    const int64_t apart = task->whole->elements * WEFT_STATE_COUNT;
    float sum = first[nodes[0] * apart];
    for (int32_t k = 1; k < n; k++)
        sum += first[nodes[k] * apart];
    for (int32_t k = 0; k < n; k++) {
        float *own = first + nodes[k] * apart;
        *own = sum / (float)n;
        if (weft_config_outer(task->outer))
            *own =
                step_element(&task->outer->train, own + WEFT_STATE_ANCHOR * task->whole->elements,
                             own + WEFT_STATE_OUTER * task->whole->elements, *own);
    }
}

static void average_tensor(const struct task *task, int32_t t, const int32_t *nodes, int32_t n)
{
    const int64_t first = task->whole->first[t];
    for (int64_t i = 0; i < task->job->config->model->tensors[t].elements; i++)
        average_element(task, nodes, n, task->whole->values + first + i);
}

/* The first layer that has a tensor. */
static int32_t layer_of(const struct weft_model *model, int32_t tensor)
{
    for (int32_t l = 0; l < model->n_layers; l++)
        for (int32_t i = 0; i < model->layers[l].n_tensors; i++)
            if (model->layers[l].tensors[i] == tensor) return l;
    CHECK(false, "no layer has tensor %d", tensor);
    return -1;
}

static bool is_averaged(const struct task *task, int32_t tensor)
{
    const struct weft_model *model = task->job->config->model;
    const int64_t n = task->outer->train.fragments, part = layer_of(model, tensor) % n;
    return model->tensors[tensor].trainable && task->to % task->every == part * task->every / n;
}

/* The means over nodes of the tensors that are due, or those over pairs of neighbours. */
static void average_whole(const struct task *task)
{
    const int32_t all[MOST_NODES] = {0, 1, 2}, n = task->nodes;
    const int32_t round = (int32_t)(task->to / task->every % 2);
    for (int32_t t = 0; t < task->job->config->model->n_tensors; t++) {
        if (!is_averaged(task, t)) continue;
        if (task->outer->train.across_rule == WEFT_AVERAGE_ALL) average_tensor(task, t, all, n);
        if (task->outer->train.across_rule == WEFT_AVERAGE_ALL) continue;
        for (int32_t node = round; node + 1 < n; node += 2)
            average_tensor(task, t, (const int32_t[]){node, node + 1}, 2);
        if (round > 0 && n % 2 == 0) average_tensor(task, t, (const int32_t[]){0, n - 1}, 2);
    }
}

/* Every node begins at the initial parameters, and so does its anchor. */
static void set_anchors(const struct task *task)
{
    const struct weft_model *model = task->job->config->model;
    const struct whole *whole = task->whole;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        if (!model->tensors[t].trainable) continue;
        for (int32_t node = 0; node < task->nodes; node++) {
            float *own = whole->values + node * WEFT_STATE_COUNT * whole->elements;
            memcpy(own + WEFT_STATE_ANCHOR * whole->elements + whole->first[t],
                   whole->values + whole->first[t],
                   (size_t)model->tensors[t].elements * sizeof *own);
        }
    }
}

static void run_oracle(struct task *task)
{
    CHECK(ranks_run(task->per_node, step_alone, task) == 0, "initial values");
    if (weft_config_outer(task->outer)) set_anchors(task);
    for (task->from = 0; task->from < STEPS; task->from = task->to) {
        task->to = task->from + 1;
        while (task->to < STEPS && !weft_config_averages_after(task->outer, task->to))
            task->to++;
        for (task->node = 0; task->node < task->nodes; task->node++)
            CHECK(ranks_run(task->per_node, step_alone, task) == 0, "node %d alone", task->node);
        average_whole(task);
    }
}

static void check_rows(const struct job *job, const struct job_rank *r)
{
    const size_t n_rows = (size_t)job->stages.problem->n_slots * WEFT_CATEGORY_COUNT;
    int64_t *rows = calloc(n_rows, sizeof *rows);
    CHECK(rows != NULL, "out of memory");
    weft_plan_rows(job->plan, 0, rows);
    CHECK(memcmp(rows, r->trace->live_bytes, n_rows * sizeof *rows) == 0,
          "live bytes are not the plan's");
    free(rows);
}

static int step_together(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const int32_t node = rank / task->per_node;
    struct weft_hash fingerprint;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_WALL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        task->whole->losses[node][step] = do_step(&r, step, rank).loss;
        if (rank == 0) check_rows(task->job, &r);
        OK(weft_exec_compare_replicas(r.exec, step, &err));
        if ((task->settles >> step & 1) != 0) OK(weft_exec_settle(r.exec, &err));
    }
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_fingerprint(r.exec, &fingerprint, &err));
    store_state(&r, task->whole, node);
    job_rank_close(&r);
    return 0;
}

static void check_same(const struct task *task, const struct whole *oracle, const char *what)
{
    const struct whole *found = task->whole;
    const int64_t n = task->nodes * WEFT_STATE_COUNT * found->elements;
    for (int64_t i = 0; i < n; i++)
        CHECK(memcmp(&found->values[i], &oracle->values[i], sizeof(float)) == 0,
              "%s: node %lld, state %lld, element %lld is %.9g, not %.9g", what,
              (long long)(i / found->elements / WEFT_STATE_COUNT),
              (long long)(i / found->elements % WEFT_STATE_COUNT), (long long)(i % found->elements),
              found->values[i], oracle->values[i]);
    for (int64_t step = 1; step <= STEPS; step++) {
        const bool meets = weft_config_averages_after(task->outer, step);
        double mean = 0;
        for (int32_t node = 0; node < task->nodes; node++)
            mean += oracle->losses[node][step] / task->nodes;
        for (int32_t node = 0; node < task->nodes; node++) {
            const double loss = found->losses[node][step];
            const double expected = meets ? mean : oracle->losses[node][step];
            CHECK(loss > expected - 1e-9 && loss < expected + 1e-9 &&
                      (!meets || loss == found->losses[0][step]),
                  "%s, step %lld: loss %.17g, not %.17g", what, (long long)step, loss, expected);
        }
    }
}

static void open_job(struct job *job, const char *path, int32_t ranks, int32_t per_node,
                     int64_t every, const char *outer, const char *const *more)
{
    const char *overrides[12];
    char text[3][80];
    int n = 0;
    snprintf(text[0], sizeof text[0], "cluster.ranks=%d", ranks);
    snprintf(text[1], sizeof text[1], "cluster.ranks_per_node=%d", per_node);
    for (int i = 0; i < 3; i++)
        overrides[n++] = text[i];
    overrides[n++] = "cluster.link={\"intra\":{\"alpha\":\"5us\",\"bandwidth\":\"2GB/s\"},"
                     "\"inter\":{\"alpha\":\"20us\",\"bandwidth\":\"200MB/s\"}}";
    overrides[n++] = "cluster.emulate=false";
    overrides[n++] = "plan.blocks=2";
    snprintf(text[2], sizeof text[2], "train.across={\"every\":%lld%s}", (long long)every, outer);
    while (*more != NULL)
        overrides[n++] = *more++;
    overrides[n] = NULL;
    job_open(job, path, overrides);
}

static void make_whole(const struct weft_model *model, int32_t nodes, struct whole **out)
{
    struct whole *whole = job_shared(sizeof *whole);
    whole->first = job_shared((size_t)model->n_tensors * sizeof *whole->first);
    for (int32_t t = 0; t < model->n_tensors; t++) {
        whole->first[t] = whole->elements;
        whole->elements += model->tensors[t].elements;
    }
    whole->values =
        job_shared((size_t)(nodes * WEFT_STATE_COUNT * whole->elements) * sizeof(float));
    *out = whole;
}

static void plan_job(struct job *job, int plan)
{
    static const enum weft_policy policies[] = {WEFT_POLICY_DP, WEFT_POLICY_ZERO1, WEFT_POLICY_SDP,
                                                WEFT_POLICY_FSDP};
    if (plan < 4)
        job_plan_policy(job, policies[plan], plan % 2 == 0);
    else
        job_plan_random(job, (uint64_t)plan);
}

static void check_bits(const char *path, int32_t nodes, int32_t per_node, int64_t every, int plans,
                       const char *outer, const char *const *more)
{
    struct whole *oracle, *found;
    struct job job, alone;
    open_job(&alone, path, per_node, per_node, 0, "", more);
    open_job(&job, path, nodes * per_node, per_node, every, outer, more);
    make_whole(job.config->model, nodes, &oracle);
    make_whole(job.config->model, nodes, &found);
    CHECK(job.stages.shards->ranks == per_node && job.stages.period->rule.every == every,
          "shards of a node");
    job_plan_policy(&alone, WEFT_POLICY_FSDP, true);
    struct task task = {&alone, oracle, per_node, nodes, 0, every, 0, 0, 0, job.config};
    run_oracle(&task);
    task = (struct task){&job, found, per_node, nodes, 0, every, 0, 0, 0, job.config};
    for (int plan = 4 - plans; plan < 4 + RANDOM_PLANS; plan++) {
        char what[160];
        plan_job(&job, plan);
        snprintf(what, sizeof what, "%s, %d nodes of %d ranks, every %lld steps, %s, plan %d", path,
                 nodes, per_node, (long long)every, more[0] == NULL ? "" : more[0], plan);
        task.settles = (unsigned)weft_rng_u64((uint64_t)plan, (uint64_t)every, 0);
        CHECK(ranks_run(nodes * per_node, step_together, &task) == 0, "%s", what);
        check_same(&task, oracle, what);
        CHECK(ranks_run(nodes * per_node, same_trace, &job) == 0, "%s: times", what);
    }
    job_close(&job);
    job_close(&alone);
}

/* Any shape, interval and setting. */
static void check_random(uint64_t seed)
{
    static const char *const paths[] = {
        "configs/runs/gpt-odd.json", "configs/runs/gpt-no-clip.json",
        "configs/runs/gpt-accumulate.json", "configs/runs/gpt-frozen.json"};
    static const char *const settings[] = {
        "train.clip_norm=0.5",       "train.precision.compute=bf16",
        "train.optimizer.type=lamb", "train.optimizer={\"type\":\"sgd\",\"momentum\":0.9}",
        "train.clip_norm=0",         "train.optimizer.type=adam_mini"};
    const uint64_t path = weft_rng_below(seed, 1, 0, 4), setting = weft_rng_below(seed, 1, 1, 6);
    const int32_t nodes = 2 + (int32_t)weft_rng_below(seed, 1, 2, 2);
    const int32_t per_node = 1 + (int32_t)weft_rng_below(seed, 1, 3, 2);
    static const char *const outers[] = {"", ",\"momentum\":0.5", ",\"lr\":0.9",
                                         ",\"rule\":\"gossip\""};
    const char *more[] = {settings[setting], NULL};
    check_bits(paths[path], nodes, per_node, 1 + (int64_t)weft_rng_below(seed, 1, 4, 4), 0,
               outers[weft_rng_below(seed, 1, 5, 4)], more);
}

RANKS_TEST(across)
{
    const char *const none[] = {NULL}, *const bf16[] = {"train.precision.compute=bf16", NULL};
    static const char nesterov[] = ",\"momentum\":0.9,\"lr\":0.7";
    const char *const no_clip[] = {"train.clip_norm=0", NULL};
    for (int64_t every = 1; every <= 3; every++)
        check_bits("configs/runs/gpt-odd.json", 2, 1, every, 1, "", none);
    check_bits("configs/runs/gpt-odd.json", 2, 2, 1, 2, "", no_clip);
    check_bits("configs/runs/gpt-odd.json", 2, 1, 3, 2, ",\"fragments\":3", none);
    check_bits("configs/runs/gpt-odd.json", 2, 2, 2, 1, ",\"fragments\":2", no_clip);
    check_bits("configs/runs/gpt-odd.json", 3, 1, 1, 1, ",\"rule\":\"gossip\"", none);
    check_bits("configs/runs/gpt-odd.json", 2, 2, 2, 2, ",\"rule\":\"gossip\"", no_clip);
    check_bits("configs/runs/gpt-odd.json", 2, 2, 2, 4, nesterov, none);
    check_bits("configs/runs/gpt-odd.json", 2, 2, 3, 4, "", bf16);
    for (uint64_t seed = 1; seed <= RANDOM_JOBS; seed++)
        check_random(seed);
    return 0;
}
