/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* After a stop, gives up an evaluation that takes longer than this. The save after it must not wait
 * until a scheduler kills the run. */
static const int64_t patience_ns = INT64_C(1000000000);

/* A rank's message about one micro-batch. */
struct share {
    double loss;
    int64_t targets; /* with a loss */
    bool gives_up;
};

struct weft_evaluation {
    const struct weft_config *config;
    struct weft_comm *comm;
    struct weft_data *data;
    void *input;
    int32_t *targets;
    struct share *shares; /* [ranks] */
};

static enum weft_status fill_evaluation(struct weft_evaluation *e, struct weft_error *err)
{
    struct weft_batch batch = weft_config_batch(e->config);
    e->input = malloc((size_t)weft_model_host_input_bytes(e->config->model, &batch));
    e->targets = malloc((size_t)weft_model_target_bytes(e->config->model, &batch));
    e->shares = calloc((size_t)weft_comm_ranks(e->comm), sizeof *e->shares);
    if (e->input == NULL || e->targets == NULL || e->shares == NULL)
        return weft_fail_memory(err, "an evaluation");
    return weft_data_open(e->config, WEFT_DATA_HELD_OUT, &e->data, err);
}

void weft_evaluation_destroy(struct weft_evaluation *e)
{
    if (e == NULL) return;
    weft_data_close(e->data);
    free(e->shares);
    free(e->targets);
    free(e->input);
    free(e);
}

bool weft_evaluation_is_due(const struct weft_train *train, int64_t step)
{
    return step % train->validation.every == 0 || step == train->steps;
}

/* Fills samples from `first` on, and then rows without a target. A rank without samples left runs
 * such rows to keep up with its peers. */
static enum weft_status fill_batch(const struct weft_evaluation *e, int64_t first,
                                   struct weft_error *err)
{
    const struct weft_train *train = &e->config->train;
    struct weft_batch one = weft_config_batch(e->config);
    one.samples = 1;
    const struct weft_model *model = e->config->model;
    size_t bytes = (size_t)weft_model_host_input_bytes(model, &one);
    int64_t n_targets = weft_model_targets(model, &one);
    int64_t left = train->validation.samples - first;
    int64_t count = left < train->micro_batch ? left : train->micro_batch;
    int64_t filled = count > 0 ? count : 1;
    WEFT_TRY(weft_data_fill(e->data, 0, count > 0 ? first : 0, filled, e->input, e->targets, err));
    for (int64_t s = filled; s < train->micro_batch; s++)
        memcpy((char *)e->input + (size_t)s * bytes, e->input, bytes);
    for (int64_t i = (count > 0 ? count : 0) * n_targets; i < train->micro_batch * n_targets; i++)
        e->targets[i] = WEFT_NO_TARGET;
    return WEFT_OK;
}

/* Fails if no held-out target has a loss. Unread data is told by the first evaluation. */
static enum weft_status find_target(const struct weft_evaluation *e, struct weft_error *err)
{
    const struct weft_train *train = &e->config->train;
    const struct weft_batch batch = weft_config_batch(e->config);
    const int64_t n_targets = weft_model_targets(e->config->model, &batch);
    struct weft_error unread;
    if (!weft_data_leaves_out(e->config)) return WEFT_OK;
    for (int64_t first = 0; first < train->validation.samples; first += train->micro_batch)
        if (fill_batch(e, first, &unread) != WEFT_OK || weft_data_count(e->targets, n_targets) > 0)
            return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: no target of the %lld held-out samples has a loss: raise "
                     "train.validation.samples%s",
                     e->config->source, (long long)train->validation.samples,
                     train->masked.given ? " or train.masked.share"
                                         : ", or hold out data with less of train.padding.token");
}

enum weft_status weft_evaluation_create(const struct weft_config *config, struct weft_comm *comm,
                                        struct weft_evaluation **out, struct weft_error *err)
{
    struct weft_evaluation *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(err, "an evaluation");
    e->config = config;
    e->comm = comm;
    enum weft_status status = fill_evaluation(e, err);
    if (status == WEFT_OK) status = find_target(e, err);
    if (status != WEFT_OK) {
        weft_evaluation_destroy(e);
        return status;
    }
    *out = e;
    return WEFT_OK;
}

/* Fills a batch that counts nothing: this rank's data cannot be read, and its peers evaluate. */
static void fill_nothing(const struct weft_evaluation *e)
{
    const struct weft_batch batch = weft_config_batch(e->config);
    const struct weft_model *model = e->config->model;
    const int64_t n_targets = weft_model_targets(model, &batch);
    memset(e->input, 0, (size_t)weft_model_host_input_bytes(model, &batch));
    for (int64_t i = 0; i < n_targets; i++)
        e->targets[i] = WEFT_NO_TARGET;
}

/* Whether a stop has waited too long. *since_ns is the time it was first seen, or 0. */
static bool is_impatient(const atomic_int *stop, int64_t *since_ns)
{
    if (stop == NULL || atomic_load(stop) == 0) return false;
    const int64_t now_ns = weft_clock_now_ns();
    if (*since_ns == 0) *since_ns = now_ns;
    return now_ns - *since_ns >= patience_ns;
}

/* Sums the losses in order of samples, so that any number of ranks gives the same sum. *whole is
 * false if some rank gave up, or has *unread; then all do. */
static enum weft_status sum_losses(const struct weft_evaluation *e, struct weft_exec *exec,
                                   const atomic_int *stop, double *sum, int64_t *targets,
                                   bool *whole, struct weft_error *unread, struct weft_error *err)
{
    const struct weft_train *train = &e->config->train;
    int64_t ranks = weft_comm_ranks(e->comm), rank = weft_comm_rank(e->comm), since_ns = 0;
    const struct weft_batch batch = weft_config_batch(e->config);
    const int64_t n_targets = weft_model_targets(e->config->model, &batch);
    *sum = 0;
    *targets = 0;
    *whole = true;
    for (int64_t first = 0; *whole && first < train->validation.samples;
         first += ranks * train->micro_batch) {
        struct share mine;
        memset(&mine, 0, sizeof mine); /* the exchange sends padding too */
        bool read = fill_batch(e, first + rank * train->micro_batch, unread) == WEFT_OK;
        if (!read) fill_nothing(e);
        WEFT_TRY(weft_exec_evaluate(exec, e->input, e->targets, &mine.loss, err));
        mine.targets = weft_data_count(e->targets, n_targets);
        mine.gives_up = !read || is_impatient(stop, &since_ns);
        WEFT_TRY(weft_comm_exchange(e->comm, &mine, sizeof mine, e->shares, err));
        for (int64_t r = 0; r < ranks; r++) {
            *sum += e->shares[r].loss;
            *targets += e->shares[r].targets;
            *whole = *whole && !e->shares[r].gives_up;
        }
    }
    return WEFT_OK;
}

enum weft_status weft_evaluation_run(struct weft_evaluation *e, struct weft_exec *exec,
                                     int64_t step, const atomic_int *stop,
                                     struct weft_evaluation_line *out, bool *whole,
                                     struct weft_error *unread, struct weft_error *err)
{
    const struct weft_model *model = e->config->model;
    const struct weft_train *train = &e->config->train;
    bool classes = weft_model_tells_classes(model);
    int64_t start_ns = weft_clock_now_ns(), targets = 0;
    double sum = 0;
    WEFT_TRY(weft_exec_settle(exec, err));
    WEFT_TRY(sum_losses(e, exec, stop, &sum, &targets, whole, unread, err));
    if (!*whole) return WEFT_OK;
    int64_t samples = train->validation.samples;
    *out = (struct weft_evaluation_line){
        .step = step,
        .samples = samples,
        .loss = sum / (double)targets,
        .of = classes                      ? WEFT_LOSS_OF_SAMPLE
              : weft_data_is_text(e->data) ? WEFT_LOSS_OF_BYTE
                                           : WEFT_LOSS_OF_TOKEN,
        .ns = weft_clock_now_ns() - start_ns,
    };
    return WEFT_OK;
}
