/* SPDX-License-Identifier: Apache-2.0 */
/* Bits of a tied model against a serial loop. The loop calls the layers without plan and program,
 * on buffers of its own, and adds up the tied gradient in the sequence of plan.micro_step_order. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "runtime/nn/units.h"
#include "runtime/train/schedule.h"
#include "tests/effort.h"
#include "tests/runtime/exec/job.h"

enum { STEPS = 3, MICRO_STEPS = 3, MOST_LAYERS = 8, MOST_TENSORS = 64, ORDERS = 4 };

struct order {
    const char *name;
    int32_t layers; /* of a group; 0: micro-step after micro-step */
};
static const struct order orders[ORDERS] = {{"step", 0}, {"layer", 1}, {"2", 2}, {"4", 4}};

/* The loop, for all ranks in turn. Arrays are by tensor, or by micro-step and layer. */
struct serial {
    const struct job *job;
    const struct weft_model *model;
    struct weft_batch batch;
    struct weft_pool pool;
    struct weft_device *device;
    struct weft_stream *stream;
    struct weft_nn *nn;
    struct weft_data *data;
    float *parameters[MOST_TENSORS], *moment1[MOST_TENSORS], *moment2[MOST_TENSORS];
    float *gradients[MOST_TENSORS]; /* of the rank at work */
    float *sums[MOST_TENSORS];      /* of the ranks before it */
    bool begun[MOST_TENSORS];       /* the rank has written the gradient in the step */
    void *outputs[MICRO_STEPS][MOST_LAYERS], *saved[MICRO_STEPS][MOST_LAYERS];
    void *output_gradients[MICRO_STEPS][MOST_LAYERS], *temporary;
    char *input;
    int32_t *targets;
    double scale, loss;
};

struct task {
    const struct job *job;
    int32_t layers; /* of the loop's order */
    struct weft_hash *fingerprint;
};

static void *make_room(struct serial *s, int64_t bytes)
{
    void *room = weft_pool_array(&s->pool, (size_t)bytes, 1);
    CHECK(room != NULL, "out of memory");
    return room;
}

static void open_tensors(struct serial *s)
{
    CHECK(s->model->n_tensors <= MOST_TENSORS, "%d tensors", s->model->n_tensors);
    for (int32_t t = 0; t < s->model->n_tensors; t++) {
        const struct weft_tensor *tensor = &s->model->tensors[t];
        const int64_t bytes = tensor->elements * (int64_t)sizeof(float);
        s->parameters[t] = make_room(s, bytes);
        s->moment1[t] = make_room(s, bytes);
        s->moment2[t] = make_room(s, bytes);
        s->gradients[t] = make_room(s, bytes);
        s->sums[t] = make_room(s, bytes);
        const struct weft_nn_initial initial = {.init = tensor->init,
                                                .std = tensor->init_std,
                                                .seed = (uint64_t)s->job->config->train.seed,
                                                .name = weft_hash_string(tensor->name),
                                                .n = tensor->elements,
                                                .to = s->parameters[t],
                                                .dtype = WEFT_F32};
        weft_nn_initialise(s->nn, s->stream, &initial);
    }
}

static void open_layers(struct serial *s)
{
    int64_t most = 0;
    CHECK(s->model->n_layers <= MOST_LAYERS, "%d layers", s->model->n_layers);
    for (int32_t l = 0; l < s->model->n_layers; l++) {
        struct weft_layer_work work;
        OK(weft_layer_work(&s->model->layers[l], &s->batch, &work, &err));
        if (work.forward_temporary_bytes > most) most = work.forward_temporary_bytes;
        if (work.backward_temporary_bytes > most) most = work.backward_temporary_bytes;
        for (int m = 0; m < MICRO_STEPS; m++) {
            s->outputs[m][l] = make_room(s, work.output_bytes);
            s->output_gradients[m][l] = make_room(s, work.output_bytes);
            s->saved[m][l] = make_room(s, work.saved_bytes);
        }
    }
    s->temporary = make_room(s, most);
    s->input = make_room(s, MICRO_STEPS * weft_model_host_input_bytes(s->model, &s->batch));
    s->targets = make_room(s, MICRO_STEPS * weft_model_target_bytes(s->model, &s->batch));
}

static void open_serial(struct serial *s, const struct job *job)
{
    *s = (struct serial){.job = job, .model = job->config->model};
    s->batch = weft_config_batch(job->config);
    OK(weft_device_open(job_device(), WEFT_CLOCK_WALL, &s->device, &err));
    OK(weft_stream_create(s->device, "serial", 0, &s->stream, &err));
    job_open_kernels(job, &s->nn);
    OK(weft_data_open(job->config, WEFT_DATA_TRAINING, &s->data, &err));
    open_tensors(s);
    open_layers(s);
}

static void close_serial(struct serial *s)
{
    weft_data_close(s->data);
    weft_stream_destroy(s->stream);
    weft_nn_close(s->nn);
    weft_device_close(s->device);
    weft_pool_finish(&s->pool);
}

static void run_layer(struct serial *s, int32_t micro, int32_t l, bool backward)
{
    const struct weft_layer *layer = &s->model->layers[l];
    const int64_t input_bytes = weft_model_host_input_bytes(s->model, &s->batch);
    struct weft_nn_call call = {
        .layer = layer,
        .batch = s->batch,
        .input = l == 0 ? s->input + micro * input_bytes : s->outputs[micro][l - 1],
        .targets = s->targets + micro * weft_model_targets(s->model, &s->batch),
        .output = s->outputs[micro][l],
        .saved = s->saved[micro][l],
        .temporary = s->temporary,
        .loss_scale = 1,
        .scale = &s->scale,
        .loss = &s->loss,
        .adds_loss = true,
    };
    for (int32_t i = 0; i < layer->n_tensors; i++) {
        const int32_t tensor = layer->tensors[i];
        call.tensors[i] = s->parameters[tensor];
        if (!backward) continue;
        call.gradients[i] = s->gradients[tensor];
        call.accumulate[i] = s->begun[tensor];
        s->begun[tensor] = true;
    }
    if (!backward) {
        weft_nn_forward(s->nn, s->stream, &call);
        return;
    }
    call.output_gradient = s->output_gradients[micro][l];
    call.input_gradient = l == 0 ? NULL : s->output_gradients[micro][l - 1];
    weft_nn_backward(s->nn, s->stream, &call);
}

/* The gradient of the rank's micro-steps. Forwards may come first in any order. Each group of
 * layers, from the last, runs backward for all micro-steps. */
static void compute_gradients(struct serial *s, int32_t rank, int64_t step, int32_t layers)
{
    const struct weft_data_share share = weft_data_share_of(s->job->config, rank, MICRO_STEPS);
    const int32_t n_layers = s->model->n_layers, each = layers > 0 ? layers : n_layers;
    OK(weft_data_fill_share(s->data, step, &share, s->input, s->targets, &err));
    memset(s->begun, 0, sizeof s->begun);
    for (int32_t micro = 0; micro < MICRO_STEPS; micro++)
        for (int32_t l = 0; l < n_layers; l++)
            run_layer(s, micro, l, false);
    for (int32_t end = n_layers, first; end > 0; end = first) {
        first = (end - 1) / each * each;
        for (int32_t micro = 0; micro < MICRO_STEPS; micro++)
            for (int32_t l = end - 1; l >= first; l--)
                run_layer(s, micro, l, true);
    }
    OK(weft_stream_synchronise(s->stream, &err));
}

/* Adds the rank's gradient to those of the ranks before it. */
static void add_rank(struct serial *s, int32_t rank)
{
    for (int32_t t = 0; t < s->model->n_tensors; t++)
        for (int64_t i = 0; i < s->model->tensors[t].elements; i++)
            s->sums[t][i] = rank == 0 ? s->gradients[t][i] : s->sums[t][i] + s->gradients[t][i];
}

static double clip_of(const struct serial *s)
{
    const double most = s->job->config->train.clip_norm;
    uint64_t bins[WEFT_NORM_WORDS] = {0};
    int finite;
    for (int32_t t = 0; t < s->model->n_tensors; t++)
        weft_norm_add(bins, s->sums[t], s->model->tensors[t].elements);
    const double norm = weft_norm_result(bins, &finite);
    CHECK(finite && norm > 0, "norm %g", norm);
    return most > 0 && most < norm + 1e-6 ? most / (norm + 1e-6) : 1;
}

static void update_parameters(struct serial *s, int64_t step)
{
    const struct weft_train *train = &s->job->config->train;
    const struct weft_optimizer optimizer =
        weft_optimizer_at(train, step, weft_train_lr(train, step), clip_of(s));
    for (int32_t t = 0; t < s->model->n_tensors; t++) {
        const struct weft_update of = {.parameters = s->parameters[t],
                                       .gradients = s->sums[t],
                                       .moment1 = s->moment1[t],
                                       .moment2 = s->moment2[t],
                                       .n = s->model->tensors[t].elements};
        weft_optimizer_update(&optimizer, s->model->tensors[t].decays, &of);
    }
}

static struct weft_hash hash_parameters(struct serial *s)
{
    uint64_t words[2] = {0};
    for (int32_t t = 0; t < s->model->n_tensors; t++) {
        const struct weft_tensor *tensor = &s->model->tensors[t];
        const struct weft_nn_piece whole = {.count = tensor->elements,
                                            .name = weft_hash_string(tensor->name)};
        const struct weft_nn_unit unit = {
            .parameters = s->parameters[t], .own = &whole, .n_own = 1};
        weft_nn_add_hash(s->nn, s->stream, &unit, words);
        OK(weft_stream_synchronise(s->stream, &err));
    }
    return (struct weft_hash){.high = words[0], .low = words[1]};
}

/* Trains all ranks of the job in this process. */
static int train_serially(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const int32_t n = (int32_t)task->job->config->cluster.ranks;
    struct serial s;
    (void)rank, (void)ranks;
    open_serial(&s, task->job);
    s.scale = 1.0 / (double)(weft_model_targets(s.model, &s.batch) * n * MICRO_STEPS);
    for (int64_t step = 1; step <= STEPS; step++) {
        for (int32_t of = 0; of < n; of++) {
            compute_gradients(&s, of, step, task->layers);
            add_rank(&s, of);
        }
        update_parameters(&s, step);
    }
    *task->fingerprint = hash_parameters(&s);
    close_serial(&s);
    return 0;
}

static int train_rank(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++)
        (void)job_rank_step(&r, step);
    const struct weft_hash fingerprint = job_rank_end(&r);
    if (rank == 0) *task->fingerprint = fingerprint;
    return 0;
}

static struct weft_hash run_task(rank_fn *train, int32_t ranks, const struct task *task)
{
    struct task copy = *task;
    CHECK(ranks_run(ranks, train, &copy) == 0, "a rank failed");
    return *task->fingerprint;
}

static void open_job(struct job *job, int32_t ranks, const char *clip, const char *order)
{
    char texts[4][64];
    snprintf(texts[0], sizeof *texts, "cluster.ranks=%d", ranks);
    snprintf(texts[1], sizeof *texts, "train.clip_norm=%s", clip);
    snprintf(texts[2], sizeof *texts, "train.grad_accum=%d", MICRO_STEPS);
    snprintf(texts[3], sizeof *texts, "plan.micro_step_order=%s", order);
    const char *overrides[] = {texts[0],
                               texts[1],
                               texts[2],
                               texts[3],
                               "train.micro_batch=2",
                               "train.seq_len=24",
                               "train.reduce=step",
                               "cluster.emulate=false",
                               NULL};
    job_open(job, "configs/runs/gpt-tiny.json", overrides);
}

/* Two plans of the order against the loop. Returns the loop's bits. */
static struct weft_hash check_order(int32_t ranks, const char *clip, const struct order *order,
                                    struct weft_hash *shared)
{
    char x[WEFT_HASH_TEXT_BYTES], y[WEFT_HASH_TEXT_BYTES];
    struct job job;
    open_job(&job, ranks, clip, order->name);
    const struct task task = {&job, order->layers, shared};
    CHECK(job.stages.period->rule.layers == order->layers, "%s: another period", order->name);
    const struct weft_hash serial = run_task(train_serially, 1, &task);
    for (int plan = 0; plan < 2; plan++) {
        if (plan == 0)
            job_plan_policy(&job, WEFT_POLICY_FSDP, false);
        else
            job_plan_random(&job, test_turn(1 << 16));
        const struct weft_hash run = run_task(train_rank, ranks, &task);
        CHECK(weft_hash_equal(run, serial),
              "%d ranks, clip %s, order %s, plan %d: parameters %s, not %s of the loop", ranks,
              clip, order->name, plan, weft_hash_show(run, x), weft_hash_show(serial, y));
    }
    job_close(&job);
    return serial;
}

RANKS_TEST(ties)
{
    static const char *const clips[] = {"0", "0.5"};
    struct weft_hash *shared = job_shared(sizeof *shared), of[ORDERS];
    for (int32_t ranks = 1; ranks <= 2; ranks++)
        for (int c = 0; c < 2; c++) {
            for (int i = 0; i < ORDERS; i++)
                of[i] = check_order(ranks, clips[c], &orders[i], shared);
            CHECK(!weft_hash_equal(of[0], of[1]), "bits cannot tell the orders");
        }
    return 0;
}
