#include "runtime/train/evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct weft_evaluation {
    const struct weft_config *config;
    struct weft_comm *comm;
    struct weft_data *data;
    void *input;
    int32_t *targets;
    double *losses; /* [ranks] */
};

static enum weft_status fill(struct weft_evaluation *e, struct weft_error *err)
{
    struct weft_batch batch = weft_config_batch(e->config);
    e->input = malloc((size_t)weft_model_host_input_bytes(e->config->model, &batch));
    e->targets = malloc((size_t)weft_model_target_bytes(e->config->model, &batch));
    e->losses = calloc((size_t)weft_comm_ranks(e->comm), sizeof *e->losses);
    if (e->input == NULL || e->targets == NULL || e->losses == NULL)
        return weft_fail_memory(err, "an evaluation");
    return weft_data_open(e->config, WEFT_DATA_HELD_OUT, &e->data, err);
}

enum weft_status weft_evaluation_create(const struct weft_config *config, struct weft_comm *comm,
                                        struct weft_evaluation **out, struct weft_error *err)
{
    struct weft_evaluation *e = calloc(1, sizeof *e);
    if (e == NULL) return weft_fail_memory(err, "an evaluation");
    e->config = config;
    e->comm = comm;
    enum weft_status status = fill(e, err);
    if (status != WEFT_OK) {
        weft_evaluation_destroy(e);
        return status;
    }
    *out = e;
    return WEFT_OK;
}

void weft_evaluation_destroy(struct weft_evaluation *e)
{
    if (e == NULL) return;
    weft_data_close(e->data);
    free(e->losses);
    free(e->targets);
    free(e->input);
    free(e);
}

bool weft_evaluation_is_due(const struct weft_train *train, int64_t step)
{
    return step % train->validation.every == 0 || step == train->steps;
}

/* Samples from `first` on, and behind the last one rows without a target. A rank that has none left
 * runs along with its peers on such rows alone. */
static enum weft_status fill_batch(const struct weft_evaluation *e, int64_t first,
                                   struct weft_error *err)
{
    const struct weft_train *train = &e->config->train;
    const struct weft_batch batch = weft_config_batch(e->config),
                            one = {1, batch.seq_len, batch.compute};
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

/* Sum over all samples, micro-batch after micro-batch in the order of samples, so that ranks may
 * share them in any number. */
static enum weft_status sum_losses(const struct weft_evaluation *e, struct weft_exec *exec,
                                   double *sum, struct weft_error *err)
{
    const struct weft_train *train = &e->config->train;
    int64_t ranks = weft_comm_ranks(e->comm), rank = weft_comm_rank(e->comm);
    *sum = 0;
    for (int64_t first = 0; first < train->validation.samples;
         first += ranks * train->micro_batch) {
        double loss = 0;
        WEFT_TRY(fill_batch(e, first + rank * train->micro_batch, err));
        WEFT_TRY(weft_exec_evaluate(exec, e->input, e->targets, &loss, err));
        WEFT_TRY(weft_comm_exchange(e->comm, &loss, sizeof loss, e->losses, err));
        for (int64_t r = 0; r < ranks; r++)
            *sum += e->losses[r];
    }
    return WEFT_OK;
}

enum weft_status weft_evaluation_run(struct weft_evaluation *e, struct weft_exec *exec,
                                     int64_t step, struct weft_evaluation_line *out,
                                     struct weft_error *err)
{
    const struct weft_model *model = e->config->model;
    const struct weft_train *train = &e->config->train;
    bool classes = weft_model_tells_classes(model);
    int64_t start_ns = weft_clock_now_ns();
    double sum = 0;
    WEFT_TRY(weft_exec_settle(exec, err));
    WEFT_TRY(sum_losses(e, exec, &sum, err));
    int64_t samples = train->validation.samples;
    *out = (struct weft_evaluation_line){
        .step = step,
        .samples = samples,
        .loss = sum / (double)(samples * (classes ? 1 : train->seq_len)),
        .of = classes                      ? WEFT_LOSS_OF_SAMPLE
              : weft_data_is_text(e->data) ? WEFT_LOSS_OF_BYTE
                                           : WEFT_LOSS_OF_TOKEN,
        .ns = weft_clock_now_ns() - start_ns,
    };
    return WEFT_OK;
}
