/* SPDX-License-Identifier: Apache-2.0 */
/* LAMB against its formula in double: parameters after one step, from gradients that a step of
 * plain SGD reveals. Runs on one rank, and on three with every policy. There each rank has slices
 * of the tensors that have norms. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/state.h"
#include "tests/runtime/exec/job.h"

/* A read waits for its stream, so an element at a time takes most of the test's time. */
enum { MOST_ELEMENTS = 1 << 17, READ_AT_ONCE = 1024 };
#define SGD_RATE 524288.0 /* a power of two, so large that parameters are negligible next to it */

struct values {
    double at[MOST_ELEMENTS]; /* tensors one after the other */
};

struct task {
    const struct job *job;
    int64_t steps;
    struct values *values;
};

static int64_t first_of(const struct weft_model *model, int32_t tensor)
{
    int64_t first = 0;
    for (int32_t t = 0; t < tensor; t++)
        first += model->tensors[t].elements;
    return first;
}

/* Each rank writes its own elements. Together they are all elements, once. */
static int train(int32_t rank, const struct ranks *ranks, void *argument)
{
    const struct task *task = argument;
    const struct weft_model *model = task->job->config->model;
    struct job_rank r;
    struct weft_state_cursor cursor = {0};
    struct weft_state_piece piece;
    struct weft_state_access *access;
    job_rank_open(&r, task->job, rank, ranks, WEFT_CLOCK_VIRTUAL, true);
    for (int64_t step = 1; step <= task->steps; step++)
        CHECK(job_rank_step(&r, step).finite, "step %lld is not finite", (long long)step);
    OK(weft_exec_settle(r.exec, &err));
    OK(weft_exec_state_open(r.exec, &access, &err));
    while (weft_exec_state_next(r.exec, &cursor, &piece)) {
        if (piece.state != WEFT_STATE_PARAMETER) continue;
        double *to = task->values->at + first_of(model, piece.tensor) + piece.first;
        for (int64_t first = 0; first < piece.count; first += READ_AT_ONCE) {
            float values[READ_AT_ONCE];
            int64_t left = piece.count - first, n = left < READ_AT_ONCE ? left : READ_AT_ONCE;
            OK(weft_exec_state_read(access, &piece, first, n, values, &err));
            for (int64_t i = 0; i < n; i++)
                to[first + i] = (double)values[i];
        }
    }
    weft_exec_state_close(access);
    job_rank_close(&r);
    return 0;
}

/* Parameters after so many steps. */
static void run(struct job *job, int32_t ranks, int64_t steps, struct values *values)
{
    struct task task = {job, steps, values};
    memset(values, 0xff, sizeof *values); /* NaN: nobody has written it */
    CHECK(ranks_run(ranks, train, &task) == 0, "a rank failed");
}

static void open_job(struct job *job, int32_t ranks, const char *optimizer)
{
    char set_ranks[64];
    snprintf(set_ranks, sizeof set_ranks, "cluster.ranks=%d", ranks);
    const char *overrides[] = {set_ranks,
                               "plan.blocks=2",
                               "cluster.emulate=false",
                               "train.clip_norm=0",
                               "train.lr_schedule={}",
                               optimizer,
                               NULL};
    job_open(job, "configs/runs/gpt-odd.json", overrides);
}

/* The first step of LAMB: both moments are the gradient's own. */
static void expect(const struct weft_model *model, const struct values *start,
                   const struct values *after_sgd, struct values *expected)
{
    const double lr = 0.01, decay = 0.1, eps = 1e-8;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const struct weft_tensor *tensor = &model->tensors[t];
        int64_t first = first_of(model, t), end = first + tensor->elements;
        double of_parameters = 0, of_steps = 0;
        for (int64_t i = first; i < end; i++) {
            double p = start->at[i], g = (p - after_sgd->at[i]) / SGD_RATE;
            double step = g / (fabs(g) + eps) + (tensor->decays ? decay * p : 0);
            expected->at[i] = step;
            of_parameters += p * p;
            of_steps += step * step;
        }
        bool adapts = tensor->decays && of_parameters > 0 && of_steps > 0;
        double trust = adapts ? sqrt(of_parameters / of_steps) : 1;
        for (int64_t i = first; i < end; i++)
            expected->at[i] = start->at[i] - lr * trust * expected->at[i];
    }
}

static double largest_error(const struct weft_model *model, const struct values *got,
                            const struct values *expected)
{
    double largest = 0;
    for (int64_t i = 0; i < model->parameters; i++) {
        double error = fabs(got->at[i] - expected->at[i]);
        CHECK(isfinite(error), "element %lld is %g", (long long)i, got->at[i]);
        largest = fmax(largest, error);
    }
    return largest;
}

static void check_ranks(int32_t ranks, struct values *shared)
{
    static struct values start, after_sgd, expected;
    struct job job;
    open_job(&job, ranks,
             "train.optimizer={\"type\":\"sgd\",\"momentum\":0,\"weight_decay\":0,\"lr\":524288}");
    CHECK(job.config->model->parameters <= MOST_ELEMENTS, "too large a model");
    job_plan_policy(&job, WEFT_POLICY_SDP, true);
    run(&job, ranks, 0, shared);
    start = *shared;
    run(&job, ranks, 1, shared);
    after_sgd = *shared;
    job_close(&job);

    open_job(&job, ranks, "train.optimizer={\"type\":\"lamb\",\"weight_decay\":0.1,\"lr\":0.01}");
    expect(job.config->model, &start, &after_sgd, &expected);
    CHECK(largest_error(job.config->model, &start, &expected) > 1e-3, "nothing moves");
    for (int policy = 0; policy < WEFT_POLICY_COUNT; policy++) {
        job_plan_policy(&job, (enum weft_policy)policy, false);
        run(&job, ranks, 1, shared);
        double error = largest_error(job.config->model, shared, &expected);
        printf("%d ranks, all %s: largest error %.2g\n", ranks,
               weft_policy_name((enum weft_policy)policy), error);
        CHECK(error < 2e-6, "%d ranks, %s: %g off the formula", ranks,
              weft_policy_name((enum weft_policy)policy), error);
    }
    job_close(&job);
}

RANKS_TEST(lamb)
{
    struct values *shared = job_shared(sizeof *shared);
    check_ranks(1, shared);
    check_ranks(3, shared);
    return 0;
}
