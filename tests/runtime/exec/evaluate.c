/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation gives the loss. Its differences equal the gradient that a step applies, for every
 * tensor, also for a tied table with several uses. It leaves no trace in later steps, nor in a
 * rotated period's memory of numbers that are not finite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/exec/looks.h"
#include "runtime/exec/state.h"
#include "runtime/train/schedule.h"
#include "tests/runtime/exec/job.h"

enum { TOKEN = ' ', STEPS = 3, RANKS = 2 }; /* TOKEN: that every sample has */

/* A rank, access to its state, and the evaluation of changed state. */
struct subject {
    struct job_rank r;
    struct weft_state_access *access;
};

/* One rank has every tensor in one piece. */
static struct weft_state_piece piece_of(const struct subject *s, int32_t tensor)
{
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    while (weft_exec_state_next(s->r.exec, &cursor, &piece)) {
        if (piece.tensor != tensor || piece.state != WEFT_STATE_PARAMETER) continue;
        CHECK(piece.count == s->r.job->config->model->tensors[tensor].elements, "tensor %d is cut",
              tensor);
        return piece;
    }
    check_failed(__FILE__, __LINE__, "tensor", "tensor %d is nowhere", tensor);
}

static double evaluate(struct job_rank *r)
{
    double loss;
    OK(weft_exec_state_filled(r->exec, &err));
    OK(weft_exec_evaluate(r->exec, r->input, r->targets, &loss, &err));
    return loss;
}

/* The mean loss with one value changed. */
static double loss_at(struct subject *s, const struct weft_state_piece *piece, int64_t element,
                      float value)
{
    const struct weft_train *train = &s->r.job->config->train;
    float before;
    OK(weft_exec_state_read(s->access, piece, element, 1, &before, &err));
    OK(weft_exec_state_write(s->access, piece, element, 1, &value, &err));
    double loss = evaluate(&s->r) / (double)(train->micro_batch * train->seq_len);
    OK(weft_exec_state_write(s->access, piece, element, 1, &before, &err));
    return loss;
}

/* A tensor: its values before a step, and the change by a step of sgd, over its rate. */
struct tensor {
    float *values, *gradient;
};

/* The steepest element of n from `first` on. */
static void check_slope(struct subject *s, int32_t tensor, const struct tensor *of, int64_t first,
                        int64_t n)
{
    const float step = 0.01f;
    struct weft_state_piece piece = piece_of(s, tensor);
    int64_t at = first;
    for (int64_t i = first; i < first + n; i++)
        if (fabsf(of->gradient[i]) > fabsf(of->gradient[at])) at = i;
    float above = of->values[at] + step, below = of->values[at] - step;
    double gradient = (double)of->gradient[at];
    double slope = (loss_at(s, &piece, at, above) - loss_at(s, &piece, at, below)) /
                   ((double)above - (double)below);
    CHECK(gradient != 0 && fabs(slope - gradient) < 0.02 * fabs(slope),
          "%s, element %lld: gradient %g, slope %g", s->r.job->config->model->tensors[tensor].name,
          (long long)at, gradient, slope);
}

static struct tensor read_tensor(struct subject *s, int32_t tensor)
{
    struct weft_state_piece piece = piece_of(s, tensor);
    struct tensor out = {calloc((size_t)piece.count, sizeof(float)),
                         calloc((size_t)piece.count, sizeof(float))};
    CHECK(out.values != NULL && out.gradient != NULL, "out of memory");
    OK(weft_exec_state_read(s->access, &piece, 0, piece.count, out.values, &err));
    return out;
}

/* Computes the gradient from the step's result and restores the tensor. */
static void take_back(struct subject *s, int32_t tensor, struct tensor *of, double lr)
{
    struct weft_state_piece piece = piece_of(s, tensor);
    OK(weft_exec_state_read(s->access, &piece, 0, piece.count, of->gradient, &err));
    for (int64_t i = 0; i < piece.count; i++)
        of->gradient[i] = (float)(((double)of->values[i] - (double)of->gradient[i]) / lr);
    OK(weft_exec_state_write(s->access, &piece, 0, piece.count, of->values, &err));
}

static int differ(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    const struct weft_model *model = job->config->model;
    double lr = weft_train_lr(&job->config->train, 1);
    struct subject s;
    job_rank_open(&s.r, job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    OK(weft_exec_state_open(s.r.exec, &s.access, &err));
    struct tensor *all = calloc((size_t)model->n_tensors, sizeof *all);
    CHECK(all != NULL, "out of memory");
    for (int32_t t = 0; t < model->n_tensors; t++)
        all[t] = read_tensor(&s, t);
    CHECK(job_rank_step(&s.r, 1).clip == 1, "the gradient is clipped");
    OK(weft_exec_settle(s.r.exec, &err));
    for (int32_t t = 0; t < model->n_tensors; t++)
        take_back(&s, t, &all[t], lr);
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const struct weft_tensor *of = &model->tensors[t];
        int64_t row = of->n_dims > 1 ? of->dims[1] : 0;
        check_slope(&s, t, &all[t], 0, of->elements);
        if (t == 0) check_slope(&s, t, &all[t], TOKEN * row, row); /* read as a token too */
    }
    for (int32_t t = 0; t < model->n_tensors; t++) {
        free(all[t].values);
        free(all[t].gradient);
    }
    free(all);
    weft_exec_state_close(s.access);
    job_rank_close(&s.r);
    return 0;
}

static void check_gradient(void)
{
    const char *overrides[] = {
        "cluster.ranks=1", "cluster.emulate=false", "train.clip_norm=1000000",
        "train.optimizer={\"type\":\"sgd\",\"lr\":1,\"momentum\":0,\"weight_decay\":0}", NULL};
    struct job job;
    job_open(&job, "configs/runs/gpt-tiny.json", overrides);
    job_plan_policy(&job, WEFT_POLICY_DP, true);
    CHECK(ranks_run(1, differ, &job) == 0, "a gradient is not the slope");
    job_close(&job);
}

struct task {
    const struct job *job;
    bool evaluates;
    struct weft_hash *fingerprint; /* shared: of rank 0 */
};

static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    struct weft_hash fingerprint;
    struct job_rank r;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= STEPS; step++) {
        job_rank_step(&r, step);
        OK(weft_exec_settle(r.exec, &err));
        if (task->evaluates) evaluate(&r);
    }
    OK(weft_exec_fingerprint(r.exec, &fingerprint, &err));
    if (rank == 0) *task->fingerprint = fingerprint;
    job_rank_close(&r);
    return 0;
}

/* A good step blames no rank, also after a bad evaluation. */
static int blame(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct job *job = argument;
    const float bad = NAN;
    float before;
    struct weft_culprit culprit;
    struct subject s;
    job_rank_open(&s.r, job, rank, ranks, WEFT_CLOCK_VIRTUAL, false);
    OK(weft_exec_state_open(s.r.exec, &s.access, &err));
    job_rank_step(&s.r, 1);
    OK(weft_exec_settle(s.r.exec, &err));
    struct weft_state_cursor cursor = {.held = true};
    struct weft_state_piece piece;
    CHECK(weft_exec_state_next(s.r.exec, &cursor, &piece), "there is no state");
    OK(weft_exec_state_read(s.access, &piece, 0, 1, &before, &err));
    OK(weft_exec_state_write(s.access, &piece, 0, 1, &bad, &err));
    evaluate(&s.r);
    OK(weft_exec_state_write(s.access, &piece, 0, 1, &before, &err));
    OK(weft_exec_state_filled(s.r.exec, &err));
    CHECK(job_rank_step(&s.r, 2).finite, "step 2");
    OK(weft_exec_compare_looks(s.r.exec, &culprit, &err));
    CHECK(!culprit.known, "layer %d of rank %d", culprit.layer, culprit.rank);
    weft_exec_state_close(s.access);
    job_rank_close(&s.r);
    return 0;
}

static void check_trace(const char *clip, struct weft_hash *fingerprint)
{
    const char *overrides[] = {"cluster.ranks=2", "cluster.emulate=false", clip, NULL};
    for (uint64_t plan = 1; plan <= 3; plan++) {
        struct job job;
        job_open(&job, "configs/runs/gpt-odd.json", overrides);
        job_plan_random(&job, plan);
        struct task task = {&job, false, fingerprint};
        CHECK(ranks_run(RANKS, train, &task) == 0, "%s", clip);
        struct weft_hash without = *fingerprint;
        task.evaluates = true;
        CHECK(ranks_run(RANKS, train, &task) == 0, "%s, with evaluations", clip);
        CHECK(weft_hash_equal(without, *fingerprint), "%s: other bits with evaluations", clip);
        if (job.stages.period->rule.rotated)
            CHECK(ranks_run(RANKS, blame, &job) == 0, "an evaluation is blamed");
        job_close(&job);
    }
}

RANKS_TEST(evaluate)
{
    struct weft_hash *fingerprint = job_shared(sizeof *fingerprint);
    check_gradient();
    check_trace("train.clip_norm=1", fingerprint);
    check_trace("train.clip_norm=0", fingerprint);
    return 0;
}
